//! Changes of the map, in the order of the journal.
//!
//! Whoever changes the map writes down the change for the journal, in a list of its
//! own. Two writes of one block can end in two threads at a time, and the journal has
//! to have the one last that the map has. So each change is made, and written down,
//! under the lock of the block's stripe, and a commit takes the lists of all together.
//! Readers of the map take no lock.

use std::sync::Arc;

use crate::blocks::{LogicalBlock, MapChange, PhysicalBlock};
use crate::map::ForwardMap;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, lock};

/// Consecutive blocks that share a stripe.
const STRIPE_BLOCKS: u32 = 1024;
/// Number of locks.
const STRIPES: u32 = 64;

/// A lock of a stripe, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(Mutex<()>);

/// Changes of a queue that no commit has taken.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lane {
    pending: Mutex<Vec<(u64, MapChange)>>,
}

/// The map, and what the journal does not have yet.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) map: ForwardMap,
    /// Data blocks of a zone.
    zone_blocks: u32,
    stripes: Box<[Stripe]>,
    /// Numbers changes; of one block in the order in which they were made.
    sequence: AtomicU64,
    /// Of queues that there are, and of those that are gone until their changes are taken.
    pub(crate) lanes: Mutex<Vec<Arc<Lane>>>,
    /// Changes in all lists.
    pending: AtomicU32,
}

impl Changes {
    pub(crate) fn new(map: ForwardMap, zone_blocks: u32) -> Self {
        Self {
            map,
            zone_blocks,
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            sequence: AtomicU64::new(0),
            lanes: Mutex::default(),
            pending: AtomicU32::new(0),
        }
    }

    /// A list for whoever changes the map.
    pub(crate) fn join(&self) -> Arc<Lane> {
        let lane = Arc::new(Lane::default());
        lock(&self.lanes).push(Arc::clone(&lane));
        lane
    }

    /// Puts consecutive blocks somewhere, or nowhere; `was` hears of each place that
    /// they leave.
    #[inline]
    pub(crate) fn put(&self, lane: &Lane, change: MapChange, mut was: impl FnMut(PhysicalBlock)) {
        for part in parts(change) {
            let _held = lock(&self.stripe(part.first).0);
            for (block, to) in blocks(part) {
                if let Some(left) = self.map.set(block, to) {
                    was(left);
                }
            }
            self.note(lane, part);
        }
    }

    /// Moves blocks that are still where they were: `moves` says of each from where to
    /// where. `moved` hears of those that were.
    pub(crate) fn move_each(
        &self,
        lane: &Lane,
        moves: impl IntoIterator<Item = (LogicalBlock, PhysicalBlock, PhysicalBlock)>,
        mut moved: impl FnMut(PhysicalBlock, PhysicalBlock),
    ) {
        for (block, from, to) in moves {
            let _held = lock(&self.stripe(block).0);
            if self.map.get(block) == Some(from) {
                self.map.set(block, Some(to));
                self.note(
                    lane,
                    MapChange {
                        first: block,
                        count: 1,
                        to: Some(to),
                    },
                );
                moved(from, to);
            }
        }
    }

    fn stripe(&self, block: LogicalBlock) -> &Stripe {
        &self.stripes[(block.0 / STRIPE_BLOCKS % STRIPES) as usize]
    }

    /// Writes a change down: with the lock of its stripe held.
    fn note(&self, lane: &Lane, change: MapChange) {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let mut pending = lock(&lane.pending);
        if let Some((last, before)) = pending.last_mut()
            && *last + 1 == sequence
            && self.follows(*before, change)
        {
            *last = sequence;
            before.count += change.count;
            return;
        }
        pending.push((sequence, change));
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether `next` goes on where `before` ends, on both sides and in one zone, so that
    /// one entry can say both.
    fn follows(&self, before: MapChange, next: MapChange) -> bool {
        let is_next = before.first.0.checked_add(before.count) == Some(next.first.0);
        is_next
            && match (before.to, next.to) {
                (None, None) => true,
                (Some(before_to), Some(to)) => {
                    before_to.0 + before.count == to.0 && to.0 % self.zone_blocks != 0
                }
                _ => false,
            }
    }

    /// Changes that no commit has taken.
    #[inline]
    pub(crate) fn pending(&self) -> u32 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Takes all changes that were written down, in order.
    pub(crate) fn take(&self, taken: &mut Vec<MapChange>) {
        let mut lanes = lock(&self.lanes);
        // All at once: a change in one list may come after one of the same block in
        // another, and must not be taken without it.
        let mut lists: Vec<MutexGuard<'_, Vec<_>>> =
            lanes.iter().map(|lane| lock(&lane.pending)).collect();
        let mut all: Vec<(u64, MapChange)> = Vec::new();
        for list in &mut lists {
            all.append(list);
        }
        self.pending.fetch_sub(all.len() as u32, Ordering::Relaxed);
        drop(lists);
        // Nobody else has the list of a queue that is gone: nothing can be added to it.
        lanes.retain_mut(|lane| {
            Arc::get_mut(lane).is_none_or(|lane| !lock(&lane.pending).is_empty())
        });
        all.sort_unstable_by_key(|(sequence, _)| *sequence);
        taken.extend(all.into_iter().map(|(_, change)| change));
    }
}

/// A change by stripes.
fn parts(change: MapChange) -> impl Iterator<Item = MapChange> {
    let end = change.first.0 + change.count;
    let mut next = change.first.0;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let first = next;
            next = end.min((first / STRIPE_BLOCKS + 1) * STRIPE_BLOCKS);
            MapChange {
                first: LogicalBlock(first),
                count: next - first,
                to: change
                    .to
                    .map(|to| PhysicalBlock(to.0 + (first - change.first.0))),
            }
        })
    })
}

/// A change block by block.
fn blocks(change: MapChange) -> impl Iterator<Item = (LogicalBlock, Option<PhysicalBlock>)> {
    (0..change.count).map(move |i| {
        let to = change.to.map(|to| PhysicalBlock(to.0 + i));
        (LogicalBlock(change.first.0 + i), to)
    })
}
