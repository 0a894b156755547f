//! Which zone a file gets, as `ZenFS` decides it (`AllocateIOZone` in
//! `zbd_zenfs.cc`); where this differs, the module [`files`](crate::files) says so.

use super::{Manage, WriterId, Zone, ZoneUseState, Zones};
use crate::files::config::FinishWhen;
use crate::files::{Lifetime, Scarce, Shortage};

/// What to do for a file that wants a zone.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::files) enum Choice {
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

impl Zones {
    /// A zone for a file. If it is a command to be done first, nobody else is
    /// told to do it.
    pub(in crate::files) fn choose(&mut self, writer: WriterId, lifetime: Lifetime) -> Choice {
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
            .filter(|(_, zone)| zone.state == ZoneUseState::Empty && zone.is_free())
            .min_by_key(|(id, zone)| (zone.is_suspect, *id))
            .map(|(id, _)| id)
    }

    fn take(&mut self, writer: WriterId, lifetime: Lifetime, zone: u32) -> Choice {
        let is_new = self.get(zone).state == ZoneUseState::Empty;
        self.set_state(zone, ZoneUseState::Open);
        let of = self.at(zone);
        of.was_taken_over |= of.holder.is_some();
        of.holder = Some(writer);
        of.is_log = lifetime == Lifetime::Short;
        of.is_suspect = false;
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
        Choice::OutOf(self.shortage(self.scarce()))
    }

    fn scarce(&self) -> Scarce {
        if self.counts.empty > 0 {
            Scarce::ActiveZones
        } else if self.invalid_lbas() + self.unusable_lbas >= self.capacity_lbas {
            Scarce::Zones
        } else {
            Scarce::Space
        }
    }

    pub(in crate::files) fn shortage(&self, scarce: Scarce) -> Shortage {
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
}
