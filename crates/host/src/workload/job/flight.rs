//! Commands and operations on their way.

use zonelab_device::{Found, Nanos};

use crate::workload::source::Sent;

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// When the job decided to issue it, or when it was due.
    pub(super) decided: Nanos,
    /// When it was issued, and with the device if submission and completion are told apart.
    pub(super) submitted: Nanos,
    /// Where it begins on the device.
    pub(super) first_block: u64,
    pub(super) depth: u32,
    pub(super) sent: Sent,
}

/// An operation of several commands that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) decided: Nanos,
    pub(super) submitted: Nanos,
    pub(super) link_lbas: u64,
    pub(super) found: Found,
}
