//! What can go wrong between a host and a drive.

use zonelab_auth::AuthError;
use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::OutOfRange;

use crate::pcie::PcieError;
use crate::pcie::pci::HandoverError;
use crate::tcp::{ProtocolError, RefuseReason};

/// Why a drive could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// No TCP connection to the machine.
    #[error("no connection to {address}: {source}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The node of a drive of this machine cannot be opened.
    #[error("{path}: {source}{}", advice(source))]
    Node {
        /// The node.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A path names no namespace of a drive of this machine.
    #[error(
        "{path} {what}; a namespace is /dev/ng0n1 (generic device) or /dev/nvme0n1 (block device)"
    )]
    NotANamespace {
        /// The path.
        path: String,
        /// What it is.
        what: String,
    },
    /// A drive of this machine is in use.
    #[error("{path} is in use and not touched: {by}")]
    Held {
        /// The node.
        path: String,
        /// Who uses it, and which part of it.
        by: String,
    },
    /// The kernel has no io_uring, or not for NVMe commands.
    #[error(
        "no io_uring for NVMe commands: {source}; Linux 5.19 or later is needed, with \
         kernel.io_uring_disabled = 0"
    )]
    NoIoUring {
        /// What the kernel says.
        source: std::io::Error,
    },
    /// Polling was asked for, and the kernel's driver has no queues for it.
    #[error(
        "{path}: poll=1 needs the generic device (/dev/ng0n1), and queues that are polled: load \
         the driver with `modprobe nvme poll_queues=1`"
    )]
    NoPolledQueues {
        /// The node.
        path: String,
    },
    /// A drive of this machine was removed, or unbound from its driver.
    #[error("{path}: the drive is gone")]
    Removed {
        /// The node.
        path: String,
    },
    /// The kernel cancelled commands: the drive was removed, or did not answer in
    /// time and its controller was reset.
    #[error("{path}: the kernel cancelled a command; the drive is gone, or was reset")]
    Cancelled {
        /// The node.
        path: String,
    },
    /// The kernel did not pass a command on.
    #[error("{path}: the kernel refused {what}: {source}{}", advice(source))]
    Kernel {
        /// Which command.
        what: &'static str,
        /// The node.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The TCP connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    /// The controller closed the TCP connection.
    #[error("the controller closed the connection")]
    Closed,
    /// The controller violated the protocol, or did not answer in time.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A controller on PCIe is not as it should be.
    #[error(transparent)]
    Pcie(#[from] PcieError),
    /// A PCI function cannot be used.
    #[error(transparent)]
    Handover(#[from] HandoverError),
    /// A command ended with an error status.
    #[error("{what} failed: {name} ({:#x}){}", status.0, if *dnr { ", do not retry" } else { "" })]
    Command {
        /// Which command.
        what: &'static str,
        /// How it ended.
        status: Status,
        /// Its name, which for fabrics commands is another one.
        name: &'static str,
        /// The same command would fail again (DNR).
        dnr: bool,
    },
    /// A host that listens has no subsystem of the name.
    #[error(
        "{place} has no subsystem \"{subnqn}\"; `zonelab nvme discover --device tcp://{place}` \
         lists those that it has ({source})"
    )]
    NoSubsystem {
        /// Host and port.
        place: String,
        /// The name.
        subnqn: String,
        /// The answer to Connect.
        source: Box<Self>,
    },
    /// A command was not taken.
    #[error("{what} was not taken: {reason}")]
    NotTaken {
        /// Which command.
        what: &'static str,
        /// Why.
        reason: RefuseReason,
    },
    /// A value has no place in its command.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The controller says something of itself that this host cannot work with.
    #[error("the controller reports {field} {value}, this host needs {needs}")]
    Unusable {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What could be used.
        needs: &'static str,
    },
    /// The host must authenticate itself, and has no secret.
    #[error("the controller requires authentication, and no key was given")]
    AuthenticationRequired,
    /// The controller wants TLS on top of authentication.
    #[error("the controller requires a secure channel (TLS), which this host does not have")]
    SecureChannelRequired,
    /// The controller does not accept the secret of the host, or is asked for
    /// its own and has none.
    #[error(
        "authentication failed: the controller has another key for this host, or no key of its own"
    )]
    SecretRefused,
    /// The connection ended when the controller was to say whether it accepts the
    /// secret of the host. Some close it upon one that they do not accept, and their
    /// answer may be lost: Linux's target does so.
    #[error(
        "authentication failed: {0}, and did not say why; \
         probably it has another key for this host, or no key of its own"
    )]
    NoVerdict(#[source] Box<DriverError>),
    /// The controller has not shown that it knows its secret.
    #[error("authentication failed: the controller does not know the controller key")]
    ControllerNotAuthentic,
    /// There is a secret of the controller, and the controller does not
    /// authenticate at all.
    #[error("a controller key was given, but the controller does not ask for authentication")]
    NotAuthenticating,
    /// The exchange failed for another reason.
    #[error("authentication failed: {0}")]
    Authentication(#[source] AuthError),
    /// The system has no random bytes.
    #[error("no random bytes: {0}")]
    NoRandom(String),
    /// The controller did not get into the state asked for.
    #[error("the controller did not become {state} within {within}")]
    NotReady {
        /// `ready` or `shut down`.
        state: &'static str,
        /// How long the host waited.
        within: Nanos,
    },
    /// The controller reports a fatal error of its own (CSTS.CFS).
    #[error("the controller reports a fatal error (CSTS.CFS)")]
    ControllerFatal,
    /// No try to connect again succeeded.
    #[error("no connection after {tries} tries, the last: {last}")]
    GaveUp {
        /// How many tries.
        tries: u32,
        /// How the last ended.
        last: Box<DriverError>,
    },
}

/// What helps against an error of the system.
fn advice(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "; NVMe commands are for root, or for whom the node may be written by since Linux 6.2"
        }
        ErrorKind::NotFound => "; `ls /dev/ng* /dev/nvme*` lists the drives of this machine",
        _ => "",
    }
}

impl DriverError {
    /// True if this machine lacks something, and the drive was not touched: it is
    /// not there, in use, or not ours to open.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        matches!(
            self,
            Self::Node { .. }
                | Self::NotANamespace { .. }
                | Self::Held { .. }
                | Self::NoIoUring { .. }
                | Self::NoPolledQueues { .. }
                | Self::Handover(_)
        )
    }

    /// True if there was no connection to begin with: the address is wrong, or
    /// nobody listens there.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::GaveUp { last, .. } => last.is_unreachable(),
            _ => false,
        }
    }
}
