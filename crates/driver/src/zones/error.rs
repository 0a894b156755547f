//! What can go wrong with a zone, and what comes back then.

use core::fmt;

use zonelab_device::{Buf, Lba, NamespaceId, Nanos, QueuePair, RejectReason, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::state::Unknown;
use super::zone::Zone;

/// Why something was not done with a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// The namespace has no zones, or does not exist.
    #[error("the device has no zoned namespace {}", .nsid.0)]
    NotZoned {
        /// The namespace asked for.
        nsid: NamespaceId,
    },
    /// The namespace has no such zone.
    #[error("there is no zone {}: the namespace has {zones}", .zone.0)]
    NoSuchZone {
        /// The zone asked for.
        zone: ZoneId,
        /// Number of zones.
        zones: u32,
    },
    /// There is a handle of this zone already.
    #[error("zone {} has a handle already: only one may write to it", .zone.0)]
    Taken {
        /// The zone.
        zone: ZoneId,
    },
    /// The buffer is not a whole number of blocks, or is empty.
    #[error("{bytes} bytes of data are not 1 or more blocks of {lba_bytes} bytes")]
    NotBlocks {
        /// Bytes of the buffer.
        bytes: usize,
        /// Bytes of a block.
        lba_bytes: u32,
    },
    /// One command cannot move that much.
    #[error("{bytes} bytes of data are too much for one command: at most {most} bytes")]
    TooLarge {
        /// Bytes of the buffer.
        bytes: usize,
        /// Most bytes of such a command (MDTS, or ZASL for an append).
        most: u32,
    },
    /// The zone has no room for that much data.
    #[error("{blocks} blocks do not fit into zone {}, which has room for {room}", .zone.0)]
    NoRoom {
        /// The zone.
        zone: ZoneId,
        /// Blocks of the data.
        blocks: u64,
        /// Blocks that can still be written.
        room: u64,
    },
    /// Nothing is written there: a read would leave the zone, or pass its write pointer.
    #[error(
        "{blocks} blocks from {} are not all written: zone {} has blocks {} to {} (exclusive)",
        .lba.0, .zone.0, .start.0, .end.0
    )]
    NotWritten {
        /// The zone.
        zone: ZoneId,
        /// First block of the read.
        lba: Lba,
        /// Blocks of the read.
        blocks: u64,
        /// First block of the zone.
        start: Lba,
        /// The block behind the last that can be read.
        end: Lba,
    },
    /// Zones cannot have random write areas that are committed explicitly.
    #[error("zone {} can have no random write area: {why}", .zone.0)]
    NoArea {
        /// The zone.
        zone: ZoneId,
        /// What is missing.
        why: &'static str,
    },
    /// The zone has a random write area: its write pointer moves by commits.
    #[error("zone {} has a random write area, so that writes do not move its write pointer", .zone.0)]
    HasArea {
        /// The zone.
        zone: ZoneId,
    },
    /// A write would leave the random write area.
    #[error(
        "{blocks} blocks from {} are not all in the random write area of zone {}, blocks {} to {} \
         (exclusive)",
        .lba.0, .zone.0, .start.0, .end.0
    )]
    NotInArea {
        /// The zone.
        zone: ZoneId,
        /// First block of the write.
        lba: Lba,
        /// Blocks of the write.
        blocks: u64,
        /// First block of the area: the write pointer.
        start: Lba,
        /// The block behind the last of the area.
        end: Lba,
    },
    /// The write pointer cannot be moved there.
    #[error(
        "zone {} cannot be committed up to block {} (exclusive): from {} in steps of \
         {granularity_lbas} blocks to {} is possible",
        .zone.0, .end.0, .start.0, .most.0
    )]
    NotCommittable {
        /// The zone.
        zone: ZoneId,
        /// The block behind the last to be committed.
        end: Lba,
        /// The write pointer.
        start: Lba,
        /// The end of the area.
        most: Lba,
        /// Blocks by which write pointers move (ZRWAFG).
        granularity_lbas: u32,
    },
    /// The zone is in a state that does not allow it.
    #[error("zone {} is in state {:#x}, which does not allow this", .zone.0, .state.0)]
    WrongState {
        /// The zone.
        zone: ZoneId,
        /// Its state.
        state: ZoneState,
    },
    /// A command failed before: only a refresh tells what the zone is like now.
    #[error("what zone {} is like is not known since a command failed: refresh the handle", .zone.0)]
    NotKnown {
        /// The zone.
        zone: ZoneId,
    },
    /// As many commands are in flight as [`Settings::in_flight`](super::Settings::in_flight)
    /// allows.
    #[error("{limit} commands are in flight, and that is the limit")]
    TooManyInFlight {
        /// The limit.
        limit: u16,
    },
    /// The queue pair did not take the command.
    #[error("the command was not taken: {0}")]
    NotTaken(RejectReason),
    /// The drive refused the command, or it failed.
    #[error("{command} failed: {status}")]
    Failed {
        /// What was to be done.
        command: &'static str,
        /// How it ended.
        status: Status,
    },
    /// The command did not end in time. It may still be carried out.
    #[error("{command} has not ended after {after}")]
    TimedOut {
        /// What was to be done.
        command: &'static str,
        /// How long it was waited for.
        after: Nanos,
    },
    /// The drive appended the data where nobody expected it: another host wrote to the zone.
    #[error(
        "zone {}: data was appended at {}, expected between {} and {} (exclusive)",
        .zone.0, .lba.0, .start.0, .end.0
    )]
    Misplaced {
        /// The zone.
        zone: ZoneId,
        /// Where the data is.
        lba: Lba,
        /// First block where it could have been.
        start: Lba,
        /// The block behind the last.
        end: Lba,
    },
    /// A zone report contradicts itself or what the namespace is.
    #[error("a zone report has {field} {value:#x}, valid is {valid}")]
    BadReport {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        valid: &'static str,
    },
}

/// A command on data that did not succeed, with its buffer.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Why.
    pub error: ZoneError,
    /// The buffer. `None` only after [`ZoneError::TimedOut`]: the device may still use it, and
    /// it is dropped when the command ends.
    pub data: Option<Buf>,
}

impl Refused {
    pub(super) fn new(error: ZoneError, data: Buf) -> Self {
        let data = Some(data);
        Self { error, data }
    }
}

impl From<Refused> for ZoneError {
    /// The buffer is dropped.
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

/// A move between states that did not succeed, with the handle.
pub struct MoveFailed<'ns, Q: QueuePair> {
    /// Why.
    pub error: ZoneError,
    /// The zone, in whichever state it may be.
    pub zone: Zone<'ns, Q, Unknown>,
}

impl<Q: QueuePair> fmt::Debug for MoveFailed<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("MoveFailed");
        fields.field("error", &self.error).field("zone", &self.zone);
        fields.finish()
    }
}

impl<Q: QueuePair> fmt::Display for MoveFailed<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<Q: QueuePair> core::error::Error for MoveFailed<'_, Q> {}

impl<Q: QueuePair> From<MoveFailed<'_, Q>> for ZoneError {
    /// The handle is dropped.
    fn from(failed: MoveFailed<'_, Q>) -> Self {
        failed.error
    }
}
