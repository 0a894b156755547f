//! Doorbells and their shadows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zonelab_driver::pcie::doorbell::{Doorbell, Of, ShadowBuffers, Stride, needs_event};
use zonelab_driver::pcie::{DmaMemory, HostMemory};

use crate::Notes;

/// A value that the controller has is not written again.
#[test]
fn the_same_value_is_written_once() {
    let notes = Notes::default();
    let mut doorbell = Doorbell::new(Stride::from_dstrd(0), 1, Of::CompletionHead, None);
    doorbell.ring(&notes, 0);
    assert_eq!(notes.take(), [], "a new queue's doorbell is 0");
    for value in [5, 5, 5, 6] {
        doorbell.ring(&notes, value);
    }
    assert_eq!(notes.take(), [(0x100c, 5), (0x100c, 6)]);
    assert_eq!(doorbell.writes(), 2);
}

/// PCIe transport 1.0, section 3.1.2: 1000h + (2 qid + is completion) * (4 << DSTRD).
#[test]
fn doorbells_are_where_the_stride_puts_them() {
    let notes = Notes::default();
    for (dstrd, qid, of, at) in [
        (0, 0, Of::SubmissionTail, 0x1000),
        (0, 0, Of::CompletionHead, 0x1004),
        (0, 3, Of::SubmissionTail, 0x1018),
        (2, 3, Of::CompletionHead, 0x1070),
        (4, 1, Of::SubmissionTail, 0x1080),
    ] {
        Doorbell::new(Stride::from_dstrd(dstrd), qid, of, None).ring(&notes, 9);
        assert_eq!(notes.take(), [(at, 9)]);
    }
}

#[test]
fn a_doorbell_has_to_be_written_if_it_passes_the_event_index() {
    // From old to new; the controller has said that it knows up to `event`.
    for (event, old, new, expected) in [
        (0, 0, 1, true),
        (1, 0, 1, false),
        (5, 3, 5, false),
        (4, 3, 5, true),
        (3, 3, 5, true),
        (2, 3, 5, false),
        // Over the end of the ring.
        (62, 62, 2, true),
        (0, 62, 2, true),
        (2, 62, 2, false),
    ] {
        assert_eq!(
            needs_event(event, new, old),
            expected,
            "{event} {old} {new}"
        );
    }
}

fn buffers(memory: &HostMemory) -> ShadowBuffers {
    ShadowBuffers {
        shadow: Arc::new(memory.allocate(4096).unwrap()),
        event_index: Arc::new(memory.allocate(4096).unwrap()),
    }
}

/// As long as the controller has not got to its event index, the register is left alone.
#[test]
fn a_controller_that_is_busy_is_not_told() {
    let notes = Notes::default();
    let buffers = buffers(&HostMemory::new());
    let stride = Stride::from_dstrd(0);
    let mut doorbell = Doorbell::new(stride, 2, Of::SubmissionTail, Some(&buffers));
    let shadow = || buffers.shadow.dwords()[4].load(Ordering::Relaxed);
    doorbell.ring(&notes, 1);
    assert_eq!((shadow(), notes.take()), (1, vec![(0x1010, 1)]));
    // The controller is still where it was.
    doorbell.ring(&notes, 3);
    assert_eq!((shadow(), notes.take()), (3, vec![]));
    // It has seen 3, and waits.
    buffers.event_index.dwords()[4].store(3, Ordering::Relaxed);
    doorbell.ring(&notes, 4);
    assert_eq!((shadow(), notes.take()), (4, vec![(0x1010, 4)]));
    assert_eq!(doorbell.writes(), 2);
}

/// A queue that is made again does not find what the last of its number left.
#[test]
fn a_queue_that_is_made_again_begins_with_clean_shadows() {
    let buffers = buffers(&HostMemory::new());
    for region in [&buffers.shadow, &buffers.event_index] {
        region
            .dwords()
            .iter()
            .for_each(|slot| slot.store(77, Ordering::Relaxed));
    }
    let stride = Stride::from_dstrd(0);
    let _doorbell = Doorbell::new(stride, 1, Of::CompletionHead, Some(&buffers));
    for region in [&buffers.shadow, &buffers.event_index] {
        let slots = region.dwords();
        let values: Vec<u32> = slots[2..5]
            .iter()
            .map(|of| of.load(Ordering::Relaxed))
            .collect();
        assert_eq!(values, [77, 0, 77]);
    }
}
