//! Where a drive tells its recorder what it does.

use crate::background::Background;
use zonelab_device::Command;
use zonelab_device::Nanos;
use zonelab_device::QueueId;
use zonelab_device::Tag;
use zonelab_nvme::Status;

use super::Begin;
use super::Counter;
use super::Record;
use super::RecordLimits;
use super::Served;
use super::ZoneHistory;
use super::ZoneRecord;
use super::recorder::Recorder;
use super::recorder::ZoneLog;
use crate::conventional::Role;
use crate::drive::Owner;
use crate::drive::{Core, Drive};

impl Core {
    /// The write buffer holds so much.
    pub(crate) fn record_buffered(&mut self, bytes: u64) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.counts(now, Counter::BufferedBytes, bytes);
        }
    }

    /// Files the changes that zones have just made, which is whenever their
    /// journal is not empty after a command, a control action or an event that
    /// touches zones.
    #[cold]
    pub(crate) fn record_zone_changes(&mut self) {
        let ZoneLog { limit, history } = &mut self.zone_log;
        for change in self.zones.drain_journal() {
            if history.records.len() == *limit {
                history.dropped += u64::from(*limit > 0);
                continue;
            }
            history.records.push(ZoneRecord {
                at: self.now,
                zone: change.zone,
                from: change.from,
                to: change.to,
                written_lbas: change.written_lbas,
            });
        }
        self.record_zone_counts();
    }

    fn record_zone_counts(&mut self) {
        let now = self.now;
        let open = u64::from(self.zones.open_count());
        let active = u64::from(self.zones.active_count());
        if let Some(recorder) = &mut self.recorder {
            recorder.counts(now, Counter::OpenZones, open);
            recorder.counts(now, Counter::ActiveZones, active);
        }
    }

    /// A command has taken a slot.
    #[cold]
    pub(crate) fn record_submission(&mut self, slot: u32, command: (QueueId, Tag, Command)) {
        let (now, in_flight) = (self.now, self.requests.len() as u64);
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let number = recorder.submitted(now, slot, command);
        recorder.counts(now, Counter::CommandsInFlight, in_flight);
        self.record_served(Owner::Request(slot), Some(Served::Command(number)));
        self.record_prune();
    }

    /// Drops what touches no life of one of the slowest commands, if only these are recorded and
    /// there has come to be much of it.
    fn record_prune(&mut self) {
        let now = self.now;
        let log = self.flash.media_mut().ledger_mut().log_mut();
        if let (Some(recorder), Some(log)) = (&mut self.recorder, log)
            && let Some(lives) = recorder.lives_if_full(now, log.len())
        {
            log.prune(&lives);
            recorder.prune(&lives, log.len());
        }
    }

    /// The front end lets a command through at `at`.
    #[cold]
    pub(crate) fn record_start(&mut self, slot: u32, at: Nanos) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if let Some(Some(flying)) = recorder.in_flight.get_mut(slot as usize) {
            flying.record.started = Some(at);
        }
    }

    /// A command has completed and given its slot back.
    #[cold]
    pub(crate) fn record_completion(&mut self, slot: u32, status: Status) {
        let (now, in_flight) = (self.now, self.requests.len() as u64);
        if let Some(recorder) = &mut self.recorder {
            recorder.completed(now, slot, status);
            recorder.counts(now, Counter::CommandsInFlight, in_flight);
        }
    }

    /// Power has been lost.
    pub(crate) fn record_power_cut(&mut self) {
        self.watch_is_disturbed();
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.power_cut(now);
        }
        if self.zones.has_journal() {
            self.record_zone_changes();
        }
    }

    /// A background operation begins. Its tasks follow ([`Drive::record_task`]);
    /// it ends when all of them have.
    pub(crate) fn record_background(&mut self, begin: &Begin) -> u64 {
        let now = self.now;
        self.recorder
            .as_mut()
            .map_or(0, |recorder| recorder.begins(now, begin))
    }

    /// A task has ended.
    pub(crate) fn record_task_end(&mut self, task: u32) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.task_ends(now, task);
        }
    }

    /// A task holds back for host I/O. It may be said more than once.
    pub(crate) fn record_yield(&mut self, task: u32) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.task_yields(now, task);
        }
    }

    /// A task goes on, whether or not it has held back.
    pub(crate) fn record_resume(&mut self, task: u32) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.task_resumes(now, task);
        }
    }

    /// A request of the drive itself has been given its slot.
    #[cold]
    pub(crate) fn record_internal(&mut self, slot: u32, role: Role) {
        let served = match role {
            Role::Collection(_) => Some(Served::Collection),
            Role::Part(of) => {
                let in_flight = self.recorder.as_ref().map(|of| &of.in_flight);
                let command = in_flight.and_then(|all| all.get(of as usize)?.as_ref());
                command.map(|command| Served::Command(command.record.number))
            }
            Role::Zoned | Role::Conventional(_) => None,
        };
        self.record_served(Owner::Request(slot), served);
    }

    /// A program of the write buffer is about to start: it serves several commands, unless it is
    /// garbage collection's.
    #[cold]
    pub(crate) fn record_program(&mut self, slot: u32, is_collection: bool) {
        let served = is_collection.then_some(Served::Collection);
        self.record_served(Owner::Program(slot), served);
    }

    /// Flash operations of `owner` serve `served`. What is full stops the rest.
    pub(crate) fn record_served(&mut self, owner: Owner, served: Option<Served>) {
        let now = self.now;
        let (Some(recorder), Some(log)) = (
            &mut self.recorder,
            self.flash.media_mut().ledger_mut().log_mut(),
        ) else {
            return;
        };
        log.serve(owner.token(), served);
        if log.dropped_from().is_some() {
            recorder.close(now);
        } else if recorder.complete_until.is_some() {
            log.close();
        }
    }
}

impl Background {
    /// Numbers of free and invalid zones, and the state of a drive that erases by thresholds.
    pub(crate) fn record_pool(&mut self, core: &mut Core, (free, invalid): (u64, u64), state: u64) {
        let (now, exists) = (core.now, self.erases_by_thresholds());
        if let Some(recorder) = core.recorder.as_mut().filter(|_| exists) {
            recorder.counts(now, Counter::FreeZones, free);
            recorder.counts(now, Counter::InvalidZones, invalid);
            recorder.counts(now, Counter::ResetState, state);
        }
    }

    /// A task of the background operation `number` begins.
    pub(crate) fn record_task(&mut self, core: &mut Core, task: u32, number: u64) {
        if core.is_tracked() {
            self.mark_task(core, task);
        }
        if let Some(recorder) = &mut core.recorder {
            recorder.task_begins(task, number);
            core.record_served(Owner::Task(task), Some(Served::Background(number)));
        }
    }

    /// A task begins that does a part of what `other` was to do.
    pub(crate) fn record_task_beside(&mut self, core: &mut Core, task: u32, other: u32) {
        if core.is_tracked() {
            self.mark_task(core, task);
        }
        let of = |recorder: &Recorder| Some(recorder.tasks.get(other as usize)?.as_ref()?.number);
        if let Some(number) = core.recorder.as_deref().and_then(of) {
            self.record_task(core, task, number);
        }
    }
}

impl Drive {
    /// Starts to record; what was recorded before is dropped. On a drive that
    /// has done nothing yet, the record covers its whole life.
    pub fn record(&mut self, limits: &RecordLimits) {
        let records_activity = limits.activity > 0;
        self.core
            .zones
            .keep_journal(limits.zone_changes > 0 || records_activity);
        self.core.zone_log = ZoneLog {
            limit: limits.zone_changes,
            history: ZoneHistory::default(),
        };
        let has_buffer = self.buffer.is_some();
        let has_thresholds = self.background.erases_by_thresholds();
        let recorder = || Box::new(Recorder::new(limits, has_buffer, has_thresholds));
        self.core.recorder = records_activity.then(recorder);
        let ledger = self.core.flash.media_mut().ledger_mut();
        if records_activity {
            ledger.record(limits);
            self.core.record_zone_counts();
            let bytes = self.buffered_bytes();
            self.core.record_buffered(bytes);
            self.background.record_reset_state(&mut self.core);
        } else {
            let _ = ledger.take_spans();
        }
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
    }

    /// What was recorded since [`Drive::record`], and stops recording.
    #[must_use]
    pub fn take_record(&mut self) -> Record {
        self.core.zones.keep_journal(false);
        let now = self.core.now;
        let mut record = self
            .core
            .recorder
            .take()
            .map(|recorder| recorder.into_record(now))
            .unwrap_or_default();
        let ledger = self.core.flash.media_mut().ledger_mut();
        if let Some(from) = ledger.log_mut().and_then(|log| log.dropped_from()) {
            let earliest = record.complete_until.map_or(from, |until| until.min(from));
            record.complete_until = Some(earliest);
        }
        record.spans = ledger.take_spans();
        record.zones = core::mem::take(&mut self.core.zone_log).history;
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
        record
    }
}
