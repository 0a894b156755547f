//! The fields of a configuration, by key.

use std::collections::BTreeMap;

use zonelab_device::CopyLimits;

use crate::config::{
    AllocationConfig, Bookkeeping, CommandCosts, DiePolicy, DriveConfig, EraseWhen, FinishConfig,
    FrontEndConfig, Geometry, LogConfig, MappingConfig, MediaConfig, MediaDetails, NamespaceConfig,
    NamespaceKind, ReclaimUnitHandles, ResetConfig, SlcCacheConfig, Suspend, Thresholds,
    WriteBufferConfig, ZonesConfig, ZrwaConfig,
};

/// The words of the configuration's fields, by the key that each belongs to. A field that is
/// added to the configuration has to be dealt with here.
pub(super) fn fields(config: &DriveConfig) -> BTreeMap<&'static str, String> {
    let DriveConfig {
        name,
        geometry,
        lba_bytes,
        zones,
        namespaces: _, // `fields_of_namespace`
        copy,
        media,
        front_end,
        write_buffer,
        slc_cache,
        finish,
        reset,
        mapping,
        allocation,
        data,
    } = config;
    let mut fields = Fields(BTreeMap::new());
    fields.add("name", name);
    fields.geometry(geometry);
    fields.add("namespace.lba_size", lba_bytes);
    fields.zones(zones);
    fields.copy(copy.as_ref());
    fields.media(media);
    fields.front_end(front_end);
    fields.write_buffer(write_buffer.as_ref());
    fields.slc_cache(slc_cache.as_ref());
    fields.finish(finish);
    fields.reset(reset);
    fields.mapping(mapping, allocation);
    fields.add("data.store", data);
    fields.0
}

struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn add(&mut self, key: &'static str, value: impl std::fmt::Debug) {
        assert!(
            self.0.insert(key, format!("{value:?}")).is_none(),
            "{key} has two fields"
        );
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
        } = geometry;
        self.add("geometry.channels", channels);
        self.add("geometry.ways", ways);
        self.add("geometry.dies", dies);
        self.add("geometry.planes", planes);
        self.add("geometry.blocks_per_plane", blocks_per_plane);
        self.add("geometry.pages_per_block", pages_per_block);
        self.add("geometry.page_size", page_bytes);
    }

    fn zones(&mut self, zones: &ZonesConfig) {
        let ZonesConfig {
            count,
            size_lbas,
            capacity_lbas,
            max_active,
            max_open,
            channels,
            ways,
            stripe,
            read_across,
            stagger,
            descriptor_extension_bytes,
            zrwa,
        } = zones;
        self.add("zones.count", count);
        self.add("zones.size", size_lbas);
        self.add("zones.capacity", capacity_lbas);
        self.add("zones.max_active", max_active);
        self.add("zones.max_open", max_open);
        self.add("zones.channels", channels);
        self.add("zones.ways", ways);
        self.add("zones.stripe", stripe);
        self.add("zones.read_across", read_across);
        self.add("zones.stagger", stagger);
        self.add("zones.descriptor_extension", descriptor_extension_bytes);
        if let Some(zrwa) = zrwa {
            let ZrwaConfig {
                size_lbas,
                flush_granularity_lbas,
                max_areas,
                explicit_flush,
            } = zrwa;
            self.add("zones.zrwa.size", size_lbas);
            self.add("zones.zrwa.flush_granularity", flush_granularity_lbas);
            self.add("zones.zrwa.count", max_areas);
            self.add("zones.zrwa.explicit_flush", explicit_flush);
        }
    }

    fn copy(&mut self, copy: Option<&CopyLimits>) {
        if let Some(CopyLimits {
            max_ranges,
            max_range_lbas,
            max_lbas,
        }) = copy
        {
            self.add("copy.max_ranges", max_ranges);
            self.add("copy.max_range", max_range_lbas);
            self.add("copy.max_length", max_lbas);
        }
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
            suspend,
            details,
        } = media;
        let MediaDetails {
            read_parts,
            transfer_unit_bytes,
            program_variation_ppm,
        } = details;
        let Suspend {
            program,
            erase,
            overhead_ns,
            max_per_operation,
            interval_ns,
        } = suspend;
        self.add("media.read", (read_ns, read_parts));
        self.add("media.program", program_ns);
        self.add("media.erase", erase_ns);
        self.add("media.transfer", transfer_ns);
        self.add("media.partial_transfer", partial_transfer);
        self.add("media.page_register", page_register);
        self.add("media.planes", planes);
        self.add("media.die_queue", std::mem::discriminant(policy));
        if let DiePolicy::Weighted { reads } = policy {
            self.add("media.read_weight", reads);
        }
        self.add("media.channel_arbitration", arbitration);
        self.add("media.transfer_unit", transfer_unit_bytes);
        self.add("media.program_variation", program_variation_ppm);
        self.add("media.suspend.program", program);
        self.add("media.suspend.erase", erase);
        self.add("media.suspend.overhead", overhead_ns);
        self.add("media.suspend.max_per_operation", max_per_operation);
        self.add("media.suspend.interval", interval_ns);
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
            max_in_flight_bytes,
            appends_per_zone,
            costs,
        } = front_end;
        self.add("front_end.cores", cores);
        self.add("front_end.read", read_ns);
        self.add("front_end.write", write_ns);
        self.add("front_end.append", append_ns);
        self.add("front_end.management", management_ns);
        self.add("front_end.link", link_bytes_per_s);
        self.add("front_end.max_transfer", max_transfer_bytes);
        self.add("front_end.max_append", max_append_bytes);
        self.add("front_end.max_in_flight", max_in_flight_bytes);
        self.add("front_end.appends_per_zone", appends_per_zone);
        self.costs(costs);
    }

    fn costs(&mut self, costs: &CommandCosts) {
        let CommandCosts {
            read_per_kib_ns,
            write_per_kib_ns,
            append_per_kib_ns,
            unit_bytes,
            part_of_unit_ns,
            small_blocks_ns,
            open_ns,
            close_ns,
            implicit_open_ns,
            read_latency_ns,
            write_latency_ns,
            append_latency_ns,
            management_latency_ns,
            completion_latency_ns,
            read_completion_ns,
            write_completion_ns,
            append_completion_ns,
            variation_ppm,
        } = costs;
        self.add("front_end.costs.read_per_kib", read_per_kib_ns);
        self.add("front_end.costs.write_per_kib", write_per_kib_ns);
        self.add("front_end.costs.append_per_kib", append_per_kib_ns);
        self.add("front_end.costs.unit", unit_bytes);
        self.add("front_end.costs.part_of_unit", part_of_unit_ns);
        self.add("front_end.costs.small_blocks", small_blocks_ns);
        self.add("front_end.costs.open", open_ns);
        self.add("front_end.costs.close", close_ns);
        self.add("front_end.costs.implicit_open", implicit_open_ns);
        self.add("front_end.latency.read", read_latency_ns);
        self.add("front_end.latency.write", write_latency_ns);
        self.add("front_end.latency.append", append_latency_ns);
        self.add("front_end.latency.management", management_latency_ns);
        self.add("front_end.latency.completion", completion_latency_ns);
        self.add("front_end.costs.read_completion", read_completion_ns);
        self.add("front_end.costs.write_completion", write_completion_ns);
        self.add("front_end.costs.append_completion", append_completion_ns);
        self.add("front_end.costs.variation", variation_ppm);
    }

    fn write_buffer(&mut self, buffer: Option<&WriteBufferConfig>) {
        self.add("write_buffer.mode", buffer.is_some());
        if let Some(WriteBufferConfig {
            size_bytes,
            power_loss_protection,
            release,
            drain_bytes_per_s,
            turn_bytes,
            placement,
        }) = buffer
        {
            self.add("write_buffer.size", size_bytes);
            self.add("write_buffer.power_loss_protection", power_loss_protection);
            self.add("write_buffer.release", release);
            self.add("write_buffer.drain", drain_bytes_per_s);
            self.add("write_buffer.turn", turn_bytes);
            self.add("write_buffer.placement", placement);
        }
    }

    fn slc_cache(&mut self, cache: Option<&SlcCacheConfig>) {
        self.add("slc_cache.mode", cache.is_some());
        if let Some(SlcCacheConfig {
            size_bytes,
            bits_per_cell,
            page_bytes,
            read_ns,
            program_ns,
            erase_ns,
            fold_after_idle_ns,
            fold_above_ppm,
            fold_bytes,
        }) = cache
        {
            self.add("slc_cache.size", size_bytes);
            self.add("slc_cache.bits_per_cell", bits_per_cell);
            self.add("slc_cache.page_size", page_bytes);
            self.add("slc_cache.read", read_ns);
            self.add("slc_cache.program", program_ns);
            self.add("slc_cache.erase", erase_ns);
            self.add("slc_cache.fold_after_idle", fold_after_idle_ns);
            self.add("slc_cache.fold_above", fold_above_ppm);
            self.add("slc_cache.fold_size", fold_bytes);
        }
    }

    fn finish(&mut self, finish: &FinishConfig) {
        self.add("finish.design", std::mem::discriminant(finish));
        if let FinishConfig::Fill {
            granularity_bytes,
            pause_ns,
            yield_ns,
            buffered,
            takes_core,
            extent,
        } = finish
        {
            self.add("finish.granularity", granularity_bytes);
            self.add("finish.pause", pause_ns);
            self.add("finish.yield_to_host", yield_ns.is_some());
            if let Some(hold) = yield_ns {
                self.add("finish.max_hold", hold);
            }
            self.add("finish.path", buffered);
            self.add("finish.takes_core", takes_core);
            self.add("finish.extent", extent);
        }
    }

    fn reset(&mut self, reset: &ResetConfig) {
        let ResetConfig {
            erase,
            extent,
            preempt_ns,
            bookkeeping,
        } = reset;
        self.add("reset.timing", *erase == EraseWhen::Synchronous);
        if *erase != EraseWhen::Synchronous {
            self.add("reset.erase_at", std::mem::discriminant(erase));
        }
        self.add("reset.extent", extent);
        self.add("reset.preemptive", preempt_ns.is_some());
        if let Some(hold) = preempt_ns {
            self.add("reset.max_hold", hold);
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
            self.add("reset.thresholds.free_zones", free_zones);
            self.add("reset.thresholds.invalid_zones", invalid_zones);
            self.add("reset.thresholds.evaluate", evaluate);
            self.add("reset.thresholds.zones_at_once", zones_at_once);
            self.add("reset.thresholds.victim", victim);
            self.add("reset.thresholds.adapt", adapt);
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
            self.add("reset.bookkeeping.base", base_ns);
            self.add("reset.bookkeeping.full_zone", full_zone_ns);
            self.add("reset.bookkeeping.drain_pause", drain_pause_ns);
            self.add("reset.bookkeeping.slices", slices);
            self.add("reset.bookkeeping.open_zone", open_zone_ns);
            self.add("reset.bookkeeping.quiesce", quiesce);
        }
    }

    fn mapping(&mut self, mapping: &MappingConfig, allocation: &AllocationConfig) {
        self.add("mapping.design", std::mem::discriminant(mapping));
        match mapping {
            MappingConfig::Direct => {}
            MappingConfig::Lazy { physical_zones } | MappingConfig::Stripe { physical_zones } => {
                self.add("mapping.physical_zones", physical_zones);
            }
            MappingConfig::Chunk {
                chunk_blocks,
                physical_zones,
            } => {
                self.add("mapping.chunk_blocks", chunk_blocks);
                self.add("mapping.physical_zones", physical_zones);
            }
        }
        let AllocationConfig {
            time_ns,
            at_open,
            pool_zones,
            depth_weight,
            thin,
        } = allocation;
        self.add("mapping.allocation", time_ns);
        self.add("mapping.allocate_at", at_open);
        self.add("mapping.pool", pool_zones);
        self.add("mapping.depth_weight", depth_weight);
        self.add("mapping.thin", thin);
    }
}

/// The keys of the fields of a namespace.
pub(super) fn fields_of_namespace(namespace: &NamespaceConfig) -> Vec<&'static str> {
    let NamespaceConfig {
        kind,
        zones: _,
        max_active: _,
        max_open: _,
    } = namespace;
    let mut fields = vec!["namespaces.kind", "namespaces.zones"];
    match kind {
        NamespaceKind::Zoned => fields.extend(["namespaces.max_active", "namespaces.max_open"]),
        NamespaceKind::Conventional(LogConfig {
            spare_zones: _,
            handles,
            collection: _,
            mapping_unit_lbas: _,
        }) => {
            fields.extend([
                "namespaces.spare_zones",
                "namespaces.collection",
                "namespaces.mapping_unit",
                "namespaces.reclaim_unit_handles",
            ]);
            if let Some(ReclaimUnitHandles {
                count: _,
                isolation: _,
            }) = handles
            {
                fields.push("namespaces.isolation");
            }
        }
    }
    fields
}
