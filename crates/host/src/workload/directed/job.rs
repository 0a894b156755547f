//! The job that works through a [`DirectedSpec`].

mod flush;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_device::{Command, Completion, DeviceInfo, Nanos, QueuePair, Tag};
use zonelab_nvme::Status;

use super::manage::{Manage, Managed};
use super::pace::Pace;
use super::record::{Done, Recorder};
use super::targets::{Pick, Role, Step, Targets};
use super::{DirectedSpec, Direction, HORIZON, WriteStyle};
use crate::rate::Counting;
use crate::reactor::{Job, NextWake, StopSignal};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::zone_table::SharedZones;
use flush::Sync;

/// What a job shares with others.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The zones of the device.
    pub zones: SharedZones,
    /// Tells this job to end.
    pub stop: StopSignal,
    /// What this job tells to end when it has ended.
    pub ends: Vec<StopSignal>,
    /// The same, if an operation of it failed.
    pub ends_on_error: Vec<StopSignal>,
    /// Tells every job to end, from another thread.
    pub interrupt: Arc<AtomicBool>,
}

/// What a job measured.
#[derive(Clone, Debug)]
pub struct DirectedResult {
    /// Latencies and throughput.
    pub recorder: Recorder,
    /// When it started.
    pub started: Nanos,
    /// When measuring began: after the ramp.
    pub measured_from: Nanos,
    /// When its last operation had completed.
    pub ended: Nanos,
    /// Measured operations by kind, in the order of [`OpKind::ALL`], from the
    /// start of measuring.
    pub kinds: [u64; OpKind::ALL.len()],
    /// Zones reset because they were full and to be written again.
    pub cleared_zones: u64,
    /// Zones finished because what was left of them was too small for a write.
    pub ended_zones: u64,
    /// Failed operations.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<(OpKind, Status)>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    decided: Nanos,
    submitted: Nanos,
    step: Step,
    depth: u32,
}

/// What the job wants to do next, once drawn.
#[derive(Clone, Copy, Debug)]
struct Wish {
    direction: Direction,
    lbas: u32,
}

/// A running [`DirectedSpec`].
pub struct DirectedJob {
    spec: DirectedSpec,
    targets: Targets,
    manage: Option<Manage>,
    paces: [Option<Pace>; 3],
    rng: Rng,
    shared: Shared,
    lba_bytes: u64,
    slots: Vec<Option<InFlight>>,
    free: Vec<u32>,
    wish: Option<Wish>,
    is_started: bool,
    is_ended: bool,
    deadline: Nanos,
    issued_bytes: u64,
    issued_ops: u64,
    issued_writes: u64,
    sync: Sync,
    /// Operations since the last pause.
    since_pause: u32,
    /// When the last pause ended.
    worked_from: Nanos,
    paused_until: Nanos,
    stopping: bool,
    result: DirectedResult,
}

impl DirectedJob {
    /// A job on a device of `info`; `rng` is for its choices.
    ///
    /// # Panics
    /// If its namespace does not exist or is not zoned.
    #[must_use]
    pub fn new(spec: DirectedSpec, info: &DeviceInfo, rng: Rng, shared: Shared) -> Self {
        let namespace = info
            .namespace(spec.namespace)
            .expect("the namespace of a job exists");
        let zoned = namespace.zoned.expect("workloads are for zoned namespaces");
        let lba_bytes = u64::from(namespace.lba_bytes);
        let counting = match spec.style {
            WriteStyle::Finish | WriteStyle::SoftFinish { .. } => Counting::AtCompletion,
            _ => Counting::AtIssue,
        };
        let paces = Direction::ALL.map(|direction| {
            let flow = spec.flows[direction as usize].as_ref()?;
            let mean = u64::from(flow.sizes.min).midpoint(u64::from(flow.sizes.max)) * lba_bytes;
            Some(Pace::new(flow, counting, mean))
        });
        let manage = Manage::new(&spec, zoned, namespace.lba_bytes, shared.zones.clone());
        let depth = if manage.is_some() {
            1
        } else {
            spec.queue_depth.max(1)
        };
        Self {
            targets: Targets::new(&spec, zoned, shared.zones.clone()),
            manage,
            paces,
            rng,
            shared,
            lba_bytes,
            slots: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            wish: None,
            is_started: false,
            is_ended: false,
            deadline: HORIZON,
            issued_bytes: 0,
            issued_ops: 0,
            issued_writes: 0,
            sync: Sync::None,
            since_pause: 0,
            worked_from: Nanos::ZERO,
            paused_until: Nanos::ZERO,
            stopping: false,
            result: DirectedResult {
                recorder: Recorder::new(spec.recording),
                started: spec.start,
                measured_from: spec.start,
                ended: spec.start,
                kinds: [0; OpKind::ALL.len()],
                cleared_zones: 0,
                ended_zones: 0,
                errors: 0,
                first_error: None,
            },
            spec,
        }
    }

    /// Commands that the job keeps in flight at most: the depth that its queue needs.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether it has come to its end.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.is_ended
    }

    /// What it measured. Whole once the reactor has run it to its end.
    #[must_use]
    pub fn into_result(self) -> DirectedResult {
        self.result
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.is_started = true;
        self.worked_from = now;
        let measured_from = now.saturating_add(self.spec.ramp).min(HORIZON);
        self.result.started = now;
        self.result.measured_from = measured_from;
        self.result.recorder.start(now, measured_from);
        if let Some(runtime) = self.spec.end.runtime {
            self.deadline = measured_from.saturating_add(runtime).min(HORIZON);
        }
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    fn handle(&mut self, completion: &Completion) {
        let Tag(slot) = completion.tag;
        let Some(op) = self.slots[slot as usize].take() else {
            return;
        };
        self.free.push(slot);
        if !completion.status.is_success() {
            self.failed(&op, completion.status);
            return;
        }
        match op.step.role {
            Role::Transfer => {
                if op.step.direction == Direction::Write {
                    let mut zones = self.shared.zones.borrow_mut();
                    zones.end_write(op.step.zone, op.step.lbas);
                }
                let offset = op.step.op.first_block() * self.lba_bytes;
                self.record(&op, op.decided, op.submitted, completion.at, offset);
            }
            Role::Clearing => {
                let mut zones = self.shared.zones.borrow_mut();
                zones.end_clearing(op.step.zone);
                self.result.cleared_zones += 1;
            }
            Role::Ending => {
                let mut zones = self.shared.zones.borrow_mut();
                zones.end_finishing(op.step.zone);
                self.result.ended_zones += 1;
            }
            Role::Sync => {
                let latency = completion.at.saturating_sub(op.decided);
                self.flushed(completion.at, latency);
            }
            Role::Trigger | Role::Managing | Role::Chunk => self.managed(&op, completion.at),
        }
    }

    fn managed(&mut self, op: &InFlight, at: Nanos) {
        let Some(manage) = &mut self.manage else {
            return;
        };
        let times = [op.decided, op.submitted, at];
        match manage.completed(&self.spec, op.step.role, times) {
            Managed::Goes => {}
            Managed::Done(None) => {
                let offset = op.step.op.first_block() * self.lba_bytes;
                self.record(op, op.decided, op.submitted, at, offset);
            }
            Managed::Done(Some((decided, submitted, lbas))) => {
                let mut whole = *op;
                whole.step.counted = lbas;
                self.issued_bytes += lbas * self.lba_bytes;
                let offset = op.step.op.first_block() * self.lba_bytes;
                self.record(&whole, decided, submitted, at, offset);
            }
        }
    }

    fn record(
        &mut self,
        op: &InFlight,
        decided: Nanos,
        submitted: Nanos,
        completed: Nanos,
        offset: u64,
    ) {
        let bytes = op.step.counted * self.lba_bytes;
        let direction = op.step.direction;
        if let Some(pace) = &mut self.paces[direction as usize] {
            pace.completed(bytes);
        }
        if completed >= self.result.recorder.from() {
            self.result.kinds[self.kind(&op.step) as usize] += 1;
        }
        self.result.recorder.record(&Done {
            direction,
            decided,
            submitted,
            completed,
            bytes,
            offset,
            depth: op.depth,
        });
    }

    fn kind(&self, step: &Step) -> OpKind {
        if step.role == Role::Chunk {
            return OpKind::Finish;
        }
        OpKind::of(&step.op).unwrap_or(OpKind::Write)
    }

    #[cold]
    fn failed(&mut self, op: &InFlight, status: Status) {
        let kind = self.kind(&op.step);
        self.result.errors += 1;
        self.result.first_error.get_or_insert((kind, status));
        match op.step.role {
            Role::Transfer if op.step.direction == Direction::Write => {
                let mut zones = self.shared.zones.borrow_mut();
                zones.end_write(op.step.zone, op.step.lbas);
            }
            Role::Clearing | Role::Ending => {
                let mut zones = self.shared.zones.borrow_mut();
                let written = zones.written(op.step.zone);
                zones.end_managing(op.step.zone, written);
            }
            _ => {
                if let Some(manage) = &mut self.manage {
                    manage.abandon();
                }
            }
        }
        // A workload that gets an error does not do what it was made for.
        self.stopping = true;
    }

    /// Whether the job has come to its end, apart from what is in flight.
    fn is_over(&self, now: Nanos) -> bool {
        let end = &self.spec.end;
        self.stopping
            || now >= self.deadline
            || self.shared.stop.is_stopped()
            || end.bytes.is_some_and(|limit| self.issued_bytes >= limit)
            || end.operations.is_some_and(|limit| self.issued_ops >= limit)
            || self.shared.interrupt.load(Ordering::Relaxed)
    }

    /// Issues what can be issued. Returns when to go on if nothing completes before.
    fn issue(&mut self, queue: &mut dyn QueuePair) -> Option<Nanos> {
        while let Some(&slot) = self.free.last() {
            let now = queue.now();
            let under_way = self.manage.as_ref().is_some_and(Manage::is_under_way);
            if self.is_over(now) && (!under_way || self.must_abandon(now)) {
                self.stopping = true;
                return None;
            }
            if self.is_flushing(queue, now) {
                return None;
            }
            if let Some(resume) = self.pause(now) {
                return resume;
            }
            let wish = match self.wish {
                Some(wish) => wish,
                None => {
                    let wish = self.draw();
                    self.wish = Some(wish);
                    wish
                }
            };
            let (wish, ready) = self.limited(wish, now);
            let ready = if under_way {
                self.manage.as_ref().map_or(ready, Manage::resume_at)
            } else {
                ready
            };
            if ready > now {
                let manage = self.manage.as_ref();
                if manage.is_some_and(|manage| !manage.has_more(&self.spec)) {
                    self.stopping = true;
                    return None;
                }
                return Some(ready);
            }
            match self.pick(wish, now) {
                Pick::Issue(step) => self.submit(queue, slot, step, now, under_way),
                Pick::Wait => return None,
                Pick::Exhausted => {
                    self.stopping = true;
                    return None;
                }
            }
        }
        None
    }

    /// Whether an operation of several steps is given up when the job ends:
    /// one that is told to end does so, one that has done its number finishes it.
    fn must_abandon(&self, now: Nanos) -> bool {
        self.stopping
            || now >= self.deadline
            || self.shared.stop.is_stopped()
            || self.shared.interrupt.load(Ordering::Relaxed)
    }

    /// `Some` if the job is pausing, or about to: when to go on.
    fn pause(&mut self, now: Nanos) -> Option<Option<Nanos>> {
        let think = self.spec.think?;
        if now < self.paused_until {
            return Some(Some(self.paused_until));
        }
        let is_due = match think.after_time {
            Some(time) => self.since_pause > 0 && now.saturating_sub(self.worked_from) >= time,
            None => self.since_pause >= think.after_ops.max(1),
        };
        if !is_due {
            return None;
        }
        if self.in_flight() > 0 {
            return Some(None);
        }
        self.since_pause = 0;
        self.paused_until = now.saturating_add(think.time);
        self.worked_from = self.paused_until;
        (think.time > Nanos::ZERO).then_some(Some(self.paused_until))
    }

    /// Direction and size of the next operation.
    fn draw(&mut self) -> Wish {
        let reads = self.spec.flows[Direction::Read as usize].is_some();
        let writes = self.spec.flows[Direction::Write as usize].is_some();
        let direction = match (reads, writes) {
            (true, true) => {
                if self.rng.below(100) < u64::from(self.spec.read_percent) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
            (true, false) => Direction::Read,
            (false, true) => Direction::Write,
            (false, false) => Direction::Trim,
        };
        self.sized(direction)
    }

    fn sized(&mut self, direction: Direction) -> Wish {
        let flow = self.spec.flows[direction as usize].as_ref();
        let lbas = flow.map_or(1, |flow| flow.sizes.draw(&mut self.rng));
        Wish { direction, lbas }
    }

    /// When the wish may go ahead; one of the other direction takes its place
    /// if that may go ahead now.
    fn limited(&mut self, wish: Wish, now: Nanos) -> (Wish, Nanos) {
        let ready_at = |paces: &[Option<Pace>; 3], direction: Direction| {
            paces[direction as usize].as_ref().map(Pace::ready_at)
        };
        let ready = ready_at(&self.paces, wish.direction).unwrap_or(Nanos::ZERO);
        if ready <= now || wish.direction == Direction::Trim {
            return (wish, ready);
        }
        let other = match wish.direction {
            Direction::Read => Direction::Write,
            _ => Direction::Read,
        };
        match ready_at(&self.paces, other) {
            Some(at) if at <= now => {
                let wish = self.sized(other);
                self.wish = Some(wish);
                (wish, at)
            }
            Some(at) => (wish, ready.min(at)),
            None => (wish, ready),
        }
    }

    fn pick(&mut self, wish: Wish, now: Nanos) -> Pick {
        let Self {
            spec,
            targets,
            manage,
            rng,
            ..
        } = self;
        if let Some(manage) = manage {
            return manage.next(spec, wish.lbas, now, rng);
        }
        let min = |direction: Direction| {
            spec.flows[direction as usize]
                .as_ref()
                .map_or(1, |flow| flow.sizes.min)
        };
        match wish.direction {
            Direction::Read => match targets.read(spec, wish.lbas, min(Direction::Read), rng) {
                // A job that writes too makes what it can read.
                Pick::Exhausted if spec.flows[Direction::Write as usize].is_some() => {
                    let wish = self.sized(Direction::Write);
                    self.wish = Some(wish);
                    self.targets.write(&self.spec, wish.lbas, &mut self.rng)
                }
                pick => pick,
            },
            _ => targets.write(spec, wish.lbas, rng),
        }
    }

    fn submit(
        &mut self,
        queue: &mut dyn QueuePair,
        slot: u32,
        step: Step,
        now: Nanos,
        under_way: bool,
    ) {
        let command = Command {
            nsid: self.spec.namespace,
            op: step.op,
        };
        if queue.submit(command, Tag(slot), None).is_err() {
            // The queue is as deep as the job has slots: so it is gone.
            let op = InFlight {
                decided: now,
                submitted: now,
                step,
                depth: self.in_flight(),
            };
            self.failed(&op, Status::HOST_PATHING_ERROR);
            return;
        }
        self.free.pop();
        let depth = self.in_flight();
        self.slots[slot as usize] = Some(InFlight {
            decided: now,
            submitted: queue.now(),
            step,
            depth,
        });
        if matches!(step.role, Role::Clearing | Role::Ending | Role::Sync) {
            // What was wished for comes after it.
            return;
        }
        let bytes = step.counted * self.lba_bytes;
        self.issued_bytes += bytes;
        // An operation of several steps counts once, when it begins.
        let begins = matches!(step.role, Role::Transfer | Role::Trigger)
            || step.role == Role::Managing && !under_way;
        if step.role == Role::Transfer && step.direction == Direction::Write {
            self.issued_writes += 1;
            if self.spec.syncs.is_due(self.issued_writes) {
                self.sync = Sync::Due;
            }
        }
        if begins {
            self.wish = None;
            self.issued_ops += 1;
            self.since_pause += 1;
        }
        if step.paced
            && let Some(pace) = &mut self.paces[step.direction as usize]
        {
            pace.issued(now, bytes, &mut self.rng);
        }
    }

    #[cold]
    fn end(&mut self, now: Nanos) -> NextWake {
        if let Some(manage) = &mut self.manage {
            manage.abandon();
        }
        if !self.is_ended {
            self.is_ended = true;
            self.result.ended = now;
            self.result.recorder.finish(now);
            self.shared.zones.borrow_mut().job_ended();
            let failed = self.result.errors > 0;
            let on_error = self.shared.ends_on_error.iter().filter(|_| failed);
            self.shared
                .ends
                .iter()
                .chain(on_error)
                .for_each(StopSignal::stop);
        }
        NextWake::Finished
    }
}

impl Job for DirectedJob {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if !self.is_started {
            let is_told = self.shared.stop.is_stopped();
            if now < self.spec.start && !is_told {
                // The bell of the run woke it: its time has not come.
                return NextWake::At(self.spec.start);
            }
            self.start(now);
        }
        for completion in done.iter() {
            self.handle(completion);
        }
        let resume = self.issue(queue);
        queue.ring();
        if self.stopping {
            if self.in_flight() == 0 && !self.flushes_at_end(queue) {
                return self.end(queue.now());
            }
            return NextWake::Completion;
        }
        match resume {
            Some(at) => NextWake::At(at.min(self.deadline)),
            // A job that waits for others must notice its deadline; one that
            // has operations in flight will when one completes.
            None if self.in_flight() == 0 && self.spec.end.runtime.is_some() => {
                NextWake::At(self.deadline)
            }
            None => NextWake::Completion,
        }
    }
}
