//! Checksums that fit what was changed. The formats are those that the modules of
//! `zonelab_kv` describe; what does not look like them any more stays as it is.

use super::set;

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes).into())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Puts the checksum of a part of the bytes in its place.
fn seal(bytes: &mut [u8], part: core::ops::Range<usize>, place: usize) -> Option<()> {
    let crc = crc32c::crc32c(bytes.get(part)?);
    set(bytes, place, &crc.to_le_bytes());
    Some(())
}

/// The batches of a metadata log, each at the start of a block.
pub(super) fn batches(bytes: &mut [u8], block_bytes: usize) {
    for at in (0..bytes.len()).step_by(block_bytes) {
        if bytes.get(at..at + 4) == Some(b"ZLFS")
            && let Some(len) = u32_at(bytes, at + 8)
        {
            seal(bytes, at + 8..(at + 72).saturating_add(len), at + 4);
        }
    }
}

/// The records of a manifest.
pub(super) fn manifest(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(len) = u32_at(bytes, at) {
        if seal(bytes, at + 8..(at + 8).saturating_add(len), at + 4).is_none() {
            return;
        }
        at += 8 + len;
    }
}

/// The records of a write-ahead log.
pub(super) fn log(bytes: &mut [u8]) {
    let mut at = 0;
    while let (Some(key), Some(value)) = (u16_at(bytes, at + 4), u32_at(bytes, at + 6)) {
        let end = (at + 18 + key).saturating_add(value);
        if seal(bytes, at + 4..end, at).is_none() {
            return;
        }
        at = end;
    }
}

/// The blocks and the tail of a table, whose tail has so many bytes.
pub(super) fn table(bytes: &mut [u8], tail_len: usize) -> Option<()> {
    let len = bytes.len();
    let tail = len.checked_sub(tail_len)?;
    let footer = len.checked_sub(56)?;
    let mut index = tail.checked_add(u32_at(bytes, footer)?)?;
    let mut start = 0;
    while index < footer {
        let end = u32_at(bytes, index)?;
        if start < end && end <= tail && end - start > 4 {
            seal(bytes, start..end - 4, end - 4)?;
        }
        start = end;
        index += 6 + u16_at(bytes, index + 4)?;
    }
    seal(bytes, tail..len - 12, len - 12)
}

/// Number and length of the tail of each table that a manifest has added.
pub(super) fn tails(manifest: &[u8]) -> Vec<(u64, usize)> {
    let mut tails = Vec::new();
    let mut at = 0;
    while let Some(len) = u32_at(manifest, at) {
        let end = at + 8 + len;
        at += 8;
        while at < end && step(manifest, &mut at, &mut tails).is_some() {}
        at = end;
    }
    tails
}

/// One field of a record.
fn step(manifest: &[u8], at: &mut usize, tails: &mut Vec<(u64, usize)>) -> Option<()> {
    let field = *manifest.get(*at)?;
    *at += match field {
        1..=3 => 9,
        4 => 10,
        5 => {
            let number = u64_at(manifest, *at + 2)?;
            tails.push((number, usize::try_from(u64_at(manifest, *at + 18)?).ok()?));
            let smallest = u16_at(manifest, *at + 42)?;
            let largest = u16_at(manifest, *at + 44 + smallest)?;
            46 + smallest + largest
        }
        _ => return None,
    };
    Some(())
}
