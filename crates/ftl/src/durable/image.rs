//! Images of the map, and checkpoints.

use std::ops::Range;
use std::pin::pin;

use futures_util::stream::StreamExt as _;
use zonelab_nvme::Status;

use super::reads::{BlocksRead, ahead};
use super::{Inner, Now};
use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::error::FtlError;
use crate::format::Found;
use crate::format::anchor::Anchor;
use crate::format::image::{self, ImageBlock, Parity};
use crate::map::ForwardMap;
use crate::media::{Media, Zone, ZoneUse};
use crate::segments::{ImagePlace, ImagePlaces, Segments};
use crate::shape::{ImageSlot, Shape};

/// Bytes of an image that are made and written before others get their turn.
const CHUNK_BYTES: u32 = 128 << 10;

/// What has been written of an image.
struct Made {
    places: ImagePlaces,
    /// Of the blocks written; `None`: it is written too, or nothing keeps data.
    parity: Option<Parity>,
}

/// Blocks of an image.
pub(super) const fn blocks(shape: &Shape) -> u32 {
    shape.logical_blocks.div_ceil(shape.words_per_block())
}

/// Sets a flag until it is dropped.
struct Flag<'a>(&'a std::cell::Cell<bool>);

impl<'a> Flag<'a> {
    fn raise(flag: &'a std::cell::Cell<bool>) -> Self {
        flag.set(true);
        Self(flag)
    }
}

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Inner {
    pub(super) async fn checkpoint(
        &self,
        map: &ForwardMap,
        commit_pending: impl AsyncFn() -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        let _turn = self.checkpoints.take().await;
        self.failed.replace(None);
        let running = Flag::raise(&self.is_running);
        let end = self.run_checkpoint(map, commit_pending).await;
        drop(running);
        if let Err(error) = &end {
            self.failed.replace(Some(error.clone()));
            if let Some(segments) = map.segments() {
                segments.abandon_image();
            }
        }
        self.room.ring();
        end
    }

    async fn run_checkpoint(
        &self,
        map: &ForwardMap,
        commit_pending: impl AsyncFn() -> Result<(), FtlError>,
    ) -> Result<(), FtlError> {
        if self.is_unsure.get() {
            // The other image may be the one that counts.
            self.write_anchor(|_| ()).await?;
        }
        // What was appended before is in the map already.
        let Now { next, next_at, .. } = self.now.get();
        let slot = self.now.get().slot.other();
        let checkpoint = self.now.get().checkpoint + 1;
        let aborts = self.media.aborts();
        // Of a map without blocks there is nothing to write: where all is nowhere.
        let image_blocks = match map.blocks() == 0 && self.media.keeps_data() {
            true => 0,
            false => blocks(self.shape()),
        };
        if let Some(segments) = map.segments() {
            segments.begin_image();
        }
        let places = self
            .write_image(map, slot, checkpoint, image_blocks)
            .await?;
        // The image may hold changes that are not in the journal.
        let committing = Flag::raise(&self.is_committing);
        self.room.ring();
        let committed = commit_pending().await;
        drop(committing);
        committed?;
        self.media.flush().await?;
        if self.media.aborts() != aborts {
            let zone = self.shape().image(slot).start;
            return Err(FtlError::Command {
                action: "flush",
                zone,
                lba: self.shape().lba(zone, 0).0,
                status: Status::ABORTED_BY_HOST,
            });
        }
        self.write_anchor(|now| {
            now.slot = slot;
            now.checkpoint = checkpoint;
            now.image_blocks = image_blocks;
            now.start = next;
            now.start_at = next_at;
        })
        .await?;
        if let Some(segments) = map.segments() {
            segments.end_image(checkpoint, places);
        }
        self.free_journal(next_at.zone).await
    }

    /// Empties what a mount does not need any more. What cannot be emptied now is
    /// emptied before it is written.
    async fn free_journal(&self, start: u32) -> Result<(), FtlError> {
        let freed = self.ring.borrow_mut().free_before(start);
        self.room.ring();
        for zone in freed {
            // It may have been taken, and emptied for that, meanwhile.
            if !self.ring.borrow().is_stale(zone) {
                continue;
            }
            match self.empty_journal_zone(zone).await {
                Ok(()) | Err(FtlError::Command { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn write_image(
        &self,
        map: &ForwardMap,
        slot: ImageSlot,
        checkpoint: u64,
        count: u32,
    ) -> Result<ImagePlaces, FtlError> {
        let shape = self.shape();
        let mut made = Made {
            places: ImagePlaces::default(),
            parity: self
                .media
                .keeps_data()
                .then(|| Parity::new(shape, checkpoint)),
        };
        let mut last = None;
        for zone in shape.image(slot) {
            let of = self.media.report_of(zone).await?;
            if of.is_dead() {
                continue;
            }
            if of.state != ZoneUse::Empty {
                self.media.reset(zone).await?;
            }
            if made.places.count() == count && (count == 0 || made.parity.is_none()) {
                continue;
            }
            match self
                .fill_image_zone((map, count), zone, &of, checkpoint, &mut made)
                .await
            {
                Ok(()) => {}
                Err(error @ FtlError::Command { .. }) => {
                    last = Some(error);
                    let of = self.media.report_of(zone).await?;
                    if of.is_active() {
                        self.media.finish(zone).await?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if made.places.count() == count {
            return Ok(made.places);
        }
        Err(last.unwrap_or(FtlError::DeadZone {
            zone: shape.image(slot).start,
            what: "images of the map have too few zones left",
        }))
    }

    /// Writes blocks of an image of `count`, behind those that have their places, to an empty
    /// zone, the parity behind the last of them if it has room, and makes the zone full.
    async fn fill_image_zone(
        &self,
        (map, count): (&ForwardMap, u32),
        zone: u32,
        of: &Zone,
        checkpoint: u64,
        Made { places, parity }: &mut Made,
    ) -> Result<(), FtlError> {
        let shape = self.shape();
        let chunk = (CHUNK_BYTES / shape.block_bytes).clamp(1, shape.max_transfer_blocks);
        let mut offset = 0;
        while offset < of.capacity && places.count() < count {
            let index = places.count();
            let some = chunk.min(of.capacity - offset).min(count - index);
            let mut bytes = Vec::new();
            if self.media.keeps_data() {
                let words = self.words_of(map, index..index + some).await?;
                for (words, index) in words.into_iter().zip(index..) {
                    let block = ImageBlock {
                        checkpoint,
                        index,
                        words,
                    };
                    bytes.extend(image::encode(shape, self.uuid, &block));
                }
            }
            self.media.write(zone, offset, some, &bytes).await?;
            if let Some(parity) = parity {
                let blocks = bytes.chunks_exact(shape.bytes(1));
                blocks.for_each(|block| parity.add(block));
            }
            self.count(|counts| counts.image_blocks += u64::from(some));
            places.push(some, ImagePlace { zone, offset });
            offset += some;
        }
        if offset < of.capacity
            && let Some(parity) = parity.take()
        {
            // Nothing but a repair reads it: without it an image is as good.
            let bytes = image::encode_parity(shape, self.uuid, &parity);
            self.media.write(zone, offset, 1, &bytes).await?;
            offset += 1;
        }
        if offset < of.capacity {
            // Images that are complete have no active zone.
            self.media.finish(zone).await?;
        }
        Ok(())
    }

    /// What blocks of an image of the map hold.
    async fn words_of(
        &self,
        map: &ForwardMap,
        indices: Range<u32>,
    ) -> Result<Vec<Vec<u32>>, FtlError> {
        if let Some(segments) = map.segments() {
            return read_words(&self.media, self.uuid, segments, indices).await;
        }
        let shape = self.shape();
        let words = shape.words_per_block();
        let of = |index: u32| {
            let first = index * words;
            let end = (first + words).min(shape.logical_blocks);
            let words = (first..end).map(|block| PhysicalBlock::word(map.get(LogicalBlock(block))));
            words.collect()
        };
        Ok(indices.map(of).collect())
    }
}

/// What blocks of an image of a map would hold now of which a share is in memory: what the
/// image that counts has, with the changes since.
///
/// # Errors
/// That image cannot be read.
pub(crate) async fn read_words(
    media: &Media,
    uuid: u128,
    segments: &Segments,
    indices: Range<u32>,
) -> Result<Vec<Vec<u32>>, FtlError> {
    let shape = media.shape();
    let most = (CHUNK_BYTES / shape.block_bytes).clamp(1, shape.max_transfer_blocks);
    'image: loop {
        let checkpoint = segments.checkpoint();
        let mut all = Vec::with_capacity(indices.len());
        let mut index = indices.start;
        while index < indices.end {
            let Some((at, count)) = segments.place(index, most.min(indices.end - index)) else {
                all.push(segments.image_words(index, None));
                index += 1;
                continue;
            };
            let read = media.read(at.zone, at.offset, count).await;
            if segments.checkpoint() != checkpoint {
                continue 'image;
            }
            let bytes = read?;
            for block in bytes.chunks_exact(shape.bytes(1)) {
                let base = block_of(shape, uuid, block, (checkpoint, index));
                let base = base.ok_or_else(|| media.corrupt(at.zone, at.offset, DAMAGED))?;
                all.push(segments.image_words(index, Some(&base)));
                index += 1;
            }
        }
        return Ok(all);
    }
}

/// What is wrong if a block of an image does not hold what it should.
const DAMAGED: &str = "a block of the image of the map is damaged";

/// The words of a block of the image of a checkpoint; `None`: it is not that block.
pub(crate) fn block_of(
    shape: &Shape,
    uuid: u128,
    bytes: &[u8],
    (checkpoint, index): (u64, u32),
) -> Option<Vec<u32>> {
    match image::decode(shape, uuid, bytes) {
        Found::Valid(found) if (found.checkpoint, found.index) == (checkpoint, index) => {
            Some(found.words)
        }
        _ => None,
    }
}

/// Reads the image that an anchor names, as a map.
///
/// # Errors
/// It is not whole, or a command failed.
pub(super) async fn read(
    media: &Media,
    uuid: u128,
    anchor: &Anchor,
    reported: &[Zone],
    read: &mut BlocksRead,
) -> Result<ForwardMap, FtlError> {
    let shape = media.shape();
    let map = ForwardMap::empty(shape.logical_blocks);
    each(media, uuid, anchor, reported, read, |block, _| {
        let blocks = (block.index * shape.words_per_block()..).map(LogicalBlock);
        for (at, word) in blocks.zip(&block.words) {
            map.set(at, PhysicalBlock::from_word(*word));
        }
        Ok(())
    })
    .await?;
    Ok(map)
}

/// Reads the image that an anchor names, and gives `take` its blocks in order, and where
/// they are. A block that was written to two zones, since the first one failed, is given
/// twice.
///
/// # Errors
/// It is not whole, `take` says no, or a command failed.
pub(super) async fn each(
    media: &Media,
    uuid: u128,
    anchor: &Anchor,
    reported: &[Zone],
    read: &mut BlocksRead,
    mut take: impl FnMut(&ImageBlock, ImagePlace) -> Result<(), FtlError>,
) -> Result<(), FtlError> {
    let shape = media.shape();
    let mut next = 0;
    let mut unreadable = None;
    for zone in shape.image(anchor.slot) {
        let end = reported[zone as usize].written;
        let mut offset = 0;
        // A zone whose writing failed ends early, and the next one goes on.
        'zone: while offset < end && next < anchor.image_blocks {
            // As many as are missing; more, if there are remains among them.
            let until = end.min(offset + (anchor.image_blocks - next));
            let mut pieces = pin!(ahead(media, zone, offset..until, &mut read.image));
            while let Some(piece) = pieces.next().await {
                let (first, blocks) = piece?;
                for (block, at) in blocks.into_iter().zip(first..) {
                    let block = match block {
                        Ok(block) => block,
                        Err(error) => {
                            unreadable = Some(error);
                            break 'zone;
                        }
                    };
                    let Found::Valid(found) = image::decode(shape, uuid, &block) else {
                        break 'zone;
                    };
                    if found.checkpoint != anchor.checkpoint || found.index > next {
                        break 'zone;
                    }
                    if !can_be(shape, &found) {
                        let what = "an image names a block that cannot be";
                        return Err(media.corrupt(zone, at, what));
                    }
                    take(&found, ImagePlace { zone, offset: at })?;
                    next = next.max(found.index + 1);
                }
            }
            offset = until;
        }
    }
    if next < anchor.image_blocks {
        let zone = shape.image(anchor.slot).start;
        let offset = next % shape.zone_capacity_lbas;
        let zone = zone + next / shape.zone_capacity_lbas;
        let damaged = media.corrupt(zone, offset, DAMAGED);
        return Err(unreadable.unwrap_or(damaged));
    }
    Ok(())
}

/// Whether a block has the words that it should have, and each of them can be.
pub(super) fn can_be(shape: &Shape, block: &ImageBlock) -> bool {
    let first = block.index * shape.words_per_block();
    let end = (first + shape.words_per_block()).min(shape.logical_blocks);
    let most = shape.data_zones() * shape.data_blocks();
    let is_place = |word: &u32| PhysicalBlock::from_word(*word).is_none_or(|to| to.0 < most);
    block.words.len() as u32 == end - first && block.words.iter().all(is_place)
}
