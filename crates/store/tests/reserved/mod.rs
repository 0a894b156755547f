//! Reservations of hosts in a store: bytes of which it knows nothing else.

use zonelab_ssd::contents::Contents;
use zonelab_store::check::{Reservations, check, repair};
use zonelab_store::{OpenError, Options, Store, create, open};

use super::{Memory, config};

/// Where the slots are, and how long they are.
const SLOTS: [u64; 2] = [32 << 10, 48 << 10];
const SLOT_BYTES: usize = 16 << 10;

fn store() -> Memory {
    let mut memory = Memory::default();
    create(&mut memory, &config(), Options::default()).unwrap();
    memory
}

fn open_in(memory: &Memory) -> Result<(Store<Memory>, Vec<u8>), OpenError> {
    open(memory.clone(), &config()).map(|(store, found)| (store, found.kept.reservations))
}

fn kept(memory: &Memory) -> Vec<u8> {
    open_in(memory).unwrap().1
}

fn bytes(memory: &Memory, slot: usize) -> Vec<u8> {
    use zonelab_store::Medium as _;
    let mut bytes = vec![0; SLOT_BYTES];
    memory.read(SLOTS[slot], &mut bytes).unwrap();
    bytes
}

fn put(memory: &mut Memory, slot: usize, bytes: &[u8]) {
    use zonelab_store::Medium as _;
    memory.write(SLOTS[slot], bytes).unwrap();
}

fn found(damaged: &[u64], newest: Option<(u64, u64)>, is_lost: bool) -> Reservations {
    Reservations {
        damaged_slots: damaged.to_vec(),
        newest,
        is_lost,
    }
}

/// Opens it, begins, keeps these reservations one after the other, and ends.
fn keeping(memory: &Memory, all: &[&[u8]], is_orderly: bool) {
    let (mut store, _) = open_in(memory).unwrap();
    store.begin();
    for reservations in all {
        store.keep_reservations(reservations);
    }
    if is_orderly {
        store.close();
    }
    assert_eq!(store.failure(), None);
}

#[test]
fn reservations_outlive_every_end_and_a_format() {
    let memory = store();
    // As in a store that is older than reservations.
    assert!(bytes(&memory, 0).iter().all(|byte| *byte == 0));
    assert!(bytes(&memory, 1).iter().all(|byte| *byte == 0));
    assert!(kept(&memory).is_empty());
    keeping(&memory, &[b"first"], false);
    assert_eq!(kept(&memory), b"first");
    keeping(&memory, &[b"second", b"third and longer", b"4th"], true);
    assert_eq!(kept(&memory), b"4th");
    let (mut store, _) = open_in(&memory).unwrap();
    store.begin();
    store.format(4096);
    drop(store);
    assert_eq!(kept(&memory), b"4th");
    keeping(&memory, &[b""], true);
    assert!(kept(&memory).is_empty());
    let report = check(&memory).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

/// The process ends at any byte of the write: what was there before counts, and the next
/// drive leaves nothing of the rest.
#[test]
fn a_write_that_does_not_come_to_its_end_changes_nothing() {
    let reservations: &[&[u8]] = &[b"first", b"second", b"third"];
    for count in 1..=reservations.len() {
        let before = store();
        keeping(&before, &reservations[..count - 1], false);
        let expected = reservations[..count - 1].last().copied();
        let after = store();
        keeping(&after, &reservations[..count], false);
        let slot = count % 2;
        let (old, new) = (bytes(&before, slot), bytes(&after, slot));
        let end = 16 + reservations[count - 1].len();
        for written in 0..end {
            let mut torn = store();
            keeping(&torn, &reservations[..count - 1], false);
            put(&mut torn, slot, &new[..written]);
            let is_torn = new[..written] != old[..written];
            assert_eq!(
                kept(&torn),
                expected.unwrap_or_default(),
                "{count}: {written}"
            );
            keeping(&torn, &[], true);
            assert_eq!(
                kept(&torn),
                expected.unwrap_or_default(),
                "{count}: {written}"
            );
            // A byte that is wrong is no torn write any more.
            assert!(
                check(&torn).unwrap().is_sound(),
                "{count}: {written} {is_torn}"
            );
        }
    }
}

#[test]
fn damaged_reservations_are_refused_and_repaired_to_those_before() {
    let memory = store();
    keeping(&memory, &[b"first", b"second"], true);
    for (slot, left) in [(0, &b"first"[..]), (1, &b"second"[..])] {
        for at in [0, 5, 9, 16, 20] {
            let mut damaged = store();
            keeping(&damaged, &[b"first", b"second"], true);
            let mut wrong = bytes(&memory, slot);
            wrong[at] ^= 0x20;
            put(&mut damaged, slot, &wrong);
            let refused = open_in(&damaged).map(|(_, kept)| kept);
            let Err(OpenError::Damaged { what }) = refused else {
                panic!("slot {slot}, byte {at}: {refused:?}");
            };
            assert_eq!(what, "reservations of hosts");
            let report = check(&damaged).unwrap();
            assert!(!report.is_sound() && report.damage.is_some(), "{report:?}");
            // The first record is in slot 1, and the second in slot 0.
            let (slot, newest) = [(0, (1, 1)), (1, (0, 2))][slot];
            assert_eq!(report.reservations, found(&[slot], Some(newest), true));
            repair(&mut damaged).unwrap();
            assert_eq!(kept(&damaged), left, "slot {slot}, byte {at}");
        }
    }
    // Both: then there are none.
    let mut damaged = store();
    keeping(&damaged, &[b"first", b"second"], false);
    for slot in 0..2 {
        let mut wrong = bytes(&memory, slot);
        wrong[17] ^= 1;
        put(&mut damaged, slot, &wrong);
    }
    assert!(matches!(open_in(&damaged), Err(OpenError::Damaged { .. })));
    let report = check(&damaged).unwrap();
    assert_eq!(report.reservations, found(&[0, 1], None, true));
    assert!(!report.is_sound());
    repair(&mut damaged).unwrap();
    assert!(kept(&damaged).is_empty());
    assert_eq!(
        check(&damaged).unwrap().reservations,
        found(&[], None, false)
    );
}

/// A slot that is not whole after a kill is no damage that could be told from a write that
/// was cut short, and is named all the same.
#[test]
fn a_slot_that_is_not_whole_is_named_in_a_sound_store() {
    let none = store();
    assert_eq!(check(&none).unwrap().reservations, found(&[], None, false));
    for (count, damaged, newest) in [
        (2, 0, Some((1, 1))),
        (2, 1, Some((0, 2))),
        (1, 1, None),
        (3, 1, Some((0, 2))),
    ] {
        let mut memory = store();
        keeping(&memory, &[&b"1st"[..], b"2nd", b"3rd"][..count], false);
        let mut wrong = bytes(&memory, damaged as usize);
        wrong[17] ^= 1;
        put(&mut memory, damaged as usize, &wrong);
        let report = check(&memory).unwrap();
        assert!(report.is_sound(), "{count}: {report:?}");
        assert_eq!(
            report.reservations,
            found(&[damaged], newest, false),
            "{count}"
        );
    }
}

/// A drive says how many bytes it keeps; more are a failure, after which nothing leaves.
#[test]
fn what_has_no_room_is_not_kept() {
    let memory = store();
    let (mut store, _) = open_in(&memory).unwrap();
    let most = store.reservation_bytes_max();
    assert_eq!(most, SLOT_BYTES - 16);
    store.begin();
    store.keep_reservations(&vec![7; most]);
    assert_eq!(store.failure(), None);
    store.keep_reservations(&vec![8; most + 1]);
    let failure = store.failure().unwrap();
    assert!(
        failure.contains("16369 bytes of reservations have no room"),
        "{failure}"
    );
    drop(store);
    assert_eq!(kept(&memory), vec![7; most]);
}
