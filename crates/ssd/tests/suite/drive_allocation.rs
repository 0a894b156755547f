//! How and when a zone comes by its flash: time of the firmware, at an explicit
//! open, in idle time, and at the cost of parallelism.

use crate::drive_support;
use crate::drive_support::random::{NO_FRONT_END, drives, streams};
use crate::drive_support::{PAGE, Rig, WRITE, lazy, small, us};
use proptest::prelude::*;
use zonelab_device::{Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{
    AllocationConfig, DriveConfig, EraseExtent, EraseWhen, FillExtent, FinishConfig,
    FrontEndConfig, MappingConfig, PlaneMode,
};
use zonelab_ssd::mapping::allocator::Availability;
use zonelab_ssd::{FaultTarget, profile, snapshot};

const TIME: Nanos = Nanos::from_us(9_700);

fn chunk(allocation: AllocationConfig) -> DriveConfig {
    let mut config = small();
    config.mapping = MappingConfig::Chunk {
        chunk_blocks: 1,
        physical_zones: config.zones.count,
    };
    config.finish = FinishConfig::Fill {
        granularity_bytes: 16 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Elements,
    };
    config.reset = drive_support::reset(EraseWhen::FirstZoneWrite, EraseExtent::Partial);
    config.allocation = allocation;
    config
}

fn slow() -> AllocationConfig {
    AllocationConfig {
        time_ns: TIME,
        ..AllocationConfig::NONE
    }
}

/// "Only the first write to a zone incurs this delay" (SilentZNS, section 5).
#[test]
fn the_first_write_to_a_zone_waits_for_its_allocation() {
    for config in [chunk(slow()), {
        let mut config = lazy(small(), 7);
        config.allocation = slow();
        config
    }] {
        let mut rig = Rig::new(&config);
        assert_eq!(rig.time(rig.write(0, PAGE)), TIME + WRITE);
        assert_eq!(rig.time(rig.append(0, PAGE)), WRITE);
        assert_eq!(rig.time(rig.append(1, PAGE)), TIME + WRITE);
        assert_eq!(rig.time(rig.send(2, ZoneSendAction::OPEN)), Nanos::ZERO);
        assert_eq!(rig.time(rig.write(2, PAGE)), TIME + WRITE);
    }
}

/// What is written to the zone meanwhile comes behind.
#[test]
fn writes_keep_their_order_behind_an_allocation() {
    let mut rig = Rig::new(&chunk(slow()));
    let first = rig.write(0, PAGE);
    let first = rig.submit(first);
    let second = rig.append(0, PAGE);
    let second = rig.submit(second);
    let other = rig.write(1, PAGE);
    let other = rig.submit(other);
    rig.settle();
    assert_eq!(rig.wait(first).at, TIME + WRITE);
    assert!(rig.wait(second).at >= TIME + WRITE - Nanos::from_us(25));
    assert!(rig.wait(other).at >= TIME + WRITE - Nanos::from_us(25));
}

/// A core that allocates does nothing else; without cores nothing else waits.
#[test]
fn an_allocation_takes_a_core() {
    for (cores, read_takes) in [(0, Nanos::ZERO), (1, us(3) + TIME + us(2)), (2, us(2))] {
        let mut config = chunk(slow());
        if cores > 0 {
            config.front_end = FrontEndConfig {
                cores,
                read_ns: us(2),
                write_ns: us(3),
                ..NO_FRONT_END
            };
        }
        let mut rig = Rig::new(&config);
        let write = rig.write(0, PAGE);
        rig.submit(write);
        let read = rig.read(3, 0, PAGE);
        let read = rig.submit(read);
        rig.settle();
        assert_eq!(rig.wait(read).latency(), read_takes, "{cores} cores");
    }
}

#[test]
fn an_explicit_open_can_allocate() {
    let mut rig = Rig::new(&chunk(AllocationConfig {
        at_open: true,
        ..slow()
    }));
    assert_eq!(rig.time(rig.send(0, ZoneSendAction::OPEN)), TIME);
    assert_eq!(rig.time(rig.write(0, PAGE)), WRITE);
    assert_eq!(rig.time(rig.write(1, PAGE)), TIME + WRITE);
    // Closed and opened again, it has its flash.
    assert_eq!(rig.time(rig.send(1, ZoneSendAction::CLOSE)), Nanos::ZERO);
    assert_eq!(rig.time(rig.send(1, ZoneSendAction::OPEN)), Nanos::ZERO);

    // An open zone that nobody writes gives it back at its reset, without erasure.
    assert_eq!(rig.time(rig.send(2, ZoneSendAction::OPEN)), TIME);
    assert_eq!(rig.time(rig.reset(2)), Nanos::ZERO);
    let elements = rig.drive.flash().elements().expect("it has some");
    let is_of_2 = |of: &Option<ZoneId>| *of == Some(ZoneId(2));
    assert_eq!(elements.all().map(|of| of.zone).filter(is_of_2).count(), 0);
    let free = |of: &Availability| *of == Availability::Free;
    let free = elements.all().map(|of| of.availability).filter(free);
    assert_eq!(free.count(), 48 - 2 * 8);
}

/// Two at most, and only while nothing is in flight.
#[test]
fn allocations_are_prepared_in_idle_time() {
    let mut rig = Rig::new(&chunk(AllocationConfig {
        pool_zones: 2,
        ..slow()
    }));
    assert_eq!(rig.time(rig.write(0, PAGE)), TIME + WRITE);
    rig.run_for(TIME + TIME + TIME);
    assert_eq!(rig.time(rig.write(1, PAGE)), WRITE);
    assert_eq!(rig.time(rig.write(2, PAGE)), WRITE);
    assert_eq!(rig.time(rig.write(3, PAGE)), TIME + WRITE);
    rig.run_for(TIME);
    rig.drive.power_cut(rig.now, Nanos::ZERO, 1);
    assert_eq!(
        rig.time(rig.write(4, PAGE)),
        TIME + WRITE,
        "lost with the power"
    );
}

/// What is released after an allocation was prepared, with less wear, is used:
/// a pool does not cost wear.
#[test]
fn a_pool_has_the_elements_of_least_wear() {
    let wear_of_zones = |pool_zones| {
        let mut rig = Rig::new(&chunk(AllocationConfig {
            pool_zones,
            ..slow()
        }));
        let mut wear = Vec::new();
        for round in 0..120_u32 {
            rig.write_pages(round % 5, 1 + 7 * round % 32);
            let elements = rig.drive.flash().elements().expect("it has some");
            let of_zone = |of: &ZoneId| of.0 == round % 5;
            let mine = elements
                .all()
                .filter(|of| of.zone.as_ref().is_some_and(of_zone));
            wear.push(mine.map(|of| of.wear).sum::<u32>());
            let finish = rig.finish(round % 5);
            rig.time(finish);
            let (zone, pause) = ((round * 3 + 1) % 5, TIME.0 * u64::from(round % 3));
            let reset = rig.reset(zone);
            rig.time(reset);
            let reset = rig.reset((round + 1) % 5);
            rig.time(reset);
            rig.run_for(Nanos(pause));
        }
        wear
    };
    let without = wear_of_zones(0);
    assert_eq!(wear_of_zones(3), without);
    assert!(without.last() > Some(&20), "{without:?}");
}

/// LUN 0 is worn; who does not mind zones of three LUNs need not wear it on.
#[test]
fn less_parallelism_saves_a_worn_lun() {
    let time_and_luns = |depth_weight| {
        let mut rig = Rig::new(&chunk(AllocationConfig {
            depth_weight,
            ..AllocationConfig::NONE
        }));
        let mut config = rig.drive.config().clone();
        // So much is never saved: elements are those of a drive without a weight.
        config.allocation.depth_weight = depth_weight.map(|_| u32::MAX);
        // Zone 0 begins on LUN 0: one page wears one element there.
        let mut worn = Rig::new(&config);
        for _ in 0..120 {
            worn.write_pages(0, 1);
            let finish = worn.finish(0);
            worn.time(finish);
            let reset = worn.reset(0);
            worn.time(reset);
        }
        let saved = snapshot::save(&worn.drive).expect("nothing is in flight");
        let config = rig.drive.config().clone();
        rig.drive = snapshot::restore(&config, &saved).expect("of the same shape");
        let write = rig.write(5, 32 * PAGE);
        rig.time(write);
        let time = rig.time(rig.read(5, 0, 32 * PAGE));
        let mut luns = [0; 4];
        let elements = rig.drive.flash().elements().expect("it has some");
        for of in elements.all().filter(|of| of.zone == Some(ZoneId(5))) {
            luns[(of.element.0 / 12) as usize] += 1;
        }
        (time, luns, rig)
    };
    let (even, luns, even_rig) = time_and_luns(None);
    assert_eq!(luns, [2; 4]);
    let (_, luns, _) = time_and_luns(Some(1_000));
    assert_eq!(luns, [2; 4], "it does not save as much");
    // Nothing of LUN 0: an element of depth saves 20 erasures.
    let (uneven, luns, uneven_rig) = time_and_luns(Some(5));
    assert_eq!(luns[0], 0, "{luns:?}");
    assert_eq!(luns.iter().max(), Some(&3), "{luns:?}");
    // It is read at the pace of three blocks on a LUN instead of two.
    let slower = uneven.0 as f64 / even.0 as f64;
    assert!((1.4..1.6).contains(&slower), "{slower}");
    // A drive whose LUNs give as many would run out of elements on one.
    let saved = snapshot::save(&uneven_rig.drive).expect("nothing is in flight");
    let refused = snapshot::restore(even_rig.drive.config(), &saved).expect_err("it is uneven");
    assert!(
        refused.to_string().contains("elements of zone 5"),
        "{refused}"
    );
}

#[test]
fn impossible_allocations_are_refused() {
    let refused = |config: &DriveConfig, key: &str| {
        let broken = profile::check(config).expect_err("it is impossible");
        assert!(broken.iter().any(|of| of.key == key), "{broken:?}");
    };
    let mut direct = small();
    direct.allocation = slow();
    refused(&direct, "mapping.allocation");
    let pool = AllocationConfig {
        pool_zones: 1,
        ..AllocationConfig::NONE
    };
    refused(&chunk(pool), "mapping.pool");
    let relaxed = AllocationConfig {
        depth_weight: Some(0),
        ..AllocationConfig::NONE
    };
    let mut stripes = chunk(relaxed);
    stripes.mapping = MappingConfig::Stripe { physical_zones: 6 };
    refused(&stripes, "mapping.depth_weight");
    let mut multi = chunk(relaxed);
    multi.media.planes = PlaneMode::MultiPlane;
    refused(&multi, "mapping.depth_weight");
}

fn allocations() -> impl Strategy<Value = AllocationConfig> {
    let weight = prop_oneof![Just(None), Just(Some(0)), (1..9_u32).prop_map(Some)];
    (0..400_000_u64, any::<bool>(), 0..3_u32, weight).prop_map(
        |(time_ns, at_open, pool_zones, depth_weight)| AllocationConfig {
            time_ns: Nanos(time_ns),
            at_open,
            pool_zones: if time_ns == 0 { 0 } else { pool_zones },
            depth_weight,
            thin: false,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// It is a matter of time and wear: what commands do is the same.
    #[test]
    fn the_host_sees_no_difference_but_time(
        config in drives(),
        allocation in allocations(),
        steps in streams(1..60),
    ) {
        let mut plain = config;
        plain.mapping = MappingConfig::Chunk {
            chunk_blocks: 1,
            physical_zones: plain.mapping.physical_zones(plain.zones.count),
        };
        let mut other = plain.clone();
        other.allocation = allocation;
        prop_assume!(profile::check(&other).is_ok());
        let run = |config: &DriveConfig| {
            let mut rig = Rig::new(config);
            for step in &steps {
                match step.op(&rig) {
                    Some(Op::ZoneReceive { .. }) | None => rig.settle(),
                    Some(op) => {
                        rig.submit(op);
                    }
                }
            }
            rig.settle();
            rig
        };
        let (plain, other) = (run(&plain), run(&other));
        let ends = |rig: &Rig| -> Vec<(Status, u64)> {
            let done = rig.done.iter().flatten();
            done.map(|done| (done.status, done.result)).collect()
        };
        prop_assert_eq!(ends(&plain), ends(&other));
        prop_assert_eq!(ends(&other).len(), other.done.len());
        // What it knows of its elements agrees with itself.
        if let Ok(saved) = snapshot::save(&other.drive) {
            let restored = snapshot::restore(other.drive.config(), &saved);
            prop_assert!(restored.is_ok(), "{:?}", restored.err());
        }
    }
}
