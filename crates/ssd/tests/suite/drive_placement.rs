//! Which die takes the next program of a zone, where the write buffer chooses it.

use crate::drive_support::random::{Step, drives, streams};
use crate::drive_support::{PAGE, Rig, WRITE, small};
use proptest::prelude::*;
use std::collections::BTreeSet;
use zonelab_device::{Nanos, ZoneId};
use zonelab_ssd::config::{BufferRelease, DriveConfig, Placement, WriteBufferConfig};
use zonelab_ssd::snapshot::SnapshotError;
use zonelab_ssd::{Drive, FaultTarget, snapshot};

/// `config` with a buffer of so many pages that chooses dies.
fn by_work(mut config: DriveConfig, pages: u64) -> DriveConfig {
    config.write_buffer = Some(WriteBufferConfig {
        size_bytes: pages * u64::from(config.geometry.page_bytes),
        power_loss_protection: true,
        release: BufferRelease::Program,
        drain_bytes_per_s: None,
        turn_bytes: None,
        placement: Placement::LeastWork,
    });
    config
}

/// The block of each page of a physical zone.
fn blocks(drive: &Drive, physical: u32) -> Vec<usize> {
    let flash = drive.flash();
    let pages = 0..flash.layout().zone_pages();
    let block = |page| flash.block_of_page(physical, page);
    pages
        .map(|page| block(page).expect("it has flash"))
        .collect()
}

/// Two dies. Zones that begin at the same one with a page each: the second goes to the
/// other die, in the time of one program.
#[test]
fn two_zones_do_not_wait_for_one_die() {
    for (placement, is_done) in [(Placement::InOrder, false), (Placement::LeastWork, true)] {
        let mut config = by_work(small(), 8);
        config.write_buffer.as_mut().unwrap().placement = placement;
        let mut rig = Rig::new(&config);
        for zone in [0, 2] {
            let op = rig.write(zone, PAGE);
            rig.submit(op);
        }
        rig.run_to(WRITE);
        assert_eq!(rig.drive.buffered_bytes() == 0, is_done, "{placement:?}");
    }
}

#[test]
fn a_zone_that_was_declared_full_is_in_the_order_of_its_stripe() {
    let config = by_work(small(), 8);
    let mut rig = Rig::new(&config);
    rig.precondition(1..2);
    let layout = rig.drive.flash().layout();
    let row_pages = layout.width() * config.geometry.pages_per_block;
    for (page, block) in (0..).zip(blocks(&rig.drive, 1)) {
        let (row, slot) = (page / row_pages, layout.slot_of_page(page));
        assert_eq!(block, layout.block_index(1, row * layout.width() + slot));
    }
}

/// A snapshot that was saved before write buffers chose dies, in hexadecimal digits: of
/// `by_work(small(), 8)` with 9 pages in zone 0, 32 in zone 2 and 5 in zone 3; zone 4 had
/// been written and reset, and zone 5 was open.
const IN_ORDER: &str = include_str!("snapshot_in_order.hex");

fn bytes_of(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.lines().flat_map(str::bytes).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("digits are ASCII");
        u8::from_str_radix(pair, 16).expect("two hexadecimal digits")
    };
    digits.chunks(2).map(byte).collect()
}

/// What was on the flash is where the stripe had it; what is written from now on goes
/// where the rows that were begun have room.
#[test]
fn a_snapshot_from_before_placement_loads() {
    let config = by_work(small(), 8);
    let mut rig = Rig::new(&config);
    rig.drive = snapshot::restore(&config, &bytes_of(IN_ORDER)).expect("the format is read");
    let layout = rig.drive.flash().layout();
    let row_pages = layout.width() * config.geometry.pages_per_block;
    let lasts = [(0, 9), (1, 0), (2, 32), (3, 5), (4, 0), (5, 0)];
    for (zone, pages) in lasts {
        let written = rig.drive.zones().written_lbas(ZoneId(zone));
        assert_eq!(written, u64::from(pages * PAGE), "zone {zone}");
        let found = blocks(&rig.drive, zone);
        for (page, block) in (0..pages).zip(found) {
            let (row, slot) = (page / row_pages, layout.slot_of_page(page));
            let in_order = layout.block_index(zone, row * layout.width() + slot);
            assert_eq!(block, in_order, "zone {zone}, page {page}");
        }
    }
    for (zone, pages) in [(0, 23), (3, 27), (4, 32), (5, 1)] {
        rig.write_pages(zone, pages);
        rig.settle();
        assert_rows(&rig.drive);
    }
    for zone in [0, 2, 3, 4] {
        let read = rig.read(zone, 0, 32 * PAGE);
        rig.time(read);
    }
    let bytes = snapshot::save(&rig.drive).expect("it is idle");
    let again = snapshot::restore(&config, &bytes).expect("it is of the same drive");
    assert_eq!(blocks(&again, 0), blocks(&rig.drive, 0));
}

/// The same snapshot is refused by the first key of the profile that differs.
#[test]
fn a_snapshot_from_before_placement_is_of_its_drive_only() {
    let mut other = by_work(small(), 8);
    other.zones.count = 5;
    match snapshot::restore(&other, &bytes_of(IN_ORDER)) {
        Err(SnapshotError::OtherDrive { key, saved, here }) => {
            assert_eq!((&*key, &*saved, &*here), ("zones.count", "6", "5"));
        }
        other => panic!("{other:?}"),
    }
}

fn run(rig: &mut Rig, stream: &[Step]) {
    for step in stream {
        match step.op(rig) {
            Some(op) => {
                rig.submit(op);
            }
            None => rig.run_for(Nanos::from_us(400)),
        }
    }
}

/// Every row of a stripe has its pages, as far as they were programmed, on different planes.
fn assert_rows(drive: &Drive) {
    let layout = drive.flash().layout();
    for zone in (0..drive.zones().count()).map(ZoneId) {
        let Some(physical) = drive.flash().mapping().physical(zone) else {
            continue;
        };
        let (programmed, ..) = drive.flash().zone_state(physical);
        let blocks = &blocks(drive, physical)[..programmed as usize];
        for row in blocks.chunks(layout.width() as usize) {
            let distinct: BTreeSet<_> = row.iter().collect();
            assert_eq!(distinct.len(), row.len(), "{zone:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// Rows stay whole whatever is written, reset, finished, declared full or cut off, and
    /// a snapshot has every page that was written where it is.
    #[test]
    fn rows_have_a_page_on_each_die(
        config in drives(),
        pages in 1..40_u64,
        is_protected in any::<bool>(),
        streams in prop::collection::vec((streams(1..60), any::<Option<u64>>()), 1..4),
    ) {
        let mut config = by_work(config, pages);
        config.write_buffer.as_mut().unwrap().power_loss_protection = is_protected;
        let mut rig = Rig::new(&config);
        for (stream, cut) in streams {
            run(&mut rig, &stream);
            if let Some(seed) = cut {
                let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), seed);
                rig.now = loss.ready_at;
                for lost in &loss.lost {
                    rig.forget(lost.tag.0 as usize);
                }
            }
            assert_rows(&rig.drive);
        }
        while rig.next() {}
        let bytes = snapshot::save(&rig.drive).expect("nothing is in flight");
        let restored = snapshot::restore(&config, &bytes).expect("it is of the same drive");
        assert_rows(&restored);
        for zone in (0..config.zones.count).map(ZoneId) {
            if let Some(physical) = rig.drive.flash().mapping().physical(zone) {
                let (written, ..) = rig.drive.flash().zone_state(physical);
                let (were, are) = (blocks(&rig.drive, physical), blocks(&restored, physical));
                prop_assert_eq!(&were[..written as usize], &are[..written as usize]);
            }
        }
        prop_assert_eq!(snapshot::save(&restored).expect("it is idle"), bytes);
    }

    /// What a damaged snapshot says of places is refused or harmless.
    #[test]
    fn a_forged_snapshot_does_no_harm(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let config = by_work(small(), 8);
        let mut rig = Rig::new(&config);
        rig.write_pages(0, 9);
        rig.write_pages(3, 5);
        rig.settle();
        while rig.next() {}
        let mut bytes = snapshot::save(&rig.drive).expect("nothing is in flight");
        // Behind the header; what is last are the places.
        let tail = 24 + at.index(bytes.len() - 24);
        bytes[tail] = value;
        let sum = crc32c::crc32c(&bytes[24..]);
        bytes[20..24].copy_from_slice(&sum.to_le_bytes());
        if let Ok(drive) = snapshot::restore(&config, &bytes) {
            for zone in [0, 3] {
                let all = blocks(&drive, zone);
                prop_assert_eq!(all.len() as u32, drive.flash().layout().zone_pages());
            }
        }
    }
}
