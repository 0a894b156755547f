//! What can go wrong with files.

use serde::Serialize;
use zonelab_device::RejectReason;
use zonelab_nvme::Status;

/// Why something could not be done with files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A setting is out of its range.
    #[error("{key} = {value}: must be {valid}")]
    Config {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        valid: String,
    },
    /// The device does not have the namespace.
    #[error("there is no namespace {namespace}: the device has {namespaces}")]
    NoSuchNamespace {
        /// The one asked for.
        namespace: u32,
        /// Number of namespaces, from 1 on.
        namespaces: usize,
    },
    /// The namespace has no zones.
    #[error("namespace {namespace} is not zoned")]
    NotZoned {
        /// The namespace.
        namespace: u32,
    },
    /// A device that keeps no data cannot be mounted.
    #[error("the device keeps no data: there is nothing to mount")]
    KeepsNothing,
    /// No zone of the metadata log holds a file system.
    #[error("zones {first} to {last} hold no complete metadata log: format first")]
    NotFormatted {
        /// First zone of the log.
        first: u32,
        /// Last zone of the log.
        last: u32,
    },
    /// What was formatted has another shape than what is mounted.
    #[error("formatted with {what} {found}, mounted with {expected}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// As formatted.
        found: u64,
        /// As configured.
        expected: u64,
    },
    /// Nothing can be allocated.
    #[error(transparent)]
    OutOf(#[from] Box<Shortage>),
    /// There is a file of that name.
    #[error("file {name:?} exists")]
    Exists {
        /// The name.
        name: String,
    },
    /// There is no file of that name.
    #[error("there is no file {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// A name cannot be one.
    #[error("file name of {len} bytes: must be 1 to {max}")]
    Name {
        /// Length in bytes.
        len: usize,
        /// The longest.
        max: usize,
    },
    /// The file is being written: it cannot be deleted or replaced.
    #[error("file {name:?} is being written")]
    InUse {
        /// The name.
        name: String,
    },
    /// The file was deleted while a reader had it.
    #[error("file {name:?} was deleted")]
    Deleted {
        /// Its name.
        name: String,
    },
    /// A read goes beyond the end.
    #[error("read of {len} bytes at {offset} of file {name:?}, which has {file_len}")]
    BeyondEnd {
        /// The file.
        name: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Bytes of the file.
        file_len: u64,
    },
    /// Bytes for a device that keeps none, or sizes for one that keeps them.
    #[error("the device {}, and the content is {}", if *.keeps_data { "keeps data" } else { "keeps no data" }, if *.keeps_data { "only a size" } else { "bytes" })]
    WrongContent {
        /// What the device does.
        keeps_data: bool,
    },
    /// A command failed.
    #[error("{action} at LBA {lba:#x}, zone {zone} of namespace {namespace}: {status}")]
    Command {
        /// What it did: `write`, `read`, `flush`, `reset`, `finish`, `close`, `open`, `report`.
        action: &'static str,
        /// The namespace.
        namespace: u32,
        /// The zone, counted from the start of the namespace.
        zone: u32,
        /// First block, counted from the start of the namespace.
        lba: u64,
        /// How it ended.
        status: Status,
    },
    /// Part of a file is on the device no more: its zone is offline, or ends
    /// before it.
    #[error("file {name:?} has lost its blocks from {lba} on, in zone {zone}")]
    Lost {
        /// The file.
        name: String,
        /// The zone.
        zone: u32,
        /// First block.
        lba: u64,
    },
    /// The metadata log holds something that cannot be true.
    #[error("metadata in zone {zone}, block {lba}: {what}")]
    Corrupt {
        /// The zone.
        zone: u32,
        /// First block of the batch.
        lba: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// No zone of the metadata log can be written any more. Files can be read.
    #[error("no zone of the metadata log can be written any more; the last failed with: {last}")]
    MetadataFailed {
        /// How the last write of metadata ended.
        last: Status,
    },
    /// What is to be known of all files does not fit a zone of the metadata log.
    #[error("metadata of {bytes} bytes does not fit a zone of {zone_bytes}")]
    MetadataTooLarge {
        /// Size of the snapshot.
        bytes: u64,
        /// Capacity of a zone.
        zone_bytes: u64,
    },
    /// The device does not take commands any more.
    #[error("{0}")]
    Gone(RejectReason),
}

/// The resource that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scarce {
    /// Valid data takes all there is.
    Space,
    /// There is space, in zones that cannot be written on: finished ones, and
    /// zones in which some data is still valid.
    Zones,
    /// There are empty zones, but as many zones are active as may be, and none
    /// of them can be written or finished.
    ActiveZones,
}

/// Nothing can be allocated, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {empty_zones} of {zones} zones empty, {active_zones} active (most: {}), {dead_zones} read-only or offline; {valid_bytes} bytes valid, {invalid_bytes} invalid in zones with valid data, {unusable_bytes} lost to finished and dead zones", describe(*.scarce), limit(*.max_active))]
pub struct Shortage {
    /// What is used up.
    pub scarce: Scarce,
    /// Zones for data.
    pub zones: u32,
    /// Of them, empty.
    pub empty_zones: u32,
    /// Of them, active.
    pub active_zones: u32,
    /// How many may be; `u32::MAX`: no limit.
    pub max_active: u32,
    /// Zones that are read-only or offline.
    pub dead_zones: u32,
    /// Bytes that belong to files.
    pub valid_bytes: u64,
    /// Bytes that belonged to files.
    pub invalid_bytes: u64,
    /// Bytes behind the write pointers of finished and dead zones.
    pub unusable_bytes: u64,
}

fn describe(scarce: Scarce) -> &'static str {
    match scarce {
        Scarce::Space => "out of space",
        Scarce::Zones => "out of zones",
        Scarce::ActiveZones => "out of active zones",
    }
}

fn limit(max: u32) -> String {
    match max {
        u32::MAX => "unlimited".to_owned(),
        max => max.to_string(),
    }
}
