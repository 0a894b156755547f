//! Making a namespace mountable again of which blocks of metadata are damaged.
//!
//! What stands twice is made again: a block of the journal is repeated by the one behind it, a
//! single block of an image follows from its parity and the others, and anchors from the one
//! before. What stands once is cut back, and said. `docs/decisions/0059-repair-of-the-layer.md`
//! has the reasons.

use std::collections::BTreeMap;
use std::rc::Rc;

use zonelab_device::NamespaceId;
use zonelab_host::tasks::Io;

use super::anchors::AnchorEnd;
use super::chain::{Chain, Counted};
use super::mount::{newest_anchor, repeat};
use super::reads::{BlocksRead, read_each};
use super::replay::Replayed;
use super::ring::Ring;
use super::survey::{self, Image};
use super::{Durable, Now, check_active};
use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::check::{Finding, check};
use crate::error::FtlError;
use crate::format::anchor::{Anchor, Position};
use crate::format::{Found, footer};
use crate::map::ForwardMap;
use crate::media::{Media, Zone, ZoneUse};
use crate::shape::{ImageSlot, Shape};

/// Something that is not as it was when the damage was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutBack {
    /// Blocks of the journal that nothing repeats.
    #[error(
        "journal blocks {first} to {} are lost: what they changed is as it was before",
        first + (count - 1)
    )]
    Journal {
        /// The first of them.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Logical blocks of which only the other image says where they are.
    #[error(
        "blocks {first} to {} are as of checkpoint {checkpoint}, if no later line says \
         otherwise",
        first + (count - 1)
    )]
    OtherImage {
        /// The first of them.
        first: u32,
        /// How many.
        count: u32,
        /// The checkpoint of that image.
        checkpoint: u64,
    },
    /// Logical blocks whose place holds something else by now: they read as zeros.
    #[error("blocks {first} to {} are lost and read as zeros", first + (count - 1))]
    Lost {
        /// The first of them.
        first: u32,
        /// How many.
        count: u32,
    },
}

/// What a repair comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Why it cannot be mounted; `None`: it can be, and nothing is to be done.
    pub damage: Option<FtlError>,
    /// The checkpoint that everything begins with, and the image slot with it.
    pub checkpoint: Option<(u64, ImageSlot)>,
    /// Newest anchors that are damaged: the one before, images and journal say the same.
    pub restored_anchors: u32,
    /// Blocks of the image that were made again.
    pub restored_image_blocks: u32,
    /// Blocks of the journal that were made again.
    pub restored_journal_blocks: u32,
    /// What is not as it was.
    pub cut_back: Vec<CutBack>,
    /// What a check finds all the same. A repair mends what a mount needs, and nothing else:
    /// a footer that is damaged is written anew when its zone is collected. Empty as long as
    /// there is damage that was not repaired.
    pub findings: Vec<Finding>,
    /// Whether it has been done.
    pub is_done: bool,
}

/// Finds what is left of the metadata of a namespace that cannot be mounted, and, with
/// `writes`, makes it mountable: a new image of the map, and an anchor that names it. A
/// namespace that can be mounted is left alone. What [`check`] finds then is said. A repair
/// that is cut can be repeated.
///
/// # Errors
/// No anchor is left, a block of the map is damaged in both images, what was formatted does
/// not fit the namespace, or a command failed.
pub async fn repair(io: &Io, nsid: NamespaceId, writes: bool) -> Result<Repair, FtlError> {
    check_active(io, nsid)?;
    let namespace = Shape::of_namespace(io.info(), nsid)?;
    Media::new(io, Rc::new(namespace), true).flush().await?;
    let damage = match Durable::look(io, nsid).await {
        Ok(_) => {
            let findings = check(io, nsid).await?.findings;
            return Ok(Repair {
                findings,
                ..Repair::default()
            });
        }
        Err(damage @ (FtlError::Corrupt { .. } | FtlError::Command { .. })) => damage,
        Err(error) => return Err(error),
    };
    let left = Left::find(io, nsid).await?;
    let mut said = Repair {
        damage: Some(damage),
        restored_anchors: u32::from(left.is_anchor_lost),
        ..Repair::default()
    };
    let begin = left.begin(&mut said)?;
    let map = left.map(&begin, &mut said).await?;
    if writes {
        left.write(&begin, &map).await?;
        Durable::look(io, nsid).await?;
        said.findings = check(io, nsid).await?.findings;
        said.is_done = true;
    }
    Ok(said)
}

/// Nothing says what a block of metadata said.
fn beyond(media: &Media, (zone, offset): (u32, u32), what: &'static str) -> FtlError {
    FtlError::BeyondRepair {
        zone,
        lba: media.shape().lba(zone, offset).0,
        what,
    }
}

/// What is left.
struct Left {
    media: Media,
    uuid: u128,
    reported: Vec<Zone>,
    /// The newest anchor that is whole, and its zone.
    anchor: Anchor,
    anchor_zone: u32,
    /// There was a newer one.
    is_anchor_lost: bool,
    images: [BTreeMap<u64, Image>; 2],
    journal: Counted,
}

/// What the map is made of.
struct Begin {
    slot: ImageSlot,
    checkpoint: u64,
    /// The words of the image, by the indices of its blocks.
    blocks: BTreeMap<u32, Vec<u32>>,
    /// Indices of the blocks of which only the other image has the words.
    others: Vec<u32>,
    chain: Chain,
}

/// Why it is not certain where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    None,
    /// A block of the journal is missing that may have moved it.
    Gap,
    /// Only the other image has it.
    Image,
}

const fn index_of(slot: ImageSlot) -> usize {
    match slot {
        ImageSlot::A => 0,
        ImageSlot::B => 1,
    }
}

impl Left {
    async fn find(io: &Io, nsid: NamespaceId) -> Result<Self, FtlError> {
        let namespace = Shape::of_namespace(io.info(), nsid)?;
        let media = Media::new(io, Rc::new(namespace.clone()), true);
        let reported = media.report().await?;
        let newest = survey::newest_anchor(&media, &reported).await?;
        let Some(newest) = newest else {
            return Err(beyond(&media, (0, 0), "no anchor is whole"));
        };
        let (anchor_zone, raw) = (newest.zone, newest.raw);
        let Some((anchor, shape)) = raw.on(&namespace)? else {
            let what = "the newest anchor says what cannot be";
            return Err(beyond(&media, (anchor_zone, 0), what));
        };
        let mut read = BlocksRead::default();
        let found = newest_anchor(&media, &reported, &mut read).await;
        let is_anchor_lost = newest.is_replaced || found.is_err();
        let media = Media::new(io, Rc::new(shape), true);
        let a = survey::images(&media, raw.uuid, &reported, ImageSlot::A).await?;
        let b = survey::images(&media, raw.uuid, &reported, ImageSlot::B).await?;
        let journal = survey::journal(&media, raw.uuid, &reported).await?;
        Ok(Self {
            journal: Counted::of(journal, &anchor, media.shape(), &reported),
            media,
            uuid: raw.uuid,
            reported,
            anchor,
            anchor_zone,
            is_anchor_lost,
            images: [a, b],
        })
    }

    fn shape(&self) -> &Shape {
        self.media.shape()
    }

    /// The image of a checkpoint in a slot, with a block that is missing made again if that
    /// can be; and how many were.
    fn image(&self, slot: ImageSlot, checkpoint: u64) -> (Image, u32) {
        let found = self.images[index_of(slot)].get(&checkpoint);
        let mut image = found.cloned().unwrap_or_default();
        let is_restored = image.restore(self.shape(), self.uuid);
        (image, is_restored.into())
    }

    /// The journal from the start of the newest anchor that is whole.
    fn chain(&self) -> Chain {
        let start = (self.anchor.start, self.anchor.start_at);
        self.journal.from(start, self.shape(), &self.reported)
    }

    /// Chooses an image, and the part of the journal behind it.
    fn begin(&self, said: &mut Repair) -> Result<Begin, FtlError> {
        let mut begin = self.of_anchor(said)?;
        let is_whole = begin.others.is_empty() && begin.chain.gaps.is_empty();
        let newer = match self.is_anchor_lost && !is_whole {
            true => self.of_newer_image(),
            false => None,
        };
        if let Some((newer, restored)) = newer {
            said.restored_image_blocks = restored;
            said.cut_back.clear();
            begin = newer;
        }
        let committed = self.anchor.committed;
        if let Some(count) = committed
            .checked_sub(begin.chain.next)
            .filter(|count| *count > 0)
        {
            begin.chain.gaps.push((begin.chain.next, count));
            begin.chain.next = committed;
        }
        said.checkpoint = Some((begin.checkpoint, begin.slot));
        said.restored_journal_blocks = begin.chain.restored;
        let gaps = begin.chain.gaps.iter();
        said.cut_back
            .extend(gaps.map(|(first, count)| CutBack::Journal {
                first: *first,
                count: *count,
            }));
        Ok(begin)
    }

    /// With the image that the newest anchor names which is whole.
    fn of_anchor(&self, said: &mut Repair) -> Result<Begin, FtlError> {
        let (slot, checkpoint) = (self.anchor.slot, self.anchor.checkpoint);
        let (image, restored) = match self.anchor.image_blocks {
            0 => (Image::default(), 0),
            _ => self.image(slot, checkpoint),
        };
        said.restored_image_blocks = restored;
        let mut begin = Begin {
            slot,
            checkpoint,
            others: Vec::new(),
            chain: self.chain(),
            blocks: image.blocks.clone(),
        };
        let missing = match self.anchor.image_blocks {
            0 => Vec::new(),
            _ => image.missing(self.shape()),
        };
        if missing.is_empty() {
            return Ok(begin);
        }
        let others = self.images[index_of(slot.other())].keys();
        let Some(of_other) = others.copied().max() else {
            return self.of_newer_or(begin, slot, missing[0]);
        };
        let (other, _) = self.image(slot.other(), of_other);
        for index in missing {
            let Some(words) = other.blocks.get(&index) else {
                return self.of_newer_or(begin, slot, index);
            };
            begin.blocks.insert(index, words.clone());
            begin.others.push(index);
            let words = self.shape().words_per_block();
            said.cut_back.push(CutBack::OtherImage {
                first: index * words,
                count: words.min(self.shape().logical_blocks - index * words),
                checkpoint: of_other,
            });
        }
        Ok(begin)
    }

    /// A block of the map is in neither image: `begin` is good for nothing but to be replaced
    /// by an image that a lost anchor named.
    fn of_newer_or(
        &self,
        mut begin: Begin,
        slot: ImageSlot,
        index: u32,
    ) -> Result<Begin, FtlError> {
        if self.is_anchor_lost && self.of_newer_image().is_some() {
            begin.others.push(index);
            return Ok(begin);
        }
        let capacity = self.shape().zone_capacity_lbas;
        let zone = self.shape().image(slot).start + index / capacity;
        let what = "this block of the map is in neither image";
        Err(beyond(&self.media, (zone, index % capacity), what))
    }

    /// With an image that is newer than that of the newest anchor that is whole: the lost one
    /// named it, and where the journal starts for it, which nobody knows now. Journal blocks from
    /// before its start, repeated too, change nothing; those of which it is not known count.
    fn of_newer_image(&self) -> Option<(Begin, u32)> {
        let slots = [ImageSlot::A, ImageSlot::B];
        let numbers = slots.into_iter().flat_map(|slot| {
            let of_slot = self.images[index_of(slot)].keys();
            of_slot.map(move |checkpoint| (*checkpoint, slot))
        });
        let newer = numbers.filter(|(of, _)| *of > self.anchor.checkpoint);
        let (checkpoint, slot) = newer.max_by_key(|(of, _)| *of)?;
        let (image, restored) = self.image(slot, checkpoint);
        if !image.missing(self.shape()).is_empty() {
            return None;
        }
        let (start, at) = (self.anchor.start, self.anchor.start_at);
        let start = self
            .journal
            .oldest_from(start, self.shape(), &self.reported);
        let begin = Begin {
            slot,
            checkpoint,
            blocks: image.blocks,
            others: Vec::new(),
            chain: self.journal.from((start, at), self.shape(), &self.reported),
        };
        Some((begin, restored))
    }

    /// The map as the image and the journal have it, without what cannot be.
    async fn map(&self, begin: &Begin, said: &mut Repair) -> Result<ForwardMap, FtlError> {
        let shape = self.shape();
        let words = shape.words_per_block();
        let map = ForwardMap::empty(shape.logical_blocks);
        for (index, of) in &begin.blocks {
            for (block, word) in (index * words..).zip(of) {
                map.set(LogicalBlock(block), PhysicalBlock::from_word(*word));
            }
        }
        // No zone was reset that a block at the end of the journal made needless, if that is
        // the only one missing: what it changed is where it was before.
        let gap = match begin.chain.gaps[..] {
            [(first, 1)] if first + 1 == begin.chain.next => None,
            _ => begin.chain.gaps.last().map(|(first, _)| *first),
        };
        let doubt = gap.map_or(Doubt::None, |_| Doubt::Gap);
        let mut doubts = vec![doubt; shape.logical_blocks as usize];
        if !begin.others.is_empty() {
            self.repeat_older(begin, &map);
            for index in &begin.others {
                let end = shape.logical_blocks.min((index + 1) * words);
                doubts[(index * words) as usize..end as usize].fill(Doubt::Image);
            }
        }
        let mut later = vec![u32::MAX; shape.data_zones() as usize];
        for block in &begin.chain.blocks {
            repeat(&map, block);
            if gap.is_some_and(|gap| block.sequence <= gap) {
                continue;
            }
            for change in &block.changes {
                let end = change.first.0 + change.count;
                doubts[change.first.0 as usize..end as usize].fill(Doubt::None);
                let place = change.to.map(|to| shape.place_of(to));
                if let Some((zone, offset)) = place
                    && let Some(least) = later.get_mut(zone.0 as usize)
                {
                    *least = offset.min(*least);
                }
            }
        }
        if doubts.iter().any(|doubt| *doubt != Doubt::None) {
            let lost = self.impossible(&map, &doubts, &later).await?;
            for row in lost.chunk_by(|one, next| one + 1 == *next) {
                said.cut_back.push(CutBack::Lost {
                    first: row[0],
                    count: row.len() as u32,
                });
            }
            for block in lost {
                map.set(LogicalBlock(block), None);
            }
        }
        Ok(map)
    }

    /// Repeats what is left of the journal before the image that is damaged, for the blocks
    /// that are of the older one.
    fn repeat_older(&self, begin: &Begin, map: &ForwardMap) {
        let words = self.shape().words_per_block();
        let start = self.journal.first_before(self.anchor.start);
        let at = self.anchor.start_at;
        let before = self.journal.from((start, at), self.shape(), &self.reported);
        let before = before.blocks.iter();
        let before = before.filter(|block| block.sequence < self.anchor.start);
        for change in before.flat_map(|block| &block.changes) {
            for step in 0..change.count {
                let block = change.first.0 + step;
                if begin.others.contains(&(block / words)) {
                    let to = change.to.map(|to| PhysicalBlock(to.0 + step));
                    map.set(LogicalBlock(block), to);
                }
            }
        }
    }

    /// The blocks of which it is not certain where they are, and whose place is not written,
    /// is another block's, or holds another one as the footer of its zone says.
    ///
    /// Of a zone without a footer nobody knows whether it was reset since. So blocks of the
    /// other image are not taken to be there; and those from before a gap of the journal are
    /// if no later block of the journal has written before them: `later` has the first
    /// offset in each zone of which that is true.
    async fn impossible(
        &self,
        map: &ForwardMap,
        doubts: &[Doubt],
        later: &[u32],
    ) -> Result<Vec<u32>, FtlError> {
        let shape = self.shape();
        let places = shape.data_zones() as usize * shape.data_blocks() as usize;
        let mut owners = vec![0u8; places];
        let at = |block: u32| map.get(LogicalBlock(block));
        for place in (0..shape.logical_blocks).filter_map(at) {
            if let Some(owners) = owners.get_mut(place.0 as usize) {
                *owners = owners.saturating_add(1);
            }
        }
        let mut footers = Vec::new();
        for zone in (0..shape.data_zones()).map(DataZone) {
            footers.push(self.footer(zone).await?);
        }
        let is_possible = |block: u32, doubt: Doubt| {
            let Some(place) = at(block) else {
                return true;
            };
            let (zone, offset) = shape.place_of(place);
            let Some(of) = self.reported.get(shape.zone_of(zone) as usize) else {
                return false;
            };
            let says = footers.get(zone.0 as usize).and_then(Option::as_ref);
            let says = says.and_then(|words| words.get(offset as usize));
            offset < of.written
                && owners
                    .get(place.0 as usize)
                    .is_some_and(|owners| *owners == 1)
                && match (says, doubt) {
                    (Some(says), _) => *says == block,
                    (None, Doubt::Image) => false,
                    (None, _) => later
                        .get(zone.0 as usize)
                        .is_none_or(|later| offset < *later),
                }
        };
        let doubtful = (0..)
            .zip(doubts)
            .filter(|(_, doubt)| **doubt != Doubt::None);
        let lost = doubtful.filter(|(block, doubt)| !is_possible(*block, **doubt));
        Ok(lost.map(|(block, _)| block).collect())
    }

    /// What the footer of a data zone says, if it has one that is whole.
    async fn footer(&self, zone: DataZone) -> Result<Option<Vec<u32>>, FtlError> {
        let shape = self.shape();
        let on_drive = shape.zone_of(zone);
        if self.reported[on_drive as usize].state != ZoneUse::Full {
            return Ok(None);
        }
        let first = shape.data_blocks();
        let mut words = Vec::new();
        let blocks = read_each(&self.media, on_drive, first, shape.footer_blocks).await?;
        for (index, block) in (0..).zip(blocks) {
            let found = block.map_or(Found::Damaged, |block| {
                footer::look(shape, self.uuid, on_drive, index, &block)
            });
            match found {
                Found::Valid(of) => words.extend(of),
                Found::Damaged | Found::Foreign => return Ok(None),
            }
        }
        Ok(Some(words))
    }

    /// Writes an image of the map to the slot that nothing of it is read from, and an anchor;
    /// only then is the journal emptied.
    async fn write(&self, begin: &Begin, map: &ForwardMap) -> Result<(), FtlError> {
        let shape = self.shape();
        let next = begin.chain.next.max(self.journal.end());
        let next = next.max(self.anchor.committed);
        let live = &begin.chain.live;
        let current = *live.last().expect("a chain has a zone");
        let offset = self.reported[current as usize].written;
        let ring = Ring::new(shape, &self.reported, live, offset)?;
        let at: Position = ring.position();
        let numbers = self.images.iter().flat_map(BTreeMap::keys).copied();
        let now = Now {
            epoch: self.anchor.epoch.max(self.journal.epoch()) + 1,
            epoch_start: next,
            epoch_at: at,
            next,
            next_at: at,
            start: next,
            start_at: at,
            // If both images are needed, the damaged one is written over.
            slot: match begin.others.is_empty() {
                true => begin.slot,
                false => begin.slot.other(),
            },
            checkpoint: numbers.max().unwrap_or(0).max(self.anchor.checkpoint),
            image_blocks: 0,
        };
        // No anchor that is damaged has the number of a later one.
        let skipped = 4 * u64::from(shape.zone_capacity_lbas);
        let anchors = AnchorEnd::new(self.anchor_zone, &self.reported);
        let anchors = anchors.after(self.anchor.sequence + skipped);
        let media = self.media.clone();
        let read = BlocksRead::default();
        let durable = Durable::with(media, self.uuid, now, ring, anchors, read);
        let replayed = Replayed {
            blocks: Vec::new(),
            next,
            live: live.clone(),
            offset,
        };
        durable
            .settle(&self.reported, self.anchor_zone, &replayed)
            .await?;
        durable.checkpoint(map, async || Ok(())).await?;
        for zone in shape.journal().filter(|zone| *zone != current) {
            let of = self.media.report_of(zone).await?;
            if of.written > 0 && !of.is_dead() {
                durable.inner.empty_journal_zone(zone).await?;
            }
        }
        self.media.flush().await
    }
}
