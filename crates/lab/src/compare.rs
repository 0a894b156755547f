//! From what was measured to rows of comparison and figures.

use std::collections::BTreeSet;
use std::slice;

use crate::detail::quantiles;
use crate::experiment::{
    Axis, AxisValue, Check, Compare, Derived, Experiment, FigureSpec, Interference, Listing,
    ListingLine, Measured, Needs, SeriesSpec,
};
use crate::figure::{Axis as FigureAxis, Figure, Panel, Point as FigurePoint, Series};
use crate::metrics::{interference, percentile_of, unit_of};
use crate::published::{LookupError, References};
use crate::rows::{Bound, Kind, Row, Standing, UNIT_CHANGE, UNIT_M, Unjudged, significant};
use crate::run::{JobMeasured, PointResult};
use crate::statistics::Statistics;

mod repeats;

use repeats::{Over, derived};

/// The rows of an experiment: comparisons point by point, interference, checks.
///
/// # Errors
/// The experiment asks the reference tables for what they do not have.
pub fn rows(
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Vec<Row>, LookupError> {
    let mut rows = Vec::new();
    for series in &experiment.series {
        for result in results.iter().filter(|result| result.series == series.name) {
            for compare in &experiment.compare {
                rows.extend(point_rows(experiment, series, compare, result, references)?);
            }
        }
    }
    rows.extend(interference_rows(experiment, results));
    rows.extend(experiment.worked.iter().map(|worked| {
        let points = [(worked.isolated, worked.interfered)];
        let ours = interference(&points, worked.alpha).unwrap_or(f64::NAN);
        // The paper gives two decimals.
        Row::new(
            &experiment.id,
            kind(experiment),
            &worked.name,
            ("m_inter", UNIT_M),
            ours,
        )
        .published(worked.published)
        .judged()
    }));
    rows.extend(statements(experiment, results));
    let listings = experiment.listings.iter();
    for listing in listings.filter(|of| failed_at(results, &of.series, None).is_none()) {
        rows.extend(listing_rows(experiment, listing, results));
    }
    Ok(rows)
}

/// A statement for each line of a listing of zones: that ours has all of its fields. Our
/// line is the one that begins with the same field.
fn listing_rows(experiment: &Experiment, listing: &Listing, results: &[PointResult]) -> Vec<Row> {
    let mut results = results.iter();
    let Some(result) = results.find(|result| result.series == listing.series) else {
        return Vec::new();
    };
    let zones = result.zones.iter().flatten();
    let ours: Vec<ListingLine> = zones.filter_map(|line| ListingLine::parse(line)).collect();
    let row = |line: &ListingLine| {
        let same = ours
            .iter()
            .find(|of| of.fields.first() == line.fields.first());
        let has = |field: &&(String, String)| same.is_some_and(|of| of.fields.contains(field));
        let agree = line.fields.iter().filter(has).count() as f64;
        let all = line.fields.len() as f64;
        let says = format!("{} has the fields of \"{}\"", listing.name, line.text);
        let of = (says.as_str(), "fields");
        let row = Row::new(&experiment.id, kind(experiment), "check", of, agree);
        row.published(all).statement(Bound::AtLeast(all)).judged()
    };
    listing.lines.iter().map(row).collect()
}

fn kind(experiment: &Experiment) -> Kind {
    match experiment.kind.as_str() {
        "E" => Kind::Emulator,
        "D" => Kind::Drive,
        _ => Kind::Shape,
    }
}

fn point_rows(
    experiment: &Experiment,
    series: &SeriesSpec,
    compare: &Compare,
    result: &PointResult,
    references: &References,
) -> Result<Vec<Row>, LookupError> {
    let Some(job) = result.jobs.iter().find(|job| job.name == compare.job) else {
        return Ok(Vec::new());
    };
    let id = compare.id.as_ref().unwrap_or(&experiment.id);
    let name = row_series(experiment, &series.name, job);
    let row = |metric: &String| {
        let ours = job.metrics.get(metric).unwrap_or(f64::NAN);
        let exception = compare
            .informative
            .iter()
            .find(|informative| informative.applies(metric, &series.name, &result.x.text));
        let standing = match exception {
            None => standing_of(failed_at(slice::from_ref(result), &series.name, None)),
            Some(why) if why.is_input => Standing::Input(why.reason.clone()),
            Some(why) => Standing::Shown(why.reason.clone()),
        };
        let mut row = Row::new(id, kind(experiment), &name, (metric, unit_of(metric)), ours)
            .varying(job.statistics(metric).copied())
            .of_job(&compare.job)
            .at(
                &axis_name(&experiment.axis),
                result.x.number,
                &result.x.text,
            )
            .shown_at(experiment.axis.shown(&result.x))
            .standing(standing);
        if let Some(published) = references.value(series, &compare.job, &result.x, metric)? {
            row = row
                .published(published.value)
                .published_in(
                    published.place.as_ref().map(ToString::to_string),
                    published.written,
                )
                .repeats(published.spread);
        }
        if let Some(&(low, high)) = job.metrics.neighbours.get(metric.as_str()) {
            row = row.bracket(low, high);
        }
        Ok(row.judged())
    };
    compare.metrics.iter().map(row).collect()
}

/// The series of a row: with several jobs compared in one series, they are told apart.
pub fn row_series(experiment: &Experiment, series: &str, job: &JobMeasured) -> String {
    let spec = experiment.series.iter().find(|spec| spec.name == series);
    let jobs: BTreeSet<&str> = experiment
        .compare
        .iter()
        .map(|compare| compare.job.as_str())
        .filter(|job| spec.is_some_and(|spec| experiment.runs_result(spec, job)))
        .collect();
    if jobs.len() > 1 {
        format!("{series}: {}", job.name)
    } else {
        series.to_owned()
    }
}

/// The label of a point in figures.
pub fn point_label(axis: &Axis, x: &AxisValue) -> String {
    format!("{} {}", axis_name(axis), axis.shown(x))
}

fn axis_name(axis: &Axis) -> String {
    if axis.unit.is_empty() {
        axis.heading()
    } else {
        format!("{} [{}]", axis.heading(), axis.unit)
    }
}

/// Our value of one metric of a job at a point; `None` if the point was not run,
/// not finite if it did not measure that.
fn value_at(
    (results, over): (&[PointResult], Over),
    series: &str,
    x: &str,
    job: &str,
    metric: &str,
) -> Option<f64> {
    let mut results = results.iter();
    let result = results.find(|result| result.series == series && result.x.text == x)?;
    let job = result.jobs.iter().find(|measured| measured.name == job);
    Some(
        job.and_then(|job| over.value(job, metric))
            .unwrap_or(f64::NAN),
    )
}

/// M^Inter of a pair; `None` if none of its points was run, and not finite if one that was
/// run did not measure what it takes: a mean over the others would be another.
fn interference_of(
    experiment: &Experiment,
    (results, over): (&[PointResult], Over),
    pair: &Interference,
) -> Option<f64> {
    let point = |series: &str, job: &str, x: &AxisValue| {
        let at = |metric: &str| value_at((results, over), series, &x.text, job, metric);
        Some((at(&pair.throughput)?, at("lat_p95_us")?))
    };
    // Levels without a point on either side cannot be compared.
    let points: Vec<_> = experiment
        .axis
        .values
        .iter()
        .filter_map(|x| {
            Some((
                point(&pair.isolated, &pair.isolated_job, x)?,
                point(&pair.series, &pair.job, x)?,
            ))
        })
        .collect();
    let is_measured = |(a, b): &(f64, f64)| a.is_finite() && b.is_finite();
    let mut all = points.iter();
    match all.all(|(isolated, beside)| is_measured(isolated) && is_measured(beside)) {
        true => interference(&points, pair.alpha),
        false => Some(f64::NAN),
    }
}

fn interference_rows(experiment: &Experiment, results: &[PointResult]) -> Vec<Row> {
    let row = |pair: &Interference| {
        let value = |over| interference_of(experiment, (results, over), pair);
        let (ours, statistics) = derived(experiment.repeats, value)?;
        let standing = match (&pair.informative, &pair.counted_in) {
            (Some(why), _) => Standing::Shown(why.clone()),
            (None, Some(id)) => Standing::CountedIn(id.clone()),
            (None, None) => standing_of(failed_of_pair(results, pair)),
        };
        let name = match pair.throughput.as_str() {
            "mib_s" => "m_inter_by_bytes",
            _ => "m_inter",
        };
        let metric = (name, UNIT_M);
        let mut row = Row::new(&experiment.id, kind(experiment), &pair.series, metric, ours)
            .varying(statistics)
            .of_job(&pair.job)
            .standing(standing);
        if let Some(published) = pair.published {
            row = row.published(published);
        }
        Some(row.judged())
    };
    experiment.interference.iter().filter_map(row).collect()
}

/// The job that failed while what is judged was measured, in words: what the point was to be
/// was not there. `x`: at this value of the axis only.
fn failed_at(results: &[PointResult], series: &str, x: Option<&str>) -> Option<String> {
    let is_asked =
        |result: &&PointResult| result.series == series && x.is_none_or(|x| result.x.text == x);
    let mut failures = results.iter().filter(is_asked).flat_map(|result| {
        let failures = result.failures.iter();
        failures.map(move |failure| (failure, &result.x.text))
    });
    let (failure, x) = failures.next()?;
    Some(format!(
        "job \"{}\" of \"{series}\" failed at {x}",
        failure.job
    ))
}

/// The same of a pair of series.
fn failed_of_pair(results: &[PointResult], pair: &Interference) -> Option<String> {
    let own = failed_at(results, &pair.series, None);
    own.or_else(|| failed_at(results, &pair.isolated, None))
}

/// The same of what a statement is about.
fn failed_of(
    experiment: &Experiment,
    results: &[PointResult],
    measured: &Measured,
) -> Option<String> {
    match measured {
        Measured::Metric { series, x, .. } => failed_at(results, series, Some(x)),
        Measured::Interference { series, .. } => {
            let mut pairs = experiment.interference.iter();
            failed_of_pair(results, pairs.find(|pair| pair.series == *series)?)
        }
    }
}

fn standing_of(failed: Option<String>) -> Standing {
    failed.map_or(Standing::Judged, |failed| {
        Standing::Shown(format!("not judged: {failed}"))
    })
}

/// What a statement is about; `None` if a point of it was not run.
fn measurement(
    experiment: &Experiment,
    (results, over): (&[PointResult], Over),
    measured: &Measured,
) -> Option<f64> {
    match measured {
        Measured::Metric {
            series,
            x,
            job,
            metric,
            ..
        } => value_at((results, over), series, x, job, metric),
        Measured::Interference { series, .. } => {
            let mut pairs = experiment.interference.iter();
            let pair = pairs.find(|pair| pair.series == *series)?;
            let was_run = |name: &String| results.iter().any(|result| result.series == *name);
            let nothing = || (was_run(&pair.series) && was_run(&pair.isolated)).then_some(f64::NAN);
            interference_of(experiment, (results, over), pair).or_else(nothing)
        }
    }
}

/// The statements that were not judged, and why: those of which [`rows`] has none.
pub fn unjudged(experiment: &Experiment, results: &[PointResult], is_whole: bool) -> Vec<Unjudged> {
    let missing = |measured: &Measured| {
        let value = measurement(experiment, (results, Over::All), measured);
        value.is_none().then(|| match measured {
            Measured::Metric { series, x, .. } => format!("\"{series}\" was not run at {x}"),
            Measured::Interference { series, .. } => {
                format!("\"{series}\" or what it is compared with was not run")
            }
        })
    };
    let interrupted = (!is_whole).then(|| "points of the experiment were not run".to_owned());
    let why = |check: &Check| {
        let own = check.unjudged.clone().or_else(|| interrupted.clone());
        let measured = check.value.measured();
        own.or_else(|| measured.iter().copied().find_map(missing))
            .or_else(|| {
                measured
                    .into_iter()
                    .find_map(|one| failed_of(experiment, results, one))
            })
    };
    let of = |id: &Option<String>, says: &str, why: String| Unjudged {
        id: id.as_ref().unwrap_or(&experiment.id).clone(),
        says: says.to_owned(),
        why,
    };
    let checks = experiment.checks.iter();
    let checks = checks.filter_map(|check| Some(of(&check.id, &check.says, why(check)?)));
    let was_run = |name: &String| results.iter().any(|result| result.series == *name);
    let listings = experiment.listings.iter();
    let listings = listings.filter_map(|listing| {
        let not_run = || format!("\"{}\" was not run", listing.series);
        let missing = || (!was_run(&listing.series)).then(not_run);
        let failed = || failed_at(results, &listing.series, None);
        Some(of(
            &None,
            &listing.name,
            interrupted.clone().or_else(missing).or_else(failed)?,
        ))
    });
    checks.chain(listings).collect()
}

/// The statements whose points were run, and no job of them failed.
fn statements(experiment: &Experiment, results: &[PointResult]) -> Vec<Row> {
    let row = |check: &Check| {
        let measured = check.value.measured();
        let of = |over: Over| {
            let values = measured
                .iter()
                .map(|one| measurement(experiment, (results, over), one));
            Some(check.value.of(&values.collect::<Option<Vec<f64>>>()?))
        };
        let (ours, statistics) = derived(experiment.repeats, of)?;
        let metric = match measured.first() {
            Some(Measured::Metric { metric, .. }) => metric.as_str(),
            _ => "m_inter",
        };
        let (unit, around) = match &check.value {
            Derived::Value(_) if metric == "m_inter" => (UNIT_M, 0.0),
            Derived::Value(_) => (unit_of(metric), 0.0),
            Derived::Ratio(..) => ("ratio", 0.0),
            Derived::Change(..) => (UNIT_CHANGE, 1.0),
            Derived::Formula(formula) => (formula.unit(), 0.0),
        };
        let bound = match check.needs {
            Needs::AtLeast(least) => Bound::AtLeast(least),
            Needs::AtMost(most) => Bound::AtMost(most),
            Needs::Published => Bound::near(kind(experiment), metric, around),
        };
        let id = check.id.as_ref().unwrap_or(&experiment.id);
        let mut row = Row::new(id, kind(experiment), "check", (&check.says, unit), ours);
        row.published = check.published;
        row.statistics = statistics;
        if let Some(reason) = &check.input {
            row = row.standing(Standing::Input(reason.clone()));
        }
        Some(row.statement(bound).judged())
    };
    let failed = |measured: &Measured| failed_of(experiment, results, measured).is_some();
    let has_failed = |check: &Check| check.value.measured().into_iter().any(failed);
    let judged = experiment.checks.iter();
    let judged = judged.filter(|check| check.unjudged.is_none() && !has_failed(check));
    judged.filter_map(row).collect()
}

/// The figure of an experiment, if it has one: our curves, published points on them.
///
/// # Errors
/// As [`rows`].
pub fn figure(
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Option<Figure>, LookupError> {
    if experiment.figures.is_empty() {
        return Ok(None);
    }
    let title = format!("{}: {}", experiment.id, experiment.title);
    let mut figure = Figure::new(title).wide(experiment.figure_width());
    for spec in &experiment.figures {
        for &from_ppm in &spec.percentiles_ppm {
            figure = figure.panel(percentiles(experiment, spec, results, from_ppm));
        }
        if spec.percentiles_ppm.is_empty() {
            figure = figure.panel(panel(spec, experiment, results, references)?);
        }
    }
    Ok(Some(figure))
}

fn panel(
    spec: &FigureSpec,
    experiment: &Experiment,
    results: &[PointResult],
    references: &References,
) -> Result<Panel, LookupError> {
    let axis = |metric: &str, log: bool| {
        let (name, unit) = if metric == "axis" {
            (experiment.axis.heading(), experiment.axis.unit.clone())
        } else {
            (quantity(metric), unit_of(metric).to_owned())
        };
        let axis = if log {
            FigureAxis::log10(name, unit)
        } else {
            FigureAxis::linear(name, unit)
        };
        match metric {
            "axis" => axis.with_labels(experiment.axis.labels(log)),
            _ => axis,
        }
    };
    let mut panel = Panel::new(
        &spec.title,
        axis(&spec.x, spec.log_x),
        axis(&spec.y, spec.log_y),
    );
    for series in &experiment.series {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for result in results.iter().filter(|result| result.series == series.name) {
            let Some(job) = drawn(experiment, spec, result) else {
                continue;
            };
            let label = point_label(&experiment.axis, &result.x);
            let of_ours = |metric: &str| {
                if metric == "axis" {
                    Some(result.x.number)
                } else {
                    job.metrics.get(metric)
                }
            };
            if let (Some(x), Some(y)) = (of_ours(&spec.x), of_ours(&spec.y)) {
                let band = job.statistics(&spec.y).and_then(Statistics::interval);
                let point = FigurePoint::new(x, y).label(label.clone());
                ours.push(FigurePoint { band, ..point });
            }
            let of_theirs = |metric: &str| -> Result<_, LookupError> {
                if metric == "axis" {
                    return Ok(Some(result.x.number));
                }
                let published = references.value(series, &job.name, &result.x, metric)?;
                Ok(published.map(|published| published.value))
            };
            if let (Some(x), Some(y)) = (of_theirs(&spec.x)?, of_theirs(&spec.y)?) {
                theirs.push(FigurePoint::new(x, y).label(label));
            }
        }
        panel = panel.series(Series::new(&series.name).ours(ours).published(theirs));
    }
    Ok(panel)
}

/// The job of a figure in a result. A series that does not run it runs the same
/// under another name, alone: whichever is compared.
fn drawn<'r>(
    experiment: &Experiment,
    spec: &FigureSpec,
    result: &'r PointResult,
) -> Option<&'r JobMeasured> {
    let compared = experiment.compare.iter().map(|compare| &compare.job);
    std::iter::once(&spec.job)
        .chain(compared)
        .find_map(|name| result.jobs.iter().find(|job| job.name == *name))
}

/// Percentiles from a share on, over latency: a curve for each point.
fn percentiles(
    experiment: &Experiment,
    spec: &FigureSpec,
    results: &[PointResult],
    from_ppm: u32,
) -> Panel {
    let from = f64::from(from_ppm) / 1e4;
    let latency = if spec.log_x {
        FigureAxis::log10("latency", "ms")
    } else {
        FigureAxis::linear("latency", "ms")
    };
    let percent = FigureAxis::linear("operations that are as fast", "%").spanning(from, 100.0);
    let mut panel = Panel::new(format!("from P{from}"), latency, percent);
    for result in results {
        let Some(job) = drawn(experiment, spec, result) else {
            continue;
        };
        let whole = job.metrics.get("lat_max_us").map(|us| (100.0, us / 1e3));
        let kept = quantiles().into_iter().zip(&job.detail.latencies);
        let kept = kept.map(|(percent, latency)| (percent, latency.as_us_f64() / 1e3));
        let points = kept.chain(whole).filter(|(percent, _)| *percent >= from);
        let points = points.map(|(percent, ms)| {
            let label = format!("P{}", significant(percent));
            FigurePoint::new(ms, percent).label(label)
        });
        let name = match experiment.axis.values.len() {
            0 | 1 => result.series.clone(),
            _ => format!(
                "{}, {}",
                result.series,
                point_label(&experiment.axis, &result.x)
            ),
        };
        panel = panel.series(Series::new(name).ours(points));
    }
    panel
}

/// A metric in words.
fn quantity(metric: &str) -> String {
    if let Some(percent) = percentile_of(metric) {
        return format!("P{percent} latency");
    }
    match metric {
        "kiops" | "kiops_by_count" | "mib_s" | "ops_s" => "throughput".to_owned(),
        "lat_mean_us" => "mean latency".to_owned(),
        _ => metric.replace('_', " "),
    }
}
