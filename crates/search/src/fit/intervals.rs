//! What each number could be: the interval that the covariance says, and more where a step along
//! it finds that errors do not grow as they should.
//!
//! A covariance supposes that values follow coordinates along straight lines. Where a number
//! has no influence until it is the slowest of all (the time of a core), they do not.

use super::parameters::{PARAMETERS, range, shares_with, slopes, start, values};
use super::predict::{Candidate, Predictor};
use super::solve::{Columns, Fitted, PRIOR, Target, judge, step};

/// Standard deviations on either side that make 95 %.
pub(super) const TWO_SIDED: f64 = 1.96;
/// What the search itself leaves open of a coordinate.
const SEARCH: f64 = 0.002;
/// By how much an end moves on where errors are still too small.
const FURTHER: f64 = 2.0;
/// By how many times more than it should errors have grown where an end moves back.
const BACK: f64 = 4.0;
/// How often an end moves.
const ROUNDS: u32 = 5;
/// Dampings of the steps that other numbers are given to follow.
const STEPS: [&[f64]; 3] = [&[1e-2, 0.5], &[1e-2], &[1e-2]];
/// A step of a coordinate that makes no difference but by chance.
const NOTHING: f64 = 0.001;

/// What a number could be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Its position among parameters.
    pub(super) key: usize,
    /// The least and greatest coordinate.
    pub(super) at: (f64, f64),
    /// The least and greatest value, on the scale of [`Declared::coordinate`](super::Declared).
    pub(super) own: (f64, f64),
}

impl Range {
    /// One that leaves everything open.
    pub(super) fn open(key: usize) -> Self {
        Self {
            key,
            at: range(key),
            own: PARAMETERS[key].ends(),
        }
    }

    /// Takes in what is possible besides.
    pub(super) fn with(&mut self, other: &Self) {
        let hull = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        self.at = hull(self.at, other.at);
        self.own = hull(self.own, other.own);
    }
}

/// An end of an interval, on its way.
struct End {
    /// Position among the keys.
    key: usize,
    /// Below or above: -1 or 1.
    side: f64,
    /// Distance of the coordinate from where it is best.
    distance: f64,
    /// The greatest distance that there is.
    most: f64,
    /// The greatest that turned out to be possible, or is known to be.
    possible: f64,
    is_there: bool,
}

/// What each number of `keys` could be, within its bounds, and a candidate that turned out to be
/// better on the way, if there is one. What is possible anyway, as `known` says of some numbers,
/// is not looked at again.
pub(super) fn ranges(
    predictor: &mut Predictor<'_>,
    (targets, here, known): (&[Target], &Fitted, &[Range]),
    (keys, columns, spread): (&[usize], &Columns, &[Vec<f64>]),
) -> (Vec<Range>, Option<Fitted>) {
    let at = &here.candidate.at;
    let mut ends = ends((here, known), keys, spread);
    let mut own: Vec<(f64, f64)> = (0..keys.len())
        .map(|place| by_slopes(at, (keys, keys[place]), spread))
        .collect();
    let (by_chance, mut better) = by_chance((predictor, targets), here, keys);
    let least = with_prior(here, keys);
    let grown = TWO_SIDED * TWO_SIDED * here.scale() + 2.0 * by_chance;
    let enough = least + grown;
    for round in 1..=ROUNDS {
        let open: Vec<usize> = (0..ends.len()).filter(|n| !ends[*n].is_there).collect();
        let candidates: Vec<Candidate> = open
            .iter()
            .map(|n| at_end(&here.candidate, &ends[*n], keys, spread))
            .collect();
        if candidates.is_empty() {
            break;
        }
        let judged = judge(predictor, targets, candidates);
        let others: Vec<usize> = open.iter().map(|n| ends[*n].key).collect();
        let of = (keys, columns);
        let stepped = others_moved((predictor, targets), judged, (&others, enough), of);
        for (n, best) in open.into_iter().zip(stepped) {
            let end = &mut ends[n];
            let errors = with_prior(&best, keys);
            let is_possible = errors < enough;
            let is_far = errors > least + BACK * grown && end.distance > end.possible;
            if is_far && round < ROUNDS {
                end.distance = (end.possible + end.distance) / 2.0;
                continue;
            }
            // What is a share of a whole follows from several coordinates.
            let there = values(&best.candidate.at);
            for (own, key) in own.iter_mut().zip(keys) {
                if is_possible || shares_with(keys[end.key], *key) {
                    let there = PARAMETERS[*key].coordinate(there[*key]);
                    *own = (own.0.min(there), own.1.max(there));
                }
            }
            end.is_there = !is_possible || end.distance >= end.most;
            if is_possible && !end.is_there {
                end.possible = end.distance;
                end.distance = (end.distance * FURTHER).min(end.most);
            }
            if better.as_ref().map_or(here.loss, |one| one.loss) > best.loss {
                better = Some(best);
            }
        }
    }
    let ranges = ends.chunks_exact(2).zip(own).map(|(ends, own)| {
        let key = keys[ends[0].key];
        let at = (at[key] - ends[0].distance, at[key] + ends[1].distance);
        let own = match shares_with(key, key) {
            true => own,
            false => at,
        };
        Range { key, at, own }
    });
    (ranges.collect(), better)
}

/// Both ends of each interval, where the covariance has them.
fn ends((here, known): (&Fitted, &[Range]), keys: &[usize], spread: &[Vec<f64>]) -> Vec<End> {
    let sides = |place: usize| {
        let key = keys[place];
        let at = here.candidate.at[key];
        let (least, most) = range(key);
        let half = TWO_SIDED * spread[place][place].max(0.0).sqrt() + SEARCH;
        let known = known.iter().find(|range| range.key == key);
        let (low, high) = known.map_or((at, at), |range| range.at);
        let ends = [(-1.0, at - low, at - least), (1.0, high - at, most - at)];
        ends.map(|(side, known, most)| {
            let (most, known) = (most.max(0.0), known.clamp(0.0, most.max(0.0)));
            End {
                key: place,
                side,
                distance: half.max(known).min(most),
                most,
                possible: known,
                is_there: half.max(known) >= most,
            }
        })
    };
    (0..keys.len()).flat_map(sides).collect()
}

/// The covariance of two values with these slopes.
pub(super) fn together(one: &[f64], other: &[f64], spread: &[Vec<f64>]) -> f64 {
    let rows = one.iter().zip(spread);
    let products = rows.flat_map(|(a, row)| {
        let with = other.iter().zip(row);
        with.map(move |(b, cell)| a * b * cell)
    });
    products.sum()
}

/// The interval of a value that the covariance says, on its own scale.
fn by_slopes(at: &[f64], (keys, key): (&[usize], usize), spread: &[Vec<f64>]) -> (f64, f64) {
    let one = &PARAMETERS[key];
    let value = values(at)[key] as f64;
    let slopes = slopes(at, key, keys);
    let variance = together(&slopes, &slopes, spread);
    let half = TWO_SIDED * variance.max(0.0).sqrt() + SEARCH * value;
    let (least, most) = one.bounds;
    let end = |value: f64| one.coordinate(value.clamp(least as f64, most as f64) as u64);
    (end(value - half), end(value + half))
}

/// Where a number is at the end of its interval, and the others where they fit best with that,
/// as the covariance says.
fn at_end(here: &Candidate, end: &End, keys: &[usize], spread: &[Vec<f64>]) -> Candidate {
    let mut there = here.clone();
    let own = spread[end.key][end.key].max(f64::MIN_POSITIVE);
    for (n, key) in keys.iter().enumerate() {
        let (low, high) = range(*key);
        let moved = end.side * end.distance * spread[end.key][n] / own;
        there.at[*key] = (here.at[*key] + moved).clamp(low, high);
    }
    there
}

/// Each of `judged` after some steps of all numbers but one (of `fixed`), as long as errors are
/// `enough` to end an interval. Two times whose sum is known trade against each other along no
/// straight line, so that one step would leave errors that are not those of the number.
fn others_moved(
    (predictor, targets): (&mut Predictor<'_>, &[Target]),
    mut judged: Vec<Fitted>,
    (fixed, enough): (&[usize], f64),
    (keys, columns): (&[usize], &Columns),
) -> Vec<Fitted> {
    for dampings in STEPS {
        let open = |one: &Fitted| with_prior(one, keys) >= enough;
        let open: Vec<usize> = (0..judged.len()).filter(|n| open(&judged[*n])).collect();
        let mut tries = Vec::new();
        for n in &open {
            let (one, fixed) = (&judged[*n], fixed[*n]);
            let but_one = || (0..keys.len()).filter(|n| *n != fixed);
            let others: Vec<usize> = but_one().map(|n| keys[n]).collect();
            let columns: Columns = but_one().map(|n| columns[n].clone()).collect();
            for damping in dampings {
                let next = step(one, &others, &columns, *damping);
                tries.push(next.unwrap_or_else(|| one.candidate.clone()));
            }
        }
        let tries = judge(predictor, targets, tries);
        for (n, tries) in open.iter().zip(tries.chunks(dampings.len())) {
            for one in tries {
                if one.loss < judged[*n].loss {
                    judged[*n] = one.clone();
                }
            }
        }
    }
    judged
}

/// By how much errors grow when a coordinate moves by nothing, in the mean. The best candidate
/// was chosen among many, and so chance was for it. The best of these candidates, too, if it is
/// better.
fn by_chance(
    (predictor, targets): (&mut Predictor<'_>, &[Target]),
    here: &Fitted,
    keys: &[usize],
) -> (f64, Option<Fitted>) {
    let candidates = keys.iter().flat_map(|key| {
        [-NOTHING, NOTHING].map(|step| {
            let mut there = here.candidate.clone();
            let (low, high) = range(*key);
            there.at[*key] = (there.at[*key] + step).clamp(low, high);
            there
        })
    });
    let judged = judge(predictor, targets, candidates.collect());
    let many = judged.len().max(1) as f64;
    let grown: f64 = judged
        .iter()
        .map(|one| (one.loss - here.loss).max(0.0))
        .sum();
    let best = judged.into_iter().min_by(|a, b| a.loss.total_cmp(&b.loss));
    (grown / many, best.filter(|best| best.loss < here.loss))
}

/// Errors, and how far numbers are from what was thought of them before.
fn with_prior(one: &Fitted, keys: &[usize]) -> f64 {
    let start = start();
    let off = keys
        .iter()
        .map(|key| (one.candidate.at[*key] - start[*key]) / PRIOR);
    one.loss + off.map(|off| off * off).sum::<f64>()
}
