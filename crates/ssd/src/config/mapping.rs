//! Which flash zones get, and when.

use zonelab_device::Nanos;

/// Which flash a zone stands on (ConfZNS++, section 4.3; SilentZNS, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingConfig {
    /// Zone n always stands on physical zone n.
    Direct,
    /// A zone gets a physical zone at its first write: a free one, else an
    /// invalidated one, which must be erased.
    Lazy {
        /// Number of physical zones, at least the number of zones.
        physical_zones: u32,
    },
    /// A zone is assembled at its first write from chunks: blocks in a row on one
    /// plane (SilentZNS, section 4).
    Chunk {
        /// Blocks of a chunk: they divide the blocks that a zone has on each plane.
        chunk_blocks: u32,
        /// Zones for which there are chunks, at least the number of zones.
        physical_zones: u32,
    },
    /// A zone is assembled at its first write from stripes: one block on each of
    /// its planes (SilentZNS, section 4).
    Stripe {
        /// Zones for which there are stripes, at least the number of zones.
        physical_zones: u32,
    },
}

impl MappingConfig {
    /// Zones for which a drive of `zones` zones has flash.
    #[must_use]
    pub const fn physical_zones(&self, zones: u32) -> u32 {
        match *self {
            Self::Direct => zones,
            Self::Lazy { physical_zones }
            | Self::Chunk { physical_zones, .. }
            | Self::Stripe { physical_zones } => physical_zones,
        }
    }

    /// Zones are assembled from storage elements.
    #[must_use]
    pub const fn has_elements(&self) -> bool {
        matches!(self, Self::Chunk { .. } | Self::Stripe { .. })
    }
}

/// How and when a zone comes by its flash (SilentZNS, sections 4 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationConfig {
    /// Time that the firmware takes to choose the flash of a zone. It is part of
    /// the command that needs it, and takes a firmware core for as long.
    pub time_ns: Nanos,
    /// An explicit open gives a zone its flash; else its first write does.
    pub at_open: bool,
    /// Zones for which the choice is made while no command is in flight, at most.
    pub pool_zones: u32,
    /// Total wear (erasures) that an element more on one LUN has to save: see
    /// [`crate::mapping::allocator::Allocator::allocate_relaxed`]. `None`: all
    /// LUNs give as many.
    pub depth_weight: Option<u32>,
    /// There may be more zones than flash for all of them: a zone gets its flash
    /// when it leaves the state Empty, or stays empty if there is not enough.
    pub thin: bool,
}

impl AllocationConfig {
    /// It takes no time, and happens at the first write.
    pub const NONE: Self = Self {
        time_ns: Nanos::ZERO,
        at_open: false,
        pool_zones: 0,
        depth_weight: None,
        thin: false,
    };
}
