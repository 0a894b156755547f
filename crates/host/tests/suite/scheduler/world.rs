//! Random hosts in front of a scheduler, a random device behind it, and what
//! must hold at every command that goes.
//!
//! The hosts write zones in order with several writes under way, write zones in
//! no order, append, read at random, manage zones that nobody writes to, and
//! send what no device takes. The device completes in any order. The scheduler
//! is asked at random times, so that requests wait for each other.

use std::collections::BTreeMap;

use zonelab_device::{Command, Lba, NamespaceId, Nanos, Op};
use zonelab_host::Rng;
use zonelab_host::scheduler::{
    MqDeadlineSettings, RequestId, Scheduler, SchedulerSpec, ZincSettings, ZincThrottle,
};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};

use super::INFO;

/// What the world is like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    /// Timers ring late.
    pub(super) late_timers: bool,
    /// Other schedulers take over.
    pub(super) switches: bool,
    /// Failed writes are sent again while later ones wait.
    pub(super) retries: bool,
    /// Management commands come one at a time.
    pub(super) one_management: bool,
    /// Time does not stop at a completion, and the scheduler is always asked.
    pub(super) prompt: bool,
}

struct Request {
    command: Command,
    sequence: u64,
    inserted: Nanos,
    waits: bool,
    /// The zone among `zones` that it uses, but for reads.
    zone: Option<usize>,
}

/// A zone as its writer knows it.
#[derive(Default)]
struct Zone {
    nsid: u32,
    start: u64,
    capacity: u64,
    written: u64,
    outstanding: u32,
    depth: u32,
    managed: bool,
    /// Its writer sends writes in groups, the highest address first.
    backwards: bool,
}

pub(super) struct World {
    rng: Rng,
    habits: Habits,
    spec: SchedulerSpec,
    scheduler: Box<dyn Scheduler>,
    successor: Option<SchedulerSpec>,
    pub(super) now: Nanos,
    /// What the scheduler asked for, and when that timer rings.
    armed: Option<(Nanos, Nanos)>,
    requests: BTreeMap<u32, Request>,
    in_flight: Vec<(Command, Vec<u32>)>,
    zones: Vec<Zone>,
    sequence: u64,
    managing: u32,
    management_ended: Nanos,
    pub(super) merged: u64,
    pub(super) completed: u64,
}

impl World {
    pub(super) fn new(seed: u64, habits: Habits, spec: SchedulerSpec) -> Self {
        let scheduler = spec.build(&INFO).expect("the settings are in range");
        Self::with(seed, habits, spec, scheduler)
    }

    /// A world around a scheduler that behaves as that of `spec`.
    pub(super) fn with(
        seed: u64,
        habits: Habits,
        spec: SchedulerSpec,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        let mut rng = Rng::new(seed, 0);
        let mut zones = Vec::new();
        for (nsid, namespace) in (1..).zip(&INFO.namespaces) {
            let Some(zoned) = namespace.zoned else {
                continue;
            };
            zones.extend((0..u64::from(zoned.zones)).map(|zone| Zone {
                nsid,
                start: zone * zoned.zone_size_lbas,
                capacity: zoned.zone_capacity_lbas,
                depth: 1 + rng.below(6) as u32,
                backwards: rng.ratio(1, 4),
                ..Zone::default()
            }));
        }
        Self {
            rng,
            habits,
            spec,
            scheduler,
            successor: None,
            now: Nanos::ZERO,
            armed: None,
            requests: BTreeMap::new(),
            in_flight: Vec::new(),
            zones,
            sequence: 0,
            managing: 0,
            management_ended: Nanos::ZERO,
            merged: 0,
            completed: 0,
        }
    }

    /// Some steps, and then whatever it takes until nothing is left.
    pub(super) fn run(mut self, steps: u32) -> Self {
        for _ in 0..steps {
            match self.rng.below(20) {
                0..=7 => (0..=self.rng.below(6)).for_each(|_| self.send_something()),
                8..=16 => (0..=self.rng.below(8)).for_each(|_| self.complete_one()),
                17 | 18 => {
                    let span = [1_000, 300_000, 20_000_000][self.rng.below(3) as usize];
                    let span = self.rng.below(span);
                    self.pass(Nanos(span));
                }
                _ => self.switch(),
            }
            if self.habits.prompt || self.rng.ratio(1, 3) {
                self.pump();
            }
        }
        while !self.requests.is_empty() {
            self.pump();
            if !self.in_flight.is_empty() {
                self.complete_one();
            } else if self.waiting() > 0 {
                let (_, rings) = self.armed.expect("what waits, waits for a timer");
                self.pass(rings.saturating_sub(self.now));
            }
        }
        assert_eq!(self.completed, self.sequence, "all complete");
        assert_eq!(self.scheduler.waiting(), 0);
        self
    }

    fn waiting(&self) -> usize {
        self.requests.values().filter(|r| r.waits).count()
    }

    // Hosts.

    fn send_something(&mut self) {
        let zone = self.rng.below(self.zones.len() as u64) as usize;
        match self.rng.below(20) {
            0..=5 => self.read(),
            6..=15 => self.use_zone(zone),
            16 => self.manage(zone, ZoneSendAction::FINISH),
            17 | 18 => {
                let (slba, nlb) = (Lba(self.rng.below(490)), 1 + self.rng.below(8) as u32);
                self.insert(2, Op::Write { slba, nlb }, None);
            }
            _ => self.send_oddity(),
        }
    }

    /// Often next to another, within a small range, so that reads meet.
    fn read(&mut self) {
        let nsid = 1 + self.rng.below(3) as u32;
        let slba = Lba(4 * self.rng.below(20));
        let nlb = [4, 4, 8, 32][self.rng.below(4) as usize];
        self.insert(nsid, Op::Read { slba, nlb }, None);
    }

    fn use_zone(&mut self, at: usize) {
        let nlb = 1 + self.rng.below(8) as u32;
        let zone = &mut self.zones[at];
        if zone.managed || zone.outstanding >= zone.depth {
            return;
        }
        if zone.written + 3 * u64::from(nlb) > zone.capacity {
            self.manage(at, ZoneSendAction::RESET);
            return;
        }
        let nsid = zone.nsid;
        let writes = if zone.backwards { 3 } else { 1 };
        let first = zone.start + zone.written;
        zone.written += u64::from(writes * nlb);
        if !zone.backwards && self.rng.ratio(1, 8) {
            let zslba = Lba(self.zones[at].start);
            self.insert(nsid, Op::Append { zslba, nlb }, Some(at));
            return;
        }
        for n in (0..writes).rev() {
            let slba = Lba(first + u64::from(n * nlb));
            self.insert(nsid, Op::Write { slba, nlb }, Some(at));
        }
    }

    /// The issuer sees to it that nobody writes to the zone.
    fn manage(&mut self, at: usize, action: ZoneSendAction) {
        let zone = &mut self.zones[at];
        if zone.outstanding > 0 || (self.habits.one_management && self.managing > 0) {
            return;
        }
        zone.managed = true;
        zone.written = 0;
        let op = Op::ZoneSend {
            slba: Lba(zone.start),
            action,
            select_all: false,
        };
        self.managing += 1;
        self.insert(self.zones[at].nsid, op, Some(at));
    }

    fn send_oddity(&mut self) {
        let (slba, nlb) = (Lba(self.rng.below(600)), self.rng.below(3) as u32);
        let (nsid, op) = match self.rng.below(6) {
            0 => (1, Op::Flush),
            1 => (9, Op::Write { slba, nlb }),
            2 => (0, Op::Read { slba, nlb }),
            3 => (
                2,
                Op::Read {
                    slba: Lba(u64::MAX),
                    nlb,
                },
            ),
            4 => (3, Op::Read { slba, nlb }),
            _ => (
                1,
                Op::ZoneReceive {
                    slba,
                    filter: ReportFilter::ALL,
                    partial: false,
                    extended: false,
                },
            ),
        };
        self.insert(nsid, op, None);
    }

    fn insert(&mut self, nsid: u32, op: Op, zone: Option<usize>) {
        let nsid = NamespaceId(nsid);
        let command = Command::on(nsid, op);
        let id = (0..).find(|id| !self.requests.contains_key(id));
        let id = id.expect("there are fewer requests than numbers");
        if let Some(at) = zone {
            self.zones[at].outstanding += 1;
        }
        self.sequence += 1;
        let request = Request {
            command,
            sequence: self.sequence,
            inserted: self.now,
            waits: true,
            zone,
        };
        self.requests.insert(id, request);
        self.scheduler.insert(self.now, RequestId(id), command);
    }

    // Device.

    fn complete_one(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let index = self.rng.below(self.in_flight.len() as u64) as usize;
        let (command, carried) = self.in_flight.swap_remove(index);
        let fails = self.rng.ratio(1, 10);
        self.scheduler.completed(self.now, &command);
        for id in carried {
            let request = self.requests.remove(&id).expect("it is in flight");
            self.completed += 1;
            let Some(at) = request.zone else { continue };
            self.zones[at].outstanding -= 1;
            if let Op::ZoneSend { .. } = request.command.op {
                self.zones[at].managed = false;
                self.managing -= 1;
                self.management_ended = self.now;
            } else if fails && self.habits.retries {
                self.insert(request.command.nsid.0, request.command.op, Some(at));
            }
        }
    }

    // Time.

    fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        while let Some((_, rings)) = self.armed.filter(|&(_, rings)| rings <= until) {
            self.now = self.now.max(rings);
            self.scheduler.timer(self.now);
            self.armed = None;
            self.pump();
            self.arm();
        }
        self.now = until;
    }

    fn arm(&mut self) {
        let asked = self.scheduler.next_timer();
        if asked != self.armed.map(|(at, _)| at) {
            let late = if self.habits.late_timers {
                self.rng.below(8_000_000)
            } else {
                0
            };
            self.armed = asked.map(|at| (at, at + Nanos(late)));
        }
    }

    fn switch(&mut self) {
        if self.habits.switches && self.successor.is_none() && self.rng.ratio(1, 4) {
            self.successor = Some(random_spec(&mut self.rng));
        }
    }

    /// The scheduler hands its requests over, in the order in which they came.
    fn hand_over(&mut self, spec: SchedulerSpec) {
        let mut drained = Vec::new();
        self.scheduler.drain(&mut drained);
        assert_eq!(self.scheduler.waiting(), 0);
        let mut waiting: Vec<_> = self.requests.iter().filter(|(_, r)| r.waits).collect();
        waiting.sort_by_key(|(_, r)| r.sequence);
        let expected: Vec<_> = waiting
            .into_iter()
            .map(|(&id, r)| (RequestId(id), r.command))
            .collect();
        assert_eq!(drained, expected);
        self.spec = spec;
        self.scheduler = spec.build(&INFO).expect("the settings are in range");
        for (id, command) in drained {
            self.scheduler.insert(self.now, id, command);
        }
    }

    // What goes.

    fn pump(&mut self) {
        if let Some(spec) = self.successor {
            if !self.in_flight.is_empty() {
                return;
            }
            self.successor = None;
            self.hand_over(spec);
        }
        let mut carried = Vec::new();
        while let Some(command) = self.scheduler.dispatch(self.now, &mut carried) {
            let ids: Vec<u32> = carried.drain(..).map(|id| id.0).collect();
            self.check(&command, &ids);
            for id in &ids {
                self.requests.get_mut(id).expect("checked").waits = false;
            }
            self.merged += ids.len() as u64 - 1;
            self.in_flight.push((command, ids));
            assert_eq!(self.scheduler.waiting(), self.waiting());
        }
        self.check_rest();
        self.arm();
    }

    fn check(&self, command: &Command, ids: &[u32]) {
        let requests: Vec<_> = ids.iter().map(|id| &self.requests[id]).collect();
        assert!(requests.iter().all(|r| r.waits), "{command:?} goes twice");
        match requests[..] {
            [] => panic!("{command:?} carries nothing"),
            [alone] => assert_eq!(*command, alone.command),
            _ => self.check_union(command, &requests),
        }
        let behind = requests.last().expect("not empty");
        let waiting = || {
            let others = self.requests.iter().filter(|(id, _)| !ids.contains(id));
            others.map(|(_, r)| r).filter(|r| r.waits)
        };
        if self.spec == SchedulerSpec::None {
            assert!(waiting().all(|r| r.sequence > behind.sequence));
            return;
        }
        let first_at_once = waiting().find(|r| self.goes_at_once(&r.command));
        if let Some(zone) = zone_written(command) {
            let writes = self.in_flight.iter().filter_map(|(c, _)| zone_written(c));
            assert!(!writes.into_iter().any(|z| z == zone), "two in flight");
            let place = |r: &Request| (r.command.op.first_block(), r.sequence);
            let mut others = waiting().filter(|r| zone_written(&r.command) == Some(zone));
            assert!(
                others.all(|r| place(r) > place(behind)),
                "order of {zone:?}"
            );
        }
        if self.goes_at_once(command) {
            assert!(
                waiting()
                    .filter(|r| self.goes_at_once(&r.command))
                    .all(|r| r.sequence > behind.sequence)
            );
        } else if !is_throttled(command) {
            assert!(first_at_once.is_none(), "{command:?} before all else");
        }
        if let (SchedulerSpec::Zinc(settings), true) = (self.spec, is_throttled(command)) {
            self.check_throttled(&settings, command, behind);
        }
    }

    /// A merged command is the union of its requests, in their order.
    fn check_union(&self, command: &Command, requests: &[&Request]) {
        let deadline = match self.spec {
            SchedulerSpec::None => panic!("none merges nothing"),
            SchedulerSpec::MqDeadline(deadline) => deadline,
            SchedulerSpec::Zinc(zinc) => zinc.deadline,
        };
        assert!(matches!(command.op, Op::Read { .. } | Op::Write { .. }));
        let mut end = command.op.first_block();
        for request in requests {
            assert_eq!(request.command.nsid, command.nsid);
            let kind = std::mem::discriminant(&request.command.op);
            assert_eq!(kind, std::mem::discriminant(&command.op));
            assert_eq!(request.command.op.first_block(), end, "no gap, no overlap");
            end += u64::from(request.command.op.nlb());
        }
        assert_eq!(end - command.op.first_block(), u64::from(command.op.nlb()));
        let info = &*INFO;
        let namespace = info.namespace(command.nsid).expect("it exists");
        let bytes = command.op.nlb() * namespace.lba_bytes;
        assert!(bytes <= deadline.max_request_bytes.min(info.max_transfer_bytes));
        if let Some(zoned) = namespace.zoned {
            let zone = command.op.first_block() / zoned.zone_size_lbas;
            assert!(end <= zone * zoned.zone_size_lbas + zoned.zone_capacity_lbas);
        }
        if !deadline.front_merges {
            assert!(requests.is_sorted_by_key(|r| r.sequence));
        }
    }

    fn check_throttled(&self, settings: &ZincSettings, command: &Command, request: &Request) {
        let mut commands = self.in_flight.iter().map(|(command, _)| command);
        assert!(!commands.any(is_throttled), "one at a time");
        let throttle = match command.op {
            Op::ZoneSend {
                action: ZoneSendAction::RESET,
                ..
            } => settings.reset,
            _ => settings.finish,
        };
        let before = self.requests.values().filter(|r| {
            r.waits && r.sequence < request.sequence && same_action(&r.command, command)
        });
        assert_eq!(before.count(), 0, "in the order of arrival");
        let exact = !self.habits.late_timers && !self.habits.switches && self.habits.prompt;
        if exact {
            let since = request.inserted.max(self.management_ended);
            let epoch = throttle.epoch.0;
            let end = (since.0 / epoch + 1 + u64::from(throttle.max_epoch_holds)) * epoch;
            assert!(self.now.0 <= end, "held until {}, not {end}", self.now.0);
        }
    }

    /// When the scheduler has nothing more, what waits has a reason to.
    fn check_rest(&self) {
        let flying: Vec<_> = self.in_flight.iter().map(|(c, _)| c).collect();
        for request in self.requests.values().filter(|r| r.waits) {
            let held =
                is_throttled(&request.command) && matches!(self.spec, SchedulerSpec::Zinc(_));
            let zone = zone_written(&request.command);
            let locked = zone.is_some() && flying.iter().any(|c| zone_written(c) == zone);
            assert!(
                held || locked && self.spec != SchedulerSpec::None,
                "{:?} could go",
                request.command
            );
            assert!(!held || self.scheduler.next_timer().is_some());
        }
    }

    fn goes_at_once(&self, command: &Command) -> bool {
        let held = matches!(self.spec, SchedulerSpec::Zinc(_)) && is_throttled(command);
        let exists = INFO
            .namespace(command.nsid)
            .is_some_and(|namespace| command.op.first_block() < namespace.size_lbas);
        match command.op {
            Op::Read { .. } | Op::Write { .. } | Op::Append { .. } => !exists,
            _ => !held,
        }
    }
}

fn is_throttled(command: &Command) -> bool {
    matches!(
        command.op,
        Op::ZoneSend {
            action: ZoneSendAction::RESET | ZoneSendAction::FINISH,
            ..
        }
    )
}

fn same_action(a: &Command, b: &Command) -> bool {
    match (a.op, b.op) {
        (Op::ZoneSend { action: a, .. }, Op::ZoneSend { action: b, .. }) => a == b,
        _ => false,
    }
}

/// The zone, by namespace and number, that a write needs for itself.
fn zone_written(command: &Command) -> Option<(u32, u64)> {
    let Op::Write { slba, .. } = command.op else {
        return None;
    };
    let info = &*INFO;
    let namespace = info.namespace(command.nsid)?;
    let zoned = namespace.zoned?;
    (slba.0 < namespace.size_lbas).then_some((command.nsid.0, slba.0 / zoned.zone_size_lbas))
}

/// Any scheduler, with any settings that matter here.
pub(super) fn random_spec(rng: &mut Rng) -> SchedulerSpec {
    let deadline = MqDeadlineSettings {
        read_expire: Nanos::from_ms(rng.below(50)),
        write_expire: Nanos::from_ms(rng.below(500)),
        fifo_batch: 1 + rng.below(16) as u32,
        writes_starved: rng.below(4) as u32,
        front_merges: rng.ratio(2, 3),
        max_request_bytes: [4096, 16 << 10, 512 << 10][rng.below(3) as usize],
    };
    match rng.below(5) {
        0 => SchedulerSpec::None,
        1 | 2 => SchedulerSpec::MqDeadline(deadline),
        _ => SchedulerSpec::Zinc(ZincSettings {
            deadline,
            reset: random_throttle(rng),
            finish: random_throttle(rng),
        }),
    }
}

fn random_throttle(rng: &mut Rng) -> ZincThrottle {
    ZincThrottle {
        epoch: Nanos::from_ms(1 + rng.below(100)),
        write_tokens: [0, 3, 20, 1_000_000, u32::MAX][rng.below(5) as usize],
        min_concurrency: [0, 1, 3, 20][rng.below(4) as usize],
        max_epoch_holds: rng.below(6) as u32,
    }
}
