//! Controllers and queues: what there is of each association.

use std::collections::VecDeque;

use zonelab_device::Nanos;
use zonelab_nvme::identify::Nqn;
use zonelab_nvme::log::ErrorEntry;
use zonelab_nvme::property::{CommandSetSelected, Configuration, ControllerStatus, ShutdownStatus};

use super::authentication::Gate;
use super::events::Events;
use super::features::Features;
use crate::reservations::HostId;

/// Entries of an error log (ELPE + 1).
pub(super) const ERROR_ENTRIES: usize = 64;
/// Words of a set of command identifiers.
const CID_WORDS: usize = 1 << 16 >> 6;

/// How long a discovery controller without keep alive timeout stays without a
/// command.
const DISCOVERY_IDLE: Nanos = Nanos::from_secs(120);

/// What a controller is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has namespaces.
    Io,
    /// It has the discovery log.
    Discovery,
}

/// How far a queue is from its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Takes commands.
    Open,
    /// Takes none, and what is in flight ends unseen; the transport is to close it.
    Closing,
    /// The transport has closed it. It is there until nothing of it is in flight.
    Closed,
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// Slot of its controller. Without meaning once it is no longer open.
    pub(super) controller: u32,
    pub(super) qid: u16,
    pub(super) life: Life,
    /// Commands in flight.
    pub(super) in_flight: u32,
    /// Commands that the drive or a format has.
    pub(super) in_drive: u32,
    /// Bytes of data of commands that the drive has.
    pub(super) drive_bytes: u64,
    /// What authentication is required for its commands; `None`: none.
    pub(super) gate: Option<Box<Gate>>,
    /// Command identifiers in flight, one bit each.
    cids: Box<[u64]>,
}

impl Queue {
    pub(super) fn new(controller: u32, qid: u16) -> Self {
        Self {
            controller,
            qid,
            life: Life::Open,
            in_flight: 0,
            in_drive: 0,
            drive_bytes: 0,
            gate: None,
            cids: vec![0; CID_WORDS].into_boxed_slice(),
        }
    }

    /// Marks a command identifier as in flight. False: it was already.
    #[inline]
    pub(super) fn begin(&mut self, cid: u16) -> bool {
        let (word, bit) = (usize::from(cid >> 6), 1 << (cid & 63));
        if self.cids[word] & bit != 0 {
            return false;
        }
        self.cids[word] |= bit;
        self.in_flight += 1;
        true
    }

    /// A command is over.
    #[inline]
    pub(super) fn end(&mut self, cid: u16) {
        self.cids[usize::from(cid >> 6)] &= !(1 << (cid & 63));
        self.in_flight -= 1;
    }
}

/// The newest errors of the controllers of a host.
#[derive(Debug, Default)]
pub(super) struct ErrorLog {
    /// Newest first.
    entries: VecDeque<ErrorEntry>,
    count: u64,
}

impl ErrorLog {
    /// Adds an error, and gives it its number.
    pub(super) fn push(&mut self, entry: ErrorEntry) {
        if self.entries.len() == ERROR_ENTRIES {
            self.entries.pop_back();
        }
        self.count += 1;
        self.entries.push_front(ErrorEntry {
            errcnt: self.count.into(),
            ..entry
        });
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ErrorEntry> {
        self.entries.iter()
    }
}

/// One controller: the association of a host.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) kind: Kind,
    pub(super) hostnqn: Nqn,
    /// As Connect has it.
    pub(super) hostid: [u8; 16],
    /// Host Identifier; `None`: the host has said none.
    pub(super) identifier: Option<HostId>,
    /// Where the rules of its host are, if hosts have rules.
    pub(super) host: Option<usize>,
    /// The admin queue.
    pub(super) admin: u32,
    /// I/O queues, that of QID 1 first.
    pub(super) io: Vec<Option<u32>>,
    pub(super) cc: Configuration,
    pub(super) csts: ControllerStatus,
    /// Flushes of a normal shutdown that are not over.
    pub(super) shutdown_flushes: u32,
    /// When the host was last heard of.
    pub(super) heard: Nanos,
    /// When to look at the keep alive timer again; `None`: it does not run.
    pub(super) keep_alive_at: Option<Nanos>,
    /// When the association ends after a reset or shutdown.
    pub(super) ends_at: Option<Nanos>,
    pub(super) features: Features,
    pub(super) events: Events,
}

impl Controller {
    /// Whether it takes commands other than those of fabrics: it is enabled, has
    /// not given up, and no shutdown was asked for.
    pub(super) fn is_ready(&self) -> bool {
        let is_shut_down = self.csts.shst() != ShutdownStatus::NONE;
        self.csts.rdy() && !self.csts.cfs() && !is_shut_down
    }

    /// Whether it takes I/O commands of the zoned command set.
    #[inline]
    pub(super) fn has_zns(&self) -> bool {
        self.cc.css() == CommandSetSelected::ALL
    }

    /// When it has to be looked at.
    pub(super) fn alarm(&self) -> Option<Nanos> {
        [self.keep_alive_at, self.ends_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// How long the host may be silent; `None`: for ever. With a discovery
    /// controller that is bounded even without a keep alive timeout (base
    /// specification 2.0, section 3.1.2.3).
    pub(super) fn timeout(&self) -> Option<Nanos> {
        let idle = (self.kind == Kind::Discovery).then_some(DISCOVERY_IDLE);
        self.features.keep_alive().or(idle)
    }

    /// A queue of I/O is gone, or will never have its place.
    pub(super) fn leave_place(&mut self, qid: u16, queue: u32) {
        if let Some(place) = self.io.get_mut(usize::from(qid) - 1) {
            place.take_if(|of| *of == queue);
        }
    }

    /// Starts the keep alive timer anew, as the feature says.
    pub(super) fn arm_keep_alive(&mut self, now: Nanos) {
        self.heard = now;
        let timeout = self.timeout();
        self.keep_alive_at = timeout.map(|timeout| now.saturating_add(timeout));
    }

    /// All its queues.
    pub(super) fn queues(&self) -> impl Iterator<Item = u32> {
        core::iter::once(self.admin).chain(self.io.iter().flatten().copied())
    }
}
