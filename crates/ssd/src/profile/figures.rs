//! What an idle drive can be expected to do: arithmetic on its times, not
//! measurements. A test compares them with the model.

use zonelab_config::units::fmt_rate;
use zonelab_device::Nanos;

use crate::config::{
    DriveConfig, FinishConfig, MediaConfig, PageRegister, PlaneMode, StripeOrder,
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
    /// Per second, rounded down; [`u64::MAX`] if larger.
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

    /// The ceiling as a bandwidth with its reason: `89.2MiB/s (dies)`.
    #[must_use]
    pub fn as_bandwidth(&self) -> String {
        format!("{} ({})", about_mib_per_s(self.per_s), self.limit.name())
    }
}

/// A bandwidth rounded for people: whole MiB/s with one decimal.
pub(super) fn about_mib_per_s(bytes_per_s: u64) -> String {
    const TENTH: u64 = (1 << 20) / 10;
    if bytes_per_s < TENTH {
        return fmt_rate(bytes_per_s);
    }
    let tenths = u128::from(bytes_per_s) * 10 >> 20;
    format!("{}.{}MiB/s", tenths / 10, tenths % 10)
}

/// The part of a drive that works for one stream: all of it, or one zone's.
#[derive(Clone, Copy)]
struct Part {
    channels: u32,
    luns: u32,
}

impl Figures {
    /// Figures of a checked configuration whose zones have `pages` pages in `rows` blocks per plane.
    pub(super) fn new(config: &DriveConfig, pages: u32, rows: u32) -> Self {
        let DriveConfig { geometry, zones, media, front_end, .. } = config;
        let drive = Part { channels: geometry.channels, luns: geometry.luns() };
        let zone = Part {
            channels: zones.channels,
            luns: zones.channels * zones.ways * geometry.dies,
        };
        let link = front_end.link_bytes_per_s;
        let bandwidth = |part, array| {
            stream(config, part, array).narrower(link, Limit::Link)
        };
        let bus = |channels: u32| {
            let bytes = u64::from(channels) * u64::from(geometry.page_bytes);
            per_second(bytes, media.transfer_ns)
        };
        Self {
            write_bytes_per_s: bandwidth(drive, media.program_ns),
            zone_write_bytes_per_s: bandwidth(zone, media.program_ns),
            read_bytes_per_s: bandwidth(drive, media.read_ns),
            read_iops: random_reads(config),
            bus_bytes_per_s: bus(drive.channels),
            zone_bus_bytes_per_s: bus(zone.channels),
            page_read_ns: media.read_ns.saturating_add(media.transfer_ns),
            page_write_ns: media.program_ns.saturating_add(media.transfer_ns),
            zone_erase_ns: erase_time(config, rows),
            zone_finish_ns: finish_time(config, pages),
        }
    }
}

/// `count` things in each `time`, per second; `None`: the time is zero.
fn per_second(count: u64, time: Nanos) -> Option<u64> {
    let per_s = (u128::from(count) * 1_000_000_000).checked_div(u128::from(time.0))?;
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
fn unit_time(media: &MediaConfig, transfer: u64, array: Nanos) -> Nanos {
    match media.page_register {
        PageRegister::Overlap => array,
        PageRegister::Hold => Nanos(array.0.saturating_add(transfer)),
    }
}

/// Bandwidth of long transfers of whole pages, before the host link.
fn stream(config: &DriveConfig, part: Part, array: Nanos) -> Ceiling {
    let DriveConfig { geometry, media, .. } = config;
    let pages = pages_per_operation(config);
    let units = u64::from(part.luns) * u64::from(units_per_lun(config));
    let page_bytes = u64::from(geometry.page_bytes);
    let transfer = media.transfer_ns.0 * u64::from(pages);
    let time = unit_time(media, transfer, array);
    let dies = per_second(units * u64::from(pages) * page_bytes, time);
    let channels = per_second(u64::from(part.channels) * page_bytes, media.transfer_ns);
    Ceiling { per_s: dies.unwrap_or(u64::MAX), limit: Limit::Dies }
        .narrower(channels, Limit::Channels)
}

/// Reads of one logical block each, spread over the drive.
fn random_reads(config: &DriveConfig) -> Ceiling {
    let DriveConfig { geometry, media, front_end, lba_bytes, .. } = config;
    let units = u64::from(geometry.luns()) * u64::from(units_per_lun(config));
    let transfer = if media.partial_transfer {
        media.transfer_ns.0 / u64::from(geometry.page_bytes / lba_bytes)
    } else {
        media.transfer_ns.0
    };
    let dies = per_second(units, unit_time(media, transfer, media.read_ns));
    let link = front_end.link_bytes_per_s.map(|rate| rate / u64::from(*lba_bytes));
    Ceiling { per_s: dies.unwrap_or(u64::MAX), limit: Limit::Dies }
        .narrower(per_second(geometry.channels.into(), Nanos(transfer)), Limit::Channels)
        .narrower(per_second(front_end.cores.into(), front_end.read_ns), Limit::Cores)
        .narrower(link, Limit::Link)
}

/// Erasing `rows` blocks on each plane of a zone.
fn erase_time(config: &DriveConfig, rows: u32) -> Nanos {
    // Step by step, planes of a die are erased one after the other; all at
    // once, those of a row together if the die can.
    let stepwise = config.reset.preempt_ns.is_some();
    let together = if stepwise { 1 } else { pages_per_operation(config) };
    let operations_per_row = config.geometry.planes / units_per_lun(config) / together;
    let operations = u64::from(rows) * u64::from(operations_per_row);
    Nanos(operations.saturating_mul(config.media.erase_ns.0))
}

/// Filling a zone from its first page to its last, as its finish does.
fn finish_time(config: &DriveConfig, pages: u32) -> Nanos {
    let FinishConfig::Fill { granularity_bytes, pause_ns, .. } = config.finish else {
        return config.front_end.management_ns;
    };
    let chunk = (granularity_bytes / config.geometry.page_bytes).min(pages);
    let (whole, rest) = (u64::from(pages / chunk), pages % chunk);
    let writes = whole + u64::from(rest > 0);
    let total = u128::from(whole) * u128::from(device_write_time(config, chunk).0)
        + u128::from(device_write_time(config, rest).0)
        + u128::from(writes - 1) * u128::from(pause_ns.0)
        + u128::from(config.front_end.management_ns.0);
    Nanos(u64::try_from(total).unwrap_or(u64::MAX))
}

/// One device write of `pages` consecutive pages to idle dies: pages in turn
/// take their channel, then their unit.
fn device_write_time(config: &DriveConfig, pages: u32) -> Nanos {
    /// Beyond this many pages, starting and ending are nothing beside the rest.
    const EXACT: u32 = 1 << 16;
    if pages > EXACT {
        let bytes = u64::from(pages) * u64::from(config.geometry.page_bytes);
        let zone = Part {
            channels: config.zones.channels,
            luns: config.zones.channels * config.zones.ways * config.geometry.dies,
        };
        let bytes_per_s = stream(config, zone, config.media.program_ns).per_s.max(1);
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s);
        return u64::try_from(ns).map_or(Nanos::MAX, Nanos);
    }
    Pipeline::new(config).write(pages)
}

/// The channels and units of one zone, each with the time at which it is free.
struct Pipeline<'c> {
    config: &'c DriveConfig,
    channels: Vec<u64>,
    units: Vec<u64>,
}

impl<'c> Pipeline<'c> {
    fn new(config: &'c DriveConfig) -> Self {
        let luns = config.zones.channels * config.zones.ways * config.geometry.dies;
        Self {
            config,
            channels: vec![0; config.zones.channels as usize],
            units: vec![0; (luns * units_per_lun(config)) as usize],
        }
    }

    /// When `pages` consecutive pages, the first of which begins a stripe, are programmed.
    fn write(mut self, pages: u32) -> Nanos {
        let media = &self.config.media;
        let together = pages_per_operation(self.config);
        let (mut page, mut end) = (0, 0);
        while page < pages {
            let (lun, unit) = self.place(page);
            let taken = together.min(pages - page);
            let transfer = media.transfer_ns.0 * u64::from(taken);
            let channel = &mut self.channels[lun % self.config.zones.channels as usize];
            let unit = &mut self.units[unit];
            let may_start = match media.page_register {
                PageRegister::Overlap => 0,
                PageRegister::Hold => *unit,
            };
            *channel = may_start.max(*channel) + transfer;
            *unit = (*channel).max(*unit) + media.program_ns.0;
            end = end.max(*unit);
            page += taken;
        }
        Nanos(end)
    }

    /// Die and unit, within the zone, of a page.
    fn place(&self, page: u32) -> (usize, usize) {
        let DriveConfig { geometry, zones, .. } = self.config;
        let luns = zones.channels * zones.ways * geometry.dies;
        let slot = page % (luns * geometry.planes);
        let (lun, plane) = match zones.stripe {
            StripeOrder::PlaneFirst => (slot / geometry.planes, slot % geometry.planes),
            StripeOrder::ChannelFirst => (slot % luns, slot / luns),
        };
        let units = units_per_lun(self.config);
        (lun as usize, (lun * units + plane % units) as usize)
    }
}
