//! The machine ends at any moment: what POSIX allows to be left of a file then.
//!
//! A medium logs every write, punch and synchronisation of the store. A state
//! after a power cut is drawn of it: everything up to the last synchronisation
//! that completed, and of what came later any sectors (512 bytes or 4 KiB) of
//! any writes and punches. It is opened by the real code and compared with what a
//! host knows: which commands a completed Flush covers. As those must be there,
//! and nothing but what was written to a block, or zeros where there may be
//! nothing yet, is ever read, a block is right if it holds what it held at the
//! last completed Flush or got since.
//!
//! `ZONELAB_POWER_CUTS=N` draws N states instead of 10,000, and
//! `ZONELAB_POWER_CUT_SEED=SEED` runs one history.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::sync::{Arc, Mutex};

use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, FillExtent, FinishConfig, LogConfig, MappingConfig,
    NamespaceConfig, NamespaceKind, Placement, WriteBufferConfig, ZrwaConfig,
};
use zonelab_ssd::{Drive, DriveModel, profile};
use zonelab_store::{Options, create, open};

use zonelab_oracle::disk::{Disk, Numbers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zoned,
    Conventional,
    /// The same, mapped by several blocks.
    Units,
    RandomWriteAreas,
    Thin,
}

impl Kind {
    fn has_log(self) -> bool {
        matches!(self, Self::Conventional | Self::Units)
    }
}

fn config(kind: Kind) -> DriveConfig {
    let mut config = profile::untimed(&profile::builtin("small-zones").unwrap().config);
    config.data = DataStore::Memory;
    config.zones.count = 16;
    config.zones.max_active = Some(6);
    config.zones.max_open = Some(6);
    match kind {
        // Longer than a sector: a slot can be torn.
        Kind::Zoned => config.zones.descriptor_extension_bytes = 1024,
        Kind::Conventional | Kind::Units => {
            let whole = NamespaceConfig::whole(&config.zones);
            let zoned = NamespaceConfig { zones: 9, ..whole };
            let log = NamespaceConfig {
                kind: NamespaceKind::Conventional(LogConfig {
                    mapping_unit_lbas: if kind == Kind::Units { 4 } else { 1 },
                    ..LogConfig::new(3)
                }),
                zones: 7,
                max_active: None,
                max_open: None,
            };
            config.namespaces = vec![zoned, log];
            // Small, so that they are collected.
            config.zones.capacity_lbas = 32;
        }
        Kind::RandomWriteAreas => {
            config.write_buffer = Some(WriteBufferConfig {
                size_bytes: 4 << 20,
                power_loss_protection: true,
                release: BufferRelease::Program,
                drain_bytes_per_s: None,
                turn_bytes: None,
                placement: Placement::LeastWork,
            });
            config.zones.zrwa = Some(ZrwaConfig {
                size_lbas: 16,
                flush_granularity_lbas: 4,
                max_areas: None,
                explicit_flush: true,
            });
        }
        Kind::Thin => {
            config.geometry.pages_per_block = 32;
            config.mapping = MappingConfig::Chunk {
                chunk_blocks: 2,
                physical_zones: 8,
            };
            config.allocation.thin = true;
            config.zones.max_active = None;
            config.zones.max_open = None;
            config.finish = FinishConfig::Fill {
                granularity_bytes: 256 << 10,
                pause_ns: Nanos::ZERO,
                yield_ns: None,
                buffered: false,
                takes_core: false,
                extent: FillExtent::Elements,
            };
        }
    }
    profile::check(&config).unwrap();
    config
}

/// What a host knows of a zone: its write pointer if it is not failed, and blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    state: ZoneState,
    host_lbas: u64,
    blocks: Vec<u32>,
}

/// All that a host knows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    zones: Vec<Zone>,
    blocks: Vec<u32>,
}

struct Host {
    drive: Drive,
    disk: Disk,
    kind: Kind,
    known: Known,
    /// What was known when steps of the medium were done: the first covers the
    /// last Flush that was told.
    history: Vec<(u64, Known)>,
    /// Steps when a Flush was told, and the states before which it covers.
    flushes: Vec<(u64, usize)>,
    next_stamp: u32,
}

fn drive_on(disk: &Disk, config: &DriveConfig) -> (Drive, bool) {
    let (store, found) = open(disk.clone(), config).unwrap_or_else(|error| panic!("{error}"));
    let drive = Drive::stored(config, &found.kept, Box::new(store));
    (
        drive.unwrap_or_else(|error| panic!("{error}")),
        found.is_rolled_back,
    )
}

fn run(drive: &mut Drive, nsid: u32, op: Op, data: Option<Buf>) -> (Status, Option<Buf>) {
    let nsid = NamespaceId(nsid);
    let command = Command::on(nsid, op);
    drive
        .submit(drive.now(), QueueId(0), Tag(1), command, data)
        .unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        let at = drive.next_event().unwrap();
        drive.advance(at, &mut done);
    }
    drive.keep().unwrap();
    let completion = done.pop().unwrap();
    (completion.status, completion.data)
}

/// A block that says which write it is of and where it is.
fn stamped(config: &DriveConfig, stamp: u32, first: u64, nlb: u32) -> Buf {
    let mut data = Buf::zeroed(nlb as usize * config.lba_bytes as usize);
    for (lba, block) in (first..).zip(data.chunks_mut(config.lba_bytes as usize)) {
        for piece in block.chunks_mut(8) {
            piece[..4].copy_from_slice(&stamp.to_le_bytes());
            piece[4..].copy_from_slice(&(lba as u32).to_le_bytes());
        }
    }
    data
}

fn stamp_of(block: &[u8], lba: u64) -> u32 {
    let stamp = u32::from_le_bytes(block[..4].try_into().unwrap());
    let mut piece = [0; 8];
    if stamp > 0 {
        piece[..4].copy_from_slice(&stamp.to_le_bytes());
        piece[4..].copy_from_slice(&(lba as u32).to_le_bytes());
    }
    assert!(
        block.chunks(8).all(|of| of == piece),
        "block {lba} of {stamp} is torn"
    );
    stamp
}

fn read(drive: &mut Drive, nsid: u32, slba: u64, nlb: u32, within: u64) -> Vec<u32> {
    // No more than a command may transfer.
    if nlb > 8 {
        let mut first = read(drive, nsid, slba, 8, within);
        first.extend(read(drive, nsid, slba + 8, nlb - 8, within + 8));
        return first;
    }
    let lba_bytes = drive.config().lba_bytes as usize;
    let data = Buf::zeroed(nlb as usize * lba_bytes);
    let slba = Lba(slba);
    let (status, data) = run(drive, nsid, Op::Read { slba, nlb }, Some(data));
    assert!(status.is_success(), "reading {slba:?}: {status:?}");
    let data = data.unwrap();
    let blocks = (within..).zip(data.chunks(lba_bytes));
    blocks.map(|(lba, block)| stamp_of(block, lba)).collect()
}

/// Blocks of a zone that are looked at: histories write no further, mostly.
const SEEN_LBAS: u64 = 48;

fn zoned(config: &DriveConfig) -> u32 {
    config.namespaces()[0].zones
}

/// What is on the drive.
fn look(drive: &mut Drive) -> Known {
    let config = drive.config().clone();
    let size = config.zones.size_lbas;
    let zones = (0..zoned(&config)).map(|zone| {
        let state = drive.zones().state(ZoneId(zone));
        let host_lbas = drive.zones().host_lbas(ZoneId(zone));
        let start = u64::from(zone) * size;
        let blocks = read(drive, 1, start, SEEN_LBAS.min(size) as u32, 0);
        Zone {
            state,
            host_lbas,
            blocks,
        }
    });
    let zones = zones.collect();
    let info = drive.info().namespaces.clone();
    let blocks = match info.get(1) {
        Some(of) => read(drive, 2, 0, of.size_lbas as u32, 0),
        None => Vec::new(),
    };
    Known { zones, blocks }
}

const fn settled(state: ZoneState) -> ZoneState {
    match state {
        ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED => ZoneState::CLOSED,
        state => state,
    }
}

impl Host {
    fn new(kind: Kind, disk: Disk, config: &DriveConfig, next_stamp: u32) -> Self {
        let (mut drive, _) = drive_on(&disk, config);
        drive.keep().unwrap();
        let known = look(&mut drive);
        let steps = disk.inner().steps;
        Self {
            drive,
            disk,
            kind,
            history: vec![(steps, known.clone())],
            flushes: vec![(steps, 0)],
            known,
            next_stamp,
        }
    }

    fn steps(&self) -> u64 {
        self.disk.inner().steps
    }

    /// A command, and what is known after it.
    fn command(&mut self, numbers: &mut Numbers) {
        if numbers.one_in(12) {
            let status = run(&mut self.drive, 1, Op::Flush, None).0;
            assert!(status.is_success());
            let covered = self.history.len() - 1;
            self.flushes.push((self.steps(), covered));
            return;
        }
        // It may be there before it is told.
        let before = self.steps();
        if self.kind.has_log() && !numbers.one_in(4) {
            self.conventional(numbers);
        } else {
            self.zoned(numbers);
        }
        self.history.push((before, self.known.clone()));
    }

    fn conventional(&mut self, numbers: &mut Numbers) {
        let blocks = self.known.blocks.len() as u64;
        let first = numbers.below(blocks);
        let nlb = (1 + numbers.below(6)).min(blocks - first) as u32;
        let slba = Lba(first);
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let (op, data, stamp) = if numbers.one_in(8) {
            (Op::WriteZeroes { slba, nlb }, None, 0)
        } else {
            let data = stamped(self.drive.config(), stamp, first, nlb);
            (Op::Write { slba, nlb }, Some(data), stamp)
        };
        let (status, _) = run(&mut self.drive, 2, op, data);
        assert!(status.is_success(), "{status:?}");
        self.known.blocks[first as usize..][..nlb as usize].fill(stamp);
    }

    fn zoned(&mut self, numbers: &mut Numbers) {
        let config = self.drive.config().clone();
        let zone = numbers.below(u64::from(zoned(&config)).min(5)) as u32;
        let slba = u64::from(zone) * config.zones.size_lbas;
        let send = |action| Op::ZoneSend {
            slba: Lba(slba),
            action,
            select_all: false,
        };
        let pointer = self.drive.zones().host_lbas(ZoneId(zone));
        let nlb = 1 + numbers.below(5) as u32;
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let mut wrote = None;
        let (op, data) = match numbers.below(12) {
            0 => (send(ZoneSendAction::FINISH), None),
            1 => (send(ZoneSendAction::RESET), None),
            2 if self.kind == Kind::RandomWriteAreas => {
                let (slba, action) = (Lba(slba), ZoneSendAction::OPEN);
                (Op::ZrwaSend { slba, action }, None)
            }
            2 if self.kind == Kind::Zoned && numbers.one_in(2) => {
                let mut data = Buf::zeroed(1024);
                data.fill(stamp as u8 | 1);
                (send(ZoneSendAction::SET_DESCRIPTOR_EXTENSION), Some(data))
            }
            3 => {
                let at = self.place(numbers, zone, pointer);
                wrote = Some((at, 0));
                let slba = Lba(slba + at);
                (Op::WriteZeroes { slba, nlb }, None)
            }
            _ => {
                let at = self.place(numbers, zone, pointer);
                wrote = Some((at, stamp));
                let data = stamped(&config, stamp, at, nlb);
                let slba = Lba(slba + at);
                (Op::Write { slba, nlb }, Some(data))
            }
        };
        let (status, _) = run(&mut self.drive, 1, op, data);
        let of = &mut self.known.zones[zone as usize];
        if let (true, Some((at, stamp))) = (status.is_success(), wrote) {
            let range = at.min(SEEN_LBAS) as usize..(at + u64::from(nlb)).min(SEEN_LBAS) as usize;
            of.blocks[range].fill(stamp);
        }
        let is_reset = matches!(
            op,
            Op::ZoneSend {
                action: ZoneSendAction::RESET,
                ..
            }
        );
        if status.is_success() && is_reset {
            of.blocks.fill(0);
        }
        for (index, of) in (0..).map(ZoneId).zip(&mut self.known.zones) {
            of.state = self.drive.zones().state(index);
            of.host_lbas = self.drive.zones().host_lbas(index);
        }
    }

    /// Where a write goes: to the write pointer, or anywhere in a random write area.
    fn place(&self, numbers: &mut Numbers, zone: u32, pointer: u64) -> u64 {
        match self.drive.zones().has_zrwa(ZoneId(zone)) {
            true => pointer + numbers.below(14),
            false => pointer,
        }
    }

    /// Panics if what was found cannot be left after so many steps.
    fn check(&self, steps: u64, found: &Known) {
        let told = self.flushes.iter().rfind(|(at, _)| *at <= steps).unwrap().1;
        let begun = self.history.iter().rposition(|(at, _)| *at < steps.max(1));
        let possible = &self.history[told..=begun.unwrap_or(0).max(told)];
        for (index, of) in found.zones.iter().enumerate() {
            let is_it = |(_, known): &(u64, Known)| {
                let known = &known.zones[index];
                let is_empty = of.state == ZoneState::EMPTY && known.host_lbas == 0;
                let state = settled(known.state) == of.state || is_empty;
                state && known.host_lbas == of.host_lbas
            };
            assert!(
                possible.iter().any(is_it),
                "zone {index} is {:?} with {} blocks; possible: {:?}",
                of.state,
                of.host_lbas,
                possible
                    .iter()
                    .map(|(_, of)| (of.zones[index].state, of.zones[index].host_lbas))
                    .collect::<Vec<_>>()
            );
            for (lba, stamp) in of.blocks.iter().enumerate() {
                let mut values = possible.iter().map(|(_, of)| of.zones[index].blocks[lba]);
                assert!(
                    values.any(|value| value == *stamp),
                    "block {lba} of zone {index} is of {stamp}"
                );
            }
            // Without areas, a zone is one of the states as a whole.
            if self.kind != Kind::RandomWriteAreas {
                let is_whole =
                    |known: &(u64, Known)| is_it(known) && known.1.zones[index].blocks == of.blocks;
                assert!(possible.iter().any(is_whole), "zone {index} is a mixture");
            }
        }
        for (block, stamp) in found.blocks.iter().enumerate() {
            let mut values = possible.iter().map(|(_, of)| of.blocks[block]);
            assert!(
                values.any(|value| value == *stamp),
                "block {block} is of {stamp}"
            );
        }
    }
}

/// States that are drawn of one history.
const STATES: u64 = 25;

/// One history, states of it, and another history on one of them. Returns how
/// many states were looked at.
fn history(kind: Kind, seed: u64) -> u64 {
    let mut numbers = Numbers(seed);
    let config = config(kind);
    let mut disk = Disk::default();
    let options = Options {
        has_checksums: !numbers.one_in(4),
    };
    create(&mut disk, &config, options).unwrap();
    let (mut count, mut stamp) = (0, 1);
    for session in 1..=2_u8 {
        let start = disk.inner().now.clone();
        let disk_now = Disk::of(start, session * 2);
        let commands = 40 + numbers.below(120);
        {
            let mut inner = disk_now.inner();
            inner.draw = numbers.draw();
            let most = commands * 4;
            inner.cuts = (0..STATES).map(|_| 1 + numbers.below(most)).collect();
        }
        let mut host = Host::new(kind, disk_now.clone(), &config, stamp);
        for _ in 0..commands {
            host.command(&mut numbers);
        }
        if kind.has_log() && session == 1 && commands > 140 {
            assert!(
                host.drive.totals().collect_program_bytes > 0,
                "nothing collected"
            );
        }
        stamp = host.next_stamp;
        let seen = std::mem::take(&mut disk_now.inner().seen);
        let begun = host.history[0].0;
        for seen in seen {
            let (steps, image) = (seen.step, seen.by_machine);
            let left = Disk::of(image, session * 2 + 1);
            let (mut drive, _) = drive_on(&left, &config);
            drive.keep().unwrap();
            drive.assert_invariants();
            let found = look(&mut drive);
            if steps >= begun {
                host.check(steps, &found);
            }
            count += 1;
            drop(drive);
            disk = Disk::of(left.inner().now.clone(), 0);
        }
    }
    count
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn what_a_flush_covers_outlives_the_machine() {
    let kinds = [
        Kind::Zoned,
        Kind::Conventional,
        Kind::Units,
        Kind::RandomWriteAreas,
        Kind::Thin,
    ];
    if let Some(seed) = number("ZONELAB_POWER_CUT_SEED") {
        history(kinds[(seed % kinds.len() as u64) as usize], seed);
        return;
    }
    let wanted = number("ZONELAB_POWER_CUTS").unwrap_or(10_000);
    let next = Arc::new(Mutex::new((0, 0)));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = {
                        let mut next = next.lock().unwrap();
                        if next.1 >= wanted {
                            return;
                        }
                        next.0 += 1;
                        next.0 - 1
                    };
                    let run = || history(kinds[(seed % kinds.len() as u64) as usize], seed);
                    match std::panic::catch_unwind(run) {
                        Ok(count) => next.lock().unwrap().1 += count,
                        Err(why) => {
                            eprintln!("again: ZONELAB_POWER_CUT_SEED={seed}");
                            next.lock().unwrap().1 = wanted;
                            std::panic::resume_unwind(why);
                        }
                    }
                }
            });
        }
    });
}

/// What a kill leaves counts; what was not synchronised before another start of
/// the machine does not, even if all of it is there.
#[test]
fn only_another_start_of_the_machine_gives_up_what_no_flush_covers() {
    let config = config(Kind::Zoned);
    let mut disk = Disk::default();
    create(&mut disk, &config, Options::default()).unwrap();
    let disk = Disk::of(disk.inner().now.clone(), 1);
    let mut host = Host::new(Kind::Zoned, disk.clone(), &config, 1);
    for (stamp, covered) in [(1, true), (2, false)] {
        let slba = Lba(2 * u64::from(stamp) - 2);
        let data = stamped(&config, stamp, slba.0, 2);
        let op = Op::Write { slba, nlb: 2 };
        assert!(run(&mut host.drive, 1, op, Some(data)).0.is_success());
        if covered {
            assert!(run(&mut host.drive, 1, Op::Flush, None).0.is_success());
        }
    }
    drop(host);
    let image = disk.inner().now.clone();
    for (boot, host_lbas, expected) in [(1, 4, [1, 1, 2, 2]), (2, 2, [1, 1, 0, 0])] {
        let (mut drive, is_rolled_back) = drive_on(&Disk::of(image.clone(), boot), &config);
        assert_eq!(is_rolled_back, boot == 2);
        assert_eq!(drive.zones().host_lbas(ZoneId(0)), host_lbas);
        assert_eq!(read(&mut drive, 1, 0, 4, 0), expected);
    }
}
