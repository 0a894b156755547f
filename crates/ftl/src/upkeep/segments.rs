//! Holding segments of the map, if only a share of it is in memory.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::Upkeep;
use crate::FtlError;
use crate::blocks::LogicalBlock;
use crate::durable::block_of;
use crate::segments::{Hold, Holder, Loaded, Segments};

impl Upkeep {
    /// Most blocks whose segments one task may hold at a time.
    pub(super) fn held_at_once(&self) -> usize {
        let segments = self.core.changes.map.segments();
        segments.map_or(usize::MAX, |segments| segments.at_once() as usize)
    }

    /// Keeps in memory where these blocks are, of which there are as many as may be held
    /// [at once](Self::held_at_once), until they are let go.
    ///
    /// # Errors
    /// That cannot be read. What was held nevertheless stays so: upkeep ends with the error.
    pub(super) async fn hold(&self, blocks: &[LogicalBlock]) -> Result<(), FtlError> {
        let Some(segments) = self.core.changes.map.segments() else {
            return Ok(());
        };
        let each = segments_of(segments, blocks).into_iter();
        let held = join_all(each.map(|segment| self.hold_one(segments, segment))).await;
        held.into_iter().collect()
    }

    /// Blocks that were held are not needed any more.
    pub(super) fn let_go(&self, blocks: &[LogicalBlock]) {
        let Some(segments) = self.core.changes.map.segments() else {
            return;
        };
        let each = segments_of(segments, blocks).into_iter();
        let may_wake = each.map(|segment| segments.release(segment, Holder::Upkeep, 1));
        if may_wake.fold(false, |any, may| any | may) {
            self.core.wake_holders();
        }
    }

    /// Who waits for segments looks again.
    pub(super) fn wake_holders(&self) {
        let segments = self.core.changes.map.segments();
        if segments.is_some_and(Segments::take_waiters) {
            self.core.wake_holders();
        }
    }

    async fn hold_one(&self, segments: &Segments, segment: u32) -> Result<(), FtlError> {
        loop {
            let seen = self.bell.changes();
            let load = match segments.hold(segment, Holder::Upkeep, 1) {
                Hold::Now => return Ok(()),
                Hold::Load(load) => load,
                Hold::Busy | Hold::Full => {
                    self.bell.after(seen).await;
                    continue;
                }
            };
            let read = self.media().read(load.at.zone, load.at.offset, 1).await;
            let identity = (load.checkpoint, load.index());
            let block = read.as_deref().ok();
            let words = block
                .and_then(|block| block_of(&self.core.shape, self.durable.uuid(), block, identity));
            let words = words.as_deref().map(|words| (load.checkpoint, words));
            let loaded = segments.loaded(&load, Holder::Upkeep, 1, words);
            self.wake_holders();
            match loaded {
                Loaded::Now => return Ok(()),
                Loaded::Outdated => {}
                Loaded::Failed => {
                    let what = "a block of the image of the map is damaged";
                    let (zone, offset) = (load.at.zone, load.at.offset);
                    let damaged = self.media().corrupt(zone, offset, what);
                    return Err(read.err().unwrap_or(damaged));
                }
            }
        }
    }
}

/// The segments of blocks, each once.
fn segments_of(segments: &Segments, blocks: &[LogicalBlock]) -> BTreeSet<u32> {
    let inside = blocks.iter().filter(|block| block.0 < segments.blocks());
    inside.map(|block| segments.of(block.0)).collect()
}
