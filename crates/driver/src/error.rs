//! What can go wrong between a host and a drive.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::OutOfRange;

use crate::tcp::{ProtocolError, RefuseReason};

/// Why a drive could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// No TCP connection to the machine.
    #[error("no connection to {address}: {source}")]
    Unreachable {
        /// Host and port.
        address: String,
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
    /// The host must authenticate itself, which it cannot.
    #[error("the controller requires authentication, which this host does not have")]
    AuthenticationRequired,
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

impl DriverError {
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
