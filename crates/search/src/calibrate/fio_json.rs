//! fio's JSON as measurements: the job file is rebuilt from the options that it
//! echoes, and run on the candidate.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use zonelab_config::Problem;
use zonelab_device::Nanos;
use zonelab_fronts::fio::{self, Entry, Report, RunSettings};
use zonelab_host::fio::{Echo, JobFile, Outside, Plan, PlannedJob};
use zonelab_host::workload::directed::Direction;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::published::CellPlace;
use zonelab_lab::reference::ReferenceError;
use zonelab_lab::reference::plausible::{self, Stated};
use zonelab_sim::HostCosts;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;

use super::data::Measurement;
use super::{CalibrateError, DataFile};

/// Directions, by fio's names.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// The key of the 95th percentile.
const P95: &str = "95.000000";

/// A job file with results of it.
#[derive(Clone, Debug)]
pub(super) struct FioCase {
    /// Name of the JSON file.
    name: String,
    file: JobFile,
    /// What was measured, in the order of the measurements.
    wanted: Vec<Wanted>,
    /// Names of the jobs in the results, in order.
    entries: Vec<String>,
    /// What may differ from what was measured.
    pub(super) warnings: Vec<String>,
}

/// One measured value of a job.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    entry: usize,
    direction: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Kiops,
    MeanLatency,
    /// Of total latency, where fio was asked for it.
    TotalP95,
    /// Of completion latency, which fio gives by default.
    CompletionP95,
}

impl What {
    const fn metric(self) -> &'static str {
        match self {
            Self::Kiops => "kiops",
            Self::MeanLatency => "lat_mean_us",
            Self::TotalP95 => "lat_p95_us",
            Self::CompletionP95 => "clat_p95_us",
        }
    }
}

/// Reads results; `jobs` is the job file that lies beside them, if one does.
///
/// # Errors
/// It is not fio's JSON, a value is impossible, or the jobs cannot be run here.
pub(super) fn read(
    results: &DataFile,
    jobs: Option<&DataFile>,
    group: usize,
) -> Result<(FioCase, Vec<Measurement>), CalibrateError> {
    let wrong = |problem: String| ReferenceError {
        file: results.name.clone(),
        line: 1,
        column: None,
        problem,
    };
    // fio writes notes in front of its JSON if nobody keeps them apart.
    let begin = match results.text.starts_with('{') {
        true => 0,
        false => results.text.find("\n{").map_or(0, |at| at + 1),
    };
    let root: Value = serde_json::from_str(&results.text[begin..])
        .map_err(|error| wrong(format!("this is no JSON: {error}")))?;
    let list = root
        .get("jobs")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
        .ok_or_else(|| {
            wrong("no `jobs` in it: this is not what fio --output-format=json writes".to_owned())
        })?;
    let mut warnings = Vec::new();
    let file = match jobs {
        Some(jobs) => {
            let file = parse(&jobs.name, &jobs.text)?;
            ran_as_written(&jobs.name, &file, &root, list).map_err(wrong)?;
            file
        }
        None => {
            if list.iter().all(|job| job.get("job options").is_none()) {
                let what = "no `job options` in it, so it cannot be known what ran: lay the job \
                            file beside it, with .fio in the place of .json";
                return Err(wrong(what.to_owned()).into());
            }
            warnings.push(format!(
                "{}: the jobs are rebuilt from the options in it, which do not say flags without \
                 a value (time_based, stonewall): lay the job file beside it, with .fio in the \
                 place of .json, if it has such",
                results.name
            ));
            check_groups(&root, list).map_err(wrong)?;
            parse(&results.name, &rebuilt(&root, list))?
        }
    };
    let mut reader = Reader {
        results,
        group,
        wanted: Vec::new(),
        measurements: Vec::new(),
        warnings,
    };
    for (entry, job) in list.iter().enumerate() {
        reader.job(entry, job)?;
    }
    let name = |job: &Value| text(job, "jobname");
    let case = FioCase {
        name: results.name.clone(),
        file,
        wanted: reader.wanted,
        entries: list.iter().map(name).collect(),
        warnings: reader.warnings,
    };
    Ok((case, reader.measurements))
}

fn text(job: &Value, key: &str) -> String {
    let value = job.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// Refuses a job file with other values than those that the results echo: they are of other jobs.
fn ran_as_written(name: &str, file: &JobFile, root: &Value, list: &[Value]) -> Result<(), String> {
    let differs = |of: &str, written: &Echo, echoed: Option<&Value>| {
        let echoed = echoed.and_then(Value::as_object).into_iter().flatten();
        for (option, ran) in echoed {
            let ran = ran.as_str().unwrap_or_default().trim();
            let Some(text) = written.get(option).filter(|text| text.trim() != ran) else {
                continue;
            };
            // The drive is the candidate, whatever it was.
            if option != "filename" && !ran.is_empty() {
                return Err(format!(
                    "{of} ran with {option}={ran}, and {name} has {option}={text}: the results are \
                     not of these jobs"
                ));
            }
        }
        Ok(())
    };
    differs("[global]", &file.global, root.get("global options"))?;
    for job in list {
        let of = text(job, "jobname");
        let mut sections = file.sections.iter().filter(|section| section.name == of);
        // Of several with one name it is not known which is which.
        if let (Some(section), None) = (sections.next(), sections.next()) {
            differs(
                &format!("job \"{of}\""),
                &section.echo,
                job.get("job options"),
            )?;
        }
    }
    Ok(())
}

/// A job that begins a group has been told to, by `stonewall` or `new_group`,
/// which are not echoed if they were written without a value. Which of them it
/// was makes a difference.
fn check_groups(root: &Value, jobs: &[Value]) -> Result<(), String> {
    let begins = |job: &Value| {
        ["stonewall", "new_group", "wait_for_previous"]
            .iter()
            .any(|name| {
                let own = job
                    .get("job options")
                    .and_then(|options| options.get(*name));
                let global = root
                    .get("global options")
                    .and_then(|options| options.get(*name));
                own.or(global).is_some()
            })
    };
    for pair in jobs.windows(2) {
        if pair[0].get("groupid") != pair[1].get("groupid") && !begins(&pair[1]) {
            return Err(format!(
                "job \"{}\" begins a group, so `stonewall` or `new_group` stood there without a \
                 value, and the results do not say which: lay the job file beside them, with \
                 .fio in the place of .json",
                text(&pair[1], "jobname")
            ));
        }
    }
    Ok(())
}

/// A job file from the options that the results echo.
fn rebuilt(root: &Value, jobs: &[Value]) -> String {
    let mut file = String::new();
    if let Some(options) = root.get("global options") {
        file.push_str("[global]\n");
        add_options(&mut file, options);
    }
    let mut jobs = jobs.iter().peekable();
    while let Some(job) = jobs.next() {
        let options = job.get("job options");
        let option = |name: &str| {
            let own = options.and_then(|options| options.get(name));
            let value = own.or_else(|| root.get("global options")?.get(name));
            value.and_then(Value::as_str)
        };
        // Writing to a string does not fail.
        let _ = writeln!(file, "[{}]", text(job, "jobname"));
        if let Some(options) = options {
            add_options(&mut file, options);
        }
        // Without group reporting there is one entry for each thread of a job.
        let threads: usize = option("numjobs").and_then(|n| n.parse().ok()).unwrap_or(1);
        let same = |next: &&Value| {
            next.get("jobname") == job.get("jobname") && next.get("job options") == options
        };
        let mut more = threads.saturating_sub(1);
        while more > 0 && jobs.next_if(same).is_some() {
            more -= 1;
        }
        if threads > 1 && more == threads - 1 && option("group_reporting").is_none() {
            file.push_str("group_reporting=1\n");
        }
    }
    file
}

fn add_options(file: &mut String, options: &Value) {
    for (name, value) in options.as_object().into_iter().flatten() {
        // The drive is the candidate, whatever it was; logs are of no use here.
        if name == "filename" || name == "name" || name.ends_with("_log") {
            continue;
        }
        let value = value.as_str().unwrap_or_default();
        let _ = match value.is_empty() {
            true => writeln!(file, "{name}"),
            false => writeln!(file, "{name}={value}"),
        };
    }
}

fn parse(name: &str, text: &str) -> Result<JobFile, CalibrateError> {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("a job file beside results cannot include others".to_owned()),
    };
    JobFile::parse(name, text, &outside).map_err(|errors| CalibrateError::Jobs {
        file: name.to_owned(),
        what: errors.to_string(),
    })
}

/// Throughput by samples and by counts differ, but not by this much.
const APART: f64 = 3.0;
/// As much larger than the latency is the bucket that a percentile names.
const ROUNDED: f64 = 1.05;

struct Reader<'a> {
    results: &'a DataFile,
    group: usize,
    wanted: Vec<Wanted>,
    measurements: Vec<Measurement>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn job(&mut self, entry: usize, job: &Value) -> Result<(), ReferenceError> {
        let name = text(job, "jobname");
        if let Some(error) = job.get("error").and_then(Value::as_i64)
            && error != 0
        {
            let place = self.place(entry, "error");
            let what = format!("job \"{name}\" ended with error {error}: leave it out");
            return Err(wrong(&place, what));
        }
        let before = self.wanted.len();
        for (direction, key) in DIRECTIONS.iter().enumerate() {
            let Some(of) = job.get(*key) else { continue };
            let count = of.get("total_ios").and_then(Value::as_f64);
            if count.is_none_or(|count| count <= 0.0) {
                continue;
            }
            self.agrees_with_itself(entry, key, of)?;
            let total = of.pointer(&format!("/lat_ns/percentile/{P95}"));
            let completion = of.pointer(&format!("/clat_ns/percentile/{P95}"));
            let p95 = match total {
                Some(_) => (What::TotalP95, total),
                None => (What::CompletionP95, completion),
            };
            let values = [
                (What::Kiops, of.get("iops")),
                (What::MeanLatency, of.pointer("/lat_ns/mean")),
                p95,
            ];
            for (what, value) in values {
                let place = self.place(entry, &format!("{key}.{}", what.metric()));
                // A job may have been told to report other percentiles.
                let Some(value) = value else {
                    self.warnings.push(format!(
                        "{}:{}: job \"{name}\" has no {} of {key}, which is not fitted then",
                        place.file,
                        place.line,
                        what.metric()
                    ));
                    continue;
                };
                // Of ns, and of operations per second.
                let written = match value.as_f64() {
                    Some(number) => (number, 1e-3),
                    None => return Err(wrong(&place, format!("{value} is not a number"))),
                };
                let stated = Stated {
                    metric: what.metric(),
                    written,
                    place: &place,
                };
                plausible::possibly(&stated)?;
                let value = stated.value();
                self.wanted.push(Wanted {
                    entry,
                    direction,
                    what,
                });
                self.measurements.push(Measurement {
                    place,
                    group: self.group,
                    series: self.results.below.trim_end_matches(".json").to_owned(),
                    x: (entry + 1).to_string(),
                    job: name.clone(),
                    metric: format!("{key} {}", what.metric()),
                    value,
                    written,
                    spread: None,
                });
            }
        }
        if self.wanted.len() == before {
            let place = self.place(entry, "jobname");
            return Err(wrong(&place, format!("job \"{name}\" measured nothing")));
        }
        Ok(())
    }

    /// Refuses results that contradict their own counts and extremes, as those do that somebody
    /// has converted in part.
    fn agrees_with_itself(
        &self,
        entry: usize,
        key: &str,
        of: &Value,
    ) -> Result<(), ReferenceError> {
        let number = |path: &str| of.pointer(path).and_then(Value::as_f64);
        if let (Some(iops), Some(count), Some(ms)) =
            (number("/iops"), number("/total_ios"), number("/runtime"))
            && ms >= 1.0
        {
            let counted = count * 1e3 / ms;
            if !(counted / APART..=counted * APART).contains(&iops) {
                let what = format!(
                    "iops of {iops} is not total_ios = {count} in runtime = {ms} ms, which are \
                     {counted:.0} per second"
                );
                return Err(wrong(&self.place(entry, &format!("{key}.iops")), what));
            }
        }
        for latency in ["lat_ns", "clat_ns"] {
            let at = |name: &str| number(&format!("/{latency}/{name}"));
            let (Some(least), Some(most)) = (at("min"), at("max")) else {
                continue;
            };
            let p95 = format!("percentile/{P95}");
            for name in ["mean", &p95] {
                let value = at(name);
                // Percentiles of fio are the upper ends of its buckets.
                let is_off =
                    |value: &f64| !(least / ROUNDED..=most * ROUNDED + 1.0).contains(value);
                if let Some(value) = value.filter(is_off) {
                    let what = format!(
                        "{latency} {name} of {value} ns is not between its min of {least} and its \
                         max of {most} ns"
                    );
                    return Err(wrong(&self.place(entry, &format!("{key}.{latency}")), what));
                }
            }
        }
        Ok(())
    }

    /// The line on which a job begins in the results.
    fn place(&self, entry: usize, column: &str) -> CellPlace {
        let lines = self.results.text.lines().enumerate();
        let mut begins = lines.filter(|(_, line)| line.trim_start().starts_with("\"jobname\""));
        CellPlace {
            file: self.results.name.clone(),
            line: begins.nth(entry).map_or(1, |(line, _)| line + 1),
            column: column.to_owned(),
        }
    }
}

fn wrong(place: &CellPlace, problem: String) -> ReferenceError {
    ReferenceError {
        file: place.file.clone(),
        line: place.line,
        column: Some(place.column.clone()),
        problem,
    }
}

/// What a run of a case came to.
pub(super) struct Ran {
    /// Our values, in the order of the measurements.
    pub(super) ours: Vec<Option<f64>>,
    /// The least number of operations of a measured job.
    pub(super) operations: u64,
}

impl FioCase {
    /// Whether the jobs fit a drive.
    ///
    /// # Errors
    /// They do not: a text that says why.
    pub(super) fn check(&self, config: &DriveConfig, seed: u64) -> Result<(), String> {
        let info = Drive::new(config).info().clone();
        let plan = self.file.plan(&info, seed).map_err(|e| e.to_string())?;
        let mut names: Vec<&str> = Vec::new();
        let mut group = None;
        for job in &plan.jobs {
            if !(job.group_reporting && group == Some(job.group)) {
                names.push(&job.name);
            }
            group = job.group_reporting.then_some(job.group);
        }
        if names != self.entries {
            return Err(format!(
                "{}: results are of the jobs {:?}, but its job file would report {names:?}",
                self.name, self.entries
            ));
        }
        Ok(())
    }

    /// The longest run time of its jobs.
    pub(super) fn runtime(&self, config: &DriveConfig, seed: u64) -> Option<Nanos> {
        let info = Drive::new(config).info().clone();
        let plan = self.file.plan(&info, seed).ok()?;
        plan.jobs
            .iter()
            .filter_map(|job| job.spec.stop.runtime)
            .max()
    }

    /// Runs the jobs for at most `runtime` on a drive.
    ///
    /// # Errors
    /// The jobs do not fit the drive, or one failed.
    pub(super) fn run(
        &self,
        config: &DriveConfig,
        seed: u64,
        runtime: Option<Nanos>,
    ) -> Result<Ran, String> {
        let info = Drive::new(config).info().clone();
        let problem = |problem: Problem| problem.to_string();
        let mut plan = self.file.plan(&info, seed).map_err(|e| e.to_string())?;
        for job in &mut plan.jobs {
            if let (Some(own), Some(most)) = (&mut job.spec.stop.runtime, runtime) {
                *own = most.min(*own);
                job.spec.ramp = job.spec.ramp.min(Nanos(most.0 / 2));
            }
        }
        let settings = RunSettings {
            seed,
            costs: HostCosts::FREE,
            full_zones: read_only(&plan, config.zones.count),
            conditions: Conditions::default(),
            trace: None,
            saves: false,
            interrupt: Arc::new(AtomicBool::new(false)),
        };
        let run = fio::run(&plan, config, &settings)?;
        let report = Report::new(&self.file, &plan, &run, &config.name, seed);
        if report.errors() > 0 || report.stuck() > 0 {
            let what = "an operation failed, or a job waits for ever";
            return Err(problem(Problem::of_file(&self.name, what, "")));
        }
        let value = |wanted: &Wanted| value(report.entries.get(wanted.entry)?, *wanted);
        let entries = self.wanted.iter().map(|wanted| wanted.entry);
        let operations = |entry| report.entries.get(entry).map_or(0, Entry::operations);
        Ok(Ran {
            ours: self.wanted.iter().map(value).collect(),
            operations: entries.map(operations).min().unwrap_or(0),
        })
    }
}

/// The zones that jobs read and none of them writes: they were written before. Of a drive that is
/// only read, all.
fn read_only(plan: &Plan, count: u32) -> Option<Range<u32>> {
    let of = |job: &PlannedJob, direction: Direction| {
        let work = &job.spec.work;
        work.flows[direction as usize]
            .is_some()
            .then(|| work.zones.clone())
    };
    let jobs = || plan.jobs.iter();
    let mut read = 0..count;
    let written: Vec<Range<u32>> = jobs().filter_map(|job| of(job, Direction::Write)).collect();
    if !written.is_empty() {
        let zones = || jobs().filter_map(|job| of(job, Direction::Read));
        read = zones().map(|of| of.start).min()?..zones().map(|of| of.end).max()?;
    }
    for written in written {
        // The larger of what is left on both sides of it.
        let before = read.start..read.end.min(written.start);
        let behind = read.start.max(written.end)..read.end;
        read = if before.len() >= behind.len() {
            before
        } else {
            behind
        };
    }
    (!read.is_empty()).then_some(read)
}

fn value(entry: &Entry<'_>, wanted: Wanted) -> Option<f64> {
    let stats = entry.directions[wanted.direction].as_ref()?;
    let us = |ns: Nanos| ns.as_us_f64();
    match wanted.what {
        What::Kiops => {
            let seconds = entry.run_time[wanted.direction].as_secs_f64();
            (seconds > 0.0).then(|| stats.operations as f64 / seconds / 1e3)
        }
        What::MeanLatency => stats.total.moments().mean().map(|ns| ns / 1e3),
        What::TotalP95 => stats.total.percentiles()?.percentile(95.0).map(us),
        What::CompletionP95 => stats.completion.percentiles()?.percentile(95.0).map(us),
    }
}
