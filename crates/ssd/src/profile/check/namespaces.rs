//! Rules about namespaces.

use super::Rules;
use crate::config::{NamespaceConfig, ZonesConfig};

/// The key of all of them.
const KEY: &str = "namespaces";

impl Rules<'_> {
    /// Namespaces divide the zones, and each keeps the rules of limits.
    pub(super) fn namespaces(&mut self) {
        let namespaces = &self.config.namespaces;
        let count = self.config.zones.count;
        match namespaces.len() {
            0 => return,
            1 => {
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
            if let Err((what, valid)) = limits_of(namespace, &self.config.zones) {
                self.refuse(KEY, format!("namespace {}: {what}", index + 1), valid);
            }
        }
        let zones: u64 = namespaces.iter().map(|of| u64::from(of.zones)).sum();
        if zones != u64::from(count) {
            let what = format!("they have {zones} zones together, the drive has {count}");
            self.refuse(KEY, what, "every zone belongs to one namespace");
        }
    }
}

/// The rules that [`crate::config::ZonesConfig`] keeps too: what is wrong, and
/// what would be valid.
fn limits_of(namespace: &NamespaceConfig, drive: &ZonesConfig) -> Result<(), (String, String)> {
    let NamespaceConfig {
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
