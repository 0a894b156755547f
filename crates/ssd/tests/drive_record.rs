//! What a drive records of itself: complete within its bounds, true to what
//! happened, and without any effect on it.

mod drive_support;

use drive_support::random::{Step, drives, streams};
use drive_support::{PAGE, Rig, small};
use proptest::prelude::*;
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::Control;
use zonelab_ssd::record::{RecordLimits, ZoneHistory, ZoneRecord};

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
