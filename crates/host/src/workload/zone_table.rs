//! What the jobs of a host know together about the zones of a device.
//!
//! A host that writes zones from several jobs keeps their write pointers in
//! one place, or its writes race each other to the drive. [`ZoneTable`] is
//! that place, with the rules that fio has for it (`zonemode=zbd`): writes of
//! one job at a time in a zone, a limit on zones that are written in part, and
//! reads only of what has been written.

mod reported;
mod shared;
#[cfg(test)]
mod tests;

use std::ops::Range;

use zonelab_device::ZonedInfo;

use crate::reactor::Bell;
pub use reported::ReportedZone;
pub use shared::SharedZones;

/// A job, by number.
pub type JobId = u32;

/// No job.
const NOBODY: JobId = JobId::MAX;

/// The zones of a device as a host sees them.
#[derive(Debug)]
pub struct ZoneTable {
    zoned: ZonedInfo,
    zones: Vec<Zone>,
    /// A bit for each zone: zones without it are empty.
    may_hold: Vec<u64>,
    /// Blocks that are written, of all zones together.
    written_lbas: u64,
    /// Zones written in part, or being reset to be written, in the order in which
    /// they were opened.
    open: Vec<u32>,
    limit: u32,
    bell: Bell,
    /// Jobs that wait for somebody else to give something back.
    waiting: Vec<JobId>,
    /// Jobs that have not come to their end.
    active_jobs: u32,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Blocks handed to the drive, from the start of the zone.
    written: u64,
    /// Of these, blocks of writes that have not completed.
    pending: u64,
    /// Whose writes are in flight; if they are of several jobs, who began.
    writer: JobId,
    /// They are of several jobs.
    is_shared: bool,
    /// They are appends, all of them.
    are_appends: bool,
    writes_in_flight: u32,
    /// A reset or finish is in flight, or what prepares it.
    is_managed: bool,
    /// Who opened it.
    opener: JobId,
    /// It is in the list of open zones: until its last write has completed, as the drive has it.
    is_open: bool,
    standing: Standing,
    /// How often its contents were given up.
    resets: u32,
}

/// How well a zone is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is as the table says.
    Known,
    /// A write failed, and others that were handed over with it are in flight: where the next
    /// one goes is not known before they have ended.
    Failing,
    /// A command failed, and the device has not been asked since what the zone holds: a write
    /// that failed may have been carried out, in part or whole.
    InDoubt,
    /// The device writes and resets it no more.
    Dead,
}

/// Whether a job may write to a zone now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Granted,
    /// Somebody else is at work in the zone: wait.
    Busy,
    /// Too many zones are written in part.
    TooManyOpen,
    /// A command to it failed: the device has to be asked first what it holds, between
    /// [`ZoneTable::begin_managing`] and [`ZoneTable::end_look`].
    InDoubt,
    /// Never again: it is read only or offline.
    Dead,
}

impl ZoneTable {
    /// The table of a device whose zones are all empty. At most `limit` zones
    /// may be written in part at a time (`None`: as many as the device allows).
    #[must_use]
    pub fn new(zoned: ZonedInfo, limit: Option<u32>) -> Self {
        let empty = Zone {
            written: 0,
            pending: 0,
            writer: NOBODY,
            is_shared: false,
            are_appends: false,
            writes_in_flight: 0,
            is_managed: false,
            opener: NOBODY,
            is_open: false,
            standing: Standing::Known,
            resets: 0,
        };
        let mut table = Self {
            zoned,
            zones: vec![empty; zoned.zones as usize],
            may_hold: vec![0; zoned.zones.div_ceil(u64::BITS) as usize],
            written_lbas: 0,
            open: Vec::new(),
            limit: u32::MAX,
            bell: Bell::default(),
            waiting: Vec::new(),
            active_jobs: 0,
        };
        table.set_limit(limit);
        table
    }

    /// The table of a device that has no zones.
    #[must_use]
    pub fn of_none() -> Self {
        let none = ZonedInfo {
            zones: 0,
            zone_size_lbas: 1,
            zone_capacity_lbas: 1,
            max_active: None,
            max_open: None,
            read_across_zones: false,
            descriptor_extension_bytes: 0,
            zrwa: None,
        };
        Self::new(none, None)
    }

    /// Changes the limit on zones written in part.
    pub fn set_limit(&mut self, limit: Option<u32>) {
        // A zone that is written in part holds an active resource of the drive,
        // open or not, so the smaller of its limits holds for those.
        let of_device = [self.zoned.max_active, self.zoned.max_open];
        let limits = of_device.into_iter().flatten().chain(limit);
        self.limit = limits.min().unwrap_or(u32::MAX).max(1);
    }

    /// Begins a run of jobs that hear `bell`.
    pub fn start_run(&mut self, bell: Bell, jobs: u32) {
        self.bell = bell;
        self.waiting.clear();
        self.active_jobs = jobs;
        for zone in &mut self.zones {
            zone.opener = NOBODY;
        }
    }

    /// Notes that a job has come to its end.
    pub fn job_ended(&mut self) {
        self.active_jobs = self.active_jobs.saturating_sub(1);
        self.wake_waiting();
    }

    /// Whether anybody but `job` may still give something back: an operation is
    /// in flight, or another job does not wait itself.
    #[must_use]
    pub fn can_hope(&self, job: JobId) -> bool {
        let waiting = self.waiting.iter().filter(|other| **other != job).count();
        let is_at_work = |zone: &Zone| zone.writes_in_flight > 0 || zone.is_managed;
        self.active_jobs as usize > waiting + 1 || self.zones.iter().any(is_at_work)
    }

    /// Declares zones full, as they were when the run began.
    pub fn declare_full(&mut self, zones: Range<u32>) {
        for zone in zones {
            self.set_written(zone, self.zoned.zone_capacity_lbas);
        }
    }

    /// Declares the first blocks of a zone written, as they were when the run began.
    pub fn declare_written(&mut self, zone: u32, lbas: u64) {
        self.set_written(zone, lbas);
        if lbas > 0 && lbas < self.zoned.zone_capacity_lbas {
            self.open(zone);
        }
    }

    /// Declares a zone open in which nothing is written: it holds resources of
    /// the device as one that is written in part does.
    pub fn declare_open(&mut self, zone: u32) {
        if !self.zones[zone as usize].is_open {
            self.open(zone);
        }
    }

    /// Declares what a device reported of a zone before the run began.
    pub fn declare(&mut self, zone: u32, reported: ReportedZone) {
        self.set_written(zone, reported.readable_lbas(reported.written_lbas));
        self.stands(zone, reported);
    }

    /// Takes over from a report whether the zone is open, and whether it is dead.
    fn stands(&mut self, zone: u32, reported: ReportedZone) {
        let state = &mut self.zones[zone as usize];
        state.standing = match reported.is_dead() {
            true => Standing::Dead,
            false => Standing::Known,
        };
        match reported.is_active() {
            true => self.declare_open(zone),
            false => self.close(zone),
        }
    }

    /// Notes that zones were reset while no job ran.
    pub fn declare_empty(&mut self, zones: Range<u32>) {
        for zone in zones.clone() {
            self.set_written(zone, 0);
            self.zones[zone as usize].is_open = false;
        }
        self.open.retain(|zone| !zones.contains(zone));
    }

    /// Blocks from the start of the zone that have been handed to the drive.
    #[inline]
    #[must_use]
    pub fn written(&self, zone: u32) -> u64 {
        self.zones[zone as usize].written
    }

    /// The zones of the device.
    #[must_use]
    pub const fn zoned(&self) -> ZonedInfo {
        self.zoned
    }

    /// Whether the device has to be asked what the zone holds ([`Admission::InDoubt`]).
    #[inline]
    #[must_use]
    pub fn is_in_doubt(&self, zone: u32) -> bool {
        self.zones[zone as usize].standing == Standing::InDoubt
    }

    /// Whether the zone can be neither written nor reset any more.
    #[inline]
    #[must_use]
    pub fn is_dead(&self, zone: u32) -> bool {
        self.zones[zone as usize].standing == Standing::Dead
    }

    /// Blocks from the start of the zone that can be read. 0 while it is being reset.
    #[inline]
    #[must_use]
    pub fn readable(&self, zone: u32) -> u64 {
        let zone = &self.zones[zone as usize];
        if zone.is_managed {
            return 0;
        }
        zone.written - zone.pending
    }

    /// The first of some zones from which `lbas` blocks, at least one, can be read.
    #[inline]
    pub(super) fn first_readable(&self, zones: Range<u32>, lbas: u64) -> Option<u32> {
        let mut from = zones.start;
        while from < zones.end {
            let word = (from / u64::BITS) as usize;
            let rest = self.may_hold.get(word)? >> (from % u64::BITS);
            if rest == 0 {
                from = (from / u64::BITS + 1) * u64::BITS;
                continue;
            }
            let zone = from + rest.trailing_zeros();
            if zone < zones.end && self.readable(zone) >= lbas {
                return Some(zone);
            }
            from = zone + 1;
        }
        None
    }

    fn may_hold(&mut self, zone: u32, may: bool) {
        let bit = 1 << (zone % u64::BITS);
        let word = &mut self.may_hold[(zone / u64::BITS) as usize];
        match may {
            true => *word |= bit,
            false => *word &= !bit,
        }
    }

    /// How often the zone was reset: what was written at another count is gone.
    #[must_use]
    pub fn resets(&self, zone: u32) -> u32 {
        self.zones[zone as usize].resets
    }

    /// Whether a reset or finish of the zone can begin: nobody is at work in it.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self, zone: u32) -> bool {
        let zone = &self.zones[zone as usize];
        zone.writes_in_flight == 0 && !zone.is_managed
    }

    /// Blocks that are written, of all zones together.
    #[must_use]
    pub const fn written_lbas(&self) -> u64 {
        self.written_lbas
    }

    /// Zones written in part, or being reset to be written, in the order in which
    /// they were opened.
    #[must_use]
    pub fn open_zones(&self) -> &[u32] {
        &self.open
    }

    /// Zones written in part that `job` opened in this run.
    #[must_use]
    pub fn opened_by(&self, job: JobId) -> u32 {
        let mine = |zone: &&u32| self.zones[**zone as usize].opener == job;
        self.open.iter().filter(mine).count() as u32
    }

    /// Whether `job` may write to `zone`, of which it may open at most
    /// `job_limit`. Appends of several jobs may be in one zone; a write may not be there with
    /// anything of another job, since either could arrive first.
    #[inline]
    #[must_use]
    pub fn admit(&self, zone: u32, job: JobId, append: bool, job_limit: Option<u32>) -> Admission {
        let state = &self.zones[zone as usize];
        let is_mine = state.writer == job && !state.is_shared;
        let elsewhere = state.writes_in_flight > 0 && !is_mine && !(append && state.are_appends);
        if state.is_managed || elsewhere {
            return Admission::Busy;
        }
        match state.standing {
            Standing::Known => {}
            Standing::Failing => return Admission::Busy,
            Standing::InDoubt => return Admission::InDoubt,
            Standing::Dead => return Admission::Dead,
        }
        if state.is_open {
            return Admission::Granted;
        }
        let too_many = self.open.len() as u64 >= u64::from(self.limit)
            || job_limit.is_some_and(|limit| self.opened_by(job) >= limit);
        if too_many {
            return Admission::TooManyOpen;
        }
        Admission::Granted
    }

    /// Notes a write of `lbas`, or an `append`, that `job` hands to the drive, and
    /// gives the block of the zone at which it begins.
    #[inline]
    pub fn begin_write(&mut self, zone: u32, job: JobId, lbas: u64, append: bool) -> u64 {
        let capacity = self.zoned.zone_capacity_lbas;
        let state = &mut self.zones[zone as usize];
        let at = state.written;
        state.written = (at + lbas).min(capacity);
        self.written_lbas += state.written - at;
        state.pending += lbas;
        if state.writes_in_flight == 0 {
            (state.writer, state.is_shared, state.are_appends) = (job, false, append);
        } else {
            state.is_shared |= state.writer != job;
            state.are_appends &= append;
        }
        state.writes_in_flight += 1;
        if !self.waiting.is_empty() {
            self.waiting.retain(|waiting| *waiting != job);
        }
        let state = &mut self.zones[zone as usize];
        if !state.is_open {
            state.opener = job;
            self.open(zone);
        }
        if at == 0 {
            self.may_hold(zone, true);
        }
        at
    }

    /// As [`Self::admit`] and [`Self::begin_write`] for a job that goes on in an open zone, where
    /// all that is in flight is its own, and nobody waits. `None`: it is not so, or the blocks do
    /// not fit; nothing has changed then.
    #[inline]
    pub(super) fn go_on(&mut self, zone: u32, job: JobId, lbas: u64, append: bool) -> Option<u64> {
        let capacity = self.zoned.zone_capacity_lbas;
        let state = self.zones.get_mut(zone as usize)?;
        let is_own = state.writer == job && !state.is_shared && state.are_appends == append;
        let is_own = is_own || state.writes_in_flight == 0;
        let at = state.written;
        if !is_own
            || !state.is_open
            || state.is_managed
            || state.standing != Standing::Known
            || lbas > capacity - at
            || at == 0
            || !self.waiting.is_empty()
        {
            return None;
        }
        state.written = at + lbas;
        state.pending += lbas;
        (state.writer, state.is_shared, state.are_appends) = (job, false, append);
        state.writes_in_flight += 1;
        self.written_lbas += lbas;
        Some(at)
    }

    /// Notes that a write of `lbas` has completed.
    #[inline]
    pub fn end_write(&mut self, zone: u32, lbas: u64) {
        let state = &mut self.zones[zone as usize];
        state.pending -= lbas.min(state.pending);
        state.writes_in_flight -= 1;
        if state.writes_in_flight == 0 {
            self.end_writes(zone);
        }
    }

    /// Notes that a write of `lbas` has failed, of which the first `moved` are written nevertheless.
    /// Nobody writes to the zone before all that was handed over with it has ended, of which writes
    /// fail as well, and the device has been asked what came of it.
    pub fn fail_write(&mut self, zone: u32, lbas: u64, moved: u64) {
        let state = &mut self.zones[zone as usize];
        let unwritten = lbas.min(state.pending).min(state.written);
        let unwritten = unwritten.saturating_sub(moved);
        state.written -= unwritten;
        state.standing = Standing::Failing;
        self.written_lbas -= unwritten;
        self.end_write(zone, lbas);
    }

    /// No write to the zone is in flight any more.
    fn end_writes(&mut self, zone: u32) {
        let capacity = self.zoned.zone_capacity_lbas;
        let state = &mut self.zones[zone as usize];
        state.writer = NOBODY;
        let failed = state.standing == Standing::Failing;
        if failed {
            state.standing = Standing::InDoubt;
        }
        let is_done = state.written == capacity || (failed && state.written == 0);
        if is_done && !state.is_managed {
            self.close(zone);
        }
        self.wake_waiting();
    }

    /// Notes that `job` takes a zone for a reset or finish, and what prepares it.
    pub fn begin_managing(&mut self, zone: u32, job: JobId) {
        self.zones[zone as usize].is_managed = true;
        self.waiting.retain(|waiting| *waiting != job);
    }

    /// Notes that `job` takes a zone to reset it and write to it: the zone counts
    /// as open from now on.
    pub fn begin_clearing(&mut self, zone: u32, job: JobId) {
        self.begin_managing(zone, job);
        if !self.zones[zone as usize].is_open {
            self.zones[zone as usize].opener = job;
            self.open(zone);
        }
    }

    /// Gives back a zone that was reset to be written.
    pub fn end_clearing(&mut self, zone: u32) {
        let state = &mut self.zones[zone as usize];
        state.is_managed = false;
        state.standing = Standing::Known;
        self.set_written(zone, 0);
        self.wake_waiting();
    }

    /// Gives back a zone that was finished.
    pub fn end_finishing(&mut self, zone: u32) {
        self.end_managing(zone, self.zoned.zone_capacity_lbas);
    }

    /// Gives the zone back, with `written` blocks in it.
    pub fn end_managing(&mut self, zone: u32, written: u64) {
        let capacity = self.zoned.zone_capacity_lbas;
        self.set_written(zone, written);
        let state = &mut self.zones[zone as usize];
        state.is_managed = false;
        state.standing = Standing::Known;
        if written == 0 || written == capacity {
            self.close(zone);
        } else if !state.is_open {
            self.open(zone);
        }
        self.wake_waiting();
    }

    /// Gives back a zone whose reset or finish failed.
    pub fn fail_managing(&mut self, zone: u32) {
        self.end_managing(zone, self.written(zone));
        self.zones[zone as usize].standing = Standing::InDoubt;
    }

    /// Gives back a zone that the device was asked about, which `reported` it, or did not: what
    /// is known of it holds then, until the next command to it fails.
    pub fn end_look(&mut self, zone: u32, reported: Option<ReportedZone>) {
        self.zones[zone as usize].is_managed = false;
        self.zones[zone as usize].standing = Standing::Known;
        if let Some(reported) = reported {
            let estimated = self.zones[zone as usize].written;
            self.set_written(zone, reported.readable_lbas(estimated));
            self.stands(zone, reported);
        }
        self.wake_waiting();
    }

    /// Notes that `job` waits, to be woken when somebody gives a zone back.
    pub fn wait(&mut self, job: JobId) {
        if !self.waiting.contains(&job) {
            self.waiting.push(job);
        }
    }

    fn set_written(&mut self, zone: u32, lbas: u64) {
        let state = &mut self.zones[zone as usize];
        if lbas < state.written {
            state.resets = state.resets.wrapping_add(1);
        }
        self.written_lbas = self.written_lbas - state.written + lbas;
        state.written = lbas;
        self.may_hold(zone, lbas > 0);
    }

    fn open(&mut self, zone: u32) {
        self.zones[zone as usize].is_open = true;
        self.open.push(zone);
    }

    fn close(&mut self, zone: u32) {
        if std::mem::take(&mut self.zones[zone as usize].is_open) {
            self.open.retain(|&open| open != zone);
        }
        self.wake_waiting();
    }

    #[inline]
    fn wake_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.waiting.clear();
            self.bell.ring();
        }
    }
}
