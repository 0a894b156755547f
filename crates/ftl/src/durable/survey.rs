//! Everything that is left of the metadata, wherever it is: what a repair begins with.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::stream::StreamExt as _;

use super::reads::ahead;
use crate::error::FtlError;
use crate::format::Found;
use crate::format::anchor::{self, Position, Raw};
use crate::format::image::{self, Parity};
use crate::format::journal::{self, JournalBlock};
use crate::media::{Media, Zone};
use crate::shape::{ImageSlot, Shape};

/// The newest anchor that is whole.
pub(super) struct Newest {
    pub(super) zone: u32,
    pub(super) raw: Raw,
    /// The last of a zone is an older one, which stands elsewhere too: the newest was there.
    pub(super) is_replaced: bool,
}

/// Finds the newest anchor that is whole.
pub(super) async fn newest_anchor(
    media: &Media,
    reported: &[Zone],
) -> Result<Option<Newest>, FtlError> {
    let mut newest: Option<(u32, Raw)> = None;
    let mut numbers: Vec<u64> = Vec::new();
    let mut is_replaced = false;
    for zone in media.shape().anchor() {
        let written = reported[zone as usize].written;
        let first = numbers.len();
        each_block(media, zone, 0..written, |_, block| {
            let found = block.map_or(Ok(Found::Damaged), anchor::decode)?;
            if let Found::Valid(raw) = found {
                numbers.push(raw.sequence());
                if newest.as_ref().map(|(_, raw)| raw.sequence()) < Some(raw.sequence()) {
                    newest = Some((zone, raw));
                }
            }
            Ok(())
        })
        .await?;
        // Each has a number of its own, and behind it are higher ones.
        let (others, own) = numbers.split_at(first);
        if let Some((last, before)) = own.split_last() {
            is_replaced |= before.iter().any(|number| number >= last) || others.contains(last);
        }
    }
    Ok(newest.map(|(zone, raw)| Newest {
        zone,
        raw,
        is_replaced,
    }))
}

/// What one slot holds of an image.
#[derive(Clone, Default)]
pub(super) struct Image {
    /// The words of each block that is whole, by its index.
    pub(super) blocks: BTreeMap<u32, Vec<u32>>,
    parity: Option<Parity>,
}

impl Image {
    /// The blocks of an image of `shape` that are missing.
    pub(super) fn missing(&self, shape: &Shape) -> Vec<u32> {
        let all = 0..super::image::blocks(shape);
        all.filter(|index| !self.blocks.contains_key(index))
            .collect()
    }

    /// Makes a single block that is missing of the parity and the others. Whether
    /// it could.
    pub(super) fn restore(&mut self, shape: &Shape, uuid: u128) -> bool {
        let (&[index], Some(parity)) = (&self.missing(shape)[..], self.parity.as_ref()) else {
            return false;
        };
        if parity.count != super::image::blocks(shape) {
            return false;
        }
        let mut rest = parity.clone();
        for (index, words) in &self.blocks {
            let block = image::ImageBlock {
                checkpoint: parity.checkpoint,
                index: *index,
                words: words.clone(),
            };
            rest.add(&image::encode(shape, uuid, &block));
        }
        let first = index * shape.words_per_block();
        let words = shape.words_per_block().min(shape.logical_blocks - first);
        let block = rest.rest(shape, uuid, (index, words));
        let Some(block) = block.filter(|block| super::image::can_be(shape, block)) else {
            return false;
        };
        self.blocks.insert(index, block.words);
        true
    }
}

/// The images that a slot holds whole blocks of, by the numbers of their checkpoints.
pub(super) async fn images(
    media: &Media,
    uuid: u128,
    reported: &[Zone],
    slot: ImageSlot,
) -> Result<BTreeMap<u64, Image>, FtlError> {
    let shape = media.shape();
    let mut all: BTreeMap<u64, Image> = BTreeMap::new();
    for zone in shape.image(slot) {
        let written = reported[zone as usize].written;
        each_block(media, zone, 0..written, |_, block| {
            let Some(bytes) = block else {
                return Ok(());
            };
            if let Found::Valid(block) = image::decode(shape, uuid, bytes)
                && super::image::can_be(shape, &block)
            {
                let image = all.entry(block.checkpoint).or_default();
                image.blocks.insert(block.index, block.words);
            } else if let Found::Valid(parity) = image::decode_parity(uuid, bytes) {
                let image = all.entry(parity.checkpoint).or_default();
                image.parity = Some(parity);
            }
            Ok(())
        })
        .await?;
    }
    Ok(all)
}

/// The blocks of the journal that are whole, and the places of those that are not.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) blocks: Vec<(JournalBlock, Position)>,
    pub(super) damaged: Vec<Position>,
}

/// Reads all blocks of the zones of the journal.
pub(super) async fn journal(
    media: &Media,
    uuid: u128,
    reported: &[Zone],
) -> Result<Journal, FtlError> {
    let shape = media.shape();
    let mut all = Journal::default();
    for zone in shape.journal() {
        let written = reported[zone as usize].written;
        each_block(media, zone, 0..written, |offset, block| {
            let at = Position { zone, offset };
            let found = block.map_or(Found::Damaged, |bytes| journal::decode(shape, uuid, bytes));
            match found {
                Found::Foreign => {}
                Found::Damaged => all.damaged.push(at),
                Found::Valid(block) => all.blocks.push((block, at)),
            }
            Ok(())
        })
        .await?;
    }
    Ok(all)
}

/// Gives `take` the blocks of a zone in order; `None`: it cannot be read.
async fn each_block(
    media: &Media,
    zone: u32,
    blocks: std::ops::Range<u32>,
    mut take: impl FnMut(u32, Option<&[u8]>) -> Result<(), FtlError>,
) -> Result<(), FtlError> {
    let mut count = 0;
    let mut pieces = pin!(ahead(media, zone, blocks, &mut count));
    while let Some(piece) = pieces.next().await {
        let (first, blocks) = piece?;
        for (block, offset) in blocks.iter().zip(first..) {
            take(offset, block.as_deref().ok())?;
        }
    }
    Ok(())
}
