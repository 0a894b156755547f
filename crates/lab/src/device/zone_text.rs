//! Zones of a report as text, in the form of nvme-cli.

use zonelab_nvme::zns::{ZoneDescriptor, ZoneState, ZoneType};

/// The name that nvme-cli gives a state.
#[must_use]
pub fn state_name(state: ZoneState) -> String {
    let name = match state {
        ZoneState::EMPTY => "EMPTY",
        ZoneState::IMPLICITLY_OPENED => "IMP_OPENED",
        ZoneState::EXPLICITLY_OPENED => "EXP_OPENED",
        ZoneState::CLOSED => "CLOSED",
        ZoneState::READ_ONLY => "READONLY",
        ZoneState::FULL => "FULL",
        ZoneState::OFFLINE => "OFFLINE",
        _ => return format!("{:#x}", state.0),
    };
    name.to_owned()
}

/// The name that nvme-cli gives the type of a zone.
#[must_use]
pub fn zone_type_name(zone_type: ZoneType) -> String {
    match zone_type {
        ZoneType::SEQUENTIAL_WRITE_REQUIRED => "SEQWRITE_REQ".to_owned(),
        other => format!("{:#x}", other.0),
    }
}

/// A zone as a line of a report, without its end.
#[must_use]
pub fn zone_line(zone: &ZoneDescriptor) -> String {
    format!(
        "SLBA: {:<#10x} WP: {:<#10x} Cap: {:<#10x} State: {:<12} Type: {:<14} Attrs: {:#x}",
        zone.zslba.get(),
        zone.wp.get(),
        zone.zcap.get(),
        state_name(zone.zs.zs()),
        zone_type_name(zone.zt.zt()),
        zone.za.bits(),
    )
}

/// The line before those of the zones.
#[must_use]
pub fn zone_count_line(zones: u64) -> String {
    format!("nr_zones: {zones}")
}
