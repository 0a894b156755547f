//! Reading experiment files.

use std::ops::Range;

use zonelab_config::{Document, Errors, Field, FileKind, Item, Override, Reported, Table};
use zonelab_device::{NamespaceId, Nanos};
use zonelab_host::workload::{Arrival, Stop};
use zonelab_ssd::config::NamespaceConfig;
use zonelab_ssd::faults::FaultPlan;

use super::axis::{Axes, takes_values};
use super::check::Varies;
use super::ftl::ftl;
use super::host::{StackModel, host, scheduler_template, stack};
use super::pace::{pace, usual_depth};
use super::published::series;
use super::work::work;
use super::{
    AxisValue, CommandSize, Compare, Difference, Experiment, FigureSpec, Informative, Interference,
    JobTemplate, Quick, SeriesSpec, WorkTemplate, Worked,
};
use super::{check, listing, matrix, reference, search, statement};
use crate::figure::{Width, WidthError};

/// Version of the format that this program reads.
const SCHEMA: u32 = 1;

/// Most repeats of a point: each is kept.
const REPEATS_MAX: u32 = 1000;

/// Longest time in a run: far below the 584 years after which time in
/// nanoseconds ends, so that sums of times need no care.
pub(crate) const LONGEST: (u64, &str) = (10_000_000 * 1_000_000_000, "10000000s");

pub(super) fn experiment(
    file: &str,
    text: &str,
    overrides: &[Override],
    at: Option<(&AxisValue, usize)>,
) -> Result<Experiment, Errors> {
    let mut document = Document::parse(file, text, overrides)?;
    document.is_a(FileKind::Experiment)?;
    let is_axis = |key: &str| key == "axis" || key.starts_with("axis.");
    let is_own_axis = !overrides.iter().any(|set| is_axis(&set.key()));
    let axes = match Axes::read(&document) {
        Ok(axes) => axes,
        Err(reported) => {
            // What depends on the axes cannot be read: nothing is said of it.
            let _ = document.root().keys();
            return document.finish(Err(reported));
        }
    };
    let values = match at {
        Some((x, combination)) => axes.put_in(Some(x), combination),
        None => axes.put_in(None, 0),
    };
    let used = document.put_in(&values, &takes_values);
    let value = axes.are_used(&document, &used).and_then(|()| {
        let mut experiment = read_root(&document, axes, at.is_some())?;
        let varies = Varies {
            axis_values: at.is_some() && is_own_axis,
            via: used.iter().any(|at| at.path.ends_with("via")),
            scheduler: used.iter().any(|at| at.path.contains("scheduler")),
        };
        check::names(&document, &experiment, &varies)?;
        reference::put_into(&mut experiment);
        Ok(experiment)
    });
    document.finish(value)
}

fn read_root(document: &Document, axes: Axes, with_jobs: bool) -> Result<Experiment, Reported> {
    let root = document.root();
    let schema = root.u32("schema").within(SCHEMA..=SCHEMA).required();
    let id = root.string("id").required();
    let title = root.string("title").required();
    let names = [("E", "E"), ("D", "D"), ("S", "S")];
    let kind = root.choice("kind", &names).or("S");
    let source = root.string("source").or(String::new());
    let repeats = root.u32("repeats").within(1..=REPEATS_MAX).or(1);
    let profile = root.string("profile").required();
    let drive = root.list("drive", set).or(Vec::new());
    let faults = faults(&root.table("faults"));
    let host = host(&root.table("host"));
    let ftl = ftl(&root.table("ftl"));
    let schedulers = tables(&root, "scheduler", |table| {
        scheduler_template(table, with_jobs)
    });
    // A host that is wrong does not keep the rest from being read.
    let stack = host
        .as_ref()
        .map_or_else(|_| StackModel::default(), |host| host.model.stack);
    let reader = JobReader {
        stack: &stack,
        with_values: with_jobs,
    };
    let jobs = tables(&root, "job", |table| reader.job(table));
    let series = tables(&root, "series", series);
    let reference = reference::reference(&root);
    let compare = tables(&root, "compare", compare);
    let interference = tables(&root, "interference", interference);
    let matrix = matrix::matrix(&root.table("matrix"), reader);
    let differences = tables(&root, "difference", difference);
    let worked = tables(&root, "worked", worked);
    let checks = tables(&root, "check", statement::check);
    let listings = tables(&root, "listing", listing::listing);
    let quick = quick(&root.table("quick"));
    let figures = figures(&root);
    let search = search::search(&root.table("search"));
    schema?;
    let host = host?;
    let (mut jobs, series, mut interference) = (jobs?, series?, interference?);
    let mut series = axes.repeat(in_order(series));
    let matrix = matrix?.map(|expanded| {
        jobs.extend(expanded.jobs);
        series.extend(expanded.series);
        interference.extend(expanded.interference);
        expanded.spec
    });
    Ok(Experiment {
        id: id?,
        title: title?,
        kind: kind?.to_owned(),
        source: source?,
        repeats: repeats?,
        profile: profile?,
        drive: drive?,
        faults: faults?,
        axis: axes.first,
        crossed: axes.crossed,
        host: host.model,
        scheduler: host.scheduler,
        via: host.via,
        ftl: ftl?,
        schedulers: schedulers?,
        jobs,
        series,
        reference: reference?,
        compare: compare?,
        interference,
        differences: differences?,
        matrix,
        worked: worked?,
        checks: checks?,
        listings: listings?,
        quick: quick?,
        figures: figures?,
        search: search?,
    })
}

/// A plan of faults that stands in the experiment.
fn faults(table: &Table<'_>) -> Result<Option<FaultPlan>, Reported> {
    let is_there = table.is_present();
    is_there.then(|| FaultPlan::read(table)).transpose()
}

/// Series with their places in the file.
fn in_order(series: Vec<SeriesSpec>) -> Vec<SeriesSpec> {
    let places = series.into_iter().enumerate();
    places
        .map(|(place, spec)| SeriesSpec { place, ..spec })
        .collect()
}

fn quick(table: &Table<'_>) -> Result<Quick, Reported> {
    let set = table.list("set", set).or(Vec::new());
    let series = table.list("series", text).or(Vec::new());
    let skip = table.string("skip").optional();
    let (set, series, skip) = (set?, series?, skip?);
    Ok(Quick { set, series, skip })
}

/// Reads every table of an array, so that the problems of all are reported.
pub fn tables<'d, T>(
    root: &Table<'d>,
    key: &str,
    read: impl Fn(&Table<'d>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let values: Vec<_> = root.tables(key)?.iter().map(read).collect();
    values.into_iter().collect()
}

pub(super) fn set(item: &Item<'_>) -> Result<Override, Reported> {
    item.setting()
}

/// A text, as it stands in the file.
pub fn text(item: &Item<'_>) -> Result<String, Reported> {
    item.str().map(str::to_owned)
}

/// A value of the axis, as it stands there.
pub(super) fn axis_text(item: &Item<'_>) -> Result<String, Reported> {
    if item.is_integer() {
        return item.u64().map(|n| n.to_string());
    }
    item.bare().map_or_else(|| text(item), Ok)
}

/// A time of at most `most` nanoseconds, as it reads in a file.
pub(crate) fn time<'t, 'd, 'k>(
    table: &'t Table<'d>,
    key: &'k str,
    (most, text): (u64, &str),
) -> Field<'t, 'd, 'k, u64> {
    table.get(key, |item| match item.duration_ns()? {
        ns if ns <= most => Ok(ns),
        _ => Err(item.fail("this is too long a time", format!("at most {text}"))),
    })
}

pub(super) fn zone_range(item: &Item<'_>) -> Result<Range<u32>, Reported> {
    let range = item.range()?;
    let (Ok(first), Ok(last)) = (u32::try_from(*range.start()), u32::try_from(*range.end())) else {
        return Err(item.fail("zones are numbered below 2^32", ""));
    };
    last.checked_add(1)
        .map(|end| first..end)
        .ok_or_else(|| item.fail("zones are numbered below 2^32", ""))
}

/// Reads jobs.
#[derive(Clone, Copy)]
pub(super) struct JobReader<'a> {
    /// The host's stack, which jobs may change for themselves.
    stack: &'a StackModel,
    /// Without, the axis value is still to be put in, and only names are read:
    /// the rest will be, once for each value.
    with_values: bool,
}

impl JobReader<'_> {
    /// A job.
    pub(super) fn job(self, table: &Table<'_>) -> Result<JobTemplate, Reported> {
        job(table, self.stack, self.with_values)
    }
}

/// Words of fio's job files for keys of a job.
const OF_FIO: [(&str, &str); 14] = [
    ("bs", "block"),
    ("blocksize", "block"),
    ("block_size", "block"),
    ("iodepth", "queue_depth"),
    ("depth", "queue_depth"),
    ("qd", "queue_depth"),
    ("numjobs", "threads"),
    ("jobs", "threads"),
    ("rw", "work"),
    ("readwrite", "work"),
    ("size", "bytes"),
    ("rate_iops", "rate_ops"),
    ("ramp_time", "ramp"),
    ("time", "runtime"),
];

fn job(table: &Table<'_>, stack: &StackModel, with_values: bool) -> Result<JobTemplate, Reported> {
    let name = table.string("name").required();
    if !with_values {
        let _ = table.keys();
        return Ok(JobTemplate {
            name: name?,
            ..JobTemplate::nothing()
        });
    }
    let namespace = table.u32("namespace").within(1..=NamespaceConfig::MAX);
    let namespace = namespace.optional().map(|nsid| nsid.map(NamespaceId));
    let says_kv = table.get("work", |item| Ok(item.is_text("kv"))).or(false);
    if says_kv? || table.table("kv").is_present() {
        return kv_job(table, name?, namespace?, stack);
    }
    table.called_elsewhere(&OF_FIO);
    // Blocks are those of a namespace without zones.
    let has_zones = !table.has("blocks");
    let zones = match has_zones {
        true => table.get("zones", zone_range).required(),
        false => table
            .refuse("zones", "either `zones`, or `blocks`")
            .map(|()| 0..0),
    };
    let threads = table.u32("threads").within(1..=4096).or(1);
    let zones_per_thread = match has_zones {
        true => table
            .u32("zones_per_thread")
            .within(1..=u32::MAX)
            .optional(),
        false => Ok(None),
    };
    let pace = pace(table);
    let queue_depth = table.u32("queue_depth").within(1..=65_536);
    let queue_depth = queue_depth.or(usual_depth(&pace));
    let block_bytes = table.size_bytes("block").within(1..=1 << 31).or(4096);
    let ramp = time(table, "ramp", LONGEST).or(0);
    let stop = stop(table);
    let ends_run = table.bool("ends_run").or(false);
    let finds_nothing = table.bool("finds_nothing").or(false);
    let start = time(table, "start", LONGEST).or(0);
    let own_stack = own_stack(&table.table("host"), stack);
    let work = work(table);
    // Of other work it is an unknown key.
    let command = match &work {
        Ok(WorkTemplate::Write { shared: true, .. }) => {
            let why = "threads that share zones send each write in one command";
            table.refuse("command", why).map(|()| None)
        }
        Ok(WorkTemplate::Write { .. }) | Err(_) => command(table),
        Ok(_) => Ok(None),
    };
    let repeat = repeat(table, &work);
    let pace = pace?;
    Ok(JobTemplate {
        name: name?,
        work: work?,
        threads: threads?,
        namespace: namespace?,
        zones: zones?,
        zones_per_thread: zones_per_thread?,
        queue_depth: queue_depth?,
        block_bytes: block_bytes?,
        rate: pace.limit,
        arrival: pace.arrival,
        counting: pace.counting,
        ramp: Nanos(ramp?),
        stop: stop?,
        ends_run: ends_run?,
        finds_nothing: finds_nothing?,
        start: Nanos(start?),
        stack: own_stack?,
        command: command?,
        repeat: repeat?,
    })
}

/// Whether finishes and resets begin again with the first zone.
fn repeat(table: &Table<'_>, work: &Result<WorkTemplate, Reported>) -> Result<bool, Reported> {
    let Ok(
        WorkTemplate::Finish { fill }
        | WorkTemplate::SoftFinish { fill, .. }
        | WorkTemplate::Reset { fill, .. },
    ) = work
    else {
        return Ok(false);
    };
    let repeat = table.bool("repeat").or(false)?;
    if repeat && matches!(work, Ok(WorkTemplate::Reset { .. })) && fill.is_none() {
        let why = "a zone that was reset holds nothing: say `fill`, as in \"100%\"";
        table.refuse("repeat", why)?;
    }
    Ok(repeat)
}

/// The size of the commands that a write is sent in.
fn command(table: &Table<'_>) -> Result<Option<CommandSize>, Reported> {
    let size = |item: &Item<'_>| {
        let (bytes, at) = (item.size_bytes()?, item.problem("", ""));
        Ok(CommandSize { bytes, at })
    };
    table.get("command", size).optional()
}

/// A job that is a key-value workload: its keys are in a table of their own.
fn kv_job(
    table: &Table<'_>,
    name: String,
    namespace: Option<NamespaceId>,
    stack: &StackModel,
) -> Result<JobTemplate, Reported> {
    let work = table.choice("work", &[("kv", ())]).required();
    let zones = table.get("zones", zone_range).optional();
    let ends_run = table.bool("ends_run").or(false);
    let start = time(table, "start", LONGEST).or(0);
    let own_stack = own_stack(&table.table("host"), stack);
    let kv = crate::kv::kv(&table.table("kv"));
    work?;
    let (mut kv, zones) = (kv?, zones?);
    kv.setup.files.namespace = namespace.unwrap_or(NamespaceId::FIRST);
    kv.setup.files.zones.clone_from(&zones);
    Ok(JobTemplate {
        name,
        work: WorkTemplate::Kv(Box::new(kv)),
        namespace,
        zones: zones.unwrap_or_default(),
        ends_run: ends_run?,
        start: Nanos(start?),
        stack: own_stack?,
        ..JobTemplate::nothing()
    })
}

/// The stack of a job that has one of its own.
fn own_stack(table: &Table<'_>, base: &StackModel) -> Result<Option<StackModel>, Reported> {
    if !table.is_present() {
        return Ok(None);
    }
    for key in ["merged", "tick"] {
        let why = "the block layer is the host's: it stands in [host]";
        table.refuse(key, why)?;
    }
    stack(table, base).map(Some)
}

fn stop(table: &Table<'_>) -> Result<Stop, Reported> {
    let runtime = time(table, "runtime", LONGEST).optional();
    let bytes = table.size_bytes("bytes").optional();
    let operations = table.u64("operations").optional();
    let periods = table.u64("periods").within(1..=u64::MAX).optional();
    let confidence = table
        .percent_ppm("confidence")
        .within(1..=1_000_000)
        .optional();
    let sample = time(table, "confidence_sample", LONGEST).within(1..=LONGEST.0);
    let sample = sample.optional();
    let after = time(table, "confidence_after", LONGEST).or(0);
    let (runtime, confidence) = (runtime?, confidence?);
    if confidence.is_none() {
        for key in ["confidence_sample", "confidence_after"] {
            table.refuse(key, "only with `confidence`, which says when to end")?;
        }
    }
    let looks_after = table.get("confidence_after", |item| {
        let after = Nanos(item.duration_ns()?);
        let longest = runtime.map_or(Nanos(u64::MAX), Nanos);
        let valid = || format!("less than `runtime`, {longest}, after which nobody looks");
        match after < longest {
            true => Ok(()),
            false => {
                let what =
                    format!("{after} is not over before the job is: no `confidence` ends it");
                Err(item.fail(what, valid()))
            }
        }
    });
    looks_after.optional()?;
    Ok(Stop {
        runtime: runtime.map(Nanos),
        bytes: bytes?,
        operations: operations?,
        periods: periods?,
        confidence: confidence.map(|ppm| f64::from(ppm) / 1e6),
        confidence_sample: sample?.map(Nanos),
        confidence_after: Nanos(after?),
    })
}

fn compare(table: &Table<'_>) -> Result<Compare, Reported> {
    let id = table.string("id").optional();
    let job = table.string("job").required();
    let metrics = all_metrics(table);
    let informative = tables(table, "informative", |table| {
        let metrics = table.list("metrics", metric).required();
        let series = table.list("series", text).or(Vec::new());
        let x = table.list("x", axis_text).or(Vec::new());
        let input = table.bool("input").or(false);
        let reason = table.string("reason").required();
        Ok(Informative {
            metrics: metrics?,
            series: series?,
            x: x?,
            is_input: input?,
            reason: reason?,
        })
    });
    Ok(Compare {
        id: id?,
        job: job?,
        metrics: metrics?,
        informative: informative?,
    })
}

/// Metrics that are compared, each once.
fn all_metrics(table: &Table<'_>) -> Result<Vec<String>, Reported> {
    let each = |item: &Item<'_>| {
        let mut names: Vec<String> = Vec::new();
        for item in item.items()? {
            let name = metric(&item)?;
            if names.contains(&name) {
                return Err(item.fail(format!("\"{name}\" is there already"), "name it once"));
            }
            names.push(name);
        }
        Ok(names)
    };
    table.get("metrics", each).required()
}

pub(super) fn metric(item: &Item<'_>) -> Result<String, Reported> {
    let names: Vec<(&str, &str)> = crate::metrics::NAMES
        .iter()
        .map(|&(name, _)| (name, name))
        .collect();
    item.choice(&names).map(str::to_owned)
}

/// What counts as throughput in M.
pub(super) fn throughput(table: &Table<'_>) -> Result<&'static str, Reported> {
    let by = ["kiops_by_count", "kiops", "mib_s"].map(|name| (name, name));
    table.choice("throughput", &by).or("kiops_by_count")
}

fn interference(table: &Table<'_>) -> Result<Interference, Reported> {
    let series = table.string("series").required();
    let isolated = table.string("isolated").required();
    let job = table.string("job").required();
    let isolated_job = table.string("isolated_job").optional();
    let alpha = table.percent_ppm("alpha").within(0..=1_000_000).or(500_000);
    let throughput = throughput(table);
    let published = table.get("published", Item::f64).optional();
    let counted_in = table.string("counted_in").optional();
    let job = job?;
    Ok(Interference {
        series: series?,
        isolated: isolated?,
        isolated_job: isolated_job?.unwrap_or_else(|| job.clone()),
        job,
        alpha: f64::from(alpha?) / 1e6,
        throughput: throughput?.to_owned(),
        published: published?,
        informative: None,
        counted_in: counted_in?,
    })
}

fn difference(table: &Table<'_>) -> Result<Difference, Reported> {
    let series = table.string("series").required();
    let baseline = table.string("baseline").required();
    let job = table.string("job").required();
    let baseline_job = table.string("baseline_job").optional();
    let metrics = all_metrics(table);
    let job = job?;
    Ok(Difference {
        series: series?,
        baseline: baseline?,
        baseline_job: baseline_job?.unwrap_or_else(|| job.clone()),
        job,
        metrics: metrics?,
    })
}

fn worked(table: &Table<'_>) -> Result<Worked, Reported> {
    let pair = |item: &Item<'_>| match item.items()?.as_slice() {
        [throughput, latency] => Ok((throughput.f64()?, latency.f64()?)),
        _ => Err(item.fail("these are not two numbers", "write [throughput, latency]")),
    };
    let name = table.string("name").required();
    let isolated = table.get("isolated", pair).required();
    let interfered = table.get("interfered", pair).required();
    let alpha = table.percent_ppm("alpha").within(0..=1_000_000).or(500_000);
    let published = table.get("published", Item::f64).required();
    Ok(Worked {
        name: name?,
        isolated: isolated?,
        interfered: interfered?,
        alpha: f64::from(alpha?) / 1e6,
        published: published?,
    })
}

/// One panel (`[figure]`), or several (`[[figure]]`).
fn figures(root: &Table<'_>) -> Result<Vec<FigureSpec>, Reported> {
    let is_list = root.get("figure", |item| Ok(item.is_array())).or(false)?;
    match (is_list, root.has("figure")) {
        (true, _) => tables(root, "figure", figure_spec),
        (false, true) => Ok(vec![figure_spec(&root.table("figure"))?]),
        (false, false) => Ok(Vec::new()),
    }
}

fn figure_spec(table: &Table<'_>) -> Result<FigureSpec, Reported> {
    let title = table.string("title").or(String::new());
    let axis_or_metric = |item: &Item<'_>| {
        if item.str()? == "axis" {
            Ok("axis".to_owned())
        } else {
            metric(item)
        }
    };
    let width = table.get("width", figure_width).optional();
    let job = table.string("job").required();
    let percentiles = table.list("percentiles", percentile).or(Vec::new())?;
    let log_x = table.bool("log_x").or(false);
    if !percentiles.is_empty() {
        for key in ["x", "y", "log_y"] {
            table.refuse(key, "a figure of percentiles has its axes already")?;
        }
        return Ok(FigureSpec {
            title: title?,
            job: job?,
            x: String::new(),
            y: String::new(),
            log_x: log_x?,
            log_y: false,
            percentiles_ppm: percentiles,
            width: width?,
        });
    }
    let x = table.get("x", axis_or_metric).required();
    let y = table.get("y", metric).required();
    let log_y = table.bool("log_y").or(false);
    Ok(FigureSpec {
        title: title?,
        job: job?,
        x: x?,
        y: y?,
        log_x: log_x?,
        log_y: log_y?,
        percentiles_ppm: Vec::new(),
        width: width?,
    })
}

fn figure_width(item: &Item<'_>) -> Result<Width, Reported> {
    let text = item.str()?;
    text.parse().map_err(|_: WidthError| {
        item.fail(
            format!("\"{text}\" is no width of a figure"),
            "write a number with mm, cm, in, pt or px, from \"60mm\" to \"1200mm\"",
        )
    })
}

/// The first percentile of a panel, below 100 %.
fn percentile(item: &Item<'_>) -> Result<u32, Reported> {
    match zonelab_config::units::parse_percent(item.str()?) {
        Ok(ppm) if ppm < 1_000_000 => Ok(ppm),
        _ => Err(item.fail(
            "no panel begins there",
            "a percentage below 100 %, as \"99%\"",
        )),
    }
}

impl JobTemplate {
    /// Whether its threads write to the same zones.
    #[must_use]
    pub fn shares_zones(&self) -> bool {
        matches!(self.work, WorkTemplate::Write { shared: true, .. })
    }

    /// A job that does nothing.
    fn nothing() -> Self {
        Self {
            name: String::new(),
            work: WorkTemplate::Read { random: true },
            threads: 1,
            namespace: None,
            zones: 0..1,
            zones_per_thread: None,
            queue_depth: 1,
            block_bytes: 4096,
            rate: None,
            arrival: Arrival::Closed,
            counting: None,
            ramp: Nanos::ZERO,
            stop: Stop::default(),
            ends_run: false,
            finds_nothing: false,
            start: Nanos::ZERO,
            stack: None,
            command: None,
            repeat: false,
        }
    }
}
