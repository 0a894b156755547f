//! Rules about several values, each of which is in range by itself.

use zonelab_config::units::{fmt_duration, fmt_size};
use zonelab_device::Nanos;

use super::super::keys;
use super::{Needs, Rules, limits};
use crate::config::{
    AllocationConfig, BufferRelease, ChannelArbitration, DiePolicy, DriveConfig, EraseWhen,
    FillExtent, FinishConfig, MappingConfig, NamespaceConfig, NamespaceKind, PageRegister,
    PlaneMode, StripeOrder, Suspend, Thresholds,
};

impl Rules<'_> {
    pub(super) fn relations(&mut self) {
        self.geometry();
        self.divides("zones.channels", "geometry.channels", |c| {
            (c.zones.channels, c.geometry.channels)
        });
        self.divides("zones.ways", "geometry.ways", |c| {
            (c.zones.ways, c.geometry.ways)
        });
        self.stagger();
        self.zone_sizes();
        self.zone_limits();
        self.namespaces();
        self.namespaces();
        self.descriptor_extension();
        self.zrwa();
        self.arbitration();
        self.suspend();
        self.media_details();
        self.transfer_time();
        self.needs();
        self.core_costs();
        self.transfer_limits();
        self.write_buffer();
        self.copy();
        self.granularity();
        self.preemption();
        self.thresholds();
        self.bookkeeping();
        self.physical_zones();
        self.allocations();
    }

    fn geometry(&mut self) {
        let DriveConfig {
            geometry,
            lba_bytes,
            ..
        } = self.config;
        let planes = [
            geometry.channels,
            geometry.ways,
            geometry.dies,
            geometry.planes,
        ];
        let planes: u128 = planes.into_iter().map(u128::from).product();
        if planes > u128::from(limits::PLANES) {
            let what = format!("channels x ways x dies x planes = {planes} planes");
            self.refuse(
                "geometry.channels",
                what,
                format!("at most {}", limits::PLANES),
            );
        }
        let blocks = planes * u128::from(geometry.blocks_per_plane);
        // Too many planes have too many blocks, which need not be said as well.
        if planes <= u128::from(limits::PLANES) && blocks > u128::from(limits::BLOCKS) {
            let what = format!(
                "{planes} planes x {} = {blocks} blocks",
                geometry.blocks_per_plane
            );
            self.refuse(
                "geometry.blocks_per_plane",
                what,
                format!("at most {}", limits::BLOCKS),
            );
        }
        if !geometry.page_bytes.is_multiple_of(*lba_bytes) {
            let what = not_a_multiple(geometry.page_bytes, "the logical block", *lba_bytes);
            let valid = multiples(geometry.page_bytes, *lba_bytes);
            self.refuse("geometry.page_size", what, valid);
        }
    }

    /// A zone spans an equal share of the drive, so that groups of zones do not overlap.
    fn divides(&mut self, key: &'static str, whole_key: &str, of: fn(&DriveConfig) -> (u32, u32)) {
        let (part, whole) = of(self.config);
        if whole.is_multiple_of(part) {
            return;
        }
        let divisors: Vec<String> = (1..=whole)
            .filter(|d| whole.is_multiple_of(*d))
            .map(|d| d.to_string())
            .collect();
        let what = format!("{part} does not divide {whole_key} = {whole}");
        self.refuse(key, what, format!("use one of {}", divisors.join(", ")));
    }

    fn stagger(&mut self) {
        let DriveConfig {
            geometry,
            zones,
            media,
            ..
        } = self.config;
        let width = [zones.channels, zones.ways, geometry.dies, geometry.planes]
            .into_iter()
            .try_fold(1, u32::checked_mul)
            .unwrap_or(u32::MAX);
        if zones.stagger >= width {
            let what = format!("{} planes are a turn of the stripe or more", zones.stagger);
            let valid = format!("less than the {width} planes of a zone");
            self.refuse("zones.stagger", what, valid);
        }
        let dies_whole = media.planes == PlaneMode::MultiPlane
            && zones.stripe == StripeOrder::PlaneFirst
            && !zones.stagger.is_multiple_of(geometry.planes);
        if dies_whole {
            let what = not_a_multiple_of_planes(zones.stagger, geometry.planes);
            let valid = "multi-plane operations take the planes of a die from its first";
            self.refuse("zones.stagger", what, valid);
        }
    }

    fn zone_sizes(&mut self) {
        let DriveConfig {
            geometry,
            zones,
            lba_bytes,
            ..
        } = self.config;
        let bytes = |lbas: u64| fmt_size_wide(u128::from(lbas) * u128::from(*lba_bytes));
        let size = bytes(zones.size_lbas);
        if zones.size_lbas == 0 {
            self.refuse(
                "zones.size",
                "a zone has no blocks",
                "at least one logical block",
            );
        } else if zones.capacity_lbas > zones.size_lbas {
            let what = format!("{} does not fit in a zone", bytes(zones.capacity_lbas));
            self.refuse(
                "zones.capacity",
                what,
                format!("at most zones.size = {size}"),
            );
        } else if zones.capacity_lbas == 0 {
            let valid = format!("at least one logical block, at most zones.size = {size}");
            self.refuse("zones.capacity", "nothing could be written", valid);
        }
        // Whole pages of a zone are counted in logical blocks, in 32 bits.
        let most = u32::MAX - geometry.page_bytes / lba_bytes;
        if zones.capacity_lbas > u64::from(most) {
            let what = format!("{} is too much for a zone", bytes(zones.capacity_lbas));
            let valid = format!(
                "at most {most} logical blocks of {}",
                fmt_size(u64::from(*lba_bytes))
            );
            self.refuse("zones.capacity", what, valid);
        }
        let namespace = u128::from(zones.size_lbas) * u128::from(zones.count);
        if namespace * u128::from(*lba_bytes) > u128::from(u64::MAX) {
            let what = format!("{} zones of {size} exceed 64-bit addresses", zones.count);
            self.refuse("zones.size", what, "use smaller or fewer zones");
        }
    }

    fn zone_limits(&mut self) {
        let zones = &self.config.zones;
        let (most, of) = match zones.max_active {
            Some(active) if active == 0 || active > zones.count => {
                return self.number("zones.max_active", active, 1, zones.count);
            }
            Some(active) => (active, "zones.max_active"),
            None => (zones.count, "zones.count"),
        };
        match zones.max_open {
            Some(open) if open == 0 || open > most => {
                let what = format!("{open} is out of range");
                let valid = format!("at least 1, at most {of} = {most}");
                self.refuse("zones.max_open", what, valid);
            }
            None if zones.max_active.is_some() => {
                let what = "open zones are active, so they cannot be unlimited";
                self.refuse("zones.max_open", what, format!("at most {of} = {most}"));
            }
            _ => {}
        }
    }

    fn descriptor_extension(&mut self) {
        let extension = self.config.zones.descriptor_extension_bytes;
        if !extension.is_multiple_of(64) {
            let what = not_a_multiple(extension, "its unit", 64);
            self.refuse("zones.descriptor_extension", what, multiples(extension, 64));
        }
    }

    fn arbitration(&mut self) {
        let media = &self.config.media;
        if media.arbitration == ChannelArbitration::Ready {
            return;
        }
        let what = "\"arrival\" needs dies that serve in order of arrival too";
        if media.policy != DiePolicy::Fifo {
            let valid = "use channel_arbitration = \"ready\" or die_queue = \"fifo\"";
            self.refuse("media.channel_arbitration", what, valid);
        }
        if media.suspend.program || media.suspend.erase {
            let valid = "use channel_arbitration = \"ready\" or suspend nothing";
            self.refuse("media.channel_arbitration", what, valid);
        }
        self.needs_ready_channels();
    }

    /// What is decided when a transfer ends cannot have its place reserved.
    fn needs_ready_channels(&mut self) {
        let media = &self.config.media;
        let buffer = self.config.write_buffer;
        let needs = [
            (
                "media.page_register",
                media.page_register == PageRegister::Cache,
            ),
            (
                "media.transfer_unit",
                media.details.transfer_unit_bytes.is_some(),
            ),
            (
                "write_buffer.release",
                buffer.is_some_and(|buffer| buffer.release == BufferRelease::Transfer),
            ),
        ];
        for (key, _) in needs.into_iter().filter(|(_, asked)| *asked) {
            let what = "it depends on the order of transfers, which \"arrival\" fixes";
            self.refuse(key, what, "use media.channel_arbitration = \"ready\"");
        }
    }

    fn media_details(&mut self) {
        let DriveConfig {
            geometry, media, ..
        } = self.config;
        let details = media.details;
        if let Some(bytes) = details.transfer_unit_bytes
            && !(512..=geometry.page_bytes).contains(&bytes)
        {
            let what = format!("{} is no part of a page", size(bytes));
            let valid = format!("512B to geometry.page_size = {}", size(geometry.page_bytes));
            self.refuse("media.transfer_unit", what, valid);
        }
        let Some(parts) = details.read_parts else {
            return;
        };
        if media.read_ns != parts.mean() {
            let what = "the read time of a page in parts is their mean";
            self.refuse("media.read", what, fmt_duration(parts.mean().0));
        }
        let blocks = geometry.page_bytes / self.config.lba_bytes;
        let count = parts.times().len() as u32;
        if !blocks.is_multiple_of(count) {
            let what = format!("a page of {blocks} logical blocks has no {count} equal parts");
            let valid = "as many times as divide the page, or one";
            self.refuse("media.read", what, valid);
        }
    }

    fn suspend(&mut self) {
        let suspend = self.config.media.suspend;
        let suspends = suspend.program || suspend.erase;
        // One way to say it, so that a configuration and its file agree.
        if !suspends && suspend != Suspend::NONE {
            let what = "nothing is suspended, so nothing else can be said about it";
            let valid = "use program = true or erase = true, or Suspend::NONE";
            self.refuse("media.suspend", what, valid);
        }
    }

    /// The model adds up the transfers of a multi-plane operation, and scales
    /// that of a part of a page, in 32 bits of nanoseconds.
    fn transfer_time(&mut self) {
        let DriveConfig {
            geometry,
            media,
            lba_bytes,
            ..
        } = self.config;
        let factor = geometry.planes.max(geometry.page_bytes / lba_bytes);
        let most = u64::from(u32::MAX / factor);
        if media.transfer_ns.0 > most {
            let what = format!("{} is too long", fmt_duration(media.transfer_ns.0));
            self.refuse(
                "media.transfer",
                what,
                format!("at most {}", fmt_duration(most)),
            );
        }
    }

    /// A value other than nothing has an effect only with what its key needs.
    fn needs(&mut self) {
        for key in keys::all() {
            if let Some(needs) = &key.needs
                && !(needs.holds)(self.config)
                && key.applies(self.config)
                && !key.value.is_nothing(self.config)
            {
                self.refuse(key.path, needs.what, needs.valid);
            }
        }
    }

    fn core_costs(&mut self) {
        let costs = self.config.front_end.costs;
        let part = costs.part_of_unit_ns > Nanos::ZERO;
        let page = costs.unit_bytes.is_some_and(|unit| unit > 0);
        if part != page || costs.unit_bytes == Some(0) {
            let what = "a unit and the price of a part of it go together";
            let valid = "state front_end.costs.unit and part_of_unit, or neither";
            self.refuse("front_end.costs.unit", what, valid);
        }
    }

    fn transfer_limits(&mut self) {
        let front = &self.config.front_end;
        for (key, bytes) in [
            ("front_end.max_transfer", front.max_transfer_bytes),
            ("front_end.max_append", front.max_append_bytes),
        ] {
            if let Some(bytes) = bytes
                && (!bytes.is_power_of_two() || bytes < limits::TRANSFER_BYTES_MIN)
            {
                let what = format!("{} is not 4KiB times a power of two", size(bytes));
                let below = 1 << bytes.max(limits::TRANSFER_BYTES_MIN).ilog2();
                let valid = match u32::checked_mul(below, 2) {
                    Some(above) if bytes > below => {
                        format!("use {} or {}", size(below), size(above))
                    }
                    _ => format!("use {}", size(below)),
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

    /// A single range may be copied.
    fn copy(&mut self) {
        let Some(copy) = self.config.copy else { return };
        if copy.max_lbas < u32::from(copy.max_range_lbas) {
            let what = "it is less than one source range may have";
            self.refuse("copy.max_length", what, "at least copy.max_range");
        }
    }

    /// At least a page, and whole blocks: what is written in pieces fits then.
    fn write_buffer(&mut self) {
        let Some(buffer) = self.config.write_buffer else {
            return;
        };
        let page = self.config.geometry.page_bytes;
        if buffer.size_bytes < u64::from(page) {
            let what = format!("{} holds no page", fmt_size(buffer.size_bytes));
            let valid = format!("at least geometry.page_size = {}", size(page));
            self.refuse("write_buffer.size", what, valid);
        } else if !buffer
            .size_bytes
            .is_multiple_of(u64::from(self.config.lba_bytes))
        {
            let block = size(self.config.lba_bytes);
            let bytes = fmt_size(buffer.size_bytes);
            let what = format!("{bytes} is not a multiple of the logical block ({block})");
            self.refuse("write_buffer.size", what, "use whole logical blocks");
        }
        if self.config.places_by_work() && self.config.mapping.has_elements() {
            let what = "zones that are assembled from elements have no lines of all their dies";
            let valid = "use write_buffer.placement = \"in-order\", or mapping.design = \"direct\" \
                         or \"lazy\"";
            self.refuse("write_buffer.placement", what, valid);
        }
    }

    fn granularity(&mut self) {
        let FinishConfig::Fill {
            granularity_bytes,
            buffered,
            extent,
            ..
        } = self.config.finish
        else {
            return;
        };
        if extent == FillExtent::Elements && !self.config.mapping.has_elements() {
            let what = "a zone has no elements of its own that it could give back";
            let valid = "set mapping.design = \"chunk\" or \"stripe\", or extent = \"zone\"";
            self.refuse("finish.extent", what, valid);
        }
        if buffered && self.config.write_buffer.is_none() {
            let what = "there is no write buffer to go through";
            let valid = "set write_buffer.mode = \"write-back\", or path = \"flash\"";
            self.refuse("finish.path", what, valid);
        }
        // The buffer puts pages together from blocks; nobody else does.
        let (page, unit) = if buffered {
            (self.config.lba_bytes, "the logical block")
        } else {
            (self.config.geometry.page_bytes, "the page")
        };
        if granularity_bytes == 0 || !granularity_bytes.is_multiple_of(page) {
            let what = match granularity_bytes {
                0 => "device writes of 0B never fill a zone".to_owned(),
                bytes => not_a_multiple(bytes, unit, page),
            };
            self.refuse(
                "finish.granularity",
                what,
                multiples(granularity_bytes, page),
            );
        }
    }

    fn preemption(&mut self) {
        let reset = &self.config.reset;
        let at_write = matches!(
            reset.erase,
            EraseWhen::FirstZoneWrite | EraseWhen::FirstBlockWrite
        );
        if at_write && reset.preempt_ns.is_some() {
            let what = "an erasure that a write waits for cannot give way to it";
            let valid = "use erase_at = \"background\" or timing = \"synchronous\"";
            self.refuse("reset.preemptive", what, valid);
        }
    }

    fn thresholds(&mut self) {
        let EraseWhen::Thresholds(Thresholds {
            free_zones,
            invalid_zones,
            evaluate: _,
            zones_at_once: _,
            victim: _,
            adapt,
        }) = self.config.reset.erase
        else {
            return;
        };
        if self.config.reset.preempt_ns.is_some() {
            let what = "erasures by thresholds give way to the host by themselves";
            let valid = "leave it out; reset.thresholds.invalid_zones says when they may run";
            self.refuse("reset.preemptive", what, valid);
        }
        if adapt.is_some() && invalid_zones.is_none() {
            let what = "without reset.thresholds.invalid_zones no rows are erased that could wait";
            let valid = "set invalid_zones = 1, or leave it out";
            self.refuse("reset.thresholds.adapt", what, valid);
        }
        if self.config.mapping == MappingConfig::Direct {
            let what = "with direct mapping no zone is free or invalid";
            let valid = "set mapping.design = \"lazy\", \"chunk\" or \"stripe\", or use erase_at = \"background\"";
            return self.refuse("reset.erase_at", what, valid);
        }
        let physical_zones = self.config.mapping.physical_zones(self.config.zones.count);
        let is_log = |of: &NamespaceConfig| of.kind != NamespaceKind::Zoned;
        if self.config.namespaces.iter().any(is_log) {
            let what = "a conventional namespace cannot wait for its own collection";
            let valid = "use erase_at = \"background\", or zoned namespaces only";
            self.refuse("reset.erase_at", what, valid);
        }
        let groups = Needs::of(self.config).map_or(1, |needs| needs.groups);
        let most = physical_zones.div_ceil(groups);
        let of_group = if groups > 1 { " of a group" } else { "" };
        for (key, zones) in [
            ("reset.thresholds.free_zones", Some(free_zones)),
            ("reset.thresholds.invalid_zones", invalid_zones),
        ] {
            if zones.is_some_and(|zones| zones > most) {
                let what = format!("there are no more than {most} physical zones{of_group}");
                self.refuse(key, what, format!("at most {most}"));
            }
        }
    }

    fn bookkeeping(&mut self) {
        let Some(books) = self.config.reset.bookkeeping else {
            return;
        };
        let pauses = books.drain_pause_ns > Nanos::ZERO;
        // Without a buffer there is no pause, and that was said.
        if self.config.write_buffer.is_some() && books.drain_pause_ns > books.full_zone_ns {
            let key = "reset.bookkeeping.drain_pause";
            let [pause, full] = [books.drain_pause_ns, books.full_zone_ns];
            let what = format!("{} is longer than the bookkeeping", fmt_duration(pause.0));
            let valid = format!("at most full_zone = {}", fmt_duration(full.0));
            self.refuse(key, what, valid);
        }
        let times = [books.base_ns, books.full_zone_ns, books.open_zone_ns];
        let nothing = times == [Nanos::ZERO; 3] && !pauses && !books.quiesce;
        if (nothing || !pauses) && books.slices != 1 {
            let what = "nothing is divided into slices";
            self.refuse("reset.bookkeeping.slices", what, "state drain_pause, or 1");
        } else if nothing {
            // One way to say it, so that a configuration and its file agree.
            let what = "bookkeeping that takes no time is none";
            self.refuse("reset.bookkeeping.base", what, "a time, or `None`");
        }
    }

    fn physical_zones(&mut self) {
        let count = self.config.zones.count;
        let physical_zones = self.config.mapping.physical_zones(count);
        if physical_zones < count && !self.config.allocation.thin {
            let what = format!("{physical_zones} cannot carry {count} zones");
            self.refuse(
                "mapping.physical_zones",
                what,
                format!("at least zones.count = {count}"),
            );
        }
    }
}

impl Rules<'_> {
    /// What an allocation can be.
    pub(super) fn allocations(&mut self) {
        let AllocationConfig {
            time_ns,
            pool_zones,
            depth_weight,
            ..
        } = self.config.allocation;
        let mapping = self.config.mapping;
        if mapping == MappingConfig::Direct {
            if self.config.allocation != AllocationConfig::NONE {
                let what = "zones keep their flash with direct mapping";
                let valid = "set mapping.design to another than \"direct\", or leave it out";
                self.refuse("mapping.allocation", what, valid);
            }
            return;
        }
        if pool_zones > 0 && time_ns == Nanos::ZERO {
            let what = "there is nothing to prepare if allocation takes no time";
            self.refuse("mapping.pool", what, "set mapping.allocation, or pool = 0");
        }
        if self.config.allocation.thin {
            self.thin();
        }
        if depth_weight.is_none() {
            return;
        }
        if !matches!(mapping, MappingConfig::Chunk { .. }) {
            let what = "only chunks are on one LUN";
            let valid = "set mapping.design = \"chunk\", or leave it out";
            self.refuse("mapping.depth_weight", what, valid);
        } else if self.config.media.planes == PlaneMode::MultiPlane {
            let what = "neighbours of a zone may be on one plane, and no multi-plane operation";
            let valid = "set media.planes to another than \"multi-plane\", or leave it out";
            self.refuse("mapping.depth_weight", what, valid);
        }
    }

    /// What a drive with more zones than flash needs.
    fn thin(&mut self) {
        let key = "mapping.thin";
        let gives_back = matches!(
            self.config.finish,
            FinishConfig::Fill {
                extent: FillExtent::Elements,
                ..
            }
        );
        let is_zoned = |of: &NamespaceConfig| of.kind == NamespaceKind::Zoned;
        let groups = Needs::of(self.config).map_or(1, |needs| needs.groups);
        if !self.config.mapping.has_elements() {
            let what =
                "only zones that consist of storage elements can be more than there is flash";
            let valid = "set mapping.design = \"chunk\" or \"stripe\", or thin = false";
            self.refuse(key, what, valid);
        } else if !gives_back {
            let what = "a finish that fills the zone gives nothing back for further zones";
            let valid = "set finish.extent = \"elements\", or thin = false";
            self.refuse(key, what, valid);
        } else if !self.config.namespaces.iter().all(is_zoned) {
            let what = "conventional namespaces need flash for all of their zones";
            self.refuse(key, what, "zoned namespaces, or thin = false");
        } else if self.config.mapping.physical_zones(1) < groups {
            let what = format!("each of {groups} groups of zones needs flash for one");
            let valid = format!("at least mapping.physical_zones = {groups}");
            self.refuse("mapping.physical_zones", what, valid);
        }
    }

    /// Chunks divide what a zone has on each plane.
    pub(super) fn chunks(&mut self, needs: &Needs) {
        let MappingConfig::Chunk { chunk_blocks, .. } = self.config.mapping else {
            return;
        };
        let rows = needs.rows;
        if rows.is_multiple_of(u64::from(chunk_blocks)) {
            return;
        }
        let divisors = (1..=rows.isqrt())
            .filter(|small| rows.is_multiple_of(*small))
            .flat_map(|small| [small, rows / small]);
        let chunk = u64::from(chunk_blocks);
        let below = divisors.clone().filter(|divisor| *divisor < chunk).max();
        let above = divisors.filter(|divisor| *divisor > chunk).min();
        let near: Vec<String> = [below, above]
            .into_iter()
            .flatten()
            .map(|divisor| divisor.to_string())
            .collect();
        let what = format!(
            "chunks of {chunk_blocks} blocks do not divide the {rows} blocks that a zone has on \
             each plane"
        );
        let valid = format!("use {}", near.join(" or "));
        self.refuse("mapping.chunk_blocks", what, valid);
    }
}

pub(super) fn size(bytes: u32) -> String {
    fmt_size(bytes.into())
}

/// Sizes of configurations that are wrong may not fit in 64 bits.
fn fmt_size_wide(bytes: u128) -> String {
    u64::try_from(bytes).map_or_else(|_| format!("{bytes}B"), fmt_size)
}

fn not_a_multiple_of_planes(value: u32, planes: u32) -> String {
    format!("{value} is not a multiple of geometry.planes = {planes}")
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
