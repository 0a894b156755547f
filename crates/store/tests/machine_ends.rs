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

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, FillExtent, FinishConfig, MappingConfig,
    NamespaceConfig, NamespaceKind, WriteBufferConfig, ZrwaConfig,
};
use zonelab_ssd::{Drive, profile};
use zonelab_store::{Medium, Options, create, open};

const SECTOR: u64 = 512;

/// Numbers from a seed (splitmix64).
#[derive(Clone)]
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

type Sector = Arc<[u8; SECTOR as usize]>;
/// Sectors that are not all zeros.
type Image = BTreeMap<u64, Sector>;

/// What became of some sectors, in order: their content after it.
type Step = Vec<(u64, Option<Sector>)>;

#[derive(Debug, Default)]
struct Inner {
    /// As programs see it.
    now: Image,
    /// As the last synchronisation left it, and what came since.
    durable: Image,
    since: Vec<Step>,
    /// What a write that is durable by itself left of what came before.
    boot: u8,
    /// Steps after which the power is cut; `None`: it is not.
    left: Option<u64>,
    /// The states that are left, by step.
    cuts: BTreeSet<u64>,
    steps: u64,
    seen: Vec<(u64, Image)>,
    draw: u64,
}

#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Inner>>);

impl Inner {
    fn sectors(&mut self, at: u64, len: u64, bytes: Option<&[u8]>) -> Step {
        let mut step = Step::new();
        let mut done = 0;
        while done < len {
            let sector = (at + done) / SECTOR;
            let within = (at + done) % SECTOR;
            let piece = (SECTOR - within).min(len - done);
            let old = self.now.get(&sector);
            if bytes.is_some() || old.is_some() {
                let mut content = old.map_or([0; SECTOR as usize], |old| **old);
                let range = within as usize..(within + piece) as usize;
                match bytes {
                    Some(bytes) => content[range]
                        .copy_from_slice(&bytes[done as usize..(done + piece) as usize]),
                    None => content[range].fill(0),
                }
                let is_zero = content.iter().all(|byte| *byte == 0);
                let content = (!is_zero).then(|| Arc::new(content));
                put(&mut self.now, sector, content.clone());
                step.push((sector, content));
            }
            done += piece;
            // What is a hole already is passed over.
            if bytes.is_none() && old_is_far(&self.now, sector) {
                let next = self.now.range(sector + 1..).next().map(|(next, _)| *next);
                let to = next.map_or(len, |next| (next * SECTOR).saturating_sub(at).min(len));
                done = done.max(to);
            }
        }
        step
    }

    /// One of the states that can be left at this moment.
    fn left(&mut self) -> Image {
        let mut numbers = Numbers(self.draw);
        self.draw = numbers.next();
        let mut image = self.durable.clone();
        let grain = if numbers.one_in(2) { 1 } else { 8 };
        let style = numbers.below(5);
        let count = self.since.len() as u64;
        let prefix = numbers.below(count + 1);
        for (index, step) in (0..).zip(&self.since) {
            let likely = match style {
                0 => 50,
                1 => 5,
                2 => 95,
                // All of a prefix and little behind it; or the other way round.
                3 if index < prefix => 100,
                3 => 10,
                _ if index < prefix => 10,
                _ => 100,
            };
            let whole = numbers.one_in(2);
            let is_there = numbers.below(100) < likely;
            let mut piece = (u64::MAX, false);
            for (sector, content) in step {
                if piece.0 != sector / grain {
                    piece = (sector / grain, numbers.below(100) < likely);
                }
                if if whole { is_there } else { piece.1 } {
                    put(&mut image, *sector, content.clone());
                }
            }
        }
        image
    }

    fn step(&mut self, step: Step) {
        self.since.push(step);
        self.passed();
    }

    fn passed(&mut self) {
        self.steps += 1;
        if self.cuts.contains(&self.steps) {
            let left = self.left();
            self.seen.push((self.steps, left));
        }
    }
}

fn old_is_far(now: &Image, sector: u64) -> bool {
    !now.contains_key(&(sector + 1))
}

fn put(image: &mut Image, sector: u64, content: Option<Sector>) {
    match content {
        Some(content) => _ = image.insert(sector, content),
        None => _ = image.remove(&sector),
    }
}

impl Disk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// After the machine was started again.
    fn of(image: Image, boot: u8) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            durable: image.clone(),
            now: image,
            boot,
            ..Inner::default()
        })))
    }
}

impl Medium for Disk {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let mut done = 0;
        while done < out.len() {
            let place = at + done as u64;
            let within = (place % SECTOR) as usize;
            let piece = (SECTOR as usize - within).min(out.len() - done);
            let to = &mut out[done..done + piece];
            match inner.now.get(&(place / SECTOR)) {
                Some(sector) => to.copy_from_slice(&sector[within..within + piece]),
                None => to.fill(0),
            }
            done += piece;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, bytes.len() as u64, Some(bytes));
        inner.step(step);
        Ok(())
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, len, None);
        inner.step(step);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.durable = inner.now.clone();
        inner.since.clear();
        inner.passed();
        Ok(())
    }

    /// Durable by itself, and nothing else is.
    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, bytes.len() as u64, Some(bytes));
        inner.step(step.clone());
        for (sector, content) in step {
            put(&mut inner.durable, sector, content);
        }
        inner.since.pop();
        inner.passed();
        Ok(())
    }

    fn boot(&self) -> [u8; 16] {
        [self.inner().boot; 16]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zoned,
    Conventional,
    RandomWriteAreas,
    Thin,
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
        Kind::Conventional => {
            let whole = NamespaceConfig::whole(&config.zones);
            let zoned = NamespaceConfig { zones: 9, ..whole };
            let log = NamespaceConfig {
                kind: NamespaceKind::Conventional { spare_zones: 3 },
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
                appends_per_zone: None,
                power_loss_protection: true,
                release: BufferRelease::Program,
                drain_bytes_per_s: None,
                turn_bytes: None,
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
    let command = Command { nsid, op };
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
        if self.kind == Kind::Conventional && !numbers.one_in(4) {
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
        let mut disk_now = Disk::of(start, session * 2);
        let commands = 40 + numbers.below(120);
        {
            let mut inner = disk_now.inner();
            inner.draw = numbers.next();
            let most = commands * 4;
            inner.cuts = (0..STATES).map(|_| 1 + numbers.below(most)).collect();
        }
        let mut host = Host::new(kind, disk_now.clone(), &config, stamp);
        for _ in 0..commands {
            host.command(&mut numbers);
        }
        if kind == Kind::Conventional && session == 1 && commands > 140 {
            assert!(
                host.drive.totals().collect_program_bytes > 0,
                "nothing collected"
            );
        }
        stamp = host.next_stamp;
        let seen = std::mem::take(&mut disk_now.inner().seen);
        let begun = host.history[0].0;
        for (steps, image) in seen {
            let left = Disk::of(image, session * 2 + 1);
            let (mut drive, _) = drive_on(&left, &config);
            drive.keep().unwrap();
            drive.zones().assert_invariants();
            drive.assert_logs();
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
        Kind::RandomWriteAreas,
        Kind::Thin,
    ];
    if let Some(seed) = number("ZONELAB_POWER_CUT_SEED") {
        history(kinds[(seed % 4) as usize], seed);
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
                    let run = || history(kinds[(seed % 4) as usize], seed);
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
