//! Drives of which Linux makes no zoned block device.

use zonelab_config::units::fmt_size;

use crate::config::{DriveConfig, NamespaceKind};

/// Bytes of a sector, in which Linux counts.
const SECTOR_BYTES: u64 = 512;

/// Why Linux makes no block device of a drive's zoned namespaces; `None`: it does, or there
/// are none.
///
/// These are the checks of `nvme_query_zone_info` and `blk_revalidate_disk_zones` that a
/// profile can fail. Others never fail: all zones of a drive have one capacity, Zone Append is
/// supported with at least 4 KiB, and no zone operation characteristics (ZOC) are set.
#[must_use]
pub fn refused_by_linux(config: &DriveConfig) -> Option<String> {
    let is_zoned = |kind: NamespaceKind| kind == NamespaceKind::Zoned;
    let has_zones = config.namespaces.is_empty()
        || config
            .namespaces
            .iter()
            .any(|namespace| is_zoned(namespace.kind));
    let bytes = config
        .zones
        .size_lbas
        .saturating_mul(u64::from(config.lba_bytes));
    let what = if !config.zones.size_lbas.is_power_of_two() {
        "are no power of two"
    } else if bytes / SECTOR_BYTES > u64::from(u32::MAX) {
        "have more sectors than 32 bits count"
    } else {
        return None;
    };
    has_zones.then(|| format!("zones of {} {what}", fmt_size(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::builtin;

    #[test]
    fn linux_takes_powers_of_two_below_two_tebibytes() {
        let mut config = builtin("small-zones").expect("it is built in").config;
        let mut refused = |mib: u64| {
            config.zones.size_lbas = mib * 256;
            refused_by_linux(&config)
        };
        assert_eq!(refused(64), None);
        let of_48 = refused(48);
        assert_eq!(of_48.as_deref(), Some("zones of 48MiB are no power of two"));
        assert_eq!(refused(1 << 20), None);
        let of_2_tib = refused(2 << 20).expect("it is refused");
        assert!(
            of_2_tib.starts_with("zones of 2TiB have more sectors"),
            "{of_2_tib}"
        );
    }
}
