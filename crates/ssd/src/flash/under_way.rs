//! Erasures that are on the flash: those that a loss of power would interrupt.

use crate::slab::Slab;

const NONE: u32 = u32::MAX;

/// Blocks whose erasures have been submitted and are not over, by the tokens of their groups.
#[derive(Clone, Debug, Default)]
pub(super) struct ErasuresUnderWay {
    /// Which of `owners` a token is, or `NONE`. Tokens are small numbers.
    of_token: Vec<u32>,
    owners: Slab<Erasing>,
    /// Blocks of the group that is being put together.
    next: Vec<usize>,
    /// Lists that are not in use.
    spare: Vec<Vec<usize>>,
}

/// What the groups of a token erase.
#[derive(Clone, Debug)]
struct Erasing {
    /// Groups that are not over, from the first that erases on: which of them ends first
    /// is not known.
    groups: u32,
    blocks: Vec<usize>,
}

impl ErasuresUnderWay {
    /// A block is erased by the group that is being put together.
    pub(super) fn push(&mut self, block: usize) {
        self.next.push(block);
    }

    /// What was put together happens at once.
    pub(super) fn at_once(&mut self) {
        self.next.clear();
    }

    /// A group is handed to the flash.
    #[inline]
    pub(super) fn submitted(&mut self, token: u32) {
        let known = self.of_token.get(token as usize).copied();
        if let Some(owner) = known.filter(|owner| *owner != NONE) {
            let erasing = self.owners.at(owner);
            erasing.groups += 1;
            erasing.blocks.append(&mut self.next);
        } else if !self.next.is_empty() {
            self.begins(token);
        }
    }

    #[cold]
    fn begins(&mut self, token: u32) {
        let spare = self.spare.pop().unwrap_or_default();
        let blocks = core::mem::replace(&mut self.next, spare);
        let owner = self.owners.insert(Erasing { groups: 1, blocks });
        let at = token as usize;
        if self.of_token.len() <= at {
            self.of_token.resize(at + 1, NONE);
        }
        self.of_token[at] = owner;
    }

    /// A group is over.
    #[inline]
    pub(super) fn done(&mut self, token: u32) {
        if let Some(owner) = self.of_token.get_mut(token as usize)
            && *owner != NONE
        {
            let erasing = self.owners.at(*owner);
            erasing.groups -= 1;
            if erasing.groups == 0 {
                let mut blocks = self.owners.remove(*owner).blocks;
                *owner = NONE;
                blocks.clear();
                self.spare.push(blocks);
            }
        }
    }

    /// Power is lost. Returns the blocks whose erasures were not over.
    pub(super) fn interrupt(&mut self) -> Vec<usize> {
        debug_assert!(self.next.is_empty(), "no group, and not at once");
        let under_way = core::mem::take(self).owners;
        let blocks = under_way.iter().flat_map(|(_, erasing)| &erasing.blocks);
        blocks.copied().collect()
    }
}
