//! The measurements of a job, and of jobs reported as one.

use zonelab_device::{Found, Nanos, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::{Finds, Intervals, Latency, Samples};

/// A kind of operation that is measured on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Zone Append.
    Append,
    /// Reset Zone.
    Reset,
    /// Finish Zone, or what a host does in its place.
    Finish,
    /// Open Zone.
    Open,
    /// Close Zone.
    Close,
}

impl OpKind {
    /// All kinds, in the order of output.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::Append,
        Self::Reset,
        Self::Finish,
        Self::Open,
        Self::Close,
    ];

    /// The kind of `op`; `None` if it is not measured.
    #[must_use]
    pub const fn of(op: &Op) -> Option<Self> {
        match *op {
            Op::Read { .. } => Some(Self::Read),
            Op::Write { .. } => Some(Self::Write),
            Op::Append { .. } => Some(Self::Append),
            Op::ZoneSend {
                action: ZoneSendAction::RESET,
                ..
            } => Some(Self::Reset),
            Op::ZoneSend {
                action: ZoneSendAction::FINISH,
                ..
            } => Some(Self::Finish),
            Op::ZoneSend {
                action: ZoneSendAction::OPEN,
                ..
            }
            | Op::ZrwaSend {
                action: ZoneSendAction::OPEN,
                ..
            } => Some(Self::Open),
            Op::ZoneSend {
                action: ZoneSendAction::CLOSE,
                ..
            } => Some(Self::Close),
            _ => None,
        }
    }

    /// Whether its commands carry data over the link, as many bytes as they
    /// are counted as.
    #[must_use]
    pub const fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Append)
    }

    /// Whether its operations can succeed without having had anything to do.
    #[must_use]
    pub const fn may_find_nothing(self) -> bool {
        !matches!(self, Self::Write | Self::Append)
    }

    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Append => "append",
            Self::Reset => "reset",
            Self::Finish => "finish",
            Self::Open => "open",
            Self::Close => "close",
        }
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it completed.
    pub at: Nanos,
    /// The time it took, from where the job counts (submission, or a schedule).
    pub latency: Nanos,
    /// Bytes it moved, or is counted as.
    pub bytes: u64,
    /// Bytes of data that crossed the link between host and device for it:
    /// none for a finish by the device, which counts what it fills.
    pub link_bytes: u64,
    /// What it found to do.
    pub found: Found,
    /// Its status. A failed operation counts as an error and as nothing else.
    pub status: Status,
}

/// How operations ended that succeeded.
#[derive(Clone, Debug)]
pub struct Outcomes<'a> {
    /// The time that each took ([`Outcome::latency`]).
    pub latencies: &'a Samples,
    /// When the last of them completed.
    pub latest: Nanos,
    /// Bytes that they moved together, or are counted as.
    pub bytes: u64,
    /// Bytes of data that crossed the link for them ([`Outcome::link_bytes`]).
    pub link_bytes: u64,
    /// What they found to do.
    pub finds: Finds,
}

/// The measurements of one kind of operation of one job.
#[derive(Clone, Debug)]
pub struct OpStats {
    /// Bytes of the operations that succeeded.
    pub bytes: u64,
    /// Bytes that crossed the link for them.
    pub link_bytes: u64,
    /// What the operations that succeeded found to do.
    pub finds: Finds,
    /// Latencies of the operations that succeeded; their number is the number of those.
    pub latency: Latency,
    /// Throughput by intervals.
    pub intervals: Intervals,
    /// Number of failed operations by status, in the order in which each first came.
    pub errors: Vec<(Status, u64)>,
}

impl OpStats {
    /// Measurements from `from` on, with throughput sampled by `interval`.
    #[must_use]
    pub fn new(from: Nanos, interval: Nanos) -> Self {
        Self {
            bytes: 0,
            link_bytes: 0,
            finds: Finds::default(),
            latency: Latency::new(),
            intervals: Intervals::new(from, interval),
            errors: Vec::new(),
        }
    }

    /// Counts an operation.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        if outcome.status.is_success() {
            self.bytes = self.bytes.saturating_add(outcome.bytes);
            self.link_bytes = self.link_bytes.saturating_add(outcome.link_bytes);
            self.finds.record(outcome.found);
            self.latency.record(outcome.latency);
            self.intervals.record(outcome.at, outcome.bytes);
        } else {
            count_error(&mut self.errors, outcome.status, 1);
        }
    }

    /// Counts operations that succeeded, and when each completed with how many bytes.
    pub fn record_all(
        &mut self,
        outcomes: &Outcomes<'_>,
        completed: impl Iterator<Item = (Nanos, u64)>,
    ) {
        self.bytes = self.bytes.saturating_add(outcomes.bytes);
        self.link_bytes = self.link_bytes.saturating_add(outcomes.link_bytes);
        self.finds += outcomes.finds;
        self.latency.record_all(outcomes.latencies);
        let all = (outcomes.latencies.moments().count(), outcomes.bytes);
        self.intervals.record_all(completed, outcomes.latest, all);
    }
}

#[cold]
fn count_error(errors: &mut Vec<(Status, u64)>, status: Status, count: u64) {
    match errors.iter_mut().find(|(known, _)| *known == status) {
        Some((_, n)) => *n += count,
        None => errors.push((status, count)),
    }
}

/// The measurements of one job, by kind of operation.
///
/// An operation is counted if it completes while the job is measured: from
/// [`Self::start_measuring`] (inclusive) until [`Self::finish`] is called.
///
/// ```
/// use zonelab_device::{Found, Nanos};
/// use zonelab_host::stats::{Intervals, JobStats, OpKind, Outcome};
/// use zonelab_nvme::Status;
///
/// let mut job = JobStats::new(Intervals::DEFAULT_LENGTH);
/// job.start_measuring(Nanos::from_secs(5)); // after the ramp
/// for ms in (0..8_000).step_by(2) {
///     job.record(OpKind::Write, &Outcome {
///         at: Nanos::from_ms(ms),
///         latency: Nanos::from_us(734),
///         bytes: 16_384,
///         link_bytes: 16_384,
///         found: Found::Work(4),
///         status: Status::SUCCESS,
///     });
/// }
/// job.finish(Nanos::from_secs(8));
/// let writes = job.get(OpKind::Write).expect("it wrote");
/// assert_eq!(writes.latency.count(), 1_500);
/// assert_eq!(writes.intervals.mean_iops(), Some(500.0));
/// ```
#[derive(Clone, Debug)]
pub struct JobStats {
    interval: Nanos,
    from: Nanos,
    until: Option<Nanos>,
    /// Time in which it only made ready what it measures.
    prepared: Nanos,
    /// By [`OpKind`]; a distribution is large, and most jobs do one thing.
    kinds: [Option<Box<OpStats>>; OpKind::ALL.len()],
}

impl JobStats {
    /// Measurements from time zero, with throughput sampled by `interval`.
    #[must_use]
    pub const fn new(interval: Nanos) -> Self {
        Self {
            interval,
            from: Nanos::ZERO,
            until: None,
            prepared: Nanos::ZERO,
            kinds: [const { None }; OpKind::ALL.len()],
        }
    }

    /// Measures from `at` on, which may be in the future: forgets everything
    /// before, and ignores what completes earlier.
    pub fn start_measuring(&mut self, at: Nanos) {
        *self = Self {
            from: at,
            ..Self::new(self.interval)
        };
    }

    /// Counts an operation.
    #[inline]
    pub fn record(&mut self, kind: OpKind, outcome: &Outcome) {
        if outcome.at >= self.from && self.until.is_none() {
            self.of(kind).record(outcome);
        }
    }

    /// Counts operations that completed while the job is measured ([`OpStats::record_all`]).
    pub fn record_all(
        &mut self,
        kind: OpKind,
        outcomes: &Outcomes<'_>,
        completed: impl Iterator<Item = (Nanos, u64)>,
    ) {
        self.of(kind).record_all(outcomes, completed);
    }

    #[inline]
    fn of(&mut self, kind: OpKind) -> &mut OpStats {
        let (from, interval) = (self.from, self.interval);
        self.kinds[kind as usize].get_or_insert_with(|| Box::new(OpStats::new(from, interval)))
    }

    /// Ends the measurement at `at`. What is recorded later is ignored, and so
    /// is a second call.
    pub fn finish(&mut self, at: Nanos) {
        if self.until.is_some() {
            return;
        }
        self.until = Some(at.max(self.from));
        for kind in self.kinds.iter_mut().flatten() {
            kind.intervals.finish(at);
        }
    }

    /// The measurements of `kind`. `None` if the job did nothing of it.
    #[must_use]
    pub fn get(&self, kind: OpKind) -> Option<&OpStats> {
        self.kinds[kind as usize].as_deref()
    }

    /// When measuring started.
    #[must_use]
    pub const fn from(&self) -> Nanos {
        self.from
    }

    /// From `begun` until `ended` it only made ready what it measures: that time is not measured.
    /// Ignored after [`Self::finish`].
    pub fn prepared(&mut self, begun: Nanos, ended: Nanos) {
        if self.until.is_some() {
            return;
        }
        let measured = ended.saturating_sub(begun.max(self.from));
        self.prepared = self.prepared.saturating_add(measured);
    }

    /// How long was measured. `None` before [`Self::finish`].
    #[must_use]
    pub fn run_time(&self) -> Option<Nanos> {
        let all = self.until?.saturating_sub(self.from);
        Some(all.saturating_sub(self.prepared))
    }
}

/// One kind of operation over several jobs that are reported as one, in the
/// way of fio's group reporting.
///
/// Counts add and distributions merge. Throughput comes in two forms that
/// differ, and a comparison must say which it uses: [`Self::mean_iops`] and
/// [`Self::iops`].
#[derive(Clone, Debug)]
pub struct GroupStats {
    /// Jobs that did operations of this kind.
    pub jobs: u32,
    /// Bytes of the operations that succeeded.
    pub bytes: u64,
    /// Bytes that crossed the link for them.
    pub link_bytes: u64,
    /// What the operations that succeeded found to do.
    pub finds: Finds,
    /// Latencies of the operations that succeeded, of all jobs.
    pub latency: Latency,
    /// Failed operations by status.
    pub errors: Vec<(Status, u64)>,
    /// Sum over the jobs of the mean of their interval samples: fio's `iops_mean`. `None` if
    /// no job has a sample: its operations took no time, or none ended in a whole interval.
    pub mean_iops: Option<f64>,
    /// The longest time that a job was measured; zero if none is finished.
    pub run_time: Nanos,
}

impl GroupStats {
    /// The operations of `kind` of `jobs`. `None` if there was none.
    #[must_use]
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a JobStats>, kind: OpKind) -> Option<Self> {
        let measured =
            |job: &'a JobStats| Some((job.get(kind)?, job.run_time().unwrap_or_default()));
        Self::together(jobs.into_iter().filter_map(measured))
    }

    /// Measurements reported as one, each with the time that it took. `None` if
    /// there is none.
    #[must_use]
    pub fn together<'a>(parts: impl IntoIterator<Item = (&'a OpStats, Nanos)>) -> Option<Self> {
        let mut group: Option<Self> = None;
        for (stats, run_time) in parts {
            group.get_or_insert_with(Self::empty).add(stats, run_time);
        }
        group
    }

    fn empty() -> Self {
        Self {
            jobs: 0,
            bytes: 0,
            link_bytes: 0,
            finds: Finds::default(),
            latency: Latency::new(),
            errors: Vec::new(),
            mean_iops: None,
            run_time: Nanos::ZERO,
        }
    }

    fn add(&mut self, stats: &OpStats, run_time: Nanos) {
        let OpStats {
            bytes,
            link_bytes,
            finds,
            latency,
            intervals,
            errors,
        } = stats;
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(*bytes);
        self.link_bytes = self.link_bytes.saturating_add(*link_bytes);
        self.finds += *finds;
        self.latency.merge(latency);
        if let Some(mean) = intervals.mean_iops() {
            *self.mean_iops.get_or_insert_default() += mean;
        }
        self.run_time = self.run_time.max(run_time);
        for &(status, count) in errors {
            count_error(&mut self.errors, status, count);
        }
    }

    /// Operations over run time, per second. `None` if the run took no time.
    #[must_use]
    pub fn iops(&self) -> Option<f64> {
        (self.run_time > Nanos::ZERO)
            .then(|| self.latency.count() as f64 / self.run_time.as_secs_f64())
    }

    /// Bytes over run time, per second. `None` if the run took no time.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.run_time > Nanos::ZERO).then(|| self.bytes as f64 / self.run_time.as_secs_f64())
    }

    /// Bytes that crossed the link for an operation, on average. `None`
    /// without operations.
    #[must_use]
    pub fn link_bytes_per_operation(&self) -> Option<f64> {
        let operations = self.latency.count();
        (operations > 0).then(|| self.link_bytes as f64 / operations as f64)
    }

    /// Number of failed operations.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use zonelab_device::Lba;

    use super::*;

    fn outcome(at_ms: u64, us: u64) -> Outcome {
        Outcome {
            at: Nanos::from_ms(at_ms),
            latency: Nanos::from_us(us),
            bytes: 4_096,
            link_bytes: 1_024,
            found: Found::Work(1),
            status: Status::SUCCESS,
        }
    }

    fn failed(at_ms: u64, status: Status) -> Outcome {
        Outcome {
            status,
            ..outcome(at_ms, 1)
        }
    }

    fn job() -> JobStats {
        JobStats::new(Intervals::DEFAULT_LENGTH)
    }

    #[test]
    fn kinds_of_commands() {
        let (slba, nlb) = (Lba(0), 1);
        let send = |action| Op::ZoneSend {
            slba,
            action,
            select_all: false,
        };
        for (op, kind) in [
            (Op::Read { slba, nlb }, Some(OpKind::Read)),
            (Op::Write { slba, nlb }, Some(OpKind::Write)),
            (Op::Append { zslba: slba, nlb }, Some(OpKind::Append)),
            (send(ZoneSendAction::RESET), Some(OpKind::Reset)),
            (send(ZoneSendAction::FINISH), Some(OpKind::Finish)),
            (send(ZoneSendAction::OPEN), Some(OpKind::Open)),
            (send(ZoneSendAction::CLOSE), Some(OpKind::Close)),
            (send(ZoneSendAction::OFFLINE), None),
            (Op::Flush, None),
        ] {
            assert_eq!(OpKind::of(&op), kind, "{op:?}");
        }
        for (i, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i, "{} is where it is stored", kind.name());
        }
    }

    #[test]
    fn only_what_completes_while_measured_counts() {
        let mut job = job();
        job.record(OpKind::Read, &outcome(100, 50));
        job.start_measuring(Nanos::from_ms(1_000));
        assert!(job.get(OpKind::Read).is_none(), "the ramp is forgotten");
        for at in [999, 1_000, 1_400, 1_600, 2_000] {
            job.record(OpKind::Read, &outcome(at, 50));
        }
        job.finish(Nanos::from_ms(2_000));
        job.record(OpKind::Read, &outcome(2_000, 50));
        job.finish(Nanos::from_ms(3_000));
        let reads = job.get(OpKind::Read).unwrap();
        assert_eq!((reads.latency.count(), reads.bytes), (4, 4 * 4_096));
        // Two in the first interval, one in the second; the last is in a third.
        assert_eq!(reads.intervals.mean_iops(), Some(3.0));
        assert_eq!(job.run_time(), Some(Nanos::from_ms(1_000)));
    }

    #[test]
    fn a_kind_that_comes_late_was_idle_before() {
        let mut job = job();
        job.start_measuring(Nanos::from_ms(5_000));
        job.record(OpKind::Finish, &outcome(6_100, 900_000));
        job.finish(Nanos::from_ms(6_600));
        let finishes = &job.get(OpKind::Finish).unwrap().intervals;
        assert_eq!((finishes.samples(), finishes.empty()), (1, 2));
    }

    #[test]
    fn failures_count_as_errors_only() {
        let mut job = job();
        job.record(OpKind::Write, &failed(1, Status::ZONE_IS_FULL));
        job.record(OpKind::Write, &failed(2, Status::ZONE_INVALID_WRITE));
        job.record(OpKind::Write, &failed(3, Status::ZONE_IS_FULL));
        job.record(OpKind::Write, &outcome(4, 10));
        job.finish(Nanos::from_ms(10));
        let writes = job.get(OpKind::Write).unwrap();
        assert_eq!((writes.latency.count(), writes.bytes), (1, 4_096));
        assert_eq!(
            writes.errors,
            [(Status::ZONE_IS_FULL, 2), (Status::ZONE_INVALID_WRITE, 1)]
        );
    }

    #[test]
    fn a_group_adds_counts_and_means() {
        // One job for two seconds, one for the first second only.
        let mut jobs = [job(), job(), job()];
        for at in 0..2_000 {
            jobs[0].record(OpKind::Write, &outcome(at, 10));
        }
        for at in 0..1_000 {
            jobs[1].record(OpKind::Write, &outcome(at, 30));
        }
        jobs[1].record(OpKind::Write, &failed(999, Status::ZONE_IS_FULL));
        jobs[2].record(OpKind::Read, &outcome(1, 1));
        jobs[0].finish(Nanos::from_ms(2_000));
        jobs[1].finish(Nanos::from_ms(1_000));
        jobs[2].finish(Nanos::from_ms(1));

        let group = GroupStats::of(&jobs, OpKind::Write).unwrap();
        assert_eq!(
            (group.jobs, group.bytes, group.latency.count()),
            (2, 3_000 * 4_096, 3_000)
        );
        assert_eq!(group.link_bytes, 3_000 * 1_024);
        assert_eq!(group.link_bytes_per_operation(), Some(1_024.0));
        assert_eq!(group.errors, [(Status::ZONE_IS_FULL, 1)]);
        assert_eq!(group.error_count(), 1);
        assert_eq!(group.latency.max(), Some(Nanos::from_us(30)));
        assert!(
            (group.mean_iops.unwrap() - 2_000.0).abs() < 1e-9,
            "two jobs of 1000 per second"
        );
        assert_eq!(group.iops(), Some(1_500.0), "3000 in two seconds");
        assert_eq!(group.bytes_per_second(), Some(1_500.0 * 4_096.0));
        assert!(GroupStats::of(&jobs, OpKind::Reset).is_none());
    }

    #[test]
    fn an_unfinished_group_has_no_rate() {
        let mut job = job();
        job.record(OpKind::Read, &outcome(1, 1));
        let group = GroupStats::of([&job], OpKind::Read).unwrap();
        assert_eq!((group.iops(), group.bytes_per_second()), (None, None));
    }
}
