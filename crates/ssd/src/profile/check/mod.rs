//! The rules that a drive's configuration keeps, wherever it comes from.

use std::fmt;

use zonelab_config::units::fmt_size;

use super::derived::{Derived, Needs};
use crate::config::DriveConfig;

pub mod limits;
mod namespaces;
mod ranges;
mod relations;
mod zrwa;

/// A rule that a configuration breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key of a profile that sets the value, `zones.capacity`.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// What would be valid.
    pub valid: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)?;
        if self.valid.is_empty() {
            Ok(())
        } else {
            write!(f, "; {}", self.valid)
        }
    }
}

impl std::error::Error for Violation {}

/// Checks a configuration, and works out what follows from it.
///
/// # Errors
/// Every rule that is broken. Rules about several values are only looked at
/// when each value by itself is in range.
pub fn check(config: &DriveConfig) -> Result<Derived, Vec<Violation>> {
    let mut rules = Rules {
        config,
        broken: Vec::new(),
    };
    rules.ranges();
    rules.stop()?;
    rules.relations();
    rules.stop()?;
    let needs = Needs::of(config).expect("values are in range and divide each other");
    rules.chunks(&needs);
    rules.flash(&needs);
    rules.stop()?;
    Ok(Derived::new(config, &needs))
}

struct Rules<'c> {
    config: &'c DriveConfig,
    broken: Vec<Violation>,
}

impl Rules<'_> {
    fn refuse(&mut self, key: &'static str, what: impl Into<String>, valid: impl Into<String>) {
        self.broken.push(Violation {
            key,
            what: what.into(),
            valid: valid.into(),
        });
    }

    fn stop(&mut self) -> Result<(), Vec<Violation>> {
        if self.broken.is_empty() {
            Ok(())
        } else {
            Err(std::mem::take(&mut self.broken))
        }
    }

    /// What a zone holds.
    fn zone_bytes(&self) -> u64 {
        let lba_bytes = u64::from(self.config.lba_bytes);
        lba_bytes.saturating_mul(self.config.zones.capacity_lbas)
    }

    /// The key that says so: without a capacity, a file has the size.
    fn zone_size_key(&self) -> &'static str {
        match self.config.zones.capacity_lbas == self.config.zones.size_lbas {
            true => "zones.size",
            false => "zones.capacity",
        }
    }

    /// Whether there is enough flash.
    fn flash(&mut self, needs: &Needs) {
        let have = u64::from(self.config.geometry.blocks_per_plane);
        let need = needs.blocks_per_plane();
        if need <= have {
            return;
        }
        // As many physical zones as zones is what a file without their number gets.
        let of_zones = needs.physical_zones == self.config.zones.count;
        let (key, zones, count_key) = if of_zones {
            ("zones.count", "zones", "count")
        } else {
            ("mapping.physical_zones", "physical zones", "physical_zones")
        };
        let (count, rows, groups) = (needs.physical_zones, needs.rows, needs.groups);
        let in_groups = if groups > 1 {
            format!(" in {groups} groups")
        } else {
            String::new()
        };
        let per_group = needs.zones_per_group();
        let cache = needs.cache_rows;
        let holds = have.saturating_sub(cache) / rows * u64::from(groups);
        let and_cache = match cache {
            0 => String::new(),
            rows => format!(" + {rows} for the SLC cache"),
        };
        let what = format!(
            "{count} {zones}{in_groups} need {per_group} x {rows}{and_cache} = {need} blocks in each plane; \
             geometry.blocks_per_plane = {have} holds {holds} zones"
        );
        if holds == 0 && of_zones {
            let what = format!(
                "a zone of {} takes {rows} blocks in each plane{and_cache}; \
                 geometry.blocks_per_plane = {have} holds none",
                fmt_size(self.zone_bytes())
            );
            let valid = format!("make zones smaller, or set blocks_per_plane = {need}");
            self.refuse(self.zone_size_key(), what, valid);
            return;
        }
        // There have to be at least as many physical zones as zones.
        let fewer_is_valid = if of_zones {
            holds > 0
        } else {
            holds >= u64::from(self.config.zones.count)
        };
        let valid = if fewer_is_valid {
            format!("set {count_key} = {holds} or blocks_per_plane = {need}")
        } else {
            format!("set blocks_per_plane = {need}")
        };
        self.refuse(key, what, valid);
    }
}
