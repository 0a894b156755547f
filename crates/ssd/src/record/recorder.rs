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

/// No records are dropped for touching no life of a slow command where they are fewer: they fit
/// into the cache of a core.
const PRUNE_FROM: usize = 1 << 11;

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
    slowest: Slowest,
    /// From how many records of a kind on those are dropped that touch no life of the slowest
    /// commands, if only these are recorded.
    prune_at: usize,
    pub(super) complete_until: Option<Nanos>,
    next_command: u64,
    commands: Kept<CommandRecord>,
    /// Commands in flight, by slot of their request, and how many of these are to be kept.
    pub(super) in_flight: Vec<Option<Flying>>,
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

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) record: CommandRecord,
    /// It is to be kept.
    is_kept: bool,
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
    pub(super) fn new(limits: &RecordLimits, has_buffer: bool, has_thresholds: bool) -> Self {
        Self {
            limits: *limits,
            slowest: Slowest::new(limits),
            prune_at: PRUNE_FROM,
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

    /// The lives of the slowest commands, if only they are recorded and there are so many records
    /// that the others should go: not for the room of what is not kept any more.
    pub(super) fn lives_if_full(&self, now: Nanos, spans: usize) -> Option<Times> {
        let many = spans.max(self.commands.records.len());
        let is_full = self.complete_until.is_some();
        if !self.limits.only_slowest || is_full || many < self.prune_at {
            return None;
        }
        let in_flight = self.in_flight.iter().flatten();
        Some(self.slowest.lives(now, in_flight.map(|of| &of.record)))
    }

    /// Drops what touches none of these lives, which `spans` do.
    pub(super) fn prune(&mut self, lives: &Times, spans: usize) {
        let is_in = |from, to: Option<Nanos>| lives.touches(from, to.unwrap_or(Nanos::MAX));
        let commands = &mut self.commands.records;
        commands.retain(|of| is_in(of.submitted, of.completed.map(|(at, _)| at)));
        let left = spans.max(commands.len());
        let background = &mut self.background.records;
        background.retain(|of| is_in(of.start, of.end));
        // Before the limit is reached, however little there is to drop, but ever more rarely.
        let half_way = left.midpoint(self.limits.activity);
        self.prune_at = left.saturating_mul(2).max(PRUNE_FROM).min(half_way);
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
        let is_due = !self.limits.is_over(now);
        let is_kept = is_due && self.keeps(now, self.commands.records.len() + self.open_commands);
        self.commands.dropped += u64::from(is_due && !is_kept);
        self.open_commands += usize::from(is_kept);
        if let Some(lost) = put(&mut self.in_flight, slot, Flying { record, is_kept }) {
            // Its slot was given back without a completion.
            self.file_command(now, lost);
        }
        number
    }

    pub(super) fn completed(&mut self, now: Nanos, slot: u32, status: Status) {
        if let Some(mut flying) = take(&mut self.in_flight, slot) {
            flying.record.completed = Some((now, status));
            self.slowest.completed(now, &flying.record);
            self.file_command(now, flying);
        }
    }

    /// Keeps a command that has ended now, or never will.
    fn file_command(&mut self, now: Nanos, Flying { record, is_kept }: Flying) {
        if !is_kept {
            return;
        }
        self.open_commands -= 1;
        if self.limits.touches(record.submitted, now) {
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
        let asked_by = asked_by.filter(|command| command.is_kept);
        if self.limits.is_over(now) {
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
                command: asked_by.map(|command| command.record.number),
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
        if self.limits.touches(record.start, now) {
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
        if before == value || now >= self.limits.until || self.limits.only_slowest {
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
        for flying in core::mem::take(&mut self.in_flight).into_iter().flatten() {
            self.file_command(now, flying);
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
        for flying in core::mem::take(&mut self.in_flight).into_iter().flatten() {
            self.file_command(now, flying);
        }
        for (_, running) in core::mem::take(&mut self.running) {
            self.file_background(now, running.record);
        }
        let counts = !self.limits.only_slowest;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// To look through all of them at each command took minutes of a run at one time.
    #[test]
    fn what_is_full_is_not_looked_through_for_room() {
        let full = 1 << 12;
        let limits = RecordLimits {
            zone_changes: 0,
            activity: full,
            from: Nanos::ZERO,
            until: Nanos::MAX,
            slowest: crate::record::SlowestOf::both(1),
            only_slowest: true,
        };
        let mut recorder = Recorder::new(&limits, false, false);
        assert!(recorder.lives_if_full(Nanos::ZERO, full).is_some());
        recorder.close(Nanos::ZERO);
        assert!(recorder.lives_if_full(Nanos::ZERO, full).is_none());
    }
}
