//! What losses of power met: one that comes before anything was moved says nothing about
//! moving it.

use std::sync::{Mutex, PoisonError};

use zonelab_ftl::Metrics;

/// Losses of power, and those of them before which the layer had done something since the one
/// before.
#[derive(Debug, Default)]
pub(crate) struct Met(Mutex<[u64; 5]>);

const NAMES: [&str; 5] = [
    "losses",
    "behind a move of the collector",
    "behind a zone that it emptied",
    "behind a commit of the journal",
    "behind a reset of a zone",
];

impl Met {
    /// A loss, before which the layer and the drive did this.
    pub(crate) fn add(&self, layer: &Metrics, resets: u64) {
        let met = [
            true,
            layer.moved_blocks > 0,
            layer.collected_zones > 0,
            layer.commits > 0,
            resets > 0,
        ];
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (count, is_met) in all.iter_mut().zip(met) {
            *count += u64::from(is_met);
        }
    }

    /// Fails if one of them was never met; not if single seeds are replayed.
    pub(crate) fn is_enough(&self) {
        let all = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<String> = NAMES
            .iter()
            .zip(all)
            .map(|(name, of)| format!("{name}: {of}"))
            .collect();
        let said = said.join(", ");
        println!("{said}");
        if std::env::var_os("ZONELAB_FTL_RUNS").is_none() {
            assert!(all.iter().all(|of| *of > 0), "{said}");
        }
    }
}
