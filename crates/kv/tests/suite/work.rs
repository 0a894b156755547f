//! Workloads run on stores, on drives with and without data.

use core::ops::ControlFlow;
use std::cell::RefCell;
use std::rc::Rc;

use crate::support::small;
use zonelab_device::Nanos;
use zonelab_host::tasks::{Tasks, TasksConfig};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_kv::files::{FilesConfig, FilesError, FinishWhen, Scarce};
use zonelab_kv::lsm::{DbError, Options};
use zonelab_kv::work::run::{Moment, Outcome, Setup, Stage, run};
use zonelab_kv::work::{NAMES, Sizes, Spec, builtin};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::Drive;
use zonelab_ssd::config::{DataStore, DriveConfig};

/// A store that flushes and compacts within a few thousand operations.
fn setup(config: &DriveConfig, seed: u64) -> Setup {
    Setup {
        files: FilesConfig {
            keeps_data: config.data == DataStore::Memory,
            ..FilesConfig::default()
        },
        options: Options {
            write_buffer_size: 64 << 10,
            target_file_size_base: 64 << 10,
            max_bytes_for_level_base: 256 << 10,
            block_cache_bytes: 64 << 10,
            wal_buffer_bytes: 4 << 10,
            ..Options::default()
        },
        repeats: 1,
        sample: Nanos::from_ms(10),
        stops_at_errors: true,
        seed,
    }
}

fn spec(name: &str, operations: u64) -> Spec {
    let mut spec = builtin::spec(name).expect("it is built in");
    spec.set_operations(operations);
    spec.records = spec.records.min(2_000);
    spec.values = Sizes::Uniform { min: 10, max: 600 };
    spec
}

/// Runs to the end; with the stages that whoever watched saw.
fn outcome(config: &DriveConfig, spec: &Spec, setup: &Setup) -> (Outcome, Vec<Stage>) {
    let device = Emulated::new(Drive::new(config));
    let queue = device.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
    let stages = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&stages);
    let (spec, setup) = (spec.clone(), setup.clone());
    let mut tasks = Tasks::new(device.info(), TasksConfig::default(), async move |io| {
        let watch = move |moment: Moment<'_>| {
            seen.borrow_mut().push(moment.stage);
            ControlFlow::Continue(())
        };
        run(io, spec, setup, Box::new(watch)).await
    });
    let mut reactor = Reactor::new(
        VirtualClock::default(),
        device.clone(),
        StopSignal::default(),
    );
    reactor.add(&mut tasks, queue, CoreId(0), Nanos::ZERO);
    assert_eq!(reactor.run().stuck_jobs, 0);
    let outcome = tasks.into_result().expect("it has ended");
    (outcome.expect("it could be formatted"), stages.take())
}

#[test]
fn every_workload_runs_and_reads_what_it_wrote() {
    for (name, _) in NAMES {
        for data in [DataStore::Memory, DataStore::None] {
            let config = DriveConfig { data, ..small() };
            // An endless writer beside slow queries would fill the drive.
            let operations = match *name {
                "seekrandomwhilewriting" => 300,
                _ => 3_000,
            };
            let spec = spec(name, operations);
            let (outcome, stages) = outcome(&config, &spec, &setup(&config, 5));
            let measured = &outcome.measured;
            assert!(outcome.failure.is_none(), "{name}: {:?}", outcome.failure);
            assert_eq!(measured.wrong, 0, "{name}");
            // A writer beside the readers has no number of operations.
            assert_eq!(
                (outcome.done, outcome.planned),
                (operations, operations),
                "{name}"
            );
            if spec.loads {
                assert_eq!(stages[0], Stage::Loading, "{name}");
                assert_eq!(measured.missing, 0, "{name}: every key was put in");
                assert!(outcome.load > Nanos::ZERO);
            }
            assert_eq!(stages.last(), Some(&Stage::Ended));
        }
    }
}

/// Deletes of this workload are of keys that live, so that every query finds one.
#[test]
fn kvbench_finds_all_that_it_asks_for() {
    let config = small();
    let (outcome, _) = outcome(&config, &spec("kvbench-ii", 4_000), &setup(&config, 9));
    let measured = &outcome.measured;
    assert_eq!((measured.missing, measured.wrong), (0, 0));
    let (_, stats) = &outcome.stores[0];
    assert_eq!((stats.puts, stats.deletes, stats.gets), (3_000, 400, 600));
    assert_eq!(stats.gets_found, 600);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let config = DriveConfig {
        data: DataStore::None,
        ..small()
    };
    let spec = spec("ycsb-a", 3_000);
    let of = |seed| {
        let (outcome, stages) = outcome(&config, &spec, &setup(&config, seed));
        (
            outcome.measured.elapsed(),
            outcome.usage,
            outcome.stores,
            stages,
        )
    };
    assert_eq!(of(3), of(3));
    assert_ne!(of(3).0, of(4).0);
}

#[test]
fn repetitions_begin_with_nothing_on_the_drive_as_it_is() {
    let config = small();
    let spec = spec("kvbench-ii", 2_000);
    let setup = Setup {
        repeats: 3,
        ..setup(&config, 2)
    };
    let (outcome, _) = outcome(&config, &spec, &setup);
    assert_eq!(outcome.stores.len(), 3);
    assert_eq!(outcome.measured.operations(), 6_000);
    assert_eq!(outcome.measured.missing, 0);
    let user_bytes: Vec<u64> = outcome
        .stores
        .iter()
        .map(|(_, end)| end.user_bytes)
        .collect();
    let (least, most) = (user_bytes.iter().min(), user_bytes.iter().max());
    // Other keys and sizes each time, from nothing each time.
    assert!(user_bytes[0] != user_bytes[1] && most < least.map(|&least| least * 2).as_ref());
    assert!(outcome.usage.1.resets > 0);
}

/// More than fits: the run ends, names what is scarce, and has measured until then.
#[test]
fn a_full_drive_ends_the_run_and_says_what_is_scarce() {
    let config = DriveConfig {
        data: DataStore::None,
        ..small()
    };
    let mut spec = spec("fillrandom", 40_000);
    spec.records = 40_000;
    spec.values = Sizes::Fixed(600);
    let (outcome, _) = outcome(&config, &spec, &setup(&config, 1));
    let failed = outcome.failure.expect("24 MB do not fit 11");
    let mut error = &failed.error;
    while let DbError::ReadOnly { cause, .. } = error {
        error = cause;
    }
    let DbError::Files(FilesError::OutOf(shortage)) = error else {
        panic!("{error}");
    };
    assert_ne!(shortage.scarce, Scarce::ActiveZones);
    let done = outcome.measured.operations();
    assert!((5_000..40_000).contains(&done), "{done}");
    assert!(failed.at > Nanos::ZERO);
}

/// Zones that nobody writes are finished early and often, and the less invalid data
/// there is; without a threshold none is.
#[test]
fn a_finish_threshold_costs_zones_and_saves_space() {
    let config = DriveConfig {
        data: DataStore::None,
        ..small()
    };
    let spec = spec("kvbench-ii", 6_000);
    let of = |percent| {
        let mut setup = setup(&config, 1);
        setup.files.finish_threshold_percent = percent;
        setup.files.finish_when = FinishWhen::Eager;
        let (outcome, _) = outcome(&config, &spec, &setup);
        assert!(
            outcome.failure.is_none(),
            "{percent}: {:?}",
            outcome.failure
        );
        let usage = outcome.usage.1;
        (usage.finishes, usage.over_time.mean_invalid_bytes())
    };
    let (none, some) = (of(0), of(40));
    assert_eq!(none.0, 0);
    assert!(some.0 > 3 && some.1 < none.1, "{none:?} {some:?}");
}
