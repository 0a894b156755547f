//! What a sweep is about, for programs and for a terminal.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zonelab_host::stats::OpKind;
use zonelab_lab::idle::{LEAST_SHARE, plural, why};
use zonelab_lab::library;
use zonelab_lab::metrics::unit_of;
use zonelab_lab::owed;
use zonelab_lab::run::Point;
use zonelab_lab::space::Goal;
use zonelab_lab::table::{self, Cell, Style};

use super::SweepError;
use super::dataset::{self, Column};
use super::front::{Aim, Standing, mean, standings};
use super::pack::{JobRun, Kind, Line, Pack, Status, why_failed};
use super::page::METRICS;

/// Version of `sweep.json`.
const SCHEMA: u32 = 1;
/// Failures that are told one by one.
const FAILURES: usize = 20;
/// Rows of a table of measurements, if not all are asked for.
const ROWS_SHOWN: usize = 40;

/// `sweep.json`: the sweep without its data.
///
/// # Errors
/// It is no JSON, which cannot be.
pub(super) fn json(
    pack: &Pack,
    lines: &[Line],
    table: &dataset::Table,
    (aims, standings): &(Vec<Aim>, Vec<Standing>),
) -> Result<String, SweepError> {
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "unit": column.unit,
            "type": column.values.type_name(),
            "what": column.what,
        })
    };
    let failed = lines.iter().filter(|line| line.status == Status::Failed);
    let failures: Vec<Value> = failed
        .clone()
        .take(FAILURES)
        .map(|line| json!({ "task": line.index, "why": why_failed(line) }))
        .collect();
    let (id, axis) = pack.names();
    let mut value = json!({
        "schema": SCHEMA,
        "name": pack.name,
        "title": pack.title,
        "zonelab_version": pack.inputs.version,
        "experiment": id,
        "experiment_file": pack.experiment,
        "settings": pack.inputs.settings,
        "quick": pack.inputs.quick,
        "axis": axis,
        "seed": pack.inputs.seed,
        "repeats": pack.inputs.repeats,
        "sample": pack.sample,
        "digest": pack.digest(),
        "keys": pack.keys,
        "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
        "rows": table.rows,
        "tasks": pack.len(),
        "failed_tasks": failed.count(),
        "failures": failures,
        "objectives": aims,
        "points": standings,
    });
    let warnings = warnings(pack, lines);
    if !warnings.is_empty() {
        value["warnings"] = json!(warnings);
    }
    let mut text = serde_json::to_string_pretty(&value).map_err(SweepError::Pack)?;
    text.push('\n');
    Ok(text)
}

/// Lines for a terminal: how much was run, what failed, and the front or, without objectives,
/// what was measured.
///
/// # Errors
/// The experiment is wrong, which it was not when the sweep was prepared.
pub(super) fn text(
    pack: &Pack,
    lines: &[Line],
    all: bool,
    style: &Style,
) -> Result<String, SweepError> {
    let (aims, standings) = standings(pack, lines)?;
    let failed: Vec<&Line> = lines
        .iter()
        .filter(|line| line.status == Status::Failed)
        .collect();
    let mut text = format!(
        "{}: {} points, {} run{} of {} each ({}, seed {})\n",
        pack.name,
        pack.points.len(),
        pack.inputs.repeats,
        if pack.inputs.repeats == 1 { "" } else { "s" },
        pack.names().0,
        pack.sample.name(),
        pack.inputs.seed
    );
    if aims.is_empty() {
        text.push_str(&measured_text(pack, lines, all, style));
    } else {
        text.push_str(&front_text(pack, (&aims, &standings), all, style));
    }
    if let Some(first) = failed.first() {
        text.push_str(&format!(
            "{} of {} tasks failed, the first of them, {}: {}\n",
            failed.len(),
            lines.len(),
            first.index,
            why_failed(first)
        ));
    }
    for warning in warnings(pack, lines) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    Ok(text)
}

/// What a reader of the values must know, in words.
pub(crate) fn warnings(pack: &Pack, lines: &[Line]) -> Vec<String> {
    idle(pack, lines)
        .into_iter()
        .chain(unfinished(lines))
        .chain(alone(lines))
        .chain(said(lines))
        .chain(unjudged(pack))
        .collect()
}

/// Statements of a user's experiment, which are about one setting.
fn unjudged(pack: &Pack) -> Option<String> {
    let is_own = library::text(&pack.experiment).is_none();
    let points = pack.points_of(0).ok().filter(|_| is_own)?;
    let checks = &points.first()?.experiment().checks;
    let first = checks.first()?;
    Some(format!(
        "{} of {} are not judged here, the first of them \"{}\": `zonelab run` judges them, at \
         the settings of a point",
        match checks.len() {
            1 => "1 statement ([[check]])".to_owned(),
            many => format!("{many} statements ([[check]])"),
        },
        pack.experiment,
        first.says
    ))
}

/// Jobs of which there is something to say, and in how many runs.
struct Tally<'a, K> {
    series: &'a str,
    job: &'a str,
    about: K,
    /// Runs of the series of which it is true, and all.
    runs: (u64, u64),
    /// The greatest share.
    most: f64,
}

/// What `of` says of the jobs of all runs, job by job.
fn tally<'a, K: Ord>(
    lines: &'a [Line],
    of: impl Fn(&'a JobRun) -> Option<(K, f64)>,
) -> Vec<Tally<'a, K>> {
    let mut found: BTreeMap<(&str, &str, K), (u64, f64)> = BTreeMap::new();
    let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
    for run in lines.iter().flat_map(|line| &line.runs) {
        *runs.entry(&run.series).or_default() += 1;
        for job in &run.jobs {
            if let Some((about, share)) = of(job) {
                let (count, most) = found.entry((&run.series, &job.name, about)).or_default();
                *count += 1;
                *most = most.max(share);
            }
        }
    }
    let tally =
        |((series, job, about), (count, most)): ((&'a str, &'a str, K), (u64, f64))| Tally {
            series,
            job,
            about,
            runs: (count, runs[series]),
            most,
        };
    found.into_iter().map(tally).collect()
}

impl<K> Tally<'_, K> {
    /// `what` of it.
    fn sentence(&self, what: &str) -> String {
        let (Self { series, job, .. }, (count, all)) = (self, self.runs);
        format!("series \"{series}\", job \"{job}\": in {count} of {all} runs {what}")
    }
}

/// Jobs of which more than a few operations did nothing, and in how many runs.
fn idle(pack: &Pack, lines: &[Line]) -> Vec<String> {
    let points = pack.inputs.points().unwrap_or_default();
    let experiment = points.first().map(Point::experiment);
    let is_meant = |name: &str| {
        let job = experiment.and_then(|of| of.job_of_result(name));
        job.is_some_and(|job| job.finds_nothing)
    };
    let idle = tally(lines, |job| {
        let share = job.metrics.get("nothing_share").copied()?;
        (share > LEAST_SHARE && !is_meant(&job.name)).then_some((job.operation.as_str(), share))
    });
    let sentence = |of: &Tally<'_, &str>| {
        let mut kinds = OpKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == of.about)?;
        let (operations, most, why) = (plural(kind), of.most * 100.0, why(kind));
        let what = format!("up to {most:.1} % of the {operations} did nothing: {why}");
        Some(of.sentence(&what))
    };
    idle.iter().filter_map(sentence).collect()
}

/// Jobs that completed nothing though none of their operations failed, and drives that put work
/// off until after the run.
fn unfinished(lines: &[Line]) -> Vec<String> {
    let nothing = tally(lines, |job| {
        let is_empty = job.error.is_none() && job.metrics.get("ops").is_none_or(|ops| *ops <= 0.0);
        is_empty.then_some(((), 0.0))
    });
    let nothing = nothing
        .iter()
        .map(|of| of.sentence("it completed nothing while it was measured"));
    let owed = tally(lines, |job| {
        let share = job.metrics.get("owed_share").copied()?;
        (share > owed::LEAST_SHARE).then_some(((), share))
    });
    // It is the drive's, whichever job is asked.
    let mut series = BTreeMap::new();
    owed.iter().for_each(|of| {
        series.entry(of.series).or_insert(of);
    });
    let owed = series.into_values().map(|of| {
        let ((count, all), series) = (of.runs, of.series);
        format!(
            "series \"{series}\": in {count} of {all} runs the drive still owed die time at the end, \
             up to {:.0} % of what its dies had to do (`owed_share`), which is in no latency",
            of.most * 100.0
        )
    });
    nothing.chain(owed).collect()
}

/// Jobs that went on when others of their phase had ended, and in how many runs.
fn alone(lines: &[Line]) -> Vec<String> {
    let alone = tally(lines, |job| {
        let (share, others) = job.alone.as_ref()?;
        Some((others.as_slice(), *share))
    });
    let sentence = |of: &Tally<'_, &[String]>| {
        let others: Vec<String> = of.about.iter().map(|of| format!("\"{of}\"")).collect();
        let (most, others) = (of.most * 100.0, others.join(", "));
        of.sentence(&format!(
            "up to the last {most:.1} % of its time were without {others}, which had ended"
        ))
    };
    alone.iter().map(sentence).collect()
}

/// What else has to be said of jobs, in how many runs: the words of the run with the most of it.
fn said(lines: &[Line]) -> Vec<String> {
    let mut all: BTreeMap<(&str, &str, &str), (u64, f64, &str)> = BTreeMap::new();
    let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
    for run in lines.iter().flat_map(|line| &line.runs) {
        *runs.entry(&run.series).or_default() += 1;
        for job in &run.jobs {
            for (about, size, text) in &job.said {
                let place = (&*run.series, &*job.name, &**about);
                let (count, most, words) = all.entry(place).or_insert((0, f64::MIN, text));
                *count += 1;
                if size > most {
                    (*most, *words) = (*size, text);
                }
            }
        }
    }
    let sentence =
        |((series, job, _), (count, _, text)): (&(&str, &str, &str), &(u64, f64, &str))| {
            let most = if *count > 1 { "the most: " } else { "" };
            let all = runs.get(series).copied().unwrap_or_default();
            format!("series \"{series}\", job \"{job}\": in {count} of {all} runs, {most}{text}")
        };
    all.iter().map(sentence).collect()
}

/// The columns of the keys of a sweep.
fn key_columns(pack: &Pack) -> impl Iterator<Item = table::Column> {
    pack.keys.iter().map(|key| match key.kind {
        Kind::Integer | Kind::Float => table::Column::number(&key.name),
        Kind::Bool | Kind::Text => table::Column::word(&key.name),
    })
}

/// What each job measured at each point, as means over the repeats: the metrics that the sweep
/// asks for.
fn measured_text(pack: &Pack, lines: &[Line], all: bool, style: &Style) -> String {
    let metrics: Vec<&str> = match pack.metrics.as_slice() {
        [] => METRICS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let mut columns: Vec<_> = key_columns(pack).collect();
    columns.push(table::Column::text("series"));
    columns.push(table::Column::number(&pack.names().1));
    columns.push(table::Column::text("job"));
    columns.extend(metrics.iter().map(|name| table::Column::number(name)));
    type Place<'a> = (usize, &'a str, &'a str, &'a str);
    let mut places: Vec<Place<'_>> = Vec::new();
    let mut found: BTreeMap<Place<'_>, Vec<&JobRun>> = BTreeMap::new();
    for line in lines {
        let Some(task) = pack.task(line.index) else {
            continue;
        };
        for (run, job) in line.jobs() {
            let place = (task.point, &*run.series, &*run.x, &*job.name);
            let of_place = found.entry(place).or_default();
            if of_place.is_empty() {
                places.push(place);
            }
            of_place.push(job);
        }
    }
    places.sort_by_key(|(point, ..)| *point);
    let mut shown = table::Table::new(columns);
    let most = if all { usize::MAX } else { ROWS_SHOWN };
    for place in places.iter().take(most) {
        let (point, series, x, job) = *place;
        let keys = 0..pack.keys.len();
        let keys = keys.map(|key| Cell::from(pack.value(point, key).unwrap_or_default()));
        let named = match found[place].iter().any(|job| job.error.is_some()) {
            true => &format!("{job} (failed)"),
            false => job,
        };
        let mut cells: Vec<Cell> = keys.chain([series, x, named].map(Cell::from)).collect();
        for name in &metrics {
            let values = found[place]
                .iter()
                .map(|job| job.metrics.get(*name).copied());
            let text = mean(values).map_or_else(
                || "-".to_owned(),
                |value| table::measured(value, None, unit_of(name)),
            );
            cells.push(Cell::from(text.as_str()));
        }
        shown.push(cells);
    }
    let more = match places.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("and {more} more rows, with --all or in sweep.csv\n"),
    };
    format!("{}{more}", shown.to_text(style))
}

fn front_text(
    pack: &Pack,
    (aims, standings): (&[Aim], &[Standing]),
    all: bool,
    style: &Style,
) -> String {
    let mut columns = vec![table::Column::word("front")];
    columns.extend(key_columns(pack));
    for aim in aims {
        let goal = match aim.goal {
            Goal::Minimize => "min",
            Goal::Maximize => "max",
        };
        columns.push(table::Column::number(&format!("{goal} {}", aim.name)));
    }
    let mut shown: Vec<&Standing> = standings
        .iter()
        .filter(|standing| all || standing.on_front)
        .collect();
    let order = |standing: &Standing| {
        let first = standing.objectives.first().copied().flatten();
        (!standing.on_front, first.unwrap_or(f64::INFINITY))
    };
    shown.sort_by(|a, b| {
        let ((a, first), (b, other)) = (order(a), order(b));
        a.cmp(&b).then(first.total_cmp(&other))
    });
    let mut front = table::Table::new(columns);
    for standing in shown {
        let mut cells = vec![Cell::from(if standing.on_front { "*" } else { "" })];
        cells.extend(
            standing
                .values
                .iter()
                .map(|value| Cell::from(value.as_str())),
        );
        for value in &standing.objectives {
            let text = value.map_or_else(|| "-".to_owned(), table::number);
            cells.push(Cell::from(text.as_str()));
        }
        front.push(cells);
    }
    let on_front = standings
        .iter()
        .filter(|standing| standing.on_front)
        .count();
    format!(
        "{on_front} of {} points on the front\n{}",
        standings.len(),
        front.to_text(style)
    )
}
