//! What was found: numbers with intervals, mechanisms with rivals, combinations that are known.

use serde::Serialize;

use super::design::{Design, FACTORS};
use super::designs::Ranking;
use super::intervals::{Range, TWO_SIDED, ranges, together};
use super::parameters::{Coordinates, PARAMETERS, free, slopes, values};
use super::predict::Predictor;
use super::solve::{Fitted, Target, columns_wide, covariance, improve};

/// A coordinate is known if half of its interval is below this: a third more or less.
const KNOWN: f64 = 0.3;
/// A combination is worth saying if it is known to this share, and each part is not.
const COMBINED: f64 = 0.15;

/// How well a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Within a third, or less.
    Determined,
    /// Not from outside: the interval says what is still possible.
    Open,
}

/// A number of the profile, with what it could be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Its key.
    pub key: &'static str,
    /// In base units: nanoseconds, bytes, bytes per second.
    pub value: u64,
    /// The 95 % interval.
    pub interval: (u64, u64),
    /// As a profile says them.
    pub text: [String; 3],
    /// How well it is known.
    pub known: Known,
    /// What its half interval is as a share of it, roughly.
    pub share: f64,
}

/// A mechanism, and what else it could be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mechanism {
    /// What it is about.
    pub name: &'static str,
    /// What it is.
    pub choice: &'static str,
    /// What cannot be told apart from that.
    pub rivals: Vec<&'static str>,
}

/// Two numbers of which a combination is known better than each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    /// The keys.
    pub keys: [&'static str; 2],
    /// `sum`, or `ratio` of the first to the second.
    pub kind: &'static str,
    /// Its value: in base units if it is a sum.
    pub value: f64,
    /// Half of its 95 % interval, as a share of the value.
    pub share: f64,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    pub(super) numbers: Vec<Found>,
    pub(super) mechanisms: Vec<Mechanism>,
    pub(super) combinations: Vec<Combination>,
}

/// What a design says of its numbers.
struct Stated {
    fitted: Fitted,
    keys: Vec<usize>,
    spread: Vec<Vec<f64>>,
    ranges: Vec<Range>,
}

/// Rounds of intervals of the best design: they can come by a better place.
const ROUNDS: u32 = 3;

/// What a design says beyond what is `known` to be possible, from the best place that is found in
/// so many `rounds` at most.
fn stated(
    (predictor, targets): (&mut Predictor<'_>, &[Target]),
    (fitted, known): (&Fitted, &[Range]),
    rounds: u32,
) -> Stated {
    let mut fitted = fitted.clone();
    let keys = free(&fitted.candidate.design);
    for round in 1.. {
        let around = columns_wide(predictor, targets, &fitted, &keys);
        let spread = covariance(&fitted, &around, &keys);
        let of = (keys.as_slice(), &around, spread.as_slice());
        let (ranges, better) = ranges(predictor, (targets, &fitted, known), of);
        match better.filter(|_| round < rounds) {
            Some(better) => fitted = improve(predictor, targets, better, (&keys, 4)),
            None => {
                return Stated {
                    fitted,
                    keys,
                    spread,
                    ranges,
                };
            }
        }
    }
    unreachable!("the last round returns")
}

/// What a ranking of designs says of every number and mechanism, and the best candidate, which
/// may be a better one than that of the ranking.
pub(super) fn findings(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    ranking: &Ranking,
) -> (Findings, Fitted) {
    let Stated {
        fitted: best,
        keys,
        spread,
        mut ranges,
    } = stated((predictor, targets), (&ranking.best, &[]), ROUNDS);
    // Of each design that it could be as well.
    for rival in &ranking.rivals {
        for range in stated((predictor, targets), (rival, &ranges), 1).ranges {
            match ranges.iter_mut().find(|ours| ours.key == range.key) {
                Some(ours) => ours.with(&range),
                // The best design does without it, and so it may be anything.
                None => ranges.push(Range::open(range.key)),
            }
        }
    }
    let at = values(&best.candidate.at);
    let numbers: Vec<Found> = ranges
        .iter()
        .map(|range| found(range, at[range.key]))
        .collect();
    let combinations = combinations(&best.candidate.at, &spread, (&keys, &numbers));
    let findings = Findings {
        numbers,
        mechanisms: mechanisms(ranking),
        combinations,
    };
    (findings, best)
}

fn found(range: &Range, value: u64) -> Found {
    let one = &PARAMETERS[range.key];
    let (low, high) = range.own;
    let interval = (one.value(low).min(value), one.value(high).max(value));
    let half = (high - low) / 2.0;
    Found {
        key: one.key,
        value,
        interval,
        text: [value, interval.0, interval.1].map(|value| one.print(value)),
        known: match half < KNOWN {
            true => Known::Determined,
            false => Known::Open,
        },
        share: half,
    }
}

fn mechanisms(ranking: &Ranking) -> Vec<Mechanism> {
    let best = &ranking.best.candidate.design;
    let choice = |design: &Design, factor| design.choice(factor).0;
    let one = |(factor, of): (usize, &super::Factor)| {
        let ours = choice(best, factor);
        let theirs = ranking.rivals.iter();
        let theirs = theirs.map(|rival| choice(&rival.candidate.design, factor));
        let mut rivals: Vec<&'static str> = theirs.filter(|other| *other != ours).collect();
        rivals.sort_unstable();
        rivals.dedup();
        Mechanism {
            name: of.name,
            choice: ours,
            rivals,
        }
    };
    FACTORS.iter().enumerate().map(one).collect()
}

/// Sums of times that are known where each of them is not, and ratios of others.
fn combinations(
    at: &Coordinates,
    spread: &[Vec<f64>],
    (keys, numbers): (&[usize], &[Found]),
) -> Vec<Combination> {
    let mut all = Vec::new();
    // Behind those of the best design there are some of its rivals alone.
    let numbers = &numbers[..keys.len().min(numbers.len())];
    let slopes: Vec<Vec<f64>> = keys.iter().map(|key| slopes(at, *key, keys)).collect();
    for (a, one) in numbers.iter().enumerate() {
        for (b, other) in numbers.iter().enumerate().skip(a + 1) {
            if one.known == Known::Determined || other.known == Known::Determined {
                continue;
            }
            let of = |a: usize, b: usize| together(&slopes[a], &slopes[b], spread);
            let (of_one, of_other, both) = (of(a, a), of(b, b), of(a, b));
            let sum = one.value as f64 + other.value as f64;
            let of_sum = of_one + of_other + 2.0 * both;
            let sum_share = TWO_SIDED * of_sum.max(0.0).sqrt() / sum.max(1.0);
            let (va, vb) = (one.value.max(1) as f64, other.value.max(1) as f64);
            let of_ratio = of_one / va / va + of_other / vb / vb - 2.0 * both / va / vb;
            let ratio_share = TWO_SIDED * of_ratio.max(0.0).sqrt();
            let keys = [one.key, other.key];
            let are_times = !keys
                .iter()
                .any(|key| key.ends_with("link") || key.ends_with("size"));
            if are_times && sum_share < COMBINED {
                all.push(Combination {
                    keys,
                    kind: "sum",
                    value: sum,
                    share: sum_share,
                });
            } else if ratio_share < COMBINED && other.value > 0 {
                all.push(Combination {
                    keys,
                    kind: "ratio",
                    value: one.value as f64 / other.value as f64,
                    share: ratio_share,
                });
            }
        }
    }
    all
}
