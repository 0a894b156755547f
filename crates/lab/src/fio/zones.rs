//! What job files have to do with the zones of a device before the first job.

use std::ops::Range;

use zonelab_device::ZonedInfo;
use zonelab_host::fio::Plan;
use zonelab_host::workload::directed::Direction;
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_nvme::zns::ZoneState;

use crate::device::{ReportedZone, zones};

/// The table of zones that a device reported, for a run of `plan`.
#[must_use]
pub fn table_of(plan: &Plan, zoned: ZonedInfo, reported: &[ReportedZone]) -> ZoneTable {
    zones::table_of(zoned, plan.max_open_zones, reported)
}

/// The zones that jobs of the plan may write or reset, and that are not empty:
/// what the run may destroy.
#[must_use]
pub fn at_risk(plan: &Plan, zones: &[ReportedZone]) -> Vec<u32> {
    let changes = |job: &&zonelab_host::fio::PlannedJob| {
        let of = |direction: Direction| job.spec.work.flows[direction as usize].is_some();
        of(Direction::Write) || of(Direction::Trim)
    };
    let resets_all = plan.jobs.iter().any(|job| job.resets_device);
    let ranges: Vec<Range<u32>> = plan
        .jobs
        .iter()
        .filter(changes)
        .map(|job| job.spec.work.zones.clone())
        .collect();
    let is_touched = |zone: &u32| resets_all || ranges.iter().any(|range| range.contains(zone));
    let in_use = (0..).zip(zones);
    in_use
        .filter(|(_, zone)| zone.state != ZoneState::EMPTY)
        .map(|(index, _)| index)
        .filter(is_touched)
        .collect()
}
