//! A map of which a share is in memory, in segments that are loaded when they are needed.
//!
//! A segment is a sixteenth of what one block of an image holds: small, since programs
//! that are far apart need few words of each. The newest image on the drive has all
//! segments as they were at its checkpoint, and what changed since then is kept here, word
//! by word: so a segment can leave memory at any time without being written, and is whole
//! again when its block of the image has been read and the changes have been put on top.
//! A checkpoint merges both into a new image, and the changes that the new image has are
//! forgotten. So three things take memory, each with a bound: the segments, the changes,
//! and four bytes for each segment that there is.
//!
//! Nothing in here does I/O. Whoever needs a segment [holds](Segments::hold) it, and is
//! told what to read if it is not there.

mod places;
mod state;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::blocks::PhysicalBlock;
use crate::sync::{Mutex, MutexGuard, lock};
pub(crate) use places::{ImagePlace, ImagePlaces};
use state::{Frame, State};

/// The word of the table for a segment that is not in memory.
const ABSENT: u32 = u32::MAX;
/// Segments of a block of an image.
const PER_BLOCK: u32 = 16;
/// Fewest segments for each kind of holder.
const LEAST_HELD: u32 = 2;
/// Most segments that one task of upkeep holds.
const MOST_AT_ONCE: u32 = 16;
/// A change takes about four times what a word of the map does: so changes take about as
/// much memory as segments if there may be a quarter as many.
const WORDS_PER_CHANGE: u32 = 4;

/// What a segment is held for.
///
/// Each kind may hold a third of the segments in memory. A program's writes hold theirs
/// while they wait for the collector, the collector waits for reads that are under way, and
/// it needs segments itself: so none of them may take what the others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A read of a program.
    Read,
    /// A write or trim of a program.
    Write,
    /// The collector.
    Upkeep,
}

/// Number of kinds of holders.
const HOLDERS: usize = 3;

/// A segment to be read from the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) segment: u32,
    /// The checkpoint of the image.
    pub(crate) checkpoint: u64,
    pub(crate) at: ImagePlace,
}

impl Load {
    /// Which block of the image.
    pub(crate) const fn index(&self) -> u32 {
        self.segment / PER_BLOCK
    }
}

/// What becomes of somebody who needs a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is in memory, and stays until it is released.
    Now,
    /// It stays, too, but has to be read first, by whoever asked: others wait for that.
    Load(Load),
    /// Somebody else is reading it. Nothing is held.
    Busy,
    /// Too much is held already, or a checkpoint has to come first. Nothing is held.
    Full,
}

/// What becomes of a segment that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// It is in memory, and held.
    Now,
    /// There is a newer image: it is not held any more, and to be asked for again.
    Outdated,
    /// It cannot be read, and is not held any more.
    Failed,
}

/// A map of which a share is in memory.
#[derive(Debug)]
pub(crate) struct Segments {
    blocks: u32,
    /// Words of a segment: a whole number of segments is in a block of an image.
    words: u32,
    most_frames: u32,
    /// Segments that each kind of holder may hold.
    most_held: u32,
    /// Changes from which on programs have to wait for a checkpoint.
    most_changes: usize,
    state: Mutex<State>,
}

/// How well the segments in memory serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes: u64,
}

impl Segments {
    /// A map of `blocks` blocks, of which nothing is on the drive, with `image_words` in a
    /// block of its images: a multiple of 16, since headers have the bytes of 16 words.
    /// Of all segments `share` are in memory, and at least 6.
    pub(crate) fn new(blocks: u32, image_words: u32, share: f64) -> Self {
        assert_eq!(image_words % PER_BLOCK, 0, "headers are 64 bytes");
        let words = image_words / PER_BLOCK;
        let count = blocks.div_ceil(words);
        let wanted = (f64::from(count) * share).ceil() as u32;
        let most_frames = wanted.max(HOLDERS as u32 * LEAST_HELD);
        Self {
            blocks,
            words,
            most_frames,
            most_held: most_frames / HOLDERS as u32,
            most_changes: most_frames as usize * words as usize / WORDS_PER_CHANGE as usize,
            state: Mutex::new(State {
                table: vec![ABSENT; count as usize].into(),
                frames: Vec::new(),
                hand: 0,
                held: [0; HOLDERS],
                checkpoint: 0,
                places: ImagePlaces::default(),
                changes: BTreeMap::new(),
                frozen: None,
                has_waiters: false,
                hits: 0,
                misses: 0,
            }),
        }
    }

    /// Number of logical blocks.
    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Segments that one task of upkeep may hold at a time: two of them work at a time.
    pub(crate) const fn at_once(&self) -> u32 {
        let half = self.most_held / 2;
        if half < MOST_AT_ONCE {
            half
        } else {
            MOST_AT_ONCE
        }
    }

    /// The segment of a block.
    pub(crate) const fn of(&self, block: u32) -> u32 {
        block / self.words
    }

    /// The blocks of a segment.
    pub(crate) fn range(&self, segment: u32) -> Range<u32> {
        let first = segment * self.words;
        first..first.saturating_add(self.words).min(self.blocks)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    // Holding.

    /// Holds a segment for so many blocks of it, each of which is released once.
    pub(crate) fn hold(&self, segment: u32, holder: Holder, blocks: u32) -> Hold {
        let mut state = self.state();
        let state = &mut *state;
        let kind = holder as usize;
        let is_late = holder == Holder::Write && state.changes.len() >= self.most_changes;
        let frame = match state.table[segment as usize] {
            ABSENT => None,
            frame => Some(frame as usize),
        };
        let has_it = frame.is_some_and(|frame| state.frames[frame].held[kind] > 0);
        if is_late || (!has_it && state.held[kind] >= self.most_held) {
            state.has_waiters = true;
            return Hold::Full;
        }
        if let Some(frame) = frame {
            if state.frames[frame].is_loading {
                state.has_waiters = true;
                return Hold::Busy;
            }
            state.hits += 1;
            state.take(frame, holder, blocks);
            return Hold::Now;
        }
        let frame = self.free_frame(state);
        state.misses += 1;
        state.table[segment as usize] = frame as u32;
        state.frames[frame].segment = segment;
        state.take(frame, holder, blocks);
        match state.places.get(segment / PER_BLOCK, 1) {
            Some((at, _)) => {
                state.frames[frame].is_loading = true;
                Hold::Load(Load {
                    segment,
                    checkpoint: state.checkpoint,
                    at,
                })
            }
            None => {
                self.fill(state, frame, None);
                Hold::Now
            }
        }
    }

    /// A place for another segment: a new one, or that of a segment that nobody holds and
    /// that was not needed lately.
    fn free_frame(&self, state: &mut State) -> usize {
        if (state.frames.len() as u32) < self.most_frames {
            state.frames.push(Frame {
                segment: ABSENT,
                words: vec![PhysicalBlock::NOWHERE; self.words as usize].into(),
                held: [0; HOLDERS],
                is_loading: false,
                is_used: false,
            });
            return state.frames.len() - 1;
        }
        // Whoever asks holds fewer than a third of the frames, and the others at most a
        // third each: so one is held by nobody, and found in the second round at the latest.
        for _ in 0..2 * state.frames.len() {
            let at = state.hand;
            state.hand = (at + 1) % state.frames.len();
            let frame = &mut state.frames[at];
            if frame.is_held() || std::mem::take(&mut frame.is_used) {
                continue;
            }
            if let Some(place) = state.table.get_mut(frame.segment as usize) {
                *place = ABSENT;
            }
            return at;
        }
        unreachable!("holders leave a segment to each other")
    }

    /// What the segment of a frame holds: the words of its block of the image, if it has
    /// one, and the changes since.
    fn fill(&self, state: &mut State, frame: usize, base: Option<&[u32]>) {
        let segment = state.frames[frame].segment;
        let range = self.range(segment);
        let words = &mut state.frames[frame].words;
        match base {
            Some(base) => {
                let skipped = (segment % PER_BLOCK * self.words) as usize;
                words[..range.len()].copy_from_slice(&base[skipped..skipped + range.len()]);
            }
            None => words.fill(PhysicalBlock::NOWHERE),
        }
        let layers = state.frozen.iter().chain([&state.changes]);
        for (block, word) in layers.flat_map(|layer| layer.range(range.clone())) {
            words[(block - range.start) as usize] = *word;
        }
    }

    /// The logical blocks of a block of an image.
    pub(crate) fn image_range(&self, index: u32) -> Range<u32> {
        let words = self.words * PER_BLOCK;
        let first = index * words;
        first..first.saturating_add(words).min(self.blocks)
    }

    /// A segment was read: `read` is the checkpoint and the words of the block of the image
    /// that was found; `None`: none that counts. It has been held since [`Self::hold`] said so.
    pub(crate) fn loaded(
        &self,
        load: &Load,
        holder: Holder,
        blocks: u32,
        read: Option<(u64, &[u32])>,
    ) -> Loaded {
        let mut state = self.state();
        let state = &mut *state;
        let frame = state.table[load.segment as usize] as usize;
        let is_outdated = state.checkpoint != load.checkpoint;
        let range = self.image_range(load.index());
        let of_image = |(checkpoint, words): &(u64, &[u32])| {
            *checkpoint == load.checkpoint && words.len() == range.len()
        };
        match read.filter(of_image) {
            Some((_, words)) if !is_outdated => {
                state.frames[frame].is_loading = false;
                self.fill(state, frame, Some(words));
                Loaded::Now
            }
            _ => {
                state.forget(frame, holder, blocks);
                match is_outdated {
                    true => Loaded::Outdated,
                    false => Loaded::Failed,
                }
            }
        }
    }

    /// Nobody will read a segment that was to be read; it is not held any more. Whether
    /// somebody may wait for that.
    pub(crate) fn abandon(&self, load: &Load, holder: Holder, blocks: u32) -> bool {
        let mut state = self.state();
        let frame = state.table[load.segment as usize] as usize;
        state.forget(frame, holder, blocks);
        std::mem::take(&mut state.has_waiters)
    }

    /// Blocks of a segment are held no longer. Whether somebody may wait for that.
    pub(crate) fn release(&self, segment: u32, holder: Holder, blocks: u32) -> bool {
        let mut state = self.state();
        let frame = state.frame_of(segment);
        state.give(frame, holder, blocks);
        let is_free = state.frames[frame].held[holder as usize] == 0;
        is_free && std::mem::take(&mut state.has_waiters)
    }

    /// Whether somebody may be able to hold now what could not be held before.
    pub(crate) fn take_waiters(&self) -> bool {
        std::mem::take(&mut self.state().has_waiters)
    }

    // Words.

    /// The word of a block, whose segment is held.
    pub(crate) fn get(&self, block: u32) -> u32 {
        let state = self.state();
        let frame = state.frame_of(self.of(block));
        state.frames[frame].words[(block % self.words) as usize]
    }

    /// Changes the word of a block, whose segment is held; returns what it was.
    pub(crate) fn set(&self, block: u32, word: u32) -> u32 {
        let mut state = self.state();
        let frame = state.frame_of(self.of(block));
        state.changes.insert(block, word);
        let place = &mut state.frames[frame].words[(block % self.words) as usize];
        std::mem::replace(place, word)
    }

    /// Notes a change that a mount repeats, before anything is in memory.
    pub(crate) fn repeat(&self, block: u32, word: u32) {
        let mut state = self.state();
        debug_assert!(state.frames.is_empty(), "nothing was held before");
        state.changes.insert(block, word);
    }

    /// What a block of an image would hold now, if `base` is what the image that counts has
    /// of it.
    pub(crate) fn image_words(&self, index: u32, base: Option<&[u32]>) -> Vec<u32> {
        let state = self.state();
        let range = self.image_range(index);
        let nowhere = || vec![PhysicalBlock::NOWHERE; range.len()];
        let mut words = base.map_or_else(nowhere, <[u32]>::to_vec);
        let layers = state.frozen.iter().chain([&state.changes]);
        for (block, word) in layers.flat_map(|layer| layer.range(range.clone())) {
            words[(block - range.start) as usize] = *word;
        }
        words
    }

    // Checkpoints.

    /// So much has changed that a checkpoint is due, and none is being written.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        let state = self.state();
        state.frozen.is_none() && 2 * state.changes.len() >= self.most_changes
    }

    /// A checkpoint begins: the image that it writes has all changes up to now.
    pub(crate) fn begin_image(&self) {
        let mut state = self.state();
        assert!(state.frozen.is_none(), "one checkpoint at a time");
        state.frozen = Some(std::mem::take(&mut state.changes));
    }

    /// The image that was written counts from now on.
    pub(crate) fn end_image(&self, checkpoint: u64, places: ImagePlaces) {
        let mut state = self.state();
        state.frozen = None;
        (state.checkpoint, state.places) = (checkpoint, places);
    }

    /// The image that was being written will not count.
    pub(crate) fn abandon_image(&self) {
        let mut state = self.state();
        for (block, word) in state.frozen.take().unwrap_or_default() {
            state.changes.entry(block).or_insert(word);
        }
    }

    /// The checkpoint of the image that counts.
    pub(crate) fn checkpoint(&self) -> u64 {
        self.state().checkpoint
    }

    /// Where a block of the image that counts is, and how many from there on, at most `most`,
    /// are behind each other; `None`: the image does not have it, and nothing else either.
    pub(crate) fn place(&self, index: u32, most: u32) -> Option<(ImagePlace, u32)> {
        self.state().places.get(index, most)
    }

    /// How well the segments in memory serve.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.state();
        let words = state.frames.len() * self.words as usize + state.table.len();
        let frozen = state.frozen.as_ref().map_or(0, BTreeMap::len);
        let changes = (state.changes.len() + frozen) * WORDS_PER_CHANGE as usize;
        Usage {
            hits: state.hits,
            misses: state.misses,
            bytes: 4 * (words + changes) as u64,
        }
    }
}
