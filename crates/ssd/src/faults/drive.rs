//! A drive, and the faults between it and its host.

use core::ops::RangeInclusive;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueueId, Rejected, Tag,
    ZoneId,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::armed::{Armed, blocks_of, on_drive};
use super::{Effect, FaultId, FaultPlan, Standing};
use crate::config::DriveConfig;
use crate::drive::{Control, ControlError, Drive};
use crate::ranges::{self, LbaRange};
use crate::zones::Change;

/// A drive with a [`FaultPlan`] in front of it. Without one it costs a branch
/// per call.
#[derive(Debug)]
pub struct FaultyDrive {
    drive: Drive,
    faults: Option<Box<Faults>>,
    /// The host gives up lost commands by itself.
    host_has_timeouts: bool,
    power_cycles: u64,
    last_power_cycle: Option<PowerCycle>,
}

/// What a loss of power did, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerCycle {
    /// When power was lost.
    pub at: Nanos,
    /// Commands that end as Command Aborted By Host.
    pub aborted: usize,
    /// Zones whose state changed.
    pub changes: Vec<Change>,
    /// From when on the drive takes commands again.
    pub ready_at: Nanos,
}

/// Why zones cannot become read-only or offline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotFail {
    /// There is no such namespace.
    #[error("there is no namespace {nsid}: the drive has {namespaces}")]
    NoSuchNamespace {
        /// The identifier.
        nsid: u32,
        /// Namespaces of the drive, from 1 on.
        namespaces: u32,
    },
    /// The namespace does not have the zone.
    #[error("there is no zone {zone} in namespace {nsid}: its last is {last}")]
    NoSuchZone {
        /// The first that is not there, counted from the start of the namespace.
        zone: u32,
        /// The namespace.
        nsid: u32,
        /// Its last zone.
        last: u32,
    },
    /// The namespace has no zones for hosts.
    #[error("namespace {nsid} is conventional: it has no zones")]
    Conventional {
        /// The namespace.
        nsid: u32,
    },
    /// There is no way from the state of the zone to the one asked for.
    #[error(
        "zone {zone} cannot go from {from} to {to}: a zone fails to read-only, or to offline for ever"
    )]
    State {
        /// The zone, counted from the start of the namespace.
        zone: u32,
        /// Its state.
        from: ZoneState,
        /// The state asked for.
        to: ZoneState,
    },
}

/// A command that was carried out, and whose completion was lost for good.
#[derive(Debug)]
pub struct Swallowed {
    /// Its queue.
    pub queue: QueueId,
    /// What the submitter called it.
    pub tag: Tag,
    /// Its buffer.
    pub data: Option<Buf>,
}

/// Plans that are being applied.
#[derive(Debug)]
struct Faults {
    armed: Armed,
    /// Commands in flight whose completion is not what the drive says.
    marked: Vec<Marked>,
    /// Blocks that cannot be read: those of failed programs.
    unreadable: Vec<RangeInclusive<u64>>,
    /// Completions that wait for their time, by time and order.
    held: BinaryHeap<Reverse<Held>>,
    held_count: u64,
    /// Commands that wait for the drive to be ready after a loss of power.
    waiting: VecDeque<Waiting>,
    /// Commands whose completions were lost for good: a host that resets the
    /// controller ends them.
    swallowed: Vec<Swallowed>,
}

/// A command in flight with an effect on its completion.
#[derive(Debug)]
struct Marked {
    queue: QueueId,
    tag: Tag,
    /// With its address counted over the drive.
    command: Command,
    submitted: Nanos,
    effect: Effect,
}

#[derive(Debug)]
struct Held {
    at: Nanos,
    sequence: u64,
    completion: Completion,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[derive(Debug)]
struct Waiting {
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
}

impl From<Drive> for FaultyDrive {
    fn from(drive: Drive) -> Self {
        Self {
            drive,
            faults: None,
            host_has_timeouts: false,
            power_cycles: 0,
            last_power_cycle: None,
        }
    }
}

impl FaultyDrive {
    /// A drive with faults. Those that name a namespace, zone or block which the
    /// drive does not have never strike: see [`FaultPlan::check`].
    #[must_use]
    pub fn new(drive: Drive, plan: FaultPlan) -> Self {
        // Nothing to look for with each command, until there is something.
        let faults =
            (plan != FaultPlan::default()).then(|| Box::new(Faults::new(plan, drive.config())));
        Self {
            faults,
            ..Self::from(drive)
        }
    }

    /// The drive behind the faults.
    #[must_use]
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The drive behind the faults, to do something to it.
    pub fn drive_mut(&mut self) -> &mut Drive {
        &mut self.drive
    }

    /// What a host learns when it identifies the drive.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.drive.info()
    }

    /// Formats the drive behind the faults, between commands, as
    /// [`Drive::format`]. Faults stay, and count its zones and blocks from then
    /// on; every block of it can be read.
    pub fn format(&mut self, config: &DriveConfig) {
        self.drive.format(config);
        if let Some(faults) = &mut self.faults {
            faults.armed.resolve(self.drive.config());
            faults.unreadable.clear();
        }
    }

    /// From now on a lost completion is lost for good, whatever timeout its
    /// fault names: the host has timeouts of its own.
    pub const fn leave_timeouts_to_host(&mut self) {
        self.host_has_timeouts = true;
    }

    /// How often faults have struck.
    #[must_use]
    pub fn faults_struck(&self) -> u64 {
        self.faults
            .as_ref()
            .map_or(0, |faults| faults.armed.struck())
    }

    /// Loads a plan behind those that are there: its faults act if none of the
    /// earlier ones does, draw from its own seed, and count times from `now`.
    /// Returns what they are called. As with [`FaultyDrive::new`], what cannot
    /// strike does not.
    pub fn add_faults(&mut self, now: Nanos, plan: FaultPlan) -> Vec<FaultId> {
        let Self { drive, faults, .. } = self;
        let faults = Faults::of(faults, drive.config());
        faults.armed.load(now, plan, drive.config())
    }

    /// The faults of all plans, in the order in which they act.
    #[must_use]
    pub fn standing_faults(&self) -> Vec<Standing> {
        let faults = self.faults.iter();
        faults.flat_map(|faults| faults.armed.standing()).collect()
    }

    /// Takes one fault away. What it has struck already takes its course. False:
    /// there is no such fault.
    pub fn remove_fault(&mut self, id: FaultId) -> bool {
        let faults = self.faults.as_mut();
        faults.is_some_and(|faults| faults.armed.remove(id))
    }

    /// No fault strikes any more, and blocks that could not be read can be.
    /// What has struck already takes its course: completions that were delayed
    /// come when they would have, lost ones never. Returns how many there were.
    pub fn clear_faults(&mut self) -> usize {
        let Some(faults) = &mut self.faults else {
            return 0;
        };
        faults.unreadable.clear();
        faults.armed.clear()
    }

    /// Zones of a namespace become read-only or offline, without a command: all
    /// of them, or none if one cannot. Those that are so already stay as they are.
    ///
    /// # Errors
    /// [`CannotFail`]; nothing has changed then.
    ///
    /// # Panics
    /// If `now` goes back.
    pub fn fail_zones(
        &mut self,
        now: Nanos,
        nsid: NamespaceId,
        zones: &[RangeInclusive<u32>],
        to: ZoneState,
    ) -> Result<(), CannotFail> {
        let config = self.drive.config();
        let mine = config.zones_of(nsid).ok_or(CannotFail::NoSuchNamespace {
            nsid: nsid.0,
            // Fits: a drive has few.
            namespaces: config.namespaces().len() as u32,
        })?;
        let count = mine.end - mine.start;
        let beyond = zones
            .iter()
            .map(|range| *range.end())
            .find(|end| *end >= count);
        if let Some(zone) = beyond {
            let last = count.saturating_sub(1);
            return Err(CannotFail::NoSuchZone {
                zone,
                nsid: nsid.0,
                last,
            });
        }
        let all = || zones.iter().flat_map(|range| range.clone());
        for zone in all() {
            let of_drive = self.drive.check_failure(ZoneId(mine.start + zone), to);
            of_drive.map_err(|error| match error {
                ControlError::Conventional { .. } => CannotFail::Conventional { nsid: nsid.0 },
                _ => CannotFail::State {
                    zone,
                    from: self.drive.zones().state(ZoneId(mine.start + zone)),
                    to,
                },
            })?;
        }
        let is_read_only = to != ZoneState::OFFLINE;
        let effect = if is_read_only {
            Effect::ReadOnly
        } else {
            Effect::Offline
        };
        for zone in all() {
            self.fail_zone(now, ZoneId(mine.start + zone), effect);
        }
        Ok(())
    }

    /// Commands whose completions were lost for good since this was last asked.
    /// Who takes them has them: [`FaultyDrive::power_cut`] ends only the others.
    pub fn take_swallowed(&mut self) -> Vec<Swallowed> {
        let faults = self.faults.as_mut();
        faults.map_or_else(Vec::new, |faults| std::mem::take(&mut faults.swallowed))
    }

    /// How often power was lost.
    #[must_use]
    pub const fn power_cycles(&self) -> u64 {
        self.power_cycles
    }

    /// The last loss of power.
    #[must_use]
    pub const fn last_power_cycle(&self) -> Option<&PowerCycle> {
        self.last_power_cycle.as_ref()
    }

    /// When something happens next, as [`Drive::next_event`].
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let drive = self.drive.next_event();
        match &self.faults {
            None => drive,
            Some(faults) => [drive, faults.next_event(&self.drive)]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// Hands a command over, as [`Drive::submit`].
    ///
    /// # Errors
    /// As [`Drive::submit`].
    ///
    /// # Panics
    /// If `now` goes back.
    #[inline]
    pub fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if self.faults.is_none() {
            return self.drive.submit(now, queue, tag, command, data);
        }
        self.submit_faulty(now, queue, tag, command, data)
    }

    /// Runs everything that is due by `to`, as [`Drive::advance`].
    ///
    /// # Panics
    /// If `to` lies before the time of an earlier call.
    #[inline]
    pub fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        if self.faults.is_none() {
            return self.drive.advance(to, done);
        }
        self.advance_faulty(to, done);
    }

    #[cold]
    fn submit_faulty(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if now < self.drive.ready_at() {
            if let Some(faults) = &mut self.faults {
                faults.waiting.push_back(Waiting {
                    queue,
                    tag,
                    command,
                    data,
                });
            }
            return Ok(());
        }
        let Some(faults) = self.faults.as_deref_mut() else {
            return self.drive.submit(now, queue, tag, command, data);
        };
        let on_drive = on_drive(command, &self.drive);
        let effect = faults.strike(now, &on_drive, &self.drive);
        let effect = faults.strike_sources(effect, &on_drive, &self.drive, data.as_deref());
        match effect {
            Some(Effect::Fail(status)) => {
                let completion = Completion {
                    queue,
                    tag,
                    status,
                    at: now,
                    result: 0,
                    data,
                };
                faults.hold(now, completion);
                return Ok(());
            }
            Some(effect) if !matches!(effect, Effect::PowerCut { .. }) => {
                faults.marked.push(Marked {
                    queue,
                    tag,
                    command: on_drive,
                    submitted: now,
                    effect,
                });
            }
            _ => {}
        }
        let taken = self.drive.submit(now, queue, tag, command, data);
        if taken.is_err() {
            faults.unmark(queue, tag);
        }
        if let Some(Effect::PowerCut { off }) = effect {
            self.power_cut(now, off);
        }
        taken
    }

    #[cold]
    fn advance_faulty(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        let mut posted = Vec::new();
        while let Some(at) = self.next_event().filter(|at| *at <= to) {
            // A time that a plan names can have passed before the plan was there.
            let at = at.max(self.drive.now());
            // What is held for this instant came about before what happens at it.
            self.release(at, done);
            self.drive.advance(at, &mut posted);
            for completion in posted.drain(..) {
                self.posted(completion, done);
            }
            self.strike_at_times(at);
            self.hand_over_waiting(at);
            self.release(at, done);
        }
        self.drive.advance(to, &mut posted);
        debug_assert!(posted.is_empty(), "nothing completes without an event");
        done.append(&mut posted);
    }

    /// Hands out the completions that are held until `now`.
    fn release(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        if let Some(faults) = &mut self.faults {
            faults.release(now, done);
        }
    }

    /// The drive has posted a completion: what becomes of it on its way.
    fn posted(&mut self, mut completion: Completion, done: &mut Vec<Completion>) {
        let Some(faults) = self.faults.as_deref_mut() else {
            return done.push(completion);
        };
        let Some(marked) = faults.unmark(completion.queue, completion.tag) else {
            return done.push(completion);
        };
        // A command that the drive refused did not get as far as its fault.
        let success = completion.status.is_success();
        match marked.effect {
            Effect::MediaError if success => {
                completion.status = Status::UNRECOVERED_READ_ERROR;
                done.push(completion);
            }
            Effect::ReadOnly | Effect::Offline if success => {
                let assigned = Op::Write {
                    slba: Lba(completion.result),
                    nlb: marked.command.op.nlb(),
                };
                let written = match marked.command.op {
                    Op::Append { .. } => on_drive(
                        Command {
                            op: assigned,
                            ..marked.command
                        },
                        &self.drive,
                    ),
                    Op::WriteZeroes { slba, nlb } => Command {
                        op: Op::Write { slba, nlb },
                        ..marked.command
                    },
                    _ => marked.command,
                };
                let Op::Write { slba, nlb } = written.op else {
                    return done.push(completion);
                };
                faults.unreadable.push(slba.0..=slba.0 + u64::from(nlb) - 1);
                completion.status = Status::WRITE_FAULT;
                completion.result = 0;
                if let Some(zone) = self.drive.zones().zone_of(slba) {
                    self.fail_zone(completion.at, zone, marked.effect);
                }
                done.push(completion);
            }
            Effect::Delay(delay) => {
                let at = completion.at.saturating_add(delay);
                faults.hold(at, completion);
            }
            Effect::Lose { timeout } => {
                let Some(timeout) = timeout.filter(|_| !self.host_has_timeouts) else {
                    let Completion {
                        queue, tag, data, ..
                    } = completion;
                    return faults.swallowed.push(Swallowed { queue, tag, data });
                };
                completion.status = Status::ABORTED_BY_HOST;
                completion.result = 0;
                let at = marked.submitted.saturating_add(timeout).max(completion.at);
                faults.hold(at, completion);
            }
            _ => done.push(completion),
        }
    }

    fn fail_zone(&mut self, now: Nanos, zone: ZoneId, effect: Effect) {
        let to = match effect {
            Effect::Offline => ZoneState::OFFLINE,
            _ => ZoneState::READ_ONLY,
        };
        match self.drive.control(now, &Control::FailZone { zone, to }) {
            // It was offline already.
            Ok(())
            | Err(
                ControlError::CannotFail { .. }
                | ControlError::NoSuchZone { .. }
                | ControlError::Conventional { .. },
            ) => {}
            Err(error) => unreachable!("failing a zone asks for nothing else: {error}"),
        }
    }

    /// Faults that a time sets off.
    fn strike_at_times(&mut self, now: Nanos) {
        while let Some(fault) = self.faults.as_deref_mut().and_then(|f| f.armed.due(now)) {
            match fault.effect {
                Effect::PowerCut { off } => {
                    self.power_cut(now, off);
                }
                Effect::ReadOnly | Effect::Offline => {
                    let last = self.drive.zones().count().saturating_sub(1);
                    let zones = fault.when.zones.unwrap_or(0..=last);
                    for zone in *zones.start()..=(*zones.end()).min(last) {
                        self.fail_zone(now, ZoneId(zone), fault.effect);
                    }
                }
                _ => {}
            }
        }
    }

    /// Power is lost at `now` and comes back: the drive takes commands after
    /// `off` at the earliest. Every command that the host waits for then ends as
    /// Command Aborted By Host, since a host resets the controller.
    ///
    /// # Panics
    /// If `now` goes back.
    pub fn power_cut(&mut self, now: Nanos, off: Nanos) -> PowerCycle {
        let Self { drive, faults, .. } = self;
        let faults = Faults::of(faults, drive.config());
        let loss = drive.power_cut(now, off, faults.armed.seed());
        let mut aborted = std::mem::take(&mut faults.swallowed);
        for lost in loss.lost {
            faults.unmark(lost.queue, lost.tag);
            aborted.push(Swallowed {
                queue: lost.queue,
                tag: lost.tag,
                data: lost.data,
            });
        }
        // What had not reached the host by now does not reach it any more.
        for Reverse(held) in std::mem::take(&mut faults.held)
            .into_sorted_vec()
            .into_iter()
            .rev()
        {
            if held.at <= now {
                faults.hold(held.at, held.completion);
            } else {
                let Completion {
                    queue, tag, data, ..
                } = held.completion;
                aborted.push(Swallowed { queue, tag, data });
            }
        }
        let commands = aborted.len();
        for Swallowed { queue, tag, data } in aborted {
            let completion = Completion {
                queue,
                tag,
                status: Status::ABORTED_BY_HOST,
                at: loss.ready_at,
                result: 0,
                data,
            };
            faults.hold(loss.ready_at, completion);
        }
        let cycle = PowerCycle {
            at: now,
            aborted: commands,
            changes: loss.changes,
            ready_at: loss.ready_at,
        };
        self.power_cycles += 1;
        self.last_power_cycle = Some(cycle.clone());
        cycle
    }

    /// Commands that came while the drive was not ready.
    fn hand_over_waiting(&mut self, now: Nanos) {
        while now >= self.drive.ready_at() {
            let next = self.faults.as_mut().and_then(|f| f.waiting.pop_front());
            let Some(Waiting {
                queue,
                tag,
                command,
                data,
            }) = next
            else {
                return;
            };
            self.submit_faulty(now, queue, tag, command, data)
                .expect("fewer commands wait than a drive can hold");
        }
    }
}

impl Faults {
    /// Those there are, or none.
    fn of<'a>(faults: &'a mut Option<Box<Self>>, config: &DriveConfig) -> &'a mut Self {
        faults.get_or_insert_with(|| Box::new(Self::new(FaultPlan::default(), config)))
    }

    fn new(plan: FaultPlan, config: &DriveConfig) -> Self {
        Self {
            armed: Armed::new(plan, config),
            marked: Vec::new(),
            unreadable: Vec::new(),
            held: BinaryHeap::new(),
            held_count: 0,
            waiting: VecDeque::new(),
            swallowed: Vec::new(),
        }
    }

    fn next_event(&self, drive: &Drive) -> Option<Nanos> {
        let held = self.held.peek().map(|Reverse(held)| held.at);
        let waiting = (!self.waiting.is_empty()).then(|| drive.ready_at());
        [self.armed.next_time(), held, waiting]
            .into_iter()
            .flatten()
            .min()
    }

    /// The effect of the first fault that strikes a command.
    fn strike(&mut self, now: Nanos, command: &Command, drive: &Drive) -> Option<Effect> {
        let blocks = blocks_of(command, drive);
        let found = self.armed.strike(now, command, blocks, drive);
        let overlaps = |bad: &RangeInclusive<u64>| {
            blocks.is_some_and(|(first, last)| first <= *bad.end() && last >= *bad.start())
        };
        let is_read = matches!(
            command.op,
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. }
        );
        if found.is_none() && is_read && self.unreadable.iter().any(overlaps) {
            return Some(Effect::MediaError);
        }
        found
    }

    /// A copy that meets a media error in one of its sources fails before
    /// anything is written.
    fn strike_sources(
        &self,
        effect: Option<Effect>,
        command: &Command,
        drive: &Drive,
        data: Option<&[u8]>,
    ) -> Option<Effect> {
        let namespace = drive.zones().namespace(command.nsid);
        let (Op::Copy { ranges, .. }, Some(namespace)) = (command.op, namespace) else {
            return effect;
        };
        let sources = data.and_then(|data| ranges::of_copy(data, ranges));
        let mut sources = sources.into_iter().flatten();
        let is_bad = sources.any(|LbaRange { slba, nlb }| {
            let first = namespace.lba_on_drive(slba, nlb);
            let last = first.saturating_add(u64::from(nlb) - 1);
            let overlaps = |bad: &RangeInclusive<u64>| first <= *bad.end() && last >= *bad.start();
            self.unreadable.iter().any(overlaps)
        });
        match effect {
            None if is_bad => Some(Effect::Fail(Status::UNRECOVERED_READ_ERROR)),
            Some(Effect::MediaError) => Some(Effect::Fail(Status::UNRECOVERED_READ_ERROR)),
            _ => effect,
        }
    }

    fn hold(&mut self, at: Nanos, mut completion: Completion) {
        completion.at = at;
        self.held_count += 1;
        self.held.push(Reverse(Held {
            at,
            sequence: self.held_count,
            completion,
        }));
    }

    fn release(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(Reverse(held)) = self.held.peek() {
            if held.at > now {
                return;
            }
            if let Some(Reverse(held)) = self.held.pop() {
                done.push(held.completion);
            }
        }
    }

    fn unmark(&mut self, queue: QueueId, tag: Tag) -> Option<Marked> {
        let at = self
            .marked
            .iter()
            .position(|marked| marked.queue == queue && marked.tag == tag)?;
        Some(self.marked.swap_remove(at))
    }
}
