//! Rings as the controller sees them.

use std::collections::VecDeque;

use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::rings::{load_submission, store_completion};
use zonelab_nvme::queue::{CompletionEntry, PointerKind, SglDescriptor, SubmissionEntry};
use zonelab_target::controller::QueueHandle;

/// Words of a submission queue entry.
const SQE_WORDS: usize = size_of::<SubmissionEntry>() / 8;
/// Words of a completion queue entry.
const CQE_WORDS: usize = size_of::<CompletionEntry>() / 8;

/// Where the host says that the data of a command is.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Place {
    Prps(u64, u64),
    Sgl(SglDescriptor),
}

impl Place {
    /// As PSDT says; `None`: it says nothing that there is.
    pub(crate) fn of(entry: &SubmissionEntry) -> Option<Self> {
        match entry.cdw0.psdt() {
            PointerKind::PRP => {
                let dptr = entry.dptr;
                Some(Self::Prps(dptr.prp1.get(), dptr.prp2.get()))
            }
            // They differ in what the metadata pointer is, and there is no metadata.
            PointerKind::SGL_MPTR_BUFFER | PointerKind::SGL_MPTR_SEGMENT => {
                Some(Self::Sgl(entry.dptr.as_sgl()))
            }
            _ => None,
        }
    }
}

/// A command that has been fetched and has not completed.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) cid: u16,
    /// Where data for the host goes.
    pub(crate) place: Place,
    /// Identify Controller: what it says is of a fabric.
    pub(crate) is_identify: bool,
}

/// A submission queue.
#[derive(Debug)]
pub(crate) struct SubmissionQueue {
    pub(crate) qid: u16,
    pub(crate) cqid: u16,
    /// What the subsystem calls it.
    pub(crate) handle: QueueHandle,
    window: Window,
    entries: u32,
    pub(crate) head: u16,
    pub(crate) tail: u16,
    pending: Vec<Pending>,
}

impl SubmissionQueue {
    pub(crate) fn new(
        (qid, cqid): (u16, u16),
        handle: QueueHandle,
        window: Window,
        entries: u32,
    ) -> Self {
        Self {
            qid,
            cqid,
            handle,
            window,
            entries,
            head: 0,
            tail: 0,
            pending: Vec::with_capacity(entries as usize),
        }
    }

    /// Where the ring is, and its entries.
    pub(crate) fn place(&self) -> (Window, u32) {
        (self.window.clone(), self.entries)
    }

    /// A doorbell. False: there is no such entry.
    pub(crate) fn ring(&mut self, tail: u32) -> bool {
        let is_valid = tail < self.entries;
        if is_valid {
            self.tail = tail as u16;
        }
        is_valid
    }

    pub(crate) fn has_work(&self) -> bool {
        self.head != self.tail
    }

    /// Fetches the next entry.
    pub(crate) fn fetch(&mut self) -> Option<SubmissionEntry> {
        if !self.has_work() {
            return None;
        }
        let first = usize::from(self.head) * SQE_WORDS;
        let words = self.window.words().get(first..first + SQE_WORDS)?;
        self.head = wrap(self.head, self.entries);
        Some(load_submission(words))
    }

    pub(crate) fn begin(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    /// Ends a command; `None`: it was not in flight.
    pub(crate) fn end(&mut self, cid: u16) -> Option<Pending> {
        let at = self.pending.iter().position(|of| of.cid == cid)?;
        Some(self.pending.swap_remove(at))
    }

    /// Ends all commands.
    pub(crate) fn end_all(&mut self) -> Vec<Pending> {
        core::mem::take(&mut self.pending)
    }
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    window: Window,
    entries: u32,
    head: u16,
    tail: u16,
    phase: bool,
    /// The interrupt vector that tells of entries.
    vector: Option<u16>,
    /// Entries so far.
    posted: u64,
    /// Completions that find no room, until the host makes some.
    waiting: VecDeque<CompletionEntry>,
}

impl CompletionQueue {
    pub(crate) fn new(window: Window, entries: u32, vector: Option<u16>) -> Self {
        Self {
            window,
            entries,
            head: 0,
            tail: 0,
            phase: true,
            vector,
            posted: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Where the ring is, and its entries.
    pub(crate) fn place(&self) -> (Window, u32) {
        (self.window.clone(), self.entries)
    }

    pub(crate) const fn vector(&self) -> Option<u16> {
        self.vector
    }

    /// Entries that the host can see, since the queue was made.
    pub(crate) const fn posted(&self) -> u64 {
        self.posted
    }

    /// A doorbell. False: there is no such entry.
    pub(crate) fn ring(&mut self, head: u32) -> bool {
        let is_valid = head < self.entries;
        if is_valid {
            self.head = head as u16;
            while let Some(entry) = self.waiting.pop_front() {
                if let Err(entry) = self.store(entry) {
                    self.waiting.push_front(entry);
                    break;
                }
            }
        }
        is_valid
    }

    /// Posts a completion, now or when there is room.
    pub(crate) fn post(&mut self, entry: CompletionEntry) {
        if !self.waiting.is_empty() {
            return self.waiting.push_back(entry);
        }
        if let Err(entry) = self.store(entry) {
            self.waiting.push_back(entry);
        }
    }

    /// Writes a completion with the phase tag of the round before: the host does not
    /// see it.
    pub(crate) fn post_stale(&mut self, entry: CompletionEntry) {
        let phase = !self.phase;
        self.write(entry, phase);
    }

    fn store(&mut self, entry: CompletionEntry) -> Result<(), CompletionEntry> {
        let next = wrap(self.tail, self.entries);
        if next == self.head {
            return Err(entry);
        }
        self.write(entry, self.phase);
        self.tail = next;
        self.posted += 1;
        self.phase ^= next == 0;
        Ok(())
    }

    fn write(&self, entry: CompletionEntry, phase: bool) {
        let first = usize::from(self.tail) * CQE_WORDS;
        if let Some(words) = self.window.words().get(first..first + CQE_WORDS) {
            let status = entry.status.with_p(phase);
            store_completion(words, &CompletionEntry { status, ..entry });
        }
    }
}

fn wrap(at: u16, entries: u32) -> u16 {
    let next = u32::from(at) + 1;
    if next == entries { 0 } else { next as u16 }
}
