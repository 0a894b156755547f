//! Result files: rows, points, figures, the report.

mod exports;

use std::path::Path;
use std::rc::Rc;

use serde_json::{Value, json};
use zonelab_config::Document;
use zonelab_host::stats::Latency;
use zonelab_lab::bundle::{RECIPE, Recipe};
use zonelab_lab::compare;
use zonelab_lab::conditions::JobFailure;
use zonelab_lab::difference::{self, Difference};
use zonelab_lab::experiment::{FtlTemplate, Via};
use zonelab_lab::figure::Width;
use zonelab_lab::output::{Existing, Manifest, Place, ResultDir, file_name};
use zonelab_lab::published::References;
use zonelab_lab::rows::{self, Misfits, Row, Summary, significant};
use zonelab_lab::run::{EndedEarly, PointResult};
use zonelab_lab::session::Gathered;
use zonelab_lab::table;
use zonelab_ssd::profile::to_toml;

use crate::exit::Failure;
use crate::files::ProfileFiles;
use crate::host_state::{self, HostState};
use crate::report::{self, Invocation};
use crate::session::{Finished, Loaded};
use crate::trace;

/// Version of the format of `points.json`.
const POINTS_SCHEMA: u32 = 2;

/// Percentiles of lateness.
const LATENESS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Program and version that wrote the results.
pub(crate) const TOOL: &str = concat!("zonelab ", env!("CARGO_PKG_VERSION"));

/// Where results go, and what they are results of.
pub(crate) struct Destination<'a> {
    pub(crate) place: Place,
    pub(crate) seed: u64,
    pub(crate) force: bool,
    /// All that the results depend on, besides the seed.
    pub(crate) configuration: Value,
    /// Where the only trace goes, if not among the results.
    pub(crate) trace_file: Option<&'a Path>,
    /// Traces are not compressed. Of a file that was named, its name says that.
    pub(crate) uncompressed: bool,
    /// How wide figures are, if not as their experiments say.
    figure_width: Option<Width>,
}

/// What there is to write.
pub(crate) struct Outcome<'a> {
    pub(crate) finished: &'a [Finished],
    pub(crate) rows: &'a [Row],
    /// Differences between series, of all experiments.
    pub(crate) differences: &'a [Difference],
    /// What the rows come to.
    pub(crate) summary: &'a Summary,
    pub(crate) references: &'a References,
    /// The drive of each point of each experiment, as TOML.
    pub(crate) drives: &'a [Vec<Rc<str>>],
    /// The list that marked the rows.
    pub(crate) misfits: &'a Misfits,
    /// The command that was given.
    pub(crate) invocation: &'a Invocation,
    /// What a reader must know first.
    pub(crate) notices: Vec<String>,
    /// Whether every point was run.
    pub(crate) complete: bool,
    /// What failed on the device, after which no point was run.
    pub(crate) lost: Option<&'a str>,
    /// The state of the host that it ran on in real time.
    pub(crate) host: Option<&'a HostState>,
    /// How the same results are made, if they are the same again.
    pub(crate) recipe: Option<(Recipe, Gathered)>,
}

impl<'a> Destination<'a> {
    /// The directory that was named by `--out`, or one below `results/NAME`.
    pub(crate) fn new(
        (out, name): (Option<&Path>, &str),
        (seed, force): (u64, bool),
        configuration: Value,
        (trace_file, uncompressed): (Option<&'a Path>, bool),
    ) -> Self {
        let manifest = Manifest::new(TOOL, configuration.to_string().as_bytes(), seed);
        Self {
            place: Place::new(out, name, &manifest),
            seed,
            force,
            configuration,
            trace_file,
            uncompressed,
            figure_width: None,
        }
    }

    /// The same with figures of another width than their experiments say.
    pub(crate) fn with_figures(self, figure_width: Option<Width>) -> Self {
        Self {
            figure_width,
            ..self
        }
    }
}

impl Destination<'_> {
    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    fn manifest(&self) -> Manifest {
        Manifest::new(TOOL, self.configuration.to_string().as_bytes(), self.seed)
    }

    const fn existing(&self) -> Existing {
        if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        }
    }
}

/// Checks that results can be written, and changes nothing that is there.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn prepare(to: &Destination<'_>) -> Result<(), Failure> {
    ResultDir::check(to.path(), &to.manifest(), to.existing()).map_err(Failure::environment)
}

/// Opens a directory of results in which `kept`, a file that is no result,
/// stays as long as the configuration is the same.
///
/// # Errors
/// The directory holds other results and `force` is not set, or it cannot be
/// written.
pub(crate) fn open_kept(
    path: &Path,
    manifest: Manifest,
    force: bool,
    kept: &str,
) -> Result<ResultDir, Failure> {
    let existing = match ResultDir::check(path, &manifest, Existing::Keep) {
        Ok(()) => Existing::Keep,
        Err(error) if !force => return Err(Failure::environment(error)),
        Err(_) => {
            match std::fs::remove_file(path.join(kept)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::environment(error));
                }
                _ => {}
            }
            Existing::Replace
        }
    };
    ResultDir::create(path, manifest, existing).map_err(Failure::environment)
}

/// Writes files, which are all of the results.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn put_all(to: &Destination<'_>, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let mut dir =
        ResultDir::create(to.path(), to.manifest(), to.existing()).map_err(Failure::environment)?;
    for (name, bytes) in files {
        dir.write(name, bytes).map_err(Failure::environment)?;
    }
    link(&to.place);
    dir.finish().map_err(Failure::environment)
}

/// Lets `latest` lead to results. That it cannot does not keep them from being written: it
/// is said, and that is all.
pub(crate) fn link(place: &Place) {
    if let Err(error) = place.link() {
        tell!("zonelab: warning: {error}");
    }
}

/// The files that say how results are made, with what their command read.
///
/// # Errors
/// There is no current directory.
pub(crate) fn written(
    recipe: &mut Recipe,
    read: Gathered,
) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let here = std::env::current_dir().map_err(Failure::environment)?;
    let mut files = recipe.take(read, &here);
    files.push((RECIPE.to_owned(), recipe.to_json().into_bytes()));
    Ok(files)
}

/// Writes everything that was measured, and gives the names of the figures.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn write(to: &Destination<'_>, outcome: Outcome<'_>) -> Result<Vec<String>, Failure> {
    let Outcome { finished, rows, .. } = outcome;
    let mut dir =
        ResultDir::create(to.path(), to.manifest(), to.existing()).map_err(Failure::environment)?;
    let put = |dir: &mut ResultDir, name: &str, contents: &str| {
        dir.write(name, contents.as_bytes())
            .map_err(Failure::environment)
    };
    if let Some((mut recipe, read)) = outcome.recipe {
        for (name, bytes) in written(&mut recipe, read)? {
            dir.write(&name, &bytes).map_err(Failure::environment)?;
        }
    }
    put(
        &mut dir,
        "rows.json",
        &rows::to_json_with(rows, outcome.summary, to.seed, outcome.differences),
    )?;
    put(&mut dir, "summary.md", &table::markdown(outcome.summary))?;
    put(&mut dir, "rows.csv", &rows::to_csv(rows))?;
    put(
        &mut dir,
        "points.json",
        &points_json(finished, to, outcome.lost),
    )?;
    put(&mut dir, "points.csv", &exports::points_csv(finished))?;
    if let Some(csv) = exports::repeats_csv(finished, to.seed) {
        put(&mut dir, "repeats.csv", &csv)?;
    }
    if let Some(host) = outcome.host {
        put(&mut dir, host_state::FILE, &host.to_json())?;
    }
    if !outcome.differences.is_empty() {
        let csv = difference::to_csv(outcome.differences);
        put(&mut dir, "differences.csv", &csv)?;
    }
    let mut names = Vec::new();
    let mut figures = Vec::new();
    for one in finished {
        let figure = compare::figure(&one.experiment, &one.results, outcome.references);
        let figure = figure.map_err(Failure::input)?;
        let width = to.figure_width.or(one.experiment.figure_width());
        let figure = figure.map(|figure| figure.wide(width));
        if let Some(figure) = &figure {
            let name = format!("{}.svg", file_name(&one.experiment.id));
            put(&mut dir, &name, &figure.to_svg())?;
            names.push(name);
        }
        figures.push(figure);
        if let Some(matrix) = &one.matrix {
            let name = file_name(&one.experiment.id);
            put(&mut dir, &format!("{name}-matrix.json"), &matrix.to_json())?;
            put(&mut dir, &format!("{name}-matrix.csv"), &matrix.to_csv())?;
            let svg = format!("{name}-matrix.svg");
            put(&mut dir, &svg, &matrix.heat_map().wide(width).to_svg())?;
            names.push(svg);
        }
    }
    trace::write(finished, (to.trace_file, to.uncompressed), |name, bytes| {
        dir.write(name, bytes).map_err(Failure::environment)?;
        Ok(to.path().join(name))
    })?;
    let parts = report::Parts {
        tool: TOOL,
        invocation: outcome.invocation,
        rows,
        summary: outcome.summary,
        misfits: outcome.misfits,
        notices: outcome.notices,
        drives: outcome.drives,
    };
    put(
        &mut dir,
        report::FILE,
        &report::html(parts, finished, &figures),
    )?;
    if outcome.complete {
        dir.finish().map_err(Failure::environment)?;
    }
    link(&to.place);
    Ok(names)
}

/// What results depend on, resolved.
pub(crate) struct Configuration {
    /// As data, for results: each experiment's file with its settings changed,
    /// and the drives that its points run on.
    pub(crate) value: Value,
    /// The drive of each point of each experiment, as TOML.
    pub(crate) drives: Vec<Vec<Rc<str>>>,
}

/// What the results of experiments depend on. Jobs and hosts are those of the
/// experiment files; a drive stands there once for all points that run on it. A device
/// from outside is said by `device`, and then no point has a drive of its own.
///
/// # Errors
/// A drive's profile is wrong.
pub(crate) fn configuration(
    loaded: &[Loaded],
    profiles: &ProfileFiles<'_>,
    device: Option<Rc<str>>,
) -> Result<Configuration, Failure> {
    let mut experiments = Vec::new();
    let mut drives = Vec::new();
    for one in loaded {
        let mut texts: Vec<Rc<str>> = Vec::new();
        let mut of_points = Vec::new();
        let mut points = Vec::new();
        for point in &one.points {
            let text = match &device {
                Some(device) => Rc::clone(device),
                None => {
                    let profile = point.drive(profiles).map_err(Failure::input)?;
                    to_toml(&profile.config).into()
                }
            };
            let known = texts.iter().position(|known| **known == *text);
            let drive = known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            of_points.push(texts[drive].clone());
            let mut entry = json!({
                "series": point.series(),
                "x": significant(point.x().number),
                "x_label": point.x().text,
                "drive": drive,
            });
            // Of a device from outside it says nothing.
            if device.is_none() && point.via() != Via::Direct {
                entry["via"] = json!(point.via().name());
            }
            if let Some(ftl) = point.ftl().filter(|_| device.is_none()) {
                entry["ftl"] = settings_of(&ftl);
            }
            points.push(entry);
        }
        let as_data = texts.iter().map(|text| drive_data(text));
        let mut entry = json!({
            "id": one.experiment.id,
            "file": one.resolved,
            "drives": as_data.collect::<Result<Vec<_>, _>>()?,
            "points": points,
        });
        if let Some(reference) = &one.reference {
            entry["reference"] = json!({ "digest": format!("{:016x}", reference.digest) });
        }
        experiments.push(entry);
        drives.push(of_points);
    }
    Ok(Configuration {
        value: Value::Array(experiments),
        drives,
    })
}

/// The settings of the flash translation layer that a file says; the others are the
/// layer's defaults.
fn settings_of(ftl: &FtlTemplate) -> Value {
    let mut settings = serde_json::Map::new();
    for (key, value) in ftl.settings_said() {
        settings.insert(key.to_owned(), value.into());
    }
    settings.into()
}

/// The profile of a drive as data.
///
/// # Errors
/// It is no TOML.
pub(crate) fn drive_data(toml: &str) -> Result<Value, Failure> {
    let document = Document::parse("drive", toml, &[]).map_err(Failure::input)?;
    Ok(document.to_json())
}

fn points_json(finished: &[Finished], to: &Destination<'_>, lost: Option<&str>) -> String {
    let points: Vec<Value> = finished
        .iter()
        .flat_map(|one| {
            one.results
                .iter()
                .map(|result| point_json(&one.experiment.id, result, to.seed))
        })
        .collect();
    let mut value = json!({
        "schema": POINTS_SCHEMA,
        "seed": to.seed,
        "configuration": to.configuration,
        "points": points,
    });
    if let Some(lost) = lost {
        value["lost"] = json!(lost);
    }
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn point_json(experiment: &str, result: &PointResult, seed: u64) -> Value {
    let jobs: Vec<Value> = result
        .jobs
        .iter()
        .map(|job| {
            let values = job.metrics.values.iter();
            let metrics: serde_json::Map<String, Value> = values
                .map(|(name, value)| ((*name).to_owned(), json!(significant(*value))))
                .collect();
            let mut value = json!({
                "name": job.name,
                "kind": job.kind.name(),
                "metrics": metrics,
            });
            exports::add_spread(&mut value, job, seed);
            value
        })
        .collect();
    let mut point = json!({
        "experiment": experiment,
        "series": result.series,
        "x": significant(result.x.number),
        "x_label": result.x.text,
        "jobs": jobs,
    });
    if let Some(drive) = &result.drive {
        let totals = &drive.totals;
        point["drive"] = json!({
            "simulated_ns": result.took.0,
            "host_write_bytes": totals.host_write_bytes,
            "host_read_bytes": totals.host_read_bytes,
            "host_program_bytes": totals.host_program_bytes,
            "fill_program_bytes": totals.fill_program_bytes,
            "dlwa": totals.dlwa().map(significant),
            "erased_blocks": totals.erased_blocks,
            "resets": totals.resets,
            "finishes": totals.finishes,
            "implicit_closes": totals.implicit_closes,
            "channels": drive.resources.0,
            "channel_busy_ns": drive.busy_ns.0,
            "units": drive.resources.1,
            "unit_busy_ns": drive.busy_ns.1,
        });
    }
    if let Some(late) = &result.lateness {
        // Real time takes the place of simulated time.
        if let Some(drive) = point.get_mut("drive").and_then(Value::as_object_mut) {
            drive.remove("simulated_ns");
        }
        point["real"] = json!({
            "elapsed_ns": result.took.0,
            "lateness_ns": lateness(late),
        });
    }
    if !result.ended_early.is_empty() {
        let ended = |ended: &EndedEarly| json!({ "job": ended.job, "why": ended.why });
        point["ended_early"] = result.ended_early.iter().map(ended).collect();
    }
    // Only where there can be any: without faults, a failure ends the run.
    if result.faults_struck > 0 || !result.failures.is_empty() {
        let failure = |failure: &JobFailure| {
            let JobFailure { job, kind, status } = failure;
            json!({ "job": job, "kind": kind.name(), "status": status.to_string() })
        };
        point["faults_struck"] = json!(result.faults_struck);
        point["failures"] = result.failures.iter().map(failure).collect();
    }
    point
}

/// How late the host was, in the shape of fio's latencies.
fn lateness(late: &Latency) -> Value {
    let percentile = |percent: &f64| {
        let value = late.percentile(*percent).unwrap_or_default();
        (format!("{percent:.6}"), json!(value.0))
    };
    let percentiles: serde_json::Map<String, Value> = LATENESS.iter().map(percentile).collect();
    json!({
        "min": late.min().unwrap_or_default().0,
        "max": late.max().unwrap_or_default().0,
        "mean": significant(late.mean_ns().unwrap_or_default()),
        "stddev": significant(late.stddev_ns().unwrap_or_default()),
        "N": late.count(),
        "percentile": percentiles,
    })
}
