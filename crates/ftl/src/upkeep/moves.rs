//! Moving blocks from one zone to another.

use std::rc::Rc;

use futures_util::future::join_all;
use zerocopy::IntoBytes;
use zonelab_device::{Buf, CopyLimits};
use zonelab_nvme::command::CopyRange;

use super::Upkeep;
use crate::FtlError;
use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::frontier::Frontier;
use crate::metrics::Counters;
use crate::zones::Generation;

/// Blocks between two that are wanted which are read with them, since a command more
/// costs more than they do.
const READ_THROUGH: u32 = 3;
/// Zones that may fail under one batch.
const MOST_FAILURES: u32 = 4;

/// Blocks to be moved, in order of where they are in their zone.
#[derive(Debug, Default)]
pub(super) struct Batch {
    blocks: Vec<(LogicalBlock, PhysicalBlock)>,
}

/// Consecutive blocks of a zone.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: PhysicalBlock,
    count: u32,
}

impl Batch {
    pub(super) fn push(&mut self, block: LogicalBlock, at: PhysicalBlock) {
        self.blocks.push((block, at));
    }

    pub(super) fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Where its blocks are, with gaps of up to `through` blocks.
    fn runs(&self, through: u32) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for &(_, at) in &self.blocks {
            match runs.last_mut() {
                Some(run) if at.0 <= run.first.0 + run.count + through => {
                    run.count = at.0 - run.first.0 + 1;
                }
                _ => runs.push(Run {
                    first: at,
                    count: 1,
                }),
            }
        }
        runs
    }
}

impl Upkeep {
    /// Reads what is to be moved. Blocks that cannot be read leave the batch, and stay
    /// where they are. `None`: the drive is to copy them, or keeps no data.
    pub(super) async fn read_batch(&self, batch: &mut Batch) -> Result<Option<Vec<u8>>, FtlError> {
        if self.copies.get() || batch.is_empty() {
            return Ok(None);
        }
        let runs = batch.runs(READ_THROUGH);
        let shape = &self.core.shape;
        let each = runs.iter().flat_map(|run| {
            let mut first = run.first.0;
            let end = first + run.count;
            std::iter::from_fn(move || {
                (first < end).then(|| {
                    let at = first;
                    first = end.min(at + shape.max_transfer_blocks);
                    Run {
                        first: PhysicalBlock(at),
                        count: first - at,
                    }
                })
            })
        });
        let runs: Vec<Run> = each.collect();
        let read = join_all(runs.iter().map(|run| self.read_run(*run))).await;
        if !self.media().keeps_data() {
            return read
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .map(|_| None);
        }
        let mut data = Vec::with_capacity(shape.bytes(batch.len()));
        let mut kept = Vec::with_capacity(batch.blocks.len());
        let mut runs = runs.iter().zip(read).peekable();
        for &(block, at) in &batch.blocks {
            while runs
                .peek()
                .is_some_and(|(run, _)| at.0 >= run.first.0 + run.count)
            {
                runs.next();
            }
            let Some((run, read)) = runs.peek() else {
                break;
            };
            let one: Vec<u8>;
            let bytes = match read {
                Ok(bytes) => {
                    let from = shape.bytes(at.0 - run.first.0);
                    &bytes[from..from + shape.bytes(1)]
                }
                Err(error @ FtlError::Gone(_)) => return Err(error.clone()),
                Err(_) => match self
                    .read_run(Run {
                        first: at,
                        count: 1,
                    })
                    .await
                {
                    Ok(read) => {
                        one = read;
                        &one[..]
                    }
                    Err(error @ FtlError::Gone(_)) => return Err(error),
                    Err(_) => {
                        Counters::add(&self.core.counters.unreadable, 1);
                        continue;
                    }
                },
            };
            data.extend_from_slice(bytes);
            kept.push((block, at));
        }
        batch.blocks = kept;
        Ok(Some(data))
    }

    async fn read_run(&self, run: Run) -> Result<Vec<u8>, FtlError> {
        let (zone, offset) = self.core.shape.place_of(run.first);
        let zone = self.core.shape.zone_of(zone);
        self.media().read(zone, offset, run.count).await
    }

    /// Writes blocks elsewhere, and says in the map where they are now, unless they
    /// have been written again meanwhile.
    pub(super) async fn write_batch(
        self: &Rc<Self>,
        mut batch: Batch,
        mut data: Option<Vec<u8>>,
        generation: Generation,
    ) -> Result<(), FtlError> {
        let mut done = 0;
        let mut failures = 0;
        let mut starving = None;
        while done < batch.blocks.len() {
            if self.core.must_commit() {
                self.commit().await?;
            }
            if data.is_none() && !self.copies.get() && self.media().keeps_data() {
                // The drive was to copy them, and did not.
                batch.blocks.drain(..done);
                done = 0;
                data = self.read_batch(&mut batch).await?;
                continue;
            }
            let mut frontier = self.zone_to_write(generation).await?;
            let (next, left) = (frontier.next, frontier.left() as usize);
            let some = &batch.blocks[done..batch.blocks.len().min(done + left)];
            let (some, written) = match &data {
                None if self.copies.get() => {
                    let some = self.within_copy(some);
                    let _at = frontier.begin(some.len() as u32);
                    (some, self.copy(&frontier, next, some).await)
                }
                _ => {
                    let shape = &self.core.shape;
                    let _at = frontier.begin(some.len() as u32);
                    let bytes = data.as_deref().unwrap_or_default();
                    let from = shape.bytes(done as u32).min(bytes.len());
                    let zone = shape.zone_of(frontier.zone);
                    let written = self
                        .media()
                        .write(zone, next, some.len() as u32, &bytes[from..]);
                    (some, written.await)
                }
            };
            frontier.in_flight -= 1;
            match written {
                Ok(()) => {
                    starving = None;
                    self.move_to(&mut frontier, next, some).await?;
                    done += some.len();
                }
                Err(error @ FtlError::Gone(_)) => return Err(error),
                Err(error) if error.is_no_room() => {
                    // Nothing is wrong with the zone.
                    frontier.give_back(some.len() as u32);
                    self.frontiers.borrow_mut().push(frontier);
                    self.starve(&mut starving).await;
                    continue;
                }
                Err(error) => {
                    frontier.has_failed = true;
                    failures += 1;
                    if failures > MOST_FAILURES {
                        return Err(error);
                    }
                }
            }
            match frontier.is_over() {
                true => self.close(frontier),
                false => self.frontiers.borrow_mut().push(frontier),
            }
        }
        Ok(())
    }

    /// The zone that the collector writes with a generation, with room for a block at least;
    /// one of another generation if zones are critically short, or none is to be had.
    async fn zone_to_write(self: &Rc<Self>, generation: Generation) -> Result<Frontier, FtlError> {
        loop {
            let seen = self.bell.changes();
            if let Some(frontier) = self.open_frontier(|open| open.generation == generation) {
                return Ok(frontier);
            }
            if self.core.is_critical()
                && let Some(frontier) = self.open_frontier(|_| true)
            {
                return Ok(frontier);
            }
            if let Some(frontier) = self.core.zone_for_collector(generation) {
                return Ok(frontier);
            }
            if let Some(frontier) = self.open_frontier(|_| true) {
                return Ok(frontier);
            }
            if let Some(error) = self.core.failure() {
                return Err(error);
            }
            self.recycle_empty();
            self.note_room();
            self.bell.after(seen).await;
        }
    }

    /// Takes a zone that the collector writes: of those wanted, the one with most room.
    fn open_frontier(&self, is_wanted: impl Fn(&Frontier) -> bool) -> Option<Frontier> {
        let mut frontiers = self.frontiers.borrow_mut();
        let wanted = frontiers.iter().enumerate();
        let wanted = wanted.filter(|(_, frontier)| is_wanted(frontier));
        let (index, _) = wanted.max_by_key(|(_, frontier)| frontier.left())?;
        Some(frontiers.swap_remove(index))
    }

    /// Blocks were written at `next` of a zone.
    async fn move_to(
        &self,
        frontier: &mut Frontier,
        next: u32,
        blocks: &[(LogicalBlock, PhysicalBlock)],
    ) -> Result<(), FtlError> {
        let (core, zone) = (&self.core, frontier.zone);
        for ((block, _), at) in blocks.iter().zip(next..) {
            frontier.note(at, *block, 1);
        }
        let mut to = core.shape.block_at(zone, next).0;
        for some in blocks.chunks(self.held_at_once()) {
            let held: Vec<LogicalBlock> = some.iter().map(|(block, _)| *block).collect();
            self.hold(&held).await?;
            let moves = some.iter().zip(to..);
            let moves = moves.map(|(&(block, from), to)| (block, from, PhysicalBlock(to)));
            core.changes.move_each(&self.lane, moves, |from, _| {
                core.zones.add_valid(zone, 1);
                let (left, _) = core.shape.place_of(from);
                core.zones.lose_valid(left);
            });
            self.let_go(&held);
            to += some.len() as u32;
        }
        Counters::add(&core.counters.moved, blocks.len() as u64);
        Ok(())
    }

    /// As many of the first blocks as one Copy takes.
    fn within_copy<'a>(
        &self,
        blocks: &'a [(LogicalBlock, PhysicalBlock)],
    ) -> &'a [(LogicalBlock, PhysicalBlock)] {
        let Some(limits) = self.copy_limits() else {
            return blocks;
        };
        let mut ranges = 0_u32;
        let mut in_range = 0_u32;
        let mut before = None;
        for (index, (_, at)) in blocks.iter().enumerate() {
            let follows = before == at.0.checked_sub(1) && before.is_some();
            match follows && in_range < u32::from(limits.max_range_lbas) {
                true => in_range += 1,
                false => (ranges, in_range) = (ranges + 1, 1),
            }
            let is_beyond = ranges > u32::from(limits.max_ranges);
            if is_beyond || index as u32 >= limits.max_lbas {
                return &blocks[..index];
            }
            before = Some(at.0);
        }
        blocks
    }

    fn copy_limits(&self) -> Option<CopyLimits> {
        self.io.info().namespace(self.core.shape.nsid)?.copy
    }

    /// Lets the drive copy blocks to `next` of a zone. A drive that cannot is not asked
    /// again.
    async fn copy(
        &self,
        frontier: &Frontier,
        next: u32,
        blocks: &[(LogicalBlock, PhysicalBlock)],
    ) -> Result<(), FtlError> {
        let shape = &self.core.shape;
        let most = self.copy_limits().map_or(1, |limits| limits.max_range_lbas);
        let mut ranges: Vec<(u64, u16)> = Vec::new();
        for (_, at) in blocks {
            let lba = shape.lba_of(*at).0;
            match ranges.last_mut() {
                Some((first, count)) if *first + u64::from(*count) == lba && *count < most => {
                    *count += 1;
                }
                _ => ranges.push((lba, 1)),
            }
        }
        let mut list = Vec::with_capacity(ranges.len() * size_of::<CopyRange>());
        for (first, count) in &ranges {
            let range = CopyRange {
                slba: (*first).into(),
                nlb_z: (*count - 1).into(),
                ..CopyRange::default()
            };
            list.extend_from_slice(range.as_bytes());
        }
        let zone = shape.zone_of(frontier.zone);
        let ranges = ranges.len() as u16;
        let copied = self.media().copy(zone, next, ranges, Buf::from(list)).await;
        if copied.is_err() {
            // What it was about is read block by block, which tells.
            self.copies.set(false);
        }
        copied
    }
}
