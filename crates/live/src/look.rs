//! Taking numbers from a running server.
//!
//! The loop that serves the drive stands still during a call, so one
//! copies plain arrays, and no more of them at a time than takes some tens of
//! microseconds. Zones and erase counts are copied in several calls, between
//! which the drive goes on: each piece is of one time, the whole is not quite.

use std::ops::Range;

use zonelab_device::{NamespaceId, ZoneId};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::layout::Layout;
use zonelab_target::controller::activity::Operation;
use zonelab_target::server::{Ended, LoopHandle, Present};

use crate::layer::{FtlLayer, Served};
use crate::snapshot::{Load, Namespace, Snapshot, Wear, Zone, ZoneKind, Zones};

/// Zones that one call copies.
const ZONES: u32 = 4096;
/// Erase counts that one call copies: 256 KiB.
const BLOCKS: usize = 65_536;

/// Takes a snapshot.
///
/// # Errors
/// The server has ended.
pub fn look(handle: &LoopHandle<Served>) -> Result<Snapshot, Ended> {
    let (mut snapshot, layout) = handle.call(|present| numbers(&present))?;
    let count = handle.call(|present| drive(&present).zones().count())?;
    let mut zones = Vec::with_capacity(count as usize);
    for first in (0..count).step_by(ZONES as usize) {
        let mut piece = Vec::with_capacity(ZONES as usize);
        let range = first..count.min(first + ZONES);
        zones.append(&mut handle.call(move |present| {
            copy_zones(drive(&present), range, &mut piece);
            piece
        })?);
    }
    let blocks = handle.call(|present| drive(&present).flash().blocks().len())?;
    let mut erases: Vec<u32> = Vec::with_capacity(blocks);
    for first in (0..blocks).step_by(BLOCKS) {
        // The same buffer goes there and back.
        let mut all = std::mem::take(&mut erases);
        erases = handle.call(move |present| {
            let wears = drive(&present).flash().blocks().wears();
            all.extend(wears.skip(first).take(BLOCKS));
            all
        })?;
    }
    snapshot.wear = Wear::of(&erases);
    snapshot.zones.erase_blocks = layout.zone_blocks();
    let zones = zones.into_iter();
    snapshot.zones.all = zones.map(|zone| zone.finish(&layout, &erases)).collect();
    for namespace in snapshot.namespaces.iter().filter(|of| !of.is_zoned) {
        let range = namespace.zones.start as usize..namespace.zones.end as usize;
        for zone in snapshot.zones.all.get_mut(range).into_iter().flatten() {
            zone.kind = ZoneKind::Conventional;
            zone.written_lbas = 0;
        }
    }
    Ok(snapshot)
}

fn drive<'a>(present: &'a Present<'_, Served>) -> &'a Drive {
    present.backend.drive().drive()
}

/// A zone as it is copied.
struct Raw {
    kind: ZoneKind,
    written_lbas: u64,
    physical: Option<u32>,
}

impl Raw {
    fn finish(self, layout: &Layout, erases: &[u32]) -> Zone {
        let of_blocks = |physical| {
            let blocks = (0..layout.zone_blocks()).map(|block| layout.block_index(physical, block));
            let counts = blocks.filter_map(|index| erases.get(index).copied());
            counts.fold((0, 0), |(sum, most), count| {
                (sum + u64::from(count), count.max(most))
            })
        };
        Zone {
            kind: self.kind,
            written_lbas: self.written_lbas,
            erases: self.physical.map(of_blocks),
        }
    }
}

fn copy_zones(drive: &Drive, range: Range<u32>, out: &mut Vec<Raw>) {
    let (zones, mapping) = (drive.zones(), drive.flash().mapping());
    out.extend(range.map(|index| {
        let zone = ZoneId(index);
        Raw {
            kind: kind_of(zones.state(zone)),
            written_lbas: zones.written_lbas(zone),
            physical: mapping.physical(zone),
        }
    }));
}

const fn kind_of(state: ZoneState) -> ZoneKind {
    match state {
        ZoneState::IMPLICITLY_OPENED => ZoneKind::ImplicitlyOpened,
        ZoneState::EXPLICITLY_OPENED => ZoneKind::ExplicitlyOpened,
        ZoneState::CLOSED => ZoneKind::Closed,
        ZoneState::FULL => ZoneKind::Full,
        ZoneState::READ_ONLY => ZoneKind::ReadOnly,
        ZoneState::OFFLINE => ZoneKind::Offline,
        _ => ZoneKind::Empty,
    }
}

/// All but zones and wear.
fn numbers(present: &Present<'_, Served>) -> (Snapshot, Layout) {
    let (subsystem, drive) = (&*present.backend, drive(present));
    let (activity, config) = (subsystem.activity(), drive.config());
    let server = &*present.server;
    let used = Operation::ALL
        .into_iter()
        .map(|operation| (operation, activity.latency(operation)))
        .filter(|(_, histogram)| !histogram.is_empty());
    let snapshot = Snapshot {
        profile: config.name.clone(),
        nqn: subsystem.settings().nqn.clone(),
        uptime: present.now,
        connections: server.connections(),
        controllers: subsystem.controllers(),
        in_flight: drive.in_flight(),
        faults: subsystem.drive().faults_struck(),
        admin_commands: activity.admin_commands(),
        namespaces: namespaces(subsystem, config),
        elsewhere: activity.tallies().first().copied().unwrap_or_default(),
        latencies: used
            .map(|(of, histogram)| (of, histogram.clone()))
            .collect(),
        lateness: server
            .lateness()
            .map(|(qid, of)| (qid, of.clone()))
            .collect(),
        totals: drive.totals(),
        buffer: config
            .write_buffer
            .map(|buffer| (drive.buffered_bytes(), buffer.size_bytes)),
        dies: dies(drive),
        channels: drive.flash().media().ledger().channels.clone(),
        zones: Zones {
            lba_bytes: config.lba_bytes,
            size_lbas: config.zones.size_lbas,
            capacity_lbas: config.zones.capacity_lbas,
            erase_blocks: 0,
            all: Vec::new(),
        },
        wear: Wear::default(),
        layer: subsystem.layer().map(FtlLayer::state),
    };
    (snapshot, drive.flash().layout().clone())
}

fn namespaces(subsystem: &Served, config: &DriveConfig) -> Vec<Namespace> {
    let infos = subsystem.drive().drive().info().namespaces.iter();
    let tallies = subsystem.activity().tallies();
    // Hosts of a layer have one namespace, whichever of the drive's is below.
    let below = subsystem.layer().map(|layer| layer.nsid().0);
    let seen_as = move |nsid: u32| match below {
        None => nsid as usize,
        Some(below) if below == nsid => 1,
        Some(_) => usize::MAX,
    };
    infos
        .zip(1..)
        .map(|(info, nsid)| Namespace {
            zones: config.zones_of(NamespaceId(nsid)).unwrap_or(0..0),
            is_zoned: info.zoned.is_some(),
            max_open: info.zoned.and_then(|zoned| zoned.max_open),
            max_active: info.zoned.and_then(|zoned| zoned.max_active),
            tallies: tallies.get(seen_as(nsid)).copied().unwrap_or_default(),
        })
        .collect()
}

/// Units are dies, or their planes if these are independent.
fn dies(drive: &Drive) -> Vec<Load> {
    let ledger = drive.flash().media().ledger();
    let dies = drive.config().geometry.luns() as usize;
    let planes = (ledger.units.len() / dies.max(1)).max(1);
    let units = ledger.units.iter().zip(ledger.operations());
    let mut loads = vec![Load::default(); dies];
    for (unit, (busy_ns, operations)) in units.enumerate() {
        if let Some(load) = loads.get_mut(unit / planes) {
            load.add(&Load {
                busy_ns: *busy_ns,
                operations: *operations,
            });
        }
    }
    loads
}
