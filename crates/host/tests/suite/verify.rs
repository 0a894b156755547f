//! Jobs whose blocks are verified, over a device in memory that can be made to
//! lose, misplace and damage what it stores.

use std::collections::VecDeque;
use std::ops::Range;

use proptest::prelude::*;
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, Nanos, Op, QueueId, QueuePair, RejectReason,
    Rejected, Tag,
};
use zonelab_host::verify::{Method, Pattern, Verify};
use zonelab_host::workload::directed::{
    DirectedWork, Direction, Flow, Pattern as Places, Sizes, WriteStyle,
};
use zonelab_host::workload::distribution::Distribution;
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::workload::{
    Ending, JobResult, JobSpec, Shared, Stop, Syncs, Verified, WorkloadJob,
};
use zonelab_host::{Job, NextWake, Rng};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::support::{CAPACITY, ZONE, tiny_info};

const LBA: usize = 4096;

/// What the device does with the data of its n-th write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A bit of this byte of the first block flips afterwards.
    Flip(usize),
    /// Nothing of it is stored.
    Lost,
    /// Only the first block is.
    Torn,
    /// It goes one block further, too.
    Misplaced,
}

/// A device that keeps data, with a latency of 10 us and a queue of `depth`.
struct Memory {
    info: DeviceInfo,
    data: Vec<u8>,
    pointers: Vec<u64>,
    now: Nanos,
    depth: usize,
    in_flight: VecDeque<Completion>,
    writes: u64,
    faults: Vec<(u64, Fault)>,
    log: Vec<Op>,
    /// A reset leaves the data where they are.
    keeps: bool,
}

impl Memory {
    fn new(faults: &[(u64, Fault)]) -> Self {
        let info = tiny_info();
        let zones = info.namespaces[0].size_lbas / ZONE;
        Self {
            data: vec![0; info.namespaces[0].size_lbas as usize * LBA],
            pointers: vec![0; zones as usize],
            info,
            now: Nanos::ZERO,
            depth: usize::MAX,
            in_flight: VecDeque::new(),
            writes: 0,
            faults: faults.to_vec(),
            log: Vec::new(),
            keeps: false,
        }
    }

    fn bytes(slba: u64, nlb: u32) -> Range<usize> {
        slba as usize * LBA..(slba as usize + nlb as usize) * LBA
    }

    fn write(&mut self, slba: u64, nlb: u32, data: &[u8]) {
        assert_eq!(data.len(), nlb as usize * LBA, "a write brings its data");
        let number = self.writes;
        self.writes += 1;
        self.pointers[(slba / ZONE) as usize] = slba % ZONE + u64::from(nlb);
        let fault = self.faults.iter().find(|(at, _)| *at == number);
        let range = Self::bytes(slba, nlb);
        match fault.map(|(_, fault)| *fault) {
            Some(Fault::Lost) => {}
            Some(Fault::Torn) => {
                self.data[range][..LBA].copy_from_slice(&data[..LBA]);
            }
            Some(Fault::Misplaced) => {
                self.data[range.start + LBA..range.end + LBA].copy_from_slice(data);
            }
            Some(Fault::Flip(byte)) => {
                self.data[range.clone()].copy_from_slice(data);
                self.data[range.start + byte] ^= 0x10;
            }
            None => self.data[range].copy_from_slice(data),
        }
    }

    fn execute(&mut self, op: Op, data: Option<&mut Buf>) -> u64 {
        self.log.push(op);
        match op {
            Op::Write { slba, nlb } => {
                let at = self.pointers[(slba.0 / ZONE) as usize];
                assert_eq!(slba.0 % ZONE, at, "at the write pointer");
                self.write(slba.0, nlb, data.expect("data"));
            }
            Op::Append { zslba, nlb } => {
                let at = zslba.0 + self.pointers[(zslba.0 / ZONE) as usize];
                self.write(at, nlb, data.expect("data"));
                return at;
            }
            Op::Read { slba, nlb } => {
                let data = data.expect("a buffer");
                data.copy_from_slice(&self.data[Self::bytes(slba.0, nlb)]);
            }
            Op::ZoneSend { slba, action, .. } if action == ZoneSendAction::FINISH => {
                self.pointers[(slba.0 / ZONE) as usize] = CAPACITY;
            }
            Op::ZoneSend { slba, .. } => {
                self.pointers[(slba.0 / ZONE) as usize] = 0;
                if !self.keeps {
                    self.data[Self::bytes(slba.0, ZONE as u32)].fill(0);
                }
            }
            _ => {}
        }
        0
    }

    fn run(&mut self, job: &mut dyn Job) {
        let mut done = Vec::new();
        for _ in 0..100_000 {
            self.poll(&mut done);
            let next = job.step(self.now, &mut done, self);
            done.clear();
            let completion = self.in_flight.front().map(|completion| completion.at);
            self.now = match (next, completion) {
                (NextWake::Finished, _) => return,
                (NextWake::At(wish), Some(at)) => self.now.max(wish.min(at)),
                (NextWake::At(at), None) | (NextWake::Completion, Some(at)) => self.now.max(at),
                (NextWake::Completion, None) => panic!("the job waits for nothing"),
            };
        }
        panic!("the job does not end");
    }

    fn reads(&self) -> usize {
        let is_read = |op: &&Op| matches!(op, Op::Read { .. });
        self.log.iter().filter(is_read).count()
    }
}

impl QueuePair for Memory {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(
        &mut self,
        command: Command,
        tag: Tag,
        mut data: Option<Buf>,
    ) -> Result<(), Rejected> {
        if self.in_flight.len() >= self.depth {
            let (queue, depth) = (QueueId(0), self.depth as u32);
            let reason = RejectReason::QueueFull { queue, depth };
            return Err(Rejected { reason, data });
        }
        let result = self.execute(command.op, data.as_mut());
        self.in_flight.push_back(Completion {
            queue: QueueId(0),
            tag,
            status: Status::SUCCESS,
            at: self.now + Nanos::from_us(10),
            result,
            found: Found::Unknown,
            data,
        });
        Ok(())
    }

    fn ring(&mut self) {}

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        while self
            .in_flight
            .front()
            .is_some_and(|next| next.at <= self.now)
        {
            done.extend(self.in_flight.pop_front());
        }
        done.len() - before
    }
}

fn writes(zones: Range<u32>, lbas: u32) -> JobSpec {
    let work = DirectedWork::through(zones, Direction::Write, Sizes::fixed(lbas));
    let spec = JobSpec {
        ending: Ending::AtLastCompletion,
        queue_depth: 4,
        verify: Some(Box::new(Verify::new(Method::Crc32c))),
        ..JobSpec::new("job", work)
    };
    spec.into()
}

fn reads(zones: Range<u32>, lbas: u32) -> JobSpec {
    let work = DirectedWork::through(zones, Direction::Read, Sizes::fixed(lbas));
    JobSpec {
        verify: Some(Box::new(Verify::new(Method::Crc32c))),
        ..JobSpec::new("job", work)
    }
    .into()
}

fn with(spec: JobSpec, change: impl FnOnce(&mut Verify)) -> JobSpec {
    let mut spec = spec;
    change(spec.verify.as_mut().expect("it verifies"));
    spec
}

fn work(spec: &mut JobSpec) -> &mut DirectedWork {
    match &mut spec.work {
        zonelab_host::workload::Work::Directed(work) => work,
        _ => panic!("it works in directions"),
    }
}

fn run_with(spec: JobSpec, device: &mut Memory, zones: Option<&SharedZones>) -> JobResult {
    let shared = Shared {
        zones: zones.map(|zones| (zones.clone(), 0)),
        ..Shared::default()
    };
    let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(7, 0), shared);
    device.run(&mut job);
    assert!(job.has_ended());
    job.into_result()
}

fn run(spec: JobSpec, faults: &[(u64, Fault)]) -> (Verified, JobResult) {
    let result = run_with(spec, &mut Memory::new(faults), None);
    let verified = result.verified.as_deref().cloned();
    (verified.expect("it verifies"), result)
}

#[test]
fn what_a_job_has_written_is_read_back_once() {
    let (verified, result) = run(writes(1..3, 6), &[]);
    assert_eq!((verified.operations, verified.wrong), (20, 0));
    assert_eq!(result.errors, 0);
    assert_eq!(result.operations, 40, "20 writes, 20 reads");
    assert_eq!(verified.checking, Nanos::from_us(50), "four at a time");
}

#[test]
fn every_fault_is_found_where_it_is() {
    let at = (6 * 3) * LBA as u64 + ZONE * LBA as u64;
    for (fault, says) in [
        (Fault::Flip(5_000), "crc32c of the data: expected "),
        (Fault::Flip(3), "header is torn: expected its checksum"),
        (
            Fault::Lost,
            "no header: expected magic 0xacca, found 0x0000",
        ),
        (Fault::Torn, "crc32c of the data: expected "),
    ] {
        let (verified, result) = run(writes(1..3, 6), &[(3, fault)]);
        assert_eq!((verified.wrong, result.errors), (1, 1), "{fault:?}");
        assert_eq!(verified.operations, 20, "the others are compared too");
        let first = verified.first_wrong.expect("the first");
        assert_eq!(
            (first.offset, first.len, first.zone),
            (at, 6 * 4096, Some(1))
        );
        assert!(first.what.starts_with(says), "{fault:?}: {first}");
    }
    // Alone in its zone, since the next write would repair half of it.
    let mut one = writes(1..2, 6);
    one.stop.operations = Some(1);
    let (verified, _) = run(one, &[(0, Fault::Misplaced)]);
    let first = verified.first_wrong.expect("the first").to_string();
    assert_eq!(
        first,
        "24576 bytes at offset 262144 (zone 1): no header: expected magic 0xacca, found 0x0000"
    );
}

#[test]
fn a_block_of_an_earlier_pass_is_stale() {
    // The second pass loses its first write, and the device keeps what was there:
    // only the number of the write tells.
    let mut spec = with(writes(0..1, 60), |verify| verify.passes = 2);
    work(&mut spec).repeats = true;
    spec.stop.operations = Some(1);
    let mut device = Memory::new(&[(1, Fault::Lost)]);
    device.keeps = true;
    let result = run_with(spec, &mut device, None);
    let verified = result.verified.expect("it verifies");
    assert_eq!((verified.operations, verified.wrong), (2, 1));
    let first = verified.first_wrong.expect("the first");
    assert!(first.what.starts_with("header of another write"), "{first}");
}

#[test]
fn a_fatal_mismatch_ends_the_job() {
    let spec = with(writes(0..2, 6), |verify| verify.is_fatal = true);
    let (verified, result) = run(spec, &[(2, Fault::Lost), (5, Fault::Lost)]);
    assert_eq!((verified.wrong, result.errors), (1, 1));
    assert!(verified.operations <= 6, "{verified:?}");
}

#[test]
fn appends_are_read_where_they_went() {
    let mut spec = writes(2..4, 6);
    work(&mut spec).style = WriteStyle::Append;
    let (verified, _) = run(spec.clone(), &[]);
    assert_eq!((verified.operations, verified.wrong), (20, 0));
    let (verified, _) = run(spec, &[(13, Fault::Flip(100))]);
    let first = verified.first_wrong.expect("the first");
    assert_eq!((verified.wrong, first.zone), (1, Some(3)));
    assert_eq!(first.offset, (3 * ZONE + 18) * LBA as u64);
}

#[test]
fn without_do_verify_blocks_carry_contents_that_a_later_job_checks() {
    let mut device = Memory::new(&[(4, Fault::Flip(4_000))]);
    let info = tiny_info().namespaces[0].zoned.expect("zones");
    let zones = SharedZones::new(ZoneTable::new(info, None));
    let spec = with(writes(0..2, 6), |verify| verify.reads_back = false);
    let result = run_with(spec, &mut device, Some(&zones));
    assert_eq!((device.reads(), result.errors), (0, 0));
    let result = run_with(reads(0..2, 6), &mut device, Some(&zones));
    let verified = result.verified.expect("it verifies");
    assert_eq!(
        (verified.operations, verified.wrong, result.errors),
        (20, 1, 1)
    );
    let first = verified.first_wrong.expect("the first");
    assert_eq!(first.offset, 24 * LBA as u64);
    // Of another size, no header is where one is expected.
    let result = run_with(reads(0..1, 4), &mut device, Some(&zones));
    let first = result.verified.and_then(|of| of.first_wrong);
    assert_eq!(
        first.expect("the first").what,
        "header of another size: expected 16384 bytes, found 24576"
    );
}

#[test]
fn zones_that_hold_something_are_reset_first() {
    let mut device = Memory::new(&[]);
    let info = tiny_info().namespaces[0].zoned.expect("zones");
    let zones = SharedZones::new(ZoneTable::new(info, None));
    let mut half = writes(0..3, 6);
    half.verify = None;
    half.stop.operations = Some(15);
    // The device wants data, which jobs without verification do not give.
    let mut half = with(
        JobSpec {
            verify: Some(Box::new(Verify::new(Method::Md5))),
            ..half
        },
        |verify| verify.reads_back = false,
    );
    half.queue_depth = 1;
    run_with(half, &mut device, Some(&zones));
    assert_eq!(device.pointers[..3], [60, 30, 0]);
    device.log.clear();
    let result = run_with(writes(0..3, 6), &mut device, Some(&zones));
    let is_reset = |op: &Op| matches!(op, Op::ZoneSend { .. });
    assert!(device.log[..2].iter().all(is_reset), "before any write");
    assert_eq!(device.log.iter().filter(|op| is_reset(op)).count(), 2);
    assert_eq!(result.cleared_zones, 0, "they are no part of the work");
    let verified = result.verified.expect("it verifies");
    assert_eq!((verified.operations, verified.wrong), (30, 0));
}

#[test]
fn a_backlog_is_read_back_before_more_is_written() {
    let spec = with(writes(0..1, 2), |verify| verify.backlog = Some(8));
    let mut device = Memory::new(&[]);
    let result = run_with(spec, &mut device, None);
    let verified = result.verified.expect("it verifies");
    assert_eq!((verified.operations, verified.wrong), (30, 0));
    let kinds: String = device
        .log
        .iter()
        .map(|op| {
            if matches!(op, Op::Read { .. }) {
                'r'
            } else {
                'w'
            }
        })
        .collect();
    let round = "wwwwwwwwrrrrrrrr";
    assert_eq!(kinds, round.repeat(3) + "wwwwwwrrrrrr");
}

#[test]
fn a_job_that_is_cut_short_reads_nothing_back() {
    let mut spec = writes(0..8, 1);
    work(&mut spec).repeats = true;
    spec.stop.runtime = Some(Nanos::from_us(500));
    let mut device = Memory::new(&[]);
    let result = run_with(spec, &mut device, None);
    assert_eq!((device.reads(), result.errors), (0, 0));
    assert_eq!(result.operations, 200);
}

#[test]
fn blocks_of_zones_that_were_reset_since_are_not_looked_for() {
    // Twice through: of what was written first nothing is left.
    let mut spec = writes(0..2, 6);
    work(&mut spec).repeats = true;
    spec.stop.operations = Some(33);
    let (verified, result) = run(spec, &[]);
    // 33 = 20 + 13: of the second pass, zone 0 and a part of zone 1.
    assert_eq!((verified.operations, verified.wrong), (13, 0));
    assert_eq!((result.errors, result.cleared_zones), (0, 2));
}

proptest! {
    /// Whatever a job writes, wherever and however: without a fault nothing is
    /// wrong, and of one fault nothing else is.
    #[test]
    fn all_jobs_find_what_is_wrong_and_nothing_else(
        zones in 1..5_u32,
        lbas in 1..20_u32,
        depth in 1..9_u32,
        device_depth in 1..9_usize,
        is_random: bool,
        is_append: bool,
        is_mixed: bool,
        method in prop::sample::select(Method::ALL.to_vec()),
        backlog in prop::option::of(1..20_u32),
        passes in 1..4_u64,
        every in 0..4_u32,
        operations in 1..150_u64,
        fault in prop::option::of((0..20_u64, 0..4096_usize)),
        seed: u64,
    ) {
        let mut spec = writes(0..zones, lbas);
        spec.queue_depth = depth;
        spec.stop = Stop { operations: Some(operations), ..Stop::default() };
        spec.syncs = Syncs { every_writes: [every, 0], at_end: every > 0 };
        spec = with(spec, |verify| {
            verify.method = method;
            verify.backlog = backlog;
            verify.passes = passes;
            verify.pattern = method.is_pattern()
                .then(|| Pattern::parse("0x123456").expect("a pattern"));
        });
        let work = work(&mut spec);
        work.repeats = true;
        if is_append {
            work.style = WriteStyle::Append;
        }
        if is_mixed {
            work.flows[Direction::Read as usize] = Some(Flow::unlimited(Sizes::fixed(lbas)));
        }
        if is_random {
            let distribution = Distribution::Uniform;
            let (percent, in_a_row, is_identical) = ([100; 3], 1, false);
            work.pattern = Places::Random { distribution, percent, in_a_row, is_identical };
        }
        let faults: Vec<_> = fault.map(|(at, byte)| (at, Fault::Flip(byte))).into_iter().collect();
        let mut device = Memory::new(&faults);
        device.depth = device_depth;
        let mut job = WorkloadJob::new(spec, &tiny_info(), Rng::new(seed, 0), Shared::default());
        device.run(&mut job);
        let result = job.into_result();
        let verified = result.verified.expect("it verifies");
        prop_assert_eq!(result.errors, verified.wrong);
        prop_assert!(verified.wrong <= faults.len() as u64);
        if let Some(first) = verified.first_wrong {
            let slba = first.offset / LBA as u64;
            prop_assert!(slba % ZONE < CAPACITY);
        } else if verified.operations == device.writes {
            // All that was written was compared, and the fault did not strike.
            let did_not_strike = |(at, _): &(u64, Fault)| *at >= device.writes;
            prop_assert!(method == Method::Null || faults.iter().all(did_not_strike));
        }
        // Every pass does what is asked for.
        let writes = device.writes + device.reads() as u64 - verified.operations;
        prop_assert_eq!(writes, passes * operations);
    }
}
