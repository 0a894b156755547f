//! Which blocks of conventional namespaces are where.
//!
//! As the out-of-band area of flash pages does it: with each block that is
//! written to a place goes which block it is, and a number that grows. The
//! place with the highest number holds the block, unless the block was
//! forgotten (zeroed, deallocated) later.

use std::io;

use zonelab_device::ZoneId;

use crate::layout::{ENTRY_BYTES, LogLayout, is_whole, is_zero, seal, u32_at, u64_at};
use crate::medium::Medium;
use crate::open::{OpenError, SEQUENCE_MAX};
use crate::store::Store;

/// What is known of a place or a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    block: u32,
    /// When; from 1 on.
    sequence: u64,
}

const BYTES: usize = ENTRY_BYTES as usize;

/// Adds an entry that is going to be at `at`.
fn push(out: &mut Vec<u8>, at: u64, entry: Entry) {
    let mut bytes = [0; BYTES];
    bytes[4..8].copy_from_slice(&entry.block.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.sequence.to_le_bytes());
    seal(at, &mut bytes);
    out.extend_from_slice(&bytes);
}

/// Entries from `at` on; `None`: nothing was ever written there.
fn read(
    medium: &impl Medium,
    at: u64,
    count: usize,
    what: &str,
) -> Result<Vec<Option<Entry>>, OpenError> {
    let mut bytes = vec![0; count * BYTES];
    medium.read(at, &mut bytes).map_err(OpenError::System)?;
    let entry = |(at, bytes): (u64, &[u8])| {
        if is_zero(bytes) {
            return Ok(None);
        }
        let entry = Entry {
            block: u32_at(bytes, 4),
            sequence: u64_at(bytes, 8),
        };
        if is_whole(at, bytes) && (1..SEQUENCE_MAX).contains(&entry.sequence) {
            Ok(Some(entry))
        } else {
            let what = format!("what is known of {what}");
            Err(OpenError::Damaged { what })
        }
    };
    let places = (at..).step_by(BYTES).zip(bytes.chunks_exact(BYTES));
    places.map(entry).collect()
}

/// What each place of a log holds, and the highest number, of zones that have
/// so many blocks written.
pub(crate) fn recover(
    medium: &impl Medium,
    log: &LogLayout,
    lba_bytes: u32,
    written: impl Fn(ZoneId) -> u64,
) -> Result<(Vec<Option<u32>>, u64), OpenError> {
    let of_lbas = |bytes: u64| {
        usize::try_from(bytes / u64::from(lba_bytes)).map_err(|_| OpenError::Damaged {
            what: "the size of blocks".to_owned(),
        })
    };
    let (capacity, blocks) = (of_lbas(log.capacity_bytes)?, of_lbas(log.size_bytes)?);
    let forgotten = read(medium, log.forgotten_at(0), blocks, "forgotten blocks")?;
    let mut highest = 0;
    // By block: the number of what is known last, and the place that holds it.
    let mut last = vec![(0, None); blocks];
    for (last, entry) in last.iter_mut().zip(&forgotten) {
        last.0 = entry.map_or(0, |entry| entry.sequence);
        highest = highest.max(last.0);
    }
    let mut places = Vec::with_capacity(capacity * log.zones.len());
    for zone in log.zones.clone() {
        let first = places.len();
        let count = usize::try_from(written(ZoneId(zone))).unwrap_or(usize::MAX);
        let what = format!("blocks of zone {zone}");
        let entries = read(medium, log.placed_at(zone, 0), count.min(capacity), &what)?;
        places.resize(first + capacity, None);
        for (place, entry) in (first..).zip(entries) {
            // A zone of a log is written with blocks only.
            let of = entry.and_then(|entry| Some((entry, last.get_mut(entry.block as usize)?)));
            let Some((entry, last)) = of else {
                return Err(OpenError::Damaged { what });
            };
            highest = highest.max(entry.sequence);
            if entry.sequence <= last.0 {
                continue;
            }
            if let Some(older) = last.1.replace(place) {
                places[older] = None;
            }
            last.0 = entry.sequence;
            places[place] = Some(entry.block);
        }
    }
    Ok((places, highest))
}

impl<M: Medium> Store<M> {
    /// Places hold blocks from now on.
    pub(crate) fn place_blocks(
        &mut self,
        zone: ZoneId,
        offset_lbas: u32,
        blocks: std::ops::Range<u32>,
    ) -> io::Result<()> {
        let Some(log) = self.layout.log_of(zone.0) else {
            return Ok(());
        };
        let at = log.placed_at(zone.0, offset_lbas);
        self.scratch.clear();
        for (at, block) in (at..).step_by(BYTES).zip(blocks) {
            self.entry_sequence += 1;
            let sequence = self.entry_sequence;
            push(&mut self.scratch, at, Entry { block, sequence });
        }
        let scratch = std::mem::take(&mut self.scratch);
        let written = self.put(at, &scratch);
        self.scratch = scratch;
        written
    }

    /// Blocks hold nothing from now on.
    pub(crate) fn forget_blocks(
        &mut self,
        log: u8,
        blocks: std::ops::Range<u32>,
    ) -> io::Result<()> {
        let Some(log) = self.layout.logs.get(usize::from(log)) else {
            return Ok(());
        };
        let at = log.forgotten_at(blocks.start);
        self.entry_sequence += 1;
        let sequence = self.entry_sequence;
        let mut entries = Vec::with_capacity(blocks.len() * BYTES);
        for (at, block) in (at..).step_by(BYTES).zip(blocks) {
            push(&mut entries, at, Entry { block, sequence });
        }
        self.overwrite_table(at, &entries)
    }
}
