//! Rules about Copy, the write buffer, and what finishes and resets do.

use zonelab_config::units::{fmt_duration, fmt_size};
use zonelab_device::Nanos;

use super::{Needs, Rules, multiples, not_a_multiple, size};
use crate::config::{
    EraseWhen, FillExtent, FinishConfig, MappingConfig, NamespaceConfig, NamespaceKind, Thresholds,
};

impl Rules<'_> {
    /// A single range may be copied.
    pub(super) fn copy(&mut self) {
        let Some(copy) = self.config.copy else { return };
        if copy.max_lbas < u32::from(copy.max_range_lbas) {
            let what = "it is less than one source range may have";
            self.refuse("copy.max_length", what, "at least copy.max_range");
        }
    }

    /// At least a page, and whole blocks: what is written in pieces fits then.
    pub(super) fn write_buffer(&mut self) {
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

    pub(super) fn granularity(&mut self) {
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

    pub(super) fn preemption(&mut self) {
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

    pub(super) fn thresholds(&mut self) {
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

    pub(super) fn bookkeeping(&mut self) {
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
}
