//! The store on devices that fail or are full: what it says, what goes on, and
//! that nothing is lost that was durable.

use std::collections::BTreeMap;

use crate::support::lsm::{roomy, value_of};
use crate::support::{Machine, each_seed};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig, FilesError};
use zonelab_kv::lsm::{Db, DbError, Options, StallCause, Value};
use zonelab_nvme::Status;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

fn files_config() -> FilesConfig {
    FilesConfig {
        keeps_data: true,
        io_bytes: 64 << 10,
        ..FilesConfig::default()
    }
}

fn options() -> Options {
    Options {
        write_buffer_size: 32 << 10,
        target_file_size_base: 32 << 10,
        max_bytes_for_level_base: 128 << 10,
        max_bytes_for_level_multiplier: 4,
        block_cache_bytes: 0,
        ..Options::default()
    }
}

/// Keys in no order, so that tables of level 0 overlap.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn set_faults(machine: &Machine, faults: Vec<Fault>) {
    let plan = FaultPlan { seed: 1, faults };
    let now = machine.now;
    machine.device.with_faults(|drive| {
        drive.clear_faults();
        drive.add_faults(now, plan);
    });
}

fn fault(trigger: Trigger, skip: u64, count: u64, effect: Effect) -> Fault {
    let when = Match {
        skip,
        count,
        ..Match::every(trigger)
    };
    Fault { when, effect }
}

/// Fills a store until it refuses writes. Returns how many it took, how many of
/// them were synced, and why it stopped.
async fn fill(db: &Db, most: u64) -> (u64, u64, Option<DbError>) {
    let mut synced = 0;
    for number in 0..most {
        let value = value_of(number, 1_000);
        if let Err(error) = db.put(&key(number), Value::Bytes(&value)).await {
            return (number, synced, Some(error));
        }
        if number % 20 == 19 {
            match db.sync().await {
                Ok(()) => synced = number + 1,
                Err(error) => return (number + 1, synced, Some(error)),
            }
        }
    }
    (most, synced, None)
}

/// Checks that a store has these, each with its own value.
async fn check(db: &Db, numbers: core::ops::Range<u64>) -> Result<(), DbError> {
    for number in numbers {
        let expected = Content::Bytes(value_of(number, 1_000));
        assert_eq!(db.get(&key(number)).await?, Some(expected), "{number}");
    }
    Ok(())
}

fn cause_of(error: &DbError) -> &DbError {
    match error {
        DbError::ReadOnly { cause, .. } => cause_of(cause),
        error => error,
    }
}

#[test]
fn a_full_device_is_reported_and_keeps_what_it_has() {
    let mut config = roomy();
    config.zones.count = 24;
    let mut machine = Machine::new(&config);
    let synced = machine.run(async |io| {
        let files = Files::format(&io, files_config()).await?;
        let db = Db::open(&io, &files, options()).await?;
        let (count, synced, error) = fill(&db, 100_000).await;
        let error = error.expect("it has 12 MiB");
        assert!(
            matches!(cause_of(&error), DbError::Files(FilesError::OutOf(_))),
            "{error}"
        );
        assert!(error.to_string().contains("zones"), "{error}");
        assert!(synced > 2_000, "{synced}");
        // What is there can be read, and more is refused for the same reason.
        check(&db, 0..count.min(synced)).await?;
        assert!(db.put(b"more", Value::Bytes(b"")).await.is_err());
        assert!(db.background_error().is_some());
        assert!(db.close().await.is_err(), "it says so again");
        Ok::<_, DbError>(synced)
    });
    let synced = synced.expect("nothing else fails");
    // Opening needs room for what was in the log, which there may not be: but no harm is done.
    machine
        .run(async move |io| {
            let files = Files::mount(&io, files_config()).await?;
            match Db::open(&io, &files, options()).await {
                Ok(db) => check(&db, 0..synced).await,
                Err(error) => {
                    let is_full = matches!(cause_of(&error), DbError::Files(FilesError::OutOf(_)));
                    assert!(is_full, "{error}");
                    Ok(())
                }
            }
        })
        .expect("nothing that was there is lost");
}

/// What a store held when it was closed, or what it lost.
async fn survives(io: Io, most: u64) -> Result<(u64, Option<DbError>), DbError> {
    let files = Files::format(&io, files_config()).await?;
    let db = Db::open(&io, &files, options()).await?;
    let (_, synced, mut error) = fill(&db, most).await;
    error = error.or(db.idle().await.err());
    let mut lost = 0;
    for number in 0..synced {
        match db.get(&key(number)).await {
            Ok(Some(Content::Bytes(bytes))) => assert_eq!(bytes, value_of(number, 1_000)),
            Ok(other) => panic!("{number} was synced and is {other:?}"),
            Err(_) => lost += 1,
        }
    }
    error = error.or(db.background_error());
    drop(db.close().await);
    Ok((lost, error))
}

#[test]
fn writes_that_fail_now_and_then_are_written_elsewhere() {
    for skip in [0, 5, 40, 300] {
        let mut machine = Machine::new(&roomy());
        set_faults(
            &machine,
            vec![fault(
                Trigger::Write,
                20 + skip,
                3,
                Effect::Fail(Status::WRITE_FAULT),
            )],
        );
        let (lost, error) = machine.run(|io| survives(io, 3_000)).expect("it opens");
        assert_eq!((lost, error), (0, None), "after {skip}");
    }
}

#[test]
fn a_zone_that_goes_read_only_loses_nothing() {
    for skip in [30, 100, 300] {
        let mut machine = Machine::new(&roomy());
        let strike = fault(Trigger::Write, skip, 1, Effect::ReadOnly);
        set_faults(&machine, vec![strike]);
        let (lost, error) = machine.run(|io| survives(io, 3_000)).expect("it opens");
        assert_eq!((lost, error), (0, None), "after {skip}");
    }
}

#[test]
fn reads_that_fail_are_errors_and_no_absences() {
    let mut machine = Machine::new(&roomy());
    let files = machine.run(async |io| {
        let files = Files::format(&io, files_config()).await?;
        let db = Db::open(&io, &files, options()).await?;
        assert_eq!(fill(&db, 2_000).await.2, None);
        db.flush().await?;
        db.idle().await?;
        db.close().await?;
        Ok::<_, DbError>(())
    });
    files.expect("the drive works");
    // Tails are read when it is opened; then a third of the blocks cannot be read.
    set_faults(&machine, Vec::new());
    let device = machine.device.clone();
    machine
        .run(async move |io| {
            let files = Files::mount(&io, files_config()).await?;
            let db = Db::open(&io, &files, options()).await?;
            let mut weak = fault(Trigger::Read, 0, u64::MAX, Effect::MediaError);
            weak.when.probability_ppm = 333_333;
            let plan = FaultPlan {
                seed: 1,
                faults: vec![weak],
            };
            let now = io.now();
            device.with_faults(|drive| drive.add_faults(now, plan));
            let mut errors = 0;
            for number in 0..2_000 {
                match db.get(&key(number)).await {
                    Ok(found) => {
                        let expected = Content::Bytes(value_of(number, 1_000));
                        assert_eq!(found, Some(expected), "{number}");
                    }
                    Err(DbError::Files(_)) => errors += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            assert!((300..1_500).contains(&errors), "{errors}");
            // It still takes writes, and gives them.
            db.put(b"new", Value::Bytes(b"value")).await?;
            let found = db.get(b"new").await?;
            assert_eq!(found, Some(Content::Bytes(b"value".to_vec())));
            device.with_faults(|drive| drive.clear_faults());
            check(&db, 0..2_000).await?;
            db.close().await
        })
        .expect("what fails is what is told");
}

#[test]
fn a_compaction_that_cannot_read_leaves_its_tables_and_says_so() {
    let mut machine = Machine::new(&roomy());
    let device = machine.device.clone();
    machine
        .run(async move |io| {
            let files = Files::format(&io, files_config()).await?;
            let db = Db::open(&io, &files, options()).await?;
            let weak = fault(Trigger::Read, 0, u64::MAX, Effect::MediaError);
            let plan = FaultPlan {
                seed: 1,
                faults: vec![weak],
            };
            device.with_faults(|drive| drive.add_faults(io.now(), plan));
            let (count, synced, error) = fill(&db, 3_000).await;
            // Level 0 cannot be compacted: writes go on until they would stop for good.
            let error = error.expect("level 0 fills");
            assert!(matches!(cause_of(&error), DbError::Files(_)), "{error}");
            assert_eq!(db.stalled_by(), Some(StallCause::Level0Stop));
            assert!(db.stats().background_errors > 0);
            device.with_faults(|drive| drive.clear_faults());
            check(&db, 0..synced).await?;
            // When the device is well again, so is the store.
            db.resume().await?;
            db.idle().await?;
            db.put(&key(count), Value::Bytes(&value_of(count, 1_000)))
                .await?;
            check(&db, 0..count + 1).await?;
            assert_eq!(db.background_error(), None);
            db.close().await
        })
        .expect("what fails is what is told");
}

#[test]
fn random_faults_lose_nothing_that_was_synced() {
    each_seed("random_faults_lose_nothing", 60, |seed| {
        let mut rng = Rng::new(seed, 0);
        let mut machine = Machine::new(&roomy());
        let effects = [
            Effect::Fail(Status::WRITE_FAULT),
            Effect::Fail(Status::INTERNAL_ERROR),
            Effect::ReadOnly,
        ];
        let faults = (0..3)
            .map(|_| {
                let effect = effects[rng.below(3) as usize];
                let count = 1 + rng.below(3);
                let mut fault = fault(Trigger::Write, rng.below(600), count, effect);
                // Of the zones for metadata one must be left.
                fault.when.zones = Some(2..=95);
                fault
            })
            .collect();
        set_faults(&machine, faults);
        let (lost, _) = machine.run(|io| survives(io, 2_000)).expect("it opens");
        assert_eq!(lost, 0);
        // And it is all there when the drive is mounted again.
        set_faults(&machine, Vec::new());
        let found = machine.run(async |io| {
            let files = Files::mount(&io, files_config()).await?;
            let db = Db::open(&io, &files, options()).await?;
            let mut found = BTreeMap::new();
            let each = |key: &[u8], len| {
                found.insert(key.to_vec(), len);
            };
            db.scan(&[], usize::MAX, each).await?;
            db.close().await?;
            Ok::<_, DbError>(found.len())
        });
        assert!(found.expect("the drive works") >= 1_000);
    });
}

#[test]
fn settings_and_sizes_that_cannot_work_are_refused() {
    let mut config = roomy();
    config.data = DataStore::None;
    Machine::new(&config)
        .run(async |io| {
            let files = Files::format(&io, FilesConfig::default()).await?;
            let wrong = Options {
                num_levels: 1,
                ..Options::default()
            };
            let error = Db::open(&io, &files, wrong).await.err().expect("one level");
            assert_eq!(error.to_string(), "option num_levels = 1: 2 to 16");
            let sized = Options {
                keeps_data: false,
                ..Options::default()
            };
            let db = Db::open(&io, &files, sized.clone()).await?;
            let long = vec![0; 70_000];
            let error = db.put(&long, Value::Sized(1)).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                "a key of 70000 bytes: at most 65535 are valid"
            );
            db.put(b"key", Value::Sized(10)).await?;
            db.close().await?;
            // Another process does not know what the tables held.
            let error = Db::open(&io, &files, sized);
            let error = error.await.err().expect("it is forgotten");
            assert!(matches!(error, DbError::Forgotten { .. }), "{error}");
            Ok::<_, DbError>(())
        })
        .expect("the drive works");
}
