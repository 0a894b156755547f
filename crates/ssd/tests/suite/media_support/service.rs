//! Works out from bookings when each operation was served.

use std::collections::BTreeSet;

use zonelab_ssd::account::{Cause, Resource};
use zonelab_ssd::config::{MediaConfig, PageRegister};
use zonelab_ssd::media::{FlashKind, FlashOp};
use zonelab_ssd::record::Span;

use super::{Arrival, Shape, cause_of};

/// More than there are operations in a run.
pub(crate) const NAMES: u32 = 128;

/// From `start` up to `end`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Interval {
    fn of(span: &Span) -> Self {
        Self {
            start: span.start.0,
            end: span.end.0,
        }
    }

    fn length(self) -> u64 {
        self.end - self.start
    }
}

pub(crate) fn sorted(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    intervals
}

/// Whether sorted intervals leave no gap between `from` and `to`.
pub(crate) fn covered(busy: &[Interval], from: u64, to: u64) -> bool {
    let mut reached = from;
    for interval in busy {
        if interval.start <= reached {
            reached = reached.max(interval.end);
        }
    }
    reached >= to
}

/// An operation and when it was served.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) op: FlashOp,
    pub(crate) group: usize,
    pub(crate) arrived: u64,
    pub(crate) transfer: Option<Interval>,
    /// Array time in pieces, with the overheads of suspends.
    pub(crate) array: Vec<Interval>,
}

impl Served {
    pub(crate) fn is_write(&self) -> bool {
        self.op.kind != FlashKind::Read
    }

    pub(crate) fn suspends(&self) -> u64 {
        self.array.len() as u64 - 1
    }

    pub(crate) fn first_start(&self) -> u64 {
        self.array[0].start
    }

    pub(crate) fn end(&self) -> u64 {
        let array = self.array[self.array.len() - 1].end;
        self.transfer.map_or(array, |t| t.end.max(array))
    }

    /// When the unit could take the next operation.
    pub(crate) fn unit_released(&self, run: &Run) -> u64 {
        if run.holds(self.op.kind) {
            self.end()
        } else {
            self.array[self.array.len() - 1].end
        }
    }
}

/// One run, seen from outside.
pub(crate) struct Run {
    pub(crate) config: MediaConfig,
    pub(crate) shape: Shape,
    /// In order of submission.
    pub(crate) ops: Vec<Served>,
    spans: Vec<Span>,
}

impl Run {
    pub(crate) fn new(
        config: MediaConfig,
        shape: Shape,
        arrivals: &[Arrival],
        spans: Vec<Span>,
    ) -> Self {
        let ops = arrivals.iter().enumerate().flat_map(|(group, arrival)| {
            arrival.ops.iter().map(move |op| Served {
                op: *op,
                group,
                arrived: arrival.at.0,
                transfer: None,
                array: Vec::new(),
            })
        });
        let mut run = Self {
            config,
            shape,
            ops: ops.collect(),
            spans,
        };
        run.find_transfers();
        run.find_reads();
        for unit in 0..run.units() {
            run.find_writes(unit);
        }
        run
    }

    fn spans_of(&self, resource: Resource) -> Vec<Span> {
        let on = self.spans.iter().filter(|span| span.resource == resource);
        let mut spans: Vec<Span> = on.copied().collect();
        spans.sort_by_key(|span| span.start);
        spans
    }

    /// The operation that a time names.
    fn named(&mut self, length: u64) -> &mut Served {
        let name = length % u64::from(NAMES);
        &mut self.ops[name as usize - 1]
    }

    fn find_transfers(&mut self) {
        for channel in 0..self.shape.channels {
            for span in self.spans_of(Resource::Channel(channel)) {
                let transfer = Interval::of(&span);
                let served = self.named(transfer.length());
                assert_eq!(transfer.length(), u64::from(served.op.transfer_ns));
                assert_eq!(served.transfer.replace(transfer), None, "transferred once");
                assert_eq!(span.cause, cause_of(served.op.kind));
            }
        }
    }

    /// Bookings of a unit without those of transfers that hold it.
    fn array_spans(&self, unit: u32) -> Vec<Span> {
        let mut spans = self.spans_of(Resource::Unit(unit));
        let transfers: BTreeSet<Interval> = self
            .on_unit(unit)
            .filter(|served| self.holds(served.op.kind))
            .filter_map(|served| served.transfer)
            .collect();
        let before = spans.len();
        // Lengths name operations, so no array time looks like one of them.
        spans.retain(|span| !transfers.contains(&Interval::of(span)));
        assert_eq!(spans.len() + transfers.len(), before, "held by each page");
        spans
    }

    fn find_reads(&mut self) {
        for unit in 0..self.units() {
            for span in self.array_spans(unit) {
                if span.cause == Cause::HostRead {
                    let sensed = Interval::of(&span);
                    let served = self.named(sensed.length());
                    assert_eq!(sensed.length(), u64::from(served.op.array_ns));
                    assert_eq!((served.op.unit, served.is_write()), (unit, false));
                    served.array.push(sensed);
                    assert_eq!(served.array.len(), 1, "a read is served once, in one piece");
                }
            }
        }
        let lost = self
            .ops
            .iter()
            .find(|s| !s.is_write() && s.array.is_empty());
        assert!(lost.is_none(), "never served: {lost:?}");
    }

    /// Programs and erases end in the order of submission, so their pieces
    /// belong to one after the other.
    fn find_writes(&mut self, unit: u32) {
        let mut spans = self.array_spans(unit);
        spans.retain(|span| span.cause != Cause::HostRead);
        let mut pieces = spans.into_iter();
        let overhead = self.overhead();
        let writes = self.ops.iter_mut().filter(|s| s.is_write());
        for served in writes.filter(|s| s.op.unit == unit) {
            let array = u64::from(served.op.array_ns);
            let mut booked = 0;
            while served.array.is_empty() || booked < array + 2 * overhead * served.suspends() {
                let span = pieces.next().expect("every program and erase ends");
                assert_eq!(span.cause, cause_of(served.op.kind));
                served.array.push(Interval::of(&span));
                booked += Interval::of(&span).length();
            }
            let total = array + 2 * overhead * served.suspends();
            assert_eq!(booked, total, "{served:?} takes its time and no more");
        }
        assert_eq!(pieces.next(), None, "nothing runs twice");
    }

    /// Whether a unit is held during transfers of this kind.
    pub(crate) fn holds(&self, kind: FlashKind) -> bool {
        match self.config.page_register {
            PageRegister::Overlap => false,
            PageRegister::Hold => true,
            PageRegister::Cache => kind == FlashKind::Read,
        }
    }

    /// Whether the page of the next program comes while a unit works, and no other.
    pub(crate) fn one_ahead(&self) -> bool {
        self.config.page_register == PageRegister::Cache
    }

    pub(crate) fn overhead(&self) -> u64 {
        self.config.suspend.overhead_ns.0
    }

    pub(crate) fn suspend_limit(&self, kind: FlashKind) -> u64 {
        let suspend = self.config.suspend;
        let allowed = match kind {
            FlashKind::Read => false,
            FlashKind::Program => suspend.program,
            FlashKind::Erase => suspend.erase,
        };
        if allowed {
            u64::from(suspend.max_per_operation)
        } else {
            0
        }
    }

    pub(crate) fn suspends_anything(&self) -> bool {
        let kinds = [FlashKind::Program, FlashKind::Erase];
        kinds.iter().any(|kind| self.suspend_limit(*kind) > 0)
    }

    /// Whether operations stop at points, also for reads that wait when they go on.
    pub(crate) fn has_points(&self) -> bool {
        self.config.suspend.interval_ns.0 > 0
    }

    pub(crate) fn units(&self) -> u32 {
        self.shape.channel_of_unit.len() as u32
    }

    pub(crate) fn on_unit(&self, unit: u32) -> impl Iterator<Item = &Served> {
        self.ops.iter().filter(move |served| served.op.unit == unit)
    }

    pub(crate) fn channel_of(&self, served: &Served) -> u32 {
        u32::from(self.shape.channel_of_unit[served.op.unit as usize])
    }

    pub(crate) fn channel_busy(&self, channel: u32) -> Vec<Interval> {
        let spans = self.spans_of(Resource::Channel(channel));
        spans.iter().map(Interval::of).collect()
    }

    /// When a unit works or is held by a page.
    pub(crate) fn unit_busy(&self, unit: u32) -> Vec<Interval> {
        let spans = self.spans_of(Resource::Unit(unit));
        let mut busy: Vec<Interval> = spans.iter().map(Interval::of).collect();
        if self.holds(FlashKind::Read) {
            let reads = self.on_unit(unit).filter(|served| !served.is_write());
            busy.extend(reads.map(|read| Interval {
                start: read.first_start(),
                end: read.end(),
            }));
        }
        sorted(busy)
    }

    /// No unit and no channel does two things at a time.
    pub(crate) fn check_exclusive(&self) {
        let units = (0..self.units()).map(Resource::Unit);
        let channels = (0..self.shape.channels).map(Resource::Channel);
        for resource in units.chain(channels) {
            for pair in self.spans_of(resource).windows(2) {
                assert!(pair[0].end <= pair[1].start, "{pair:?}");
            }
        }
        if self.holds(FlashKind::Read) {
            for read in self.ops.iter().filter(|served| !served.is_write()) {
                let spans = self.spans_of(Resource::Unit(read.op.unit));
                let (start, end) = (read.first_start(), read.end());
                let inside = spans.iter().filter(|s| s.start.0 < end && s.end.0 > start);
                let pieces = if read.transfer.is_some() { 2 } else { 1 };
                assert_eq!(inside.count(), pieces, "{read:?} holds its unit");
            }
        }
    }

    /// When the unit was first held for piece `index` of a program or erase,
    /// and from when its array time ran.
    pub(crate) fn progress_of(&self, write: &Served, index: usize) -> (u64, u64) {
        let start = write.array[index].start;
        match (index, write.transfer) {
            (0, Some(transfer)) if self.holds(write.op.kind) => (transfer.start, start),
            (0, _) => (start, start),
            _ => (start, start + self.overhead()),
        }
    }

    /// Since when a program or erase could have started: its page is there and
    /// the one before it has ended.
    pub(crate) fn startable(&self, write: &Served) -> u64 {
        let previous = self.previous_write(write);
        let in_turn = write.arrived.max(previous.map_or(0, Served::end));
        match write.transfer {
            Some(transfer) if !self.holds(write.op.kind) => in_turn.max(transfer.end),
            _ => in_turn,
        }
    }

    /// The program or erase before this one on its unit.
    fn previous_write(&self, write: &Served) -> Option<&Served> {
        let name = |served: &Served| served.op.array_ns % NAMES;
        let older = self.on_unit(write.op.unit).filter(|s| s.is_write());
        older.take_while(|s| name(s) < name(write)).last()
    }

    /// Since when the page of a program could have come: with a cache register,
    /// not before the program or erase before it has started.
    pub(crate) fn loadable(&self, write: &Served) -> u64 {
        let previous = self.previous_write(write).filter(|_| self.one_ahead());
        write.arrived.max(previous.map_or(0, Served::first_start))
    }

    /// When a program or erase stops that could from `at` on, in a piece that
    /// goes on at `from` after `done` of its array time.
    pub(crate) fn stop_after(&self, at: u64, from: u64, done: u64) -> u64 {
        let stop = from.max(at);
        match self.config.suspend.interval_ns.0 {
            0 => stop,
            interval => {
                let reached = done + stop - from;
                stop + interval - reached % interval
            }
        }
    }

    /// The times at which a program or erase takes its unit, each with the time
    /// since when it could have.
    pub(crate) fn turns(&self, write: &Served) -> Vec<(u64, u64)> {
        let first = self.progress_of(write, 0).0;
        let mut turns = vec![(self.startable(write), first)];
        for pair in write.array.windows(2) {
            turns.push((pair[0].end, pair[1].start));
        }
        turns
    }
}
