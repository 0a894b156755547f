//! A zone as its device reports it.

use zonelab_device::ZonedInfo;
use zonelab_nvme::zerocopy::FromBytes as _;
use zonelab_nvme::zns::{ReportHeader, ZoneDescriptor, ZoneState};

/// A zone as its device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedZone {
    /// Its state.
    pub state: ZoneState,
    /// Logical blocks that are written, from its start; the capacity, if no more
    /// can be written.
    pub written_lbas: u64,
}

impl ReportedZone {
    /// What a descriptor says.
    #[must_use]
    pub fn new(descriptor: &ZoneDescriptor, zoned: ZonedInfo) -> Self {
        let state = descriptor.zs.zs();
        let capacity = zoned.zone_capacity_lbas;
        let written_lbas = match state {
            ZoneState::EMPTY => 0,
            ZoneState::FULL | ZoneState::READ_ONLY | ZoneState::OFFLINE => capacity,
            _ => {
                let pointer = descriptor.wp.get();
                pointer.saturating_sub(descriptor.zslba.get()).min(capacity)
            }
        };
        Self {
            state,
            written_lbas,
        }
    }

    /// Bytes of the report of one zone.
    pub const REPORT_BYTES: usize = size_of::<ReportHeader>() + size_of::<ZoneDescriptor>();

    /// The first zone of a report; `None` if there is none in it.
    #[must_use]
    pub fn first_of(report: &[u8], zoned: ZonedInfo) -> Option<Self> {
        let (header, zones) = ReportHeader::read_from_prefix(report).ok()?;
        let (descriptor, _) = ZoneDescriptor::read_from_prefix(zones).ok()?;
        (header.nr_zones.get() > 0).then(|| Self::new(&descriptor, zoned))
    }

    /// Whether the device neither writes nor resets it any more.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, ZoneState::READ_ONLY | ZoneState::OFFLINE)
    }

    /// Whether it holds an active resource.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(
            self.state,
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED
        )
    }

    /// Logical blocks that are written, as far as that is known: of a zone that can be read no
    /// more, or written no more, the drive has no write pointer.
    #[must_use]
    pub fn known_lbas(&self) -> Option<u64> {
        (!self.is_dead()).then_some(self.written_lbas)
    }

    /// Logical blocks that can be read, if so many were `estimated` before: what a zone holds
    /// stays when it becomes read only.
    pub(super) fn readable_lbas(&self, estimated: u64) -> u64 {
        match self.state {
            ZoneState::READ_ONLY => estimated,
            ZoneState::OFFLINE => 0,
            _ => self.written_lbas,
        }
    }
}
