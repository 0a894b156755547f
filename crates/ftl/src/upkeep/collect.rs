//! Collecting: moving what is valid out of zones, and resetting them.

use std::rc::Rc;

use futures_util::future::join;

use super::Upkeep;
use super::moves::Batch;
use crate::FtlError;
use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::durable::read_words;
use crate::format::footer;
use crate::metrics::Counters;
use crate::zones::ZoneUse;

/// If zones are critically short, this share of a zone is moved before it has to be
/// durable: so many losses of power in a row, each before anything was, cost a zone.
const CRITICAL_SHARE: u32 = 16;
/// Blocks of the map that are looked at before others may go on.
const SCAN_AT_ONCE: u32 = 1 << 20;
/// Blocks of the image of the map that are read before others may go on.
const IMAGE_AT_ONCE: u32 = 32;

impl Upkeep {
    /// Collects whenever zones are short.
    pub(super) async fn collects(self: &Rc<Self>) -> Result<(), FtlError> {
        let mut is_idle = true;
        loop {
            let seen = self.bell.changes();
            self.retry_stuck();
            let lost = self.to_evacuate.borrow_mut().pop();
            if let Some(zone) = lost {
                self.evacuate(zone).await?;
                continue;
            }
            let coming = self.core.zones.free() + self.recycling.get();
            if coming >= self.core.collect_below {
                is_idle = true;
                self.bell.after(seen).await;
                continue;
            }
            let victim = {
                let is_critical = self.core.is_critical();
                let mut victims = self.victims.borrow_mut();
                victims.choose(&self.core.zones, is_critical)?
            };
            self.core.set_has_victim(victim.is_some());
            let Some(victim) = victim else {
                self.note_room();
                self.bell.after(seen).await;
                continue;
            };
            self.core.set_full(false);
            if std::mem::take(&mut is_idle) {
                self.core.start_credit();
            }
            self.core.zones.set_state(victim, ZoneUse::Collecting);
            match self.empty(victim).await? {
                true => self.recycle(victim),
                false => {
                    self.core.zones.set_state(victim, ZoneUse::Retired);
                    self.stuck.borrow_mut().push(victim);
                }
            }
        }
    }

    /// Moves what can be read out of a zone that cannot be reset.
    async fn evacuate(self: &Rc<Self>, zone: DataZone) -> Result<(), FtlError> {
        self.empty(zone).await.map(drop)
    }

    /// Says whether there is any room left, now that the collector cannot go on.
    pub(super) fn note_room(&self) {
        let is_under_way = self.recycling.get() + self.closing.get() > 0;
        let is_full = self.core.is_critical() && !is_under_way;
        self.core.set_full(is_full);
    }

    /// Resets zones in which nothing is valid any more.
    pub(super) fn recycle_empty(self: &Rc<Self>) {
        let zones = &self.core.zones;
        let is_empty =
            |zone: &DataZone| zones.state(*zone) == ZoneUse::Closed && zones.valid(*zone) == 0;
        for zone in zones.all().filter(is_empty) {
            zones.set_state(zone, ZoneUse::Collecting);
            self.recycle(zone);
        }
    }

    /// Zones that could not be emptied may be empty by now, since their blocks were
    /// written elsewhere.
    fn retry_stuck(self: &Rc<Self>) {
        let is_empty = |zone: &mut DataZone| self.core.zones.valid(*zone) == 0;
        let empty: Vec<_> = self.stuck.borrow_mut().extract_if(.., is_empty).collect();
        for zone in empty {
            self.core.zones.set_state(zone, ZoneUse::Collecting);
            self.recycle(zone);
        }
    }

    /// Resets a zone without valid blocks as soon as that may be, beside everything else.
    pub(super) fn recycle(self: &Rc<Self>, zone: DataZone) {
        self.recycling.set(self.recycling.get() + 1);
        self.spawn(async move |upkeep| {
            upkeep.make_free(zone).await?;
            upkeep.recycling.set(upkeep.recycling.get() - 1);
            upkeep.bell.ring();
            Ok(())
        });
    }

    async fn make_free(&self, zone: DataZone) -> Result<(), FtlError> {
        let core = &self.core;
        // Who reads from now on finds nothing here; what made the blocks stale is
        // durable; and those who read before have read.
        let epoch = core.epochs.end();
        self.commit().await?;
        self.await_reads(1);
        loop {
            let seen = self.bell.changes();
            if core.epochs.are_over(epoch) {
                break;
            }
            self.bell.after(seen).await;
        }
        self.await_reads(-1);
        assert_eq!(
            core.zones.valid(zone),
            0,
            "{zone:?} is reset with valid blocks"
        );
        self.with_room(async || self.durable.secure().await).await?;
        self.footers.borrow_mut()[zone.0 as usize] = None;
        match self.media().reset(core.shape.zone_of(zone)).await {
            Ok(()) => {
                core.zones.add_free(zone);
                core.set_full(false);
                core.release();
            }
            Err(error @ FtlError::Gone(_)) => return Err(error),
            Err(_) => core.zones.set_state(zone, ZoneUse::Retired),
        }
        Counters::add(&core.counters.collected, 1);
        Ok(())
    }

    /// So many more (or fewer) zones wait for reads to end.
    fn await_reads(&self, more: i32) {
        self.awaiting.set(self.awaiting.get() + more);
        self.core.set_awaits_reads(self.awaiting.get() > 0);
    }

    /// Moves the valid blocks of a zone. Whether none is left.
    async fn empty(self: &Rc<Self>, zone: DataZone) -> Result<bool, FtlError> {
        if self.core.zones.valid(zone) == 0 {
            self.core.earn(self.core.shape.data_blocks());
            return Ok(true);
        }
        let holds = self.holds(zone).await?;
        let mut next = 0;
        let mut batch = self.next_batch(zone, &holds, &mut next).await?;
        let mut data = self.read_batch(&mut batch).await?;
        let core = &self.core;
        let generation = core.zones.generation(zone).next(core.settings.generations);
        while !batch.is_empty() || next < holds.len() as u32 {
            // The next blocks are read while these are written.
            let (read, moved) = join(
                async {
                    let mut batch = self.next_batch(zone, &holds, &mut next).await?;
                    let data = self.read_batch(&mut batch).await;
                    data.map(|data| (batch, data))
                },
                async {
                    self.write_batch(batch, data, generation).await?;
                    match self.core.is_critical() {
                        true => self.commit().await,
                        false => Ok(()),
                    }
                },
            )
            .await;
            moved?;
            (batch, data) = read?;
        }
        Ok(self.core.zones.valid(zone) == 0)
    }

    /// The next valid blocks of a zone, as many as one command moves. What is not valid
    /// is space gained.
    ///
    /// # Errors
    /// Where they are cannot be read.
    async fn next_batch(
        &self,
        zone: DataZone,
        holds: &[u32],
        next: &mut u32,
    ) -> Result<Batch, FtlError> {
        let shape = &self.core.shape;
        let mut batch = Batch::default();
        let first = *next;
        let most = match self.core.is_critical() {
            true => (shape.data_blocks() / CRITICAL_SHARE).clamp(1, shape.max_transfer_blocks),
            false => shape.max_transfer_blocks,
        };
        while batch.len() < most && *next < holds.len() as u32 {
            let rest = &holds[*next as usize..];
            let missing = (most - batch.len()) as usize;
            let some = rest.len().min(missing).min(self.held_at_once());
            let some: Vec<LogicalBlock> = rest[..some].iter().copied().map(LogicalBlock).collect();
            self.hold(&some).await?;
            for block in &some {
                let at = shape.block_at(zone, *next);
                // A block that is nowhere is in no place either.
                if self.core.changes.map.get(*block) == Some(at) {
                    batch.push(*block, at);
                }
                *next += 1;
            }
            self.let_go(&some);
        }
        self.core.earn(*next - first - batch.len());
        self.bell.ring();
        Ok(batch)
    }

    /// Which logical block each data block of a zone held when it was written.
    async fn holds(&self, zone: DataZone) -> Result<Vec<u32>, FtlError> {
        let kept = self.footers.borrow_mut()[zone.0 as usize].take();
        if let Some(holds) = kept {
            return Ok(holds);
        }
        if let Some(holds) = self.footer_of(zone).await? {
            return Ok(holds);
        }
        self.scan(zone).await
    }

    /// What the footer of a zone says; `None`: it has none that can be read.
    async fn footer_of(&self, zone: DataZone) -> Result<Option<Vec<u32>>, FtlError> {
        let shape = &self.core.shape;
        let on_drive = shape.zone_of(zone);
        let read = self
            .media()
            .read(on_drive, shape.data_blocks(), shape.footer_blocks);
        let bytes = match read.await {
            Ok(bytes) => bytes,
            Err(error @ FtlError::Gone(_)) => return Err(error),
            Err(_) => return Ok(None),
        };
        let mut holds = Vec::with_capacity(shape.data_blocks() as usize);
        for (index, block) in (0..).zip(bytes.chunks(shape.block_bytes as usize)) {
            let words = footer::decode(shape, self.durable.uuid(), on_drive, index, block);
            let Some(words) = words else {
                return Ok(None);
            };
            holds.extend(words);
        }
        holds.resize(shape.data_blocks() as usize, PhysicalBlock::NOWHERE);
        Ok(Some(holds))
    }

    /// Looks for the blocks of a zone in the map: for zones without footer, which are
    /// those that failed.
    async fn scan(&self, zone: DataZone) -> Result<Vec<u32>, FtlError> {
        let shape = &self.core.shape;
        let mut holds = vec![PhysicalBlock::NOWHERE; shape.data_blocks() as usize];
        let mut note = |block: u32, at: Option<PhysicalBlock>| {
            if let Some((of, offset)) = at.map(|at| shape.place_of(at))
                && of == zone
            {
                holds[offset as usize] = block;
            }
        };
        let map = &self.core.changes.map;
        if let Some(segments) = map.segments() {
            let count = shape.logical_blocks.div_ceil(shape.words_per_block());
            for index in (0..count).step_by(IMAGE_AT_ONCE as usize) {
                let indices = index..count.min(index + IMAGE_AT_ONCE);
                let (media, uuid) = (self.media(), self.durable.uuid());
                let words = read_words(media, uuid, segments, indices).await?;
                let first = index * shape.words_per_block();
                for (block, word) in (first..).zip(words.into_iter().flatten()) {
                    note(block, PhysicalBlock::from_word(word));
                }
            }
            return Ok(holds);
        }
        for first in (0..shape.logical_blocks).step_by(SCAN_AT_ONCE as usize) {
            let end = shape.logical_blocks.min(first.saturating_add(SCAN_AT_ONCE));
            for block in first..end {
                note(block, map.get(LogicalBlock(block)));
            }
            self.io.yield_now().await;
        }
        Ok(holds)
    }
}
