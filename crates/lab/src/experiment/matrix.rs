//! `[matrix]`: every operation beside every other, as series.
//!
//! A matrix lists operations of two kinds. Each is a job like those of
//! `[[job]]`, with zones of its own. The *foreground* is what is measured, the
//! *background* what disturbs it. From them come one series for each foreground
//! operation alone, one for each pair (a cell), and the interference of each
//! cell with the former.

use zonelab_config::{Item, Reported, Table, nearest};
use zonelab_device::Nanos;

use super::read::{JobReader, LONGEST, axis_text, tables, text, throughput, time, zone_range};
use super::{FtlTemplate, Interference, JobTemplate, SeriesSpec};

/// The window that is recorded to explain a cell, if the file does not say.
const EXPLAIN_FOR: Nanos = Nanos::from_ms(500);

/// A matrix of interference.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSpec {
    /// Operations that are measured: the rows, by name.
    pub foreground: Vec<String>,
    /// Operations that disturb: the columns, by name.
    pub background: Vec<String>,
    /// Weight of throughput; that of latency is what is left to 1.
    pub alpha: f64,
    /// The metric that is its throughput.
    pub throughput: &'static str,
    /// How cells are explained.
    pub explain: ExplainSpec,
    /// Cells that are left out, as `(foreground, background)`.
    pub skipped: Vec<(String, String)>,
}

/// What is recorded of a cell to explain it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainSpec {
    /// The axis value; `None`: the last one of each foreground operation.
    pub at: Option<String>,
    /// From when on, in simulated time.
    pub from: Nanos,
    /// For how long.
    pub length: Nanos,
}

impl MatrixSpec {
    /// Name of the series of a cell.
    #[must_use]
    pub fn cell(foreground: &str, background: &str) -> String {
        format!("{background} on {foreground}")
    }

    /// Name of the series of a foreground operation without interference.
    #[must_use]
    pub fn alone(foreground: &str) -> String {
        format!("{foreground} alone")
    }

    /// Name of the job of a background operation: the foreground may have one
    /// of the same name.
    #[must_use]
    pub fn background_job(background: &str) -> String {
        format!("{background} (background)")
    }

    /// The foreground operation, by its place, that a series has alone; `None`
    /// for every other series.
    pub(super) fn alone_in(&self, series: &str) -> Option<usize> {
        let is_it = |name: &String| Self::alone(name) == series;
        self.foreground.iter().position(is_it)
    }

    /// Whether a series is a cell of the matrix.
    pub(super) fn is_cell(&self, series: &str) -> bool {
        let of = |front: &String| {
            let mut beside = self.background.iter();
            beside.any(|back| Self::cell(front, back) == series)
        };
        self.foreground.iter().any(of)
    }

    /// Whether the file leaves a cell out.
    #[must_use]
    pub fn skips(&self, foreground: &str, background: &str) -> bool {
        let is_it = |(f, b): &(String, String)| f == foreground && b == background;
        self.skipped.iter().any(is_it)
    }
}

/// A matrix, and what it stands for.
pub(super) struct Expanded {
    pub(super) spec: MatrixSpec,
    pub(super) jobs: Vec<JobTemplate>,
    pub(super) series: Vec<SeriesSpec>,
    pub(super) interference: Vec<Interference>,
}

/// An operation: a job, and what it needs.
struct Operation {
    job: JobTemplate,
    /// Axis values at which it is measured; empty: all.
    levels: Vec<String>,
    full_zones: Vec<std::ops::Range<u32>>,
}

/// What a file says of one cell.
struct Cell {
    foreground: String,
    background: String,
    published: Option<f64>,
    informative: Option<String>,
    counted_in: Option<String>,
    skip: bool,
}

/// The matrix of a file, if it has one. Without the axis value, of jobs only
/// the names are read.
pub(super) fn matrix(table: &Table<'_>, jobs: JobReader<'_>) -> Result<Option<Expanded>, Reported> {
    if !table.is_present() {
        return Ok(None);
    }
    let alpha = table.percent_ppm("alpha").within(0..=1_000_000).or(500_000);
    let throughput = throughput(table);
    let at = table.get("explain_at", axis_text).optional();
    let from = time(table, "explain_from", LONGEST).or(0);
    let length = table.get("explain_for", window).or(EXPLAIN_FOR.0);
    let foreground = operations(table, "foreground", |table| {
        let levels = table.list("levels", axis_text).or(Vec::new());
        let operation = operation(table, jobs);
        Ok(Operation {
            levels: levels?,
            ..operation?
        })
    });
    let background = operations(table, "background", |table| operation(table, jobs));
    let cells = tables(table, "cell", cell);
    let (foreground, background, cells) = (foreground?, background?, cells?);
    let names =
        |list: &[Operation]| -> Vec<String> { list.iter().map(|of| of.job.name.clone()).collect() };
    let spec = MatrixSpec {
        foreground: names(&foreground),
        background: names(&background),
        alpha: f64::from(alpha?) / 1e6,
        throughput: throughput?,
        explain: ExplainSpec {
            at: at?,
            from: Nanos(from?),
            length: Nanos(length?),
        },
        skipped: cells
            .iter()
            .filter(|cell| cell.skip)
            .map(|cell| (cell.foreground.clone(), cell.background.clone()))
            .collect(),
    };
    check_cells(table, &spec, &cells)?;
    Ok(Some(expand(spec, &foreground, &background, &cells)))
}

/// The operations of one side, which have different names.
fn operations(
    table: &Table<'_>,
    key: &str,
    read: impl Fn(&Table<'_>) -> Result<Operation, Reported>,
) -> Result<Vec<Operation>, Reported> {
    let operations = tables(table, key, read)?;
    if operations.is_empty() {
        table
            .list(key, text)
            .required_or("name at least one operation")?;
    }
    for (index, one) in operations.iter().enumerate() {
        let is_same = |other: &Operation| other.job.name == one.job.name;
        if operations[..index].iter().any(is_same) {
            let name = &one.job.name;
            return Err(report(
                table,
                key,
                format!("\"{name}\" is there already"),
                "names must differ",
            ));
        }
    }
    Ok(operations)
}

/// Reports a problem of a key that is there.
fn report(table: &Table<'_>, key: &str, what: String, valid: &str) -> Reported {
    let refused = table.get(key, |item: &Item<'_>| {
        Err::<(), _>(item.fail(what.clone(), valid.to_owned()))
    });
    refused
        .optional()
        .err()
        .unwrap_or_else(|| unreachable!("the key was read before"))
}

/// The time that is recorded to explain a cell.
fn window(item: &Item<'_>) -> Result<u64, Reported> {
    let (most, text) = LONGEST;
    match item.duration_ns()? {
        0 => Err(item.fail(
            "nothing is recorded in no time".to_owned(),
            "more than 0s".to_owned(),
        )),
        ns if ns <= most => Ok(ns),
        _ => Err(item.fail("this is too long a time", format!("at most {text}"))),
    }
}

/// An M^Inter: a mean of distances.
fn m_inter(item: &Item<'_>) -> Result<f64, Reported> {
    let value = item.f64()?;
    if (0.0..1e6).contains(&value) {
        Ok(value)
    } else {
        Err(item.fail(
            format!("{value} is no M^Inter"),
            "a number from 0, which is no interference".to_owned(),
        ))
    }
}

/// What an operation of either side says.
fn operation(table: &Table<'_>, jobs: JobReader<'_>) -> Result<Operation, Reported> {
    let full_zones = table.get("full_zones", zone_range).optional();
    let job = jobs.job(table);
    Ok(Operation {
        levels: Vec::new(),
        full_zones: full_zones?.into_iter().collect(),
        job: job?,
    })
}

fn cell(table: &Table<'_>) -> Result<Cell, Reported> {
    let foreground = table.string("foreground").required();
    let background = table.string("background").required();
    let published = table.get("published", m_inter).optional();
    let informative = table.string("informative").optional();
    let counted_in = table.string("counted_in").optional();
    let skip = table.bool("skip").or(false);
    Ok(Cell {
        foreground: foreground?,
        background: background?,
        published: published?,
        informative: informative?,
        counted_in: counted_in?,
        skip: skip?,
    })
}

/// What is said of cells is said of cells that exist, once.
fn check_cells(table: &Table<'_>, spec: &MatrixSpec, cells: &[Cell]) -> Result<(), Reported> {
    for (index, cell) in cells.iter().enumerate() {
        for (name, known) in [
            (&cell.foreground, &spec.foreground),
            (&cell.background, &spec.background),
        ] {
            if !known.contains(name) {
                let near = nearest(name, known.iter().map(String::as_str));
                let valid = match near {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("choose one of: {}", known.join(", ")),
                };
                return Err(report(
                    table,
                    "cell",
                    format!("there is no \"{name}\""),
                    &valid,
                ));
            }
        }
        let is_same = |other: &Cell| {
            other.foreground == cell.foreground && other.background == cell.background
        };
        if cells[..index].iter().any(is_same) {
            let name = MatrixSpec::cell(&cell.foreground, &cell.background);
            return Err(report(
                table,
                "cell",
                format!("\"{name}\" is there already"),
                "say it once",
            ));
        }
    }
    Ok(())
}

fn expand(
    spec: MatrixSpec,
    foreground: &[Operation],
    background: &[Operation],
    cells: &[Cell],
) -> Expanded {
    let mut jobs: Vec<JobTemplate> = foreground.iter().map(|of| of.job.clone()).collect();
    jobs.extend(background.iter().map(|of| JobTemplate {
        name: MatrixSpec::background_job(&of.job.name),
        ..of.job.clone()
    }));
    let mut series = Vec::new();
    let mut interference = Vec::new();
    for front in foreground {
        let name = &front.job.name;
        series.push(side_by_side(MatrixSpec::alone(name), front, None));
        for back in background {
            let beside = &back.job.name;
            if spec.skips(name, beside) {
                continue;
            }
            let cell = MatrixSpec::cell(name, beside);
            let said = cells
                .iter()
                .find(|of| of.foreground == *name && of.background == *beside);
            interference.push(Interference {
                series: cell.clone(),
                isolated: MatrixSpec::alone(name),
                job: name.clone(),
                isolated_job: name.clone(),
                alpha: spec.alpha,
                throughput: spec.throughput.to_owned(),
                published: said.and_then(|said| said.published),
                informative: said.and_then(|said| said.informative.clone()),
                counted_in: said.and_then(|said| said.counted_in.clone()),
            });
            series.push(side_by_side(cell, front, Some(back)));
        }
    }
    Expanded {
        spec,
        jobs,
        series,
        interference,
    }
}

/// A series of a foreground operation, alone or beside another.
fn side_by_side(name: String, front: &Operation, back: Option<&Operation>) -> SeriesSpec {
    let mut jobs = vec![front.job.name.clone()];
    let mut full_zones = front.full_zones.clone();
    if let Some(back) = back {
        jobs.push(MatrixSpec::background_job(&back.job.name));
        full_zones.extend(back.full_zones.iter().cloned());
    }
    SeriesSpec {
        place: 0,
        combination: 0,
        name,
        drive: Vec::new(),
        scheduler: None,
        via: None,
        ftl: FtlTemplate::default(),
        phases: vec![jobs],
        full_zones,
        x: front.levels.clone(),
        published: Vec::new(),
        points: Vec::new(),
    }
}
