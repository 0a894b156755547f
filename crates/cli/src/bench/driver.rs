//! What the driver for PCIe costs the core that runs it: from handing a command over to
//! having its completion, against a controller that completes at once.

use std::sync::Barrier;
use std::time::Duration;

use serde_json::json;
use zonelab_device::{Buf, Command, Completion, Lba, Monotonic, Op, QueuePair, Tag};
use zonelab_driver::DriverError;
use zonelab_driver::pcie::{PcieController, PcieOptions, PcieQueue, Registers};
use zonelab_endpoint::{Endpoint, EndpointSettings, Immediate};
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_ssd::{Drive, profile};

use super::live::Cores;
use super::{Args, timed};
use crate::console;
use crate::exit::{Exit, Failure};

/// What all cases are called.
pub(super) const DRIVER: &str = "driver";

/// Nanoseconds of one operation with SPDK, submission and completion, from its
/// 10.39 million reads of 4 KiB a second on one core (spdk.io, 2019).
const SPDK_NS: f64 = 96.0;

/// Bytes of an operation.
const BYTES: usize = 4096;

/// Where the data of a command is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Memory {
    /// The command has no buffer: the driver's own memory is used.
    None,
    /// A buffer that the device accesses itself.
    Dma,
    /// A buffer in the heap, which is copied.
    Heap,
}

/// One line of the table.
pub(super) struct Case {
    is_read: bool,
    depth: u32,
    memory: Memory,
    /// Threads, each with a queue of the same controller.
    threads: u16,
}

impl Case {
    pub(super) fn name(&self) -> String {
        let kind = if self.is_read { "read" } else { "write" };
        let memory = match self.memory {
            Memory::None => "none",
            Memory::Dma => "dma",
            Memory::Heap => "heap",
        };
        let threads = match self.threads {
            1 => String::new(),
            threads => format!("/{threads}-threads"),
        };
        format!("{DRIVER}/{kind}/{}/{memory}{threads}", self.depth)
    }
}

fn all() -> impl Iterator<Item = Case> {
    let memories = [Memory::None, Memory::Dma, Memory::Heap];
    let loads = [(true, 1), (false, 1), (true, 32), (false, 32)];
    let alone = memories.into_iter().flat_map(move |memory| {
        loads.map(|(is_read, depth)| Case {
            is_read,
            depth,
            memory,
            threads: 1,
        })
    });
    let together = [true, false].map(|is_read| Case {
        is_read,
        depth: 32,
        memory: Memory::Dma,
        threads: 2,
    });
    alone.chain(together)
}

/// The cases whose names are wanted.
pub(super) fn cases(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    all().filter(|case| wanted(&case.name())).collect()
}

/// The names of all cases.
pub(super) fn names() -> impl Iterator<Item = String> {
    all().map(|case| case.name())
}

/// One line of the result.
pub(super) struct Row {
    name: String,
    depth: u32,
    ns_per_op: f64,
    peer_ns_per_op: f64,
    scaling: Option<Scaling>,
    allocs_per_op: f64,
    submission_doorbells: f64,
    completion_doorbells: f64,
}

/// A controller, and the loads of its queues.
struct Rig {
    loads: Vec<Load>,
    immediate: Immediate,
    /// Disables the controller when it goes.
    _controller: PcieController<Immediate>,
}

impl Rig {
    fn new(case: &Case) -> Result<Self, DriverError> {
        let config = profile::builtin("confznspp").map(|profile| profile.config);
        let config = config.ok_or(DriverError::Closed)?;
        let settings = EndpointSettings::default();
        let endpoint = Endpoint::in_real_time(Drive::new(&config), settings, Monotonic::new());
        let immediate = Immediate::new(endpoint.map_err(|_| DriverError::Closed)?);
        let options = PcieOptions {
            queue_entries: 128,
            queues: case.threads,
            ..PcieOptions::default()
        };
        let mut controller = PcieController::connect(immediate.clone(), options)?;
        let mut loads = Vec::new();
        for _ in 0..case.threads {
            let queue = controller.open_queue()?;
            let is_attached = immediate.attach(queue.id().0);
            debug_assert!(is_attached, "a queue that was just made");
            loads.push(Load::new(case, &controller, queue)?);
        }
        Ok(Self {
            loads,
            immediate,
            _controller: controller,
        })
    }

    /// What the peer alone takes for as many operations: the doorbells, without the driver.
    fn run_peer(&mut self, operations: u64, depth: u32) {
        let entries = u32::from(self.loads[0].queue.depth()) + 1;
        let mut tail = 0;
        for _ in 0..operations.div_ceil(depth.into()) {
            tail = (tail + depth) % entries;
            self.immediate.write32(0x1008, tail);
        }
    }
}

/// Lets loads run beside each other, each on a core of its own if there are so many. How
/// long the slowest took.
fn run_together<'a>(
    loads: impl Iterator<Item = &'a mut Load>,
    operations: u64,
    cores: Cores,
) -> Duration {
    let loads: Vec<&mut Load> = loads.collect();
    let barrier = Barrier::new(loads.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = loads
            .into_iter()
            .enumerate()
            .map(|(index, load)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    cores.pin(index % 2);
                    load.run(operations / 10);
                    barrier.wait();
                    timed(|| load.run(operations)).0
                })
            })
            .collect();
        let times = running.into_iter().map(|thread| thread.join());
        // A thread that panicked has taken for ever.
        times.map(|time| time.unwrap_or(Duration::MAX)).max()
    })
    .unwrap_or(Duration::MAX)
}

/// A queue, and the buffers that go round through it. Its lists have room to spare, so
/// that two threads write to no cache line of each other.
#[repr(align(128))]
struct Load {
    queue: PcieQueue<Immediate>,
    command: Command,
    depth: u32,
    buffers: Vec<Option<Buf>>,
    done: Vec<Completion>,
}

impl Load {
    fn new(
        case: &Case,
        controller: &PcieController<Immediate>,
        queue: PcieQueue<Immediate>,
    ) -> Result<Self, DriverError> {
        let first = controller.info().namespaces.first();
        let nlb = BYTES as u32 / first.map_or(4096, |of| of.lba_bytes);
        let slba = Lba(0);
        let op = match case.is_read {
            true => Op::Read { slba, nlb },
            false => Op::Write { slba, nlb },
        };
        let room = 2 * case.depth as usize;
        let mut buffers = Vec::with_capacity(room);
        for _ in 0..case.depth {
            buffers.push(match case.memory {
                Memory::None => None,
                Memory::Dma => Some(controller.buffer(BYTES)?),
                Memory::Heap => Some(Buf::zeroed(BYTES)),
            });
        }
        Ok(Self {
            queue,
            command: Command::new(op),
            depth: case.depth,
            buffers,
            done: Vec::with_capacity(room),
        })
    }

    /// Carries out at least `operations`, a full queue at a time. Returns how many
    /// succeeded.
    fn run(&mut self, operations: u64) -> u64 {
        let mut succeeded = 0;
        let rounds = operations.div_ceil(self.depth.into());
        for _ in 0..rounds {
            for (tag, data) in (0..).zip(self.buffers.drain(..)) {
                let taken = self.queue.submit(self.command, Tag(tag), data);
                debug_assert!(taken.is_ok(), "the queue is deeper than the load");
            }
            self.queue.ring();
            self.queue.poll(&mut self.done);
            for done in self.done.drain(..) {
                succeeded += u64::from(done.status.is_success());
                self.buffers.push(done.data);
            }
        }
        succeeded
    }
}

/// How many times what one thread does two threads do.
#[derive(Copy, Clone, Debug)]
struct Scaling {
    /// With a queue each of one controller.
    together: f64,
    /// With a controller each: what the machine makes of two threads that share nothing.
    apart: f64,
}

impl Scaling {
    /// Measures one thread and two in turn.
    fn measure(case: &Case, args: &Args, cores: Cores) -> Result<Self, DriverError> {
        let operations = args.operations.next_multiple_of(case.depth.into());
        let [mut alone, mut together, mut apart] = [Duration::MAX; 3];
        for _ in 0..args.runs {
            let mut rigs = [Rig::new(case)?, Rig::new(case)?];
            let firsts = rigs.iter_mut().filter_map(|rig| rig.loads.first_mut());
            apart = apart.min(run_together(firsts, operations, cores));
            let loads = rigs[0].loads.iter_mut();
            together = together.min(run_together(loads, operations, cores));
            let first = rigs[0].loads.iter_mut().take(1);
            alone = alone.min(run_together(first, operations, cores));
        }
        let times = |two: Duration| 2.0 * alone.as_secs_f64() / two.as_secs_f64();
        Ok(Self {
            together: times(together),
            apart: times(apart),
        })
    }
}

/// Measures; the fastest of the runs counts.
///
/// # Errors
/// The controller in memory does not start.
pub(super) fn measure(case: &Case, cores: Cores, args: &Args) -> Result<Row, Failure> {
    let failed = |error| Failure::new(Exit::Device, anyhow::Error::new(error));
    let operations = args.operations.next_multiple_of(case.depth.into());
    let (mut best, mut peer) = (Duration::MAX, Duration::MAX);
    let mut counts = (0.0, 0.0);
    let mut allocations = 0;
    for _ in 0..args.runs {
        let mut rig = Rig::new(case).map_err(failed)?;
        let load = &mut rig.loads[0];
        load.run(operations / 10);
        let before = load.queue.counts();
        let (time, succeeded) = timed(|| load.run(operations));
        assert_eq!(succeeded, operations, "all commands succeed");
        best = best.min(time);
        let after = load.queue.counts();
        counts = (
            (after.submission_doorbells - before.submission_doorbells) as f64,
            (after.completion_doorbells - before.completion_doorbells) as f64,
        );
        let counted = allocation_counter::measure(|| {
            load.run(operations / 10);
        });
        allocations = counted.count_total;
        let (time, ()) = timed(|| rig.run_peer(operations, case.depth));
        peer = peer.min(time);
    }
    let scaling = match case.threads {
        1 => None,
        _ => Some(Scaling::measure(case, args, cores).map_err(failed)?),
    };
    let each = |total: f64| total / operations as f64;
    Ok(Row {
        name: case.name(),
        depth: case.depth,
        scaling,
        ns_per_op: each(best.as_nanos() as f64),
        peer_ns_per_op: each(peer.as_nanos() as f64),
        allocs_per_op: allocations as f64 / (operations / 10) as f64,
        submission_doorbells: each(counts.0),
        completion_doorbells: each(counts.1),
    })
}

impl Row {
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rounded = |value: f64| zonelab_lab::rows::significant(value);
        json!({
            "name": self.name,
            "depth": self.depth,
            "ns_per_op": rounded(self.ns_per_op),
            "peer_ns_per_op": rounded(self.peer_ns_per_op),
            "threads_of_one": self.scaling.map(|of| rounded(of.together)),
            "threads_of_one_with_a_controller_each": self.scaling.map(|of| rounded(of.apart)),
            "allocs_per_op": rounded(self.allocs_per_op),
            "submission_doorbells_per_op": rounded(self.submission_doorbells),
            "completion_doorbells_per_op": rounded(self.completion_doorbells),
            "spdk_ns_per_op": SPDK_NS,
        })
    }
}

pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        Column::text("4 KiB through rings"),
        Column::number("ns/op"),
        Column::number("of it the peer"),
        Column::number("driver"),
        Column::number("of SPDK's 96 ns"),
        Column::number("allocs/op"),
        Column::number("SQ doorbells/op"),
        Column::number("CQ doorbells/op"),
        Column::number("of one thread"),
        Column::number("with a controller each"),
    ]);
    for row in rows {
        let driver = (row.ns_per_op - row.peer_ns_per_op).max(0.0);
        let times = |of: fn(&Scaling) -> f64| {
            let scaling = row.scaling.as_ref();
            scaling.map_or(String::new(), |it| format!("{:.2}", of(it)))
        };
        table.push(
            [
                row.name.clone(),
                format!("{:.1}", row.ns_per_op),
                format!("{:.1}", row.peer_ns_per_op),
                format!("{driver:.1}"),
                format!("{:.2}", driver / SPDK_NS),
                format!("{:.4}", row.allocs_per_op),
                format!("{:.4}", row.submission_doorbells),
                format!("{:.4}", row.completion_doorbells),
                times(|of| of.together),
                times(|of| of.apart),
            ]
            .map(Cell::from),
        );
    }
    table.to_text(&console::style())
}
