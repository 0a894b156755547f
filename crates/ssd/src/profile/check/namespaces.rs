//! Rules about namespaces.

use zonelab_config::units::fmt_size;

use super::Rules;
use crate::config::{
    DriveConfig, LogConfig, NamespaceConfig, NamespaceKind, ReclaimUnitHandles, ZonesConfig,
};

/// The key of all of them.
const KEY: &str = "namespaces";

impl Rules<'_> {
    /// Namespaces divide the zones, and each keeps the rules of limits.
    pub(super) fn namespaces(&mut self) {
        let namespaces = &self.config.namespaces;
        let count = self.config.zones.count;
        match namespaces.len() {
            0 => return,
            1 if namespaces[0].kind == NamespaceKind::Zoned => {
                let what = "a single namespace has all zones and the limits of `zones`";
                let valid = "leave [[namespaces]] out, or state at least two";
                return self.refuse(KEY, what, valid);
            }
            many if many > NamespaceConfig::MAX as usize => {
                let valid = format!("at most {}", NamespaceConfig::MAX);
                return self.refuse(KEY, format!("{many} namespaces are too many"), valid);
            }
            _ => {}
        }
        for (index, namespace) in namespaces.iter().enumerate() {
            let checked = match namespace.kind {
                NamespaceKind::Zoned => limits_of(namespace, &self.config.zones),
                NamespaceKind::Conventional(log) => log_of(namespace, &log, self.config),
            };
            if let Err((what, valid)) = checked {
                self.refuse(KEY, format!("namespace {}: {what}", index + 1), valid);
            }
        }
        self.handles();
        let zones: u64 = namespaces.iter().map(|of| u64::from(of.zones)).sum();
        if zones != u64::from(count) {
            let what = format!("they have {zones} zones together, the drive has {count}");
            self.refuse(KEY, what, "every zone belongs to one namespace");
        }
    }
}

impl Rules<'_> {
    /// Flexible data placement is that of an endurance group, and that is the drive.
    fn handles(&mut self) {
        if !self.config.has_handles() {
            return;
        }
        let namespaces = &self.config.namespaces;
        let is_zoned = |of: &NamespaceConfig| of.kind == NamespaceKind::Zoned;
        if let Some(index) = namespaces.iter().position(is_zoned) {
            let what = format!(
                "namespace {} is zoned, and another has reclaim_unit_handles",
                index + 1
            );
            let valid = "conventional namespaces only, or no reclaim_unit_handles";
            return self.refuse(KEY, what, valid);
        }
        let count = |of: &NamespaceConfig| match of.kind {
            NamespaceKind::Conventional(log) => log.handles.map_or(1, |of| u64::from(of.count)),
            NamespaceKind::Zoned => 1,
        };
        let count: u64 = namespaces.iter().map(count).sum();
        let most = ReclaimUnitHandles::MAX;
        if count > u64::from(most) {
            let what = format!("reclaim_unit_handles of all of them are {count}");
            let valid = format!("at most {most}; a namespace that states none has one");
            self.refuse(KEY, what, valid);
        }
    }
}

/// The rules of a log: it has room for what was written and for collection,
/// and its blocks have numbers of 32 bits.
fn log_of(
    namespace: &NamespaceConfig,
    log: &LogConfig,
    config: &DriveConfig,
) -> Result<(), (String, String)> {
    let LogConfig {
        spare_zones,
        handles,
        collection: _,
        mapping_unit_lbas,
    } = *log;
    let most = ReclaimUnitHandles::MAX;
    if let Some(of) = handles
        && !(1..=most).contains(&of.count)
    {
        let what = format!("reclaim_unit_handles = {} is out of range", of.count);
        return Err((what, format!("at least 1, at most {most}")));
    }
    let least = NamespaceConfig::spare_zones_min(handles);
    if spare_zones < least {
        let what = match handles {
            None => format!("spare_zones = {spare_zones} leave no room to collect"),
            Some(ReclaimUnitHandles { count, .. }) => format!(
                "spare_zones = {spare_zones} leave no room to collect what reclaim_unit_handles \
                 = {count} write"
            ),
        };
        return Err((what, format!("at least {least}")));
    }
    if namespace.zones <= spare_zones {
        let what = format!("zones = {} are all spare", namespace.zones);
        let least = spare_zones.saturating_add(1);
        return Err((what, format!("at least spare_zones + 1 = {least}")));
    }
    let most = u64::from(u32::MAX - 1) / config.zones.capacity_lbas.max(1);
    if u64::from(namespace.zones) > most {
        let what = format!("zones = {} have more than 2^32 blocks", namespace.zones);
        return Err((what, format!("at most {most}")));
    }
    unit_of(mapping_unit_lbas, config)?;
    if namespace.max_active.is_some() || namespace.max_open.is_some() {
        let what = "a conventional namespace shows no zones".to_owned();
        return Err((what, "no max_active and no max_open".to_owned()));
    }
    Ok(())
}

/// A zone of a log is filled with whole mapping units.
fn unit_of(mapping_unit_lbas: u32, config: &DriveConfig) -> Result<(), (String, String)> {
    let (unit, capacity) = (u64::from(mapping_unit_lbas), config.zones.capacity_lbas);
    if unit > 0 && capacity.is_multiple_of(unit) {
        return Ok(());
    }
    let size = |lbas: u64| fmt_size(lbas.saturating_mul(u64::from(config.lba_bytes)));
    let what = format!(
        "mapping_unit = {} does not divide zones.capacity = {}",
        size(unit),
        size(capacity)
    );
    // Divisors come in pairs, one of which is below the square root.
    let below = (1..=capacity.isqrt()).filter(|of| capacity.is_multiple_of(*of));
    let nearest = below
        .flat_map(|of| [of, capacity / of])
        .filter(|of| *of <= unit);
    let nearest = nearest.max().unwrap_or(1);
    Err((what, format!("a divisor of it, like {}", size(nearest))))
}

/// The rules that [`crate::config::ZonesConfig`] keeps too: what is wrong, and
/// what would be valid.
fn limits_of(namespace: &NamespaceConfig, drive: &ZonesConfig) -> Result<(), (String, String)> {
    let NamespaceConfig {
        kind: _,
        zones,
        max_active,
        max_open,
    } = *namespace;
    if zones == 0 {
        return Err(("it has no zones".to_owned(), "at least 1".to_owned()));
    }
    let within = |name: &str, value: u32, of: &str, most: u32| {
        if (1..=most).contains(&value) {
            return Ok(());
        }
        let what = format!("{name} = {value} is out of range");
        Err((what, format!("at least 1, at most {of} = {most}")))
    };
    let (most, of) = match max_active {
        Some(active) => {
            within("max_active", active, "zones", zones)?;
            (active, "max_active")
        }
        None => (zones, "zones"),
    };
    // A file has no word for it, so that a configuration and its file agree.
    for (mine, of_drive, name) in [
        (max_active, drive.max_active, "max_active"),
        (max_open, drive.max_open, "max_open"),
    ] {
        if let (None, Some(limit)) = (mine, of_drive) {
            let what = format!("{name} is unlimited, but zones.{name} = {limit}");
            return Err((what, format!("at most zones = {zones}")));
        }
    }
    match (max_open, max_active) {
        (Some(open), _) => within("max_open", open, of, most),
        (None, Some(active)) => Err((
            "open zones are active, so they cannot be unlimited".to_owned(),
            format!("at most max_active = {active}"),
        )),
        (None, None) => Ok(()),
    }
}
