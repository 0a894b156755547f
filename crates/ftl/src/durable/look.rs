//! What a mount would find on a namespace, without a write.

use std::rc::Rc;

use zonelab_device::NamespaceId;
use zonelab_host::tasks::Io;

use super::mount::{newest_anchor, repeat, ring_of};
use super::reads::BlocksRead;
use super::replay::{self, Replayed};
use super::{Durable, Facts, image};
use crate::blocks::{DataZone, LogicalBlock, MapChange, PhysicalBlock};
use crate::census::Census;
use crate::error::FtlError;
use crate::format::anchor::Anchor;
use crate::format::journal::JournalBlock;
use crate::map::ForwardMap;
use crate::media::{Media, Zone};
use crate::segments::{ImagePlaces, Segments};
use crate::shape::{ImageSlot, Shape};

/// What is durable on a namespace, as the next mount will find it.
#[derive(Debug)]
pub struct Look {
    /// Which zones are for what.
    pub shape: Shape,
    /// What there is to tell about the metadata. Nothing has been written; what was
    /// read is what the next mount will read.
    pub facts: Facts,
    /// The zone that holds the newest anchor.
    pub anchor_zone: u32,
    /// Where each logical block is.
    pub map: ForwardMap,
    /// The journal blocks that count, in order.
    pub journal: Vec<JournalBlock>,
    /// What the drive says of each zone of the namespace.
    pub reported: Vec<Zone>,
}

/// What a zone of the namespace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Anchors.
    Anchors,
    /// The journal.
    Journal,
    /// One of the images of the map.
    Image(ImageSlot),
    /// Data.
    Data(DataZone),
}

impl Purpose {
    /// What zone `zone` of the namespace is for.
    #[must_use]
    pub fn of(shape: &Shape, zone: u32) -> Self {
        let slots = [ImageSlot::A, ImageSlot::B];
        let slot = slots
            .into_iter()
            .find(|slot| shape.image(*slot).contains(&zone));
        match slot {
            Some(slot) => Self::Image(slot),
            None if shape.anchor().contains(&zone) => Self::Anchors,
            None if shape.journal().contains(&zone) => Self::Journal,
            None => Self::Data(DataZone(zone.saturating_sub(shape.first_data_zone()))),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anchors => "anchors",
            Self::Journal => "journal",
            Self::Image(ImageSlot::A) => "image A",
            Self::Image(ImageSlot::B) => "image B",
            Self::Data(_) => "data",
        }
    }
}

impl Durable {
    /// Finds what was durable, as [`Self::open`] does, and writes nothing: neither an
    /// epoch nor anything else. What is not flushed is seen, too.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn look(io: &Io, nsid: NamespaceId) -> Result<Look, FtlError> {
        let mut found = Anchored::find(io, nsid).await?;
        let map = found.image().await?;
        let replayed = found.journal().await?;
        found.look(map, replayed)
    }
}

/// A namespace of which the newest anchor is known.
pub(crate) struct Anchored {
    pub(crate) media: Media,
    pub(crate) uuid: u128,
    pub(crate) reported: Vec<Zone>,
    /// The zone that holds the newest anchor.
    pub(super) zone: u32,
    pub(super) anchor: Anchor,
    pub(super) read: BlocksRead,
}

impl Anchored {
    /// Finds the anchor.
    pub(crate) async fn find(io: &Io, nsid: NamespaceId) -> Result<Self, FtlError> {
        let namespace = Shape::of_namespace(io.info(), nsid)?;
        let media = Media::new(io, Rc::new(namespace.clone()), true);
        let reported = media.report().await?;
        let mut read = BlocksRead::default();
        let (zone, raw) = newest_anchor(&media, &reported, &mut read).await?;
        let Some((anchor, shape)) = raw.on(&namespace)? else {
            return Err(media.corrupt(zone, 0, "the newest anchor says what cannot be"));
        };
        Ok(Self {
            media: Media::new(io, Rc::new(shape), true),
            uuid: raw.uuid,
            reported,
            zone,
            anchor,
            read,
        })
    }

    /// Reads the image that it names.
    pub(crate) async fn image(&mut self) -> Result<ForwardMap, FtlError> {
        let (media, anchor) = (&self.media, &self.anchor);
        image::read(media, self.uuid, anchor, &self.reported, &mut self.read).await
    }

    /// Counts what a map says of the data zones that consists of the image that it names and
    /// of the changes that `segments` have, and tells these where the image is.
    pub(crate) async fn survey(&mut self, segments: &Segments) -> Result<Census, FtlError> {
        let (media, anchor, uuid) = (&self.media, &self.anchor, self.uuid);
        let shape = media.shape();
        let mut census = Census::new(shape, &self.reported);
        let mut places = ImagePlaces::default();
        let mut note = |index: u32, base: Option<&[u32]>| {
            let words = segments.image_words(index, base);
            let blocks = (index * shape.words_per_block()..).map(LogicalBlock);
            for (block, word) in blocks.zip(words) {
                if let Some(at) = PhysicalBlock::from_word(word) {
                    census.note(block, at)?;
                }
            }
            Ok(())
        };
        let (reported, read) = (&self.reported, &mut self.read);
        image::each(media, uuid, anchor, reported, read, |block, at| {
            if block.index < places.count() {
                return Ok(());
            }
            places.push(1, at);
            note(block.index, Some(&block.words))
        })
        .await?;
        for index in places.count()..image::blocks(shape) {
            note(index, None)?;
        }
        segments.end_image(anchor.checkpoint, places);
        Ok(census)
    }

    /// Reads the journal behind that image.
    pub(crate) async fn journal(&mut self) -> Result<Replayed, FtlError> {
        let (media, anchor) = (&self.media, &self.anchor);
        replay::read(media, self.uuid, anchor, &self.reported, &mut self.read).await
    }

    /// What all of it says together.
    pub(crate) fn look(self, map: ForwardMap, replayed: Replayed) -> Result<Look, FtlError> {
        for block in &replayed.blocks {
            repeat(&map, block);
        }
        let shape = Shape::clone(self.media.shape());
        let ring = ring_of(&self.media, &self.reported, &replayed)?;
        let anchor = &self.anchor;
        let facts = Facts {
            uuid: self.uuid,
            epoch: anchor.epoch,
            anchor_sequence: anchor.sequence,
            checkpoint: anchor.checkpoint,
            image_slot: anchor.slot,
            image_blocks: anchor.image_blocks,
            journal_start: anchor.start,
            journal_next: replayed.next,
            journal_room_blocks: ring.room(),
            journal_total_blocks: ring.total(),
            dead_journal_zones: ring.dead(),
            read: self.read,
            anchors_written: 0,
            journal_blocks_written: 0,
            image_blocks_written: 0,
            takeovers: 0,
        };
        Ok(Look {
            shape,
            facts,
            anchor_zone: self.zone,
            map,
            journal: replayed.blocks,
            reported: self.reported,
        })
    }
}

impl Look {
    /// The map as runs: logical blocks that follow each other, and are in the same
    /// order in one zone. Those that are nowhere are left out.
    pub fn extents(&self) -> impl Iterator<Item = MapChange> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let run = self.extent_from(next)?;
            next = run.first.0 + run.count;
            Some(run)
        })
    }

    /// The first run that begins at `from` or behind.
    fn extent_from(&self, from: u32) -> Option<MapChange> {
        let end = self.shape.logical_blocks;
        let at = |block: u32| self.map.get(LogicalBlock(block));
        let first = (from..end).find(|block| at(*block).is_some())?;
        let to = at(first)?;
        let (zone, _) = self.shape.place_of(to);
        let follows = |block: &u32| {
            at(*block).is_some_and(|here| {
                let step = block - first;
                here.0.checked_sub(step) == Some(to.0) && self.shape.place_of(here).0 == zone
            })
        };
        let count = 1 + (first + 1..end).take_while(follows).count() as u32;
        Some(MapChange {
            first: LogicalBlock(first),
            count,
            to: Some(to),
        })
    }

    /// Blocks that the map knows in each data zone. Blocks of zones that there are not
    /// are left out.
    #[must_use]
    pub fn valid_blocks(&self) -> Vec<u32> {
        let mut valid = vec![0; self.shape.data_zones() as usize];
        for block in (0..self.shape.logical_blocks).map(LogicalBlock) {
            let Some(at) = self.map.get(block) else {
                continue;
            };
            let (zone, _) = self.shape.place_of(at);
            if let Some(count) = valid.get_mut(zone.0 as usize) {
                *count += 1;
            }
        }
        valid
    }
}
