//! What is kept of a job's operations.
//!
//! One [`Recorder`] per job sees every completion and knows what is measured.
//! What it keeps is chosen by [`Recording`]: statistics by kind of operation, as
//! experiments report them, and statistics by direction with latency in its
//! parts, as fio does. What is not asked for costs a branch.

use zonelab_device::{Found, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

mod batch;

use super::directed::Direction;
use super::replay::{Action, Operation, Trace};
use crate::stats::{
    Confidence, Finds, Intervals, JobStats, Latency, Moments, OpKind, Outcome, Statistic,
};
use batch::BATCH;

/// Upper ends of the buckets of completion latency in nanoseconds, as fio has
/// them: up to 2, 4, 10, ... 1000 ns, then us, then ms up to 2000. One more
/// bucket holds what is longer.
pub const BUCKETS: [u64; 31] = buckets();

/// Number of classes of queue depths: 1, 2, 4, 8, 16, 32, 64 and more.
pub const DEPTHS: usize = 7;

/// Length of the samples that confidence is computed from: a run of 32 of them
/// is the shortest that says anything.
const CONFIDENCE_SAMPLE: Nanos = Nanos::from_ms(1);

const fn buckets() -> [u64; 31] {
    let steps = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1_000];
    let mut all = [0; 31];
    let mut i = 0;
    while i < 30 {
        let unit = match i / 10 {
            0 => 1,
            1 => 1_000,
            _ => 1_000_000,
        };
        all[i] = steps[i % 10] * unit;
        i += 1;
    }
    all[30] = 2_000_000_000;
    all
}

/// What to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Statistics by kind of operation, and the latencies of first writes to zones.
    pub kinds: bool,
    /// Statistics by direction.
    pub directions: Option<DirectionRecording>,
    /// The commands in the order in which they were issued, as a trace.
    pub issued: Option<TraceRecording>,
}

/// What a trace of the commands of a job needs to know of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecording {
    /// Bytes of a logical block.
    pub lba_bytes: u64,
    /// Blocks of a zone.
    pub zone_lbas: u64,
}

impl Default for Recording {
    /// By kind.
    fn default() -> Self {
        Self {
            kinds: true,
            directions: None,
            issued: None,
        }
    }
}

/// What to keep of each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionRecording {
    /// Percentiles of submission latency.
    pub submission_percentiles: bool,
    /// Percentiles of completion latency.
    pub completion_percentiles: bool,
    /// Percentiles of total latency.
    pub total_percentiles: bool,
    /// Interval of samples of bandwidth.
    pub bandwidth_interval: Nanos,
    /// Interval of samples of operations per second.
    pub iops_interval: Nanos,
    /// How well throughput and mean latency are known.
    pub confidence: bool,
    /// Samples of latency and throughput over time.
    pub log: bool,
    /// The log has one sample of each direction for so long; zero: one of each operation.
    pub log_window: Nanos,
}

/// Count, mean and extremes of a latency, with or without percentiles.
#[derive(Clone, Debug)]
pub enum Spread {
    /// Without.
    Moments(Moments),
    /// With.
    Percentiles(Box<Latency>, Moments),
}

impl Spread {
    fn new(percentiles: bool) -> Self {
        if percentiles {
            Self::Percentiles(Box::default(), Moments::default())
        } else {
            Self::Moments(Moments::default())
        }
    }

    #[inline]
    fn record(&mut self, latency: Nanos) {
        match self {
            Self::Moments(moments) => moments.add(latency.0),
            Self::Percentiles(all, moments) => {
                all.record(latency);
                moments.add(latency.0);
            }
        }
    }

    /// Adds another.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Percentiles(a, b), Self::Percentiles(c, d)) => {
                a.merge(c);
                b.merge(d);
            }
            (Self::Moments(a) | Self::Percentiles(_, a), other) => a.merge(other.moments()),
        }
    }

    /// Count, mean, deviation and extremes.
    #[must_use]
    pub fn moments(&self) -> &Moments {
        match self {
            Self::Moments(moments) | Self::Percentiles(_, moments) => moments,
        }
    }

    /// The distribution, if it was kept.
    #[must_use]
    pub fn percentiles(&self) -> Option<&Latency> {
        match self {
            Self::Moments(_) => None,
            Self::Percentiles(latency, _) => Some(latency),
        }
    }
}

/// The measurements of one direction of a job, or of a group of jobs.
#[derive(Clone, Debug)]
pub struct DirectionStats {
    /// Bytes of the operations.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
    /// What they found to do.
    pub finds: Finds,
    /// From the decision to submit until the command is with the drive.
    pub submission: Spread,
    /// From then until the completion is with the job.
    pub completion: Spread,
    /// Both together.
    pub total: Spread,
    /// Samples of bandwidth, by job.
    pub bandwidth: Vec<Intervals>,
    /// Samples of operations per second, by job.
    pub iops: Vec<Intervals>,
    /// How well throughput and mean of the total latency are known, by job, if
    /// that was to be kept.
    pub confidence: Vec<Confidence>,
}

impl DirectionStats {
    fn new(from: Nanos, recording: &DirectionRecording) -> Self {
        Self {
            bytes: 0,
            operations: 0,
            finds: Finds::default(),
            submission: Spread::new(recording.submission_percentiles),
            completion: Spread::new(recording.completion_percentiles),
            total: Spread::new(recording.total_percentiles),
            bandwidth: vec![Intervals::new(from, recording.bandwidth_interval)],
            iops: vec![Intervals::new(from, recording.iops_interval)],
            confidence: match recording.confidence {
                true => vec![confidence(from)],
                false => Vec::new(),
            },
        }
    }

    /// Adds the measurements of another job.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            bytes,
            operations,
            finds,
            submission,
            completion,
            total,
            bandwidth,
            iops,
            confidence,
        } = other;
        self.bytes = self.bytes.saturating_add(*bytes);
        self.operations += operations;
        self.finds += *finds;
        self.submission.merge(submission);
        self.completion.merge(completion);
        self.total.merge(total);
        self.bandwidth.extend_from_slice(bandwidth);
        self.iops.extend_from_slice(iops);
        self.confidence.extend_from_slice(confidence);
    }
}

/// Nothing is known yet; measuring begins at `from`.
fn confidence(from: Nanos) -> Confidence {
    // The caller decides when to end, so no target is of use.
    let mut confidence = Confidence::new(Statistic::Both, 0);
    confidence.start(from, CONFIDENCE_SAMPLE);
    confidence
}

/// One operation of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSample {
    /// When it completed, from the start of the job.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// Its bytes.
    pub bytes: u64,
    /// The byte of the device at which it began.
    pub offset: u64,
    /// Submission latency.
    pub submission: Nanos,
    /// Completion latency.
    pub completion: Nanos,
}

/// The operations of one direction in one window of a log; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSample {
    /// End of the window, from the start of the job.
    pub end: Nanos,
    /// Direction.
    pub direction: Direction,
    /// Number of operations.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of submission latencies in nanoseconds.
    pub submission_ns: u128,
    /// Sum of completion latencies in nanoseconds.
    pub completion_ns: u128,
}

/// A completed operation, for [`Recorder`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) kind: OpKind,
    pub(super) direction: Direction,
    /// When the job decided to submit it, or when it was due.
    pub(super) decided: Nanos,
    /// When it was issued, and with the drive if submission and completion are told apart.
    pub(super) submitted: Nanos,
    pub(super) completed: Nanos,
    /// Blocks that it counts as: those that were asked for, as fio has it; of a finish those that
    /// it filled.
    pub(super) lbas: u64,
    /// Blocks of it that there was something to do with: less for management of zones that
    /// held, or lacked, less than was asked for.
    pub(super) done_lbas: u64,
    /// Blocks that crossed the link for it.
    pub(super) link_lbas: u64,
    /// What it found to do.
    pub(super) found: Found,
    /// Where it began on the device.
    pub(super) first_block: u64,
    /// Operations in flight when it was submitted, itself included.
    pub(super) depth: u32,
    /// It is the first write to its zone.
    pub(super) is_first: bool,
}

impl Done {
    /// Nanoseconds from the decision until it was with the drive.
    #[inline]
    fn submission(&self) -> u64 {
        self.submitted.saturating_sub(self.decided).0
    }

    /// Nanoseconds from then until the completion was with the job.
    #[inline]
    fn completion(&self) -> u64 {
        self.completed.saturating_sub(self.submitted).0
    }

    /// Nanoseconds from the decision until the completion was with the job.
    #[inline]
    fn total(&self) -> u64 {
        self.completed.saturating_sub(self.decided).0
    }
}

/// The measurements of a job.
#[derive(Clone, Debug)]
pub struct Recorder {
    recording: Recording,
    started: Nanos,
    from: Nanos,
    is_finished: bool,
    /// When the latest operation that counts completed.
    last: Nanos,
    /// Operations that succeeded by kind, in the order of [`OpKind::ALL`], if
    /// directions are recorded.
    pub counts: [u64; OpKind::ALL.len()],
    /// Latency (from the decision to submit), throughput and errors by kind.
    pub stats: JobStats,
    /// Latencies of the first write (or append) to each zone, which the
    /// others' include too.
    pub first_writes: Latency,
    /// What the operations took from when they were issued, where [`Self::stats`] counts from when
    /// they were due ([`Arrival`](super::Arrival)); `None`: these are one.
    pub service: Option<Box<Latency>>,
    /// By direction.
    pub directions: [Option<Box<DirectionStats>>; 3],
    /// Of flushes by the first count of writes ([`Syncs`](super::Syncs)), from the
    /// decision until the completion is with the job; `None`: there was none, or
    /// directions are not recorded.
    pub syncs: Option<Spread>,
    /// Flushes of any sort, if directions are recorded.
    pub flushes: u64,
    /// Operations by completion latency: [`BUCKETS`], and what is longer.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// Operations by the number in flight when they were submitted.
    pub depths: [u64; DEPTHS],
    /// Log of operations.
    pub log: Vec<LogSample>,
    /// Log of windows.
    pub windows: Vec<WindowSample>,
    open: [Option<WindowSample>; 3],
    /// Operations that have not been counted yet.
    batch: Vec<Done>,
    lba_bytes: u64,
    /// The commands that were issued, if they are recorded, and fewer than
    /// [`Trace::MAX_OPERATIONS`]: resets that prepare writes are among them.
    pub issued: Option<Box<Trace>>,
}

impl Recorder {
    pub(super) fn new(recording: Recording, is_open: bool, lba_bytes: u64) -> Self {
        Self {
            recording,
            started: Nanos::ZERO,
            from: Nanos::ZERO,
            is_finished: false,
            last: Nanos::ZERO,
            counts: [0; OpKind::ALL.len()],
            stats: JobStats::new(Intervals::DEFAULT_LENGTH),
            first_writes: Latency::new(),
            service: is_open.then(Box::default),
            directions: [None, None, None],
            syncs: None,
            flushes: 0,
            buckets: [0; BUCKETS.len() + 1],
            depths: [0; DEPTHS],
            log: Vec::new(),
            windows: Vec::new(),
            open: [None; 3],
            batch: Vec::with_capacity(BATCH),
            lba_bytes,
            issued: recording.issued.map(|_| Box::default()),
        }
    }

    /// Whether the commands that are issued are kept.
    #[inline]
    pub(super) const fn keeps_issued(&self) -> bool {
        self.recording.issued.is_some()
    }

    /// A command has been handed to the device; of a trim of blocks, they are given.
    #[cold]
    pub(super) fn issued(&mut self, at: Nanos, op: &Op, trim: Option<(u64, u32)>) {
        let (Some(device), Some(trace)) = (self.recording.issued, &mut self.issued) else {
            return;
        };
        let (action, lbas) = match op {
            Op::Read { nlb, .. } => (Action::Read, u64::from(*nlb)),
            Op::Write { nlb, .. } => (Action::Write, u64::from(*nlb)),
            Op::Append { nlb, .. } => (Action::Append, u64::from(*nlb)),
            Op::Flush => (Action::Sync, 0),
            Op::ZoneSend { action, .. } if *action == ZoneSendAction::RESET => {
                (Action::Trim, device.zone_lbas)
            }
            Op::ZoneSend { action, .. } if *action == ZoneSendAction::FINISH => (Action::Finish, 0),
            Op::Deallocate { .. } => (Action::Trim, trim.map_or(0, |(_, nlb)| nlb.into())),
            _ => return,
        };
        let first_block = match (op, trim) {
            (Op::Deallocate { .. }, Some((slba, _))) => slba,
            _ => op.first_block(),
        };
        let operation = Operation {
            at: at.saturating_sub(self.started),
            action,
            offset: first_block * device.lba_bytes,
            bytes: lbas * device.lba_bytes,
        };
        // What does not fit is left out: the caller can see that it is full.
        let _ = trace.push(operation, 0);
    }

    /// The job starts; operations that complete from `from` on are measured.
    pub(super) fn start(&mut self, started: Nanos, from: Nanos) {
        self.started = started;
        self.from = from;
        self.stats.start_measuring(from);
    }

    /// From `begun` until `ended` the job only made ready what it measures.
    pub(super) fn prepared(&mut self, begun: Nanos, ended: Nanos) {
        self.stats.prepared(begun, ended);
    }

    /// Whether what completes at `at` is measured.
    #[inline]
    pub(super) fn measures(&self, at: Nanos) -> bool {
        at >= self.from && !self.is_finished
    }

    /// When the latest operation that counts completed; zero: none has.
    pub(super) const fn last(&self) -> Nanos {
        self.last
    }

    /// Whether submission and completion are told apart.
    #[inline]
    pub(super) const fn splits_latency(&self) -> bool {
        self.recording.directions.is_some()
    }

    /// An operation has completed with success.
    #[inline]
    pub(super) fn record(&mut self, done: Done) {
        if !self.measures(done.completed) {
            return;
        }
        self.last = done.completed;
        self.batch.push(done);
        if self.batch.len() == BATCH {
            self.settle();
        }
    }

    /// An operation has failed.
    #[cold]
    pub(super) fn record_failure(&mut self, kind: OpKind, at: Nanos, status: Status) {
        if self.recording.kinds {
            let none = Outcome {
                at,
                latency: Nanos::ZERO,
                bytes: 0,
                link_bytes: 0,
                found: Found::Unknown,
                status,
            };
            self.stats.record(kind, &none);
        }
    }

    /// A flush has completed, whose latency `counts` or does not.
    pub(super) fn record_sync(&mut self, completed: Nanos, latency: Nanos, counts: bool) {
        if let Some(recording) = self.recording.directions
            && self.measures(completed)
        {
            self.flushes += 1;
            if !counts {
                return;
            }
            let percentiles = recording.completion_percentiles;
            let syncs = self.syncs.get_or_insert_with(|| Spread::new(percentiles));
            syncs.record(latency);
        }
    }

    fn log(&mut self, window: u64, done: &Done) {
        let at = done.completed.saturating_sub(self.started);
        let (direction, bytes) = (done.direction, done.lbas * self.lba_bytes);
        let [submission, completion] = [done.submission(), done.completion()].map(Nanos);
        if window == 0 {
            self.log.push(LogSample {
                at,
                direction,
                bytes,
                offset: done.first_block * self.lba_bytes,
                submission,
                completion,
            });
            return;
        }
        let end = Nanos((at.0 / window + 1).saturating_mul(window));
        let open = &mut self.open[direction as usize];
        if open.is_some_and(|sample| sample.end < end) {
            self.windows.extend(open.take());
        }
        let sample = open.get_or_insert(WindowSample {
            end,
            direction,
            operations: 0,
            bytes: 0,
            submission_ns: 0,
            completion_ns: 0,
        });
        sample.operations += 1;
        sample.bytes = sample.bytes.saturating_add(bytes);
        sample.submission_ns += u128::from(submission.0);
        sample.completion_ns += u128::from(completion.0);
    }

    /// Ends the measurement at `at`. A second call does nothing.
    pub(super) fn finish(&mut self, at: Nanos) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        self.settle();
        self.stats.finish(at);
        for stats in self.directions.iter_mut().flatten() {
            let all = stats.bandwidth.iter_mut().chain(&mut stats.iops);
            all.for_each(|intervals| intervals.finish(at));
        }
        for open in &mut self.open {
            self.windows.extend(open.take());
        }
        self.windows
            .sort_by_key(|sample| (sample.end, sample.direction));
    }
}
