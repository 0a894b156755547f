//! Checking what is on a drive: sound after every loss of power, and each kind of
//! damage is found where it is.

use crate::support::layer;
use std::cell::RefCell;
use std::rc::Rc;

use crate::support::layer::{Fuse, Machine, Main, Shadow, seeds::each_seed};
use zonelab_device::NamespaceId;
use zonelab_ftl::check::{Finding, Report, check};
use zonelab_ftl::durable::look::{Look, Purpose};
use zonelab_ftl::format::footer;
use zonelab_ftl::media::ZoneUse;
use zonelab_ftl::{
    DataZone, Durable, FtlError, FtlSettings, LogicalBlock, MapChange, Media, Shape, Start,
};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::HostCosts;

const NSID: NamespaceId = NamespaceId::FIRST;

/// Runs a program on the drive itself.
pub(crate) fn ask<T, F>(machine: &mut Machine, program: impl FnOnce(Io) -> F) -> T
where
    F: Future<Output = T> + 'static,
    T: 'static,
{
    let mut drive = machine.drive.clone();
    let queue = drive.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
    let mut tasks = Tasks::new(drive.info(), TasksConfig::default(), program);
    let clock = VirtualClock::starting_at(machine.now);
    let mut reactor = Reactor::new(clock, &mut drive, StopSignal::default());
    reactor.add(&mut tasks, queue, CoreId(0), machine.now);
    machine.now = reactor.run().at;
    tasks.into_result().expect("the program ends")
}

pub(crate) fn report(machine: &mut Machine) -> Report {
    let report = ask(machine, async |io| check(&io, NSID).await);
    report.expect("it is formatted")
}

pub(crate) fn look(machine: &mut Machine) -> Look {
    let look = ask(machine, async |io| Durable::look(&io, NSID).await);
    look.expect("it is sound")
}

/// A drive on which random blocks were written until zones were closed, and collected.
fn used() -> Machine {
    let mut rng = Rng::new(3, 0);
    let mut machine = Machine::new(&layer::drive(24, 64));
    let mut ftl = machine.mount(layer::format(0.15), &FtlSettings::default());
    let blocks = ftl.shape().logical_blocks;
    let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
    let fuse = Fuse::after(u64::MAX, 0);
    while ftl.metrics().collected_zones == 0 {
        let programs = layer::clients(&shadow, blocks, 1, 4, 300, &mut rng);
        ftl = machine.run(ftl, &fuse, programs);
    }
    machine
}

#[test]
fn what_a_loss_of_power_leaves_is_sound() {
    let test = "--test check what_a_loss_of_power_leaves_is_sound";
    each_seed(test, 60, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = layer::any_drive(&mut rng);
        let mut machine = Machine::new(&config);
        let settings = machine.any_settings(&mut rng);
        let ftl = machine.mount(layer::format(0.15), &settings);
        let blocks = ftl.shape().logical_blocks;
        drop(ftl);
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        for _ in 0..4 {
            let ftl = machine.mount(Start::Mount, &settings);
            let read = Rc::clone(&shadow);
            let read: Main = Box::new(|io| Box::pin(layer::check_all(io, read)));
            let ftl = machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![read]);
            let fuse = Fuse::after(rng.below(6000), rng.next_u64());
            let programs = layer::clients(&shadow, blocks, 1, 4, 300, &mut rng);
            machine.run(ftl, &fuse, programs);
            if !fuse.is_lost() {
                fuse.lose(&machine.drive, machine.now);
                machine.now = fuse.ready();
            }
            let report = report(&mut machine);
            assert_eq!(report.findings, []);
            let look = look(&mut machine);
            assert_eq!(report.facts.as_ref(), Some(&look.facts));
            let valid: u32 = look.valid_blocks().iter().sum();
            let extents: u32 = look.extents().map(|extent| extent.count).sum();
            assert_eq!([report.mapped_blocks, valid], [extents; 2]);
        }
    });
}

#[test]
fn a_look_writes_nothing_and_sees_what_a_mount_sees() {
    let mut machine = used();
    let first = look(&mut machine);
    assert_eq!(report(&mut machine).findings, []);
    let second = look(&mut machine);
    assert_eq!(first.reported, second.reported);
    assert_eq!(first.facts, second.facts);
    let opened = ask(&mut machine, async |io| {
        Durable::open(&io, NSID)
            .await
            .map(|(durable, map)| (durable.facts(), map))
    });
    let (facts, map) = opened.expect("it is sound");
    assert_eq!(facts.read, first.facts.read);
    assert_eq!(facts.epoch, first.facts.epoch + 1);
    for block in (0..map.blocks()).map(LogicalBlock) {
        assert_eq!(map.get(block), first.map.get(block), "{block:?}");
    }
    let records = first.journal.iter().map(|record| record.sequence);
    let numbers = first.facts.journal_start..first.facts.journal_next;
    assert!(records.eq(numbers));
}

/// A data zone that is full, has a footer, and blocks of the map.
fn closed_zone(look: &Look) -> (DataZone, u32, u32) {
    let valid = look.valid_blocks();
    let mut zones = (0..look.shape.data_zones()).map(DataZone);
    let zone = zones.find(|zone| {
        let reported = &look.reported[look.shape.zone_of(*zone) as usize];
        reported.state == ZoneUse::Full && valid[zone.0 as usize] > 1
    });
    let zone = zone.expect("some zones are closed");
    (zone, look.shape.zone_of(zone), valid[zone.0 as usize])
}

/// Writes a zone again, with what `change` makes of its bytes.
pub(crate) async fn rewrite(
    io: Io,
    shape: Shape,
    zone: u32,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<(), FtlError> {
    let media = Media::new(&io, Rc::new(shape), true);
    let blocks = media.report_of(zone).await?.written;
    let mut bytes = media.read(zone, 0, blocks).await?;
    change(&mut bytes);
    media.reset(zone).await?;
    media.write(zone, 0, blocks, &bytes).await
}

#[test]
fn a_footer_that_is_damaged_or_wrong_is_found() {
    let mut machine = used();
    let before = look(&mut machine);
    let shape = before.shape.clone();
    let (zone, on_drive, _) = closed_zone(&before);
    let (at, lba) = (
        shape.bytes(shape.data_blocks()),
        shape.lba(on_drive, shape.data_blocks()).0,
    );
    let of = shape.clone();
    let flipped = ask(&mut machine, async move |io| {
        rewrite(io, of, on_drive, |bytes| bytes[at + 100] ^= 4).await
    });
    flipped.expect("the drive takes it");
    let damaged = Finding::Footer {
        zone: on_drive,
        lba,
    };
    assert_eq!(report(&mut machine).findings, [damaged]);
    // A whole footer, of which the first block that counts says another one.
    let blocks = (0..shape.logical_blocks).map(LogicalBlock);
    let here = blocks.filter_map(|block| {
        let place = shape.place_of(before.map.get(block)?);
        (place.0 == zone).then_some((place.1, block.0))
    });
    let mut words = vec![u32::MAX; shape.data_blocks() as usize];
    here.for_each(|(offset, block)| words[offset as usize] = block);
    let first = words.iter().position(|word| *word != u32::MAX);
    let offset = first.expect("it holds blocks");
    let logical = words[offset];
    words[offset] = logical ^ 1;
    let sealed = footer::encode(&shape, before.facts.uuid, on_drive, 0, &words);
    let of = shape.clone();
    let replaced = ask(&mut machine, async move |io| {
        rewrite(io, of, on_drive, |bytes| {
            bytes[at..at + sealed.len()].copy_from_slice(&sealed);
        })
        .await
    });
    replaced.expect("the drive takes it");
    let differs = Finding::FooterDiffers {
        zone: on_drive,
        lba: shape.lba(on_drive, offset as u32).0,
        logical,
        said: Some(logical ^ 1),
        blocks: 1,
    };
    assert_eq!(report(&mut machine).findings, [differs]);
}

#[test]
fn blocks_that_are_gone_are_counted_by_zones() {
    let mut machine = used();
    let before = look(&mut machine);
    let (_, zone, valid) = closed_zone(&before);
    let shape = before.shape.clone();
    let reset = ask(&mut machine, async move |io| {
        Media::new(&io, Rc::new(shape), true).reset(zone).await
    });
    reset.expect("it can be reset");
    let report = report(&mut machine);
    let [
        Finding::NotThere {
            zone: found,
            blocks,
            what,
            ..
        },
    ] = report.findings[..]
    else {
        panic!("{report:?}");
    };
    assert_eq!((found, blocks), (zone, valid));
    assert_eq!(what, "nothing is written here");
    assert_eq!(report.findings[0].place().map(|(zone, _)| zone), Some(zone));
}

#[test]
fn two_blocks_at_one_place_are_found() {
    let mut machine = used();
    let before = look(&mut machine);
    let extent = before.extents().find(|extent| extent.count > 1);
    let extent = extent.expect("some blocks were written together");
    let (to, first) = (extent.to, extent.first);
    let written = ask(&mut machine, async move |io| {
        let (durable, _) = Durable::open(&io, NSID).await?;
        let first = LogicalBlock(first.0 + 1);
        durable
            .append(&[MapChange {
                first,
                count: 1,
                to,
            }])
            .await
    });
    written.expect("the journal takes it");
    let report = report(&mut machine);
    let shared = report.findings.iter().find_map(|finding| match finding {
        Finding::Shared {
            first,
            second,
            blocks,
            ..
        } => Some((*first, *second, *blocks)),
        _ => None,
    });
    assert_eq!(shared, Some((first.0, first.0 + 1, 1)), "{report:?}");
}

#[test]
fn damaged_metadata_are_named() {
    for (purpose, flips) in [("image", true), ("journal", false)] {
        let mut machine = used();
        // What a mount has seen must be there at the next one.
        machine.mount(Start::Mount, &FtlSettings::default());
        let before = look(&mut machine);
        let zones = (0..).zip(&before.reported);
        let mut written = zones.filter(|(_, zone)| zone.written > 0);
        let zone = written.find_map(|(zone, _)| {
            let counts = match Purpose::of(&before.shape, zone) {
                Purpose::Image(slot) => flips && slot == before.facts.image_slot,
                Purpose::Journal => !flips,
                Purpose::Anchors | Purpose::Data(_) => false,
            };
            counts.then_some(zone)
        });
        let zone = zone.expect(purpose);
        let shape = before.shape.clone();
        let damaged = ask(&mut machine, async move |io| match flips {
            true => rewrite(io, shape, zone, |bytes| bytes[70] ^= 1).await,
            false => Media::new(&io, Rc::new(shape), true).reset(zone).await,
        });
        damaged.expect("the drive takes it");
        let report = report(&mut machine);
        assert!(report.facts.is_none(), "{report:?}");
        let [finding @ Finding::Metadata(_)] = &report.findings[..] else {
            panic!("{purpose}: {report:?}");
        };
        let (found, _) = finding.place().expect(purpose);
        let of = |zone| Purpose::of(&before.shape, zone).name();
        assert_eq!(of(found), of(zone), "{finding}");
    }
}

#[test]
fn a_drive_that_is_not_formatted_is_refused() {
    let mut machine = Machine::new(&layer::drive(24, 64));
    let checked = ask(&mut machine, async |io| check(&io, NSID).await);
    assert_eq!(checked, Err(FtlError::NotFormatted));
    let looked = ask(&mut machine, async |io| Durable::look(&io, NSID).await);
    assert_eq!(looked.err(), Some(FtlError::NotFormatted));
}
