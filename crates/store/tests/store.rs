//! Stores in files: of other drives, in use, damaged, full; and what a drive
//! finds when it comes back.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod elements_stored;
mod promises;
mod repaired;
mod reserved;
mod synchronised;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{
    DataStore, DriveConfig, Isolation, LogConfig, MappingConfig, NamespaceConfig, NamespaceKind,
    ReclaimUnitHandles, ZrwaConfig,
};
use zonelab_ssd::contents::{Contents, ZoneRecord};
use zonelab_ssd::{Control, Drive, DriveModel, FaultTarget, profile};
use zonelab_store::{File, Medium, OpenError, Options, Store, create, open};

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("drive")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A small drive: fast, with a write buffer, descriptor extensions and areas.
fn config() -> DriveConfig {
    let mut config = profile::untimed(&profile::builtin("small-zones").unwrap().config);
    config.data = DataStore::Memory;
    config.zones.count = 16;
    config.zones.max_active = Some(6);
    config.zones.max_open = Some(6);
    config.zones.descriptor_extension_bytes = 64;
    profile::check(&config).unwrap();
    config
}

fn drive_at(scratch: &Scratch, config: &DriveConfig) -> Drive {
    let (store, found) = Store::at(&scratch.file(), config, Options::default()).unwrap();
    Drive::stored(config, &found.kept, Box::new(store)).unwrap()
}

/// Does one command to its end.
fn run(drive: &mut Drive, nsid: u32, op: Op, data: Option<Buf>) -> (Status, Option<Buf>) {
    run_command(drive, Command::on(NamespaceId(nsid), op), data)
}

fn run_command(drive: &mut Drive, command: Command, data: Option<Buf>) -> (Status, Option<Buf>) {
    drive
        .submit(drive.now(), QueueId(0), Tag(1), command, data)
        .unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        let at = drive.next_event().unwrap();
        drive.advance(at, &mut done);
    }
    let completion = done.pop().unwrap();
    (completion.status, completion.data)
}

fn filled(config: &DriveConfig, nlb: u32, with: u8) -> Buf {
    let mut data = Buf::zeroed(nlb as usize * config.lba_bytes as usize);
    data.fill(with);
    data
}

fn write(drive: &mut Drive, slba: u64, nlb: u32, with: u8) {
    let data = filled(drive.config(), nlb, with);
    let slba = Lba(slba);
    let (status, _) = run(drive, 1, Op::Write { slba, nlb }, Some(data));
    assert!(status.is_success(), "{status:?}");
}

fn read(drive: &mut Drive, nsid: u32, slba: u64, nlb: u32) -> Buf {
    let data = filled(drive.config(), nlb, 0xaa);
    let slba = Lba(slba);
    let (status, data) = run(drive, nsid, Op::Read { slba, nlb }, Some(data));
    assert!(status.is_success(), "{status:?}");
    data.unwrap()
}

#[test]
fn a_drive_comes_back_with_what_was_kept() {
    let (scratch, config) = (Scratch::new("comes-back"), config());
    let mut drive = drive_at(&scratch, &config);
    write(&mut drive, 0, 4, 0x11);
    drive.keep().unwrap();
    // Not told to anybody: it can be there or not.
    write(&mut drive, 4, 4, 0x22);
    // The process ends here.
    drop(drive);
    let (store, found) = Store::at(&scratch.file(), &config, Options::default()).unwrap();
    assert!(!found.is_new && !found.is_clean);
    assert_eq!(found.zones_with_data(), 1);
    let mut drive = Drive::stored(&config, &found.kept, Box::new(store)).unwrap();
    assert_eq!(drive.zones().state(ZoneId(0)), ZoneState::CLOSED);
    let written = drive.zones().written_lbas(ZoneId(0));
    assert!(written == 4 || written == 8, "{written}");
    assert!(read(&mut drive, 1, 0, 4).iter().all(|byte| *byte == 0x11));
    let rest = read(&mut drive, 1, 4, 4);
    let expected = if written == 8 { 0x22 } else { 0 };
    assert!(rest.iter().all(|byte| *byte == expected));
    drive.switch_off().unwrap();
    drop(drive);
    let (_, found) = Store::at(&scratch.file(), &config, Options::default()).unwrap();
    assert!(found.is_clean && found.kept.checkpoint.is_some());
}

#[test]
fn wear_and_totals_outlive_an_orderly_end() {
    let (scratch, config) = (Scratch::new("wear"), config());
    let mut drive = drive_at(&scratch, &config);
    let capacity = config.zones.capacity_lbas as u32;
    for _ in 0..3 {
        let nlb = capacity.min(64);
        write(&mut drive, 0, nlb, 1);
        let op = Op::ZoneSend {
            slba: Lba(0),
            action: zonelab_nvme::zns::ZoneSendAction::RESET,
            select_all: false,
        };
        assert!(run(&mut drive, 1, op, None).0.is_success());
    }
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
    drive.switch_off().unwrap();
    let (totals, counts) = (drive.totals(), drive.flash().erase_counts().to_vec());
    assert!(totals.resets == 3);
    drop(drive);
    let drive = drive_at(&scratch, &config);
    assert_eq!(drive.totals(), totals);
    assert_eq!(drive.flash().erase_counts(), counts);
}

#[test]
fn a_store_has_one_user() {
    let (scratch, config) = (Scratch::new("one-user"), config());
    let first = drive_at(&scratch, &config);
    let second = Store::at(&scratch.file(), &config, Options::default()).unwrap_err();
    assert!(matches!(second, OpenError::InUse), "{second}");
    drop(first);
    Store::at(&scratch.file(), &config, Options::default()).unwrap();
}

#[test]
fn what_is_no_store_is_left_alone() {
    let (scratch, config) = (Scratch::new("foreign"), config());
    for content in [&b""[..], b"something of the user", &[0; 100_000]] {
        fs::write(scratch.file(), content).unwrap();
        let error = Store::at(&scratch.file(), &config, Options::default()).unwrap_err();
        assert!(matches!(error, OpenError::Foreign), "{error}");
        assert_eq!(fs::read(scratch.file()).unwrap(), content);
    }
    fs::remove_file(scratch.file()).unwrap();
    drop(Store::at(&scratch.file(), &config, Options::default()).unwrap());
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    file.write_all_at(&[9], 8).unwrap();
    let error = Store::at(&scratch.file(), &config, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Version { found: 9 }), "{error}");
    file.write_all_at(&[2], 8).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let error = Store::at(&scratch.file(), &config, Options::default()).unwrap_err();
    assert!(error.to_string().contains("bytes instead of"), "{error}");
}

#[test]
fn another_geometry_is_refused_with_what_differs() {
    let (scratch, config) = (Scratch::new("geometry"), config());
    drop(Store::at(&scratch.file(), &config, Options::default()).unwrap());
    let before = fs::metadata(scratch.file()).unwrap().modified().unwrap();
    type Edit = fn(&mut DriveConfig);
    let edits: [(&str, Edit); 21] = [
        ("geometry.channels", |c| c.geometry.channels *= 2),
        ("geometry.ways", |c| c.geometry.ways *= 2),
        ("geometry.dies", |c| c.geometry.dies *= 2),
        ("geometry.planes", |c| c.geometry.planes *= 2),
        ("geometry.blocks_per_plane", |c| {
            c.geometry.blocks_per_plane += 1
        }),
        ("geometry.pages_per_block", |c| {
            c.geometry.pages_per_block += 1
        }),
        ("geometry.page_bytes", |c| c.geometry.page_bytes *= 2),
        ("lba_bytes", |c| c.lba_bytes = 512),
        ("zones.count", |c| c.zones.count += 1),
        ("zones.size_lbas", |c| c.zones.size_lbas += 1),
        ("zones.capacity_lbas", |c| c.zones.capacity_lbas -= 1),
        ("zones.max_active", |c| c.zones.max_active = Some(5)),
        ("zones.max_open", |c| c.zones.max_open = Some(5)),
        ("zones.channels", |c| c.zones.channels += 1),
        ("zones.ways", |c| c.zones.ways += 1),
        ("zones.stripe", |c| {
            use zonelab_ssd::config::StripeOrder;
            c.zones.stripe = match c.zones.stripe {
                StripeOrder::ChannelFirst => StripeOrder::PlaneFirst,
                StripeOrder::PlaneFirst => StripeOrder::ChannelFirst,
            };
        }),
        ("zones.descriptor_extension_bytes", |c| {
            c.zones.descriptor_extension_bytes = 0;
        }),
        ("mapping", |c| {
            let physical_zones = c.zones.count + 9;
            c.mapping = MappingConfig::Lazy { physical_zones };
        }),
        ("data.store", |c| c.data = DataStore::None),
        ("namespaces", |c| {
            let whole = NamespaceConfig::whole(&c.zones);
            c.namespaces = vec![NamespaceConfig { zones: 8, ..whole }; 2];
        }),
        ("zones.zrwa", |c| {
            c.zones.zrwa = Some(ZrwaConfig {
                size_lbas: 4,
                flush_granularity_lbas: 2,
                max_areas: None,
                explicit_flush: true,
            });
        }),
    ];
    let keys: BTreeSet<&str> = edits.iter().map(|(key, _)| *key).collect();
    for (key, _) in zonelab_ssd::stored::shape(&config) {
        assert!(keys.contains(&*key), "{key} is not tried");
    }
    for (expected, edit) in edits {
        let mut other = config.clone();
        edit(&mut other);
        let error = Store::at(&scratch.file(), &other, Options::default()).unwrap_err();
        match &error {
            OpenError::OtherDrive { key, saved, here } => {
                assert_eq!(key, expected);
                assert_ne!(saved, here);
                assert!(error.to_string().contains(saved), "{error}");
            }
            other => panic!("{expected}: {other}"),
        }
    }
    let after = fs::metadata(scratch.file()).unwrap().modified().unwrap();
    assert_eq!(before, after, "nothing is written before it is refused");
}

#[test]
fn a_change_of_times_is_no_other_drive() {
    let (scratch, config) = (Scratch::new("times"), config());
    drop(Store::at(&scratch.file(), &config, Options::default()).unwrap());
    let mut faster = config;
    faster.media.read_ns = Nanos(1);
    Store::at(&scratch.file(), &faster, Options::default()).unwrap();
}

/// Bytes in memory that are shared, and full at some time.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Those that are not all zeros.
    pages: BTreeMap<u64, Box<[u8]>>,
    /// Writes until it is full.
    left: Option<u32>,
    /// From these numbers on, writes fail now and then.
    fails: Option<u64>,
    /// What does not fail for want of space any more.
    reserved: Vec<Range<u64>>,
}

const PAGE: u64 = 4096;

impl Inner {
    /// Whether there is space for a range, which is reserved or not.
    fn take_space(&mut self, range: Range<u64>) -> io::Result<()> {
        let is_in = |of: &Range<u64>| of.start <= range.start && range.end <= of.end;
        if self.reserved.iter().any(is_in) {
            return Ok(());
        }
        match &mut self.left {
            Some(0) => return Err(io::ErrorKind::StorageFull.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        if let Some(fails) = &mut self.fails {
            *fails = fails
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            match *fails >> 33 & 7 {
                0 => return Err(io::ErrorKind::StorageFull.into()),
                1 => return Err(io::ErrorKind::Other.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Calls `f` with each page of a range, the offset in it, and the piece of it.
    fn each(
        &mut self,
        range: Range<u64>,
        makes: bool,
        mut f: impl FnMut(usize, Option<&mut [u8]>),
    ) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / PAGE + 1) * PAGE);
            if makes {
                let empty = || vec![0; PAGE as usize].into_boxed_slice();
                self.pages.entry(at / PAGE).or_insert_with(empty);
            }
            let page = self.pages.get_mut(&(at / PAGE));
            let within = (at % PAGE) as usize..(at % PAGE + end - at) as usize;
            f(
                (at - range.start) as usize,
                page.map(|page| &mut page[within]),
            );
            at = end;
        }
    }
}

impl Medium for Memory {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        out.fill(0);
        let range = at..at + out.len() as u64;
        self.0.lock().unwrap().each(range, false, |done, page| {
            if let Some(page) = page {
                out[done..done + page.len()].copy_from_slice(page);
            }
        });
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.take_space(at..at + bytes.len() as u64)?;
        inner.each(at..at + bytes.len() as u64, true, |done, page| {
            let page = page.unwrap();
            page.copy_from_slice(&bytes[done..done + page.len()]);
        });
        Ok(())
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        let whole = at.div_ceil(PAGE)..(at + len) / PAGE;
        if whole.is_empty() {
            inner.each(at..at + len, false, |_, page| {
                page.into_iter().for_each(|p| p.fill(0))
            });
            return Ok(());
        }
        inner.pages.retain(|page, _| !whole.contains(page));
        for edge in [at..whole.start * PAGE, whole.end * PAGE..at + len] {
            inner.each(edge, false, |_, page| {
                page.into_iter().for_each(|p| p.fill(0))
            });
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reserve(&mut self, at: u64, len: u64) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.take_space(at..at + len)?;
        inner.reserved.push(at..at + len);
        Ok(())
    }
}

fn drive_in(memory: &Memory, config: &DriveConfig) -> Drive {
    let (store, found) = open(memory.clone(), config).unwrap();
    Drive::stored(config, &found.kept, Box::new(store)).unwrap()
}

/// Two zones, each with a part of the namespaces, and a conventional one.
fn conventional() -> DriveConfig {
    let mut config = config();
    let whole = NamespaceConfig::whole(&config.zones);
    let zoned = NamespaceConfig { zones: 8, ..whole };
    let log = NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig::new(3)),
        zones: 8,
        max_active: None,
        max_open: None,
    };
    config.namespaces = vec![zoned, log];
    profile::check(&config).unwrap();
    config
}

#[test]
fn a_conventional_namespace_is_collected_and_comes_back() {
    for (unit_lbas, sizes) in [(1, 4), (4, 2)] {
        comes_back(&mapped_by(unit_lbas), sizes);
    }
}

/// The same drive, whose table maps so many blocks together.
fn mapped_by(unit_lbas: u32) -> DriveConfig {
    let mut config = conventional();
    if let NamespaceKind::Conventional(log) = &mut config.namespaces[1].kind {
        log.mapping_unit_lbas = unit_lbas;
    }
    profile::check(&config).unwrap();
    config
}

/// Writes so many units for each that there is.
fn comes_back(config: &DriveConfig, sizes: u64) {
    let mut memory = Memory::default();
    create(&mut memory, config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, config);
    let blocks = drive.info().namespaces[1].size_lbas;
    let NamespaceKind::Conventional(log) = config.namespaces[1].kind else {
        unreachable!("the second namespace is conventional")
    };
    let unit_lbas = u64::from(log.mapping_unit_lbas);
    let mut expected = vec![0_u8; blocks as usize];
    let mut state = 1_u64;
    // Several times its size, so that places were collected.
    for turn in 0..blocks * sizes / unit_lbas {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let block = (state >> 33) % blocks;
        let (slba, nlb) = (Lba(block), 1);
        let with = (turn % 255) as u8 + 1;
        if turn % 17 == 0 {
            run(&mut drive, 2, Op::WriteZeroes { slba, nlb }, None);
            expected[block as usize] = 0;
        } else {
            let data = filled(config, 1, with);
            run(&mut drive, 2, Op::Write { slba, nlb }, Some(data));
            expected[block as usize] = with;
        }
        drive.keep().unwrap();
    }
    assert!(
        drive.totals().collect_program_bytes > 0,
        "nothing was collected"
    );
    drop(drive);
    let mut drive = drive_in(&memory, config);
    drive.assert_invariants();
    for (block, with) in expected.iter().enumerate() {
        let data = read(&mut drive, 2, block as u64, 1);
        assert!(data.iter().all(|byte| byte == with), "block {block}");
    }
}

#[test]
fn a_conventional_namespace_knows_which_of_its_zones_have_failed() {
    let config = conventional();
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    let (slba, nlb) = (Lba(5), 1);
    let write = Op::Write { slba, nlb };
    run(&mut drive, 2, write, Some(filled(&config, 1, 9)));
    // It has as many spare zones as collection needs.
    let action = Control::FailZone {
        zone: ZoneId(8),
        to: ZoneState::READ_ONLY,
    };
    drive.control(drive.now(), &action).unwrap();
    drive.keep().unwrap();
    drop(drive);
    let mut drive = drive_in(&memory, &config);
    drive.assert_invariants();
    let health = drive.log_health(NamespaceId(2)).unwrap();
    assert_eq!((health.spare_left, health.is_read_only), (2, true));
    let (status, _) = run(&mut drive, 2, write, Some(filled(&config, 1, 1)));
    assert_eq!(status, Status::NAMESPACE_WRITE_PROTECTED);
    let data = read(&mut drive, 2, 5, 1);
    assert!(data.iter().all(|byte| *byte == 9));
}

/// A conventional namespace with three reclaim unit handles.
fn placed(isolation: Isolation) -> DriveConfig {
    let mut config = config();
    let handles = ReclaimUnitHandles {
        count: 3,
        isolation,
    };
    config.namespaces = vec![NamespaceConfig {
        kind: NamespaceKind::Conventional(LogConfig {
            handles: Some(handles),
            ..LogConfig::new(NamespaceConfig::spare_zones_min(Some(handles)))
        }),
        zones: config.zones.count,
        max_active: None,
        max_open: None,
    }];
    profile::check(&config).unwrap();
    config
}

#[test]
fn a_drive_with_initially_isolated_handles_comes_back() {
    let config = placed(Isolation::Initially);
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let blocks = config.namespaces[0].size_lbas(&config.zones);
    let mut expected = vec![0_u8; blocks as usize];
    let mut state = 1_u64;
    for round in 0..6_u8 {
        let mut drive = drive_in(&memory, &config);
        drive.assert_invariants();
        for (block, with) in expected.iter().enumerate() {
            let data = read(&mut drive, 1, block as u64, 1);
            assert!(data.iter().all(|byte| byte == with), "block {block}");
        }
        for turn in 0..blocks {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let block = (state >> 33) % blocks;
            let with = round * 40 + (turn % 40) as u8 + 1;
            let op = Op::Write {
                slba: Lba(block),
                nlb: 1,
            };
            let command = Command::on(NamespaceId(1), op).placed((turn % 3) as u16);
            let (status, _) = run_command(&mut drive, command, Some(filled(&config, 1, with)));
            assert!(status.is_success());
            expected[block as usize] = with;
            drive.keep().unwrap();
        }
        let collected = drive.totals().collect_program_bytes;
        assert!(round < 4 || collected > 0, "nothing was collected");
    }
}

#[test]
fn a_store_refuses_what_it_could_not_bring_back() {
    let config = placed(Isolation::Persistently);
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let (store, found) = open(memory.clone(), &config).unwrap();
    let refused = Drive::stored(&config, &found.kept, Box::new(store));
    let why = refused.err().map(|why| why.to_string()).unwrap_or_default();
    assert!(why.contains("namespaces.isolation"), "{why}");
}

#[test]
fn a_loss_of_power_in_the_model_is_kept_too() {
    let mut config = config();
    let profile = profile::builtin("zn540").unwrap().config;
    config.write_buffer = profile.write_buffer;
    if let Some(buffer) = &mut config.write_buffer {
        buffer.power_loss_protection = false;
    }
    if profile::check(&config).is_err() {
        config.write_buffer = None;
    }
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    for zone in 0..4 {
        write(&mut drive, zone * config.zones.size_lbas, 7, zone as u8 + 1);
    }
    drive.keep().unwrap();
    let now = drive.now();
    drive.power_cut(now, Nanos(0), 3);
    drive.keep().unwrap();
    let zones: Vec<_> = (0..4)
        .map(|zone| drive.zones().written_lbas(ZoneId(zone)))
        .collect();
    drop(drive);
    let mut drive = drive_in(&memory, &config);
    for (zone, written) in (0..4).zip(zones) {
        assert_eq!(drive.zones().written_lbas(ZoneId(zone)), written);
        let data = read(&mut drive, 1, u64::from(zone) * config.zones.size_lbas, 7);
        for (lba, block) in (0..).zip(data.chunks(config.lba_bytes as usize)) {
            let expected = if lba < written { zone as u8 + 1 } else { 0 };
            assert!(block.iter().all(|byte| *byte == expected), "{zone}, {lba}");
        }
    }
}

#[test]
fn a_byte_that_is_wrong_is_found_or_does_not_matter() {
    let config = conventional();
    let mut memory = Memory::default();
    create(&mut memory, &config, Options::default()).unwrap();
    let mut drive = drive_in(&memory, &config);
    for zone in 0..4 {
        write(&mut drive, zone * config.zones.size_lbas, 3, zone as u8 + 1);
    }
    let data = filled(&config, 2, 8);
    let (slba, nlb) = (Lba(3), 2);
    run(&mut drive, 2, Op::Write { slba, nlb }, Some(data));
    drive.switch_off().unwrap();
    drop(drive);
    let whole = memory.0.lock().unwrap().pages.clone();
    // What a store says, but the data: blocks of nothing but one byte.
    let is_data = |page: &[u8]| page[..512].iter().all(|byte| *byte == page[0]);
    let said = whole.iter().filter(|(_, page)| !is_data(page));
    let said: Vec<(u64, usize)> = said
        .flat_map(|(number, page)| {
            let said = (0..page.len()).filter(|at| page[*at] != 0);
            said.map(|at| (*number, at)).collect::<Vec<_>>()
        })
        .collect();
    // A checksum that is wrong makes its block unreadable.
    let is_it = |drive: &mut Drive, (nsid, slba, nlb): (u32, u64, u32), with: u8| {
        let data = filled(drive.config(), nlb, 0xaa);
        let slba = Lba(slba);
        let (status, data) = run(drive, nsid, Op::Read { slba, nlb }, Some(data));
        if status != Status::UNRECOVERED_READ_ERROR {
            assert!(status.is_success(), "{status:?}");
            assert!(data.unwrap().iter().all(|byte| *byte == with), "{slba:?}");
        }
    };
    let mut refused = 0;
    // All of them would take minutes.
    for (number, at) in said.iter().copied().step_by(said.len() / 200 + 1) {
        let mut pages = whole.clone();
        pages.get_mut(&number).unwrap()[at] ^= 0x10;
        let damaged = Memory::default();
        damaged.0.lock().unwrap().pages = pages;
        let Ok((store, found)) = open(damaged, &config) else {
            refused += 1;
            continue;
        };
        let Ok(mut drive) = Drive::stored(&config, &found.kept, Box::new(store)) else {
            refused += 1;
            continue;
        };
        for zone in 0..4 {
            let written = drive.zones().written_lbas(ZoneId(zone));
            assert!(written == 3, "byte {at}: zone {zone} has {written}");
            is_it(
                &mut drive,
                (1, u64::from(zone) * config.zones.size_lbas, 3),
                zone as u8 + 1,
            );
        }
        is_it(&mut drive, (2, 3, 2), 8);
    }
    assert!(refused > 0);
}

#[test]
fn holes_read_as_zeros_and_take_no_space() {
    let (scratch, config) = (Scratch::new("holes"), config());
    let (mut store, _) = Store::at(&scratch.file(), &config, Options::default()).unwrap();
    store.begin();
    let block = config.lba_bytes as usize;
    store.write(ZoneId(3), 8192, &vec![7; 17 * block]).unwrap();
    let end = 8192 + 17 * block;
    let mut out = vec![1; end + 3 * block];
    store.read(ZoneId(3), 0, &mut out).unwrap();
    assert!(out[..8192].iter().all(|byte| *byte == 0));
    assert!(out[8192..end].iter().all(|byte| *byte == 7));
    assert!(out[end..].iter().all(|byte| *byte == 0));
    let hole = 8192 + block..8192 + 3 * block;
    store.discard(ZoneId(3), hole.start as u64..hole.end as u64);
    out[hole].fill(0);
    let mut again = out.clone();
    store.read(ZoneId(3), 0, &mut again).unwrap();
    assert_eq!(again, out);
    store.keep_zone(ZoneId(3), &ZoneRecord::EMPTY);
    store.clear(ZoneId(3));
    store.read(ZoneId(3), 0, &mut out).unwrap();
    assert!(out.iter().all(|byte| *byte == 0));
    assert_eq!(store.failure(), None);
    let mut medium = File::lock(
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(scratch.0.join("other"))
            .unwrap(),
    )
    .unwrap();
    medium.write(100, &[1; 10_000]).unwrap();
    medium.zero(50, 5000).unwrap();
    let mut out = [9; 10_200];
    medium.read(0, &mut out).unwrap();
    let expected = |at: usize| u8::from((5050..10_100).contains(&at));
    assert!((0..out.len()).all(|at| out[at] == expected(at)));
}
