//! Which blocks of the journal are where they were written: a drive that loses a write, or puts
//! it elsewhere, leaves an older block, which is whole, where another one belongs.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::survey::Journal;
use crate::format::anchor::{Anchor, Position};
use crate::format::journal::JournalBlock;
use crate::media::Zone;
use crate::shape::Shape;

type Placed = (JournalBlock, Position);
/// Zones and offsets.
type Misplaced = BTreeSet<(u32, u32)>;

/// Counts blocks that are not in their places as damaged ones.
pub(super) fn sort_out(journal: &mut Journal, anchor: &Anchor, shape: &Shape, reported: &[Zone]) {
    let mut all: Vec<Vec<Placed>> = vec![Vec::new(); reported.len()];
    for (block, at) in journal.blocks.drain(..) {
        all[at.zone as usize].push((block, at));
    }
    let mut misplaced = Misplaced::new();
    let found = of_anchor(&all, anchor, shape, reported, &mut misplaced);
    before_anchor(&all, (anchor, &found), shape, &mut misplaced);
    for (zone, placed) in (0..).zip(&mut all) {
        placed.retain(|(_, at)| !misplaced.contains(&(zone, at.offset)));
        let live = placed.iter();
        let live = live.filter(|(block, _)| block.sequence >= anchor.start);
        let live: Vec<&Placed> = live.collect();
        let kept = in_order(&live);
        let others = live.iter().map(|(_, at)| at.offset);
        let others: BTreeSet<u32> = others.filter(|offset| !kept.contains(offset)).collect();
        placed.retain(|(_, at)| !others.contains(&at.offset));
        misplaced.extend(others.into_iter().map(|offset| (zone, offset)));
    }
    journal.blocks = all.into_iter().flatten().collect();
    let places = misplaced.into_iter();
    let damaged = places.map(|(zone, offset)| Position { zone, offset });
    journal.damaged.extend(damaged);
}

/// From where on the place of each block is known, as far as the journal is of the epoch of
/// the anchor: the number of the first block, and its place.
const fn known(anchor: &Anchor) -> (u64, Position) {
    match anchor.epoch_start < anchor.start {
        true => (anchor.start, anchor.start_at),
        false => (anchor.epoch_start, anchor.epoch_at),
    }
}

/// Blocks that are older than those which the epoch of the anchor has in their places. Returns
/// the numbers of those which are there.
fn of_anchor(
    all: &[Vec<Placed>],
    anchor: &Anchor,
    shape: &Shape,
    reported: &[Zone],
    misplaced: &mut Misplaced,
) -> BTreeSet<u64> {
    let (mut next, first) = known(anchor);
    let mut found = BTreeSet::new();
    for zone in zones_from(shape, first.zone) {
        let of = &reported[zone as usize];
        let from = if zone == first.zone { first.offset } else { 0 };
        let here = all[zone as usize].iter();
        let here = here.filter(|(_, at)| at.offset >= from);
        let order = |(block, at): &Placed| {
            let wanted = (anchor.epoch, next + u64::from(at.offset - from));
            (block.epoch, block.sequence).cmp(&wanted)
        };
        let has_some = here.clone().any(|placed| order(placed).is_eq());
        if !(zone == first.zone || has_some || of.is_active()) {
            if of.is_dead() {
                continue;
            }
            break;
        }
        let is_wrong = |placed: &&Placed| match order(placed) {
            Ordering::Less => true,
            Ordering::Equal => false,
            // Newer ones are there if the ring has gone round since, and then all are.
            Ordering::Greater => has_some && placed.0.epoch == anchor.epoch,
        };
        misplaced.extend(
            here.clone()
                .filter(is_wrong)
                .map(|(_, at)| (at.zone, at.offset)),
        );
        let right = here.filter(|placed| order(placed).is_eq());
        found.extend(right.map(|(block, _)| block.sequence));
        if of.is_active() {
            break;
        }
        next += u64::from(of.written.saturating_sub(from));
    }
    found
}

/// Blocks before the epoch of the anchor that are copies of those `found` in it, or from before
/// the start of the journal.
fn before_anchor(
    all: &[Vec<Placed>],
    (anchor, found): (&Anchor, &BTreeSet<u64>),
    shape: &Shape,
    misplaced: &mut Misplaced,
) {
    let (_, end) = known(anchor);
    for zone in zones_from(shape, anchor.start_at.zone) {
        let is_first = zone == anchor.start_at.zone;
        let from = if is_first { anchor.start_at.offset } else { 0 };
        let here = all[zone as usize].iter();
        let here = here
            .filter(|(_, at)| at.offset >= from && (zone != end.zone || at.offset < end.offset));
        let is_old = |block: &JournalBlock| block.sequence < anchor.start;
        let is_in_use = is_first || here.clone().any(|(block, _)| !is_old(block));
        let is_wrong = |(block, _): &&Placed| {
            let is_copy = block.epoch == anchor.epoch && found.contains(&block.sequence);
            is_copy || is_old(block) && is_in_use
        };
        misplaced.extend(here.filter(is_wrong).map(|(_, at)| (at.zone, at.offset)));
        if zone == end.zone {
            return;
        }
    }
}

/// The zones of the ring, from that one on.
fn zones_from(shape: &Shape, zone: u32) -> impl Iterator<Item = u32> {
    let ring = shape.journal();
    let count = ring.end - ring.start;
    (0..count).map(move |step| ring.start + (zone - ring.start + step) % count)
}

/// A row of blocks: its length, and that of the epoch which it ends in.
struct Row {
    epoch: u32,
    /// Number less offset: the same for all blocks of an epoch.
    shift: i64,
    length: u32,
    last: usize,
}

/// The offsets of the most blocks of a zone that can have been written one behind the other:
/// those of an epoch without a gap, and a later epoch where an earlier one ended, or before.
fn in_order(blocks: &[&Placed]) -> BTreeSet<u32> {
    let mut rows: Vec<Row> = Vec::new();
    let mut before = Vec::with_capacity(blocks.len());
    for (last, (block, at)) in blocks.iter().enumerate() {
        let shift = block.sequence as i64 - i64::from(at.offset);
        let follows = |row: &&Row| match row.epoch.cmp(&block.epoch) {
            Ordering::Less => shift <= row.shift,
            Ordering::Equal => shift == row.shift,
            Ordering::Greater => false,
        };
        let longest = rows.iter().filter(follows).max_by_key(|row| row.length);
        before.push(longest.map(|row| row.last));
        let length = longest.map_or(0, |row| row.length) + 1;
        let epoch = block.epoch;
        let own = rows
            .iter_mut()
            .find(|row| (row.epoch, row.shift) == (epoch, shift));
        let row = Row {
            epoch,
            shift,
            length,
            last,
        };
        match own {
            Some(own) => *own = row,
            None => rows.push(row),
        }
    }
    let newest = |row: &&Row| (row.length, row.epoch, row.shift);
    let mut next = rows.iter().max_by_key(newest).map(|row| row.last);
    let mut offsets = BTreeSet::new();
    while let Some(index) = next {
        offsets.insert(blocks[index].1.offset);
        next = before[index];
    }
    offsets
}
