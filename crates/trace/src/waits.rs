//! What a command waited for, worked out from the busy times of the flash.
//!
//! The time from submission to completion of a command is taken apart from its
//! end: the last flash operation that it needed; what had the die or channel
//! when that operation was ready for it; the operation or transfer that had to
//! come before; and so on, back to the submission. The parts add up to the
//! latency exactly. Nothing here knows of any design: a read waits for an
//! erasure because the erasure is what kept the die busy while it was ready.

use std::collections::BTreeMap;

use zonelab_device::{Nanos, Op};
use zonelab_ssd::account::Resource;
use zonelab_ssd::counterfactual::Factor;
use zonelab_ssd::record::{CommandRecord, Record, Served, Span};

use super::names::Names;

/// Where the time of a command went. The parts add up to its latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Before its first flash operation: firmware cores, host link.
    pub front_end: Nanos,
    /// Its own flash operations and transfers, of those that it needed one
    /// after the other.
    pub flash: Nanos,
    /// The operations of others that had a die or channel which it needed, as
    /// `erase (reset of zone 3)`, with the longest wait first.
    pub blocked_by: Vec<(String, Nanos)>,
    /// The same by kind of resource and cause.
    pub contention: BTreeMap<Contention, Nanos>,
    /// The same by what can be left out to see what the command would take without it. What is
    /// not known from busy times (firmware, link) is not among them.
    pub factors: BTreeMap<Factor, Nanos>,
    /// Its own operations, in line for the same die or channel.
    pub own_line: Nanos,
    /// A resource that it needed was idle: held for another resource, or the
    /// background operation that it waited for paused or gave way.
    pub idle: Nanos,
    /// In line for room in the write buffer.
    pub buffer: Nanos,
    /// From its last flash operation to its completion: host link.
    pub link: Nanos,
}

/// What kept a resource from a command: which kind of resource, and busy with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contention {
    /// A channel, not a die or plane.
    pub is_channel: bool,
    /// Position in [`zonelab_ssd::account::Cause::ALL`] of what it was busy with.
    pub cause: usize,
}

impl Waits {
    /// Sum of all parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        let blocked = self.blocked_by.iter().map(|(_, time)| time.0).sum();
        let parts = [self.flash, self.own_line, self.idle, self.buffer, self.link];
        parts
            .into_iter()
            .fold(self.front_end + Nanos(blocked), |sum, part| sum + part)
    }
}

/// The spans of a record, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Index<'a> {
    record: &'a Record,
    /// By resource, positions of its spans in order of time.
    lines: BTreeMap<(bool, u32), Vec<u32>>,
    /// By whom they serve, positions of spans in order of their ends.
    served: BTreeMap<Served, Vec<u32>>,
    /// By command, the background operations that it waits for.
    parts: BTreeMap<u64, Vec<u64>>,
    /// The time in which nothing is missing.
    covered: (Nanos, Nanos),
}

fn line_of(resource: Resource) -> (bool, u32) {
    match resource {
        Resource::Channel(i) => (false, i),
        Resource::Unit(i) => (true, i),
    }
}

impl<'a> Index<'a> {
    pub(super) fn new(record: &'a Record, covered: (Nanos, Nanos)) -> Self {
        let spans = &record.spans.records;
        let mut lines: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        let mut served: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (position, span) in spans.iter().enumerate() {
            if span.start == span.end {
                continue;
            }
            // Fits: limits of records are below 2^32.
            let position = position as u32;
            lines
                .entry(line_of(span.resource))
                .or_default()
                .push(position);
            if let Some(whom) = span.served {
                served.entry(whom).or_default().push(position);
            }
        }
        for line in lines.values_mut() {
            line.sort_by_key(|&at| spans[at as usize].start);
        }
        for list in served.values_mut() {
            list.sort_by_key(|&at| (spans[at as usize].end, spans[at as usize].start));
        }
        let mut parts: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for background in &record.background.records {
            if let Some(command) = background.command.filter(|_| background.is_waited_for) {
                parts.entry(command).or_default().push(background.number);
            }
        }
        Self {
            record,
            lines,
            served,
            parts,
            covered,
        }
    }

    /// All resources that were busy, each with its spans in order of time.
    pub(super) fn lines(&self) -> impl Iterator<Item = (Resource, impl Iterator<Item = &'a Span>)> {
        let spans = &self.record.spans.records;
        self.lines.iter().map(move |(&(is_unit, index), line)| {
            let resource = if is_unit {
                Resource::Unit(index)
            } else {
                Resource::Channel(index)
            };
            (resource, line.iter().map(move |&at| &spans[at as usize]))
        })
    }

    /// What had the resource of `span` when it was ready, if it had to wait.
    pub(super) fn blocker(&self, span: &Span) -> Option<&'a Span> {
        let mut before = self.before(span.resource, span.ready, span.start);
        before.next().filter(|_| span.ready < span.start)
    }

    /// When the first flash operation of a command, or of what it waits for,
    /// starts.
    pub(super) fn first_start(&self, command: &CommandRecord) -> Option<Nanos> {
        let spans = &self.record.spans.records;
        let first = |whom: &Served| {
            let own = self.served.get(whom)?.iter();
            own.map(|&at| spans[at as usize].start).min()
        };
        let parts = self.parts.get(&command.number).into_iter().flatten();
        std::iter::once(Served::Command(command.number))
            .chain(parts.map(|&number| Served::Background(number)))
            .filter_map(|whom| first(&whom))
            .min()
    }

    /// The spans of a resource that end after `from` and start before `until`.
    fn before(
        &self,
        resource: Resource,
        from: Nanos,
        until: Nanos,
    ) -> impl Iterator<Item = &'a Span> {
        let spans = &self.record.spans.records;
        let line: &[u32] = self.lines.get(&line_of(resource)).map_or(&[], |line| line);
        let first = line.partition_point(|&at| spans[at as usize].end <= from);
        let rest = line.get(first..).unwrap_or_default();
        let rest = rest.iter().map(move |&at| &spans[at as usize]);
        rest.take_while(move |span| span.start < until)
    }

    /// Where the time of a command went; `None`: it has not completed, or not
    /// all of its life was recorded.
    pub(super) fn waits(&self, names: &Names<'_>, command: &CommandRecord) -> Option<Waits> {
        let (completed, _) = command.completed?;
        let (from, until) = self.covered;
        if command.submitted < from || completed > until {
            return None;
        }
        let mut whole = Chain::new(self, names, command);
        let mut reached = completed;
        while let Some(span) = whole.last_by(reached) {
            let gap = reached.saturating_sub(span.end);
            if whole.is_first {
                whole.waits.link = gap;
            } else {
                whole.waits.idle += gap;
            }
            whole.is_first = false;
            whole.waits.flash += span.end.saturating_sub(span.start);
            whole.account(span);
            reached = span.ready;
        }
        let is_write = matches!(
            command.op,
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. }
        );
        let is_buffered = whole.is_first && is_write && names.has_buffer();
        match command.started.filter(|_| is_buffered) {
            Some(started) => {
                let started = started.min(reached);
                whole.waits.buffer = reached.saturating_sub(started);
                if started < reached {
                    // Room in the buffer is what earlier writes have.
                    let room = whole.waits.buffer;
                    whole.waits.factors.insert(Factor::HostWrite, room);
                }
                whole.waits.front_end = started.saturating_sub(command.submitted);
            }
            None => whole.waits.front_end = reached.saturating_sub(command.submitted),
        }
        Some(whole.finish())
    }
}

/// The accounting of one command, which goes from its end to its start.
struct Chain<'a, 'i> {
    index: &'i Index<'a>,
    names: &'i Names<'i>,
    /// Spans of each of whom it waits for, in order of their ends.
    own: Vec<&'i [u32]>,
    whom: Vec<Served>,
    is_first: bool,
    waits: Waits,
    blocked_by: BTreeMap<String, Nanos>,
}

impl<'a, 'i> Chain<'a, 'i> {
    fn new(index: &'i Index<'a>, names: &'i Names<'i>, command: &CommandRecord) -> Self {
        let parts = index.parts.get(&command.number);
        let parts = parts.into_iter().flatten().copied();
        let whom: Vec<Served> = std::iter::once(Served::Command(command.number))
            .chain(parts.map(Served::Background))
            .collect();
        let own = whom
            .iter()
            .filter_map(|whom| Some(index.served.get(whom)?.as_slice()))
            .collect();
        Self {
            index,
            names,
            own,
            whom,
            is_first: true,
            waits: Waits::default(),
            blocked_by: BTreeMap::new(),
        }
    }

    /// Its span that ends last, but not after `until`.
    fn last_by(&self, until: Nanos) -> Option<&'a Span> {
        let spans = &self.index.record.spans.records;
        let last = |list: &&[u32]| {
            let count = list.partition_point(|&at| spans[at as usize].end <= until);
            let at = count.checked_sub(1)?;
            Some(&spans[*list.get(at)? as usize])
        };
        let latest = self.own.iter().filter_map(last);
        latest.max_by_key(|span| (span.end, span.start))
    }

    /// Accounts for the time that `span` was ready and did not run.
    fn account(&mut self, span: &Span) {
        let reached = self.account_on(span.resource, span.ready, span);
        if reached == span.start {
            return;
        }
        let reached = match self.twin(span) {
            Some(resource) => self.account_on(resource, reached, span),
            None => reached,
        };
        self.waits.idle += span.start.saturating_sub(reached);
    }

    /// The other resource of a transfer that holds channel and unit: that one
    /// was needed as well.
    fn twin(&self, span: &Span) -> Option<Resource> {
        let spans = &self.index.record.spans.records;
        let list = span.served.and_then(|whom| self.index.served.get(&whom))?;
        let first = list.partition_point(|&at| spans[at as usize].end < span.end);
        let same_end = list.iter().map(|&at| &spans[at as usize]).skip(first);
        same_end
            .take_while(|other| other.end == span.end)
            .find(|other| other.start == span.start && other.resource != span.resource)
            .map(|other| other.resource)
    }

    /// Accounts for what a resource did from `from` until `span` starts.
    /// Returns how far that goes. Idle time before another operation was kept
    /// for it, so it counts with that.
    fn account_on(&mut self, resource: Resource, from: Nanos, span: &Span) -> Nanos {
        let mut reached = from;
        for other in self.index.before(resource, from, span.start) {
            let until = other.end.min(span.start);
            let time = until.saturating_sub(reached);
            reached = reached.max(until);
            if other.served.is_some_and(|whom| self.whom.contains(&whom)) {
                self.waits.own_line += time;
            } else {
                let name = self.names.span_name(other);
                *self.blocked_by.entry(name).or_default() += time;
                let contention = Contention {
                    is_channel: matches!(other.resource, Resource::Channel(_)),
                    cause: other.cause as usize,
                };
                *self.waits.contention.entry(contention).or_default() += time;
                let factor = match other.served {
                    Some(Served::Collection) => Factor::Collection,
                    _ => Factor::of(other.cause),
                };
                *self.waits.factors.entry(factor).or_default() += time;
            }
        }
        reached
    }

    fn finish(mut self) -> Waits {
        let mut blocked_by: Vec<_> = self.blocked_by.into_iter().collect();
        blocked_by.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        self.waits.blocked_by = blocked_by;
        self.waits
    }
}
