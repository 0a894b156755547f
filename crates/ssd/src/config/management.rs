//! What finish and reset do.

use zonelab_device::Nanos;

/// What Zone Finish does (ConfZNS++, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishConfig {
    /// Nothing is written.
    Metadata,
    /// The rest of the zone is programmed when the zone is folded from the SLC cache, in
    /// the background: nobody waits for it. Needs an SLC cache.
    AtFold,
    /// The rest of the zone is programmed, in a series of device writes.
    Fill {
        /// Bytes of one device write: a multiple of the page size, or of the
        /// logical block if it goes through the write buffer.
        granularity_bytes: u32,
        /// Pause between one device write and the next.
        pause_ns: Nanos,
        /// A device write waits while host I/O is in flight, at most this long
        /// (dynamic intensity); `None`: it does not wait.
        yield_ns: Option<Nanos>,
        /// Device writes go through the write buffer, in line with those of the
        /// host; else straight to the flash.
        buffered: bool,
        /// Each device write takes a firmware core for as long as a write of the host of that
        /// size does, before the next. Only of those that go through the write buffer.
        takes_core: bool,
        /// How much of the zone is filled.
        extent: FillExtent,
    },
}

/// How much of a zone is filled at a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillExtent {
    /// All that the host did not write.
    Zone,
    /// The rest of storage elements that the host wrote in part; the zone gives back
    /// those that it did not write (SilentZNS, section 4). Needs a mapping with
    /// elements.
    Elements,
}

impl FinishConfig {
    /// Its device writes go through the write buffer.
    #[must_use]
    pub const fn is_buffered(&self) -> bool {
        matches!(self, Self::Fill { buffered: true, .. })
    }
}

/// What Zone Reset does (ConfZNS++, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetConfig {
    /// When blocks are erased.
    pub erase: EraseWhen,
    /// Which blocks are erased.
    pub extent: EraseExtent,
    /// Erasures are single-block steps; each waits while host I/O waits for
    /// its plane, at most this long. `None`: all are issued at once.
    /// Not for erasure at a write.
    pub preempt_ns: Option<Nanos>,
    /// What the firmware has to do for a reset besides; `None`: nothing.
    pub bookkeeping: Option<Bookkeeping>,
}

/// Work of the firmware on its tables for each zone that is reset, one zone
/// after another. The reset completes when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bookkeeping {
    /// Time for any zone.
    pub base_ns: Nanos,
    /// Time in addition for a zone that the host wrote to its capacity, and
    /// in proportion for others. What a finish filled does not count.
    pub full_zone_ns: Nanos,
    /// How long the write buffer starts no programs meanwhile, for a zone that
    /// was written to its capacity, and in proportion for others. At most
    /// `full_zone_ns`.
    pub drain_pause_ns: Nanos,
    /// Pauses into which that is divided, evenly spaced; at least 1.
    pub slices: u32,
    /// Time in addition for a zone that is not full and of which something has
    /// been programmed: what was begun on the flash is closed.
    pub open_zone_ns: Nanos,
    /// Before it begins, the write buffer starts no more programs, and those
    /// that run end.
    pub quiesce: bool,
}

/// When the blocks of a zone that was reset are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseWhen {
    /// Before the reset completes.
    Synchronous,
    /// At the first write to the zone: all its blocks.
    FirstZoneWrite,
    /// At the first write to each block: that block.
    FirstBlockWrite,
    /// In the background, after the reset completed.
    Background,
    /// When the numbers of free and of invalid zones say so. Not with
    /// [`MappingConfig::Direct`](super::MappingConfig::Direct), where a zone has its flash for ever.
    Thresholds(Thresholds),
}

/// When zones are erased by how many are free and how many are invalid: the
/// zone mapping method and preemptive zone reset (Jung et al., Electronics 12,
/// 798 (2023), sections 2.2.2 and 3.2). Both count within a group of zones that
/// share dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// With this many free zones or fewer, invalid zones are erased whole and
    /// the host waits (`T_free`). A zone is erased whole too when one is needed
    /// and none is free.
    pub free_zones: u32,
    /// With this many invalid zones or more, they are erased a row of blocks at
    /// a time while nothing of the host is pending (`T_invalid`), at least 1.
    /// `None`: never, which is the zone mapping method.
    pub invalid_zones: Option<u32>,
    /// When the number of free zones is looked at.
    pub evaluate: Evaluate,
    /// How many zones are erased whole before what waits goes on, at least 1;
    /// `None`: until more than `free_zones` are free.
    pub zones_at_once: Option<u32>,
    /// Which invalid zone is erased next.
    pub victim: Victim,
    /// Rows wait for pauses of the host that they fit in, as long as enough zones
    /// are free for the rate at which zones are given flash. What has been seen of
    /// both loses half of its weight in this time. Needs `invalid_zones`. `None`:
    /// rows are erased in any pause.
    pub adapt: Option<Nanos>,
}

/// When the number of free zones is compared with its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluate {
    /// When a zone is about to be given flash, before it is taken.
    Allocation,
    /// When a read or write arrives, after it has been given flash.
    Command,
    /// Whenever a zone has been given flash or has lost it, as the paper has it.
    Change,
}

/// Which invalid zone is erased next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that was reset first.
    Oldest,
    /// The one whose blocks were erased least, of equals the oldest. One that
    /// has been begun is erased to its end first.
    LeastWorn,
}

/// Which blocks of a zone are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseExtent {
    /// All of them.
    Full,
    /// Those that hold at least one programmed page.
    Partial,
}
