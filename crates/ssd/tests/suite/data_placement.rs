//! Flexible data placement: reclaim unit handles against an oracle that knows which handle
//! wrote each block, and nothing of logs.

mod oracle;
mod profile_file;

use crate::drive_support::{PAGE, Rig, small};
use zonelab_device::{Buf, Command, Lba, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::placement::{HandleStatus, HandleStatusHeader, PlacementEventType};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_ssd::account::Cause;
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, Isolation, LogConfig, NamespaceConfig, NamespaceKind,
    Placement, ReclaimUnitHandles, WriteBufferConfig,
};
use zonelab_ssd::{PLACEMENT_EVENTS, PlacementEventKind};

const NSID: NamespaceId = NamespaceId(1);
const LBA: usize = 4_096;
/// Blocks of a reclaim unit of [`placed`].
const UNIT: u64 = 16 * PAGE as u64;

fn namespace(zones: u32, spare_zones: u32, handles: Option<(u32, Isolation)>) -> NamespaceConfig {
    let handles = handles.map(|(count, isolation)| ReclaimUnitHandles { count, isolation });
    NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig {
            handles,
            ..LogConfig::new(spare_zones)
        }),
        zones,
        max_active: None,
        max_open: None,
    }
}

/// A drive of one namespace with so many handles: four zones can be addressed, and as many
/// are spare as they need.
fn placed(count: u32, isolation: Isolation) -> DriveConfig {
    let handles = ReclaimUnitHandles { count, isolation };
    let spare_zones = NamespaceConfig::spare_zones_min(Some(handles));
    let mut config = small();
    config.data = DataStore::Memory;
    config.zones.capacity_lbas = UNIT;
    config.zones.size_lbas = UNIT + 8;
    config.zones.count = 4 + spare_zones;
    config.namespaces = vec![namespace(
        4 + spare_zones,
        spare_zones,
        Some((count, isolation)),
    )];
    config
}

fn buffered(mut config: DriveConfig) -> DriveConfig {
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: 128 << 10,
        power_loss_protection: false,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
    });
    config
}

fn blocks(byte: u8, nlb: u64) -> Option<Buf> {
    Some(Buf::from(vec![byte; nlb as usize * LBA]))
}

fn write(placement: u16, slba: u64, nlb: u64) -> Command {
    let (slba, nlb) = (Lba(slba), nlb as u32);
    Command::on(NSID, Op::Write { slba, nlb }).placed(placement)
}

fn exec(rig: &mut Rig, command: Command, data: Option<Buf>) -> (Status, Option<Buf>) {
    let tag = rig.submit_command(command, data);
    let done = rig.wait(tag);
    (done.status, done.data.clone())
}

fn put(rig: &mut Rig, placement: u16, slba: u64, nlb: u64) {
    let (status, _) = exec(rig, write(placement, slba, nlb), blocks(1, nlb));
    assert_eq!(status, Status::SUCCESS);
}

fn update(rig: &mut Rig, placements: &[u16]) -> Status {
    let data: Vec<u8> = placements.iter().flat_map(|of| of.to_le_bytes()).collect();
    let handles = placements.len() as u32;
    let command = Command::on(NSID, Op::HandleUpdate { handles });
    exec(rig, command, Some(Buf::from(data))).0
}

/// Placement identifier, handle and blocks that fit, of each handle.
fn status(rig: &mut Rig, nsid: NamespaceId) -> Vec<(u16, u16, u64)> {
    let command = Command::on(nsid, Op::HandleStatus);
    let (status, data) = exec(rig, command, Some(Buf::from(vec![0xa5; 4_096])));
    assert_eq!(status, Status::SUCCESS);
    let data = data.expect("the buffer comes back");
    let (header, rest) = HandleStatusHeader::read_from_prefix(&data).expect("it is long enough");
    let (all, rest) = rest.split_at(usize::from(header.nruhsd.get()) * size_of::<HandleStatus>());
    assert!(rest.iter().all(|byte| *byte == 0));
    all.chunks(size_of::<HandleStatus>())
        .map(|of| HandleStatus::read_from_bytes(of).expect("a whole one"))
        .map(|of| (of.pid.get(), of.ruhid.get(), of.ruamw.get()))
        .collect()
}

fn unit_of(rig: &Rig, block: u64) -> Option<u32> {
    rig.drive.placement().reclaim_unit(NSID, Lba(block))
}

#[test]
fn each_handle_writes_to_a_reclaim_unit_of_its_own() {
    let mut rig = Rig::new(&placed(3, Isolation::Initially));
    put(&mut rig, 0, 0, 4);
    put(&mut rig, 2, 4, 4);
    put(&mut rig, 1, 8, 4);
    put(&mut rig, 2, 12, 4);
    let units: Vec<_> = [0, 4, 8, 12].map(|block| unit_of(&rig, block)).to_vec();
    assert_eq!(units[1], units[3]);
    assert_eq!(units[..3], [Some(0), Some(1), Some(2)]);
    assert_eq!(unit_of(&rig, 16), None, "it was never written");
    let expected = [(0, 0, UNIT - 4), (1, 1, UNIT - 4), (2, 2, UNIT - 8)];
    assert_eq!(status(&mut rig, NSID), expected);
    // A write that does not fit goes on in the next, and a full one is left for good.
    put(&mut rig, 2, 16, UNIT - 8);
    assert_eq!(status(&mut rig, NSID)[2], (2, 2, UNIT));
    put(&mut rig, 2, 16, 1);
    assert_eq!(unit_of(&rig, 16), Some(3));
    rig.drive.assert_invariants();
}

#[test]
fn a_write_that_names_no_handle_goes_through_the_default_one() {
    let mut rig = Rig::new(&placed(2, Isolation::Persistently));
    put(&mut rig, 0, 0, 4);
    put(&mut rig, 2, 4, 4);
    assert_eq!(
        rig.drive.placement().events(true),
        [],
        "nobody wants to know"
    );
    let invalid = PlacementEventType::INVALID_PLACEMENT_IDENTIFIER;
    assert!(rig.drive.enable_placement_event(NSID, 0, invalid, true));
    assert_eq!(
        rig.drive.placement().is_event_enabled(NSID, 0, invalid),
        Some(true)
    );
    put(&mut rig, u16::MAX, 8, 4);
    assert_eq!(unit_of(&rig, 0), unit_of(&rig, 4));
    assert_eq!(unit_of(&rig, 0), unit_of(&rig, 8));
    let events = rig.drive.placement().events(true);
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].placement, events[0].handle, events[0].what),
        (u16::MAX, 0, PlacementEventKind::InvalidIdentifier)
    );
    // There is no such handle, and no such event.
    assert!(!rig.drive.enable_placement_event(NSID, 2, invalid, true));
    let never = PlacementEventType::TIME_LIMIT_EXCEEDED;
    assert!(!rig.drive.enable_placement_event(NSID, 0, never, true));
}

#[test]
fn an_update_makes_handles_go_on_to_empty_reclaim_units() {
    let mut rig = Rig::new(&placed(2, Isolation::Initially));
    let left = PlacementEventType::NOT_FULLY_WRITTEN;
    assert!(rig.drive.enable_placement_event(NSID, 1, left, true));
    // Empty as it is, there is nothing to leave.
    assert_eq!(update(&mut rig, &[1]), Status::SUCCESS);
    assert_eq!(rig.drive.placement().events(true), []);
    put(&mut rig, 0, 0, 4);
    put(&mut rig, 1, 4, 4);
    let before = (unit_of(&rig, 0), unit_of(&rig, 4));
    assert_eq!(update(&mut rig, &[1, 0]), Status::SUCCESS);
    assert_eq!(status(&mut rig, NSID), [(0, 0, UNIT), (1, 1, UNIT)]);
    put(&mut rig, 0, 8, 4);
    put(&mut rig, 1, 12, 4);
    assert_ne!(unit_of(&rig, 8), before.0);
    assert_ne!(unit_of(&rig, 12), before.1);
    let events = rig.drive.placement().events(true);
    assert_eq!(events.len(), 1, "it is enabled for one of them");
    assert_eq!(
        (events[0].placement, events[0].what),
        (1, PlacementEventKind::NotFullyWritten)
    );
    assert_eq!(update(&mut rig, &[]), Status::SUCCESS);
    for wrong in [&[2][..], &[0, 1, 2], &[0, 0, 0]] {
        assert_eq!(update(&mut rig, wrong), Status::INVALID_FIELD, "{wrong:?}");
    }
    let short = Command::on(NSID, Op::HandleUpdate { handles: 2 });
    let (refused, _) = exec(&mut rig, short, Some(Buf::from(vec![0; 2])));
    assert_eq!(refused, Status::INVALID_FIELD);
    // Handles can be updated without end, and old events are forgotten.
    for _ in 0..3 * PLACEMENT_EVENTS {
        put(&mut rig, 1, 4, 4);
        assert_eq!(update(&mut rig, &[1]), Status::SUCCESS);
    }
    rig.settle();
    rig.drive.assert_invariants();
    let events = rig.drive.placement().events(true);
    assert_eq!(events.len(), PLACEMENT_EVENTS);
    assert!(events.is_sorted_by_key(|event| event.at));
}

#[test]
fn handles_are_those_of_the_endurance_group() {
    let mut config = placed(2, Isolation::Persistently);
    config.zones.count += 7;
    config.namespaces.insert(0, namespace(7, 3, None));
    let mut rig = Rig::new(&config);
    let all = rig.drive.placement().handles();
    let seen: Vec<_> = all
        .iter()
        .map(|of| (of.nsid.0, of.placement, of.handle, of.is_chosen))
        .collect();
    assert_eq!(seen, [(1, 0, 0, false), (2, 0, 1, true), (2, 1, 2, true)]);
    assert_eq!(all[0].isolation, Isolation::Initially);
    assert_eq!(all[2].isolation, Isolation::Persistently);
    assert_eq!(status(&mut rig, NamespaceId(1)), [(0, 0, UNIT)]);
    assert_eq!(
        status(&mut rig, NamespaceId(2)),
        [(0, 1, UNIT), (1, 2, UNIT)]
    );
    // The handle that the drive chose can be updated like any other.
    put(&mut rig, 0, 0, 4);
    assert_eq!(update(&mut rig, &[0]), Status::SUCCESS);
    assert_eq!(status(&mut rig, NamespaceId(1)), [(0, 0, UNIT)]);
    rig.drive.assert_invariants();
}

#[test]
fn drives_without_handles_have_no_such_commands() {
    let mut config = placed(2, Isolation::Initially);
    config.namespaces = vec![namespace(config.zones.count, 3, None)];
    let mut rig = Rig::new(&config);
    let status = Command::on(NSID, Op::HandleStatus);
    let (refused, _) = exec(&mut rig, status, Some(Buf::from(vec![0; 64])));
    assert_eq!(refused, Status::INVALID_OPCODE);
    assert_eq!(update(&mut rig, &[0]), Status::INVALID_OPCODE);
    assert_eq!(rig.drive.placement().handles(), []);
    // What a write says of placement does not count.
    put(&mut rig, 0, 0, 4);
    put(&mut rig, 1, 4, 4);
    assert_eq!(unit_of(&rig, 0), unit_of(&rig, 4));
}

/// Writes whole pages: three of four to a few of them, which are hot, and the others one
/// after the other. Returns the rig when all of it is done.
fn hot_and_cold(config: &DriveConfig, hot_handle: u16) -> Rig {
    let mut config = config.clone();
    config.data = DataStore::None;
    let mut rig = Rig::new(&config);
    let page = u64::from(PAGE);
    let pages = 4 * UNIT / page;
    let hot = pages / 8;
    let mut x = 1_u64;
    let mut cold = 0;
    for number in 0..60 * pages {
        let (placement, at) = if number % 4 == 0 {
            cold = (cold + 1) % (pages - hot);
            (0, hot + cold)
        } else {
            x = x
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (hot_handle, (x >> 33) % hot)
        };
        let command = write(placement, at * page, page);
        let tag = rig.submit_command(command, None);
        assert_eq!(rig.wait(tag).status, Status::SUCCESS);
    }
    rig.settle();
    rig.drive.assert_invariants();
    rig
}

#[test]
fn placement_of_hot_and_cold_data_lowers_write_amplification() {
    for isolation in [Isolation::Initially, Isolation::Persistently] {
        let config = placed(2, isolation);
        let [mixed, apart] = [0, 1].map(|handle| {
            let rig = hot_and_cold(&config, handle);
            rig.drive.totals().dlwa().expect("something was written")
        });
        assert!(
            apart < mixed,
            "{isolation:?}: {apart} with placement, {mixed} without"
        );
    }
}

#[test]
fn statistics_are_what_was_written_programmed_and_erased() {
    let config = placed(2, Isolation::Persistently);
    let rig = hot_and_cold(&config, 1);
    let statistics = rig.drive.placement().statistics();
    let host = 60 * 4 * UNIT as u128 * LBA as u128;
    assert_eq!(statistics.host_write_bytes, host);
    // Every unit programs a page at a time, and erases a block.
    let ledger = rig.drive.flash().media().ledger();
    let count = |causes: &[Cause]| -> u128 {
        let units = ledger.operations().iter();
        units
            .flat_map(|of| causes.iter().map(|cause| u128::from(of[*cause as usize])))
            .sum()
    };
    let page_bytes = u128::from(config.geometry.page_bytes);
    let programs = count(&[Cause::HostWrite, Cause::CollectWrite]);
    assert_eq!(statistics.media_write_bytes, programs * page_bytes);
    let collected = rig.drive.totals().collect_program_bytes;
    assert_eq!(
        statistics.media_write_bytes,
        host + u128::from(collected),
        "whole pages are not padded"
    );
    let block_bytes = page_bytes * u128::from(config.geometry.pages_per_block);
    assert_eq!(count(&[Cause::CollectWrite]) * page_bytes, collected.into());
    let erasures = count(&[Cause::WriteErase, Cause::CollectErase]);
    assert_eq!(statistics.media_erase_bytes, erasures * block_bytes);
    assert!(erasures > 0);
}

#[test]
fn data_that_collection_moves_is_told_to_those_who_want_to_know() {
    let config = placed(2, Isolation::Persistently);
    let mut rig = Rig::new(&config);
    let moved = PlacementEventType::MEDIA_REALLOCATED;
    assert!(rig.drive.enable_placement_event(NSID, 1, moved, true));
    let mut x = 1_u64;
    let mut next = || {
        x = x
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 33) % (4 * UNIT)
    };
    for _ in 0..12 * UNIT {
        put(&mut rig, 1, next(), 1);
    }
    rig.settle();
    assert!(rig.drive.totals().collect_program_bytes > 0);
    let events = rig.drive.placement().events(false);
    assert!(!events.is_empty());
    for event in &events {
        let PlacementEventKind::Reallocated { lba, blocks } = event.what else {
            panic!("{event:?} is none of the controller");
        };
        assert!(lba < 4 * UNIT && blocks > 0);
    }
    assert!(events.iter().all(|of| (of.placement, of.handle) == (1, 1)));
    assert_eq!(rig.drive.placement().events(true), []);
}
