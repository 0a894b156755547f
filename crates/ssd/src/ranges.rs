//! Ranges of blocks that a command brings in its data buffer.
//!
//! Layouts: NVM command set 1.0, Dataset Management (range definition) and
//! Copy (source range entries, descriptor format 0).

/// Bytes of a range of Dataset Management: attributes (4), length in blocks
/// (4), starting block (8).
const DEALLOCATE_BYTES: usize = 16;
/// Bytes of a source range of Copy: reserved (8), starting block (8), blocks
/// less one (2), and protection information.
const COPY_BYTES: usize = 32;

/// A range of logical blocks of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LbaRange {
    pub(crate) slba: u64,
    pub(crate) nlb: u32,
}

/// The ranges of a deallocation; `None`: the buffer is too short for so many.
pub(crate) fn of_deallocate(
    data: &[u8],
    ranges: u16,
) -> Option<impl Iterator<Item = LbaRange> + Clone> {
    let entries = data.get(..usize::from(ranges) * DEALLOCATE_BYTES)?;
    let (entries, _) = entries.as_chunks::<DEALLOCATE_BYTES>();
    Some(entries.iter().map(|entry| LbaRange {
        slba: u64_at(entry, 8),
        nlb: u32_at(entry, 4),
    }))
}

/// The source ranges of a copy; `None`: the buffer is too short for so many.
pub(crate) fn of_copy(data: &[u8], ranges: u16) -> Option<impl Iterator<Item = LbaRange> + Clone> {
    let entries = data.get(..usize::from(ranges) * COPY_BYTES)?;
    let (entries, _) = entries.as_chunks::<COPY_BYTES>();
    Some(entries.iter().map(|entry| LbaRange {
        slba: u64_at(entry, 8),
        nlb: (u32_at(entry, 16) & 0xffff) + 1,
    }))
}

/// Bytes that `ranges` source ranges take in the buffer of a copy.
pub(crate) const fn copy_bytes(ranges: u16) -> u64 {
    ranges as u64 * COPY_BYTES as u64
}

/// Bytes that `ranges` ranges take in the buffer of a deallocation.
pub(crate) const fn deallocate_bytes(ranges: u16) -> u64 {
    ranges as u64 * DEALLOCATE_BYTES as u64
}

fn u64_at<const N: usize>(entry: &[u8; N], at: usize) -> u64 {
    u64::from(u32_at(entry, at)) | u64::from(u32_at(entry, at + 4)) << 32
}

fn u32_at<const N: usize>(entry: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_where_the_specification_has_them() {
        let mut bytes = [0xee; 64];
        bytes[16..32]
            .copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0, 4, 5, 0, 0, 0, 0, 0, 6]);
        let ranges: Vec<_> = of_deallocate(&bytes, 2).unwrap().collect();
        let expected = LbaRange {
            slba: 0x0600_0000_0000_0504,
            nlb: 0x1_0003,
        };
        assert_eq!(ranges[1], expected);
        assert!(of_deallocate(&bytes, 5).is_none());

        bytes[32 + 8..32 + 18].copy_from_slice(&[7, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff]);
        let ranges: Vec<_> = of_copy(&bytes, 2).unwrap().collect();
        let expected = LbaRange {
            slba: 0x1_0000_0007,
            nlb: 65_536,
        };
        assert_eq!(ranges[1], expected);
        assert!(of_copy(&bytes, 3).is_none());
    }
}
