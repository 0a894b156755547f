//! Where pages of this process are in memory, as the kernel says it
//! (`/proc/self/pagemap`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::memory::HugePageError;
use crate::pcie::dma::PAGE_BYTES;

/// Bytes of an entry, and what is in it: the page is there, and the number of its frame.
const ENTRY_BYTES: u64 = 8;
const IS_PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// The file, of this process.
pub(super) const PATH: &str = "/proc/self/pagemap";

/// Address in memory of the page that the process has at `address`.
pub(super) fn physical(pagemap: &File, address: u64) -> Result<u64, HugePageError> {
    let mut bytes = [0; ENTRY_BYTES as usize];
    let at = address / PAGE_BYTES as u64 * ENTRY_BYTES;
    let read = pagemap.read_exact_at(&mut bytes, at);
    read.map_err(|source: io::Error| HugePageError::Pagemap { source })?;
    place(u64::from_ne_bytes(bytes))
}

/// What an entry says.
fn place(entry: u64) -> Result<u64, HugePageError> {
    if entry & IS_PRESENT == 0 {
        return Err(HugePageError::NotPresent);
    }
    match entry & FRAME {
        0 => Err(HugePageError::NoFrameNumber),
        frame => Ok(frame * PAGE_BYTES as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_where_its_page_is_or_why_not() {
        let place = |entry| place(entry).map_err(|error| error.to_string());
        assert_eq!(place(IS_PRESENT | 0x12345), Ok(0x1234_5000));
        // Flags above the number are no part of it.
        assert_eq!(place(IS_PRESENT | 1 << 61 | 1 << 55 | 1), Ok(0x1000));
        assert!(place(0x12345).unwrap_err().contains("not in memory"));
        assert!(place(IS_PRESENT).unwrap_err().contains("CAP_SYS_ADMIN"));
    }
}
