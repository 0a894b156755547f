//! From a record to the packets of a trace.
//!
//! Everything is written track by track; Perfetto puts it in order of time.

use std::collections::BTreeMap;

use zonelab_device::{Nanos, Op};
use zonelab_ssd::account::{Cause, Resource};
use zonelab_ssd::record::{BackgroundKind, BackgroundRecord, CommandRecord, Counter, Served, Span};

use super::names::Names;
use super::packets::{Arg, Event, Name, Packets, Track};
use super::waits::{Index, Waits};
use super::{PointTrace, state_name};

/// Zones with a track of their own; the CSV has all of them.
const ZONE_TRACKS: usize = 256;

/// The trace as a file.
pub(super) fn file(trace: &PointTrace) -> Vec<u8> {
    let mut writer = Writer {
        trace,
        names: trace.names(),
        index: trace.index(),
        packets: Packets::new(),
    };
    writer.about();
    writer.jobs();
    writer.background();
    writer.flash();
    writer.zones();
    writer.packets.into_bytes()
}

struct Writer<'a> {
    trace: &'a PointTrace,
    names: Names<'a>,
    index: Index<'a>,
    packets: Packets,
}

/// Tracks of one name, so many that slices which overlap lie on different ones.
#[derive(Default)]
struct Lanes {
    /// Each with the time from which it is free.
    lanes: Vec<(Track, Nanos)>,
}

impl Lanes {
    /// The first lane that is free at `start`; it is taken until `end`.
    fn take(&mut self, start: Nanos, end: Option<Nanos>, add: impl FnOnce() -> Track) -> Track {
        let end = end.unwrap_or(Nanos::MAX);
        if let Some((track, free)) = self.lanes.iter_mut().find(|(_, free)| *free <= start) {
            *free = end;
            return *track;
        }
        let track = add();
        self.lanes.push((track, end));
        track
    }
}

impl Writer<'_> {
    /// What the trace is of, and what is missing from it.
    fn about(&mut self) {
        let group = self.packets.group("zonelab");
        let track = self.packets.track(group, "about this trace", 0);
        let trace = self.trace;
        let record = &trace.record;
        let event = |name, args| Event {
            track,
            name: Name::Once(name),
            category: "about",
            flow: None,
            args,
        };
        let mut args = vec![
            ("drive", Arg::Text(&trace.config.name)),
            ("dropped_busy_times", Arg::Uint(record.spans.dropped)),
            ("dropped_commands", Arg::Uint(record.commands.dropped)),
            ("dropped_background", Arg::Uint(record.background.dropped)),
            ("dropped_counters", Arg::Uint(record.counters.dropped)),
            ("dropped_zone_changes", Arg::Uint(record.zones.dropped)),
        ];
        if let Some(until) = record.complete_until {
            args.push(("complete_until_ns", Arg::Uint(until.0)));
        }
        let (from, until) = trace.covered();
        self.packets.instant(from, &event(&trace.title, &args));
        if let Some(dropped) = trace.dropped() {
            let name = format!("records end here: {dropped} dropped");
            self.packets.instant(until, &event(&name, &[]));
        }
    }

    /// Commands, by the job that submitted them.
    fn jobs(&mut self) {
        let group = self.packets.group("Jobs");
        let mut queues: BTreeMap<u16, Lanes> = BTreeMap::new();
        let trace = self.trace;
        for command in &trace.record.commands.records {
            let queue = command.queue.0;
            let end = command.completed.map(|(at, _)| at);
            let packets = &mut self.packets;
            let track = queues
                .entry(queue)
                .or_default()
                .take(command.submitted, end, || {
                    packets.track(group, &trace.queue_name(queue), u64::from(queue))
                });
            self.command(track, command);
        }
    }

    fn command(&mut self, track: Track, command: &CommandRecord) {
        let name = self.names.command_name(&command.op);
        let waits = self.index.waits(&self.names, command);
        let is_known = waits.is_some();
        let waits = waits.unwrap_or_default();
        let blockers = list_of(&waits);
        let status = command.completed.map(|(_, status)| status.to_string());
        let bytes = u64::from(command.op.nlb()) * u64::from(self.trace.config.lba_bytes);
        let mut args = vec![
            ("command", Arg::Uint(command.number)),
            ("tag", Arg::Uint(u64::from(command.tag.0))),
        ];
        if !self.trace.config.namespaces.is_empty() {
            args.push(("namespace", Arg::Uint(u64::from(command.nsid.0))));
        }
        if let Some((lba, zone)) = self.address(&command.op) {
            args.push(("zone", Arg::Uint(zone)));
            args.push(("lba", Arg::Uint(lba)));
        }
        if bytes > 0 {
            args.push(("bytes", Arg::Uint(bytes)));
        }
        if let Some(first) = self.index.first_start(command).filter(|_| is_known) {
            let waited = first.saturating_sub(command.submitted);
            args.push(("waited_ns", Arg::Uint(waited.0)));
        }
        if let Some((by, time)) = waits.blocked_by.first() {
            args.push(("blocked_by", Arg::Word(by)));
            args.push(("blocked_ns", Arg::Uint(time.0)));
            args.push(("all_blockers", Arg::Text(&blockers)));
        }
        for (name, part) in [
            ("front_end_ns", waits.front_end),
            ("flash_ns", waits.flash),
            ("own_line_ns", waits.own_line),
            ("idle_ns", waits.idle),
            ("buffer_ns", waits.buffer),
            ("link_ns", waits.link),
        ] {
            if part > Nanos::ZERO {
                args.push((name, Arg::Uint(part.0)));
            }
        }
        if let Some(status) = &status {
            args.push(("status", Arg::Word(status)));
        }
        let event = Event {
            track,
            name: Name::Once(&name),
            category: category_of(&command.op),
            flow: Some(command.number + 1),
            args: &args,
        };
        let end = command.completed.map(|(at, _)| at);
        self.packets.slice(command.submitted, end, &event);
    }

    /// First logical block and zone of a command that has them.
    fn address(&self, op: &Op) -> Option<(u64, u64)> {
        let lba = match *op {
            Op::Read { slba, .. }
            | Op::Write { slba, .. }
            | Op::WriteZeroes { slba, .. }
            | Op::Compare { slba, .. }
            | Op::Verify { slba, .. }
            | Op::Copy { sdlba: slba, .. } => slba,
            Op::Append { zslba, .. } => zslba,
            Op::ZoneSend {
                slba,
                select_all: false,
                ..
            }
            | Op::ZrwaSend { slba, .. } => slba,
            _ => return None,
        };
        Some((lba.0, self.names.zone(lba)))
    }

    /// Fills and erasures of zones.
    fn background(&mut self) {
        let group = self.packets.group("Background");
        let mut kinds: BTreeMap<BackgroundKind, Lanes> = BTreeMap::new();
        for background in &self.trace.record.background.records {
            let BackgroundRecord {
                kind, start, end, ..
            } = *background;
            let packets = &mut self.packets;
            let track = kinds.entry(kind).or_default().take(start, end, || {
                let (name, rank) = match kind {
                    BackgroundKind::FinishFill => ("fills (finish)", 0),
                    BackgroundKind::Erasure => ("erasures (reset)", 1),
                    BackgroundKind::PartialErase => ("partial erasures", 2),
                    BackgroundKind::FullErase => ("full erasures", 3),
                };
                packets.track(group, name, rank)
            });
            self.background_operation(track, background);
        }
    }

    fn background_operation(&mut self, track: Track, background: &BackgroundRecord) {
        let name = self.names.background_name(background);
        let waits = if background.is_waited_for {
            "completes with it"
        } else {
            "does not wait"
        };
        let mut args = vec![
            ("background", Arg::Uint(background.number)),
            ("zone", Arg::Uint(u64::from(background.zone.0))),
            ("physical_zone", Arg::Uint(u64::from(background.physical))),
            ("its_command", Arg::Word(waits)),
            ("yields", Arg::Uint(background.yields)),
            ("yielded_ns", Arg::Uint(background.yielded.0)),
        ];
        if let Some(command) = background.command {
            args.push(("command", Arg::Uint(command)));
        }
        let cause = match background.kind {
            BackgroundKind::FinishFill => Cause::FinishFill,
            BackgroundKind::Erasure | BackgroundKind::PartialErase => Cause::ResetErase,
            BackgroundKind::FullErase => Cause::WriteErase,
        };
        let event = Event {
            track,
            name: Name::Again(&name),
            category: cause.name(),
            // An arrow from the command that asked for it.
            flow: background.command.map(|command| command + 1),
            args: &args,
        };
        self.packets.slice(background.start, background.end, &event);
    }

    /// Channels and dies.
    fn flash(&mut self) {
        let trace = self.trace;
        let channels = self.packets.group("Channels");
        let dies = self.packets.group("Dies");
        let layout = zonelab_ssd::layout::Layout::new(&trace.config);
        let mut tracks = BTreeMap::new();
        for channel in 0..trace.config.geometry.channels {
            let resource = Resource::Channel(channel);
            let name = self.names.resource(resource);
            let track = self.packets.track(channels, &name, u64::from(channel));
            tracks.insert((false, channel), track);
        }
        for unit in 0..layout.units() {
            let name = self.names.resource(Resource::Unit(unit));
            let track = self.packets.track(dies, &name, u64::from(unit));
            tracks.insert((true, unit), track);
        }
        let index = self.index.clone();
        for (resource, spans) in index.lines() {
            let key = match resource {
                Resource::Channel(channel) => (false, channel),
                Resource::Unit(unit) => (true, unit),
            };
            if let Some(track) = tracks.get(&key) {
                for span in spans {
                    self.span(*track, span);
                }
            }
        }
    }

    fn span(&mut self, track: Track, span: &Span) {
        let name = self.names.span_name(span);
        let blocker = self.index.blocker(span);
        let blocker = blocker.map(|other| self.names.span_name(other));
        let mut args = Vec::with_capacity(3);
        let flow = match span.served {
            Some(Served::Command(number)) => {
                args.push(("command", Arg::Uint(number)));
                Some(number + 1)
            }
            Some(Served::Background(number)) => {
                args.push(("background", Arg::Uint(number)));
                None
            }
            Some(Served::Collection) | None => None,
        };
        if span.start > span.ready {
            args.push(("waited_ns", Arg::Uint((span.start - span.ready).0)));
        }
        if let Some(blocker) = &blocker {
            args.push(("blocked_by", Arg::Word(blocker)));
        }
        let event = Event {
            track,
            name: Name::Again(&name),
            category: span.cause.name(),
            flow,
            args: &args,
        };
        self.packets.slice(span.start, Some(span.end), &event);
    }

    /// Counters, and the states of zones that change.
    fn zones(&mut self) {
        let group = self.packets.group("Zones and counters");
        let records = &self.trace.record.counters.records;
        for (rank, counter) in Counter::ALL.into_iter().enumerate() {
            let name = match counter {
                Counter::CommandsInFlight => "commands in flight",
                Counter::OpenZones => "open zones",
                Counter::ActiveZones => "active zones",
                Counter::BufferedBytes => "bytes in the write buffer",
                Counter::FreeZones => "free physical zones",
                Counter::InvalidZones => "invalid physical zones",
                Counter::ResetState => "reset state (S0 to S2)",
            };
            let is_of_drive = records.iter().any(|record| record.counter == counter);
            if counter.is_optional() && !is_of_drive {
                continue;
            }
            let track = self.packets.counter_track(group, name, rank as u64);
            for record in records.iter().filter(|record| record.counter == counter) {
                self.packets.counter(track, record.at, record.value);
            }
        }
        let (from, until) = self.trace.covered();
        let mut by_zone: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for record in &self.trace.record.zones.records {
            by_zone.entry(record.zone.0).or_default().push(record);
        }
        // Zones that change within the trace; what others are is no news.
        by_zone.retain(|_, list| list.iter().any(|r| r.at > from && r.at < until));
        for (zone, list) in by_zone.into_iter().take(ZONE_TRACKS) {
            let rank = 16 + u64::from(zone);
            let track = self.packets.track(group, &format!("zone {zone}"), rank);
            for (position, record) in list.iter().enumerate() {
                let end = list.get(position + 1).map_or(until, |next| next.at);
                let (start, end) = (record.at.max(from), end.min(until));
                if start >= end {
                    continue;
                }
                let name = state_name(record.to);
                let event = Event {
                    track,
                    name: Name::Again(&name),
                    category: &name,
                    flow: None,
                    args: &[("written_lbas_before", Arg::Uint(record.written_lbas))],
                };
                self.packets.slice(start, Some(end), &event);
            }
        }
    }
}

/// What decides the colour of a command.
fn category_of(op: &Op) -> &'static str {
    match op {
        Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => Cause::HostRead.name(),
        Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
            Cause::HostWrite.name()
        }
        Op::Deallocate { .. } => "deallocation",
        _ => "zone-management",
    }
}

/// Blockers of a command in words.
fn list_of(waits: &Waits) -> String {
    let list: Vec<String> = waits
        .blocked_by
        .iter()
        .take(8)
        .map(|(by, time)| format!("{by} {time}"))
        .collect();
    list.join("; ")
}
