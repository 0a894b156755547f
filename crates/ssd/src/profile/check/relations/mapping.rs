//! Rules about the flash that zones stand on.

use zonelab_device::Nanos;

use super::{Needs, Rules};
use crate::config::{
    AllocationConfig, FillExtent, FinishConfig, MappingConfig, NamespaceConfig, NamespaceKind,
    PlaneMode,
};

impl Rules<'_> {
    pub(super) fn physical_zones(&mut self) {
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
    pub(super) fn thin(&mut self) {
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
    pub(in crate::profile::check) fn chunks(&mut self, needs: &Needs) {
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
