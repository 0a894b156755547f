//! What a file layer is told: zones, limits, and how it places files.

use core::ops::Range;

use serde::{Serialize, Serializer};
use zonelab_device::{DeviceInfo, NamespaceId};

use super::FilesError;

/// How long a file will live, as whoever writes it expects: `RocksDB`'s
/// `Env::WriteLifeTimeHint`, shortest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// Nobody said.
    #[default]
    NotSet,
    /// There is nothing to be said about it.
    None,
    /// Of write-ahead logs. They have priority ([`FilesConfig::wal_zones`]).
    Short,
    /// Of tables of the first levels.
    Medium,
    /// Of tables of the next level.
    Long,
    /// Of tables below.
    Extreme,
}

impl Lifetime {
    /// All, shortest first.
    pub const ALL: [Self; 6] = [
        Self::NotSet,
        Self::None,
        Self::Short,
        Self::Medium,
        Self::Long,
        Self::Extreme,
    ];

    pub(super) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    pub(super) fn code(self) -> u8 {
        self as u8
    }
}

/// When zones that have little room left are finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishWhen {
    /// When a new zone is wanted and the budget of active zones is used up: of
    /// the zones that nobody writes, the one with least room left. What the
    /// `SilentZNS` paper (section 5) says of `ZenFS`.
    #[default]
    AtLimit,
    /// Whenever a file that is no write-ahead log looks for a zone: all zones
    /// that nobody writes. What the source of `ZenFS` does
    /// (`ApplyFinishThreshold` in `AllocateIOZone`). At the limit, a zone of the
    /// file's own lifetime is then preferred to finishing one.
    Eager,
}

/// What a file layer runs on, and how it places files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilesConfig {
    /// The zoned namespace.
    #[serde(serialize_with = "nsid")]
    pub namespace: NamespaceId,
    /// The device keeps data: contents are [`Content::Bytes`](crate::Content).
    /// Otherwise they are [`Content::Sized`](crate::Content), and nothing can be mounted.
    pub keeps_data: bool,
    /// Zones to use, counted from the start of the namespace; `None`: all.
    pub zones: Option<Range<u32>>,
    /// The first so many of them hold the metadata log, one at a time. At least 2.
    pub meta_zones: u32,
    /// A zone may be finished when at most this share of its capacity is left, in
    /// percent: 0 never, 99 from 1 % of occupancy on.
    pub finish_threshold_percent: u32,
    /// When that is done.
    pub finish_when: FinishWhen,
    /// Largest write or read command in bytes. The device's limit (MDTS) holds too.
    pub io_bytes: u32,
    /// Write commands that one file has in flight while more is appended to it. 0: an
    /// append returns when they have completed, as in `ZenFS`. With more than one,
    /// the device must take commands in the order of their submission.
    pub write_depth: u32,
    /// Most active zones, metadata included; `None`: what the device allows.
    pub max_active: Option<u32>,
    /// Most open zones, metadata included; `None`: what the device allows.
    pub max_open: Option<u32>,
    /// Open zones that only files of [`Lifetime::Short`] get, as long as others
    /// still have one. `ZenFS` keeps one for write-ahead logs.
    pub wal_zones: u32,
    /// Open zones explicitly before the first write.
    pub explicit_open: bool,
}

/// A namespace as its number.
fn nsid<S: Serializer>(namespace: &NamespaceId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(namespace.0)
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            namespace: NamespaceId::FIRST,
            keeps_data: false,
            zones: None,
            meta_zones: 3,
            finish_threshold_percent: 0,
            finish_when: FinishWhen::AtLimit,
            io_bytes: 1 << 20,
            write_depth: 1,
            max_active: None,
            max_open: None,
            wal_zones: 1,
            explicit_open: false,
        }
    }
}

impl FilesConfig {
    /// Checks that it fits a device.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self, info: &DeviceInfo) -> Result<(), FilesError> {
        Shape::new(info, self).map(drop)
    }
}

/// A configuration on a device: sizes and limits that hold.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) lba_bytes: u64,
    /// Distance between zone starts.
    pub(super) zone_lbas: u64,
    pub(super) capacity_lbas: u64,
    /// All zones, metadata first.
    pub(super) zones: Range<u32>,
    pub(super) meta_zones: Range<u32>,
    pub(super) data_zones: Range<u32>,
    /// Largest command.
    pub(super) io_lbas: u64,
    /// Active zones for data; `u32::MAX`: no limit.
    pub(super) max_active: u32,
    /// Open zones for data.
    pub(super) max_open: u32,
    /// Open zones for data that is in no write-ahead log.
    pub(super) max_open_but_wal: u32,
}

impl Shape {
    pub(super) fn new(info: &DeviceInfo, config: &FilesConfig) -> Result<Self, FilesError> {
        let namespace = config.namespace.0;
        let of = info
            .namespace(config.namespace)
            .ok_or(FilesError::NoSuchNamespace {
                namespace,
                namespaces: info.namespaces.len(),
            })?;
        let zoned = of.zoned.ok_or(FilesError::NotZoned { namespace })?;
        let all = 0..zoned.zones;
        let zones = config.zones.clone().unwrap_or(all.clone());
        if zones.start >= zones.end || zones.end > all.end {
            let valid = format!("a range within 0..{}", all.end);
            return refuse("zones", format!("{}..{}", zones.start, zones.end), valid);
        }
        let count = zones.end - zones.start;
        if config.meta_zones < 2 || config.meta_zones >= count {
            let valid = format!("at least 2, and fewer than the {count} zones there are");
            return refuse("meta_zones", config.meta_zones, valid);
        }
        if config.finish_threshold_percent > 100 {
            let value = config.finish_threshold_percent;
            return refuse("finish_threshold_percent", value, "0 to 100");
        }
        let lba_bytes = u64::from(of.lba_bytes);
        let io_bytes = config.io_bytes.min(info.max_transfer_bytes);
        let io_lbas = u64::from(io_bytes) / lba_bytes;
        if io_lbas == 0 {
            let valid = format!("at least a logical block of {lba_bytes} bytes");
            return refuse("io_bytes", io_bytes, valid);
        }
        // One is always the metadata log's.
        let max_active = least(config.max_active, zoned.max_active);
        let max_open = least(config.max_open, zoned.max_open).min(max_active);
        if max_active < 2 {
            return refuse("max_active", max_active, "at least 2: metadata and data");
        }
        if max_open < 2 {
            return refuse("max_open", max_open, "at least 2: metadata and data");
        }
        let but_one = |limit: u32| if limit == u32::MAX { limit } else { limit - 1 };
        let max_open = but_one(max_open);
        let meta_end = zones.start + config.meta_zones;
        Ok(Self {
            lba_bytes,
            zone_lbas: zoned.zone_size_lbas,
            capacity_lbas: zoned.zone_capacity_lbas,
            meta_zones: zones.start..meta_end,
            data_zones: meta_end..zones.end,
            zones,
            io_lbas,
            max_active: but_one(max_active),
            max_open,
            max_open_but_wal: max_open.saturating_sub(config.wal_zones).max(1),
        })
    }

    /// Blocks that `bytes` take.
    pub(super) fn lbas_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.lba_bytes)
    }

    /// First block of a zone.
    pub(super) fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zone_lbas
    }
}

/// The lower of two limits; `None`: there is none.
fn least(a: Option<u32>, b: Option<u32>) -> u32 {
    a.unwrap_or(u32::MAX).min(b.unwrap_or(u32::MAX))
}

fn refuse<T>(
    key: &'static str,
    value: impl ToString,
    valid: impl Into<String>,
) -> Result<T, FilesError> {
    Err(FilesError::Config {
        key,
        value: value.to_string(),
        valid: valid.into(),
    })
}
