//! What a user decides.

use zonelab_device::NamespaceId;

/// What is decided when a drive is formatted, and cannot be changed afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatSettings {
    /// The zoned namespace. Default: 1.
    pub nsid: NamespaceId,
    /// Data blocks beyond those that programs see, as a share of the latter: 0.07 is
    /// the "7 %" of consumer drives, 0.28 that of enterprise drives. Zones that are
    /// always free or open ([`Self::reserved_zones`]) do not count. 0.01 to 10;
    /// default 0.07.
    pub spare: f64,
    /// Data zones that are kept out of that count: open ones, and those that the
    /// collector needs free. Default: 8, or fewer on a drive of few zones; at least 3.
    pub reserved_zones: Option<u32>,
    /// Identifies what was formatted: mounts refuse blocks with another one. Drawn by
    /// whoever formats.
    pub uuid: u128,
}

impl FormatSettings {
    /// The defaults, with this identity.
    #[must_use]
    pub const fn new(uuid: u128) -> Self {
        Self {
            nsid: NamespaceId::FIRST,
            spare: 0.07,
            reserved_zones: None,
            uuid,
        }
    }
}
