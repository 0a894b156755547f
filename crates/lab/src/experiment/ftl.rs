//! `[ftl]`: the flash translation layer of the host, for series with `via = "ftl"`.

use zonelab_config::{Item, Reported, Table, units};
use zonelab_device::NamespaceId;
use zonelab_ftl::{FormatSettings, FtlError, FtlSettings, Placement, Policy};

/// Identifies what experiments format: drives of points are new, so that no two meet.
const UUID: u128 = 0x7a6f_6e65_6c61_625f_6578_7065_7269_6d65;

/// What a file says of the layer; what it leaves out is the layer's default. A series may
/// say some of it again for itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FtlTemplate {
    /// How queues place what they write.
    pub placement: Option<Placement>,
    /// Which zone the collector empties next.
    pub victims: Option<Policy>,
    /// Data blocks beyond those that programs see, in parts per million of the latter.
    pub spare_ppm: Option<u32>,
    /// Data zones that do not count as spare.
    pub reserved_zones: Option<u32>,
    /// The collector lets the drive copy blocks, where it can.
    pub device_copy: Option<bool>,
    /// Zones that the collector writes at a time, by how often what it moves was moved.
    pub generations: Option<u32>,
    /// Free zones below which the collector works.
    pub collect_below: Option<u32>,
    /// Share of the map that is in memory, in parts per million.
    pub map_share_ppm: Option<u32>,
}

impl FtlTemplate {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What this says and, where it says nothing, what `base` says.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        Self {
            placement: self.placement.or(base.placement),
            victims: self.victims.or(base.victims),
            spare_ppm: self.spare_ppm.or(base.spare_ppm),
            reserved_zones: self.reserved_zones.or(base.reserved_zones),
            device_copy: self.device_copy.or(base.device_copy),
            generations: self.generations.or(base.generations),
            collect_below: self.collect_below.or(base.collect_below),
            map_share_ppm: self.map_share_ppm.or(base.map_share_ppm),
        }
    }

    /// The settings that are said, by their keys.
    #[must_use]
    pub fn settings_said(&self) -> Vec<(&'static str, String)> {
        let said = [
            ("placement", self.placement.map(|of| of.name().to_owned())),
            ("victims", self.victims.map(|of| of.to_string())),
            ("spare", self.spare_ppm.map(units::fmt_percent)),
            (
                "reserved_zones",
                self.reserved_zones.map(|of| of.to_string()),
            ),
            ("device_copy", self.device_copy.map(|of| of.to_string())),
            ("generations", self.generations.map(|of| of.to_string())),
            ("collect_below", self.collect_below.map(|of| of.to_string())),
            ("map_share", self.map_share_ppm.map(units::fmt_percent)),
        ];
        let said = said.into_iter();
        said.filter_map(|(key, value)| Some((key, value?)))
            .collect()
    }

    /// How a namespace of the drive is formatted.
    #[must_use]
    pub fn format(&self, nsid: NamespaceId) -> FormatSettings {
        let defaults = FormatSettings::new(UUID);
        FormatSettings {
            nsid,
            spare: self
                .spare_ppm
                .map_or(defaults.spare, |ppm| f64::from(ppm) / 1e6),
            reserved_zones: self.reserved_zones,
            ..defaults
        }
    }

    /// How the layer runs, on a drive that keeps data or does not; `seed` is for victims
    /// that are drawn.
    #[must_use]
    pub fn settings(&self, keeps_data: bool, seed: u64) -> FtlSettings {
        let defaults = FtlSettings::default();
        FtlSettings {
            placement: self.placement.unwrap_or(defaults.placement),
            victims: self.victims.unwrap_or(defaults.victims),
            device_copy: self.device_copy.unwrap_or(defaults.device_copy),
            generations: self.generations.unwrap_or(defaults.generations),
            collect_below: self.collect_below,
            map_share: self.map_share_ppm.map(|ppm| f64::from(ppm) / 1e6),
            keeps_data,
            seed,
            ..defaults
        }
    }
}

/// The table of the layer.
pub(super) fn ftl(table: &Table<'_>) -> Result<FtlTemplate, Reported> {
    let placement = table
        .get("placement", |item| named(item, Placement::parse))
        .optional();
    let victims = table
        .get("victims", |item| named(item, Policy::parse))
        .optional();
    let spare = table
        .percent_ppm("spare")
        .within(10_000..=1_000_000)
        .optional();
    let reserved_zones = table.u32("reserved_zones").within(4..=u32::MAX).optional();
    let device_copy = table.bool("device_copy").optional();
    let generations = table.u32("generations").within(1..=4).optional();
    let collect_below = table.u32("collect_below").within(3..=u32::MAX).optional();
    let map_share = table
        .percent_ppm("map_share")
        .within(1..=999_999)
        .optional();
    Ok(FtlTemplate {
        placement: placement?,
        victims: victims?,
        spare_ppm: spare?,
        reserved_zones: reserved_zones?,
        device_copy: device_copy?,
        generations: generations?,
        collect_below: collect_below?,
        map_share_ppm: map_share?,
    })
}

/// Something that the layer has by name.
fn named<T>(item: &Item<'_>, parse: impl Fn(&str) -> Result<T, FtlError>) -> Result<T, Reported> {
    parse(item.str()?).map_err(|error| match error {
        FtlError::Setting { value, valid, .. } => {
            item.fail(format!("there is no \"{value}\""), format!("write {valid}"))
        }
        other => item.fail(other.to_string(), String::new()),
    })
}
