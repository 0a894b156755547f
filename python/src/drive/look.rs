//! What can be seen of a drive, as tables.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;
use zonelab_ssd::account::{BusyByCause, Cause};

use crate::frame::{Columns, Frame};
use crate::policies::state_name;

/// Name of a state of a zone.
const fn zone_state(state: ZoneState) -> &'static str {
    match state {
        ZoneState::EMPTY => "empty",
        ZoneState::IMPLICITLY_OPENED => "implicitly opened",
        ZoneState::EXPLICITLY_OPENED => "explicitly opened",
        ZoneState::CLOSED => "closed",
        ZoneState::READ_ONLY => "read only",
        ZoneState::FULL => "full",
        ZoneState::OFFLINE => "offline",
        _ => "reserved",
    }
}

/// State and write pointer of each zone, counted over the drive.
pub(super) fn zones(drive: &Drive) -> PyResult<Frame> {
    let zones = drive.zones();
    let all = || (0..zones.count()).map(ZoneId);
    let lba_bytes = u64::from(drive.config().lba_bytes);
    let size = drive.config().zones.size_lbas;
    let physical = |zone| drive.flash().mapping().physical(zone).map(u64::from);
    Columns::default()
        .count("zone", all().map(|zone| u64::from(zone.0)))
        .text("state", all().map(|zone| zone_state(zones.state(zone))))
        .count("start_lba", all().map(|zone| u64::from(zone.0) * size))
        .count("written_lbas", all().map(|zone| zones.written_lbas(zone)))
        .count(
            "host_bytes",
            all().map(|zone| zones.host_lbas(zone) * lba_bytes),
        )
        .count_or_none("physical_zone", all().map(physical))
        .frame()
}

/// Groups of zones, where flash is erased by counts.
pub(super) fn groups(drive: &Drive) -> PyResult<Frame> {
    let groups = (0..).map_while(|group| {
        let state = drive.reset_state(group)?;
        Some((u64::from(group), state, drive.zone_counts(group)?))
    });
    let groups: Vec<_> = groups.collect();
    let states = groups.iter().map(|(_, state, _)| state_name(*state));
    Columns::default()
        .count("group", groups.iter().map(|(group, _, _)| *group))
        .text("state", states)
        .count(
            "allocated",
            groups.iter().map(|of| u64::from(of.2.allocated)),
        )
        .count("invalid", groups.iter().map(|of| u64::from(of.2.invalid)))
        .count("free", groups.iter().map(|of| u64::from(of.2.free)))
        .frame()
}

/// Erasures of each block.
pub(super) fn wear(drive: &Drive) -> PyResult<Frame> {
    let counts = drive.flash().erase_counts();
    let per_plane = drive.config().geometry.blocks_per_plane.max(1) as usize;
    let places = || 0..counts.len();
    Columns::default()
        .count("plane", places().map(|at| (at / per_plane) as u64))
        .count("block", places().map(|at| (at % per_plane) as u64))
        .count("erasures", counts.iter().map(|count| u64::from(*count)))
        .frame()
}

/// Busy time of channels and dies.
pub(super) fn busy(drive: &Drive) -> PyResult<Frame> {
    let ledger = drive.flash().media().ledger();
    let rows = |resource: &'static str, of: &[BusyByCause]| {
        let rows = of.iter().enumerate().flat_map(move |(number, by_cause)| {
            let causes = Cause::ALL.into_iter().zip(*by_cause);
            causes.map(move |(cause, busy)| (resource, number as u64, cause.name(), busy))
        });
        rows.collect::<Vec<_>>()
    };
    let mut all = rows("channel", &ledger.channels);
    all.extend(rows("die", &ledger.units));
    Columns::default()
        .text("resource", all.iter().map(|row| row.0))
        .count("number", all.iter().map(|row| row.1))
        .text("cause", all.iter().map(|row| row.2))
        .count("busy_ns", all.iter().map(|row| row.3))
        .frame()
}

/// Bytes and operations.
pub(crate) fn totals<'py>(py: Python<'py>, drive: &Drive) -> PyResult<Bound<'py, PyAny>> {
    let totals = drive.totals();
    let dict = PyDict::new(py);
    for (name, value) in [
        ("host_write_bytes", totals.host_write_bytes),
        ("host_read_bytes", totals.host_read_bytes),
        ("host_program_bytes", totals.host_program_bytes),
        ("fill_program_bytes", totals.fill_program_bytes),
        ("collect_program_bytes", totals.collect_program_bytes),
        ("fold_program_bytes", totals.fold_program_bytes),
        ("erased_blocks", totals.erased_blocks),
        ("resets", totals.resets),
        ("finishes", totals.finishes),
        ("implicit_closes", totals.implicit_closes),
    ] {
        dict.set_item(name, value)?;
    }
    dict.set_item("dlwa", totals.dlwa())?;
    Ok(dict.into_any())
}
