//! What the erase blocks of a drive are: the one place where that is known.
//!
//! ```text
//!            program                reset
//! Erased ------------> Programmed --------> Stale
//!    ^                     ^                  |
//!    | over                | program          | erasure submitted
//!    +------- Erasing -----+ <----------------+
//! ```
//!
//! States follow the order in which operations are submitted to the flash, since a
//! unit does the programs and erasures of a block in that order ([`crate::media`]).
//! So a block may be programmed while its erasure is not over. Which erasures are not
//! over is known by the groups of operations that they are part of; it matters when
//! power is lost.
//!
//! Whoever gets to a stale block first erases it: a reset, a write or the background.
//! The designs decide when; none of them keeps a record of blocks of its own.

use crate::slab::Slab;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// It can be programmed.
    Erased = 0,
    /// Pages of it have been programmed.
    Programmed = 1,
    /// What it holds is of no use, and it has to be erased before it is programmed.
    Stale = 2,
    /// Its erasure has been submitted and is not over.
    Erasing = 3,
}

impl BlockState {
    const ALL: [Self; 4] = [Self::Erased, Self::Programmed, Self::Stale, Self::Erasing];
}

/// Bits of a word that hold the state; the others hold the erasures.
const STATE_BITS: u32 = 2;
const STATE_MASK: u32 = (1 << STATE_BITS) - 1;
/// The most erasures that a snapshot may claim for a block: no flash comes near, and
/// what a drive adds to it stays in range.
const WEAR_MAX: u32 = 1 << 29;
/// No entry.
const NONE: u32 = u32::MAX;

/// State and wear of a block as a snapshot has them. Wear that is impossible stays so.
pub(super) const fn saved_word(wear: u32, state: BlockState) -> u32 {
    match wear <= WEAR_MAX {
        true => wear << STATE_BITS | state as u32,
        false => u32::MAX,
    }
}

/// State and wear of all blocks of a drive, plane by plane: four bytes each.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    words: Vec<u32>,
    /// Erasures of all blocks, those that a loss of power interrupted included.
    erased_total: u64,
    /// Erasures that have been put together and not been submitted.
    gathered: Vec<Erasure>,
    /// Which of `groups` belongs to a token, or `NONE`. Tokens are small numbers.
    of_token: Vec<u32>,
    groups: Slab<Group>,
    /// Lists of erasures that are not in use.
    spare: Vec<Vec<Erasure>>,
}

/// An erasure of a block: the one by which its wear became so much. Once another has been
/// submitted for the block, only that one counts: a unit does them in their order, but groups
/// that they are part of can end in any.
#[derive(Clone, Copy, Debug)]
struct Erasure {
    block: usize,
    wear: u32,
}

/// Groups of operations with one token, of which at least one erases.
#[derive(Clone, Debug)]
struct Group {
    /// Those that are not over, counted from the first that erases: which of them ends
    /// first is not known.
    unfinished: u32,
    erasures: Vec<Erasure>,
}

impl Blocks {
    /// `count` erased blocks.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            words: vec![0; count],
            ..Self::default()
        }
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The state of a block.
    #[inline]
    #[must_use]
    pub fn state(&self, block: usize) -> BlockState {
        BlockState::ALL[(self.words[block] & STATE_MASK) as usize]
    }

    /// Whether a block has to be erased before it is programmed.
    #[inline]
    #[must_use]
    pub fn is_stale(&self, block: usize) -> bool {
        self.state(block) == BlockState::Stale
    }

    /// How often a block has been erased. An erasure counts from its submission.
    #[inline]
    #[must_use]
    pub fn wear(&self, block: usize) -> u32 {
        self.words[block] >> STATE_BITS
    }

    /// The wear of all blocks, in their order.
    pub fn wears(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.words.iter().map(|word| word >> STATE_BITS)
    }

    /// Erasures of all blocks since the drive was made.
    #[must_use]
    pub fn erased_total(&self) -> u64 {
        self.erased_total
    }

    #[inline]
    fn set(&mut self, block: usize, state: BlockState) {
        let word = &mut self.words[block];
        *word = *word & !STATE_MASK | state as u32;
    }

    /// A program of a page of the block is submitted.
    #[inline]
    pub(super) fn program(&mut self, block: usize) {
        assert!(
            !self.is_stale(block),
            "block {block} is erased before it is programmed"
        );
        self.set(block, BlockState::Programmed);
    }

    /// What the block holds is of no use any more.
    pub(crate) fn make_stale(&mut self, block: usize) {
        self.set(block, BlockState::Stale);
    }

    /// Puts the erasure of a block together with those that are submitted next.
    pub(crate) fn erase(&mut self, block: usize) {
        assert!(self.is_stale(block), "only stale blocks are erased");
        debug_assert!(
            self.wear(block) < u32::MAX >> STATE_BITS,
            "the wear of block {block} fits beside its state"
        );
        self.words[block] += 1 << STATE_BITS;
        self.set(block, BlockState::Erasing);
        self.erased_total += 1;
        let wear = self.wear(block);
        self.gathered.push(Erasure { block, wear });
    }

    /// What was put together takes no time, and is over.
    pub(super) fn at_once(&mut self) {
        for erasure in std::mem::take(&mut self.gathered) {
            self.is_over(erasure);
        }
    }

    /// What was put together is submitted as one group.
    #[inline]
    pub(super) fn submitted(&mut self, token: u32) {
        if !self.gathered.is_empty() || !self.groups.is_empty() {
            self.submitted_beside_erasures(token);
        }
    }

    #[cold]
    fn submitted_beside_erasures(&mut self, token: u32) {
        let known = self.of_token.get(token as usize).copied();
        if let Some(group) = known.filter(|group| *group != NONE) {
            let group = self.groups.at(group);
            group.unfinished += 1;
            group.erasures.append(&mut self.gathered);
        } else if !self.gathered.is_empty() {
            let spare = self.spare.pop().unwrap_or_default();
            let erasures = std::mem::replace(&mut self.gathered, spare);
            let group = self.groups.insert(Group {
                unfinished: 1,
                erasures,
            });
            let at = token as usize;
            if self.of_token.len() <= at {
                self.of_token.resize(at + 1, NONE);
            }
            self.of_token[at] = group;
        }
    }

    /// A group is over.
    #[inline]
    pub(super) fn done(&mut self, token: u32) {
        if !self.groups.is_empty() {
            self.done_beside_erasures(token);
        }
    }

    #[cold]
    fn done_beside_erasures(&mut self, token: u32) {
        let Some(of_token) = self.of_token.get_mut(token as usize) else {
            return;
        };
        let group = *of_token;
        if group == NONE {
            return;
        }
        let of = self.groups.at(group);
        debug_assert!(of.unfinished > 0, "group {token} ends once");
        of.unfinished -= 1;
        if of.unfinished > 0 {
            return;
        }
        *of_token = NONE;
        let mut erasures = self.groups.remove(group).erasures;
        for erasure in erasures.drain(..) {
            self.is_over(erasure);
        }
        self.spare.push(erasures);
    }

    /// The erasure of a block is over. It may have been programmed, or have become
    /// stale again, since it was submitted.
    fn is_over(&mut self, erasure: Erasure) {
        if self.is_last(erasure) && self.state(erasure.block) == BlockState::Erasing {
            self.set(erasure.block, BlockState::Erased);
        }
    }

    /// Whether no other erasure of the block has been submitted since.
    fn is_last(&self, erasure: Erasure) -> bool {
        self.wear(erasure.block) == erasure.wear
    }

    /// Blocks whose erasures are not over, in no order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = usize> + '_ {
        let groups = self.groups.iter();
        let erasures = groups.flat_map(|(_, group)| group.erasures.iter().copied());
        let last = erasures.filter(|erasure| self.is_last(*erasure));
        last.map(|erasure| erasure.block)
    }

    /// Power is lost: what runs is gone. Returns the blocks whose erasures were not
    /// over, each once, in order.
    pub(super) fn power_was_lost(&mut self) -> Vec<usize> {
        debug_assert!(
            self.gathered.is_empty(),
            "what is put together is submitted or done at once"
        );
        let mut blocks: Vec<usize> = self.unfinished().collect();
        self.groups = Slab::default();
        self.of_token.clear();
        blocks.sort_unstable();
        blocks.dedup();
        for &block in &blocks {
            let wear = self.wear(block);
            self.is_over(Erasure { block, wear });
        }
        debug_assert!(
            (0..self.len()).all(|block| self.state(block) != BlockState::Erasing),
            "no block is being erased without power"
        );
        blocks
    }

    /// State and wear of all blocks as numbers, and the erasures of all, for a snapshot.
    /// Erasures that have been submitted count as over.
    pub(super) fn save(&self) -> (Vec<u32>, u64) {
        let is_erasing = |word: u32| word & STATE_MASK == BlockState::Erasing as u32;
        let saved = |&word: &u32| match is_erasing(word) {
            true => word & !STATE_MASK | BlockState::Erased as u32,
            false => word,
        };
        (self.words.iter().map(saved).collect(), self.erased_total)
    }

    /// Takes what a snapshot holds, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about it; nothing has changed then.
    pub(super) fn restore(&mut self, words: &[u32], erased_total: u64) -> Result<(), String> {
        if words.len() != self.words.len() {
            return Err(format!("{} erase blocks", words.len()));
        }
        let is_possible = |word: &u32| {
            word >> STATE_BITS <= WEAR_MAX && word & STATE_MASK != BlockState::Erasing as u32
        };
        if let Some(block) = words.iter().position(|word| !is_possible(word)) {
            return Err(format!("state of erase block {block}"));
        }
        let sum: u64 = words.iter().map(|word| u64::from(word >> STATE_BITS)).sum();
        if sum != erased_total {
            return Err(format!("{erased_total} erasures, of blocks {sum}"));
        }
        self.words.copy_from_slice(words);
        self.erased_total = erased_total;
        Ok(())
    }

    /// Panics unless what is known of the blocks agrees: the erasures of single blocks
    /// are those of the drive, and a block is being erased exactly if a group erases it.
    ///
    /// # Panics
    /// As said. It looks at every block.
    pub fn assert_invariants(&self) {
        let sum: u64 = self.wears().map(u64::from).sum();
        assert_eq!(
            sum, self.erased_total,
            "erasures of blocks, and of the drive"
        );
        let mut erasing: Vec<usize> = self.unfinished().collect();
        erasing.sort_unstable();
        for block in 0..self.len() {
            let is_erasing = self.state(block) == BlockState::Erasing;
            let has_group = erasing.binary_search(&block).is_ok();
            assert!(
                !is_erasing || has_group,
                "the erasure of block {block} is under way and ends some time"
            );
        }
    }
}
