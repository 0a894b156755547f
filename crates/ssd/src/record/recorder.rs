//! The recorder of a drive.

use std::collections::BTreeMap;

use zonelab_device::{Command, Nanos, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;

use super::slowest::Slowest;
use super::{
    BackgroundKind, BackgroundRecord, CommandRecord, Counter, CounterRecord, Kept, Record,
    RecordLimits, Times, ZoneHistory,
};

/// Records of counters for each record of another kind that may be kept.
const COUNTERS_PER_COMMAND: usize = 4;

/// The zone changes of a drive that records them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneLog {
    pub(super) limit: usize,
    pub(super) history: ZoneHistory,
}

/// Commands, background operations and counters of a drive that records them.
/// Spans have a log of their own, which is where bookings are made.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    limits: RecordLimits,
    /// Nothing else is recorded, and no counters, if there are any.
    times: Times,
    pub(super) slowest: Slowest,
    pub(super) complete_until: Option<Nanos>,
    next_command: u64,
    commands: Kept<CommandRecord>,
    /// Commands in flight, by slot of their request, and how many these are.
    pub(super) in_flight: Vec<Option<CommandRecord>>,
    open_commands: usize,
    next_background: u64,
    background: Kept<BackgroundRecord>,
    /// Background operations that go on, by number.
    running: BTreeMap<u64, Running>,
    /// Tasks of the drive, by slot.
    pub(super) tasks: Vec<Option<Task>>,
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
    pub(super) tasks: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    /// Number of its background operation.
    pub(super) number: u64,
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
    pub(super) fn new(
        limits: &RecordLimits,
        times: Times,
        has_buffer: bool,
        has_thresholds: bool,
    ) -> Self {
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
    pub(super) fn close(&mut self, at: Nanos) {
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

    pub(super) fn submitted(
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

    pub(super) fn completed(&mut self, now: Nanos, slot: u32, status: Status) {
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

    pub(super) fn begins(&mut self, now: Nanos, begin: &Begin) -> u64 {
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

    pub(super) fn task_begins(&mut self, slot: u32, number: u64) {
        if let Some(running) = self.running.get_mut(&number) {
            running.tasks += 1;
        }
        let yielding = None;
        put(&mut self.tasks, slot, Task { number, yielding });
    }

    pub(super) fn task_ends(&mut self, now: Nanos, slot: u32) {
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

    pub(super) fn task_yields(&mut self, now: Nanos, slot: u32) {
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

    pub(super) fn task_resumes(&mut self, now: Nanos, slot: u32) {
        let Some(Some(task)) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if let Some(since) = task.yielding.take()
            && let Some(running) = self.running.get_mut(&task.number)
        {
            running.record.yielded += now.saturating_sub(since);
        }
    }

    pub(super) fn counts(&mut self, now: Nanos, counter: Counter, value: u64) {
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
    pub(super) fn power_cut(&mut self, now: Nanos) {
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
    pub(super) fn into_record(mut self, now: Nanos) -> Record {
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
