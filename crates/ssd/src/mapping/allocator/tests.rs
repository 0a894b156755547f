use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The same by sorting: what is available is listed in the order in which it
/// became so.
#[derive(Debug)]
struct Sorted {
    per_lun: u32,
    elements: Vec<Element>,
    available: Vec<u32>,
}

impl Sorted {
    fn new(luns: u32, per_lun: u32) -> Self {
        let fresh = Element {
            wear: 0,
            availability: Availability::Free,
            is_stale: false,
        };
        Self {
            per_lun,
            elements: vec![fresh; (luns * per_lun) as usize],
            available: (0..luns * per_lun).collect(),
        }
    }

    fn allocate(&mut self, luns: u32, needed: u32) -> Result<Vec<u32>, Exhausted> {
        let mut out = Vec::new();
        for lun in 0..luns {
            let mut of_lun: Vec<u32> = self.available.clone();
            of_lun.retain(|id| id / self.per_lun == lun);
            of_lun.sort_by_key(|&id| {
                let element = self.elements[id as usize];
                (element.wear, element.is_stale)
            });
            let available = u32::try_from(of_lun.len()).unwrap();
            if available < needed {
                return Err(Exhausted::Lun {
                    lun,
                    available,
                    needed,
                });
            }
            out.extend(&of_lun[..needed as usize]);
        }
        self.available.retain(|id| !out.contains(id));
        for &id in &out {
            self.elements[id as usize].availability = Availability::Allocated;
        }
        Ok(out)
    }

    fn release(&mut self, id: u32) {
        let element = &mut self.elements[id as usize];
        if element.availability.is_available() {
            return;
        }
        element.is_stale |= element.availability == Availability::Valid;
        element.availability = match element.is_stale {
            true => Availability::Invalid,
            false => Availability::Free,
        };
        self.available.push(id);
    }

    fn erased(&mut self, id: u32) {
        let element = &mut self.elements[id as usize];
        element.wear += 1;
        element.is_stale = false;
        if element.availability.is_available() {
            element.availability = Availability::Free;
            self.available.retain(|&other| other != id);
            self.available.push(id);
        }
    }

    fn write(&mut self, id: u32) {
        let element = &mut self.elements[id as usize];
        if element.availability == Availability::Allocated {
            element.availability = Availability::Valid;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Allocate(u32),
    Write(u32),
    Release(u32),
    Erased(u32),
    Restore,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..6_u32).prop_map(Action::Allocate),
        4 => any::<u32>().prop_map(Action::Write),
        6 => any::<u32>().prop_map(Action::Release),
        6 => any::<u32>().prop_map(Action::Erased),
        1 => Just(Action::Restore),
    ]
}

proptest! {
    #[test]
    fn is_the_same_as_sorting(
        luns in 1..5_u32,
        per_lun in 1..80_u32,
        actions in vec(action(), 1..300),
    ) {
        let count = luns * per_lun;
        let mut allocator = Allocator::new(luns, per_lun);
        let mut sorted = Sorted::new(luns, per_lun);
        for action in actions {
            match action {
                Action::Allocate(needed) => {
                    let mut out = Vec::new();
                    let result = allocator.allocate(needed, &mut out);
                    let out: Vec<u32> = out.iter().map(|id| id.0).collect();
                    prop_assert_eq!(result.map(|()| out), sorted.allocate(luns, needed));
                }
                Action::Write(id) => {
                    allocator.write(ElementId(id % count));
                    sorted.write(id % count);
                }
                Action::Release(id) => {
                    allocator.release(ElementId(id % count));
                    sorted.release(id % count);
                }
                Action::Erased(id) => {
                    allocator.erased(ElementId(id % count));
                    sorted.erased(id % count);
                }
                Action::Restore => {
                    let restored = Allocator::restore(luns, per_lun, &allocator.save());
                    prop_assert_eq!(restored.as_ref(), Ok(&allocator));
                    allocator = restored.unwrap();
                }
            }
            prop_assert_eq!(&allocator.elements, &sorted.elements);
        }
    }
}

#[test]
fn availability_goes_as_in_the_paper() {
    let mut allocator = Allocator::new(1, 2);
    let (a, b) = (ElementId(0), ElementId(1));
    let mut out = Vec::new();
    allocator.allocate(2, &mut out).unwrap();
    assert_eq!(out, [a, b]);
    allocator.write(a);
    assert_eq!(allocator.availability(a), Availability::Valid);
    assert_eq!(allocator.availability(b), Availability::Allocated);
    allocator.release(a);
    allocator.release(b);
    assert_eq!(allocator.availability(a), Availability::Invalid);
    assert_eq!(allocator.availability(b), Availability::Free);

    // Equal wear: the one that needs no erasure first.
    out.clear();
    allocator.allocate(2, &mut out).unwrap();
    assert_eq!(out, [b, a]);
    // Nobody has erased `a` yet: given back unwritten, it is still invalid.
    assert!(allocator.is_stale(a));
    allocator.release(a);
    assert_eq!(allocator.availability(a), Availability::Invalid);
    allocator.erased(a);
    assert_eq!(allocator.availability(a), Availability::Free);
    assert_eq!((allocator.wear(a), allocator.wear(b)), (1, 0));
}

#[test]
fn says_which_lun_is_short_of_elements_and_changes_nothing() {
    let mut allocator = Allocator::new(2, 3);
    let mut out = Vec::new();
    allocator.allocate(2, &mut out).unwrap();
    allocator.release(ElementId(0));
    let before = allocator.clone();
    let taken = out.len();
    let exhausted = allocator.allocate(2, &mut out).unwrap_err();
    assert_eq!(
        exhausted.to_string(),
        "LUN 1 has 1 storage elements available, and the zone needs 2 of it"
    );
    assert_eq!(allocator, before);
    assert_eq!(out.len(), taken);
}

#[test]
fn does_without_elements() {
    let mut allocator = Allocator::new(0, 7);
    assert_eq!(allocator.allocate(1, &mut Vec::new()), Ok(()));
    let mut allocator = Allocator::new(1, 0);
    assert!(allocator.allocate(1, &mut Vec::new()).is_err());
}

#[test]
fn believes_nothing_of_a_snapshot() {
    let mut allocator = Allocator::new(2, 9);
    let mut out = Vec::new();
    allocator.allocate(3, &mut out).unwrap();
    for &id in &out[..2] {
        allocator.write(id);
        allocator.release(id);
    }
    let bytes = postcard::to_stdvec(&allocator.save()).unwrap();
    let refuse = |change: &dyn Fn(&mut SavedAllocator), says: &str| {
        let mut saved: SavedAllocator = postcard::from_bytes(&bytes).unwrap();
        change(&mut saved);
        assert_eq!(Allocator::restore(2, 9, &saved).unwrap_err(), says);
    };
    refuse(
        &|s| s.wear.truncate(17),
        "17 storage elements instead of 18",
    );
    refuse(&|s| s.age.push(0), "19 storage elements instead of 18");
    refuse(&|s| s.state[4] = 8, "storage element 4 in state 8");
    // A free one that is stale, an invalid one that is not.
    refuse(&|s| s.state[4] = 4, "storage element 4 in state 4");
    refuse(&|s| s.state[0] = 3, "storage element 0 in state 3");
    refuse(&|s| s.age[4] = s.releases, "storage element 4 of age 3");
    refuse(&|s| s.age[2] = 1, "storage element 2 of age 1");
    refuse(&|s| s.releases = 0, "0 releases");
    refuse(&|s| s.releases = u64::MAX, "18446744073709551615 releases");
}
