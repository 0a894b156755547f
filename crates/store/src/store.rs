//! Writing: what a drive keeps its contents in.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use zonelab_device::ZoneId;
use zonelab_ssd::contents::{Contents, NotWritten, Unreadable, ZoneRecord};

use crate::layout::{
    CHECKPOINT_HEADER_BYTES, Layout, NOTE_BYTES, RECORD_SLOTS, REDO_BYTES_MAX, Slot, State,
    encode_note, is_zero, seal,
};
use crate::medium::Medium;
use crate::notice::{Notice, Notices};
use crate::reservations;
use crate::sums;

/// Most bytes that are written between two synchronisations, so that what a
/// failure of the machine can take from a host that never flushes has a bound.
const UNSYNCED_BYTES_MAX: u64 = 1 << 30;

/// A zone as the store knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfZone {
    /// Of its last record, and the slot that that is in.
    pub(crate) sequence: u64,
    pub(crate) slot: u64,
    /// The slot of the record that is durable, if there is one.
    pub(crate) durable_slot: Option<u64>,
    /// What is durable of it says that it holds data.
    pub(crate) has_durable_data: bool,
    /// The slot of the note that counts.
    pub(crate) note_slot: u64,
    pub(crate) life: u32,
    /// Behind the last byte that was written or is recorded: it reads as zeros
    /// from there on, and writing there replaces nothing.
    pub(crate) end: u64,
    /// Behind the last byte of the file that may not be zero though it is behind
    /// `end`.
    pub(crate) garbage_end: u64,
    /// Its record is not what the last Flush covers.
    pub(crate) is_changed: bool,
}

/// Contents of a drive in a file, or what takes its place.
#[derive(Debug)]
pub struct Store<M> {
    pub(crate) medium: M,
    pub(crate) layout: Layout,
    pub(crate) state: State,
    pub(crate) zones: Vec<OfZone>,
    /// Of the last record of any zone.
    pub(crate) sequence: u64,
    /// Of the last record that a Flush covers.
    pub(crate) durable: u64,
    /// Of the last entry about a block of a conventional namespace.
    pub(crate) entry_sequence: u64,
    pub(crate) checkpoint_sequence: u64,
    pub(crate) redo_sequence: u64,
    /// Writes in place of data that was durable, whose slots take turns.
    pub(crate) durable_redos: u64,
    /// Synchronisations so far.
    pub(crate) syncs: u32,
    pub(crate) scratch: Vec<u8>,
    /// Records that are torn or that a failure of the machine made void: they
    /// are wiped when a drive begins.
    pub(crate) void_at: Vec<u64>,
    /// The same of notes.
    pub(crate) void_notes: Vec<u64>,
    /// Zones whose records have changed since the last synchronisation.
    pub(crate) changed: Vec<u32>,
    /// Bytes written since then.
    pub(crate) unsynced_bytes: u64,
    /// What went wrong: nothing is written any more.
    pub(crate) failure: OnceLock<String>,
    /// Without bytes.
    pub(crate) reservations: reservations::Slots,
    pub(crate) notices: Notices,
}

impl<M: Medium> Store<M> {
    /// The medium, as it is now.
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    /// Tells `who` when data cannot be written, once, and when it can be again.
    pub fn tell(&mut self, who: impl FnMut(&Notice<'_>) + Send + Sync + 'static) {
        self.notices = Notices::to(who);
    }

    /// Does something, unless something went wrong before.
    fn attempt(&mut self, what: &str, f: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failure.get().is_some() {
            return;
        }
        if let Err(error) = f(self) {
            self.fail(what, &error);
        }
    }

    /// The same where a command about so many bytes can fail.
    fn attempt_for_host(
        &mut self,
        bytes: u64,
        mut f: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> Result<(), NotWritten> {
        if self.failure.get().is_some() {
            return Err(NotWritten::Failed);
        }
        let mut done = f(self);
        // Zones that were reset give their space back when that is durable.
        let is_full = |done: &io::Result<()>| done.as_ref().is_err_and(is_for_want_of_space);
        if is_full(&done) && self.zones.iter().any(|of| of.garbage_end > of.end) {
            done = self.sync_all().and_then(|()| f(self));
        }
        self.notices.attempted(bytes, done.as_ref().err());
        done.map_err(|error| match is_for_want_of_space(&error) {
            true => NotWritten::Full,
            false => NotWritten::Failed,
        })
    }

    pub(crate) fn fail(&self, what: &str, error: &io::Error) {
        // The first one is what counts.
        let _ = self.failure.set(format!("{what}: {error}"));
    }

    /// Writes bytes that the next synchronisation makes durable.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.unsynced_bytes += bytes.len() as u64;
        self.medium.write(at, bytes)
    }

    fn put_zeros(&mut self, at: u64, len: u64) -> io::Result<()> {
        self.unsynced_bytes += 1;
        self.medium.zero(at, len)
    }

    pub(crate) fn write_state(&mut self, state: State) -> io::Result<()> {
        let sequence = self.state.sequence + 1;
        self.state = State { sequence, ..state };
        let bytes = self.state.encode();
        self.put(Layout::state_at(sequence), &bytes)
    }

    /// Everything so far outlives a failure of the machine. The notes of what is
    /// durable come before, and count when the number that covers them follows.
    pub(crate) fn sync_all(&mut self) -> io::Result<()> {
        if self.unsynced_bytes == 0 {
            return Ok(());
        }
        let synced = self.sync_steps();
        if let Err(error) = &synced {
            self.fail("synchronising", error);
        }
        synced
    }

    fn sync_steps(&mut self) -> io::Result<()> {
        let changed = std::mem::take(&mut self.changed);
        for &zone in &changed {
            let of = self.zones[zone as usize];
            let at = self.layout.note_at(zone, 1 - of.note_slot);
            self.put(at, &encode_note(at, zone, of.sequence))?;
        }
        self.medium.sync()?;
        self.syncs = self.syncs.wrapping_add(1);
        let at = Layout::durable_at(u64::from(self.syncs));
        let durable = encode_note(at, self.syncs, self.sequence);
        self.medium.write_durably(at, &durable)?;
        self.durable = self.sequence;
        self.unsynced_bytes = 0;
        for &zone in &changed {
            let of = &mut self.zones[zone as usize];
            of.note_slot = 1 - of.note_slot;
            of.durable_slot = Some(of.slot);
            of.has_durable_data = of.end > 0;
            of.is_changed = false;
            self.remove_garbage(zone)?;
        }
        Ok(())
    }

    /// Makes what lies behind the data of a zone zeros.
    fn remove_garbage(&mut self, zone: u32) -> io::Result<()> {
        let of = self.zones[zone as usize];
        if of.garbage_end <= of.end {
            return Ok(());
        }
        let at = self.layout.data_at(zone, of.end);
        self.put_zeros(at, of.garbage_end - of.end)?;
        self.zones[zone as usize].garbage_end = of.end;
        Ok(())
    }

    /// Before anything is written behind the data of a zone: what lies there
    /// goes, but not before the record that does not need it is durable.
    fn make_way(&mut self, zone: u32) -> io::Result<()> {
        let of = &self.zones[zone as usize];
        if of.garbage_end <= of.end {
            return Ok(());
        }
        if of.has_durable_data && of.is_changed {
            self.sync_all()?;
        }
        self.remove_garbage(zone)
    }

    fn write_record(&mut self, zone: ZoneId, record: &ZoneRecord) -> io::Result<()> {
        let lba_bytes = u64::from(self.state.lba_bytes);
        let end = record.data_end_lbas() * lba_bytes;
        let of = self.zones[zone.0 as usize];
        if end > of.end {
            // Blocks of a random write area that were never written.
            self.make_way(zone.0)?;
            self.write_sums_of_zeros(zone.0, of.end..end)?;
        }
        let slot = (0..RECORD_SLOTS).find(|slot| {
            *slot != of.slot && of.durable_slot.is_none_or(|durable| durable != *slot)
        });
        let slot = slot.unwrap_or_default();
        self.sequence += 1;
        let of = &mut self.zones[zone.0 as usize];
        if end == 0 && of.end > 0 {
            of.life = of.life.wrapping_add(1);
        }
        let entry = Slot {
            epoch: self.state.epoch,
            sequence: self.sequence,
            life: of.life,
            record: record.clone(),
        };
        let is_shorter = end < of.end;
        if is_shorter && end > 0 {
            self.medium.sync()?;
            self.wipe_redo()?;
        }
        let at = self.layout.record_at(zone.0, slot);
        let mut scratch = std::mem::take(&mut self.scratch);
        entry.encode(&self.layout, at, &mut scratch);
        let written = self.put(at, &scratch);
        self.scratch = scratch;
        written?;
        let of = &mut self.zones[zone.0 as usize];
        (of.sequence, of.slot) = (self.sequence, slot);
        if is_shorter {
            of.garbage_end = of.garbage_end.max(of.end);
        }
        of.end = end;
        if !std::mem::replace(&mut of.is_changed, true) {
            self.changed.push(zone.0);
        }
        Ok(())
    }

    /// Data of a host. If it fails nothing counts that has been written.
    fn write_data(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.unsynced_bytes >= UNSYNCED_BYTES_MAX {
            self.sync_all()?;
        }
        let end = self.zones[zone.0 as usize].end;
        if offset < end {
            return self.overwrite(zone, offset, bytes);
        }
        self.make_way(zone.0)?;
        let last = offset + bytes.len() as u64;
        self.zones[zone.0 as usize].garbage_end = last;
        self.write_sums_of_zeros(zone.0, end..offset)?;
        // It is zero there.
        if !is_zero(bytes) {
            self.put(self.layout.data_at(zone.0, offset), bytes)?;
            self.notices.has_taken_space();
        }
        self.write_sums(zone.0, offset, bytes, false)?;
        let of = &mut self.zones[zone.0 as usize];
        of.end = last;
        Ok(())
    }

    fn write_zeros(&mut self, zone: ZoneId, range: Range<u64>) -> io::Result<()> {
        let end = self.zones[zone.0 as usize].end;
        let mut at = range.start;
        let zeros = vec![0; REDO_BYTES_MAX];
        while at < range.end.min(end) {
            // Fits: no more than a piece.
            let bytes = (range.end.min(end) - at).min(REDO_BYTES_MAX as u64) as usize;
            self.overwrite(zone, at, &zeros[..bytes])?;
            at += bytes as u64;
        }
        if range.end > end {
            self.make_way(zone.0)?;
            self.write_sums_of_zeros(zone.0, end..range.end)?;
            self.zones[zone.0 as usize].end = range.end;
        }
        Ok(())
    }

    fn read_data(&self, zone: ZoneId, offset: u64, out: &mut [u8]) -> io::Result<bool> {
        let end = self.zones[zone.0 as usize].end;
        // Fits: no more than there is of `out`.
        let held = end.saturating_sub(offset).min(out.len() as u64) as usize;
        let (held, rest) = out.split_at_mut(held);
        rest.fill(0);
        if held.is_empty() {
            return Ok(true);
        }
        self.medium
            .read(self.layout.data_at(zone.0, offset), held)?;
        let Some(at) = self.sum_at(zone.0, offset) else {
            return Ok(true);
        };
        sums::are_right(&self.medium, at, &self.salt(zone.0), offset, held)
    }

    fn discard_data(&mut self, zone: ZoneId, range: Range<u64>) -> io::Result<()> {
        let end = self.zones[zone.0 as usize].end;
        if range.start < end {
            self.write_zeros(zone, range.start..range.end.min(end))?;
        }
        Ok(())
    }

    fn write_checkpoint(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.layout.checkpoint_bytes_max {
            return Ok(());
        }
        let sequence = self.checkpoint_sequence + 1;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.resize(CHECKPOINT_HEADER_BYTES, 0);
        scratch[4..8].copy_from_slice(&self.state.epoch.to_le_bytes());
        scratch[8..16].copy_from_slice(&sequence.to_le_bytes());
        scratch[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        scratch.extend_from_slice(bytes);
        let at = self.layout.checkpoint_at(sequence);
        seal(at, &mut scratch);
        let written = self.put(at, &scratch);
        self.scratch = scratch;
        written?;
        self.checkpoint_sequence = sequence;
        Ok(())
    }

    /// After a loss of power: what was done once more is durable before what it
    /// was done from goes, and what is void goes before anything new is written. Data that a
    /// durable record speaks of stays until a newer record is durable, too.
    fn void_unrecorded(&mut self) -> io::Result<()> {
        self.medium.sync()?;
        self.void_reservations()?;
        for at in std::mem::take(&mut self.void_at) {
            self.put(at, &vec![0; self.layout.record_bytes()])?;
        }
        for at in std::mem::take(&mut self.void_notes) {
            self.put(at, &[0; NOTE_BYTES])?;
        }
        self.sync_all()?;
        for zone in 0..self.layout.zones {
            self.zones[zone as usize].garbage_end = self.layout.zone_bytes;
            self.remove_garbage(zone)?;
        }
        self.wipe_redo()
    }

    /// A drive begins: that its store is in use outlives a failure of the machine.
    fn begin_steps(&mut self) -> io::Result<()> {
        if !self.state.is_clean {
            self.void_unrecorded()?;
        }
        let boot = self.medium.boot();
        self.write_state(State {
            is_clean: false,
            boot,
            ..self.state
        })?;
        self.sync_all()
    }

    fn begin_epoch(&mut self, lba_bytes: u32) -> io::Result<()> {
        let state = State {
            epoch: self.state.epoch.wrapping_add(1),
            lba_bytes,
            ..self.state
        };
        // Both slots: whichever is left speaks of this epoch.
        self.write_state(state)?;
        self.sync_all()?;
        self.write_state(state)?;
        self.sync_all()?;
        for zone in 0..self.layout.zones {
            let of = &mut self.zones[zone as usize];
            of.garbage_end = of.garbage_end.max(std::mem::take(&mut of.end));
            of.has_durable_data = false;
            self.remove_garbage(zone)?;
        }
        Ok(())
    }
}

fn is_for_want_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl<M: Medium> Contents for Store<M> {
    fn begin(&mut self) {
        self.attempt("beginning", Self::begin_steps);
    }

    fn write(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) -> Result<(), NotWritten> {
        self.attempt_for_host(bytes.len() as u64, |store| {
            store.write_data(zone, offset, bytes)
        })
    }

    fn write_zeroes(&mut self, zone: ZoneId, range: Range<u64>) -> Result<(), NotWritten> {
        self.attempt_for_host(range.end - range.start, |store| {
            store.write_zeros(zone, range.clone())
        })
    }

    fn write_unreadable(&mut self, zone: ZoneId, range: Range<u64>) -> Result<(), NotWritten> {
        // Fits: a block of a collection.
        let zeros = vec![0; (range.end - range.start) as usize];
        self.attempt_for_host(zeros.len() as u64, |store| {
            store.write_data(zone, range.start, &zeros)?;
            store.write_sums(zone.0, range.start, &zeros, true)
        })
    }

    fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) -> Result<(), Unreadable> {
        match self.read_data(zone, offset, out) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => {
                out.fill(0);
                Err(Unreadable)
            }
        }
    }

    fn clear(&mut self, zone: ZoneId) {
        // Its record says already that nothing is there, and its space is given
        // back when that is durable.
        let of = self.zones[zone.0 as usize];
        if of.garbage_end > of.end && !of.has_durable_data {
            self.attempt("giving back the space of a zone", |store| {
                store.remove_garbage(zone.0)
            });
        }
    }

    fn discard(&mut self, zone: ZoneId, range: Range<u64>) {
        self.attempt("discarding data", |store| store.discard_data(zone, range));
    }

    fn keep_zone(&mut self, zone: ZoneId, record: &ZoneRecord) {
        self.attempt("writing the record of a zone", |store| {
            store.write_record(zone, record)
        });
    }

    fn place(
        &mut self,
        zone: ZoneId,
        offset_lbas: u32,
        block: u32,
        count: u32,
    ) -> Result<(), NotWritten> {
        let before = self.entry_sequence;
        let bytes = u64::from(count) * u64::from(self.state.lba_bytes);
        let placed = self.attempt_for_host(bytes, |store| {
            store.entry_sequence = before;
            store.place_blocks(zone, offset_lbas, block..block + count)
        });
        if placed.is_err() {
            // Its data does not count either.
            let of = &mut self.zones[zone.0 as usize];
            of.garbage_end = of.garbage_end.max(of.end);
            of.end = u64::from(offset_lbas) * u64::from(self.state.lba_bytes);
        }
        placed
    }

    fn forget(&mut self, log: u8, blocks: Range<u32>) -> Result<(), NotWritten> {
        let bytes = u64::from(blocks.end - blocks.start) * u64::from(self.state.lba_bytes);
        self.attempt_for_host(bytes, |store| store.forget_blocks(log, blocks.clone()))
    }

    fn checkpoint(&mut self, bytes: &[u8]) {
        self.attempt("writing a checkpoint", |store| {
            store.write_checkpoint(bytes)
        });
    }

    fn keep_reservations(&mut self, bytes: &[u8]) {
        self.attempt("keeping reservations", |store| {
            store.write_reservations(bytes)
        });
    }

    fn reservation_bytes_max(&self) -> usize {
        match self.reservations.has_room {
            true => reservations::BYTES_MAX,
            false => 0,
        }
    }

    fn sync(&mut self) {
        self.attempt("synchronising", Self::sync_all);
    }

    fn format(&mut self, lba_bytes: u32) {
        self.attempt("formatting", |store| store.begin_epoch(lba_bytes));
    }

    fn close(&mut self) {
        self.attempt("closing", |store| {
            store.unsynced_bytes += 1;
            store.sync_all()?;
            store.write_state(State {
                is_clean: true,
                ..store.state
            })?;
            store.medium.sync()
        });
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}
