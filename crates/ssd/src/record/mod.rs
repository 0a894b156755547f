//! What happened in a drive, kept in order, within bounds.
//!
//! Nothing is recorded unless the drive's owner asks for it
//! ([`Drive::record`](crate::Drive::record)), and recording changes nothing of what the drive does.
//! Every kind of record has a bound: the first ones are kept and the others
//! are counted, so that a long run cannot fill the memory and nobody mistakes
//! a part for the whole. When one kind is full, the others stop as well
//! (changes of zone states apart): up to [`Record::complete_until`] everything
//! is there, and after it nothing new.
//!
//! | records | of what |
//! | --- | --- |
//! | [`CommandRecord`] | commands, from submission to completion |
//! | [`Span`] | channels and units while they are busy, and for whom |
//! | [`BackgroundRecord`] | fills and erasures of zones |
//! | [`CounterRecord`] | numbers that go up and down |
//! | [`ZoneRecord`] | changes of zone states |

mod drive;
mod recorder;
mod slowest;
mod spans;

use zonelab_device::{NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

pub(crate) use recorder::{Begin, Recorder, ZoneLog};
pub(crate) use spans::SpanLog;
pub use spans::{Served, Span, Work};

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Changes of zone states, from the start of the recording whatever the
    /// window is; 0: they are not recorded.
    pub zone_changes: usize,
    /// Records of each other kind (of counters four times as many, as a command
    /// changes them more than once); 0: nothing else is recorded.
    pub activity: usize,
    /// Begin of the window: what has ended by then is neither kept nor counted, changes of
    /// zone states apart.
    pub from: Nanos,
    /// End of the window: what starts then or later is neither kept nor counted, changes of
    /// zone states apart.
    pub until: Nanos,
    /// The slowest commands that are submitted in the window. They are known whatever else is
    /// kept.
    pub slowest: SlowestOf,
    /// All that touches the lives of the slowest commands is kept, also before and after the
    /// window, and nothing else but changes of zone states.
    pub only_slowest: bool,
}

/// Of how many commands it is known that they are the slowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowestOf {
    /// Of those that move or look at blocks.
    pub data: usize,
    /// Of the others: zone management, flushes, reports.
    pub management: usize,
}

impl SlowestOf {
    /// So many of both.
    #[must_use]
    pub const fn both(most: usize) -> Self {
        Self {
            data: most,
            management: most,
        }
    }
}

impl RecordLimits {
    /// Whether what lasts from `start` to `end` is recorded.
    pub(crate) fn touches(&self, start: Nanos, end: Nanos) -> bool {
        self.only_slowest || start < self.until && (end > self.from || start >= self.from)
    }

    /// Whether nothing that begins at `now` is recorded any more.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now >= self.until && !self.only_slowest
    }

    /// Records of every kind, at most `limit` of each, from the first on.
    #[must_use]
    pub const fn everything(limit: usize) -> Self {
        Self {
            zone_changes: limit,
            activity: limit,
            from: Nanos::ZERO,
            until: Nanos::MAX,
            slowest: SlowestOf {
                data: 0,
                management: 0,
            },
            only_slowest: false,
        }
    }

    /// Nothing but changes of zone states, at most `limit`.
    #[must_use]
    pub const fn zones_only(limit: usize) -> Self {
        Self {
            activity: 0,
            ..Self::everything(limit)
        }
    }

    /// The lives of the slowest commands: at most `limit` records of each kind at a time.
    #[must_use]
    pub const fn lives(slowest: SlowestOf, limit: usize) -> Self {
        Self {
            zone_changes: 0,
            slowest,
            only_slowest: true,
            ..Self::everything(limit)
        }
    }
}

/// Times of which everything is kept, in order and apart from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times(Vec<(Nanos, Nanos)>);

impl Times {
    /// The times that are in any of some ranges, each of which includes its end.
    pub(crate) fn new(mut ranges: Vec<(Nanos, Nanos)>) -> Self {
        ranges.sort_unstable();
        let mut times: Vec<(Nanos, Nanos)> = Vec::new();
        for (from, to) in ranges {
            match times.last_mut() {
                Some(last) if from <= last.1 => last.1 = to.max(last.1),
                _ => times.push((from, to)),
            }
        }
        Self(times)
    }

    /// Whether what lasts from `start` to `end` touches one of them.
    pub(crate) fn touches(&self, start: Nanos, end: Nanos) -> bool {
        let next = self.0.partition_point(|(_, to)| *to < start);
        self.0.get(next).is_some_and(|(from, _)| *from <= end)
    }
}

/// Records of one kind: the first ones, and how many more there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept<T> {
    /// The first ones.
    pub records: Vec<T>,
    /// How many more there were.
    pub dropped: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            dropped: 0,
        }
    }
}

impl<T> Kept<T> {
    fn add(&mut self, record: T, limit: usize) {
        if self.records.len() < limit {
            self.records.push(record);
        } else {
            self.dropped += 1;
        }
    }
}

/// One change of the state of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRecord {
    /// When the drive made the change: on arrival of the command that caused it.
    pub at: Nanos,
    /// The zone, counted over the drive.
    pub zone: ZoneId,
    /// Its state before.
    pub from: ZoneState,
    /// Its state from then on.
    pub to: ZoneState,
    /// Its write pointer just before the change, in logical blocks from its
    /// start: at a finish or reset, how full the zone was.
    pub written_lbas: u64,
}

/// The changes of zone states of a run, in the order in which they were made.
///
/// Zones are empty before their first change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneHistory {
    /// The first ones.
    pub records: Vec<ZoneRecord>,
    /// How many more there were after these.
    pub dropped: u64,
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// Commands count from 0 in the order of their submission since the
    /// recording began, also those that are not kept.
    pub number: u64,
    /// The queue it came from.
    pub queue: QueueId,
    /// What the host calls it.
    pub tag: Tag,
    /// The namespace it is for.
    pub nsid: NamespaceId,
    /// What it does, with its address counted over the drive.
    pub op: Op,
    /// When it came.
    pub submitted: Nanos,
    /// When the front end lets it through: to the flash, to the line for the
    /// write buffer, or to its completion. `None`: it was refused.
    pub started: Option<Nanos>,
    /// When and how it completed; `None`: not before the recording ended.
    pub completed: Option<(Nanos, Status)>,
}

/// What a background operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackgroundKind {
    /// Programs the rest of a zone that was finished.
    FinishFill,
    /// Erases the blocks of a zone that was reset.
    Erasure,
    /// Erases a row of blocks of an invalid zone while nothing of the host is pending.
    PartialErase,
    /// Erases an invalid zone, or what is left of it, while the host waits.
    FullErase,
}

/// One operation of the drive on a zone that goes on beside commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundRecord {
    /// Background operations count from 0 in the order in which they began.
    pub number: u64,
    /// What it does.
    pub kind: BackgroundKind,
    /// The zone that was finished or reset, counted over the drive. Of an erasure that goes on after
    /// a loss of power, and of partial and full ones, the number of the physical zone: no zone may
    /// stand on it.
    pub zone: ZoneId,
    /// The flash that the zone stood on.
    pub physical: u32,
    /// Number of the command that asked for it; `None`: that command is not
    /// among the records, because it came before they began.
    pub command: Option<u64>,
    /// That command completes with it, not before.
    pub is_waited_for: bool,
    /// When it began.
    pub start: Nanos,
    /// When it ended; `None`: not before the recording ended.
    pub end: Option<Nanos>,
    /// How often it held back for host I/O.
    pub yields: u64,
    /// How long it held back altogether. An erasure row by row yields on each die (or plane)
    /// by itself; this is the sum over them.
    pub yielded: Nanos,
}

/// A number that goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Commands submitted and not completed.
    CommandsInFlight,
    /// Open zones.
    OpenZones,
    /// Active zones.
    ActiveZones,
    /// Bytes in the write buffer. Only drives that have one have this counter.
    BufferedBytes,
    /// Free physical zones. Only drives that erase by thresholds have this counter.
    FreeZones,
    /// Invalid physical zones. Only drives that erase by thresholds have this counter.
    InvalidZones,
    /// Reset state, 0 to 2, of groups of zones the highest. Only drives that erase by
    /// thresholds have this counter.
    ResetState,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::CommandsInFlight,
        Self::OpenZones,
        Self::ActiveZones,
        Self::BufferedBytes,
        Self::FreeZones,
        Self::InvalidZones,
        Self::ResetState,
    ];

    /// Not every drive has this counter.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        !self.exists(false, false)
    }

    /// Whether a drive has this counter, with a write buffer and with erasure by
    /// thresholds or without.
    pub(crate) const fn exists(self, has_buffer: bool, has_thresholds: bool) -> bool {
        match self {
            Self::CommandsInFlight | Self::OpenZones | Self::ActiveZones => true,
            Self::BufferedBytes => has_buffer,
            Self::FreeZones | Self::InvalidZones | Self::ResetState => has_thresholds,
        }
    }
}

/// A counter has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRecord {
    /// When. Of several changes at one time, the last one counts.
    pub at: Nanos,
    /// Which.
    pub counter: Counter,
    /// Its value from then on.
    pub value: u64,
}

/// What was recorded of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Changes of zone states.
    pub zones: ZoneHistory,
    /// Commands, by number.
    pub commands: Kept<CommandRecord>,
    /// Busy times of channels and units, in the order in which they were booked.
    pub spans: Kept<Span>,
    /// Background operations, by number.
    pub background: Kept<BackgroundRecord>,
    /// Counters, in order of time.
    pub counters: Kept<CounterRecord>,
    /// From when on records were dropped; `None`: none were.
    pub complete_until: Option<Nanos>,
    /// The slowest commands of the window ([`RecordLimits::slowest`]), the slowest first: those
    /// that move or look at blocks, then the others.
    pub slowest: Vec<CommandRecord>,
}

impl Record {
    /// How many records were dropped, changes of zone states apart.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.commands.dropped + self.spans.dropped + self.background.dropped + self.counters.dropped
    }
}
