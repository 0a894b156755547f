//! Means of repeated measurements, and how well they are known.
//!
//! Sums go in the order of the values, and the quantiles of Student's t distribution come
//! from a table and from a series of powers, so that the same values give the same bytes
//! on every machine.

use serde::Serialize;
use zonelab_host::stats::Slot;

use crate::rows::{number, significant};

#[cfg(test)]
mod tests;

/// Batches that a run is cut into, at most.
const BATCHES: usize = 30;
/// Fewer say nothing about how they vary.
const BATCHES_MIN: usize = 10;
/// Correlation of neighbouring batches that is allowed for; above, an interval would be
/// as wide as one likes.
const CORRELATION_MAX: f64 = 0.9;

/// What values vary over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Repeats of a run with different seeds: independent.
    Repeats,
    /// Equally long parts of one run.
    Batches,
}

/// Values in short: their mean, how well it is known, and how they vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// What they vary over.
    pub over: Over,
    /// How many there are.
    pub count: u32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, as that of a sample; `None` of one value.
    pub sd: Option<f64>,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `None`
    /// of one value.
    pub half_width: Option<f64>,
}

impl Statistics {
    /// Those of no values.
    pub const NOTHING: Self = Self {
        over: Over::Repeats,
        count: 0,
        mean: f64::NAN,
        sd: None,
        min: f64::NAN,
        max: f64::NAN,
        half_width: None,
    };

    /// Those of independent values; `None` without any, or if one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = u32::try_from(values.len()).ok()?;
        if count == 0 || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let n = f64::from(count);
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Rounding does not put the mean of equal values beside them.
        let mean = (values.iter().sum::<f64>() / n).clamp(min, max);
        let squares = values.iter().map(|value| (value - mean) * (value - mean));
        let sd = (count > 1).then(|| (squares.sum::<f64>() / (n - 1.0)).sqrt());
        Some(Self {
            over: Over::Repeats,
            count,
            mean,
            sd,
            min,
            max,
            half_width: sd.map(|sd| student_t_975(count - 1) * sd / n.sqrt()),
        })
    }

    /// The ends of the 95 % confidence interval of the mean.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        let half = self.half_width?;
        Some((self.mean - half, self.mean + half))
    }

    /// The same around another value, of which the mean is a measurement in another unit
    /// or of parts: all but the count in its proportion.
    fn scaled_to(&self, value: f64) -> Self {
        let factor = value / self.mean;
        Self {
            mean: value,
            sd: self.sd.map(|sd| sd * factor),
            min: self.min * factor,
            max: self.max * factor,
            half_width: self.half_width.map(|half| half * factor),
            ..*self
        }
    }
}

/// The columns of CSV files and the keys in JSON that say how a value varies.
pub const COLUMNS: [&str; 8] = [
    "repeats", "mean", "ci_low", "ci_high", "sd", "min", "max", "batches",
];

/// Statistics as they are written; the order of the fields is that of [`COLUMNS`].
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    repeats: u32,
    mean: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    sd: Option<f64>,
    min: f64,
    max: f64,
    batches: Option<u32>,
}

impl Written {
    /// The statistics, rounded.
    #[must_use]
    pub fn of(statistics: &Statistics) -> Self {
        let (repeats, batches) = match statistics.over {
            Over::Repeats => (statistics.count, None),
            Over::Batches => (1, Some(statistics.count)),
        };
        let interval = statistics.interval();
        Self {
            repeats,
            mean: significant(statistics.mean),
            ci_low: interval.map(|(low, _)| significant(low)),
            ci_high: interval.map(|(_, high)| significant(high)),
            sd: statistics.sd.map(significant),
            min: significant(statistics.min),
            max: significant(statistics.max),
            batches,
        }
    }

    /// As fields of a table.
    #[must_use]
    pub fn fields(&self) -> [String; COLUMNS.len()] {
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        [
            self.repeats.to_string(),
            number(self.mean),
            optional(self.ci_low),
            optional(self.ci_high),
            optional(self.sd),
            number(self.min),
            number(self.max),
            self.batches.map(|n| n.to_string()).unwrap_or_default(),
        ]
    }
}

/// How well the throughput of a run is known that was `value` in any unit, by the method
/// of batch means: the run is cut into equally long batches, whose spread says how well
/// the mean of all of them is known. Where neighbouring batches go up and down together,
/// the interval is wider by the factor that holds for a process of first order.
///
/// `slots` are equally long but for the last. `None` if they make fewer than 10 batches,
/// or if nothing was done in them.
#[must_use]
pub fn throughput_of(slots: &[Slot], value: f64) -> Option<Statistics> {
    let length = |slot: &Slot| slot.to.saturating_sub(slot.from);
    let first = slots.first().map(length)?;
    let whole: Vec<f64> = slots
        .iter()
        .take_while(|slot| length(slot) == first)
        .map(|slot| slot.operations as f64)
        .collect();
    let in_batch = whole.len().div_ceil(BATCHES).max(1);
    let batches: Vec<f64> = whole
        .chunks_exact(in_batch)
        .map(|batch| batch.iter().sum())
        .collect();
    if batches.len() < BATCHES_MIN || !value.is_finite() {
        return None;
    }
    let mut of = Statistics::of(&batches)?;
    if of.mean <= 0.0 {
        return None;
    }
    let r = correlation(&batches, of.mean).clamp(0.0, CORRELATION_MAX);
    let wider = ((1.0 + r) / (1.0 - r)).sqrt();
    of.half_width = of.half_width.map(|half| half * wider);
    of.over = Over::Batches;
    Some(of.scaled_to(value))
}

/// Correlation of neighbours, its bias removed: values deviate from their own mean.
fn correlation(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let products = values.windows(2).map(|pair| match pair {
        [a, b] => (a - mean) * (b - mean),
        _ => 0.0,
    });
    if squares > 0.0 {
        products.sum::<f64>() / squares + 1.0 / values.len() as f64
    } else {
        0.0
    }
}

/// The 97.5th percentile of Student's t distribution, which bounds a two-sided interval
/// of 95 %, to nine digits. `degrees_of_freedom` is at least 1.
#[must_use]
pub fn student_t_975(degrees_of_freedom: u32) -> f64 {
    /// Of 1 to 30 degrees of freedom.
    const T: [f64; 30] = [
        12.706_204_736,
        4.302_652_730,
        3.182_446_305,
        2.776_445_105,
        2.570_581_836,
        2.446_911_851,
        2.364_624_252,
        2.306_004_135,
        2.262_157_163,
        2.228_138_852,
        2.200_985_160,
        2.178_812_830,
        2.160_368_656,
        2.144_786_688,
        2.131_449_546,
        2.119_905_299,
        2.109_815_578,
        2.100_922_040,
        2.093_024_054,
        2.085_963_447,
        2.079_613_845,
        2.073_873_068,
        2.068_657_610,
        2.063_898_562,
        2.059_538_553,
        2.055_529_439,
        2.051_830_516,
        2.048_407_142,
        2.045_229_642,
        2.042_272_456,
    ];
    /// The 97.5th percentile of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    let known = T.get(degrees_of_freedom.saturating_sub(1) as usize);
    if let Some(known) = known {
        return *known;
    }
    // Abramowitz and Stegun, 26.7.5, by Horner's rule in 1 / degrees of freedom.
    let z2 = Z * Z;
    let polynomial = |coefficients: &[f64], divisor: f64| {
        let value = coefficients.iter().fold(0.0, |sum, c| sum * z2 + c);
        value * Z / divisor
    };
    let terms = [
        polynomial(&[79.0, 776.0, 1482.0, -1920.0, -945.0], 92_160.0),
        polynomial(&[3.0, 19.0, 17.0, -15.0], 384.0),
        polynomial(&[5.0, 16.0, 3.0], 96.0),
        polynomial(&[1.0, 1.0], 4.0),
        Z,
    ];
    let step = 1.0 / f64::from(degrees_of_freedom);
    terms.iter().fold(0.0, |sum, term| sum * step + term)
}
