//! What a drive did, change by change.

use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

/// A change of the state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRecord {
    /// When.
    pub at: Nanos,
    /// Of which zone.
    pub zone: ZoneId,
    /// Its state before.
    pub from: ZoneState,
    /// Its state after.
    pub to: ZoneState,
    /// Blocks written to it, counted from its start, after the change.
    pub written_lbas: u64,
}
