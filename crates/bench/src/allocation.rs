//! What it takes to choose the storage elements of a zone (SilentZNS, figure
//! 4d), without a drive.

use zonelab_host::Rng;
use zonelab_ssd::mapping::allocator::{Allocator, ElementId};

/// Wear of the most worn element of a drive with skewed wear.
const MOST_WORN: u32 = 100_000;

/// Storage elements of a kind.
#[derive(Clone, Copy, Debug)]
pub struct AllocationCase {
    /// Name in output: `allocation/chunk-1`.
    pub name: &'static str,
    /// Groups of which each gives as many elements to a zone: LUNs, or one for
    /// stripes.
    pub luns: u32,
    /// Elements of a zone from each of them (G).
    pub per_lun: u32,
    /// The paper's time for a zone, by a solver.
    pub published_ms: f64,
}

/// How often elements have been erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveWear {
    /// Never.
    Fresh,
    /// Most a few times, some a hundred thousand times, and no two LUNs alike.
    Skewed,
}

/// The four kinds of the paper, whose zones have 88 erase blocks of 4 LUNs.
#[must_use]
pub fn allocation_cases() -> [AllocationCase; 4] {
    [
        ("allocation/chunk-1", 4, 22, 9.7),
        ("allocation/chunk-2", 4, 11, 7.6),
        ("allocation/chunk-11", 4, 2, 6.1),
        ("allocation/stripe", 1, 22, 2.2),
    ]
    .map(|(name, luns, per_lun, published_ms)| AllocationCase {
        name,
        luns,
        per_lun,
        published_ms,
    })
}

/// A drive's storage elements. Making it is not part of what is measured.
#[derive(Clone, Debug)]
pub struct PreparedAllocation {
    case: AllocationCase,
    allocator: Allocator,
    /// What an element of depth costs, if parallelism is relaxed.
    weight: Option<u32>,
    /// Elements that were allocated, zone by zone.
    standing: Vec<ElementId>,
    /// Those of the zone at hand.
    zone: Vec<ElementId>,
}

impl AllocationCase {
    /// Elements of a zone (Z).
    #[must_use]
    pub const fn zone_elements(&self) -> u32 {
        self.luns * self.per_lun
    }

    /// A drive with about that many elements, at least those of two zones.
    /// `weight`: see [`Allocator::allocate_relaxed`].
    #[must_use]
    pub fn prepare(
        &self,
        elements: u32,
        wear: DriveWear,
        weight: Option<u32>,
    ) -> PreparedAllocation {
        let elements_per_lun = (elements / self.luns).max(2 * self.per_lun);
        let mut rng = Rng::new(1, 0);
        let allocator = Allocator::worn(self.luns, elements_per_lun, |_| match wear {
            DriveWear::Fresh => 0,
            DriveWear::Skewed => {
                let below = 1 + rng.below(u64::from(MOST_WORN));
                u32::try_from(rng.below(below)).expect("at most what the most worn has")
            }
        });
        PreparedAllocation {
            case: *self,
            weight,
            standing: Vec::with_capacity(elements as usize),
            zone: Vec::with_capacity(self.zone_elements() as usize),
            allocator,
        }
    }
}

impl PreparedAllocation {
    /// Allocates zones until half of the elements are taken, and returns how
    /// many zones. To be called once.
    pub fn allocate_half(&mut self) -> u64 {
        let half = self.allocator.elements_per_lun() / 2 / self.case.per_lun;
        for _ in 0..half {
            self.allocate();
            self.standing.extend_from_slice(&self.zone);
        }
        u64::from(half)
    }

    /// Takes that many zones through their life, after
    /// [`PreparedAllocation::allocate_half`]: reset, erased, allocated anew, and
    /// written.
    pub fn reuse(&mut self, zones: u64) {
        let of_zone = self.case.zone_elements() as usize;
        let standing = self.standing.len() / of_zone;
        for turn in (0..standing)
            .cycle()
            .take(usize::try_from(zones).unwrap_or(usize::MAX))
        {
            let old = turn * of_zone..(turn + 1) * of_zone;
            for &element in &self.standing[old.clone()] {
                self.allocator.release(element);
            }
            for &element in &self.standing[old.clone()] {
                self.allocator.erased(element);
            }
            self.allocate();
            for &element in &self.zone {
                self.allocator.write(element);
            }
            self.standing[old].copy_from_slice(&self.zone);
        }
    }

    fn allocate(&mut self) {
        self.zone.clear();
        let per_lun = self.case.per_lun;
        match self.weight {
            None => self.allocator.allocate(per_lun, &mut self.zone),
            Some(weight) => {
                let Self {
                    allocator, zone, ..
                } = self;
                allocator.allocate_relaxed(per_lun, weight, zone)
            }
        }
        .expect("half of the elements are available");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_those_of_the_paper() {
        let of_zone = allocation_cases().map(|case| case.zone_elements());
        assert_eq!(of_zone, [88, 44, 8, 22]);
    }

    #[test]
    fn every_case_does_what_it_says() {
        for case in allocation_cases() {
            for (wear, weight) in [(DriveWear::Fresh, None), (DriveWear::Skewed, Some(3))] {
                let mut prepared = case.prepare(4_224, wear, weight);
                let zones = prepared.allocate_half();
                let of_zone = u64::from(case.zone_elements());
                assert!(2 * zones * of_zone <= 4_224 && 2 * (zones + 1) * of_zone > 4_224);
                let elements = || (0..4_224).map(ElementId);
                let wear = |allocator: &Allocator| -> u64 {
                    elements().map(|id| u64::from(allocator.wear(id))).sum()
                };
                let before = wear(&prepared.allocator);
                prepared.reuse(3 * zones);
                // The first turn resets zones that nobody wrote.
                let erased = wear(&prepared.allocator) - before;
                assert_eq!(erased, 3 * zones * of_zone, "{}", case.name);
            }
        }
    }
}
