//! Workloads: jobs that read, write, append, finish and reset.
//!
//! A [`JobSpec`] says what one thread does; a [`WorkloadJob`] does it, over any
//! queue pair. What to do next comes from a [`source`](self) of operations; how
//! many at once, how fast and for how long is the job's own business, the same
//! for all kinds of work.
//!
//! A [`directed::DirectedJob`] works in up to three directions (read, write,
//! trim) with sizes, rates and a pattern of their own, and shares what it
//! knows of the zones with other jobs: fio's view of a workload.

pub mod directed;
pub mod distribution;
mod job;
mod manage;
mod source;
pub mod zone_table;

use std::ops::Range;

use zonelab_device::{NamespaceId, Nanos};

use crate::rate::{Counting, Limit};
use crate::softfinish::SoftFinish;

pub use job::{JobResult, WorkloadJob};
pub use source::slice_of;

/// What one thread of a workload does.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Name in output.
    pub name: String,
    /// The namespace it works on; zones count from its start.
    pub namespace: NamespaceId,
    /// The operations.
    pub work: Work,
    /// Operations in flight at once, at least 1. Finishes and resets go one by one.
    pub queue_depth: u32,
    /// Limit on the operations of [`Work`] (not on the writes that prepare a
    /// finish or reset).
    pub rate: Option<Limit>,
    /// When operations count against the rate; `None`: as fio counts them, a
    /// finish when it completes and anything else when it is issued.
    pub counting: Option<Counting>,
    /// Time after the start that is not measured.
    pub ramp: Nanos,
    /// When it ends.
    pub stop: Stop,
    /// When this job ends, all others of the run are told to end too.
    pub ends_run: bool,
    /// Sleeps of its thread last this much longer than asked for
    /// ([`asleep`](crate::softfinish::asleep)): the pauses of a softfinish, and
    /// [`Fill::settle`]. Waiting for a rate is no such sleep: it ends at a time,
    /// and what comes late does not delay what follows.
    pub sleep_slack: Nanos,
}

/// When a job ends: at the first of these, or when its work is exhausted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stop {
    /// After this much measured time.
    pub runtime: Option<Nanos>,
    /// After this many bytes, including those of the ramp.
    pub bytes: Option<u64>,
    /// After this many operations, including those of the ramp.
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

/// The operations of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Writes or appends.
    Write(WriteWork),
    /// Reads.
    Read(ReadWork),
    /// Reads and writes drawn by lot.
    Mixed {
        /// The reads.
        read: ReadWork,
        /// The writes.
        write: WriteWork,
        /// Reads in a hundred operations.
        read_percent: u32,
    },
    /// Writes part of each zone in turn, then finishes it.
    Finish {
        /// The zones, in this order.
        zones: Range<u32>,
        /// What is written before the finish; nothing if it is empty.
        fill: Fill,
        /// The host does it, by writes; `None`: Finish Zone.
        ///
        /// The whole is one operation: from the submission of its first write
        /// to the completion of its last, with the bytes that were unwritten,
        /// as a finish by the device. A run that ends (by its time, a signal,
        /// its confidence or an error) gives up what is under way after the
        /// write in flight, and does not count it unless that was the last: the
        /// rest of a zone can take minutes. (A finish by the device is one
        /// command, waited for and counted.)
        /// One that has had its number of operations or bytes completes the
        /// last. Of a zone that is full nothing is done or counted.
        soft: Option<SoftFinish>,
    },
    /// Writes part of each zone in turn (or nothing), then resets it.
    Reset {
        /// The zones.
        zones: Range<u32>,
        /// In random order, instead of ascending.
        shuffled: bool,
        /// What is written before the reset.
        fill: Fill,
    },
    /// Opens each zone in turn explicitly. Each is reset afterwards, which is
    /// not measured, so that no limit on open zones is met.
    Open {
        /// The zones, in this order.
        zones: Range<u32>,
        /// What happens to a zone before it is opened.
        fill: Fill,
    },
    /// Writes part of each zone in turn, then closes it. Each is reset
    /// afterwards, as under [`Self::Open`].
    Close {
        /// The zones, in this order.
        zones: Range<u32>,
        /// What is written before: a zone must be open to be closed.
        fill: Fill,
    },
}

/// Writes or appends through a range of zones, each from its start to its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteWork {
    /// The zones.
    pub zones: Range<u32>,
    /// Logical blocks of one operation; the last one of a zone may be shorter.
    pub block_lbas: u32,
    /// Zone appends instead of writes.
    pub append: bool,
    /// Zones that are written side by side; operations go to one of them at
    /// random. 1: one zone after another. If that is all of them, and `repeat`,
    /// each is written again when it is full.
    pub open_zones: u32,
    /// Start over when the range is full. Zones are reset before they are
    /// written again.
    pub repeat: bool,
    /// Reset each zone before its first write too: they are not empty.
    pub reset_first: bool,
    /// Open each zone explicitly before its first write, which is not measured.
    /// Otherwise the first write opens it.
    pub open_first: bool,
    /// A write is sent in commands of at most so many blocks, each when the one
    /// before it has completed, and is measured as one: what a kernel makes of a
    /// write that is larger than a command may be, as it lets one write at a
    /// time into a zone. The next write begins when it has ended, whatever the
    /// queue depth. `None`: in one command. Not for threads that share zones.
    pub command_lbas: Option<u32>,
}

/// Reads from a range of zones up to their capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadWork {
    /// The zones.
    pub zones: Range<u32>,
    /// Logical blocks of one operation, at most a zone's capacity.
    pub block_lbas: u32,
    /// Uniformly at random, aligned to the block; else ascending, over and over.
    pub random: bool,
}

/// How a zone is prepared for what is measured: opened, written in part,
/// finished, left alone; each of them if asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Logical blocks to write from the start of the zone.
    pub lbas: u64,
    /// Logical blocks of one write.
    pub block_lbas: u32,
    /// Open the zone explicitly before anything is written.
    pub open_first: bool,
    /// Finish the zone after what is written.
    pub finish_first: bool,
    /// Time to wait then, so that the drive comes to rest.
    pub settle: Nanos,
}
