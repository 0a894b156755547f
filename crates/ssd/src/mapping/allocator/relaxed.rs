//! Less wear for less parallelism, at a stated price.
//!
//! The paper says that parallelism can be relaxed for wear, not how. Here a
//! zone's *depth* is the largest number of its elements on one LUN, which is
//! what bounds its throughput: with `Z` elements of which `d` are on one LUN it
//! is written at `Z / (L * d)` of what the drive can do. Minimised is
//!
//! ```text
//! total wear + weight * depth
//! ```
//!
//! subject to (1) and (2) of the paper. The weight is how many erasures of
//! total wear are worth an element of depth. If it is large, the depth is the
//! least there is; with `G` elements available on each LUN this is `G`, and
//! all LUNs give as many: the paper's constraint (3).
//!
//! For a given depth it is the basis of least weight of a matroid (a partition,
//! truncated to `Z`), so taking the least of all LUNs that are not full is
//! exact. From one depth to the next, exchanging the element of most wear for
//! an available one of less is, until there is none. The least total wear is a
//! convex function of the depth (the constraints are totally unimodular, so it
//! is the value of a linear program in its right-hand side): each element of
//! depth saves at most as much as the one before, and the first that does not
//! save its price ends the search.

use super::{Allocator, Exhausted, Tournaments};

/// Wear, from the key of an element.
const fn wear(key: u128) -> u64 {
    (key >> 96) as u64
}

/// What is selected so far: of each LUN the elements of least wear, so that a
/// number says which. Empty between allocations: it is kept for its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// Keys by LUN, in ascending order, that have left the tournament: those of
    /// the selected elements, and then of some that were.
    drawn: Vec<Vec<u128>>,
    /// Selected elements of each LUN.
    counts: Vec<usize>,
    /// The same at the depth before.
    before: Vec<usize>,
}

impl Selection {
    pub(super) fn new(luns: u32) -> Self {
        Self {
            drawn: vec![Vec::new(); luns as usize],
            counts: vec![0; luns as usize],
            before: vec![0; luns as usize],
        }
    }

    /// The least element of a LUN that is not selected, or [`Tournaments::ABSENT`].
    fn next(&self, order: &Tournaments, lun: usize) -> u128 {
        match self.drawn[lun].get(self.counts[lun]) {
            Some(&key) => key,
            None => order.least(lun),
        }
    }

    /// The LUN with less than `depth` elements selected whose next one is the
    /// least, and its key.
    fn least(&self, order: &Tournaments, depth: usize) -> Option<(usize, u128)> {
        (0..self.counts.len())
            .filter(|&lun| self.counts[lun] < depth)
            .map(|lun| (lun, self.next(order, lun)))
            .filter(|&(_, key)| key != Tournaments::ABSENT)
            .min_by_key(|&(_, key)| key)
    }

    /// The LUN whose last selected element is the greatest, and its key.
    fn greatest(&self) -> Option<(usize, u128)> {
        let last = |(lun, &count): (usize, &usize)| {
            let of_lun = &self.drawn[lun][..count];
            Some((lun, *of_lun.last()?))
        };
        self.counts
            .iter()
            .enumerate()
            .filter_map(last)
            .max_by_key(|&(_, key)| key)
    }

    /// Selects the next element of a LUN, which has one.
    fn take(&mut self, order: &mut Tournaments, lun: usize) {
        if self.counts[lun] == self.drawn[lun].len() {
            let key = order.least(lun);
            order.set(lun, super::number(key) as usize, Tournaments::ABSENT);
            self.drawn[lun].push(key);
        }
        self.counts[lun] += 1;
    }

    /// Exchanges elements for others of less wear, with at most `depth` of each
    /// LUN, and returns how much wear that saves.
    fn exchange(&mut self, order: &mut Tournaments, depth: usize) -> u64 {
        self.before.copy_from_slice(&self.counts);
        let mut saved = 0;
        while let (Some((to, least)), Some((from, greatest))) =
            (self.least(order, depth), self.greatest())
        {
            if wear(least) >= wear(greatest) {
                break;
            }
            saved += wear(greatest) - wear(least);
            self.take(order, to);
            self.counts[from] -= 1;
        }
        saved
    }
}

impl Allocator {
    /// Allocates as many elements as [`Allocator::allocate`] does, with the
    /// least sum of their total wear and `weight` times the largest number of
    /// them on one LUN; adds them to `out`, LUN by LUN, least wear first.
    ///
    /// # Errors
    /// [`Exhausted::Drive`] if fewer are available; then nothing has changed.
    pub fn allocate_relaxed(
        &mut self,
        per_lun: u32,
        weight: u32,
        out: &mut Vec<super::ElementId>,
    ) -> Result<(), Exhausted> {
        let needed = u64::from(per_lun) * self.available.len() as u64;
        let within = |depth: u32| -> u64 {
            let of_lun = |&available: &u32| u64::from(available.min(depth));
            self.available.iter().map(of_lun).sum()
        };
        let available = within(u32::MAX);
        if available < needed {
            return Err(Exhausted::Drive { available, needed });
        }
        // The least depth at which there are enough.
        let mut depth = per_lun;
        while within(depth) < needed {
            depth += 1;
        }
        self.select(needed, depth as usize, weight);
        for lun in 0..self.selection.counts.len() {
            let mut drawn = core::mem::take(&mut self.selection.drawn[lun]);
            let count = core::mem::take(&mut self.selection.counts[lun]);
            for key in drawn.drain(count..) {
                self.order.set(lun, super::number(key) as usize, key);
            }
            for key in drawn.drain(..) {
                out.push(self.allocated(lun, super::number(key) as usize));
            }
            self.selection.drawn[lun] = drawn;
        }
        Ok(())
    }

    /// Selects `needed` elements, of which there are as many within `depth`.
    fn select(&mut self, needed: u64, mut depth: usize, weight: u32) {
        let (order, selection) = (&mut self.order, &mut self.selection);
        let luns = selection.counts.len();
        if needed == (depth * luns) as u64 {
            // All LUNs are full.
            for lun in 0..luns {
                (0..depth).for_each(|_| selection.take(order, lun));
            }
        } else {
            for _ in 0..needed {
                let (lun, _) = selection
                    .least(order, depth)
                    .expect("there are enough elements within this depth");
                selection.take(order, lun);
            }
        }
        while selection.exchange(order, depth + 1) > u64::from(weight) {
            depth += 1;
        }
        // The last exchange did not save its price.
        core::mem::swap(&mut selection.counts, &mut selection.before);
        selection.before.fill(0);
    }
}
