//! An experiment that is run point by point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zonelab_device::Nanos;
use zonelab_lab::compare;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::difference::{self, Difference};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::idle;
use zonelab_lab::library;
use zonelab_lab::matrix::{self, Matrix};
use zonelab_lab::metrics::unit_of;
use zonelab_lab::published::References;
use zonelab_lab::results::{self, Configuration, Finished, Texts, Written, point_json};
use zonelab_lab::rows::{Misfits, Scope};
use zonelab_lab::run::{self, Point, PointResult, RunOptions};
use zonelab_lab::session::{
    self, ALTERED, Files, Judged, Loaded, Measured, ProfileFiles, Terms, alters,
};

use crate::picture::{self, Window};
use crate::problem::Problems;
use crate::request::Request;

/// An experiment, and what its points measured so far.
#[derive(Debug)]
pub struct Bench {
    files: Files,
    base: Option<PathBuf>,
    request: Request,
    loaded: Loaded,
    references: References,
    configuration: Configuration,
    results: Vec<Option<PointResult>>,
}

impl Bench {
    /// Reads and checks everything that was asked for; nothing is run.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn open(request: Request) -> Result<Self, Problems> {
        let files = request.files();
        let named = session::named(&files, request.name())?;
        let set = request.settings();
        let loaded = session::load_named(&files, &named, &set, request.quick)?;
        let loaded = [loaded];
        let references = session::references(&loaded)?;
        let profiles = ProfileFiles {
            files: &files,
            base: named.base.as_deref(),
        };
        session::check(&loaded, &profiles)?;
        let configuration = results::configuration(&loaded, &profiles, None)?;
        let [loaded] = loaded;
        let checked = references.check(&loaded.experiment);
        checked.map_err(Problems::said)?;
        Ok(Self {
            results: vec![None; loaded.points.len()],
            base: named.base,
            files,
            request,
            loaded,
            references,
            configuration,
        })
    }

    fn experiment(&self) -> &Experiment {
        &self.loaded.experiment
    }

    /// How many points there are.
    #[must_use]
    pub fn points(&self) -> usize {
        self.loaded.points.len()
    }

    /// What the experiment is, its points, and the drive of the first of them, as JSON.
    #[must_use]
    pub fn overview(&self) -> String {
        let experiment = self.experiment();
        let point = |point: &Point| {
            let x = point.x();
            json!({ "series": point.series(), "x": x.number, "x_label": x.text })
        };
        let points: Vec<Value> = self.loaded.points.iter().map(point).collect();
        let drive = self.drive_text();
        let figure = experiment.figures.first().map(|figure| {
            json!({ "job": figure.job, "x": figure.x, "y": figure.y,
                    "log_x": figure.log_x, "log_y": figure.log_y })
        });
        json!({
            "id": experiment.id,
            "title": experiment.title,
            "source": experiment.source,
            "file": self.request.name(),
            "text": self.loaded.text,
            "profile": experiment.profile,
            "axis": { "name": experiment.axis.name, "unit": experiment.axis.unit },
            "points": points,
            "drive": results::drive_data(&drive).unwrap_or_default(),
            "drive_toml": drive,
            "figure": figure,
            "set": self.request.settings(),
            "seed": self.request.seed(),
            "quick": self.request.quick,
        })
        .to_string()
    }

    /// The drive of the first point with every key, as TOML.
    #[must_use]
    pub fn drive_text(&self) -> String {
        let drives = self.configuration.drives.first();
        let first = drives.and_then(|drives| drives.first());
        first.map(ToString::to_string).unwrap_or_default()
    }

    /// Runs a point, and gives what it measured, its timeline and its zones as JSON.
    ///
    /// # Errors
    /// There is no such point, or it cannot be run.
    pub fn run(&mut self, index: usize, window: Option<Window>) -> Result<String, Problems> {
        let point = self.loaded.points.get(index);
        let mut point = point.ok_or_else(|| no_point(index))?.clone();
        let window = window.unwrap_or_else(|| Window::of(&point));
        point.trace(window.limits());
        let result = self.run_point(&point)?;
        let pictures = picture::of(&result, window);
        let measured = point_json(&self.experiment().id, &result, self.request.seed());
        let units = units(&result);
        // What was looked at is no part of the results.
        self.results[index] = Some(PointResult {
            trace: None,
            slowest: Vec::new(),
            ..result
        });
        Ok(
            json!({ "index": index, "point": measured, "units": units, "pictures": pictures })
                .to_string(),
        )
    }

    /// Runs a point as often as its experiment says.
    fn run_point(&self, point: &Point) -> Result<PointResult, Problems> {
        let conditions = Conditions::default();
        self.with_options(&conditions, |options| {
            let mut runs = BTreeMap::new();
            for repeat in 0..point.repeats() {
                let own = RunOptions {
                    seed: run::repeat_seed(options.seed, repeat),
                    ..*options
                };
                let result = run::run_point(point, &own)?;
                let kept = match repeat {
                    0 => result,
                    _ => result.of_later_repeat(),
                };
                runs.insert(repeat, kept);
            }
            PointResult::of_repeats(runs).ok_or_else(|| Problems::said("nothing was run"))
        })
    }

    fn with_options<T>(&self, conditions: &Conditions, f: impl FnOnce(&RunOptions<'_>) -> T) -> T {
        let profiles = ProfileFiles {
            files: &self.files,
            base: self.base.as_deref().map(Path::new),
        };
        f(&RunOptions {
            seed: self.request.seed(),
            profiles: &profiles,
            conditions,
            on_point: &|_, _| (),
            interrupted: &|| false,
            abandoned: &|| false,
        })
    }

    /// The figure of what there is so far, as SVG; empty if the experiment has none.
    ///
    /// # Errors
    /// A published value is not where the experiment says.
    pub fn figure(&self) -> Result<String, Problems> {
        let results: Vec<PointResult> = self.results.iter().flatten().cloned().collect();
        let figure = compare::figure(self.experiment(), &results, &self.references);
        let figure = figure.map_err(Problems::said)?;
        Ok(figure.map(|figure| figure.to_svg()).unwrap_or_default())
    }

    /// The result files that the command writes, when all points are run: a list of names
    /// and texts, as JSON.
    ///
    /// # Errors
    /// Points are missing.
    pub fn files(&self) -> Result<String, Problems> {
        let texts = self.texts()?;
        let files = json!(texts.files).to_string();
        Ok(files)
    }

    /// The result files that the command writes.
    ///
    /// # Errors
    /// Points are missing.
    pub fn texts(&self) -> Result<Texts, Problems> {
        let results: Vec<PointResult> = self.results.iter().flatten().cloned().collect();
        if results.len() < self.points() {
            return Err(Problems::said("not all points have been run"));
        }
        let finished = [Finished {
            matrix: self.matrix(&results)?,
            text: self.loaded.text.clone(),
            experiment: self.experiment().clone(),
            points: self.loaded.points.clone(),
            results,
        }];
        let [one] = &finished;
        let mut judged = self.judged(one)?;
        let measured = (
            &one.experiment,
            one.points.as_slice(),
            one.results.as_slice(),
        );
        judged.summary.warnings = idle::warnings(&[measured], true);
        let differences: Vec<Difference> = difference::differences(&one.experiment, &one.results);
        let written = Written {
            finished: &finished,
            rows: &judged.rows,
            summary: &judged.summary,
            differences: &differences,
            references: &self.references,
            configuration: &self.configuration.value,
            seed: self.request.seed(),
            lost: None,
            figure_width: None,
        };
        written.texts().map_err(Problems::said)
    }

    fn matrix(&self, results: &[PointResult]) -> Result<Option<Matrix>, Problems> {
        let conditions = Conditions::default();
        let explained = self.with_options(&conditions, |options| {
            matrix::explain(&self.loaded.points, options)
        });
        Ok(Matrix::of(self.experiment(), results, &explained?))
    }

    fn judged(&self, one: &Finished) -> Result<Judged, Problems> {
        let misfits = Misfits::parse(library::MISFITS_FILE, library::MISFITS);
        let misfits = misfits.map_err(Problems::said)?;
        let scope = Scope {
            quick: self.request.quick,
            whole: false,
        };
        let settings = self.request.settings();
        let altered = settings.iter().any(|set| alters(set));
        let terms = Terms {
            misfits: &misfits,
            scope,
            shown: altered.then_some(ALTERED),
            is_own: self.loaded.is_own,
        };
        let measured = Measured {
            experiment: &one.experiment,
            results: &one.results,
            points: one.points.len(),
        };
        Judged::of(&[measured], &self.references, terms).map_err(Problems::said)
    }
}

fn no_point(index: usize) -> Problems {
    Problems::said(format!("there is no point {index}"))
}

/// The units of all metrics of a point.
fn units(result: &PointResult) -> BTreeMap<&'static str, &'static str> {
    let jobs = result.jobs.iter();
    let names = jobs.flat_map(|job| job.metrics.values.keys().copied());
    names.map(|name| (name, unit_of(name))).collect()
}

impl Window {
    /// One from shortly after everything of a point runs.
    fn of(point: &Point) -> Self {
        let jobs = point.experiment().jobs.iter();
        let steady = jobs.map(|job| job.start.saturating_add(job.ramp)).max();
        Self {
            from: steady
                .unwrap_or_default()
                .saturating_add(Nanos::from_us(2_000)),
            length: Nanos::from_us(20_000),
        }
    }
}
