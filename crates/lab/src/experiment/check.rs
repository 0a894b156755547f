//! What the parts of an experiment file say about each other.

use zonelab_config::{Document, Reported, nearest};
use zonelab_host::scheduler::SchedulerSpec;

use super::{Check, Experiment, Measured, Via, scheduler};
use crate::space::Objective;

/// What is known of a file's axes where its parts are checked.
pub(super) struct Varies {
    /// Axis values that parts refer to are looked up: not if the command line changed
    /// the axis, as who asks for fewer points may.
    pub(super) axis_values: bool,
    /// The way to the drive depends on an axis.
    pub(super) via: bool,
    /// The scheduler depends on an axis.
    pub(super) scheduler: bool,
}

/// Checks the names of jobs and series that parts of the file refer to, and
/// that no two things have the same name.
pub(super) fn names(
    document: &Document,
    experiment: &Experiment,
    varies: &Varies,
) -> Result<(), Reported> {
    let mut names = Names {
        document,
        result: Ok(()),
    };
    names.are_unique(experiment);
    let jobs: Vec<&str> = experiment
        .jobs
        .iter()
        .map(|job| job.name.as_str())
        .collect();
    // Results of a job may be told apart by kinds of operations.
    let result_names = experiment.result_names();
    let results: Vec<&str> = result_names.iter().map(String::as_str).collect();
    let series: Vec<&str> = experiment
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    let builtin = scheduler::builtin();
    let schedulers: Vec<&str> = experiment
        .schedulers
        .iter()
        .chain(&builtin)
        .map(|known| known.name.as_str())
        .collect();
    if let Some(name) = &experiment.scheduler {
        names.known("host.scheduler".to_owned(), name, &schedulers);
    }
    if let Some(reference) = experiment
        .reference
        .as_ref()
        .filter(|of| !of.job.is_empty())
    {
        names.known("reference.job".to_owned(), &reference.job, &results);
    }
    names.of_series(experiment, &jobs, &results, &schedulers);
    if !varies.via {
        names.of_layer(experiment);
    }
    if !varies.scheduler {
        names.of_block_layer(experiment);
    }
    names.of_matrix(experiment);
    names.of_repeated(experiment);
    names.of_comparisons(experiment, &series, &results);
    for (i, pair) in experiment.interference.iter().enumerate() {
        names.known(format!("interference.{i}.series"), &pair.series, &series);
        names.known(
            format!("interference.{i}.isolated"),
            &pair.isolated,
            &series,
        );
        names.known(format!("interference.{i}.job"), &pair.job, &jobs);
        names.known(
            format!("interference.{i}.isolated_job"),
            &pair.isolated_job,
            &jobs,
        );
    }
    names.of_differences(experiment, &series, &results);
    for name in &experiment.quick.series {
        names.known("quick.series".to_owned(), name, &series);
    }
    names.of_checks(experiment, &series, &results);
    for (i, listing) in experiment.listings.iter().enumerate() {
        names.known(format!("listing.{i}.series"), &listing.series, &series);
    }
    names.of_figures(experiment, &results);
    names.objectives(experiment);
    if varies.axis_values {
        names.axis_values(experiment);
    }
    names.result
}

/// Reports what is wrong, and goes on.
struct Names<'d> {
    document: &'d Document,
    result: Result<(), Reported>,
}

impl Names<'_> {
    /// Checks what is compared with published values.
    fn of_comparisons(&mut self, experiment: &Experiment, series: &[&str], results: &[&str]) {
        for (i, compare) in experiment.compare.iter().enumerate() {
            self.known(format!("compare.{i}.job"), &compare.job, results);
            let mut all = experiment.series.iter();
            let is_run = all.any(|of| experiment.runs_result(of, &compare.job));
            if results.contains(&compare.job.as_str()) && !is_run {
                let what = format!(
                    "no series runs \"{}\", so that nothing is compared",
                    compare.job
                );
                let valid = "name a job that one runs".to_owned();
                self.report(&format!("compare.{i}.job"), what, valid);
            }
            for (j, informative) in compare.informative.iter().enumerate() {
                for name in &informative.series {
                    self.known(format!("compare.{i}.informative.{j}.series"), name, series);
                }
            }
        }
    }

    /// Checks the panels of the figure.
    fn of_figures(&mut self, experiment: &Experiment, results: &[&str]) {
        for (i, figure) in experiment.figures.iter().enumerate() {
            let path = match experiment.figures.len() {
                1 => "figure.job".to_owned(),
                _ => format!("figure.{i}.job"),
            };
            self.known(path, &figure.job, results);
            if figure.width.is_some() && figure.width != experiment.figure_width() {
                self.report(
                    &format!("figure.{i}.width"),
                    "another panel of the same picture has another width".to_owned(),
                    "write one width for the whole picture".to_owned(),
                );
            }
        }
    }

    fn report(&mut self, path: &str, what: String, valid: String) {
        self.result = Err(self.document.report(path, what, valid));
    }

    /// Reports `name` if it is none of `names`.
    fn known(&mut self, path: String, name: &str, names: &[&str]) {
        if !names.contains(&name) {
            let valid = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("choose one of: {}", names.join(", ")),
            };
            self.report(&path, format!("there is no \"{name}\""), valid);
        }
    }

    /// What differences are between.
    fn of_differences(&mut self, experiment: &Experiment, known: &[&str], results: &[&str]) {
        for (i, of) in experiment.differences.iter().enumerate() {
            self.known(format!("difference.{i}.series"), &of.series, known);
            self.known(format!("difference.{i}.baseline"), &of.baseline, known);
            self.known(format!("difference.{i}.job"), &of.job, results);
            let key = format!("difference.{i}.baseline_job");
            self.known(key, &of.baseline_job, results);
            if (&of.series, &of.job) == (&of.baseline, &of.baseline_job) {
                let what = format!("\"{}\" is compared with itself", of.series);
                let valid = "name another series".to_owned();
                self.report(&format!("difference.{i}.baseline"), what, valid);
            }
        }
    }

    /// What statements are about.
    fn of_checks(&mut self, experiment: &Experiment, known: &[&str], results: &[&str]) {
        let pairs = experiment.interference.iter();
        let interfered: Vec<&str> = pairs.map(|pair| pair.series.as_str()).collect();
        for (i, check) in experiment.checks.iter().enumerate() {
            let before = experiment.checks.iter().take(i);
            let same = |other: &Check| (&other.id, &other.says) == (&check.id, &check.says);
            if before.into_iter().any(same) {
                let what = format!("\"{}\" is there already", check.says);
                let valid = "known gaps go by their sentence: say how they differ".to_owned();
                self.report(&format!("check.{i}.says"), what, valid);
            }
            for measured in check.value.measured() {
                match measured {
                    Measured::Metric {
                        path, series, job, ..
                    } => {
                        self.known(format!("{path}.series"), series, known);
                        self.known(format!("{path}.job"), job, results);
                    }
                    Measured::Interference { path, series } => {
                        self.known(format!("{path}.interference"), series, &interfered);
                    }
                }
            }
        }
    }

    /// What series refer to.
    fn of_series(
        &mut self,
        experiment: &Experiment,
        jobs: &[&str],
        results: &[&str],
        schedulers: &[&str],
    ) {
        for spec in &experiment.series {
            let i = spec.place;
            if let Some(name) = &spec.scheduler {
                self.known(format!("series.{i}.scheduler"), name, schedulers);
            }
            for name in spec.phases.iter().flatten() {
                self.known(format!("series.{i}.jobs"), name, jobs);
            }
            for (j, source) in spec.published.iter().enumerate() {
                if !source.job.is_empty() {
                    let path = format!("series.{i}.published.{j}.job");
                    self.known(path, &source.job, results);
                }
            }
        }
    }

    /// The cells of a matrix are series already, for which nothing is repeated.
    fn of_matrix(&mut self, experiment: &Experiment) {
        if experiment.matrix.is_some() && !experiment.crossed.is_empty() {
            let what = "a matrix has one axis".to_owned();
            let valid = "pair the others with the first: zip = \"NAME\"".to_owned();
            self.report("matrix", what, valid);
        }
    }

    /// Nothing says which repetition of a series a published value belongs to.
    fn of_repeated(&mut self, experiment: &Experiment) {
        let first = experiment
            .series
            .iter()
            .filter(|spec| spec.combination == 0);
        for spec in first.filter(|_| experiment.combinations() > 1) {
            let said = [
                ("point", spec.points.is_empty()),
                ("published", spec.published.is_empty()),
            ];
            for (key, _) in said.into_iter().filter(|(_, is_empty)| !is_empty) {
                let what = "a series that is repeated has no published values of its own";
                let valid = "say `reference`, whose rows name the repetition, or pair the axes";
                let path = format!("series.{}.{key}", spec.place);
                self.report(&path, what.to_owned(), valid.to_owned());
            }
        }
    }

    /// Settings of the flash translation layer are for series that go through it.
    fn of_layer(&mut self, experiment: &Experiment) {
        let goes = |series| experiment.via_of(series) == Via::Ftl;
        let valid = "only with via = \"ftl\", in [host] or in the series";
        if !experiment.ftl.is_empty() && !experiment.series.iter().any(goes) {
            let what = "no series goes through the layer".to_owned();
            self.report("ftl", what, valid.to_owned());
        }
        for series in &experiment.series {
            if !series.ftl.is_empty() && !goes(series) {
                let what = "the series does not go through the layer".to_owned();
                self.report(
                    &format!("series.{}.ftl", series.place),
                    what,
                    valid.to_owned(),
                );
            }
        }
    }

    /// Costs of a block layer are for series that go through a scheduler.
    fn of_block_layer(&mut self, experiment: &Experiment) {
        let has_one = |series| {
            let scheduler = experiment.host_of(series).scheduler;
            scheduler.is_some_and(|of| of.spec != SchedulerSpec::None)
        };
        if experiment.series.iter().any(has_one) {
            return;
        }
        let host = self.document.root().table("host");
        for key in ["merged", "tick"].into_iter().filter(|key| host.has(key)) {
            let what = "no series goes through a scheduler: it does nothing".to_owned();
            let valid = "only with a `scheduler`, in [host] or in the series".to_owned();
            self.report(&format!("host.{key}"), what, valid);
        }
    }

    /// What a search asks for.
    fn objectives(&mut self, experiment: &Experiment) {
        let Some(search) = &experiment.search else {
            return;
        };
        for (i, spec) in search.objectives.iter().enumerate() {
            if let Err((key, wrong)) = Objective::resolve(experiment, spec) {
                let path = format!("search.objective.{i}.{key}");
                self.report(&path, wrong.what, wrong.valid);
            }
        }
        for (i, published) in search.published.iter().enumerate() {
            let (has, needs) = (published.values.len(), search.objectives.len());
            if has != needs {
                let what = format!("{has} values for {needs} objectives");
                let valid = "one for each, in their order".to_owned();
                self.report(&format!("search.published.{i}.values"), what, valid);
            }
        }
    }

    /// Jobs, series and schedulers go by their names in results.
    fn are_unique(&mut self, experiment: &Experiment) {
        let jobs = experiment.jobs.iter().map(|job| job.name.as_str());
        let series = experiment.series.iter().map(|series| series.name.as_str());
        let schedulers = experiment
            .schedulers
            .iter()
            .map(|known| known.name.as_str());
        let lists: [(Vec<&str>, &str, &str); 3] = [
            (jobs.collect(), "job", ".name"),
            (schedulers.collect(), "scheduler", ".name"),
            (series.collect(), "series", ".name"),
        ];
        for (names, path, key) in lists {
            for (i, name) in names.iter().enumerate() {
                if names[..i].contains(name) {
                    let path = format!("{path}.{i}{key}");
                    let valid = "names must differ".to_owned();
                    self.report(&path, format!("\"{name}\" is there already"), valid);
                }
            }
        }
    }

    /// Axis values that checks and published points refer to.
    fn axis_values(&mut self, experiment: &Experiment) {
        let values: Vec<&str> = experiment
            .axis
            .values
            .iter()
            .map(|value| value.text.as_str())
            .collect();
        if let Some(at) = experiment
            .matrix
            .as_ref()
            .and_then(|of| of.explain.at.as_ref())
        {
            self.known("matrix.explain_at".to_owned(), at, &values);
        }
        for series in &experiment.series {
            let i = series.place;
            for (j, point) in series.points.iter().enumerate() {
                self.known(format!("series.{i}.point.{j}.x"), &point.x, &values);
            }
            let matrix = experiment.matrix.as_ref();
            if matrix.is_some_and(|matrix| matrix.is_cell(&series.name)) {
                continue; // runs at the levels of its foreground
            }
            let key = match matrix.and_then(|matrix| matrix.alone_in(&series.name)) {
                Some(n) => format!("matrix.foreground.{n}.levels"),
                None => format!("series.{i}.x"),
            };
            for x in &series.x {
                self.known(key.clone(), x, &values);
            }
        }
        for (i, compare) in experiment.compare.iter().enumerate() {
            for (j, informative) in compare.informative.iter().enumerate() {
                for x in &informative.x {
                    self.known(format!("compare.{i}.informative.{j}.x"), x, &values);
                }
            }
        }
        for check in &experiment.checks {
            for measured in check.value.measured() {
                if let Measured::Metric { path, x, .. } = measured {
                    self.known(format!("{path}.x"), x, &values);
                }
            }
        }
    }
}
