//! The translation layer between hosts and a drive, in virtual time: whatever was flushed
//! outlives losses of power, and nothing that hosts wait for is forgotten.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use zonelab_device::{Buf, Command, Completion, Lba, Nanos, Op, QueueId, Tag};
use zonelab_ftl::{FormatSettings, FtlError, FtlSettings, Placement};
use zonelab_host::Rng;
use zonelab_live::layer::{FtlLayer, LayerSettings};
use zonelab_nvme::Status;
use zonelab_nvme::command::DatasetRange;
use zonelab_nvme::zerocopy::{FromZeros as _, IntoBytes as _};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, Placement as Programs, WriteBufferConfig,
};
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, FaultyDrive, Match, Trigger};
use zonelab_ssd::profile;
use zonelab_ssd::{Drive, DriveModel};
use zonelab_target::controller::Layer as _;

const BLOCK: usize = 4096;
/// Drives that the randomised test tries.
const RUNS: u64 = 400;
/// No operation has this number.
pub(super) const NEVER: u64 = u64::MAX;

/// A drive of `zones` zones of 32 blocks.
pub(super) fn config(zones: u32) -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.geometry.pages_per_block = 1;
    config.geometry.blocks_per_plane = 64 * zones;
    config.zones.count = zones;
    config.zones.capacity_lbas = 32;
    config.zones.size_lbas = 35;
    config.zones.max_open = Some(10);
    config.zones.max_active = Some(12);
    config.data = DataStore::Memory;
    config
}

pub(super) fn settings() -> LayerSettings {
    LayerSettings {
        mount: FtlSettings::default(),
        format: FormatSettings {
            spare: 0.2,
            ..FormatSettings::new(7)
        },
        formats: false,
        queues: None,
    }
}

/// What a block can hold: what was durable last, and what was written since. Zero is
/// nothing.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// With the number of the operation that had ended by then; [`NEVER`]: nobody knows
    /// whether it came about.
    pub(super) values: Vec<(u32, u64)>,
    /// Power was lost since the last of them: it can be any.
    is_open: bool,
}

impl Block {
    fn now(&self) -> u32 {
        self.values.last().expect("it holds something").0
    }

    /// A read has found this: it is what the block holds, and keeps.
    pub(super) fn found(&mut self, found: u32) {
        match self.is_open {
            true => {
                let may = self.values.iter().any(|(value, _)| *value == found);
                assert!(may, "{found}, and may be {:?}", self.values);
                self.values = vec![(found, 0)];
                self.is_open = false;
            }
            false => assert_eq!(found, self.now()),
        }
    }

    /// Power was lost: it is any of these.
    pub(super) fn open(&mut self) {
        if self.values.len() > 1 {
            self.values.iter_mut().for_each(|(_, ended)| *ended = NEVER);
            self.is_open = true;
        }
    }

    fn written(&mut self, value: u32, ended: u64) {
        self.values.push((value, ended));
        self.is_open = false;
    }

    /// What had ended by operation `until` is durable.
    fn flushed(&mut self, until: u64) {
        let last = self.values.iter().rposition(|(_, ended)| *ended <= until);
        self.values.drain(..last.unwrap_or(0));
    }
}

pub(super) enum Asked {
    Write {
        first: u64,
        count: u64,
        value: u32,
    },
    Read {
        first: u64,
    },
    /// At which operation.
    Flush {
        at: u64,
    },
}

/// A host with the layer to itself.
pub(super) struct Host {
    pub(super) drive: FaultyDrive,
    pub(super) layer: FtlLayer,
    pub(super) now: Nanos,
    pub(super) blocks: Vec<Block>,
    pub(super) asked: BTreeMap<u32, Asked>,
    tags: u32,
    pub(super) ended: u64,
    value: u32,
}

impl Host {
    pub(super) fn new(mut drive: FaultyDrive, settings: LayerSettings) -> Self {
        let layer = FtlLayer::start(&mut drive, settings).expect("it can be mounted");
        let blocks = layer.info().namespaces[0].size_lbas as usize;
        let nothing = Block {
            values: vec![(0, 0)],
            is_open: false,
        };
        Self {
            now: drive.drive().now(),
            drive,
            layer,
            blocks: vec![nothing; blocks],
            asked: BTreeMap::new(),
            tags: 0,
            ended: 0,
            value: 0,
        }
    }

    /// Blocks that a write is on its way to.
    fn is_busy(&self, first: u64, count: u64) -> bool {
        self.asked.values().any(|asked| match asked {
            Asked::Write {
                first: at,
                count: many,
                ..
            } => first < at + many && *at < first + count,
            Asked::Read { first: at } => (first..first + count).contains(at),
            Asked::Flush { .. } => false,
        })
    }

    fn submit(&mut self, op: Op, data: Option<Buf>, asked: Asked) {
        // Tags are used again, as those of a controller are.
        let tag = (0..).find(|tag| !self.asked.contains_key(tag));
        let tag = tag.expect("there are enough");
        self.tags = self.tags.max(tag);
        let queue = QueueId((tag % 7) as u16);
        self.layer
            .submit(self.now, queue, Tag(tag), Command::new(op), data)
            .expect("the layer takes everything");
        self.asked.insert(tag, asked);
    }

    pub(super) fn ask(&mut self, rng: &mut Rng) {
        let size = self.blocks.len() as u64;
        let count = 1 + rng.below(6);
        let first = rng.below(size - count);
        let (slba, nlb) = (Lba(first), count as u32);
        match rng.below(20) {
            0 => {
                let at = self.ended;
                self.submit(Op::Flush, None, Asked::Flush { at });
            }
            1..=4 if !self.is_busy(first, 1) => {
                let data = Some(Buf::zeroed(BLOCK));
                let op = Op::Read { slba, nlb: 1 };
                self.submit(op, data, Asked::Read { first });
            }
            kind if !self.is_busy(first, count) => {
                let mut asked = Asked::Write {
                    first,
                    count,
                    value: 0,
                };
                let (op, data) = match kind {
                    5 => (Op::WriteZeroes { slba, nlb }, None),
                    6 => {
                        // Room for all ranges, as Linux sends it.
                        let mut data = Buf::zeroed(4096);
                        let mut range = DatasetRange::new_zeroed();
                        range.slba = first.into();
                        range.nlb = nlb.into();
                        data[..16].copy_from_slice(range.as_bytes());
                        (Op::Deallocate { ranges: 1 }, Some(data))
                    }
                    _ => {
                        self.value += 1;
                        asked = Asked::Write {
                            first,
                            count,
                            value: self.value,
                        };
                        let mut data = Buf::zeroed(BLOCK * count as usize);
                        let word = self.value.to_le_bytes();
                        data.chunks_mut(4).for_each(|to| to.copy_from_slice(&word));
                        (Op::Write { slba, nlb }, Some(data))
                    }
                };
                self.submit(op, data, asked);
            }
            _ => {}
        }
    }

    pub(super) fn land(&mut self, completion: Completion) {
        let asked = self.asked.remove(&completion.tag.0);
        let asked = asked.expect("each command ends once");
        assert_eq!(completion.status, Status::SUCCESS);
        self.ended += 1;
        match asked {
            Asked::Write {
                first,
                count,
                value,
            } => {
                for block in &mut self.blocks[first as usize..(first + count) as usize] {
                    block.written(value, self.ended);
                }
            }
            Asked::Read { first } => {
                let found = word(&completion.data.expect("a read has data"));
                self.blocks[first as usize].found(found);
            }
            Asked::Flush { at } => self.blocks.iter_mut().for_each(|block| block.flushed(at)),
        }
    }

    /// Goes on to `to`, as the controller does. Whether power was lost on the way.
    pub(super) fn advance(&mut self, to: Nanos) -> bool {
        let mut done = Vec::new();
        let cycles = self.drive.power_cycles();
        self.layer.advance(&mut self.drive, to, &mut done);
        done.drain(..).for_each(|completion| self.land(completion));
        self.now = self.now.max(to).max(self.drive.drive().now());
        let is_lost = self.drive.power_cycles() != cycles;
        if is_lost {
            self.power_lost();
        }
        is_lost
    }

    /// Tells the layer, which gives back all that hosts wait for; these may have come
    /// about, or not.
    fn power_lost(&mut self) {
        let mut done = Vec::new();
        self.layer.power_lost(&self.drive, &mut done);
        for completion in done {
            let asked = self.asked.remove(&completion.tag.0);
            assert!(!completion.status.is_success());
            self.ended += 1;
            if let Some(Asked::Write {
                first,
                count,
                value,
            }) = asked
            {
                for block in &mut self.blocks[first as usize..(first + count) as usize] {
                    block.values.push((value, self.ended));
                }
            }
        }
        assert!(self.asked.is_empty(), "all commands were given back");
        self.blocks.iter_mut().for_each(Block::open);
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Nanos {
        let layer = self.layer.next_event();
        let next = [layer, self.drive.next_event()].into_iter().flatten().min();
        next.expect("something is on its way")
    }

    /// Lets everything end.
    pub(super) fn settle(&mut self) {
        while !self.asked.is_empty() {
            let next = self.next();
            self.advance(next);
        }
    }

    pub(super) fn word_at(&mut self, first: u64) -> u32 {
        let (slba, nlb) = (Lba(first), 1);
        loop {
            let data = Some(Buf::zeroed(BLOCK));
            let read = Command::new(Op::Read { slba, nlb });
            self.layer
                .submit(self.now, QueueId(0), Tag(0), read, data)
                .expect("the layer takes everything");
            if let Some(completion) = self.next_completion() {
                assert_eq!(completion.status, Status::SUCCESS);
                return word(&completion.data.expect("a read has data"));
            }
        }
    }

    /// `None`: power was lost before it came.
    fn next_completion(&mut self) -> Option<Completion> {
        let mut done = Vec::new();
        while done.is_empty() {
            let next = self.next();
            let cycles = self.drive.power_cycles();
            self.layer.advance(&mut self.drive, next, &mut done);
            self.now = self.now.max(next);
            if self.drive.power_cycles() != cycles {
                self.layer.power_lost(&self.drive, &mut done);
                self.blocks.iter_mut().for_each(Block::open);
                return None;
            }
        }
        done.pop()
    }

    /// Each block holds what it may, and keeps it from now on.
    pub(super) fn check(&mut self) {
        for at in 0..self.blocks.len() {
            let found = self.word_at(at as u64);
            self.blocks[at].found(found);
        }
    }
}

/// What all words of a block are.
pub(super) fn word(data: &[u8]) -> u32 {
    let (words, _) = data.as_chunks::<4>();
    assert!(words.iter().all(|word| *word == words[0]), "a torn block");
    u32::from_le_bytes(words[0])
}

#[test]
fn what_was_flushed_through_the_layer_survives() {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = number("ZONELAB_LAYER_SEED").unwrap_or(1);
    for seed in first..first + number("ZONELAB_LAYER_RUNS").unwrap_or(RUNS) {
        eprintln!(
            "replay: ZONELAB_LAYER_SEED={seed} ZONELAB_LAYER_RUNS=1 cargo test -p zonelab-live \
             what_was_flushed_through_the_layer_survives"
        );
        live_and_die(seed);
    }
}

fn live_and_die(seed: u64) {
    let mut rng = Rng::new(seed, 0);
    let mut config = config(24 + rng.below(16) as u32);
    if rng.below(2) == 0 {
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: 256 << 10,
            power_loss_protection: false,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Programs::InOrder,
            release: BufferRelease::Program,
        });
    }
    let mut settings = settings();
    settings.mount.placement =
        [Placement::Write, Placement::Append, Placement::SharedAppend][rng.below(3) as usize];
    settings.mount.map_share = [None, Some(0.01)][rng.below(2) as usize];
    // Power is lost at a time of a plan, too, and not only between two calls.
    let text = "[[fault]]\non = \"time\"\nat = \"40ms\"\neffect = \"power-cut\"\noff = \"3ms\"\n";
    let plan = FaultPlan::parse("plan", text, &[]).expect("it is valid");
    let drive = FaultyDrive::new(Drive::new(&config), plan);
    let mut host = Host::new(drive, settings.clone());
    let mut losses = 0;
    while losses < 8 {
        for _ in 0..rng.below(300) {
            if host.asked.len() < 24 {
                host.ask(&mut rng);
            }
            let to = host.now.saturating_add(Nanos(rng.below(80_000)));
            losses += u32::from(host.advance(to));
        }
        let now = host.now;
        host.drive.power_cut(now, Nanos::from_ms(1));
        host.power_lost();
        losses += 1;
        if rng.below(3) > 0 {
            // The next one is lost while the layer is being mounted, or soon after.
            host.check();
        }
    }
    host.settle();
    host.check();
    let before = host.drive.power_cycles();
    for _ in 0..200 {
        host.ask(&mut rng);
    }
    host.settle();
    // The plan's loss of power can have come only now.
    if host.drive.power_cycles() > before {
        host.check();
    }
    // Switched off in good order: nothing that was acknowledged is lost, flushed or not.
    let Host {
        mut layer,
        mut drive,
        blocks,
        ..
    } = host;
    layer.switch_off(&mut drive);
    drop(layer);
    // What the drive still owes to the collector of this mount.
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut Vec::new());
    }
    let mut host = Host::new(drive, settings);
    assert_eq!(host.blocks.len(), blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        assert_eq!(host.word_at(at as u64), block.now(), "block {at}");
    }
}

/// A file in memory that the test can look into.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

/// Whoever replays the log has what the namespace has.
#[test]
fn a_log_of_writes_replays_to_what_is_there() {
    let mut rng = Rng::new(5, 0);
    let drive = FaultyDrive::from(Drive::new(&config(30)));
    let mut host = Host::new(drive, settings());
    let log = Shared::default();
    let to = Box::new(log.clone());
    host.layer.log_to(to).expect("memory can be written");
    for _ in 0..2000 {
        if host.asked.len() < 24 {
            host.ask(&mut rng);
        }
        let to = host.now.saturating_add(Nanos(rng.below(80_000)));
        host.advance(to);
    }
    host.settle();
    host.layer.switch_off(&mut host.drive);
    let bytes = log.0.borrow().get_ref().clone();
    let (sectors, rest) = bytes.as_chunks::<BLOCK>();
    assert!(rest.is_empty());
    let field = |sector: usize, at: usize| {
        let bytes = &sectors[sector][8 * at..8 * at + 8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    };
    let mut replayed = vec![0; host.blocks.len()];
    let (mut at, mut flushes) = (1, 0);
    for _ in 0..field(0, 2) {
        let (first, count) = (field(at, 0) as usize, field(at, 1) as usize);
        let flags = field(at, 2);
        at += 1;
        flushes += u32::from(flags == 1);
        for block in &mut replayed[first..first + count] {
            // Deallocated blocks have no data.
            *block = match flags {
                4 => 0,
                _ => {
                    at += 1;
                    word(&sectors[at - 1])
                }
            };
        }
    }
    assert_eq!(at, sectors.len(), "the superblock counts all entries");
    assert!(flushes > 10, "{flushes}");
    for (at, value) in replayed.into_iter().enumerate() {
        assert_eq!(host.word_at(at as u64), value, "block {at}");
    }
}

#[test]
fn a_drive_that_holds_something_else_is_not_formatted() {
    let mut drive = FaultyDrive::from(Drive::new(&config(30)));
    let data = Some(Buf::zeroed(BLOCK));
    let (slba, nlb) = (Lba(35), 1);
    let write = Command::new(Op::Write { slba, nlb });
    drive
        .submit(Nanos::ZERO, QueueId(0), Tag(0), write, data)
        .expect("it is on");
    drive.advance(Nanos::from_secs(1), &mut Vec::new());
    let refused = FtlLayer::start(&mut drive, settings());
    assert_eq!(refused.err(), Some(FtlError::NotFormatted));
    let formats = LayerSettings {
        formats: true,
        ..settings()
    };
    let layer = FtlLayer::start(&mut drive, formats).expect("it is told to");
    assert!(layer.state().is_well);
    assert_eq!(layer.state().mounts, 1);
}

#[test]
fn more_queues_than_the_drive_has_zones_for_are_refused() {
    let mut drive = FaultyDrive::from(Drive::new(&config(30)));
    let many = LayerSettings {
        queues: Some(9),
        ..settings()
    };
    let refused = FtlLayer::start(&mut drive, many);
    assert!(
        matches!(refused, Err(FtlError::TooManyQueues { .. })),
        "{refused:?}"
    );
}

/// Carries out a command of a host.
fn ends(layer: &mut FtlLayer, drive: &mut FaultyDrive, op: Op, data: Option<Buf>) -> Status {
    let now = drive.drive().now();
    let taken = layer.submit(now, QueueId(1), Tag(1), Command::new(op), data);
    taken.expect("the layer takes everything");
    let mut done = Vec::new();
    while done.is_empty() {
        let next = [layer.next_event(), drive.next_event()];
        let at = next.into_iter().flatten().min();
        layer.advance(drive, at.expect("it comes to an end"), &mut done);
    }
    done.remove(0).status
}

/// SMART says so by it.
#[test]
fn a_layer_without_room_is_read_only_until_it_has() {
    let mut drive = FaultyDrive::new(Drive::new(&config(40)), FaultPlan::default());
    let mut layer = FtlLayer::start(&mut drive, settings()).expect("it can be mounted");
    let write = Op::Write {
        slba: Lba(3),
        nlb: 1,
    };
    let data = || Some(Buf::from(vec![7; BLOCK]));
    assert_eq!(ends(&mut layer, &mut drive, write, data()), Status::SUCCESS);
    assert!(!layer.is_read_only() && !layer.state().is_starved);
    let full = Fault {
        when: Match::every(Trigger::Write),
        effect: Effect::Fail(Status::CAPACITY_EXCEEDED),
    };
    let plan = FaultPlan {
        seed: 1,
        faults: vec![full],
    };
    drive.add_faults(drive.drive().now(), plan.clone());
    for (op, data) in [(Op::Flush, None), (write, data())] {
        let status = ends(&mut layer, &mut drive, op, data);
        assert_eq!(status, Status::CAPACITY_EXCEEDED, "{op:?}");
        assert!(layer.is_read_only() && layer.state().is_starved);
    }
    let wait = |layer: &mut FtlLayer, drive: &mut FaultyDrive| {
        let to = drive.drive().now() + Nanos::from_secs(1);
        layer.advance(drive, to, &mut Vec::new());
    };
    wait(&mut layer, &mut drive);
    assert!(layer.is_read_only() && layer.state().failure.is_none());
    drive.clear_faults();
    wait(&mut layer, &mut drive);
    assert!(!layer.is_read_only());
    for (op, data) in [(write, data()), (Op::Flush, None)] {
        assert_eq!(ends(&mut layer, &mut drive, op, data), Status::SUCCESS);
    }

    // A mount that has no room comes about when there is some.
    drive.add_faults(drive.drive().now(), plan);
    layer.power_lost(&drive, &mut Vec::new());
    wait(&mut layer, &mut drive);
    wait(&mut layer, &mut drive);
    let state = layer.state();
    assert!(
        layer.is_read_only() && state.is_starved && !state.is_well,
        "{state:?}"
    );
    let read = Op::Read {
        slba: Lba(3),
        nlb: 1,
    };
    let refused = ends(&mut layer, &mut drive, read, None);
    assert!(!refused.is_success(), "{refused}");
    drive.clear_faults();
    wait(&mut layer, &mut drive);
    assert!(layer.state().is_well && !layer.is_read_only());
    assert_eq!(ends(&mut layer, &mut drive, write, data()), Status::SUCCESS);
}
