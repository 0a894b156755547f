//! Values that are calculated from measurements which were repeated.
//!
//! They are calculated from the means of the measurements. How well they are known comes
//! from leaving out one repeat at a time (the jackknife): a ratio or a distance of means
//! has no repeats of its own whose mean it would be.

use crate::run::JobMeasured;
use crate::statistics::{self, Statistics, student_t_975};

/// Over which repeats a mean is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Over all.
    All,
    /// Over one.
    Only(u32),
    /// Over all but one.
    AllBut(u32),
}

impl Over {
    /// The mean of a metric over these repeats.
    pub(super) fn value(self, job: &JobMeasured, metric: &str) -> Option<f64> {
        let left_out = match self {
            Self::All => return job.metrics.get(metric),
            Self::Only(repeat) => return job.of_repeat(repeat, metric),
            Self::AllBut(repeat) => repeat,
        };
        let repeats = &job.spread.as_ref()?.repeats;
        let kept = repeats.iter().filter(|(repeat, _)| **repeat != left_out);
        let values: Vec<f64> = kept.filter_map(|(_, of)| of.get(metric)).collect();
        Statistics::of(&values).map(|of| of.mean)
    }
}

/// What is calculated, from means over all repeats, and how well it is known if there are
/// some. `None` if there is no such value.
pub(super) fn derived(
    repeats: u32,
    value: impl Fn(Over) -> Option<f64>,
) -> Option<(f64, Option<Statistics>)> {
    let ours = value(Over::All)?;
    let several = |over: fn(u32) -> Over| -> Option<Statistics> {
        let each: Option<Vec<f64>> = (0..repeats).map(|repeat| value(over(repeat))).collect();
        Statistics::of(&each?)
    };
    let statistics = || {
        let (single, left_out) = (several(Over::Only)?, several(Over::AllBut)?);
        let n = f64::from(repeats);
        // The spread of what is left, which is that much narrower than that of repeats.
        let half_width = left_out.sd.map(|sd| {
            let error = sd * (n - 1.0) / n.sqrt();
            student_t_975(repeats - 1) * error
        });
        Some(Statistics {
            over: statistics::Over::Repeats,
            mean: ours,
            half_width,
            ..single
        })
    };
    let is_known = repeats > 1 && ours.is_finite();
    Some((ours, is_known.then(statistics).flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a mean, leaving out one at a time gives the interval of the repeats themselves.
    #[test]
    fn a_mean_is_known_as_well_as_its_repeats_say() {
        let values = [64.8, 65.1, 64.2, 66.0, 63.9];
        let mean = |over: Over| {
            let is_in = |n: u32| match over {
                Over::All => true,
                Over::Only(only) => n == only,
                Over::AllBut(but) => n != but,
            };
            let kept = (0..).zip(values).filter(|(n, _)| is_in(*n));
            let kept: Vec<f64> = kept.map(|(_, value)| value).collect();
            Some(kept.iter().sum::<f64>() / kept.len() as f64)
        };
        let (ours, of) = derived(5, mean).unwrap();
        let (of, plain) = (of.unwrap(), Statistics::of(&values).unwrap());
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(ours, plain.mean) && near(of.sd.unwrap(), plain.sd.unwrap()));
        assert!(
            near(of.half_width.unwrap(), plain.half_width.unwrap()),
            "{of:?}"
        );
        assert_eq!((of.min, of.max, of.count), (63.9, 66.0, 5));
        assert_eq!(derived(1, mean).unwrap().1, None);
        assert!(derived(2, |_| None).is_none());
        let unmeasured = derived(3, |_| Some(f64::NAN)).unwrap();
        assert!(unmeasured.0.is_nan() && unmeasured.1.is_none());
    }
}
