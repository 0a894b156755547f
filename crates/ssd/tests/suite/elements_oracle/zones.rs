//! What drives with elements count that erase by thresholds.

use std::collections::BTreeMap;

use zonelab_ssd::ResetState::{Full, Partial, Serving};
use zonelab_ssd::ZoneCounts;
use zonelab_ssd::config::{EraseExtent, EraseWhen, MappingConfig, Thresholds};
use zonelab_ssd::mapping::allocator::Availability;

use super::{Infos, Oracle, rows};
use crate::drive_support::Rig;

impl Oracle {
    /// Z_total = Z_alloc + Z_invalid + Z_free in zones' worth of elements, states
    /// as the counts say, and no element erased more often than it was written.
    pub(super) fn check_zones(&mut self, rig: &Rig, now: &Infos) {
        for (name, of) in now {
            let (uses, is_written) = self.uses.entry(*name).or_default();
            let was_written =
                core::mem::replace(is_written, of.availability == Availability::Valid);
            *uses += u32::from(*is_written && !was_written);
            let is_partial = self.config.reset.extent == EraseExtent::Partial;
            if is_partial && !self.power_was_lost {
                assert!(of.wear <= *uses, "{of:?} was written {uses} times");
            }
        }
        let EraseWhen::Thresholds(thresholds) = self.config.reset.erase else {
            return;
        };
        let groups = rig.drive.flash().layout().groups();
        assert_eq!(rig.drive.zone_counts(groups), None);
        for group in 0..groups {
            self.check_group(rig, now, group, thresholds);
        }
    }

    fn check_group(&self, rig: &Rig, now: &Infos, group: u32, thresholds: Thresholds) {
        let counts = rig.drive.zone_counts(group).expect("by thresholds");
        let ZoneCounts {
            allocated,
            invalid,
            free,
        } = counts;
        let luns = match self.config.mapping {
            MappingConfig::Chunk { .. } => self.width,
            _ => 1,
        };
        let mine: Vec<_> = now.iter().filter(|((of, _), _)| *of == group).collect();
        let of_lun = mine.len() as u32 / luns;
        let mut states: BTreeMap<u32, [u32; 4]> = (0..luns).map(|lun| (lun, [0; 4])).collect();
        for ((_, element), of) in &mine {
            let lun = states.get_mut(&(element / of_lun)).expect("a LUN");
            lun[of.availability as usize] += 1;
        }
        let [in_all, erased] = [[0, 3], [0, 0]].map(|[a, b]| {
            let least = states.values().map(|of| match a == b {
                true => of[a],
                false => of[a] + of[b],
            });
            least.min().expect("there is one") / self.per_lun()
        });
        let total = of_lun / self.per_lun();
        assert_eq!(
            of_lun,
            total * self.per_lun(),
            "{} rows",
            rows(&self.config)
        );
        assert_eq!(allocated + invalid + free, total, "{counts:?}");
        assert_eq!(invalid + free, in_all, "{counts:?}, {states:?}");
        // What is under way does not count.
        assert!(free <= erased, "{counts:?}, {states:?}");
        if rig.drive.background_tasks() == 0 {
            assert_eq!(free, erased, "{counts:?}, {states:?}");
        }
        let partial = thresholds.invalid_zones.is_some_and(|of| invalid >= of);
        match rig.drive.reset_state(group).expect("by thresholds") {
            Full => {}
            Partial => assert!(partial, "S1: {counts:?}"),
            Serving => assert!(!partial, "S0: {counts:?}"),
        }
    }

    /// A drive at rest has left S2, and S1 as far as there is something to erase.
    pub(super) fn check_zones_at_rest(&self, rig: &Rig) {
        if let EraseWhen::Thresholds(thresholds) = self.config.reset.erase {
            for group in 0..rig.drive.flash().layout().groups() {
                let counts = rig.drive.zone_counts(group).expect("by thresholds");
                assert_ne!(rig.drive.reset_state(group), Some(Full), "{counts:?}");
                let most = thresholds.invalid_zones.unwrap_or(u32::MAX);
                assert!(counts.invalid < most, "{counts:?}");
            }
        }
    }
}
