//! Rings and doorbells between the driver and a device that is another thread.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use zonelab_driver::pcie::Registers;
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

use crate::explore;
use crate::pcie::dma::DmaRegion;
use crate::pcie::doorbell::{Doorbell, Of, ShadowBuffers, Stride};
use crate::pcie::rings::{CompletionRing, SubmissionRing, load_submission, store_completion};

/// The doorbells of queue 0, and how the device is told of them: what was stored before is seen
/// by whoever sees the register.
#[derive(Clone, Debug)]
struct Bar {
    tail: Arc<AtomicU32>,
    head: Arc<AtomicU32>,
}

impl Bar {
    fn new() -> Self {
        Self {
            tail: Arc::new(AtomicU32::new(0)),
            head: Arc::new(AtomicU32::new(0)),
        }
    }

    fn of(&self, offset: u64) -> &AtomicU32 {
        match offset {
            0x1000 => &self.tail,
            _ => &self.head,
        }
    }
}

impl Registers for Bar {
    fn bar_bytes(&self) -> u64 {
        0x1008
    }

    fn read32(&self, offset: u64) -> u32 {
        self.of(offset).load(Ordering::Acquire)
    }

    fn write32(&self, offset: u64, value: u32) {
        self.of(offset).store(value, Ordering::Release);
    }
}

fn doorbell(of: Of, shadows: Option<&ShadowBuffers>) -> Doorbell {
    Doorbell::new(Stride::from_dstrd(0), 0, of, shadows)
}

/// Entries of the rings, which the device goes round.
const ENTRIES: u32 = 2;
/// Words of an entry of either ring.
const SQE: usize = 8;
const CQE: usize = 2;

fn command(number: u16) -> SubmissionEntry {
    let entry = SubmissionEntry::default().with_cid(number).with_nsid(7);
    entry.with_slba(u64::from(number) << 32 | 1)
}

/// A device with a step for each look at its tail doorbell.
struct Device {
    bar: Bar,
    submissions: DmaRegion,
    completions: DmaRegion,
    done: u16,
}

impl Device {
    fn step(&mut self) {
        let has_new = self.bar.read32(0x1000) != u32::from(self.done) % ENTRIES;
        if !has_new {
            return;
        }
        let first = usize::from(self.done) % ENTRIES as usize;
        let words = &self.submissions.words()[first * SQE..][..SQE];
        assert!(
            load_submission(words) == command(self.done),
            "a whole entry"
        );
        let is_odd_round = (self.done / ENTRIES as u16).is_multiple_of(2);
        let entry = CompletionEntry::new(self.done, Status::SUCCESS);
        let entry = CompletionEntry {
            dw0: (100 + u32::from(self.done)).into(),
            status: entry.status.with_p(is_odd_round),
            ..entry
        };
        let words = &self.completions.words()[first * CQE..][..CQE];
        store_completion(words, &entry);
        self.done += 1;
    }
}

/// A driver that sees a phase tag sees the entry that belongs to it, also where the ring begins
/// anew, and a device that sees a doorbell sees the command.
#[test]
fn entries_are_seen_whole() {
    const COMMANDS: u16 = 3;
    explore(|| {
        let bar = Bar::new();
        let submissions = DmaRegion::of_words(ENTRIES as usize * SQE);
        let completions = DmaRegion::of_words(ENTRIES as usize * CQE);
        let mut device = Device {
            bar: bar.clone(),
            submissions: submissions.clone(),
            completions: completions.clone(),
            done: 0,
        };
        let tail = doorbell(Of::SubmissionTail, None);
        let head = doorbell(Of::CompletionHead, None);
        let mut submission = SubmissionRing::new(submissions, ENTRIES, tail);
        let mut completion = CompletionRing::new(completions, ENTRIES, head);
        let device = loom::thread::spawn(move || {
            for _ in 0..COMMANDS {
                device.step();
            }
            device
        });
        let (mut sent, mut found) = (0, 0);
        let mut turn = |sent: &mut u16, found: &mut u16| {
            if *sent == *found && *sent < COMMANDS {
                assert!(submission.push(&command(*sent)));
                submission.ring(&bar);
                *sent += 1;
            }
            if let Some(entry) = completion.pop() {
                assert_eq!(entry.cid.get(), *found);
                assert_eq!(entry.dw0.get(), 100 + u32::from(*found), "a whole entry");
                submission
                    .fetched_to((*found + 1) % ENTRIES as u16)
                    .unwrap();
                completion.ring(&bar);
                *found += 1;
            }
        };
        for _ in 0..COMMANDS {
            turn(&mut sent, &mut found);
        }
        let mut device = device.join().unwrap();
        while found < COMMANDS {
            turn(&mut sent, &mut found);
            device.step();
        }
    });
}

/// A device that goes to sleep has seen all that was submitted, or is told by the register.
#[test]
fn no_shadow_doorbell_is_missed() {
    const COMMANDS: u16 = 2;
    explore(|| {
        let bar = Bar::new();
        let (shadow, event_index) = (DmaRegion::of_dwords(2), DmaRegion::of_dwords(2));
        let shadows = ShadowBuffers {
            shadow: Arc::new(shadow.clone()),
            event_index: Arc::new(event_index.clone()),
        };
        let mut driver = doorbell(Of::SubmissionTail, Some(&shadows));
        let device = loom::thread::spawn(move || {
            loop {
                let seen = shadow.dwords()[0].load(Ordering::Acquire);
                event_index.dwords()[0].store(seen, Ordering::Release);
                fence(Ordering::SeqCst);
                if shadow.dwords()[0].load(Ordering::Acquire) == seen {
                    return seen;
                }
            }
        });
        for tail in 1..=COMMANDS {
            driver.ring(&bar, tail);
        }
        let seen = device.join().unwrap();
        let told = bar.read32(0x1000);
        // Told after it has slept, it looks again, and sees all.
        assert!(
            seen == u32::from(COMMANDS) || told > seen,
            "it sleeps with {seen} of {COMMANDS}, and was told of {told}"
        );
    });
}
