//! How an operation of a test drive fails.

use zonelab_device::{Nanos, RejectReason};
use zonelab_nvme::Status;
use zonelab_ssd::faults::LostCompletions;

/// Why an operation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TestDriveError {
    /// The drive carried the command out, and it ended with this status: what NVMe
    /// says about a write that is not at the write pointer, a block that cannot be
    /// read, and so on.
    #[error("the command ended with {0}")]
    Status(Status),
    /// The drive has no power. A command that was under way when it went may have been
    /// carried out, in part, or not at all: nobody knows before
    /// [`TestDrive::restart`](super::TestDrive::restart).
    #[error("the drive has lost power")]
    PowerLost,
    /// A fault lost the completion, and nothing else is under way: the command
    /// would wait for ever. It was carried out.
    #[error("the drive does not answer any more: at {at} nothing is under way{}", because(.lost))]
    NoAnswer {
        /// The time on the drive's clock.
        at: Nanos,
        /// What faults have lost, this completion among it.
        lost: Option<LostCompletions>,
    },
    /// No loss of power of a crash test came while something of this kind was under way, so
    /// that the test says nothing about it.
    #[error("none of {losses} losses of power came while this was under way: {kind}")]
    NeverMet {
        /// A command, as faults name it, or what the work has marked.
        kind: &'static str,
        /// Losses of power.
        losses: u64,
    },
    /// Data is no whole number of blocks, or none.
    #[error("{bytes} bytes are no whole blocks of {block_bytes} bytes, from 1 to {most}")]
    Length {
        /// Bytes that were given.
        bytes: usize,
        /// Bytes of a block.
        block_bytes: u32,
        /// Most blocks of one command.
        most: u32,
    },
    /// There is no such zone, or the drive has none.
    #[error("there is no zone {zone}: the drive has {zones}")]
    NoSuchZone {
        /// The zone that was named.
        zone: u32,
        /// Zones that there are; 0: the drive is a conventional one.
        zones: u32,
    },
    /// The drive did not take the command.
    #[error("the drive did not take the command: {0}")]
    Rejected(RejectReason),
}

fn because(lost: &Option<LostCompletions>) -> String {
    let lost = lost.as_ref();
    lost.map_or_else(String::new, |lost| format!("; {lost}"))
}

/// Why there is no drive of that kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TestDriveSettingError {
    /// Zones do not fit on its flash in whole pages.
    #[error(
        "zone_capacity_bytes is {bytes}: it has to be a multiple of {unit} from {unit} to {most}"
    )]
    ZoneCapacity {
        /// What was given.
        bytes: u64,
        /// Bytes of a page on each die.
        unit: u64,
        /// Most that is possible.
        most: u64,
    },
    /// No such blocks.
    #[error("block_bytes is {bytes}: it has to be 512 or 4096")]
    BlockBytes {
        /// What was given.
        bytes: u32,
    },
    /// The profile that follows from the settings is none.
    #[error("{0}")]
    Profile(String),
    /// A plan of faults is none, or is about something that the drive does not have.
    #[error("{0}")]
    Faults(String),
}
