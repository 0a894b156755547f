//! A submission and a completion ring with the commands that are in flight between
//! them: what admin and I/O queues have in common.

use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

use super::bus::{DmaError, DmaMemory, Registers};
use super::doorbell::{Doorbell, Of, ShadowBuffers, Stride};
use super::error::Violation;
use super::ids::{CommandIds, MAX_SLOTS};
use super::rings::{CompletionRing, SubmissionRing, completion_bytes, submission_bytes};

/// What a queue pair is made with.
#[derive(Clone, Debug)]
pub struct PairSettings {
    /// Its number; 0 is the admin queue.
    pub qid: u16,
    /// Entries of both rings, 2 to 4096: one more than commands in flight.
    pub entries: u32,
    /// Whether command identifiers have generations.
    pub has_generations: bool,
    /// Distance of doorbells.
    pub stride: Stride,
    /// Shadows of the doorbells, if the controller has taken them.
    pub shadows: Option<ShadowBuffers>,
}

/// What a queue pair counts.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Writes of the submission queue's doorbell register.
    pub submission_doorbells: u64,
    /// Writes of the completion queue's doorbell register.
    pub completion_doorbells: u64,
    /// Completions of commands.
    pub completions: u64,
    /// Completions that were dropped because no such command was in flight.
    pub dropped: u64,
}

/// Rings, and identifiers of the commands between them.
///
/// Every command that is pushed ends once: by a completion that [`Self::pop`] returns,
/// or by [`Self::give_up`].
#[derive(Debug)]
pub struct RingPair {
    qid: u16,
    submission: SubmissionRing,
    completion: CompletionRing,
    ids: CommandIds,
    completions: u64,
    dropped: u64,
    last_violation: Option<Violation>,
    /// Where the rings are, for the commands that make them.
    iovas: (u64, u64),
    entries: u32,
}

/// A completion, and the slot of its command, which is free again.
#[derive(Copy, Clone, Debug)]
pub struct Popped {
    /// The slot.
    pub slot: u16,
    /// The completion.
    pub entry: CompletionEntry,
}

impl RingPair {
    /// Rings in memory of the device. The device does not know of them yet.
    ///
    /// # Errors
    /// No memory.
    pub fn new(memory: &impl DmaMemory, settings: &PairSettings) -> Result<Self, DmaError> {
        let entries = settings.entries.clamp(2, u32::from(MAX_SLOTS) + 1);
        let (qid, stride) = (settings.qid, settings.stride);
        let shadows = settings.shadows.as_ref();
        let doorbell = |of| Doorbell::new(stride, qid, of, shadows);
        let submission = memory.allocate(submission_bytes(entries))?;
        let completion = memory.allocate(completion_bytes(entries))?;
        let iovas = (submission.iova(), completion.iova());
        Ok(Self {
            qid,
            submission: SubmissionRing::new(submission, entries, doorbell(Of::SubmissionTail)),
            completion: CompletionRing::new(completion, entries, doorbell(Of::CompletionHead)),
            // At most as many commands as both rings hold: neither overflows.
            ids: CommandIds::new((entries - 1) as u16, settings.has_generations),
            completions: 0,
            dropped: 0,
            last_violation: None,
            iovas,
            entries,
        })
    }

    /// Where the device finds the submission and the completion ring.
    #[must_use]
    pub const fn iovas(&self) -> (u64, u64) {
        self.iovas
    }

    /// Entries of each ring.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Its identifiers: which slots are in flight.
    #[must_use]
    pub const fn ids(&self) -> &CommandIds {
        &self.ids
    }

    /// The slot of the next command; `None`: the queue is full.
    #[must_use]
    #[inline]
    pub fn next_slot(&self) -> Option<u16> {
        self.ids.peek().filter(|_| !self.submission.is_full())
    }

    /// Pushes a command, which gets its identifier here. Returns its slot; `None`: the
    /// queue is full.
    #[inline]
    pub fn push(&mut self, entry: SubmissionEntry) -> Option<u16> {
        self.next_slot()?;
        let (slot, cid) = self.ids.take()?;
        let is_pushed = self.submission.push(&entry.with_cid(cid));
        debug_assert!(is_pushed, "next_slot has seen room");
        Some(slot)
    }

    /// Takes the next completion. Those of commands that are not in flight are
    /// counted and dropped: what they say of the ring is checked all the same.
    ///
    /// # Errors
    /// The controller and the driver do not agree on the submission ring any more, so
    /// that the queue cannot be used: [`Violation`].
    #[inline]
    pub fn pop(&mut self) -> Result<Option<Popped>, Violation> {
        while let Some(entry) = self.completion.pop() {
            let sqid = entry.sqid.get();
            if sqid != self.qid {
                let expected = self.qid;
                return Err(Violation::WrongQueue { sqid, expected });
            }
            self.submission.fetched_to(entry.sqhd.get())?;
            match self.ids.resolve(entry.cid.get()) {
                Ok(slot) => {
                    self.ids.release(slot);
                    self.completions += 1;
                    return Ok(Some(Popped { slot, entry }));
                }
                Err(violation) => {
                    self.dropped += 1;
                    self.last_violation = Some(violation);
                }
            }
        }
        Ok(None)
    }

    /// Frees the slot of a command that nobody waits for any more. If the device
    /// completes it after all, the generation of the slot tells.
    pub fn give_up(&mut self, slot: u16) {
        self.ids.release(slot);
    }

    /// Tells the controller of what was pushed.
    #[inline]
    pub fn ring_submission(&mut self, registers: &impl Registers) {
        self.submission.ring(registers);
    }

    /// Tells the controller of what was popped.
    #[inline]
    pub fn ring_completion(&mut self, registers: &impl Registers) {
        self.completion.ring(registers);
    }

    /// What it counts.
    #[must_use]
    pub const fn counts(&self) -> PairCounts {
        PairCounts {
            submission_doorbells: self.submission.doorbell_writes(),
            completion_doorbells: self.completion.doorbell_writes(),
            completions: self.completions,
            dropped: self.dropped,
        }
    }

    /// What was wrong with the last completion that was dropped.
    #[must_use]
    pub const fn last_violation(&self) -> Option<Violation> {
        self.last_violation
    }

    /// Keeps the rings for good: the device may still access them.
    pub fn leak(&self) {
        self.submission.leak();
        self.completion.leak();
    }
}
