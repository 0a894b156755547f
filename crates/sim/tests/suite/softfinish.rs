//! Finishing a zone by writes, on a drive.

use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, Tag, ZoneId};
use zonelab_host::softfinish::{FillData, NoData, SoftFinish, Step, Zeros, Zone, ZoneFinisher};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, RunEnd, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_sim::Emulated;
use zonelab_ssd::DriveModel;

use super::support::{CAPACITY, FREE, ZONE, script, tiny};

const US: fn(u64) -> Nanos = Nanos::from_us;
const LBA: u64 = 4096;

fn how(granularity_lbas: u32, pause: Nanos) -> SoftFinish {
    SoftFinish::new(granularity_lbas, pause, 1 << 20).expect("within the ranges")
}

/// Runs a machine on a drive until it is done, or has completed `writes` more.
fn finish<D: FillData>(device: &Emulated, finisher: &mut ZoneFinisher<D>, writes: u64) {
    let stop_at = finisher.progress().writes.saturating_add(writes);
    let mut job = script(|now, done, queue| {
        for completion in done.drain(..) {
            finisher.completed(completion.at, completion.status, completion.data);
        }
        if finisher.progress().writes == stop_at {
            return NextWake::Finished;
        }
        match finisher.step(now) {
            Step::Write { command, data } => {
                let taken = queue.submit(command, Tag(0), data);
                taken.expect("the queue is empty");
                NextWake::Completion
            }
            Step::InFlight => NextWake::Completion,
            Step::PauseUntil(at) => NextWake::At(at),
            Step::Done(_) => NextWake::Finished,
            Step::Failed { status, .. } => panic!("{status}"),
        }
    });
    assert_eq!(run_from_now(device, &mut job).stuck_jobs, 0);
}

/// What a zone of the tiny drive holds up to its capacity.
fn contents(device: &Emulated, zone: u64) -> Vec<u8> {
    let mut data = Some(Buf::from(vec![0xa5; (CAPACITY * LBA) as usize]));
    let mut bytes = Vec::new();
    let mut reader = script(|_, done, queue| {
        if let Some(completion) = done.pop() {
            assert_eq!(completion.status, Status::SUCCESS);
            bytes = completion.data.expect("a buffer comes back").to_vec();
            return NextWake::Finished;
        }
        if let Some(data) = data.take() {
            let op = Op::Read {
                slba: Lba(zone * ZONE),
                nlb: CAPACITY as u32,
            };
            let taken = queue.submit(Command::new(op), Tag(0), Some(data));
            taken.expect("the queue is empty");
        }
        NextWake::Completion
    });
    run_from_now(device, &mut reader);
    bytes
}

/// As `run_alone`, on a drive that has had other runs.
fn run_from_now(device: &Emulated, job: &mut dyn Job) -> RunEnd {
    let from = device.with_drive(|drive| drive.now());
    let clock = VirtualClock::starting_at(from);
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    let queue = device.open_queue(1, FREE, Rng::new(1, 1));
    reactor.add(job, queue, CoreId(0), from);
    reactor.run()
}

/// The paper's discussion: the rest of a zone holds what an application wants
/// there. One zone holds such data alone; in the other it comes after zeros,
/// of which some have no buffer.
#[test]
fn data_of_the_caller_is_read_back() {
    let device = tiny(&["data.store=memory"]);
    let zone = |index: u32, written: u64| {
        let zone = Zone::of(device.info(), NamespaceId::FIRST, index, written);
        zone.expect("there are 8 zones")
    };
    let byte = |zone: u32, lba: u64| (1 + u64::from(zone) * 61 + lba) as u8;
    let data = |zone: u32| {
        move |offset: u64, lbas: u32| {
            let blocks = offset..offset + u64::from(lbas);
            let bytes = blocks.flat_map(|lba| [byte(zone, lba); LBA as usize]);
            Buf::from(bytes.collect::<Vec<u8>>())
        }
    };
    let all = u64::MAX;
    finish(
        &device,
        &mut ZoneFinisher::new(zone(2, 0), how(7, US(3)), data(2)),
        all,
    );
    let zeros = Zeros { lba_bytes: 4096 };
    finish(
        &device,
        &mut ZoneFinisher::new(zone(5, 0), how(5, US(3)), zeros),
        2,
    );
    finish(
        &device,
        &mut ZoneFinisher::new(zone(5, 10), how(3, US(3)), NoData),
        1,
    );
    finish(
        &device,
        &mut ZoneFinisher::new(zone(5, 13), how(7, US(3)), data(5)),
        all,
    );
    for (zone, zeros) in [(2, 0), (5, 13)] {
        let state = device.with_drive(|drive| drive.zones().state(ZoneId(zone)));
        assert_eq!(state, ZoneState::FULL);
        let bytes = contents(&device, u64::from(zone));
        for (lba, block) in (0..).zip(bytes.chunks(LBA as usize)) {
            let expected = if lba < zeros { 0 } else { byte(zone, lba) };
            assert!(
                block.iter().all(|b| *b == expected),
                "zone {zone}, block {lba}"
            );
        }
    }
}

/// A buffer of another size is the drive's to refuse.
#[test]
fn data_of_another_size_fails() {
    let device = tiny(&["data.store=memory"]);
    let zone = Zone::of(device.info(), NamespaceId::FIRST, 0, 0).expect("the first");
    let short = |_: u64, _: u32| Buf::zeroed(LBA as usize);
    let mut finisher = ZoneFinisher::new(zone, how(2, Nanos::ZERO), short);
    let mut status = None;
    let mut job = script(|now, done, queue| {
        for completion in done.drain(..) {
            finisher.completed(completion.at, completion.status, completion.data);
        }
        match finisher.step(now) {
            Step::Write { command, data } => {
                let taken = queue.submit(command, Tag(0), data);
                taken.expect("the queue is empty");
                NextWake::Completion
            }
            Step::Failed { status: s, .. } => {
                status = Some(s);
                NextWake::Finished
            }
            step => panic!("{step:?}"),
        }
    });
    run_from_now(&device, &mut job);
    assert_eq!(status, Some(Status::INVALID_FIELD));
}
