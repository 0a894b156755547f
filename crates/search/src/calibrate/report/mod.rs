//! What a calibration came to: files, a table, figures.

mod figures;
mod files;
mod table;

use serde::Serialize;
use zonelab_lab::reference::plausible;
use zonelab_lab::rows::significant;
use zonelab_lab::run::PointResult;

use super::data::Data;
use super::evaluate::Ours;
use super::folds::FoldResult;
use super::search::Found;
use super::sensitivity::{Sensitivity, alike};
use super::{CalibrateError, Calibration, Outcome};

/// Version of `summary.json` and `residuals.json`.
const SCHEMA: u32 = 1;

/// A measured value beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// File of the measurement.
    pub file: String,
    /// Its line; 0 if it stands in the experiment.
    pub row: usize,
    /// Experiment, or `fio`.
    pub experiment: String,
    /// Series; of results of fio, the file.
    pub series: String,
    /// Axis value; of results of fio, the number of the job.
    pub x: String,
    /// Job.
    pub job: String,
    /// Metric.
    pub metric: String,
    /// The measured value.
    pub published: f64,
    /// Least and greatest of its repeats.
    pub spread: Option<(f64, f64)>,
    /// What the start profile gives.
    pub start: Option<f64>,
    /// What the calibrated profile gives.
    pub ours: Option<f64>,
    /// Relative error of the start profile, from the nearest repeat.
    pub start_error: Option<f64>,
    /// Relative error of the calibrated profile, from the nearest repeat.
    pub error: Option<f64>,
    /// Fold of cross-validation that it is in, from 1.
    pub fold: Option<u32>,
}

impl Residual {
    /// The residual of one measurement.
    pub(super) fn of(
        data: &Data,
        index: usize,
        start: Option<f64>,
        ours: Option<f64>,
        fold: Option<u32>,
    ) -> Self {
        let measured = &data.measurements[index];
        let (low, high) = measured.spread.unwrap_or((measured.value, measured.value));
        let error = |ours: f64| significant((ours - ours.clamp(low, high)) / ours.clamp(low, high));
        Self {
            file: measured.place.file.clone(),
            row: measured.place.line,
            experiment: data.groups[measured.group].name.clone(),
            series: measured.series.clone(),
            x: measured.x.clone(),
            job: measured.job.clone(),
            metric: measured.metric.clone(),
            published: significant(measured.value),
            spread: measured.spread,
            start,
            ours,
            start_error: start.map(error),
            error: ours.map(error),
            fold,
        }
    }

    /// What kind of metric it is of.
    fn class(&self) -> Class {
        let is = |part: &str| self.metric.contains(part);
        if is("iops") || is("ops_s") || is("mib_s") || self.metric == "ops" {
            Class::Throughput
        } else if is("mean") {
            Class::MeanLatency
        } else {
            Class::Percentile
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Throughput,
    MeanLatency,
    Percentile,
}

/// Median and 90th percentile of the magnitude of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub count: usize,
    /// Median.
    pub median: Option<f64>,
    /// The least error that 90 % do not exceed.
    pub p90: Option<f64>,
}

impl Quantiles {
    fn of(errors: impl Iterator<Item = Option<f64>>) -> Self {
        // What measured nothing is as wrong as can be.
        let mut errors: Vec<f64> = errors.map(|e| e.map_or(f64::MAX, f64::abs)).collect();
        errors.sort_by(f64::total_cmp);
        let at = |rank: usize| errors.get(rank.checked_sub(1)?).copied();
        let lower = at(errors.len().div_ceil(2));
        let upper = at(errors.len() / 2 + 1);
        let median = lower
            .zip(upper)
            .map(|(lower, upper)| lower / 2.0 + upper / 2.0);
        let finite = |value: Option<f64>| value.filter(|v| *v < 1e300).map(significant);
        Self {
            count: errors.len(),
            median: finite(median),
            p90: finite(at((errors.len() * 9).div_ceil(10))),
        }
    }
}

/// Errors of a set of values, in all and by kind of metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    /// All values.
    pub all: Quantiles,
    /// Throughputs.
    pub throughput: Quantiles,
    /// Mean latencies.
    pub mean_latency: Quantiles,
    /// Percentiles of latency.
    pub percentiles: Quantiles,
}

impl Errors {
    /// Errors of the calibrated profile.
    pub(super) fn of(residuals: &[&Residual]) -> Self {
        Self::by(residuals, |residual| residual.error)
    }

    fn by(residuals: &[&Residual], error: impl Fn(&Residual) -> Option<f64> + Copy) -> Self {
        let class = |class: Class| {
            let mine = residuals
                .iter()
                .filter(|residual| residual.class() == class);
            Quantiles::of(mine.map(|residual| error(residual)))
        };
        Self {
            all: Quantiles::of(residuals.iter().map(|residual| error(residual))),
            throughput: class(Class::Throughput),
            mean_latency: class(Class::MeanLatency),
            percentiles: class(Class::Percentile),
        }
    }
}

/// Errors before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// Experiment; `all`, or `fio`.
    pub name: String,
    /// Of the start profile.
    pub before: Errors,
    /// Of the calibrated one.
    pub after: Errors,
}

/// A parameter, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// The key.
    pub key: String,
    /// Value of the start profile.
    pub start: String,
    /// Value of the calibrated profile.
    pub fitted: String,
    /// Least value that was allowed.
    pub low: String,
    /// Greatest value that was allowed.
    pub high: String,
    /// Whether any measured value reacts to it.
    pub determined: bool,
    /// The measured value that reacts most, in words.
    pub strongest: Option<String>,
    /// Fitted values of the folds of cross-validation.
    pub folds: Vec<String>,
}

/// Cross-validation of one fold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fold {
    /// Number of the fold that was left out, from 1.
    pub fold: u32,
    /// Errors on the rest, which was fitted.
    pub fitted: Errors,
    /// Errors on the fold, which was not.
    pub left_out: Errors,
}

/// All of it in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this form.
    pub schema: u32,
    /// Seed.
    pub seed: u64,
    /// Whether it was a coarse calibration.
    pub coarse: bool,
    /// Candidates that the fit looked at.
    pub evaluations: u32,
    /// Typical relative error by which candidates were compared: the square
    /// root of the loss.
    pub objective: f64,
    /// The parameters.
    pub parameters: Vec<Fitted>,
    /// Errors of all values.
    pub all: BeforeAfter,
    /// Errors by experiment.
    pub experiments: Vec<BeforeAfter>,
    /// Cross-validation.
    pub cross_validation: Vec<Fold>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// What a report is made of.
pub(super) struct Parts<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) fitted: &'a Found,
    pub(super) sensitivity: &'a [Sensitivity],
    pub(super) folds: &'a [FoldResult],
    pub(super) before: &'a Ours,
    pub(super) after: &'a Ours,
    /// Of each case that is a point.
    pub(super) results: Vec<Option<PointResult>>,
}

impl Parts<'_> {
    /// Writes everything down.
    pub(super) fn outcome(self) -> Result<Outcome, CalibrateError> {
        let data = &self.calibration.data;
        let folds = super::folds::deal(self.calibration, self.calibration.settings.folds);
        let residual = |case: usize, index: usize| {
            let fold = (!self.folds.is_empty()).then(|| folds[case] + 1);
            Residual::of(data, index, self.before[index], self.after[index], fold)
        };
        let residuals: Vec<Residual> = data
            .cases
            .iter()
            .enumerate()
            .flat_map(|(case, of)| of.measurements.clone().map(move |index| (case, index)))
            .map(|(case, index)| residual(case, index))
            .collect();
        let summary = self.summary(&residuals);
        let mut files = vec![
            ("residuals.csv".to_owned(), files::residuals_csv(&residuals)),
            (
                "residuals.json".to_owned(),
                files::residuals_json(&residuals),
            ),
            (
                "sensitivity.csv".to_owned(),
                files::sensitivity_csv(data, self.sensitivity),
            ),
            ("summary.json".to_owned(), files::json(&summary)),
        ];
        let figures = figures::all(data, &residuals, &self.results)?;
        let html = files::html(&summary, &residuals, &figures);
        files.extend(figures);
        files.push(("calibration.html".to_owned(), html));
        Ok(Outcome {
            profile: self.calibration.profile_text(&self.fitted.values),
            text: table::text(&residuals, &summary),
            files,
            summary,
        })
    }

    fn summary(&self, residuals: &[Residual]) -> Summary {
        let calibration = self.calibration;
        let of = |name: &str, residuals: &[&Residual]| BeforeAfter {
            name: name.to_owned(),
            before: Errors::by(residuals, |residual| residual.start_error),
            after: Errors::of(residuals),
        };
        let all: Vec<&Residual> = residuals.iter().collect();
        let group = |name: &String| -> BeforeAfter {
            let mine: Vec<&Residual> = all
                .iter()
                .filter(|residual| residual.experiment == *name)
                .copied()
                .collect();
            of(name, &mine)
        };
        let folds = self.folds.iter().map(|fold| Fold {
            fold: fold.fold,
            fitted: fold.fitted,
            left_out: fold.left_out,
        });
        Summary {
            schema: SCHEMA,
            seed: calibration.settings.seed,
            coarse: calibration.settings.coarse,
            evaluations: self.fitted.evaluations,
            objective: significant(self.fitted.loss.sqrt()),
            parameters: self.parameters(),
            all: of("all", &all),
            experiments: calibration
                .data
                .groups
                .iter()
                .map(|g| group(&g.name))
                .collect(),
            cross_validation: folds.collect(),
            warnings: self.warnings(),
        }
    }

    fn parameters(&self) -> Vec<Fitted> {
        let parameters = self.calibration.parameters.iter().enumerate();
        let one = |(index, parameter): (usize, &super::Parameter)| {
            let sensitivity = &self.sensitivity[index];
            Fitted {
                key: parameter.key.clone(),
                start: parameter.print(parameter.start),
                fitted: parameter.print(self.fitted.values[index]),
                low: parameter.print(parameter.low),
                high: parameter.print(parameter.high),
                determined: sensitivity.is_determined(),
                strongest: sensitivity
                    .strongest()
                    .filter(|_| sensitivity.is_determined())
                    .map(|index| self.in_words(index)),
                folds: self
                    .folds
                    .iter()
                    .map(|fold| parameter.print(fold.values[index]))
                    .collect(),
            }
        };
        parameters.map(one).collect()
    }

    fn in_words(&self, index: usize) -> String {
        let data = &self.calibration.data;
        let measured = &data.measurements[index];
        format!(
            "{} of {}, {}, {} {}",
            measured.metric,
            measured.job,
            data.groups[measured.group].name,
            measured.series,
            measured.x
        )
    }

    fn warnings(&self) -> Vec<String> {
        let calibration = self.calibration;
        let mut warnings = calibration.data.warnings.clone();
        let beside = calibration.data.measurements.iter().zip(self.before);
        let beside = beside.filter_map(|(measured, ours)| Some((measured.stated(), (*ours)?)));
        warnings.extend(plausible::suspects(beside));
        for (index, parameter) in calibration.parameters.iter().enumerate() {
            let value = self.fitted.values[index];
            if !self.sensitivity[index].is_determined() {
                warnings.push(format!(
                    "{}: not determined by the data: no measured value reacts to it",
                    parameter.key
                ));
            } else if value == parameter.low || value == parameter.high {
                warnings.push(format!(
                    "{}: fitted to {}, the end of its range: wider bounds may fit better",
                    parameter.key,
                    parameter.print(value)
                ));
            }
        }
        for (one, other) in alike(self.sensitivity) {
            warnings.push(format!(
                "{one} and {other} act alike on these data: they determine both together, \
                 not each"
            ));
        }
        let missing = self.after.iter().filter(|value| value.is_none()).count();
        if missing > 0 {
            warnings.push(format!(
                "{missing} measured values have no counterpart of ours"
            ));
        }
        warnings
    }
}
