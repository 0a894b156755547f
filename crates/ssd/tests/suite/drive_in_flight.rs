//! Data that the drive works on at the same time (`front_end.max_in_flight`): what is behind it
//! waits in order of arrival, whatever it is. And appends of a zone that it works on at the same
//! time (`front_end.appends_per_zone`): others wait aside.

use crate::drive_support::random::NO_FRONT_END;
use crate::drive_support::{PAGE, READ, Rig, WRITE, small, us};
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::FaultTarget;
use zonelab_ssd::config::{DriveConfig, FrontEndConfig};
use zonelab_ssd::profile::{builtin, builtin_names};

/// So many pages of 16 KiB, on a drive whose front end takes no time.
fn pages_in_flight(pages: u32) -> DriveConfig {
    DriveConfig {
        front_end: FrontEndConfig {
            max_in_flight_bytes: Some(pages << 14),
            ..NO_FRONT_END
        },
        ..small()
    }
}

/// Two writes use up the room: a read of a die that is idle waits for the first of them.
#[test]
fn a_read_waits_behind_writes_of_other_dies() {
    let mut rig = Rig::new(&pages_in_flight(2));
    rig.precondition(2..3);
    rig.submit(rig.write_at(0, 0, PAGE));
    rig.run_for(us(100));
    rig.submit(rig.write_at(1, 0, PAGE));
    let read = rig.submit(rig.read(2, 5 * PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(read).at, WRITE + READ);

    let mut rig = Rig::new(&small());
    rig.precondition(2..3);
    rig.submit(rig.write_at(0, 0, PAGE));
    rig.submit(rig.write_at(1, 0, PAGE));
    let read = rig.submit(rig.read(2, 5 * PAGE, PAGE));
    rig.settle();
    assert_eq!(rig.wait(read).at, READ, "without a limit");
}

/// The first in line does not fit, and those behind it wait although they would.
#[test]
fn nothing_overtakes_in_the_line() {
    let mut rig = Rig::new(&pages_in_flight(2));
    rig.submit(rig.write_at(0, 0, PAGE));
    let large = rig.submit(rig.write_at(1, 0, 2 * PAGE));
    let reset = rig.submit(rig.reset(2));
    let small = rig.submit(rig.write_at(3, 0, PAGE));
    rig.run_to(WRITE - Nanos(1));
    let state = |rig: &Rig, zone| rig.drive.zones().state(ZoneId(zone));
    assert_eq!(state(&rig, 3), ZoneState::EMPTY, "what waits has not begun");
    rig.settle();
    let at = |rig: &mut Rig, tag| rig.wait(tag).at;
    assert!(at(&mut rig, large) > WRITE);
    assert_eq!(at(&mut rig, reset), WRITE, "it moves no data");
    assert!(
        at(&mut rig, small) >= at(&mut rig, large) + WRITE,
        "the large write had all the room"
    );
}

/// More than there is room for at all goes when it is alone.
#[test]
fn a_command_larger_than_the_room_passes_alone() {
    let mut rig = Rig::new(&pages_in_flight(1));
    let first = rig.submit(rig.write_at(0, 0, PAGE));
    let large = rig.submit(rig.write_at(1, 0, 4 * PAGE));
    let last = rig.submit(rig.write_at(2, 0, PAGE));
    rig.settle();
    let at: Vec<Nanos> = [first, large, last]
        .map(|tag| rig.wait(tag).at)
        .into_iter()
        .collect();
    assert_eq!(at[0], WRITE);
    assert!(at[1] > at[0] && at[2] == at[1] + WRITE, "{at:?}");
}

/// A command that is refused gives back the room that it took.
#[test]
fn refused_commands_leave() {
    let mut rig = Rig::new(&pages_in_flight(1));
    for _ in 0..3 {
        let bad = rig.submit(rig.write_at(0, 64, PAGE));
        assert_eq!(rig.wait(bad).status, Status::ZONE_INVALID_WRITE);
    }
    let good = rig.submit(rig.write_at(0, 0, PAGE));
    assert_eq!(rig.wait(good).at, WRITE);
}

/// A loss of power ends what waits; it has left no trace, and the room is free again.
#[test]
fn what_waits_at_a_loss_of_power_has_not_begun() {
    let mut rig = Rig::new(&pages_in_flight(1));
    rig.submit(rig.write_at(0, 0, PAGE));
    rig.submit(rig.write_at(1, 0, PAGE));
    rig.submit(rig.reset(2));
    rig.run_for(us(10));
    let loss = rig.drive.power_cut(rig.now, us(500), 0);
    assert_eq!(loss.lost.len(), 3);
    let state = rig.drive.zones().state(ZoneId(1));
    assert_eq!(state, ZoneState::EMPTY);
    let mut after = Rig::new(&pages_in_flight(1));
    std::mem::swap(&mut after.drive, &mut rig.drive);
    after.now = loss.ready_at;
    let write = after.submit(after.write_at(1, 0, PAGE));
    assert_eq!(after.wait(write).at, loss.ready_at + WRITE);
}

/// So many appends of a zone at a time, on a drive whose front end takes no time.
fn appends_at_a_time(appends: u32) -> DriveConfig {
    DriveConfig {
        front_end: FrontEndConfig {
            appends_per_zone: Some(appends),
            ..NO_FRONT_END
        },
        ..small()
    }
}

/// Appends of a zone go on in pairs, although its dies could take all of them; those of another
/// zone, and a write that comes last, wait for none of them. Addresses are in order of arrival.
#[test]
fn appends_of_a_zone_wait_aside_and_hold_back_nobody() {
    let mut rig = Rig::new(&appends_at_a_time(2));
    // Their next pages go to dies that the first two appends do not need.
    rig.exec(rig.write_at(1, 0, 2 * PAGE));
    rig.exec(rig.write_at(2, 0, 3 * PAGE));
    let begin = rig.now;
    let appends: Vec<usize> = (0..5).map(|_| rig.submit(rig.append(0, PAGE))).collect();
    let other = rig.submit(rig.append(1, PAGE));
    let write = rig.submit(rig.write_at(2, 3 * PAGE, PAGE));
    assert_eq!(rig.drive.waiting(), 3);
    rig.settle();
    let first = rig.lba(0, 0).0;
    for (n, tag) in (0..).zip(&appends) {
        let done = rig.wait(*tag);
        assert_eq!(done.status, Status::SUCCESS);
        assert_eq!(done.result, first + n * u64::from(PAGE), "append {n}");
        assert!(
            done.at >= begin + Nanos(WRITE.0 * (n / 2 + 1)),
            "append {n}: {}",
            done.at
        );
    }
    assert_eq!(rig.wait(other).latency(), WRITE);
    assert_eq!(rig.wait(write).latency(), WRITE);
    assert_eq!(rig.drive.waiting(), 0);

    let mut rig = Rig::new(&small());
    let appends: Vec<usize> = (0..4).map(|_| rig.submit(rig.append(0, PAGE))).collect();
    rig.settle();
    for tag in appends {
        assert_eq!(
            rig.wait(tag).at,
            WRITE,
            "without a limit, each on a die of its own"
        );
    }
}

/// What a zone refuses leaves its place to the next, and a reset waits behind appends that do.
#[test]
fn appends_that_are_refused_leave_their_place() {
    let mut rig = Rig::new(&appends_at_a_time(1));
    let capacity = rig.drive.config().zones.capacity_lbas as u32;
    let too_many = [0; 2].map(|_| rig.submit(rig.append(0, capacity + 1)));
    for tag in too_many {
        assert_ne!(rig.wait(tag).status, Status::SUCCESS);
    }
    let first = rig.submit(rig.append(0, PAGE));
    let second = rig.submit(rig.append(0, PAGE));
    let reset = rig.submit(rig.reset(0));
    let third = rig.submit(rig.append(0, PAGE));
    rig.settle();
    let start = rig.lba(0, 0).0;
    assert_eq!(rig.wait(first).result, start);
    assert_eq!(rig.wait(second).result, start + u64::from(PAGE));
    assert_eq!(rig.wait(reset).status, Status::SUCCESS);
    assert_eq!(rig.wait(third).result, start, "the zone was empty");
}

/// Eight appends and then what ends their zone, all at one time: whatever the front end works on
/// at a time, they are accepted in this order.
#[test]
fn what_changes_a_zone_behind_appends_waits_behind_them() {
    for name in builtin_names() {
        let config = builtin(name).unwrap().config;
        for all in [false, true] {
            for action in [ZoneSendAction::FINISH, ZoneSendAction::RESET] {
                let mut rig = Rig::new(&config);
                let appends: Vec<usize> = (0..8).map(|_| rig.submit(rig.append(0, PAGE))).collect();
                let slba = rig.lba(0, 0);
                let ends = rig.submit(Op::ZoneSend {
                    slba,
                    action,
                    select_all: all,
                });
                let behind = rig.submit(rig.append(0, PAGE));
                rig.settle();
                for (n, tag) in (0..).zip(&appends) {
                    let done = rig.wait(*tag);
                    assert_eq!(
                        done.status,
                        Status::SUCCESS,
                        "{name}: {action:?}, append {n}"
                    );
                    assert_eq!(
                        done.result,
                        slba.0 + n * u64::from(PAGE),
                        "{name}: append {n}"
                    );
                }
                assert_eq!(rig.wait(ends).status, Status::SUCCESS, "{name}: {action:?}");
                let done = rig.wait(behind);
                match action {
                    ZoneSendAction::RESET => assert_eq!(done.result, slba.0, "{name}"),
                    _ => assert_eq!(done.status, Status::ZONE_IS_FULL, "{name}"),
                }
            }
        }
    }
}

/// Both limits together: appends that wait aside have room, and a read behind them waits for
/// some, as on a drive that has fetched their data.
#[test]
fn appends_that_wait_aside_have_room() {
    for (pages, behind) in [(2, true), (3, false)] {
        let mut config = appends_at_a_time(1);
        config.front_end.max_in_flight_bytes = Some(pages << 14);
        let mut rig = Rig::new(&config);
        rig.precondition(1..2);
        let appends = [0; 2].map(|_| rig.submit(rig.append(0, PAGE)));
        // Of a die that neither append needs.
        let read = rig.submit(rig.read(1, 6 * PAGE, PAGE));
        rig.settle();
        let begin = rig.wait(appends[0]).at.0 - WRITE.0;
        assert_eq!(rig.wait(appends[1]).at, Nanos(begin + 2 * WRITE.0));
        let waits = if behind { WRITE } else { Nanos::ZERO };
        assert_eq!(rig.wait(read).latency(), waits + READ, "{pages} pages");
    }
}

/// A loss of power ends the appends that wait, and the next ones find a place.
#[test]
fn appends_that_wait_at_a_loss_of_power_have_not_begun() {
    let mut rig = Rig::new(&appends_at_a_time(1));
    for _ in 0..3 {
        rig.submit(rig.append(0, PAGE));
    }
    rig.run_for(us(10));
    let loss = rig.drive.power_cut(rig.now, us(500), 0);
    assert_eq!(loss.lost.len(), 3);
    assert_eq!(rig.drive.waiting(), 0);
    let mut after = Rig::new(&appends_at_a_time(1));
    std::mem::swap(&mut after.drive, &mut rig.drive);
    after.now = loss.ready_at;
    let append = after.submit(after.append(1, PAGE));
    assert_eq!(after.wait(append).at, loss.ready_at + WRITE);
}
