//! The allocator in snapshots.

use serde::{Deserialize, Serialize};

use super::{Allocator, Availability, Element, RELEASES_MAX, Tournaments};

/// What an [`Allocator`] knows, as data; lists are by element.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedAllocator {
    pub(super) wear: Vec<u32>,
    /// The availability `a` (0 to 3), plus 4 if the element is stale.
    pub(super) state: Vec<u8>,
    /// Of available elements, when they became so; of others 0.
    pub(super) age: Vec<u64>,
    pub(super) releases: u64,
}

const STALE: u8 = 4;

const fn availability(a: u8) -> Option<Availability> {
    Some(match a {
        0 => Availability::Free,
        1 => Availability::Allocated,
        2 => Availability::Valid,
        3 => Availability::Invalid,
        _ => return None,
    })
}

impl Allocator {
    /// Everything that a snapshot keeps.
    #[must_use]
    pub fn save(&self) -> SavedAllocator {
        SavedAllocator {
            wear: self.elements.iter().map(|element| element.wear).collect(),
            state: self
                .elements
                .iter()
                .map(|of| of.availability as u8 | if of.is_stale { STALE } else { 0 })
                .collect(),
            age: (0..self.elements.len())
                .map(|index| self.age(index))
                .collect(),
            releases: self.releases,
        }
    }

    /// When an available element became so; 0 if it is not available.
    #[expect(clippy::cast_possible_truncation, reason = "masked to 63 bits")]
    pub(super) fn age(&self, index: usize) -> u64 {
        let per_lun = self.elements_per_lun as usize;
        match self.order.get(index / per_lun, index % per_lun) {
            Tournaments::ABSENT => 0,
            key => (key >> 32) as u64 & (u64::MAX >> 1),
        }
    }

    /// An allocator from data, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it.
    pub fn restore(
        luns: u32,
        elements_per_lun: u32,
        saved: &SavedAllocator,
    ) -> Result<Self, String> {
        let mut allocator = Self::new(luns, elements_per_lun);
        let count = allocator.elements.len();
        for len in [saved.wear.len(), saved.state.len(), saved.age.len()] {
            if len != count {
                return Err(format!("{len} storage elements instead of {count}"));
            }
        }
        // Age 0 is that of a fresh drive, so releases count from 1.
        if !(1..=RELEASES_MAX).contains(&saved.releases) {
            return Err(format!("{} releases", saved.releases));
        }
        for (index, element) in allocator.elements.iter_mut().enumerate() {
            let (state, age) = (saved.state[index], saved.age[index]);
            let is_stale = state & STALE != 0;
            *element = match availability(state & !STALE) {
                // Free ones need no erasure, invalid ones do.
                Some(a) if !a.is_available() || is_stale == (a == Availability::Invalid) => {
                    Element {
                        wear: saved.wear[index],
                        availability: a,
                        is_stale,
                    }
                }
                _ => return Err(format!("storage element {index} in state {state}")),
            };
            let oldest_possible = if element.availability.is_available() {
                saved.releases - 1
            } else {
                0
            };
            if age > oldest_possible {
                return Err(format!("storage element {index} of age {age}"));
            }
        }
        allocator.count();
        allocator.order_all(|index| saved.age[index]);
        allocator.releases = saved.releases;
        Ok(allocator)
    }

    /// Counts the available elements of each LUN.
    fn count(&mut self) {
        self.available.fill(0);
        for (index, element) in self.elements.iter().enumerate() {
            if element.availability.is_available() {
                self.available[index / self.elements_per_lun as usize] += 1;
            }
        }
    }
}
