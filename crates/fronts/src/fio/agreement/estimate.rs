//! Values and how well they are known.

use zonelab_host::stats::{Confidence, Estimate, Latency};
use zonelab_host::workload::record::DirectionStats;

/// 97.5th percentile of the normal distribution: intervals are of 95 %.
const NORMAL_95: f64 = 1.96;

/// Operations that must be beyond a percentile for it to be compared.
const BEYOND: f64 = 10.0;

/// A value with its 95 % interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    /// The value.
    pub value: f64,
    /// Lower end of the interval; `None`: not known.
    pub low: Option<f64>,
    /// Upper end of the interval; `None`: not known.
    pub high: Option<f64>,
}

impl Estimated {
    /// A value that is known to `share` of itself to either side.
    fn within(value: f64, share: Option<f64>) -> Self {
        Self {
            value,
            low: share.map(|share| value * (1.0 - share)),
            high: share.map(|share| value * (1.0 + share)),
        }
    }

    /// Operations per second, of `seconds` of measuring. `None` if nothing was measured.
    pub(super) fn throughput(stats: &DirectionStats, seconds: f64) -> Option<Self> {
        let operations = stats.total.moments().count();
        if operations == 0 || seconds <= 0.0 {
            return None;
        }
        let share = together(&stats.confidence, Confidence::throughput);
        Some(Self::within(operations as f64 / seconds, share))
    }

    /// Mean of the total latency in nanoseconds. `None` if nothing was measured.
    pub(super) fn mean_latency(stats: &DirectionStats) -> Option<Self> {
        let mean = stats.total.moments().mean()?;
        let share = together(&stats.confidence, Confidence::mean_latency);
        Some(Self::within(mean, share))
    }

    /// A percentile of the total latency in nanoseconds, between the latencies of
    /// the ranks where it lies in 95 of 100 samples. `None` if fewer than ten
    /// latencies are beyond it: then it says nothing.
    pub(super) fn percentile(stats: &DirectionStats, percent: f64) -> Option<Self> {
        Self::of_rank(stats.total.percentiles()?, percent, dependence(stats))
    }

    /// The same of latencies of which `dependence` times as many would have to be
    /// taken, squared, to know as much as of independent ones.
    pub(super) fn of_rank(all: &Latency, percent: f64, dependence: f64) -> Option<Self> {
        let count = all.count() as f64;
        let share = percent / 100.0;
        // A rank is whole: ten of 10,000 are beyond P99.9, whatever 0.999 is in binary.
        if count * (1.0 - share).min(share) < BEYOND - 1e-6 {
            return None;
        }
        let spread = 100.0 * NORMAL_95 * dependence * (share * (1.0 - share) / count).sqrt();
        let at = |percent| all.percentile(percent).map(|ns| ns.0 as f64);
        Some(Self {
            value: at(percent)?,
            low: at(percent - spread),
            high: at(percent + spread),
        })
    }

    /// By how much it is more than `other`, as a share of `other`; the two were
    /// measured independently.
    pub(super) fn against(self, other: Self) -> Self {
        let ratio = self.value / other.value;
        if !ratio.is_finite() {
            // From zero to something, or from nothing to nothing.
            let value = if self.value > 0.0 { f64::MAX } else { 0.0 };
            return Self {
                value,
                low: None,
                high: None,
            };
        }
        // Relative errors of a ratio add by their squares.
        let low = both(self.below(), other.above());
        // Nothing is less than nothing, however badly it is known.
        let low = low.map(|share| ratio * (1.0 - share).max(0.0) - 1.0);
        let high = both(self.above(), other.below()).map(|share| ratio * (1.0 + share) - 1.0);
        Self {
            value: ratio - 1.0,
            low,
            high,
        }
    }

    /// How far the interval reaches below the value, as a share of it.
    fn below(self) -> Option<f64> {
        self.low.map(|low| (1.0 - low / self.value).max(0.0))
    }

    /// How far it reaches above the value, as a share of it.
    fn above(self) -> Option<f64> {
        self.high.map(|high| (high / self.value - 1.0).max(0.0))
    }
}

/// How much wider the interval of the mean latency is, by batch means, than that of
/// as many independent latencies: what waits in one queue waits together. At
/// least 1, and 1 if it is not known.
fn dependence(stats: &DirectionStats) -> f64 {
    let moments = stats.total.moments();
    let known = together(&stats.confidence, Confidence::mean_latency);
    let (Some(known), Some(mean), Some(stddev)) = (known, moments.mean(), moments.stddev()) else {
        return 1.0;
    };
    let independent = NORMAL_95 * stddev / (moments.count() as f64).sqrt() / mean;
    let ratio = known / independent;
    if ratio.is_finite() {
        ratio.max(1.0)
    } else {
        1.0
    }
}

fn both(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(libm::hypot(a?, b?))
}

/// Half the width of the interval of threads together, as a share of what they
/// come to. Threads of a group do the same, so they count alike, and what one
/// does by chance is taken to be independent of the others. `None`: one of them
/// is not known.
fn together(threads: &[Confidence], of: impl Fn(&Confidence) -> Option<Estimate>) -> Option<f64> {
    let mut squares = 0.0;
    for thread in threads {
        let half_width = of(thread)?.half_width;
        squares += half_width * half_width;
    }
    (!threads.is_empty()).then(|| squares.sqrt() / threads.len() as f64)
}
