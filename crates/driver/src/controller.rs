//! A controller over NVMe/TCP: its admin queue, and the way to its I/O queues.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use zonelab_device::{DeviceInfo, Monotonic, NamespaceId, Nanos, QueueId};
use zonelab_nvme::identify::ControllerType;
use zonelab_nvme::log::{DiscoveryEntry, DiscoveryHeader, LogPageId};
use zonelab_nvme::queue::{AdminOpcode, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;

use crate::authentication::HostSecrets;
use crate::clock::sleep;
use crate::error::DriverError;
use crate::identity::Identity;
use crate::inquiry::{Asks, identity, zone_capacity};
use crate::queue::TcpQueue;
use crate::socket::{Reply, Socket};
use crate::starting::{Starting, open_queue};
use crate::tcp::Transfer;
use crate::transport::Controller;
use crate::url::TcpAddress;

/// Entries of a discovery log that are read.
const MAX_DISCOVERY_ENTRIES: u64 = 1024;

/// How often a discovery log is read that changes meanwhile.
const DISCOVERY_TRIES: u32 = 5;

/// What a discovery controller knows.
#[derive(Debug, Clone)]
pub struct DiscoveryLog {
    /// It changes when the log does (GENCTR).
    pub generation: u64,
    /// Subsystems and where they are: at most 1024.
    pub entries: Vec<DiscoveryEntry>,
}

/// How a controller is to be used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is, and who we are.
    pub address: TcpAddress,
    /// Longest time to connect, to answer the connection request, and to shut down.
    pub connect_timeout: Nanos,
    /// Longest time of one command, as the Linux host has it.
    pub command_timeout: Nanos,
    /// Keep alive timeout in milliseconds; 0: none. The controller gives a host
    /// up that is silent for longer.
    pub kato_ms: u32,
    /// Entries of an I/O queue, at least 2: one more than commands in flight.
    /// The controller's limit (MQES) applies besides.
    pub queue_entries: u32,
    /// I/O queues to ask for.
    pub queues: u16,
    /// What to authenticate with, if the controller asks for it.
    pub secrets: Option<HostSecrets>,
}

impl Options {
    /// One I/O queue for 127 commands, timeouts of 30 s, keep alive of 15 s, no secrets.
    #[must_use]
    pub fn new(address: TcpAddress) -> Self {
        Self {
            address,
            connect_timeout: Nanos::from_secs(10),
            command_timeout: Nanos::from_secs(30),
            kato_ms: 15_000,
            queue_entries: 128,
            queues: 1,
            secrets: None,
        }
    }
}

/// How often and how fast to connect again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Tries at most, at least 1.
    pub tries: u32,
    /// Wait before the second try; it doubles after each.
    pub first: Nanos,
    /// The longest wait.
    pub longest: Nanos,
}

impl Default for Backoff {
    /// Ten tries over about half a minute.
    fn default() -> Self {
        Self {
            tries: 10,
            first: Nanos::from_ms(100),
            longest: Nanos::from_secs(5),
        }
    }
}

/// A controller with its admin queue.
///
/// The admin calls wait for their ends. Whoever does I/O meanwhile calls
/// [`Controller::keep_alive`] now and then, which does not wait.
#[derive(Debug)]
pub struct TcpController {
    options: Options,
    clock: Monotonic,
    admin: Socket,
    cntlid: u16,
    identity: Identity,
    info: Arc<DeviceInfo>,
    /// The one namespace that queues are for; `None`: all.
    only: Option<NamespaceId>,
    /// The queue on which zone capacities were read, until it is asked for.
    first_queue: Option<Socket>,
    /// I/O queues that the controller grants, and how many were opened.
    granted: u16,
    opened: u16,
    /// When the controller must hear from us.
    alive_until: Nanos,
    keep_alive_in_flight: bool,
}

/// The keep alive timeout in milliseconds. A discovery controller that is asked
/// once has none.
pub(crate) fn kato_ms(options: &Options) -> u32 {
    match options.address.is_discovery() {
        true => 0,
        false => options.kato_ms,
    }
}

fn half_kato(options: &Options) -> Nanos {
    Nanos::from_us(500 * u64::from(kato_ms(options)))
}

/// Token of keep alive commands.
const KEEP_ALIVE: u64 = 1 << 62;

/// A queue that is asked, and how long an answer may take.
struct Patient<'a>(&'a mut Socket, Nanos);

impl Asks for Patient<'_> {
    fn ask(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let Self(socket, timeout) = self;
        socket.call(what, entry, transfer, *timeout)
    }
}

impl TcpController {
    /// Connects, enables the controller, and asks it what it is.
    ///
    /// A controller with zoned namespaces gets its first I/O queue here, since
    /// only a zone report says what the capacity of a zone is.
    ///
    /// # Errors
    /// [`DriverError`]: nobody is there, or not what it should be.
    pub fn connect(options: Options) -> Result<Self, DriverError> {
        Self::connect_at(options, Monotonic::new())
    }

    fn connect_at(options: Options, clock: Monotonic) -> Result<Self, DriverError> {
        let mut starting = Starting::open(&options, clock)?;
        let cap = starting.enable()?;
        let mut identity = identity(&mut starting, cap)?;
        let is_discovery = identity.controller.cntrltype == ControllerType::DISCOVERY
            || options.address.is_discovery();
        let mut granted = 0;
        let mut first_queue = None;
        if !is_discovery {
            identity.check_fabrics()?;
            granted = starting.queues(options.queues)?;
            if identity.namespaces.iter().any(|ns| ns.zns.is_some()) {
                let mut queue = open_queue(&options, clock, starting.cntlid, &identity, 1)?;
                for namespace in &mut identity.namespaces {
                    if namespace.zns.is_some() {
                        namespace.zone_capacity_lbas = zone_capacity(
                            &mut Patient(&mut queue, options.command_timeout),
                            namespace.nsid,
                        )?;
                    }
                }
                first_queue = Some(queue);
            }
        }
        let info = Arc::new(identity.device_info()?);
        Ok(Self {
            alive_until: clock.now().saturating_add(half_kato(&options)),
            clock,
            admin: starting.admin,
            cntlid: starting.cntlid,
            identity,
            info,
            only: None,
            first_queue,
            granted,
            opened: 0,
            keep_alive_in_flight: false,
            options,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &TcpAddress {
        &self.options.address
    }

    /// Queues that are opened from now on are for this namespace alone: they show no other,
    /// and take commands for no other.
    pub fn confine(&mut self, nsid: NamespaceId) {
        self.only = Some(nsid);
        self.info = Arc::new(self.info.only(nsid));
    }

    /// Identifier of the controller in its subsystem.
    #[must_use]
    pub fn cntlid(&self) -> u16 {
        self.cntlid
    }

    /// Reads the discovery log of a discovery controller: which subsystems there
    /// are, and where. It is read again if it changed meanwhile.
    ///
    /// # Errors
    /// The controller has none, or it never stands still.
    pub fn discovery_log(&mut self) -> Result<DiscoveryLog, DriverError> {
        let mut last = 0;
        for _ in 0..DISCOVERY_TRIES {
            let header = self.discovery_header()?;
            let (generation, count) = (header.genctr.get(), header.numrec.get());
            let mut entries = Vec::new();
            for index in 0..count.min(MAX_DISCOVERY_ENTRIES) {
                let size = size_of::<DiscoveryEntry>();
                let offset = size as u64 * index + size_of::<DiscoveryHeader>() as u64;
                let buf = self.log_page(0, LogPageId::DISCOVERY, offset, size)?;
                entries.extend(DiscoveryEntry::read_from_bytes(&buf).ok());
            }
            last = self.discovery_header()?.genctr.get();
            if last == generation {
                return Ok(DiscoveryLog {
                    generation,
                    entries,
                });
            }
        }
        Err(DriverError::Unusable {
            field: "a discovery log that keeps changing, last generation",
            value: last,
            needs: "the same twice",
        })
    }

    fn discovery_header(&mut self) -> Result<DiscoveryHeader, DriverError> {
        let bytes = size_of::<DiscoveryHeader>();
        let buf = self.log_page(0, LogPageId::DISCOVERY, 0, bytes)?;
        DiscoveryHeader::read_from_bytes(&buf).map_err(|_| DriverError::Unusable {
            field: "a discovery log of bytes:",
            value: buf.len() as u64,
            needs: "1024",
        })
    }

    /// Looks at what finished that nobody waits for: keep alives.
    fn settle(&mut self) {
        while let Some(done) = self.admin.next_done() {
            self.keep_alive_in_flight &= done.token != KEEP_ALIVE;
        }
    }

    /// Connects anew after the connection was lost: bounded tries, with waits
    /// that double. Queues must be opened anew, too.
    ///
    /// # Errors
    /// [`DriverError::GaveUp`] with the last failure.
    pub fn reconnect(&mut self, backoff: &Backoff) -> Result<(), DriverError> {
        self.admin.close();
        self.first_queue = None;
        let mut wait = backoff.first;
        let tries = backoff.tries.max(1);
        let mut last = DriverError::Closed;
        for attempt in 0..tries {
            if attempt > 0 {
                sleep(self.clock, wait);
                wait = Nanos(wait.0.saturating_mul(2)).min(backoff.longest);
            }
            match Self::connect_at(self.options.clone(), self.clock) {
                Ok(fresh) => {
                    let only = self.only;
                    *self = fresh;
                    if let Some(nsid) = only {
                        self.confine(nsid);
                    }
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(DriverError::GaveUp {
            tries,
            last: Box::new(last),
        })
    }
}

impl Controller for TcpController {
    type Queue = TcpQueue;

    fn info(&self) -> &Arc<DeviceInfo> {
        &self.info
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn granted_queues(&self) -> u16 {
        self.granted
    }

    fn admin(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let timeout = self.options.command_timeout;
        let reply = self.admin.call(what, entry, transfer, timeout)?;
        self.settle();
        Ok(reply)
    }

    fn open_queue(&mut self) -> Result<Self::Queue, DriverError> {
        if self.opened >= self.granted {
            return Err(DriverError::Unusable {
                field: "the number of I/O queues",
                value: self.granted.into(),
                needs: "one more",
            });
        }
        let qid = self.opened + 1;
        let socket = match self.first_queue.take() {
            Some(socket) => socket,
            None => open_queue(&self.options, self.clock, self.cntlid, &self.identity, qid)?,
        };
        self.opened = qid;
        Ok(TcpQueue::new(
            socket,
            QueueId(qid),
            Arc::clone(&self.info),
            self.options.command_timeout,
        ))
    }

    fn keep_alive(&mut self) -> Result<(), DriverError> {
        if half_kato(&self.options) == Nanos::ZERO {
            return Ok(());
        }
        self.admin.pump()?;
        self.settle();
        let now = self.clock.now();
        if self.keep_alive_in_flight || now < self.alive_until {
            return Ok(());
        }
        let entry = SubmissionEntry::new(AdminOpcode::KEEP_ALIVE.0);
        let half = half_kato(&self.options);
        let deadline = now.saturating_add(half).saturating_add(half);
        let taken = self
            .admin
            .connection
            .submit(entry, Transfer::None, KEEP_ALIVE, deadline);
        taken.map_err(|refused| DriverError::NotTaken {
            what: "Keep Alive",
            reason: refused.reason,
        })?;
        self.keep_alive_in_flight = true;
        self.alive_until = now.saturating_add(half);
        self.admin.flush()
    }

    fn next_keep_alive(&self) -> Nanos {
        if half_kato(&self.options) == Nanos::ZERO {
            return Nanos::MAX;
        }
        match self.keep_alive_in_flight {
            true => self.admin.connection.next_deadline(),
            false => self.alive_until,
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.admin.descriptor())
    }

    fn clock(&self) -> Monotonic {
        self.clock
    }

    fn disconnect(mut self) -> Result<(), DriverError> {
        if let Some(mut queue) = self.first_queue.take() {
            queue.close();
        }
        let mut stopping = Starting {
            admin: self.admin,
            cntlid: self.cntlid,
            timeout: self.options.command_timeout,
        };
        let stopped = stopping.shut_down(self.options.connect_timeout);
        stopping.admin.close();
        stopped
    }
}
