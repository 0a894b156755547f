//! The next probes: those that would tell most for their time.

use super::designs::Ranking;
use super::parameters::free;
use super::predict::{Candidate, Predictor};
use super::solve::{self, Columns, Fitted, floor, moved};

/// Least that a probe has to tell, in nats: a tenth of the width of one interval.
const LEAST: f64 = 0.1;
/// Most that telling two designs apart counts.
const APART_MOST: f64 = 8.0;
/// Time that any probe takes, in milliseconds.
const ANYWAY_MS: f64 = 100.0;
/// Standard deviation of a value that is not measured yet, beyond the least.
const EXPECTED: f64 = 0.01;

/// A probe, and what it would tell.
struct Offer {
    probe: usize,
    /// How its values react to each coordinate, in standard deviations.
    rows: Vec<Vec<f64>>,
    /// What it tells of designs.
    apart: f64,
}

/// The best of `open` probes, at most `most`, with what the first of them tells; none if
/// nothing is learnt any more.
pub(super) fn next(
    predictor: &mut Predictor<'_>,
    ranking: &Ranking,
    (here_columns, open): (&Columns, &[usize]),
    most: usize,
) -> Vec<(usize, f64)> {
    let best = &ranking.best;
    let keys = free(&best.candidate.design);
    let mut covariance = solve::covariance(best, here_columns, &keys);
    let mut offers = offers(predictor, ranking, &keys, open);
    let costs = |offer: &Offer, predictor: &Predictor<'_>| {
        predictor.probes()[offer.probe].cost_ms + ANYWAY_MS
    };
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let gains = offers.iter().enumerate().map(|(index, offer)| {
            let gain = gain(&covariance, &offer.rows) + offer.apart;
            (index, gain, gain / costs(offer, predictor))
        });
        let worth = gains.filter(|(_, gain, _)| *gain > LEAST);
        let Some((index, gain, _)) = worth.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            break;
        };
        let offer = offers.swap_remove(index);
        for row in &offer.rows {
            learn(&mut covariance, row);
        }
        chosen.push((offer.probe, gain));
        // What tells two designs apart does so once.
        for other in &mut offers {
            other.apart -= other.apart.min(offer.apart);
        }
    }
    chosen
}

fn offers(
    predictor: &mut Predictor<'_>,
    ranking: &Ranking,
    keys: &[usize],
    open: &[usize],
) -> Vec<Offer> {
    let best = &ranking.best.candidate;
    let (there, steps): (Vec<Candidate>, Vec<f64>) = moved(best, keys).into_iter().unzip();
    let rivals = ranking.rivals.iter().map(|rival: &Fitted| &rival.candidate);
    let all: Vec<&Candidate> = std::iter::once(best).chain(&there).chain(rivals).collect();
    let asked: Vec<(usize, &Candidate)> = open
        .iter()
        .flat_map(|probe| all.iter().map(move |candidate| (*probe, *candidate)))
        .collect();
    let values = predictor.predict(&asked);
    let mut offers = Vec::new();
    for (probe, values) in open.iter().zip(values.chunks(all.len().max(1))) {
        let metrics = predictor.probes()[*probe].metrics;
        let mut offer = Offer {
            probe: *probe,
            rows: Vec::new(),
            apart: 0.0,
        };
        for (metric, name) in metrics.iter().enumerate() {
            let log = |n: usize| {
                let value = values.get(n)?.as_ref()?.get(metric).copied().flatten();
                value.map(libm::log)
            };
            let floor = floor(name);
            let sigma = (floor * floor + EXPECTED * EXPECTED).sqrt();
            let here = log(0);
            let row = (0..keys.len()).map(|key| {
                let there = here.and_then(|here| Some(log(key + 1)? - here));
                there.unwrap_or(0.0) / steps[key] / sigma
            });
            offer.rows.push(row.collect());
            for rival in 0..ranking.rivals.len() {
                let rival = log(1 + keys.len() + rival);
                let apart = here.and_then(|here| Some((rival? - here) / sigma));
                let apart = apart.unwrap_or(0.0);
                offer.apart += (apart * apart / 2.0).min(APART_MOST);
            }
        }
        offer.apart /= ranking.rivals.len().max(1) as f64;
        offers.push(offer);
    }
    offers
}

/// By how much values with these rows would shrink what is not known, in nats.
fn gain(covariance: &[Vec<f64>], rows: &[Vec<f64>]) -> f64 {
    let mut covariance = covariance.to_vec();
    let mut gain = 0.0;
    for row in rows {
        gain += libm::log1p(spread(&covariance, row).1) / 2.0;
        learn(&mut covariance, row);
    }
    gain
}

/// The covariance of a value with the coordinates, and its variance.
fn spread(covariance: &[Vec<f64>], row: &[f64]) -> (Vec<f64>, f64) {
    let dot = |a: &[f64]| -> f64 { a.iter().zip(row).map(|(a, b)| a * b).sum() };
    let with: Vec<f64> = covariance.iter().map(|line| dot(line)).collect();
    let variance = dot(&with).max(0.0);
    (with, variance)
}

/// The covariance after a value with this row.
fn learn(covariance: &mut [Vec<f64>], row: &[f64]) {
    let (with, variance) = spread(covariance, row);
    for (line, a) in covariance.iter_mut().zip(&with) {
        for (cell, b) in line.iter_mut().zip(&with) {
            *cell -= a * b / (1.0 + variance);
        }
    }
}
