//! Writes in place, and the end of those that may not have come to it.

use std::io;

use zonelab_device::ZoneId;

use crate::layout::{
    Layout, REDO_BYTES_MAX, REDO_HEADER_BYTES, REDO_SLOTS, Redo, SUM_BYTES, is_whole, seal,
};
use crate::medium::Medium;
use crate::open::{OpenError, SEQUENCE_MAX};
use crate::records::Records;
use crate::store::Store;

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

impl<M: Medium> Store<M> {
    /// Writes where a zone has data already: never a part of a block, whenever
    /// the process or the machine ends. What is overwritten may be durable, so
    /// what takes its place must be, too, before that begins.
    pub(crate) fn overwrite(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let pieces = (offset..)
            .step_by(REDO_BYTES_MAX)
            .zip(bytes.chunks(REDO_BYTES_MAX));
        for (offset, piece) in pieces {
            let at = self.layout.data_at(zone.0, offset);
            self.medium.reserve(at, piece.len() as u64)?;
            let sums = self.sums_of(zone.0, offset, piece, false);
            if let Some(at) = self.sum_at(zone.0, offset) {
                self.medium.reserve(at, sums.len() as u64)?;
            }
            let life = self.zones[zone.0 as usize].life;
            // What the end of the process only may tear needs no slot of its own.
            let is_durable = self.zones[zone.0 as usize].has_durable_data;
            let slot = match is_durable {
                true => 1 + self.durable_redos % (REDO_SLOTS - 1),
                false => 0,
            };
            self.write_redo(slot, (at, piece), &sums, Some((zone.0, life)))?;
            if is_durable {
                self.sync_all()?;
                self.durable_redos += 1;
            }
            let done = self.put(at, piece).and_then(|()| {
                let at = self.sum_at(zone.0, offset);
                at.map_or(Ok(()), |at| self.put(at, &sums))
            });
            if let Err(error) = &done {
                // The next drive ends it.
                self.fail("overwriting data", error);
            }
            done?;
            let of = &mut self.zones[zone.0 as usize];
            of.end = of.end.max(offset + piece.len() as u64);
        }
        Ok(())
    }

    /// The same in tables, of which an entry is never torn by the end of the
    /// machine.
    pub(crate) fn overwrite_table(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let pieces = (at..)
            .step_by(REDO_BYTES_MAX)
            .zip(bytes.chunks(REDO_BYTES_MAX));
        for (at, piece) in pieces {
            self.medium.reserve(at, piece.len() as u64)?;
            self.write_redo(0, (at, piece), &[], None)?;
            if let Err(error) = self.put(at, piece) {
                self.fail("overwriting a table", &error);
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_redo(
        &mut self,
        slot: u64,
        (at, bytes): (u64, &[u8]),
        sums: &[u8],
        of: Option<(u32, u32)>,
    ) -> io::Result<()> {
        let redo = Redo {
            epoch: self.state.epoch,
            sequence: self.redo_sequence + 1,
            syncs: self.syncs,
            at,
            len: bytes.len() as u64,
            // Fits: fewer than the bytes of a piece.
            sums_len: sums.len() as u32,
            of,
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        redo.encode(&mut scratch);
        scratch.extend_from_slice(bytes);
        scratch.extend_from_slice(sums);
        seal(Layout::redo_at(slot), &mut scratch);
        let written = self.put(Layout::redo_at(slot), &scratch);
        self.scratch = scratch;
        written?;
        self.redo_sequence += 1;
        Ok(())
    }

    pub(crate) fn wipe_redo(&mut self) -> io::Result<()> {
        (0..REDO_SLOTS)
            .try_for_each(|slot| self.put(Layout::redo_at(slot), &[0; REDO_HEADER_BYTES]))
    }
}
