//! Small drives, and programs of tasks that lose power in the middle.

pub(crate) mod lsm;

use std::future::Future;

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Nanos, Op, QueuePair, Rejected, Tag};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{
    BufferRelease, DataStore, DriveConfig, MappingConfig, Placement, WriteBufferConfig,
};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, FaultTarget, profile};

/// A drive of 24 zones of 512 KiB (32 pages of 16 KiB) in blocks of 4 KiB, of
/// which 6 may be active; it keeps data.
pub(crate) fn small() -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::Memory;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 256;
    config.zones.count = 24;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 160;
    config.zones.max_active = Some(6);
    config.zones.max_open = Some(5);
    config
}

/// [`small`] or one of its relatives: with mapping at first write, with a write
/// buffer that survives a loss of power, or one that does not.
pub(crate) fn any_small(rng: &mut Rng) -> DriveConfig {
    let mut config = small();
    if rng.below(2) == 0 {
        config.mapping = MappingConfig::Lazy { physical_zones: 28 };
    }
    if rng.below(2) == 0 {
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: 256 << 10,
            power_loss_protection: rng.below(2) == 0,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
            release: BufferRelease::Program,
        });
    }
    config.zones.max_active = [None, Some(4), Some(6), Some(2)][rng.below(4) as usize];
    config.zones.max_open = match config.zones.max_active {
        Some(most) if rng.below(2) == 0 => Some(2.max(most - 1)),
        most => most,
    };
    config
}

/// A drive that goes on from run to run.
pub(crate) struct Machine {
    pub(crate) device: Emulated,
    /// When it can be used again.
    pub(crate) now: Nanos,
    /// What its losses of power met.
    pub(crate) met: Met,
}

/// Losses of power, and those of them before which a program had done something since its
/// start: one that comes before anything was done says nothing about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    losses: u64,
    behind_flush: u64,
    behind_reset: u64,
    behind_finish: u64,
}

impl Met {
    pub(crate) fn add(&mut self, other: Self) {
        self.losses += other.losses;
        self.behind_flush += other.behind_flush;
        self.behind_reset += other.behind_reset;
        self.behind_finish += other.behind_finish;
    }

    /// Fails if one of them was never met; not if single seeds are replayed.
    pub(crate) fn is_enough(self) {
        println!("{self:?}");
        let met = [self.behind_flush, self.behind_reset, self.behind_finish];
        if std::env::var_os("ZONELAB_KV_RUNS").is_none() {
            let all = [&[self.losses][..], &met].concat();
            assert!(all.iter().all(|met| *met > 0), "{self:?}");
        }
    }
}

/// A queue pair that counts flushes.
struct Counting<'a> {
    queue: &'a mut dyn QueuePair,
    flushes: &'a mut u64,
}

impl QueuePair for Counting<'_> {
    fn info(&self) -> &DeviceInfo {
        self.queue.info()
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        *self.flushes += u64::from(command.op == Op::Flush);
        self.queue.submit(command, tag, data)
    }

    fn ring(&mut self) {
        self.queue.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        self.queue.poll(done)
    }
}

/// When power is lost: so many steps of the program after its start, and then
/// so much later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) steps: u64,
    pub(crate) delay: Nanos,
    /// Decides what is left of writes on their way.
    pub(crate) seed: u64,
}

impl Cut {
    /// Within the first `most` steps.
    pub(crate) fn draw(rng: &mut Rng, most: u64) -> Self {
        Self {
            steps: rng.below(most),
            // Up to the time of a page's program.
            delay: Nanos(rng.below(800_000)),
            seed: rng.next_u64(),
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End<T> {
    /// The program returned.
    Returned(T),
    /// Power was lost before.
    Cut,
}

impl Machine {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        Self::of(Drive::new(config))
    }

    pub(crate) fn of(drive: impl Into<FaultyDrive>) -> Self {
        Self {
            device: Emulated::new(drive),
            now: Nanos::ZERO,
            met: Met::default(),
        }
    }

    /// Runs a program to its end.
    pub(crate) fn run<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        main: impl FnOnce(Io) -> F,
    ) -> T {
        match self.run_until(None, main) {
            End::Returned(value) => value,
            End::Cut => unreachable!("nobody cuts the power"),
        }
    }

    /// Runs a program until it ends or power is lost. In that case nothing of
    /// it is left, and the drive has power again.
    pub(crate) fn run_until<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        cut: Option<Cut>,
        main: impl FnOnce(Io) -> F,
    ) -> End<T> {
        let info = self.device.info().clone();
        let queue = self.device.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
        let mut program = Program {
            tasks: Some(Tasks::new(&info, TasksConfig::default(), main)),
            device: self.device.clone(),
            cut,
            cut_at: None,
            ready_at: None,
            flushes: 0,
        };
        let before = self.device.with_drive(|drive| drive.totals());
        let device = self.device.clone();
        let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
        reactor.add(&mut program, queue, CoreId(0), self.now);
        let end = reactor.run();
        assert_eq!(end.stuck_jobs, 0, "the program waits for nothing");
        self.now = end.at.max(self.now);
        if let Some(ready_at) = program.ready_at {
            self.now = ready_at;
            let done = self
                .device
                .with_drive(|drive| drive.totals())
                .since(&before);
            self.met.add(Met {
                losses: 1,
                behind_flush: u64::from(program.flushes > 0),
                behind_reset: u64::from(done.resets > 0),
                behind_finish: u64::from(done.finishes > 0),
            });
            return End::Cut;
        }
        let tasks = program.tasks.expect("it is there until power is lost");
        End::Returned(
            tasks
                .into_result()
                .expect("a program that ended has a result"),
        )
    }
}

/// Tasks that are gone when power is.
struct Program<T> {
    tasks: Option<Tasks<T>>,
    device: Emulated,
    cut: Option<Cut>,
    cut_at: Option<Nanos>,
    ready_at: Option<Nanos>,
    flushes: u64,
}

impl<T: 'static> Job for Program<T> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if let (Some(cut), Some(at)) = (self.cut, self.cut_at)
            && now >= at
        {
            let off = Nanos::from_ms(1);
            let loss = self
                .device
                .with_drive(|drive| drive.power_cut(now, off, cut.seed));
            self.ready_at = Some(loss.ready_at);
            self.tasks = None;
            return NextWake::Finished;
        }
        let tasks = self.tasks.as_mut().expect("power is lost once");
        let mut queue = Counting {
            queue,
            flushes: &mut self.flushes,
        };
        let next = tasks.step(now, done, &mut queue);
        if let Some(cut) = &mut self.cut
            && self.cut_at.is_none()
        {
            match cut.steps.checked_sub(1) {
                Some(left) => cut.steps = left,
                None => self.cut_at = Some(now + cut.delay),
            }
        }
        match (next, self.cut_at) {
            (NextWake::Finished, _) | (_, None) => next,
            (NextWake::At(at), Some(cut_at)) => NextWake::At(at.min(cut_at)),
            (NextWake::Completion, Some(cut_at)) => NextWake::At(cut_at),
        }
    }
}

/// Runs a case with consecutive seeds: `ZONELAB_KV_RUNS` of them from
/// `ZONELAB_KV_SEED` on, if those are set. A case that panics leaves word how to
/// replay it.
pub(crate) fn each_seed(test: &str, runs: u64, case: impl Fn(u64)) {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = number("ZONELAB_KV_SEED").unwrap_or(1);
    let runs = number("ZONELAB_KV_RUNS").unwrap_or(runs);
    for seed in first..first + runs {
        let _word = Word { test, seed };
        case(seed);
    }
}

struct Word<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Word<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            eprintln!(
                "replay: ZONELAB_KV_SEED={seed} ZONELAB_KV_RUNS=1 cargo test -p zonelab-kv {test}"
            );
        }
    }
}
