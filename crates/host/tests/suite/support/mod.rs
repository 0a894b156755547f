//! What the tests here need.

mod shared;

use zonelab_device::{DeviceInfo, NamespaceInfo, Op, ZonedInfo};

pub(crate) use shared::*;

/// A namespace of many large zones, for workloads that should not run out of them.
pub(crate) fn large_info() -> DeviceInfo {
    DeviceInfo {
        model: "large".to_owned(),
        namespaces: vec![NamespaceInfo {
            placements: Some(0),
            lba_bytes: 4096,
            size_lbas: 1 << 40,
            zoned: Some(ZonedInfo {
                zones: 1 << 20,
                zone_size_lbas: 1 << 20,
                zone_capacity_lbas: 1 << 20,
                max_active: None,
                max_open: None,
                read_across_zones: false,
                descriptor_extension_bytes: 0,
                zrwa: None,
            }),
            copy: None,
        }],
        max_transfer_bytes: u32::MAX,
        max_append_bytes: u32::MAX,
        has_volatile_cache: false,
    }
}

impl Recorder {
    /// The operations, without their times.
    pub(crate) fn ops(&self) -> Vec<Op> {
        self.log.iter().map(|(_, op)| *op).collect()
    }
}
