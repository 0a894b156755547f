//! Cross-validation: how well a part of the data predicts the rest.

use zonelab_host::Rng;

use super::evaluate::{Evaluator, Values};
use super::report::{Errors, Residual};
use super::search::OnProgress;
use super::{Calibration, Stop};

/// Stream of random numbers that deals points to folds.
const STREAM: u64 = 0x666f_6c64;

/// A fit on all folds but one, and how it does on that one.
#[derive(Clone, Debug)]
pub struct FoldResult {
    /// Number of the fold that was left out, from 1.
    pub fold: u32,
    /// Fitted values of the parameters.
    pub values: Vec<u64>,
    /// Errors on what it was fitted to.
    pub fitted: Errors,
    /// Errors on what it had not seen.
    pub left_out: Errors,
}

/// Fits once for each fold. Points are dealt, not values: all values of a point
/// are in one fold.
pub(super) fn run(
    calibration: &Calibration,
    evaluator: &mut Evaluator<'_>,
    most: u32,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<FoldResult>, Stop> {
    let count = calibration.settings.folds;
    let fold_of = deal(calibration, count);
    let mut results = Vec::new();
    if count < 2 {
        return Ok(results);
    }
    for fold in 0..count {
        let cases = |is_in: bool| -> Vec<usize> {
            let all = fold_of.iter().enumerate();
            all.filter(|(_, of)| (**of == fold) == is_in)
                .map(|(case, _)| case)
                .collect()
        };
        let (seen, left_out) = (cases(false), cases(true));
        if seen.is_empty() || left_out.is_empty() {
            continue;
        }
        let stage = format!("fold {} of {count}", fold + 1);
        let starts = [calibration.start_values()];
        let progress = (stage.as_str(), on_progress);
        let found = calibration.fit(evaluator, seen.clone(), most, &starts, progress)?;
        let fitted = errors(calibration, evaluator, &found.values, &seen)?;
        let left_out = errors(calibration, evaluator, &found.values, &left_out)?;
        results.push(FoldResult {
            fold: fold + 1,
            values: found.values,
            fitted,
            left_out,
        });
    }
    Ok(results)
}

/// The fold of each case, from 0: those of a series are shuffled and dealt in
/// turn, so that each fold has a share of every curve.
pub(super) fn deal(calibration: &Calibration, folds: u32) -> Vec<u32> {
    let data = &calibration.data;
    let series = |case: usize| {
        let first = &data.measurements[data.cases[case].measurements.start];
        (data.cases[case].group, first.series.as_str())
    };
    // Cases go by point and then by series.
    let mut order: Vec<usize> = (0..data.cases.len()).collect();
    order.sort_by_key(|case| series(*case));
    let mut rng = Rng::new(calibration.settings.seed, STREAM);
    let mut fold_of = vec![0; data.cases.len()];
    let mut next = 0;
    for mine in order.chunk_by_mut(|a, b| series(*a) == series(*b)) {
        for last in (1..mine.len()).rev() {
            mine.swap(last, rng.below(last as u64 + 1) as usize);
        }
        for case in mine {
            fold_of[*case] = next % folds.max(1);
            next += 1;
        }
    }
    fold_of
}

fn errors(
    calibration: &Calibration,
    evaluator: &mut Evaluator<'_>,
    values: &Values,
    cases: &[usize],
) -> Result<Errors, Stop> {
    let data = &calibration.data;
    let Some(ours) = evaluator.evaluate(values, cases)? else {
        return Ok(Errors::of(&[]));
    };
    let measurements = cases
        .iter()
        .flat_map(|case| data.cases[*case].measurements.clone());
    let residuals: Vec<Residual> = measurements
        .map(|index| Residual::of(data, index, None, ours[index], None))
        .collect();
    let all: Vec<&Residual> = residuals.iter().collect();
    Ok(Errors::of(&all))
}
