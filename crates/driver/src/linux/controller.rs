//! A namespace of this machine as a controller.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use zonelab_device::{DeviceInfo, Monotonic, Nanos, QueueId};
use zonelab_nvme::identify::{Cns, CommandSet, IdentifyController, IdentifyControllerZns};
use zonelab_nvme::property::Capabilities;
use zonelab_nvme::queue::{StatusField, SubmissionEntry};

use super::ioctl;
use super::node::{Node, NodeKind};
use super::queue::{LinuxQueue, QueueOptions, reply};
use crate::error::DriverError;
use crate::identity::Identity;
use crate::inquiry::{Asks, identify, identify_namespace, zone_capacity};
use crate::socket::Reply;
use crate::tcp::Transfer;
use crate::transport::{Controller, IoQueue};
use crate::url::LinuxAddress;

/// I/O queues that can be opened. Each is an io_uring of its own; the kernel maps
/// them to those of the drive by processor.
const QUEUES: u16 = 1024;

/// Version from which on every controller has namespace identification
/// descriptors: 1.3.
const HAS_DESCRIPTORS: u32 = 0x0001_0300;

/// How a namespace of this machine is to be used.
#[derive(Debug, Clone)]
pub struct LinuxOptions {
    /// Where it is.
    pub address: LinuxAddress,
    /// Longest time of one command. The kernel keeps it, and resets a controller
    /// that takes longer.
    pub command_timeout: Nanos,
    /// Commands in flight of an I/O queue at most, 1 to 32,768.
    pub depth: u16,
}

impl LinuxOptions {
    /// 128 commands in flight, a time limit of 30 s.
    #[must_use]
    pub fn new(address: LinuxAddress) -> Self {
        Self {
            address,
            command_timeout: Nanos::from_secs(30),
            depth: 128,
        }
    }

    fn timeout_ms(&self) -> u32 {
        u32::try_from(self.command_timeout.0 / 1_000_000).unwrap_or(u32::MAX)
    }
}

/// A namespace of this machine, through the kernel's driver: admin commands, and
/// the way to its I/O queues.
///
/// It is only opened if nobody else uses it, and kept from being mounted while it
/// is open.
#[derive(Debug)]
pub struct LinuxController {
    node: Arc<Node>,
    identity: Identity,
    info: Arc<DeviceInfo>,
    clock: Monotonic,
    timeout_ms: u32,
    depth: u16,
    is_polled: bool,
    opened: u16,
}

/// Admin commands by ioctl.
struct Admin<'a>(&'a Node, u32);

impl Asks for Admin<'_> {
    fn ask(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        let Self(node, timeout_ms) = *self;
        let mut data = transfer.into_buf();
        let bytes = data.as_deref_mut().unwrap_or_default();
        let ended = ioctl::admin(node.as_fd(), &entry, bytes, timeout_ms);
        let ended = ended.map_err(|errno| node.failed(what, errno))?;
        let status = StatusField::from_bits(ended.status << 1);
        Ok(reply(status, ended.result, data))
    }
}

/// I/O commands by a queue.
struct Io<'a>(&'a mut LinuxQueue);

impl Asks for Io<'_> {
    fn ask(
        &mut self,
        _what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        self.0.passthrough(entry, transfer)
    }
}

impl LinuxController {
    /// Opens a namespace, and asks it what it is.
    ///
    /// # Errors
    /// There is none at the path, somebody else uses it, we may not open it, or the
    /// kernel has no io_uring for it.
    pub fn open(options: &LinuxOptions) -> Result<Self, DriverError> {
        let node = Arc::new(Node::open(&options.address.path)?);
        let is_polled = options.address.polled;
        if is_polled && (node.kind == NodeKind::Block || !node.has_polled_queues) {
            return Err(DriverError::NoPolledQueues {
                path: node.path.clone(),
            });
        }
        let timeout_ms = options.timeout_ms();
        let mut identity = ask_identity(&mut Admin(&node, timeout_ms), node.nsid)?;
        let clock = Monotonic::new();
        let queue_options = QueueOptions {
            id: QueueId(1),
            depth: options.depth.clamp(1, 1 << 15),
            clock,
            timeout_ms,
            is_polled,
        };
        let mut controller = Self {
            info: Arc::new(identity.device_info()?),
            identity: identity.clone(),
            node,
            clock,
            timeout_ms,
            depth: queue_options.depth,
            is_polled,
            opened: 0,
        };
        // Only a zone report says what the capacity of a zone is.
        if let Some(namespace) = identity.namespaces.first_mut()
            && namespace.zns.is_some()
        {
            let mut queue = LinuxQueue::open(&controller.node, &controller.info, queue_options)?;
            namespace.zone_capacity_lbas = zone_capacity(&mut Io(&mut queue), namespace.nsid)?;
        }
        let mut info = identity.device_info()?;
        let most = controller.node.max_transfer_bytes;
        info.max_transfer_bytes = info.max_transfer_bytes.min(most);
        info.max_append_bytes = info.max_append_bytes.min(most);
        controller.info = Arc::new(info);
        controller.identity = identity;
        Ok(controller)
    }

    /// Which device node it is used through.
    #[must_use]
    pub fn kind(&self) -> NodeKind {
        self.node.kind
    }

    /// The namespace of the node.
    #[must_use]
    pub fn nsid(&self) -> u32 {
        self.node.nsid
    }
}

/// The controller and the namespace of the node. Other namespaces of the controller
/// have nodes of their own.
fn ask_identity(admin: &mut Admin<'_>, nsid: u32) -> Result<Identity, DriverError> {
    let controller: Box<IdentifyController> = identify(admin, 0, Cns::CONTROLLER, CommandSet::NVM)?;
    let has_descriptors = controller.ver.bits() >= HAS_DESCRIPTORS;
    // The kernel does not show CAP. With the smallest unit that MPSMIN can name,
    // MDTS and ZASL are at most too small.
    let cap = Capabilities::default().with_css_io(has_descriptors);
    let namespace = identify_namespace(admin, nsid, cap)?;
    let zoned = match namespace.zns {
        None => None,
        Some(_) => Some(identify::<IdentifyControllerZns>(
            admin,
            0,
            Cns::COMMAND_SET_CONTROLLER,
            CommandSet::ZNS,
        )?),
    };
    Ok(Identity {
        cap,
        controller,
        zoned,
        namespaces: vec![namespace],
    })
}

impl Controller for LinuxController {
    type Queue = LinuxQueue;

    fn info(&self) -> &Arc<DeviceInfo> {
        &self.info
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn clock(&self) -> Monotonic {
        self.clock
    }

    fn granted_queues(&self) -> u16 {
        QUEUES
    }

    fn open_queue(&mut self) -> Result<LinuxQueue, DriverError> {
        if self.opened >= QUEUES {
            return Err(DriverError::Unusable {
                field: "the number of I/O queues",
                value: QUEUES.into(),
                needs: "one more",
            });
        }
        let options = QueueOptions {
            id: QueueId(self.opened + 1),
            depth: self.depth,
            clock: self.clock,
            timeout_ms: self.timeout_ms,
            is_polled: self.is_polled,
        };
        let queue = LinuxQueue::open(&self.node, &self.info, options)?;
        self.opened += 1;
        Ok(queue)
    }

    fn admin(
        &mut self,
        what: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        Admin(&self.node, self.timeout_ms).ask(what, entry, transfer)
    }

    /// The kernel does, where the transport of its driver needs it.
    fn keep_alive(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn next_keep_alive(&self) -> Nanos {
        Nanos::MAX
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn disconnect(self) -> Result<(), DriverError> {
        Ok(())
    }
}
