//! Whichever transport an address names.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Monotonic, NamespaceId, Nanos, NoNamespace, QueueId,
    QueuePair, Rejected, Tag,
};
use zonelab_nvme::queue::SubmissionEntry;

use crate::controller::{Options, TcpController};
use crate::error::DriverError;
use crate::identity::Identity;
use crate::linux::{LinuxController, LinuxOptions, LinuxQueue};
use crate::pcie::{LocalController, LocalOptions, LocalQueue};
use crate::queue::TcpQueue;
use crate::socket::Reply;
use crate::tcp::Transfer;
use crate::transport::{Announcement, Controller, IoQueue};
use crate::url::Address;

/// How any controller is to be used.
#[derive(Debug, Clone)]
pub enum AnyOptions {
    /// Over NVMe/TCP.
    Tcp(Box<Options>),
    /// Of this machine, through Linux.
    Linux(LinuxOptions),
    /// Of this machine, by this program.
    Pcie(Box<LocalOptions>),
}

/// A controller of any transport.
#[derive(Debug)]
pub enum AnyController {
    /// Over NVMe/TCP.
    Tcp(Box<TcpController>),
    /// Of this machine, through Linux.
    Linux(Box<LinuxController>),
    /// Of this machine, by this program.
    Pcie(Box<LocalController>),
}

/// An I/O queue of such a controller.
#[derive(Debug)]
pub enum AnyQueue {
    /// Over NVMe/TCP.
    Tcp(Box<TcpQueue>),
    /// Of this machine, through Linux.
    Linux(Box<LinuxQueue>),
    /// Of this machine, by this program.
    Pcie(Box<LocalQueue>),
}

impl AnyOptions {
    /// Where the controller is.
    #[must_use]
    pub fn address(&self) -> Address {
        match self {
            Self::Tcp(options) => Address::Tcp(options.address.clone()),
            Self::Linux(options) => Address::Linux(options.address.clone()),
            Self::Pcie(options) => Address::Pcie(options.address.clone()),
        }
    }
}

impl AnyController {
    /// The namespace that the address names, or the node is that of.
    #[must_use]
    pub fn named(&self) -> Option<NamespaceId> {
        let nsid = match self {
            Self::Tcp(it) => it.address().nsid,
            Self::Linux(it) => Some(it.nsid()),
            Self::Pcie(it) => it.nsid(),
        };
        nsid.map(NamespaceId)
    }

    /// Chooses the namespace that the address names, or the only one there is. Queues that
    /// are opened from now on are for it alone: they show no other, and commands for others
    /// end with Invalid Namespace or Format without being sent.
    ///
    /// # Errors
    /// It is not there, or there are several and none is named.
    pub fn open_namespace(&mut self) -> Result<NamespaceId, NoNamespace> {
        let nsid = self.info().choose(self.named())?;
        match self {
            Self::Tcp(it) => it.confine(nsid),
            // A node has no other.
            Self::Linux(_) => {}
            Self::Pcie(it) => it.confine(nsid),
        }
        Ok(nsid)
    }

    /// Connects, and asks the controller what it is.
    ///
    /// # Errors
    /// [`DriverError`]: there is none, it may not be used, or it is not what it
    /// should be.
    pub fn connect(options: AnyOptions) -> Result<Self, DriverError> {
        Ok(match options {
            AnyOptions::Tcp(options) => Self::Tcp(Box::new(TcpController::connect(*options)?)),
            AnyOptions::Linux(options) => Self::Linux(Box::new(LinuxController::open(&options)?)),
            AnyOptions::Pcie(options) => Self::Pcie(Box::new(LocalController::connect(*options)?)),
        })
    }
}

/// The same call of whichever there is.
macro_rules! either {
    ($self:expr, $it:ident => $call:expr) => {
        match $self {
            Self::Tcp($it) => $call,
            Self::Linux($it) => $call,
            Self::Pcie($it) => $call,
        }
    };
}

impl Controller for AnyController {
    type Queue = AnyQueue;

    fn info(&self) -> &Arc<DeviceInfo> {
        either!(self, it => it.info())
    }

    fn identity(&self) -> &Identity {
        either!(self, it => it.identity())
    }

    fn clock(&self) -> Monotonic {
        either!(self, it => it.clock())
    }

    fn granted_queues(&self) -> u16 {
        either!(self, it => it.granted_queues())
    }

    fn open_queue(&mut self) -> Result<AnyQueue, DriverError> {
        Ok(match self {
            Self::Tcp(it) => AnyQueue::Tcp(Box::new(it.open_queue()?)),
            Self::Linux(it) => AnyQueue::Linux(Box::new(it.open_queue()?)),
            Self::Pcie(it) => AnyQueue::Pcie(Box::new(it.open_queue()?)),
        })
    }

    fn admin(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        either!(self, it => it.admin(what, entry, transfer))
    }

    fn resets(&self) -> u64 {
        either!(self, it => it.resets())
    }

    fn keep_alive(&mut self) -> Result<(), DriverError> {
        either!(self, it => it.keep_alive())
    }

    fn next_keep_alive(&self) -> Nanos {
        either!(self, it => it.next_keep_alive())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        either!(self, it => it.descriptor())
    }

    fn disconnect(self) -> Result<(), DriverError> {
        either!(self, it => it.disconnect())
    }
}

impl QueuePair for AnyQueue {
    fn info(&self) -> &DeviceInfo {
        either!(self, it => it.info())
    }

    fn now(&self) -> Nanos {
        either!(self, it => it.now())
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        either!(self, it => it.submit(command, tag, data))
    }

    fn ring(&mut self) {
        either!(self, it => it.ring());
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        either!(self, it => it.poll(done))
    }
}

impl IoQueue for AnyQueue {
    fn id(&self) -> QueueId {
        either!(self, it => it.id())
    }

    fn depth(&self) -> u16 {
        either!(self, it => it.depth())
    }

    fn error(&self) -> Option<&DriverError> {
        either!(self, it => it.error())
    }

    fn take_error(&mut self) -> Option<DriverError> {
        either!(self, it => it.take_error())
    }

    fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        either!(self, it => it.passthrough(entry, transfer))
    }

    fn next_event(&self) -> Option<Nanos> {
        either!(self, it => it.next_event())
    }

    fn has_output(&self) -> bool {
        either!(self, it => it.has_output())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        either!(self, it => it.descriptor())
    }

    fn announcement(&self) -> Announcement {
        either!(self, it => it.announcement())
    }

    fn abandon(&mut self) {
        either!(self, it => it.abandon());
    }
}
