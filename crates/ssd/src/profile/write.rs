//! From a configuration to its keys, and to TOML.

use std::fmt::Write as _;

use zonelab_config::units::{fmt_duration, fmt_percent, fmt_rate, fmt_size, quote};
use zonelab_device::{CopyLimits, Nanos};

use super::names::{self, Buffer, EraseAt, Finish, Mapping, Queue, Timing, name_of};
use crate::config::{
    AllocationConfig, Bookkeeping, CommandCosts, DiePolicy, DriveConfig, EraseWhen, FillExtent,
    FinishConfig, FrontEndConfig, Geometry, MappingConfig, MediaConfig, NamespaceConfig,
    NamespaceKind, ResetConfig, Suspend, Thresholds, WriteBufferConfig, ZonesConfig, ZrwaConfig,
};

/// A key of a profile and its value in a configuration.
pub(super) struct Key {
    /// Section; empty: top level.
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    pub(super) value: Value,
}

/// The value of a key.
pub(super) enum Value {
    /// A string of TOML.
    Text(String),
    /// A number or a truth value of TOML, as written.
    Bare(String),
    /// The key is absent, which means this.
    Absent(&'static str),
}

impl Key {
    /// Path of the key in a document.
    pub(super) fn path(&self) -> String {
        if self.section.is_empty() {
            self.key.to_owned()
        } else {
            format!("{}.{}", self.section, self.key)
        }
    }
}

/// Writes a configuration as TOML: every key that has an effect, with its
/// value, so that the text does not depend on defaults.
///
/// [`Profile::parse`](super::Profile::parse) of the text gives the same
/// configuration, provided that it is one that [`check`](super::check) accepts.
#[must_use]
pub fn to_toml(config: &DriveConfig) -> String {
    let mut text = "schema = 1\n".to_owned();
    let mut section = "";
    for Key {
        section: of,
        key,
        value,
    } in keys(config)
    {
        let value = match value {
            Value::Absent(_) => continue,
            Value::Text(value) => quote(&value),
            Value::Bare(value) => value,
        };
        if of != section {
            section = of;
            writeln!(text, "\n[{section}]").expect("writing to a string does not fail");
        }
        writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
    }
    for namespace in &config.namespaces {
        text.push_str("\n[[namespaces]]\n");
        if namespace.kind != NamespaceKind::Zoned {
            text.push_str("kind = \"conventional\"\n");
        }
        for (key, value) in namespace_keys(namespace) {
            writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
        }
    }
    text
}

/// The keys of a namespace that a file states. A limit that is none has no
/// spelling: the drive has none either, then.
fn namespace_keys(namespace: &NamespaceConfig) -> impl Iterator<Item = (&'static str, u32)> {
    let spare_zones = match namespace.kind {
        NamespaceKind::Zoned => None,
        NamespaceKind::Conventional { spare_zones } => Some(spare_zones),
    };
    [
        ("zones", Some(namespace.zones)),
        ("spare_zones", spare_zones),
        ("max_active", namespace.max_active),
        ("max_open", namespace.max_open),
    ]
    .into_iter()
    .filter_map(|(key, value)| value.map(|value| (key, value)))
}

/// Every key that has an effect, in the order of a file.
pub(super) fn keys(config: &DriveConfig) -> Vec<Key> {
    // A field that is added to the configuration has to be dealt with here.
    let DriveConfig {
        name,
        geometry,
        lba_bytes,
        zones,
        // An array of tables, not keys: see `to_toml`.
        namespaces: _,
        copy,
        media,
        front_end,
        write_buffer,
        finish,
        reset,
        mapping,
        allocation,
        data,
    } = config;
    let mut keys = Keys {
        section: "",
        keys: Vec::new(),
    };
    keys.text("name", name);
    keys.geometry(geometry);
    keys.section = "namespace";
    keys.size("lba_size", u64::from(*lba_bytes));
    keys.zones(zones, u64::from(*lba_bytes));
    keys.copy(copy.as_ref(), u64::from(*lba_bytes));
    keys.media(media);
    keys.suspend(media.suspend);
    keys.front_end(front_end);
    keys.write_buffer(write_buffer.as_ref());
    keys.finish(finish);
    keys.reset(reset);
    keys.mapping(*mapping);
    keys.allocation(*mapping, *allocation);
    keys.section = "data";
    keys.text("store", name_of(names::STORE, data));
    keys.keys
}

struct Keys {
    section: &'static str,
    keys: Vec<Key>,
}

impl Keys {
    fn push(&mut self, key: &'static str, value: Value) {
        self.keys.push(Key {
            section: self.section,
            key,
            value,
        });
    }

    fn text(&mut self, key: &'static str, text: &str) {
        self.push(key, Value::Text(text.to_owned()));
    }

    fn number(&mut self, key: &'static str, number: u32) {
        self.push(key, Value::Bare(number.to_string()));
    }

    fn flag(&mut self, key: &'static str, flag: bool) {
        self.push(key, Value::Bare(flag.to_string()));
    }

    fn size(&mut self, key: &'static str, bytes: u64) {
        self.text(key, &fmt_size(bytes));
    }

    fn time(&mut self, key: &'static str, time: Nanos) {
        self.text(key, &fmt_duration(time.0));
    }

    fn times(&mut self, key: &'static str, times: &[Nanos]) {
        let times: Vec<String> = times.iter().map(|t| quote(&fmt_duration(t.0))).collect();
        self.push(key, Value::Bare(format!("[{}]", times.join(", "))));
    }

    fn percent(&mut self, key: &'static str, ppm: u32) {
        self.text(key, &fmt_percent(ppm));
    }

    fn geometry(&mut self, geometry: &Geometry) {
        let Geometry {
            channels,
            ways,
            dies,
            planes,
            blocks_per_plane,
            pages_per_block,
            page_bytes,
        } = *geometry;
        self.section = "geometry";
        self.number("channels", channels);
        self.number("ways", ways);
        self.number("dies", dies);
        self.number("planes", planes);
        self.number("blocks_per_plane", blocks_per_plane);
        self.number("pages_per_block", pages_per_block);
        self.size("page_size", u64::from(page_bytes));
    }

    fn zones(&mut self, zones: &ZonesConfig, lba_bytes: u64) {
        let ZonesConfig {
            count,
            size_lbas,
            capacity_lbas,
            max_active,
            max_open,
            channels,
            ways,
            stripe,
            stagger,
            read_across,
            descriptor_extension_bytes,
            zrwa,
        } = *zones;
        self.section = "zones";
        self.number("count", count);
        self.size("size", size_lbas.saturating_mul(lba_bytes));
        self.size("capacity", capacity_lbas.saturating_mul(lba_bytes));
        for (key, limit) in [("max_active", max_active), ("max_open", max_open)] {
            match limit {
                Some(limit) => self.number(key, limit),
                None => self.push(key, Value::Absent("unlimited")),
            }
        }
        self.number("channels", channels);
        self.number("ways", ways);
        self.text("stripe", name_of(names::STRIPE, &stripe));
        self.number("stagger", stagger);
        self.flag("read_across", read_across);
        self.size(
            "descriptor_extension",
            u64::from(descriptor_extension_bytes),
        );
        if let Some(zrwa) = &zrwa {
            self.zrwa(zrwa, lba_bytes);
        }
    }

    fn zrwa(&mut self, zrwa: &ZrwaConfig, lba_bytes: u64) {
        let ZrwaConfig {
            size_lbas,
            flush_granularity_lbas,
            max_areas,
            explicit_flush,
        } = *zrwa;
        self.section = "zones.zrwa";
        self.size("size", u64::from(size_lbas).saturating_mul(lba_bytes));
        let granularity = u64::from(flush_granularity_lbas).saturating_mul(lba_bytes);
        self.size("flush_granularity", granularity);
        match max_areas {
            Some(count) => self.number("count", count),
            None => self.push("count", Value::Absent("unlimited")),
        }
        self.flag("explicit_flush", explicit_flush);
    }

    fn media(&mut self, media: &MediaConfig) {
        let MediaConfig {
            read_ns,
            program_ns,
            erase_ns,
            transfer_ns,
            partial_transfer,
            page_register,
            planes,
            policy,
            arbitration,
            suspend: _, // a section of its own
            details,
        } = media;
        self.section = "media";
        match &details.read_parts {
            Some(parts) => self.times("read", parts.times()),
            None => self.time("read", *read_ns),
        }
        self.time("program", *program_ns);
        self.time("erase", *erase_ns);
        self.time("transfer", *transfer_ns);
        self.flag("partial_transfer", *partial_transfer);
        self.text(
            "page_register",
            name_of(names::PAGE_REGISTER, page_register),
        );
        self.text("planes", name_of(names::PLANES, planes));
        let queue = match policy {
            DiePolicy::Fifo => Queue::Fifo,
            DiePolicy::ReadFirst => Queue::ReadFirst,
            DiePolicy::Weighted { .. } => Queue::Weighted,
        };
        self.text("die_queue", name_of(names::QUEUE, &queue));
        if let DiePolicy::Weighted { reads } = policy {
            self.number("read_weight", *reads);
        }
        self.text(
            "channel_arbitration",
            name_of(names::ARBITRATION, arbitration),
        );
        if let Some(bytes) = details.transfer_unit_bytes {
            self.size("transfer_unit", u64::from(bytes));
        }
        if details.program_variation_ppm > 0 {
            self.percent("program_variation", details.program_variation_ppm);
        }
    }

    fn suspend(&mut self, suspend: Suspend) {
        let Suspend {
            program,
            erase,
            overhead_ns,
            max_per_operation,
            interval_ns,
        } = suspend;
        self.section = "media.suspend";
        self.flag("program", program);
        self.flag("erase", erase);
        if program || erase {
            self.time("overhead", overhead_ns);
            self.number("max_per_operation", max_per_operation);
            if interval_ns > Nanos::ZERO {
                self.time("interval", interval_ns);
            }
        }
    }

    fn front_end(&mut self, front_end: &FrontEndConfig) {
        let FrontEndConfig {
            cores,
            read_ns,
            write_ns,
            append_ns,
            management_ns,
            link_bytes_per_s,
            max_transfer_bytes,
            max_append_bytes,
            costs,
        } = *front_end;
        self.section = "front_end";
        self.number("cores", cores);
        self.time("read", read_ns);
        self.time("write", write_ns);
        self.time("append", append_ns);
        self.time("management", management_ns);
        match link_bytes_per_s {
            Some(rate) => self.text("link", &fmt_rate(rate)),
            None => self.push("link", Value::Absent("not modelled")),
        }
        match max_transfer_bytes {
            Some(bytes) => self.size("max_transfer", u64::from(bytes)),
            None => self.push("max_transfer", Value::Absent("unlimited")),
        }
        match max_append_bytes {
            Some(bytes) => self.size("max_append", u64::from(bytes)),
            None => self.push("max_append", Value::Absent("as max_transfer")),
        }
        self.command_costs(&costs);
    }

    /// Sections of which nothing differs from the defaults are left out.
    fn command_costs(&mut self, costs: &CommandCosts) {
        let CommandCosts {
            unit_bytes,
            open_ns,
            close_ns,
            variation_ppm,
            ..
        } = *costs;
        let is_zero = |(_, time): &(&str, Nanos)| *time == Nanos::ZERO;
        let has_options =
            unit_bytes.is_some() || open_ns.is_some() || close_ns.is_some() || variation_ppm > 0;
        if has_options || !costs.core_times().iter().all(is_zero) {
            self.section = "front_end.costs";
            match unit_bytes {
                Some(bytes) => self.size("unit", u64::from(bytes)),
                None => self.push("unit", Value::Absent("none")),
            }
            for (path, time) in costs.core_times() {
                match last_word(path) {
                    key @ "open" if open_ns.is_none() => self.as_management(key),
                    key @ "close" if close_ns.is_none() => self.as_management(key),
                    key => self.time(key, time),
                }
            }
            if variation_ppm > 0 {
                self.percent("variation", variation_ppm);
            }
        }
        if !costs.latencies().iter().all(is_zero) {
            self.section = "front_end.latency";
            for (path, time) in costs.latencies() {
                self.time(last_word(path), time);
            }
        }
    }

    fn as_management(&mut self, key: &'static str) {
        self.push(key, Value::Absent("as management"));
    }

    /// A drive without Copy says nothing of it.
    fn copy(&mut self, copy: Option<&CopyLimits>, lba_bytes: u64) {
        self.section = "copy";
        if let Some(CopyLimits {
            max_ranges,
            max_range_lbas,
            max_lbas,
        }) = copy.copied()
        {
            self.number("max_ranges", u32::from(max_ranges));
            self.size("max_range", u64::from(max_range_lbas) * lba_bytes);
            self.size("max_length", u64::from(max_lbas) * lba_bytes);
        }
    }

    fn write_buffer(&mut self, buffer: Option<&WriteBufferConfig>) {
        self.section = "write_buffer";
        let Some(WriteBufferConfig {
            size_bytes,
            appends_per_zone,
            power_loss_protection,
            release,
            drain_bytes_per_s,
            turn_bytes,
            placement,
        }) = buffer
        else {
            return self.text("mode", name_of(names::WRITE_BUFFER, &Buffer::None));
        };
        self.text("mode", name_of(names::WRITE_BUFFER, &Buffer::WriteBack));
        self.size("size", *size_bytes);
        match appends_per_zone {
            Some(most) => self.number("appends_per_zone", *most),
            None => self.push("appends_per_zone", Value::Absent("unlimited")),
        }
        self.flag("power_loss_protection", *power_loss_protection);
        self.text("release", name_of(names::RELEASE, release));
        match drain_bytes_per_s {
            Some(rate) => self.text("drain", &fmt_rate(*rate)),
            None => self.push("drain", Value::Absent("as fast as the dies")),
        }
        match turn_bytes {
            Some(bytes) => self.size("turn", *bytes),
            None => self.push("turn", Value::Absent("one write after another")),
        }
        self.text("placement", name_of(names::PLACEMENT, placement));
    }

    fn finish(&mut self, finish: &FinishConfig) {
        self.section = "finish";
        match *finish {
            FinishConfig::Metadata => {
                self.text("design", name_of(names::FINISH, &Finish::Metadata))
            }
            FinishConfig::Fill {
                granularity_bytes,
                pause_ns,
                yield_ns,
                buffered,
                extent,
            } => {
                self.text("design", name_of(names::FINISH, &Finish::Fill));
                self.size("granularity", u64::from(granularity_bytes));
                self.time("pause", pause_ns);
                self.flag("yield_to_host", yield_ns.is_some());
                if let Some(hold) = yield_ns {
                    self.time("max_hold", hold);
                }
                if buffered {
                    self.text("path", name_of(names::PATH, &buffered));
                }
                if extent != FillExtent::Zone {
                    self.text("extent", name_of(names::FILL_EXTENT, &extent));
                }
            }
        }
    }

    fn reset(&mut self, reset: &ResetConfig) {
        let ResetConfig {
            erase,
            extent,
            preempt_ns,
            bookkeeping,
        } = *reset;
        let (timing, at) = match erase {
            EraseWhen::Synchronous => (Timing::Synchronous, None),
            EraseWhen::FirstZoneWrite => (Timing::Asynchronous, Some(EraseAt::FirstWrite)),
            EraseWhen::FirstBlockWrite => (Timing::Asynchronous, Some(EraseAt::FirstBlockWrite)),
            EraseWhen::Background => (Timing::Asynchronous, Some(EraseAt::Background)),
            EraseWhen::Thresholds(_) => (Timing::Asynchronous, Some(EraseAt::Thresholds)),
        };
        self.section = "reset";
        self.text("timing", name_of(names::TIMING, &timing));
        if let Some(at) = at {
            self.text("erase_at", name_of(names::ERASE_AT, &at));
        }
        self.text("extent", name_of(names::EXTENT, &extent));
        self.flag("preemptive", preempt_ns.is_some());
        if let Some(hold) = preempt_ns {
            self.time("max_hold", hold);
        }
        if let EraseWhen::Thresholds(Thresholds {
            free_zones,
            invalid_zones,
            evaluate,
            zones_at_once,
            victim,
            adapt,
        }) = erase
        {
            self.section = "reset.thresholds";
            self.number("free_zones", free_zones);
            if let Some(invalid_zones) = invalid_zones {
                self.number("invalid_zones", invalid_zones);
            }
            self.text("evaluate", name_of(names::EVALUATE, &evaluate));
            if let Some(zones_at_once) = zones_at_once {
                self.number("zones_at_once", zones_at_once);
            }
            self.text("victim", name_of(names::VICTIM, &victim));
            if let Some(half_life) = adapt {
                self.time("adapt", half_life);
            }
        }
        if let Some(Bookkeeping {
            base_ns,
            full_zone_ns,
            drain_pause_ns,
            slices,
            open_zone_ns,
            quiesce,
        }) = bookkeeping
        {
            self.section = "reset.bookkeeping";
            self.time("base", base_ns);
            self.time("full_zone", full_zone_ns);
            self.time("drain_pause", drain_pause_ns);
            self.number("slices", slices);
            self.time("open_zone", open_zone_ns);
            self.flag("quiesce", quiesce);
        }
    }

    fn mapping(&mut self, mapping: MappingConfig) {
        self.section = "mapping";
        match mapping {
            MappingConfig::Direct => self.text("design", name_of(names::MAPPING, &Mapping::Direct)),
            MappingConfig::Lazy { physical_zones } => {
                self.text("design", name_of(names::MAPPING, &Mapping::Lazy));
                self.number("physical_zones", physical_zones);
            }
            MappingConfig::Chunk {
                chunk_blocks,
                physical_zones,
            } => {
                self.text("design", name_of(names::MAPPING, &Mapping::Chunk));
                self.number("chunk_blocks", chunk_blocks);
                self.number("physical_zones", physical_zones);
            }
            MappingConfig::Stripe { physical_zones } => {
                self.text("design", name_of(names::MAPPING, &Mapping::Stripe));
                self.number("physical_zones", physical_zones);
            }
        }
    }
}

impl Keys {
    fn allocation(&mut self, mapping: MappingConfig, allocation: AllocationConfig) {
        let AllocationConfig {
            time_ns,
            at_open,
            pool_zones,
            depth_weight,
            thin,
        } = allocation;
        if mapping == MappingConfig::Direct {
            return;
        }
        self.time("allocation", time_ns);
        self.text("allocate_at", name_of(names::ALLOCATE_AT, &at_open));
        self.number("pool", pool_zones);
        if let Some(weight) = depth_weight {
            self.number("depth_weight", weight);
        }
        if mapping.has_elements() {
            self.flag("thin", thin);
        }
    }
}

/// The key at the end of a path.
fn last_word(path: &'static str) -> &'static str {
    path.rsplit_once('.').map_or(path, |(_, key)| key)
}
