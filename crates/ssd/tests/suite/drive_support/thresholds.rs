//! Erasure by thresholds: settings, drawn and stated.

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, Evaluate, Thresholds, Victim};

use super::random::width;

/// `T_free` and `T_invalid`, and the rest as in the prototype.
pub(crate) const fn thresholds(free_zones: u32, invalid_zones: Option<u32>) -> Thresholds {
    Thresholds {
        free_zones,
        invalid_zones,
        evaluate: Evaluate::Allocation,
        zones_at_once: None,
        victim: Victim::Oldest,
        adapt: None,
    }
}

/// Both methods, with everything that can be set.
pub(crate) fn any_thresholds() -> impl Strategy<Value = (Thresholds, EraseExtent)> {
    let evaluate = prop::sample::select(vec![
        Evaluate::Allocation,
        Evaluate::Command,
        Evaluate::Change,
    ]);
    let victim = prop::sample::select(vec![Victim::Oldest, Victim::LeastWorn]);
    let extent = prop::sample::select(vec![EraseExtent::Partial, EraseExtent::Full]);
    let at_once = prop::option::of(1..3_u32);
    let adapt = prop::option::of((1..10_000_000_u64).prop_map(Nanos));
    let numbers = (0..4_u32, prop::option::of(1..4_u32), at_once, adapt);
    (numbers, evaluate, victim, extent).prop_map(|(numbers, evaluate, victim, extent)| {
        let (free_zones, invalid_zones, zones_at_once, adapt) = numbers;
        let thresholds = Thresholds {
            free_zones,
            invalid_zones,
            evaluate,
            zones_at_once,
            victim,
            adapt: adapt.filter(|_| invalid_zones.is_some()),
        };
        (thresholds, extent)
    })
}

/// The numbers, as far as a group of a drive has so many zones.
pub(crate) fn within(mut thresholds: Thresholds, config: &DriveConfig) -> EraseWhen {
    let groups = config.geometry.planes_total() / width(config);
    let all = config.mapping.physical_zones(config.zones.count);
    let most = all.div_ceil(groups);
    thresholds.free_zones = thresholds.free_zones.min(most);
    thresholds.invalid_zones = thresholds.invalid_zones.map(|of| of.min(most));
    EraseWhen::Thresholds(thresholds)
}
