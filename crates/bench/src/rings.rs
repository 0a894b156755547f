//! What the driver for PCIe costs the core that runs it: from handing a command over to
//! having its completion, against a controller that completes at once.

use zonelab_device::{Buf, Command, Completion, Lba, Monotonic, Op, QueuePair, Tag};
use zonelab_driver::DriverError;
use zonelab_driver::pcie::{PcieController, PcieOptions, PcieQueue, Registers};
use zonelab_endpoint::{Endpoint, EndpointSettings, Immediate};
use zonelab_ssd::{Drive, profile};

/// Bytes of an operation.
const BYTES: usize = 4096;

/// Where the data of a command is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RingMemory {
    /// The command has no buffer: the driver's own memory is used.
    None,
    /// A buffer that the device accesses itself.
    Dma,
    /// A buffer in the heap, which is copied.
    Heap,
}

/// One case of the driver.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RingCase {
    /// It reads; else it writes.
    pub is_read: bool,
    /// Commands that are handed over at a time.
    pub depth: u32,
    /// Where their data is.
    pub memory: RingMemory,
    /// Threads, each with a queue of the same controller.
    pub threads: u16,
}

impl RingCase {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        let kind = if self.is_read { "read" } else { "write" };
        let memory = match self.memory {
            RingMemory::None => "none",
            RingMemory::Dma => "dma",
            RingMemory::Heap => "heap",
        };
        let threads = match self.threads {
            1 => String::new(),
            threads => format!("/{threads}-threads"),
        };
        format!("driver/{kind}/{}/{memory}{threads}", self.depth)
    }
}

/// All of them.
pub fn ring_cases() -> impl Iterator<Item = RingCase> {
    let memories = [RingMemory::None, RingMemory::Dma, RingMemory::Heap];
    let loads = [(true, 1), (false, 1), (true, 32), (false, 32)];
    let alone = memories.into_iter().flat_map(move |memory| {
        loads.map(|(is_read, depth)| RingCase {
            is_read,
            depth,
            memory,
            threads: 1,
        })
    });
    let together = [true, false].map(|is_read| RingCase {
        is_read,
        depth: 32,
        memory: RingMemory::Dma,
        threads: 2,
    });
    alone.chain(together)
}

/// A controller, and the loads of its queues.
pub struct RingRig {
    /// One for each thread.
    pub loads: Vec<RingLoad>,
    immediate: Immediate,
    /// Disables the controller when it goes.
    _controller: PcieController<Immediate>,
}

impl RingRig {
    /// A controller in memory, and the driver on it.
    ///
    /// # Errors
    /// The controller does not start.
    pub fn new(case: &RingCase) -> Result<Self, DriverError> {
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
            loads.push(RingLoad::new(case, &controller, queue)?);
        }
        Ok(Self {
            loads,
            immediate,
            _controller: controller,
        })
    }

    /// What the peer alone takes for as many operations: the doorbells, without the driver.
    pub fn run_peer(&mut self, operations: u64, depth: u32) {
        let entries = u32::from(self.loads[0].queue.depth()) + 1;
        let mut tail = 0;
        for _ in 0..operations.div_ceil(depth.into()) {
            tail = (tail + depth) % entries;
            self.immediate.write32(0x1008, tail);
        }
    }
}

/// A queue, and the buffers that go round through it. Its lists have room to spare, so
/// that two threads write to no cache line of each other.
#[repr(align(128))]
pub struct RingLoad {
    queue: PcieQueue<Immediate>,
    command: Command,
    depth: u32,
    buffers: Vec<Option<Buf>>,
    done: Vec<Completion>,
}

impl RingLoad {
    fn new(
        case: &RingCase,
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
                RingMemory::None => None,
                RingMemory::Dma => Some(controller.buffer(BYTES)?),
                RingMemory::Heap => Some(Buf::zeroed(BYTES)),
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

    /// Writes of the submission and of the completion doorbell so far.
    #[must_use]
    pub fn doorbells(&self) -> (u64, u64) {
        let counts = self.queue.counts();
        (counts.submission_doorbells, counts.completion_doorbells)
    }

    /// Carries out at least `operations`, a full queue at a time. Returns how many
    /// succeeded.
    pub fn run(&mut self, operations: u64) -> u64 {
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
