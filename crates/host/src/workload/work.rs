//! What jobs do: the operations, without depth, rate, time or end.

use std::ops::Range;

use zonelab_device::Nanos;

use super::directed::DirectedWork;
use crate::softfinish::SoftFinish;

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
    /// Reads, writes and trims in directions of their own, over zones that jobs
    /// share.
    Directed(Box<DirectedWork>),
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
    /// After the last zone begin again with the first. A zone that was finished is reset before
    /// it is prepared again.
    pub repeat: bool,
}
