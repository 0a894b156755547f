//! Our own target under load from our own initiator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};
use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueuePair, Tag};
use zonelab_driver::Controller as _;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Options, TcpController, TcpDevice, TcpQueue};
use zonelab_host::{Clock, CoreId, Job, NextWake, Reactor, RealClock, Rng, StopSignal};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Control, Drive};
use zonelab_target::controller::Subsystem;
use zonelab_target::server::{LoopHandle, ServerReport, loop_calls};

use super::{Case, Cores, Measured, cpu_time};
use crate::bench::now;
use crate::bench::served::{self, NQN};

/// Zones that a connection writes in turn, or reads from.
const ZONES: u64 = 4;

/// A server in a thread of its own.
pub(super) struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    handle: LoopHandle<Subsystem>,
    thread: Option<JoinHandle<Result<(ServerReport, u64)>>>,
}

impl Served {
    /// Serves a drive whose zones are all full already, or empty.
    pub(super) fn start(cores: Cores, config: &DriveConfig, is_full: bool) -> Result<Self> {
        let mut drive = Drive::new(config);
        if is_full {
            let zones = 0..config.zones.count;
            drive.control(Nanos::ZERO, &Control::PreconditionFull { zones })?;
        }
        let (mut server, address, mut subsystem) = served::server(FaultyDrive::from(drive))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (handle, calls) = loop_calls()?;
        let thread = std::thread::spawn(move || {
            cores.pin_server();
            let mut result = Ok(());
            let allocated = allocation_counter::measure(|| {
                result = server.run_with_calls(&mut subsystem, &stopped, calls);
            });
            result?;
            Ok((server.report(), allocated.count_total))
        });
        Ok(Self {
            address,
            stop,
            handle,
            thread: Some(thread),
        })
    }

    /// Processor time of the server so far.
    fn cpu_time(&self) -> Result<f64> {
        Ok(self.handle.call(|_| cpu_time())?)
    }

    /// Ends it: what it did, and how often it allocated.
    pub(super) fn end(mut self) -> Result<(ServerReport, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it ends once")?;
        thread.join().map_err(|_| anyhow!("the server panicked"))?
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What one connection does.
struct Lane {
    is_read: bool,
    blocks: u32,
    lba_bytes: usize,
    /// Blocks of a zone that can be written, and from one zone to the next.
    capacity_lbas: u64,
    zone_lbas: u64,
    /// First block of its zones.
    start: u64,
    /// Next block to write, of all that its zones hold.
    next: u64,
    rng: Rng,
    in_flight: usize,
    /// The zone of the next block has been reset for it, or is being.
    is_reset: bool,
    /// Data to be written: not zeros, which the drive would not keep.
    buffers: Vec<Buf>,
}

impl Lane {
    /// Blocks that its zones hold.
    fn held(&self) -> u64 {
        ZONES * self.capacity_lbas
    }

    /// Where the nth of these blocks is.
    fn place(&self, nth: u64) -> Lba {
        let (zone, offset) = (nth / self.capacity_lbas, nth % self.capacity_lbas);
        Lba(self.start + zone * self.zone_lbas + offset)
    }

    /// The next operation. A zone is left before the next is begun, which is reset
    /// first if it holds data (`None`: what is in flight is waited for).
    fn next(&mut self) -> Option<Op> {
        let nlb = self.blocks;
        let blocks = u64::from(nlb);
        if self.is_read {
            let nth = self.rng.below(self.held() / blocks) * blocks;
            let slba = self.place(nth);
            return Some(Op::Read { slba, nlb });
        }
        let slba = self.place(self.next);
        let begins = self.next.is_multiple_of(self.capacity_lbas);
        if begins && !std::mem::take(&mut self.is_reset) {
            if self.in_flight > 0 {
                return None;
            }
            self.is_reset = true;
            return Some(Op::ZoneSend {
                slba,
                action: ZoneSendAction::RESET,
                select_all: false,
            });
        }
        self.next = (self.next + blocks) % self.held();
        Some(Op::Write { slba, nlb })
    }

    fn submit(&mut self, op: Op, queue: &mut dyn QueuePair) -> Result<()> {
        let command = Command::on(NamespaceId(1), op);
        let data = match op {
            Op::Write { nlb, .. } => Some(self.buffer(nlb)),
            _ => None,
        };
        queue
            .submit(command, Tag(0), data)
            .map_err(|rejected| anyhow!("{:?}", rejected.reason))?;
        self.in_flight += 1;
        Ok(())
    }

    fn buffer(&mut self, nlb: u32) -> Buf {
        let bytes = nlb as usize * self.lba_bytes;
        match self.buffers.pop() {
            Some(buf) if buf.len() == bytes => buf,
            _ => {
                let mut buf = Buf::zeroed(bytes);
                buf.fill(0xa5);
                buf
            }
        }
    }

    /// Takes what is done: how many operations that were.
    fn collect(&mut self, done: &mut Vec<Completion>) -> Result<u64> {
        for completion in &*done {
            ensure!(completion.status.is_success(), "{}", completion.status);
        }
        self.in_flight -= done.len();
        let ended = done.len() as u64;
        self.buffers
            .extend(done.drain(..).filter_map(|completion| completion.data));
        Ok(ended)
    }

    /// Fills up what is in flight. A reset goes by itself.
    fn fill_up(&mut self, depth: usize, queue: &mut dyn QueuePair) -> Result<()> {
        while self.in_flight < depth && !(self.is_reset && self.in_flight > 0) {
            let Some(op) = self.next() else { break };
            self.submit(op, queue)?;
        }
        queue.ring();
        Ok(())
    }

    /// One operation by itself.
    fn one(&mut self, op: Op, queue: &mut dyn QueuePair) -> Result<()> {
        self.submit(op, queue)?;
        queue.ring();
        let mut done = Vec::new();
        while queue.poll(&mut done) == 0 {}
        self.collect(&mut done)?;
        Ok(())
    }

    /// Fills its zones.
    fn fill(&mut self, queue: &mut dyn QueuePair) -> Result<()> {
        let nlb = 32;
        for nth in (0..self.held()).step_by(nlb as usize) {
            let slba = self.place(nth);
            self.one(Op::Write { slba, nlb }, queue)?;
        }
        Ok(())
    }
}

/// A lane as a job of a reactor, for some time.
struct Timed<'a> {
    lane: &'a mut Lane,
    depth: usize,
    until: Nanos,
    operations: u64,
    failure: Option<anyhow::Error>,
}

impl Timed<'_> {
    fn turn(&mut self, done: &mut Vec<Completion>, queue: &mut dyn QueuePair) -> Result<NextWake> {
        let ended = self.lane.collect(done)?;
        if queue.now() < self.until {
            self.operations += ended;
            self.lane.fill_up(self.depth, queue)?;
        }
        // The next round begins with nothing in flight.
        Ok(match self.lane.in_flight {
            0 => NextWake::Finished,
            _ => NextWake::Completion,
        })
    }
}

impl Job for Timed<'_> {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        self.turn(done, queue).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            NextWake::Finished
        })
    }
}

/// The connections of a case.
pub(super) struct Load {
    /// Its connection must stay open, and it has the queue of the reactor.
    device: TcpDevice,
    lanes: Vec<(TcpQueue, Lane)>,
    depth: usize,
}

impl Load {
    /// Connects; zones that are read and not full already are filled.
    pub(super) fn connect(
        served: &Served,
        config: &DriveConfig,
        case: &Case,
        is_full: bool,
    ) -> Result<Self> {
        let url = format!("tcp://{}/{NQN}?nsid=1", served.address);
        let address = TcpAddress::parse(&url)?;
        let mut options = Options::new(address);
        options.kato_ms = 0;
        // One more for the reactor.
        options.queues = case.connections as u16 + 1;
        let mut controller = TcpController::connect(options)?;
        let (zone_lbas, capacity_lbas) = (config.zones.size_lbas, config.zones.capacity_lbas);
        let mut lanes = Vec::new();
        for lane in 0..case.connections as u64 {
            let mut queue = controller.open_queue()?;
            let mut lane = Lane {
                is_read: case.is_read,
                blocks: case.bytes / config.lba_bytes,
                capacity_lbas,
                zone_lbas,
                start: lane * ZONES * zone_lbas,
                next: 0,
                rng: Rng::new(1, lane),
                in_flight: 0,
                is_reset: false,
                buffers: Vec::new(),
                lba_bytes: config.lba_bytes as usize,
            };
            if case.is_read && !is_full {
                lane.fill(&mut queue)?;
            }
            lanes.push((queue, lane));
        }
        Ok(Self {
            device: TcpDevice::new(controller)?,
            lanes,
            depth: case.depth,
        })
    }

    /// Runs for some seconds, in a loop that looks at its queues in turn.
    pub(super) fn measure(&mut self, served: &Served, seconds: f64) -> Result<Measured> {
        let mut done = Vec::with_capacity(2 * self.depth);
        let (cpu_start, start, mut operations) = (served.cpu_time()?, now(), 0);
        let elapsed = loop {
            for (queue, lane) in &mut self.lanes {
                queue.poll(&mut done);
                operations += lane.collect(&mut done)?;
                lane.fill_up(self.depth, queue)?;
            }
            let elapsed = now().duration_since(start).as_secs_f64();
            if elapsed >= seconds {
                break elapsed;
            }
        };
        let cpu_s = served.cpu_time()? - cpu_start;
        // The next round begins with nothing in flight.
        for (queue, lane) in &mut self.lanes {
            while lane.in_flight > 0 {
                queue.poll(&mut done);
                lane.collect(&mut done)?;
            }
        }
        Ok(Measured::new(operations, elapsed, cpu_s))
    }

    /// The same work of the first connection on a reactor, over a connection of its own.
    pub(super) fn measure_reactor(&mut self, served: &Served, seconds: f64) -> Result<Measured> {
        let queue = self.device.open_queue()?;
        let clock = RealClock::sharing(self.device.clock());
        let began = clock.now();
        let cpu_start = served.cpu_time()?;
        let (_, lane) = self.lanes.first_mut().context("there is a connection")?;
        let mut job = Timed {
            lane,
            depth: self.depth,
            until: began.saturating_add(Nanos((seconds * 1e9) as u64)),
            operations: 0,
            failure: None,
        };
        let mut reactor = Reactor::new(clock, &mut self.device, StopSignal::default());
        reactor.add(&mut job, queue, CoreId(0), began);
        reactor.run();
        let (operations, failure) = (job.operations, job.failure);
        if let Some(failure) = failure {
            return Err(failure);
        }
        let cpu_s = served.cpu_time()? - cpu_start;
        Ok(Measured::new(operations, seconds, cpu_s))
    }
}
