//! What can be seen of a drive.

use zonelab_device::{DeviceInfo, NamespaceInfo, ZonedInfo, ZrwaInfo};

use super::{Core, Drive};
use crate::account::Totals;
use crate::config::{DriveConfig, NamespaceKind};
use crate::flash::{Flash, Left, Owed};
use crate::zones::Zones;

impl Core {
    /// Commands submitted and not yet completed.
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len() - self.internal_requests
    }
}

impl Drive {
    /// What a host learns when it identifies the drive.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.core.info
    }

    /// What a host will learn of a drive of that configuration.
    #[must_use]
    pub fn info_of(config: &DriveConfig) -> DeviceInfo {
        let zones = &config.zones;
        let max_transfer_bytes = config.front_end.max_transfer_bytes.unwrap_or(u32::MAX);
        DeviceInfo {
            model: config.name.clone(),
            namespaces: config
                .namespaces()
                .iter()
                .map(|namespace| NamespaceInfo {
                    placements: Some(match namespace.kind {
                        NamespaceKind::Conventional(log) => {
                            log.handles.map_or(0, |of| of.count as u16)
                        }
                        _ => 0,
                    }),
                    lba_bytes: config.lba_bytes,
                    size_lbas: namespace.size_lbas(zones),
                    zoned: (namespace.kind == NamespaceKind::Zoned).then_some(ZonedInfo {
                        zones: namespace.zones,
                        zone_size_lbas: zones.size_lbas,
                        zone_capacity_lbas: zones.capacity_lbas,
                        max_active: namespace.max_active,
                        max_open: namespace.max_open,
                        read_across_zones: zones.read_across,
                        descriptor_extension_bytes: zones.descriptor_extension_bytes,
                        zrwa: zones.zrwa.map(|zrwa| ZrwaInfo {
                            size_lbas: zrwa.size_lbas,
                            flush_granularity_lbas: zrwa.flush_granularity_lbas,
                            max_areas: zrwa.max_areas,
                            explicit_flush: zrwa.explicit_flush,
                        }),
                    }),
                    // Not modelled in a log.
                    copy: config
                        .copy
                        .filter(|_| namespace.kind == NamespaceKind::Zoned),
                })
                .collect(),
            max_transfer_bytes,
            max_append_bytes: config
                .front_end
                .max_append_bytes
                .unwrap_or(max_transfer_bytes),
            // The write buffer keeps its data without power.
            has_volatile_cache: false,
        }
    }

    /// The configuration it was made with.
    #[must_use]
    pub fn config(&self) -> &DriveConfig {
        &self.core.config
    }

    /// Zone states and write pointers.
    #[must_use]
    pub fn zones(&self) -> &Zones {
        &self.core.zones
    }

    /// The flash: layout, busy times, erase counts.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.core.flash
    }

    /// Bytes and operations since the drive was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let (erased_blocks, programmed) = self.core.flash.totals();
        let fill_program_bytes = self.core.totals.fill_program_bytes;
        Totals {
            erased_blocks,
            host_program_bytes: programmed
                - fill_program_bytes
                - self.core.totals.collect_program_bytes
                - self.core.totals.fold_program_bytes,
            ..self.core.totals
        }
    }

    /// What it has still to do for commands that have completed. It looks at every block.
    #[must_use]
    pub fn owed(&self) -> Owed {
        let Core { flash, zones, .. } = &self.core;
        let buffer = self.buffer.as_ref();
        let (unfilled_lbas, folding_lbas) =
            self.background.unfilled_and_folding_lbas(flash.layout());
        let left = Left {
            buffered_lbas: buffer.map_or(0, |buffer| buffer.held_lbas(zones)),
            unfilled_lbas,
            folding_lbas,
        };
        flash.owed(self.core.now, &left)
    }

    /// Events that the drive has handled since it was made.
    #[must_use]
    pub fn events_handled(&self) -> u64 {
        self.core.events.handled()
    }

    /// Commands submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.in_flight()
    }

    /// Commands of those in flight to which the front end has not turned yet: with
    /// `front_end.max_in_flight` or `front_end.appends_per_zone`, they wait until others have
    /// completed. Until then they have changed nothing.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.core.window.waiting()
    }

    /// Checks everything that must always hold between two calls: of zones, flash, background
    /// work, write buffer and conventional namespaces. Costs time proportional to the drive: for
    /// tests and fuzzing.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this crate.
    pub fn assert_invariants(&self) {
        let zones = &self.core.zones;
        zones.assert_invariants();
        self.core.flash.assert_invariants();
        self.background.assert_invariants();
        if let Some(buffer) = &self.buffer {
            buffer.assert_invariants(self.core.absence.is_none());
        }
        for of in &self.conventional {
            of.log.assert_invariants(|zone| zones.host_lbas(zone));
        }
        assert!(self.core.effects.is_empty(), "somebody was not told");
    }
}
