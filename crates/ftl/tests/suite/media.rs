//! Data zones that fail: writes go elsewhere, what can be moved is moved, and errors are
//! told of the blocks that they are about.

use crate::support::layer;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;

use crate::support::layer::{Fuse, Machine, Main, Shadow, seeds::each_seed};
use zonelab_device::{Buf, Command, Lba, Op};
use zonelab_ftl::{FtlSettings, ImageSlot, Start};
use zonelab_host::Rng;
use zonelab_nvme::Status;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

fn fault(trigger: Trigger, zones: core::ops::Range<u32>, effect: Effect, rng: &mut Rng) -> Fault {
    Fault {
        when: Match {
            zones: Some(zones.start..=zones.end - 1),
            skip: rng.below(200),
            count: 1 + rng.below(3),
            ..Match::every(trigger)
        },
        effect,
    }
}

/// Commands on data zones fail, some of them with their zones.
fn any_faults(rng: &mut Rng, zones: &core::ops::Range<u32>) -> FaultPlan {
    let failed = Effect::Fail(Status::WRITE_FAULT);
    let mut faults = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let (trigger, effect) = [
            (Trigger::Write, failed),
            (Trigger::Append, failed),
            (Trigger::Reset, failed),
            (Trigger::Finish, failed),
            (Trigger::Copy, failed),
            (Trigger::Copy, Effect::MediaError),
        ][rng.below(6) as usize];
        faults.push(fault(trigger, zones.clone(), effect, rng));
    }
    // Zones that can be written no more: one, so that there is room.
    let trigger = [Trigger::Write, Trigger::Append][rng.below(2) as usize];
    let mut lost = fault(trigger, zones.clone(), Effect::ReadOnly, rng);
    lost.when.count = 1;
    faults.push(lost);
    let seed = rng.next_u64();
    FaultPlan { seed, faults }
}

#[test]
fn failures_of_zones_lose_nothing() {
    let lost = Mutex::new(0);
    each_seed("--test media failures_of_zones_lose_nothing", 150, |seed| {
        let mut rng = Rng::new(seed, 0);
        let mut config = layer::any_drive(&mut rng);
        // More zones than may be lost are in reserve.
        config.zones.max_active = Some(14);
        config.zones.max_open = None;
        config.zones.count += 20;
        config.mapping = zonelab_ssd::config::MappingConfig::Direct;
        config.geometry.blocks_per_plane *= 2;
        let mut machine = Machine::new(&config);
        let mut settings = machine.any_settings(&mut rng);
        let mut ftl = machine.mount(layer::format(0.28), &settings);
        let shape = ftl.shape().clone();
        let zones = shape.first_data_zone()..shape.zones;
        let (now, plan) = (machine.now, any_faults(&mut rng, &zones));
        machine
            .drive
            .with_faults(|drive| drive.add_faults(now, plan));
        let blocks = shape.logical_blocks;
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        for _ in 0..3 {
            let programs = ftl.most_queues().min(1 + rng.below(2) as u32);
            let workers = 1 + rng.below(6) as u32;
            let clients = layer::clients(&shadow, blocks, programs, workers, 150, &mut rng);
            let events = [u64::MAX, rng.below(3000)][rng.below(2) as usize];
            let fuse = Fuse::after(events, rng.next_u64());
            ftl = machine.run(ftl, &fuse, clients);
            if !fuse.is_lost() {
                assert_eq!(ftl.failure(), None);
                let fuse = Fuse::after(0, rng.next_u64());
                fuse.lose(&machine.drive, machine.now);
                machine.now = fuse.ready();
            }
            settings = machine.any_settings(&mut rng);
            let mounted = machine.mount(Start::Mount, &settings);
            let check = Rc::clone(&shadow);
            let check: Main = Box::new(|io| Box::pin(layer::check_all(io, check)));
            ftl = machine.run(mounted, &Fuse::after(u64::MAX, 0), vec![check]);
        }
        let retired = |zone| ftl.zones().state(zone) == zonelab_ftl::zones::ZoneUse::Retired;
        *lost.lock().expect("adding cannot fail") +=
            ftl.zones().all().filter(|zone| retired(*zone)).count();
    });
    let lost = lost.into_inner().expect("adding cannot fail");
    println!("{lost} zones were lost");
    assert!(lost > 0, "zones fail");
}

/// A block that cannot be read is told of by every read that has it, however often it is
/// collected, and no other block is; and writing it mends it.
#[test]
fn a_block_that_cannot_be_read_is_the_only_one() {
    let mut machine = Machine::new(&layer::drive(24, 64));
    let settings = FtlSettings {
        device_copy: false,
        ..FtlSettings::default()
    };
    let ftl = machine.mount(layer::format(0.28), &settings);
    let (blocks, zones) = (ftl.shape().logical_blocks, ftl.shape().first_data_zone());
    let first = ftl.shape().lba(zones, 0).0;
    // The fourth block that is written, for ever.
    let bad = first + 3;
    let mut broken = Fault {
        when: Match::every(Trigger::Read),
        effect: Effect::MediaError,
    };
    broken.when.lbas = Some(bad..=bad);
    let plan = FaultPlan {
        seed: 1,
        faults: vec![broken],
    };
    let now = machine.now;
    machine
        .drive
        .with_faults(|drive| drive.add_faults(now, plan));
    let main: Main = Box::new(move |io| {
        Box::pin(async move {
            for block in 0..8 {
                write(&io, block, 2).await;
            }
            // Everything else is overwritten again and again.
            let mut rng = Rng::new(7, 0);
            for _ in 0..3 * blocks {
                write(&io, 8 + rng.below(u64::from(blocks) - 8) as u32, 2).await;
            }
            for block in 0..8 {
                let expected = match block {
                    3 => Status::UNRECOVERED_READ_ERROR,
                    _ => Status::SUCCESS,
                };
                assert_eq!(
                    status_of_read(&io, block, 1).await,
                    expected,
                    "block {block}"
                );
            }
            assert_eq!(
                status_of_read(&io, 0, 8).await,
                Status::UNRECOVERED_READ_ERROR
            );
            write(&io, 3, 4).await;
            assert_eq!(status_of_read(&io, 0, 8).await, Status::SUCCESS);
            for _ in 0..2 * blocks {
                write(&io, 8 + rng.below(u64::from(blocks) - 8) as u32, 2).await;
            }
        })
    });
    let ftl = machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![main]);
    assert_eq!(ftl.failure(), None);
    assert!(
        ftl.metrics().unreadable_blocks > 0,
        "its zone was collected"
    );
    let retired = |zone| ftl.zones().state(zone) == zonelab_ftl::zones::ZoneUse::Retired;
    let retired = ftl.zones().all().filter(|zone| retired(*zone)).count();
    assert_eq!(
        retired, 0,
        "its zone is used again when nothing in it is needed"
    );
}

/// With a share of the map in memory, a block of its image that cannot be read takes the
/// blocks with it whose places it has. Others can be read; and writes, which need
/// checkpoints, end one way or the other.
#[test]
fn an_image_that_cannot_be_read_ends_writes() {
    let mut machine = Machine::new(&layer::drive(48, 64));
    let settings = FtlSettings {
        map_share: Some(0.001),
        ..FtlSettings::default()
    };
    let ftl = machine.mount(layer::format(0.28), &settings);
    let (blocks, shape) = (ftl.shape().logical_blocks, ftl.shape().clone());
    let of_block = shape.words_per_block();
    assert!(blocks > of_block + 200, "an image has two blocks");
    let never = Fuse::after(u64::MAX, 0);
    let fill: Main = Box::new(move |io| {
        Box::pin(async move {
            for block in 0..blocks {
                write(&io, block, 2).await;
            }
            layer::good(&io, Op::Flush, None).await;
        })
    });
    let ftl = machine.run(ftl, &never, vec![fill]);
    assert!(ftl.metrics().image_blocks > 2, "there is an image");
    let faults = [ImageSlot::A, ImageSlot::B].map(|slot| {
        let first = shape.lba(shape.image(slot).start, 0).0;
        let mut broken = Fault {
            when: Match::every(Trigger::Read),
            effect: Effect::MediaError,
        };
        broken.when.lbas = Some(first..=first);
        broken
    });
    let plan = FaultPlan {
        seed: 1,
        faults: faults.into(),
    };
    let now = machine.now;
    machine
        .drive
        .with_faults(|drive| drive.add_faults(now, plan));
    let main: Main = Box::new(move |io| {
        Box::pin(async move {
            let mut ends = [Status::SUCCESS; 2];
            let mut rng = Rng::new(7, 0);
            for _ in 0..4 * blocks {
                let block = of_block + rng.below(u64::from(blocks - of_block)) as u32;
                ends[0] = try_write(&io, block, 4).await;
                ends[1] = try_write(&io, block - of_block, 4).await;
                if !ends[0].is_success() {
                    break;
                }
            }
            assert_eq!(ends[0], Status::WRITE_FAULT, "nothing is written any more");
            assert!(!ends[1].is_success());
            let mut unknown = 0;
            for block in 0..of_block {
                let status = status_of_read(&io, block, 1).await;
                unknown += u32::from(status == Status::UNRECOVERED_READ_ERROR);
                assert!(status.is_success() || status == Status::UNRECOVERED_READ_ERROR);
            }
            assert!(
                unknown > of_block / 2,
                "{unknown} blocks are nowhere to be found"
            );
            for block in of_block..blocks {
                assert_eq!(status_of_read(&io, block, 1).await, Status::SUCCESS);
            }
            let trim = Op::WriteZeroes {
                slba: Lba(0),
                nlb: blocks,
            };
            let trimmed = io.run(Command::new(trim), None).await;
            assert!(!trimmed.expect("the device is there").status.is_success());
        })
    });
    let ftl = machine.run(ftl, &never, vec![main]);
    assert!(ftl.failure().is_some());
}

/// When zones are lost that programs' blocks need, writes fail for want of room, and go on
/// when blocks are trimmed; nothing hangs, and what is there can be read.
#[test]
fn a_drive_that_has_lost_too_much_is_full() {
    let mut machine = Machine::new(&layer::drive(28, 64));
    let ftl = machine.mount(layer::format(0.15), &FtlSettings::default());
    let (blocks, shape) = (ftl.shape().logical_blocks, ftl.shape().clone());
    let never = Fuse::after(u64::MAX, 0);
    let fill: Main = Box::new(move |io| {
        Box::pin(async move {
            for block in 0..blocks {
                write(&io, block, 2).await;
            }
            layer::good(&io, Op::Flush, None).await;
        })
    });
    let ftl = machine.run(ftl, &never, vec![fill]);
    let free = ftl.metrics().free_zones;
    drop(ftl);
    // A third of the zones can be read only, from now on.
    let lost = shape.first_data_zone()..=shape.first_data_zone() + shape.data_zones() / 3;
    let mut fault = Fault {
        when: Match::every(Trigger::Time(machine.now)),
        effect: Effect::ReadOnly,
    };
    fault.when.zones = Some(lost);
    let plan = FaultPlan {
        seed: 1,
        faults: vec![fault],
    };
    let now = machine.now;
    machine
        .drive
        .with_faults(|drive| drive.add_faults(now, plan));
    let ftl = machine.mount(Start::Mount, &FtlSettings::default());
    assert!(ftl.metrics().free_zones <= free);
    let main: Main = Box::new(move |io| {
        Box::pin(async move {
            let mut status = Status::SUCCESS;
            let mut written = 0;
            while status.is_success() && written < 4 * blocks {
                status = try_write(&io, written % blocks, 4).await;
                written += 1;
            }
            assert_eq!(status, Status::CAPACITY_EXCEEDED, "after {written} writes");
            for block in 0..blocks {
                assert_eq!(status_of_read(&io, block, 1).await, Status::SUCCESS);
            }
            layer::good(
                &io,
                Op::WriteZeroes {
                    slba: Lba(0),
                    nlb: blocks / 2,
                },
                None,
            )
            .await;
            layer::good(&io, Op::Flush, None).await;
            // Half of the blocks are enough room again.
            for round in 0..3 * blocks {
                write(&io, blocks / 2 + round % (blocks / 2), 6).await;
            }
        })
    });
    let ftl = machine.run(ftl, &never, vec![main]);
    assert_eq!(ftl.failure(), None);
}

async fn try_write(io: &zonelab_host::tasks::Io, block: u32, version: u32) -> Status {
    let op = Op::Write {
        slba: Lba(block.into()),
        nlb: 1,
    };
    let data = Buf::from(layer::bytes_of(block, version));
    let answer = io.run(Command::new(op), Some(data)).await;
    answer.expect("the device is there").status
}

async fn write(io: &zonelab_host::tasks::Io, block: u32, version: u32) {
    let op = Op::Write {
        slba: Lba(block.into()),
        nlb: 1,
    };
    layer::good(io, op, Some(Buf::from(layer::bytes_of(block, version)))).await;
}

async fn status_of_read(io: &zonelab_host::tasks::Io, block: u32, nlb: u32) -> Status {
    let op = Op::Read {
        slba: Lba(block.into()),
        nlb,
    };
    let buffer = Buf::zeroed(4096 * nlb as usize);
    let answer = io.run(Command::new(op), Some(buffer)).await;
    answer.expect("the device is there").status
}
