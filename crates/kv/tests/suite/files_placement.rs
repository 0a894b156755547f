//! Where files go, and what that costs: rules of placement, limits, usage.

use std::future::Future;

use crate::support::{Machine, small};
use zonelab_device::Nanos;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{
    Files, FilesConfig, FilesError, FinishWhen, Lifetime, Writer, ZoneUseState,
};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{DataStore, DriveConfig};

use Lifetime::{Extreme, Long, Medium, None as Nothing, NotSet, Short};

type Done = Result<(), FilesError>;

/// Bytes of a zone.
const ZONE: u64 = 512 << 10;

/// 21 zones for data, 5 of which may be active and 4 open.
fn timing() -> DriveConfig {
    let mut config = small();
    config.data = DataStore::None;
    config
}

fn on<F: Future<Output = Done> + 'static>(drive: &DriveConfig, main: impl FnOnce(Io) -> F) {
    Machine::new(drive)
        .run(main)
        .expect("nothing fails that should not");
}

async fn open(
    files: &Files,
    name: &str,
    lifetime: Lifetime,
    len: u64,
) -> Result<Writer, FilesError> {
    let mut writer = files.create(name, lifetime).await?;
    writer.append(Content::Sized(len)).await?;
    writer.sync().await?;
    Ok(writer)
}

/// Writes a file and returns the zone in which it begins. It must be the last
/// that any zone has got.
async fn put(files: &Files, name: &str, lifetime: Lifetime, len: u64) -> Result<u32, FilesError> {
    let before = files.zone_use();
    open(files, name, lifetime, len).await?.close().await?;
    let grown = before
        .iter()
        .zip(files.zone_use())
        .find(|(before, now)| now.written_bytes > before.written_bytes)
        .map(|(before, _)| before.zone);
    Ok(grown.expect("it was written somewhere"))
}

#[test]
fn a_file_goes_to_the_zone_that_lives_a_little_longer() {
    on(&timing(), async |io| {
        let files = Files::format(&io, FilesConfig::default()).await?;
        // Each is the first of its kind: a new zone, unless one lives longer.
        assert_eq!(put(&files, "m", Medium, 4_096).await?, 3);
        assert_eq!(put(&files, "l", Long, 4_096).await?, 4);
        assert_eq!(put(&files, "x", Extreme, 4_096).await?, 5);
        assert_eq!(put(&files, "m2", Medium, 4_096).await?, 4);
        assert_eq!(put(&files, "s", Short, 4_096).await?, 3);
        assert_eq!(put(&files, "l2", Long, 4_096).await?, 5);
        // Its own kind is not good enough as long as there are new zones.
        assert_eq!(put(&files, "x2", Extreme, 4_096).await?, 6);
        // Without lifetime: with its like.
        assert_eq!(put(&files, "n", NotSet, 4_096).await?, 7);
        assert_eq!(put(&files, "n2", NotSet, 4_096).await?, 7);
        // Five are active: what fits least badly has to do, in the emptiest.
        assert_eq!(put(&files, "0", Nothing, 4_096).await?, 3 + 3);
        assert_eq!(put(&files, "x3", Extreme, 4_096).await?, 5);
        let usage = files.usage();
        assert_eq!(usage.zones.closed, 5);
        assert_eq!(usage.placements.matched, 4);
        assert_eq!(usage.placements.new_zone, 5);
        assert_eq!(usage.placements.relaxed, 2);
        Ok(())
    });
}

/// Five zones of the same kind are partly written; the third holds most.
async fn five_zones(files: &Files) -> Done {
    for (k, len) in [10, 20, 100, 30, 40].into_iter().enumerate() {
        let zone = put(files, &format!("{k}"), Extreme, len * 4_096).await?;
        assert_eq!(zone, 3 + k as u32);
    }
    Ok(())
}

#[test]
fn at_the_limit_the_fullest_zone_is_finished_if_that_is_allowed() {
    // 100 of 128 blocks are written: 22 % are left.
    for (percent, finishes) in [(0, 0), (21, 0), (22, 1), (99, 1)] {
        on(&timing(), async move |io| {
            let config = FilesConfig {
                finish_threshold_percent: percent,
                ..FilesConfig::default()
            };
            let files = Files::format(&io, config).await?;
            five_zones(&files).await?;
            let zone = put(&files, "next", Extreme, 4_096).await?;
            let usage = files.usage();
            assert_eq!(usage.finishes, finishes, "{percent} %");
            assert_eq!(zone, if finishes == 1 { 8 } else { 3 }, "{percent} %");
            assert_eq!(usage.unusable_bytes, finishes * 28 * 4_096);
            assert_eq!(usage.zones.finished, finishes as u32);
            Ok(())
        });
    }
}

#[test]
fn eager_finishing_does_not_wait_for_the_limit() {
    on(&timing(), async |io| {
        let config = FilesConfig {
            finish_threshold_percent: 80,
            finish_when: FinishWhen::Eager,
            ..FilesConfig::default()
        };
        let files = Files::format(&io, config).await?;
        assert_eq!(put(&files, "a", Extreme, 20 * 4_096).await?, 3);
        assert_eq!(put(&files, "b", Extreme, 30 * 4_096).await?, 4);
        // A log leaves zones alone.
        assert_eq!(put(&files, "log", Short, 4_096).await?, 3);
        assert_eq!(files.usage().finishes, 0);
        assert_eq!(put(&files, "c", Extreme, 4_096).await?, 5);
        let states: Vec<_> = files.zone_use()[..3].iter().map(|of| of.state).collect();
        use ZoneUseState::{Closed, Finished};
        assert_eq!(states, [Closed, Finished, Closed]);
        Ok(())
    });
}

/// At the limit, eager finishing takes a zone of the same kind before it
/// finishes one for a new zone.
#[test]
fn eager_finishing_prefers_the_same_kind_at_the_limit() {
    on(&timing(), async |io| {
        let config = FilesConfig {
            finish_threshold_percent: 10,
            finish_when: FinishWhen::Eager,
            ..FilesConfig::default()
        };
        let files = Files::format(&io, config).await?;
        five_zones(&files).await?;
        assert_eq!(put(&files, "next", Extreme, 4_096).await?, 3);
        Ok(())
    });
}

#[test]
fn one_open_zone_is_kept_for_logs() {
    on(&timing(), async |io| {
        let files = Files::format(&io, FilesConfig::default()).await?;
        let mut writers = Vec::new();
        for k in 0..3 {
            writers.push(open(&files, &format!("{k}"), Extreme, 4_096).await?);
        }
        assert_eq!(files.usage().zones.open, 3);
        // All of them rest, so that a fourth need not wait, but it has no zone of its own.
        writers.push(open(&files, "3", Extreme, 4_096).await?);
        assert_eq!(files.usage().zones.open, 3);
        assert_eq!(files.usage().placements.taken_over, 1);
        writers.push(open(&files, "log", Short, 4_096).await?);
        assert_eq!(files.usage().zones.open, 4);
        for mut writer in writers {
            writer.append(Content::Sized(10_000)).await?;
            writer.close().await?;
        }
        assert_eq!(files.usage().zones.open, 0);
        Ok(())
    });
}

/// Many writers at a time under tight limits: nobody waits for ever, the device
/// never refuses, and it never sees more than it allows.
#[test]
fn limits_are_kept_under_load() {
    for (active, open) in [(2, 2), (3, 2), (4, 4), (6, 5)] {
        let mut drive = timing();
        drive.zones.max_active = Some(active);
        drive.zones.max_open = Some(open);
        let mut machine = Machine::new(&drive);
        let device = machine.device.clone();
        machine
            .run(async move |io| {
                let config = FilesConfig {
                    io_bytes: 32 << 10,
                    finish_threshold_percent: 50,
                    ..FilesConfig::default()
                };
                let files = Files::format(&io, config).await?;
                let tasks: Vec<_> = (0..8_u64)
                    .map(|k| {
                        let files = files.clone();
                        io.spawn(async move {
                            let lifetime = Lifetime::ALL[k as usize % Lifetime::ALL.len()];
                            for round in 0..3 {
                                let mut writer =
                                    files.create(&format!("{k}-{round}"), lifetime).await?;
                                for _ in 0..10 {
                                    writer.append(Content::Sized(30_000)).await?;
                                }
                                writer.close().await?;
                                if round > 0 {
                                    files.delete(&format!("{k}-{}", round - 1)).await?;
                                }
                            }
                            Ok::<_, FilesError>(())
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await?;
                    let states = device.with_drive(|drive| {
                        (0..24)
                            .map(|zone| drive.zones().state(zonelab_device::ZoneId(zone)))
                            .collect::<Vec<_>>()
                    });
                    let is_open = |state: &&ZoneState| {
                        [ZoneState::IMPLICITLY_OPENED, ZoneState::EXPLICITLY_OPENED]
                            .contains(*state)
                    };
                    let opened = states.iter().filter(is_open).count();
                    let closed = states.iter().filter(|of| **of == ZoneState::CLOSED).count();
                    assert!(opened <= open as usize && opened + closed <= active as usize);
                }
                let usage = files.usage();
                assert_eq!(usage.files, 8);
                assert_eq!(usage.valid_bytes, 8 * 300_000);
                Ok::<_, FilesError>(())
            })
            .expect("the limits are enough");
    }
}

#[test]
fn a_zone_is_reset_when_nothing_in_it_is_valid_and_not_before() {
    on(&timing(), async |io| {
        let files = Files::format(&io, FilesConfig::default()).await?;
        put(&files, "a", Extreme, ZONE - 8_192).await?;
        put(&files, "b", Long, 8_192 + ZONE / 2).await?;
        let resets = files.usage().resets;
        files.delete("a").await?;
        let usage = files.usage();
        assert_eq!((usage.resets, usage.invalid_bytes), (resets, ZONE - 8_192));
        assert_eq!(usage.valid_bytes, 8_192 + ZONE / 2);
        assert_eq!((usage.zones.full, usage.zones.closed), (1, 1));
        files.delete("b").await?;
        let usage = files.usage();
        assert_eq!((usage.resets, usage.invalid_bytes), (resets + 2, 0));
        assert_eq!(usage.zones.empty, 21);
        Ok(())
    });
}

#[test]
fn space_over_time_is_exact() {
    on(&timing(), async |io| {
        let files = Files::format(&io, FilesConfig::default()).await?;
        put(&files, "a", Long, 10 * 4_096).await?;
        put(&files, "b", Medium, 30 * 4_096 - 7).await?;
        let (before, start) = (files.usage(), io.now());
        assert_eq!(before.padding_bytes, 7);
        io.sleep_until(start + Nanos::from_ms(100)).await;
        let quiet = files.usage().over_time;
        files.delete("a").await?;
        let deleted = io.now();
        let invalid = files.usage();
        io.sleep_until(deleted + Nanos::from_ms(300)).await;
        let end = files.usage().over_time;
        let ms = |ms: u64| u128::from(Nanos::from_ms(ms).0);
        assert_eq!(
            quiet.elapsed_ns.saturating_sub(before.over_time.elapsed_ns),
            Nanos::from_ms(100)
        );
        let valid = quiet.valid_byte_ns - before.over_time.valid_byte_ns;
        assert_eq!(valid, 40 * 4_096 * ms(100));
        assert_eq!(quiet.invalid_byte_ns, 0);
        let wasted = end.invalid_byte_ns - invalid.over_time.invalid_byte_ns;
        assert_eq!(wasted, 10 * 4_096 * ms(300));
        assert!(end.amplification() > 1.0 && end.amplification() < 4.0 / 3.0);
        assert!(end.mean_invalid_bytes() < 10.0 * 4_096.0);
        Ok(())
    });
}
