//! Numbers of one design: least squares on logarithms, and how well they are known.

use std::collections::BTreeMap;

use super::measure::{Measured, Values};
use super::parameters::{free, range, start};
use super::predict::{Candidate, DRAWS, Predictor};
use super::probes::Probe;
use crate::calibrate::solve::{cholesky, damped_step, substitute};

/// Step of a coordinate for a secant.
const STEP: f64 = 0.06;
/// Step of a coordinate to either side, from which intervals are computed. Two runs that differ
/// in one number also differ by chance; the step is so wide that what the number does is more
/// than what chance does, or an interval would come out too narrow.
const STEP_WIDE: f64 = 0.3;
/// Error, in standard deviations, from which one counts by its size and not its square.
const LINEAR_FROM: f64 = 3.0;
/// What a value that a candidate does not have counts as: more than an error of one that it
/// has, which is a factor of some thousands at most, in half per cents.
const MISSED: f64 = 4000.0;
/// What is known of a coordinate before anything is measured: a factor of twenty.
pub(super) const PRIOR: f64 = 3.0;
/// The furthest that a coordinate moves in a step.
const FURTHEST: f64 = 1.5;

/// A measured value, as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) probe: usize,
    pub(super) metric: usize,
    pub(super) log: f64,
    /// Standard deviation.
    pub(super) sigma: f64,
}

/// How well a value could be known at best: what short runs differ by in any case.
pub(super) fn floor(metric: &str) -> f64 {
    match metric {
        "lat_mean_us" => 0.005,
        "lat_max_us" => 0.02,
        _ => 0.02,
    }
}

/// The values that were measured, and how far from them a candidate may be that is right.
///
/// A drive's own repeats are too few to say by how much its values differ from run to run: of
/// three, every tenth deviation comes out less than a third of what it is, and its value would
/// count as much as ten. So `spreads` count beside them, which say how much those of a candidate
/// differ (of each of `measured`, metric by metric), each by the runs that it is from. Where
/// there are none, other probes of the same kind count.
pub(super) fn targets(
    probes: &[Probe],
    measured: &[(usize, Measured)],
    spreads: &[Values],
) -> Vec<Target> {
    let alike = Alike::of(probes, measured);
    let mut targets = Vec::new();
    for (n, (probe, measured)) in measured.iter().enumerate() {
        let of = &probes[*probe];
        for (metric, name) in of.metrics.iter().enumerate() {
            let Some((log, own)) = measured.of(metric) else {
                continue;
            };
            let many = measured.repeats.len().max(1) as f64;
            let candidate = spreads
                .get(n)
                .and_then(|of| of.get(metric).copied().flatten());
            let (others, known_by) = match candidate {
                Some(spread) => (spread * spread, f64::from(DRAWS - 1)),
                None => (alike.variance(of, name), many - 1.0),
            };
            let degrees = (many - 1.0, known_by);
            let of_drive =
                (degrees.0 * own * own + degrees.1 * others) / (degrees.0 + degrees.1).max(1.0);
            let floor = floor(name);
            targets.push(Target {
                probe: *probe,
                metric,
                log,
                // The candidate runs once.
                sigma: (of_drive / many + others + floor * floor).sqrt(),
            });
        }
    }
    targets
}

/// Mean variances of the repeats of probes of a kind.
struct Alike(BTreeMap<(u8, &'static str), (f64, f64)>);

impl Alike {
    fn of(probes: &[Probe], measured: &[(usize, Measured)]) -> Self {
        let mut sums: BTreeMap<(u8, &'static str), (f64, f64)> = BTreeMap::new();
        for (probe, measured) in measured {
            let of = &probes[*probe];
            for (metric, name) in of.metrics.iter().enumerate() {
                if let Some((_, spread)) = measured.of(metric) {
                    let sum = sums.entry((of.topic, name)).or_default();
                    *sum = (sum.0 + spread * spread, sum.1 + 1.0);
                }
            }
        }
        Self(sums)
    }

    fn variance(&self, probe: &Probe, metric: &'static str) -> f64 {
        let sum = self.0.get(&(probe.topic, metric));
        sum.map_or(0.0, |(sum, many)| sum / many)
    }
}

/// A candidate and how far from the measured values it is.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub(super) candidate: Candidate,
    /// Of each target, in standard deviations; `None`: the candidate has no such value.
    pub(super) errors: Vec<Option<f64>>,
    pub(super) loss: f64,
}

impl Fitted {
    /// How much the error of each target counts as.
    pub(super) fn counted(&self) -> impl Iterator<Item = f64> {
        self.errors.iter().map(|error| error.unwrap_or(MISSED))
    }

    /// What designs are compared by: less is better. Errors count as the Bayesian
    /// information criterion has it, and less where no design explains them.
    pub(super) fn criterion(&self) -> f64 {
        let many = (self.errors.len().max(1)) as f64;
        let keys = free(&self.candidate.design).len() as f64;
        many * libm::log1p(self.loss / many) + keys * libm::log(many)
    }

    /// By how much errors are greater than what was thought of them, as a variance.
    pub(super) fn scale(&self) -> f64 {
        let keys = free(&self.candidate.design).len() as f64;
        let many = self.errors.len() as f64;
        (self.loss / (many - keys).max(1.0)).max(1.0)
    }
}

fn loss(errors: &[Option<f64>]) -> f64 {
    let counted = errors.iter().map(|error| error.unwrap_or(MISSED));
    counted.map(loss_of).sum()
}

fn loss_of(error: f64) -> f64 {
    let share = error / LINEAR_FROM;
    2.0 * LINEAR_FROM * LINEAR_FROM * ((1.0 + share * share).sqrt() - 1.0)
}

fn weight(error: f64) -> f64 {
    let share = error / LINEAR_FROM;
    1.0 / (1.0 + share * share).sqrt()
}

/// Errors of candidates, all of them side by side.
pub(super) fn judge(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    candidates: Vec<Candidate>,
) -> Vec<Fitted> {
    let mut asked = Vec::new();
    for candidate in &candidates {
        asked.extend(targets.iter().map(|target| (target.probe, candidate)));
    }
    let values = predictor.predict(&asked);
    let mut values = values.into_iter();
    let mut judged = Vec::new();
    for candidate in &candidates {
        let errors: Vec<Option<f64>> = targets
            .iter()
            .zip(values.by_ref())
            .map(|(target, values)| {
                let ours = values?.get(target.metric).copied().flatten()?;
                let error = (libm::log(ours) - target.log) / target.sigma;
                error.is_finite().then_some(error)
            })
            .collect();
        judged.push(Fitted {
            loss: loss(&errors),
            candidate: candidate.clone(),
            errors,
        });
    }
    judged
}

/// How errors change with the coordinates of `keys`: a column for each.
pub(super) type Columns = Vec<Vec<f64>>;

/// Candidates with one coordinate changed, and by how much.
pub(super) fn moved(candidate: &Candidate, keys: &[usize]) -> Vec<(Candidate, f64)> {
    let one = |key: &usize| {
        let (_, high) = range(*key);
        let mut other = candidate.clone();
        let step = if other.at[*key] + STEP > high {
            -STEP
        } else {
            STEP
        };
        other.at[*key] += step;
        (other, step)
    };
    keys.iter().map(one).collect()
}

/// The secants at a candidate.
pub(super) fn columns(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    here: &Fitted,
    keys: &[usize],
) -> Columns {
    let moved = moved(&here.candidate, keys);
    let (candidates, steps): (Vec<Candidate>, Vec<f64>) = moved.into_iter().unzip();
    let judged = judge(predictor, targets, candidates);
    let column = |(there, step): (&Fitted, &f64)| {
        let pairs = there.errors.iter().zip(&here.errors);
        pairs
            .map(|(there, here)| match (there, here) {
                (Some(there), Some(here)) => (there - here) / step,
                _ => 0.0,
            })
            .collect()
    };
    judged.iter().zip(&steps).map(column).collect()
}

/// How errors change with the coordinates of `keys`, from [`STEP_WIDE`] below each to as much
/// above it. Intervals are computed from these; the search itself takes shorter steps.
pub(super) fn columns_wide(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    here: &Fitted,
    keys: &[usize],
) -> Columns {
    let mut candidates = Vec::new();
    let mut lengths = Vec::new();
    for key in keys {
        let (low, high) = range(*key);
        let at = here.candidate.at[*key];
        let ends = [(at - STEP_WIDE).max(low), (at + STEP_WIDE).min(high)];
        lengths.push(ends[1] - ends[0]);
        candidates.extend(ends.map(|end| {
            let mut other = here.candidate.clone();
            other.at[*key] = end;
            other
        }));
    }
    let judged = judge(predictor, targets, candidates);
    let column = |(ends, length): (&[Fitted], &f64)| {
        let pairs = ends[1].errors.iter().zip(&ends[0].errors);
        pairs
            .map(|(above, below)| match (above, below) {
                (Some(above), Some(below)) if *length > 0.0 => (above - below) / length,
                _ => 0.0,
            })
            .collect()
    };
    judged.chunks_exact(2).zip(&lengths).map(column).collect()
}

/// Where a damped step leads.
pub(super) fn step(
    here: &Fitted,
    keys: &[usize],
    columns: &Columns,
    damping: f64,
) -> Option<Candidate> {
    let start = start();
    let at = &here.candidate.at;
    // What was known before is a measured value of each coordinate.
    let mut errors: Vec<f64> = here.counted().collect();
    let mut weights: Vec<f64> = errors.iter().map(|error| weight(*error)).collect();
    errors.extend(keys.iter().map(|key| (at[*key] - start[*key]) / PRIOR));
    weights.extend(keys.iter().map(|_| 1.0));
    let mut whole = columns.clone();
    for (index, column) in whole.iter_mut().enumerate() {
        column.extend((0..keys.len()).map(|key| if key == index { 1.0 / PRIOR } else { 0.0 }));
    }
    let whole: Vec<&[f64]> = whole.iter().map(Vec::as_slice).collect();
    let step = damped_step(&whole, &errors, &weights, damping)?;
    let mut candidate = here.candidate.clone();
    for (key, step) in keys.iter().zip(step) {
        let (low, high) = range(*key);
        let next = candidate.at[*key] + step.clamp(-FURTHEST, FURTHEST);
        candidate.at[*key] = next.clamp(low, high);
    }
    Some(candidate)
}

/// Moves the coordinates of `keys` to where errors are least, in so many steps at most.
pub(super) fn improve(
    predictor: &mut Predictor<'_>,
    targets: &[Target],
    mut here: Fitted,
    (keys, steps): (&[usize], u32),
) -> Fitted {
    const DAMPINGS: [f64; 4] = [1e-4, 1e-2, 0.3, 10.0];
    for _ in 0..steps {
        let columns = columns(predictor, targets, &here, keys);
        let tries = DAMPINGS
            .iter()
            .filter_map(|damping| step(&here, keys, &columns, *damping));
        let judged = judge(predictor, targets, tries.collect());
        let best = judged.into_iter().min_by(|a, b| a.loss.total_cmp(&b.loss));
        let Some(best) = best.filter(|best| best.loss < here.loss) else {
            break;
        };
        let is_enough = here.loss - best.loss < 0.005 * here.loss + 0.05;
        here = best;
        if is_enough {
            break;
        }
    }
    here
}

/// What is known of the coordinates of `keys`: their covariance, row by row.
pub(super) fn covariance(here: &Fitted, columns: &Columns, keys: &[usize]) -> Vec<Vec<f64>> {
    let many = keys.len();
    let weights: Vec<f64> = here.counted().map(weight).collect();
    let scale = here.scale();
    let mut matrix = vec![vec![0.0; many]; many];
    for row in 0..many {
        for column in 0..many {
            let products = columns[row].iter().zip(&columns[column]).zip(&weights);
            let sum: f64 = products.map(|((a, b), weight)| a * b * weight).sum();
            matrix[row][column] = sum / scale;
        }
        matrix[row][row] += 1.0 / (PRIOR * PRIOR);
    }
    inverse(matrix)
}

/// The inverse of a matrix that is symmetric and positive definite.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let many = matrix.len();
    let diagonal: Vec<f64> = (0..many).map(|n| matrix[n][n]).collect();
    let unit = |n: usize| {
        let mut unit = vec![0.0; many];
        unit[n] = 1.0;
        unit
    };
    match cholesky(&mut matrix) {
        Some(()) => (0..many).map(|n| substitute(&matrix, unit(n))).collect(),
        // Rounding took a direction away: each by itself, then.
        None => {
            let alone = |n: usize| unit(n).iter().map(|one| one / diagonal[n]).collect();
            (0..many).map(alone).collect()
        }
    }
}
