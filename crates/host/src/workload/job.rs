//! The job that works through a [`JobSpec`].

use zonelab_device::{Command, Completion, DeviceInfo, Nanos, QueuePair, RejectReason, Tag};
use zonelab_nvme::Status;

use super::source::{Next, Offer, Role, Source};
use super::zone_table::SharedZones;
use super::{JobSpec, Work};
use crate::block::MergeCount;
use crate::rate::{Counting, Limiter};
use crate::reactor::{Job, NextWake, StopSignal};
use crate::rng::Rng;
use crate::stats::{Confidence, Intervals, JobStats, Latency, OpKind, Outcome, Statistic};

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    submitted: Nanos,
    kind: OpKind,
    role: Role,
    stream: u32,
    lbas: u64,
}

/// A running [`JobSpec`].
pub struct WorkloadJob {
    spec: JobSpec,
    source: Source,
    rng: Rng,
    limiter: Option<Limiter>,
    confidence: Option<Confidence>,
    stop: StopSignal,
    lba_bytes: u64,
    slots: Vec<InFlight>,
    free: Vec<u32>,
    /// Set by the first step.
    started: Option<Nanos>,
    deadline: Nanos,
    /// The source offers nothing before.
    paused_until: Nanos,
    issued_bytes: u64,
    issued_ops: u64,
    stopping: bool,
    /// An operation that the source offered and the queue refused.
    postponed: Option<Next>,
    result: JobResult,
}

/// What a job measured.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Name of the job.
    pub name: String,
    /// Measurements by kind of operation.
    pub stats: JobStats,
    /// Latencies of the first write (or append) to each zone, which the
    /// others' include too.
    pub first_writes: Latency,
    /// When it started and when it ended.
    pub started: Nanos,
    /// When its last operation had completed.
    pub ended: Nanos,
    /// Measured operations issued and completed, the ramp included.
    pub operations: u64,
    /// What the block layer merged of its requests, the ramp included; set by
    /// who ran it, nothing without a block layer.
    pub merges: MergeCount,
    /// The first operation that failed, and what failed, if any did.
    pub first_error: Option<(OpKind, Status)>,
}

impl WorkloadJob {
    /// A job on a device of `info`.
    ///
    /// `rng` is for its addresses; `stop` tells it, and by it others, to end.
    ///
    /// # Panics
    /// If its namespace does not exist or is not zoned.
    #[must_use]
    pub fn new(spec: JobSpec, info: &DeviceInfo, mut rng: Rng, stop: StopSignal) -> Self {
        let namespace = info
            .namespace(spec.namespace)
            .expect("the namespace of a job exists");
        let zoned = namespace.zoned.expect("workloads are for zoned namespaces");
        let counting = spec.counting.unwrap_or(match spec.work {
            Work::Finish { .. } => Counting::AtCompletion,
            _ => Counting::AtIssue,
        });
        let depth = spec.queue_depth.max(1);
        let idle = InFlight {
            submitted: Nanos::ZERO,
            kind: OpKind::Read,
            role: Role::Measured,
            stream: 0,
            lbas: 0,
        };
        Self {
            source: Source::new(&spec, zoned, namespace.lba_bytes, &mut rng),
            limiter: spec.rate.map(|limit| Limiter::new(limit, counting)),
            confidence: spec.stop.confidence.map(|target| {
                // Parts per million: an experiment file cannot ask for less.
                Confidence::new(Statistic::Both, (target * 1e6) as u32)
            }),
            rng,
            stop,
            lba_bytes: u64::from(namespace.lba_bytes),
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            started: None,
            deadline: Nanos::MAX,
            paused_until: Nanos::ZERO,
            issued_bytes: 0,
            issued_ops: 0,
            stopping: false,
            postponed: None,
            result: JobResult {
                name: spec.name.clone(),
                stats: JobStats::new(Intervals::DEFAULT_LENGTH),
                first_writes: Latency::new(),
                started: Nanos::ZERO,
                ended: Nanos::ZERO,
                operations: 0,
                merges: MergeCount::default(),
                first_error: None,
            },
            spec,
        }
    }

    /// Lets it share its zones with other writers, of which it is number `id`:
    /// they know together where each zone is written to, and one of them at a
    /// time is in a zone. Jobs that do not write stay as they are.
    #[must_use]
    pub fn sharing(mut self, info: &DeviceInfo, table: SharedZones, id: u32) -> Self {
        let namespace = info.namespace(self.spec.namespace);
        if let Some(zoned) = namespace.and_then(|namespace| namespace.zoned) {
            self.source.share(&self.spec.work, zoned, table, id);
        }
        self
    }

    /// Commands that the job keeps in flight at most: the depth that its queue needs.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// What it measured. Whole once the reactor has run it to its end.
    #[must_use]
    pub fn into_result(self) -> JobResult {
        self.result
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.started = Some(now);
        self.result.started = now;
        let measured_from = now + self.spec.ramp;
        self.result.stats.start_measuring(measured_from);
        if let Some(confidence) = &mut self.confidence {
            let sample = self.spec.stop.confidence_sample;
            confidence.start(measured_from, sample.unwrap_or(Intervals::DEFAULT_LENGTH));
        }
        if let Some(runtime) = self.spec.stop.runtime {
            self.deadline = measured_from.saturating_add(runtime);
        }
    }

    #[inline]
    fn handle(&mut self, completion: &Completion) {
        let Tag(slot) = completion.tag;
        let op = self.slots[slot as usize];
        self.free.push(slot);
        if !completion.status.is_success() {
            self.note_error(op.kind, completion.status);
        }
        let bytes = op.lbas * self.lba_bytes;
        let (latency, link_bytes) = match op.role {
            Role::FirstPart | Role::Part => match self.source.part_completed(op.stream, completion)
            {
                Some(whole) => (whole.time, whole.link_bytes),
                None => return,
            },
            role => {
                self.source.completed(op.kind, op.stream, op.lbas);
                if role == Role::Preparation {
                    return;
                }
                let link_bytes = if op.kind.moves_data() { bytes } else { 0 };
                (completion.at - op.submitted, link_bytes)
            }
        };
        if let Some(limiter) = &mut self.limiter {
            limiter.completed(bytes);
        }
        self.result.operations += 1;
        self.result.stats.record(
            op.kind,
            &Outcome {
                at: completion.at,
                latency,
                bytes,
                link_bytes,
                status: completion.status,
            },
        );
        if op.role == Role::FirstOfZone && completion.at >= self.result.stats.from() {
            self.result.first_writes.record(latency);
        }
        if let Some(confidence) = &mut self.confidence {
            self.stopping |= enough(confidence, completion.at, latency, &self.result, &self.spec);
        }
    }

    #[cold]
    fn note_error(&mut self, kind: OpKind, status: Status) {
        if self.result.first_error.is_none() {
            self.result.first_error = Some((kind, status));
        }
        // A workload that gets an error does not do what it was made for.
        self.stopping = true;
    }

    /// Whether the job has come to its end, apart from what is in flight.
    #[inline]
    fn is_over(&self, now: Nanos) -> bool {
        let has_had = |limit: Option<u64>, issued| limit.is_some_and(|limit| issued >= limit);
        self.stopping
            || now >= self.deadline
            || self.stop.is_stopped()
            || (has_had(self.spec.stop.bytes, self.issued_bytes)
                || has_had(self.spec.stop.operations, self.issued_ops))
                // The last of them may not be complete.
                && !self.source.is_under_way()
    }

    /// Issues what can be issued. Returns when to go on if nothing completes before.
    #[inline]
    fn issue(&mut self, queue: &mut dyn QueuePair) -> Option<Nanos> {
        while let Some(&slot) = self.free.last() {
            let now = queue.now();
            if self.is_over(now) {
                self.stopping = true;
                return None;
            }
            if let Some(limiter) = &self.limiter
                && limiter.ready_at() > now
                && self.source.next_is_limited()
            {
                return Some(limiter.ready_at());
            }
            if self.paused_until > now {
                // Who sleeps notices the end of the run.
                return Some(self.paused_until.min(self.deadline));
            }
            if let Some(periods) = self.spec.stop.periods
                && self.issued_ops >= periods
                && self.source.next_is_limited()
            {
                self.stopping = true;
                return None;
            }
            let offer = match self.postponed.take() {
                Some(next) => Offer::Issue(next),
                None => self.source.offer(now, &mut self.rng),
            };
            let next = match offer {
                Offer::Issue(next) => next,
                Offer::Wait => return None,
                Offer::Pause(time) => {
                    self.paused_until = now.saturating_add(time);
                    return Some(self.paused_until.min(self.deadline));
                }
                Offer::Exhausted => {
                    self.stopping = true;
                    return None;
                }
            };
            let command = Command {
                nsid: self.spec.namespace,
                op: next.op,
            };
            if let Err(rejected) = queue.submit(command, Tag(slot), None) {
                match rejected.reason {
                    // Everything in flight comes back, so this will go later.
                    RejectReason::QueueFull { .. } => self.postponed = Some(next),
                    // It would be refused for ever.
                    RejectReason::NoSuchQueue { .. } | RejectReason::Disconnected => {
                        self.note_error(next.kind, Status::HOST_PATHING_ERROR);
                    }
                }
                return None;
            }
            self.free.pop();
            self.slots[slot as usize] = InFlight {
                submitted: now,
                kind: next.kind,
                role: next.role,
                stream: next.stream,
                lbas: next.lbas,
            };
            if next.role.begins() {
                let bytes = next.lbas * self.lba_bytes;
                self.issued_ops += 1;
                self.issued_bytes += bytes;
                if let Some(limiter) = &mut self.limiter {
                    limiter.issued(now, bytes);
                }
            }
        }
        None
    }

    #[cold]
    fn end(&mut self, now: Nanos) -> NextWake {
        self.source.ended();
        self.result.stats.finish(now.min(self.deadline));
        self.result.ended = now;
        if self.spec.ends_run {
            self.stop.stop();
        }
        NextWake::Finished
    }
}

/// Records an operation, and says whether the run has lasted long enough.
#[inline]
fn enough(
    confidence: &mut Confidence,
    at: Nanos,
    latency: Nanos,
    result: &JobResult,
    spec: &JobSpec,
) -> bool {
    let from = result.stats.from();
    if at < from {
        return false;
    }
    confidence.record(at, latency);
    confidence.converged() && at - from >= spec.stop.confidence_after
}

impl Job for WorkloadJob {
    #[inline]
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if self.started.is_none() {
            self.start(now);
        }
        for completion in done.iter() {
            self.handle(completion);
        }
        let resume = self.issue(queue);
        queue.ring();
        if self.stopping {
            // The measurement ends when the job decides to, not with what is in flight.
            self.result.stats.finish(queue.now().min(self.deadline));
            if self.free.len() == self.slots.len() {
                return self.end(queue.now());
            }
            if self.spec.ends_run {
                self.stop.stop();
            }
            return NextWake::Completion;
        }
        match resume {
            Some(at) => NextWake::At(at),
            // An idle job must notice its deadline; a busy one will when something completes.
            None if self.free.len() == self.slots.len() => NextWake::At(self.deadline),
            None => NextWake::Completion,
        }
    }
}
