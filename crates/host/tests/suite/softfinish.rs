//! Zones finished by writes of the host.

use proptest::prelude::*;
use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, Tag, ZoneId};
use zonelab_host::softfinish::{
    FillData, NoData, Progress, SoftFinish, SoftFinishError, Step, Zeros, Zone, ZoneFinisher,
    asleep, max_transfer_lbas,
};
use zonelab_host::{
    CoreId, Emulated, Job, NextWake, Reactor, Rng, RunEnd, StopSignal, VirtualClock,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use super::support::{CAPACITY, FREE, ZONE, script, tiny, tiny_info};

const US: fn(u64) -> Nanos = Nanos::from_us;
const MS: fn(u64) -> Nanos = Nanos::from_ms;
const LBA: u64 = 4096;

fn how(granularity_lbas: u32, pause: Nanos) -> SoftFinish {
    SoftFinish::new(granularity_lbas, pause, 1 << 20).expect("within the ranges")
}

/// The first zone of a namespace of large zones.
fn zone(written: u64, capacity_lbas: u64) -> Zone {
    Zone {
        namespace: NamespaceId::FIRST,
        zslba: Lba(1 << 30),
        write_pointer: Lba((1 << 30) + written),
        capacity_lbas,
        lba_bytes: 4096,
    }
}

#[test]
fn settings_have_ranges() {
    assert!(SoftFinish::new(1, Nanos::ZERO, 1).is_ok());
    let most = SoftFinish::new(256, SoftFinish::PAUSE_MAX, 256).expect("the ends of the ranges");
    assert_eq!(
        (most.granularity_lbas(), most.pause()),
        (256, Nanos::from_secs(60))
    );
    for lbas in [0, 257] {
        let error = SoftFinish::new(lbas, Nanos::ZERO, 256).expect_err("it is out of range");
        assert_eq!(error, SoftFinishError::Granularity { lbas, max: 256 });
        assert!(error.to_string().ends_with("valid are 1 to 256"), "{error}");
    }
    let pause = SoftFinish::PAUSE_MAX + Nanos(1);
    let error = SoftFinish::new(1, pause, 256).expect_err("it is too long");
    assert!(
        error.to_string().ends_with("valid are 0 to 60 s"),
        "{error}"
    );
    assert_eq!(max_transfer_lbas(1 << 20, 4096), 256);
    assert_eq!(max_transfer_lbas(1 << 20, 0), 0);
    assert_eq!(max_transfer_lbas(u32::MAX, 512), (1 << 23) - 1);
}

/// Sleeping is longer than asked for; not sleeping is not.
#[test]
fn slack_adds_to_sleeps_only() {
    assert_eq!(asleep(US(50), US(57)), US(107));
    assert_eq!(asleep(Nanos::ZERO, US(57)), Nanos::ZERO);
    assert_eq!(asleep(Nanos::MAX, US(57)), Nanos::MAX);
    assert_eq!(how(2, US(50)).oversleeping(US(57)).pause(), US(107));
}

#[test]
fn zones_are_found_by_number() {
    let info = tiny_info();
    let found = Zone::of(&info, NamespaceId::FIRST, 3, 7).expect("there are 8");
    let expected = Zone {
        namespace: NamespaceId::FIRST,
        zslba: Lba(3 * ZONE),
        write_pointer: Lba(3 * ZONE + 7),
        capacity_lbas: CAPACITY,
        lba_bytes: 4096,
    };
    assert_eq!(found, expected);
    assert_eq!(Zone::of(&info, NamespaceId::FIRST, 8, 0), None);
    assert_eq!(Zone::of(&info, NamespaceId(2), 0, 0), None);
}

/// What a driver of the machine saw.
#[derive(Debug, Default)]
struct Seen {
    /// Of each write: when it was submitted, its first block, its blocks.
    writes: Vec<(Nanos, u64, u32)>,
    end: Nanos,
}

/// Runs a machine whose writes take `latency`, from time `start` on, and gives
/// back every `refuse`-th write once.
fn drive<D: FillData>(
    finisher: &mut ZoneFinisher<D>,
    start: Nanos,
    latency: Nanos,
    refuse: usize,
) -> (Seen, Progress) {
    let mut seen = Seen {
        end: start,
        ..Seen::default()
    };
    let (mut offers, mut refused) = (0, false);
    loop {
        match finisher.step(seen.end) {
            Step::Write { command, data } => {
                offers += 1;
                if refuse > 0 && offers % refuse == 0 && !refused {
                    refused = true;
                    finisher.refused(data);
                    continue;
                }
                refused = false;
                assert!(matches!(finisher.step(seen.end), Step::InFlight));
                let Op::Write { slba, nlb } = command.op else {
                    panic!("no write: {command:?}");
                };
                seen.writes.push((seen.end, slba.0, nlb));
                seen.end += latency;
                finisher.completed(seen.end, Status::SUCCESS, data);
            }
            Step::PauseUntil(at) => {
                assert!(at > seen.end, "it pauses until a time that has passed");
                seen.end = at;
            }
            Step::Done(progress) => return (seen, progress),
            step => panic!("{step:?}"),
        }
    }
}

proptest! {
    /// What is unwritten is written exactly once, in order, in writes of the
    /// granularity but for the last, each a latency and a pause after the one
    /// before, whatever is refused on the way.
    #[test]
    fn everything_is_written_once_in_order(
        capacity in 0_u64..2_000,
        written in 0_u64..2_200,
        granularity in 1_u32..300,
        latency in 0_u64..1_000,
        pause in prop_oneof![Just(0), 1_u64..1_000_000],
        start in 0_u64..1_000_000,
        refuse in 0_usize..4,
    ) {
        let mut finisher =
            ZoneFinisher::new(zone(written, capacity), how(granularity, Nanos(pause)), NoData);
        let (seen, progress) = drive(&mut finisher, Nanos(start), Nanos(latency), refuse);
        let expected: Vec<(Nanos, u64, u32)> = (written..capacity)
            .step_by(granularity as usize)
            .zip(0_u64..)
            .map(|(at, n)| {
                let lbas = (capacity - at).min(u64::from(granularity)) as u32;
                (Nanos(start + n * (latency + pause)), (1 << 30) + at, lbas)
            })
            .collect();
        prop_assert_eq!(&seen.writes, &expected);
        let count = expected.len() as u64;
        let time = count * latency + count.saturating_sub(1) * pause;
        prop_assert_eq!(progress, Progress {
            writes: count,
            link_bytes: capacity.saturating_sub(written) * LBA,
            time: Nanos(time),
        });
        prop_assert_eq!(seen.end, Nanos(start + time), "no pause at the end");
        prop_assert_eq!(finisher.left_lbas(), 0);
    }
}

/// No write pointer is valid in a full zone: reports say all ones.
#[test]
fn a_full_zone_is_done_at_once() {
    for written in [60, 61, u64::MAX - (1 << 30)] {
        let mut finisher = ZoneFinisher::new(zone(written, 60), how(2, US(50)), NoData);
        let Step::Done(progress) = finisher.step(US(5)) else {
            panic!("there is nothing to do");
        };
        assert_eq!(progress, Progress::default());
    }
}

/// Stopping is not to ask; the time goes on.
#[test]
fn it_goes_on_where_it_was_left() {
    let mut finisher = ZoneFinisher::new(zone(0, 6), how(2, US(50)), NoData);
    let Step::Write { command, .. } = finisher.step(US(100)) else {
        panic!("a write comes first");
    };
    let op = Op::Write {
        slba: Lba(1 << 30),
        nlb: 2,
    };
    assert_eq!(command, Command::new(op));
    finisher.completed(US(111), Status::SUCCESS, None);
    assert!(matches!(finisher.step(US(111)), Step::PauseUntil(at) if at == US(161)));
    assert_eq!(finisher.write_pointer(), Lba((1 << 30) + 2));
    let (seen, progress) = drive(&mut finisher, MS(5), US(11), 0);
    assert_eq!(seen.writes[0], (MS(5), (1 << 30) + 2, 2));
    assert_eq!(
        (progress.writes, progress.time),
        (3, MS(5) + US(11 + 50 + 11) - US(100))
    );
    // What does not belong to a write of it changes nothing.
    finisher.completed(MS(9), Status::SUCCESS, None);
    finisher.refused(None);
    assert_eq!(finisher.progress(), progress);
}

#[test]
fn a_failed_write_is_the_end() {
    let mut finisher = ZoneFinisher::new(zone(0, 6), how(2, Nanos::ZERO), NoData);
    for (at, status) in [(US(11), Status::SUCCESS), (US(30), Status::WRITE_FAULT)] {
        assert!(matches!(finisher.step(at), Step::Write { .. }));
        finisher.completed(at, status, None);
    }
    for _ in 0..2 {
        let Step::Failed { status, progress } = finisher.step(US(40)) else {
            panic!("it has failed");
        };
        assert_eq!(status, Status::WRITE_FAULT);
        assert_eq!((progress.writes, progress.link_bytes), (1, 2 * LBA));
    }
    assert_eq!(finisher.write_pointer(), Lba((1 << 30) + 2));
}

/// Buffers of zeros go round: only another size needs another.
#[test]
fn zeros_are_used_again() {
    let mut zeros = Zeros { lba_bytes: 4096 };
    let first = zeros.data(0, 2, None).expect("a buffer");
    assert_eq!(first, Buf::zeroed(8192));
    let memory = first.as_ptr();
    let again = zeros.data(2, 2, Some(first)).expect("a buffer");
    assert_eq!(again.as_ptr(), memory);
    assert_eq!(zeros.data(4, 1, Some(again)), Some(Buf::zeroed(4096)));
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
