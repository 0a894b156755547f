//! A map of which a share is in memory, against one that is in memory as a whole.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the layer's files have more than is tried here"
)]

#[path = "../../src/blocks.rs"]
mod blocks;
#[path = "../suite/support/seeds.rs"]
mod seeds;
#[path = "../../src/segments/mod.rs"]
mod segments;
#[path = "../../src/sync.rs"]
mod sync;

use segments::{Hold, Holder, ImagePlace, ImagePlaces, Load, Loaded, Segments};
use zonelab_host::Rng;

const NOWHERE: u32 = u32::MAX;
const HOLDERS: [Holder; 3] = [Holder::Read, Holder::Write, Holder::Upkeep];

/// Images on a drive that has two places for them, as the layer has, and what is asked of
/// the map at the same time.
struct World {
    map: Segments,
    image_words: u32,
    /// What each block's word is.
    truth: Vec<u32>,
    /// By zone: the checkpoint of the image in it, and its words.
    zones: [(u64, Vec<u32>); 2],
    current: usize,
    checkpoint: u64,
    /// An image that is being written: its words so far.
    writing: Option<Vec<u32>>,
    /// Blocks that are held, with their holder.
    held: Vec<(u32, Holder)>,
    /// Reads of segments under way.
    loads: Vec<(Load, u32, Holder)>,
    next_word: u32,
}

impl World {
    fn new(rng: &mut Rng) -> Self {
        let image_words = 16 * [1, 2, 7][rng.below(3) as usize];
        let blocks = 1 + rng.below(12 * u64::from(image_words)) as u32;
        let share = [0.001, 0.2, 0.9][rng.below(3) as usize];
        Self {
            map: Segments::new(blocks, image_words, share),
            image_words,
            truth: vec![NOWHERE; blocks as usize],
            zones: [(0, Vec::new()), (0, Vec::new())],
            current: 0,
            checkpoint: 0,
            writing: None,
            held: Vec::new(),
            loads: Vec::new(),
            next_word: 0,
        }
    }

    fn any_block(&self, rng: &mut Rng) -> u32 {
        rng.below(self.truth.len() as u64) as u32
    }

    /// Somebody asks for a block.
    fn hold(&mut self, rng: &mut Rng) {
        let block = self.any_block(rng);
        let holder = HOLDERS[rng.below(3) as usize];
        let is_held = |of: &(u32, Holder)| self.map.of(of.0) == self.map.of(block);
        match self.map.hold(self.map.of(block), holder, 1) {
            Hold::Now => self.held.push((block, holder)),
            Hold::Load(load) => {
                assert!(!self.held.iter().any(is_held), "it is there");
                self.loads.push((load, block, holder));
            }
            Hold::Busy => {
                let segment = self.map.of(block);
                let mut loads = self.loads.iter();
                assert!(loads.any(|(load, ..)| load.segment == segment));
            }
            Hold::Full => {}
        }
    }

    /// A read of a segment ends; perhaps in vain.
    fn load(&mut self, rng: &mut Rng) {
        if self.loads.is_empty() {
            return;
        }
        let index = rng.below(self.loads.len() as u64) as usize;
        let (load, block, holder) = self.loads.swap_remove(index);
        let (checkpoint, image) = &self.zones[load.at.zone as usize];
        let from = (load.at.offset * self.image_words) as usize;
        let to = image.len().min(from + self.image_words as usize);
        // The zone may hold a later image by now, or a part of one.
        let words = image.get(from..to);
        let fails = rng.below(8) == 0;
        let read = words
            .filter(|_| !fails && *checkpoint == load.checkpoint)
            .map(|words| (*checkpoint, words));
        let is_there = read.is_some();
        match self.map.loaded(&load, holder, 1, read) {
            Loaded::Now => {
                assert!(is_there);
                self.held.push((block, holder));
            }
            Loaded::Outdated => assert_ne!(load.checkpoint, self.checkpoint),
            Loaded::Failed => assert!(!is_there && load.checkpoint == self.checkpoint),
        }
    }

    /// Looks at blocks that are held, changes some, and lets go of one.
    fn use_held(&mut self, rng: &mut Rng) {
        for (block, holder) in &self.held {
            let truth = &mut self.truth[*block as usize];
            assert_eq!(self.map.get(*block), *truth, "block {block}");
            if *holder != Holder::Read && rng.below(2) == 0 {
                self.next_word += 1;
                let word = [self.next_word, NOWHERE][usize::from(rng.below(4) == 0)];
                assert_eq!(self.map.set(*block, word), *truth);
                *truth = word;
            }
        }
        if !self.held.is_empty() {
            let index = rng.below(self.held.len() as u64) as usize;
            let (block, holder) = self.held.swap_remove(index);
            self.map.release(self.map.of(block), holder, 1);
        }
    }

    /// A checkpoint begins, goes on by a block, ends, or fails.
    fn write_image(&mut self, rng: &mut Rng) {
        let blocks = self.truth.len().div_ceil(self.image_words as usize) as u32;
        let Some(mut words) = self.writing.take() else {
            self.map.begin_image();
            self.zones[1 - self.current] = (0, Vec::new());
            self.writing = Some(Vec::new());
            return;
        };
        if rng.below(20) == 0 {
            self.map.abandon_image();
            return;
        }
        let index = (words.len() as u32).div_ceil(self.image_words);
        if index < blocks {
            let (of, base) = &self.zones[self.current];
            assert_eq!(*of, self.checkpoint);
            let place = self.map.place(index, 1);
            let base = place.map(|(at, count)| {
                assert_eq!((at.zone, count), (self.current as u32, 1));
                let from = (at.offset * self.image_words) as usize;
                &base[from..base.len().min(from + self.image_words as usize)]
            });
            let now = self.map.image_words(index, base);
            let range = self.map.image_range(index);
            let truth = &self.truth[range.start as usize..range.end as usize];
            assert_eq!(now, truth, "block {index} of an image");
            words.extend(now);
            self.writing = Some(words);
            return;
        }
        self.current = 1 - self.current;
        self.checkpoint += 1;
        self.zones[self.current] = (self.checkpoint, words);
        let mut places = ImagePlaces::default();
        let zone = self.current as u32;
        let mut offset = 0;
        while offset < blocks {
            let some = (1 + rng.below(4) as u32).min(blocks - offset);
            places.push(some, ImagePlace { zone, offset });
            offset += some;
        }
        self.map.end_image(self.checkpoint, places);
    }
}

#[test]
fn a_share_in_memory_says_what_the_whole_would() {
    let name = "--test segments a_share_in_memory_says_what_the_whole_would";
    seeds::each_seed(name, 300, |seed| {
        let mut rng = Rng::new(seed, 0);
        let mut world = World::new(&mut rng);
        for _ in 0..2_000 {
            match rng.below(10) {
                0..4 => world.hold(&mut rng),
                4..6 => world.load(&mut rng),
                6..9 => world.use_held(&mut rng),
                _ => world.write_image(&mut rng),
            }
        }
        let usage = world.map.usage();
        assert!(usage.hits > 0 && usage.misses > 0, "{usage:?}");
    });
}

/// None of the three kinds of holders can keep another from its share, and what programs
/// write has to wait for a checkpoint when too much has changed.
#[test]
fn holders_leave_a_share_to_each_other() {
    // Segments of one word, and six of them in memory.
    let map = Segments::new(1_000, 16, 0.001);
    for (index, holder) in (0..).zip(HOLDERS) {
        for segment in 10 * index..10 * index + 2 {
            assert_eq!(map.hold(segment, holder, 1), Hold::Now, "{holder:?}");
        }
        assert_eq!(map.hold(10 * index + 2, holder, 1), Hold::Full);
        // What it has already takes nothing more.
        assert_eq!(map.hold(10 * index, holder, 5), Hold::Now);
    }
    assert!(!map.release(0, Holder::Read, 5));
    assert!(map.release(0, Holder::Read, 1), "somebody waits for it");
    assert_eq!(map.hold(2, Holder::Read, 1), Hold::Now);
    map.set(10, 77);
    assert!(map.wants_checkpoint());
    map.begin_image();
    assert!(!map.wants_checkpoint());
    assert_eq!(map.get(10), 77);
}

/// A segment that was being read when a checkpoint ended is asked for again: what the old
/// image has, without the changes that the new one has, is nothing that ever was.
#[test]
fn what_an_old_image_has_does_not_count() {
    let map = Segments::new(32, 16, 0.01);
    let image = |zone| {
        let mut places = ImagePlaces::default();
        places.push(2, ImagePlace { zone, offset: 0 });
        places
    };
    map.end_image(1, image(4));
    let Hold::Load(load) = map.hold(17, Holder::Read, 1) else {
        panic!("it has to be read");
    };
    assert_eq!((load.at.zone, load.at.offset, load.index()), (4, 1, 1));
    map.begin_image();
    map.end_image(2, image(5));
    let old: [u32; 16] = std::array::from_fn(|at| at as u32);
    let loaded = map.loaded(&load, Holder::Read, 1, Some((1, &old)));
    assert_eq!(loaded, Loaded::Outdated);
    let Hold::Load(again) = map.hold(17, Holder::Read, 1) else {
        panic!("it is not held any more");
    };
    assert_eq!(again.at.zone, 5);
    let short = map.loaded(&again, Holder::Read, 1, Some((2, &old[..15])));
    assert_eq!(
        short,
        Loaded::Failed,
        "a block of an image that lacks a word"
    );
}
