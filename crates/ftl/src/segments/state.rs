//! What is in memory of a map, and what changed since its image.

use std::collections::BTreeMap;

use super::places::ImagePlaces;
use super::{ABSENT, HOLDERS, Holder};

/// A place in memory for a segment.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) segment: u32,
    pub(super) words: Box<[u32]>,
    /// Blocks of it that are held, by kind of holder.
    pub(super) held: [u32; HOLDERS],
    pub(super) is_loading: bool,
    /// It was needed since the hand of the clock passed.
    pub(super) is_used: bool,
}

impl Frame {
    pub(super) fn is_held(&self) -> bool {
        self.held != [0; HOLDERS]
    }
}

#[derive(Debug)]
pub(super) struct State {
    /// By segment: its frame, or [`ABSENT`].
    pub(super) table: Box<[u32]>,
    pub(super) frames: Vec<Frame>,
    /// Where the search for a frame goes on.
    pub(super) hand: usize,
    /// Segments held, by kind of holder.
    pub(super) held: [u32; HOLDERS],
    pub(super) checkpoint: u64,
    pub(super) places: ImagePlaces,
    /// Words that changed since the image; those of a checkpoint that is being written
    /// are in `frozen`, and those since it began here.
    pub(super) changes: BTreeMap<u32, u32>,
    pub(super) frozen: Option<BTreeMap<u32, u32>>,
    /// Somebody could not hold a segment.
    pub(super) has_waiters: bool,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl State {
    pub(super) fn frame_of(&self, segment: u32) -> usize {
        let frame = self.table[segment as usize];
        assert_ne!(frame, ABSENT, "segment {segment} is used and not held");
        frame as usize
    }

    pub(super) fn take(&mut self, frame: usize, holder: Holder, blocks: u32) {
        let of = &mut self.frames[frame];
        let held = &mut of.held[holder as usize];
        self.held[holder as usize] += u32::from(*held == 0);
        *held += blocks;
        of.is_used = true;
    }

    pub(super) fn give(&mut self, frame: usize, holder: Holder, blocks: u32) {
        let held = &mut self.frames[frame].held[holder as usize];
        assert!(*held >= blocks, "what is released was held");
        *held -= blocks;
        self.held[holder as usize] -= u32::from(*held == 0);
    }

    /// A frame that was to be filled holds nothing.
    pub(super) fn forget(&mut self, frame: usize, holder: Holder, blocks: u32) {
        self.give(frame, holder, blocks);
        let of = &mut self.frames[frame];
        debug_assert!(of.is_loading && !of.is_held(), "only its reader has it");
        of.is_loading = false;
        of.is_used = false;
        self.table[of.segment as usize] = ABSENT;
        of.segment = ABSENT;
    }
}
