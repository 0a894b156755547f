//! Work that is put off: by resets until somebody writes, by programs and finishes until a cache is
//! folded.

use zonelab_device::Nanos;

use super::Flash;

/// What a drive has still to do for commands that have completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Blocks to be erased before they are programmed again.
    pub stale_blocks: u64,
    /// Bytes in the SLC cache.
    pub cached_bytes: u64,
    /// Bytes that finishes left to be programmed when the cache is folded.
    pub unfilled_bytes: u64,
    /// The least time that dies, or planes that work by themselves, take for it, all together:
    /// the erasures of blocks, and programs of what is to be folded.
    pub die_time: Nanos,
}

impl Flash {
    /// What is put off. It looks at every block.
    #[must_use]
    pub fn owed(&self) -> Owed {
        let stale = (0..self.blocks.len()).filter(|&block| self.blocks.is_stale(block));
        let stale_blocks = stale.count() as u64;
        let (cached_bytes, unfilled_bytes) = (self.cached_bytes(), self.unfilled_bytes());
        let pages = (cached_bytes + unfilled_bytes) / u64::from(self.page_bytes);
        // Planes that work together erase and program at the same time.
        let at_once = u64::from(self.layout.planes_together());
        let erase_ns = stale_blocks.saturating_mul(self.timing.erase_ns.0);
        let program_ns = pages.saturating_mul(self.timing.program_ns.0);
        Owed {
            stale_blocks,
            cached_bytes,
            unfilled_bytes,
            die_time: Nanos(erase_ns.saturating_add(program_ns) / at_once),
        }
    }
}
