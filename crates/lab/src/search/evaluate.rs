//! Running candidates, once each, with everything that was measured kept in a file.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::pareto::Cost;
use super::{Method, Objective, Search, SearchError};
use crate::conditions::Conditions;
use crate::evaluations::Log;
use crate::run::{Point, Profiles};
use crate::sweep;
use crate::sweep::knob::Values;

/// Version of the file of evaluations.
const SCHEMA: u32 = 1;

/// Candidates that are completed side by side.
const SIDE_BY_SIDE: usize = 8;

/// What a point measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// Series.
    pub series: String,
    /// Axis value.
    pub x: String,
    /// Digest of what was run, in hexadecimal: the same, the same results.
    pub identity: String,
    /// By job, every metric, to six digits.
    pub jobs: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Measured {
    /// What a run of a sweep measured.
    pub(crate) fn of_run(run: &sweep::Run) -> Self {
        let jobs = run.jobs.iter();
        Self {
            series: run.series.clone(),
            x: run.x.clone(),
            identity: run.identity.clone(),
            jobs: jobs
                .map(|job| (job.name.clone(), job.metrics.clone()))
                .collect(),
        }
    }

    /// Whether both are of the same series and axis value.
    fn is_at(&self, other: &Self) -> bool {
        (&self.series, &self.x) == (&other.series, &other.x)
    }
}

/// Settings that were evaluated.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Evaluation {
    /// Values of the keys as they are written; `None`: the file's own.
    pub values: Option<Vec<String>>,
    /// Why they cannot be run, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Every point that the objectives may need; none if refused.
    pub points: Vec<Measured>,
}

/// The first line of the file.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    keys: Vec<String>,
}

/// Another line of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Line {
    Evaluation(Evaluation),
    /// A search with these limits came to its end here.
    End {
        method: Method,
        budget: u32,
    },
}

/// Why a search ended before its time.
#[derive(Debug)]
pub enum Stop {
    /// It was interrupted; what was run is kept.
    Interrupted,
    /// Something is wrong.
    Failed(SearchError),
    /// As many were evaluated as the budget allows.
    Spent,
}

/// What is told while a search goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Candidates that were looked at.
    pub evaluations: usize,
    /// At most so many will be.
    pub most: usize,
    /// Candidates on the front.
    pub on_front: usize,
}

/// How to run candidates.
pub struct Runner<'a> {
    /// Where profiles are found.
    pub profiles: &'a dyn Profiles,
    /// Told about each round of candidates.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
    /// Asked before each point: stop here?
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// Runs candidates, once each.
pub(super) struct Evaluator<'a> {
    search: &'a Search,
    runner: &'a Runner<'a>,
    log: Log,
    /// In the order in which they were first run.
    pub(super) done: Vec<Evaluation>,
    /// Positions in it of what the search may ask for.
    known: BTreeMap<Values, usize>,
    own: Option<usize>,
    /// Results by identity: what does not depend on the keys runs once.
    points: BTreeMap<String, Measured>,
    /// Limits of a search that came to its end.
    ended: Option<(Method, u32)>,
}

impl<'a> Evaluator<'a> {
    /// Opens the file of evaluations at `path`, or begins it.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(super) fn open(
        search: &'a Search,
        runner: &'a Runner<'a>,
        path: &Path,
    ) -> Result<Self, Stop> {
        let mut evaluator = Self {
            search,
            runner,
            log: Log::new(path),
            done: Vec::new(),
            known: BTreeMap::new(),
            own: None,
            points: BTreeMap::new(),
            ended: None,
        };
        let head = Head {
            schema: SCHEMA,
            keys: search.knobs().iter().map(|knob| knob.key.clone()).collect(),
        };
        let fits = |_: &Head, line: &Line| match line {
            Line::Evaluation(one) => one
                .values
                .as_ref()
                .is_none_or(|texts| search.values_of(texts).is_some()),
            Line::End { .. } => true,
        };
        let read = evaluator.log.read(|theirs: &Head| *theirs == head, fits);
        match read.map_err(|error| evaluator.failed(error))? {
            Some((_, lines)) => {
                for line in lines {
                    match line {
                        Line::Evaluation(one) => evaluator.keep(one),
                        Line::End { method, budget } => evaluator.ended = Some((method, budget)),
                    }
                }
            }
            None => {
                let begun = evaluator.log.begin(&head);
                begun.map_err(|error| evaluator.failed(error))?;
            }
        }
        Ok(evaluator)
    }

    fn failed(&self, error: std::io::Error) -> Stop {
        Stop::Failed(SearchError::Io {
            path: self.log.path().to_owned(),
            error,
        })
    }

    /// Whether a search with the same limits came to its end: there is no
    /// other candidate to look at, whatever the objectives are.
    pub(super) fn is_at_end(&self, method: Method, budget: u32) -> bool {
        self.ended == Some((method, budget))
    }

    /// Notes that the search came to its end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn end(&mut self, method: Method, budget: u32) -> Result<(), Stop> {
        self.ended = Some((method, budget));
        let appended = self.log.append(&Line::End { method, budget });
        appended.map_err(|error| self.failed(error))
    }

    /// Keeps an evaluation. Points of series that earlier objectives needed stay.
    fn keep(&mut self, mut one: Evaluation) {
        for point in &one.points {
            let known = self.points.entry(point.identity.clone());
            known.or_insert_with(|| point.clone());
        }
        let values = one.values.as_ref();
        let values = values.and_then(|texts| self.search.values_of(texts));
        let before = match &values {
            None => self.own,
            Some(values) => self.known.get(values).copied(),
        };
        if let Some(index) = before {
            let is_gone = |point: &&Measured| !one.points.iter().any(|new| new.is_at(point));
            let earlier: Vec<Measured> = self.done[index]
                .points
                .iter()
                .filter(is_gone)
                .cloned()
                .collect();
            if one.refused.is_none() {
                one.points.extend(earlier);
            }
            self.done[index] = one;
            return;
        }
        match values {
            None => self.own = Some(self.done.len()),
            Some(values) => {
                self.known.insert(values, self.done.len());
            }
        }
        self.done.push(one);
    }

    /// Whether an evaluation has every series that the objectives need.
    fn is_whole(&self, index: usize) -> bool {
        let one = &self.done[index];
        let has = |series: &str| one.points.iter().any(|point| point.series == series);
        let mut needed = self.search.objectives().iter().flat_map(Objective::needs);
        one.refused.is_some() || needed.all(has)
    }

    /// Evaluates the settings of the file itself, which are no candidate.
    ///
    /// # Errors
    /// Interrupted, or the file cannot be written.
    pub(super) fn own(&mut self) -> Result<(), Stop> {
        if self.own.is_none_or(|index| !self.is_whole(index)) {
            self.run(&[None])?;
        }
        Ok(())
    }

    /// Runs what earlier searches did not need of what they evaluated.
    ///
    /// # Errors
    /// Interrupted, or the file cannot be written.
    pub(super) fn complete(&mut self) -> Result<(), Stop> {
        self.own()?;
        let mut parts: Vec<(usize, Values)> = self
            .known
            .iter()
            .filter(|(_, index)| !self.is_whole(**index))
            .map(|(values, index)| (*index, values.clone()))
            .collect();
        parts.sort_unstable();
        let parts: Vec<Option<Values>> =
            parts.into_iter().map(|(_, values)| Some(values)).collect();
        parts
            .chunks(SIDE_BY_SIDE)
            .try_for_each(|batch| self.run(batch))
    }

    /// Evaluates candidates and gives their costs.
    ///
    /// # Errors
    /// Interrupted, no room in the budget, or the file cannot be written.
    pub(super) fn evaluate(&mut self, batch: &[Values], budget: usize) -> Result<Vec<Cost>, Stop> {
        let mut room = budget.saturating_sub(self.known.len());
        let mut to_run = Vec::new();
        let mut is_spent = false;
        for values in batch {
            match self.known.get(values) {
                Some(index) if self.is_whole(*index) => continue,
                Some(_) => {}
                None if room == 0 => {
                    is_spent = true;
                    continue;
                }
                None => room -= 1,
            }
            to_run.push(Some(values.clone()));
        }
        self.run(&to_run)?;
        if is_spent {
            return Err(Stop::Spent);
        }
        let cost = |values: &Values| {
            let index = self.known.get(values)?;
            self.search.cost(&self.done[*index].points)
        };
        Ok(batch.iter().map(cost).collect())
    }

    /// Runs candidates side by side, and keeps those that are done in their
    /// order, so that the file is the same however often it was interrupted.
    fn run(&mut self, batch: &[Option<Values>]) -> Result<(), Stop> {
        let plans: Vec<Plan> = batch
            .par_iter()
            .map(|values| self.plan(values.as_ref()))
            .collect();
        // Points of the same identity run once.
        let mut missing: BTreeMap<&str, &Point> = BTreeMap::new();
        for (identity, point) in plans.iter().filter_map(|plan| plan.as_ref().ok()).flatten() {
            if !self.points.contains_key(identity) {
                missing.entry(identity).or_insert(point);
            }
        }
        let missing: Vec<(&str, &Point)> = missing.into_iter().collect();
        let results: Vec<Option<Result<Measured, String>>> = missing
            .par_iter()
            .with_max_len(1)
            .map(|(_, point)| (!(self.runner.interrupted)()).then(|| self.point(point)))
            .collect();
        let mut errors: BTreeMap<String, String> = BTreeMap::new();
        for ((identity, _), result) in missing.iter().zip(results) {
            match result {
                Some(Ok(measured)) => {
                    self.points.insert((*identity).to_owned(), measured);
                }
                Some(Err(error)) => {
                    errors.insert((*identity).to_owned(), error);
                }
                None => {}
            }
        }
        for (values, plan) in batch.iter().zip(&plans) {
            let texts = values.as_ref().map(|values| self.search.texts(values));
            let one = match plan {
                Err(why) => Evaluation {
                    values: texts,
                    refused: Some(why.clone()),
                    points: Vec::new(),
                },
                Ok(points) => match self.collect(texts, points, &errors) {
                    Some(one) => one,
                    None => return Err(Stop::Interrupted),
                },
            };
            let appended = self.log.append(&Line::Evaluation(one.clone()));
            appended.map_err(|error| self.failed(error))?;
            self.keep(one);
        }
        Ok(())
    }

    /// An evaluation from the results of its points, up to the first that
    /// cannot be run; `None` if one before it is missing.
    fn collect(
        &self,
        values: Option<Vec<String>>,
        points: &[(String, Point)],
        errors: &BTreeMap<String, String>,
    ) -> Option<Evaluation> {
        let mut one = Evaluation {
            values,
            refused: None,
            points: Vec::new(),
        };
        for (identity, _) in points {
            if let Some(error) = errors.get(identity) {
                one.refused = Some(error.clone());
                one.points.clear();
                break;
            }
            one.points.push(self.points.get(identity)?.clone());
        }
        Some(one)
    }

    /// What is run for a candidate, or why it cannot be.
    fn plan(&self, values: Option<&Values>) -> Plan {
        let points = self.search.points(values, self.runner.profiles)?;
        let identity = |point: Point| {
            let identity = point.identity(self.runner.profiles);
            let identity = identity.map_err(|error| error.to_string())?;
            Ok((format!("{identity:016x}"), point))
        };
        points.into_iter().map(identity).collect()
    }

    fn point(&self, point: &Point) -> Result<Measured, String> {
        let (seed, profiles) = (self.search.seed(), self.runner.profiles);
        let run = sweep::run_one(point, seed, profiles, &Conditions::default());
        match &run.error {
            Some(error) => Err(error.clone()),
            None => Ok(Measured::of_run(&run)),
        }
    }
}

/// The points of a candidate with their identities, or why there are none.
type Plan = Result<Vec<(String, Point)>, String>;
