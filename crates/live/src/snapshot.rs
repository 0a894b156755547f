//! Numbers of a served drive at one time.

use std::ops::Range;

use hdrhistogram::Histogram;
use zonelab_device::Nanos;
use zonelab_ssd::account::{BusyByCause, Cause, OperationsByCause, Totals};
use zonelab_target::controller::activity::{Operation, Tallies};
use zonelab_target::server::Connections;

use crate::layer::LayerState;

/// Everything there is to show.
///
/// Counters begin at zero when the server starts; those of the drive
/// ([`Snapshot::totals`], [`Snapshot::dies`], [`Snapshot::channels`], the
/// erasures) also when it is formatted.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Name of the drive's profile.
    pub profile: String,
    /// Qualified name of the subsystem.
    pub nqn: String,
    /// Time since the server started.
    pub uptime: Nanos,
    /// Connections.
    pub connections: Connections,
    /// Controllers that hosts have.
    pub controllers: usize,
    /// Commands in the drive.
    pub in_flight: usize,
    /// Faults that struck, of those that were asked for.
    pub faults: u64,
    /// Admin and fabrics commands on admin queues.
    pub admin_commands: u64,
    /// NSID 1 first.
    pub namespaces: Vec<Namespace>,
    /// Commands that named no namespace of the drive.
    pub elsewhere: Tallies,
    /// Latencies of the model in nanoseconds, of operations that were used.
    pub latencies: Vec<(Operation, Histogram<u64>)>,
    /// How much later than that responses were sent, by queue identifier.
    pub lateness: Vec<(u16, Histogram<u64>)>,
    /// Bytes and operations of the drive.
    pub totals: Totals,
    /// Bytes in the write buffer, and how many fit; `None`: there is none.
    pub buffer: Option<(u64, u64)>,
    /// Dies, channel first.
    pub dies: Vec<Load>,
    /// Busy time of channels.
    pub channels: Vec<BusyByCause>,
    /// All zones of the drive.
    pub zones: Zones,
    /// Erasures of all blocks of the drive.
    pub wear: Wear,
    /// The translation layer; `None`: hosts use the drive itself.
    pub layer: Option<LayerState>,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its zones, counted over the drive.
    pub zones: Range<u32>,
    /// Whether hosts see these zones.
    pub is_zoned: bool,
    /// Most open zones; `None`: unlimited.
    pub max_open: Option<u32>,
    /// Most active zones; `None`: unlimited.
    pub max_active: Option<u32>,
    /// Its commands.
    pub tallies: Tallies,
}

/// What a die did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Time that it was busy, summed over planes if these are independent. Work
    /// is booked when its time is certain, which may be before it has passed.
    pub busy_ns: BusyByCause,
    /// Flash operations handed to it.
    pub operations: OperationsByCause,
}

impl Load {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        for cause in 0..Cause::ALL.len() {
            self.busy_ns[cause] += other.busy_ns[cause];
            self.operations[cause] += other.operations[cause];
        }
    }
}

/// State of a zone, as the page and the metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// ZSE.
    Empty,
    /// ZSIO.
    ImplicitlyOpened,
    /// ZSEO.
    ExplicitlyOpened,
    /// ZSC.
    Closed,
    /// ZSF.
    Full,
    /// ZSRO.
    ReadOnly,
    /// ZSO.
    Offline,
    /// Flash of a conventional namespace.
    Conventional,
}

impl ZoneKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::ImplicitlyOpened,
        Self::ExplicitlyOpened,
        Self::Closed,
        Self::Full,
        Self::ReadOnly,
        Self::Offline,
        Self::Conventional,
    ];

    /// Name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::ImplicitlyOpened => "implicitly_opened",
            Self::ExplicitlyOpened => "explicitly_opened",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Offline => "offline",
            Self::Conventional => "conventional",
        }
    }

    /// Letter on the page, as in the report of a run.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Empty => 'E',
            Self::ImplicitlyOpened => 'I',
            Self::ExplicitlyOpened => 'X',
            Self::Closed => 'C',
            Self::Full => 'F',
            Self::ReadOnly => 'R',
            Self::Offline => 'O',
            Self::Conventional => 'V',
        }
    }

    /// Open, explicitly or implicitly.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpened | Self::ExplicitlyOpened)
    }

    /// Open or closed.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }
}

/// One zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its state.
    pub kind: ZoneKind,
    /// Write pointer from the start of the zone, in blocks; 0 if conventional.
    pub written_lbas: u64,
    /// Erasures of the blocks that it stands on, all together, and of the block
    /// erased most often; `None`: it stands on no flash.
    pub erases: Option<(u64, u32)>,
}

/// All zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Bytes of a logical block.
    pub lba_bytes: u32,
    /// Distance between zone starts, in blocks.
    pub size_lbas: u64,
    /// Writable part of a zone, in blocks.
    pub capacity_lbas: u64,
    /// Erase blocks under a zone.
    pub erase_blocks: u32,
    /// The zones of the drive, in order.
    pub all: Vec<Zone>,
}

/// How often blocks were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Erasures of the block erased least often.
    pub min: u32,
    /// Erasures of the block erased most often.
    pub max: u32,
    /// Erasures of all blocks.
    pub sum: u64,
    /// Number of blocks.
    pub blocks: u64,
}

impl Wear {
    /// Of erase counts.
    #[must_use]
    pub fn of(counts: &[u32]) -> Self {
        Self {
            min: counts.iter().copied().min().unwrap_or(0),
            max: counts.iter().copied().max().unwrap_or(0),
            sum: counts.iter().copied().map(u64::from).sum(),
            blocks: counts.len() as u64,
        }
    }

    /// Erasures of a block on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.blocks.max(1) as f64
    }
}
