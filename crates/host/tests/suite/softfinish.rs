//! Zones finished by writes of the host.

use proptest::prelude::*;
use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op};
use zonelab_host::softfinish::{
    FillData, NoData, Progress, SoftFinish, SoftFinishError, Step, Zeros, Zone, ZoneFinisher,
    asleep, max_transfer_lbas,
};
use zonelab_nvme::Status;

use super::support::{CAPACITY, ZONE, tiny_info};

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
