//! What each number could be: the interval that the covariance says, and more where a step along
//! it finds that errors do not grow as they should.
//!
//! A covariance supposes that values follow coordinates along straight lines. Where a number
//! trades against others over a wide range (the read of the flash against the way of a command),
//! or has no influence until it is the slowest of all (the time of a core), they do not.

use super::parameters::{PARAMETERS, start};
use super::predict::{Candidate, Predictor};
use super::solve::{Columns, Fitted, PRIOR, Target, judge, step};

/// Standard deviations on either side that make 95 %.
pub(super) const TWO_SIDED: f64 = 1.96;
/// What the search itself leaves open of a coordinate.
const SEARCH: f64 = 0.002;
/// By how much an end moves on where errors are still too small.
const FURTHER: f64 = 2.0;
/// How often it does.
const ROUNDS: u32 = 4;
/// Dampings of the steps that other numbers are given to follow.
const STEPS: [&[f64]; 3] = [&[1e-2, 0.5], &[1e-2], &[1e-2]];
/// A step of a coordinate that makes no difference but by chance.
const NOTHING: f64 = 0.001;

/// Numbers by their place among parameters, with the least and greatest coordinate of each.
pub(super) type Ranges = Vec<(usize, (f64, f64))>;

/// An end of an interval, on its way.
struct End {
    /// Position among the keys.
    key: usize,
    /// Below or above: -1 or 1.
    side: f64,
    /// Distance of the coordinate from where it is best.
    distance: f64,
    is_there: bool,
}

/// Coordinates that each number of `keys` could have, within its bounds, and a candidate that
/// turned out to be better on the way, if there is one. What is possible anyway, as `known` says
/// of some numbers, is not looked at again.
pub(super) fn ranges(
    predictor: &mut Predictor<'_>,
    (targets, here, known): (&[Target], &Fitted, &Ranges),
    (keys, columns, spread): (&[usize], &Columns, &[Vec<f64>]),
) -> (Ranges, Option<Fitted>) {
    let sides = |place: usize| {
        let key = keys[place];
        let (at, bounds) = (here.candidate.at[key], PARAMETERS[key].range());
        let half = TWO_SIDED * spread[place][place].max(0.0).sqrt() + SEARCH;
        let known = known.iter().find(|(of, _)| *of == key);
        let (low, high) = known.map_or((at, at), |(_, range)| *range);
        let ends = [
            (-1.0, at - low, at - bounds.0),
            (1.0, high - at, bounds.1 - at),
        ];
        ends.map(|(side, known, most)| End {
            key: place,
            side,
            distance: half.max(known),
            is_there: half.max(known) >= most,
        })
    };
    let mut ends: Vec<End> = (0..keys.len()).flat_map(sides).collect();
    let (by_chance, mut better) = by_chance((predictor, targets), here, keys);
    let enough = with_prior(here, keys) + TWO_SIDED * TWO_SIDED * here.scale() + 2.0 * by_chance;
    for _ in 0..ROUNDS {
        let open = ends.iter().filter(|end| !end.is_there);
        let candidates: Vec<Candidate> = open
            .map(|end| at_end(&here.candidate, end, keys, spread))
            .collect();
        if candidates.is_empty() {
            break;
        }
        let judged = judge(predictor, targets, candidates);
        let open: Vec<usize> = (0..ends.len()).filter(|n| !ends[*n].is_there).collect();
        let others: Vec<usize> = open.iter().map(|n| ends[*n].key).collect();
        let of = (keys, columns);
        let stepped = others_moved((predictor, targets), judged, (&others, enough), of);
        for (n, best) in open.into_iter().zip(stepped) {
            let end = &mut ends[n];
            let (low, high) = PARAMETERS[keys[end.key]].range();
            let at = here.candidate.at[keys[end.key]] + end.side * end.distance;
            end.is_there = with_prior(&best, keys) >= enough || at <= low || at >= high;
            if !end.is_there {
                end.distance *= FURTHER;
            }
            if better.as_ref().map_or(here.loss, |one| one.loss) > best.loss {
                better = Some(best);
            }
        }
    }
    let ranges = ends.chunks_exact(2).map(|ends| {
        let key = keys[ends[0].key];
        let (low, high) = PARAMETERS[key].range();
        let at = here.candidate.at[key];
        let range = (
            (at - ends[0].distance).max(low),
            (at + ends[1].distance).min(high),
        );
        (key, range)
    });
    (ranges.collect(), better)
}

/// Where a number is at the end of its interval, and the others where they fit best with that,
/// as the covariance says.
fn at_end(here: &Candidate, end: &End, keys: &[usize], spread: &[Vec<f64>]) -> Candidate {
    let mut there = here.clone();
    let own = spread[end.key][end.key].max(f64::MIN_POSITIVE);
    for (n, key) in keys.iter().enumerate() {
        let (low, high) = PARAMETERS[*key].range();
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
            let (low, high) = PARAMETERS[*key].range();
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
