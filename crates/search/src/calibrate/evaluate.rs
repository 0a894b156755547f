//! Running cases on candidates, with everything that was run kept in a file.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zonelab_config::{Errors, Override};
use zonelab_device::Nanos;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::inputs::VERSION;
use zonelab_lab::rows::significant;
use zonelab_lab::run::{self, Point, PointResult, Profiles, RunOptions};
use zonelab_ssd::profile::Profile;

use super::data::{Case, Data, Measurement, Work};
use super::fio_json::Ran;
use super::parameters::Parameter;
use super::{CalibrateError, DataFile, Stop};
use crate::evaluations::Log;

/// Values of the free parameters, in their order.
pub(super) type Values = Vec<u64>;

/// Our values beside the measurements of one case; `None`: nothing was measured.
type CaseValues = Vec<Option<f64>>;

/// Our values beside all measurements; `None` for those of cases that were not
/// run, and where a run measured nothing.
pub(super) type Ours = Vec<Option<f64>>;

/// One line of the file of evaluations.
#[derive(Debug, Deserialize, Serialize)]
struct Line {
    /// Values of the parameters.
    values: Values,
    /// Case by case, our values.
    cases: BTreeMap<usize, CaseValues>,
}

/// The first line of the file.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    /// Version of zonelab: what another one measured is not ours.
    version: String,
    keys: Vec<String>,
    /// Run time of each case in nanoseconds; `None`: its own.
    runtime_ns: Vec<Option<u64>>,
}

/// Version of the file of evaluations.
const SCHEMA: u32 = 2;

/// Gives the candidate whatever profile an experiment asks for.
struct Candidate<'a> {
    start: &'a DataFile,
    settings: Vec<Override>,
}

impl Profiles for Candidate<'_> {
    fn load(&self, _name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        let mut settings = self.settings.clone();
        settings.extend_from_slice(overrides);
        Profile::parse(&self.start.name, &self.start.text, &settings)
    }
}

/// Runs candidates, once each.
pub(super) struct Evaluator<'a> {
    data: &'a Data,
    parameters: &'a [Parameter],
    start: &'a DataFile,
    seed: u64,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Cases with the run times that are used.
    cases: Vec<Case>,
    runtimes: Vec<Option<Nanos>>,
    done: BTreeMap<Values, BTreeMap<usize, CaseValues>>,
    log: Log,
}

/// How long cases are run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Operations of a case to aim at.
    pub(super) operations: u64,
    /// Operations of a measured job that are enough for its percentiles.
    pub(super) least: u64,
}

impl<'a> Evaluator<'a> {
    /// Opens the file of evaluations at `path`, or begins it.
    ///
    /// # Errors
    /// The file cannot be read or written, a case cannot be run on the start
    /// profile, or the work was interrupted.
    pub(super) fn open(
        data: &'a Data,
        parameters: &'a [Parameter],
        start: &'a DataFile,
        seed: u64,
        interrupted: &'a (dyn Fn() -> bool + Sync),
        (path, effort): (&Path, Effort),
    ) -> Result<Self, Stop> {
        let mut evaluator = Self {
            data,
            parameters,
            start,
            seed,
            interrupted,
            cases: data.cases.clone(),
            runtimes: vec![None; data.cases.len()],
            done: BTreeMap::new(),
            log: Log::new(path),
        };
        let keys: Vec<String> = parameters.iter().map(|p| p.key.clone()).collect();
        let is_ours = |head: &Head| {
            head.schema == SCHEMA
                && head.version == VERSION
                && head.keys == keys
                && head.runtime_ns.len() == data.cases.len()
        };
        let known = evaluator
            .log
            .read(is_ours, |head: &Head, line: &Line| fits(line, data, head));
        match known.map_err(|error| evaluator.failed(error))? {
            Some((head, lines)) => {
                evaluator.runtimes = head.runtime_ns.iter().map(|ns| ns.map(Nanos)).collect();
                for line in lines {
                    evaluator
                        .done
                        .entry(line.values)
                        .or_default()
                        .extend(line.cases);
                }
                evaluator.shorten();
            }
            None => {
                evaluator.choose_runtimes(effort)?;
                let head = Head {
                    schema: SCHEMA,
                    version: VERSION.to_owned(),
                    keys,
                    runtime_ns: evaluator.runtimes.iter().map(|t| t.map(|t| t.0)).collect(),
                };
                let begun = evaluator.log.begin(&head);
                begun.map_err(|error| evaluator.failed(error))?;
            }
        }
        Ok(evaluator)
    }

    fn failed(&self, error: std::io::Error) -> Stop {
        Stop::Failed(CalibrateError::Io {
            path: self.log.path().to_owned(),
            error,
        })
    }

    /// All cases, by position.
    pub(super) fn all_cases(&self) -> Vec<usize> {
        (0..self.cases.len()).collect()
    }

    /// Our values of the measurements of some cases under a candidate. `None`
    /// if there is no such drive, or it cannot run a case.
    ///
    /// # Errors
    /// Interrupted, or the file cannot be written.
    pub(super) fn evaluate(
        &mut self,
        values: &Values,
        cases: &[usize],
    ) -> Result<Option<Ours>, Stop> {
        let candidate = self.candidate(values);
        if !self.is_feasible(&candidate, cases) {
            return Ok(None);
        }
        let known = self.done.get(values);
        let is_new = |case: &&usize| known.is_none_or(|known| !known.contains_key(*case));
        let mut missing: Vec<usize> = cases.iter().filter(is_new).copied().collect();
        // The longest first, as far as one can tell.
        let length = |case: usize| self.runtimes[case].unwrap_or(Nanos(u64::MAX));
        missing.sort_by_key(|case| std::cmp::Reverse(length(*case)));
        let results: Vec<Option<CaseValues>> = missing
            .par_iter()
            .with_max_len(1)
            .map(|&case| {
                if (self.interrupted)() {
                    return None;
                }
                let ran = self.run(&self.cases[case], &candidate, self.runtimes[case]);
                let length = self.cases[case].measurements.len();
                let ours = ran.map_or_else(|_| vec![None; length], |ran| ran.ours);
                // Six digits, as in all our files, so that a line of the file
                // reads back as what it was.
                Some(ours.into_iter().map(|v| v.map(significant)).collect())
            })
            .collect();
        let mut new = BTreeMap::new();
        for (case, result) in missing.into_iter().zip(results) {
            new.insert(case, result.ok_or(Stop::Interrupted)?);
        }
        if !new.is_empty() {
            let line = Line {
                values: values.clone(),
                cases: new,
            };
            let appended = self.log.append(&line);
            appended.map_err(|error| self.failed(error))?;
            self.done.entry(line.values).or_default().extend(line.cases);
        }
        let known = self.done.get(values);
        let mut ours = vec![None; self.data.measurements.len()];
        for case in cases {
            if let Some(found) = known.and_then(|known| known.get(case)) {
                let range = self.cases[*case].measurements.clone();
                ours[range].copy_from_slice(found);
            }
        }
        Ok(Some(ours))
    }

    /// Runs the points of a candidate once more for all that they measure, for
    /// figures. Positions are those of the cases; job files have none.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) fn point_results(&self, values: &Values) -> Result<Vec<Option<PointResult>>, Stop> {
        let candidate = self.candidate(values);
        let results: Vec<Option<PointResult>> = self
            .cases
            .par_iter()
            .with_max_len(1)
            .map(|case| match &case.work {
                Work::Point(point) if !(self.interrupted)() => self.point(point, &candidate).ok(),
                _ => None,
            })
            .collect();
        if (self.interrupted)() {
            return Err(Stop::Interrupted);
        }
        Ok(results)
    }

    fn candidate(&self, values: &Values) -> Candidate<'a> {
        let settings = self.parameters.iter().zip(values);
        Candidate {
            start: self.start,
            // Values of the start stay as they are written, defaults unstated.
            settings: settings
                .filter(|(parameter, value)| parameter.start != **value)
                .map(|(parameter, value)| parameter.setting(*value))
                .collect(),
        }
    }

    fn is_feasible(&self, candidate: &Candidate<'_>, cases: &[usize]) -> bool {
        let check = |case: &usize| self.check(&self.cases[*case], candidate).is_ok();
        candidate.load("", &[]).is_ok() && cases.iter().all(check)
    }

    fn check(&self, case: &Case, candidate: &Candidate<'_>) -> Result<(), String> {
        match &case.work {
            Work::Point(point) => point.check(candidate).map_err(|error| error.to_string()),
            Work::Jobs(jobs) => {
                let profile = candidate.load("", &[]).map_err(|error| error.to_string())?;
                jobs.check(&profile.config, self.seed)
            }
        }
    }

    fn run(
        &self,
        case: &Case,
        candidate: &Candidate<'_>,
        runtime: Option<Nanos>,
    ) -> Result<Ran, String> {
        match &case.work {
            Work::Jobs(jobs) => {
                let profile = candidate.load("", &[]).map_err(|error| error.to_string())?;
                jobs.run(&profile.config, self.seed, runtime)
            }
            Work::Point(point) => {
                let result = self.point(point, candidate)?;
                let measured = &self.data.measurements[case.measurements.clone()];
                Ok(values_of(&result, measured))
            }
        }
    }

    fn point(&self, point: &Point, candidate: &Candidate<'_>) -> Result<PointResult, String> {
        let options = RunOptions {
            seed: self.seed,
            profiles: candidate,
            conditions: &Conditions::default(),
            on_point: &|_, _| (),
            interrupted: self.interrupted,
            abandoned: &|| false,
        };
        run::run_point(point, &options).map_err(|error| error.to_string())
    }

    /// Finds, on the start profile, how long each case is run: for as many
    /// operations as the effort says, but long enough for every measured job.
    fn choose_runtimes(&mut self, effort: Effort) -> Result<(), Stop> {
        let candidate = Candidate {
            start: self.start,
            settings: Vec::new(),
        };
        let chosen: Vec<Result<Option<Nanos>, Stop>> = self
            .data
            .cases
            .par_iter()
            .with_max_len(1)
            .map(|case| self.choose_runtime(case, &candidate, effort))
            .collect();
        self.runtimes = chosen.into_iter().collect::<Result<_, _>>()?;
        self.shorten();
        Ok(())
    }

    fn choose_runtime(
        &self,
        case: &Case,
        candidate: &Candidate<'_>,
        effort: Effort,
    ) -> Result<Option<Nanos>, Stop> {
        let unfit = |what| Stop::Failed(CalibrateError::Start { what });
        self.check(case, candidate).map_err(unfit)?;
        let own = match &case.work {
            Work::Point(point) => point.runtime(),
            Work::Jobs(jobs) => {
                let profile = candidate.load("", &[]).map_err(|e| unfit(e.to_string()))?;
                jobs.runtime(&profile.config, self.seed)
            }
        };
        let mut runtime = own.map(|own| self.first_guess(case, effort).min(own));
        loop {
            if (self.interrupted)() {
                return Err(Stop::Interrupted);
            }
            let mut case = case.clone();
            shorten(&mut case, runtime);
            let ran = self.run(&case, candidate, runtime).map_err(unfit)?;
            let is_enough = ran.operations >= effort.least && ran.ours.iter().all(Option::is_some);
            match (runtime, own) {
                (Some(time), Some(own)) if !is_enough && time < own => {
                    runtime = Some(Nanos(time.0.saturating_mul(2)).min(own));
                }
                _ => return Ok(runtime),
            }
        }
    }

    /// The time in which the drive that was measured does the operations of the effort.
    fn first_guess(&self, case: &Case, effort: Effort) -> Nanos {
        const LEAST: Nanos = Nanos::from_ms(20);
        // What is slow may run beside what is not.
        const MOST: Nanos = Nanos::from_secs(5);
        const UNKNOWN: Nanos = Nanos::from_ms(500);
        let measured = &self.data.measurements[case.measurements.clone()];
        let rate = |m: &Measurement| match m.metric.as_str() {
            "kiops" | "kiops_by_count" => Some(m.value * 1e3),
            "ops_s" => Some(m.value),
            metric if metric.ends_with(" kiops") => Some(m.value * 1e3),
            _ => None,
        };
        let per_second: f64 = measured.iter().filter_map(rate).sum();
        if per_second <= 0.0 {
            return UNKNOWN;
        }
        let ns = effort.operations as f64 / per_second * 1e9;
        Nanos(ns as u64).clamp(LEAST, MOST)
    }

    fn shorten(&mut self) {
        for (case, runtime) in self.cases.iter_mut().zip(&self.runtimes) {
            shorten(case, *runtime);
        }
    }
}

fn shorten(case: &mut Case, runtime: Option<Nanos>) {
    if let (Work::Point(point), Some(runtime)) = (&mut case.work, runtime) {
        point.shorten(runtime);
    }
}

/// Our values beside the measurements of a point.
fn values_of(result: &PointResult, measured: &[Measurement]) -> Ran {
    let job = |m: &Measurement| result.jobs.iter().find(|job| job.name == m.job);
    let value = |m: &Measurement| job(m)?.metrics.get(&m.metric);
    let operations = |m: &Measurement| {
        let count = job(m).and_then(|job| job.metrics.get("ops"));
        count.map_or(0, |count| count as u64)
    };
    Ran {
        ours: measured.iter().map(value).collect(),
        operations: measured.iter().map(operations).min().unwrap_or(0),
    }
}

/// Whether a line is about these cases.
fn fits(line: &Line, data: &Data, head: &Head) -> bool {
    let of_case = |(case, ours): (&usize, &CaseValues)| {
        let known = data.cases.get(*case);
        known.is_some_and(|known| known.measurements.len() == ours.len())
    };
    line.values.len() == head.keys.len() && line.cases.iter().all(of_case)
}
