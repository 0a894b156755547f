//! Small drives, and programs of tasks that lose power in the middle.

pub(crate) mod layer;
pub(crate) mod met;
pub(crate) mod seeds;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::rc::Rc;

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Nanos, Op, QueuePair, Rejected, Tag};
use zonelab_ftl::FormatSettings;
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{BufferRelease, DataStore, DriveConfig, Placement, WriteBufferConfig};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Drive, FaultTarget, profile};

/// Identifies what tests format.
pub(crate) const UUID: u128 = 0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00;

/// Settings for tiny drives.
pub(crate) fn settings() -> FormatSettings {
    FormatSettings {
        reserved_zones: Some(4),
        ..FormatSettings::new(UUID)
    }
}

/// A drive of so many zones of so many blocks of 512 bytes, in pages of four; it
/// keeps data.
pub(crate) fn tiny(zones: u32, capacity_lbas: u64) -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::Memory;
    config.lba_bytes = 512;
    config.geometry.page_bytes = 2048;
    config.geometry.pages_per_block = 4;
    config.zones.channels = 1;
    config.zones.count = zones;
    config.zones.capacity_lbas = capacity_lbas;
    config.zones.size_lbas = capacity_lbas.next_power_of_two();
    // One zone in four is on each channel.
    let rows = capacity_lbas.div_ceil(16) as u32;
    config.geometry.blocks_per_plane = zones.div_ceil(4) * rows;
    config
}

/// [`tiny`] of some size: with or without a write buffer, which survives a loss of
/// power or does not, and with different limits.
pub(crate) fn any_tiny(rng: &mut Rng) -> DriveConfig {
    let capacity_lbas = [8, 12, 16, 31, 64][rng.below(5) as usize];
    let zones = match rng.below(4) {
        // So many that an image takes two zones.
        0 if capacity_lbas == 8 => 130,
        _ => 16 + rng.below(24) as u32,
    };
    let mut config = tiny(zones, capacity_lbas);
    if rng.below(3) > 0 {
        config.write_buffer = Some(WriteBufferConfig {
            size_bytes: 64 << 10,
            power_loss_protection: rng.below(3) == 0,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: Placement::InOrder,
            release: BufferRelease::Program,
        });
    }
    config.zones.max_active = [None, Some(3), Some(3), Some(5)][rng.below(4) as usize];
    config.zones.max_open = match config.zones.max_active {
        Some(most) if rng.below(2) == 0 => Some(most - 1),
        most => most,
    };
    config
}

/// A drive that goes on from run to run.
pub(crate) struct Machine {
    pub(crate) device: Emulated,
    /// When it can be used again.
    pub(crate) now: Nanos,
    /// What is done to commands and their data on the way.
    pub(crate) meddling: Meddling,
    torn: Torn,
}

/// Writes on their way, and what a loss of power left of them: any of their blocks,
/// as on a drive that programs them in any order.
#[derive(Clone, Default)]
struct Torn {
    /// First block and number of blocks, by tag.
    flying: Rc<RefCell<BTreeMap<u32, (u64, u32)>>>,
    /// Commands in the order in which they were given.
    given: Rc<RefCell<Vec<Op>>>,
    /// Commands on their way.
    in_flight: Rc<Cell<usize>>,
    /// Blocks that read as zeros.
    holes: Rc<RefCell<HashSet<u64>>>,
}

impl Torn {
    fn note(&self, op: &Op, tag: Tag, zone_lbas: u64) {
        let mut holes = self.holes.borrow_mut();
        match op {
            Op::Write { slba, nlb } => {
                self.flying.borrow_mut().insert(tag.0, (slba.0, *nlb));
                holes.retain(|lba| !(slba.0..slba.0 + u64::from(*nlb)).contains(lba));
            }
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } if *action == ZoneSendAction::RESET => {
                let zone = slba.0..slba.0 + zone_lbas;
                holes.retain(|lba| !*select_all && !zone.contains(lba));
            }
            _ => {}
        }
    }

    /// What could not be read until now may be read from now on.
    fn settle(&self, seed: u64) {
        let rng = Rng::new(seed, 4);
        let appears = |lba: &u64| Rng::new(rng.clone().next_u64() ^ lba, 5).below(4) == 0;
        self.holes.borrow_mut().retain(|lba| !appears(lba));
    }

    fn lose(&self, seed: u64) {
        self.in_flight.set(0);
        let mut rng = Rng::new(seed, 3);
        for (_, (first, blocks)) in core::mem::take(&mut *self.flying.borrow_mut()) {
            if rng.below(2) == 0 {
                continue;
            }
            let lost = (first..first + u64::from(blocks)).filter(|_| rng.below(2) == 0);
            self.holes.borrow_mut().extend(lost);
        }
    }
}

/// What stands between programs and the drive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meddling {
    /// Reads of this byte of this block see it with these bits flipped.
    pub(crate) flip: Option<(u64, usize, u8)>,
    /// What would change the drive is not carried out, and succeeds.
    pub(crate) keeps_drive: bool,
}

/// When power is lost: so many steps of the program after its start, and then
/// so much later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) steps: u64,
    pub(crate) delay: Nanos,
    /// Decides what is left of writes on their way.
    pub(crate) seed: u64,
    /// The drive keeps its power: it is the program that dies.
    pub(crate) is_crash: bool,
}

impl Cut {
    /// Within the first `most` steps.
    pub(crate) fn draw(rng: &mut Rng, most: u64) -> Self {
        Self {
            steps: rng.below(most),
            // Up to the time of a page's program.
            delay: Nanos(rng.below(800_000)),
            seed: rng.next_u64(),
            is_crash: rng.below(4) == 0,
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
            meddling: Meddling::default(),
            torn: Torn::default(),
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

    /// The commands of all programs until now.
    pub(crate) fn take_commands(&self) -> Vec<Op> {
        self.torn.given.take()
    }

    /// Runs a program until it ends or power is lost. In that case nothing of
    /// it is left, and the drive has power again.
    pub(crate) fn run_until<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        cut: Option<Cut>,
        main: impl FnOnce(Io) -> F,
    ) -> End<T> {
        self.torn.settle(self.now.0);
        let info = self.device.info().clone();
        let queue = self.device.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
        let mut program = Program {
            tasks: Some(Tasks::new(&info, TasksConfig::default(), main)),
            device: self.device.clone(),
            cut,
            cut_at: None,
            ready_at: None,
            meddling: self.meddling,
            reads: Rc::default(),
            torn: self.torn.clone(),
            zone_lbas: info.namespaces[0]
                .zoned
                .map_or(0, |zoned| zoned.zone_size_lbas),
            lba_bytes: info.namespaces[0].lba_bytes as usize,
        };
        let device = self.device.clone();
        let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
        reactor.add(&mut program, queue, CoreId(0), self.now);
        let end = reactor.run();
        assert_eq!(end.stuck_jobs, 0, "the program waits for nothing");
        self.now = end.at.max(self.now);
        if let Some(ready_at) = program.ready_at {
            self.now = ready_at;
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
    meddling: Meddling,
    /// Reads on their way, by tag: first block.
    reads: Rc<RefCell<HashMap<u32, u64>>>,
    torn: Torn,
    zone_lbas: u64,
    lba_bytes: usize,
}

impl<T> Program<T> {
    /// The program is gone; its commands end all the same.
    fn wait_for_the_last(&mut self, now: Nanos, done: &mut Vec<Completion>) -> NextWake {
        self.meddle(done);
        self.torn
            .in_flight
            .set(self.torn.in_flight.get() - done.len());
        done.clear();
        if self.torn.in_flight.get() > 0 {
            return NextWake::Completion;
        }
        self.ready_at = Some(now);
        NextWake::Finished
    }

    fn meddle(&self, done: &mut [Completion]) {
        for completion in done {
            self.torn.flying.borrow_mut().remove(&completion.tag.0);
            let Some(first) = self.reads.borrow_mut().remove(&completion.tag.0) else {
                continue;
            };
            let Some(data) = &mut completion.data else {
                continue;
            };
            let holes = self.torn.holes.borrow();
            if !holes.is_empty() {
                for (block, lba) in data.chunks_mut(self.lba_bytes).zip(first..) {
                    if holes.contains(&lba) {
                        block.fill(0);
                    }
                }
            }
            let Some((lba, byte, bits)) = self.meddling.flip else {
                continue;
            };
            let at = lba.checked_sub(first);
            let at = at.map(|blocks| blocks as usize * self.lba_bytes + byte);
            if let Some(byte) = at.and_then(|at| data.get_mut(at)) {
                *byte ^= bits;
            }
        }
    }
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
            self.tasks = None;
            if cut.is_crash {
                return self.wait_for_the_last(now, done);
            }
            self.torn.lose(cut.seed);
            let off = Nanos::from_ms(1);
            let loss = self
                .device
                .with_drive(|drive| drive.power_cut(now, off, cut.seed));
            self.ready_at = Some(loss.ready_at);
            return NextWake::Finished;
        }
        self.meddle(done);
        self.torn
            .in_flight
            .set(self.torn.in_flight.get() - done.len());
        let tasks = self.tasks.as_mut().expect("power is lost once");
        let mut queue = Meddler {
            inner: queue,
            keeps_drive: self.meddling.keeps_drive,
            reads: Rc::clone(&self.reads),
            torn: self.torn.clone(),
            zone_lbas: self.zone_lbas,
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

/// A queue pair that sees commands on their way.
struct Meddler<'a> {
    inner: &'a mut dyn QueuePair,
    keeps_drive: bool,
    reads: Rc<RefCell<HashMap<u32, u64>>>,
    torn: Torn,
    zone_lbas: u64,
}

impl QueuePair for Meddler<'_> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if let Op::Read { slba, .. } = command.op {
            self.reads.borrow_mut().insert(tag.0, slba.0);
        }
        let changes = matches!(command.op, Op::Write { .. } | Op::ZoneSend { .. });
        if self.keeps_drive && changes {
            let flush = Command {
                op: Op::Flush,
                ..command
            };
            self.inner.submit(flush, tag, None)?;
            self.torn.in_flight.set(self.torn.in_flight.get() + 1);
            return Ok(());
        }
        let op = command.op;
        self.inner.submit(command, tag, data)?;
        self.torn.given.borrow_mut().push(op);
        self.torn.note(&op, tag, self.zone_lbas);
        self.torn.in_flight.set(self.torn.in_flight.get() + 1);
        Ok(())
    }

    fn ring(&mut self) {
        self.inner.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        self.inner.poll(done)
    }
}
