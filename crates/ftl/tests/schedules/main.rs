//! What threads share in the layer, under every schedule: its own files, with loom's atomics and
//! locks in place of the standard library's.
//!
//! loom runs a test again and again, until it has taken every order of its steps with at most so
//! many switches of threads that nothing forced, and every value that a relaxed load may see.
//! `ZONELAB_SCHEDULES` is that many, 5 unless it is set:
//!
//! ```console
//! $ ZONELAB_SCHEDULES=7 cargo test -p zonelab-ftl --test schedules
//! ```
//!
//! Defects that were planted to see whether it finds them, and were found: either of the two
//! fences removed, the epoch loaded without acquire, reads of the same epoch taken for over, the
//! epoch of the oldest read given up with a newer one, lists of changes taken one after the
//! other, changes written down or blocks moved without the lock of their stripe.

#![expect(
    dead_code,
    unreachable_pub,
    reason = "the layer's files have more than is tried here"
)]

#[path = "../../src/blocks.rs"]
mod blocks;
#[path = "../../src/changes.rs"]
mod changes;
#[path = "../../src/epochs.rs"]
mod epochs;
#[path = "../../src/map.rs"]
mod map;
#[path = "../../src/segments/mod.rs"]
mod segments;

use std::sync::Arc;

use blocks::{LogicalBlock, MapChange, PhysicalBlock};
use changes::Changes;
use epochs::Epochs;
use map::ForwardMap;
use sync::{AtomicU32, Ordering};

/// Where the layer's files look for what threads share.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no thread panics with a lock")
    }
}

/// Runs a test under every schedule.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let bound = std::env::var("ZONELAB_SCHEDULES");
    let bound = bound.map(|text| text.parse().expect("ZONELAB_SCHEDULES is a number"));
    builder.preemption_bound = Some(bound.unwrap_or(5));
    builder.max_branches = 10_000;
    builder.check(test);
}

/// A block, and the place of a block that changes it.
fn change(block: u32, to: u32) -> MapChange {
    MapChange {
        first: LogicalBlock(block),
        count: 1,
        to: Some(PhysicalBlock(to)),
    }
}

/// A reader looks up where a block is, and reads there; the collector moves the block, and
/// resets its zone when no read is left. The reader never reads a zone that was reset.
#[test]
fn no_read_meets_a_reset() {
    explore(|| {
        let changes = Arc::new(Changes::new(ForwardMap::empty(1), 4));
        let lane = changes.join();
        changes.put(&lane, change(0, 0), |_| {});
        let epochs = Arc::new(Epochs::new());
        // What the first block of each zone holds: 1, and 0 after a reset.
        let zones = Arc::new([1, 1, 1].map(AtomicU32::new));
        let reader = {
            let (changes, zones) = (Arc::clone(&changes), Arc::clone(&zones));
            let mut reads = epochs.join();
            loom::thread::spawn(move || {
                let look = || {
                    let at = changes.map.get(LogicalBlock(0));
                    let zone = at.map(|PhysicalBlock(at)| at / 4);
                    zone.expect("the block is somewhere") as usize
                };
                let read = |zone: usize| {
                    assert_eq!(zones[zone].load(Ordering::Relaxed), 1, "zone {zone}");
                };
                // Two reads that overlap.
                let first = reads.begin();
                let from = look();
                let second = reads.begin();
                let then = look();
                read(from);
                let _ended = reads.end(first);
                read(then);
                let _ended = reads.end(second);
            })
        };
        for zone in 0..2 {
            let (from, to) = (4 * zone, 4 * (zone + 1));
            let moves = [(LogicalBlock(0), PhysicalBlock(from), PhysicalBlock(to))];
            changes.move_each(&lane, moves, |_, _| {});
            let epoch = epochs.end();
            if epochs.are_over(epoch) {
                zones[zone as usize].store(0, Ordering::Relaxed);
            }
        }
        reader.join().expect("it reads");
    });
}

/// Two queues put one block somewhere, and a commit takes their changes while they do: the
/// last change of the journal is what the map says.
#[test]
fn the_journal_ends_as_the_map_does() {
    explore(|| {
        let changes = Arc::new(Changes::new(ForwardMap::empty(1), 4));
        let writers = [1, 2].map(|to| {
            let changes = Arc::clone(&changes);
            let lane = changes.join();
            loom::thread::spawn(move || changes.put(&lane, change(0, to), |_| {}))
        });
        let mut journal = Vec::new();
        changes.take(&mut journal);
        for writer in writers {
            writer.join().expect("it writes");
        }
        changes.take(&mut journal);
        assert_eq!(journal.len(), 2);
        let last = journal.last().and_then(|change| change.to);
        assert_eq!(last, changes.map.get(LogicalBlock(0)));
        assert!(
            sync::lock(&changes.lanes).is_empty(),
            "the lists of queues that are gone are gone"
        );
    });
}

/// The collector moves a block that a program writes: what is written wins.
#[test]
fn what_is_written_is_not_moved_away() {
    explore(|| {
        let changes = Arc::new(Changes::new(ForwardMap::empty(1), 4));
        let lane = changes.join();
        changes.put(&lane, change(0, 0), |_| {});
        let writer = {
            let changes = Arc::clone(&changes);
            let lane = changes.join();
            loom::thread::spawn(move || changes.put(&lane, change(0, 8), |_| {}))
        };
        let moves = [(LogicalBlock(0), PhysicalBlock(0), PhysicalBlock(4))];
        changes.move_each(&lane, moves, |_, _| {});
        writer.join().expect("it writes");
        assert_eq!(changes.map.get(LogicalBlock(0)), Some(PhysicalBlock(8)));
        let mut journal = Vec::new();
        changes.take(&mut journal);
        assert_eq!(
            journal.last().and_then(|change| change.to),
            Some(PhysicalBlock(8))
        );
    });
}

#[test]
fn an_epoch_is_over_when_its_reads_are() {
    loom::model(|| {
        let epochs = Arc::new(Epochs::new());
        let (mut one, mut two) = (epochs.join(), epochs.join());
        let first = one.begin();
        let epoch = epochs.end();
        let second = one.begin();
        let other = two.begin();
        assert!(!epochs.are_over(epoch));
        assert!(!one.end(second), "the older read is still under way");
        assert!(!epochs.are_over(epoch));
        assert!(one.end(first));
        assert!(
            epochs.are_over(epoch),
            "the read of the other queue is younger"
        );
        assert!(two.end(other));
    });
}

#[test]
fn a_queue_that_is_closed_holds_nothing() {
    loom::model(|| {
        let epochs = Arc::new(Epochs::new());
        let mut reads = epochs.join();
        let _under_way = reads.begin();
        let epoch = epochs.end();
        assert!(!epochs.are_over(epoch));
        drop(reads);
        assert!(epochs.are_over(epoch));
    });
}
