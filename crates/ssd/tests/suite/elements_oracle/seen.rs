//! What a drive says of its elements.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::mapping::elements::ElementInfo;

use crate::drive_support::Rig;

/// What is seen of an element.
#[derive(Debug)]
pub(super) struct Seen {
    info: ElementInfo,
    /// Of all its blocks.
    pub(super) erasures: u64,
}

impl Deref for Seen {
    type Target = ElementInfo;

    fn deref(&self) -> &ElementInfo {
        &self.info
    }
}

impl DerefMut for Seen {
    fn deref_mut(&mut self) -> &mut ElementInfo {
        &mut self.info
    }
}

pub(super) type Infos = BTreeMap<(u32, u32), Seen>;

pub(super) fn all(rig: &Rig) -> Infos {
    let flash = rig.drive.flash();
    let elements = flash.elements().expect("it has some");
    let erasures = |info: &ElementInfo| {
        let blocks = elements.blocks_of(info.group, info.element);
        blocks.map(|block| u64::from(flash.blocks().wear(block)))
    };
    elements
        .all()
        .map(|info| {
            let erasures = erasures(&info).sum();
            ((info.group, info.element.0), Seen { info, erasures })
        })
        .collect()
}

pub(super) fn elements_of(rig: &Rig, zone: u32) -> BTreeMap<u32, (u32, u32)> {
    let Some(physical) = rig.drive.flash().mapping().physical(ZoneId(zone)) else {
        return BTreeMap::new();
    };
    let groups = rig.drive.flash().layout().groups();
    let elements = rig.drive.flash().elements().expect("it has some");
    (0..)
        .zip(elements.of_zone(physical))
        .filter_map(|(place, of)| Some((place, (zone % groups, of?.0))))
        .collect()
}

pub(super) fn seen(rig: &Rig, zone: u32) -> (ZoneState, u64) {
    let zones = rig.drive.zones();
    (zones.state(ZoneId(zone)), zones.host_lbas(ZoneId(zone)))
}
