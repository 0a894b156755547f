//! Reading experiment files.

use std::num::NonZeroU64;
use std::ops::Range;

use zonelab_config::{Document, Errors, Field, Item, Override, Reported, Table};
use zonelab_device::{NamespaceId, Nanos};
use zonelab_host::HostCosts;
use zonelab_host::rate::Limit;
use zonelab_host::workload::Stop;
use zonelab_ssd::config::NamespaceConfig;

use super::{
    Amount, Axis, AxisValue, Check, Compare, Experiment, FigureSpec, FillTemplate, HostModel,
    Informative, Interference, JobTemplate, Measured, PublishedPoint, PublishedTable, SeriesSpec,
    WorkTemplate, Worked,
};
use super::{check, matrix};

/// Version of the format that this program reads.
const SCHEMA: u32 = 1;

/// Longest time in a run: far below the 584 years after which time in
/// nanoseconds ends, so that sums of times need no care.
pub(super) const LONGEST: (u64, &str) = (10_000_000 * 1_000_000_000, "10000000s");
/// Longest time that an operation costs the host, for the same reason.
const COSTLIEST: (u64, &str) = (1_000_000_000, "1s");

pub(super) fn experiment(
    file: &str,
    text: &str,
    overrides: &[Override],
    x: Option<&AxisValue>,
) -> Result<Experiment, Errors> {
    // The axis is read from the file as it stands; what depends on it from the
    // file with its value put in. Lines stay where they are.
    let put_in = x.map(|x| text.replace("\"$x\"", &x.literal()));
    let document = Document::parse(file, put_in.as_deref().unwrap_or(text), overrides)?;
    let is_axis = |key: &str| key == "axis" || key.starts_with("axis.");
    let is_own_axis = !overrides.iter().any(|set| is_axis(&set.key()));
    let value = read_root(&document, x.is_some()).and_then(|experiment| {
        check::names(&document, &experiment, x.is_some() && is_own_axis)?;
        Ok(experiment)
    });
    document.finish(value)
}

fn read_root(document: &Document, with_jobs: bool) -> Result<Experiment, Reported> {
    let root = document.root();
    let schema = root.u32("schema").within(SCHEMA..=SCHEMA).required();
    let id = root.string("id").required();
    let title = root.string("title").required();
    let names = [("E", "E"), ("D", "D"), ("S", "S")];
    let kind = root.choice("kind", &names).or("S");
    let source = root.string("source").or(String::new());
    let profile = root.string("profile").required();
    let drive = root.list("drive", set).or(Vec::new());
    let axis = axis(&root.table("axis"));
    let host = host(&root.table("host"));
    let jobs = tables(&root, "job", |table| job(table, with_jobs));
    let series = tables(&root, "series", series);
    let compare = tables(&root, "compare", compare);
    let interference = tables(&root, "interference", interference);
    let matrix = matrix::matrix(&root.table("matrix"), with_jobs);
    let worked = tables(&root, "worked", worked);
    let checks = tables(&root, "check", check);
    let quick = root.table("quick").list("set", set).or(Vec::new());
    let figure = root.table("figure");
    let figure = figure
        .is_present()
        .then(|| figure_spec(&figure))
        .transpose();
    schema?;
    let (mut jobs, mut series, mut interference) = (jobs?, series?, interference?);
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
        profile: profile?,
        drive: drive?,
        axis: axis?,
        host: host?,
        jobs,
        series,
        compare: compare?,
        interference,
        matrix,
        worked: worked?,
        checks: checks?,
        quick: quick?,
        figure: figure?,
    })
}

/// Reads every table of an array, so that the problems of all are reported.
pub(super) fn tables<'d, T>(
    root: &Table<'d>,
    key: &str,
    read: impl Fn(&Table<'d>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let values: Vec<_> = root.tables(key)?.iter().map(read).collect();
    values.into_iter().collect()
}

fn set(item: &Item<'_>) -> Result<Override, Reported> {
    Override::parse(item.str()?).map_err(|problem| item.fail(problem.what, problem.valid))
}

pub(super) fn text(item: &Item<'_>) -> Result<String, Reported> {
    item.str().map(str::to_owned)
}

/// An axis value that another part of the file names.
pub(super) fn axis_text(item: &Item<'_>) -> Result<String, Reported> {
    if item.is_integer() {
        item.u64().map(|n| n.to_string())
    } else {
        text(item)
    }
}

fn axis(table: &Table<'_>) -> Result<Axis, Reported> {
    let name = table.string("name").or("run".to_owned());
    let unit = table.string("unit").or(String::new());
    let values = table.list("values", axis_value).or(vec![AxisValue {
        text: "1".to_owned(),
        number: 1.0,
        is_integer: true,
    }]);
    let (name, unit, values) = (name?, unit?, values?);
    Ok(Axis { name, unit, values })
}

fn axis_value(item: &Item<'_>) -> Result<AxisValue, Reported> {
    // A number is the more likely of the two, but only one may report a problem.
    if item.is_integer() {
        let number = item.u64()?;
        return Ok(AxisValue {
            text: number.to_string(),
            number: number as f64,
            is_integer: true,
        });
    }
    let text = item.str()?;
    if text.contains(['"', '\\']) || text.chars().any(char::is_control) {
        return Err(item.fail("an axis value cannot hold quotes or backslashes", ""));
    }
    let number = if let Ok(ppm) = zonelab_config::units::parse_percent(text) {
        f64::from(ppm) / 1e4
    } else if let Ok(bytes) = zonelab_config::units::parse_size(text) {
        bytes as f64
    } else if let Ok(ns) = zonelab_config::units::parse_duration(text) {
        ns as f64
    } else {
        return Err(item.fail(
            format!("\"{text}\" is not a number"),
            "write a whole number, a size, a time or a percentage",
        ));
    };
    Ok(AxisValue {
        text: text.to_owned(),
        number,
        is_integer: false,
    })
}

/// A time of at most `most` nanoseconds, as it reads in a file.
pub(super) fn time<'t, 'd, 'k>(
    table: &'t Table<'d>,
    key: &'k str,
    (most, text): (u64, &str),
) -> Field<'t, 'd, 'k, u64> {
    table.get(key, |item| match item.duration_ns()? {
        ns if ns <= most => Ok(ns),
        _ => Err(item.fail("this is too long a time", format!("at most {text}"))),
    })
}

fn host(table: &Table<'_>) -> Result<HostModel, Reported> {
    let submit = time(table, "submit", COSTLIEST).or(0);
    let complete = time(table, "complete", COSTLIEST).or(0);
    let jitter = time(table, "jitter", COSTLIEST).or(0);
    let one_in = table.u64("hiccup_one_in").or(0);
    let hiccup = time(table, "hiccup", COSTLIEST).or(0);
    let spread = time(table, "start_spread", LONGEST).or(0);
    Ok(HostModel {
        costs: HostCosts {
            submit_ns: Nanos(submit?),
            complete_ns: Nanos(complete?),
            jitter_ns: Nanos(jitter?),
            hiccup_one_in: one_in?,
            hiccup_ns: Nanos(hiccup?),
        },
        start_spread: Nanos(spread?),
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

/// A job. Without `with_values` the axis value is still to be put in, and only
/// the name is read: the rest will be, once for each value.
pub(super) fn job(table: &Table<'_>, with_values: bool) -> Result<JobTemplate, Reported> {
    let name = table.string("name").required();
    if !with_values {
        let _ = table.keys();
        return Ok(JobTemplate {
            name: name?,
            ..JobTemplate::nothing()
        });
    }
    let namespace = table.u32("namespace").within(1..=NamespaceConfig::MAX);
    let namespace = namespace.or(NamespaceId::FIRST.0);
    let zones = table.get("zones", zone_range).required();
    let threads = table.u32("threads").within(1..=4096).or(1);
    let zones_per_thread = table
        .u32("zones_per_thread")
        .within(1..=u32::MAX)
        .optional();
    let queue_depth = table.u32("queue_depth").within(1..=65_536).or(1);
    let block_bytes = table.size_bytes("block").within(1..=1 << 31).or(4096);
    let rate = table
        .rate_bytes_per_s("rate")
        .within(1..=u64::MAX)
        .optional();
    let rate_ops = table.u64("rate_ops").within(1..=u64::MAX).optional();
    let ramp = time(table, "ramp", LONGEST).or(0);
    let stop = stop(table);
    let ends_run = table.bool("ends_run").or(false);
    let start = time(table, "start", LONGEST).or(0);
    let work = work(table);
    if rate.as_ref().is_ok_and(Option::is_some) {
        table.refuse("rate_ops", "either `rate`, or `rate_ops`")?;
    }
    let per_second = |rate: Option<u64>| rate.and_then(NonZeroU64::new);
    let by_bytes = per_second(rate?).map(Limit::bytes_per_second);
    let by_ops = per_second(rate_ops?).map(Limit::ops_per_second);
    Ok(JobTemplate {
        name: name?,
        work: work?,
        threads: threads?,
        namespace: NamespaceId(namespace?),
        zones: zones?,
        zones_per_thread: zones_per_thread?,
        queue_depth: queue_depth?,
        block_bytes: block_bytes?,
        rate: by_bytes.or(by_ops),
        ramp: Nanos(ramp?),
        stop: stop?,
        ends_run: ends_run?,
        start: Nanos(start?),
    })
}

fn stop(table: &Table<'_>) -> Result<Stop, Reported> {
    let runtime = time(table, "runtime", LONGEST).optional();
    let bytes = table.size_bytes("bytes").optional();
    let operations = table.u64("operations").optional();
    let confidence = table
        .percent_ppm("confidence")
        .within(1..=1_000_000)
        .optional();
    let after = time(table, "confidence_after", LONGEST).or(0);
    Ok(Stop {
        runtime: runtime?.map(Nanos),
        bytes: bytes?,
        operations: operations?,
        confidence: confidence?.map(|ppm| f64::from(ppm) / 1e6),
        confidence_after: Nanos(after?),
    })
}

fn work(table: &Table<'_>) -> Result<WorkTemplate, Reported> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Write,
        Append,
        Read,
        Finish,
        Reset,
    }
    let kind = table
        .choice(
            "work",
            &[
                ("write", Kind::Write),
                ("append", Kind::Append),
                ("read", Kind::Read),
                ("finish", Kind::Finish),
                ("reset", Kind::Reset),
            ],
        )
        .required()?;
    match kind {
        Kind::Write | Kind::Append => {
            let open_zones = table.u32("open_zones").within(1..=65_536).or(1);
            let repeat = table.bool("repeat").or(false);
            let reset_first = table.bool("reset_first").or(false);
            Ok(WorkTemplate::Write {
                append: kind == Kind::Append,
                open_zones: open_zones?,
                repeat: repeat?,
                reset_first: reset_first?,
            })
        }
        Kind::Read => Ok(WorkTemplate::Read {
            random: table.bool("random").or(true)?,
        }),
        Kind::Finish => Ok(WorkTemplate::Finish { fill: fill(table)? }),
        Kind::Reset => {
            let shuffled = table.bool("shuffled").or(false);
            let fill = fill(table);
            Ok(WorkTemplate::Reset {
                shuffled: shuffled?,
                fill: fill?,
            })
        }
    }
}

fn fill(table: &Table<'_>) -> Result<FillTemplate, Reported> {
    let amount = table
        .get("fill", |item| {
            let text = item.str()?;
            if let Ok(ppm) = zonelab_config::units::parse_percent(text) {
                return Ok(Amount::Ppm(ppm));
            }
            item.size_bytes().map(Amount::Bytes)
        })
        .or(Amount::Bytes(0));
    let block_bytes = table
        .size_bytes("fill_block")
        .within(1..=1 << 31)
        .or(256 << 10);
    Ok(FillTemplate {
        amount: amount?,
        block_bytes: block_bytes?,
    })
}

fn series(table: &Table<'_>) -> Result<SeriesSpec, Reported> {
    let name = table.string("name").required();
    let drive = table.list("drive", set).or(Vec::new());
    let jobs = table.list("jobs", text).optional();
    let names = |item: &Item<'_>| {
        item.items()?
            .iter()
            .map(text)
            .collect::<Result<Vec<_>, _>>()
    };
    let phases = table.list("phases", names).optional();
    let full_zones = table.get("full_zones", zone_range).optional();
    let published = table.table("published");
    let published = published
        .is_present()
        .then(|| published_table(&published))
        .transpose();
    let points = tables(table, "point", point);
    let phases = match (jobs?, phases?) {
        (Some(jobs), None) => vec![jobs],
        (None, Some(phases)) => phases,
        (None, None) => {
            table
                .list("jobs", text)
                .required_or("name the jobs that run: jobs = [\"write\"]")?;
            Vec::new()
        }
        (Some(_), Some(_)) => {
            table.refuse(
                "phases",
                "either `jobs`, or `phases` that follow one another",
            )?;
            Vec::new()
        }
    };
    Ok(SeriesSpec {
        name: name?,
        drive: drive?,
        phases,
        full_zones: full_zones?.into_iter().collect(),
        levels: Vec::new(),
        published: published?,
        points: points?,
    })
}

fn published_table(table: &Table<'_>) -> Result<PublishedTable, Reported> {
    let name = table.string("table").required();
    let filter = table.list("where", text).or(Vec::new());
    let repeats = table.list("repeats", text).or(Vec::new());
    let x = table.string("x").required();
    Ok(PublishedTable {
        table: name?,
        filter: filter?,
        repeats: repeats?,
        x: x?,
    })
}

fn point(table: &Table<'_>) -> Result<PublishedPoint, Reported> {
    let x = table.get("x", axis_text);
    let x = x.required();
    let metric = table.string("metric").required();
    let job = table.string("job").or(String::new());
    let value = table.get("value", Item::f64).required();
    let low = table.get("low", Item::f64).optional();
    let high = table.get("high", Item::f64).optional();
    let (value, low, high) = (value?, low?, high?);
    let spread = match (low, high) {
        (None, None) => None,
        (low, high) => Some((low.unwrap_or(value), high.unwrap_or(value))),
    };
    Ok(PublishedPoint {
        x: x?,
        metric: metric?,
        job: job?,
        value,
        spread,
    })
}

fn compare(table: &Table<'_>) -> Result<Compare, Reported> {
    let job = table.string("job").required();
    let metrics = table.list("metrics", metric).required();
    let informative = tables(table, "informative", |table| {
        let metrics = table.list("metrics", metric).required();
        let series = table.list("series", text).or(Vec::new());
        let x = table.list("x", axis_text);
        let x = x.or(Vec::new());
        let reason = table.string("reason").required();
        Ok(Informative {
            metrics: metrics?,
            series: series?,
            x: x?,
            reason: reason?,
        })
    });
    Ok(Compare {
        job: job?,
        metrics: metrics?,
        informative: informative?,
    })
}

fn metric(item: &Item<'_>) -> Result<String, Reported> {
    let names: Vec<(&str, &str)> = crate::metrics::NAMES
        .iter()
        .map(|&(name, _)| (name, name))
        .collect();
    item.choice(&names).map(str::to_owned)
}

fn interference(table: &Table<'_>) -> Result<Interference, Reported> {
    let series = table.string("series").required();
    let isolated = table.string("isolated").required();
    let job = table.string("job").required();
    let isolated_job = table.string("isolated_job").optional();
    let alpha = table.percent_ppm("alpha").within(0..=1_000_000).or(500_000);
    let published = table.get("published", Item::f64).optional();
    let job = job?;
    Ok(Interference {
        series: series?,
        isolated: isolated?,
        isolated_job: isolated_job?.unwrap_or_else(|| job.clone()),
        job,
        alpha: f64::from(alpha?) / 1e6,
        published: published?,
        informative: None,
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

fn check(table: &Table<'_>) -> Result<Check, Reported> {
    let says = table.string("says").required();
    let smaller = measured(&table.table("smaller"));
    let larger = measured(&table.table("larger"));
    let factor = table.get("factor", Item::f64).or(1.0);
    Ok(Check {
        says: says?,
        smaller: smaller?,
        larger: larger?,
        factor: factor?,
    })
}

fn measured(table: &Table<'_>) -> Result<Measured, Reported> {
    let series = table.string("series").required();
    let x = table.get("x", axis_text);
    let x = x.required();
    let job = table.string("job").required();
    let metric = table.get("metric", metric).required();
    Ok(Measured {
        series: series?,
        x: x?,
        job: job?,
        metric: metric?,
    })
}

fn figure_spec(table: &Table<'_>) -> Result<FigureSpec, Reported> {
    let axis_or_metric = |item: &Item<'_>| {
        if item.str()? == "axis" {
            Ok("axis".to_owned())
        } else {
            metric(item)
        }
    };
    let job = table.string("job").required();
    let x = table.get("x", axis_or_metric).required();
    let y = table.get("y", metric).required();
    let log_x = table.bool("log_x").or(false);
    let log_y = table.bool("log_y").or(false);
    Ok(FigureSpec {
        job: job?,
        x: x?,
        y: y?,
        log_x: log_x?,
        log_y: log_y?,
    })
}

impl JobTemplate {
    /// A job that does nothing.
    fn nothing() -> Self {
        Self {
            name: String::new(),
            work: WorkTemplate::Read { random: true },
            threads: 1,
            namespace: NamespaceId::FIRST,
            zones: 0..1,
            zones_per_thread: None,
            queue_depth: 1,
            block_bytes: 4096,
            rate: None,
            ramp: Nanos::ZERO,
            stop: Stop::default(),
            ends_run: false,
            start: Nanos::ZERO,
        }
    }
}
