//! Pictures of a point: what kept channels and dies busy for a while, and the states of zones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zonelab_device::Nanos;
use zonelab_lab::run::{PointResult, ZONE_HISTORY_LIMIT};
use zonelab_lab::trace::PointTrace;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::account::Resource;
use zonelab_ssd::record::{RecordLimits, Span, ZoneHistory};

/// Records that a timeline keeps: more would be no picture.
const ACTIVITY: usize = 20_000;
/// Rows that a timeline has at most.
const ROWS: usize = 128;
/// Spans that it shows at most.
const SPANS: usize = 6_000;

/// A time of a point that is looked at closely.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Window {
    /// Its begin, in nanoseconds.
    #[serde(rename = "from_ns", deserialize_with = "nanos")]
    pub from: Nanos,
    /// How long it is, in nanoseconds.
    #[serde(rename = "for_ns", deserialize_with = "nanos")]
    pub length: Nanos,
}

fn nanos<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    u64::deserialize(from).map(Nanos)
}

impl Window {
    /// What is recorded for it.
    pub(crate) fn limits(self) -> RecordLimits {
        RecordLimits {
            from: self.from,
            until: self.until(),
            zone_changes: ZONE_HISTORY_LIMIT,
            ..RecordLimits::everything(ACTIVITY)
        }
    }

    fn until(self) -> Nanos {
        self.from.saturating_add(self.length)
    }
}

/// What is drawn of a point.
#[derive(Debug, Serialize)]
pub(crate) struct Pictures {
    from_ns: u64,
    until_ns: u64,
    /// When the run ended.
    end_ns: u64,
    /// Channels, then units.
    rows: Vec<Row>,
    /// What spans were for, by number.
    names: Vec<String>,
    /// Spans that are not shown.
    left_out: u64,
    zones: Zones,
}

/// What kept one channel or unit busy.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    is_channel: bool,
    /// Begin and end in nanoseconds, the number of the cause, the number of the name.
    spans: Vec<(u64, u64, &'static str, usize)>,
}

/// The zones of a drive over time.
#[derive(Debug, Serialize)]
struct Zones {
    count: u32,
    /// Time in nanoseconds, zone, and the state from then on: a letter.
    changes: Vec<(u64, u32, char)>,
    /// Changes that were not kept.
    dropped: u64,
}

/// The pictures of a point that was traced.
pub(crate) fn of(result: &PointResult, window: Window) -> Option<Pictures> {
    let trace = result.trace.as_deref()?;
    let history = result.drive.as_ref().map(|drive| &drive.zone_history);
    let mut names = Names::default();
    let mut rows: BTreeMap<(bool, u32), Row> = BTreeMap::new();
    let mut left_out = trace.record.spans.dropped;
    for (number, span) in trace.record.spans.records.iter().enumerate() {
        let key = match span.resource {
            Resource::Channel(channel) => (false, channel),
            Resource::Unit(unit) => (true, unit),
        };
        let is_full = rows.len() >= ROWS && !rows.contains_key(&key);
        if number >= SPANS || is_full {
            left_out += 1;
            continue;
        }
        let row = rows.entry(key).or_insert_with(|| Row {
            name: trace.resource_name(span.resource),
            is_channel: !key.0,
            spans: Vec::new(),
        });
        row.spans.push(drawn(trace, span, &mut names));
    }
    Some(Pictures {
        from_ns: window.from.0,
        until_ns: window.until().min(trace.end).max(window.from).0,
        end_ns: trace.end.0,
        rows: rows.into_values().collect(),
        names: names.list,
        left_out,
        zones: zones(trace.config.zones.count, history),
    })
}

fn drawn(trace: &PointTrace, span: &Span, names: &mut Names) -> (u64, u64, &'static str, usize) {
    let name = names.number(trace.span_name(span));
    (span.start.0, span.end.0, span.cause.name(), name)
}

/// Texts, each once.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Names {
    fn number(&mut self, name: String) -> usize {
        let next = self.list.len();
        let number = *self.known.entry(name.clone()).or_insert(next);
        if number == next {
            self.list.push(name);
        }
        number
    }
}

fn zones(count: u32, history: Option<&ZoneHistory>) -> Zones {
    let records = history.map_or(&[][..], |history| &history.records);
    let change =
        |record: &zonelab_ssd::record::ZoneRecord| (record.at.0, record.zone.0, letter(record.to));
    Zones {
        count,
        changes: records.iter().map(change).collect(),
        dropped: history.map_or(0, |history| history.dropped),
    }
}

/// The letter of a state, as in the report.
const fn letter(state: ZoneState) -> char {
    match state {
        ZoneState::IMPLICITLY_OPENED => 'I',
        ZoneState::EXPLICITLY_OPENED => 'X',
        ZoneState::CLOSED => 'C',
        ZoneState::FULL => 'F',
        ZoneState::READ_ONLY => 'R',
        ZoneState::OFFLINE => 'O',
        _ => 'E',
    }
}
