//! `zonelab fio`.

mod ending;
mod input;
mod remote;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_config::Problem;
use zonelab_config::units::parse_duration;
use zonelab_device::{NamespaceId, Nanos};
use zonelab_host::fio::{JobFile, Plan, PlannedJob, Target};
use zonelab_host::workload::directed::Direction;
use zonelab_lab::fio::{self, Report, ReportedZone, RunSettings};
use zonelab_lab::output;
use zonelab_sim::HostCosts;
use zonelab_sim::stack::{Stack, stacks};
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

use crate::conditions::{self, ConditionArgs};
use crate::devices::Named;
use crate::exit::{Exit, Failure};
use crate::nvme::state_name;
use crate::{profiles, trace};

use ending::{Ending, configuration};
use input::Input;
pub(crate) use input::arrange;

/// What the host costs that costs nothing.
const NO_TIME: &str = "0us";

/// Options of `fio`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Job files (`-`: standard input), and jobs as fio takes them: --name=a
    /// --rw=randread --bs=4k --name=b ...
    #[arg(value_name = "JOB.fio | --OPTION=VALUE", required = true)]
    jobs: Vec<String>,
    /// The drive: a built-in profile or a profile file, with ?clock=real in real
    /// time; or tcp://HOST:PORT/NQN?nsid=1 [default: the job file's `filename`]
    #[arg(long, value_name = "DEV")]
    device: Option<String>,
    /// Change a setting of the drive
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Forms of the results, separated by commas; printed in the order terse, JSON,
    /// normal, as by fio
    #[arg(long, value_enum, value_delimiter = ',', default_value = "normal")]
    output_format: Vec<Format>,
    /// The same as --output-format=json
    #[arg(long)]
    json: bool,
    /// The same as --output-format=terse
    #[arg(long, conflicts_with = "json")]
    minimal: bool,
    /// Version of the terse form: there is one
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=3))]
    terse_version: u8,
    /// Run only the job of this name in the job files; may be given several times
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Refuse jobs that write or reset
    #[arg(long)]
    readonly: bool,
    /// Write the results to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write results and logs to a directory [default, if the jobs write
    /// logs: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    /// Seed of all randomness; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Read the job file, say what is wrong with it, and stop
    #[arg(long)]
    parse_only: bool,
    /// Zones that are full before the first job, as in 0..=23, or `all`
    #[arg(long, value_name = "ZONES")]
    full_zones: Option<String>,
    #[command(flatten)]
    conditions: ConditionArgs,
    /// Write a trace for ui.perfetto.dev to this file, and zone states over time
    /// to FILE-zone-history.csv
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    window: trace::Window,
    /// The jobs may write and reset zones of the drive behind tcp:// that are not
    /// empty: what these hold is lost
    #[arg(long)]
    overwrite: bool,
    /// Save the state of the drive at the end to this file, for --restore
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Write the zones as they are at the end to this file: number, state, and
    /// logical blocks that are written, in lines of CSV
    #[arg(long, value_name = "FILE")]
    zone_report: Option<PathBuf>,
    /// Storage stack of the host, whose times a command takes: spdk, io_uring,
    /// libaio, ... (hosts/stacks.toml) [default: one that takes no time]
    #[arg(long, value_name = "NAME")]
    host_stack: Option<String>,
    /// Time of a host core to submit a command, as in 3us [default: the stack's]
    #[arg(long, value_name = "TIME")]
    host_submit: Option<String>,
    /// Time of a host core to take a completion [default: the stack's]
    #[arg(long, value_name = "TIME")]
    host_complete: Option<String>,
    /// Mean of an exponentially distributed addition to both [default: the stack's]
    #[arg(long, value_name = "TIME")]
    host_jitter: Option<String>,
}

/// Forms of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Normal,
    /// fio's JSON
    Json,
    /// fio's JSON with the distributions of latencies
    #[value(name = "json+")]
    JsonPlus,
    /// fio's line of fields for each job, version 3
    Terse,
}

impl Args {
    /// Options about the time that the host takes, and whether they are given.
    fn host_options(&self) -> [(&'static str, bool); 4] {
        [
            ("--host-stack", self.host_stack.is_some()),
            ("--host-submit", self.host_submit.is_some()),
            ("--host-complete", self.host_complete.is_some()),
            ("--host-jitter", self.host_jitter.is_some()),
        ]
    }
}

const HELP: &str = "\
Job files are fio's, unchanged, and so are options of jobs on the command line:
--name begins a job, and what stands before the first --name is for all jobs. Options
that are listed above are this program's wherever they stand; all others are those of
jobs. docs/fio.md has every option, and what differs.
On an emulated drive each thread runs on a core of its own, in virtual time: a job of
60 seconds takes as long as its operations take to simulate. With ?clock=real behind
the profile, and over NVMe/TCP, it takes 60 seconds, and all threads run on one core.
Exit code 5: an operation failed, or the drive went away.

  zonelab fio docs/examples/writers-and-finishes.fio --device confznspp --json
  zonelab fio --name=w --rw=write --bs=64k --size=4z --device zn540 --output-format=terse";

/// Runs a job file.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn fio(args: &Args) -> Result<Exit, Failure> {
    let input = Input::read(args)?;
    let file = &input.file;
    warn(&file.warnings);
    if args.parse_only && args.device.is_none() && named_device(file).ok().flatten().is_none() {
        return Ok(Exit::Done);
    }
    let device = device(args, &input)?;
    match Named::parse(&device)? {
        Named::Tcp(address) => remote::fio(args, &input, &device, address),
        Named::Emulated {
            profile,
            nsid,
            is_real,
        } => {
            let nsid = nsid.unwrap_or(NamespaceId::FIRST);
            emulated(args, &input, &device, (profile, nsid, is_real))
        }
    }
}

/// Runs a job file on an emulated drive: profile, namespace, and whether time is
/// real.
fn emulated(
    args: &Args,
    input: &Input,
    device: &str,
    (name, nsid, is_real): (&str, NamespaceId, bool),
) -> Result<Exit, Failure> {
    let profile = profiles::load(name, &args.set)?;
    let info = Drive::new(&profile.config).info().clone();
    let file = &input.file;
    let plan = file
        .plan_on(&info, nsid, args.seed)
        .map_err(Failure::input)?;
    warn(&plan.warnings);
    only_reads(args, &plan)?;
    if args.parse_only {
        return Ok(Exit::Done);
    }
    let conditions = args.conditions.load()?;
    let settings = settings(args, (&profile, nsid), &conditions)?;
    let mut host = args.host_options().into_iter();
    if let (true, Some((option, _))) = (is_real, host.find(|(_, is_given)| *is_given)) {
        return Err(Failure::usage(format!(
            "{option} is for virtual time: on {device} the host takes the time that it takes"
        )));
    }
    let host = [&args.host_submit, &args.host_complete, &args.host_jitter];
    let mut of_device = serde_json::json!({
        "drive": zonelab_ssd::profile::to_toml(&profile.config),
        "namespace": nsid.0,
        "full_zones": args.full_zones,
        "conditions": conditions.configuration,
        "host": host.map(|time| time.as_deref().unwrap_or(NO_TIME)),
    });
    if args.host_stack.is_some() {
        let costs = settings.costs;
        let times = [costs.submit_ns, costs.path_ns, costs.complete_ns];
        of_device["host_stack_ns"] = serde_json::json!(times.map(|time| time.0));
    }
    if is_real {
        of_device["clock"] = serde_json::json!("real");
    }
    let configuration = configuration(input, of_device);
    let ending = Ending::new(args, input, &plan, &configuration)?;
    interruptible(&settings.interrupt)?;
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{device}: {what}"));
    let run = match is_real {
        true => fio::run_in_real_time(&plan, &profile.config, &settings),
        false => fio::run(&plan, &profile.config, &settings),
    };
    let run = run.map_err(unfit)?;
    let report = Report::new(file, &plan, &run, device, args.seed);
    if let (Some(path), Some(trace)) = (&args.trace, &run.trace) {
        trace::put_named(trace, path)?;
    }
    if let (Some(path), Some(bytes)) = (&args.snapshot, &run.snapshot) {
        output::replace(path, bytes).map_err(Failure::environment)?;
        eprintln!("zonelab: snapshot: {}", path.display());
    }
    if let (Some(path), Some(bytes)) = (&args.zone_report, &run.snapshot) {
        let mine = profile.config.zones_of(nsid).unwrap_or_default();
        let zones = fio::saved_zones(&profile.config, mine, bytes).map_err(unfit)?;
        put_zones(path, &zones)?;
    }
    if run.faults_struck > 0 {
        eprintln!("zonelab: faults struck {} times", run.faults_struck);
    }
    ending.put(args, &plan, &run, &report)
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        eprintln!("zonelab: warning: {warning}");
    }
}

/// The drive to run on: the command line's, or else the job file's.
fn device(args: &Args, input: &Input) -> Result<String, Failure> {
    match &args.device {
        Some(device) => Ok(device.clone()),
        None => named_device(&input.file)?.ok_or_else(|| {
            Failure::usage(format!(
                "{}: on which drive? --device PROFILE, for example --device confznspp \
                 (`zonelab profiles` lists them), or tcp://HOST:PORT/NQN?nsid=1",
                input.name
            ))
        }),
    }
}

/// The drive that all jobs with a `filename` name.
fn named_device(file: &JobFile) -> Result<Option<String>, Failure> {
    let mut named: Option<String> = None;
    for section in &file.sections {
        let name = match section.target() {
            None => continue,
            Some(Target::Profile(name)) => name,
            Some(Target::Spdk(name) | Target::Device(name)) => {
                let what = format!("\"{name}\" is a drive of this machine: those come later");
                let valid = "name a profile (--device confznspp) or tcp://HOST:PORT/NQN?nsid=1";
                let problem = section.target_origin().problem("filename", what, valid);
                return Err(Failure::input(problem));
            }
        };
        if named.as_ref().is_some_and(|other| *other != name) {
            let what = format!("\"{name}\" is another drive than that of an earlier job");
            let valid = "one run has one drive: --device PROFILE";
            let problem = section.target_origin().problem("filename", what, valid);
            return Err(Failure::input(problem));
        }
        named = Some(name);
    }
    Ok(named)
}

fn settings(
    args: &Args,
    (profile, nsid): (&Profile, NamespaceId),
    conditions: &conditions::Loaded,
) -> Result<RunSettings, Failure> {
    let costs = costs(args)?;
    let zones = profile.config.zones_of(nsid).unwrap_or_default().len() as u32;
    let full = args.full_zones.as_deref();
    Ok(RunSettings {
        seed: args.seed,
        costs,
        full_zones: full.map(|text| zone_range(text, zones)).transpose()?,
        conditions: conditions.conditions.clone(),
        trace: args.trace.is_some().then(|| args.window.limits()),
        saves: args.snapshot.is_some() || args.zone_report.is_some(),
        interrupt: Arc::new(AtomicBool::new(false)),
    })
}

/// Writes a report of zones.
fn put_zones(path: &Path, zones: &[ReportedZone]) -> Result<(), Failure> {
    let mut text = String::from("zone,state,written_lbas\n");
    for (index, zone) in zones.iter().enumerate() {
        let state = state_name(zone.state);
        text += &format!("{index},{state},{}\n", zone.written_lbas);
    }
    output::replace(path, text.as_bytes()).map_err(Failure::environment)?;
    eprintln!("zonelab: zones: {}", path.display());
    Ok(())
}

/// What the host costs: a stack by name, with what is given otherwise.
fn costs(args: &Args) -> Result<HostCosts, Failure> {
    let stack = match &args.host_stack {
        None => HostCosts::FREE,
        Some(name) => match Stack::named(name) {
            Some(stack) => stack.costs,
            None => {
                let names: Vec<&str> = stacks().iter().map(|stack| &*stack.name).collect();
                return Err(Failure::usage(format!(
                    "--host-stack {name}: there is no such stack; {}",
                    names.join(", ")
                )));
            }
        },
    };
    let time = |name: &str, text: &Option<String>, of_stack: Nanos| match text {
        None => Ok(of_stack),
        Some(text) => parse_duration(text)
            .map(Nanos)
            .map_err(|problem| Failure::usage(format!("{name}: {problem}"))),
    };
    Ok(HostCosts {
        submit_ns: time("--host-submit", &args.host_submit, stack.submit_ns)?,
        complete_ns: time("--host-complete", &args.host_complete, stack.complete_ns)?,
        jitter_ns: time("--host-jitter", &args.host_jitter, stack.jitter_ns)?,
        ..stack
    })
}

/// Refuses jobs that change what the drive holds, if that is wanted.
fn only_reads(args: &Args, plan: &Plan) -> Result<(), Failure> {
    let changes = |job: &&PlannedJob| {
        let of = |direction: Direction| job.spec.flows[direction as usize].is_some();
        of(Direction::Write) || of(Direction::Trim) || job.resets_device
    };
    match plan.jobs.iter().find(changes).filter(|_| args.readonly) {
        None => Ok(()),
        Some(job) => Err(Failure::usage(format!(
            "--readonly: job {} writes or resets zones; rw=read and rw=randread do not",
            job.name
        ))),
    }
}

/// `0..=23`, `0..24` or `all`.
fn zone_range(text: &str, zones: u32) -> Result<Range<u32>, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--full-zones {text}: no range within the drive's zones 0..{zones}; \
             write for example 0..=9, or all"
        ))
    };
    if text == "all" {
        return Ok(0..zones);
    }
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let (end, more) = match end.strip_prefix('=') {
        Some(end) => (end, 1),
        None => (end, 0),
    };
    let start: u32 = start.trim().parse().map_err(|_| wrong())?;
    let end: u32 = end.trim().parse().map_err(|_| wrong())?;
    let end = end.checked_add(more).ok_or_else(wrong)?;
    if start >= end || end > zones {
        return Err(wrong());
    }
    Ok(start..end)
}

/// The first interruption ends the jobs, the second the program.
fn interruptible(flag: &Arc<AtomicBool>) -> Result<(), Failure> {
    let flag = Arc::clone(flag);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        eprintln!("zonelab: interrupted; ending the jobs (again to stop at once)");
    })
    .map_err(Failure::environment)
}
