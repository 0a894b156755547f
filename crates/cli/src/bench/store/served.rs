//! Hosts that write and flush over TCP: how far their flushes share
//! synchronisations of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow, ensure};
use zonelab_device::{Buf, Command, Completion, NamespaceId, Op, QueuePair, Tag};
use zonelab_driver::Controller as _;
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Options, TcpController, TcpQueue};
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::FaultyDrive;

use super::load::{Places, filled};
use super::place::{Place, Removed, Syncs};
use super::{Case, Subject};
use crate::bench::served::{self, NQN};

/// A host: a connection, and one command at a time.
struct Host {
    queue: TcpQueue,
    places: Places,
    data: Option<Buf>,
    /// What is in flight is a Flush, and no write.
    is_flush: bool,
}

impl Host {
    fn submit(&mut self, op: Op, data: Option<Buf>) -> Result<()> {
        let nsid = NamespaceId(1);
        self.queue
            .submit(Command::on(nsid, op), Tag(0), data)
            .map_err(|rejected| anyhow!("{:?}", rejected.reason))?;
        self.queue.ring();
        Ok(())
    }

    /// The next write, unless its zones are full.
    fn write(&mut self) -> Result<bool> {
        let Some((slba, nlb)) = self.places.next() else {
            return Ok(false);
        };
        let data = self.data.take();
        self.is_flush = false;
        self.submit(Op::Write { slba, nlb }, data)?;
        Ok(true)
    }
}

/// A server, and hosts that are all served by it.
pub(super) struct Served {
    hosts: Vec<Host>,
    done: Vec<Completion>,
    syncs: Syncs,
    /// The connections of its hosts need it.
    _controller: TcpController,
    server: Running,
    _file: Removed,
}

/// A server in a thread of its own, until it is dropped.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Its file is removed next, so that how it ended is of no interest.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Served {
    pub(super) fn new(
        place: &Place,
        config: &DriveConfig,
        case: &Case,
        has_checksums: bool,
    ) -> Result<Self> {
        let (file, drive, syncs) = place.drive(config, has_checksums)?;
        let (mut server, address, mut subsystem) = served::server(FaultyDrive::from(drive))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(&mut subsystem, &stopped));
        let server = Running {
            stop,
            thread: Some(thread),
        };
        let mut options =
            Options::new(TcpAddress::parse(&format!("tcp://{address}/{NQN}?nsid=1"))?);
        options.kato_ms = 0;
        // Fits: a case has few hosts.
        options.queues = case.hosts() as u16;
        let mut controller = TcpController::connect(options)?;
        let mut hosts = Vec::new();
        for host in 0..case.hosts() {
            let mut host = Host {
                queue: controller.open_queue()?,
                places: Places::new(config, case.bytes, (host, case.hosts())),
                data: Some(filled(case.bytes)),
                is_flush: false,
            };
            host.write()?;
            hosts.push(host);
        }
        Ok(Self {
            hosts,
            done: Vec::new(),
            syncs,
            _controller: controller,
            server,
            _file: file,
        })
    }
}

impl Subject for Served {
    /// Looks at each host once: what is answered goes on.
    fn step(&mut self, _: &Case) -> Result<Option<u64>> {
        ensure!(
            self.server
                .thread
                .as_ref()
                .is_some_and(|of| !of.is_finished()),
            "the server has ended"
        );
        let mut flushed = 0;
        for host in &mut self.hosts {
            host.queue.poll(&mut self.done);
            let Some(completion) = self.done.pop() else {
                continue;
            };
            ensure!(completion.status.is_success(), "{}", completion.status);
            if let Some(data) = completion.data {
                host.data = Some(data);
            }
            if host.is_flush {
                flushed += 1;
                if !host.write()? {
                    return Ok(None);
                }
            } else {
                host.is_flush = true;
                host.submit(Op::Flush, None)?;
            }
        }
        Ok(Some(flushed))
    }

    fn syncs(&self) -> u64 {
        self.syncs.count()
    }
}
