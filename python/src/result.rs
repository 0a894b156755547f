//! What experiments measured.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pyo3::prelude::*;
use serde_json::Value as Json;
use zonelab_lab::compare;
use zonelab_lab::detail::quantiles;
use zonelab_lab::difference::{self, Difference};
use zonelab_lab::idle;
use zonelab_lab::library;
use zonelab_lab::matrix::Matrix;
use zonelab_lab::published::References;
use zonelab_lab::rows::{self, Misfits, Scope, significant};
use zonelab_lab::run::{DriveMeasured, JobMeasured, PointResult};
use zonelab_lab::session::{self, Judged, Loaded, Measured, Terms};
use zonelab_lab::table::{self, Style};

use crate::convert;
use crate::errors::{self, OrRaise as _};
use crate::figure::Figure;
use crate::frame::Frame;
use crate::tables::{self, At};
use crate::trace::Trace;

/// The list of known misfits, which is part of the program: read once.
static MISFITS: LazyLock<Result<Misfits, String>> = LazyLock::new(|| {
    let misfits = Misfits::parse(library::MISFITS_FILE, library::MISFITS);
    misfits.map_err(|error| error.to_string())
});

/// An experiment and what its points measured.
pub(crate) struct Finished {
    pub(crate) loaded: Loaded,
    pub(crate) results: Vec<PointResult>,
    pub(crate) matrix: Option<Matrix>,
}

/// What is to be known of a run besides its results.
pub(crate) struct Told {
    pub(crate) seed: u64,
    /// Why published values are shown and not judged, if they are not.
    pub(crate) shown: Option<&'static str>,
    pub(crate) is_quick: bool,
    /// Everything that is built in was run.
    pub(crate) is_whole: bool,
    /// What was not run of what was asked for, and why.
    pub(crate) skipped: Vec<String>,
}

/// What experiments measured: tables, figures and traces.
///
/// Each table is a `Frame`, which pandas and polars read without a copy.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Results {
    finished: Vec<Finished>,
    judged: Judged,
    references: References,
    differences: Vec<Difference>,
    told: Told,
}

impl Results {
    /// Compares what was measured with what was published.
    ///
    /// # Errors
    /// Published values are not where an experiment says.
    pub(crate) fn of(finished: Vec<Finished>, told: Told) -> PyResult<Self> {
        let loaded: Vec<Loaded> = finished.iter().map(|one| one.loaded.clone()).collect();
        let references = session::references(&loaded).or_raise()?;
        let misfits = MISFITS.as_ref().map_err(errors::invalid)?;
        let measured = finished.iter().map(|one| Measured {
            experiment: &one.loaded.experiment,
            results: &one.results,
            points: one.loaded.points.len(),
        });
        let measured: Vec<Measured<'_>> = measured.collect();
        let differences = finished
            .iter()
            .flat_map(|one| difference::differences(&one.loaded.experiment, &one.results));
        let scope = Scope {
            quick: told.is_quick,
            whole: told.is_whole,
        };
        let terms = Terms {
            misfits,
            scope,
            shown: told.shown,
            is_own: finished.iter().any(|one| one.loaded.is_own),
        };
        let mut judged = Judged::of(&measured, &references, terms).or_raise()?;
        let with_points = finished.iter().map(|one| {
            let Loaded {
                experiment, points, ..
            } = &one.loaded;
            (experiment, points.as_slice(), one.results.as_slice())
        });
        judged.summary.warnings = idle::warnings(&with_points.collect::<Vec<_>>(), true);
        Ok(Self {
            differences: differences.collect(),
            judged,
            finished,
            references,
            told,
        })
    }

    /// Every point that was run.
    fn at(&self) -> Vec<At<'_>> {
        let points = self.finished.iter().flat_map(|one| {
            let id = one.loaded.experiment.id.as_str();
            one.results.iter().map(move |result| At { id, result })
        });
        points.collect()
    }

    /// Every job of every point that was run.
    fn jobs_at(&self) -> Vec<(At<'_>, &JobMeasured)> {
        let points = self.at().into_iter();
        points
            .flat_map(|at| at.result.jobs.iter().map(move |job| (at, job)))
            .collect()
    }

    /// Every point of which it is known what the drive did.
    fn drives_at(&self) -> Vec<(At<'_>, &DriveMeasured)> {
        let points = self.at().into_iter();
        points
            .filter_map(|at| Some((at, at.result.drive.as_ref()?)))
            .collect()
    }
}

#[pymethods]
impl Results {
    /// The seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.told.seed
    }

    /// Ids of the experiments that were run.
    #[getter]
    fn experiments(&self) -> Vec<&str> {
        let finished = self.finished.iter();
        finished
            .map(|one| one.loaded.experiment.id.as_str())
            .collect()
    }

    /// What was not run of what was asked for, and why.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.told.skipped.clone()
    }

    /// Every metric of every job at every point, one in each row: `points.csv` of the command.
    #[getter]
    fn points(&self) -> PyResult<Frame> {
        tables::points(&self.jobs_at())
    }

    /// The same with a row for each job at a point, and a column for each metric.
    #[getter]
    fn metrics(&self) -> PyResult<Frame> {
        tables::metrics(&self.jobs_at())
    }

    /// What is compared, with verdicts: `rows.csv` of the command.
    #[getter]
    fn rows(&self) -> PyResult<Frame> {
        tables::rows(&self.judged.rows)
    }

    /// Every metric of each repeat: `repeats.csv` of the command. Empty if nothing was
    /// repeated.
    #[getter]
    fn repeats(&self) -> PyResult<Frame> {
        tables::repeats(&self.jobs_at(), self.told.seed)
    }

    /// Differences between series, with intervals and verdicts, if the experiment asks for
    /// them.
    #[getter]
    fn differences(&self) -> PyResult<Frame> {
        tables::differences(&self.differences)
    }

    /// What the drive of each point did.
    #[getter]
    fn drives(&self) -> PyResult<Frame> {
        tables::drives(&self.drives_at())
    }

    /// How long each channel and each unit of flash was busy, and with what.
    #[getter]
    fn busy(&self) -> PyResult<Frame> {
        tables::busy(&self.drives_at())
    }

    /// The first changes of the states of zones.
    #[getter]
    fn zone_history(&self) -> PyResult<Frame> {
        tables::zone_history(&self.drives_at())
    }

    /// How the latencies of each job are distributed.
    #[getter]
    fn latencies(&self) -> PyResult<Frame> {
        tables::latencies(&self.jobs_at(), &quantiles())
    }

    /// Operations of each job over time.
    #[getter]
    fn throughput(&self) -> PyResult<Frame> {
        tables::throughput(&self.jobs_at())
    }

    /// How many blocks of flash were erased how often.
    #[getter]
    fn erasures(&self) -> PyResult<Frame> {
        tables::erasures(&self.drives_at())
    }

    /// Jobs that ended early, and why.
    #[getter]
    fn failures(&self) -> PyResult<Frame> {
        tables::failures(&self.at())
    }

    /// One metric of a job at a point. What there is only one of need not be said.
    #[pyo3(signature = (metric, *, series = None, x = None, job = None))]
    fn value(
        &self,
        metric: &str,
        series: Option<&str>,
        x: Option<&Bound<'_, PyAny>>,
        job: Option<&str>,
    ) -> PyResult<f64> {
        let x = x.map(|x| x.str()?.extract::<String>()).transpose()?;
        let all = self.jobs_at();
        let meets = |wanted: Option<&str>, is: &str| wanted.is_none_or(|wanted| wanted == is);
        let mut found = all.iter().filter(|(at, of)| {
            meets(series, &at.result.series)
                && meets(x.as_deref(), &at.result.x.text)
                && meets(job, &of.name)
                && of.metrics.get(metric).is_some()
        });
        match (found.next(), found.next()) {
            (Some((_, of)), None) => Ok(significant(of.metrics.get(metric).unwrap_or(f64::NAN))),
            (Some(_), Some(_)) => Err(errors::usage(format!(
                "{metric}: more than one job at a point measured it: say which series, x and job"
            ))),
            (None, _) => Err(errors::usage(no_value(metric, &all))),
        }
    }

    /// The figure of an experiment; without `experiment`, of the only one.
    #[pyo3(signature = (experiment = None))]
    fn figure(&self, experiment: Option<&str>) -> PyResult<Figure> {
        let one = self.only(experiment)?;
        let of = &one.loaded.experiment;
        match compare::figure(of, &one.results, &self.references).or_raise()? {
            Some(figure) => Ok(Figure::of(of.id.clone(), figure)),
            None => Err(errors::usage(format!(
                "{} has no figure: [[figure]] makes one",
                of.id
            ))),
        }
    }

    /// All figures.
    #[getter]
    fn figures(&self) -> PyResult<Vec<Figure>> {
        let mut figures = Vec::new();
        for one in &self.finished {
            let of = &one.loaded.experiment;
            let figure = compare::figure(of, &one.results, &self.references).or_raise()?;
            figures.extend(figure.map(|figure| Figure::of(of.id.clone(), figure)));
        }
        Ok(figures)
    }

    /// The matrix of interference of an experiment that has one, else `None`.
    #[pyo3(signature = (experiment = None))]
    fn matrix(&self, py: Python<'_>, experiment: Option<&str>) -> PyResult<Py<PyAny>> {
        match &self.only(experiment)?.matrix {
            None => Ok(py.None()),
            Some(matrix) => convert::from_json(py, &parsed(&matrix.to_json())?),
        }
    }

    /// The traces of the points that were traced.
    #[getter]
    fn traces(&self) -> Vec<Trace> {
        let points = self.at().into_iter();
        let traced = points.filter_map(|at| Some(Trace::of(at.result.trace.as_deref()?.clone())));
        traced.collect()
    }

    /// Whether everything that is judged passes.
    #[getter]
    fn passed(&self) -> bool {
        self.judged.summary.pass()
    }

    /// What the rows come to: `summary` of `rows.json`.
    #[getter]
    fn summary(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let all = parsed(&self.to_json())?;
        convert::from_json(py, &all["summary"])
    }

    /// Rows and summary as the command writes them to `rows.json`.
    fn to_json(&self) -> String {
        let Judged { rows, summary, .. } = &self.judged;
        rows::to_json_with(rows, summary, self.told.seed, &self.differences)
    }

    fn __len__(&self) -> usize {
        self.finished.iter().map(|one| one.results.len()).sum()
    }

    fn __repr__(&self) -> String {
        let experiments = self.experiments().join(", ");
        format!(
            "<zonelab.Results of {experiments}: {} points>",
            self.__len__()
        )
    }

    fn __str__(&self) -> String {
        let plain = Style {
            width: None,
            colour: None,
        };
        table::comparison(&self.judged.rows, &self.judged.summary, &plain)
    }
}

impl Results {
    fn only(&self, experiment: Option<&str>) -> PyResult<&Finished> {
        let is_it = |one: &&Finished| experiment.is_none_or(|id| one.loaded.experiment.id == id);
        let mut found = self.finished.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(errors::usage(format!(
                "say which experiment: {}",
                self.experiments().join(", ")
            ))),
        }
    }
}

/// What the other crates write as JSON is JSON.
/// Why no point has the value that was asked for: who measured such a thing, or what is like it.
fn no_value(metric: &str, all: &[(At<'_>, &JobMeasured)]) -> String {
    let measured = |of: &JobMeasured| of.metrics.get(metric).is_some();
    let who: BTreeSet<String> = all
        .iter()
        .filter(|(_, of)| measured(of))
        .map(|(at, of)| format!("job={:?} of series={:?}", of.name, at.result.series))
        .collect();
    if !who.is_empty() {
        let who: Vec<String> = who.into_iter().collect();
        return format!(
            "{metric}: no such job at such a point measured it, but {} did",
            who.join(", ")
        );
    }
    let names = all
        .iter()
        .flat_map(|(_, of)| of.metrics.values.keys().copied());
    match zonelab_config::nearest(metric, names) {
        Some(near) => format!("{metric}: no job measured it; did you mean {near}?"),
        None => format!("{metric}: no job measured it"),
    }
}

fn parsed(text: &str) -> PyResult<Json> {
    serde_json::from_str(text).map_err(errors::invalid)
}
