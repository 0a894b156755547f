//! What was measured: rows of tables by way of experiments, and fio's JSON.

use std::collections::BTreeMap;

use zonelab_config::Override;
use zonelab_lab::experiment::{AxisValue, Compare, Experiment, SeriesSpec};
use zonelab_lab::published::{CellPlace, References};
use zonelab_lab::reference::plausible::{self, Stated};
use zonelab_lab::reference::{Account, CsvTable, ReferenceError};
use zonelab_lab::run::{self, Point};

use super::fio_json::{self, FioCase};
use super::{CalibrateError, DataFile, ExperimentFile};

/// One measured value, and what it is a value of.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Where it stands.
    pub place: CellPlace,
    /// Position in [`Data::groups`].
    pub group: usize,
    /// Series of the experiment; empty for job files.
    pub series: String,
    /// Axis value as written; of a job file, its name.
    pub x: String,
    /// The job.
    pub job: String,
    /// The metric.
    pub metric: String,
    /// The measured value.
    pub value: f64,
    /// The value as it stands at its place, and what turns that into `value`.
    pub written: (f64, f64),
    /// Least and greatest of the repeats of the measurement.
    pub spread: Option<(f64, f64)>,
}

impl Measurement {
    /// The value, to be looked at.
    pub(super) fn stated(&self) -> Stated<'_> {
        Stated {
            // Of a job file, the direction stands before it.
            metric: self.metric.rsplit(' ').next().unwrap_or_default(),
            written: self.written,
            place: &self.place,
        }
    }
}

/// What is run to get our values beside measured ones.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A point of an experiment.
    Point(Box<Point>),
    /// A job file of fio.
    Jobs(Box<FioCase>),
}

/// One run, and the measurements that it answers.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) work: Work,
    pub(super) group: usize,
    /// Positions in [`Data::measurements`]: those of a case follow each other.
    pub(super) measurements: std::ops::Range<usize>,
}

/// What weighs as one: the points of an experiment, or all job files.
#[derive(Clone, Debug)]
pub struct Group {
    /// Id of the experiment, or `fio`.
    pub name: String,
    /// The experiment; `None` for job files.
    pub experiment: Option<Experiment>,
}

/// All that was measured.
#[derive(Debug)]
pub struct Data {
    /// Experiments, then job files.
    pub groups: Vec<Group>,
    pub(super) cases: Vec<Case>,
    /// The measured values, case by case.
    pub measurements: Vec<Measurement>,
    /// Tables that experiments look values up in.
    pub(super) references: References,
    /// What was left out, in words.
    pub warnings: Vec<String>,
}

/// The tables of a directory, over those that are built in.
///
/// A table goes by its path below the directory without `.csv`, and by the end
/// of that path: `zn540/throughput_latency` is there as
/// `zn540/throughput_latency.csv` or as `throughput_latency.csv`.
pub(super) struct Tables<'a> {
    files: Vec<(&'a str, CsvTable)>,
}

/// What is used of a table.
#[derive(Default)]
struct Of {
    /// The name by which experiments call it.
    name: String,
    account: Account,
    /// How many of the values are at points that are not run.
    not_run: usize,
}

impl<'a> Tables<'a> {
    /// Reads every `.csv` of the files.
    ///
    /// # Errors
    /// One is malformed, or has no rows.
    pub(super) fn new(files: &'a [DataFile]) -> Result<Self, ReferenceError> {
        let mut tables = Vec::new();
        for file in files {
            let Some(stem) = file.below.strip_suffix(".csv") else {
                continue;
            };
            let table = CsvTable::parse(&file.name, &file.text)?;
            if table.records().len() == 0 {
                return Err(ReferenceError {
                    file: file.name.clone(),
                    line: 1,
                    column: None,
                    problem: "the file has a header and no rows: nothing was measured".to_owned(),
                });
            }
            tables.push((stem, table));
        }
        Ok(Self { files: tables })
    }

    /// The table that experiments call `name`.
    pub(super) fn find(&self, name: &str) -> Option<&(&'a str, CsvTable)> {
        let last = name.rsplit('/').next().unwrap_or(name);
        [name, last]
            .into_iter()
            .find_map(|name| self.files.iter().find(|(stem, _)| *stem == name))
    }
}

impl Tables<'_> {
    /// What of the tables is not used, in words.
    ///
    /// # Errors
    /// A column that nothing knows.
    fn left(&self, used: &mut BTreeMap<String, Of>) -> Result<Vec<String>, ReferenceError> {
        let mut left = Vec::new();
        for (stem, table) in &self.files {
            let file = table.file();
            let Some(of) = used.remove(*stem) else {
                left.push(format!(
                    "{file}: no experiment says what its {} rows mean, so that none is used: name \
                     one with --experiments",
                    table.records().len()
                ));
                continue;
            };
            left.extend(References::left(&of.name, table, of.account)?);
            if of.not_run > 0 {
                left.push(format!(
                    "{file}: {} values are at points that a coarse calibration leaves out",
                    of.not_run
                ));
            }
        }
        Ok(left)
    }
}

/// The tables that an experiment looks values up in.
pub(super) fn tables_of(experiment: &Experiment) -> Vec<&str> {
    let sources = experiment.series.iter().flat_map(|s| &s.published);
    let mut names: Vec<&str> = sources.map(|source| source.table.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Data {
    /// Number of runs that answer all measured values once.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.cases.len()
    }

    /// Puts files and experiments together.
    ///
    /// # Errors
    /// [`CalibrateError`]: a table or a value that makes no sense, an
    /// experiment that asks for what is not there, or nothing to fit.
    pub(super) fn new(
        files: &[DataFile],
        experiments: &[ExperimentFile],
        coarse: bool,
    ) -> Result<Self, CalibrateError> {
        let tables = Tables::new(files)?;
        let mut data = Self {
            groups: Vec::new(),
            cases: Vec::new(),
            measurements: Vec::new(),
            references: References::builtin()?,
            warnings: Vec::new(),
        };
        let mut used = BTreeMap::new();
        for file in experiments {
            data.add_experiment(file, (&tables, &mut used), coarse)?;
        }
        data.add_job_files(files)?;
        let left = tables.left(&mut used)?;
        data.warnings.extend(left);
        if data.measurements.is_empty() {
            return Err(CalibrateError::Nothing);
        }
        Ok(data)
    }

    fn add_experiment(
        &mut self,
        file: &ExperimentFile,
        (tables, used): (&Tables<'_>, &mut BTreeMap<String, Of>),
        coarse: bool,
    ) -> Result<(), CalibrateError> {
        let plain = Experiment::parse(&file.name, &file.text, &[], None)?;
        let is_short = |set: &&Override| coarse || !set.key().starts_with("axis");
        let settings: Vec<Override> = plain.quick.set.iter().filter(is_short).cloned().collect();
        let experiment = Experiment::parse(&file.name, &file.text, &settings, None)?;
        for name in tables_of(&experiment) {
            let Some((_, table)) = tables.find(name) else {
                return Err(CalibrateError::Table {
                    experiment: experiment.id.clone(),
                    table: name.to_owned(),
                });
            };
            let references = std::mem::replace(&mut self.references, References::empty());
            self.references = references.with_table(name, table.clone());
        }
        self.references.check(&experiment)?;
        let points = run::points(&file.name, &file.text, &settings)?;
        let group = self.groups.len();
        // The experiment may have its own choice of values for short runs.
        let is_thinned = experiment.axis.values.len() < plain.axis.values.len();
        let kept = kept_values(&experiment, coarse && !is_thinned);
        for name in tables_of(&experiment) {
            let Some((stem, _)) = tables.find(name) else {
                continue;
            };
            let of = used.entry((*stem).to_owned()).or_default();
            name.clone_into(&mut of.name);
            let is_run = |x: &AxisValue| kept.contains(&x.text);
            let note = |of: &Experiment, at: &dyn Fn(&AxisValue) -> bool, into: &mut Account| {
                self.references.note((of, name), at, into)
            };
            note(&experiment, &is_run, &mut of.account)?;
            let run = of.account.used();
            note(&plain, &|_| true, &mut of.account)?;
            of.not_run += of.account.used() - run;
        }
        let before = self.measurements.len();
        for point in points {
            if !kept.contains(&point.x().text) {
                continue;
            }
            let from = self.measurements.len();
            self.measure_point(&experiment, &point, group, &file.name)?;
            if self.measurements.len() > from {
                self.cases.push(Case {
                    work: Work::Point(Box::new(point)),
                    group,
                    measurements: from..self.measurements.len(),
                });
            }
        }
        if self.measurements.len() == before {
            return Err(CalibrateError::Unmeasured {
                experiment: experiment.id,
                metrics: plain
                    .compare
                    .iter()
                    .flat_map(|c| c.metrics.clone())
                    .collect(),
            });
        }
        self.groups.push(Group {
            name: experiment.id.clone(),
            experiment: Some(experiment),
        });
        Ok(())
    }

    /// Notes what was published of a point.
    fn measure_point(
        &mut self,
        experiment: &Experiment,
        point: &Point,
        group: usize,
        file: &str,
    ) -> Result<(), CalibrateError> {
        let named = experiment.series.iter().find(|s| s.name == point.series());
        let Some(series) = named else { return Ok(()) };
        let runs = |compare: &&Compare| series.phases.iter().flatten().any(|j| *j == compare.job);
        for compare in experiment.compare.iter().filter(runs) {
            let first = self.measurements.len();
            for metric in &compare.metrics {
                let x = point.x();
                let shown_only = compare
                    .informative
                    .iter()
                    .any(|informative| informative.applies(metric, &series.name, &x.text));
                let published = self.references.value(series, &compare.job, x, metric)?;
                let Some(published) = published.filter(|_| !shown_only) else {
                    continue;
                };
                let place = self.place(series, &compare.job, x, metric, file)?;
                let stated = Stated {
                    metric,
                    written: published.written,
                    place: &place,
                };
                plausible::possibly(&stated)?;
                if let Some((least, most)) = published.spread {
                    plausible::possibly(&stated.of_repeat(least))?;
                    plausible::possibly(&stated.of_repeat(most))?;
                }
                self.measurements.push(Measurement {
                    place,
                    group,
                    series: series.name.clone(),
                    x: x.text.clone(),
                    job: compare.job.clone(),
                    metric: metric.clone(),
                    value: published.value,
                    written: published.written,
                    spread: published.spread.map(|(a, b)| (a.min(b), a.max(b))),
                });
            }
            let stated = self.measurements[first..].iter().map(Measurement::stated);
            let (stated, in_flight): (Vec<_>, _) =
                (stated.collect(), point.in_flight(&compare.job));
            plausible::together(&stated, in_flight)?;
            let doubt = plausible::doubt(&stated, in_flight);
            self.warnings.extend(doubt);
        }
        Ok(())
    }

    fn place(
        &self,
        series: &SeriesSpec,
        job: &str,
        x: &AxisValue,
        metric: &str,
        file: &str,
    ) -> Result<CellPlace, CalibrateError> {
        let in_file = || CellPlace {
            file: file.to_owned(),
            line: 0,
            column: metric.to_owned(),
        };
        let stated = series
            .points
            .iter()
            .find(|point| point.x == x.text && point.metric == metric);
        if let Some(point) = stated {
            return Ok(point.place.clone());
        }
        let place = self.references.place(series, job, x, metric)?;
        Ok(place.unwrap_or_else(in_file))
    }

    fn add_job_files(&mut self, files: &[DataFile]) -> Result<(), CalibrateError> {
        let group = self.groups.len();
        for file in files.iter().filter(|file| file.below.ends_with(".json")) {
            let stem = file.below.trim_end_matches(".json");
            let jobs = files
                .iter()
                .find(|other| other.below.strip_suffix(".fio") == Some(stem));
            let (case, measurements) = fio_json::read(file, jobs, group)?;
            self.warnings.extend(case.warnings.iter().cloned());
            let from = self.measurements.len();
            self.measurements.extend(measurements);
            self.cases.push(Case {
                work: Work::Jobs(Box::new(case)),
                group,
                measurements: from..self.measurements.len(),
            });
        }
        for jobs in files.iter().filter(|file| file.below.ends_with(".fio")) {
            let stem = jobs.below.trim_end_matches(".fio");
            if !files
                .iter()
                .any(|of| of.below.strip_suffix(".json") == Some(stem))
            {
                self.warnings.push(format!(
                    "{}: there are no results of these jobs, which would be {stem}.json",
                    jobs.name
                ));
            }
        }
        if self.cases.iter().any(|case| case.group == group) {
            self.groups.push(Group {
                name: "fio".to_owned(),
                experiment: None,
            });
        }
        Ok(())
    }
}

/// Axis values that are fitted: all, or every second and the last.
fn kept_values(experiment: &Experiment, coarse: bool) -> Vec<String> {
    let values = &experiment.axis.values;
    let last = values.len().saturating_sub(1);
    let keeps =
        |index: usize| !coarse || values.len() <= 2 || index.is_multiple_of(2) || index == last;
    let kept = values.iter().enumerate().filter(|(index, _)| keeps(*index));
    kept.map(|(_, x)| x.text.clone()).collect()
}
