//! Writes in place that may not have come to their end.

use crate::layout::{
    Layout, REDO_BYTES_MAX, REDO_HEADER_BYTES, REDO_SLOTS, Redo, SUM_BYTES, is_whole,
};
use crate::medium::Medium;
use crate::open::{OpenError, SEQUENCE_MAX};
use crate::records::Records;

/// Ends the last writes in place, those of them that are not void, in order.
/// Returns the highest number of any.
pub(crate) fn replay(
    medium: &mut impl Medium,
    layout: &Layout,
    records: &Records,
) -> Result<u64, OpenError> {
    let mut found = Vec::new();
    for slot in 0..REDO_SLOTS {
        if let Some((redo, bytes)) = read(medium, slot)?
            && counts(layout, records, slot, &redo)
        {
            found.push((redo, bytes));
        }
    }
    found.sort_by_key(|(redo, _)| redo.sequence);
    let highest = found.last().map_or(0, |(redo, _)| redo.sequence);
    if records.state.is_clean {
        return Ok(highest);
    }
    for (redo, bytes) in found {
        // Fits: read as a whole.
        let (bytes, sums) = bytes.split_at(redo.len as usize);
        medium.write(redo.at, bytes).map_err(OpenError::System)?;
        let sum_at = layout.zone_of_data(redo.at).and_then(|(zone, within)| {
            layout.sum_at(zone, within / u64::from(records.state.lba_bytes))
        });
        if let Some(at) = sum_at.filter(|_| redo.of.is_some()) {
            medium.write(at, sums).map_err(OpenError::System)?;
        }
    }
    Ok(highest)
}

/// A write that is whole, and its bytes with those of its checksums.
fn read(medium: &impl Medium, slot: u64) -> Result<Option<(Redo, Vec<u8>)>, OpenError> {
    let at = Layout::redo_at(slot);
    let mut bytes = vec![0; REDO_HEADER_BYTES];
    medium.read(at, &mut bytes).map_err(OpenError::System)?;
    let redo = Redo::decode(&bytes);
    let sums_max = REDO_BYTES_MAX as u64 / 512 * SUM_BYTES;
    if redo.len > REDO_BYTES_MAX as u64
        || u64::from(redo.sums_len) > sums_max
        || redo.sequence >= SEQUENCE_MAX
    {
        return Ok(None);
    }
    // Fits: see above.
    let len = redo.len as usize + redo.sums_len as usize;
    bytes.resize(REDO_HEADER_BYTES + len, 0);
    medium.read(at, &mut bytes).map_err(OpenError::System)?;
    let is_it = is_whole(at, &bytes);
    Ok(is_it.then(|| (redo, bytes.split_off(REDO_HEADER_BYTES))))
}

/// Whether a write is of what there is, and need not have come to its end.
fn counts(layout: &Layout, records: &Records, slot: u64, redo: &Redo) -> bool {
    // Data that was durable waits for a synchronisation before it is written
    // over, and is there with the next.
    let waits = u32::from(slot > 0);
    let since = records.syncs.wrapping_sub(redo.syncs);
    let is_durable = since < 1 << 31 && since > waits;
    let is_alive = redo.of.is_none_or(|(zone, life)| {
        let of = records.zones.get(zone as usize);
        let place = layout.zone_of_data(redo.at);
        of.zip(place)
            .is_some_and(|(of, (at, within))| at == zone && of.life == life && within < of.end)
    });
    let end = redo.at.checked_add(redo.len);
    let is_inside =
        redo.at >= layout.tables_at && end.is_some_and(|end| end <= layout.file_bytes());
    !is_durable && is_alive && is_inside && redo.epoch == records.state.epoch
}
