//! Opening a namespace: after a loss of power or a clean end, which is the same.

use std::rc::Rc;

use zonelab_device::NamespaceId;
use zonelab_host::tasks::Io;

use super::anchors::AnchorEnd;
use super::look::Anchored;
use super::reads::{BlocksRead, read_each};
use super::replay::Replayed;
use super::ring::Ring;
use super::{Durable, Now};
use crate::blocks::{LogicalBlock, PhysicalBlock};
use crate::census::Census;
use crate::error::FtlError;
use crate::format::Found;
use crate::format::anchor::{self, Raw};
use crate::format::journal::JournalBlock;
use crate::map::ForwardMap;
use crate::media::{Media, Zone, ZoneUse};
use crate::segments::Segments;
use crate::settings::FtlSettings;
use crate::shape::Shape;

/// What an anchor zone says.
#[derive(Default)]
struct AnchorZone {
    newest: Option<Raw>,
    /// What is wrong behind it.
    suspect: Option<FtlError>,
}

/// Finds what was durable, and begins an epoch if a map of so many blocks `fits`.
pub(super) async fn open(
    io: &Io,
    nsid: NamespaceId,
    fits: impl FnOnce(u32) -> Result<(), FtlError>,
) -> Result<(Durable, ForwardMap), FtlError> {
    let mut found = find(io, nsid).await?;
    fits(found.media.shape().logical_blocks)?;
    let map = found.image().await?;
    let replayed = found.journal().await?;
    for block in &replayed.blocks {
        repeat(&map, block);
    }
    let durable = begin(found, &replayed, &map).await?;
    Ok((durable, map))
}

/// The same with a map of which a share is in memory, and what it says of the data zones.
pub(super) async fn open_in_segments(
    io: &Io,
    settings: &FtlSettings,
    share: f64,
) -> Result<(Durable, ForwardMap, Census), FtlError> {
    let mut found = find(io, settings.nsid).await?;
    settings.check_map_memory(found.media.shape().logical_blocks)?;
    let replayed = found.journal().await?;
    let shape = found.media.shape();
    let segments = Segments::new(shape.logical_blocks, shape.words_per_block(), share);
    for block in &replayed.blocks {
        for_each(block, |block, to| {
            segments.repeat(block.0, PhysicalBlock::word(to));
        });
    }
    let census = found.survey(&segments).await?;
    let map = ForwardMap::in_segments(segments);
    let durable = begin(found, &replayed, &map).await?;
    Ok((durable, map, census))
}

/// Finds the newest anchor.
async fn find(io: &Io, nsid: NamespaceId) -> Result<Anchored, FtlError> {
    // What is read now is relied on, so it must not be lost any more.
    let namespace = Shape::of_namespace(io.info(), nsid)?;
    Media::new(io, Rc::new(namespace), true).flush().await?;
    Anchored::find(io, nsid).await
}

/// Begins an epoch.
async fn begin(
    found: Anchored,
    replayed: &Replayed,
    map: &ForwardMap,
) -> Result<Durable, FtlError> {
    let Anchored {
        media,
        uuid,
        reported,
        zone,
        anchor,
        read,
    } = found;
    let ring = ring_of(&media, &reported, replayed)?;
    let at = ring.position();
    let now = Now {
        epoch: anchor.epoch + 1,
        epoch_start: replayed.next,
        epoch_at: at,
        next: replayed.next,
        next_at: at,
        start: anchor.start,
        start_at: anchor.start_at,
        slot: anchor.slot,
        checkpoint: anchor.checkpoint,
        image_blocks: anchor.image_blocks,
    };
    // An anchor that was torn, and is not seen now, may be seen later: none of those that
    // there can be has the number of a later one.
    let torn = 2 * u64::from(media.shape().zone_capacity_lbas);
    let anchors = AnchorEnd::new(zone, &reported).after(anchor.sequence + torn);
    let durable = Durable::with(media, uuid, now, ring, anchors, read);
    if let Some(last) = replayed.blocks.last() {
        durable.inner.last.replace(last.changes.clone());
    }
    durable.settle(&reported, zone, replayed).await?;
    durable.inner.write_anchor(|_| ()).await?;
    if durable.room_blocks() == 0 {
        // Failures have used up the reserve: now nothing is pending that needs it.
        durable.checkpoint(map, async || Ok(())).await?;
    }
    Ok(durable)
}

/// Repeats the changes of a block.
pub(super) fn repeat(map: &ForwardMap, block: &JournalBlock) {
    for_each(block, |block, to| {
        map.set(block, to);
    });
}

/// Changes of a block of the journal, block by block.
fn for_each(block: &JournalBlock, mut f: impl FnMut(LogicalBlock, Option<PhysicalBlock>)) {
    for change in &block.changes {
        for step in 0..change.count {
            let to = change.to.map(|to| PhysicalBlock(to.0 + step));
            f(LogicalBlock(change.first.0 + step), to);
        }
    }
}

pub(super) fn ring_of(
    media: &Media,
    reported: &[Zone],
    replayed: &Replayed,
) -> Result<Ring, FtlError> {
    Ring::new(media.shape(), reported, &replayed.live, replayed.offset)
}

/// The newest anchor, and its zone.
pub(super) async fn newest_anchor(
    media: &Media,
    reported: &[Zone],
    read: &mut BlocksRead,
) -> Result<(u32, Raw), FtlError> {
    let mut found = [AnchorZone::default(), AnchorZone::default()];
    for (zone, found) in found.iter_mut().enumerate() {
        *found = last_anchor(media, zone as u32, &reported[zone], read).await?;
    }
    let sequence = |at: usize| found[at].newest.as_ref().map(Raw::sequence);
    let newest = usize::from(sequence(1) > sequence(0));
    let [first, second] = found;
    let (zone, other) = match newest {
        0 => (first, second),
        _ => (second, first),
    };
    let is_alone = zone.newest.as_ref().is_some_and(Raw::is_alone);
    // What follows the newest anchor is newer. The same goes for the other zone, unless
    // it holds an anchor that is older: it was left for this one.
    let is_older = other.newest.is_some() || is_alone;
    let suspect = zone.suspect.or(other.suspect.filter(|_| !is_older));
    match (suspect, zone.newest) {
        (Some(error), _) => Err(error),
        (None, Some(raw)) => Ok((newest as u32, raw)),
        (None, None) => Err(FtlError::NotFormatted),
    }
}

/// The last anchor of a zone: from its end back, past what was torn.
async fn last_anchor(
    media: &Media,
    zone: u32,
    of: &Zone,
    read: &mut BlocksRead,
) -> Result<AnchorZone, FtlError> {
    let mut found = AnchorZone::default();
    if of.state == ZoneUse::Offline {
        found.suspect = Some(media.corrupt(zone, 0, "a zone of anchors is offline"));
    }
    for at in (0..of.written).rev() {
        let block = read_each(media, zone, at, 1).await?.remove(0);
        read.anchors += 1;
        let suspect = match block {
            // The write that made its zone read only may have left it so.
            Err(_) if of.state == ZoneUse::ReadOnly => continue,
            Err(error) => error,
            Ok(block) => match anchor::decode(&block)? {
                Found::Valid(raw) => {
                    found.newest = Some(raw);
                    return Ok(found);
                }
                Found::Foreign => continue,
                Found::Damaged => media.corrupt(zone, at, "an anchor is damaged"),
            },
        };
        found.suspect.get_or_insert(suspect);
    }
    Ok(found)
}

impl Durable {
    /// Sees to it that no more zones are active than there may be, whatever an earlier
    /// session left. Nothing that the newest anchor needs is touched.
    pub(super) async fn settle(
        &self,
        reported: &[Zone],
        anchor_zone: u32,
        replayed: &Replayed,
    ) -> Result<(), FtlError> {
        let (inner, shape) = (&self.inner, self.shape());
        let is_active = |zone: &u32| reported[*zone as usize].is_active();
        let other = 1 - anchor_zone;
        let slot = inner.now.get().slot;
        let idle = shape.image(slot.other());
        for zone in idle.chain([other]).filter(is_active) {
            inner.media.reset(zone).await?;
        }
        for zone in shape.image(slot).filter(is_active) {
            inner.media.finish(zone).await?;
        }
        for zone in shape.journal().filter(is_active) {
            if !replayed.live.contains(&zone) {
                inner.empty_journal_zone(zone).await?;
            }
        }
        Ok(())
    }
}
