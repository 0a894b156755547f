//! A controller that completes every I/O command at once.
//!
//! For measuring the driver: what a command costs at its side, with a peer that does as
//! little as can be done. It reads one word of each submission entry, writes the two of
//! a completion, and moves no data.

use core::sync::atomic::Ordering;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use zonelab_device::Nanos;
use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::{DmaError, DmaMemory, DmaRegion, Function, Registers};

use crate::endpoint::Endpoint;
use crate::registers::FIRST_DOORBELL;

/// The queue that it completes: the first I/O queue.
const QID: u16 = 1;

/// Words of a submission queue entry.
const SQE_WORDS: usize = 8;

/// An endpoint whose first I/O queue completes all commands at once, with success, once
/// it has been [attached](Immediate::attach).
#[derive(Clone, Debug)]
pub struct Immediate {
    endpoint: Endpoint,
    rings: Rc<OnceCell<Rings>>,
}

/// The rings of the queue, and how far they have got.
#[derive(Debug)]
struct Rings {
    tail_doorbell: u64,
    submission: Window,
    completion: Window,
    entries: u32,
    head: Cell<u32>,
    tail: Cell<u32>,
    phase: Cell<u64>,
    doorbells: Cell<u64>,
}

impl Rings {
    /// Completes all commands up to `tail`.
    fn complete(&self, tail: u32) {
        let (submissions, completions) = (self.submission.words(), self.completion.words());
        let (mut head, mut at) = (self.head.get(), self.tail.get());
        let mut phase = self.phase.get();
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
            let value = phase << 48 | cid << 32 | u64::from(QID) << 16 | u64::from(head);
            low.store(0, Ordering::Relaxed);
            high.store(value.to_le(), Ordering::Release);
            at = wrap(at, self.entries);
            phase ^= u64::from(at == 0);
        }
        self.head.set(head);
        self.tail.set(at);
        self.phase.set(phase);
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
            rings: Rc::default(),
        }
    }

    /// From now on the first I/O queue, which has just been made, is completed at once.
    /// False: there is no such queue, or it is attached already.
    pub fn attach(&self) -> bool {
        let Some([(submission, entries), (completion, _)]) = self.endpoint.rings(QID) else {
            return false;
        };
        let rings = Rings {
            tail_doorbell: FIRST_DOORBELL + 8 * u64::from(QID),
            submission,
            completion,
            entries,
            head: Cell::new(0),
            tail: Cell::new(0),
            phase: Cell::new(1),
            doorbells: Cell::new(0),
        };
        self.rings.set(rings).is_ok()
    }

    /// Doorbells of both rings of the queue that were written.
    #[must_use]
    pub fn doorbells(&self) -> u64 {
        self.rings.get().map_or(0, |rings| rings.doorbells.get())
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
        match self.rings.get() {
            Some(rings) if offset == rings.tail_doorbell => {
                rings.doorbells.set(rings.doorbells.get() + 1);
                rings.complete(value);
            }
            Some(rings) if offset == rings.tail_doorbell + 4 => {
                rings.doorbells.set(rings.doorbells.get() + 1);
            }
            _ => self.endpoint.write32(offset, value),
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
