//! Test drives: what they lose, what they keep, and how they fail.

use std::time::Duration;

use zonelab::driver::url::TcpAddress;
use zonelab::driver::{Controller as _, Options, TcpController};
use zonelab::nvme::Status;
use zonelab::nvme::zns::ZoneState;
use zonelab::ssd::faults::FaultPlan;
use zonelab::testing::{
    CrashPlan, ServedDrive, TestDrive, TestDriveError, TestDriveSettingError, at_every_crash,
};

fn block(byte: u8) -> Vec<u8> {
    vec![byte; 4_096]
}

fn zoned() -> TestDrive {
    TestDrive::zoned().expect("its settings are a drive")
}

#[test]
fn what_was_flushed_stays_and_what_was_not_goes_from_the_end() {
    let drive = zoned();
    for byte in 1..=3 {
        drive.append(0, &block(byte)).expect("there is room");
    }
    drive.flush().expect("it has power");
    for byte in 4..=6 {
        drive.append(0, &block(byte)).expect("there is room");
    }
    drive.lose_power();
    assert_eq!(drive.append(0, &block(7)), Err(TestDriveError::PowerLost));
    assert_eq!(drive.read(0, 1), Err(TestDriveError::PowerLost));
    drive.restart();
    let written = drive.zone(0).expect("it is there").written;
    // Less than a program unit was in the buffer behind what was flushed.
    assert_eq!(written, 3);
    for at in 0..written {
        assert_eq!(drive.read(at, 1), Ok(block(at as u8 + 1)));
    }
}

#[test]
fn a_protected_buffer_keeps_what_was_acknowledged() {
    let drive = TestDrive::builder().power_loss_protection().build();
    let drive = drive.expect("its settings are a drive");
    drive.append(5, &block(9)).expect("there is room");
    drive.lose_power();
    drive.restart();
    assert_eq!(drive.zone(5).map(|of| of.written), Ok(1));
    assert_eq!(drive.read(5 * drive.zone_size(), 1), Ok(block(9)));
}

#[test]
fn power_goes_at_the_command_that_was_named_and_not_before() {
    let drive = zoned();
    drive.lose_power_in(2);
    assert_eq!(drive.append(0, &block(1)), Ok(0));
    let started = drive.start_append(0, &block(2)).expect("it has power");
    assert_eq!(drive.append(0, &block(3)), Err(TestDriveError::PowerLost));
    // What was under way with it is gone too, as far as anybody knows.
    assert_eq!(started.wait(), Err(TestDriveError::PowerLost));
    assert!(!drive.is_on());
    drive.restart();
    assert!(drive.is_on());
    let wanted = drive.zone(0).expect("it is there").write_pointer();
    assert_eq!(drive.append(0, &block(4)), Ok(wanted));
}

#[test]
fn the_same_seed_gives_the_same_drive() {
    let run = |seed| {
        let drive = TestDrive::builder().seed(seed).build();
        let drive = drive.expect("its settings are a drive");
        let mut kept = Vec::new();
        for round in 0..20 {
            drive.lose_power_in(round % 5);
            for _ in 0..6 {
                drop(drive.append(round as u32, &block(1).repeat(9)));
            }
            drive.restart();
            kept.push(drive.zone(round as u32).map(|of| of.written));
        }
        (kept, drive.now())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_strict_drive_says_what_nvme_says() {
    let drive = TestDrive::builder().limits(1, 2).build();
    let drive = drive.expect("its settings are a drive");
    let status = |status| Err(TestDriveError::Status(status));
    assert_eq!(
        drive.write(1, &block(1)),
        status(Status::ZONE_INVALID_WRITE)
    );
    drive.open_zone(0).expect("one can be open");
    assert_eq!(drive.open_zone(1), status(Status::TOO_MANY_OPEN_ZONES));
    drive.finish_zone(0).expect("it is open");
    assert_eq!(
        drive.append(0, &block(1)),
        Err(TestDriveError::Status(Status::ZONE_IS_FULL))
    );
    drive.reset_zone(0).expect("it is full");
    assert_eq!(drive.zone(0).map(|of| of.state), Ok(ZoneState::EMPTY));
    assert_eq!(
        drive.append(64, &block(1)),
        Err(TestDriveError::NoSuchZone {
            zone: 64,
            zones: 64
        })
    );
    assert!(matches!(
        drive.append(0, &[0; 100]),
        Err(TestDriveError::Length { bytes: 100, .. })
    ));
    assert_eq!(
        drive.read(drive.blocks(), 1),
        Err(TestDriveError::Status(Status::LBA_OUT_OF_RANGE))
    );
}

#[test]
fn faults_are_those_of_the_plan() {
    let drive = zoned();
    drive.append(0, &block(1)).expect("there is room");
    drive
        .inject("[[fault]]\non = \"read\"\nlbas = \"0..=0\"\neffect = \"media-error\"\n")
        .expect("it is a plan");
    assert_eq!(
        drive.read(0, 1),
        Err(TestDriveError::Status(Status::UNRECOVERED_READ_ERROR))
    );
    drive.clear_faults();
    assert_eq!(drive.read(0, 1), Ok(block(1)));
    drive
        .fail_zone(0, ZoneState::READ_ONLY)
        .expect("it can become that");
    assert_eq!(
        drive.append(0, &block(2)),
        Err(TestDriveError::Status(Status::ZONE_IS_READ_ONLY))
    );
    // One that answers nothing must not hang a test.
    drive
        .inject("[[fault]]\non = \"append\"\ncount = 1\neffect = \"lose\"\n")
        .expect("it is a plan");
    let unanswered = drive.append(1, &block(2)).expect_err("it is lost");
    assert!(matches!(unanswered, TestDriveError::NoAnswer { .. }));
    let said = unanswered.to_string();
    let lost = "a fault lost the completion of an append in zone 1 of namespace 1, submitted at ";
    assert!(said.contains(lost), "{said}");
    let wrong = drive.inject("[[fault]]\non = \"reed\"\neffect = \"media-error\"\n");
    let Err(TestDriveSettingError::Faults(message)) = wrong else {
        panic!("{wrong:?}");
    };
    assert!(
        message.contains("reed") && message.contains("read"),
        "{message}"
    );
}

#[test]
fn a_plan_that_cuts_the_power_does_so() {
    let drive = zoned();
    drive
        .inject("[[fault]]\non = \"append\"\nskip = 1\ncount = 1\neffect = \"power-cut\"\n")
        .expect("it is a plan");
    drive.append(0, &block(1)).expect("the first is spared");
    assert_eq!(drive.append(0, &block(2)), Err(TestDriveError::PowerLost));
    drive.restart();
    assert!(drive.flush().is_ok());
}

#[test]
fn a_conventional_drive_takes_blocks_in_any_order() {
    let drive = TestDrive::builder().conventional().zones(8).build();
    let drive = drive.expect("its settings are a drive");
    assert_eq!((drive.zones(), drive.blocks()), (0, 8 * 256));
    let mut expected = vec![0; drive.blocks() as usize];
    let mut at = 1_u64;
    for round in 0..6 * drive.blocks() {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block_at = (at >> 33) % drive.blocks();
        let byte = (round % 255) as u8;
        drive
            .write(block_at, &block(byte))
            .expect("it takes blocks anywhere");
        expected[block_at as usize] = byte;
    }
    drive.flush().expect("it has power");
    drive.lose_power();
    drive.restart();
    for (at, byte) in (0..).zip(expected) {
        assert_eq!(drive.read(at, 1), Ok(block(byte)), "block {at}");
    }
    let collected = drive.look(|of| of.totals().collect_program_bytes);
    assert!(collected > 0, "garbage was collected");
}

#[test]
fn a_conventional_drive_forgets_what_was_not_flushed() {
    let drive = TestDrive::conventional().expect("its settings are a drive");
    drive.write(3, &block(1)).expect("it has power");
    drive.flush().expect("it has power");
    drive.write(3, &block(2)).expect("it has power");
    drive.lose_power();
    drive.restart();
    assert_eq!(drive.read(3, 1), Ok(block(1)), "what it held before");
    drive.write(3, &block(2)).expect("it has power");
    drive.flush().expect("it has power");
    drive.lose_power();
    drive.restart();
    assert_eq!(drive.read(3, 1), Ok(block(2)), "what was flushed");
}

#[test]
fn time_passes_in_the_drive_alone() {
    let drive = zoned();
    drive.append(0, &block(1)).expect("there is room");
    let before = drive.now();
    assert!(before > Duration::ZERO);
    drive.wait_for(Duration::from_secs(3_600));
    assert_eq!(drive.now(), before + Duration::from_secs(3_600));
}

#[test]
fn threads_share_a_drive() {
    let drive = zoned();
    std::thread::scope(|scope| {
        for zone in 0..4 {
            let drive = drive.clone();
            scope.spawn(move || {
                for byte in 0..50 {
                    drive.append(zone, &block(byte)).expect("there is room");
                }
            });
        }
    });
    for zone in 0..4 {
        let report = drive.zone(zone).expect("it is there");
        assert_eq!(report.written, 50);
        for byte in 0..50 {
            assert_eq!(
                drive.read(report.start + u64::from(byte), 1),
                Ok(block(byte))
            );
        }
    }
}

#[test]
fn settings_that_are_no_drive_say_what_would_be() {
    let error = TestDrive::builder().zone_capacity_bytes(1_000).build();
    let error = error.expect_err("1,000 bytes are no zone").to_string();
    assert!(error.contains("1000") && error.contains("32768"), "{error}");
    let error = TestDrive::builder().zones(0).build();
    let error = error.expect_err("no zone is no drive").to_string();
    assert!(error.contains("count"), "{error}");
    let error = TestDrive::builder().block_bytes(1_000).build();
    let error = error.expect_err("no such blocks").to_string();
    assert!(error.contains("512 or 4096"), "{error}");
}

#[test]
fn every_command_has_its_turn_to_lose_power() {
    // Notes of the work: how far it got.
    let mut seen = std::collections::BTreeSet::new();
    let losses = at_every_crash::<u32, TestDriveError>(
        CrashPlan {
            runs: 30,
            ..CrashPlan::default()
        },
        |seed| TestDrive::builder().seed(seed).build().expect("a drive"),
        |drive, done| {
            for _ in 0..10 {
                drive.append(0, &block(1))?;
                *done += 1;
            }
            Ok(())
        },
        |_, done| {
            seen.insert(*done);
            Ok(())
        },
    );
    assert_eq!(losses.expect("nothing is checked").losses, 30);
    assert_eq!(seen, (0..=10).collect());
}

#[test]
fn a_served_drive_is_one_over_the_wire() {
    let config = TestDrive::builder().config().expect("a drive");
    let served = ServedDrive::start(&config, FaultPlan::default()).expect("a free port");
    let address = TcpAddress::parse(&served.url()).expect("its own address");
    let controller = TcpController::connect(Options::new(address)).expect("it listens");
    let zoned = controller.info().namespaces[0].zoned.expect("it has zones");
    assert_eq!((zoned.zones, zoned.max_open), (64, Some(14)));
}

/// The work of a log that moves its first record, if it does.
fn log(drive: &TestDrive, does_move: bool) -> Result<(), TestDriveError> {
    for byte in 1..=3 {
        drive.append(0, &block(byte))?;
    }
    drive.flush()?;
    if does_move {
        let _mark = drive.mark("move");
        let first = drive.read(0, 1)?;
        drive.append(1, &first)?;
        drive.flush()?;
    }
    Ok(())
}

/// A crash test in which nothing was ever moved fails if that is what it is for, and else
/// says so; one whose losses are too few to meet what the work does fails, too.
#[test]
fn a_crash_test_says_what_its_losses_met() {
    let lose = |plan: CrashPlan, does_move: bool| {
        at_every_crash::<(), TestDriveError>(
            plan,
            |seed| TestDrive::builder().seed(seed).build().expect("a drive"),
            |drive, ()| log(drive, does_move),
            |_, ()| Ok(()),
        )
    };
    let plan = CrashPlan {
        runs: 40,
        needs: &["move"],
        ..CrashPlan::default()
    };
    let failure = lose(plan, false).expect_err("nothing is moved");
    let (kind, losses) = ("move", 40);
    assert_eq!(failure.error, TestDriveError::NeverMet { kind, losses });
    assert_eq!(
        failure.to_string(),
        "the plan failed: none of 40 losses of power came while this was under way: move"
    );
    let report = lose(plan, true).expect("something is moved");
    // Seven commands in turn: four appends, two flushes and a read, three of them of the move.
    let met = |kind| (report.under_way(kind), report.met[kind].behind);
    assert_eq!(met("append"), (23, 34));
    assert_eq!(met("flush"), (11, 16));
    assert_eq!(met("move"), (16, 0));
    let said = report.to_string();
    assert!(
        said.starts_with("40 losses of power; append: 23 while one was under way"),
        "{said}"
    );
    assert!(
        said.ends_with("; NEVER MET: write, reset, finish, deallocate, copy"),
        "{said}"
    );
    let few = CrashPlan {
        runs: 2,
        ..CrashPlan::default()
    };
    let failure = lose(few, false).expect_err("no loss comes at the flush");
    let (kind, losses) = ("flush", 2);
    assert_eq!(failure.error, TestDriveError::NeverMet { kind, losses });
}
