//! Faults in front of something that is no drive: it completes commands after the
//! times of a script, and knows nothing of flash.

use std::collections::VecDeque;

use zonelab_device::{
    Buf, Command, Completion, Found, Lba, NamespaceId, Nanos, Op, QueueId, Rejected, Tag, ZoneId,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::{CannotFail, FaultPlan, FaultyDrive, Swallowed};
use crate::drive::ControlError;
use crate::interface::{DriveModel, FaultTarget};
use crate::power::{Lost, PowerLoss};
use crate::profile;
use crate::zones::Zones;

/// The n-th command takes the n-th time of a script.
#[derive(Debug)]
struct Scripted {
    now: Nanos,
    ready_at: Nanos,
    zones: Zones,
    script: VecDeque<Nanos>,
    in_flight: Vec<InFlight>,
    /// Zones that failed, in order.
    failed: Vec<(Nanos, ZoneId, ZoneState)>,
}

#[derive(Debug)]
struct InFlight {
    ends: Nanos,
    queue: QueueId,
    tag: Tag,
    command: Command,
    data: Option<Buf>,
}

impl Scripted {
    fn new(times: &[Nanos]) -> Self {
        let profile = profile::builtin("confznspp").expect("it is built in");
        Self {
            now: Nanos::ZERO,
            ready_at: Nanos::ZERO,
            zones: Zones::new(&profile.config.zones),
            script: times.iter().copied().collect(),
            in_flight: Vec::new(),
            failed: Vec::new(),
        }
    }
}

impl DriveModel for Scripted {
    fn now(&self) -> Nanos {
        self.now
    }

    fn ready_at(&self) -> Nanos {
        self.ready_at
    }

    fn next_event(&self) -> Option<Nanos> {
        self.in_flight.iter().map(|flying| flying.ends).min()
    }

    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueId,
        tag: Tag,
        command: Command,
        data: Option<Buf>,
    ) -> Result<(), Rejected> {
        assert!(now >= self.now && now >= self.ready_at, "too early: {now}");
        self.now = now;
        let takes = self.script.pop_front();
        self.in_flight.push(InFlight {
            ends: now + takes.expect("the script has a time for each command"),
            queue,
            tag,
            command,
            data,
        });
        Ok(())
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        assert!(to >= self.now, "time goes back to {to}");
        self.now = to;
        self.in_flight.sort_by_key(|flying| flying.ends);
        let due = self.in_flight.partition_point(|flying| flying.ends <= to);
        done.extend(self.in_flight.drain(..due).map(|flying| Completion {
            queue: flying.queue,
            tag: flying.tag,
            status: Status::SUCCESS,
            at: flying.ends,
            result: 0,
            found: Found::Unknown,
            data: flying.data,
        }));
    }
}

impl FaultTarget for Scripted {
    fn zones(&self) -> &Zones {
        &self.zones
    }

    fn check_failure(&self, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        match self.zones.state(zone) {
            from @ ZoneState::OFFLINE if to != from => {
                Err(ControlError::CannotFail { zone, from, to })
            }
            _ => Ok(()),
        }
    }

    fn fail_zone(&mut self, now: Nanos, zone: ZoneId, to: ZoneState) -> Result<(), ControlError> {
        self.check_failure(zone, to)?;
        let failed = self.zones.fail(zone, to, &mut Vec::new());
        failed.expect("it was checked");
        self.failed.push((now, zone, to));
        Ok(())
    }

    fn power_cut(&mut self, now: Nanos, off: Nanos, _seed: u64) -> PowerLoss {
        self.now = now;
        self.ready_at = now + off;
        let lost = |flying: InFlight| Lost {
            queue: flying.queue,
            tag: flying.tag,
            nsid: flying.command.nsid,
            op: flying.command.op,
            data: flying.data,
        };
        PowerLoss {
            lost: self.in_flight.drain(..).map(lost).collect(),
            changes: Vec::new(),
            ready_at: self.ready_at,
        }
    }
}

const fn us(us: u64) -> Nanos {
    Nanos::from_us(us)
}

fn faulty(plan: &str, times: &[Nanos]) -> FaultyDrive<Scripted> {
    let plan = FaultPlan::parse("faults.toml", plan, &[]).expect("the test's plan is valid");
    FaultyDrive::new(Scripted::new(times), plan)
}

fn submit(drive: &mut FaultyDrive<Scripted>, now: Nanos, tag: u32, op: Op) {
    drive
        .submit(now, QueueId(3), Tag(tag), Command::new(op), None)
        .expect("a script refuses nothing");
}

const fn read(slba: u64) -> Op {
    Op::Read {
        slba: Lba(slba),
        nlb: 1,
    }
}

const fn write(slba: u64) -> Op {
    Op::Write {
        slba: Lba(slba),
        nlb: 4,
    }
}

/// Tags, times and statuses of the completions until nothing happens any more.
fn settle(drive: &mut FaultyDrive<Scripted>) -> Vec<(u32, Nanos, Status)> {
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
    let of_queue = done.iter().all(|done| done.queue == QueueId(3));
    assert!(of_queue, "{done:?}");
    done.into_iter()
        .map(|done| (done.tag.0, done.at, done.status))
        .collect()
}

#[test]
fn without_faults_completions_are_as_scripted() {
    let mut drive = FaultyDrive::from(Scripted::new(&[us(30), us(10)]));
    submit(&mut drive, us(1), 1, read(0));
    submit(&mut drive, us(2), 2, read(0));
    assert_eq!(drive.next_event(), Some(us(12)));
    let expected = vec![(2, us(12), Status::SUCCESS), (1, us(31), Status::SUCCESS)];
    assert_eq!(settle(&mut drive), expected);
    assert_eq!((drive.now(), drive.faults_struck()), (us(31), 0));
}

#[test]
fn a_delayed_completion_comes_behind_a_later_one() {
    let plan = "[[fault]]\non = \"read\"\ncount = 1\neffect = \"delay\"\ndelay = \"50us\"\n";
    let mut drive = faulty(plan, &[us(10), us(20)]);
    submit(&mut drive, us(0), 1, read(0));
    submit(&mut drive, us(0), 2, read(0));
    let expected = vec![(2, us(20), Status::SUCCESS), (1, us(60), Status::SUCCESS)];
    assert_eq!(settle(&mut drive), expected);
}

#[test]
fn a_lost_completion_is_aborted_after_its_timeout_or_never() {
    let plan = "[[fault]]\non = \"read\"\ncount = 1\neffect = \"lose\"\ntimeout = \"1ms\"\n\
                [[fault]]\non = \"read\"\ncount = 1\neffect = \"lose\"\n";
    let mut drive = faulty(plan, &[us(10), us(10), us(10)]);
    for tag in 1..=3 {
        submit(&mut drive, us(5), tag, read(0));
    }
    let expected = vec![
        (3, us(15), Status::SUCCESS),
        (1, us(1_005), Status::ABORTED_BY_HOST),
    ];
    assert_eq!(settle(&mut drive), expected);
    let swallowed = drive.take_swallowed();
    let [Swallowed { tag: Tag(2), .. }] = swallowed[..] else {
        panic!("only the second was lost for good: {swallowed:?}");
    };
}

#[test]
fn a_loss_of_power_ends_what_is_in_flight_and_later_commands_wait() {
    let plan = "[[fault]]\non = \"time\"\nat = \"100us\"\neffect = \"power-cut\"\noff = \"1ms\"\n";
    let mut drive = faulty(plan, &[us(10), us(500), us(20)]);
    submit(&mut drive, us(0), 1, read(0));
    submit(&mut drive, us(0), 2, read(0));
    let mut done = Vec::new();
    drive.advance(us(200), &mut done);
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(drive.ready_at(), us(1_100));

    // Taken when the drive is ready: what is behind the faults would panic before.
    submit(&mut drive, us(300), 3, read(0));
    let expected = vec![
        (2, us(1_100), Status::ABORTED_BY_HOST),
        (3, us(1_120), Status::SUCCESS),
    ];
    assert_eq!(settle(&mut drive), expected);
    let cycle = drive.last_power_cycle().expect("power was lost");
    assert_eq!((cycle.at, cycle.aborted), (us(100), 1));
}

#[test]
fn a_failed_program_fails_its_zone_and_its_blocks_cannot_be_read() {
    let plan = "[[fault]]\non = \"write\"\ncount = 1\neffect = \"read-only\"\n";
    let mut drive = faulty(plan, &[us(40), us(5), us(5)]);
    let slba = drive.drive().zones().start(ZoneId(2)).0;
    submit(&mut drive, us(0), 1, write(slba));
    assert_eq!(settle(&mut drive), [(1, us(40), Status::WRITE_FAULT)]);
    let failed = (us(40), ZoneId(2), ZoneState::READ_ONLY);
    assert_eq!(drive.drive().failed, [failed]);

    submit(&mut drive, us(50), 2, read(slba + 3));
    submit(&mut drive, us(50), 3, read(slba + 4));
    let expected = vec![
        (2, us(55), Status::UNRECOVERED_READ_ERROR),
        (3, us(55), Status::SUCCESS),
    ];
    assert_eq!(settle(&mut drive), expected);
}

#[test]
fn zones_fail_all_or_none() {
    let mut drive = FaultyDrive::from(Scripted::new(&[]));
    let nsid = NamespaceId(1);
    let offline = drive.fail_zones(us(1), nsid, &[1..=1], ZoneState::OFFLINE);
    assert_eq!(offline, Ok(()));
    let refused = drive.fail_zones(us(2), nsid, &[0..=1], ZoneState::READ_ONLY);
    let expected = CannotFail::State {
        zone: 1,
        from: ZoneState::OFFLINE,
        to: ZoneState::READ_ONLY,
    };
    assert_eq!(refused, Err(expected));
    assert_eq!(
        drive.drive().failed,
        [(us(1), ZoneId(1), ZoneState::OFFLINE)]
    );
}
