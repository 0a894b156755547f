//! Slots in the order of a key: a treap in flat arrays.
//!
//! A search tree whose nodes have random priorities, each at least as high as
//! those below it (Aragon and Seidel, "Randomized search trees", 1989): every
//! operation takes a number of steps that is logarithmic in the slots held,
//! whatever the order of the keys, and nothing is ever rebalanced. Links are
//! slot numbers, so that no operation allocates once the array has grown to the
//! largest slot.

use crate::rng::Rng;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// Slots, each with a key of its own.
#[derive(Debug)]
pub(super) struct Tree<K> {
    root: u32,
    /// By slot.
    nodes: Vec<Node<K>>,
    /// Draws priorities. They shape the tree, not what it answers.
    rng: Rng,
}

#[derive(Clone, Copy, Debug)]
struct Node<K> {
    key: K,
    priority: u64,
    left: u32,
    right: u32,
}

/// A place where a slot number is kept.
#[derive(Clone, Copy)]
enum Link {
    Root,
    Left(u32),
    Right(u32),
}

impl<K: Copy + Default + Ord> Tree<K> {
    pub(super) fn new() -> Self {
        Self {
            root: NONE,
            nodes: Vec::new(),
            rng: Rng::new(0, 0),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.root == NONE
    }

    pub(super) fn clear(&mut self) {
        self.root = NONE;
    }

    /// Adds a slot that is not in the tree, under a key that no other has.
    pub(super) fn insert(&mut self, slot: u32, key: K) {
        if self.nodes.len() <= slot as usize {
            let empty = Node {
                key: K::default(),
                priority: 0,
                left: NONE,
                right: NONE,
            };
            self.nodes.resize(slot as usize + 1, empty);
        }
        let priority = self.rng.next_u64();
        let mut link = Link::Root;
        let mut at = self.root;
        while at != NONE && self.node(at).priority >= priority {
            link = if key < self.node(at).key {
                Link::Left(at)
            } else {
                Link::Right(at)
            };
            at = self.get(link);
        }
        let (left, right) = self.split(at, key);
        self.nodes[slot as usize] = Node {
            key,
            priority,
            left,
            right,
        };
        self.set(link, slot);
    }

    /// Takes a slot out; says whether it was in the tree.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let Some(&Node {
            key, left, right, ..
        }) = self.nodes.get(slot as usize)
        else {
            return false;
        };
        let mut link = Link::Root;
        let mut at = self.root;
        while at != slot {
            if at == NONE {
                return false;
            }
            link = if key < self.node(at).key {
                Link::Left(at)
            } else {
                Link::Right(at)
            };
            at = self.get(link);
        }
        let joined = self.join(left, right);
        self.set(link, joined);
        true
    }

    /// The slot with the lowest key.
    pub(super) fn first(&self) -> Option<u32> {
        let mut found = None;
        let mut at = self.root;
        while at != NONE {
            found = Some(at);
            at = self.node(at).left;
        }
        found
    }

    /// The slot with the lowest key that is not below `key`.
    pub(super) fn at_or_after(&self, key: K) -> Option<u32> {
        let mut found = None;
        let mut at = self.root;
        while at != NONE {
            let node = self.node(at);
            if node.key < key {
                at = node.right;
            } else {
                found = Some(at);
                at = node.left;
            }
        }
        found
    }

    /// The slot with the highest key below `key`.
    pub(super) fn before(&self, key: K) -> Option<u32> {
        let mut found = None;
        let mut at = self.root;
        while at != NONE {
            let node = self.node(at);
            if node.key < key {
                found = Some(at);
                at = node.right;
            } else {
                at = node.left;
            }
        }
        found
    }

    /// Parts a subtree into what is below `key` and the rest.
    fn split(&mut self, at: u32, key: K) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let Node {
            key: own,
            left,
            right,
            ..
        } = *self.node(at);
        if own < key {
            let (low, high) = self.split(right, key);
            self.nodes[at as usize].right = low;
            (at, high)
        } else {
            let (low, high) = self.split(left, key);
            self.nodes[at as usize].left = high;
            (low, at)
        }
    }

    /// One subtree of two, all of whose keys are in order.
    fn join(&mut self, low: u32, high: u32) -> u32 {
        if low == NONE {
            return high;
        }
        if high == NONE {
            return low;
        }
        if self.node(low).priority >= self.node(high).priority {
            let right = self.node(low).right;
            self.nodes[low as usize].right = self.join(right, high);
            low
        } else {
            let left = self.node(high).left;
            self.nodes[high as usize].left = self.join(low, left);
            high
        }
    }

    #[inline]
    fn node(&self, slot: u32) -> &Node<K> {
        &self.nodes[slot as usize]
    }

    #[inline]
    fn get(&self, link: Link) -> u32 {
        match link {
            Link::Root => self.root,
            Link::Left(of) => self.node(of).left,
            Link::Right(of) => self.node(of).right,
        }
    }

    #[inline]
    fn set(&mut self, link: Link, slot: u32) {
        match link {
            Link::Root => self.root = slot,
            Link::Left(of) => self.nodes[of as usize].left = slot,
            Link::Right(of) => self.nodes[of as usize].right = slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever goes in and out, it answers as an ordered map does.
        #[test]
        fn it_answers_as_an_ordered_map(
            steps in proptest::collection::vec((0_u32..40, 0_u64..60, any::<bool>()), 0..300),
        ) {
            let mut tree = Tree::new();
            let mut oracle = BTreeMap::new();
            for (slot, key, insert) in steps {
                let held = oracle.iter().find(|&(_, &s)| s == slot).map(|(&k, _)| k);
                match held {
                    Some(held) if !insert => {
                        oracle.remove(&held);
                        prop_assert!(tree.remove(slot));
                    }
                    None if insert && !oracle.contains_key(&key) => {
                        oracle.insert(key, slot);
                        tree.insert(slot, key);
                    }
                    None => prop_assert!(!tree.remove(slot)),
                    Some(_) => {}
                }
                prop_assert_eq!(tree.is_empty(), oracle.is_empty());
                prop_assert_eq!(tree.first(), oracle.values().next().copied());
                let after = oracle.range(key..).next().map(|(_, &s)| s);
                prop_assert_eq!(tree.at_or_after(key), after);
                let before = oracle.range(..key).next_back().map(|(_, &s)| s);
                prop_assert_eq!(tree.before(key), before);
            }
        }
    }

    /// Ascending keys, the worst case of a tree without balance.
    #[test]
    fn sorted_keys_leave_it_shallow() {
        let mut tree = Tree::new();
        for slot in 0..100_000 {
            tree.insert(slot, u64::from(slot));
        }
        let mut deepest = 0;
        let mut stack = vec![(tree.root, 1)];
        while let Some((at, depth)) = stack.pop() {
            if at != NONE {
                deepest = deepest.max(depth);
                let node = tree.node(at);
                stack.extend([(node.left, depth + 1), (node.right, depth + 1)]);
            }
        }
        assert!(deepest < 70, "{deepest} levels");
    }
}
