//! Physical region pages (PRPs): where the data of a command lies.
//!
//! Source: NVMe base specification 2.0, section 4.1.1. The first entry may begin
//! anywhere in its page, at a multiple of 4 bytes; all that follow begin a page. Up to
//! two pages fit in the command. For more, its second entry points to a list of
//! entries; if that does not fit in a memory page, the last entry of the page points
//! to the next page of the list instead of to data, but only if entries are left that
//! do not fit: a list that ends exactly at the end of a page is not chained.

use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of an entry.
const ENTRY_BYTES: u64 = 8;

/// A memory page as CC.MPS says: 4096 bytes or more, a power of two.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// `2^(12 + mps)` bytes; `mps` is at most 15.
    #[must_use]
    pub const fn from_mps(mps: u8) -> Self {
        let mps = if mps > 15 { 15 } else { mps };
        Self(12 + mps as u32)
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// Bytes from the start of a page to `address`.
    #[inline]
    const fn offset(self, address: u64) -> u64 {
        address & (self.bytes() - 1)
    }

    /// Entries of a page of a list.
    const fn entries(self) -> u64 {
        self.bytes() / ENTRY_BYTES
    }

    /// Pages that `bytes` bytes at `address` touch.
    #[must_use]
    #[inline]
    pub const fn touched(self, address: u64, bytes: u64) -> u64 {
        match bytes {
            0 => 0,
            _ => (self.offset(address) + bytes).div_ceil(self.bytes()),
        }
    }

    /// Pages of a list that is long enough for any `bytes` bytes.
    #[must_use]
    pub const fn list_pages(self, bytes: u64) -> u64 {
        // All but the first page; data that does not begin with one touches one more.
        let entries = bytes.div_ceil(self.bytes());
        let chained = self.entries() - 1;
        match entries {
            0..=1 => 0,
            // The last page of a list has an entry more than those before it.
            _ => (entries - 1).div_ceil(chained),
        }
    }
}

/// Memory for the list of one command: whole pages in one piece.
#[derive(Copy, Clone, Debug)]
pub struct PrpList<'a> {
    /// The entries.
    pub words: &'a [AtomicU64],
    /// Where the device finds them; a multiple of the page size.
    pub iova: u64,
}

/// Why data cannot be described.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrpError {
    /// PRPs hold multiples of 4.
    #[error("data at {iova:#x} is not aligned to 4 bytes")]
    Unaligned {
        /// Where it is.
        iova: u64,
    },
    /// The list is too short.
    #[error("data of {bytes} bytes needs a longer list of PRPs")]
    TooLong {
        /// Its length.
        bytes: u64,
    },
}

/// The two entries of a command with `bytes` bytes of data at `iova`, which are in one
/// piece there. Writes to `list` what does not fit in the command.
///
/// # Errors
/// [`PrpError`].
#[inline]
pub fn describe(
    page: PageSize,
    iova: u64,
    bytes: u64,
    list: PrpList<'_>,
) -> Result<(u64, u64), PrpError> {
    if iova & 3 != 0 {
        return Err(PrpError::Unaligned { iova });
    }
    let pages = page.touched(iova, bytes);
    let second = iova - page.offset(iova) + page.bytes();
    match pages {
        0 => Ok((0, 0)),
        1 => Ok((iova, 0)),
        2 => Ok((iova, second)),
        _ => {
            fill(page, second, pages - 1, list).ok_or(PrpError::TooLong { bytes })?;
            Ok((iova, list.iova))
        }
    }
}

/// Writes a list of `pages` pages from `first` on. `None`: it does not fit.
fn fill(page: PageSize, first: u64, pages: u64, list: PrpList<'_>) -> Option<()> {
    let per_page = page.entries() as usize;
    let mut left = pages;
    let mut next = first;
    let mut list_page = list.iova;
    for words in list.words.chunks_exact(per_page) {
        list_page += page.bytes();
        // The last word is data, unless it has to lead on.
        let is_last = left <= per_page as u64;
        let here = if is_last { left as usize } else { per_page - 1 };
        for word in &words[..here] {
            word.store(next.to_le(), Ordering::Relaxed);
            next += page.bytes();
        }
        left -= here as u64;
        if is_last {
            return Some(());
        }
        words[per_page - 1].store(list_page.to_le(), Ordering::Relaxed);
    }
    None
}
