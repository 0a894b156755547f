//! The recorder of a drive, and where the drive tells it what it does.

use std::collections::BTreeMap;

use zonelab_device::{Command, Nanos, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;

use super::slowest::Slowest;
use super::{
    BackgroundKind, BackgroundRecord, CommandRecord, Counter, CounterRecord, Kept, Record,
    RecordLimits, Served, Times, ZoneHistory, ZoneRecord,
};
use crate::conventional::Role;
use crate::drive::{Drive, Owner};

/// Records of counters for each record of another kind that may be kept.
const COUNTERS_PER_COMMAND: usize = 4;

/// The zone changes of a drive that records them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneLog {
    limit: usize,
    history: ZoneHistory,
}

/// Commands, background operations and counters of a drive that records them.
/// Spans have a log of their own, which is where bookings are made.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    limits: RecordLimits,
    /// Nothing else is recorded, and no counters, if there are any.
    times: Times,
    slowest: Slowest,
    complete_until: Option<Nanos>,
    next_command: u64,
    commands: Kept<CommandRecord>,
    /// Commands in flight, by slot of their request, and how many these are.
    in_flight: Vec<Option<CommandRecord>>,
    open_commands: usize,
    next_background: u64,
    background: Kept<BackgroundRecord>,
    /// Background operations that go on, by number.
    running: BTreeMap<u64, Running>,
    /// Tasks of the drive, by slot.
    tasks: Vec<Option<Task>>,
    counters: Kept<CounterRecord>,
    /// The drive has a write buffer.
    has_buffer: bool,
    /// It erases by thresholds.
    has_thresholds: bool,
    /// Value of each counter, and the position of its last record.
    values: [(u64, Option<usize>); Counter::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
struct Running {
    record: BackgroundRecord,
    /// Its tasks that have not ended.
    tasks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// Number of its background operation.
    number: u64,
    /// It has yielded since then.
    yielding: Option<Nanos>,
}

/// A background operation that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub(crate) kind: BackgroundKind,
    pub(crate) zone: ZoneId,
    pub(crate) physical: u32,
    /// Slot of the request that asked for it.
    pub(crate) request: u32,
    pub(crate) is_waited_for: bool,
    pub(crate) start: Nanos,
}

/// Puts `value` at `index`, and gives back what was there.
pub(super) fn put<T>(list: &mut Vec<Option<T>>, index: u32, value: T) -> Option<T> {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, || None);
    }
    list[index].replace(value)
}

pub(super) fn take<T>(list: &mut [Option<T>], index: u32) -> Option<T> {
    list.get_mut(index as usize).and_then(Option::take)
}

impl Recorder {
    fn new(limits: &RecordLimits, times: Times, has_buffer: bool, has_thresholds: bool) -> Self {
        Self {
            limits: *limits,
            times,
            slowest: Slowest::new(limits),
            has_buffer,
            has_thresholds,
            complete_until: None,
            next_command: 0,
            commands: Kept::default(),
            in_flight: Vec::new(),
            open_commands: 0,
            next_background: 0,
            background: Kept::default(),
            running: BTreeMap::new(),
            tasks: Vec::new(),
            counters: Kept::default(),
            values: [(0, None); Counter::ALL.len()],
        }
    }

    /// Stops to keep what begins from now on: something of `at` was dropped.
    fn close(&mut self, at: Nanos) {
        let earliest = self.complete_until.map_or(at, |until| until.min(at));
        self.complete_until = Some(earliest);
    }

    fn touches(&self, start: Nanos, end: Nanos) -> bool {
        self.limits.touches(start, end) && self.times.touches(start, end)
    }

    /// Whether something that begins now is kept, of a kind with `kept` records
    /// so far. What begins before the window may never touch it.
    fn keeps(&mut self, now: Nanos, kept: usize) -> bool {
        if now >= self.limits.from && kept >= self.limits.activity {
            self.close(now);
        }
        self.complete_until.is_none()
    }

    fn submitted(
        &mut self,
        now: Nanos,
        slot: u32,
        (queue, tag, command): (QueueId, Tag, Command),
    ) -> u64 {
        let number = self.next_command;
        self.next_command += 1;
        let record = CommandRecord {
            number,
            queue,
            tag,
            nsid: command.nsid,
            op: command.op,
            submitted: now,
            started: None,
            completed: None,
        };
        self.slowest.submitted(slot, &record);
        if now >= self.limits.until {
            return number;
        }
        if !self.keeps(now, self.commands.records.len() + self.open_commands) {
            self.commands.dropped += 1;
            return number;
        }
        self.open_commands += 1;
        if let Some(lost) = put(&mut self.in_flight, slot, record) {
            // Its slot was given back without a completion.
            self.file_command(now, lost);
        }
        number
    }

    fn completed(&mut self, now: Nanos, slot: u32, status: Status) {
        self.slowest.completed(now, slot, status);
        if let Some(mut record) = take(&mut self.in_flight, slot) {
            record.completed = Some((now, status));
            self.file_command(now, record);
        }
    }

    /// Keeps a command that has ended now, or never will.
    fn file_command(&mut self, now: Nanos, record: CommandRecord) {
        self.open_commands -= 1;
        if self.touches(record.submitted, now) {
            let dropped = self.commands.dropped;
            self.commands.add(record, self.limits.activity);
            if self.commands.dropped > dropped {
                self.close(record.submitted.max(self.limits.from));
            }
        }
    }

    fn begins(&mut self, now: Nanos, begin: &Begin) -> u64 {
        let number = self.next_background;
        self.next_background += 1;
        let Begin {
            kind,
            zone,
            physical,
            request,
            is_waited_for,
            start,
        } = *begin;
        let asked_by = self.in_flight.get(request as usize).copied().flatten();
        if now >= self.limits.until {
            return number;
        }
        if !self.keeps(now, self.background.records.len() + self.running.len()) {
            self.background.dropped += 1;
        } else {
            let record = BackgroundRecord {
                number,
                kind,
                zone,
                physical,
                command: asked_by.map(|command| command.number),
                is_waited_for,
                start,
                end: None,
                yields: 0,
                yielded: Nanos::ZERO,
            };
            self.running.insert(number, Running { record, tasks: 0 });
        }
        number
    }

    fn task_begins(&mut self, slot: u32, number: u64) {
        if let Some(running) = self.running.get_mut(&number) {
            running.tasks += 1;
        }
        let yielding = None;
        put(&mut self.tasks, slot, Task { number, yielding });
    }

    fn task_ends(&mut self, now: Nanos, slot: u32) {
        self.task_resumes(now, slot);
        let Some(Task { number, .. }) = take(&mut self.tasks, slot) else {
            return;
        };
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        running.tasks -= 1;
        if running.tasks > 0 {
            return;
        }
        let mut record = running.record;
        self.running.remove(&number);
        record.end = Some(now);
        self.file_background(now, record);
    }

    /// Keeps a background operation that has ended now, or never will.
    fn file_background(&mut self, now: Nanos, record: BackgroundRecord) {
        if self.touches(record.start, now) {
            let dropped = self.background.dropped;
            self.background.add(record, self.limits.activity);
            if self.background.dropped > dropped {
                self.close(record.start.max(self.limits.from));
            }
        }
    }

    fn task_yields(&mut self, now: Nanos, slot: u32) {
        let Some(Some(task)) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if task.yielding.is_none() {
            task.yielding = Some(now);
            if let Some(running) = self.running.get_mut(&task.number) {
                running.record.yields += 1;
            }
        }
    }

    fn task_resumes(&mut self, now: Nanos, slot: u32) {
        let Some(Some(task)) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if let Some(since) = task.yielding.take()
            && let Some(running) = self.running.get_mut(&task.number)
        {
            running.record.yielded += now.saturating_sub(since);
        }
    }

    fn counts(&mut self, now: Nanos, counter: Counter, value: u64) {
        let (before, last) = self.values[counter as usize];
        if before == value || now >= self.limits.until || self.times != Times::default() {
            return;
        }
        self.values[counter as usize].0 = value;
        if now < self.limits.from {
            return;
        }
        if last.is_none() && now > self.limits.from {
            self.note_counter(self.limits.from, counter, before);
        }
        match last.and_then(|last| self.counters.records.get_mut(last)) {
            Some(record) if record.at == now => record.value = value,
            _ => self.note_counter(now, counter, value),
        }
    }

    fn note_counter(&mut self, at: Nanos, counter: Counter, value: u64) {
        if self.keeps(at, self.counters.records.len() / COUNTERS_PER_COMMAND) {
            self.values[counter as usize].1 = Some(self.counters.records.len());
            let record = CounterRecord { at, counter, value };
            self.counters.records.push(record);
        } else {
            self.counters.dropped += 1;
        }
    }

    /// Power is lost: commands never complete, and background operations end here.
    fn power_cut(&mut self, now: Nanos) {
        self.slowest.power_cut();
        for record in core::mem::take(&mut self.in_flight).into_iter().flatten() {
            self.file_command(now, record);
        }
        self.tasks.clear();
        for (_, Running { mut record, .. }) in core::mem::take(&mut self.running) {
            record.end = Some(now);
            self.file_background(now, record);
        }
        self.counts(now, Counter::CommandsInFlight, 0);
        self.counts(now, Counter::BufferedBytes, 0);
    }

    /// Files what has not ended, and puts everything in order.
    fn into_record(mut self, now: Nanos) -> Record {
        for record in core::mem::take(&mut self.in_flight).into_iter().flatten() {
            self.file_command(now, record);
        }
        for (_, running) in core::mem::take(&mut self.running) {
            self.file_background(now, running.record);
        }
        let counts = self.times == Times::default();
        for counter in Counter::ALL.into_iter().filter(|_| counts) {
            let (value, last) = self.values[counter as usize];
            let exists = counter.exists(self.has_buffer, self.has_thresholds);
            if exists && last.is_none() && now >= self.limits.from {
                self.note_counter(self.limits.from, counter, value);
            }
        }
        self.commands.records.sort_by_key(|record| record.number);
        self.background.records.sort_by_key(|record| record.number);
        // Values at the start of the window are noted when they first change.
        self.counters.records.sort_by_key(|record| record.at);
        Record {
            zones: ZoneHistory::default(),
            commands: self.commands,
            spans: Kept::default(),
            background: self.background,
            counters: self.counters,
            complete_until: self.complete_until,
            slowest: self.slowest.into_records(),
        }
    }
}

impl Drive {
    /// Starts to record; what was recorded before is dropped. On a drive that
    /// has done nothing yet, the record covers its whole life.
    pub fn record(&mut self, limits: &RecordLimits) {
        self.record_at(limits, Times::default());
    }

    /// As [`Drive::record`], of what touches some ranges of time, ends included, and no counters
    /// or zone changes: at most `limit` records of each kind.
    pub fn record_times(&mut self, ranges: &[(Nanos, Nanos)], limit: usize) {
        let times = Times::new(ranges);
        let (from, to) = times.ends();
        let limits = RecordLimits {
            zone_changes: 0,
            from,
            until: to.saturating_add(Nanos(1)),
            ..RecordLimits::everything(limit)
        };
        self.record_at(&limits, times);
    }

    fn record_at(&mut self, limits: &RecordLimits, times: Times) {
        let records_activity = limits.activity > 0;
        self.zones
            .keep_journal(limits.zone_changes > 0 || records_activity);
        self.zone_log = ZoneLog {
            limit: limits.zone_changes,
            history: ZoneHistory::default(),
        };
        let has_buffer = self.buffer.is_some();
        let has_thresholds = self.erases_by_thresholds();
        let recorder = || {
            Box::new(Recorder::new(
                limits,
                times.clone(),
                has_buffer,
                has_thresholds,
            ))
        };
        self.recorder = records_activity.then(recorder);
        let ledger = self.flash.media_mut().ledger_mut();
        if records_activity {
            ledger.record_times(limits, times);
            self.record_zone_counts();
            self.record_buffer_fill();
            self.record_reset_state();
        } else {
            let _ = ledger.take_spans();
        }
    }

    /// What was recorded since [`Drive::record`], and stops recording.
    #[must_use]
    pub fn take_record(&mut self) -> Record {
        self.zones.keep_journal(false);
        let now = self.now;
        let mut record = self
            .recorder
            .take()
            .map(|recorder| recorder.into_record(now))
            .unwrap_or_default();
        let ledger = self.flash.media_mut().ledger_mut();
        if let Some(from) = ledger.log_mut().and_then(|log| log.dropped_from()) {
            let earliest = record.complete_until.map_or(from, |until| until.min(from));
            record.complete_until = Some(earliest);
        }
        record.spans = ledger.take_spans();
        record.zones = core::mem::take(&mut self.zone_log).history;
        record
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

    /// The write buffer may hold more or less than before.
    #[inline]
    pub(crate) fn record_buffer_fill(&mut self) {
        let (now, bytes) = (self.now, self.buffered_bytes());
        if let Some(recorder) = &mut self.recorder {
            recorder.counts(now, Counter::BufferedBytes, bytes);
        }
    }

    /// Numbers of free and invalid zones, and the state of a drive that erases by thresholds.
    pub(crate) fn record_pool(&mut self, (free, invalid): (u64, u64), state: u64) {
        let (now, exists) = (self.now, self.erases_by_thresholds());
        if let Some(recorder) = self.recorder.as_mut().filter(|_| exists) {
            recorder.counts(now, Counter::FreeZones, free);
            recorder.counts(now, Counter::InvalidZones, invalid);
            recorder.counts(now, Counter::ResetState, state);
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
    }

    /// The front end lets a command through at `at`.
    #[cold]
    pub(crate) fn record_start(&mut self, slot: u32, at: Nanos) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        recorder.slowest.started(slot, at);
        if let Some(Some(record)) = recorder.in_flight.get_mut(slot as usize) {
            record.started = Some(at);
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

    /// A task of the background operation `number` begins.
    pub(crate) fn record_task(&mut self, task: u32, number: u64) {
        if self.is_tracked() {
            self.mark_task(task);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.task_begins(task, number);
            self.record_served(Owner::Task(task), Some(Served::Background(number)));
        }
    }

    /// A task begins that does a part of what `other` was to do.
    pub(crate) fn record_task_beside(&mut self, task: u32, other: u32) {
        if self.is_tracked() {
            self.mark_task(task);
        }
        let of = |recorder: &Recorder| Some(recorder.tasks.get(other as usize)?.as_ref()?.number);
        if let Some(number) = self.recorder.as_deref().and_then(of) {
            self.record_task(task, number);
        }
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
                command.map(|command| Served::Command(command.number))
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
    fn record_served(&mut self, owner: Owner, served: Option<Served>) {
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
