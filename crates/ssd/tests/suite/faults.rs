//! Faults between a drive and its host.

use crate::drive_support::{PAGE, READ, WRITE, small, us};
use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::{CannotFail, FaultId, FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, DriveModel};

fn config() -> DriveConfig {
    DriveConfig {
        data: DataStore::Memory,
        ..small()
    }
}

/// A faulty drive and its host.
struct Host {
    drive: FaultyDrive,
    now: Nanos,
    tag: u32,
}

impl Host {
    fn new(faults: &str) -> Self {
        let plan = FaultPlan::parse("faults.toml", faults, &[]).expect("the test's plan is valid");
        Self {
            drive: FaultyDrive::new(Drive::new(&config()), plan),
            now: Nanos::ZERO,
            tag: 0,
        }
    }

    fn submit(&mut self, op: Op) -> Tag {
        self.tag += 1;
        let data = match op {
            Op::Write { nlb, .. } | Op::Append { nlb, .. } => {
                Some(vec![self.tag as u8; nlb as usize * 4_096])
            }
            Op::Read { nlb, .. } => Some(vec![0xee; nlb as usize * 4_096]),
            _ => None,
        };
        let (tag, command) = (Tag(self.tag), Command::new(op));
        self.drive
            .submit(self.now, QueueId(0), tag, command, data.map(Buf::from))
            .expect("few are in flight");
        tag
    }

    /// Completions until nothing happens any more.
    fn settle(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        while let Some(at) = self.drive.next_event() {
            assert!(at >= self.now, "time goes back to {at}");
            self.now = at;
            self.drive.advance(at, &mut done);
        }
        assert!(
            done.is_sorted_by_key(|completion| completion.at),
            "{done:?}"
        );
        done
    }

    fn exec(&mut self, op: Op) -> Completion {
        let tag = self.submit(op);
        let mut done = self.settle();
        let at = done.iter().position(|completion| completion.tag == tag);
        done.swap_remove(at.expect("it completes"))
    }

    fn write(&mut self, zone: u32, offset: u64) -> Completion {
        let slba = Lba(u64::from(zone) * config().zones.size_lbas + offset);
        self.exec(Op::Write { slba, nlb: PAGE })
    }

    fn read(&mut self, zone: u32, offset: u64) -> Completion {
        let slba = Lba(u64::from(zone) * config().zones.size_lbas + offset);
        self.exec(Op::Read { slba, nlb: PAGE })
    }

    fn state(&self, zone: u32) -> ZoneState {
        self.drive.drive().zones().state(ZoneId(zone))
    }
}

#[test]
fn a_weak_spot_cannot_be_read_until_faults_are_cleared() {
    let mut host =
        Host::new("[[fault]]\non = \"read\"\nlbas = \"5..=6\"\neffect = \"media-error\"\n");
    for page in 0..3 {
        assert_eq!(
            host.write(0, page * u64::from(PAGE)).status,
            Status::SUCCESS
        );
    }
    let before = host.now;
    let failed = host.read(0, 4);
    assert_eq!(failed.status, Status::UNRECOVERED_READ_ERROR);
    assert_eq!(failed.at - before, READ, "it takes its time");
    assert_eq!(host.read(0, 8).status, Status::SUCCESS, "behind it");
    assert_eq!(host.drive.faults_struck(), 1);
    host.drive.clear_faults();
    let read = host.read(0, 4);
    assert_eq!(read.status, Status::SUCCESS);
    assert_eq!(
        read.data.expect("the buffer comes back")[0],
        2,
        "the data was there all the time"
    );
}

#[test]
fn a_program_failure_takes_the_zone_and_its_blocks() {
    for (effect, state, refused) in [
        ("read-only", ZoneState::READ_ONLY, Status::ZONE_IS_READ_ONLY),
        ("offline", ZoneState::OFFLINE, Status::ZONE_IS_OFFLINE),
    ] {
        let plan =
            format!("[[fault]]\non = \"write\"\nskip = 1\ncount = 1\neffect = \"{effect}\"\n");
        let mut host = Host::new(&plan);
        assert_eq!(host.write(1, 0).status, Status::SUCCESS, "spared");
        let before = host.now;
        let failed = host.write(1, 4);
        assert_eq!(failed.status, Status::WRITE_FAULT);
        assert_eq!(failed.at - before, WRITE);
        assert_eq!(host.state(1), state);
        assert_eq!(host.write(1, 8).status, refused);
        assert_eq!(host.write(2, 0).status, Status::SUCCESS, "only once");
        let kept = if state == ZoneState::OFFLINE {
            refused
        } else {
            Status::SUCCESS
        };
        assert_eq!(host.read(1, 0).status, kept);
        let lost = if state == ZoneState::OFFLINE {
            refused
        } else {
            Status::UNRECOVERED_READ_ERROR
        };
        assert_eq!(host.read(1, 4).status, lost);
    }
}

#[test]
fn a_failed_append_gives_no_address() {
    let mut host = Host::new("[[fault]]\non = \"append\"\ncount = 1\neffect = \"read-only\"\n");
    let zslba = Lba(0);
    let failed = host.exec(Op::Append { zslba, nlb: PAGE });
    assert_eq!((failed.status, failed.result), (Status::WRITE_FAULT, 0));
}

#[test]
fn a_command_that_is_refused_does_not_fail_as_well() {
    let mut host = Host::new("[[fault]]\non = \"write\"\neffect = \"offline\"\n");
    assert_eq!(host.write(0, 8).status, Status::ZONE_INVALID_WRITE);
    assert_eq!(host.state(0), ZoneState::EMPTY);
}

#[test]
fn delays_add_to_the_time_of_the_command_and_reorder() {
    let mut host =
        Host::new("[[fault]]\non = \"write\"\nzones = 0\neffect = \"delay\"\ndelay = \"5ms\"\n");
    let size = config().zones.size_lbas;
    let slow = host.submit(Op::Write {
        slba: Lba(0),
        nlb: PAGE,
    });
    let fast = host.submit(Op::Write {
        slba: Lba(size),
        nlb: PAGE,
    });
    let done = host.settle();
    assert_eq!([done[0].tag, done[1].tag], [fast, slow]);
    assert_eq!(done[1].at, WRITE + Nanos::from_ms(5));
}

#[test]
fn a_lost_completion_comes_with_the_timeout_or_never() {
    let mut host =
        Host::new("[[fault]]\non = \"read\"\ncount = 1\neffect = \"lose\"\ntimeout = \"30s\"\n");
    let read = host.read(0, 0);
    assert_eq!(
        (read.status, read.at),
        (Status::ABORTED_BY_HOST, Nanos::from_secs(30))
    );
    assert!(read.data.is_some(), "the buffer comes back");

    let mut host = Host::new("[[fault]]\non = \"read\"\ncount = 1\neffect = \"lose\"\n");
    let tag = host.submit(Op::Read {
        slba: Lba(0),
        nlb: PAGE,
    });
    assert!(host.settle().is_empty());
    // Until the host resets the controller, as it does after a loss of power.
    host.drive.power_cut(host.now, us(10));
    let done = host.settle();
    assert_eq!((done.len(), done[0].tag), (1, tag));
}

#[test]
fn a_failed_command_does_nothing() {
    let mut host = Host::new(
        "[[fault]]\non = \"reset\"\ncount = 1\neffect = \"fail\"\nstatus = \"command-interrupted\"\n",
    );
    assert_eq!(host.write(0, 0).status, Status::SUCCESS);
    let reset = Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    assert_eq!(host.exec(reset).status, Status::COMMAND_INTERRUPTED);
    assert_ne!(host.state(0), ZoneState::EMPTY);
    assert_eq!(host.exec(reset).status, Status::SUCCESS);
    assert_eq!(host.state(0), ZoneState::EMPTY);
}

#[test]
fn power_fails_at_a_time_and_commands_wait_for_it() {
    let mut host = Host::new(
        "[[fault]]\non = \"time\"\nat = \"300us\"\neffect = \"power-cut\"\noff = \"1s\"\n",
    );
    let lost = host.submit(Op::Write {
        slba: Lba(0),
        nlb: PAGE,
    });
    let mut done = Vec::new();
    host.now = us(400);
    host.drive.advance(host.now, &mut done);
    assert!(done.is_empty());
    let early = host.submit(Op::Flush);
    let done = host.settle();
    let back = us(300) + Nanos::from_secs(1);
    assert_eq!(
        (done[0].tag, done[0].status, done[0].at),
        (lost, Status::ABORTED_BY_HOST, back)
    );
    assert_eq!(
        (done[1].tag, done[1].status, done[1].at),
        (early, Status::SUCCESS, back)
    );
}

#[test]
fn zones_fail_at_a_time() {
    let mut host = Host::new(
        "[[fault]]\non = \"time\"\nat = \"1ms\"\nzones = \"1..=2\"\neffect = \"offline\"\n",
    );
    host.settle();
    assert_eq!(host.now, Nanos::from_ms(1));
    assert_eq!(host.state(0), ZoneState::EMPTY);
    assert_eq!([host.state(1), host.state(2)], [ZoneState::OFFLINE; 2]);
}

#[test]
fn draws_follow_the_seed() {
    let struck = |seed: u64| -> Vec<bool> {
        let plan = format!(
            "seed = {seed}\n[[fault]]\non = \"read\"\nprobability = \"25%\"\neffect = \"media-error\"\n"
        );
        let mut host = Host::new(&plan);
        (0..400)
            .map(|_| !host.read(0, 0).status.is_success())
            .collect()
    };
    assert_eq!(struck(1), struck(1));
    assert_ne!(struck(1), struck(2));
    let count = struck(3).iter().filter(|struck| **struck).count();
    // Four standard deviations of 8.7 about 100.
    assert!((65..=135).contains(&count), "{count}");
}

/// One switch removes them all.
#[test]
fn a_plan_that_is_not_enabled_is_read_and_does_nothing() {
    let mut host = Host::new("enabled = false\n[[fault]]\non = \"any\"\neffect = \"fail\"\n");
    assert_eq!(host.write(0, 0).status, Status::SUCCESS);
    let wrong = FaultPlan::parse("f.toml", "enabled = false\n[[fault]]\non = \"any\"\n", &[]);
    assert!(wrong.is_err());
}

#[test]
fn mistakes_are_named_with_their_lines() {
    for (text, expected) in [
        ("[[fault]]\neffect = \"lose\"\n", "fault.0.on"),
        ("[[fault]]\non = \"reed\"\neffect = \"lose\"\n", "f.toml:2"),
        (
            "[[fault]]\non = \"read\"\neffect = \"offline\"\n",
            "f.toml:3",
        ),
        (
            "[[fault]]\non = \"write\"\neffect = \"media-error\"\n",
            "on = \"read\"",
        ),
        ("[[fault]]\non = \"read\"\neffect = \"delay\"\n", "delay"),
        (
            "[[fault]]\non = \"read\"\neffect = \"lose\"\ndelay = \"1s\"\n",
            "f.toml:4",
        ),
        ("[[fault]]\non = \"time\"\neffect = \"power-cut\"\n", "at"),
        (
            "[[fault]]\non = \"time\"\nat = \"1s\"\neffect = \"offline\"\n",
            "zones",
        ),
        (
            "[[fault]]\non = \"read\"\nlbas = \"9..=5\"\neffect = \"lose\"\n",
            "f.toml:3",
        ),
        (
            "[[fault]]\non = \"read\"\nprobability = \"101%\"\neffect = \"lose\"\n",
            "f.toml:3",
        ),
        (
            "[[fault]]\non = \"read\"\neffect = \"lose\"\nwhat = 1\n",
            "what",
        ),
        ("fault = 3\n", "f.toml:1"),
    ] {
        let error = FaultPlan::parse("f.toml", text, &[])
            .expect_err(text)
            .to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

/// A fault that can never strike is a mistake.
#[test]
fn faults_on_zones_and_blocks_that_are_not_there_are_named() {
    let check = |text: &str| {
        FaultPlan::parse("f.toml", text, &[])
            .expect(text)
            .check(&config())
    };
    let fault = |place: &str| format!("[[fault]]\non = \"read\"\n{place}\neffect = \"lose\"\n");
    assert_eq!(check(&fault("zones = \"0..=5\"")), Ok(()));
    assert_eq!(check(&fault("lbas = \"0..=959\"")), Ok(()));
    for (place, says) in [
        (
            "zones = \"5..=6\"",
            "fault 0: zones 5 to 6 are not all on the drive: its last is 5",
        ),
        (
            "lbas = 960",
            "fault 0: blocks 960 to 960 are not all on the drive: its last is 959",
        ),
    ] {
        assert_eq!(check(&fault(place)), Err(says.to_owned()));
    }
}

fn plan(text: &str) -> FaultPlan {
    FaultPlan::parse("added.toml", text, &[]).expect("the test's plan is valid")
}

#[test]
fn faults_come_and_go_while_the_drive_runs() {
    let mut host = Host::new("");
    for page in 0..3 {
        host.write(0, page * u64::from(PAGE));
    }
    let weak = "[[fault]]\non = \"read\"\nlbas = \"0..=3\"\neffect = \"media-error\"\n";
    let both = format!("{weak}[[fault]]\non = \"read\"\nskip = 1\neffect = \"fail\"\n");
    let ids = host.drive.add_faults(host.now, plan(&both));
    assert_eq!(ids, [FaultId(1), FaultId(2)]);
    assert_eq!(host.read(0, 0).status, Status::UNRECOVERED_READ_ERROR);
    assert_eq!(host.read(0, 4).status, Status::SUCCESS, "spared");
    assert_eq!(host.read(0, 4).status, Status::INTERNAL_ERROR);
    let standing = host.drive.standing_faults();
    let counts: Vec<(u64, u64)> = standing.iter().map(|of| (of.matched, of.struck)).collect();
    assert_eq!(counts, [(1, 1), (2, 1)]);
    assert_eq!(standing[0].fault, plan(weak).faults[0]);

    assert!(host.drive.remove_fault(FaultId(1)) && !host.drive.remove_fault(FaultId(1)));
    assert_eq!(host.read(0, 0).status, Status::INTERNAL_ERROR, "the other");
    assert_eq!(host.drive.clear_faults(), 1);
    assert_eq!(host.read(0, 0).status, Status::SUCCESS);
    assert_eq!(host.drive.faults_struck(), 3);
    // Numbers are not used again.
    assert_eq!(host.drive.add_faults(host.now, plan(weak)), [FaultId(3)]);
}

#[test]
fn times_of_a_plan_count_from_when_it_is_loaded() {
    let mut host = Host::new("");
    host.write(0, 0);
    let loaded = host.now;
    let text = "[[fault]]\non = \"time\"\nat = \"2ms\"\nzones = 3\neffect = \"offline\"\n\
                [[fault]]\non = \"read\"\nfrom = \"2ms\"\neffect = \"fail\"\n";
    host.drive.add_faults(host.now, plan(text));
    assert_eq!(host.drive.next_event(), Some(loaded + Nanos::from_ms(2)));
    assert_eq!(host.read(0, 0).status, Status::SUCCESS);
    assert_eq!(host.state(3), ZoneState::OFFLINE);
    host.now = host.now.max(loaded + Nanos::from_ms(2));
    assert_eq!(host.read(0, 0).status, Status::INTERNAL_ERROR);
}

#[test]
fn draws_of_a_plan_are_those_of_its_seed_whatever_else_is_loaded() {
    let chance = |seed| {
        format!(
            "seed = {seed}\n[[fault]]\non = \"read\"\nprobability = \"50%\"\neffect = \"fail\"\n"
        )
    };
    let failed = |host: &mut Host| -> Vec<bool> {
        (0..64)
            .map(|_| !host.read(0, 0).status.is_success())
            .collect()
    };
    let mut at_start = Host::new(&chance(7));
    at_start.write(0, 0);
    let mut added = Host::new(
        "[[fault]]\non = \"write\"\nprobability = \"1%\"\neffect = \"delay\"\ndelay = \"1us\"\n",
    );
    added.write(0, 0);
    added.drive.add_faults(added.now, plan(&chance(7)));
    let expected = failed(&mut at_start);
    assert_eq!(failed(&mut added), expected);
    added.drive.clear_faults();
    added.drive.add_faults(added.now, plan(&chance(8)));
    assert_ne!(failed(&mut added), expected);
}

#[test]
fn zones_fail_together_or_not_at_all() {
    let mut host = Host::new("");
    let one = NamespaceId(1);
    let fail = |host: &mut Host, zones, to| {
        let now = host.now;
        host.drive.fail_zones(now, one, &[zones], to)
    };
    assert_eq!(fail(&mut host, 2..=2, ZoneState::OFFLINE), Ok(()));
    let refused = fail(&mut host, 1..=2, ZoneState::READ_ONLY);
    assert!(matches!(refused, Err(CannotFail::State { zone: 2, .. })));
    assert_eq!(host.state(1), ZoneState::EMPTY);
    assert_eq!(fail(&mut host, 1..=2, ZoneState::OFFLINE), Ok(()));
    assert_eq!(host.state(1), ZoneState::OFFLINE);
    let zones = config().zones.count;
    for range in [zones..=zones, 0..=zones, u32::MAX..=u32::MAX] {
        let refused = fail(&mut host, range, ZoneState::OFFLINE);
        assert!(matches!(refused, Err(CannotFail::NoSuchZone { .. })));
    }
    let nowhere = host
        .drive
        .fail_zones(host.now, NamespaceId(2), &[0..=0], ZoneState::OFFLINE);
    assert!(matches!(nowhere, Err(CannotFail::NoSuchNamespace { .. })));
    assert!(fail(&mut host, 0..=0, ZoneState::FULL).is_err());
}

#[test]
fn a_lost_completion_is_the_owners_to_take() {
    let lose = "[[fault]]\non = \"write\"\neffect = \"lose\"\ntimeout = \"1ms\"\n";
    let mut host = Host::new(lose);
    host.drive.leave_timeouts_to_host();
    let tag = host.submit(Op::Write {
        slba: Lba(0),
        nlb: PAGE,
    });
    assert!(host.settle().is_empty());
    let swallowed = host.drive.take_swallowed();
    assert_eq!((swallowed.len(), swallowed[0].tag), (1, tag));
    assert_eq!(host.read(0, 0).status, Status::SUCCESS);
    let cycle = host.drive.power_cut(host.now, Nanos::from_ms(1));
    assert_eq!((cycle.aborted, cycle.at), (0, host.now));
    assert_eq!(
        (host.drive.power_cycles(), host.drive.last_power_cycle()),
        (1, Some(&cycle))
    );
}
