//! The rules that a drive's configuration keeps, wherever it comes from.

use std::fmt;

use zonelab_config::units::{fmt_duration, fmt_size};
use zonelab_device::Nanos;

use super::derived::{Derived, Needs};
use crate::config::{
    ChannelArbitration, DiePolicy, DriveConfig, EraseWhen, FinishConfig, MappingConfig, Suspend,
};

/// Limits of single values. They are far above real drives and exist so that
/// every configuration within them can be built: nothing overflows, and the
/// counters that the model keeps per block and per zone fit in memory.
pub mod limits {
    use zonelab_device::Nanos;

    /// Planes of a drive; also bounds channels, ways and dies.
    pub const PLANES: u32 = 1 << 16;
    /// Blocks of a drive. The model keeps four bytes for each.
    pub const BLOCKS: u32 = 1 << 26;
    /// Pages in a block.
    pub const PAGES_PER_BLOCK: u32 = 65_535;
    /// Bytes in a page.
    pub const PAGE_BYTES: u32 = 1 << 20;
    /// Zones and physical zones of a drive.
    pub const ZONES: u32 = 1 << 22;
    /// One flash operation; its time is kept in 32 bits of nanoseconds.
    pub const FLASH_TIME: Nanos = Nanos::from_secs(4);
    /// Any other time.
    pub const TIME: Nanos = Nanos::from_secs(3_600);
    /// Firmware cores.
    pub const CORES: u32 = 1_024;
    /// The slowest host link in bytes per second.
    pub const LINK_BYTES_PER_S_MIN: u64 = 1_000_000;
    /// A zone descriptor extension: 255 units of 64 bytes (ZNS command set 1.1, ZDES).
    pub const DESCRIPTOR_EXTENSION_BYTES: u32 = 255 * 64;
    /// The smallest transfer limit: MDTS and ZASL count in pages of 4 KiB.
    pub const TRANSFER_BYTES_MIN: u32 = 4_096;
    /// Characters of a profile's name.
    pub const NAME: usize = 64;
}

/// A rule that a configuration breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key of a profile that sets the value, `zones.capacity`.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// What would be valid.
    pub valid: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)?;
        if self.valid.is_empty() { Ok(()) } else { write!(f, "; {}", self.valid) }
    }
}

impl std::error::Error for Violation {}

/// Checks a configuration, and works out what follows from it.
///
/// # Errors
/// Every rule that is broken. Rules about several values are only looked at
/// when each value by itself is in range.
pub fn check(config: &DriveConfig) -> Result<Derived, Vec<Violation>> {
    let mut rules = Rules { config, broken: Vec::new() };
    rules.ranges();
    rules.stop()?;
    rules.addressing();
    rules.limits_of_zones();
    rules.media();
    rules.front_end();
    rules.management();
    rules.stop()?;
    let needs = Needs::of(config);
    rules.flash(&needs);
    rules.stop()?;
    Ok(Derived::new(config, &needs))
}

struct Rules<'c> {
    config: &'c DriveConfig,
    broken: Vec<Violation>,
}

impl Rules<'_> {
    fn refuse(&mut self, key: &'static str, what: impl Into<String>, valid: impl Into<String>) {
        self.broken.push(Violation { key, what: what.into(), valid: valid.into() });
    }

    fn stop(&mut self) -> Result<(), Vec<Violation>> {
        if self.broken.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.broken)) }
    }

    fn number(&mut self, key: &'static str, value: u32, min: u32, max: u32) {
        if !(min..=max).contains(&value) {
            let valid = format!("at least {min}, at most {max}");
            self.refuse(key, format!("{value} is out of range"), valid);
        }
    }

    fn size(&mut self, key: &'static str, bytes: u32, min: u32, max: u32) {
        if !(min..=max).contains(&bytes) {
            let [value, min, max] = [bytes, min, max].map(|b| fmt_size(b.into()));
            self.refuse(
                key,
                format!("{value} is out of range"),
                format!("at least {min}, at most {max}"),
            );
        }
    }

    fn time(&mut self, key: &'static str, time: Nanos, min: Nanos, max: Nanos) {
        if !(min..=max).contains(&time) {
            let [value, min, max] = [time, min, max].map(|t| fmt_duration(t.0));
            self.refuse(
                key,
                format!("{value} is out of range"),
                format!("at least {min}, at most {max}"),
            );
        }
    }

    /// Each value by itself.
    fn ranges(&mut self) {
        let DriveConfig { geometry, zones, media, .. } = self.config;
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = &self.config.name;
        let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(in_name);
        if !good || name.len() > limits::NAME {
            let valid = "use up to 64 letters, digits, `-`, `_` and `.`: it names files too";
            self.refuse("name", "this is not a name", valid);
        }
        self.number("geometry.channels", geometry.channels, 1, limits::PLANES);
        self.number("geometry.ways", geometry.ways, 1, limits::PLANES);
        self.number("geometry.dies", geometry.dies, 1, limits::PLANES);
        self.number("geometry.planes", geometry.planes, 1, limits::PLANES);
        self.number("geometry.blocks_per_plane", geometry.blocks_per_plane, 1, limits::BLOCKS);
        let pages = geometry.pages_per_block;
        self.number("geometry.pages_per_block", pages, 1, limits::PAGES_PER_BLOCK);
        self.size("geometry.page_size", geometry.page_bytes, 512, limits::PAGE_BYTES);
        if !matches!(self.config.lba_bytes, 512 | 4_096) {
            let what = format!("{} is not a logical block size", size(self.config.lba_bytes));
            self.refuse("namespace.lba_size", what, "write \"512B\" or \"4KiB\"");
        }
        self.number("zones.count", zones.count, 1, limits::ZONES);
        self.number("zones.channels", zones.channels, 1, geometry.channels.max(1));
        self.number("zones.ways", zones.ways, 1, geometry.ways.max(1));
        let extension = zones.descriptor_extension_bytes;
        self.size("zones.descriptor_extension", extension, 0, limits::DESCRIPTOR_EXTENSION_BYTES);
        let shortest = Nanos(1);
        self.time("media.read", media.read_ns, shortest, limits::FLASH_TIME);
        self.time("media.program", media.program_ns, shortest, limits::FLASH_TIME);
        self.time("media.erase", media.erase_ns, shortest, limits::FLASH_TIME);
        self.time("media.transfer", media.transfer_ns, Nanos::ZERO, limits::FLASH_TIME);
        let overhead = media.suspend.overhead_ns;
        self.time("media.suspend.overhead", overhead, Nanos::ZERO, limits::FLASH_TIME);
        self.front_end_ranges();
        self.management_ranges();
    }

    fn front_end_ranges(&mut self) {
        let front = &self.config.front_end;
        self.number("front_end.cores", front.cores, 0, limits::CORES);
        for (key, time) in self.core_times() {
            self.time(key, time, Nanos::ZERO, limits::TIME);
        }
        if front.link_bytes_per_s.is_some_and(|rate| rate < limits::LINK_BYTES_PER_S_MIN) {
            self.refuse("front_end.link", "the link is too slow", "at least 1MB/s");
        }
    }

    fn management_ranges(&mut self) {
        if let FinishConfig::Fill { pause_ns, yield_ns, .. } = self.config.finish {
            self.time("finish.pause", pause_ns, Nanos::ZERO, limits::TIME);
            let hold = yield_ns.unwrap_or(Nanos::ZERO);
            self.time("finish.max_hold", hold, Nanos::ZERO, limits::TIME);
        }
        let hold = self.config.reset.preempt_ns.unwrap_or(Nanos::ZERO);
        self.time("reset.max_hold", hold, Nanos::ZERO, limits::TIME);
        if let MappingConfig::Lazy { physical_zones } = self.config.mapping {
            self.number("mapping.physical_zones", physical_zones, 1, limits::ZONES);
        }
    }

    fn core_times(&self) -> [(&'static str, Nanos); 4] {
        let front = &self.config.front_end;
        [
            ("front_end.read", front.read_ns),
            ("front_end.write", front.write_ns),
            ("front_end.append", front.append_ns),
            ("front_end.management", front.management_ns),
        ]
    }

    /// Planes, pages, logical blocks, and the parts of the drive that zones span.
    fn addressing(&mut self) {
        let DriveConfig { geometry, zones, lba_bytes, .. } = self.config;
        let planes = [geometry.channels, geometry.ways, geometry.dies, geometry.planes];
        let planes: u128 = planes.into_iter().map(u128::from).product();
        if planes > u128::from(limits::PLANES) {
            let what = format!("channels x ways x dies x planes = {planes} planes");
            self.refuse("geometry.channels", what, format!("at most {}", limits::PLANES));
        }
        let blocks = planes * u128::from(geometry.blocks_per_plane);
        if blocks > u128::from(limits::BLOCKS) {
            let what = format!("{planes} planes with {} blocks", geometry.blocks_per_plane);
            let valid = format!("at most {} blocks in all", limits::BLOCKS);
            self.refuse("geometry.blocks_per_plane", what, valid);
        }
        if !geometry.page_bytes.is_multiple_of(*lba_bytes) {
            let what = not_a_multiple(geometry.page_bytes, "the logical block", *lba_bytes);
            let valid = multiples(geometry.page_bytes, *lba_bytes);
            self.refuse("geometry.page_size", what, valid);
        }
        self.divides("zones.channels", zones.channels, "geometry.channels", geometry.channels);
        self.divides("zones.ways", zones.ways, "geometry.ways", geometry.ways);
        let bytes = |lbas: u64| fmt_size_wide(u128::from(lbas) * u128::from(*lba_bytes));
        if zones.capacity_lbas == 0 || zones.capacity_lbas > zones.size_lbas {
            let what = format!("{} do not fit", bytes(zones.capacity_lbas));
            let what = if zones.capacity_lbas == 0 { "a zone has no blocks".into() } else { what };
            let valid = format!("at most zones.size = {}", bytes(zones.size_lbas));
            self.refuse("zones.capacity", what, valid);
        }
        let namespace = u128::from(zones.size_lbas) * u128::from(zones.count);
        if namespace * u128::from(*lba_bytes) > u128::from(u64::MAX) {
            let what = format!("{} zones of {} overflow", zones.count, bytes(zones.size_lbas));
            self.refuse("zones.size", what, "at most 2^64 bytes in all");
        }
        // Also whole pages of a zone are counted in logical blocks, in 32 bits.
        let zone_lbas_max = u32::MAX - geometry.page_bytes / lba_bytes;
        if zones.capacity_lbas > u64::from(zone_lbas_max) {
            let what = format!("{} are too many for a zone", bytes(zones.capacity_lbas));
            self.refuse("zones.capacity", what, format!("at most {zone_lbas_max} logical blocks"));
        }
    }

    fn divides(&mut self, key: &'static str, part: u32, whole_key: &str, whole: u32) {
        if whole.is_multiple_of(part) {
            return;
        }
        let divisors: Vec<String> = (1..=whole)
            .filter(|d| whole.is_multiple_of(*d))
            .map(|d| d.to_string())
            .collect();
        let what = format!("{part} does not divide {whole_key} = {whole}");
        self.refuse(key, what, format!("its divisors are {}", divisors.join(", ")));
    }

    fn limits_of_zones(&mut self) {
        let zones = &self.config.zones;
        if let Some(active) = zones.max_active {
            self.number("zones.max_active", active, 1, zones.count);
        }
        let (most, of) = match zones.max_active {
            Some(active) => (active, "zones.max_active"),
            None => (zones.count, "zones.count"),
        };
        match zones.max_open {
            Some(open) if open == 0 || open > most => {
                let what = format!("{open} zones cannot be the limit");
                self.refuse("zones.max_open", what, format!("at least 1, at most {of} = {most}"));
            }
            None if zones.max_active.is_some() => {
                let what = "open zones are active, so they are not unlimited";
                self.refuse("zones.max_open", what, format!("at most {of} = {most}"));
            }
            _ => {}
        }
        if !zones.descriptor_extension_bytes.is_multiple_of(64) {
            let what = not_a_multiple(zones.descriptor_extension_bytes, "the unit", 64);
            let valid = multiples(zones.descriptor_extension_bytes, 64);
            self.refuse("zones.descriptor_extension", what, valid);
        }
    }

    fn media(&mut self) {
        let DriveConfig { geometry, media, lba_bytes, .. } = self.config;
        let Suspend { program, erase, overhead_ns, max_per_operation } = media.suspend;
        let suspends = program || erase;
        if media.arbitration == ChannelArbitration::Arrival {
            let why = "\"arrival\" gives out the channel before it is known who is served first";
            if media.policy != DiePolicy::Fifo {
                let valid = "use die_queue = \"fifo\", or channel_arbitration = \"ready\"";
                self.refuse("media.channel_arbitration", why, valid);
            }
            if suspends {
                let valid = "suspend nothing, or use channel_arbitration = \"ready\"";
                self.refuse("media.channel_arbitration", why, valid);
            }
        }
        if media.policy == (DiePolicy::Weighted { reads: 0 }) {
            self.refuse("media.read_weight", "0 reads would never be served", "at least 1");
        }
        if suspends && max_per_operation == 0 {
            let what = "0 suspends per operation are no suspends";
            let valid = "at least 1, or program = false and erase = false";
            self.refuse("media.suspend.max_per_operation", what, valid);
        }
        if !suspends && (overhead_ns != Nanos::ZERO || max_per_operation != 0) {
            let what = "nothing is suspended";
            let valid = "set program = true or erase = true, or leave the section out";
            self.refuse("media.suspend", what, valid);
        }
        // The model sums the transfers of a multi-plane operation, and scales
        // that of a part of a page, in 32 bits of nanoseconds.
        let factor = geometry.planes.max(geometry.page_bytes / lba_bytes);
        let most = u64::from(u32::MAX) / u64::from(factor);
        if media.transfer_ns.0 > most {
            let what = format!("{} is too long", fmt_duration(media.transfer_ns.0));
            self.refuse("media.transfer", what, format!("at most {}", fmt_duration(most)));
        }
    }

    fn front_end(&mut self) {
        let front = &self.config.front_end;
        if front.cores == 0 {
            for (key, time) in self.core_times() {
                if time != Nanos::ZERO {
                    let what = "without cores, processing takes no time";
                    self.refuse(key, what, "set front_end.cores, or leave this key out");
                }
            }
        }
        for (key, bytes) in [
            ("front_end.max_transfer", front.max_transfer_bytes),
            ("front_end.max_append", front.max_append_bytes),
        ] {
            let Some(bytes) = bytes else { continue };
            if !bytes.is_power_of_two() || bytes < limits::TRANSFER_BYTES_MIN {
                let what = format!("{} is not 4KiB times a power of two", size(bytes));
                let below = 1 << bytes.max(limits::TRANSFER_BYTES_MIN).ilog2();
                let valid = match below {
                    _ if bytes < limits::TRANSFER_BYTES_MIN || below > u32::MAX / 2 => {
                        format!("use {}", size(below))
                    }
                    _ => format!("use {} or {}", size(below), size(below * 2)),
                };
                self.refuse(key, what, valid);
            }
        }
        if let (Some(transfer), Some(append)) = (front.max_transfer_bytes, front.max_append_bytes)
            && append > transfer
        {
            let what = format!("{} is more than any transfer", size(append));
            let valid = format!("at most front_end.max_transfer = {}", size(transfer));
            self.refuse("front_end.max_append", what, valid);
        }
    }

    fn management(&mut self) {
        let page = self.config.geometry.page_bytes;
        if let FinishConfig::Fill { granularity_bytes, .. } = self.config.finish
            && (granularity_bytes == 0 || !granularity_bytes.is_multiple_of(page))
        {
            let what = if granularity_bytes == 0 {
                "device writes of nothing never end".to_owned()
            } else {
                not_a_multiple(granularity_bytes, "the page", page)
            };
            self.refuse("finish.granularity", what, multiples(granularity_bytes, page));
        }
        let reset = &self.config.reset;
        let at_write =
            matches!(reset.erase, EraseWhen::FirstZoneWrite | EraseWhen::FirstBlockWrite);
        if at_write && reset.preempt_ns.is_some() {
            let what = "the write that waits for an erasure cannot also preempt it";
            let valid = "use erase_at = \"background\", timing = \"synchronous\", or not preemptive";
            self.refuse("reset.preemptive", what, valid);
        }
        let count = self.config.zones.count;
        if let MappingConfig::Lazy { physical_zones } = self.config.mapping
            && physical_zones < count
        {
            let what = format!("{physical_zones} cannot carry {count} zones");
            self.refuse("mapping.physical_zones", what, format!("at least zones.count = {count}"));
        }
    }

    /// Whether there is enough flash.
    fn flash(&mut self, needs: &Needs) {
        let have = u64::from(self.config.geometry.blocks_per_plane);
        let need = needs.blocks_per_plane();
        if need <= have {
            return;
        }
        let (key, zones, count_key) = match self.config.mapping {
            MappingConfig::Direct => ("zones.count", "zones", "count"),
            MappingConfig::Lazy { .. } => {
                ("mapping.physical_zones", "physical zones", "physical_zones")
            }
        };
        let (count, rows, groups) = (needs.physical_zones, needs.rows, needs.groups);
        let in_groups = if groups > 1 { format!(" in {groups} groups") } else { String::new() };
        let per_group = needs.zones_per_group();
        let holds = have / rows * u64::from(groups);
        let what = format!(
            "{count} {zones}{in_groups} need {per_group} x {rows} = {need} blocks in each plane; \
             geometry.blocks_per_plane = {have} holds {holds} zones"
        );
        // Lazy mapping with fewer physical zones than zones would be refused next.
        let fewer_is_valid = match self.config.mapping {
            MappingConfig::Direct => holds > 0,
            MappingConfig::Lazy { .. } => holds >= u64::from(self.config.zones.count),
        };
        let valid = if fewer_is_valid {
            format!("set {count_key} = {holds} or blocks_per_plane = {need}")
        } else {
            format!("set blocks_per_plane = {need}")
        };
        self.refuse(key, what, valid);
    }
}

fn size(bytes: u32) -> String {
    fmt_size(bytes.into())
}

/// Sizes of configurations that are wrong may not fit in 64 bits.
fn fmt_size_wide(bytes: u128) -> String {
    u64::try_from(bytes).map_or_else(|_| format!("{bytes}B"), fmt_size)
}

fn not_a_multiple(value: u32, of: &str, unit: u32) -> String {
    format!("{} is not a multiple of {of} ({})", size(value), size(unit))
}

/// The multiples of `unit` next to `value`.
fn multiples(value: u32, unit: u32) -> String {
    let below = value / unit * unit;
    match (below, below.checked_add(unit)) {
        (0, _) => format!("use {}", size(unit)),
        (below, None) => format!("use {}", size(below)),
        (below, Some(above)) => format!("use {} or {}", size(below), size(above)),
    }
}
