//! The implicitly opened zones of a namespace, oldest first: a list threaded through the array of zones.

use super::Zone;
use super::table::State;

/// Stands for "no zone" in links.
const NONE: u32 = u32::MAX;

/// Position of a zone in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    /// The zone that was opened before this one.
    older: u32,
    /// The zone that was opened after this one.
    newer: u32,
}

impl Links {
    /// Not in the list.
    pub(super) const NONE: Self = Self {
        older: NONE,
        newer: NONE,
    };
}

/// Ends of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImplicitList {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl Default for ImplicitList {
    fn default() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
            len: 0,
        }
    }
}

impl ImplicitList {
    /// Number of zones in it.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// The zone that was opened first.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(self.oldest as usize)
    }

    /// Adds a zone as the newest. It must not be in the list.
    pub(super) fn push(&mut self, zones: &mut [Zone], index: usize) {
        debug_assert_eq!(zones[index].links, Links::NONE, "in the list already");
        let id = u32::try_from(index).expect("there are fewer than 2^32 zones");
        zones[index].links.older = self.newest;
        match self.newest {
            NONE => self.oldest = id,
            newest => zones[newest as usize].links.newer = id,
        }
        self.newest = id;
        self.len += 1;
    }

    /// Takes a zone out of the list. It must be in it.
    pub(super) fn remove(&mut self, zones: &mut [Zone], index: usize) {
        let Links { older, newer } = std::mem::replace(&mut zones[index].links, Links::NONE);
        match older {
            NONE => self.oldest = newer,
            older => zones[older as usize].links.newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => zones[newer as usize].links.older = older,
        }
        self.len -= 1;
    }

    /// The zones in it, oldest first.
    pub(super) fn in_order(&self, zones: &[Zone]) -> Vec<u32> {
        let next = |zone: &u32| {
            let newer = zones[*zone as usize].links.newer;
            (newer != NONE).then_some(newer)
        };
        let oldest = (self.oldest != NONE).then_some(self.oldest);
        std::iter::successors(oldest, next).collect()
    }

    /// Asserts that the list holds implicitly opened zones, and that its links agree.
    pub(super) fn assert_lists(&self, zones: &[Zone]) {
        let mut older = NONE;
        let mut at = self.oldest;
        let mut len = 0;
        while at != NONE {
            let zone = &zones[at as usize];
            assert_eq!(zone.state, State::ImplicitlyOpened);
            assert_eq!(zone.links.older, older);
            len += 1;
            assert!(len <= self.len, "the list has a cycle");
            (older, at) = (at, zone.links.newer);
        }
        assert_eq!(self.newest, older);
        assert_eq!(len, self.len);
    }
}
