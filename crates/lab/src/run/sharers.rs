//! What the threads of a job know together of the zones that they share.

use std::collections::BTreeMap;

use zonelab_device::DeviceInfo;
use zonelab_host::Bell;
use zonelab_host::workload::JobSpec;
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_ssd::config::DriveConfig;

use crate::device::Owner;
use crate::device::zones::declare;

/// The tables of the jobs of a phase whose threads share zones, by their names.
pub(super) struct Sharers<'a, O> {
    owner: &'a O,
    info: &'a DeviceInfo,
    config: &'a DriveConfig,
    tables: BTreeMap<String, (SharedZones, u32)>,
}

impl<'a, O: Owner> Sharers<'a, O> {
    pub(super) fn of(owner: &'a O, info: &'a DeviceInfo, config: &'a DriveConfig) -> Self {
        Self {
            owner,
            info,
            config,
            tables: BTreeMap::new(),
        }
    }

    /// The table for a thread, and its number among those that have it. `None`:
    /// its namespace has no zones.
    pub(super) fn table_of(&mut self, spec: &JobSpec) -> Option<(SharedZones, u32)> {
        if let Some((table, threads)) = self.tables.get_mut(&spec.name) {
            *threads += 1;
            return Some((table.clone(), *threads - 1));
        }
        let zoned = self.info.namespace(spec.namespace)?.zoned?;
        let mine = self.config.zones_of(spec.namespace)?;
        let mut table = ZoneTable::new(zoned, None);
        self.owner
            .with_drive(|drive| declare(drive, mine, &mut table));
        let table = SharedZones::new(table);
        self.tables.insert(spec.name.clone(), (table.clone(), 1));
        Some((table, 0))
    }

    /// The threads begin to run, under a bell that wakes them.
    pub(super) fn start(&self, bell: &Bell) {
        for (table, threads) in self.tables.values() {
            table.borrow_mut().start_run(bell.clone(), *threads);
        }
    }
}
