//! Drives with the layer on them, programs that use it, and power that goes off.

pub(crate) use super::seeds;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use zerocopy::IntoBytes;
use zonelab_device::{
    Buf, Command, Completion, Device, DeviceInfo, DeviceQueue, Lba, Modelled, Nanos, Op, QueueId,
    QueuePair, RejectReason, Rejected, Tag,
};
use zonelab_ftl::{
    FormatSettings, FtlDevice, FtlError, FtlQueue, FtlSettings, Placement, Policy, Shape, Start,
};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{Bell, CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_nvme::command::DatasetRange;
use zonelab_sim::{Emulated, EmulatedQueue, HostCosts};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, MappingConfig, Placement as Programs, WriteBufferConfig,
};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, FaultTarget, profile};

/// A drive of `zones` zones of `capacity` blocks of 4 KiB; it keeps data.
pub(crate) fn drive(zones: u32, capacity: u64) -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::Memory;
    config.geometry.pages_per_block = u32::try_from(capacity.div_ceil(32)).expect("it is small");
    config.geometry.blocks_per_plane = 64 * zones;
    config.zones.count = zones;
    config.zones.capacity_lbas = capacity;
    config.zones.size_lbas = capacity + 3;
    config.zones.max_active = Some(14);
    config.zones.max_open = Some(14);
    config
}

/// A small drive of any kind.
pub(crate) fn any_drive(rng: &mut Rng) -> DriveConfig {
    let zones = 20 + rng.below(20) as u32;
    let mut config = drive(zones, 32 * (1 + rng.below(2)));
    if rng.below(3) == 0 {
        config.mapping = MappingConfig::Lazy {
            physical_zones: zones + 4,
        };
    }
    if rng.below(2) == 0 {
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: 256 << 10,
            power_loss_protection: rng.below(3) == 0,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Programs::InOrder,
            release: BufferRelease::Program,
        });
    }
    config.zones.max_active = [None, Some(14), Some(8), Some(6)][rng.below(4) as usize];
    config.zones.max_open = match config.zones.max_active {
        Some(most) if rng.below(2) == 0 => Some(6.max(most - 1)),
        most => most,
    };
    config
}

/// A drive that goes on from run to run.
pub(crate) struct Machine {
    pub(crate) drive: Emulated,
    pub(crate) now: Nanos,
}

/// The layer on a drive, up to an event at which power is lost.
pub(crate) struct Fused {
    ftl: FtlDevice<Emulated>,
    fuse: Rc<Fuse>,
}

/// When power is lost, and whether it has been.
#[derive(Debug)]
pub(crate) struct Fuse {
    events: Cell<u64>,
    seed: u64,
    pub(crate) lost_at: Cell<Option<Nanos>>,
    ready_at: Cell<Nanos>,
    bell: Bell,
}

impl Fuse {
    /// Power is lost at an event after `events` others; `u64::MAX`: never.
    pub(crate) fn after(events: u64, seed: u64) -> Rc<Self> {
        Rc::new(Self {
            events: Cell::new(events),
            seed,
            lost_at: Cell::new(None),
            ready_at: Cell::new(Nanos::ZERO),
            bell: Bell::default(),
        })
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost_at.get().is_some()
    }

    /// Power is lost now.
    pub(crate) fn lose(&self, drive: &Emulated, now: Nanos) {
        let loss = drive.with_drive(|drive| drive.power_cut(now, Nanos::from_ms(1), self.seed));
        self.ready_at.set(loss.ready_at);
        self.lost_at.set(Some(now));
        self.bell.ring();
    }

    /// When power is back.
    pub(crate) fn ready(&self) -> Nanos {
        self.ready_at.get()
    }

    /// An event comes. Whether power is there.
    fn event(&self, now: Nanos, drive: &Emulated) -> bool {
        if self.is_lost() {
            return false;
        }
        let left = self.events.get();
        if left > 0 {
            self.events.set(left - 1);
            return true;
        }
        self.lose(drive, now);
        false
    }
}

impl Device for Fused {
    type Queue = FusedQueue<FtlQueue<EmulatedQueue>>;

    fn next_event(&self) -> Option<Nanos> {
        match self.fuse.is_lost() {
            true => None,
            false => self.ftl.next_event(),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        if self.fuse.event(now, self.ftl.inner()) {
            self.ftl.advance(now, ready);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.ftl.wait(span)
    }
}

impl Modelled for Fused {}

/// A drive below the layer that loses power while it is mounted.
struct FusedDrive {
    drive: Emulated,
    fuse: Rc<Fuse>,
}

/// A queue pair that takes nothing and does nothing without power.
pub(crate) struct FusedQueue<Q> {
    queue: Q,
    fuse: Rc<Fuse>,
}

impl<Q: QueuePair> QueuePair for FusedQueue<Q> {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        match self.fuse.is_lost() {
            true => Err(Rejected {
                reason: RejectReason::Disconnected,
                data,
            }),
            false => self.queue.submit(command, tag, data),
        }
    }

    fn ring(&mut self) {
        if !self.fuse.is_lost() {
            self.queue.ring();
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        match self.fuse.is_lost() {
            true => 0,
            false => self.queue.poll(done),
        }
    }
}

impl<Q: DeviceQueue> DeviceQueue for FusedQueue<Q> {
    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn enter(&mut self, now: Nanos) {
        self.queue.enter(now);
    }
}

impl Device for FusedDrive {
    type Queue = FusedQueue<EmulatedQueue>;

    fn next_event(&self) -> Option<Nanos> {
        match self.fuse.is_lost() {
            true => None,
            false => self.drive.next_event(),
        }
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        let drive = self.drive.clone();
        if self.fuse.event(now, &drive) {
            self.drive.advance(now, ready);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        self.drive.wait(span)
    }
}

impl Modelled for FusedDrive {}

/// Tasks that are gone when power is.
struct Program {
    tasks: Tasks<()>,
    fuse: Rc<Fuse>,
    is_over: Rc<Cell<bool>>,
}

impl Job for Program {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if self.fuse.is_lost() {
            return NextWake::Finished;
        }
        let next = self.tasks.step(now, done, queue);
        if next == NextWake::Finished {
            self.is_over.set(true);
        }
        next
    }
}

impl Machine {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        Self::of(Drive::new(config))
    }

    pub(crate) fn of(drive: impl Into<FaultyDrive>) -> Self {
        Self {
            drive: Emulated::new(drive),
            now: Nanos::ZERO,
        }
    }

    /// Any way of running the layer on this drive.
    pub(crate) fn any_settings(&self, rng: &mut Rng) -> FtlSettings {
        let placements = [Placement::Write, Placement::Append, Placement::SharedAppend];
        let victims = [
            Policy::Greedy,
            Policy::CostBenefit,
            Policy::Fifo,
            Policy::DChoices { d: 3 },
            Policy::WindowedGreedy { window: 4 },
        ];
        let placement = placements[rng.below(3) as usize];
        let victims = victims[rng.below(5) as usize];
        let device_copy = rng.below(2) == 0;
        let seed = rng.next_u64();
        FtlSettings {
            placement,
            victims,
            device_copy,
            generations: self
                .most_generations()
                .min([1, 1, 2, 3][(seed % 4) as usize]),
            // Of half of the drives the map is in memory as a whole; of some as little of it
            // as can be.
            map_share: [None, None, Some(0.01), Some(0.5)][(seed >> 8) as usize % 4],
            seed,
            ..FtlSettings::default()
        }
    }

    /// Generations for which the drive, formatted with the default reserve, has room.
    fn most_generations(&self) -> u32 {
        let queue = Self::open(&self.drive);
        let info = queue.info();
        let zoned = info.namespaces[0].zoned.expect("it has zones");
        let limits = [zoned.max_active, zoned.max_open];
        let limit = limits.into_iter().flatten().min().unwrap_or(u32::MAX);
        let shape = Shape::new(info, &FormatSettings::new(1)).expect("it can be formatted");
        (limit - 5).min(shape.reserved_zones - 3)
    }

    fn open(drive: &Emulated) -> EmulatedQueue {
        drive.open_queue(256, HostCosts::FREE, Rng::new(1, 0))
    }

    /// A queue of the layer, in the present.
    pub(crate) fn open_queue(&self, ftl: &FtlDevice<Emulated>) -> FtlQueue<EmulatedQueue> {
        let queue = ftl.queue(Self::open(ftl.inner()), 64);
        let mut queue = queue.expect("there are few queues");
        queue.enter(self.now);
        queue
    }

    /// Mounts; `None`: power was lost meanwhile.
    pub(crate) fn mount_until(
        &mut self,
        start: Start,
        settings: &FtlSettings,
        fuse: &Rc<Fuse>,
    ) -> Option<FtlDevice<Emulated>> {
        // The part that mounts is a program of its own on the drive that loses power;
        // the layer is then started for good, which reads the same once more.
        let below = FusedDrive {
            drive: self.drive.clone(),
            fuse: Rc::clone(fuse),
        };
        let clock = VirtualClock::starting_at(self.now);
        let queue = FusedQueue {
            queue: Self::open(&self.drive),
            fuse: Rc::clone(fuse),
        };
        let tried = FtlDevice::start(below, clock, queue, start, settings.clone());
        if fuse.is_lost() {
            self.now = fuse.ready_at.get();
            return None;
        }
        let (_, at) = tried.unwrap_or_else(|error| panic!("it can be mounted: {error}"));
        self.now = at;
        Some(self.mount(Start::Mount, settings))
    }

    /// Mounts.
    pub(crate) fn mount(&mut self, start: Start, settings: &FtlSettings) -> FtlDevice<Emulated> {
        self.try_mount(start, settings)
            .unwrap_or_else(|error| panic!("it can be mounted: {error}"))
    }

    pub(crate) fn try_mount(
        &mut self,
        start: Start,
        settings: &FtlSettings,
    ) -> Result<FtlDevice<Emulated>, FtlError> {
        let clock = VirtualClock::starting_at(self.now);
        let queue = Self::open(&self.drive);
        let (ftl, at) =
            FtlDevice::start(self.drive.clone(), clock, queue, start, settings.clone())?;
        self.now = at;
        Ok(ftl)
    }

    /// Runs programs, each on a queue of its own, to their ends or until power is lost.
    pub(crate) fn run(
        &mut self,
        ftl: FtlDevice<Emulated>,
        fuse: &Rc<Fuse>,
        programs: Vec<Main>,
    ) -> FtlDevice<Emulated> {
        let info = ftl.info().clone();
        let mut fused = Fused {
            ftl,
            fuse: Rc::clone(fuse),
        };
        let mut jobs = Vec::new();
        let mut queues = Vec::new();
        let ends: Vec<Rc<Cell<bool>>> = programs.iter().map(|_| Rc::default()).collect();
        for (main, is_over) in programs.into_iter().zip(&ends) {
            let below = Self::open(fused.ftl.inner());
            queues.push(FusedQueue {
                queue: fused.ftl.queue(below, 64).expect("there are few queues"),
                fuse: Rc::clone(fuse),
            });
            jobs.push(Program {
                tasks: Tasks::new(&info, TasksConfig::default(), main),
                fuse: Rc::clone(fuse),
                is_over: Rc::clone(is_over),
            });
        }
        let stop = StopSignal::over(&fuse.bell);
        let clock = VirtualClock::starting_at(self.now);
        let mut reactor = Reactor::new(clock, &mut fused, stop);
        for (core, (job, queue)) in (0..).zip(jobs.iter_mut().zip(queues)) {
            reactor.add(job, queue, CoreId(core), self.now);
        }
        let end = reactor.run();
        if fuse.is_lost() {
            self.now = fuse.ready_at.get().max(end.at);
        } else {
            let stuck: Vec<bool> = ends.iter().map(|end| !end.get()).collect();
            assert_eq!(
                end.stuck_jobs,
                0,
                "programs wait for nothing ({stuck:?}): {:?}, {:?}",
                fused.ftl.failure(),
                fused.ftl.metrics()
            );
            self.now = end.at;
        }
        fused.ftl
    }
}

/// A program that is about to run.
pub(crate) type Main = Box<dyn FnOnce(Io) -> Running>;
/// A program that runs.
pub(crate) type Running = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// What a block may hold: versions are counted, and what is on its way is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The last version that was begun. Even ones are data, and odd ones trims; 0 is
    /// what was never written.
    pub(crate) begun: u32,
    /// The last one that has ended.
    pub(crate) ended: u32,
    /// The one that is durable, or a later one is.
    pub(crate) floor: u32,
}

/// What all blocks may hold.
pub(crate) type Shadow = Rc<RefCell<Vec<Block>>>;

/// Bytes of a version of a block.
pub(crate) fn bytes_of(block: u32, version: u32) -> Vec<u8> {
    match version % 2 == 1 || version == 0 {
        true => vec![0; 4096],
        false => {
            let stamp = (u64::from(block) << 32 | u64::from(version)).to_le_bytes();
            stamp.repeat(512)
        }
    }
}

/// Whether data is a version of the block between these.
pub(crate) fn version_in(block: u32, data: &[u8], from: u32, to: u32) -> Option<u32> {
    (from..=to)
        .rev()
        .find(|version| data == bytes_of(block, *version))
}

/// Runs a command to its end, which has to be good.
pub(crate) async fn good(io: &Io, op: Op, data: Option<Buf>) -> Option<Buf> {
    let answer = io
        .run(Command::new(op), data)
        .await
        .expect("the device is there");
    assert_eq!(answer.status, Status::SUCCESS, "{op:?}");
    answer.data
}

/// One who works on blocks that nobody else works on: `own` of them, from `first` on in
/// steps of `step`.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) first: u32,
    pub(crate) step: u32,
    pub(crate) own: u32,
    pub(crate) operations: u32,
}

impl Worker {
    /// Writes, reads, trims and flushes, and looks whether what it reads can be.
    pub(crate) async fn run(self, io: Io, shadow: Shadow, mut rng: Rng) {
        for _ in 0..self.operations {
            let own = rng.below(self.own.into()) as u32;
            let block = self.first + own * self.step;
            match rng.below(100) {
                0..60 => {
                    self.write(&io, &shadow, block, 1 + rng.below(4) as u32)
                        .await
                }
                60..90 => read(&io, &shadow, block).await,
                90..95 => trim(&io, &shadow, block).await,
                _ => flush(&io, &shadow, self.first, self.step, self.own).await,
            }
        }
    }

    /// Writes consecutive blocks, if its own are.
    async fn write(&self, io: &Io, shadow: &Shadow, block: u32, count: u32) {
        let end = self.first + self.own * self.step;
        let count = match self.step {
            1 => count.min(end - block),
            _ => 1,
        };
        let mut data = Vec::new();
        for block in block..block + count {
            let entry = &mut shadow.borrow_mut()[block as usize];
            entry.begun = (entry.begun / 2 + 1) * 2;
            data.extend(bytes_of(block, entry.begun));
        }
        let op = Op::Write {
            slba: Lba(block.into()),
            nlb: count,
        };
        good(io, op, Some(Buf::from(data))).await;
        for block in block..block + count {
            let entry = &mut shadow.borrow_mut()[block as usize];
            entry.ended = entry.begun;
        }
    }
}

async fn trim(io: &Io, shadow: &Shadow, block: u32) {
    {
        let entry = &mut shadow.borrow_mut()[block as usize];
        entry.begun += 1 + entry.begun % 2;
    }
    let range = DatasetRange {
        nlb: 1.into(),
        slba: u64::from(block).into(),
        ..DatasetRange::default()
    };
    let list = Buf::from(range.as_bytes().to_vec());
    good(io, Op::Deallocate { ranges: 1 }, Some(list)).await;
    let entry = &mut shadow.borrow_mut()[block as usize];
    entry.ended = entry.begun;
}

async fn read(io: &Io, shadow: &Shadow, block: u32) {
    let op = Op::Read {
        slba: Lba(block.into()),
        nlb: 1,
    };
    let data = good(io, op, Some(Buf::from(vec![0xee; 4096]))).await;
    let data = data.expect("it comes back");
    let ended = shadow.borrow()[block as usize].ended;
    let found = version_in(block, &data, ended, ended);
    assert!(
        found.is_some(),
        "block {block}: version {ended}, read {:?}",
        &data[..8]
    );
}

/// Flushes: what had ended before of these blocks is durable afterwards.
async fn flush(io: &Io, shadow: &Shadow, first: u32, step: u32, own: u32) {
    let before: Vec<u32> = {
        let shadow = shadow.borrow();
        (0..own)
            .map(|i| shadow[(first + i * step) as usize].ended)
            .collect()
    };
    good(io, Op::Flush, None).await;
    let mut shadow = shadow.borrow_mut();
    for (i, ended) in (0..own).zip(before) {
        let block = &mut shadow[(first + i * step) as usize];
        block.floor = block.floor.max(ended);
    }
}

/// Reads all blocks after a mount: each holds what is durable or came after it. What is
/// found is durable from then on.
pub(crate) async fn check_all(io: Io, shadow: Shadow) {
    let blocks = shadow.borrow().len() as u32;
    for block in 0..blocks {
        let op = Op::Read {
            slba: Lba(block.into()),
            nlb: 1,
        };
        let data = good(&io, op, Some(Buf::from(vec![0xee; 4096]))).await;
        let data = data.expect("it comes back");
        let entry = &mut shadow.borrow_mut()[block as usize];
        let found = version_in(block, &data, entry.floor, entry.begun);
        let Some(found) = found else {
            let stamp = u64::from_le_bytes(data[..8].try_into().expect("8 bytes"));
            panic!("block {block}: {entry:?}, and found {stamp:#x}");
        };
        *entry = Block {
            begun: entry.begun,
            ended: found,
            floor: found,
        };
    }
}

/// Programs of several workers each, with blocks of their own.
pub(crate) fn clients(
    shadow: &Shadow,
    blocks: u32,
    programs: u32,
    workers: u32,
    operations: u32,
    rng: &mut Rng,
) -> Vec<Main> {
    let all = programs * workers;
    let is_striped = rng.below(2) == 0;
    let mut clients: Vec<Main> = Vec::new();
    for program in 0..programs {
        let shadow = Rc::clone(shadow);
        let seed = rng.next_u64();
        clients.push(Box::new(move |io| {
            Box::pin(async move {
                let tasks = (0..workers).map(|worker| {
                    let index = program * workers + worker;
                    let own = blocks / all;
                    let (first, step) = match is_striped {
                        true => (index, all),
                        false => (index * own, 1),
                    };
                    let worker = Worker {
                        first,
                        step,
                        own,
                        operations,
                    };
                    let rng = Rng::new(seed, index.into());
                    io.spawn(worker.run(io.clone(), Rc::clone(&shadow), rng))
                });
                futures_util::future::join_all(tasks.collect::<Vec<_>>()).await;
            })
        }));
    }
    clients
}

/// The settings of a format.
pub(crate) fn format(spare: f64) -> Start {
    Start::Format(FormatSettings {
        spare,
        ..FormatSettings::new(0x7a6f_6e65)
    })
}
