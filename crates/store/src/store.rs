//! Writing: what a drive keeps its contents in.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use zonelab_device::ZoneId;
use zonelab_ssd::contents::{Contents, ZoneRecord};

use crate::layout::{
    CHECKPOINT_HEADER_BYTES, Layout, REDO_BYTES_MAX, REDO_HEADER_BYTES, Redo, Slot, State, is_zero,
    seal,
};
use crate::medium::Medium;

/// Bytes that a comparison reads at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A zone as the store knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfZone {
    /// Of its last record.
    pub(crate) sequence: u64,
    pub(crate) life: u32,
    /// Behind the last byte that was written or is recorded: the file holds zeros
    /// from there on, and writing there replaces nothing.
    pub(crate) end: u64,
}

/// Contents of a drive in a file, or what takes its place.
#[derive(Debug)]
pub struct Store<M> {
    pub(crate) medium: M,
    pub(crate) layout: Layout,
    pub(crate) state: State,
    pub(crate) zones: Vec<OfZone>,
    /// Of the last entry about a block of a conventional namespace.
    pub(crate) entry_sequence: u64,
    pub(crate) checkpoint_sequence: u64,
    pub(crate) scratch: Vec<u8>,
    /// Where a record is torn: it is wiped when a drive begins, so that the next
    /// loss of power is the only one that can have torn any.
    pub(crate) torn_at: Option<u64>,
    /// What went wrong: nothing is written any more.
    pub(crate) failure: OnceLock<String>,
}

impl<M: Medium> Store<M> {
    /// The medium, as it is now.
    pub const fn medium(&self) -> &M {
        &self.medium
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

    fn fail(&self, what: &str, error: &io::Error) {
        // The first one is what counts.
        let _ = self.failure.set(format!("{what}: {error}"));
    }

    pub(crate) fn write_state(&mut self, state: State) -> io::Result<()> {
        let sequence = self.state.sequence + 1;
        self.state = State { sequence, ..state };
        self.medium
            .write(Layout::state_at(sequence), &self.state.encode())
    }

    fn write_record(&mut self, zone: ZoneId, record: &ZoneRecord) -> io::Result<()> {
        let lba_bytes = u64::from(self.state.lba_bytes);
        let of = &mut self.zones[zone.0 as usize];
        let end = record.data_end_lbas() * lba_bytes;
        if end < of.end {
            of.life = of.life.wrapping_add(1);
        }
        let sequence = of.sequence + 1;
        let slot = Slot {
            epoch: self.state.epoch,
            sequence,
            life: of.life,
            record: record.clone(),
        };
        slot.encode(&self.layout, zone.0, &mut self.scratch);
        let at = self.layout.record_at(zone.0, sequence);
        self.medium.write(at, &self.scratch)?;
        let of = &mut self.zones[zone.0 as usize];
        of.sequence = sequence;
        // Blocks that were never written, or zeroed, count from now on.
        of.end = of.end.max(end);
        Ok(())
    }

    fn write_data(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let of = &mut self.zones[zone.0 as usize];
        let at = self.layout.data_at(zone.0, offset);
        let (is_behind, life) = (offset >= of.end, of.life);
        of.end = of.end.max(offset + bytes.len() as u64);
        if !is_behind {
            return self.overwrite(at, bytes, Some((zone.0, life)));
        }
        // It is zero there.
        if is_zero(bytes) {
            return Ok(());
        }
        self.medium.write(at, bytes)
    }

    /// Writes where something is already: never a part of a piece.
    pub(crate) fn overwrite(
        &mut self,
        at: u64,
        bytes: &[u8],
        of: Option<(u32, u32)>,
    ) -> io::Result<()> {
        for (at, piece) in (at..)
            .step_by(REDO_BYTES_MAX)
            .zip(bytes.chunks(REDO_BYTES_MAX))
        {
            let redo = Redo {
                epoch: self.state.epoch,
                at,
                len: piece.len() as u64,
                is_zero: false,
                of,
            };
            redo.encode(&mut self.scratch);
            self.scratch.extend_from_slice(piece);
            self.write_redo()?;
            self.medium.write(at, piece)?;
        }
        Ok(())
    }

    fn overwrite_with_zeros(&mut self, zone: ZoneId, range: Range<u64>) -> io::Result<()> {
        let redo = Redo {
            epoch: self.state.epoch,
            at: self.layout.data_at(zone.0, range.start),
            len: range.end - range.start,
            is_zero: true,
            of: Some((zone.0, self.zones[zone.0 as usize].life)),
        };
        redo.encode(&mut self.scratch);
        self.write_redo()?;
        self.medium.zero(redo.at, redo.len)
    }

    fn write_redo(&mut self) -> io::Result<()> {
        seal(Layout::redo_at(), &mut self.scratch);
        self.medium.write(Layout::redo_at(), &self.scratch)
    }

    fn discard_data(&mut self, zone: ZoneId, range: Range<u64>) -> io::Result<()> {
        let end = self.zones[zone.0 as usize].end;
        if range.start >= end {
            return Ok(());
        }
        if range.end < end {
            return self.overwrite_with_zeros(zone, range);
        }
        if range.end < u64::MAX {
            return self.overwrite_with_zeros(zone, range.start..end);
        }
        // Its record says already that nothing is there.
        let at = self.layout.data_at(zone.0, range.start);
        self.medium.zero(at, end - range.start)?;
        self.zones[zone.0 as usize].end = range.start;
        Ok(())
    }

    fn write_checkpoint(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.layout.checkpoint_bytes_max {
            return Ok(());
        }
        let sequence = self.checkpoint_sequence + 1;
        self.scratch.clear();
        self.scratch.resize(CHECKPOINT_HEADER_BYTES, 0);
        self.scratch[4..8].copy_from_slice(&self.state.epoch.to_le_bytes());
        self.scratch[8..16].copy_from_slice(&sequence.to_le_bytes());
        self.scratch[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.scratch.extend_from_slice(bytes);
        let at = self.layout.checkpoint_at(sequence);
        seal(at, &mut self.scratch);
        self.medium.write(at, &self.scratch)?;
        self.checkpoint_sequence = sequence;
        Ok(())
    }

    /// What lies behind the ends of zones is void, and becomes zero.
    fn void_unrecorded(&mut self) -> io::Result<()> {
        if let Some(at) = self.torn_at.take() {
            self.medium
                .write(at, &vec![0; self.layout.record_bytes()])?;
        }
        for zone in 0..self.layout.zones {
            let end = self.zones[zone as usize].end;
            let at = self.layout.data_at(zone, end);
            self.medium.zero(at, self.layout.zone_bytes - end)?;
        }
        // What was done once more may lie behind the ends, too: never again.
        self.medium
            .write(Layout::redo_at(), &[0; REDO_HEADER_BYTES])
    }

    fn begin_epoch(&mut self, lba_bytes: u32) -> io::Result<()> {
        let state = State {
            epoch: self.state.epoch.wrapping_add(1),
            lba_bytes,
            ..self.state
        };
        // Both slots: whichever is left speaks of this epoch.
        self.write_state(state)?;
        self.write_state(state)?;
        for zone in 0..self.layout.zones {
            let of = &mut self.zones[zone as usize];
            let end = std::mem::take(&mut of.end);
            if end > 0 {
                self.medium.zero(self.layout.data_at(zone, 0), end)?;
            }
        }
        Ok(())
    }
}

impl<M: Medium> Contents for Store<M> {
    fn begin(&mut self) {
        self.attempt("beginning", |store| {
            if !store.state.is_clean {
                store.void_unrecorded()?;
            }
            store.write_state(State {
                is_clean: false,
                ..store.state
            })
        });
    }

    fn write(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) {
        self.attempt("writing data", |store| {
            store.write_data(zone, offset, bytes)
        });
    }

    fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) {
        let at = self.layout.data_at(zone.0, offset);
        if let Err(error) = self.medium.read(at, out) {
            out.fill(0);
            self.fail("reading data", &error);
        }
    }

    fn is_same(&self, zone: ZoneId, offset: u64, bytes: &[u8]) -> bool {
        let mut mine = vec![0; PIECE_BYTES.min(bytes.len())];
        let pieces = (offset..)
            .step_by(PIECE_BYTES)
            .zip(bytes.chunks(PIECE_BYTES));
        for (offset, theirs) in pieces {
            let mine = &mut mine[..theirs.len()];
            self.read(zone, offset, mine);
            if mine != theirs {
                return false;
            }
        }
        true
    }

    fn clear(&mut self, zone: ZoneId) {
        self.attempt("giving back the space of a zone", |store| {
            store.discard_data(zone, 0..u64::MAX)
        });
    }

    fn discard(&mut self, zone: ZoneId, range: Range<u64>) {
        self.attempt("discarding data", |store| store.discard_data(zone, range));
    }

    fn keep_zone(&mut self, zone: ZoneId, record: &ZoneRecord) {
        self.attempt("writing the record of a zone", |store| {
            store.write_record(zone, record)
        });
    }

    fn place(&mut self, zone: ZoneId, offset_lbas: u32, block: u32, count: u32) {
        self.attempt("writing what a place holds", |store| {
            store.place_blocks(zone, offset_lbas, block..block + count)
        });
    }

    fn forget(&mut self, log: u8, blocks: Range<u32>) {
        self.attempt("forgetting blocks", |store| {
            store.forget_blocks(log, blocks)
        });
    }

    fn checkpoint(&mut self, bytes: &[u8]) {
        self.attempt("writing a checkpoint", |store| {
            store.write_checkpoint(bytes)
        });
    }

    fn sync(&mut self) {
        self.attempt("synchronising", |store| store.medium.sync());
    }

    fn format(&mut self, lba_bytes: u32) {
        self.attempt("formatting", |store| store.begin_epoch(lba_bytes));
    }

    fn close(&mut self) {
        self.attempt("closing", |store| {
            store.medium.sync()?;
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
