//! Defects of the write buffers and of the garbage collection of other emulators and
//! simulators, which this drive must not have.

use crate::drive_support::{PAGE, Rig, reset, small};
use zonelab_device::{Buf, Command, Lba, NamespaceId, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_oracle::blocks::Blocks;
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, EraseExtent, EraseWhen, LogConfig, NamespaceConfig,
    NamespaceKind, Placement, WriteBufferConfig,
};

const PAGE_BYTES: u64 = 16_384;
const LBA: usize = 4_096;
/// Pages of a zone of [`small`], and of the stripe over its planes.
const ZONE_PAGES: u32 = 32;
const STRIPE: u32 = 4;

/// `config` with data and a buffer of so many pages.
fn buffered(mut config: DriveConfig, pages: u64) -> DriveConfig {
    config.data = DataStore::Memory;
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: pages * PAGE_BYTES,
        power_loss_protection: false,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::InOrder,
        release: BufferRelease::Program,
    });
    config
}

/// Blocks that say whose they are.
fn stamped(byte: u8, nlb: u32) -> Option<Buf> {
    Some(Buf::from(vec![byte; nlb as usize * LBA]))
}

/// The byte of each of the first `nlb` blocks of a zone.
fn bytes(rig: &mut Rig, zone: u32, nlb: u32) -> Vec<u8> {
    let done = rig.exec_with(rig.read(zone, 0, nlb), stamped(0xee, nlb));
    assert_eq!(done.status, Status::SUCCESS);
    let data = done.data.expect("the buffer comes back");
    let byte = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "a torn block");
        block[0]
    };
    data.chunks(LBA).map(byte).collect()
}

/// FEMU's flush of a stripe that is not full uses the whole stripe up, so that a host that
/// flushes often runs out of flash (FEMU#205). Here a flush programs the pages that have
/// something to program, and the zone goes on where it was.
#[test]
fn a_flush_of_a_part_of_a_stripe_programs_that_part_only() {
    for part in 1..STRIPE {
        let mut rig = Rig::new(&buffered(small(), 8));
        let mut blocks = Blocks::watch(&mut rig.drive);
        let mut pages = 0;
        while pages < ZONE_PAGES {
            let count = part.min(ZONE_PAGES - pages);
            let op = rig.write(0, count * PAGE);
            assert_eq!(
                rig.exec_with(op, stamped(7, count * PAGE)).status,
                Status::SUCCESS
            );
            rig.exec(Op::Flush);
            blocks.look(&mut rig.drive);
            pages += count;
            let programmed = rig.drive.totals().host_program_bytes;
            assert_eq!(programmed, u64::from(pages) * PAGE_BYTES, "by {part} pages");
            assert_eq!(rig.drive.flash().zone_state(0).0, pages);
        }
        assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
        rig.settle();
        blocks.look(&mut rig.drive);
        assert_eq!(
            bytes(&mut rig, 0, ZONE_PAGES * PAGE),
            vec![7; (ZONE_PAGES * PAGE) as usize]
        );
    }
}

/// The same with parts of a page: each flush costs the program of one page, the next block
/// goes behind the last in the same page, and a zone can be filled to its capacity.
#[test]
fn a_flush_of_a_part_of_a_page_costs_one_page() {
    let mut rig = Rig::new(&buffered(small(), 8));
    let mut blocks = Blocks::watch(&mut rig.drive);
    for lba in 0..ZONE_PAGES * PAGE {
        let op = rig.write(0, 1);
        assert_eq!(
            rig.exec_with(op, stamped(lba as u8, 1)).status,
            Status::SUCCESS
        );
        rig.exec(Op::Flush);
        blocks.look(&mut rig.drive);
        assert_eq!(rig.drive.buffered_bytes(), 0, "all is on the flash");
        let programmed = rig.drive.totals().host_program_bytes;
        assert_eq!(programmed, u64::from(lba + 1) * PAGE_BYTES);
        assert_eq!(rig.drive.flash().zone_state(0).0, lba / PAGE + 1);
        // Nothing new: nothing to program.
        rig.exec(Op::Flush);
        assert_eq!(rig.drive.totals().host_program_bytes, programmed);
    }
    assert_eq!(rig.drive.zones().state(ZoneId(0)), ZoneState::FULL);
    let expected: Vec<u8> = (0..ZONE_PAGES * PAGE).map(|lba| lba as u8).collect();
    assert_eq!(bytes(&mut rig, 0, ZONE_PAGES * PAGE), expected);
}

/// FEMU keeps one "active zone" for all writers: between one that sets it and one that uses
/// it, blocks get into the buffer of another zone (FEMU#195). Here writers of all zones take
/// turns with parts of pages in one buffer, and each zone gets its own blocks, on its own
/// flash, and no page more.
#[test]
fn blocks_of_writers_that_take_turns_go_to_their_own_zones() {
    for (appends, size) in [(false, 2), (false, 8), (true, 2), (true, 64)] {
        let mut config = buffered(small(), size);
        config.zones.max_active = None;
        config.zones.max_open = None;
        let zones = config.zones.count;
        let mut rig = Rig::new(&config);
        let mut blocks = Blocks::watch(&mut rig.drive);
        // Of no two zones as much, and none of whole pages only.
        let lbas = |zone: u32| 3 * PAGE + 2 * zone + 1;
        for round in 0..lbas(zones - 1) {
            for zone in (0..zones).filter(|zone| round < lbas(*zone)) {
                let op = match appends {
                    true => rig.append(zone, 1),
                    false => rig.write(zone, 1),
                };
                rig.submit_with(op, stamped(10 + zone as u8, 1));
                blocks.look(&mut rig.drive);
            }
        }
        // A flush is for what the buffer has taken.
        rig.settle();
        blocks.look(&mut rig.drive);
        rig.exec(Op::Flush);
        blocks.look(&mut rig.drive);
        assert_eq!(rig.drive.buffered_bytes(), 0);
        for zone in 0..zones {
            let nlb = lbas(zone);
            assert_eq!(rig.drive.zones().written_lbas(ZoneId(zone)), u64::from(nlb));
            let own = vec![10 + zone as u8; nlb as usize];
            assert_eq!(
                bytes(&mut rig, zone, nlb),
                own,
                "zone {zone}, buffer of {size}"
            );
            assert_eq!(rig.drive.flash().zone_state(zone).0, nlb.div_ceil(PAGE));
        }
        let written: u32 = (0..zones).map(lbas).sum();
        let totals = rig.drive.totals();
        assert_eq!(totals.host_write_bytes, u64::from(written) * LBA as u64);
    }
}

/// Zones of the log of [`flat`], its spare ones, and pages that a host can address.
const LOG: u32 = 7;
const SPARE: u32 = 3;
const FLAT_PAGES: u64 = (LOG - SPARE) as u64 * 16;
const FLAT: NamespaceId = NamespaceId(1);

/// A conventional namespace over seven zones of 16 pages, four of which can be addressed.
fn flat() -> DriveConfig {
    let mut config = small();
    config.zones.capacity_lbas = u64::from(16 * PAGE);
    config.zones.size_lbas = config.zones.capacity_lbas;
    config.zones.count = LOG;
    config.zones.max_active = None;
    config.zones.max_open = None;
    config.namespaces = vec![NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(SPARE)),
        zones: LOG,
        max_active: None,
        max_open: None,
    }];
    config
}

/// In MQSim-CXL a drive that is written over and over never begins to collect, and stops
/// when it has no free block left (MQSim_CXL#1). Here the collection begins when there is
/// no zone left to open, whatever the buffer, the time of erasures and the order of writes,
/// and every write ends.
#[test]
fn a_collection_begins_when_it_is_needed() {
    let designs = [
        EraseWhen::Synchronous,
        EraseWhen::FirstZoneWrite,
        EraseWhen::FirstBlockWrite,
        EraseWhen::Background,
    ];
    for (erase, buffer) in designs.into_iter().flat_map(|of| [(of, false), (of, true)]) {
        let mut config = flat();
        config.reset = reset(erase, EraseExtent::Partial);
        if buffer {
            config = buffered(config, 8);
        }
        config.data = DataStore::None;
        let mut rig = Rig::new(&config);
        let mut blocks = Blocks::watch(&mut rig.drive);
        let mut x = 1_u64;
        // All once, and then anything, ten times as much, eight at a time.
        for page in 0..11 * FLAT_PAGES {
            x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let target = match page < FLAT_PAGES {
                true => page,
                false => (x >> 33) % FLAT_PAGES,
            };
            if page == FLAT_PAGES {
                rig.settle();
                let moved = rig.drive.totals().collect_program_bytes;
                assert_eq!(moved, 0, "there was room: nothing is collected");
            }
            let op = Op::Write {
                slba: Lba(target * u64::from(PAGE)),
                nlb: PAGE,
            };
            rig.submit_command(Command::on(FLAT, op), None);
            if page % 8 == 7 {
                rig.settle();
            }
            blocks.look(&mut rig.drive);
        }
        rig.settle();
        blocks.look(&mut rig.drive);
        rig.drive.assert_invariants();
        let all = rig.done.iter().flatten();
        assert!(all.into_iter().all(|done| done.status == Status::SUCCESS));
        let totals = rig.drive.totals();
        assert!(
            totals.collect_program_bytes > 0,
            "{erase:?}: nothing is moved"
        );
        // Written eleven times over, with seven zones for four.
        assert!(totals.erased_blocks > 0, "{erase:?}: nothing is erased");
        let written = 11 * FLAT_PAGES * PAGE_BYTES;
        assert_eq!(totals.host_write_bytes, written);
        assert_eq!(totals.host_program_bytes, written, "each page once");
    }
}
