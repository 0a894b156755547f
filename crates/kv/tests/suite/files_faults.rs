//! Files on devices that fail, are full, or are not what they should be: every
//! error there is, and what still works then.

use std::future::Future;

use crate::support::{Machine, small};
use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueuePair, RejectReason,
    Rejected, Tag,
};
use zonelab_host::Job;
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_kv::Content;
use zonelab_kv::files::{
    Files, FilesConfig, FilesError, FinishWhen, Lifetime, Scarce, ZoneUseState,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::Drive;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

type Done = Result<(), FilesError>;

fn keeping() -> FilesConfig {
    FilesConfig {
        keeps_data: true,
        io_bytes: 64 << 10,
        ..FilesConfig::default()
    }
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed)
        .collect()
}

async fn write(files: &Files, name: &str, bytes: &[u8]) -> Done {
    let mut writer = files.create(name, Lifetime::Medium).await?;
    writer.append(Content::Bytes(bytes.to_vec())).await?;
    writer.close().await
}

async fn read(files: &Files, name: &str) -> Result<Vec<u8>, FilesError> {
    let reader = files.open(name)?;
    match reader.read(0, reader.len()).await? {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Sized(_) => panic!("the device keeps data"),
    }
}

/// Runs on a working small drive.
fn on_small<F: Future<Output = Done> + 'static>(main: impl FnOnce(Io) -> F) {
    Machine::new(&small())
        .run(main)
        .expect("nothing fails that should not");
}

fn fault(trigger: Trigger, count: u64, effect: Effect) -> Fault {
    let when = Match {
        count,
        ..Match::every(trigger)
    };
    Fault { when, effect }
}

/// The same in some zones only.
fn fault_in(zones: core::ops::RangeInclusive<u32>, mut fault: Fault) -> Fault {
    fault.when.zones = Some(zones);
    fault
}

fn set_faults(machine: &Machine, faults: Vec<Fault>) {
    let plan = FaultPlan { seed: 1, faults };
    let now = machine.now;
    machine.device.with_faults(|drive| {
        drive.clear_faults();
        drive.add_faults(now, plan);
    });
}

#[test]
fn settings_out_of_range_are_refused_with_what_is_valid() {
    on_small(async |io| {
        let base = keeping();
        let refused = [
            (
                "zones",
                FilesConfig {
                    zones: Some(3..30),
                    ..base.clone()
                },
            ),
            (
                "meta_zones",
                FilesConfig {
                    meta_zones: 1,
                    ..base.clone()
                },
            ),
            (
                "meta_zones",
                FilesConfig {
                    meta_zones: 24,
                    ..base.clone()
                },
            ),
            (
                "finish_threshold_percent",
                FilesConfig {
                    finish_threshold_percent: 101,
                    ..base.clone()
                },
            ),
            (
                "io_bytes",
                FilesConfig {
                    io_bytes: 4_095,
                    ..base.clone()
                },
            ),
            (
                "max_active",
                FilesConfig {
                    max_active: Some(1),
                    ..base.clone()
                },
            ),
            (
                "max_open",
                FilesConfig {
                    max_open: Some(1),
                    ..base.clone()
                },
            ),
        ];
        for (wanted, config) in refused {
            match Files::format(&io, config).await.map(drop) {
                Err(FilesError::Config { key, .. }) => assert_eq!(key, wanted),
                other => panic!("{wanted}: {other:?}"),
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_not_there_cannot_be_mounted() {
    on_small(async |io| {
        let base = keeping();
        let elsewhere = FilesConfig {
            namespace: NamespaceId(2),
            ..base.clone()
        };
        let end = Files::format(&io, elsewhere).await.map(drop);
        assert_eq!(
            end,
            Err(FilesError::NoSuchNamespace {
                namespace: 2,
                namespaces: 1
            })
        );
        let sized = FilesConfig {
            keeps_data: false,
            ..base.clone()
        };
        let end = Files::mount(&io, sized).await.map(drop);
        assert_eq!(end, Err(FilesError::KeepsNothing));
        let end = Files::mount(&io, base.clone()).await.map(drop);
        assert_eq!(end, Err(FilesError::NotFormatted { first: 0, last: 2 }));
        Files::format(&io, base.clone()).await?;
        let fewer = FilesConfig {
            zones: Some(0..20),
            ..base
        };
        let end = Files::mount(&io, fewer).await.map(drop);
        let what = "end of zones";
        assert_eq!(
            end,
            Err(FilesError::Mismatch {
                what,
                found: 24,
                expected: 20
            })
        );
        Ok(())
    });
}

#[test]
fn wrong_uses_are_refused_and_change_nothing() {
    on_small(async |io| {
        let files = Files::format(&io, keeping()).await?;
        let name = || "a".to_owned();
        let mut writer = files.create("a", Lifetime::Short).await?;
        let again = files.create("a", Lifetime::Short).await.map(drop);
        assert_eq!(again, Err(FilesError::Exists { name: name() }));
        let sized = writer.append(Content::Sized(3)).await;
        assert_eq!(sized, Err(FilesError::WrongContent { keeps_data: true }));
        writer.append(Content::Bytes(vec![1; 10])).await?;
        assert_eq!(
            files.delete("a").await,
            Err(FilesError::InUse { name: name() })
        );
        assert_eq!(
            files.rename("a", "b").await,
            Err(FilesError::InUse { name: name() })
        );
        writer.close().await?;
        for len in [0, 256] {
            let named = files.create(&"x".repeat(len), Lifetime::Short).await;
            assert_eq!(named.map(drop), Err(FilesError::Name { len, max: 255 }));
        }
        let missing = files.delete("b").await;
        assert_eq!(
            missing,
            Err(FilesError::NotFound {
                name: "b".to_owned()
            })
        );
        let reader = files.open("a")?;
        let beyond = FilesError::BeyondEnd {
            name: name(),
            offset: 5,
            len: 6,
            file_len: 10,
        };
        assert_eq!(reader.read(5, 6).await, Err(beyond));
        assert!(reader.read(u64::MAX, 2).await.is_err());
        files.delete("a").await?;
        let gone = reader.read(0, 1).await;
        assert_eq!(gone, Err(FilesError::Deleted { name: name() }));
        Ok(())
    });
}

#[test]
fn a_namespace_without_zones_holds_no_files() {
    let machine = Machine::new(&small());
    let mut info = machine.device.info().clone();
    info.namespaces[0].zoned = None;
    let end = on_dead_device(&info, async |io| {
        Files::format(&io, keeping()).await.map(drop)
    });
    assert_eq!(end, Err(FilesError::NotZoned { namespace: 1 }));
}

#[test]
fn a_device_that_is_gone_is_an_error() {
    let machine = Machine::new(&small());
    let end = on_dead_device(machine.device.info(), async |io| {
        Files::format(&io, keeping()).await.map(drop)
    });
    assert_eq!(end, Err(FilesError::Gone(RejectReason::Disconnected)));
}

fn on_dead_device<F: Future<Output = Done> + 'static>(
    info: &DeviceInfo,
    main: impl FnOnce(Io) -> F,
) -> Done {
    let mut tasks = Tasks::new(info, TasksConfig::default(), main);
    let mut queue = DeadQueue(info.clone());
    tasks.step(Nanos::ZERO, &mut Vec::new(), &mut queue);
    tasks.into_result().expect("it has nothing to wait for")
}

/// A queue pair whose device is not there any more.
struct DeadQueue(DeviceInfo);

impl QueuePair for DeadQueue {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn submit(&mut self, _: Command, _: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        let reason = RejectReason::Disconnected;
        Err(Rejected { reason, data })
    }

    fn ring(&mut self) {}

    fn poll(&mut self, _: &mut Vec<Completion>) -> usize {
        0
    }
}

/// However a write fails, what it held is written again.
#[test]
fn what_a_failed_write_held_is_written_again() {
    let timeout = Some(Nanos::from_ms(5));
    let effects = [
        Effect::Fail(Status::INTERNAL_ERROR),
        Effect::Fail(Status::WRITE_FAULT),
        Effect::Lose { timeout },
        Effect::ReadOnly,
        Effect::Delay(Nanos::from_ms(3)),
    ];
    for effect in effects {
        for (skip, count, depth) in [(0, 1, 1), (2, 1, 3), (1, 2, 1), (3, 4, 2)] {
            let mut machine = Machine::new(&small());
            let mut fault = fault_in(3..=23, fault(Trigger::Write, count, effect));
            fault.when.skip = skip;
            set_faults(&machine, vec![fault]);
            let config = FilesConfig {
                write_depth: depth,
                ..keeping()
            };
            let all = bytes(900_000, 9);
            let end = machine.run({
                let (all, config) = (all.clone(), config.clone());
                async move |io| {
                    let files = Files::format(&io, config).await?;
                    write(&files, "a", &all).await?;
                    assert!(read(&files, "a").await? == all, "{effect:?}");
                    Ok::<_, FilesError>(files.usage().zones.read_only)
                }
            });
            let dead = end.expect("there are other zones");
            assert_eq!(dead > 0, effect == Effect::ReadOnly);
            let end = machine.run(async move |io| {
                let files = Files::mount(&io, config).await?;
                Ok::<_, FilesError>(read(&files, "a").await? == all)
            });
            assert_eq!(end, Ok(true), "{effect:?}");
        }
    }
}

/// A write that fails again and again is an error in the end; the writer can go
/// on when the device can.
/// Of three writes to the end of a zone the last fails, and before the others end.
#[test]
fn a_zone_whose_last_write_failed_is_not_full() {
    let mut machine = Machine::new(&small());
    let device = machine.device.clone();
    machine
        .run(async move |io| {
            let config = FilesConfig {
                io_bytes: 4_096,
                write_depth: 3,
                finish_threshold_percent: 99,
                finish_when: FinishWhen::Eager,
                ..keeping()
            };
            let files = Files::format(&io, config).await?;
            let mut fails = fault(Trigger::Write, 1, Effect::Fail(Status::INTERNAL_ERROR));
            let last = 3 * 160 + 127;
            fails.when.lbas = Some(last..=last);
            let plan = FaultPlan {
                seed: 1,
                faults: vec![fails],
            };
            device.with_faults(|drive| drive.add_faults(io.now(), plan));
            let contents = bytes(128 * 4_096, 5);
            write(&files, "a", &contents).await?;
            assert_eq!(files.usage().placements.new_zone, 1, "it was written on");
            assert_eq!(files.zone_use()[0].state, ZoneUseState::Full);
            assert_eq!(read(&files, "a").await?, contents);
            Ok::<_, FilesError>(())
        })
        .expect("nothing else fails");
}

#[test]
fn a_device_that_writes_nothing_is_an_error_until_it_does() {
    let mut machine = Machine::new(&small());
    let fails = fault(Trigger::Write, 8, Effect::Fail(Status::INTERNAL_ERROR));
    set_faults(&machine, vec![fault_in(3..=23, fails)]);
    let end = machine.run(async |io| {
        let files = Files::format(&io, keeping()).await?;
        let mut writer = files.create("a", Lifetime::Long).await?;
        let all = bytes(300_000, 1);
        let failed = writer.append(Content::Bytes(all.clone())).await;
        match failed {
            Err(FilesError::Command { action, status, .. }) => {
                assert_eq!((action, status), ("write", Status::INTERNAL_ERROR));
            }
            other => panic!("{other:?}"),
        }
        writer.close().await?;
        assert_eq!(read(&files, "a").await?, all);
        Ok::<_, FilesError>(())
    });
    assert_eq!(end, Ok(()));
}

#[test]
fn a_zone_that_goes_offline_takes_its_files_along_and_no_others() {
    let mut machine = Machine::new(&small());
    let (a, b) = (bytes(100_000, 1), bytes(600_000, 2));
    machine
        .run({
            let (a, b) = (a.clone(), b.clone());
            async move |io| {
                let files = Files::format(&io, keeping()).await?;
                write(&files, "a", &a).await?;
                write(&files, "b", &b).await
            }
        })
        .expect("nothing fails yet");
    let now = machine.now;
    machine
        .device
        .with_faults(|drive| {
            drive.fail_zones(now, NamespaceId::FIRST, &[3..=3], ZoneState::OFFLINE)
        })
        .expect("any zone can fail");
    machine
        .run(async move |io| {
            let files = Files::mount(&io, keeping()).await?;
            let names: Vec<String> = files.list().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["a", "b"]);
            let lost = read(&files, "a").await;
            let name = "a".to_owned();
            assert_eq!(
                lost,
                Err(FilesError::Lost {
                    name,
                    zone: 3,
                    lba: 480
                })
            );
            assert_eq!(read(&files, "b").await.map(|read| read == b), Ok(true));
            assert_eq!(files.usage().zones.offline, 1);
            // It can be deleted, and written anew elsewhere.
            files.delete("a").await?;
            write(&files, "a", &a).await?;
            assert_eq!(read(&files, "a").await?, a);
            Ok::<_, FilesError>(())
        })
        .expect("the rest works");
}

/// What was written, and is lost before it was synced, is not said to be durable.
#[test]
fn a_sync_tells_of_blocks_that_are_lost() {
    let mut machine = Machine::new(&small());
    let mut dies = fault_in(3..=3, fault(Trigger::Write, 1, Effect::Offline));
    dies.when.skip = 2;
    set_faults(&machine, vec![dies]);
    let end = machine.run(async |io| {
        let files = Files::format(&io, keeping()).await?;
        let mut writer = files.create("a", Lifetime::Long).await?;
        writer.append(Content::Bytes(bytes(200_000, 1))).await?;
        writer.sync().await
    });
    let name = "a".to_owned();
    assert_eq!(
        end,
        Err(FilesError::Lost {
            name,
            zone: 3,
            lba: 480
        })
    );
}

#[test]
fn a_read_that_fails_says_where() {
    let mut machine = Machine::new(&small());
    let weak = fault_in(3..=23, fault(Trigger::Read, 1, Effect::MediaError));
    set_faults(&machine, vec![weak]);
    let end = machine.run(async |io| {
        let files = Files::format(&io, keeping()).await?;
        write(&files, "a", &bytes(10, 1)).await?;
        let failed = read(&files, "a").await;
        assert_eq!(read(&files, "a").await?, bytes(10, 1));
        failed
    });
    let failed = FilesError::Command {
        action: "read",
        namespace: 1,
        zone: 3,
        lba: 480,
        status: Status::UNRECOVERED_READ_ERROR,
    };
    assert_eq!(end, Err(failed));
}

fn shortage(end: Done) -> (Scarce, String) {
    match end {
        Err(FilesError::OutOf(shortage)) => (shortage.scarce, shortage.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_device_says_so_and_files_can_be_read_and_deleted() {
    on_small(async |io| {
        let files = Files::format(&io, keeping()).await?;
        let half = bytes(5 << 20, 1);
        write(&files, "a", &half).await?;
        let mut writer = files.create("b", Lifetime::Long).await?;
        let whole = bytes(6 << 20, 2);
        let full = writer.append(Content::Bytes(whole.clone())).await;
        let (scarce, text) = shortage(full);
        assert_eq!(scarce, Scarce::Space);
        assert!(
            text.starts_with("out of space: 0 of 21 zones empty"),
            "{text}"
        );
        assert_eq!(files.usage().free_bytes, 0);
        assert!(read(&files, "a").await? == half);
        files.delete("a").await?;
        // The writer goes on where it could not.
        writer.close().await?;
        assert!(read(&files, "b").await? == whole);
        Ok(())
    });
}

#[test]
fn zones_that_were_finished_too_early_are_what_is_scarce() {
    on_small(async |io| {
        let config = FilesConfig {
            finish_threshold_percent: 100,
            finish_when: FinishWhen::Eager,
            ..keeping()
        };
        let files = Files::format(&io, config).await?;
        let mut end = Ok(());
        for k in 0..30 {
            end = write(&files, &format!("{k}"), &[k]).await;
            if end.is_err() {
                assert_eq!(k, 21, "a zone each");
                break;
            }
        }
        let (scarce, text) = shortage(end);
        assert_eq!(scarce, Scarce::Zones);
        assert!(text.contains("86016 bytes valid"), "{text}");
        assert_eq!(files.usage().zones.finished, 21);
        assert_eq!(files.usage().finishes, 21);
        files.delete("0").await?;
        write(&files, "x", &[1]).await
    });
}

/// Others on the same device have as many zones active as there may be.
#[test]
fn active_zones_can_be_what_is_scarce() {
    on_small(async |io| {
        let one = FilesConfig {
            zones: Some(0..12),
            wal_zones: 0,
            ..keeping()
        };
        let other = FilesConfig {
            zones: Some(12..24),
            ..keeping()
        };
        let (one, other) = (
            Files::format(&io, one).await?,
            Files::format(&io, other).await?,
        );
        let mut writers = Vec::new();
        for k in 0..4 {
            let mut writer = one.create(&format!("{k}"), Lifetime::Extreme).await?;
            writer.append(Content::Bytes(bytes(70_000, k))).await?;
            writers.push(writer);
        }
        let (scarce, text) = shortage(write(&other, "a", &[1]).await);
        assert_eq!(scarce, Scarce::ActiveZones, "{text}");
        assert_eq!(other.usage().zones.empty, 9);
        for writer in writers {
            writer.close().await?;
        }
        for k in 0..4 {
            one.delete(&format!("{k}")).await?;
        }
        write(&other, "b", &[1]).await
    });
}

#[test]
fn without_metadata_files_can_still_be_read() {
    let mut machine = Machine::new(&small());
    let mut fails = fault_in(
        0..=2,
        fault(Trigger::Write, u64::MAX, Effect::Fail(Status::WRITE_FAULT)),
    );
    fails.when.skip = 2;
    set_faults(&machine, vec![fails]);
    let end = machine.run(async |io| {
        let files = Files::format(&io, keeping()).await?;
        write(&files, "a", &[5; 10]).await?;
        let failed = FilesError::MetadataFailed {
            last: Status::WRITE_FAULT,
        };
        assert_eq!(write(&files, "b", &[6; 10]).await, Err(failed.clone()));
        assert_eq!(files.delete("a").await, Err(failed));
        Ok::<_, FilesError>(())
    });
    assert_eq!(end, Ok(()));
    set_faults(&machine, Vec::new());
    let end = machine.run(async |io| {
        let files = Files::mount(&io, keeping()).await?;
        assert_eq!(files.list(), [("a".to_owned(), 10)]);
        read(&files, "a").await
    });
    assert_eq!(end, Ok(vec![5; 10]));
}

#[test]
fn a_zone_of_metadata_that_dies_is_replaced() {
    for effect in [
        Effect::ReadOnly,
        Effect::Offline,
        Effect::Fail(Status::WRITE_FAULT),
    ] {
        let mut machine = Machine::new(&small());
        let mut dies = fault_in(0..=2, fault(Trigger::Write, 1, effect));
        dies.when.skip = 2;
        set_faults(&machine, vec![dies]);
        let end = machine.run(async |io| {
            let files = Files::format(&io, keeping()).await?;
            for k in 0..5 {
                write(&files, &format!("{k}"), &[k; 10]).await?;
            }
            files.delete("0").await
        });
        assert_eq!(end, Ok(()), "{effect:?}");
        let end = machine.run(async |io| {
            let files = Files::mount(&io, keeping()).await?;
            assert_eq!(files.list().len(), 4);
            read(&files, "4").await
        });
        assert_eq!(end, Ok(vec![4; 10]), "{effect:?}");
    }
}

#[test]
fn metadata_that_fits_no_zone_is_an_error_until_files_are_deleted() {
    on_small(async |io| {
        let files = Files::format(&io, keeping()).await?;
        let name = |k: u32| format!("{k:0>250}");
        let mut refused = None;
        for k in 0..3_000 {
            match files
                .create(&name(k), Lifetime::NotSet)
                .await?
                .close()
                .await
            {
                Ok(()) => {}
                Err(error) => {
                    refused = Some((k, error));
                    break;
                }
            }
        }
        let Some((count, FilesError::MetadataTooLarge { zone_bytes, .. })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(zone_bytes, 512 << 10);
        for k in 0..count {
            match files.delete(&name(k)).await {
                Ok(()) => return write(&files, "a", &[1]).await,
                Err(FilesError::MetadataTooLarge { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        panic!("all were deleted");
    });
}

/// Each byte of the log is damaged in turn. What is mounted then is what was
/// there before the last batch, or after it, or nothing.
#[test]
fn damaged_metadata_is_an_error_or_the_past() {
    let mut machine = Machine::new(&small());
    let log = machine
        .run(async |io| {
            let files = Files::format(&io, keeping()).await?;
            write(&files, "a", &[1; 5_000]).await?;
            write(&files, "b", &[2; 5_000]).await?;
            // Format, two files.
            let mut blocks = Vec::new();
            for lba in 0..3 {
                let op = Op::Read {
                    slba: Lba(lba),
                    nlb: 1,
                };
                let answer = io.run(Command::new(op), Some(Buf::zeroed(4_096))).await;
                blocks.extend_from_slice(&answer.expect("it is there").data.expect("its buffer"));
            }
            Ok::<_, FilesError>(blocks)
        })
        .expect("a drive that works");
    for at in (0..log.len()).filter(|at| at % 4_096 < 160) {
        let mut damaged = log.clone();
        damaged[at] ^= 0x40;
        let end = machine.run(async move |io| {
            for zone in 0..3 {
                let op = Op::ZoneSend {
                    slba: Lba(zone * 160),
                    action: ZoneSendAction::RESET,
                    select_all: false,
                };
                io.run(Command::new(op), None).await.expect("it is there");
            }
            let op = Op::Write {
                slba: Lba(0),
                nlb: 3,
            };
            let data = Some(Buf::from(damaged));
            io.run(Command::new(op), data).await.expect("it is there");
            let files = Files::mount(&io, keeping()).await?;
            Ok::<_, FilesError>(files.list().len())
        });
        let batch = at / 4_096;
        match end {
            Err(FilesError::Corrupt { zone: 0, lba, .. }) => assert_eq!(lba, batch as u64 + 1),
            // The last batch is taken for one that was being written; and what
            // lies behind a batch in its block means nothing.
            Ok(1) => assert_eq!(batch, 2, "byte {at}"),
            Ok(2) => assert!(at % 4_096 >= 72, "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

/// A finish or reset that the device refuses costs the zone, and nothing else.
#[test]
fn refused_management_costs_a_zone() {
    for (trigger, effect) in [
        (Trigger::Reset, Effect::Fail(Status::INTERNAL_ERROR)),
        (Trigger::Close, Effect::Fail(Status::INTERNAL_ERROR)),
        (Trigger::Finish, Effect::Fail(Status::INTERNAL_ERROR)),
        (Trigger::Open, Effect::Fail(Status::INTERNAL_ERROR)),
    ] {
        let mut machine = Machine::new(&small());
        set_faults(&machine, vec![fault_in(3..=23, fault(trigger, 2, effect))]);
        let end = machine.run(async |io| {
            let config = FilesConfig {
                finish_threshold_percent: 50,
                finish_when: FinishWhen::Eager,
                explicit_open: true,
                ..keeping()
            };
            let files = Files::format(&io, config).await?;
            for k in 0..40 {
                write(&files, &format!("{k}"), &bytes(300_000, k)).await?;
                if k > 3 {
                    files.delete(&format!("{}", k - 4)).await?;
                }
            }
            for k in 36..40 {
                assert_eq!(read(&files, &format!("{k}")).await?, bytes(300_000, k));
            }
            Ok::<_, FilesError>(())
        });
        assert_eq!(end, Ok(()), "{trigger:?}");
    }
}

/// Zones that are dead already are not used.
#[test]
fn dead_zones_are_left_alone_by_format() {
    let mut config = small();
    config.data = DataStore::Memory;
    let mut machine = Machine::of(Drive::new(&config));
    machine
        .device
        .with_faults(|drive| {
            let dead = [0..=0, 4..=5];
            drive.fail_zones(Nanos::ZERO, NamespaceId::FIRST, &dead, ZoneState::READ_ONLY)
        })
        .expect("any zone can fail");
    let end = machine.run(async |io| {
        let files = Files::format(&io, keeping()).await?;
        write(&files, "a", &bytes(2 << 20, 1)).await?;
        let used: Vec<u32> = files
            .zone_use()
            .iter()
            .filter(|of| of.state == ZoneUseState::Full)
            .map(|of| of.zone)
            .collect();
        assert_eq!(used, [3, 6, 7, 8]);
        assert_eq!(files.usage().zones.read_only, 2);
        Ok::<_, FilesError>(())
    });
    assert_eq!(end, Ok(()));
}
