//! What is compared, how well it is known, and whether that is enough.

use serde::Serialize;
use zonelab_lab::rows::significant;
use zonelab_lab::statistics::Statistics;

/// What is said of an observation on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is as the study says.
    Holds,
    /// The drive was not, or cannot be, measured so.
    NotMeasured,
    /// The bound lies within what is known of the effect.
    Unclear,
    /// The host was too busy: what was measured is the host as much as the drive.
    CannotBeJudged,
    /// It is not as the study says.
    DoesNotHold,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::NotMeasured => "not measured",
            Self::Unclear => "unclear",
            Self::CannotBeJudged => "cannot be judged here",
            Self::DoesNotHold => "does not hold",
        }
    }

    /// What is left of it when the host was too busy to measure.
    #[must_use]
    pub(super) const fn on_busy_host(self) -> Self {
        match self {
            Self::NotMeasured => Self::NotMeasured,
            _ => Self::CannotBeJudged,
        }
    }

    /// Of several that all have to hold: the worst.
    #[must_use]
    pub fn all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::NotMeasured)
    }
}

/// A number that was measured, with the 95 % confidence interval of its mean over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The mean.
    pub value: f64,
    /// The interval; the value twice if there was one run.
    pub interval: (f64, f64),
    /// Runs.
    pub runs: u32,
}

impl Effect {
    /// Of values of repeats; `None` of none, or of one that is no number.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let statistics = Statistics::of(values)?;
        let mean = significant(statistics.mean);
        let (low, high) = statistics.interval().unwrap_or((mean, mean));
        Some(Self {
            value: mean,
            interval: (significant(low), significant(high)),
            runs: statistics.count,
        })
    }

    /// Of pairs of repeats: one as a multiple of the other.
    pub(super) fn ratio(of: &[f64], to: &[f64]) -> Option<Self> {
        let pairs = of.iter().zip(to).filter(|(_, to)| **to > 0.0);
        let ratios: Vec<f64> = pairs.map(|(of, to)| of / to).collect();
        Self::of(&ratios)
    }

    /// Whether it is at least `bound`.
    pub(super) fn at_least(&self, bound: f64) -> Verdict {
        let (low, high) = self.interval;
        if low >= bound {
            Verdict::Holds
        } else if high < bound {
            Verdict::DoesNotHold
        } else {
            Verdict::Unclear
        }
    }

    /// Whether it is at most `bound`.
    pub(super) fn at_most(&self, bound: f64) -> Verdict {
        let (low, high) = self.interval;
        if high <= bound {
            Verdict::Holds
        } else if low > bound {
            Verdict::DoesNotHold
        } else {
            Verdict::Unclear
        }
    }

    /// Whether it is within `share` of 1.
    pub(super) fn about_one(&self, share: f64) -> Verdict {
        Verdict::all([self.at_least(1.0 - share), self.at_most(1.0 + share)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_judged_by_its_interval() {
        let sure = Effect::of(&[1.3, 1.31, 1.29]).unwrap();
        assert_eq!(sure.at_least(1.05), Verdict::Holds);
        assert_eq!(sure.at_most(1.05), Verdict::DoesNotHold);
        assert_eq!(sure.about_one(0.1), Verdict::DoesNotHold);
        let vague = Effect::of(&[0.7, 1.9, 1.3]).unwrap();
        assert_eq!(vague.at_least(1.05), Verdict::Unclear);
        assert_eq!(vague.about_one(0.1), Verdict::Unclear);
        // Of one run nothing is known but its value.
        let one = Effect::of(&[1.2]).unwrap();
        assert_eq!((one.interval, one.runs), ((1.2, 1.2), 1));
        assert_eq!(Effect::of(&[]), None);
        assert_eq!(Effect::of(&[f64::NAN]), None);
        // Pairs, not means: what both share does not widen the interval.
        let ratio = Effect::ratio(&[2.0, 4.0, 8.0], &[1.0, 2.0, 4.0]).unwrap();
        assert_eq!((ratio.value, ratio.interval), (2.0, (2.0, 2.0)));
        assert_eq!(Effect::ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn of_several_the_worst_counts() {
        use Verdict::{DoesNotHold, Holds, NotMeasured, Unclear};
        assert_eq!(Verdict::all([Holds, Unclear, Holds]), Unclear);
        assert_eq!(Verdict::all([DoesNotHold, Unclear]), DoesNotHold);
        assert_eq!(Verdict::all([]), NotMeasured);
    }
}
