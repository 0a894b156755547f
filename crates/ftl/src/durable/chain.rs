//! Which blocks of a damaged journal count, and what is made of those that are missing.

use std::collections::BTreeMap;

use super::places::sort_out;
use super::survey::Journal;
use crate::format::anchor::{Anchor, Position};
use crate::format::journal::JournalBlock;
use crate::media::Zone;
use crate::shape::Shape;

/// The blocks that count, by their numbers: each of the latest epoch that has it, up to where
/// a later one begins.
pub(super) struct Counted {
    blocks: BTreeMap<u64, (JournalBlock, Position)>,
    damaged: Vec<Position>,
    /// Zones with whole blocks of any kind.
    used: Vec<u32>,
}

/// The journal from some block on.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The blocks that are there, or could be made again.
    pub(super) blocks: Vec<JournalBlock>,
    /// The number of the next one.
    pub(super) next: u64,
    /// Blocks that could be made again.
    pub(super) restored: u32,
    /// Blocks that could not: the first of each row of them, and how many.
    pub(super) gaps: Vec<(u64, u64)>,
    /// Zones of those that are there, in order.
    pub(super) live: Vec<u32>,
}

impl Counted {
    pub(super) fn of(
        mut journal: Journal,
        anchor: &Anchor,
        shape: &Shape,
        reported: &[Zone],
    ) -> Self {
        sort_out(&mut journal, anchor, shape, reported);
        let used = journal.blocks.iter().map(|(_, at)| at.zone).collect();
        let mut epochs: BTreeMap<u32, Vec<(JournalBlock, Position)>> = BTreeMap::new();
        for (block, at) in journal.blocks {
            epochs.entry(block.epoch).or_default().push((block, at));
        }
        // The epoch of the anchor begins there, whether it has blocks or not.
        epochs.entry(anchor.epoch).or_default();
        let mut blocks = BTreeMap::new();
        for (epoch, of_epoch) in epochs {
            let first = of_epoch.iter().map(|(block, _)| block.sequence).min();
            let begins = match epoch == anchor.epoch {
                true => Some(first.unwrap_or(u64::MAX).min(anchor.epoch_start)),
                false => first,
            };
            if let Some(begins) = begins {
                blocks.split_off(&begins);
            }
            let numbered = of_epoch.into_iter();
            blocks.extend(numbered.map(|(block, at)| (block.sequence, (block, at))));
        }
        Self {
            blocks,
            damaged: journal.damaged,
            used,
        }
    }

    /// One more than the highest number that is anywhere.
    pub(super) fn end(&self) -> u64 {
        self.blocks.last_key_value().map_or(0, |(last, _)| last + 1)
    }

    /// The highest epoch.
    pub(super) fn epoch(&self) -> u32 {
        let epochs = self.blocks.values().map(|(block, _)| block.epoch);
        epochs.max().unwrap_or(0)
    }

    /// The first block from which on none is missing up to `end`, or can be made again.
    pub(super) fn first_before(&self, end: u64) -> u64 {
        let mut first = end;
        while let Some(before) = first.checked_sub(1) {
            let repeats = self.blocks.get(&first);
            let can_be_made = repeats.is_some_and(|(block, _)| block.before.is_some());
            if !can_be_made && !self.blocks.contains_key(&before) {
                break;
            }
            first = before;
        }
        first
    }

    /// The first block from `least` on that is left, or that is damaged in front of it: what was
    /// before has been given back.
    pub(super) fn oldest_from(&self, least: u64, shape: &Shape, reported: &[Zone]) -> u64 {
        let Some((number, (_, at))) = self.blocks.range(least..).next() else {
            return self.end();
        };
        let damaged = self.damaged_before(*at, shape, reported);
        number.saturating_sub(damaged).max(least)
    }

    /// Blocks in a row before that place that are damaged, the zone before included.
    fn damaged_before(&self, at: Position, shape: &Shape, reported: &[Zone]) -> u64 {
        let ring = shape.journal();
        let mut at = at;
        for count in 0..=self.damaged.len() as u64 {
            if at.offset == 0 {
                let zones = ring.end - ring.start;
                let zone = ring.start + (at.zone - ring.start + zones - 1) % zones;
                let offset = reported[zone as usize].written;
                at = Position { zone, offset };
            }
            let before = at.offset.checked_sub(1);
            let before = before.map(|offset| Position { offset, ..at });
            match before.filter(|before| self.damaged.contains(before)) {
                Some(before) => at = before,
                None => return count,
            }
        }
        self.damaged.len() as u64
    }

    /// Whether the block before that place was written, and is damaged.
    fn is_damaged_before(&self, at: Position) -> bool {
        match at.offset.checked_sub(1) {
            Some(offset) => self.damaged.contains(&Position { offset, ..at }),
            None => self.damaged.iter().any(|damaged| damaged.zone != at.zone),
        }
    }

    /// The journal from `start`, which is or will be at `start_at`.
    pub(super) fn from(
        &self,
        (start, start_at): (u64, Position),
        shape: &Shape,
        reported: &[Zone],
    ) -> Chain {
        let mut chain = Chain {
            next: start,
            ..Chain::default()
        };
        let mut last = None;
        loop {
            if let Some((block, at)) = self.blocks.get(&chain.next) {
                chain.blocks.push(block.clone());
                chain.next += 1;
                if chain.live.last() != Some(&at.zone) {
                    chain.live.push(at.zone);
                }
                last = Some(*at);
                continue;
            }
            let Some((number, (block, at))) = self.blocks.range(chain.next..).next() else {
                break;
            };
            let is_damaged = !self.damaged.is_empty();
            let is_one = *number == chain.next + 1;
            if block.commit <= chain.next && !(is_damaged && !is_one || self.is_damaged_before(*at))
            {
                // Of a commit that has no end.
                break;
            }
            let repeated = block.before.as_ref();
            let missing = *number - chain.next - u64::from(repeated.is_some());
            if missing > 0 {
                chain.gaps.push((chain.next, missing));
            }
            chain.next = *number;
            if let Some(before) = repeated {
                chain.restored += 1;
                chain.blocks.push(JournalBlock {
                    sequence: number - 1,
                    commit: number - 1,
                    epoch: block.epoch,
                    changes: before.clone(),
                    before: None,
                });
            }
        }
        let behind = last.map_or(start_at, |at| Position {
            offset: at.offset + 1,
            ..at
        });
        let lost = self.damaged_behind(behind, shape, reported);
        if lost > 0 {
            chain.gaps.push((chain.next, lost));
            chain.next += lost;
        }
        if chain.live.is_empty() {
            chain.live.push(behind.zone);
        }
        chain
    }

    /// Damaged blocks behind the last that counts: in its zone, and in the one that the
    /// journal goes on in when that is full.
    fn damaged_behind(&self, end: Position, shape: &Shape, reported: &[Zone]) -> u64 {
        let ring = shape.journal();
        let next = ring.start + (end.zone - ring.start + 1) % (ring.end - ring.start);
        let here = &reported[end.zone as usize];
        let goes_on = !here.is_active() && !self.used.contains(&next);
        let is_behind = |at: &&Position| {
            at.zone == end.zone && at.offset >= end.offset || goes_on && at.zone == next
        };
        self.damaged.iter().filter(is_behind).count() as u64
    }
}
