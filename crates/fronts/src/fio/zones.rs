//! What job files have to do with the zones of a device before the first job.

use std::ops::Range;

use zonelab_device::ZonedInfo;
use zonelab_host::fio::{Plan, PlannedJob};
use zonelab_host::workload::directed::Direction;
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_lab::device::{self, ReportedZone};
use zonelab_nvme::zns::ZoneState;

/// The table of zones that a device reported, for a run of `plan`.
#[must_use]
pub fn table_of(plan: &Plan, zoned: ZonedInfo, reported: &[ReportedZone]) -> ZoneTable {
    device::table_of(zoned, plan.max_open_zones, reported)
}

/// Whether a job changes what the device holds.
fn changes(job: &&PlannedJob) -> bool {
    let of = |direction: Direction| job.spec.work.flows[direction as usize].is_some();
    of(Direction::Write) || of(Direction::Trim)
}

/// Bytes of a namespace without zones that jobs of the plan may write or trim, from
/// the first to the last. What they hold, nobody can say.
#[must_use]
pub fn bytes_at_risk(plan: &Plan, lba_bytes: u64) -> Option<Range<u64>> {
    let of_job = |job: &PlannedJob| {
        let range = job.spec.work.blocks?;
        // The last operation of a pass may end behind the range.
        let flows = job.spec.work.flows.iter().flatten();
        let ends = flows.map(|flow| range.lbas.next_multiple_of(flow.sizes.max.into()));
        let end = match range.stride {
            Some(_) => range.namespace_lbas,
            None => range.first + ends.max().unwrap_or(range.lbas),
        };
        let end = end.min(range.namespace_lbas);
        Some(range.first * lba_bytes..end * lba_bytes)
    };
    let ranges = plan.jobs.iter().filter(changes).filter_map(of_job);
    ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

/// The zones that jobs of the plan may write or reset, and that hold something and are not
/// dead: what the run may destroy.
#[must_use]
pub fn at_risk(plan: &Plan, zones: &[ReportedZone]) -> Vec<u32> {
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
        .filter(|(_, zone)| zone.state != ZoneState::EMPTY && !zone.is_dead())
        .map(|(index, _)| index)
        .filter(is_touched)
        .collect()
}
