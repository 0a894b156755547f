//! A controller that completes every I/O command at once.
//!
//! For measuring the driver: what a command costs at its side, with a peer that does as
//! little as can be done. It reads one word of each submission entry, writes the two of
//! a completion, and moves no data.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use zonelab_device::Nanos;
use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::{DmaError, DmaMemory, DmaRegion, Function, Registers};

use crate::endpoint::Endpoint;
use crate::registers::FIRST_DOORBELL;

/// Most queues that it completes.
const QUEUES: usize = 8;

/// Words of a submission queue entry.
const SQE_WORDS: usize = 8;

/// An endpoint whose first I/O queues complete all commands at once, with success, once
/// they have been [attached](Immediate::attach).
///
/// Copies share it. A queue is completed by the thread that writes its doorbell, and
/// shares nothing with other queues that is written to.
#[derive(Clone, Debug)]
pub struct Immediate {
    endpoint: Endpoint,
    queues: Arc<[OnceLock<Rings>; QUEUES]>,
}

/// The rings of a queue, and how far they have got. One thread writes its doorbells, so
/// that nothing has to be exchanged: the atomics are for what the type says.
#[derive(Debug)]
#[repr(align(128))]
struct Rings {
    qid: u16,
    submission: Window,
    completion: Window,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    phase: AtomicU64,
    doorbells: AtomicU64,
}

impl Rings {
    /// Completes all commands up to `tail`.
    fn complete(&self, tail: u32) {
        let (submissions, completions) = (self.submission.words(), self.completion.words());
        let order = Ordering::Relaxed;
        let (mut head, mut at) = (self.head.load(order), self.tail.load(order));
        let mut phase = self.phase.load(order);
        while head != tail {
            let Some(word) = submissions.get(head as usize * SQE_WORDS) else {
                return;
            };
            let cid = u64::from_le(word.load(Ordering::Relaxed)) >> 16 & 0xffff;
            head = wrap(head, self.entries);
            let first = at as usize * 2;
            let Some([low, high]) = completions.get(first..first + 2) else {
                return;
            };
            let value = phase << 48 | cid << 32 | u64::from(self.qid) << 16 | u64::from(head);
            low.store(0, Ordering::Relaxed);
            high.store(value.to_le(), Ordering::Release);
            at = wrap(at, self.entries);
            phase ^= u64::from(at == 0);
        }
        self.head.store(head, order);
        self.tail.store(at, order);
        self.phase.store(phase, order);
    }
}

fn wrap(at: u32, entries: u32) -> u32 {
    if at + 1 == entries { 0 } else { at + 1 }
}

impl Immediate {
    /// An endpoint that does what it always does until a queue is attached.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            queues: Arc::default(),
        }
    }

    /// From now on I/O queue `qid`, which has just been made, is completed at once.
    /// False: there is no such queue among the first, or it is attached already.
    pub fn attach(&self, qid: u16) -> bool {
        let Some(place) = qid
            .checked_sub(1)
            .and_then(|at| self.queues.get(usize::from(at)))
        else {
            return false;
        };
        let Some([(submission, entries), (completion, _)]) = self.endpoint.rings(qid) else {
            return false;
        };
        let rings = Rings {
            qid,
            submission,
            completion,
            entries,
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            phase: AtomicU64::new(1),
            doorbells: AtomicU64::new(0),
        };
        place.set(rings).is_ok()
    }

    /// Doorbells of both rings of queue `qid` that were written.
    #[must_use]
    pub fn doorbells(&self, qid: u16) -> u64 {
        let place = FIRST_DOORBELL + 8 * u64::from(qid);
        let count = |(rings, _): (&Rings, bool)| rings.doorbells.load(Ordering::Relaxed);
        self.doorbell(place).map_or(0, count)
    }

    /// The queue that has the doorbell at `offset`, and whether that is of its completion
    /// ring.
    #[inline]
    fn doorbell(&self, offset: u64) -> Option<(&Rings, bool)> {
        let at = offset.checked_sub(FIRST_DOORBELL + 8)?;
        let rings = self.queues.get((at / 8) as usize)?.get()?;
        Some((rings, at % 8 != 0))
    }
}

impl Registers for Immediate {
    fn bar_bytes(&self) -> u64 {
        self.endpoint.bar_bytes()
    }

    fn read32(&self, offset: u64) -> u32 {
        self.endpoint.read32(offset)
    }

    #[inline]
    fn write32(&self, offset: u64, value: u32) {
        let Some((rings, is_completion)) = self.doorbell(offset) else {
            return self.endpoint.write32(offset, value);
        };
        let doorbells = rings.doorbells.load(Ordering::Relaxed);
        rings.doorbells.store(doorbells + 1, Ordering::Relaxed);
        if !is_completion {
            rings.complete(value);
        }
    }
}

impl DmaMemory for Immediate {
    fn allocate(&self, bytes: usize) -> Result<DmaRegion, DmaError> {
        self.endpoint.allocate(bytes)
    }
}

impl Function for Immediate {
    #[inline]
    fn now(&self) -> Nanos {
        self.endpoint.now()
    }

    fn pause(&self, span: Nanos) {
        self.endpoint.pause(span);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.endpoint.next_event()
    }

    fn advance(&self, now: Nanos) {
        self.endpoint.advance(now);
    }

    fn wait(&self, span: Nanos) -> bool {
        self.endpoint.wait(span)
    }
}
