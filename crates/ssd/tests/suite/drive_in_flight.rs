//! Data that the drive works on at the same time (`front_end.max_in_flight`): what is behind it
//! waits in order of arrival, whatever it is.

use crate::drive_support::random::NO_FRONT_END;
use crate::drive_support::{PAGE, READ, Rig, WRITE, small, us};
use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::config::{DriveConfig, FrontEndConfig};

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
