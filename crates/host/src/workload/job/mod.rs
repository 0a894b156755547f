//! The job that works through a [`JobSpec`].

mod between;
mod failed;
mod flight;
mod issue;
mod look;
mod shared;
mod trim;
mod verify;

use std::sync::atomic::Ordering;

use zonelab_device::{Completion, DeviceInfo, Found, Lba, Nanos, QueuePair, Tag};
use zonelab_nvme::Status;

use super::contents::Buffers;
use super::latency::{AfterOperation, Goals};
use super::pace::Rates;
use super::placement::Placing;
use super::record::Done;
use super::share::Sharing;
use super::source::{Role, Sent, Source, Step};
use super::{Ending, HORIZON, JobSpec, Work};
use crate::reactor::{Job, NextWake, StopSignal};
use crate::rng::Rng;
use crate::stats::{Confidence, Intervals, OpKind, Statistic};
use between::Sync;
use flight::{InFlight, Whole};
use verify::Verifying;

pub use failed::FailedCommand;
pub use shared::{AT_ONCE, JobResult, Shared};
pub use verify::{Verified, WrongBlock};

/// A running [`JobSpec`].
pub struct WorkloadJob {
    spec: JobSpec,
    source: Source,
    rng: Rng,
    rates: Rates,
    goals: Option<Box<Goals>>,
    placing: Option<Box<Placing>>,
    sharing: Option<Box<Sharing>>,
    confidence: Option<Confidence>,
    shared: Shared,
    lba_bytes: u64,
    /// 0: there are no zones.
    zone_size_lbas: u64,
    slots: Vec<InFlight>,
    free: Vec<u32>,
    whole: Option<Whole>,
    is_started: bool,
    is_ended: bool,
    deadline: Nanos,
    issued_bytes: u64,
    issued_ops: u64,
    issued_writes: u64,
    sync: Sync,
    /// Operations since the last pause.
    since_pause: u32,
    /// When the last operation began, and how many had begun at that time before it.
    at_once: (Nanos, u32),
    /// When the last pause ended.
    worked_from: Nanos,
    paused_until: Nanos,
    stopping: bool,
    /// A command that the source offered and the queue refused.
    postponed: Option<Step>,
    /// Something other than the source may have it wait.
    may_wait: bool,
    /// Its commands may carry data.
    carries_data: bool,
    /// Flushes come between its writes.
    has_syncs: bool,
    /// What is done about contents, if they are verified.
    verify: Option<Box<Verifying>>,
    /// What its writes carry, if anybody keeps it.
    buffers: Option<Box<Buffers>>,
    result: JobResult,
}

impl WorkloadJob {
    /// A job on a device of `info`.
    ///
    /// `rng` is for its choices; `shared` is at least what tells it to end.
    ///
    /// # Panics
    /// If its namespace does not exist, or is not zoned and the job is not of blocks.
    #[must_use]
    pub fn new(
        spec: impl Into<JobSpec>,
        info: &DeviceInfo,
        mut rng: Rng,
        shared: impl Into<Shared>,
    ) -> Self {
        let (spec, mut shared) = (spec.into(), shared.into());
        let namespace = info
            .namespace(spec.namespace)
            .expect("the namespace of a job exists");
        let mut zones = shared.zones.take();
        let lba_bytes = u64::from(namespace.lba_bytes);
        let verify = Verifying::of(&spec, namespace, &mut zones, rng.clone());
        let buffers = Buffers::of(&spec, lba_bytes, &rng);
        let source = Source::of_blocks(&spec, &zones).unwrap_or_else(|| {
            let zoned = namespace
                .zoned
                .expect("work on zones is on zoned namespaces");
            let mut source = Source::new(&spec, zoned, namespace.lba_bytes, &mut rng, zones);
            source.knows(shared.held_lbas.take());
            source
        });
        let depth = if source.is_one_by_one() {
            1
        } else {
            spec.queue_depth.max(1)
        };
        let idle = InFlight {
            decided: Nanos::ZERO,
            submitted: Nanos::ZERO,
            first_block: 0,
            depth: 0,
            sent: between::FLUSH.sent(),
        };
        let zone_size_lbas = namespace.zoned.map_or(0, |zoned| zoned.zone_size_lbas);
        let rates = Rates::new(&spec, lba_bytes);
        let goals = Goals::new(&spec.latency, spec.steady, depth);
        let placing = match &spec.work {
            Work::Directed(work) => Placing::of(&work.placements, &rng),
            _ => None,
        };
        let stops_between = spec.think.is_some() || spec.stop.periods.is_some();
        Self {
            may_wait: stops_between || rates.exist || goals.is_some() || shared.share.is_some(),
            has_syncs: spec.syncs.come_between(),
            carries_data: verify.is_some() || buffers.is_some() || source.trims_blocks(),
            source,
            rates,
            goals,
            placing,
            sharing: shared
                .share
                .take()
                .map(|share| Box::new(Sharing::new(share))),
            confidence: spec.stop.confidence.map(|target| {
                // Parts per million: an experiment file cannot ask for less.
                Confidence::new(Statistic::Both, (target * 1e6) as u32)
            }),
            rng,
            shared,
            lba_bytes,
            zone_size_lbas,
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            whole: None,
            is_started: false,
            is_ended: false,
            deadline: HORIZON,
            issued_bytes: 0,
            issued_ops: 0,
            issued_writes: 0,
            sync: Sync::None,
            since_pause: 0,
            at_once: (Nanos::ZERO, 0),
            worked_from: Nanos::ZERO,
            paused_until: Nanos::ZERO,
            stopping: false,
            postponed: None,
            verify,
            buffers,
            result: JobResult::new(&spec, lba_bytes),
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
    pub fn into_result(mut self) -> JobResult {
        self.result.recorder.settle();
        let by_the_way = self.source.by_the_way();
        let goals = self.goals.as_ref();
        let dead_zones = match &self.spec.work {
            Work::Directed(work) if work.blocks.is_none() => {
                self.source.dead_zones(work.zones.clone())
            }
            _ => 0,
        };
        JobResult {
            too_late: goals.and_then(|goals| goals.too_late()),
            depth_found: goals.and_then(|goals| goals.depth()),
            is_uncertain: self.confidence.as_ref().is_some_and(|of| !of.converged()),
            steadiness: goals.and_then(|goals| goals.steadiness()).map(Box::new),
            verified: self.verify.map(|verify| Box::new(verify.into_result())),
            cleared_zones: by_the_way.cleared,
            ended_zones: by_the_way.ended,
            empty_zones: by_the_way.empty,
            dead_zones,
            replayed: self.source.replayed().cloned().map(Box::new),
            ..self.result
        }
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.is_started = true;
        self.worked_from = now;
        let measured_from = now.saturating_add(self.spec.ramp).min(HORIZON);
        self.result.started = now;
        self.result.measured_from = measured_from;
        self.result.recorder.start(now, measured_from);
        if let Some(goals) = &mut self.goals {
            goals.start(measured_from);
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.begin(self.shared.stop.bell());
        }
        if let Some(confidence) = &mut self.confidence {
            let sample = self.spec.stop.confidence_sample;
            confidence.start(measured_from, sample.unwrap_or(Intervals::DEFAULT_LENGTH));
        }
        if let Some(runtime) = self.spec.stop.runtime {
            self.deadline = measured_from.saturating_add(runtime).min(HORIZON);
        }
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    #[inline]
    fn handle(&mut self, completion: &mut Completion) {
        let Tag(slot) = completion.tag;
        let op = self.slots[slot as usize];
        self.free.push(slot);
        if self.carries_data {
            if op.sent.role == Role::Look {
                self.looked(&op.sent, completion);
                return;
            }
            if self.buffers.is_some() {
                self.keep_buffer(completion.data.take());
            }
            if self.verify.is_some() && self.verified(slot, &op, completion) {
                return;
            }
        }
        if !completion.status.is_success() {
            self.failed(&op, completion);
            return;
        }
        let at = completion.at;
        if op.sent.role == Role::Sync {
            self.flushed(at, at.saturating_sub(op.decided));
            return;
        }
        if completion.found == Found::Unknown {
            completion.found = self.source.found(&op.sent, Lba(op.first_block));
        }
        let has_ended = self.source.completed(&op.sent, at);
        match op.sent.role {
            Role::Measured | Role::FirstOfZone => {
                let link_lbas = if op.sent.kind.moves_data() {
                    op.sent.lbas
                } else {
                    0
                };
                self.record(&op, at, (link_lbas, completion.found));
            }
            Role::FirstPart | Role::Part => self.part_completed(op, completion, has_ended),
            Role::Preparation => self.has_prepared(op.decided, at),
            Role::Sync | Role::Check | Role::Look => {}
        }
    }

    /// A part of an operation has completed, and the whole of it if it `has_ended`.
    #[inline(never)]
    fn part_completed(&mut self, mut op: InFlight, completion: &Completion, has_ended: bool) {
        let Some(whole) = &mut self.whole else {
            return;
        };
        whole.link_lbas += u64::from(op.sent.nlb);
        whole.found = whole.found.with(completion.found);
        if has_ended {
            (op.decided, op.submitted) = (whole.decided, whole.submitted);
            let moved = (whole.link_lbas, whole.found);
            self.whole = None;
            self.record(&op, completion.at, moved);
        }
    }

    /// An operation has completed with success: so many blocks crossed the link, and this is what
    /// it found to do.
    #[inline(always)]
    fn record(&mut self, op: &InFlight, at: Nanos, (link_lbas, found): (u64, Found)) {
        let sent = &op.sent;
        let done_lbas = match sent.kind.moves_data() {
            true => sent.lbas,
            false => found.blocks_or(self.source.finds_lbas(sent.lbas)),
        };
        if self.rates.exist {
            let bytes = sent.lbas * self.lba_bytes;
            self.rates.completed(sent.direction, bytes);
        }
        self.result.operations += 1;
        self.result.recorder.record(Done {
            kind: sent.kind,
            direction: sent.direction,
            decided: op.decided,
            submitted: op.submitted,
            completed: at,
            // A finish is asked for no blocks: it counts those that it fills.
            lbas: match sent.kind {
                OpKind::Finish => done_lbas,
                _ => sent.lbas,
            },
            done_lbas,
            link_lbas,
            found,
            first_block: op.first_block,
            depth: op.depth,
            is_first: sent.role == Role::FirstOfZone,
        });
        if let Some(goals) = &mut self.goals {
            let what = (sent.direction, sent.lbas * self.lba_bytes);
            match goals.completed(what, at - op.decided, at) {
                AfterOperation::GoOn => {}
                AfterOperation::End => self.stopping = true,
                AfterOperation::Fail => self.is_too_late(),
            }
        }
        if let Some(confidence) = &mut self.confidence
            && at >= self.result.measured_from
        {
            confidence.record(at, at - op.decided);
            self.stopping |= confidence.converged()
                && at - self.result.measured_from >= self.spec.stop.confidence_after;
        }
    }

    #[cold]
    fn failed(&mut self, op: &InFlight, completion: &Completion) {
        let InFlight { sent, .. } = op;
        if sent.role.begins() || sent.role == Role::Part {
            self.result.operations += 1;
            let (at, status) = (completion.at, completion.status);
            self.result.recorder.record_failure(sent.kind, at, status);
        }
        // A device says nothing in the result of a write; a block layer says what its parts moved.
        let moved = match sent.kind {
            OpKind::Write => completion.result.min(sent.lbas),
            _ => 0,
        };
        self.give_up(sent, (op.first_block, moved), completion.status);
    }

    /// A command has failed, or was not taken.
    #[cold]
    fn give_up(&mut self, sent: &Sent, (first_block, moved): (u64, u64), status: Status) {
        self.result.errors += 1;
        let lba = (sent.role != Role::Sync).then_some(Lba(first_block));
        let failed = || {
            let what = (sent.kind, status);
            FailedCommand::on((self.spec.namespace, self.zone_size_lbas), what, lba)
        };
        self.result.first_error.get_or_insert_with(failed);
        self.whole = None;
        if !matches!(sent.role, Role::Sync | Role::Check) {
            self.source.failed(sent, moved);
        }
        // A workload that gets an error does not do what it was made for.
        let goes_on = self.spec.tolerates.goes_on_after(sent, status);
        self.stopping |= !goes_on;
        if let Some(verify) = self.verify.as_mut().filter(|_| !goes_on) {
            verify.has_failed = true;
        }
    }

    /// Whether the job has come to its end, apart from what is in flight.
    #[inline]
    fn is_over(&self, now: Nanos) -> bool {
        self.has_done_its_part(now) || self.shared.stop.is_stopped() || self.is_interrupted()
    }

    /// Whether the job has nothing more to do, whatever others say.
    #[inline]
    fn has_done_its_part(&self, now: Nanos) -> bool {
        let stop = &self.spec.stop;
        let has_had = |limit: Option<u64>, issued| limit.is_some_and(|limit| issued >= limit);
        self.stopping
            || now >= self.deadline && !self.rates.is_behind(self.deadline)
            || (has_had(stop.bytes, self.issued_bytes)
                || has_had(stop.operations, self.issued_ops))
                // The last of them may not be complete.
                && !self.source.is_under_way()
    }

    /// The job issues no more. A device that is gone is an error of every job that had
    /// more to do: one that had nothing under way at that time, since it was pausing or
    /// between two commands, has no failed command that tells of it.
    #[cold]
    fn stop(&mut self, now: Nanos, has_more: bool) {
        self.result.is_cut_off |= has_more && self.shared.stop.was_device_lost();
        if has_more {
            self.result.behind = self.rates.behind(now.min(self.deadline));
        }
        self.stopping = true;
    }

    #[inline]
    fn is_interrupted(&self) -> bool {
        let interrupt = self.shared.interrupt.as_ref();
        interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }

    /// The measurement ends, and others hear of it.
    #[cold]
    fn close(&mut self, at: Nanos) {
        if let (Some(op), true) = (self.slots.first(), self.in_flight() > 0)
            && op.sent.role == Role::Preparation
        {
            self.has_prepared(op.decided, at);
        }
        self.result.recorder.finish(at);
        if self.spec.ends_run {
            self.shared.stop.stop();
        }
        let failed = self.result.errors > 0 || self.result.is_cut_off;
        let on_error = self.shared.ends_on_error.iter().filter(|_| failed);
        let ends = self.shared.ends.iter().chain(on_error);
        ends.for_each(StopSignal::stop);
    }

    #[cold]
    fn end(&mut self, now: Nanos) -> NextWake {
        if !self.is_ended {
            self.is_ended = true;
            if let Some(step) = self.postponed.take() {
                self.source.failed(&step.sent(), 0);
            }
            self.source.ended();
            if let Some(sharing) = &mut self.sharing {
                sharing.end(self.shared.stop.bell());
            }
            self.result.ended = now;
            self.counts_missing(now);
            self.close(now);
        }
        NextWake::Finished
    }
}

impl Job for WorkloadJob {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if !self.is_started {
            if now < self.spec.start && !self.shared.stop.is_stopped() {
                // The bell of the run woke it: its time has not come.
                return NextWake::At(self.spec.start);
            }
            let waits = self.shared.starts_after.iter();
            let waits = waits.filter(|of| !of.is_stopped()).count() > 0;
            if waits && !self.shared.stop.is_stopped() && !self.is_interrupted() {
                return NextWake::Completion;
            }
            self.start(now);
        }
        for completion in done.iter_mut() {
            self.handle(completion);
        }
        if self.goals.is_some() {
            self.check_goals(now);
        }
        let resume = match &self.verify {
            Some(verify) if !verify.is_writing() => self.issue_checks(queue),
            _ => self.issue(queue),
        };
        queue.ring();
        let is_idle = self.in_flight() == 0;
        if self.stopping {
            if self.spec.ending == Ending::AtDecision {
                // What completed behind the deadline, and was counted, took its time too.
                let end = self.deadline.max(self.result.recorder.last());
                self.close(queue.now().min(end));
            }
            if is_idle && !self.flushes_at_end(queue) {
                if self.verify.is_some()
                    && let Some(next) = self.verifies_more(queue)
                {
                    return next;
                }
                return self.end(queue.now());
            }
            return NextWake::Completion;
        }
        match resume {
            Some(at) => NextWake::At(at),
            // A job that waits for others must notice its deadline; one that
            // has operations in flight will when one completes.
            None if is_idle && self.spec.stop.runtime.is_some() => NextWake::At(self.deadline),
            None => NextWake::Completion,
        }
    }
}
