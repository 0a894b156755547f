//! The header of a chunk, in the layout of fio 3.33 (its file `verify.h`, which
//! fio's output was compared with byte by byte): little-endian
//!
//! | bytes | what |
//! | --- | --- |
//! | 0..2 | magic, 0xacca |
//! | 2..4 | method; with [`APPENDED`] in chunks of appends, which fio does not have |
//! | 4..8 | bytes of the chunk |
//! | 8..16 | seed of the write: two writes to one place differ in it |
//! | 16..24 | offset of the chunk in bytes; of an append, of its zone |
//! | 24..32 | time: 0 here |
//! | 32..34 | thread, from 1 |
//! | 34..36 | number of the write, its low 16 bits |
//! | 36..40 | CRC-32C of the 36 bytes before, without the inversion at the end |
//!
//! Then comes the checksum of the data, then the data.

use super::{Method, Written};

/// Bytes of the header without the checksum of the data.
pub const HEADER_BYTES: usize = 40;

const MAGIC: u16 = 0xacca;

/// Bit of the method's number: the offset is that of the zone.
const APPENDED: u16 = 0x8000;

/// Where the sum of the header is, over all that is before.
const SUM_AT: usize = 36;

fn type_of(method: Method, is_append: bool) -> u16 {
    method.number() | if is_append { APPENDED } else { 0 }
}

/// Writes the header and the checksum of the data that are in `chunk`.
pub(super) fn put(method: Method, chunk: &mut [u8], what: &Written, thread: u16) {
    let overhead = method.overhead_bytes();
    if overhead == 0 || chunk.len() < overhead {
        return;
    }
    let len = chunk.len() as u32;
    let (head, data) = chunk.split_at_mut(overhead);
    let kind = type_of(method, what.is_append);
    head[0..2].copy_from_slice(&MAGIC.to_le_bytes());
    head[2..4].copy_from_slice(&kind.to_le_bytes());
    head[4..8].copy_from_slice(&len.to_le_bytes());
    head[8..16].copy_from_slice(&what.seed.to_le_bytes());
    head[16..24].copy_from_slice(&what.offset.to_le_bytes());
    head[24..32].fill(0);
    head[32..34].copy_from_slice(&thread.wrapping_add(1).to_le_bytes());
    head[34..36].copy_from_slice(&(what.number as u16).to_le_bytes());
    let sum = !crc32c::crc32c(&head[..SUM_AT]);
    head[SUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    let sum = method.sum(data);
    head[HEADER_BYTES..].copy_from_slice(&sum[..method.sum_bytes()]);
}

/// A header that was read.
struct Found {
    magic: u16,
    kind: u16,
    len: u32,
    seed: u64,
    offset: u64,
    sum: u32,
    right_sum: u32,
}

fn read(chunk: &[u8]) -> Option<Found> {
    let head = chunk.get(..HEADER_BYTES)?;
    let number = |from: usize, bytes: usize| {
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(&head[from..from + bytes]);
        u64::from_le_bytes(all)
    };
    Some(Found {
        magic: number(0, 2) as u16,
        kind: number(2, 2) as u16,
        len: number(4, 4) as u32,
        seed: number(8, 8),
        offset: number(16, 8),
        sum: number(SUM_AT, 4) as u32,
        right_sum: !crc32c::crc32c(&head[..SUM_AT]),
    })
}

/// What is wrong with the header of a chunk whose write is known, or with its
/// checksum; `None` if neither tells.
pub(super) fn difference(method: Method, chunk: &[u8], what: &Written) -> Option<String> {
    let found = read(chunk)?;
    outline(method, chunk, &found, what.offset, what.is_append).or_else(|| {
        let (seed, wanted) = (found.seed, what.seed);
        if seed != wanted {
            return Some(format!(
                "header of another write: expected seed {wanted:#018x}, found {seed:#018x}"
            ));
        }
        data(method, chunk)
    })
}

/// Looks at a chunk of which only the place is known.
pub(super) fn check(
    method: Method,
    chunk: &[u8],
    offset: u64,
    zone_start: u64,
) -> Result<(), String> {
    let found = read(chunk).ok_or("shorter than a header")?;
    let is_append = found.magic == MAGIC && found.kind & APPENDED != 0;
    let offset = if is_append { zone_start } else { offset };
    let wrong = outline(method, chunk, &found, offset, is_append);
    match wrong.or_else(|| data(method, chunk)) {
        Some(what) => Err(what),
        None => Ok(()),
    }
}

fn outline(
    method: Method,
    chunk: &[u8],
    found: &Found,
    offset: u64,
    is_append: bool,
) -> Option<String> {
    let kind = type_of(method, is_append);
    if found.magic != MAGIC {
        let magic = found.magic;
        return Some(format!(
            "no header: expected magic {MAGIC:#06x}, found {magic:#06x}"
        ));
    }
    if found.sum != found.right_sum {
        let (wanted, sum) = (found.right_sum, found.sum);
        return Some(format!(
            "header is torn: expected its checksum to be {wanted:#010x}, found {sum:#010x}"
        ));
    }
    if found.kind != kind {
        let found = found.kind;
        return Some(format!(
            "header of another method: expected {kind} ({}), found {found}",
            method.name()
        ));
    }
    if found.len as usize != chunk.len() {
        let (wanted, len) = (chunk.len(), found.len);
        return Some(format!(
            "header of another size: expected {wanted} bytes, found {len}"
        ));
    }
    if found.offset != offset {
        let found = found.offset;
        return Some(format!(
            "block of another place: expected offset {offset}, found {found}"
        ));
    }
    None
}

/// What is wrong with the data under a header that is right.
fn data(method: Method, chunk: &[u8]) -> Option<String> {
    let overhead = method.overhead_bytes();
    let stored = chunk.get(HEADER_BYTES..overhead)?;
    let sum = method.sum(&chunk[overhead..]);
    let sum = &sum[..method.sum_bytes()];
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    (sum != stored).then(|| {
        format!(
            "{} of the data: expected {}, found {}",
            method.name(),
            hex(stored),
            hex(sum)
        )
    })
}
