//! Which storage elements a zone gets: those of least wear (SilentZNS,
//! section 4), chosen exactly and without a solver.
//!
//! The paper asks for the selection `c` that minimises the total wear
//! `sum(c[n] * w[n])` subject to: (1) only elements with `a[n]` of 0 or 3 are
//! selected, (2) `Z` of them, (3) `G` from each LUN. Constraint (3) leaves
//! nothing to decide *between* LUNs, and `Z = G * L`, so the sum is least when
//! the sum within each LUN is: the `G` available elements of least wear there.
//! That is a selection, not an integer program. Of stripes, constraints (4) and
//! (5) are the same with a single LUN.
//!
//! Where elements have equal wear the paper leaves the choice open. Here those
//! that need no erasure come first, then those that became available first.
//!
//! Where invalid elements are erased before they are needed
//! ([`Allocator::erased_first`]), a zone gets those that need no erasure as long
//! as there are enough, of least wear.
//!
//! Time for an element, taken or given back, is of the order of the logarithm
//! of their number, whatever their wear; nothing is allocated.
//!
//! `tests/suite/allocator.rs` compares it with an integer-programming solver.

mod invalid;
mod relaxed;
mod saved;
#[cfg(test)]
mod tests;
mod tournament;

use invalid::Invalid;
use relaxed::Selection;
pub use saved::SavedAllocator;
use tournament::Tournaments;

/// A storage element: `lun * elements_per_lun + n`. Stripes are over all LUNs
/// and have `lun = 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(pub u32);

/// The availability `a` of a storage element (SilentZNS, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Availability {
    /// a = 0: empty, and of no zone.
    Free = 0,
    /// a = 1: of a zone, nothing written.
    Allocated = 1,
    /// a = 2: of a zone, written.
    Valid = 2,
    /// a = 3: of no zone, and to be erased before it is written.
    Invalid = 3,
}

impl Availability {
    /// It can be given to a zone.
    #[inline]
    #[must_use]
    pub const fn is_available(self) -> bool {
        matches!(self, Self::Free | Self::Invalid)
    }
}

/// Fewer elements are available than a zone needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// On a LUN; `lun` is the first such.
    #[error(
        "LUN {lun} has {available} storage elements available, and the zone needs {needed} of it"
    )]
    Lun {
        /// The LUN.
        lun: u32,
        /// Its elements that are free or invalid.
        available: u32,
        /// How many were asked for.
        needed: u32,
    },
    /// In all, where it does not matter on which LUN they are.
    #[error("{available} storage elements are available, and the zone needs {needed}")]
    Drive {
        /// Elements that are free or invalid.
        available: u64,
        /// How many were asked for.
        needed: u64,
    },
}

/// What is known of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    /// Erasures so far.
    wear: u32,
    availability: Availability,
    /// It holds something that has to be erased before it is written. All
    /// invalid elements do, and no free one.
    is_stale: bool,
}

/// Wear and availability of all storage elements of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    elements: Vec<Element>,
    elements_per_lun: u32,
    /// Available elements, by LUN.
    available: Vec<u32>,
    /// The keys of available elements, by LUN: see [`Self::key`].
    order: Tournaments,
    /// Which is to be erased next, if that is asked for.
    invalid: Option<Box<Invalid>>,
    /// Releases so far: the age of what is released next.
    releases: u64,
    selection: Selection,
}

/// Age has 63 bits of a key: more than 200 years of a release each nanosecond.
const RELEASES_MAX: u64 = 1 << 62;

/// Most wear that a key tells apart from more.
const WEAR_MAX: u32 = i32::MAX as u32;

/// The number in its LUN of the element with this key.
#[expect(clippy::cast_possible_truncation, reason = "the low half of it")]
const fn number(key: u128) -> u32 {
    key as u32
}

impl Allocator {
    /// All elements of `luns` LUNs, free and without wear.
    ///
    /// # Panics
    /// If there are 2^32 elements or more.
    #[must_use]
    pub fn new(luns: u32, elements_per_lun: u32) -> Self {
        Self::worn(luns, elements_per_lun, |_| 0)
    }

    /// All elements of `luns` LUNs, free and erased as many times as `wear` says.
    ///
    /// # Panics
    /// If there are 2^32 elements or more.
    #[must_use]
    pub fn worn(luns: u32, elements_per_lun: u32, wear: impl FnMut(ElementId) -> u32) -> Self {
        let count = luns
            .checked_mul(elements_per_lun)
            .expect("a drive has fewer than 2^32 storage elements");
        let elements = (0..count).map(ElementId).map(wear).map(|wear| Element {
            wear,
            availability: Availability::Free,
            is_stale: false,
        });
        let mut allocator = Self {
            elements: elements.collect(),
            elements_per_lun,
            available: vec![elements_per_lun; luns as usize],
            order: Tournaments::new(luns as usize, elements_per_lun as usize),
            invalid: None,
            releases: 1,
            selection: Selection::new(luns),
        };
        allocator.order_all(|_| 0);
        allocator
    }

    /// Where an available element stands: least wear first, then those that need
    /// no erasure, then those that became available first, then by number in the
    /// LUN; or those that need no erasure before anything else.
    fn key(&self, element: Element, age: u64, n: u32) -> u128 {
        let erasure = u128::from(element.is_stale) << if self.invalid.is_some() { 127 } else { 95 };
        let wear = u128::from(element.wear.min(WEAR_MAX));
        erasure | wear << 96 | u128::from(age) << 32 | u128::from(n)
    }

    /// Puts all available elements where they belong, by the age of each.
    fn order_all(&mut self, age: impl Fn(usize) -> u64) {
        let per_lun = self.elements_per_lun as usize;
        let mut order = core::mem::replace(&mut self.order, Tournaments::new(0, 0));
        order.set_all(per_lun, |lun, n| {
            let index = lun * per_lun + n;
            if self.elements[index].availability.is_available() {
                let n = u32::try_from(n).expect("counted in 32 bits");
                self.key(self.elements[index], age(index), n)
            } else {
                Tournaments::ABSENT
            }
        });
        self.order = order;
        if let Some(invalid) = &mut self.invalid {
            invalid.order_all(&self.elements, per_lun, age);
        }
    }

    /// Allocates the `per_lun` elements of least wear of each LUN, and adds them
    /// to `out`, LUN by LUN, least wear first. They become
    /// [`Availability::Allocated`].
    ///
    /// # Errors
    /// [`Exhausted::Lun`] if a LUN has fewer available; then nothing has changed.
    pub fn allocate(&mut self, per_lun: u32, out: &mut Vec<ElementId>) -> Result<(), Exhausted> {
        for (lun, &available) in (0..).zip(&self.available) {
            if available < per_lun {
                return Err(Exhausted::Lun {
                    lun,
                    available,
                    needed: per_lun,
                });
            }
        }
        for lun in 0..self.available.len() {
            for _ in 0..per_lun {
                out.push(self.take_least(lun));
            }
        }
        Ok(())
    }

    /// The same with as many elements of each LUN as `counts` says.
    ///
    /// # Errors
    /// As [`Allocator::allocate`].
    ///
    /// # Panics
    /// If there are not as many counts as LUNs.
    pub(crate) fn allocate_counts(
        &mut self,
        counts: &[u32],
        out: &mut Vec<ElementId>,
    ) -> Result<(), Exhausted> {
        assert_eq!(counts.len(), self.available.len(), "a count for each LUN");
        for (lun, (&available, &needed)) in (0..).zip(self.available.iter().zip(counts)) {
            if available < needed {
                return Err(Exhausted::Lun {
                    lun,
                    available,
                    needed,
                });
            }
        }
        for (lun, &needed) in counts.iter().enumerate() {
            for _ in 0..needed {
                out.push(self.take_least(lun));
            }
        }
        Ok(())
    }

    /// Allocates elements that somebody has chosen, all of which are available and
    /// different.
    pub(crate) fn allocate_these(&mut self, elements: &[ElementId]) {
        for element in elements {
            let (lun, n) = (self.lun(*element), element.0 % self.elements_per_lun);
            self.order.set(lun, n as usize, Tournaments::ABSENT);
            self.allocated(lun, n as usize);
        }
    }

    /// How many times in a row [`Allocator::allocate`] would succeed.
    #[must_use]
    pub fn zones_left(&self, per_lun: u32) -> u32 {
        let least = self.available.iter().min();
        least.map_or(0, |least| least / per_lun.max(1))
    }

    /// The same of [`Allocator::allocate_relaxed`].
    #[must_use]
    pub fn zones_left_relaxed(&self, per_lun: u32) -> u32 {
        let all: u64 = self.available.iter().map(|&of_lun| u64::from(of_lun)).sum();
        let needed = u64::from(per_lun) * self.available.len() as u64;
        u32::try_from(all / needed.max(1)).unwrap_or(u32::MAX)
    }

    /// Allocates the first available element of a LUN, which has one.
    fn take_least(&mut self, lun: usize) -> ElementId {
        let n = number(self.order.least(lun)) as usize;
        self.order.set(lun, n, Tournaments::ABSENT);
        self.allocated(lun, n)
    }

    /// An element that has left the tournament of its LUN is allocated.
    fn allocated(&mut self, lun: usize, n: usize) -> ElementId {
        let index = lun * self.elements_per_lun as usize + n;
        let before = core::mem::replace(
            &mut self.elements[index].availability,
            Availability::Allocated,
        );
        assert!(before.is_available(), "element {index} is of one zone");
        assert!(self.available[lun] > 0, "LUN {lun} has what was taken");
        self.available[lun] -= 1;
        if let Some(invalid) = &mut self.invalid {
            invalid.is_taken(lun, n, before);
        }
        ElementId(u32::try_from(index).expect("fewer than 2^32 elements"))
    }

    /// An allocated element has been written: it is valid. Others stay what
    /// they are.
    #[inline]
    pub fn write(&mut self, element: ElementId) {
        let element = &mut self.elements[element.0 as usize];
        if element.availability == Availability::Allocated {
            element.availability = Availability::Valid;
        }
    }

    /// An element is taken from its zone: a valid one becomes invalid, one that
    /// was not written free, or invalid if it is still to be erased. Others
    /// stay what they are.
    pub fn release(&mut self, element: ElementId) {
        let known = &mut self.elements[element.0 as usize];
        match known.availability {
            Availability::Free | Availability::Invalid => return,
            Availability::Valid => known.is_stale = true,
            Availability::Allocated => {}
        }
        known.availability = if known.is_stale {
            Availability::Invalid
        } else {
            Availability::Free
        };
        let lun = self.lun(element);
        self.available[lun] += 1;
        debug_assert!(
            self.available[lun] <= self.elements_per_lun,
            "no more of LUN {lun} is available than it has"
        );
        self.enqueue(element);
    }

    /// An element has been erased: it has one erasure more, and can be written.
    /// If it was invalid it is free, and the last to have become so.
    pub fn erased(&mut self, element: ElementId) {
        self.erased_to(element, self.wear(element).saturating_add(1));
    }

    /// The same of an element that has `wear` erasures now: some of them may have been
    /// interrupted.
    pub fn erased_to(&mut self, element: ElementId, wear: u32) {
        let known = &mut self.elements[element.0 as usize];
        debug_assert!(known.wear <= wear, "erasures of {element:?} add up");
        known.wear = wear;
        known.is_stale = false;
        if known.availability.is_available() {
            known.availability = Availability::Free;
            self.enqueue(element);
        }
    }

    /// An element has to be erased, or erased again: its erasure, which counts in its
    /// `wear`, was not over when power was lost. A free one becomes invalid.
    pub fn stale_again(&mut self, element: ElementId, wear: u32) {
        let known = &mut self.elements[element.0 as usize];
        let was_such = known.availability == Availability::Invalid && known.wear == wear;
        known.is_stale = true;
        known.wear = wear;
        if known.availability.is_available() && !was_such {
            known.availability = Availability::Invalid;
            self.enqueue(element);
        }
    }

    /// Puts an available element where it belongs now, as the last of its like.
    fn enqueue(&mut self, element: ElementId) {
        let (lun, n) = (self.lun(element), element.0 % self.elements_per_lun);
        let (known, age) = (self.elements[element.0 as usize], self.releases);
        let key = self.key(known, age, n);
        self.releases += 1;
        self.order.set(lun, n as usize, key);
        if let Some(invalid) = &mut self.invalid {
            invalid.is_available(lun, n, known, age);
        }
    }

    #[inline]
    const fn lun(&self, element: ElementId) -> usize {
        (element.0 / self.elements_per_lun) as usize
    }

    /// Number of LUNs.
    #[must_use]
    pub fn luns(&self) -> u32 {
        u32::try_from(self.available.len()).expect("LUNs are counted in 32 bits")
    }

    /// Number of elements of each LUN.
    #[must_use]
    pub const fn elements_per_lun(&self) -> u32 {
        self.elements_per_lun
    }

    /// Elements of a LUN that are free or invalid.
    #[must_use]
    pub fn available(&self, lun: u32) -> u32 {
        self.available[lun as usize]
    }

    /// What an element is used for.
    #[inline]
    #[must_use]
    pub fn availability(&self, element: ElementId) -> Availability {
        self.elements[element.0 as usize].availability
    }

    /// Number of erasures of an element.
    #[inline]
    #[must_use]
    pub fn wear(&self, element: ElementId) -> u32 {
        self.elements[element.0 as usize].wear
    }

    /// An element holds something that has to be erased before it is written.
    #[inline]
    #[must_use]
    pub fn is_stale(&self, element: ElementId) -> bool {
        self.elements[element.0 as usize].is_stale
    }
}
