//! Which reads may still be under way to a zone that is to be reset.
//!
//! A read looks up where its blocks are, and the device reads them later. If the
//! collector moves the blocks meanwhile and resets their zone, the read would see
//! something else. So each queue says in a word of its own since when its oldest read
//! is under way, in epochs; the collector ends an epoch when it has emptied a zone, and
//! resets the zone when no read of that epoch or an earlier one is left. Readers write
//! to no word that another reader reads or writes.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock};

/// The word of a queue without reads.
const IDLE: u64 = u64::MAX;

/// A word that shares its cache lines with nothing (two lines, since processors fetch
/// them in pairs).
#[derive(Debug)]
#[repr(align(128))]
struct Word(AtomicU64);

/// The epochs of all queues.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: Word,
    readers: Mutex<Vec<Arc<Word>>>,
}

/// An epoch that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

impl Epochs {
    pub(crate) fn new() -> Self {
        Self {
            now: Word(AtomicU64::new(0)),
            readers: Mutex::default(),
        }
    }

    /// A queue that reads.
    pub(crate) fn join(self: &Arc<Self>) -> Reads {
        let word = Arc::new(Word(AtomicU64::new(IDLE)));
        lock(&self.readers).push(Arc::clone(&word));
        Reads {
            epochs: Arc::clone(self),
            word,
            held: VecDeque::new(),
        }
    }

    /// Ends the present epoch: who reads from now on sees all changes of the map that
    /// were made before.
    pub(crate) fn end(&self) -> Epoch {
        Epoch(self.now.0.fetch_add(1, Ordering::AcqRel))
    }

    /// Whether no read of `epoch` or an earlier one is under way.
    pub(crate) fn are_over(&self, epoch: Epoch) -> bool {
        // With the fence of `Reads::begin`: either that reader is seen here, or it sees
        // the map as it was when the epoch ended.
        fence(Ordering::SeqCst);
        let readers = lock(&self.readers);
        readers
            .iter()
            .all(|reader| reader.0.load(Ordering::Acquire) > epoch.0)
    }
}

/// The reads of one queue.
#[derive(Debug)]
pub(crate) struct Reads {
    epochs: Arc<Epochs>,
    word: Arc<Word>,
    /// Epochs with reads under way, and how many, oldest first.
    held: VecDeque<(u64, u32)>,
}

/// The epoch of a read under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadEpoch(u64);

impl Reads {
    /// A read begins: to be called before it looks at the map.
    #[inline]
    pub(crate) fn begin(&mut self) -> ReadEpoch {
        let now = self.epochs.now.0.load(Ordering::Acquire);
        match self.held.back_mut() {
            Some((epoch, reads)) if *epoch == now => *reads += 1,
            Some(_) => self.held.push_back((now, 1)),
            None => {
                self.held.push_back((now, 1));
                self.word.0.store(now, Ordering::Relaxed);
                fence(Ordering::SeqCst);
            }
        }
        ReadEpoch(now)
    }

    /// A read has ended. Returns whether an epoch ended with it.
    #[inline]
    pub(crate) fn end(&mut self, ReadEpoch(epoch): ReadEpoch) -> bool {
        let held = self.held.iter_mut().find(|(of, _)| *of == epoch);
        let (_, reads) = held.expect("a read ends once");
        *reads -= 1;
        let before = self.held.len();
        while self.held.front().is_some_and(|(_, reads)| *reads == 0) {
            self.held.pop_front();
        }
        if self.held.len() == before {
            return false;
        }
        let oldest = self.held.front().map_or(IDLE, |(epoch, _)| *epoch);
        self.word.0.store(oldest, Ordering::Release);
        true
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let mut readers = lock(&self.epochs.readers);
        readers.retain(|reader| !Arc::ptr_eq(reader, &self.word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_over_when_its_reads_are() {
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
        assert!(epochs.are_over(epoch), "the read of the other queue is younger");
        assert!(two.end(other));
    }

    #[test]
    fn a_queue_that_is_closed_holds_nothing() {
        let epochs = Arc::new(Epochs::new());
        let mut reads = epochs.join();
        let _under_way = reads.begin();
        let epoch = epochs.end();
        assert!(!epochs.are_over(epoch));
        drop(reads);
        assert!(epochs.are_over(epoch));
    }
}
