//! What a user decides.

use zonelab_device::NamespaceId;

use crate::durable::Durable;
use crate::error::FtlError;
use crate::victims::{OwnVictims, Policy};

/// What is decided when a drive is formatted, and cannot be changed afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatSettings {
    /// The zoned namespace. Default: 1.
    pub nsid: NamespaceId,
    /// Data blocks beyond those that programs see, as a share of the latter: 0.07 is
    /// the "7 %" of consumer drives, 0.28 that of enterprise drives. Zones that are
    /// always free or open ([`Self::reserved_zones`]) do not count. 0.01 to 10;
    /// default 0.07.
    pub spare: f64,
    /// Data zones that are kept out of that count: open ones, and those that the
    /// collector needs free. Default: as many as may be active, up to 16 and up to a
    /// quarter of the data zones; at least 4.
    pub reserved_zones: Option<u32>,
    /// Identifies what was formatted: mounts refuse blocks with another one. Drawn by
    /// whoever formats.
    pub uuid: u128,
}

impl FormatSettings {
    /// The defaults, with this identity.
    #[must_use]
    pub const fn new(uuid: u128) -> Self {
        Self {
            nsid: NamespaceId::FIRST,
            spare: 0.07,
            reserved_zones: None,
            uuid,
        }
    }
}

/// What is decided at each mount.
#[derive(Clone, Debug, PartialEq)]
pub struct FtlSettings {
    /// The zoned namespace. Default: 1.
    pub nsid: NamespaceId,
    /// How queues place what they write. Default: by writes to a zone each.
    pub placement: Placement,
    /// Which zone the collector empties next. Default: the one with the fewest valid
    /// blocks.
    pub victims: Policy,
    /// A rule of somebody else for that, in place of [`Self::victims`]. Default: none.
    pub own_victims: Option<OwnVictims>,
    /// The collector lets the drive copy blocks, where it can. Default: yes.
    pub device_copy: bool,
    /// Zones that the collector writes at a time, by how often what it moves has been moved:
    /// what stays valid for long is not mixed with what will be garbage soon. Each takes an
    /// active zone and a reserved one. 1 to 4; default 1.
    pub generations: u32,
    /// Free zones below which the collector works. Default: half of the reserved zones;
    /// at least 3, at most the reserved zones less 1.
    pub collect_below: Option<u32>,
    /// Share of the map that is in memory, more than 0 and less than 1: the rest is loaded
    /// from the drive when it is needed. At least 6 pieces of 63 blocks (with blocks of
    /// 4 KiB) are; what changed since the last checkpoint takes as much memory again, or
    /// twice as much while a checkpoint is written. Needs [`Self::keeps_data`]. Default:
    /// none, all of the map is in memory.
    pub map_share: Option<f64>,
    /// Most memory that the map may take ([`map_memory_bytes`]): a mount that needs more is
    /// refused. Default: any.
    pub map_memory_max_bytes: Option<u64>,
    /// The device keeps what is written to it; if not, nothing can be mounted that was
    /// not just formatted. Default: yes.
    pub keeps_data: bool,
    /// Seed of what is drawn: victims, if the policy draws.
    pub seed: u64,
}

impl Default for FtlSettings {
    fn default() -> Self {
        Self {
            nsid: NamespaceId::FIRST,
            placement: Placement::default(),
            victims: Policy::Greedy,
            own_victims: None,
            device_copy: true,
            generations: 1,
            collect_below: None,
            map_share: None,
            map_memory_max_bytes: None,
            keeps_data: true,
            seed: 1,
        }
    }
}

/// Most memory that the map of so many logical blocks takes in bytes, if all of it or that
/// share is in memory.
#[must_use]
pub fn map_memory_bytes(blocks: u32, share: Option<f64>) -> u64 {
    let whole = 4 * u64::from(blocks);
    match share {
        None => whole,
        // What is held, what changed, and that again while a checkpoint is written; a table of
        // pieces, and where the image has them.
        Some(share) => (3.0 * share * whole as f64) as u64 + whole / 32 + (1 << 20),
    }
}

impl FtlSettings {
    /// Whether the map of so many logical blocks may take the memory that it needs.
    ///
    /// # Errors
    /// It may not: [`FtlError::MapMemory`].
    pub(crate) fn check_map_memory(&self, blocks: u32) -> Result<(), FtlError> {
        let needed_bytes = map_memory_bytes(blocks, self.map_share);
        match self.map_memory_max_bytes {
            Some(most_bytes) if needed_bytes > most_bytes => Err(FtlError::MapMemory {
                blocks,
                needed_bytes,
                most_bytes,
            }),
            _ => Ok(()),
        }
    }

    /// Whether a drive with this limit of active zones has as many as the layer needs: those of
    /// metadata, a zone of each generation, one that gets its footer, and a program's.
    ///
    /// # Errors
    /// It has fewer: [`FtlError::TooFewActive`].
    pub fn check_active(&self, limit: Option<u32>) -> Result<(), FtlError> {
        let needed = Durable::ACTIVE_ZONES + self.generations + 2;
        match limit {
            Some(limit) if limit < needed => Err(FtlError::TooFewActive {
                limit,
                needed,
                what: "metadata, a program and the collector",
            }),
            _ => Ok(()),
        }
    }
}

/// How queues place what they write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Each queue has a zone of its own, and one write of it under way at a time; what
    /// waits meanwhile goes into one write. As many queues as the drive allows zones.
    #[default]
    Write,
    /// Each queue has a zone of its own, and appends to it, many at a time.
    Append,
    /// All queues append to one zone.
    SharedAppend,
}

impl Placement {
    /// Names, as settings have them.
    pub const NAMES: &str = "write, append or shared-append";

    /// Reads a name.
    ///
    /// # Errors
    /// There is no such placement.
    pub fn parse(text: &str) -> Result<Self, FtlError> {
        match text {
            "write" => Ok(Self::Write),
            "append" => Ok(Self::Append),
            "shared-append" => Ok(Self::SharedAppend),
            _ => Err(FtlError::setting("placement", text, Self::NAMES)),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Append => "append",
            Self::SharedAppend => "shared-append",
        }
    }
}
