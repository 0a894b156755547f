//! What a drive records of itself: complete within its bounds, true to what
//! happened, and without any effect on it.

use crate::drive_support::random::{Step, drives, streams};
use crate::drive_support::{ERASE, PAGE, READ, Rig, WRITE, fill, reset, small, us};
use proptest::prelude::*;
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::Control;
use zonelab_ssd::account::{Cause, Ledger, Resource};
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig};
use zonelab_ssd::media::FlashKind;
use zonelab_ssd::record::{
    BackgroundKind, Counter, CounterRecord, Record, RecordLimits, Served, Span, ZoneHistory,
    ZoneRecord,
};

/// Everything, as far as a test goes.
const ALL: RecordLimits = RecordLimits::everything(1 << 20);

fn run(rig: &mut Rig, stream: &[Step]) {
    for step in stream {
        match (*step, step.op(rig)) {
            (_, Some(op)) => {
                let data = matches!(op, Op::ZoneReceive { .. });
                let data = data.then(|| zonelab_device::Buf::zeroed(64 * 7));
                rig.submit_with(op, data);
            }
            (Step::Pause(ns), None) => rig.run_for(Nanos(ns)),
            (_, None) => rig.settle(),
        }
    }
    rig.settle();
}

/// The record of a run, and the drive after it.
fn recorded(config: &DriveConfig, stream: &[Step], limits: &RecordLimits) -> (Rig, Record) {
    let mut rig = Rig::new(config);
    rig.drive.record(limits);
    run(&mut rig, stream);
    let record = rig.drive.take_record();
    (rig, record)
}

/// Spans of one resource do not overlap, and are as long as the busy time of each cause.
fn check_spans(spans: &[Span], ledger: &Ledger) {
    let mut booked = Ledger::new(ledger.channels.len() as u32, ledger.units.len() as u32);
    let mut by_resource: Vec<Span> = spans.to_vec();
    let name = |span: &Span| match span.resource {
        Resource::Channel(channel) => (0, channel),
        Resource::Unit(unit) => (1, unit),
    };
    by_resource.sort_by_key(|span| (name(span), span.start, span.end));
    for pair in by_resource.windows(2) {
        let [a, b] = pair else { unreachable!("two") };
        assert!(
            a.resource != b.resource || a.end <= b.start,
            "{a:?} overlaps {b:?}"
        );
    }
    for span in spans {
        assert!(span.ready <= span.start, "{span:?} waits forwards");
        let row = match span.resource {
            Resource::Channel(i) => &mut booked.channels[i as usize],
            Resource::Unit(i) => &mut booked.units[i as usize],
        };
        row[span.cause as usize] += (span.end - span.start).0;
    }
    let rows = |ledger: &Ledger| (ledger.channels.clone(), ledger.units.clone());
    assert_eq!(
        rows(&booked),
        rows(ledger),
        "time in spans and time in the ledger"
    );
}

/// Flash works for a command while it is in flight, and for a background
/// operation while that goes on.
fn check_served(record: &Record) {
    for span in &record.spans.records {
        match span.served.expect("the drive was recorded from its start") {
            Served::Collection => panic!("there is no conventional namespace: {span:?}"),
            Served::Command(number) => {
                let command = &record.commands.records[number as usize];
                let (completed, _) = command.completed.expect("all is done");
                assert!(command.submitted <= span.ready, "{command:?}: {span:?}");
                assert!(span.end <= completed, "{command:?}: {span:?}");
            }
            Served::Background(number) => {
                let background = &record.background.records[number as usize];
                let end = background.end.expect("all is done");
                assert!(background.start <= span.ready, "{background:?}: {span:?}");
                assert!(span.end <= end, "{background:?}: {span:?}");
                let kind = match background.kind {
                    BackgroundKind::FinishFill => {
                        span.kind == FlashKind::Program || span.cause == Cause::WriteErase
                    }
                    BackgroundKind::Erasure
                    | BackgroundKind::PartialErase
                    | BackgroundKind::FullErase => span.kind == FlashKind::Erase,
                };
                assert!(kind, "{background:?}: {span:?}");
            }
        }
    }
    for background in &record.background.records {
        let command = background.command.expect("all commands are recorded");
        let command = &record.commands.records[command as usize];
        assert!(matches!(command.op, Op::ZoneSend { .. }));
        let completed = command.completed.expect("all is done").0;
        assert!(!background.is_waited_for || background.end <= Some(completed));
    }
}

/// Commands are recorded as their host saw them.
fn check_commands(rig: &Rig, record: &Record) {
    assert_eq!(record.commands.records.len(), rig.done.len());
    for (tag, (command, done)) in record.commands.records.iter().zip(&rig.done).enumerate() {
        let done = done.as_ref().expect("all is done");
        assert_eq!((command.number, command.tag.0), (tag as u64, tag as u32));
        assert_eq!(command.submitted, done.submitted);
        assert_eq!(command.completed, Some((done.at, done.status)));
    }
}

/// The value of a counter at a time, from its records.
fn value_at(records: &[CounterRecord], counter: Counter, at: Nanos) -> u64 {
    let mut latest = records.iter().rev();
    let record = latest.find(|r| r.counter == counter && r.at <= at);
    record.map_or(0, |record| record.value)
}

/// The states of all zones after the changes of a history.
fn replayed(zones: u32, history: &ZoneHistory) -> Vec<ZoneState> {
    let mut states = vec![ZoneState::EMPTY; zones as usize];
    let mut last = Nanos::ZERO;
    for record in &history.records {
        let state = &mut states[record.zone.0 as usize];
        assert_eq!(
            *state, record.from,
            "{record:?} follows from what was before"
        );
        assert_ne!(record.from, record.to, "{record:?} is a change");
        assert!(record.at >= last, "{record:?} is in order");
        last = record.at;
        *state = record.to;
    }
    states
}

#[test]
fn an_operation_is_counted_where_its_time_is_booked() {
    let config = small();
    let mut rig = Rig::new(&config);
    rig.drive.record(&ALL);
    rig.write_pages(0, 8);
    for op in [rig.read(0, 0, 16), rig.finish(0), rig.reset(0)] {
        rig.exec(op);
    }
    rig.settle();
    let spans = rig.drive.take_record().spans.records;
    let operations = rig.drive.flash().media().ledger().operations();
    // Nothing is suspended: one span on the unit for each operation.
    for (unit, row) in (0..).zip(operations) {
        for cause in Cause::ALL {
            let own = spans
                .iter()
                .filter(|span| span.resource == Resource::Unit(unit) && span.cause == cause);
            assert_eq!(
                own.count() as u64,
                row[cause as usize],
                "unit {unit}, {cause:?}"
            );
        }
    }
    let all: u64 = operations.iter().flatten().sum();
    assert!(all > 0);
}

proptest! {
    #[test]
    fn zone_history_replayed_gives_the_states_at_the_end(
        config in drives(),
        stream in streams(1..60),
    ) {
        let mut rig = Rig::new(&config);
        rig.drive.record(&ALL);
        run(&mut rig, &stream);
        let record = rig.drive.take_record();
        let zones = rig.drive.zones();
        let states: Vec<_> = (0..zones.count()).map(|zone| zones.state(ZoneId(zone))).collect();
        prop_assert_eq!(replayed(zones.count(), &record.zones), states);
        prop_assert_eq!(record.zones.dropped, 0);
    }
}

proptest! {
    #[test]
    fn a_record_is_true_to_what_happened(config in drives(), stream in streams(1..60)) {
        let (rig, record) = recorded(&config, &stream, &ALL);
        prop_assert_eq!((record.dropped(), record.complete_until), (0, None));
        check_spans(&record.spans.records, rig.drive.flash().media().ledger());
        check_commands(&rig, &record);
        check_served(&record);
        for command in &record.commands.records {
            let at = command.submitted;
            let is_in_flight = |done: &&zonelab_ssd::record::CommandRecord| {
                done.submitted <= at && done.completed.is_none_or(|(end, _)| end > at)
            };
            let in_flight = record.commands.records.iter().filter(is_in_flight).count();
            let counted = value_at(&record.counters.records, Counter::CommandsInFlight, at);
            prop_assert_eq!(counted, in_flight as u64);
        }
        let end = |counter| value_at(&record.counters.records, counter, Nanos::MAX);
        prop_assert_eq!(end(Counter::CommandsInFlight), 0);
        prop_assert_eq!(end(Counter::OpenZones), u64::from(rig.drive.zones().open_count()));
        prop_assert_eq!(end(Counter::ActiveZones), u64::from(rig.drive.zones().active_count()));
    }

    #[test]
    fn recording_changes_nothing(config in drives(), stream in streams(1..60), limit in 1_usize..50) {
        let (rig, _) = recorded(&config, &stream, &RecordLimits::everything(limit));
        let mut plain = Rig::new(&config);
        run(&mut plain, &stream);
        prop_assert_eq!(&plain.done, &rig.done);
        prop_assert_eq!(&plain.order, &rig.order);
        prop_assert_eq!(plain.drive.totals(), rig.drive.totals());
        prop_assert_eq!(plain.drive.events_handled(), rig.drive.events_handled());
        let mut ledger = rig.drive.flash().media().ledger().clone();
        let _ = ledger.take_spans();
        prop_assert_eq!(plain.drive.flash().media().ledger(), &ledger);
    }

    #[test]
    fn bounds_hold_and_what_is_dropped_is_counted(
        config in drives(),
        stream in streams(1..60),
        limit in 1_usize..30,
    ) {
        let (_, all) = recorded(&config, &stream, &ALL);
        let (_, some) = recorded(&config, &stream, &RecordLimits::everything(limit));
        let until = some.complete_until.unwrap_or(Nanos::MAX);
        prop_assert_eq!(some.dropped() > 0, some.complete_until.is_some());
        macro_rules! check {
            ($kind:ident, $limit:expr, $start:ident) => {
                let (all, some) = (&all.$kind, &some.$kind);
                prop_assert!(some.records.len() <= $limit);
                let first = &all.records[..some.records.len()];
                prop_assert_eq!(&some.records[..], first);
                prop_assert_eq!(some.records.len() as u64 + some.dropped, all.records.len() as u64);
                let dropped = &all.records[some.records.len()..];
                prop_assert!(dropped.iter().all(|record| record.$start >= until));
            };
        }
        check!(spans, limit, start);
        check!(commands, limit, submitted);
        check!(background, limit, start);
        prop_assert!(some.counters.records.len() <= 4 * limit);
        prop_assert_eq!(&some.zones.records[..], &all.zones.records[..some.zones.records.len()]);
    }

    #[test]
    fn a_window_keeps_what_touches_it(
        config in drives(),
        stream in streams(1..60),
        (from, length) in (0_u64..30_000_000, 1_u64..30_000_000),
    ) {
        let (_, all) = recorded(&config, &stream, &ALL);
        let (from, until) = (Nanos(from), Nanos(from + length));
        let limits = RecordLimits { from, until, ..ALL };
        let (rig, some) = recorded(&config, &stream, &limits);
        prop_assert_eq!(some.dropped(), 0);
        let touches = |start: Nanos, end: Nanos| start < until && (end > from || start >= from);
        let mut spans = all.spans.records;
        spans.retain(|span| touches(span.start, span.end));
        prop_assert_eq!(some.spans.records, spans);
        let mut commands = all.commands.records;
        commands.retain(|c| touches(c.submitted, c.completed.expect("all is done").0));
        prop_assert_eq!(some.commands.records, commands);
        let mut background = all.background.records;
        background.retain(|b| touches(b.start, b.end.expect("all is done")));
        for (ours, theirs) in some.background.records.iter().zip(&background) {
            prop_assert_eq!(ours.number, theirs.number);
        }
        prop_assert_eq!(some.background.records.len(), background.len());
        for counter in Counter::ALL {
            let times = [from, Nanos(from.0 + length / 2), Nanos(until.0 - 1)];
            for at in times.into_iter().filter(|at| *at <= rig.now) {
                let ours = value_at(&some.counters.records, counter, at);
                let theirs = value_at(&all.counters.records, counter, at);
                prop_assert_eq!(ours, theirs, "{:?} at {}", counter, at);
            }
        }
        prop_assert_eq!(some.zones, all.zones, "zone history has no window");
    }
}

/// A read that comes to a die that is being erased is ready at once and starts
/// when the erasure is over, which the spans say.
#[test]
fn spans_show_what_a_read_waits_for() {
    let mut config = small();
    config.reset = reset(EraseWhen::Background, EraseExtent::Full);
    let mut rig = Rig::new(&config);
    rig.precondition(0..2);
    rig.drive.record(&ALL);
    let command = rig.reset(0);
    rig.submit(command);
    rig.run_to(us(10));
    let command = rig.read(1, 0, PAGE);
    rig.submit(command);
    rig.settle();
    let record = rig.drive.take_record();
    // Two rows of blocks: two erasures on each of four dies.
    let span = |kind, served, ready, start, end| Span {
        resource: Resource::Unit(0),
        cause: match kind {
            FlashKind::Erase => Cause::ResetErase,
            _ => Cause::HostRead,
        },
        kind,
        served: Some(served),
        ready,
        start,
        end,
        suspends: 0,
    };
    let zero = Nanos::ZERO;
    let second = ERASE + ERASE;
    let expected = [
        span(FlashKind::Erase, Served::Background(0), zero, zero, ERASE),
        span(FlashKind::Erase, Served::Background(0), zero, ERASE, second),
        span(
            FlashKind::Read,
            Served::Command(1),
            us(10),
            second,
            second + us(60),
        ),
    ];
    let mut on_die = record.spans.records;
    on_die.retain(|span| span.resource == Resource::Unit(0));
    assert_eq!(on_die, expected);
    let read = record.commands.records[1];
    assert_eq!(read.completed.map(|(at, _)| at), Some(second + READ));
    let [erasure] = record.background.records[..] else {
        panic!("one erasure: {:?}", record.background)
    };
    assert_eq!((erasure.zone, erasure.command), (ZoneId(0), Some(0)));
    assert!(!erasure.is_waited_for);
    assert_eq!((erasure.start, erasure.end), (zero, Some(second)));
}

/// A fill that yields says how often and how long.
#[test]
fn background_records_say_how_long_they_yielded() {
    let mut config = small();
    let FinishConfig::Fill {
        granularity_bytes,
        pause_ns,
        ..
    } = fill(64)
    else {
        unreachable!("a fill fills")
    };
    config.finish = FinishConfig::Fill {
        granularity_bytes,
        pause_ns,
        yield_ns: Some(us(100_000)),
        buffered: false,
        takes_core: false,
        extent: FillExtent::Zone,
    };
    let mut rig = Rig::new(&config);
    rig.drive.record(&ALL);
    rig.write_pages(0, 4);
    let start = rig.now;
    let write = rig.write(1, PAGE);
    rig.submit(write);
    let finish = rig.finish(0);
    rig.submit(finish);
    rig.settle();
    let record = rig.drive.take_record();
    let [fill] = record.background.records[..] else {
        panic!("one fill: {:?}", record.background)
    };
    // It begins beside a write, and waits until that is done.
    assert_eq!((fill.start, fill.yields, fill.yielded), (start, 1, WRITE));
    assert!(fill.is_waited_for);
    // 28 pages of 32 on four dies, one row at a time.
    assert_eq!(fill.end, Some(start + WRITE + Nanos(7 * WRITE.0)));
}

#[test]
fn zone_history_has_every_kind_of_change() {
    let mut config = small();
    config.zones.max_open = Some(1);
    let mut rig = Rig::new(&config);
    rig.drive.record(&ALL);
    let full = Control::PreconditionFull { zones: 5..6 };
    rig.drive
        .control(Nanos::ZERO, &full)
        .expect("zone 5 is empty");
    rig.run_to(Nanos::from_us(10));
    let write = rig.write_at(0, 0, PAGE);
    rig.submit(write);
    rig.run_to(Nanos::from_us(20));
    let write = rig.write_at(1, 0, PAGE);
    rig.submit(write);
    let finish = rig.send(0, ZoneSendAction::FINISH);
    rig.run_to(Nanos::from_us(30));
    rig.submit(finish);
    let reset = rig.send(5, ZoneSendAction::RESET);
    rig.submit(reset);
    let change = |us, zone, from, to, written_lbas| ZoneRecord {
        at: Nanos::from_us(us),
        zone: ZoneId(zone),
        from,
        to,
        written_lbas,
    };
    let page = u64::from(PAGE);
    let (empty, open) = (ZoneState::EMPTY, ZoneState::IMPLICITLY_OPENED);
    let expected = [
        change(0, 5, empty, ZoneState::FULL, 0),
        change(10, 0, empty, open, 0),
        change(20, 0, open, ZoneState::CLOSED, page),
        change(20, 1, empty, open, 0),
        change(30, 0, ZoneState::CLOSED, ZoneState::FULL, page),
        change(30, 5, ZoneState::FULL, empty, config.zones.capacity_lbas),
    ];
    assert_eq!(rig.drive.take_record().zones.records, expected);
    assert_eq!(
        rig.drive.take_record().zones,
        ZoneHistory::default(),
        "recording has stopped"
    );
}

#[test]
fn zone_history_keeps_the_first_and_counts_the_rest() {
    let mut rig = Rig::new(&small());
    rig.drive.record(&RecordLimits::zones_only(3));
    for zone in 0..5 {
        let write = rig.write_at(zone, 0, PAGE);
        rig.submit(write);
    }
    let zones = rig.drive.take_record().zones;
    let kept: Vec<u32> = zones.records.iter().map(|record| record.zone.0).collect();
    assert_eq!((kept, zones.dropped), (vec![0, 1, 2], 2));
}
