//! Workloads: jobs that read, write, append, finish and reset.
//!
//! A [`JobSpec`] says what one thread does; a [`WorkloadJob`] does it, over any
//! queue pair. There is one implementation of a job for all front ends:
//! experiments, job files of fio, benchmarks. How many operations are in flight,
//! how fast they come, when they pause and when they end is the job's own
//! business, the same for all kinds of [`Work`]. What to do next comes from a
//! source of operations, of which there are two families:
//!
//! * **planned streams** ([`WriteWork`], [`ReadWork`]) through zones that belong
//!   to the job alone, whose state it knows without asking anybody;
//! * **work in directions** ([`directed::DirectedWork`]) over a table of zones
//!   ([`zone_table`]) that jobs share, or over blocks without write pointers
//!   ([`blocks`]): fio's view of a workload.
//!
//! Both finish, reset, open and close zones by the same code. What front ends
//! want differently is data: [`Ending`], [`Recording`], [`Think`], [`Syncs`],
//! limits of the whole ([`JobSpec::rate`]) or of a direction
//! ([`directed::Flow`]), a confidence interval ([`Stop::confidence`]).

pub mod blocks;
pub mod contents;
pub mod directed;
pub mod distribution;
mod job;
pub mod latency;
mod pace;
pub mod placement;
pub mod record;
pub mod replay;
pub mod share;
mod source;
pub mod steady;
mod work;
pub mod zone_table;

use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;

use crate::rate::{Counting, Limit};
use crate::stats::OpKind;
use crate::verify::Verify;
use contents::Contents;
use latency::LatencyGoals;
use record::Recording;
use steady::SteadyGoal;

pub use job::{AT_ONCE, FailedCommand, JobResult, Shared, Verified, WorkloadJob, WrongBlock};
pub use source::slice_of;
pub use work::{Fill, ReadWork, Work, WriteWork};

/// No job goes on after this time, a hundred years: limits and pauses can ask
/// for times that no clock has.
pub const HORIZON: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// What one thread of a workload does.
///
/// A front end that has one sort of work keeps specifications of that sort
/// (`JobSpec<DirectedWork>`); jobs take any.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec<W = Work> {
    /// Name in output.
    pub name: String,
    /// The namespace it works on; zones count from its start.
    pub namespace: NamespaceId,
    /// The operations.
    pub work: W,
    /// Operations in flight at once, at least 1. Finishes and resets go one by one.
    pub queue_depth: u32,
    /// Limit on the operations of [`Work`] (not on the writes that prepare a
    /// finish or reset).
    pub rate: Option<Limit>,
    /// Whether operations are due at times of their own; those of [`Self::rate`] then.
    pub arrival: Arrival,
    /// When operations count against rates; `None`: as fio counts them, a
    /// finish when it completes and anything else when it is issued.
    pub counting: Option<Counting>,
    /// When it starts, on the clock of the run; a job whose first step comes
    /// later starts with that.
    pub start: Nanos,
    /// Time after the start that is not measured.
    pub ramp: Nanos,
    /// When it ends.
    pub stop: Stop,
    /// What counts as its end.
    pub ending: Ending,
    /// When this job ends, all others of the run are told to end too.
    pub ends_run: bool,
    /// Errors that do not end it.
    pub tolerates: Tolerates,
    /// Pauses.
    pub think: Option<Think>,
    /// Flushes between its writes.
    pub syncs: Syncs,
    /// What latencies it may have.
    pub latency: LatencyGoals,
    /// It ends when what it does has become steady.
    pub steady: Option<SteadyGoal>,
    /// Sleeps of its thread last this much longer than asked for
    /// ([`asleep`](crate::softfinish::asleep)): the pauses of a softfinish, and
    /// [`Fill::settle`]. Waiting for a rate is no such sleep: it ends at a time,
    /// and what comes late does not delay what follows.
    pub sleep_slack: Nanos,
    /// What is kept of its operations.
    pub recording: Recording,
    /// Its writes carry contents that can be checked, and are read back; or what
    /// it reads is checked. Of work in directions that moves data.
    pub verify: Option<Box<Verify>>,
    /// What its writes carry, unless they are verified; `None`: they bring no data, since
    /// nobody keeps it.
    pub contents: Option<Contents>,
}

/// When the operations of a job are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// Whenever fewer than the queue depth are in flight, and the rate allows it: who waits for a
    /// slow operation issues no others meanwhile, so that few of them notice. Latency counts from
    /// the decision to issue.
    #[default]
    Closed,
    /// One after another at even times, as many as the rate says, whatever became of those
    /// before. Latency counts from the time at which an operation is due: beyond the queue depth
    /// it waits in the host. All that are due before the end of the run are carried out, and
    /// count.
    Fixed,
    /// The same at random times, as those of many users who do not know of each other: the gaps
    /// between them are exponential.
    Poisson,
}

impl Arrival {
    /// Whether operations are due at times of their own.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Fixed | Self::Poisson)
    }
}

impl<W> JobSpec<W> {
    /// A job of `work` on the first namespace with one operation in flight, at
    /// once and without limits, whose only end is that of its work.
    pub fn new(name: impl Into<String>, work: W) -> Self {
        Self {
            name: name.into(),
            namespace: NamespaceId::FIRST,
            work,
            queue_depth: 1,
            rate: None,
            arrival: Arrival::Closed,
            counting: None,
            start: Nanos::ZERO,
            ramp: Nanos::ZERO,
            stop: Stop::default(),
            ending: Ending::default(),
            ends_run: false,
            tolerates: Tolerates::default(),
            think: None,
            syncs: Syncs::default(),
            latency: LatencyGoals::default(),
            steady: None,
            sleep_slack: Nanos::ZERO,
            recording: Recording::default(),
            verify: None,
            contents: None,
        }
    }
}

impl From<JobSpec<directed::DirectedWork>> for JobSpec {
    fn from(spec: JobSpec<directed::DirectedWork>) -> Self {
        let JobSpec {
            name,
            namespace,
            work,
            queue_depth,
            rate,
            arrival,
            counting,
            start,
            ramp,
            stop,
            ending,
            ends_run,
            tolerates,
            think,
            syncs,
            latency,
            steady,
            sleep_slack,
            recording,
            verify,
            contents,
        } = spec;
        Self {
            name,
            namespace,
            work: Work::Directed(Box::new(work)),
            queue_depth,
            rate,
            arrival,
            counting,
            start,
            ramp,
            stop,
            ending,
            ends_run,
            tolerates,
            think,
            syncs,
            latency,
            steady,
            sleep_slack,
            recording,
            verify,
            contents,
        }
    }
}

/// When a job ends: at the first of these, or when its work is exhausted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stop {
    /// After this much measured time.
    pub runtime: Option<Nanos>,
    /// When this many bytes were issued, including those of the ramp.
    pub bytes: Option<u64>,
    /// When this many operations were issued, including those of the ramp.
    pub operations: Option<u64>,
    /// When the operation after this many might be issued: a run of whole
    /// periods of a limited job, the pause behind the last one included.
    pub periods: Option<u64>,
    /// When the 95 % confidence interval of throughput and mean latency is
    /// this narrow: half its width over the mean.
    pub confidence: Option<f64>,
    /// Length of the samples that the confidence is computed from, of which 32
    /// are the least; `None`: [`Intervals::DEFAULT_LENGTH`](crate::stats::Intervals).
    pub confidence_sample: Option<Nanos>,
    /// Not before this much measured time, whatever the confidence.
    pub confidence_after: Nanos,
}

/// What counts as the end of a job: until then it is measured, and then others
/// that end with it are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Its decision to issue nothing more: at its deadline, or at the first completion behind
    /// it, which counts, and so does its time. What is in flight then is waited for and not
    /// measured: throughput is that of a load that goes on. A job that waits for its rate decides when
    /// the rate lets it go on, so that others hear of its end as late as that.
    #[default]
    AtDecision,
    /// The completion of its last operation, as for fio. A job that waits for
    /// its rate ends with its time.
    AtLastCompletion,
}

/// Failed operations after which a job goes on; they are counted. Of those that
/// prepare others, and of a device that is gone, none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerates {
    /// Reads.
    pub reads: bool,
    /// Writes, and whatever else is no read.
    pub writes: bool,
}

impl Tolerates {
    fn goes_on_after(self, sent: &source::Sent, status: Status) -> bool {
        let of_kind = match sent.kind {
            OpKind::Read => self.reads,
            _ => self.writes,
        };
        let is_single = matches!(
            sent.role,
            source::Role::Measured | source::Role::FirstOfZone
        );
        of_kind && is_single && status != Status::HOST_PATHING_ERROR
    }
}

/// Pauses of a job, between operations. (An operation of several commands, such
/// as a softfinish with the write in front of it, is not interrupted.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long.
    pub time: Nanos,
    /// After so many operations, at least 1.
    pub after_ops: u32,
    /// Instead, after so much time of working.
    pub after_time: Option<Nanos>,
}

/// Flushes between writes. While one is under way, the job issues nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// One after so many writes, by each of two counts that do not know of each
    /// other: fio's `fsync` and `fdatasync`. 0: none. Latencies are kept of those
    /// that come by the first.
    pub every_writes: [u32; 2],
    /// One when the job has ended, if it wrote anything.
    pub at_end: bool,
}

impl Syncs {
    /// Whether any come between writes.
    const fn come_between(&self) -> bool {
        !matches!(self.every_writes, [0, 0])
    }

    /// Whether the latency of one behind that write is kept.
    fn counts(&self, writes: u64) -> bool {
        let every = u64::from(self.every_writes[0]);
        every > 0 && writes.is_multiple_of(every)
    }

    /// Whether one follows the write of that number, counted from 1.
    #[inline]
    fn is_due(&self, writes: u64) -> bool {
        let due = |every: u32| every > 0 && writes.is_multiple_of(u64::from(every));
        self.every_writes.into_iter().any(due)
    }
}
