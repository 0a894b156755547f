//! Jobs in directions: read, write and trim, each with its own sizes and rates.
//!
//! This is the load that fio's job files describe, without their syntax. It
//! differs from the plain workloads ([`super::JobSpec`]) in that
//!
//! * jobs share write pointers and limits of open zones
//!   ([`super::zone_table`]), so that several may write to the same zones;
//! * reads are of what has been written;
//! * a job can read, write and trim in one, with block sizes drawn from a range
//!   and positions from a distribution;
//! * it may pause to think, and ends all, some or none of the others;
//! * latency is measured in its parts (submission, completion), and what is
//!   still in flight when the job decides to end is measured too.

mod job;
mod manage;
mod pace;
mod record;
pub(super) mod shared;
mod targets;

use std::num::NonZeroU64;
use std::ops::Range;

use zonelab_device::{NamespaceId, Nanos};

use super::distribution::Distribution;
use super::zone_table::JobId;
use crate::rng::Rng;
use crate::softfinish::SoftFinish;

pub use job::{DirectedJob, DirectedResult, Shared};
pub use record::{
    BUCKETS, DEPTHS, DirectionStats, LogSample, Recorder, Recording, Spread, WindowSample,
};

/// No job goes on after this time, a hundred years: limits and pauses can ask
/// for times that no clock has.
pub const HORIZON: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// What an operation is to whoever reads results: trims are zone resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes, appends, and finishes in the place of writes.
    Write,
    /// Resets of zones.
    Trim,
}

impl Direction {
    /// All of them, in the order of fio's numbers 0, 1, 2.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// What one thread does.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectedSpec {
    /// Its number among the jobs of the run, from 0.
    pub id: JobId,
    /// The namespace it works on; zones count from its start.
    pub namespace: NamespaceId,
    /// The zones it works on; not empty.
    pub zones: Range<u32>,
    /// By [`Direction`]: how, if it works in that direction at all. Reads and
    /// writes may be combined; trims are alone.
    pub flows: [Option<Flow>; 3],
    /// Of a job that reads and writes, reads in a hundred operations.
    pub read_percent: u32,
    /// Where operations go.
    pub pattern: Pattern,
    /// What its writes are.
    pub style: WriteStyle,
    /// Reads go beyond write pointers too.
    pub reads_beyond_write_pointer: bool,
    /// Zones written in part that this job may have opened at a time.
    pub open_limit: Option<u32>,
    /// Zones are reset to be written again although they are not full.
    pub early_reset: Option<EarlyReset>,
    /// Flushes between its writes.
    pub syncs: Syncs,
    /// Operations in flight at once, at least 1. Finishes and resets go one by one.
    pub queue_depth: u32,
    /// When it starts, on the clock of the run.
    pub start: Nanos,
    /// Time after the start that is not measured.
    pub ramp: Nanos,
    /// When it ends, if not by its work being exhausted.
    pub end: End,
    /// Pauses.
    pub think: Option<Think>,
    /// What is kept of its operations.
    pub recording: Recording,
}

/// One direction of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sizes of operations. Trims ignore them: they are whole zones.
    pub sizes: Sizes,
    /// Limit in bytes per second.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Limit in operations per second.
    pub ops_per_second: Option<NonZeroU64>,
    /// Operations arrive as a Poisson process at that limit, instead of evenly.
    pub poisson: bool,
}

/// Sizes of operations in logical blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest, at least 1. All are multiples of it; only the last write
    /// of a zone may be shorter.
    pub min: u32,
    /// The largest.
    pub max: u32,
    /// Sizes and their shares in percent, instead of all multiples alike.
    pub split: Vec<(u32, u32)>,
}

impl Sizes {
    /// One size.
    #[must_use]
    pub const fn fixed(lbas: u32) -> Self {
        Self {
            min: lbas,
            max: lbas,
            split: Vec::new(),
        }
    }

    /// The size of the next operation.
    #[inline]
    fn draw(&self, rng: &mut Rng) -> u32 {
        if self.min == self.max {
            return self.min;
        }
        if self.split.is_empty() {
            let steps = u64::from((self.max - self.min) / self.min);
            return self.min + self.min * rng.below(steps + 1) as u32;
        }
        let mut left = rng.below(100) as u32;
        for &(lbas, percent) in &self.split {
            if left < percent {
                return lbas;
            }
            left -= percent;
        }
        self.max
    }
}

/// Where operations go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One zone after another, from its start or its write pointer on.
    Sequential,
    /// Anywhere.
    Random {
        /// How likely each place is.
        distribution: Distribution,
        /// By [`Direction`]: operations in a hundred that are random; the
        /// others continue where the last one ended.
        percent: [u32; 3],
    },
}

/// When zones are reset before they are full: fio's `zone_reset_threshold` and
/// `zone_reset_frequency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyReset {
    /// As long as the zones of the job hold at least so many blocks ...
    pub threshold_lbas: u64,
    /// ... one write in so many, at least 1, resets the zone that it goes to.
    pub every_writes: u64,
}

/// Flushes between writes. While one is under way, the job issues nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// One after so many writes, by each of two counts that do not know of each
    /// other: fio's `fsync` and `fdatasync`. 0: none.
    pub every_writes: [u32; 2],
    /// One when the job has ended, if it wrote anything.
    pub at_end: bool,
}

impl Syncs {
    /// Whether one follows the write of that number, counted from 1.
    #[inline]
    fn is_due(&self, writes: u64) -> bool {
        let due = |every: u32| every > 0 && writes.is_multiple_of(u64::from(every));
        self.every_writes.into_iter().any(due)
    }
}

/// What the writes of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStyle {
    /// Writes.
    Write,
    /// Zone appends.
    Append,
    /// For each zone in turn: one write, then Finish Zone. The finish is what
    /// counts, with the bytes that it fills.
    Finish,
    /// The same, by writing the rest of the zone from the host.
    SoftFinish(SoftFinish),
    /// For each zone in turn: one write, then Reset Zone, which counts as the
    /// zone size.
    Reset,
}

/// When a job ends: at the first of these, or when its work is exhausted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// After this much measured time.
    pub runtime: Option<Nanos>,
    /// When this many bytes were issued, the ramp included.
    pub bytes: Option<u64>,
    /// When this many operations were issued, the ramp included.
    pub operations: Option<u64>,
    /// At the end of its zones, the job starts over.
    pub repeats: bool,
}

/// Pauses of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long.
    pub time: Nanos,
    /// After so many operations, at least 1.
    pub after_ops: u32,
    /// Instead, after so much time of working.
    pub after_time: Option<Nanos>,
}
