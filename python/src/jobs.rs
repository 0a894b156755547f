//! Job files of fio, and key-value workloads, on emulated drives in virtual time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zonelab_config::Override;
use zonelab_fronts::fio::{self, Report, RunSettings};
use zonelab_fronts::kv::{self, Alone, Way};
use zonelab_host::StopSignal;
use zonelab_host::fio::{JobFile, Outside};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::kv::{KvTemplate, Surroundings};
use zonelab_lab::session;
use zonelab_lab::table::Style;
use zonelab_sim::HostCosts;
use zonelab_sim::stack::{Stack, stacks};
use zonelab_ssd::Drive;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::profile::{Profile as DriveProfile, to_toml};

use crate::convert;
use crate::errors::{self, OrRaise as _};
use crate::interrupt::{Watch, Workers};
use crate::profile::{Profile, overrides};

/// Name in messages of jobs that are in no file.
const GIVEN: &str = "jobs";

/// Tables for people, as wide as they are.
const PLAIN: Style = Style {
    width: None,
    colour: None,
};

/// One thread, whose progress is not told.
const ALONE: Workers<'_, '_> = Workers {
    threads: 1,
    total: 0,
    progress: None,
};

/// What a job file of fio, or a key-value workload, came to.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct JobReport {
    json: String,
    text: String,
    logs: Vec<(String, String)>,
}

#[pymethods]
impl JobReport {
    /// The results as the command writes them with `--json`.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// The same as a dictionary.
    fn to_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let json = serde_json::from_str(&self.json).map_err(errors::invalid)?;
        convert::from_json(py, &json)
    }

    /// The log files that jobs write (`write_bw_log` and others): their text by name.
    #[getter]
    fn logs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let logs = PyDict::new(py);
        for (name, text) in &self.logs {
            logs.set_item(name, text)?;
        }
        Ok(logs)
    }

    fn __str__(&self) -> &str {
        &self.text
    }
}

/// Runs a job file of fio on an emulated drive in virtual time.
///
/// `jobs` is the path of a job file or its text, `device` a drive as `Profile` takes it.
/// `full_zones` is the first zone that is full before any job, and the first that is not.
/// `host_stack` is the storage stack of the host, by name; without it, the host takes no
/// time. `nsid` is the namespace; a drive that has one needs none. What of the file has no
/// meaning here, and jobs that did nothing, are Python warnings.
#[pyfunction]
#[pyo3(name = "fio", signature = (
    jobs, device, *, set = None, seed = 1, full_zones = None, host_stack = None, nsid = None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn run_fio(
    py: Python<'_>,
    jobs: &Bound<'_, PyAny>,
    device: &Bound<'_, PyAny>,
    set: Option<&Bound<'_, PyAny>>,
    seed: u64,
    full_zones: Option<(u32, u32)>,
    host_stack: Option<&str>,
    nsid: Option<u32>,
) -> PyResult<JobReport> {
    let profile = Profile::from_any(device, &overrides(set)?)?;
    let (name, text) = job_text(jobs)?;
    let file = job_file(&name, &text)?;
    let info = Drive::info_of(&profile.config);
    let nsid = errors::chosen(&info, nsid)?;
    let plan = file.plan_on(&info, nsid, seed).or_raise()?;
    for problem in file.warnings.iter().chain(&plan.warnings) {
        errors::warn(py, problem)?;
    }
    let costs = costs(host_stack)?;
    let work = |watch: &Watch| {
        let settings = RunSettings {
            seed,
            costs,
            full_zones: full_zones.map(|(first, end)| first..end),
            conditions: Conditions::default(),
            trace: None,
            saves: false,
            interrupt: Arc::clone(&watch.left),
        };
        fio::run(&plan, &profile.config, &settings)
    };
    let device = &profile.config.name;
    let run = ALONE.run(py, work)?;
    let run = run.map_err(|what| errors::invalid(format!("{device}: {what}")))?;
    let report = Report::new(&file, &plan, &run, device, seed);
    for entry in &report.entries {
        for warning in entry.warnings() {
            errors::warn(py, format!("job {}: {warning}", entry.job.name))?;
        }
    }
    Ok(JobReport {
        json: fio::to_json(&report),
        text: fio::to_text(&report),
        logs: fio::log_files(&plan, &run),
    })
}

/// The name and the text of a job file.
fn job_text(jobs: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    if let Ok(text) = jobs.cast::<PyString>() {
        let text = text.to_str()?;
        // A path has no lines, and jobs have sections.
        if text.contains(['\n', '[']) {
            return Ok((GIVEN.to_owned(), text.to_owned()));
        }
    }
    let path: PathBuf = jobs
        .extract()
        .map_err(|_| errors::usage("jobs are the path of a job file, or its text"))?;
    let name = path.to_string_lossy().into_owned();
    let text = session::read_bounded(&path)
        .map_err(|error| errors::invalid(format!("{name}: {error}")))?;
    Ok((name, text))
}

fn job_file(name: &str, text: &str) -> PyResult<JobFile> {
    let base = Path::new(name).parent().unwrap_or(Path::new(""));
    let include = |name: &str| {
        // Relative to the job file, or, as in fio, to the current directory.
        let beside = base.join(name);
        let path = if beside.exists() {
            beside
        } else {
            PathBuf::from(name)
        };
        session::read_bounded(&path).map_err(|error| error.to_string())
    };
    let outside = Outside {
        variable: &|name| std::env::var(name).ok(),
        include: &include,
    };
    JobFile::parse(name, text, &outside).or_raise()
}

fn costs(stack: Option<&str>) -> PyResult<HostCosts> {
    let Some(name) = stack else {
        return Ok(HostCosts::FREE);
    };
    let found = Stack::named(name).map(|stack| stack.costs);
    found.ok_or_else(|| {
        let names: Vec<&str> = stacks().iter().map(|stack| &*stack.name).collect();
        let names = names.join(", ");
        errors::usage(format!(
            "host_stack = \"{name}\": there is no such stack; {names}"
        ))
    })
}

/// Runs a key-value workload on an emulated drive in virtual time.
///
/// `device` and `set` are a drive as `Profile` takes it, `workload_set` keys of `[job.kv]` in
/// experiments. `nsid` is the namespace; a drive that has one needs none.
#[pyfunction]
#[pyo3(name = "kv", signature = (
    workload, device, *, set = None, workload_set = None, seed = 1, nsid = None
))]
pub(crate) fn run_kv(
    py: Python<'_>,
    workload: &str,
    device: &Bound<'_, PyAny>,
    set: Option<&Bound<'_, PyAny>>,
    workload_set: Option<&Bound<'_, PyAny>>,
    seed: u64,
    nsid: Option<u32>,
) -> PyResult<JobReport> {
    let profile = Profile::from_any(device, &overrides(set)?)?;
    let settings: Vec<Override> = overrides(workload_set)?;
    let mut template = KvTemplate::named(workload, &settings).or_raise()?;
    let name = profile.config.name.clone();
    let unfit = |what: String| errors::invalid(format!("{name}: {what}"));
    let keeps_data = profile.config.data == DataStore::Memory;
    let info = Drive::info_of(&profile.config);
    template.setup.files.namespace = errors::chosen(&info, nsid)?;
    template.check(&info, keeps_data).map_err(unfit)?;
    let work = |watch: &Watch| kv_report(&profile, &template, seed, watch);
    match ALONE.run(py, work)? {
        Ok(report) => Ok(report),
        Err(KvError::Unfit(what)) => Err(unfit(what)),
        Err(KvError::Device(what)) => Err(errors::device(what)),
    }
}

/// Why there is no result of a key-value workload.
enum KvError {
    Unfit(String),
    Device(String),
}

fn kv_report(
    profile: &DriveProfile,
    template: &KvTemplate,
    seed: u64,
    watch: &Watch,
) -> Result<JobReport, KvError> {
    let config = &profile.config;
    let drive = Conditions::default()
        .drive(config)
        .map_err(KvError::Unfit)?;
    let stop = StopSignal::default();
    let (left, ends) = (Arc::clone(&watch.left), stop.clone());
    let surroundings = Surroundings {
        info: Drive::info_of(config),
        totals: None,
        keeps_data: config.data == DataStore::Memory,
        stop,
        seed,
        on_moment: Box::new(move |_| {
            if left.load(std::sync::atomic::Ordering::Relaxed) {
                ends.stop();
            }
        }),
    };
    let Alone {
        run, wear, debt, ..
    } = kv::run_alone(drive, Way::Virtual, template, surroundings).map_err(KvError::Unfit)?;
    let run = run.ok_or_else(|| KvError::Unfit("the store waits for ever".to_owned()))?;
    let run = run.map_err(|error| KvError::Device(error.to_string()))?;
    let report = kv::Report {
        template,
        run: &run,
        device: &config.name,
        drive: Some(to_toml(config)),
        wear: Some(wear),
        debt: Some(debt),
        seed,
        interrupted: watch.is_left(),
    };
    Ok(JobReport {
        json: kv::to_json(&report),
        text: kv::to_text(&report, &PLAIN),
        logs: Vec::new(),
    })
}
