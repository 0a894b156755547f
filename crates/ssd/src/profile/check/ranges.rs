//! Rules about single values.

use zonelab_config::units::{fmt_duration, fmt_percent, fmt_size};
use zonelab_device::Nanos;

use super::relations::size;
use super::{Rules, limits};
use crate::config::{DriveConfig, EraseWhen, FinishConfig, MappingConfig};

impl Rules<'_> {
    /// Each value by itself.
    pub(super) fn ranges(&mut self) {
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = &self.config.name;
        let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(in_name);
        if !good || name.len() > limits::NAME {
            let valid = "use up to 64 letters, digits, `-`, `_` and `.`: it names files too";
            self.refuse("name", "this is not a name", valid);
        }
        self.geometry_ranges();
        self.zrwa_ranges();
        self.media_ranges();
        self.front_end_ranges();
        self.write_buffer_ranges();
        self.management_ranges();
    }

    fn geometry_ranges(&mut self) {
        let DriveConfig {
            geometry, zones, ..
        } = self.config;
        if !matches!(self.config.lba_bytes, 512 | 4_096) {
            let what = format!(
                "{} is not a logical block size",
                size(self.config.lba_bytes)
            );
            self.refuse("namespace.lba_size", what, "write \"512B\" or \"4KiB\"");
        }
        for (key, value, max) in [
            ("geometry.channels", geometry.channels, limits::PLANES),
            ("geometry.ways", geometry.ways, limits::PLANES),
            ("geometry.dies", geometry.dies, limits::PLANES),
            ("geometry.planes", geometry.planes, limits::PLANES),
            (
                "geometry.blocks_per_plane",
                geometry.blocks_per_plane,
                limits::BLOCKS,
            ),
            (
                "geometry.pages_per_block",
                geometry.pages_per_block,
                limits::PAGES_PER_BLOCK,
            ),
            ("zones.count", zones.count, limits::ZONES),
        ] {
            self.number(key, value, 1, max);
        }
        // A zone cannot span more than there is; if there is nothing, that was said.
        for (key, part, whole) in [
            ("zones.channels", zones.channels, geometry.channels),
            ("zones.ways", zones.ways, geometry.ways),
        ] {
            if whole > 0 {
                self.number(key, part, 1, whole);
            }
        }
        self.size(
            "geometry.page_size",
            geometry.page_bytes,
            512,
            limits::PAGE_BYTES,
        );
        let extension = zones.descriptor_extension_bytes;
        self.size(
            "zones.descriptor_extension",
            extension,
            0,
            limits::DESCRIPTOR_EXTENSION_BYTES,
        );
    }

    fn media_ranges(&mut self) {
        let media = &self.config.media;
        for (key, time, min) in [
            ("media.read", media.read_ns, Nanos(1)),
            ("media.program", media.program_ns, Nanos(1)),
            ("media.erase", media.erase_ns, Nanos(1)),
            ("media.transfer", media.transfer_ns, Nanos::ZERO),
            (
                "media.suspend.overhead",
                media.suspend.overhead_ns,
                Nanos::ZERO,
            ),
            (
                "media.suspend.interval",
                media.suspend.interval_ns,
                Nanos::ZERO,
            ),
        ] {
            self.time(key, time, min, limits::FLASH_TIME);
        }
        let details = &media.details;
        for time in details.read_parts.iter().flat_map(|parts| parts.times()) {
            self.time("media.read", *time, Nanos(1), limits::FLASH_TIME);
        }
        let shares = [
            ("media.program_variation", details.program_variation_ppm),
            (
                "front_end.costs.variation",
                self.config.front_end.costs.variation_ppm,
            ),
        ];
        for (key, ppm) in shares {
            if ppm > 1_000_000 {
                let what = format!("{} is more than all of it", fmt_percent(ppm));
                self.refuse(key, what, "at most 100%");
            }
        }
    }

    fn front_end_ranges(&mut self) {
        let front = &self.config.front_end;
        self.number("front_end.cores", front.cores, 0, limits::CORES);
        for (key, time) in self.core_times() {
            self.time(key, time, Nanos::ZERO, limits::TIME);
        }
        let costs = self.config.front_end.costs;
        for (key, time) in costs.core_times().into_iter().chain(costs.latencies()) {
            self.time(key, time, Nanos::ZERO, limits::FLASH_TIME);
        }
        if front
            .link_bytes_per_s
            .is_some_and(|rate| rate < limits::LINK_BYTES_PER_S_MIN)
        {
            self.refuse("front_end.link", "the link is too slow", "at least 1MB/s");
        }
    }

    fn write_buffer_ranges(&mut self) {
        let Some(buffer) = &self.config.write_buffer else {
            return;
        };
        if buffer.size_bytes > limits::BUFFER_BYTES {
            let what = format!("{} is out of range", fmt_size(buffer.size_bytes));
            let valid = format!("at most {}", fmt_size(limits::BUFFER_BYTES));
            self.refuse("write_buffer.size", what, valid);
        }
        if buffer
            .drain_bytes_per_s
            .is_some_and(|rate| rate < limits::LINK_BYTES_PER_S_MIN)
        {
            self.refuse(
                "write_buffer.drain",
                "the drain is too slow",
                "at least 1MB/s",
            );
        }
        let lba_bytes = u64::from(self.config.lba_bytes);
        if let Some(bytes) = buffer.turn_bytes
            && (bytes == 0 || !bytes.is_multiple_of(lba_bytes))
        {
            let what = format!("{} are no whole logical blocks", fmt_size(bytes));
            let valid = format!("a multiple of {}", fmt_size(lba_bytes));
            self.refuse("write_buffer.turn", what, valid);
        }
        if buffer.appends_per_zone == Some(0) {
            let what = "no append would ever be admitted";
            self.refuse("write_buffer.appends_per_zone", what, "at least 1");
        }
    }

    fn management_ranges(&mut self) {
        if let FinishConfig::Fill {
            pause_ns, yield_ns, ..
        } = self.config.finish
        {
            self.time("finish.pause", pause_ns, Nanos::ZERO, limits::TIME);
            let hold = yield_ns.unwrap_or(Nanos::ZERO);
            self.time("finish.max_hold", hold, Nanos::ZERO, limits::TIME);
        }
        let hold = self.config.reset.preempt_ns.unwrap_or(Nanos::ZERO);
        self.time("reset.max_hold", hold, Nanos::ZERO, limits::TIME);
        if let Some(books) = self.config.reset.bookkeeping {
            for (key, time) in [
                ("reset.bookkeeping.base", books.base_ns),
                ("reset.bookkeeping.full_zone", books.full_zone_ns),
                ("reset.bookkeeping.drain_pause", books.drain_pause_ns),
                ("reset.bookkeeping.open_zone", books.open_zone_ns),
            ] {
                self.time(key, time, Nanos::ZERO, limits::TIME);
            }
            self.number("reset.bookkeeping.slices", books.slices, 1, limits::SLICES);
        }
        if let EraseWhen::Thresholds(thresholds) = self.config.reset.erase {
            let key = "reset.thresholds.free_zones";
            self.number(key, thresholds.free_zones, 0, limits::ZONES);
            if let Some(zones_at_once) = thresholds.zones_at_once {
                let key = "reset.thresholds.zones_at_once";
                self.number(key, zones_at_once, 1, limits::ZONES);
            }
            if let Some(invalid_zones) = thresholds.invalid_zones {
                let key = "reset.thresholds.invalid_zones";
                self.number(key, invalid_zones, 1, limits::ZONES);
            }
            if let Some(half_life) = thresholds.adapt {
                let key = "reset.thresholds.adapt";
                self.time(key, half_life, Nanos(1), limits::TIME);
            }
        }
        let mapping = self.config.mapping;
        if mapping != MappingConfig::Direct {
            let physical_zones = mapping.physical_zones(self.config.zones.count);
            self.number("mapping.physical_zones", physical_zones, 1, limits::ZONES);
        }
        if let MappingConfig::Chunk { chunk_blocks, .. } = mapping {
            self.number("mapping.chunk_blocks", chunk_blocks, 1, limits::BLOCKS);
        }
        self.allocation();
    }

    fn allocation(&mut self) {
        let allocation = self.config.allocation;
        self.time(
            "mapping.allocation",
            allocation.time_ns,
            Nanos::ZERO,
            limits::TIME,
        );
        self.number("mapping.pool", allocation.pool_zones, 0, limits::ZONES);
    }

    /// Times that firmware cores take for a command, by key.
    pub(super) fn core_times(&self) -> [(&'static str, Nanos); 4] {
        let front = &self.config.front_end;
        [
            ("front_end.read", front.read_ns),
            ("front_end.write", front.write_ns),
            ("front_end.append", front.append_ns),
            ("front_end.management", front.management_ns),
        ]
    }

    /// A number from `min` to `max`.
    pub(super) fn number(&mut self, key: &'static str, value: u32, min: u32, max: u32) {
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
}
