//! The table of data zones: who writes them, and what is valid.
//!
//! Nothing here talks to the device. Whoever does tells what it has begun and
//! how it ended, so that active and open zones are never more than the device
//! allows: a zone counts from before its first write until a command has ended
//! after which it does not.

mod placement;

use zonelab_device::Nanos;

use super::config::{FinishWhen, Shape};
use super::table::Extent;
use super::usage::{Placements, SpaceOverTime, ZoneCounts, ZoneUse, ZoneUseState};
use super::{FilesConfig, FilesError, Lifetime};

pub(in crate::files) use placement::Choice;

/// Whoever writes a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::files) struct WriterId(pub(in crate::files) u64);

/// A data zone.
#[derive(Clone, Debug, Default)]
pub(in crate::files) struct Zone {
    pub(in crate::files) state: ZoneUseState,
    pub(in crate::files) holder: Option<WriterId>,
    /// The holder writes a write-ahead log.
    is_log: bool,
    /// Writes on their way.
    in_flight: u32,
    /// A management command is under way, or about to be.
    is_managed: bool,
    /// A finish or reset failed; it is not tried again before a mount.
    is_stubborn: bool,
    /// Writes failed: it is to be finished, and used again only if no other can be.
    is_suspect: bool,
    pub(in crate::files) lifetime: Lifetime,
    pub(in crate::files) written_lbas: u64,
    pub(in crate::files) live_lbas: u64,
    /// It was taken from a writer who may not have synced.
    was_taken_over: bool,
    /// It was looked at before it was finished, so that all that is lost is known.
    pub(in crate::files) is_verified: bool,
    /// The device has fewer blocks than files do.
    lost_from: Option<u64>,
}

impl Zone {
    /// Blocks from the start that can be read.
    pub(in crate::files) fn readable_lbas(&self) -> u64 {
        match self.state {
            ZoneUseState::Offline => 0,
            _ => self.lost_from.unwrap_or(self.written_lbas),
        }
    }

    /// Nobody has anything to do with it.
    fn is_free(&self) -> bool {
        self.holder.is_none() && !self.is_managed && self.in_flight == 0
    }

    /// It may hold blocks that are not synced, though nobody writes it: they are
    /// those of a writer who went on elsewhere.
    pub(in crate::files) fn may_hold_unsynced(&self) -> bool {
        self.is_suspect || self.was_taken_over
    }

    fn is_garbage(&self) -> bool {
        use ZoneUseState::{Closed, Finished, Full, Open};
        self.live_lbas == 0
            && self.is_free()
            && !self.is_stubborn
            && matches!(self.state, Open | Closed | Full | Finished)
    }
}

/// A command that changes the state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) enum Manage {
    Close,
    Finish,
    Reset,
}

/// All data zones.
#[derive(Debug)]
pub(in crate::files) struct Zones {
    first: u32,
    zones: Vec<Zone>,
    lba_bytes: u64,
    capacity_lbas: u64,
    max_active: u32,
    max_open: u32,
    max_open_but_wal: u32,
    finish_threshold_percent: u64,
    finish_when: FinishWhen,
    counts: ZoneCounts,
    written_lbas: u64,
    live_lbas: u64,
    unusable_lbas: u64,
    pub(in crate::files) placements: Placements,
    /// All that was ever written.
    pub(in crate::files) total_lbas: u64,
    over_time: SpaceOverTime,
    noted_at: Nanos,
}

impl Zones {
    /// Zones that are all empty.
    pub(in crate::files) fn new(shape: &Shape, config: &FilesConfig, now: Nanos) -> Self {
        let count = shape.data_zones.end - shape.data_zones.start;
        Self {
            first: shape.data_zones.start,
            zones: vec![Zone::default(); count as usize],
            lba_bytes: shape.lba_bytes,
            capacity_lbas: shape.capacity_lbas,
            max_active: shape.max_active,
            max_open: shape.max_open,
            max_open_but_wal: shape.max_open_but_wal,
            finish_threshold_percent: u64::from(config.finish_threshold_percent),
            finish_when: config.finish_when,
            counts: ZoneCounts {
                empty: count,
                ..ZoneCounts::default()
            },
            written_lbas: 0,
            live_lbas: 0,
            unusable_lbas: 0,
            placements: Placements::default(),
            total_lbas: 0,
            over_time: SpaceOverTime::default(),
            noted_at: now,
        }
    }

    fn ids(&self) -> impl Iterator<Item = (u32, &Zone)> {
        (self.first..).zip(&self.zones)
    }

    pub(in crate::files) fn get(&self, zone: u32) -> &Zone {
        &self.zones[(zone - self.first) as usize]
    }

    fn at(&mut self, zone: u32) -> &mut Zone {
        &mut self.zones[(zone - self.first) as usize]
    }

    /// Blocks that can still be written to a zone.
    pub(in crate::files) fn room(&self, zone: u32) -> u64 {
        self.capacity_lbas - self.get(zone).written_lbas
    }

    fn active(&self) -> u32 {
        self.counts.open + self.counts.closed
    }

    fn invalid_lbas(&self) -> u64 {
        // A loss of power can take blocks away that still count as a file's.
        self.written_lbas.saturating_sub(self.live_lbas)
    }

    /// Counts the time up to now with what there was. Before every change.
    fn note(&mut self, now: Nanos) {
        let span = now.saturating_sub(self.noted_at);
        self.noted_at = now;
        let (valid, invalid) = (self.live_lbas, self.invalid_lbas());
        let bytes = |lbas: u64| lbas * self.lba_bytes;
        self.over_time.add(
            span,
            bytes(valid),
            bytes(invalid),
            bytes(self.unusable_lbas),
        );
    }

    fn count_of(&mut self, state: ZoneUseState) -> &mut u32 {
        match state {
            ZoneUseState::Empty => &mut self.counts.empty,
            ZoneUseState::Open => &mut self.counts.open,
            ZoneUseState::Closed => &mut self.counts.closed,
            ZoneUseState::Full | ZoneUseState::Finished => &mut self.counts.full,
            ZoneUseState::ReadOnly => &mut self.counts.read_only,
            ZoneUseState::Offline => &mut self.counts.offline,
        }
    }

    fn set_state(&mut self, zone: u32, state: ZoneUseState) {
        let of = self.get(zone);
        let (before, rest) = (of.state, self.capacity_lbas - of.written_lbas);
        *self.count_of(before) -= 1;
        *self.count_of(state) += 1;
        self.counts.finished -= u32::from(before == ZoneUseState::Finished);
        self.counts.finished += u32::from(state == ZoneUseState::Finished);
        if before.loses_its_rest() {
            self.unusable_lbas -= rest;
        }
        if state.loses_its_rest() {
            self.unusable_lbas += rest;
        }
        self.at(zone).state = state;
    }

    /// A write of so many blocks is on its way. Returns its first block, counted
    /// from the start of the zone.
    pub(in crate::files) fn begin_write(&mut self, zone: u32, lbas: u64, now: Nanos) -> u64 {
        self.note(now);
        self.written_lbas += lbas;
        self.live_lbas += lbas;
        self.total_lbas += lbas;
        let of = self.at(zone);
        let start = of.written_lbas;
        of.written_lbas += lbas;
        of.live_lbas += lbas;
        of.in_flight += 1;
        start
    }

    /// A write has ended. Its blocks are the file's until they are
    /// [given up](Self::invalidate).
    pub(in crate::files) fn end_write(&mut self, zone: u32) {
        let capacity_lbas = self.capacity_lbas;
        let of = self.at(zone);
        of.in_flight -= 1;
        // Where a write failed, fewer blocks are written than were begun.
        let is_full = of.in_flight == 0 && of.written_lbas == capacity_lbas && !of.is_suspect;
        if is_full && of.state == ZoneUseState::Open {
            of.holder = None;
            self.set_state(zone, ZoneUseState::Full);
        }
    }

    /// A write has failed. Nobody else gets the zone until somebody has looked
    /// at it ([`settle`](Self::settle)).
    pub(in crate::files) fn fail_write(&mut self, zone: u32) {
        let of = self.at(zone);
        of.in_flight -= 1;
        of.is_suspect = true;
    }

    /// Blocks of a zone belong to nobody any more.
    pub(in crate::files) fn invalidate(&mut self, zone: u32, lbas: u64, now: Nanos) {
        self.note(now);
        self.live_lbas -= lbas;
        self.at(zone).live_lbas -= lbas;
    }

    /// The writer wants the zone no more.
    pub(in crate::files) fn release(&mut self, zone: u32, writer: WriterId) {
        let of = self.at(zone);
        if of.holder == Some(writer) {
            of.holder = None;
        }
    }

    /// The zone is to be finished, and not to be written on.
    pub(in crate::files) fn suspect(&mut self, zone: u32) {
        self.at(zone).is_suspect = true;
    }

    /// Whether a write by this writer can go there.
    pub(in crate::files) fn is_held(&self, zone: u32, writer: WriterId) -> bool {
        let of = self.get(zone);
        of.holder == Some(writer) && of.state == ZoneUseState::Open
    }

    /// Claims a zone that nobody has anything to do with, and that holds no
    /// valid data, for a reset.
    pub(in crate::files) fn claim_garbage(&mut self, zone: u32) -> bool {
        let is_garbage = self.get(zone).is_garbage();
        if is_garbage {
            self.at(zone).is_managed = true;
        }
        is_garbage
    }

    /// Claims a released zone that is still open, to close it.
    pub(in crate::files) fn claim_released(&mut self, zone: u32) -> bool {
        let of = self.at(zone);
        let is_released = of.is_free() && of.state == ZoneUseState::Open && !of.is_suspect;
        of.is_managed |= is_released;
        is_released
    }

    /// A management command has been carried out.
    pub(in crate::files) fn managed(&mut self, zone: u32, manage: Manage, now: Nanos) {
        self.note(now);
        self.at(zone).is_managed = false;
        match manage {
            Manage::Close => self.set_state(zone, ZoneUseState::Closed),
            Manage::Finish => self.set_state(zone, ZoneUseState::Finished),
            Manage::Reset => {
                self.set_state(zone, ZoneUseState::Empty);
                let written = self.get(zone).written_lbas;
                self.written_lbas -= written;
                let of = self.at(zone);
                *of = Zone {
                    is_suspect: of.is_suspect,
                    ..Zone::default()
                };
            }
        }
    }

    /// A management command failed, and the zone is what it was before.
    pub(in crate::files) fn refused(&mut self, zone: u32, manage: Manage) {
        let of = self.at(zone);
        of.is_managed = false;
        of.is_stubborn |= manage != Manage::Close;
        if manage == Manage::Close {
            // Whatever it is, nobody writes it: it counts as active.
            self.set_state(zone, ZoneUseState::Closed);
        }
    }

    /// What a report says of a zone: its state, and blocks below its write
    /// pointer. Nobody writes to it meanwhile.
    pub(in crate::files) fn settle(
        &mut self,
        zone: u32,
        state: ZoneUseState,
        written_lbas: u64,
        now: Nanos,
    ) {
        self.note(now);
        // What counts as lost depends on both: out with the old, in with the new.
        self.set_state(zone, ZoneUseState::Empty);
        let before = self.get(zone).written_lbas;
        self.written_lbas = self.written_lbas - before + written_lbas;
        let of = self.at(zone);
        of.written_lbas = written_lbas;
        of.is_managed = false;
        of.is_suspect = false;
        if !state.is_active() {
            of.holder = None;
        }
        self.set_state(zone, state);
    }

    /// Blocks of a file that was there before.
    pub(in crate::files) fn adopt(&mut self, zone: u32, lbas: u64, lifetime: Lifetime) {
        self.live_lbas += lbas;
        let of = self.at(zone);
        of.live_lbas += lbas;
        of.lifetime = of.lifetime.max(lifetime);
    }

    /// What is not [known to be lost](Self::limit_reads) is durable.
    pub(in crate::files) fn verified(&mut self, zone: u32) {
        self.at(zone).is_verified = true;
    }

    /// The device has only so many blocks of a zone, and files have more.
    pub(in crate::files) fn limit_reads(&mut self, zone: u32, lbas: u64) {
        let of = self.at(zone);
        of.lost_from = Some(of.lost_from.map_or(lbas, |before| before.min(lbas)));
    }

    /// Whether the blocks of a file can be read, as far as is known.
    pub(in crate::files) fn check_readable(
        &self,
        shape: &Shape,
        name: &str,
        extent: Extent,
    ) -> Result<(), FilesError> {
        let readable = self.get(extent.zone).readable_lbas();
        if extent.block + shape.lbas_of(extent.bytes) <= readable {
            return Ok(());
        }
        Err(FilesError::Lost {
            name: name.to_owned(),
            zone: extent.zone,
            lba: shape.start_of(extent.zone) + extent.block.max(readable),
        })
    }

    /// Claims all zones that hold no valid data, for a reset.
    pub(in crate::files) fn claim_all_garbage(&mut self) -> Vec<u32> {
        let last = self.first + self.zones.len() as u32;
        (self.first..last)
            .filter(|zone| self.claim_garbage(*zone))
            .collect()
    }

    pub(in crate::files) fn counts(&self) -> ZoneCounts {
        self.counts
    }

    /// Bytes: valid in whole blocks, invalid, unusable, and free.
    pub(in crate::files) fn bytes(&self) -> [u64; 4] {
        let all = self.capacity_lbas * self.zones.len() as u64;
        let free = all - self.written_lbas - self.unusable_lbas;
        [
            self.live_lbas,
            self.invalid_lbas(),
            self.unusable_lbas,
            free,
        ]
        .map(|lbas| lbas * self.lba_bytes)
    }

    pub(in crate::files) fn over_time(&mut self, now: Nanos) -> SpaceOverTime {
        self.note(now);
        self.over_time
    }

    pub(in crate::files) fn zone_use(&self) -> Vec<ZoneUse> {
        self.ids()
            .map(|(id, zone)| ZoneUse {
                zone: id,
                state: zone.state,
                written_bytes: zone.written_lbas * self.lba_bytes,
                valid_bytes: zone.live_lbas * self.lba_bytes,
                lifetime: zone.lifetime,
            })
            .collect()
    }
}
