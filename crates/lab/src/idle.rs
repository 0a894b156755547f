//! Work that did nothing: reads of blocks that hold nothing, resets of empty zones.
//!
//! Such operations succeed, and at once: their throughput and latency are not those of a drive
//! with data. Results have their share ([`Metrics`](crate::metrics::Metrics) `nothing_share`);
//! where it matters, a sentence says so beside the results. Of devices that do not tell what
//! commands found, it comes from the file: zones that nothing fills.

mod held;

use std::collections::BTreeMap;
use std::ops::Range;

use held::{Fill, Held};
use zonelab_device::{DeviceInfo, NamespaceId, Nanos};
use zonelab_host::stats::OpKind;
use zonelab_ssd::Drive;

use crate::arrivals;
use crate::experiment::{Experiment, JobTemplate, SeriesSpec, WorkTemplate};
use crate::kv::MORE;
use crate::notices;
use crate::outlast;
use crate::owed;
use crate::preparing;
use crate::run::{JobMeasured, Point, PointResult, Profiles};

/// The least share of a job's operations that is worth a sentence.
pub const LEAST_SHARE: f64 = 0.01;

/// Axis values that a sentence names.
const VALUES_SHOWN: usize = 4;

/// What one experiment measured.
pub type Measured<'a> = (&'a Experiment, &'a [Point], &'a [PointResult]);

/// What of the operations of jobs did nothing, and which jobs went on without others, as
/// sentences: one for each job of a series. Of devices that do not tell it comes from the file
/// if that `says_all`: no drive starts from a state of its own.
#[must_use]
pub fn warnings(all: &[Measured<'_>], says_all: bool) -> Vec<String> {
    let of_one = |&(experiment, points, results): &Measured<'_>| {
        let said = of_results((experiment, points, results), says_all);
        let beside = results.iter().flat_map(|of| {
            let outlasted = outlast::of_point(experiment, of);
            // With the value of the axis put in.
            let experiment = point_of(points, of).map_or(experiment, Point::experiment);
            outlasted
                .into_iter()
                .chain(arrivals::of_point(experiment, of))
                .chain(owed::of_point(of))
                .chain(preparing::of_point(experiment, of))
        });
        let beside = notices::gathered(beside, &experiment.axis.name);
        let said = said.into_iter().chain(beside).chain(unused(experiment));
        let named = said.map(|text| match all.len() {
            1 => text,
            _ => format!("{}: {text}", experiment.id),
        });
        named.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_one).collect()
}

/// Jobs that no series has: they are not run.
fn unused(experiment: &Experiment) -> Vec<String> {
    let is_used = |job: &&JobTemplate| {
        let phases = experiment.series.iter().flat_map(|of| &of.phases);
        phases.flatten().any(|name| *name == job.name)
    };
    let unused = experiment.jobs.iter().filter(|job| !is_used(job));
    unused
        .map(|job| format!("job \"{}\" is in no series: it is not run", job.name))
        .collect()
}

/// The point of a result.
fn point_of<'a>(points: &'a [Point], result: &PointResult) -> Option<&'a Point> {
    let is_its = |of: &&Point| of.series() == result.series && *of.x() == result.x;
    points.iter().find(is_its)
}

fn of_results((experiment, points, results): Measured<'_>, says_all: bool) -> Vec<String> {
    let mut said: Vec<Said> = Vec::new();
    for result in results {
        let point = point_of(points, result);
        for job in &result.jobs {
            // With the value of the axis put in.
            let experiment = point.map_or(experiment, Point::experiment);
            let template = experiment.job_of_result(&job.name);
            let of = |template| of_job(result, (job, template), (point, says_all));
            said.extend(template.map_or_else(Vec::new, of));
        }
    }
    gathered(said, &experiment.axis.name)
}

/// What is to be said of a job of a point.
fn of_job(
    result: &PointResult,
    (job, template): (&JobMeasured, &JobTemplate),
    (point, says_all): (Option<&Point>, bool),
) -> Vec<Said> {
    let unmeasured = |what: &str| vec![Said::unmeasured(result, job, what.to_owned())];
    let metric = |name: &str| job.metrics.get(name);
    if let WorkTemplate::Kv(_) = template.work {
        let said = of_store(metric);
        return said.iter().flat_map(|what| unmeasured(what)).collect();
    }
    // Of one that a fault ended, that is said.
    let has_failed = result.failures.iter().any(|of| of.job == job.name);
    if metric("ops").is_none_or(|ops| ops <= 0.0) && !has_failed {
        return unmeasured("completed nothing while it was measured");
    }
    if metric("nothing_share").is_none() && job.kind.may_find_nothing() {
        let says = point.filter(|_| says_all);
        let idle = says.and_then(|of| of.idle_jobs(None).remove(&template.name));
        return idle.map_or_else(Vec::new, |what| unmeasured(&what));
    }
    let in_one = point.is_some_and(Point::is_in_one_namespace);
    let nothing = format!("did nothing: {}", remedy(job.kind, template, in_one));
    let shares = [
        (!template.finds_nothing).then_some(("nothing_share", nothing)),
        Some(("buffered_share", BUFFERED.to_owned())),
    ];
    let said = shares.into_iter().flatten().filter_map(|(name, what)| {
        let share = metric(name).filter(|share| *share > LEAST_SHARE)?;
        Some(Said::measured(result, job, share, what))
    });
    said.collect()
}

/// What a key-value workload did not do, by its metrics.
pub fn of_store(metric: impl Fn(&str) -> Option<f64>) -> Vec<String> {
    let is_none = |name: &str| metric(name).is_some_and(|value| value <= 0.0);
    let unwritten = match (is_none("flush_mib"), is_none("compaction_mib")) {
        (true, true) => "flushes and compacts nothing",
        (true, false) => "flushes nothing",
        (false, true) => "compacts nothing",
        (false, false) => "",
    };
    let unread = is_none("file_get_share").then(|| OF_STORES.to_owned());
    let unwritten = (!unwritten.is_empty())
        .then(|| format!("{unwritten}: memtables or tables of level 0 hold what is put ({MORE})"));
    unread.into_iter().chain(unwritten).collect()
}

/// What the jobs of points will do that is nothing, as sentences, as far as the file says it.
#[must_use]
pub fn of_points(points: &[Point], profiles: &dyn Profiles) -> Vec<String> {
    let axis = points.first().map(|of| of.experiment().axis.name.clone());
    let of_point = |point: &Point| -> Vec<Said> {
        let drive = point.drive(profiles).ok();
        let info = drive.map(|drive| Drive::info_of(&drive.config));
        let jobs = point.idle_jobs(info.as_ref()).into_iter();
        let said = jobs.map(|(job, what)| Said {
            series: point.series().to_owned(),
            job,
            x: point.x().text.clone(),
            share: None,
            operations: 0.0,
            kind: None,
            what,
        });
        said.collect()
    };
    gathered(points.iter().flat_map(of_point), &axis.unwrap_or_default())
}

/// Of one job at one axis value.
struct Said {
    series: String,
    job: String,
    x: String,
    /// `None`: it was not measured.
    share: Option<f64>,
    operations: f64,
    kind: Option<OpKind>,
    what: String,
}

/// What became of reads that a buffer answered.
pub const BUFFERED: &str = "were answered from the drive's write buffer: no flash was read";

/// What is said of a key-value workload none of whose gets read from the drive.
const OF_STORES: &str = "reads nothing from the drive: memtables and blocks in memory answer all \
                         gets (more records make it read)";

impl Said {
    fn measured(result: &PointResult, job: &JobMeasured, share: f64, what: String) -> Self {
        Self {
            series: result.series.clone(),
            job: job.name.clone(),
            x: result.x.text.clone(),
            share: Some(share),
            operations: job.metrics.get("ops").unwrap_or_default(),
            kind: Some(job.kind),
            what,
        }
    }

    fn unmeasured(result: &PointResult, job: &JobMeasured, what: String) -> Self {
        Self {
            share: None,
            ..Self::measured(result, job, 0.0, what)
        }
    }
}

/// A sentence for each job of each series, with the axis values that it is about.
fn gathered(said: impl IntoIterator<Item = Said>, axis: &str) -> Vec<String> {
    let mut groups: Vec<Vec<Said>> = Vec::new();
    for one in said {
        let is_like = |group: &&mut Vec<Said>| {
            let first = group.first();
            first.is_some_and(|of| {
                (&of.series, &of.job, &of.what) == (&one.series, &one.job, &one.what)
            })
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.iter().map(|group| sentence(group, axis)).collect()
}

fn sentence(group: &[Said], axis: &str) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let Said {
        series, job, what, ..
    } = first;
    let values: Vec<&str> = group.iter().map(|of| of.x.as_str()).collect();
    let place = place((series, Some(job)), axis, &values);
    let shares = group.iter().filter_map(|of| of.share);
    let least = shares.clone().fold(f64::INFINITY, f64::min);
    let most = shares.fold(f64::NEG_INFINITY, f64::max);
    let Some(kind) = first.kind.filter(|_| most.is_finite()) else {
        return format!("{place} {what}");
    };
    let operations: f64 = group.iter().map(|of| of.operations).sum();
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let share = match (percent(least), percent(most)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least} to {most}"),
    };
    format!(
        "{place}: {share} % of {} {what}",
        counted(operations, plural(kind))
    )
}

/// A series, or a job of it, at these axis values.
pub(crate) fn place((series, job): (&str, Option<&str>), axis: &str, values: &[&str]) -> String {
    let mut values = values.to_vec();
    values.dedup();
    let more = values.len().saturating_sub(VALUES_SHOWN);
    let shown = values[..values.len() - more].join(", ");
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let job = job.map_or_else(String::new, |job| format!(", job \"{job}\""));
    format!("series \"{series}\", {axis} {shown}{more}{job}")
}

/// "51,200 reads".
fn counted(operations: f64, of: &str) -> String {
    format!("{} {of}", grouped(operations as u64))
}

/// A number with commas between its thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The word for several operations of a kind.
#[must_use]
pub const fn plural(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "reads",
        OpKind::Write => "writes",
        OpKind::Append => "appends",
        OpKind::Reset => "resets",
        OpKind::Finish => "finishes",
        OpKind::Open => "opens",
        OpKind::Close => "closes",
    }
}

/// Why operations of a kind do nothing.
#[must_use]
pub const fn why(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "no flash is read for blocks that hold nothing",
        OpKind::Reset => "nothing is erased in zones that hold nothing",
        OpKind::Finish => "nothing is filled in zones that are full",
        OpKind::Open => "the zones are open",
        OpKind::Close => "the zones are closed",
        OpKind::Write | OpKind::Append => "nothing is written",
    }
}

/// The same for a job, with what would give it something to do; `in_one`: the file counts the
/// zones of the one namespace that all jobs work in.
fn remedy(kind: OpKind, job: &JobTemplate, in_one: bool) -> String {
    let why = why(kind);
    let zones = zones(&job.zones);
    match (kind, &job.work) {
        (OpKind::Read | OpKind::Reset, work)
            if namespace_of(job) != NamespaceId::FIRST
                && !in_one
                && !matches!(work, WorkTemplate::Blocks(_)) =>
        {
            format!(
                "{why} (full_zones fills zones, and counts them over all namespaces of the drive: \
                 those of namespace {} come after those of the ones before it)",
                namespace_of(job).0
            )
        }
        (OpKind::Read, WorkTemplate::Blocks(_)) => {
            format!("{why} (a job of an earlier phase that writes them fills them)")
        }
        (OpKind::Read, _) => format!("{why} (full_zones = {zones} fills zones)"),
        (OpKind::Reset, _) => {
            format!("{why} (fill = \"100%\", or full_zones = {zones}, fills zones)")
        }
        _ => why.to_owned(),
    }
}

/// The job of the first phase that fails at once, since the file has its first zone full;
/// `in_one`: the file counts the zones of the one namespace that all jobs work in.
pub(crate) fn failing(
    experiment: &Experiment,
    series: &SeriesSpec,
    in_one: bool,
) -> Option<String> {
    let jobs = series.phases.first()?.iter();
    let mut jobs = jobs.filter_map(|name| experiment.job(name));
    jobs.find_map(|job| {
        let zone = job.zones.start;
        let is_full = series.full_zones.iter().any(|full| full.contains(&zone));
        // They count over all namespaces: of another one it is not known here.
        let is_known = in_one || namespace_of(job) == NamespaceId::FIRST;
        if !(is_full && is_known) || job.start > Nanos::ZERO {
            return None;
        }
        let (does, else_) = match &job.work {
            WorkTemplate::Write {
                shared: false,
                reset_first: false,
                ..
            } => (
                "writes to",
                "let it reset zones first (reset_first = true), or ",
            ),
            WorkTemplate::Reset { fill, .. }
            | WorkTemplate::Finish { fill }
            | WorkTemplate::SoftFinish { fill, .. }
            | WorkTemplate::Open { fill }
            | WorkTemplate::Close { fill }
                if fill.writes() =>
            {
                ("fills", "let it do without fill, or ")
            }
            WorkTemplate::Open { fill } if fill.is_none() => ("opens", ""),
            WorkTemplate::Close { fill } if fill.is_none() => ("closes", ""),
            _ => return None,
        };
        Some(format!(
            "job \"{}\" {does} zone {zone}, which full_zones has full: {else_}leave it out of \
             full_zones",
            job.name
        ))
    })
}

/// The job that closes zones which nothing has opened, on a new drive.
pub(crate) fn closing_nothing(experiment: &Experiment, series: &SeriesSpec) -> Option<String> {
    let first = series.phases.first()?;
    let jobs: Vec<&JobTemplate> = first
        .iter()
        .filter_map(|name| experiment.job(name))
        .collect();
    let closes =
        |job: &&&JobTemplate| matches!(&job.work, WorkTemplate::Close { fill } if fill.is_none());
    let close = jobs.iter().find(closes)?;
    // Beside others, which may open them.
    (jobs.len() == 1).then(|| {
        format!(
            "job \"{}\" closes zones that are not open: let it write to them first (fill = \
             \"10%\"), or open them in an earlier phase",
            close.name
        )
    })
}

/// Zones as the files have them.
fn zones(zones: &Range<u32>) -> String {
    format!("\"{}..={}\"", zones.start, zones.end.saturating_sub(1))
}

/// Where a job works; one that names no namespace does so in that of its point, which is
/// mostly the first.
fn namespace_of(job: &JobTemplate) -> NamespaceId {
    job.namespace.unwrap_or(NamespaceId::FIRST)
}

/// The jobs of a series that find nothing and are not meant to, by name, with what that means.
pub(crate) fn idle_jobs(
    experiment: &Experiment,
    series: &SeriesSpec,
    (in_one, info): (bool, Option<&DeviceInfo>),
) -> BTreeMap<String, String> {
    let found = finding_nothing(experiment, series, info).into_iter();
    let said = found.filter_map(|(name, Found { kind, least, most })| {
        let job = experiment.job(&name).filter(|job| !job.finds_nothing)?;
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let what = match (percent(least), percent(most)) {
            _ if least >= 1.0 => "does nothing".to_owned(),
            (least, most) if least == most => {
                format!("does nothing in about {most} % of its {}", plural(kind))
            }
            (least, most) => {
                format!(
                    "does nothing in about {least} to {most} % of its {}",
                    plural(kind)
                )
            }
        };
        Some((name, format!("{what}: {}", remedy(kind, job, in_one))))
    });
    said.collect()
}

/// What a job does, and in which share of it it finds nothing: least and most of its phases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    kind: OpKind,
    pub(crate) least: f64,
    most: f64,
}

/// The jobs of a series that find nothing, by name.
pub(crate) fn finding_nothing(
    experiment: &Experiment,
    series: &SeriesSpec,
    info: Option<&DeviceInfo>,
) -> BTreeMap<String, Found> {
    let mut held = Held::new(&series.full_zones, info);
    let mut found = BTreeMap::new();
    for phase in &series.phases {
        let phase: Vec<&JobTemplate> = phase
            .iter()
            .filter_map(|name| experiment.job(name))
            .collect();
        for job in &phase {
            if let Some((kind, share)) = share_of_nothing(&mut held, job, &phase) {
                let (least, most) = (share, share);
                let of_job = found.entry(job.name.clone());
                let of_job: &mut Found = of_job.or_insert(Found { kind, least, most });
                of_job.least = of_job.least.min(share);
                of_job.most = of_job.most.max(share);
            }
        }
        held.has_run(&phase);
    }
    found.retain(|_, of| of.most > LEAST_SHARE);
    found
}

/// The share of a job's operations that find nothing.
fn share_of_nothing(
    held: &mut Held<'_>,
    job: &JobTemplate,
    phase: &[&JobTemplate],
) -> Option<(OpKind, f64)> {
    if let WorkTemplate::Blocks(blocks) = &job.work {
        let is_nothing = !blocks.is_write && held.has_no_blocks(job, phase);
        return is_nothing.then_some((OpKind::Read, 1.0));
    }
    let (kind, of_zone): (_, fn(Fill) -> f64) = match &job.work {
        WorkTemplate::Read { .. } => (OpKind::Read, Fill::empty_share),
        WorkTemplate::Reset { fill, .. } if fill.is_none() => {
            (OpKind::Reset, |of| f64::from(of.is_empty()))
        }
        WorkTemplate::Finish { fill } if fill.is_none() => {
            (OpKind::Finish, |of| f64::from(of.is_full()))
        }
        // Who opens them for the fill leaves nothing to the open that is measured.
        WorkTemplate::Open { fill } => return fill.open_first.then_some((OpKind::Open, 1.0)),
        _ => return None,
    };
    let parts = held.of_job(job, phase);
    let all: usize = parts.iter().map(|(zones, _)| zones.len()).sum();
    let nothing = parts
        .iter()
        .map(|(zones, fill)| zones.len() as f64 * of_zone(*fill));
    (all > 0).then(|| (kind, nothing.sum::<f64>() / all as f64))
}
