//! Our own target under load from our own initiator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};
use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueuePair, Tag};
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Options, TcpController, TcpQueue};
use zonelab_host::Rng;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::{Control, Drive};
use zonelab_target::controller::Subsystem;
use zonelab_target::server::{ServerReport, Visitor, visits};

use super::{Case, Cores, Measured, cpu_time};
use crate::bench::now;
use crate::bench::served::{self, NQN};

/// Zones that a connection writes in turn, or reads from.
const ZONES: u64 = 4;

/// A server in a thread of its own.
pub(super) struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    visitor: Visitor<Subsystem>,
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
        let (visitor, visits) = visits()?;
        let thread = std::thread::spawn(move || {
            cores.pin_server();
            let mut result = Ok(());
            let allocated = allocation_counter::measure(|| {
                result = server.run_visited(&mut subsystem, &stopped, visits);
            });
            result?;
            Ok((server.report(), allocated.count_total))
        });
        Ok(Self {
            address,
            stop,
            visitor,
            thread: Some(thread),
        })
    }

    /// Processor time of the server so far.
    fn cpu_time(&self) -> Result<f64> {
        Ok(self.visitor.call(|_| cpu_time())?)
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

/// One connection and what it does.
struct Lane {
    queue: TcpQueue,
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

    /// The next operation. A zone is left before the next is begun.
    fn next(&mut self) -> Result<Option<Op>> {
        let nlb = self.blocks;
        let blocks = u64::from(nlb);
        if self.is_read {
            let nth = self.rng.below(self.held() / blocks) * blocks;
            let slba = self.place(nth);
            return Ok(Some(Op::Read { slba, nlb }));
        }
        let slba = self.place(self.next);
        if self.next.is_multiple_of(self.capacity_lbas) {
            if self.in_flight > 0 {
                return Ok(None);
            }
            self.one(Op::ZoneSend {
                slba,
                action: ZoneSendAction::RESET,
                select_all: false,
            })?;
        }
        self.next = (self.next + blocks) % self.held();
        Ok(Some(Op::Write { slba, nlb }))
    }

    fn submit(&mut self, op: Op) -> Result<()> {
        let command = Command {
            nsid: NamespaceId(1),
            op,
        };
        let data = match op {
            Op::Write { nlb, .. } => Some(self.buffer(nlb)),
            _ => None,
        };
        self.queue
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

    /// Collects what is done, and fills up.
    fn turn(&mut self, depth: usize, done: &mut Vec<Completion>) -> Result<u64> {
        done.clear();
        self.queue.poll(done);
        for completion in &*done {
            ensure!(completion.status.is_success(), "{}", completion.status);
        }
        self.in_flight -= done.len();
        let ended = done.len() as u64;
        self.buffers
            .extend(done.drain(..).filter_map(|completion| completion.data));
        while self.in_flight < depth {
            let Some(op) = self.next()? else { break };
            self.submit(op)?;
        }
        self.queue.ring();
        Ok(ended)
    }

    /// One operation by itself.
    fn one(&mut self, op: Op) -> Result<()> {
        self.submit(op)?;
        self.queue.ring();
        let mut done = Vec::new();
        while self.queue.poll(&mut done) == 0 {}
        self.in_flight -= 1;
        ensure!(done[0].status.is_success(), "{}", done[0].status);
        Ok(())
    }

    /// Fills its zones.
    fn fill(&mut self) -> Result<()> {
        let nlb = 32;
        for nth in (0..self.held()).step_by(nlb as usize) {
            let slba = self.place(nth);
            self.one(Op::Write { slba, nlb })?;
        }
        Ok(())
    }
}

/// The connections of a case.
pub(super) struct Load {
    /// Its connection must stay open.
    _controller: TcpController,
    lanes: Vec<Lane>,
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
        options.queues = case.connections as u16;
        let mut controller = TcpController::connect(options)?;
        let (zone_lbas, capacity_lbas) = (config.zones.size_lbas, config.zones.capacity_lbas);
        let mut lanes = Vec::new();
        for lane in 0..case.connections as u64 {
            let mut lane = Lane {
                queue: controller.open_queue()?,
                is_read: case.is_read,
                blocks: case.bytes / config.lba_bytes,
                capacity_lbas,
                zone_lbas,
                start: lane * ZONES * zone_lbas,
                next: 0,
                rng: Rng::new(1, lane),
                in_flight: 0,
                buffers: Vec::new(),
                lba_bytes: config.lba_bytes as usize,
            };
            if case.is_read && !is_full {
                lane.fill()?;
            }
            lanes.push(lane);
        }
        Ok(Self {
            _controller: controller,
            lanes,
            depth: case.depth,
        })
    }

    /// Runs for some seconds.
    pub(super) fn measure(&mut self, served: &Served, seconds: f64) -> Result<Measured> {
        let mut done = Vec::with_capacity(2 * self.depth);
        let (cpu_start, start, mut operations) = (served.cpu_time()?, now(), 0);
        let elapsed = loop {
            for lane in &mut self.lanes {
                operations += lane.turn(self.depth, &mut done)?;
            }
            let elapsed = now().duration_since(start).as_secs_f64();
            if elapsed >= seconds {
                break elapsed;
            }
        };
        let cpu_s = served.cpu_time()? - cpu_start;
        // The next round begins with nothing in flight.
        for lane in &mut self.lanes {
            while lane.in_flight > 0 {
                done.clear();
                lane.in_flight -= lane.queue.poll(&mut done);
            }
        }
        Ok(Measured {
            per_s: operations as f64 / elapsed,
            cpu_ns: cpu_s * 1e9 / operations as f64,
            allocations: 0.0,
        })
    }
}
