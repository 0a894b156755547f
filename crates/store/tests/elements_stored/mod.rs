//! Drives whose zones consist of storage elements, killed and ended in order.

use std::collections::BTreeMap;

use zonelab_device::{Lba, Nanos, Op, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{DriveConfig, FillExtent, FinishConfig, MappingConfig};
use zonelab_ssd::mapping::elements::ElementInfo;
use zonelab_ssd::{Drive, DriveModel, profile};
use zonelab_store::{Options, create};

use super::{Memory, config, drive_in, filled, read, run};

/// Blocks of a line of elements: 8 planes, 2 rows of blocks of 32 pages of 4 blocks.
const LINE: u64 = 8 * 2 * 32 * 4;

/// 16 zones of 8 rows of blocks in 8 groups, with an element-wise finish; flash for
/// `physical_zones`.
fn with_elements(mapping: fn(u32) -> MappingConfig, physical_zones: u32) -> DriveConfig {
    let mut config = config();
    config.geometry.pages_per_block = 32;
    config.mapping = mapping(physical_zones);
    config.allocation.thin = physical_zones < config.zones.count;
    config.finish = FinishConfig::Fill {
        granularity_bytes: 256 << 10,
        pause_ns: Nanos::ZERO,
        yield_ns: None,
        buffered: false,
        takes_core: false,
        extent: FillExtent::Elements,
    };
    profile::check(&config).unwrap();
    config
}

fn chunks(physical_zones: u32) -> MappingConfig {
    MappingConfig::Chunk {
        chunk_blocks: 2,
        physical_zones,
    }
}

fn stripes(physical_zones: u32) -> MappingConfig {
    MappingConfig::Stripe { physical_zones }
}

/// Numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

fn settle(drive: &mut Drive) {
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
}

fn elements(drive: &Drive) -> Vec<ElementInfo> {
    drive.flash().elements().unwrap().all().collect()
}

fn owned(drive: &Drive) -> BTreeMap<u32, usize> {
    let mut owned = BTreeMap::new();
    for zone in elements(drive).iter().filter_map(|of| of.zone) {
        *owned.entry(zone.0).or_default() += 1;
    }
    owned
}

/// What the host knows of a zone: what it wrote where.
type Written = BTreeMap<u64, u8>;

/// One command for a zone.
fn step(drive: &mut Drive, numbers: &mut Numbers, zones: &mut [Written]) {
    let size = drive.config().zones.size_lbas;
    let capacity = drive.config().zones.capacity_lbas;
    let zone = numbers.below(zones.len() as u64);
    let (slba, id) = (Lba(zone * size), ZoneId(zone as u32));
    let before = drive.zones().host_lbas(id);
    let send = |action| Op::ZoneSend {
        slba,
        action,
        select_all: false,
    };
    let written = &mut zones[zone as usize];
    match numbers.below(8) {
        0 | 1 => {
            let with = 1 + numbers.below(250) as u8;
            let data = filled(drive.config(), 1, with);
            let slba = Lba(slba.0 + before);
            let (status, _) = run(drive, 1, Op::Write { slba, nlb: 1 }, Some(data));
            if status.is_success() {
                written.insert(before, with);
            }
        }
        2..=4 => {
            let most = 1 + numbers.below(2 * LINE);
            let (slba, nlb) = (Lba(slba.0 + before), most.min(capacity - before) as u32);
            run(drive, 1, Op::WriteZeroes { slba, nlb }, None);
        }
        5 => _ = run(drive, 1, send(ZoneSendAction::FINISH), None),
        6 => _ = run(drive, 1, send(ZoneSendAction::OPEN), None),
        _ => {
            let (status, _) = run(drive, 1, send(ZoneSendAction::RESET), None);
            assert_eq!(status, Status::SUCCESS);
            written.clear();
        }
    }
    drive.keep().unwrap();
}

/// The data is there; every zone that has any flash has as many elements as before.
fn check(drive: &mut Drive, zones: &[Written], before: &BTreeMap<u32, usize>) {
    let size = drive.config().zones.size_lbas;
    let of_zone = elements(drive).len() as u64 / 8;
    let owned = owned(drive);
    for (zone, written) in (0..).zip(zones) {
        let state = drive.zones().state(ZoneId(zone));
        let has = owned.get(&zone).copied().unwrap_or(0);
        let had = before.get(&zone).copied().unwrap_or(0);
        // What was opened, and nothing written to, is empty.
        let expected = if state == ZoneState::EMPTY { 0 } else { had };
        assert_eq!(has, expected, "elements of zone {zone} in {state}");
        assert!(has as u64 <= of_zone);
        for (offset, with) in written {
            let data = read(drive, 1, u64::from(zone) * size + offset, 1);
            assert!(data.iter().all(|byte| byte == with), "{offset} of {zone}");
        }
    }
}

/// Kills a drive or ends it in order again and again. With less flash than zones,
/// what comes back has flash for all that its zones say.
#[test]
fn drives_with_elements_come_back() {
    let mut refused = 0;
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let mapping = [chunks, stripes][seed as usize % 2];
        // Eight groups of two zones.
        let physical_zones = [16, 24, 8][seed as usize / 2 % 3];
        let mut config = with_elements(mapping, physical_zones);
        config.zones.max_active = None;
        config.zones.max_open = None;
        if seed % 4 == 0 {
            config.media.planes = zonelab_ssd::config::PlaneMode::Independent;
            config.allocation.depth_weight = Some(numbers.below(3) as u32);
        }
        profile::check(&config).unwrap();
        let mut memory = Memory::default();
        create(&mut memory, &config, Options::default()).unwrap();
        let mut zones = vec![Written::new(); config.zones.count as usize];
        for _ in 0..6 {
            let mut drive = drive_in(&memory, &config);
            for _ in 0..numbers.below(40) {
                step(&mut drive, &mut numbers, &mut zones);
            }
            settle(&mut drive);
            refused += u32::from(drive.zones_left() == 0);
            let is_orderly = numbers.below(2) == 0;
            let (owned, infos) = (owned(&drive), elements(&drive));
            if is_orderly {
                drive.switch_off().unwrap();
            }
            drop(drive);
            let mut drive = drive_in(&memory, &config);
            check(&mut drive, &zones, &owned);
            let is_same = |(now, then): (&ElementInfo, &ElementInfo)| {
                let zone = then.zone.map(|zone| drive.zones().state(zone));
                now == then || zone == Some(ZoneState::EMPTY)
            };
            let all = elements(&drive);
            let are_same = all.iter().zip(&infos).all(is_same);
            assert!(!is_orderly || are_same, "seed {seed}: {infos:?} {all:?}");
            drop(drive);
        }
    }
    assert!(refused > 5, "{refused} were short of flash");
}

/// The zone of a checkpoint was finished; when the drive is killed, another has
/// been begun in its place, as far as the first. It can be written to its end.
#[test]
fn an_active_zone_has_all_of_its_flash_whatever_the_checkpoint_says() {
    let config = with_elements(chunks, 16);
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let send = |action| Op::ZoneSend {
        slba: Lba(0),
        action,
        select_all: false,
    };
    let zeroes = |slba, nlb| Op::WriteZeroes {
        slba: Lba(slba),
        nlb: nlb as u32,
    };
    let mut drive = drive_in(&memory, &config);
    run(&mut drive, 1, zeroes(0, LINE), None);
    run(&mut drive, 1, send(ZoneSendAction::FINISH), None);
    settle(&mut drive);
    assert_eq!(owned(&drive)[&0], 8);
    drive.switch_off().unwrap();
    drop(drive);
    let mut drive = drive_in(&memory, &config);
    run(&mut drive, 1, send(ZoneSendAction::RESET), None);
    run(&mut drive, 1, zeroes(0, LINE), None);
    drive.keep().unwrap();
    drop(drive);
    let mut drive = drive_in(&memory, &config);
    assert_eq!(drive.zones().state(ZoneId(0)), ZoneState::CLOSED);
    assert_eq!(owned(&drive)[&0], 32);
    let rest = config.zones.capacity_lbas - LINE;
    let (status, _) = run(&mut drive, 1, zeroes(LINE, rest), None);
    assert_eq!(status, Status::SUCCESS);
    settle(&mut drive);
    let valid = elements(&drive)
        .iter()
        .filter(|of| of.availability as u8 == 2)
        .count();
    assert_eq!(valid, 32);
}
