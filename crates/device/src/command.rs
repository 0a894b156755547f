//! Commands as host software means them, already parsed and with plain counts.

use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};

/// A logical block address within a namespace.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A zone by its position in the namespace: zone 0 starts at LBA 0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

/// A namespace identifier (NSID). The first namespace is 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(pub u32);

impl NamespaceId {
    /// The namespace of a drive with a single one.
    pub const FIRST: Self = Self(1);
}

/// A submission queue of one device.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u16);

/// What the submitter calls a command; it comes back in the completion and
/// means nothing to the device.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// One command for one namespace.
///
/// Block counts are plain: 1 means one block. (On the wire, NLB is zero based.)
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The namespace it is for.
    pub nsid: NamespaceId,
    /// What to do.
    pub op: Op,
    /// Placement identifier of a write (PID, Data Placement Directive): which
    /// reclaim unit handle it goes through. 0 is what a write without directive
    /// has. Other operations, and namespaces without flexible data placement,
    /// ignore it.
    pub placement: u16,
}

impl Command {
    /// `op` for the first namespace.
    #[must_use]
    pub const fn new(op: Op) -> Self {
        Self::on(NamespaceId::FIRST, op)
    }

    /// `op` for a namespace.
    #[must_use]
    pub const fn on(nsid: NamespaceId, op: Op) -> Self {
        Self {
            nsid,
            op,
            placement: 0,
        }
    }

    /// The same with a placement identifier.
    #[must_use]
    pub const fn placed(self, placement: u16) -> Self {
        Self { placement, ..self }
    }
}

/// The operation of a [`Command`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read `nlb` blocks from `slba` (NVM command set, Read).
    Read {
        /// First block.
        slba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Write `nlb` blocks at `slba`, which must be the write pointer of its zone,
    /// or in its random write area if it has one.
    Write {
        /// First block.
        slba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Zone Append: write `nlb` blocks at the write pointer of the zone that
    /// starts at `zslba`; the completion carries the address assigned.
    Append {
        /// First block of the zone.
        zslba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Write Zeroes: as a write of `nlb` blocks of zeros, which the host does
    /// not send. In a zone, at its write pointer.
    WriteZeroes {
        /// First block.
        slba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Compare `nlb` blocks from `slba` with the data buffer. Ends with Compare
    /// Failure if they differ.
    Compare {
        /// First block.
        slba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Verify: read `nlb` blocks from `slba`, and tell the host only how that ended.
    Verify {
        /// First block.
        slba: Lba,
        /// Number of blocks, at least 1.
        nlb: u32,
    },
    /// Dataset Management with the attribute Deallocate (AD): the host has no
    /// use for the data of some ranges. They are in the data buffer, 16 bytes
    /// each, in the layout of the specification.
    Deallocate {
        /// Number of ranges, 1 to 256.
        ranges: u16,
    },
    /// Copy blocks within the namespace. The source ranges are in the data
    /// buffer, 32 bytes each, in descriptor format 0; they follow each other
    /// at the destination. In a zone, that is its write pointer. Of a copy that
    /// fails, the result is the first range that was not copied.
    Copy {
        /// First block of the destination (SDLBA).
        sdlba: Lba,
        /// Number of source ranges, at least 1.
        ranges: u16,
    },
    /// Make written data durable.
    Flush,
    /// Zone Management Send.
    ZoneSend {
        /// First block of the zone; ignored if `select_all`. With Flush Explicit
        /// ZRWA, the last block to commit.
        slba: Lba,
        /// What to do with the zone.
        action: ZoneSendAction,
        /// Apply it to every zone in a state that the action selects.
        select_all: bool,
    },
    /// Zone Management Send with ZRWA Allocation (ZRWAA): the action, and a
    /// random write area for the zone. Open Zone or Set Zone Descriptor
    /// Extension, of a single zone.
    ZrwaSend {
        /// First block of the zone.
        slba: Lba,
        /// What to do with the zone.
        action: ZoneSendAction,
    },
    /// Zone Management Receive: a zone report into the data buffer, in the
    /// layout of the specification. The buffer's length bounds the report.
    ZoneReceive {
        /// The report starts at the zone that contains this block.
        slba: Lba,
        /// Which zones it lists.
        filter: ReportFilter,
        /// Count only the zones that fit (Partial Report).
        partial: bool,
        /// Include zone descriptor extensions (Extended Report Zones).
        extended: bool,
    },
    /// I/O Management Receive with Reclaim Unit Handle Status: into the data
    /// buffer, in the layout of the specification. The buffer's length bounds it.
    HandleStatus,
    /// I/O Management Send with Reclaim Unit Handle Update: the reclaim unit
    /// handles of some placement identifiers go on to other, empty reclaim units.
    /// The identifiers are in the data buffer, 2 bytes each.
    HandleUpdate {
        /// Number of placement identifiers, at most 65,536; 0: nothing is done.
        handles: u32,
    },
}

impl Op {
    /// The first block that it concerns: of an append or management operation
    /// that of the zone, of a copy that of the destination. 0 for a flush, a
    /// deallocation, and a select-all.
    #[must_use]
    pub const fn first_block(&self) -> u64 {
        match *self {
            Self::Read { slba, .. }
            | Self::Write { slba, .. }
            | Self::Append { zslba: slba, .. }
            | Self::WriteZeroes { slba, .. }
            | Self::Compare { slba, .. }
            | Self::Verify { slba, .. }
            | Self::Copy { sdlba: slba, .. }
            | Self::ZoneSend {
                slba,
                select_all: false,
                ..
            }
            | Self::ZrwaSend { slba, .. }
            | Self::ZoneReceive { slba, .. } => slba.0,
            Self::Flush
            | Self::Deallocate { .. }
            | Self::ZoneSend { .. }
            | Self::HandleStatus
            | Self::HandleUpdate { .. } => 0,
        }
    }

    /// Number of blocks of an operation on one range of blocks; 0 for others.
    #[must_use]
    pub const fn nlb(&self) -> u32 {
        match *self {
            Self::Read { nlb, .. }
            | Self::Write { nlb, .. }
            | Self::Append { nlb, .. }
            | Self::WriteZeroes { nlb, .. }
            | Self::Compare { nlb, .. }
            | Self::Verify { nlb, .. } => nlb,
            _ => 0,
        }
    }
}
