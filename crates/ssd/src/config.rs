//! A drive's configuration, resolved and consistent: what the model is built from.
//!
//! Nothing here is optional in the sense of "to be defaulted": defaults and
//! checks belong to [`crate::profile`], which turns a TOML file into a
//! [`DriveConfig`] or says what is wrong with it. Code that builds one by hand
//! (tests, fuzzing) calls [`crate::profile::check`] on it.

use core::ops::Range;

use zonelab_device::{CopyLimits, NamespaceId, Nanos};

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
    Conventional {
        /// Zones beyond what the host can address: over-provisioning; at least
        /// [`NamespaceConfig::SPARE_ZONES_MIN`].
        spare_zones: u32,
    },
}

impl NamespaceConfig {
    /// Fewest spare zones of a conventional namespace: the host and garbage
    /// collection write to one each, and a third makes sure that there is
    /// something to collect.
    pub const SPARE_ZONES_MIN: u32 = 3;

    /// Logical blocks that a host can address.
    #[must_use]
    pub const fn size_lbas(&self, zones: &ZonesConfig) -> u64 {
        match self.kind {
            NamespaceKind::Zoned => self.zones as u64 * zones.size_lbas,
            NamespaceKind::Conventional { spare_zones } => {
                self.zones.saturating_sub(spare_zones) as u64 * zones.capacity_lbas
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

/// Flash and bus timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaConfig {
    /// Time from command to page register (tR); where parts of a page differ
    /// ([`MediaDetails::read_parts`]), their mean.
    pub read_ns: Nanos,
    /// Time from page register to cells (tPROG).
    pub program_ns: Nanos,
    /// Time to erase a block (tBERS).
    pub erase_ns: Nanos,
    /// Channel time of one whole page.
    pub transfer_ns: Nanos,
    /// Whether part of a page takes its share of `transfer_ns` or all of it.
    pub partial_transfer: bool,
    /// Whether a transfer overlaps the array time of its neighbours.
    pub page_register: PageRegister,
    /// What the planes of one die may do at the same time.
    pub planes: PlaneMode,
    /// Who is next on a die.
    pub policy: DiePolicy,
    /// Who is next on a channel.
    pub arbitration: ChannelArbitration,
    /// Interrupting programs and erases for reads.
    pub suspend: Suspend,
    /// What few models have; nothing of it by default.
    pub details: MediaDetails,
}

/// Details of flash timing that only a closely modelled drive has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaDetails {
    /// A page consists of parts that are read one by one, each in its own time.
    pub read_parts: Option<ReadParts>,
    /// A transfer gives way to others on its channel after so many bytes;
    /// `None`: it does not. Needs [`ChannelArbitration::Ready`].
    pub transfer_unit_bytes: Option<u32>,
    /// Programs take up to this share of [`MediaConfig::program_ns`] more or
    /// less, evenly distributed, in parts per million; at most 1,000,000.
    pub program_variation_ppm: u32,
}

impl MediaDetails {
    /// None of them.
    pub const NONE: Self = Self {
        read_parts: None,
        transfer_unit_bytes: None,
        program_variation_ppm: 0,
    };
}

/// Read times of the equal parts of a page, in order of address: the pages of a
/// word line that are programmed together, of which each needs other reference
/// voltages (lower, middle and upper page of TLC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadParts {
    times: [Nanos; Self::MAX],
    count: u8,
}

impl ReadParts {
    /// As many parts as cells of this world have bits.
    pub const MAX: usize = 5;

    /// From one time for each part; `None` unless there are 2 to [`Self::MAX`].
    #[must_use]
    pub fn new(parts: &[Nanos]) -> Option<Self> {
        let count = u8::try_from(parts.len()).ok().filter(|count| *count >= 2)?;
        let mut times = [Nanos::ZERO; Self::MAX];
        times.get_mut(..parts.len())?.copy_from_slice(parts);
        Some(Self { times, count })
    }

    /// The time of each part.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.times[..usize::from(self.count)]
    }

    /// Their mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        let sum: u64 = self.times().iter().map(|time| time.0).sum();
        Nanos(sum / u64::from(self.count))
    }
}

/// Whether the transfer of one page overlaps the array time of another on the
/// same plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRegister {
    /// It does: pages wait in registers (ConfZNS++: a plane is held for the
    /// array time alone).
    Overlap,
    /// It does not: the plane is held from the start of the transfer to the
    /// end of the program, or from the start of the read to the end of the
    /// transfer (NVMeVirt).
    Hold,
    /// A cache register beside the page register: the page of the next program
    /// arrives while the plane works, and no further one; a read holds the
    /// plane until its page has left. Needs [`ChannelArbitration::Ready`].
    Cache,
}

/// What the planes of one die may do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneMode {
    /// Each plane works on its own (FEMU, ConfZNS++).
    Independent,
    /// The die does one thing at a time; consecutive pages of one command that
    /// fall on different planes of the die are one operation.
    MultiPlane,
    /// The die does one thing at a time, one page each.
    Single,
}

/// Who is next on a die (or plane, if planes are independent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiePolicy {
    /// In order of arrival.
    Fifo,
    /// Reads before programs and erases; those stay in their order.
    ReadFirst,
    /// Up to `reads` reads, then one program or erase, if both wait.
    Weighted {
        /// Reads per program or erase, at least 1.
        reads: u32,
    },
}

/// Who is next on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelArbitration {
    /// In order of arrival at the drive: a transfer waits for those of earlier
    /// commands even if their data is not ready yet (the reservation of FEMU,
    /// ConfZNS++). Needs [`DiePolicy::Fifo`] and no suspend.
    Arrival,
    /// In the order in which transfers become ready.
    Ready,
}

/// Program and erase suspend: a read that arrives at a busy die interrupts
/// what runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Programs can be suspended.
    pub program: bool,
    /// Erases can be suspended.
    pub erase: bool,
    /// Time to stop, and again to resume.
    pub overhead_ns: Nanos,
    /// How often one operation may be suspended before it runs to its end.
    pub max_per_operation: u32,
    /// It can only stop at multiples of this in its array time, and after it
    /// was resumed at the next one, if reads wait then: between the pulses of a
    /// program. Zero: anywhere, for reads that arrive while it runs.
    pub interval_ns: Nanos,
}

impl Suspend {
    /// Nothing is suspended.
    pub const NONE: Self = Self {
        program: false,
        erase: false,
        overhead_ns: Nanos::ZERO,
        max_per_operation: 0,
        interval_ns: Nanos::ZERO,
    };
}

/// Command processing before the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontEndConfig {
    /// Firmware cores that process commands; 0: processing is free.
    pub cores: u32,
    /// Core time of a read.
    pub read_ns: Nanos,
    /// Core time of a write.
    pub write_ns: Nanos,
    /// Core time of a zone append.
    pub append_ns: Nanos,
    /// Core time of zone management send, receive, and flush.
    pub management_ns: Nanos,
    /// Host link in bytes per second and direction; `None`: not modelled.
    pub link_bytes_per_s: Option<u64>,
    /// Largest transfer of one command in bytes (MDTS); `None`: unlimited.
    pub max_transfer_bytes: Option<u32>,
    /// Largest zone append in bytes (ZASL); `None`: as `max_transfer_bytes`.
    pub max_append_bytes: Option<u32>,
    /// What commands cost besides; all zero unless the drive is modelled so closely.
    pub costs: CommandCosts,
}

/// What commands cost besides the core time of their kind.
///
/// All but the latencies are core time. What depends on the size of a transfer,
/// and opening a zone by writing to it, is charged when a command is accepted:
/// one that is refused does not cost it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCosts {
    /// Per KiB of a read, ...
    pub read_per_kib_ns: Nanos,
    /// ... of a write, ...
    pub write_per_kib_ns: Nanos,
    /// ... and of an append.
    pub append_per_kib_ns: Nanos,
    /// Writes and appends that are not whole units of so many bytes ...
    pub unit_bytes: Option<u32>,
    /// ... cost this much more.
    pub part_of_unit_ns: Nanos,
    /// A write or append costs this much more with logical blocks of 512 bytes.
    pub small_blocks_ns: Nanos,
    /// An explicit open; `None`: as other management.
    pub open_ns: Option<Nanos>,
    /// A close; `None`: as other management.
    pub close_ns: Option<Nanos>,
    /// A write or append that opens its zone costs this much more.
    pub implicit_open_ns: Nanos,
    /// Time on the way that occupies nothing: of a read, ...
    pub read_latency_ns: Nanos,
    /// ... a write, ...
    pub write_latency_ns: Nanos,
    /// ... an append, ...
    pub append_latency_ns: Nanos,
    /// ... and of everything else.
    pub management_latency_ns: Nanos,
    /// Time on the way from the core to the host of what reads, writes and
    /// appends answer.
    pub completion_latency_ns: Nanos,
    /// Core time when its flash or buffer work is done, before the host is told: of a read, ...
    pub read_completion_ns: Nanos,
    /// ... of a write, ...
    pub write_completion_ns: Nanos,
    /// ... and of an append.
    pub append_completion_ns: Nanos,
    /// Core times are up to this share more or less, evenly distributed, in
    /// parts per million; at most 1,000,000.
    pub variation_ppm: u32,
}

impl CommandCosts {
    /// Whether anything is charged when a command is accepted.
    pub(crate) fn charges(&self) -> bool {
        [
            self.read_per_kib_ns,
            self.write_per_kib_ns,
            self.append_per_kib_ns,
            self.part_of_unit_ns,
            self.small_blocks_ns,
            self.implicit_open_ns,
        ]
        .iter()
        .any(|time| *time > Nanos::ZERO)
    }

    /// Times on the way, by their key in `front_end.latency`.
    pub(crate) fn latencies(&self) -> [(&'static str, Nanos); 5] {
        [
            ("front_end.latency.read", self.read_latency_ns),
            ("front_end.latency.write", self.write_latency_ns),
            ("front_end.latency.append", self.append_latency_ns),
            ("front_end.latency.management", self.management_latency_ns),
            ("front_end.latency.completion", self.completion_latency_ns),
        ]
    }
}

/// A write-back buffer: a write completes when its blocks are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBufferConfig {
    /// Bytes that fit: whole logical blocks, at least a page.
    pub size_bytes: u64,
    /// Appends of one zone that wait for room at the same time, at least 1;
    /// further ones wait for their turn in order. `None`: any number.
    pub appends_per_zone: Option<u32>,
    /// Stored energy saves what is in it when power is lost, so that it is not
    /// volatile and a flush has nothing to do.
    pub power_loss_protection: bool,
    /// When room is free again.
    pub release: BufferRelease,
    /// Bytes per second from the buffer to all dies together; `None`: no limit
    /// but channels and dies.
    pub drain_bytes_per_s: Option<u64>,
    /// Bytes that a write is let in by at a time while others wait, then it is
    /// their turn: whole logical blocks. A larger write for which nobody waits
    /// takes half of the room at a time. `None`: one write after another.
    pub turn_bytes: Option<u64>,
    /// Which die takes the next program of a zone.
    pub placement: Placement,
}

/// Which die takes the next program of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The one that follows in the order of its stripe.
    InOrder,
    /// Of those that have none of its line yet (as many programs as the zone has
    /// dies), the one with the least work. Rows of blocks are begun and erased as a
    /// whole. Not with [`MappingConfig::Chunk`] and [`MappingConfig::Stripe`].
    LeastWork,
}

/// When the room of blocks in a write buffer is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRelease {
    /// When the program of their unit is over: a program that fails can be repeated.
    Program,
    /// When they are in a register of their die.
    Transfer,
}

/// What Zone Finish does (ConfZNS++, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishConfig {
    /// Nothing is written.
    Metadata,
    /// The rest of the zone is programmed, in a series of device writes.
    Fill {
        /// Bytes of one device write: a multiple of the page size, or of the
        /// logical block if it goes through the write buffer.
        granularity_bytes: u32,
        /// Pause between one device write and the next.
        pause_ns: Nanos,
        /// A device write waits while host I/O is in flight, at most this long
        /// (dynamic intensity); `None`: it does not wait.
        yield_ns: Option<Nanos>,
        /// Device writes go through the write buffer, in line with those of the
        /// host; else straight to the flash.
        buffered: bool,
        /// How much of the zone is filled.
        extent: FillExtent,
    },
}

/// How much of a zone is filled at a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillExtent {
    /// All that the host did not write.
    Zone,
    /// The rest of storage elements that the host wrote in part; the zone gives back
    /// those that it did not write (SilentZNS, section 4). Needs a mapping with
    /// elements.
    Elements,
}

impl FinishConfig {
    /// Its device writes go through the write buffer.
    #[must_use]
    pub const fn is_buffered(&self) -> bool {
        matches!(self, Self::Fill { buffered: true, .. })
    }
}

/// What Zone Reset does (ConfZNS++, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetConfig {
    /// When blocks are erased.
    pub erase: EraseWhen,
    /// Which blocks are erased.
    pub extent: EraseExtent,
    /// Erasures are single-block steps; each waits while host I/O waits for
    /// its plane, at most this long. `None`: all are issued at once.
    /// Not for erasure at a write.
    pub preempt_ns: Option<Nanos>,
    /// What the firmware has to do for a reset besides; `None`: nothing.
    pub bookkeeping: Option<Bookkeeping>,
}

/// Work of the firmware on its tables for each zone that is reset, one zone
/// after another. The reset completes when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bookkeeping {
    /// Time for any zone.
    pub base_ns: Nanos,
    /// Time in addition for a zone that the host wrote to its capacity, and
    /// in proportion for others. What a finish filled does not count.
    pub full_zone_ns: Nanos,
    /// How long the write buffer starts no programs meanwhile, for a zone that
    /// was written to its capacity, and in proportion for others. At most
    /// `full_zone_ns`.
    pub drain_pause_ns: Nanos,
    /// Pauses into which that is divided, evenly spaced; at least 1.
    pub slices: u32,
    /// Time in addition for a zone that is not full and of which something has
    /// been programmed: what was begun on the flash is closed.
    pub open_zone_ns: Nanos,
    /// Before it begins, the write buffer starts no more programs, and those
    /// that run end.
    pub quiesce: bool,
}

/// When the blocks of a zone that was reset are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseWhen {
    /// Before the reset completes.
    Synchronous,
    /// At the first write to the zone: all its blocks.
    FirstZoneWrite,
    /// At the first write to each block: that block.
    FirstBlockWrite,
    /// In the background, after the reset completed.
    Background,
    /// When the numbers of free and of invalid zones say so. Not with
    /// [`MappingConfig::Direct`], where a zone has its flash for ever.
    Thresholds(Thresholds),
}

/// When zones are erased by how many are free and how many are invalid: the
/// zone mapping method and preemptive zone reset (Jung et al., Electronics 12,
/// 798 (2023), sections 2.2.2 and 3.2). Both count within a group of zones that
/// share dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// With this many free zones or fewer, invalid zones are erased whole and
    /// the host waits (`T_free`). A zone is erased whole too when one is needed
    /// and none is free.
    pub free_zones: u32,
    /// With this many invalid zones or more, they are erased a row of blocks at
    /// a time while nothing of the host is pending (`T_invalid`), at least 1.
    /// `None`: never, which is the zone mapping method.
    pub invalid_zones: Option<u32>,
    /// When the number of free zones is looked at.
    pub evaluate: Evaluate,
    /// How many zones are erased whole before what waits goes on, at least 1;
    /// `None`: until more than `free_zones` are free.
    pub zones_at_once: Option<u32>,
    /// Which invalid zone is erased next.
    pub victim: Victim,
    /// Rows wait for pauses of the host that they fit in, as long as enough zones
    /// are free for the rate at which zones are given flash. What has been seen of
    /// both loses half of its weight in this time. Needs `invalid_zones`. `None`:
    /// rows are erased in any pause.
    pub adapt: Option<Nanos>,
}

/// When the number of free zones is compared with its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluate {
    /// When a zone is about to be given flash, before it is taken.
    Allocation,
    /// When a read or write arrives, after it has been given flash.
    Command,
    /// Whenever a zone has been given flash or has lost it, as the paper has it.
    Change,
}

/// Which invalid zone is erased next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that was reset first.
    Oldest,
    /// The one whose blocks were erased least, of equals the oldest. One that
    /// has been begun is erased to its end first.
    LeastWorn,
}

/// Which blocks of a zone are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseExtent {
    /// All of them.
    Full,
    /// Those that hold at least one programmed page.
    Partial,
}

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

/// Whether written data is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStore {
    /// Timing only: reads return no data.
    None,
    /// In memory; only what was written costs memory.
    Memory,
}
