//! The way along physical region pages, from the controller's side.
//!
//! Written from the text of the base specification 2.0, section 4.1.1, and from nothing
//! of the driver's, so that each checks the other.

use zonelab_driver::pcie::HostMemory;
use zonelab_driver::pcie::memory::AccessFault;

/// Bytes of a memory page (CC.MPS 0).
pub const PAGE_BYTES: u64 = 4096;

/// Why PRPs lead nowhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrpFault {
    /// An entry that must begin a page does not, or the first is not aligned to 4.
    #[error("the PRP entry {entry:#x} has an offset where none is allowed")]
    Offset {
        /// The entry.
        entry: u64,
    },
    /// A list is in memory that is not mapped.
    #[error(transparent)]
    Access(#[from] AccessFault),
}

/// A piece of data: address and bytes.
pub type Piece = (u64, usize);

/// The pieces of `bytes` bytes of data that begin at `prp1` and go on as `prp2` says.
///
/// # Errors
/// [`PrpFault`].
pub fn pieces(
    memory: &HostMemory,
    (prp1, prp2): (u64, u64),
    bytes: usize,
) -> Result<Vec<Piece>, PrpFault> {
    let mut pieces = Vec::new();
    if bytes == 0 {
        return Ok(pieces);
    }
    if !prp1.is_multiple_of(4) {
        return Err(PrpFault::Offset { entry: prp1 });
    }
    let in_first = (PAGE_BYTES - prp1 % PAGE_BYTES) as usize;
    let first = bytes.min(in_first);
    pieces.push((prp1, first));
    let mut left = bytes - first;
    if left == 0 {
        return Ok(pieces);
    }
    // Up to a page more: the second entry is that page.
    if left <= PAGE_BYTES as usize {
        pieces.push((whole_page(prp2)?, left));
        return Ok(pieces);
    }
    // Else it points to a list, which may begin within a page, at a multiple of 8.
    if !prp2.is_multiple_of(8) {
        return Err(PrpFault::Offset { entry: prp2 });
    }
    let mut at = prp2;
    while left > 0 {
        let mut bytes = [0; 8];
        memory.read(at, &mut bytes)?;
        let entry = whole_page(u64::from_le_bytes(bytes))?;
        let is_last_of_page = (at + 8).is_multiple_of(PAGE_BYTES);
        if is_last_of_page && left > PAGE_BYTES as usize {
            // More than this entry could hold: it leads to the next page of the list.
            at = entry;
            continue;
        }
        let piece = left.min(PAGE_BYTES as usize);
        pieces.push((entry, piece));
        left -= piece;
        at += 8;
    }
    Ok(pieces)
}

fn whole_page(entry: u64) -> Result<u64, PrpFault> {
    match entry.is_multiple_of(PAGE_BYTES) {
        true => Ok(entry),
        false => Err(PrpFault::Offset { entry }),
    }
}
