//! What kept each channel and unit busy, and for whom.

use zonelab_device::Nanos;

use super::{Kept, RecordLimits, Times};
use crate::account::{Cause, Resource};
use crate::media::FlashKind;

/// Whom a flash operation serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Served {
    /// A command, by its number.
    Command(u64),
    /// A background operation, by its number.
    Background(u64),
    /// Garbage collection of a conventional namespace.
    Collection,
}

/// A time during which one resource was busy with one flash operation.
///
/// An operation has a span for its transfer and one for its array time, or
/// more than one if it was suspended. Spans of one resource do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What was busy.
    pub resource: Resource,
    /// With what.
    pub cause: Cause,
    /// What the flash operation does.
    pub kind: FlashKind,
    /// For whom; `None`: for something that was in flight when recording began,
    /// or for the write buffer, whose programs serve several commands at once.
    pub served: Option<Served>,
    /// From when the resource could have been busy with this, had it been
    /// free: since then it was waited for.
    pub ready: Nanos,
    /// From when it was.
    pub start: Nanos,
    /// Until when.
    pub end: Nanos,
    /// How often the flash operation had been suspended before.
    pub suspends: u32,
}

/// What the flash knows of a booking besides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Token of the group of the flash operation (see [`crate::media`]).
    pub token: u32,
    /// What the operation does.
    pub kind: FlashKind,
    /// See [`Span::ready`].
    pub ready: Nanos,
    /// See [`Span::suspends`].
    pub suspends: u32,
}

/// The spans of a drive that records them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanLog {
    limits: RecordLimits,
    /// How many spans are kept.
    room: usize,
    spans: Kept<Span>,
    /// The earliest start of a span that was dropped.
    dropped_from: Option<Nanos>,
    /// Whom the groups with a token serve at present.
    served: Vec<Option<Served>>,
}

impl SpanLog {
    /// An empty log.
    pub(crate) fn new(limits: &RecordLimits) -> Self {
        Self {
            limits: *limits,
            room: limits.activity,
            spans: Kept::default(),
            dropped_from: None,
            served: Vec::new(),
        }
    }

    /// Groups with `token` serve `served` from now on, or nobody in particular.
    pub(crate) fn serve(&mut self, token: u32, served: Option<Served>) {
        let index = token as usize;
        if self.served.len() <= index {
            self.served.resize(index + 1, None);
        }
        self.served[index] = served;
    }

    /// Adds a booking.
    #[cold]
    pub(crate) fn book(
        &mut self,
        resource: Resource,
        cause: Cause,
        (start, end): (Nanos, Nanos),
        work: Work,
    ) {
        if !self.limits.touches(start, end) {
            return;
        }
        let Work {
            token,
            kind,
            ready,
            suspends,
        } = work;
        let span = Span {
            resource,
            cause,
            kind,
            served: self.served.get(token as usize).copied().flatten(),
            ready,
            start,
            end,
            suspends,
        };
        self.spans.add(span, self.room);
        if self.spans.dropped > 0 {
            let earliest = self.dropped_from.map_or(start, |from| from.min(start));
            self.dropped_from = Some(earliest);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.records.len()
    }

    /// Leaves those that touch some times.
    pub(crate) fn prune(&mut self, times: &Times) {
        let records = &mut self.spans.records;
        records.retain(|span| times.touches(span.start, span.end));
    }

    /// The earliest start of a span that was dropped.
    pub(crate) fn dropped_from(&self) -> Option<Nanos> {
        self.dropped_from
    }

    /// Keeps no more spans, and counts them instead.
    pub(crate) fn close(&mut self) {
        self.room = self.spans.records.len();
    }

    /// What was recorded.
    pub(crate) fn into_spans(self) -> Kept<Span> {
        self.spans
    }
}
