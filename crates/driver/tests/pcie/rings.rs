//! Rings: wrapping, phases, heads that cannot be.

use std::collections::VecDeque;

use proptest::prelude::{ProptestConfig, any, proptest};
use zonelab_driver::pcie::doorbell::Stride;
use zonelab_driver::pcie::memory::Window;
use zonelab_driver::pcie::pair::{PairSettings, RingPair};
use zonelab_driver::pcie::rings::{
    completion_bytes, load_submission, store_completion, submission_bytes,
};
use zonelab_driver::pcie::{HostMemory, Violation};
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

use crate::Notes;

/// The controller's end of a pair.
struct Peer {
    submission: Window,
    completion: Window,
    entries: u32,
    head: u32,
    tail: u32,
    phase: bool,
}

const QID: u16 = 3;

fn pair(memory: &HostMemory, entries: u32) -> (RingPair, Peer) {
    let settings = PairSettings {
        qid: QID,
        entries,
        has_generations: true,
        stride: Stride::from_dstrd(0),
        shadows: None,
    };
    let pair = RingPair::new(memory, &settings).unwrap();
    let (submission, completion) = pair.iovas();
    let peer = Peer {
        submission: memory
            .window(submission, submission_bytes(entries))
            .unwrap(),
        completion: memory
            .window(completion, completion_bytes(entries))
            .unwrap(),
        entries,
        head: 0,
        tail: 0,
        phase: true,
    };
    (pair, peer)
}

impl Peer {
    fn fetch(&mut self) -> SubmissionEntry {
        let first = self.head as usize * 8;
        self.head = (self.head + 1) % self.entries;
        load_submission(&self.submission.words()[first..first + 8])
    }

    fn post(&mut self, entry: CompletionEntry) {
        let first = self.tail as usize * 2;
        let status = entry.status.with_p(self.phase);
        let entry = CompletionEntry { status, ..entry };
        store_completion(&self.completion.words()[first..first + 2], &entry);
        self.tail = (self.tail + 1) % self.entries;
        self.phase ^= self.tail == 0;
    }

    fn completion(&self, cid: u16) -> CompletionEntry {
        CompletionEntry {
            sqhd: (self.head as u16).into(),
            sqid: QID.into(),
            ..CompletionEntry::new(cid, Status::SUCCESS)
        }
    }
}

#[test]
fn a_ring_of_n_entries_holds_one_less() {
    let memory = HostMemory::new();
    let (mut pair, _peer) = pair(&memory, 4);
    let entry = SubmissionEntry::new(2);
    let pushed: Vec<_> = core::iter::from_fn(|| pair.push(entry)).collect();
    assert_eq!(pushed.len(), 3);
    assert_eq!(pair.next_slot(), None);
}

/// An entry of the round before has the other phase tag.
#[test]
fn an_entry_of_the_last_round_is_not_taken_again() {
    let memory = HostMemory::new();
    let (mut pair, mut peer) = pair(&memory, 3);
    for _ in 0..20 {
        assert!(pair.pop().unwrap().is_none());
        let slot = pair.push(SubmissionEntry::new(1)).unwrap();
        let cid = peer.fetch().cdw0.cid();
        peer.post(peer.completion(cid));
        assert_eq!(pair.pop().unwrap().map(|popped| popped.slot), Some(slot));
    }
    assert!(pair.pop().unwrap().is_none());
}

#[test]
fn completions_of_nothing_are_counted_and_dropped() {
    let memory = HostMemory::new();
    let (mut pair, mut peer) = pair(&memory, 8);
    let slot = pair.push(SubmissionEntry::new(1)).unwrap();
    let cid = peer.fetch().cdw0.cid();
    peer.post(peer.completion(cid ^ 7));
    peer.post(peer.completion(cid));
    peer.post(peer.completion(cid));
    assert_eq!(pair.pop().unwrap().map(|popped| popped.slot), Some(slot));
    assert!(pair.pop().unwrap().is_none());
    assert_eq!((pair.counts().completions, pair.counts().dropped), (1, 2));
    assert_eq!(pair.last_violation(), Some(Violation::NotInFlight { cid }));
}

#[test]
fn heads_beyond_the_ring_or_the_tail_are_violations() {
    for (head, entries) in [(8, 8), (u16::MAX, 8), (3, 8)] {
        let memory = HostMemory::new();
        let (mut pair, mut peer) = pair(&memory, entries);
        pair.push(SubmissionEntry::new(1)).unwrap();
        let cid = peer.fetch().cdw0.cid();
        let sqhd = head.into();
        peer.post(CompletionEntry {
            sqhd,
            ..peer.completion(cid)
        });
        let (from, to) = (0, 1);
        let expected = Violation::BadHead {
            head,
            from,
            to,
            entries,
        };
        assert_eq!(pair.pop().map(drop), Err(expected));
    }
}

#[test]
fn completions_of_another_queue_are_violations() {
    let memory = HostMemory::new();
    let (mut pair, mut peer) = pair(&memory, 8);
    pair.push(SubmissionEntry::new(1)).unwrap();
    let cid = peer.fetch().cdw0.cid();
    peer.post(CompletionEntry {
        sqid: 9.into(),
        ..peer.completion(cid)
    });
    let expected = Violation::WrongQueue {
        sqid: 9,
        expected: QID,
    };
    assert_eq!(pair.pop().map(drop), Err(expected));
}

/// One doorbell for a batch at each ring, and none for nothing.
#[test]
fn doorbells_are_rung_once_for_a_batch() {
    let memory = HostMemory::new();
    let notes = Notes::default();
    let (mut pair, mut peer) = pair(&memory, 64);
    for round in 1..=5 {
        for _ in 0..32 {
            pair.push(SubmissionEntry::new(1)).unwrap();
        }
        pair.ring_submission(&notes);
        pair.ring_submission(&notes);
        for _ in 0..32 {
            let cid = peer.fetch().cdw0.cid();
            peer.post(peer.completion(cid));
        }
        while pair.pop().unwrap().is_some() {}
        pair.ring_completion(&notes);
        pair.ring_completion(&notes);
        let at = 32 * round % 64;
        assert_eq!(notes.take(), [(0x1018, at), (0x101c, at)]);
    }
    assert_eq!(pair.counts().submission_doorbells, 5);
    assert_eq!(pair.counts().completion_doorbells, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]

    /// Whatever is in the completion ring: no panic, and no command ends that was not
    /// pushed.
    #[test]
    fn any_bytes_are_survived(
        entries in 2_u32..40,
        words in proptest::collection::vec(any::<u64>(), 2..80),
        pushes in 0_usize..40,
    ) {
        let memory = HostMemory::new();
        let (mut pair, peer) = pair(&memory, entries);
        let pushed = (0..pushes).filter_map(|_| pair.push(SubmissionEntry::new(1))).count();
        for (slot, word) in peer.completion.words().iter().zip(&words) {
            slot.store(*word, std::sync::atomic::Ordering::Release);
        }
        let mut ended = 0;
        while let Ok(Some(_)) = pair.pop() {
            ended += 1;
        }
        assert_eq!(pair.ids().in_flight() + ended, pushed);
    }

    /// Commands go through in any order of completion, and each ends once.
    #[test]
    fn every_command_ends_once(
        entries in 2_u32..20,
        steps in proptest::collection::vec(any::<u8>(), 1..300),
    ) {
        let memory = HostMemory::new();
        let (mut pair, mut peer) = pair(&memory, entries);
        let (mut unfetched, mut fetched) = (VecDeque::new(), Vec::new());
        for step in steps {
            match step % 3 {
                0 => match pair.push(SubmissionEntry::new(step)) {
                    Some(slot) => unfetched.push_back((slot, step)),
                    None => assert!(unfetched.len() + fetched.len() + 1 >= entries as usize),
                },
                1 => if let Some((slot, opcode)) = unfetched.pop_front() {
                    let entry = peer.fetch();
                    assert_eq!(entry.cdw0.opc(), opcode);
                    fetched.push((slot, entry.cdw0.cid()));
                },
                _ => if !fetched.is_empty() {
                    let (slot, cid) = fetched.swap_remove(usize::from(step) % fetched.len());
                    peer.post(peer.completion(cid));
                    assert_eq!(pair.pop().unwrap().map(|popped| popped.slot), Some(slot));
                },
            }
            assert!(pair.pop().unwrap().is_none());
            assert_eq!(pair.ids().in_flight(), unfetched.len() + fetched.len());
        }
    }
}
