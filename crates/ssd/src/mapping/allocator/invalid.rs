//! Which invalid elements are erased next, where that happens before a zone needs
//! them: the one of each LUN that became invalid first, or that of least wear.

use super::{Allocator, Availability, Element, ElementId, Tournaments, number};
use crate::config::Victim;

/// The invalid elements of each LUN in the order in which they are to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    victim: Victim,
    order: Tournaments,
    /// Free elements, by LUN.
    free: Vec<u32>,
    /// Whether each element was free when it was last looked at.
    was_free: Vec<bool>,
    per_lun: usize,
}

impl Invalid {
    fn key(victim: Victim, element: Element, age: u64, n: u32) -> u128 {
        let wear = match victim {
            Victim::Oldest => 0,
            Victim::LeastWorn => element.wear,
        };
        u128::from(wear) << 96 | u128::from(age) << 32 | u128::from(n)
    }

    /// Begins anew with these elements.
    pub(super) fn order_all(
        &mut self,
        elements: &[Element],
        per_lun: usize,
        age: impl Fn(usize) -> u64,
    ) {
        let victim = self.victim;
        self.order.set_all(per_lun, |lun, n| {
            let index = lun * per_lun + n;
            let n = u32::try_from(n).expect("counted in 32 bits");
            match elements[index].availability {
                Availability::Invalid => Self::key(victim, elements[index], age(index), n),
                _ => Tournaments::ABSENT,
            }
        });
        self.free.fill(0);
        for (index, element) in elements.iter().enumerate() {
            self.was_free[index] = element.availability == Availability::Free;
            self.free[index / per_lun] += u32::from(self.was_free[index]);
        }
    }

    /// An available element has been given to a zone.
    pub(super) fn is_taken(&mut self, lun: usize, n: usize, before: Availability) {
        match before {
            Availability::Invalid => self.order.set(lun, n, Tournaments::ABSENT),
            _ => self.is_free(lun, n, false),
        }
    }

    /// An element has become available, or is so in another way.
    pub(super) fn is_available(&mut self, lun: usize, n: u32, element: Element, age: u64) {
        let is_invalid = element.availability == Availability::Invalid;
        let key = match is_invalid {
            true => Self::key(self.victim, element, age, n),
            false => Tournaments::ABSENT,
        };
        self.order.set(lun, n as usize, key);
        self.is_free(lun, n as usize, !is_invalid);
    }

    fn is_free(&mut self, lun: usize, n: usize, is_free: bool) {
        let was_free = core::mem::replace(&mut self.was_free[lun * self.per_lun + n], is_free);
        let free = &mut self.free[lun];
        *free = *free + u32::from(is_free) - u32::from(was_free);
    }
}

impl Allocator {
    /// The same elements where zones get those that need no erasure first, and
    /// invalid ones are erased in the order that `victim` says.
    #[must_use]
    pub fn erased_first(mut self, victim: Victim) -> Self {
        let (luns, per_lun) = (self.available.len(), self.elements_per_lun as usize);
        let ages: Vec<u64> = (0..self.elements.len()).map(|at| self.age(at)).collect();
        self.invalid = Some(Box::new(Invalid {
            victim,
            order: Tournaments::new(luns, per_lun),
            free: vec![0; luns],
            was_free: vec![false; self.elements.len()],
            per_lun,
        }));
        self.order_all(|index| ages[index]);
        self
    }

    /// Which elements are erased before zones need them: see [`Self::erased_first`].
    #[must_use]
    pub fn victim(&self) -> Option<Victim> {
        self.invalid.as_ref().map(|of| of.victim)
    }

    /// The invalid element of a LUN that is to be erased next; `None` if it has
    /// none, or if they are not erased before zones need them.
    #[must_use]
    pub fn next_invalid(&self, lun: u32) -> Option<ElementId> {
        let least = self.invalid.as_ref()?.order.least(lun as usize);
        (least != Tournaments::ABSENT)
            .then(|| ElementId(lun * self.elements_per_lun + number(least)))
    }

    /// How many times in a row an allocation with `per_lun` elements of each LUN
    /// (or, if it is `relaxed`, as many in all) would succeed with free elements
    /// alone, without those of each LUN that `but` counts; 0 if invalid ones are
    /// not erased before zones need them.
    #[must_use]
    pub fn zones_free(&self, per_lun: u32, relaxed: bool, but: impl Fn(u32) -> u32) -> u32 {
        let Some(invalid) = &self.invalid else {
            return 0;
        };
        let free = (0..).zip(&invalid.free);
        let free = free.map(|(lun, free)| free.saturating_sub(but(lun)));
        let per_lun = per_lun.max(1);
        if relaxed {
            let needed = u64::from(per_lun) * invalid.free.len() as u64;
            let all: u64 = free.map(u64::from).sum();
            return u32::try_from(all / needed.max(1)).unwrap_or(u32::MAX);
        }
        free.min().map_or(0, |least| least / per_lun)
    }
}
