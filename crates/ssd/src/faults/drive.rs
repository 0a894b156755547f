//! A drive, and the faults between it and its host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, Nanos, Op, QueueId, Rejected, Tag, ZoneId,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::{ALWAYS_PPM, Effect, Fault, FaultPlan, Trigger};
use crate::draw::Draw;
use crate::drive::{Control, ControlError, Drive};
use crate::ranges::{self, LbaRange};
use crate::zones::Change;

/// A drive with a [`FaultPlan`] in front of it. Without one it costs a branch
/// per call.
#[derive(Debug)]
pub struct FaultyDrive {
    drive: Drive,
    faults: Option<Box<Faults>>,
}

/// What a loss of power did, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerCycle {
    /// Commands that end as Command Aborted By Host.
    pub aborted: usize,
    /// Zones whose state changed.
    pub changes: Vec<Change>,
    /// From when on the drive takes commands again.
    pub ready_at: Nanos,
}

/// A plan that is being applied.
#[derive(Debug)]
struct Faults {
    armed: Vec<Armed>,
    draw: Draw,
    /// Commands in flight whose completion is not what the drive says.
    marked: Vec<Marked>,
    /// Blocks that cannot be read: those of failed programs.
    unreadable: Vec<core::ops::RangeInclusive<u64>>,
    /// Completions that wait for their time, by time and order.
    held: BinaryHeap<Reverse<Held>>,
    held_count: u64,
    /// Commands that wait for the drive to be ready after a loss of power.
    waiting: VecDeque<Waiting>,
    /// Commands whose completions were lost for good: a host that resets the
    /// controller ends them.
    swallowed: Vec<(QueueId, Tag, Option<Buf>)>,
    /// How often faults have struck.
    struck: u64,
}

/// A fault and how often it has matched.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    matched: u64,
    struck: u64,
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
        }
    }
}

impl FaultyDrive {
    /// A drive with faults. Those that name a namespace, zone or block which the
    /// drive does not have never strike: see [`FaultPlan::check`].
    #[must_use]
    pub fn new(drive: Drive, plan: FaultPlan) -> Self {
        let plan = plan.on_drive(drive.config());
        Self {
            drive,
            faults: Some(Box::new(Faults::new(plan))),
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

    /// How often faults have struck.
    #[must_use]
    pub fn faults_struck(&self) -> u64 {
        self.faults.as_ref().map_or(0, |faults| faults.struck)
    }

    /// No fault strikes any more, and blocks that could not be read can be.
    /// What has struck already takes its course: completions that were delayed
    /// come when they would have, lost ones never.
    pub fn clear_faults(&mut self) {
        if let Some(faults) = &mut self.faults {
            faults.armed.clear();
            faults.unreadable.clear();
        }
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
            let at = at.max(self.drive.now);
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
                let Some(timeout) = timeout else {
                    let Completion {
                        queue, tag, data, ..
                    } = completion;
                    return faults.swallowed.push((queue, tag, data));
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
        while let Some(fault) = self.faults.as_deref_mut().and_then(|f| f.due(now)) {
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
        let Self { drive, faults } = self;
        let faults = faults.get_or_insert_with(|| Box::new(Faults::new(FaultPlan::default())));
        let loss = drive.power_cut(now, off, faults.draw.next_u64());
        let mut aborted = std::mem::take(&mut faults.swallowed);
        for lost in loss.lost {
            faults.unmark(lost.queue, lost.tag);
            aborted.push((lost.queue, lost.tag, lost.data));
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
                aborted.push((queue, tag, data));
            }
        }
        let commands = aborted.len();
        for (queue, tag, data) in aborted {
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
        PowerCycle {
            aborted: commands,
            changes: loss.changes,
            ready_at: loss.ready_at,
        }
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
    fn new(plan: FaultPlan) -> Self {
        let armed = |fault| Armed {
            fault,
            matched: 0,
            struck: 0,
        };
        Self {
            armed: plan.faults.into_iter().map(armed).collect(),
            draw: Draw::new(plan.seed),
            marked: Vec::new(),
            unreadable: Vec::new(),
            held: BinaryHeap::new(),
            held_count: 0,
            waiting: VecDeque::new(),
            swallowed: Vec::new(),
            struck: 0,
        }
    }

    fn next_event(&self, drive: &Drive) -> Option<Nanos> {
        let times = self
            .armed
            .iter()
            .filter_map(|armed| match armed.fault.when.trigger {
                Trigger::Time(at) if armed.struck == 0 => Some(at),
                _ => None,
            });
        let held = self.held.peek().map(|Reverse(held)| held.at);
        let waiting = (!self.waiting.is_empty()).then(|| drive.ready_at());
        times.chain(held).chain(waiting).min()
    }

    /// A fault that a time sets off, if one is due.
    fn due(&mut self, now: Nanos) -> Option<Fault> {
        let armed = self.armed.iter_mut().find(|armed| {
            let is_due = matches!(armed.fault.when.trigger, Trigger::Time(at) if at <= now);
            is_due && armed.struck == 0
        })?;
        armed.struck = 1;
        self.struck += 1;
        Some(armed.fault.clone())
    }

    /// The effect of the first fault that strikes a command.
    fn strike(&mut self, now: Nanos, command: &Command, drive: &Drive) -> Option<Effect> {
        let blocks = blocks_of(command, drive);
        let draw = &mut self.draw;
        let found = self
            .armed
            .iter_mut()
            .find_map(|armed| armed.strikes(now, command, blocks, drive, draw));
        self.struck += u64::from(found.is_some());
        let overlaps = |bad: &core::ops::RangeInclusive<u64>| {
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
            let overlaps =
                |bad: &core::ops::RangeInclusive<u64>| first <= *bad.end() && last >= *bad.start();
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

impl Armed {
    fn strikes(
        &mut self,
        now: Nanos,
        command: &Command,
        blocks: Option<(u64, u64)>,
        drive: &Drive,
        draw: &mut Draw,
    ) -> Option<Effect> {
        let when = &self.fault.when;
        let in_time = when.from <= now && now < when.until;
        let concerned = when.namespace.is_none_or(|nsid| nsid == command.nsid);
        let is_set_off = when.trigger.is_set_off_by(&command.op);
        if !in_time || !concerned || !is_set_off || self.struck >= when.count {
            return None;
        }
        if let Some(lbas) = &when.lbas {
            let (first, last) = blocks?;
            if first > *lbas.end() || last < *lbas.start() {
                return None;
            }
        }
        if let Some(zones) = &when.zones {
            let (first, last) = zones_of(command, blocks, drive)?;
            if first > *zones.end() || last < *zones.start() {
                return None;
            }
        }
        self.matched += 1;
        if self.matched <= when.skip {
            return None;
        }
        let certain = when.probability_ppm >= ALWAYS_PPM;
        if !certain && draw.below(u64::from(ALWAYS_PPM)) >= u64::from(when.probability_ppm) {
            return None;
        }
        self.struck += 1;
        Some(self.fault.effect)
    }
}

/// A command with its address counted over the drive, if there is such a namespace.
fn on_drive(command: Command, drive: &Drive) -> Command {
    let namespace = drive.zones().namespace(command.nsid);
    Command {
        op: namespace.map_or(command.op, |namespace| namespace.on_drive(command.op)),
        ..command
    }
}

/// First and last block of an operation on one range of blocks of a namespace
/// that exists; of an append, where it goes now, and of a copy, where it begins.
fn blocks_of(command: &Command, drive: &Drive) -> Option<(u64, u64)> {
    drive.zones().namespace(command.nsid)?;
    let (slba, nlb) = match command.op {
        Op::Read { slba, nlb }
        | Op::Write { slba, nlb }
        | Op::WriteZeroes { slba, nlb }
        | Op::Compare { slba, nlb }
        | Op::Verify { slba, nlb } => (slba.0, nlb),
        Op::Copy { sdlba, .. } => (sdlba.0, 1),
        Op::Append { zslba, nlb } => {
            let zone = drive.zones().zone_of(zslba)?;
            let pointer = drive.zones().written_lbas(zone);
            (zslba.0.checked_add(pointer)?, nlb)
        }
        _ => return None,
    };
    let last = slba.checked_add(u64::from(nlb.max(1)) - 1)?;
    Some((slba, last))
}

/// First and last zone that a command touches, if its namespace exists.
fn zones_of(command: &Command, blocks: Option<(u64, u64)>, drive: &Drive) -> Option<(u32, u32)> {
    let zones = drive.zones();
    let zone_of = |lba| zones.zone_of(Lba(lba)).map(|zone| zone.0);
    let mine = zones.namespace(command.nsid)?.zones();
    let last_zone = mine.end.saturating_sub(1);
    if let Some((first, last)) = blocks {
        let last = zone_of(last).unwrap_or(last_zone);
        return Some((zone_of(first)?, last));
    }
    match command.op {
        Op::ZoneSend {
            select_all: true, ..
        } => Some((mine.start, last_zone)),
        Op::ZoneSend { slba, .. } | Op::ZrwaSend { slba, .. } => {
            zone_of(slba.0).map(|zone| (zone, zone))
        }
        Op::ZoneReceive { slba, .. } => Some((zone_of(slba.0)?, last_zone)),
        _ => None,
    }
}
