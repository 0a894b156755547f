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
}

impl Command {
    /// `op` for the first namespace.
    #[must_use]
    pub const fn new(op: Op) -> Self {
        Self {
            nsid: NamespaceId::FIRST,
            op,
        }
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
    /// Write `nlb` blocks at `slba`, which must be the write pointer of its zone.
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
    /// Make written data durable.
    Flush,
    /// Zone Management Send.
    ZoneSend {
        /// First block of the zone; ignored if `select_all`.
        slba: Lba,
        /// What to do with the zone.
        action: ZoneSendAction,
        /// Apply it to every zone in a state that the action selects.
        select_all: bool,
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
}

impl Op {
    /// The first block that it concerns: of an append or management operation
    /// that of the zone. 0 for a flush, and for a select-all.
    #[must_use]
    pub const fn first_block(&self) -> u64 {
        match *self {
            Self::Read { slba, .. }
            | Self::Write { slba, .. }
            | Self::Append { zslba: slba, .. }
            | Self::ZoneSend {
                slba,
                select_all: false,
                ..
            }
            | Self::ZoneReceive { slba, .. } => slba.0,
            Self::Flush | Self::ZoneSend { .. } => 0,
        }
    }

    /// Number of blocks that a read, write or append moves; 0 for others.
    #[must_use]
    pub const fn nlb(&self) -> u32 {
        match *self {
            Self::Read { nlb, .. } | Self::Write { nlb, .. } | Self::Append { nlb, .. } => nlb,
            _ => 0,
        }
    }
}
