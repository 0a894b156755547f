//! What an idle drive can be expected to do: arithmetic on its times, not
//! measurements. A test compares them with the model.

use zonelab_config::units::fmt_rate;
use zonelab_device::Nanos;

use crate::config::{
    DriveConfig, FillExtent, FinishConfig, MediaConfig, PageRegister, PlaneMode, StripeOrder,
};

/// Expected figures of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Bandwidth of writes to as many zones as it takes, in bytes per second.
    pub write_bytes_per_s: Ceiling,
    /// Bandwidth of writes to one zone, in bytes per second.
    pub zone_write_bytes_per_s: Ceiling,
    /// Bandwidth of reads of many whole pages everywhere, in bytes per second.
    pub read_bytes_per_s: Ceiling,
    /// Reads of one logical block anywhere, per second.
    pub read_iops: Ceiling,
    /// Bandwidth of all channels, in bytes per second; `None`: transfers take no time.
    pub bus_bytes_per_s: Option<u64>,
    /// Bandwidth of the channels of one zone, in bytes per second.
    pub zone_bus_bytes_per_s: Option<u64>,
    /// A read of one page.
    pub page_read_ns: Nanos,
    /// A write of one page.
    pub page_write_ns: Nanos,
    /// Erasing all blocks of a zone.
    pub zone_erase_ns: Nanos,
    /// Finishing a zone that has nothing written (and is erased).
    pub zone_finish_ns: Nanos,
}

/// A rate that cannot be exceeded, and what stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// Per second, rounded; [`u64::MAX`] if larger.
    pub per_s: u64,
    /// The narrowest place.
    pub limit: Limit,
}

/// What limits a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Dies, or planes where they are independent.
    Dies,
    /// Channels.
    Channels,
    /// The host link.
    Link,
    /// The way from the write buffer to the dies.
    Drain,
    /// Firmware cores.
    Cores,
}

impl Limit {
    /// The word for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dies => "dies",
            Self::Channels => "channels",
            Self::Link => "host link",
            Self::Drain => "drain of the write buffer",
            Self::Cores => "firmware cores",
        }
    }
}

impl Ceiling {
    fn narrower(self, per_s: Option<u64>, limit: Limit) -> Self {
        match per_s {
            Some(per_s) if per_s < self.per_s => Self { per_s, limit },
            _ => self,
        }
    }
}

/// A bandwidth rounded for people: whole MiB/s with one decimal.
pub(super) fn about_mib_per_s(bytes_per_s: u64) -> String {
    const TENTH: u64 = (1 << 20) / 10;
    if bytes_per_s < TENTH {
        return fmt_rate(bytes_per_s);
    }
    let tenths = ((u128::from(bytes_per_s) * 10) + (1 << 19)) >> 20;
    format!("{}.{}MiB/s", tenths / 10, tenths % 10)
}

/// The part of a drive that works for one stream: all of it, or one zone's.
#[derive(Clone, Copy)]
struct Part {
    channels: u32,
    luns: u32,
}

impl Part {
    const fn of_drive(config: &DriveConfig) -> Self {
        Self {
            channels: config.geometry.channels,
            luns: config.geometry.luns(),
        }
    }

    const fn of_zone(config: &DriveConfig) -> Self {
        let zones = &config.zones;
        Self {
            channels: zones.channels,
            luns: zones.channels * zones.ways * config.geometry.dies,
        }
    }
}

impl Figures {
    /// Figures of a checked configuration whose zones have `pages` pages, in
    /// `rows` blocks on each of their planes.
    pub(super) fn new(config: &DriveConfig, pages: u32, rows: u32) -> Self {
        let DriveConfig {
            geometry,
            media,
            front_end,
            ..
        } = config;
        let drive = Part::of_drive(config);
        let zone = Part::of_zone(config);
        let link = front_end.link_bytes_per_s;
        let programs = |part| programs(config, part);
        let reads = stream(config, drive, whole_page_read(media), true);
        let bus = |channels: u32| {
            let bytes = u64::from(channels) * u64::from(geometry.page_bytes);
            per_second(bytes, media.transfer_ns)
        };
        Self {
            write_bytes_per_s: programs(drive).narrower(link, Limit::Link),
            zone_write_bytes_per_s: programs(zone).narrower(link, Limit::Link),
            read_bytes_per_s: reads.narrower(link, Limit::Link),
            read_iops: random_reads(config),
            bus_bytes_per_s: bus(drive.channels),
            zone_bus_bytes_per_s: bus(zone.channels),
            page_read_ns: whole_page_read(media).saturating_add(media.transfer_ns),
            page_write_ns: media.program_ns.saturating_add(media.transfer_ns),
            zone_erase_ns: erase_time(config, rows),
            zone_finish_ns: finish_time(config, pages),
        }
    }
}

/// `count` things in each `time`, per second; `None`: the time is zero.
fn per_second(count: u64, time: Nanos) -> Option<u64> {
    let (count, time) = (u128::from(count) * 1_000_000_000, u128::from(time.0));
    let per_s = (count + time / 2).checked_div(time)?;
    Some(u64::try_from(per_s).unwrap_or(u64::MAX))
}

/// Units of one die: what can do an array operation at a time.
const fn units_per_lun(config: &DriveConfig) -> u32 {
    match config.media.planes {
        PlaneMode::Independent => config.geometry.planes,
        PlaneMode::MultiPlane | PlaneMode::Single => 1,
    }
}

/// Pages of a stream that one array operation takes: those on the planes of a
/// die, if such operations exist and the stripe brings the pages together.
fn pages_per_operation(config: &DriveConfig) -> u32 {
    let zones = &config.zones;
    let one_lun = zones.channels * zones.ways * config.geometry.dies == 1;
    let together = zones.stripe == StripeOrder::PlaneFirst || one_lun;
    match config.media.planes {
        PlaneMode::MultiPlane if together => config.geometry.planes,
        _ => 1,
    }
}

/// How long an operation with this time on the channel and in the array keeps its unit.
fn unit_time(media: &MediaConfig, transfer: u64, array: Nanos, is_read: bool) -> Nanos {
    match media.page_register {
        PageRegister::Hold => Nanos(array.0.saturating_add(transfer)),
        PageRegister::Cache if is_read => Nanos(array.0.saturating_add(transfer)),
        PageRegister::Overlap | PageRegister::Cache => array,
    }
}

/// Array time of reading a whole page.
fn whole_page_read(media: &MediaConfig) -> Nanos {
    match &media.details.read_parts {
        Some(parts) => Nanos(parts.times().iter().map(|time| time.0).sum()),
        None => media.read_ns,
    }
}

/// Bandwidth of long transfers of whole pages, before the host link.
fn stream(config: &DriveConfig, part: Part, array: Nanos, is_read: bool) -> Ceiling {
    let DriveConfig {
        geometry, media, ..
    } = config;
    let pages = pages_per_operation(config);
    let units = u64::from(part.luns) * u64::from(units_per_lun(config));
    let page_bytes = u64::from(geometry.page_bytes);
    let transfer = media.transfer_ns.0 * u64::from(pages);
    let time = unit_time(media, transfer, array, is_read);
    let dies = per_second(units * u64::from(pages) * page_bytes, time);
    let channels = per_second(u64::from(part.channels) * page_bytes, media.transfer_ns);
    Ceiling {
        per_s: dies.unwrap_or(u64::MAX),
        limit: Limit::Dies,
    }
    .narrower(channels, Limit::Channels)
}

/// Bandwidth of long writes, before the host link.
fn programs(config: &DriveConfig, part: Part) -> Ceiling {
    let drain = config
        .write_buffer
        .and_then(|buffer| buffer.drain_bytes_per_s);
    stream(config, part, config.media.program_ns, false).narrower(drain, Limit::Drain)
}

/// Reads of one logical block each, spread over the drive.
fn random_reads(config: &DriveConfig) -> Ceiling {
    let DriveConfig {
        geometry,
        media,
        front_end,
        lba_bytes,
        ..
    } = config;
    let units = u64::from(geometry.luns()) * u64::from(units_per_lun(config));
    let transfer = if media.partial_transfer {
        media.transfer_ns.0 / u64::from(geometry.page_bytes / lba_bytes)
    } else {
        media.transfer_ns.0
    };
    let dies = per_second(units, unit_time(media, transfer, media.read_ns, true));
    let link = front_end
        .link_bytes_per_s
        .map(|rate| rate / u64::from(*lba_bytes));
    let per_kib = front_end.costs.read_per_kib_ns.0;
    let read_cost = Nanos(front_end.read_ns.0 + per_kib * u64::from(*lba_bytes) / 1_024);
    Ceiling {
        per_s: dies.unwrap_or(u64::MAX),
        limit: Limit::Dies,
    }
    .narrower(
        per_second(geometry.channels.into(), Nanos(transfer)),
        Limit::Channels,
    )
    .narrower(per_second(front_end.cores.into(), read_cost), Limit::Cores)
    .narrower(link, Limit::Link)
}

/// Erasing `rows` blocks on each plane of a zone.
fn erase_time(config: &DriveConfig, rows: u32) -> Nanos {
    // The planes of a die erase their blocks of a row together if the die can.
    let operations_per_row = match config.media.planes {
        PlaneMode::Independent | PlaneMode::MultiPlane => 1,
        PlaneMode::Single => config.geometry.planes,
    };
    let operations = u64::from(rows) * u64::from(operations_per_row);
    Nanos(operations.saturating_mul(config.media.erase_ns.0))
}

/// Filling a zone from its first page to its last, as its finish does.
fn finish_time(config: &DriveConfig, pages: u32) -> Nanos {
    let FinishConfig::Fill {
        granularity_bytes,
        pause_ns,
        extent: FillExtent::Zone,
        ..
    } = config.finish
    else {
        // Nothing is filled: an empty zone has no element.
        return config.front_end.management_ns;
    };
    if config.finish.is_buffered() {
        // As a stream of writes, whatever their size.
        let zone = programs(config, Part::of_zone(config));
        let bytes = u128::from(pages) * u128::from(config.geometry.page_bytes);
        let writes = bytes / u128::from(granularity_bytes.max(1));
        // Each device write waits for the pause and the core of the one before it.
        let turn = pause_ns.max(core_time(config));
        let ns = (bytes * 1_000_000_000 / u128::from(zone.per_s.max(1)))
            .max(writes * u128::from(turn.0));
        return Nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    }
    let chunk = (granularity_bytes / config.geometry.page_bytes).min(pages);
    let writes = u128::from(pages.div_ceil(chunk));
    let total = fill_time(config, pages, chunk)
        + (writes - 1) * u128::from(pause_ns.0)
        + u128::from(config.front_end.management_ns.0);
    Nanos(u64::try_from(total).unwrap_or(u64::MAX))
}

/// What each device write of a finish takes a core.
fn core_time(config: &DriveConfig) -> Nanos {
    match config.finish {
        FinishConfig::Fill {
            takes_core: true,
            granularity_bytes,
            ..
        } => config.front_end.own_write_ns(u64::from(granularity_bytes)),
        _ => Nanos::ZERO,
    }
}

/// Device writes of `chunk` pages one after the other, the last with the rest.
fn fill_time(config: &DriveConfig, pages: u32, chunk: u32) -> u128 {
    /// Beyond this many pages, where device writes begin and end hardly matters.
    const EXACT: u64 = 1 << 20;
    let zone = Part::of_zone(config);
    let width = zone.luns * config.geometry.planes;
    let (whole, rest) = (pages / chunk, pages % chunk);
    // Device writes begin at different places of the stripe, over and over.
    let cycle = (width / gcd(width, chunk)).min(whole);
    if u64::from(cycle) * u64::from(chunk) > EXACT {
        let bytes = u128::from(pages) * u128::from(config.geometry.page_bytes);
        let bytes_per_s = stream(config, zone, config.media.program_ns, false)
            .per_s
            .max(1);
        return bytes * 1_000_000_000 / u128::from(bytes_per_s);
    }
    let first_page = |write: u32| u64::from(write) * u64::from(chunk) % u64::from(width);
    let write = |write: u32, pages: u32| {
        u128::from(Pipeline::new(config).write(first_page(write), pages).0)
    };
    let times: Vec<u128> = (0..cycle).map(|index| write(index, chunk)).collect();
    let cycles = u128::from(whole / cycle) * times.iter().sum::<u128>();
    let partial: u128 = times[..(whole % cycle) as usize].iter().sum();
    cycles + partial + write(whole, rest)
}

const fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The channels and units of one zone, each with the time at which it is free.
struct Pipeline<'c> {
    config: &'c DriveConfig,
    /// Planes in the stripe.
    width: u32,
    channels: Vec<u64>,
    units: Vec<u64>,
}

impl<'c> Pipeline<'c> {
    fn new(config: &'c DriveConfig) -> Self {
        let Part { channels, luns } = Part::of_zone(config);
        Self {
            config,
            width: luns * config.geometry.planes,
            channels: vec![0; channels as usize],
            units: vec![0; (luns * units_per_lun(config)) as usize],
        }
    }

    /// When `pages` consecutive pages, the first of which is at `first` of the stripe, are
    /// programmed.
    fn write(mut self, first: u64, pages: u32) -> Nanos {
        let media = &self.config.media;
        let together = pages_per_operation(self.config);
        let (mut page, mut end) = (0, 0);
        while page < pages {
            let slot = ((first + u64::from(page)) % u64::from(self.width)) as u32;
            let (lun, unit) = self.place(slot);
            let taken = (together - slot % together).min(pages - page);
            let transfer = media.transfer_ns.0 * u64::from(taken);
            let channel = &mut self.channels[lun % self.config.zones.channels as usize];
            let unit = &mut self.units[unit];
            let may_start = match media.page_register {
                PageRegister::Overlap | PageRegister::Cache => 0,
                PageRegister::Hold => *unit,
            };
            *channel = may_start.max(*channel) + transfer;
            *unit = (*channel).max(*unit) + media.program_ns.0;
            end = end.max(*unit);
            page += taken;
        }
        Nanos(end)
    }

    /// Die and unit, within the zone, of a position in the stripe.
    fn place(&self, slot: u32) -> (usize, usize) {
        let planes = self.config.geometry.planes;
        let luns = self.width / planes;
        let (lun, plane) = match self.config.zones.stripe {
            StripeOrder::PlaneFirst => (slot / planes, slot % planes),
            StripeOrder::ChannelFirst => (slot % luns, slot / luns),
        };
        let units = units_per_lun(self.config);
        (lun as usize, (lun * units + plane % units) as usize)
    }
}
