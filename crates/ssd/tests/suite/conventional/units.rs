//! Mapping units larger than a block: read-modify-write.

use super::*;
use zonelab_ssd::account::Cause;

/// The drive of [`config`] with units of so many blocks; a page has four.
fn mapped_by(unit_lbas: u32) -> DriveConfig {
    let mut config = config();
    let log = LogConfig {
        mapping_unit_lbas: unit_lbas,
        ..LogConfig::new(SPARE)
    };
    config.namespaces[1].kind = NamespaceKind::Conventional(log);
    config
}

/// Reads to modify units, in pages.
fn modify_reads(rig: &Rig) -> u64 {
    let operations = rig.drive.flash().media().ledger().operations();
    let reads = operations.iter().map(|of| of[Cause::ModifyRead as usize]);
    reads.sum()
}

#[test]
fn a_write_of_a_part_of_a_unit_reads_it_and_writes_it_whole() {
    let mut rig = Rig::new(&mapped_by(4));
    // A unit that holds nothing is not read.
    let done = exec(&mut rig, write(9, 1), blocks(1, 1));
    assert_eq!((done.latency(), modify_reads(&rig)), (WRITE, 0));
    assert_eq!(bytes(&mut rig, 8, 4), [0, 1, 0, 0]);
    // Neither is one that is written whole.
    let done = exec(&mut rig, write(8, 4), blocks(2, 4));
    assert_eq!((done.latency(), modify_reads(&rig)), (WRITE, 0));
    let before = rig.drive.totals();
    let done = exec(&mut rig, write(9, 1), blocks(3, 1));
    assert_eq!((done.status, done.result), (Status::SUCCESS, 0));
    assert_eq!((done.latency(), modify_reads(&rig)), (READ + WRITE, 1));
    assert_eq!(bytes(&mut rig, 8, 4), [2, 3, 2, 2]);
    let totals = rig.drive.totals().since(&before);
    let lba = LBA as u64;
    assert_eq!(totals.host_write_bytes, lba);
    assert_eq!(totals.host_program_bytes, 4 * lba, "the whole unit");
    assert_eq!(
        totals.host_read_bytes,
        4 * lba,
        "what the host read just now"
    );
    // Of a write that begins and ends within units, both are read.
    exec(&mut rig, write(12, 8), blocks(4, 8));
    exec(&mut rig, write(11, 6), blocks(5, 6));
    assert_eq!(modify_reads(&rig), 3);
    assert_eq!(bytes(&mut rig, 8, 12), [2, 3, 2, 5, 5, 5, 5, 5, 5, 4, 4, 4]);
}

#[test]
fn units_may_be_larger_than_pages() {
    let mut rig = Rig::new(&mapped_by(32));
    exec(&mut rig, write(0, 32), blocks(1, 32));
    exec(&mut rig, write(31, 2), blocks(2, 2));
    // Eight pages of the first unit; the second held nothing.
    assert_eq!(modify_reads(&rig), 8);
    let expected = [vec![1; 31], vec![2; 2], vec![0; 31]].concat();
    assert_eq!(bytes(&mut rig, 0, 64), expected);
}

#[test]
fn parts_of_units_are_zeroed_and_not_deallocated() {
    let mut rig = Rig::new(&mapped_by(4));
    exec(&mut rig, write(0, 12), blocks(7, 12));
    let deallocate = |rig: &mut Rig, slba: u64, nlb: u32| {
        let mut range = vec![0; 16];
        range[4..8].copy_from_slice(&nlb.to_le_bytes());
        range[8..].copy_from_slice(&slba.to_le_bytes());
        let op = Op::Deallocate { ranges: 1 };
        assert_eq!(
            exec(rig, op, Some(Buf::from(range))).status,
            Status::SUCCESS
        );
    };
    deallocate(&mut rig, 1, 2);
    assert_eq!(bytes(&mut rig, 0, 12), [7; 12], "it is advice");
    deallocate(&mut rig, 2, 7);
    assert_eq!(bytes(&mut rig, 0, 12), [7, 7, 7, 7, 0, 0, 0, 0, 7, 7, 7, 7]);
    let zeroes = Op::WriteZeroes {
        slba: Lba(3),
        nlb: 6,
    };
    assert_eq!(exec(&mut rig, zeroes, None).status, Status::SUCCESS);
    assert_eq!(bytes(&mut rig, 0, 12), [7, 7, 7, 0, 0, 0, 0, 0, 0, 7, 7, 7]);
    assert_eq!(modify_reads(&rig), 2, "the middle unit held nothing");
    // Zeroes of what holds nothing take no flash.
    let zeroes = Op::WriteZeroes {
        slba: Lba(5),
        nlb: 2,
    };
    assert_eq!(exec(&mut rig, zeroes, None).latency(), Nanos::ZERO);
    rig.drive.assert_invariants();
}

#[test]
fn a_table_takes_as_much_less_as_units_are_larger() {
    let of = |mapping_unit_lbas| {
        let log = LogConfig {
            mapping_unit_lbas,
            ..LogConfig::new(SPARE)
        };
        log.table_bytes(LOG, ZONE)
    };
    // An entry for each unit that can be addressed, and one for each of the log.
    assert_eq!(of(1), 4 * (BLOCKS + u64::from(LOG) * ZONE));
    assert_eq!(of(8) * 8, of(1));
}

#[test]
fn a_unit_that_fills_no_zone_is_refused_by_name() {
    for (unit, says) in [
        (
            3,
            "mapping_unit = 12KiB does not divide zones.capacity = 256KiB",
        ),
        (0, "mapping_unit = 0B does not divide"),
        (128, "a divisor of it, like 256KiB"),
    ] {
        let refused = profile::check(&mapped_by(unit)).expect_err("it is refused");
        let refused = format!("{refused:?}");
        assert!(refused.contains(says), "{refused}");
    }
}
