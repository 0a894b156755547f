//! The page of a sweep: all of its points, to look through.

use std::collections::BTreeMap;

use zonelab_lab::inputs::VERSION;
use zonelab_lab::metrics;
use zonelab_lab::rows::significant;
use zonelab_lab::space::Goal;
use zonelab_lab::table;
use zonelab_page::sections;

use super::front::{Aim, Standing};
use super::pack::{Line, Pack, Status, why_failed};
use crate::explore::{Column, Explorer, Point, Role, Values, quoted};

/// Metrics that the page and the terminal have of each job if the sweep names none: more would
/// hide them.
pub(super) const METRICS: [&str; 6] = [
    "kiops_by_count",
    "mib_s",
    "ops_s",
    "lat_mean_us",
    "lat_p95_us",
    "lat_p99_us",
];
/// Most columns of metrics.
const COLUMNS_MAX: usize = 60;
/// Most rows of the table for who reads without scripts.
const STILL_ROWS: usize = 100;

/// A value of the axis, as a number and as it is written.
type OfAxis<'a> = (u64, &'a str);

/// The page; it depends on the pack and on what its tasks gave alone.
pub(super) fn html(pack: &Pack, lines: &[Line], aims: &[Aim], standings: &[Standing]) -> String {
    let mut columns = inputs(pack);
    columns.extend(aims.iter().enumerate().map(|(place, aim)| {
        let values = standings.iter();
        let values = values.map(|of| of.objectives.get(place).copied().flatten());
        measured(&aim.name, &aim.unit, Role::Objective(aim.goal), values)
    }));
    let (metrics, left_out) = metrics(pack, lines);
    columns.extend(metrics);
    let mut notices = Vec::new();
    let failed = lines.iter().filter(|line| line.status == Status::Failed);
    let failed = failed.count();
    if failed > 0 {
        notices.push(format!("{failed} of {} runs failed.", lines.len()));
    }
    if left_out > 0 {
        notices.push(format!(
            "{left_out} columns of metrics are left out here: `metrics` of the sweep file says \
             which there are, and the data set has all."
        ));
    }
    let (before, after) = command(pack);
    let title = if pack.title.is_empty() {
        &pack.name
    } else {
        &pack.title
    };
    let page = Explorer {
        kind: "Sweep",
        title,
        tool: &format!("zonelab {VERSION}"),
        seed: pack.inputs.seed,
        command: "",
        command_of_point: (&before, &after),
        command_note: "In the directory of the sweep file: it runs every series of the experiment \
                       with these settings and the same seeds.",
        files_note: "The same numbers, run by run, are in sweep.csv and sweep.jsonl, beside \
                     this page.",
        notices: &notices,
        columns: &columns,
        points: &points(pack, lines),
        still: &still(pack, aims, standings),
    };
    page.to_html()
}

/// What differs from point to point.
fn inputs(pack: &Pack) -> Vec<Column> {
    let column = |(place, key): (usize, &super::Key)| {
        let points = 0..pack.points.len();
        let texts: Vec<Option<&str>> = points.map(|point| pack.value(point, place)).collect();
        let (values, unit) = Values::of_texts(&texts);
        Column {
            name: key.name.clone(),
            unit,
            role: Role::Input,
            values,
        }
    };
    pack.keys.iter().enumerate().map(column).collect()
}

/// A column of what was measured. Latencies are shown in the unit that fits each of them.
fn measured(
    name: &str,
    unit: &str,
    role: Role,
    values: impl Iterator<Item = Option<f64>>,
) -> Column {
    let (unit, scale) = match unit {
        "us" => ("ns", 1e3),
        other => (other, 1.0),
    };
    Column {
        name: name.to_owned(),
        unit: unit.to_owned(),
        role,
        values: Values::Numbers(values.map(|value| value.map(|v| v * scale)).collect()),
    }
}

/// Metrics of each job of each series at each value of the axis: means over the repeats. Also
/// the number of those that the page has no room for.
fn metrics(pack: &Pack, lines: &[Line]) -> (Vec<Column>, usize) {
    let is_wanted = |metric: &str| match pack.metrics.as_slice() {
        [] => METRICS.contains(&metric),
        named => named.iter().any(|known| known == metric),
    };
    let several = {
        let mut values = lines.iter().flat_map(|line| &line.runs).map(|run| &run.x);
        let first = values.next();
        values.any(|x| Some(x) != first)
    };
    let axis = pack.names().1;
    // Where each column stands, and sums with counts for each point.
    let mut places: BTreeMap<(&str, OfAxis<'_>, &str, &str), usize> = BTreeMap::new();
    let mut names: Vec<(String, &'static str)> = Vec::new();
    let mut sums: Vec<Vec<(f64, u32)>> = Vec::new();
    for line in lines {
        let Some(task) = pack.task(line.index) else {
            continue;
        };
        for (run, job) in line.jobs() {
            for (metric, value) in job.metrics.iter().filter(|(metric, _)| is_wanted(metric)) {
                // In the order of their numbers, of which none is negative.
                let x = (run.x_number.to_bits(), &*run.x);
                let key = (&*run.series, x, &*job.name, &**metric);
                let place = *places.entry(key).or_insert_with(|| {
                    let at = match several {
                        true => format!(" at {axis} {}", run.x),
                        false => String::new(),
                    };
                    let name = format!("{}/{}/{metric}{at}", run.series, job.name);
                    names.push((name, metrics::unit_of(metric)));
                    sums.push(vec![(0.0, 0); pack.points.len()]);
                    names.len() - 1
                });
                let (sum, count) = &mut sums[place][task.point];
                *sum += value;
                *count += 1;
            }
        }
    }
    // What no point has but some is not left to chance: by series, axis, job and metric.
    let mean =
        |(sum, count): &(f64, u32)| (*count > 0).then(|| significant(sum / f64::from(*count)));
    let shown = places.values().take(COLUMNS_MAX).map(|&place| {
        let (name, unit) = &names[place];
        measured(name, unit, Role::Metric, sums[place].iter().map(mean))
    });
    let shown: Vec<Column> = shown.collect();
    let left_out = places.len() - shown.len();
    (shown, left_out)
}

/// The command that runs a point: what stands before its own settings, and after them.
fn command(pack: &Pack) -> (String, String) {
    let mut before = vec![
        "zonelab".to_owned(),
        "run".to_owned(),
        pack.experiment.clone(),
    ];
    before.extend(pack.inputs.quick.then(|| "--quick".to_owned()));
    for setting in &pack.inputs.settings {
        before.extend(["--set".to_owned(), setting.clone()]);
    }
    let before: Vec<String> = before.iter().map(|word| quoted(word)).collect();
    let repeats = match pack.inputs.repeats {
        1 => String::new(),
        repeats => format!("--repeats {repeats} "),
    };
    (
        before.join(" "),
        format!("{repeats}--seed {}", pack.inputs.seed),
    )
}

/// Of each point, its settings and what failed.
fn points(pack: &Pack, lines: &[Line]) -> Vec<Point> {
    let mut failed: Vec<Vec<&Line>> = vec![Vec::new(); pack.points.len()];
    for line in lines.iter().filter(|line| line.status == Status::Failed) {
        if let Some(task) = pack.task(line.index) {
            failed[task.point].push(line);
        }
    }
    let point = |(place, failed): (usize, &Vec<&Line>)| {
        let settings = pack.settings_of(place);
        let settings = settings.iter().map(|set| format!("--set {}", quoted(set)));
        let note = failed.first().map(|first| {
            let of = pack.inputs.repeats;
            format!(
                "{} of {of} runs failed: {}",
                failed.len(),
                why_failed(first)
            )
        });
        Point {
            command: settings.collect::<Vec<_>>().join(" "),
            note: note.unwrap_or_default(),
        }
    };
    failed.iter().enumerate().map(point).collect()
}

/// The front, or without objectives the points, for who reads without scripts.
fn still(pack: &Pack, aims: &[Aim], standings: &[Standing]) -> String {
    let keys = pack.keys.iter().map(|key| key.name.clone());
    let goals = aims.iter().map(|aim| match aim.goal {
        Goal::Minimize => format!("min {}", aim.name),
        Goal::Maximize => format!("max {}", aim.name),
    });
    let header: Vec<String> = std::iter::once("point".to_owned())
        .chain(keys)
        .chain(goals)
        .collect();
    let is_shown = |of: &&Standing| aims.is_empty() || of.on_front;
    let rows = standings
        .iter()
        .filter(is_shown)
        .take(STILL_ROWS)
        .map(|of| {
            let number = of.point.to_string();
            let pairs = of.objectives.iter().zip(aims);
            let values = pairs.map(|(value, aim)| {
                value.map_or_else(
                    || "-".to_owned(),
                    |value| table::measured(value, None, &aim.unit),
                )
            });
            std::iter::once(number)
                .chain(of.values.iter().cloned())
                .chain(values)
                .collect()
        });
    sections::table(&header, rows)
}
