//! The table of data zones: who writes them, what is valid, and which one a
//! file gets.
//!
//! Nothing here talks to the device. Whoever does tells what it has begun and
//! how it ended, so that active and open zones are never more than the device
//! allows: a zone counts from before its first write until a command has ended
//! after which it does not.

use zonelab_device::Nanos;

use super::config::{FinishWhen, Shape};
use super::usage::{Placements, SpaceOverTime, ZoneCounts, ZoneUse, ZoneUseState};
use super::{FilesConfig, Lifetime, Scarce, Shortage};

/// Whoever writes a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WriterId(pub(super) u64);

/// A data zone.
#[derive(Clone, Debug, Default)]
pub(super) struct Zone {
    pub(super) state: ZoneUseState,
    pub(super) holder: Option<WriterId>,
    /// The holder writes a write-ahead log.
    is_log: bool,
    /// Writes on their way.
    in_flight: u32,
    /// A management command is under way, or about to be.
    is_managed: bool,
    /// A finish or reset failed; it is not tried again before a mount.
    is_stubborn: bool,
    /// A write failed and the zone is not to be written on.
    is_suspect: bool,
    pub(super) lifetime: Lifetime,
    pub(super) written_lbas: u64,
    pub(super) live_lbas: u64,
    /// The device has fewer blocks than files do.
    lost_from: Option<u64>,
}

impl Zone {
    /// Blocks from the start that can be read.
    pub(super) fn readable_lbas(&self) -> u64 {
        match self.state {
            ZoneUseState::Offline => 0,
            _ => self.lost_from.unwrap_or(self.written_lbas),
        }
    }

    /// Nobody has anything to do with it.
    fn is_free(&self) -> bool {
        self.holder.is_none() && !self.is_managed && self.in_flight == 0
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
pub(super) enum Manage {
    Close,
    Finish,
    Reset,
}

/// What to do for a file that wants a zone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The zone is the writer's.
    Take {
        zone: u32,
        is_new: bool,
    },
    /// Do this, tell, and ask again.
    First(Manage, u32),
    /// Ask again when something has changed.
    Wait,
    OutOf(Shortage),
}

/// The least of these differences is taken at once; as `ZenFS` has them
/// (`GetLifeTimeDiff` in `zbd_zenfs.cc`).
const COULD_BE_WORSE: u32 = 50;
const NOT_GOOD: u32 = 100;

/// How badly a file fits a zone. A zone whose data lives longer is best, and
/// the better the less longer: the file will be gone when the zone goes. Data
/// without lifetime goes together.
fn mismatch(zone: Lifetime, file: Lifetime) -> u32 {
    if matches!(file, Lifetime::NotSet | Lifetime::None) {
        return if zone == file { 0 } else { NOT_GOOD };
    }
    match zone.cmp(&file) {
        core::cmp::Ordering::Greater => u32::from(zone.code() - file.code()),
        core::cmp::Ordering::Equal => COULD_BE_WORSE,
        core::cmp::Ordering::Less => NOT_GOOD,
    }
}

/// All data zones.
#[derive(Debug)]
pub(super) struct Zones {
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
    pub(super) placements: Placements,
    /// All that was ever written.
    pub(super) total_lbas: u64,
    over_time: SpaceOverTime,
    noted_at: Nanos,
}

impl Zones {
    /// Zones that are all empty.
    pub(super) fn new(shape: &Shape, config: &FilesConfig, now: Nanos) -> Self {
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

    pub(super) fn get(&self, zone: u32) -> &Zone {
        &self.zones[(zone - self.first) as usize]
    }

    fn at(&mut self, zone: u32) -> &mut Zone {
        &mut self.zones[(zone - self.first) as usize]
    }

    /// Blocks that can still be written to a zone.
    pub(super) fn room(&self, zone: u32) -> u64 {
        self.capacity_lbas - self.get(zone).written_lbas
    }

    fn active(&self) -> u32 {
        self.counts.open + self.counts.closed
    }

    fn invalid_lbas(&self) -> u64 {
        self.written_lbas - self.live_lbas
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

    /// A zone for a file. If it is a command to be done first, nobody else is
    /// told to do it.
    pub(super) fn choose(&mut self, writer: WriterId, lifetime: Lifetime) -> Choice {
        if let Some((manage, zone)) = self.chore(lifetime) {
            self.at(zone).is_managed = true;
            return Choice::First(manage, zone);
        }
        if !self.may_open(lifetime) {
            return self.take_over(writer, lifetime);
        }
        let best = self.best_match(lifetime, |zone| zone.is_free());
        if let Some((difference, zone)) = best
            && difference < COULD_BE_WORSE
        {
            self.placements.matched += 1;
            return self.take(writer, lifetime, zone);
        }
        if let Some(empty) = self.first_empty() {
            if self.active() < self.max_active {
                self.placements.new_zone += 1;
                return self.take(writer, lifetime, empty);
            }
            let same_will_do = self.finish_when == FinishWhen::Eager
                && best.is_some_and(|(difference, _)| difference == COULD_BE_WORSE);
            if !same_will_do && let Some(zone) = self.least_room_to_finish() {
                self.at(zone).is_managed = true;
                return Choice::First(Manage::Finish, zone);
            }
        }
        if let Some((_, zone)) = best {
            self.placements.relaxed += 1;
            return self.take(writer, lifetime, zone);
        }
        self.take_over(writer, lifetime)
    }

    /// Whether one more zone can be open.
    fn may_open(&self, lifetime: Lifetime) -> bool {
        if self.counts.open >= self.max_open {
            return false;
        }
        let has_log = |zone: &&Zone| zone.holder.is_some() && zone.is_log;
        let logs = self.zones.iter().filter(has_log).count() as u32;
        lifetime == Lifetime::Short || self.counts.open.saturating_sub(logs) < self.max_open_but_wal
    }

    /// A command that is due whoever asks.
    fn chore(&self, lifetime: Lifetime) -> Option<(Manage, u32)> {
        let is_eager = self.finish_when == FinishWhen::Eager && lifetime != Lifetime::Short;
        self.ids().find_map(|(id, zone)| {
            if zone.is_garbage() {
                return Some((Manage::Reset, id));
            }
            if !zone.is_free() || !zone.state.is_active() {
                return None;
            }
            let is_due = zone.is_suspect || is_eager && self.may_be_finished(zone);
            if is_due && !zone.is_stubborn {
                return Some((Manage::Finish, id));
            }
            (zone.state == ZoneUseState::Open).then_some((Manage::Close, id))
        })
    }

    fn may_be_finished(&self, zone: &Zone) -> bool {
        let left = self.capacity_lbas - zone.written_lbas;
        self.finish_threshold_percent > 0
            && left * 100 <= self.capacity_lbas * self.finish_threshold_percent
    }

    fn least_room_to_finish(&self) -> Option<u32> {
        self.ids()
            .filter(|(_, zone)| {
                zone.is_free()
                    && !zone.is_stubborn
                    && zone.state == ZoneUseState::Closed
                    && self.may_be_finished(zone)
            })
            .max_by_key(|(id, zone)| (zone.written_lbas, core::cmp::Reverse(*id)))
            .map(|(id, _)| id)
    }

    /// The partly written zone that fits best; of several, the first. None that
    /// fits: the one with most room.
    fn best_match(&self, lifetime: Lifetime, may_be: impl Fn(&Zone) -> bool) -> Option<(u32, u32)> {
        self.ids()
            .filter(|(id, zone)| {
                zone.state.is_active() && !zone.is_suspect && self.room(*id) > 0 && may_be(zone)
            })
            .map(|(id, zone)| (mismatch(zone.lifetime, lifetime), zone, id))
            .min_by_key(|(difference, zone, id)| {
                let filled = (*difference >= NOT_GOOD).then_some(zone.written_lbas);
                (*difference, filled, *id)
            })
            .map(|(difference, _, id)| (difference, id))
    }

    fn first_empty(&self) -> Option<u32> {
        self.ids()
            .find(|(_, zone)| zone.state == ZoneUseState::Empty && zone.is_free())
            .map(|(id, _)| id)
    }

    fn take(&mut self, writer: WriterId, lifetime: Lifetime, zone: u32) -> Choice {
        let is_new = self.get(zone).state == ZoneUseState::Empty;
        self.set_state(zone, ZoneUseState::Open);
        let of = self.at(zone);
        of.holder = Some(writer);
        of.is_log = lifetime == Lifetime::Short;
        if is_new {
            of.lifetime = lifetime;
        }
        Choice::Take { zone, is_new }
    }

    /// Nothing is left but zones of others: that of a writer who rests, if
    /// waiting may have no end. A log is not disturbed while somebody else works.
    fn take_over(&mut self, writer: WriterId, lifetime: Lifetime) -> Choice {
        let somebody_works = self
            .zones
            .iter()
            .any(|zone| zone.is_managed || zone.in_flight > 0);
        let resting = self.best_match(lifetime, |zone| {
            zone.holder.is_some_and(|holder| holder != writer)
                && zone.in_flight == 0
                && !zone.is_managed
                && (!zone.is_log || lifetime == Lifetime::Short || !somebody_works)
        });
        if let Some((_, zone)) = resting {
            self.placements.taken_over += 1;
            return self.take(writer, lifetime, zone);
        }
        if somebody_works {
            self.placements.waits += 1;
            return Choice::Wait;
        }
        Choice::OutOf(self.shortage())
    }

    fn shortage(&self) -> Shortage {
        let scarce = if self.counts.empty > 0 {
            Scarce::ActiveZones
        } else if self.invalid_lbas() + self.unusable_lbas >= self.capacity_lbas {
            Scarce::Zones
        } else {
            Scarce::Space
        };
        Shortage {
            scarce,
            zones: self.zones.len() as u32,
            empty_zones: self.counts.empty,
            active_zones: self.active(),
            max_active: self.max_active,
            dead_zones: self.counts.read_only + self.counts.offline,
            valid_bytes: self.live_lbas * self.lba_bytes,
            invalid_bytes: self.invalid_lbas() * self.lba_bytes,
            unusable_bytes: self.unusable_lbas * self.lba_bytes,
        }
    }

    /// A write of so many blocks is on its way. Returns its first block, counted
    /// from the start of the zone.
    pub(super) fn begin_write(&mut self, zone: u32, lbas: u64, now: Nanos) -> u64 {
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
    pub(super) fn end_write(&mut self, zone: u32) {
        let capacity_lbas = self.capacity_lbas;
        let of = self.at(zone);
        of.in_flight -= 1;
        let is_full = of.in_flight == 0 && of.written_lbas == capacity_lbas;
        if is_full && of.state == ZoneUseState::Open {
            of.holder = None;
            self.set_state(zone, ZoneUseState::Full);
        }
    }

    /// A write has failed. Nobody else gets the zone until somebody has looked
    /// at it ([`settle`](Self::settle)).
    pub(super) fn fail_write(&mut self, zone: u32) {
        let of = self.at(zone);
        of.in_flight -= 1;
        of.is_suspect = true;
    }

    /// Blocks of a zone belong to nobody any more.
    pub(super) fn invalidate(&mut self, zone: u32, lbas: u64, now: Nanos) {
        self.note(now);
        self.live_lbas -= lbas;
        self.at(zone).live_lbas -= lbas;
    }

    /// The writer wants the zone no more.
    pub(super) fn release(&mut self, zone: u32, writer: WriterId) {
        let of = self.at(zone);
        if of.holder == Some(writer) {
            of.holder = None;
        }
    }

    /// The zone is to be finished, and not to be written on.
    pub(super) fn suspect(&mut self, zone: u32) {
        self.at(zone).is_suspect = true;
    }

    /// Whether a write by this writer can go there.
    pub(super) fn is_held(&self, zone: u32, writer: WriterId) -> bool {
        let of = self.get(zone);
        of.holder == Some(writer) && of.state == ZoneUseState::Open
    }

    /// Claims a zone that nobody has anything to do with, and that holds no
    /// valid data, for a reset.
    pub(super) fn claim_garbage(&mut self, zone: u32) -> bool {
        let is_garbage = self.get(zone).is_garbage();
        if is_garbage {
            self.at(zone).is_managed = true;
        }
        is_garbage
    }

    /// Claims a released zone that is still open, to close it.
    pub(super) fn claim_released(&mut self, zone: u32) -> bool {
        let of = self.at(zone);
        let is_released = of.is_free() && of.state == ZoneUseState::Open && !of.is_suspect;
        of.is_managed |= is_released;
        is_released
    }

    /// A management command has been carried out.
    pub(super) fn managed(&mut self, zone: u32, manage: Manage, now: Nanos) {
        self.note(now);
        self.at(zone).is_managed = false;
        match manage {
            Manage::Close => self.set_state(zone, ZoneUseState::Closed),
            Manage::Finish => self.set_state(zone, ZoneUseState::Finished),
            Manage::Reset => {
                self.set_state(zone, ZoneUseState::Empty);
                let written = self.get(zone).written_lbas;
                self.written_lbas -= written;
                *self.at(zone) = Zone::default();
            }
        }
    }

    /// A management command failed, and the zone is what it was before.
    pub(super) fn refused(&mut self, zone: u32, manage: Manage) {
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
    pub(super) fn settle(&mut self, zone: u32, state: ZoneUseState, written_lbas: u64, now: Nanos) {
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
    pub(super) fn adopt(&mut self, zone: u32, lbas: u64, lifetime: Lifetime) {
        self.live_lbas += lbas;
        let of = self.at(zone);
        of.live_lbas += lbas;
        of.lifetime = of.lifetime.max(lifetime);
    }

    /// The device has only so many blocks of a zone, and files have more.
    pub(super) fn limit_reads(&mut self, zone: u32, lbas: u64) {
        self.at(zone).lost_from = Some(lbas);
    }

    /// Claims all zones that hold no valid data, for a reset.
    pub(super) fn claim_all_garbage(&mut self) -> Vec<u32> {
        let last = self.first + self.zones.len() as u32;
        (self.first..last)
            .filter(|zone| self.claim_garbage(*zone))
            .collect()
    }

    pub(super) fn counts(&self) -> ZoneCounts {
        self.counts
    }

    /// Bytes: valid in whole blocks, invalid, unusable, and free.
    pub(super) fn bytes(&self) -> [u64; 4] {
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

    pub(super) fn over_time(&mut self, now: Nanos) -> SpaceOverTime {
        self.note(now);
        self.over_time
    }

    pub(super) fn zone_use(&self) -> Vec<ZoneUse> {
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
