//! A drive's configuration, resolved and consistent: what the model is built from.
//!
//! Nothing here is optional in the sense of "to be defaulted": defaults and
//! checks belong to [`crate::profile`], which turns a TOML file into a
//! [`DriveConfig`] or says what is wrong with it. Code that builds one by hand
//! (tests, fuzzing) calls [`crate::profile::check`] on it.

mod buffer;
mod front_end;
mod log;
mod management;
mod mapping;
mod media;
mod slc_cache;

use core::ops::Range;

use zonelab_device::{CopyLimits, NamespaceId};

pub use buffer::*;
pub use front_end::*;
pub use log::*;
pub use management::*;
pub use mapping::*;
pub use media::*;
pub use slc_cache::*;

/// Everything that describes one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveConfig {
    /// Name of the profile.
    pub name: String,
    /// Flash geometry.
    pub geometry: Geometry,
    /// Logical block size in bytes: 512 or 4096.
    pub lba_bytes: u32,
    /// Zones and their limits.
    pub zones: ZonesConfig,
    /// Namespaces, NSID 1 first, that divide the zones among them; empty: a
    /// single one with all zones and the limits of `zones`. See
    /// [`DriveConfig::namespaces`].
    pub namespaces: Vec<NamespaceConfig>,
    /// What one Copy may do; `None`: the drive has no Copy.
    pub copy: Option<CopyLimits>,
    /// Flash and bus timing.
    pub media: MediaConfig,
    /// Command processing.
    pub front_end: FrontEndConfig,
    /// Where writes wait for the flash; `None`: they complete when they are programmed.
    pub write_buffer: Option<WriteBufferConfig>,
    /// Blocks of the flash that take what leaves the write buffer, as SLC, until it is folded;
    /// `None`: it goes to the blocks of its zones. Needs a write buffer.
    pub slc_cache: Option<SlcCacheConfig>,
    /// What Zone Finish does to the flash.
    pub finish: FinishConfig,
    /// What Zone Reset does to the flash.
    pub reset: ResetConfig,
    /// Which flash a zone stands on.
    pub mapping: MappingConfig,
    /// How and when a zone comes by its flash, where mapping is not direct.
    pub allocation: AllocationConfig,
    /// Whether written data is kept.
    pub data: DataStore,
}

impl DriveConfig {
    /// Whether the drive has flexible data placement: a namespace of it has reclaim unit
    /// handles. All of its namespaces are conventional then.
    #[must_use]
    pub fn has_handles(&self) -> bool {
        let has = |of: &NamespaceConfig| match of.kind {
            NamespaceKind::Conventional(log) => log.handles.is_some(),
            _ => false,
        };
        self.namespaces.iter().any(has)
    }

    /// Whether the log of a namespace keeps how old what it holds is.
    pub(crate) fn has_ages(&self) -> bool {
        let has = |of: &NamespaceConfig| {
            matches!(of.kind, NamespaceKind::Conventional(log)
                if log.collection == CollectionPolicy::CostBenefit)
        };
        self.namespaces.iter().any(has)
    }

    /// Whether programs of a zone go to the dies with the least work.
    #[must_use]
    pub fn places_by_work(&self) -> bool {
        let buffer = self.write_buffer;
        buffer.is_some_and(|buffer| buffer.placement == Placement::LeastWork)
    }

    /// Pages that one program of the write buffer takes: one, or those of all planes
    /// of a die that follow each other in a zone.
    #[must_use]
    pub fn pages_per_program(&self) -> u32 {
        let whole_die = self.media.planes == PlaneMode::MultiPlane
            && self.zones.stripe == StripeOrder::PlaneFirst;
        if whole_die { self.geometry.planes } else { 1 }
    }

    /// The namespaces that the drive has, NSID 1 first: at least one.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceConfig> {
        if self.namespaces.is_empty() {
            vec![NamespaceConfig::whole(&self.zones)]
        } else {
            self.namespaces.clone()
        }
    }

    /// The zones of a namespace, counted over the drive; `None`: there is no
    /// such namespace.
    #[must_use]
    pub fn zones_of(&self, nsid: NamespaceId) -> Option<Range<u32>> {
        let index = nsid.0.checked_sub(1)? as usize;
        let namespaces = self.namespaces();
        let first = namespaces.iter().take(index).map(|of| of.zones).sum();
        namespaces
            .get(index)
            .map(|namespace| first..first + namespace.zones)
    }
}

/// A namespace: the next zones of the drive, with addresses from 0 and limits
/// of their own (MAR and MOR are fields of the zoned Identify Namespace data,
/// ZNS command set 1.1, section 4.1.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// What hosts see of its zones.
    pub kind: NamespaceKind,
    /// Number of its zones, at least 1.
    pub zones: u32,
    /// Largest number of active zones (MAR + 1); `None`: unlimited.
    pub max_active: Option<u32>,
    /// Largest number of open zones (MOR + 1); `None`: unlimited. At most `max_active`.
    pub max_open: Option<u32>,
}

/// What hosts see of the zones of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceKind {
    /// The zones (ZNS command set).
    Zoned,
    /// Blocks that can be written in any order (NVM command set): the zones
    /// are those of a log that the drive keeps. See `docs/models/conventional.md`.
    Conventional(LogConfig),
}

impl NamespaceConfig {
    /// Fewest spare zones of a conventional namespace: the host and garbage
    /// collection write to one each, and a third makes sure that there is
    /// something to collect.
    pub const SPARE_ZONES_MIN: u32 = 3;

    /// Fewest spare zones of a conventional namespace with such handles: each handle,
    /// and each stream of the collection, writes to a zone of its own, and one more
    /// makes sure that there is something to collect.
    #[must_use]
    pub const fn spare_zones_min(handles: Option<ReclaimUnitHandles>) -> u32 {
        match handles {
            None => Self::SPARE_ZONES_MIN,
            Some(handles) => {
                let collected = match handles.isolation {
                    Isolation::Initially => 1,
                    Isolation::Persistently => handles.count,
                };
                handles.count.saturating_add(collected).saturating_add(1)
            }
        }
    }

    /// Logical blocks that a host can address.
    #[must_use]
    pub const fn size_lbas(&self, zones: &ZonesConfig) -> u64 {
        match self.kind {
            NamespaceKind::Zoned => self.zones as u64 * zones.size_lbas,
            NamespaceKind::Conventional(log) => {
                self.zones.saturating_sub(log.spare_zones) as u64 * zones.capacity_lbas
            }
        }
    }

    /// Most namespaces of a drive.
    pub const MAX: u32 = 255;

    /// All zones of a drive, with its limits.
    #[must_use]
    pub const fn whole(zones: &ZonesConfig) -> Self {
        Self {
            kind: NamespaceKind::Zoned,
            zones: zones.count,
            max_active: zones.max_active,
            max_open: zones.max_open,
        }
    }
}

/// Flash geometry. A *LUN* is one die: the unit that channels, ways and dies
/// count down to; it holds `planes` planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses).
    pub channels: u32,
    /// Chips on each channel.
    pub ways: u32,
    /// Dies in each chip.
    pub dies: u32,
    /// Planes in each die.
    pub planes: u32,
    /// Erase blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Bytes in each page.
    pub page_bytes: u32,
}

impl Geometry {
    /// Number of dies of the drive.
    #[must_use]
    pub const fn luns(&self) -> u32 {
        self.channels * self.ways * self.dies
    }

    /// Number of planes of the drive.
    #[must_use]
    pub const fn planes_total(&self) -> u32 {
        self.luns() * self.planes
    }

    /// Raw flash in bytes.
    #[must_use]
    pub const fn raw_bytes(&self) -> u64 {
        self.planes_total() as u64
            * self.blocks_per_plane as u64
            * self.pages_per_block as u64
            * self.page_bytes as u64
    }
}

/// Zones: size, number, limits, and the dies that one zone spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesConfig {
    /// Number of zones.
    pub count: u32,
    /// Distance between zone starts, in logical blocks (ZSZE).
    pub size_lbas: u64,
    /// Blocks of a zone that can be written (ZCAP); at most `size_lbas`, any value.
    pub capacity_lbas: u64,
    /// Largest number of active zones (MAR + 1) of a namespace that does not say
    /// otherwise; `None`: unlimited.
    pub max_active: Option<u32>,
    /// Largest number of open zones (MOR + 1) of such a namespace; `None`:
    /// unlimited. At most `max_active`.
    pub max_open: Option<u32>,
    /// Channels that a zone spans; divides the number of channels.
    pub channels: u32,
    /// Ways on each of its channels that a zone spans; divides the number of ways.
    pub ways: u32,
    /// The order in which consecutive pages of a zone visit its planes.
    pub stripe: StripeOrder,
    /// A read may cross into the next zone (OZCS bit 0).
    pub read_across: bool,
    /// Planes of the stripe by which each zone begins later than the one before
    /// it in its group, so that zones written side by side meet on different
    /// dies; less than the planes of a stripe.
    pub stagger: u32,
    /// Bytes of a zone descriptor extension, a multiple of 64; 0: none.
    pub descriptor_extension_bytes: u32,
    /// Random write areas of zones; `None`: there are none. Needs a write buffer.
    pub zrwa: Option<ZrwaConfig>,
}

/// Zone random write areas (ZRWA; ZNS command set 1.1, section 4.1.5.1: fields
/// of the zoned Identify Namespace data). They are memory of their own beside the
/// write buffer, and outlive a loss of power as that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZrwaConfig {
    /// Logical blocks of an area (ZRWASZ), 1 to 65,535; a multiple of
    /// `flush_granularity_lbas`, and at most a zone capacity.
    pub size_lbas: u32,
    /// Logical blocks by which write pointers move (ZRWAFG), 1 to 65,535; divides
    /// the zone capacity.
    pub flush_granularity_lbas: u32,
    /// Most zones of a namespace that have an area at the same time (NUMZRWA + 1),
    /// at least 1; `None`: unlimited.
    pub max_areas: Option<u32>,
    /// The host can commit blocks (ZRWACAP bit 0, EXPFLUSHSUP).
    pub explicit_flush: bool,
}

/// The order in which consecutive pages of a zone visit its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripeOrder {
    /// Next channel first, then next way, die, plane (NVMeVirt, ConfZNS++ with one plane).
    ChannelFirst,
    /// Next plane of the same die first, then channel, way, die (ConfZNS).
    PlaneFirst,
}

/// Whether written data is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStore {
    /// Timing only: reads return no data.
    None,
    /// In memory; only what was written costs memory.
    Memory,
}
