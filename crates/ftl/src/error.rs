//! What can go wrong.

use zonelab_device::RejectReason;
use zonelab_nvme::Status;

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FtlError {
    /// A setting is out of its range.
    #[error("{key} = {value}: must be {valid}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        valid: String,
    },
    /// The map takes more memory than it may.
    #[error(
        "the map of {blocks} blocks takes {} MiB of memory, and may take {} MiB",
        needed_bytes.div_ceil(1 << 20),
        most_bytes >> 20
    )]
    MapMemory {
        /// Logical blocks.
        blocks: u32,
        /// What it takes.
        needed_bytes: u64,
        /// What it may take: see
        /// [`map_memory_max_bytes`](crate::FtlSettings::map_memory_max_bytes).
        most_bytes: u64,
    },
    /// A rule for victims of somebody else gave no answer, or one that is none.
    #[error("victims by {policy}: {message}")]
    Victims {
        /// Name of the rule.
        policy: String,
        /// What is wrong.
        message: String,
    },
    /// The device does not have the namespace.
    #[error("there is no namespace {nsid}: the device has {namespaces}")]
    NoSuchNamespace {
        /// The one asked for.
        nsid: u32,
        /// Number of namespaces, from 1 on.
        namespaces: usize,
    },
    /// The namespace has no zones.
    #[error("namespace {nsid} is not zoned")]
    NotZoned {
        /// The namespace.
        nsid: u32,
    },
    /// More blocks than the map can tell apart.
    #[error(
        "the namespace has {blocks} blocks of {block_bytes} bytes, and the map can tell {most} \
         apart: format it with larger blocks, or use a smaller namespace"
    )]
    TooLarge {
        /// Blocks that can be written.
        blocks: u64,
        /// Most that there may be.
        most: u64,
        /// Size of a block.
        block_bytes: u32,
    },
    /// Metadata and reserve leave no data zone.
    #[error("the namespace has {zones} zones: at least {least} are needed")]
    TooFewZones {
        /// Zones of the namespace.
        zones: u32,
        /// Fewest that do.
        least: u32,
    },
    /// The drive allows too few zones to be active.
    #[error("the drive allows {limit} active zones: {needed} are needed for {what}")]
    TooFewActive {
        /// Its limit.
        limit: u32,
        /// What is needed.
        needed: u32,
        /// For what.
        what: &'static str,
    },
    /// Each queue writes a zone of its own, and there are no more of them.
    #[error(
        "{queues} queues write a zone each, and there can be no more: the drive allows {most_active} \
         more active zones beside those of the layer, and {reserved} are reserved, three of them \
         for the collector; let queues share a zone (placement shared-append), or format with more \
         reserved zones"
    )]
    TooManyQueues {
        /// Queues that there are.
        queues: u32,
        /// Zones that the drive lets queues have active: a number, or "any number of".
        most_active: String,
        /// Reserved zones.
        reserved: u32,
    },
    /// No anchor was found.
    #[error("zones 0 and 1 hold no anchor: format the drive first (`zonelab ftl format`)")]
    NotFormatted,
    /// An anchor of a later version.
    #[error("formatted as version {found}: this program knows {known}")]
    Version {
        /// The version found.
        found: u32,
        /// The version known.
        known: u32,
    },
    /// What was formatted does not fit the namespace.
    #[error("formatted with {what} {found}, and the namespace has {expected}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// As formatted.
        found: u64,
        /// As it is.
        expected: u64,
    },
    /// Metadata that were written are not there any more.
    #[error("zone {zone}, block {lba}: {what}")]
    Corrupt {
        /// The zone of the namespace.
        zone: u32,
        /// The block.
        lba: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Metadata are damaged, and nothing else says what they said.
    #[error("zone {zone}, block {lba}: {what}: it cannot be repaired, only formatted anew")]
    BeyondRepair {
        /// The zone of the namespace.
        zone: u32,
        /// The block.
        lba: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A command failed.
    #[error("{action} of zone {zone} at block {lba}: {status}")]
    Command {
        /// What was tried.
        action: &'static str,
        /// The zone of the namespace.
        zone: u32,
        /// The block.
        lba: u64,
        /// How it ended.
        status: Status,
    },
    /// The device has not answered, and never will.
    #[error("the device does not answer")]
    Stuck,
    /// The zones of the journal are too small.
    #[error("a zone of the journal has {blocks} blocks: at least {least} are needed")]
    JournalTooSmall {
        /// Blocks of the smallest.
        blocks: u32,
        /// Fewest that do.
        least: u32,
    },
    /// A zone that metadata cannot do without cannot be written.
    #[error("zone {zone} cannot be used: {what}")]
    DeadZone {
        /// The zone of the namespace.
        zone: u32,
        /// What it is needed for.
        what: &'static str,
    },
    /// More changes are pending than a checkpoint has room for, or several zones of the
    /// journal failed during one. What is durable can be opened again, which makes room.
    #[error("the journal is full: at most {most} changes may be pending during a checkpoint")]
    JournalFull {
        /// How many may be pending.
        most: u32,
    },
    /// The device is gone.
    #[error("the device does not take commands: {0}")]
    Gone(RejectReason),
}

impl FtlError {
    /// The drive has no room at present: nothing is wrong with a zone, and the same command
    /// may succeed later.
    #[must_use]
    pub const fn is_no_room(&self) -> bool {
        matches!(
            self,
            Self::Command {
                status: Status::CAPACITY_EXCEEDED,
                ..
            }
        )
    }

    /// A setting is out of its range.
    pub(crate) fn setting(
        key: &'static str,
        value: impl ToString,
        valid: impl Into<String>,
    ) -> Self {
        Self::Setting {
            key,
            value: value.to_string(),
            valid: valid.into(),
        }
    }
}
