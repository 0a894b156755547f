//! Work that is left when one stops looking: put off by resets until somebody writes, by programs
//! and finishes until a cache is folded, by writes while there is room in a buffer, and what dies
//! have begun or have in their lines.

use zonelab_device::Nanos;

use super::Flash;

/// What a drive has still to do for commands that have completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Blocks to be erased before they are programmed again.
    pub stale_blocks: u64,
    /// Bytes of the host in the write buffer that no die has been given yet.
    pub buffered_bytes: u64,
    /// Bytes in the SLC cache.
    pub cached_bytes: u64,
    /// Bytes that finishes left to be programmed when the cache is folded.
    pub unfilled_bytes: u64,
    /// What is left of the operations that dies were given, all dies or planes together: the
    /// blocks and bytes of these count as erased and programmed, and in none of the above.
    pub under_way: Nanos,
    /// The part of it that is in the busy time of the dies already ([`Media::ledger`]).
    ///
    /// [`Media::ledger`]: crate::media::Media::ledger
    pub booked: Nanos,
    /// What these operations have taken that is not in it yet.
    pub unbooked: Nanos,
    /// The least time that dies, or planes that work by themselves, take for it, all together:
    /// what is under way, the erasures of blocks, and programs of what is in the buffer, to be
    /// folded or to be filled.
    pub die_time: Nanos,
}

impl Owed {
    /// How long dies have worked that were booked as busy with `busy`.
    #[must_use]
    pub const fn done(&self, busy: Nanos) -> Nanos {
        let begun = busy.saturating_add(self.unbooked);
        begun.saturating_sub(self.booked)
    }
}

/// What the rest of a drive has left for its flash to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// Logical blocks of the host that the write buffer has given to no die.
    pub(crate) buffered_lbas: u64,
    /// Logical blocks that finishes will fill, and that the cache does not know of.
    pub(crate) unfilled_lbas: u64,
    /// Logical blocks that are in the cache and being programmed elsewhere.
    pub(crate) folding_lbas: u64,
}

impl Flash {
    /// What is put off at `now`. It looks at every block.
    pub(crate) fn owed(&self, now: Nanos, left: &Left) -> Owed {
        let stale = (0..self.blocks.len()).filter(|&block| self.blocks.is_stale(block));
        let stale_blocks = stale.count() as u64;
        let lba_bytes = u64::from(self.page_bytes / self.layout.page_lbas());
        let buffered_bytes = left.buffered_lbas * lba_bytes;
        let cached_bytes = self.cached_bytes();
        let unfilled_bytes = self.unfilled_bytes() + left.unfilled_lbas * lba_bytes;
        let to_fold = cached_bytes.saturating_sub(left.folding_lbas * lba_bytes);
        let pages =
            (buffered_bytes + to_fold + unfilled_bytes).div_ceil(u64::from(self.page_bytes));
        let erase_ns = stale_blocks.saturating_mul(self.timing.erase_ns.0);
        let program_ns = pages.saturating_mul(self.timing.program_ns.0);
        let cache_ns = self.cache_program_ns(buffered_bytes);
        // Planes that work together erase and program at the same time.
        let at_once = u64::from(self.layout.planes_together());
        let put_off = erase_ns.saturating_add(program_ns).saturating_add(cache_ns) / at_once;
        let under_way = self.media.under_way(now);
        Owed {
            stale_blocks,
            buffered_bytes,
            cached_bytes,
            unfilled_bytes,
            under_way: under_way.left,
            booked: under_way.booked,
            unbooked: under_way.unbooked,
            die_time: under_way.left.saturating_add(Nanos(put_off)),
        }
    }
}
