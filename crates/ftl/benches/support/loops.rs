//! Loops of operations in virtual time, timed by what the processor takes.

use zonelab_device::{Command, Completion, Device, Lba, Monotonic, Nanos, Op, QueuePair, Tag};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, EmulatedQueue, HostCosts};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::profile;

pub(crate) const DEPTH: u32 = 32;

/// A drive of `zones` zones of 64 MiB in blocks of 4 KiB that only models time.
pub(crate) fn config(zones: u32) -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::None;
    config.geometry.pages_per_block = 512;
    config.geometry.blocks_per_plane = 64 * zones;
    config.zones.count = zones;
    config.zones.capacity_lbas = 16384;
    config.zones.size_lbas = 16384;
    config.zones.max_active = Some(14);
    config.zones.max_open = Some(14);
    config
}

/// Writes of a block anywhere.
pub(crate) fn writes(blocks: u64) -> impl FnMut(u64, &mut Rng) -> Op {
    move |_, rng| Op::Write {
        slba: Lba(rng.below(blocks)),
        nlb: 1,
    }
}

/// So many operations, with so many in flight: `op` makes each of its number, and of chance.
pub(crate) struct Loop<F> {
    op: F,
    depth: u32,
    left: u64,
    in_flight: u32,
    next: u64,
    pub(crate) rng: Rng,
}

impl<F: FnMut(u64, &mut Rng) -> Op> Loop<F> {
    pub(crate) fn new(op: F, depth: u32, operations: u64) -> Self {
        Self {
            op,
            depth,
            left: operations,
            in_flight: 0,
            next: 0,
            rng: Rng::new(1, 0),
        }
    }
}

impl<F: FnMut(u64, &mut Rng) -> Op> Job for Loop<F> {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        for completion in done.iter() {
            assert!(completion.status.is_success(), "{completion:?}");
            self.in_flight -= 1;
        }
        while self.left > 0 && self.in_flight < self.depth {
            let command = Command::new((self.op)(self.next, &mut self.rng));
            self.next += 1;
            let taken = queue.submit(command, Tag(0), None);
            taken.expect("the queue holds as many");
            self.left -= 1;
            self.in_flight += 1;
        }
        queue.ring();
        match self.in_flight {
            0 => NextWake::Finished,
            _ => NextWake::Completion,
        }
    }
}

pub(crate) fn open(drive: &Emulated) -> EmulatedQueue {
    drive.open_queue(256, HostCosts::FREE, Rng::new(1, 0))
}

/// Runs a loop, and returns nanoseconds of the processor for each operation, and the time then.
pub(crate) fn run<D, F>(device: D, queue: D::Queue, mut work: Loop<F>, at: Nanos) -> (f64, Nanos)
where
    D: Device,
    F: FnMut(u64, &mut Rng) -> Op,
    VirtualClock: zonelab_host::WaitsFor<D>,
{
    let operations = work.left as f64;
    let processor = Monotonic::new();
    let clock = VirtualClock::starting_at(at);
    let mut reactor = Reactor::new(clock, device, StopSignal::default());
    reactor.add(&mut work, queue, CoreId(0), at);
    let end = reactor.run();
    assert_eq!(end.stuck_jobs, 0);
    (processor.now().0 as f64 / operations, end.at)
}
