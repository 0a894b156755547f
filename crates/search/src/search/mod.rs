//! Search: settings that trade objectives against each other, and the front of
//! those that nothing beats.
//!
//! A search is a sweep that chooses its points while it runs ([`crate::sweep`]), made of
//! the `[search]` of an experiment and of the command line. What may be changed is any key
//! that `--set` takes, of the experiment or of its drive; what is better is said by
//! objectives: metrics of jobs, or M^Inter (ConfZNS++, section 2.3). The first point is the
//! experiment as it is. Everything that was measured is kept, so that other objectives and
//! weights need no other runs.
//!
//! `report` has its tables, files and figure. For users: `docs/search.md`.

mod report;

use std::collections::BTreeSet;

use zonelab_config::{Document, Errors, Place};
use zonelab_lab::experiment::{Experiment, PublishedSetting, SearchSpec};
use zonelab_lab::inputs::Inputs;
use zonelab_lab::run::{Point, RunError};
use zonelab_lab::settings::{DRIVE, Settings};

use crate::sweep::{
    self, Adaptive, BUDGET, Cost, Key, Knob, Line, MAX_KEYS, OBJECTIVES, Objective, ObjectiveSpec,
    Pack, Read, Run, Sample, cost, gather_value, grid_size, measured,
};

pub use report::{Outcome, Row};

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
}

/// The experiment that is searched.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of its file.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// How it is named on a command line: its path, or the id of a built-in one.
    pub named: String,
    /// Settings that are the same for all candidates, as after `--set`.
    pub settings: Vec<String>,
    /// Seed of all randomness, also of which candidates are looked at.
    pub seed: u64,
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
    pack: Pack,
    experiment: Experiment,
    knobs: Vec<Knob>,
    objectives: Vec<Objective>,
    published: Vec<PublishedSetting>,
    commands: Commands,
}

impl Search {
    /// Checks everything: each value, or both bounds, of each key by building
    /// the points with it. `read` gives files that the experiment names, by their paths
    /// relative to its directory.
    ///
    /// # Errors
    /// What is wrong.
    pub fn prepare(
        source: &Source,
        spec: SearchSpec,
        read: &Read<'_>,
    ) -> Result<Self, SearchError> {
        let mut inputs = Inputs::new(&source.file, &source.text);
        inputs.settings.clone_from(&source.settings);
        inputs.seed = source.seed;
        let experiment = inputs.parse(&Settings::default())?;
        check_keys(&spec.over)?;
        let objectives = objectives(&experiment, &spec)?;
        let (method, budget) = method(&spec)?;
        inputs.gather_with(&Settings::default(), read)?;
        for knob in &spec.over {
            gather(&mut inputs, knob, read)?;
        }
        let keys = spec.over.iter().map(|knob| Key::of_knob(&knob.key, knob));
        let mut pack = Pack::new(&format!("{}-search", experiment.id), inputs, keys.collect());
        pack.title.clone_from(&experiment.title);
        pack.experiment.clone_from(&source.named);
        pack.sample = method;
        pack.points.push(Vec::new());
        let needed: BTreeSet<&str> = objectives.iter().flat_map(Objective::needs).collect();
        pack.series = needed.into_iter().map(str::to_owned).collect();
        pack.objectives = spec.objectives;
        pack.weights = spec.weights;
        let mut search = Self {
            pack,
            experiment,
            knobs: spec.over,
            objectives,
            published: spec.published,
            commands: Commands::default(),
        };
        for point in search.points(&Settings::default())? {
            point.check(&search.pack.inputs)?;
        }
        for knob in &search.knobs {
            search.check_values(knob)?;
        }
        let own = search.knobs.iter().map(|knob| search.own_value(&knob.key));
        search.pack.adaptive = Some(Adaptive {
            own: Some(own.collect()),
            knobs: search.knobs.clone(),
            constraints: Vec::new(),
            budget,
        });
        Ok(search)
    }

    /// Says the commands that its page names.
    #[must_use]
    pub fn with_commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// The sweep that it is.
    #[must_use]
    pub const fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Its file with the settings of the command line, as data.
    ///
    /// # Errors
    /// None that reading the experiment did not have.
    pub fn resolved(&self) -> Result<serde_json::Value, Errors> {
        let inputs = &self.pack.inputs;
        let settings = Settings::parse(&inputs.settings)?;
        let file = &inputs.experiment;
        Ok(Document::parse(&file.name, &file.text, &settings.file)?.to_json())
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
    pub const fn method(&self) -> Sample {
        self.pack.sample
    }

    /// Candidates to evaluate, at most.
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.pack.adaptive.as_ref().map_or(0, |of| of.budget)
    }

    /// Seed of all randomness.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.pack.inputs.seed
    }

    /// Candidates that will be looked at, at most.
    #[must_use]
    pub fn most(&self) -> usize {
        let adaptive = self.pack.adaptive.as_ref();
        adaptive.map_or(0, |adaptive| adaptive.most(self.pack.sample))
    }

    /// All points of the experiment with the file's own settings.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn own_points(&self) -> Result<Vec<Point>, Errors> {
        self.pack.inputs.points()
    }

    /// What it came to: of the pack with every point, and what each of its tasks gave.
    #[must_use]
    pub fn outcome(
        &self,
        pack: &Pack,
        lines: &[Line],
        configuration: &serde_json::Value,
    ) -> Outcome {
        let evaluations = lines.iter().map(|line| self.evaluation(pack, line));
        let warnings = sweep::warnings(pack, lines);
        let evaluations = evaluations.collect::<Vec<_>>();
        Outcome::of(self, &evaluations, configuration, warnings)
    }

    fn evaluation<'l>(&self, pack: &'l Pack, line: &'l Line) -> Evaluation<'l> {
        let values = pack
            .task(line.index)
            .and_then(|task| pack.points.get(task.point));
        let is_needed = |run: &&Run| self.pack.series.contains(&run.series);
        let mut needed = line.runs.iter().filter(is_needed);
        let refused = line.message.clone();
        let refused = refused.or_else(|| needed.find_map(|run| run.error.clone()));
        let runs = match &refused {
            Some(_) => &[],
            None => line.runs.as_slice(),
        };
        Evaluation {
            values: values
                .filter(|values| !values.is_empty())
                .map(Vec::as_slice),
            refused,
            runs,
        }
    }

    /// The points that the objectives need, with more settings.
    fn points(&self, settings: &Settings) -> Result<Vec<Point>, Errors> {
        let mut points = self.pack.inputs.points_with(settings)?;
        points.retain(|point| self.pack.series.iter().any(|name| name == point.series()));
        Ok(points)
    }

    /// Checks each value of a key, the others as in the file, and that it makes
    /// a difference.
    fn check_values(&self, knob: &Knob) -> Result<(), SearchError> {
        let mut runs = BTreeSet::new();
        for value in knob.to_check() {
            let refused = |why: String| refused(knob, value, &why);
            let alone = Settings::parse([knob.setting(value)]);
            let alone = alone.map_err(|problem| refused(problem.to_string()))?;
            let points = self.points(&alone);
            let points = points.map_err(|errors| refused(in_short(&errors)))?;
            let mut run = Vec::new();
            for point in points {
                let checked = point.check(&self.pack.inputs);
                checked.map_err(|error| {
                    refused(match &error {
                        RunError::Invalid(errors) => in_short(errors),
                        RunError::Unfit(_) | RunError::Lost(_) => error.to_string(),
                    })
                })?;
                run.push(point.identity(&self.pack.inputs)?);
            }
            runs.insert(run);
        }
        if runs.len() == 1 {
            return Err(SearchError::Over {
                key: knob.key.clone(),
                what: format!(
                    "none of its values changes what is run; the series that objectives look at \
                     are {}",
                    self.pack.series.join(", ")
                ),
            });
        }
        Ok(())
    }

    /// The value of a key in the file or in its drive, if it is stated.
    fn own_value(&self, key: &str) -> Option<String> {
        let inputs = &self.pack.inputs;
        if let Some(key) = key.strip_prefix(DRIVE) {
            let points = self.own_points().ok()?;
            let series = &self.objectives.first()?.series;
            let point = points.iter().find(|point| point.series() == series)?;
            let profile = point.drive(inputs).ok()?;
            let text = zonelab_ssd::profile::to_toml(&profile.config);
            return stated(&text, key);
        }
        let settings = Settings::parse(&inputs.settings).ok()?;
        let set = settings.file.iter().rev();
        let mut set = set.filter_map(|set| set.text().split_once('='));
        let changed = set.find(|(known, _)| known.trim() == key);
        changed.map_or_else(
            || stated(&inputs.experiment.text, key),
            |(_, value)| Some(value.trim().to_owned()),
        )
    }

    /// Values of the objectives.
    fn values(&self, runs: &[Run]) -> Vec<Option<f64>> {
        let of = |objective: &Objective| objective.value(measured(runs), self.pack.weights);
        self.objectives.iter().map(of).collect()
    }

    fn cost(&self, runs: &[Run]) -> Cost {
        let values = self.values(runs).into_iter();
        let pairs = values.zip(&self.objectives);
        cost(pairs.map(|(value, objective)| Some(objective.goal.cost(value?))))
    }
}

/// Settings that were evaluated.
struct Evaluation<'a> {
    /// Values of the keys as they are written; `None`: the file's own.
    values: Option<&'a [String]>,
    /// Why they cannot be run, if so.
    refused: Option<String>,
    /// What was run; nothing if they are refused.
    runs: &'a [Run],
}

fn refused(knob: &Knob, value: u64, why: &str) -> SearchError {
    SearchError::Over {
        key: knob.key.clone(),
        what: format!("{} is refused: {why}", knob.text(value)),
    }
}

/// Adds the profiles that values of a key name.
fn gather(inputs: &mut Inputs, knob: &Knob, read: &Read<'_>) -> Result<(), SearchError> {
    for value in knob.to_check() {
        // What is wrong with the setting is said when it is checked.
        let Ok(settings) = Settings::parse([knob.setting(value)]) else {
            continue;
        };
        let gathered = gather_value(inputs, &settings, read);
        gathered.map_err(|errors| refused(knob, value, &in_short(&errors)))?;
    }
    Ok(())
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
fn method(spec: &SearchSpec) -> Result<(Sample, u32), SearchError> {
    let budget = spec.budget.unwrap_or(BUDGET);
    let grid = grid_size(&spec.over);
    let has_bounds = spec.over.iter().any(Knob::has_bounds);
    let fits = grid <= u64::from(budget);
    let usual = if has_bounds || !fits {
        Sample::Evolve
    } else {
        Sample::Grid
    };
    match spec.method.unwrap_or(usual) {
        Sample::Grid if fits => Ok((Sample::Grid, budget)),
        Sample::Grid => Err(SearchError::Method(format!(
            "the grid has {grid} combinations, and the budget is {budget}: give --budget {grid}, \
             fewer values, or --method evolve"
        ))),
        _ => Ok((Sample::Evolve, budget)),
    }
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
            Ok((Sample::Grid, BUDGET))
        );
        assert_eq!(
            chosen(&spec(&lists, None, Some(14))),
            Ok((Sample::Evolve, 14))
        );
        assert_eq!(
            chosen(&spec(&["a=1..9"], None, None)),
            Ok((Sample::Evolve, BUDGET))
        );
        let grid = Some(Sample::Grid);
        assert_eq!(
            chosen(&spec(&["a=1..9"], grid, None)),
            Ok((Sample::Grid, BUDGET))
        );
        let error = chosen(&spec(&lists, grid, Some(14))).unwrap_err();
        assert!(error.contains("15 combinations"), "{error}");
    }
}
