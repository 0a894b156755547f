//! Command identifiers.

use std::collections::HashMap;

use proptest::prelude::{ProptestConfig, any, proptest};
use zonelab_driver::pcie::Violation;
use zonelab_driver::pcie::ids::CommandIds;

/// A completion that comes again does not complete the command that has its slot now.
#[test]
fn a_late_completion_does_not_end_the_next_command_of_its_slot() {
    let mut ids = CommandIds::new(4, true);
    let (slot, old) = ids.take().unwrap();
    assert_eq!(ids.resolve(old), Ok(slot));
    ids.release(slot);
    assert_eq!(ids.resolve(old), Err(Violation::NotInFlight { cid: old }));
    let (again, new) = ids.take().unwrap();
    assert_eq!(again, slot, "the slot that was freed last is taken first");
    assert_ne!(new, old);
    assert_eq!(ids.resolve(old), Err(Violation::NotInFlight { cid: old }));
    assert_eq!(ids.resolve(new), Ok(slot));
}

/// Slots that the queue does not have are no memory accesses but errors.
#[test]
fn identifiers_out_of_range_are_refused() {
    let mut ids = CommandIds::new(5, true);
    while ids.take().is_some() {}
    let cid = 7;
    assert_eq!(
        ids.resolve(cid),
        Err(Violation::NoSuchCommand { cid, last: 4 })
    );
    assert_eq!(ids.in_flight(), 5);
}

/// Some controllers want small identifiers.
#[test]
fn without_generations_identifiers_are_slots() {
    let mut ids = CommandIds::new(3, false);
    for _ in 0..20 {
        let taken: Vec<(u16, u16)> = core::iter::from_fn(|| ids.take()).collect();
        assert!(
            taken.iter().all(|(slot, cid)| slot == cid && *cid < 3),
            "{taken:?}"
        );
        taken.iter().for_each(|(slot, _)| ids.release(*slot));
    }
    let cid = 0x400;
    assert_eq!(
        ids.resolve(cid),
        Err(Violation::NoSuchCommand { cid, last: 2 })
    );
}

/// FFFFh stands for no command in the error log of a controller.
#[test]
fn the_identifier_that_means_none_is_never_used() {
    let mut ids = CommandIds::new(4, true);
    for _ in 0..20_000 {
        let taken: Vec<(u16, u16)> = core::iter::from_fn(|| ids.take()).collect();
        for (slot, cid) in taken {
            assert_ne!(cid, u16::MAX);
            ids.release(slot);
        }
        if cfg!(miri) {
            break;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Against a map of what is in flight: every identifier that is resolved is one that
    /// was given out and not released.
    #[test]
    fn only_what_is_in_flight_is_resolved(
        slots in 1_u16..40,
        has_generations in any::<bool>(),
        steps in proptest::collection::vec((any::<bool>(), any::<u16>()), 1..200),
    ) {
        let mut ids = CommandIds::new(slots, has_generations);
        let mut in_flight: HashMap<u16, u16> = HashMap::new();
        for (takes, number) in steps {
            if takes {
                match ids.take() {
                    Some((slot, cid)) => assert_eq!(in_flight.insert(cid, slot), None),
                    None => assert_eq!(in_flight.len(), usize::from(slots)),
                }
            } else if let Some(cid) = in_flight.keys().copied().min_by_key(|cid| cid ^ number) {
                let slot = in_flight.remove(&cid);
                assert_eq!(ids.resolve(cid).ok(), slot);
                ids.release(slot.unwrap_or(u16::MAX));
            }
            assert_eq!(ids.resolve(number).ok(), in_flight.get(&number).copied());
            assert_eq!(ids.in_flight(), in_flight.len());
        }
    }
}
