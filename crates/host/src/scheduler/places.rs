//! Where on a device the blocks of a command are: zones, numbered through over
//! all namespaces, and how far a merged command may reach.

use zonelab_device::{Command, DeviceInfo, NamespaceId, NamespaceInfo};

/// Most blocks of one command: NLB has 16 bits and is zero based.
const MAX_NLB: u32 = 1 << 16;

/// The namespaces of a device.
#[derive(Debug)]
pub(super) struct Places {
    namespaces: Vec<Namespace>,
    /// Zones of all namespaces together.
    pub(super) zones: u32,
}

/// A namespace. One without zones has `zones` of 0.
#[derive(Debug)]
struct Namespace {
    lba_bytes: u32,
    size_lbas: u64,
    first_zone: u32,
    zones: u32,
    zone_size_lbas: u64,
    zone_capacity_lbas: u64,
    /// Blocks of the largest command that is made by merging.
    max_merged_nlb: u32,
}

/// What merged requests must stay within: the writable part of a zone, or a
/// namespace without zones; and how many blocks they may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The block behind the last.
    pub(super) end: u64,
    pub(super) max_nlb: u32,
}

impl Places {
    /// Those of a device; merged commands have `max_request_bytes` at most.
    pub(super) fn new(info: &DeviceInfo, max_request_bytes: u32) -> Self {
        let max_bytes = max_request_bytes.min(info.max_transfer_bytes);
        let mut zones = 0_u32;
        let namespaces = info.namespaces.iter().map(|namespace| {
            let place = Namespace::new(namespace, zones, max_bytes);
            zones = zones.saturating_add(place.zones);
            place
        });
        Self {
            namespaces: namespaces.collect(),
            zones,
        }
    }

    /// Whether the device has that block.
    #[inline]
    pub(super) fn contains(&self, nsid: NamespaceId, lba: u64) -> bool {
        self.namespace(nsid)
            .is_some_and(|namespace| lba < namespace.size_lbas)
    }

    /// The number of the zone of a block, counted over all namespaces; `None`
    /// where there are no zones.
    #[inline]
    pub(super) fn zone(&self, nsid: NamespaceId, lba: u64) -> Option<u32> {
        let namespace = self.namespace(nsid)?;
        let zone = namespace.zone(lba)?;
        Some(namespace.first_zone + zone)
    }

    /// What a merged command that starts at a block of the device must stay within.
    pub(super) fn bounds(&self, nsid: NamespaceId, lba: u64) -> Bounds {
        let Some(namespace) = self.namespace(nsid) else {
            return Bounds { end: 0, max_nlb: 0 };
        };
        let end = match namespace.zone(lba) {
            Some(zone) => u64::from(zone) * namespace.zone_size_lbas + namespace.zone_capacity_lbas,
            None => namespace.size_lbas,
        };
        Bounds {
            end,
            max_nlb: namespace.max_merged_nlb,
        }
    }

    /// Bytes that a read, write or append moves; 0 for others.
    #[inline]
    pub(super) fn bytes(&self, command: &Command) -> u64 {
        self.namespace(command.nsid).map_or(0, |namespace| {
            u64::from(command.op.nlb()) * u64::from(namespace.lba_bytes)
        })
    }

    #[inline]
    fn namespace(&self, nsid: NamespaceId) -> Option<&Namespace> {
        // NSID 0 wraps to an index that no device has.
        self.namespaces.get(nsid.0.wrapping_sub(1) as usize)
    }
}

impl Namespace {
    fn new(info: &NamespaceInfo, first_zone: u32, max_bytes: u32) -> Self {
        let zoned = info.zoned.as_ref();
        // A first zone that saturated leaves no numbers for the zones behind it.
        let zones = zoned.map_or(0, |zoned| zoned.zones.min(u32::MAX - first_zone));
        Self {
            lba_bytes: info.lba_bytes,
            size_lbas: info.size_lbas,
            first_zone,
            zones,
            zone_size_lbas: zoned.map_or(0, |zoned| zoned.zone_size_lbas),
            zone_capacity_lbas: zoned.map_or(0, |zoned| zoned.zone_capacity_lbas),
            max_merged_nlb: (max_bytes / info.lba_bytes.max(1)).min(MAX_NLB),
        }
    }

    /// The zone of a block, counted in this namespace.
    #[inline]
    fn zone(&self, lba: u64) -> Option<u32> {
        let zone = lba.checked_div(self.zone_size_lbas)?;
        (zone < u64::from(self.zones)).then_some(zone as u32)
    }
}
