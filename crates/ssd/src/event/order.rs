//! Keys in order: the first few in a list, the others in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Among more keys than this, a new one has no place in the list: it is put behind them, or goes
/// to the heap.
const MOST: usize = 128;

/// Keys, of which the smallest comes first. No two are the same.
///
/// Of most drives only a few events wait at a time, and many come about in the order in which they
/// are due. So the smallest keys are in a list, from which the first is taken without a look at
/// any other. Where more wait than such a list is good for, the rest of them are in a heap.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    /// In ascending order from `head` on; those before have been taken.
    near: Vec<u128>,
    head: usize,
    /// All are larger than those in `near`, which has some if these do.
    far: BinaryHeap<Reverse<u128>>,
}

impl Ordered {
    /// The smallest key.
    #[inline]
    pub(super) fn first(&self) -> Option<u128> {
        self.near.get(self.head).copied()
    }

    /// Takes the smallest key.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u128> {
        let first = self.first()?;
        self.head += 1;
        if self.head == self.near.len() {
            self.refill();
        }
        Some(first)
    }

    /// Adds a key.
    #[inline]
    pub(super) fn push(&mut self, key: u128) {
        let is_last = self.near.last().is_none_or(|last| *last < key);
        if is_last && self.near.len() < 2 * MOST && self.far.is_empty() {
            self.near.push(key);
        } else {
            self.push_among(key);
        }
    }

    fn push_among(&mut self, key: u128) {
        if self.near.len() >= 2 * MOST {
            self.near.drain(..self.head);
            self.head = 0;
        }
        if !self.far.is_empty() || self.near.len() - self.head >= MOST {
            return self.push_beside_far(key);
        }
        self.put(key);
    }

    /// Puts a key into its place in the list.
    fn put(&mut self, key: u128) {
        let waiting = &self.near[self.head..];
        let at = waiting.partition_point(|other| *other < key);
        self.near.insert(self.head + at, key);
    }

    #[cold]
    fn push_beside_far(&mut self, key: u128) {
        if self.near.last().is_some_and(|last| key > *last) {
            self.far.push(Reverse(key));
            return;
        }
        self.put(key);
        if self.near.len() - self.head > MOST {
            self.far.extend(self.near.pop().map(Reverse));
        }
    }

    /// The list is empty: half of what it can hold comes from the heap, if there is so much.
    fn refill(&mut self) {
        self.near.clear();
        self.head = 0;
        while self.near.len() < MOST / 2
            && let Some(Reverse(key)) = self.far.pop()
        {
            self.near.push(key);
        }
    }

    /// Takes all keys, from the smallest to the largest.
    pub(super) fn take(&mut self) -> Vec<u128> {
        let mut all = self.near.split_off(self.head);
        let far = core::mem::take(&mut self.far).into_sorted_vec();
        // Ascending order of `Reverse` is from the last to the first.
        all.extend(far.into_iter().rev().map(|Reverse(key)| key));
        *self = Self::default();
        all
    }

    /// Keeps those keys of which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl FnMut(&u128) -> bool) {
        let mut all = self.take();
        all.retain(keep);
        let far = all.split_off(all.len().min(MOST));
        self.far = far.into_iter().map(Reverse).collect();
        self.near = all;
    }

    pub(super) fn clear(&mut self) {
        self.near.clear();
        self.head = 0;
        self.far.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.near.len() - self.head + self.far.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_in_their_order(
            // Bursts of keys near to each other, of which so many are taken afterwards.
            bursts in prop::collection::vec((0_u16..400, 0_u16..2_000, 0_usize..400), 1..30),
        ) {
            let mut ordered = Ordered::default();
            let mut oracle = BTreeSet::new();
            let mut number = 0;
            for (count, spread, taken) in bursts {
                for n in 0..count {
                    number += 1;
                    let at = u128::from(n.wrapping_mul(7_919) % (spread + 1)) << 64;
                    ordered.push(at | number);
                    oracle.insert(at | number);
                }
                for _ in 0..taken {
                    prop_assert_eq!(ordered.first(), oracle.first().copied());
                    prop_assert_eq!(ordered.pop(), oracle.pop_first());
                }
                prop_assert_eq!(ordered.len(), oracle.len());
                prop_assert_eq!(ordered.is_empty(), oracle.is_empty());
                if count % 5 == 0 {
                    ordered.retain(|key| key % 3 > 0);
                    oracle.retain(|key| key % 3 > 0);
                }
            }
            prop_assert_eq!(ordered.take(), oracle.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(ordered.len(), 0);
        }
    }
}
