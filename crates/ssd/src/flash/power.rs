//! The flash at a loss of power.

use zonelab_device::{Nanos, ZoneId};

use super::{BlockEvent, Flash, Target};
use crate::media::Media;

impl Flash {
    /// Power is lost at `now`: what runs and waits on the flash is gone. Returns
    /// when the last of what had been booked would have ended; nothing may be
    /// submitted before that, since bookings are not taken back.
    ///
    /// Which erasures have to be repeated follows from what zones keep.
    pub fn power_cut(&mut self, channels: u32) -> Nanos {
        let idle = Media::new(self.layout.channel_of_unit(), channels, &self.timing);
        let before = std::mem::replace(&mut self.media, idle);
        self.note(BlockEvent::PowerLoss);
        self.set_up_media();
        *self.media.ledger_mut() = before.into_ledger();
        self.media.ledger().booked_until()
    }

    /// After a loss of power, of each zone its first `host_lbas` blocks hold data: blocks
    /// of others whose erasure was not over are stale again. What was stale still is.
    pub(crate) fn blocks_after_power_loss(&mut self, host_lbas: impl Fn(ZoneId) -> u32) {
        let mut interrupted = self.blocks.power_was_lost();
        // What is in the cache is not on the blocks of its zone.
        let mut ends = Vec::new();
        if self.cache.is_some() {
            let mut lbas = vec![0; self.zones.len()];
            for (zone, physical) in self.mapping.mapped() {
                lbas[physical as usize] = host_lbas(zone);
            }
            interrupted = self.cache_after_power_loss(&lbas, interrupted);
            ends = self.folded_ends();
        }
        let page_lbas = self.layout.page_lbas();
        let kept_pages = |zone: ZoneId| {
            let end = ends.get(zone.0 as usize).copied().unwrap_or(u32::MAX);
            host_lbas(zone).min(end).div_ceil(page_lbas)
        };
        let on = (&self.layout, &mut self.blocks);
        self.mapping.power_was_lost(&interrupted, kept_pages, on);
        for zone in &mut self.zones {
            zone.erasures = 0;
        }
        self.find_stale(kept_pages);
        debug_assert!(
            self.blocks.unfinished().next().is_none(),
            "nothing is being erased without power"
        );
    }

    /// Whether an erasure that is not over is of a block of these pages of a physical zone.
    pub(crate) fn waits_for_erasure(&self, target: Target, unfinished: &[usize]) -> bool {
        if self.cache.is_some() {
            // It goes to blocks that were erased before there was room.
            return false;
        }
        let Target { physical, range } = target;
        let pages =
            self.layout.page_of(range.first)..=self.layout.page_of(range.first + range.count - 1);
        !unfinished.is_empty()
            && pages.take(self.pages_per_row as usize).any(|page| {
                let block = self.block_of_page(physical, page);
                block.is_some_and(|block| unfinished.binary_search(&block).is_ok())
            })
    }
}
