//! Rules about several values, each of which is in range by itself.

mod cache;
mod designs;
mod mapping;
mod media;
mod zones;

use zonelab_config::units::fmt_size;

use super::super::keys;
use super::{Needs, Rules, limits};

impl Rules<'_> {
    pub(super) fn relations(&mut self) {
        self.geometry();
        self.divides("zones.channels", "geometry.channels", |c| {
            (c.zones.channels, c.geometry.channels)
        });
        self.divides("zones.ways", "geometry.ways", |c| {
            (c.zones.ways, c.geometry.ways)
        });
        self.stagger();
        self.zone_sizes();
        self.zone_limits();
        self.namespaces();
        self.descriptor_extension();
        self.zrwa();
        self.arbitration();
        self.suspend();
        self.media_details();
        self.transfer_time();
        self.needs();
        self.core_costs();
        self.transfer_limits();
        self.write_buffer();
        self.copy();
        self.granularity();
        self.preemption();
        self.thresholds();
        self.bookkeeping();
        self.physical_zones();
        self.allocations();
        self.slc_cache();
    }

    /// A value other than nothing has an effect only with what its key needs.
    fn needs(&mut self) {
        for key in keys::all() {
            if let Some(needs) = &key.needs
                && !(needs.holds)(self.config)
                && key.applies(self.config)
                && !key.value.is_nothing(self.config)
            {
                self.refuse(key.path, needs.what, needs.valid);
            }
        }
    }
}

fn size(bytes: u32) -> String {
    fmt_size(bytes.into())
}

/// Sizes of configurations that are wrong may not fit in 64 bits.
fn fmt_size_wide(bytes: u128) -> String {
    u64::try_from(bytes).map_or_else(|_| format!("{bytes}B"), fmt_size)
}

fn not_a_multiple(value: u32, of: &str, unit: u32) -> String {
    format!("{} is not a multiple of {of} ({})", size(value), size(unit))
}

/// The multiples of `unit` next to `value`.
fn multiples(value: u32, unit: u32) -> String {
    let below = value / unit * unit;
    match (below, below.checked_add(unit)) {
        (0, _) => format!("use {}", size(unit)),
        (below, None) => format!("use {}", size(below)),
        (below, Some(above)) => format!("use {} or {}", size(below), size(above)),
    }
}
