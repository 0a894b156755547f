//! Search: settings that trade objectives against each other, and the front of
//! those that nothing beats.
//!
//! What may be changed is any key that `--set` takes, of the experiment or of
//! its drive; what is better is said by objectives: metrics of jobs, or M^Inter
//! (ConfZNS++, section 2.3). Each candidate is the experiment with other values
//! of its keys, run with the same seeds as all others. Everything that was
//! measured is kept, so that other objectives and weights need no other runs.
//!
//! | module | what |
//! | --- | --- |
//! | `objective` | what is better |
//! | `pareto` | dominance, fronts, hypervolumes |
//! | `evolve` | which candidates are looked at |
//! | `evaluate` | running candidates, once each |
//! | `report` | tables, files, the figure |
//!
//! For users: `docs/search.md`.

mod evaluate;
mod evolve;
mod objective;
mod pareto;
mod report;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zonelab_config::{Document, Errors, Place};

use crate::experiment::{Experiment, PublishedSetting, SearchSpec};
use crate::run::{Point, Profiles, RunError};
use crate::settings::{DRIVE, Settings};

pub use crate::sweep::knob::{Knob, STEPS, Values, Wrong};
pub use evaluate::{Evaluation, Measured, Progress, Runner, Stop};
pub use objective::{Goal, METRIC_M, Objective, ObjectiveSpec, weights};
pub use pareto::{Cost, cost, dominates, front, hypervolume};
pub use report::{Outcome, Row};

use evaluate::Evaluator;

/// Candidates to evaluate unless told otherwise.
pub const BUDGET: u32 = 100;
/// Least and greatest number of objectives: with one there is no trade, and
/// hypervolumes of more than four take long.
const OBJECTIVES: (usize, usize) = (2, 4);
/// Most keys.
const MAX_KEYS: usize = 16;

/// How candidates are chosen.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Every combination of the values.
    Grid,
    /// Near the front of what was found so far.
    Evolve,
}

impl Method {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Grid, Self::Evolve];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Evolve => "evolve",
        }
    }
}

/// What is wrong with a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The experiment, or its drive, is wrong.
    #[error("{0}")]
    Invalid(#[from] Errors),
    /// A point cannot be run with the file's own settings.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A key is wrong, or a value of it.
    #[error("--over {key}: {what}")]
    Over {
        /// The key.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// Objectives are wrong.
    #[error("{what}")]
    Objectives {
        /// Whether any is named at all.
        named: bool,
        /// What is wrong.
        what: String,
    },
    /// The method does not fit.
    #[error("{0}")]
    Method(String),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// The experiment that is searched.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of its file.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// Settings that are the same for all candidates.
    pub settings: Settings,
}

/// What its page names besides results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Program and version.
    pub tool: String,
    /// The command that gives all of it again.
    pub search: String,
    /// The command that runs the experiment: before the settings of a candidate, and after
    /// them.
    pub run: (String, String),
}

/// A search that is ready to run: everything that can be known to be wrong
/// before was looked at.
#[derive(Debug)]
pub struct Search {
    source: Source,
    experiment: Experiment,
    knobs: Vec<Knob>,
    objectives: Vec<Objective>,
    weights: Option<(f64, f64)>,
    method: Method,
    /// Candidates to evaluate, at most.
    budget: u32,
    seed: u64,
    published: Vec<PublishedSetting>,
    /// Values of the keys in the file or its drive, if they are stated.
    own: Vec<Option<String>>,
    commands: Commands,
}

impl Search {
    /// Checks everything: each value, or both bounds, of each key by building
    /// the points with it.
    ///
    /// # Errors
    /// What is wrong.
    pub fn prepare(
        source: Source,
        spec: SearchSpec,
        seed: u64,
        profiles: &dyn Profiles,
    ) -> Result<Self, SearchError> {
        let Source { file, text, .. } = &source;
        let experiment = Experiment::parse(file, text, &source.settings.file, None)?;
        check_keys(&spec.over)?;
        let objectives = objectives(&experiment, &spec)?;
        let (method, budget) = method(&spec)?;
        let mut search = Self {
            source,
            experiment,
            knobs: spec.over,
            objectives,
            weights: spec.weights,
            method,
            budget,
            seed,
            published: spec.published,
            own: Vec::new(),
            commands: Commands::default(),
        };
        for point in search.points_with(&search.source.settings)? {
            point.check(profiles)?;
        }
        for knob in &search.knobs {
            search.check_values(knob, profiles)?;
        }
        let own = search
            .knobs
            .iter()
            .map(|knob| search.own_value(&knob.key, profiles));
        search.own = own.collect();
        Ok(search)
    }

    /// Says the commands that its page names.
    #[must_use]
    pub fn with_commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// Its file with the settings of the command line, as data.
    ///
    /// # Errors
    /// None that reading the experiment did not have.
    pub fn resolved(&self) -> Result<serde_json::Value, Errors> {
        let Source {
            file,
            text,
            settings,
            ..
        } = &self.source;
        Ok(Document::parse(file, text, &settings.file)?.to_json())
    }

    /// What is searched.
    #[must_use]
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// What may be changed.
    #[must_use]
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// What is better.
    #[must_use]
    pub fn objectives(&self) -> &[Objective] {
        &self.objectives
    }

    /// How candidates are chosen.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Candidates to evaluate, at most.
    #[must_use]
    pub const fn budget(&self) -> u32 {
        self.budget
    }

    /// Seed of all randomness.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// All points of the experiment with the file's own settings.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn own_points(&self) -> Result<Vec<Point>, Errors> {
        let Source { file, text, .. } = &self.source;
        self.source.settings.points(file, text)
    }

    fn points_with(&self, settings: &Settings) -> Result<Vec<Point>, Errors> {
        let needed: BTreeSet<&str> = self.objectives.iter().flat_map(Objective::needs).collect();
        let mut points = settings.points(&self.source.file, &self.source.text)?;
        points.retain(|point| needed.contains(point.series()));
        Ok(points)
    }

    /// The points of a candidate (`None`: the file's own settings), checked.
    fn points(
        &self,
        values: Option<&Values>,
        profiles: &dyn Profiles,
    ) -> Result<Vec<Point>, String> {
        let none = Values::new();
        let pairs = self.knobs.iter().zip(values.unwrap_or(&none));
        let set: Vec<String> = pairs.map(|(knob, value)| knob.setting(*value)).collect();
        let settings = Settings::parse(&set).map_err(|problem| problem.to_string())?;
        let settings = self.source.settings.and(&settings);
        let points = self
            .points_with(&settings)
            .map_err(|errors| in_short(&errors))?;
        for point in &points {
            point.check(profiles).map_err(|error| match &error {
                RunError::Invalid(errors) => in_short(errors),
                RunError::Unfit { .. } => error.to_string(),
            })?;
        }
        Ok(points)
    }

    /// Checks each value of a key, the others as in the file, and that it makes
    /// a difference.
    fn check_values(&self, knob: &Knob, profiles: &dyn Profiles) -> Result<(), SearchError> {
        let wrong = |what: String| SearchError::Over {
            key: knob.key.clone(),
            what,
        };
        let mut runs = BTreeSet::new();
        for value in knob.to_check() {
            let refused = |why: String| wrong(format!("{} is refused: {why}", knob.text(value)));
            let alone = Settings::parse([knob.setting(value)]);
            let alone = alone.map_err(|problem| refused(problem.to_string()))?;
            let settings = self.source.settings.and(&alone);
            let points = self.points_with(&settings);
            let points = points.map_err(|errors| refused(in_short(&errors)))?;
            let mut run = Vec::new();
            for point in points {
                match point.check(profiles) {
                    Ok(()) => {}
                    Err(RunError::Invalid(errors)) => return Err(refused(in_short(&errors))),
                    Err(error) => return Err(refused(error.to_string())),
                }
                run.push(point.identity(profiles)?);
            }
            runs.insert(run);
        }
        if runs.len() == 1 {
            let series: BTreeSet<&str> =
                self.objectives.iter().flat_map(Objective::needs).collect();
            let series: Vec<&str> = series.into_iter().collect();
            return Err(wrong(format!(
                "none of its values changes what is run; the series that objectives look at are \
                 {}",
                series.join(", ")
            )));
        }
        Ok(())
    }

    /// The value of a key in the file or in its drive, if it is stated.
    fn own_value(&self, key: &str, profiles: &dyn Profiles) -> Option<String> {
        if let Some(key) = key.strip_prefix(DRIVE) {
            let needed = self.own_points().ok()?;
            let series = &self.objectives.first()?.series;
            let point = needed.iter().find(|point| point.series() == series)?;
            let profile = point.drive(profiles).ok()?;
            let text = zonelab_ssd::profile::to_toml(&profile.config);
            return stated(&text, key);
        }
        let set = self.source.settings.file.iter().rev();
        let mut set = set.filter_map(|set| set.text().split_once('='));
        let changed = set.find(|(known, _)| known.trim() == key);
        changed.map_or_else(
            || stated(&self.source.text, key),
            |(_, value)| Some(value.trim().to_owned()),
        )
    }

    /// Values of a candidate as they are written.
    fn texts(&self, values: &Values) -> Vec<String> {
        let pairs = self.knobs.iter().zip(values);
        pairs.map(|(knob, value)| knob.text(*value)).collect()
    }

    /// The candidate whose values are written so.
    fn values_of(&self, texts: &[String]) -> Option<Values> {
        if texts.len() != self.knobs.len() {
            return None;
        }
        let pairs = self.knobs.iter().zip(texts);
        pairs.map(|(knob, text)| knob.value_of(text)).collect()
    }

    /// Values of the objectives.
    fn values(&self, points: &[Measured]) -> Vec<Option<f64>> {
        let of = |objective: &Objective| objective.value(points, self.weights);
        self.objectives.iter().map(of).collect()
    }

    fn cost(&self, points: &[Measured]) -> Cost {
        let values = self.values(points).into_iter();
        let pairs = values.zip(&self.objectives);
        cost(pairs.map(|(value, objective)| Some(objective.goal.cost(value?))))
    }

    /// Searches on the current thread pool. Evaluations are kept in `dir`, and
    /// those that are there are used. A search that came to its end there looks
    /// for nothing more: its evaluations are seen with these objectives and
    /// weights, and only series that it did not need are run.
    ///
    /// # Errors
    /// Interrupted, or something is wrong.
    pub fn run(
        &self,
        dir: &Path,
        configuration: &serde_json::Value,
        runner: &Runner<'_>,
    ) -> Result<Outcome, Stop> {
        let path = dir.join(crate::evaluations::FILE);
        let mut evaluator = Evaluator::open(self, runner, &path)?;
        if evaluator.is_at_end(self.method, self.budget) {
            evaluator.complete()?;
        } else {
            evaluator.own()?;
            match self.look(&mut evaluator, runner) {
                Ok(()) | Err(Stop::Spent) => {}
                Err(stop) => return Err(stop),
            }
            evaluator.complete()?;
            evaluator.end(self.method, self.budget)?;
        }
        Ok(Outcome::of(self, evaluator.done, configuration))
    }

    fn look(&self, evaluator: &mut Evaluator<'_>, runner: &Runner<'_>) -> Result<(), Stop> {
        let most = self.most();
        let (mut looked_at, mut costs) = (0, Vec::new());
        let mut evaluate = |batch: &[Values]| {
            let new = evaluator.evaluate(batch, self.budget as usize)?;
            looked_at += batch.len();
            costs.extend(new.iter().cloned());
            let on_front = front(&costs);
            // Only what may still be on a later front counts on.
            let mut kept = on_front.iter();
            costs.retain(|_| kept.next().copied().unwrap_or(false));
            (runner.on_progress)(Progress {
                evaluations: looked_at,
                most,
                on_front: costs.len(),
            });
            Ok(new)
        };
        match self.method {
            Method::Grid => evolve::grid(&self.knobs, &mut evaluate),
            Method::Evolve => {
                let limits = (self.budget as usize, self.seed);
                evolve::evolve(&self.knobs, limits, &mut evaluate)
            }
        }
    }

    /// Candidates that will be looked at, at most.
    #[must_use]
    pub fn most(&self) -> usize {
        let all = match self.method {
            Method::Grid => grid_size(&self.knobs),
            Method::Evolve => space_size(&self.knobs),
        };
        usize::try_from(all.min(u64::from(self.budget))).unwrap_or(usize::MAX)
    }
}

fn check_keys(knobs: &[Knob]) -> Result<(), SearchError> {
    if knobs.is_empty() {
        return Err(SearchError::Over {
            key: String::new(),
            what: "there is nothing to change: name keys with --over KEY=V1,V2 or \
                   --over KEY=LOW..HIGH, or in `over` of the file's [search]"
                .to_owned(),
        });
    }
    for (index, knob) in knobs.iter().enumerate() {
        let first = knob.key.split('.').next().unwrap_or_default();
        let what = if knobs[..index].iter().any(|other| other.key == knob.key) {
            "it is named twice"
        } else if index >= MAX_KEYS {
            "there are more than 16 keys"
        } else if ["axis", "search", "schema", "id"].contains(&first) {
            "this is no setting of what is run: candidates are compared along the same axis"
        } else {
            continue;
        };
        return Err(SearchError::Over {
            key: knob.key.clone(),
            what: what.to_owned(),
        });
    }
    Ok(())
}

fn objectives(experiment: &Experiment, spec: &SearchSpec) -> Result<Vec<Objective>, SearchError> {
    let resolve = |spec: &ObjectiveSpec| {
        Objective::resolve(experiment, spec).map_err(|(_, wrong)| {
            wrong_objective(format!("--{} {}: {wrong}", spec.goal.name(), spec.metric))
        })
    };
    let objectives: Vec<Objective> = spec
        .objectives
        .iter()
        .map(resolve)
        .collect::<Result<_, _>>()?;
    let (least, most) = OBJECTIVES;
    if !(least..=most).contains(&objectives.len()) {
        return Err(SearchError::Objectives {
            named: !objectives.is_empty(),
            what: format!(
                "{} objectives; {least} to {most} can be traded against each other: name them \
                 with --minimize METRIC and --maximize METRIC, or as [[search.objective]] in the \
                 file",
                objectives.len()
            ),
        });
    }
    for (index, one) in objectives.iter().enumerate() {
        if objectives[..index]
            .iter()
            .any(|other| other.name() == one.name())
        {
            let what = format!("the objective {} is there twice", one.name());
            return Err(wrong_objective(what));
        }
    }
    Ok(objectives)
}

const fn wrong_objective(what: String) -> SearchError {
    SearchError::Objectives { named: true, what }
}

/// The method and the budget.
fn method(spec: &SearchSpec) -> Result<(Method, u32), SearchError> {
    let budget = spec.budget.unwrap_or(BUDGET);
    let grid = grid_size(&spec.over);
    let has_bounds = spec.over.iter().any(Knob::has_bounds);
    let fits = grid <= u64::from(budget);
    let usual = if has_bounds || !fits {
        Method::Evolve
    } else {
        Method::Grid
    };
    match spec.method.unwrap_or(usual) {
        Method::Evolve => Ok((Method::Evolve, budget)),
        Method::Grid if fits => Ok((Method::Grid, budget)),
        Method::Grid => Err(SearchError::Method(format!(
            "the grid has {grid} combinations, and the budget is {budget}: give --budget {grid}, \
             fewer values, or --method evolve"
        ))),
    }
}

fn grid_size(knobs: &[Knob]) -> u64 {
    let sizes = knobs.iter().map(|knob| knob.grid().len() as u64);
    sizes.fold(1, u64::saturating_mul)
}

fn space_size(knobs: &[Knob]) -> u64 {
    knobs.iter().map(Knob::count).fold(1, u64::saturating_mul)
}

/// The value of a key in a TOML text, as it would be written after `--set`.
fn stated(text: &str, key: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let mut value = &toml::Value::Table(table);
    for part in key.split('.') {
        value = match value {
            toml::Value::Table(table) => table.get(part)?,
            toml::Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// What is wrong, without naming the setting again that the reader just named.
fn in_short(errors: &Errors) -> String {
    let one = |problem: &zonelab_config::Problem| match (&problem.place, problem.valid.as_str()) {
        (Place::Override(_), "") => problem.what.clone(),
        (Place::Override(_), valid) => format!("{}; {valid}", problem.what),
        _ => problem.to_string(),
    };
    let problems: Vec<String> = errors.problems().iter().map(one).collect();
    problems.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_values_are_found_by_path() {
        let text = "a = 1\n[b]\nc = \"16KiB\"\n[[d]]\ne = [true, false]\n";
        assert_eq!(stated(text, "a").as_deref(), Some("1"));
        assert_eq!(stated(text, "b.c").as_deref(), Some("16KiB"));
        assert_eq!(stated(text, "d.0.e.1").as_deref(), Some("false"));
        assert_eq!(stated(text, "d.1.e"), None);
        assert_eq!(stated(text, "a.b"), None);
    }

    #[test]
    fn a_grid_is_searched_whole_if_the_budget_allows() {
        let spec = |over: &[&str], method, budget| SearchSpec {
            over: over.iter().map(|text| Knob::parse(text).unwrap()).collect(),
            method,
            budget,
            ..SearchSpec::default()
        };
        let lists = ["a=1,2,3", "b=1..9/5"];
        let chosen = |spec: &SearchSpec| method(spec).map_err(|error| error.to_string());
        assert_eq!(
            chosen(&spec(&lists, None, None)),
            Ok((Method::Grid, BUDGET))
        );
        assert_eq!(
            chosen(&spec(&lists, None, Some(14))),
            Ok((Method::Evolve, 14))
        );
        assert_eq!(
            chosen(&spec(&["a=1..9"], None, None)),
            Ok((Method::Evolve, BUDGET))
        );
        let grid = Some(Method::Grid);
        assert_eq!(
            chosen(&spec(&["a=1..9"], grid, None)),
            Ok((Method::Grid, BUDGET))
        );
        let error = chosen(&spec(&lists, grid, Some(14))).unwrap_err();
        assert!(error.contains("15 combinations"), "{error}");
    }
}
