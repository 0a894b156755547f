//! `zonelab fio`.

mod against;
mod ending;
mod input;
mod layered;
mod remote;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ending::{Ending, configuration};
use input::Input;
use zonelab_config::Problem;
use zonelab_driver::url::LINUX_SCHEME;
use zonelab_fronts::fio::{FioRun, Report};
use zonelab_host::fio::{self, JobFile};
use zonelab_lab::device::{ReportedZone, state_name};
use zonelab_lab::output;

use crate::conditions::ConditionArgs;
use crate::devices::{HostArgs, Named};
use crate::exit::{Exit, Failure};
use crate::host_state::HostState;
use crate::reproduce::tell_struck;
use crate::trace;
pub(crate) use input::arrange;
use target::{Ran, Target};

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
    /// time; tcp://HOST:PORT/NQN?nsid=1; linux:///dev/ng0n1 [default: the job file's
    /// `filename`]
    #[arg(long, value_name = "DEV")]
    device: Option<String>,
    /// Run the jobs on this device too, and say whether the two agree: table or
    /// --json; exit code 1 if they do not
    #[arg(long, value_name = "DEV")]
    against: Option<String>,
    /// Difference of throughput and mean latency that --against tolerates, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "3",
        requires = "against"
    )]
    tolerance: String,
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
    /// logs: results/NAME/HASH, to which results/NAME/latest leads]
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
    window: trace::WindowOfTrace,
    /// The jobs may write and reset zones of the real drive that are not
    /// empty: what these hold is lost
    #[arg(long)]
    overwrite: bool,
    /// Run the jobs on the conventional namespace that `zonelab ftl format` has made on
    /// the zones of the real drive. Jobs run one after the other
    #[arg(long)]
    ftl: bool,
    #[command(flatten)]
    host: HostArgs,
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
    /// Time of a host core between the completions that a job takes at a time and
    /// its next submission, which is in no latency [default: the stack's]
    #[arg(long, value_name = "TIME")]
    host_turn: Option<String>,
    /// Mean of an exponentially distributed addition to submissions and
    /// completions [default: the stack's]
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
    /// The forms that are asked for.
    fn forms(&self) -> &[Format] {
        match (self.json, self.minimal) {
            (true, _) => &[Format::Json],
            (false, true) => &[Format::Terse],
            (false, false) => &self.output_format,
        }
    }

    fn is_json(&self) -> bool {
        let forms = self.forms();
        forms.contains(&Format::Json) || forms.contains(&Format::JsonPlus)
    }

    /// Options about the time that the host takes, and whether they are given.
    fn host_options(&self) -> [(&'static str, bool); 5] {
        [
            ("--host-stack", self.host_stack.is_some()),
            ("--host-submit", self.host_submit.is_some()),
            ("--host-complete", self.host_complete.is_some()),
            ("--host-turn", self.host_turn.is_some()),
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
the profile, and over NVMe/TCP, it takes 60 seconds, and each job is a thread of this program.
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
    let all = [Some(&device), args.against.as_ref()];
    let mut all = all.into_iter().flatten();
    if all.all(|device| matches!(Named::parse(device), Ok(Named::Emulated { .. }))) {
        args.host.refuse_on_emulated(&device)?;
    }
    if let Some(other) = &args.against {
        return against::fio(args, &input, &device, other);
    }
    let (target, plan) = Target::prepare(args, file, &device, false)?;
    if args.parse_only {
        return Ok(Exit::Done);
    }
    let configuration = configuration(&input, target.configuration(args));
    let ending = Ending::new(args, &input, &plan, &configuration)?;
    let interrupt = interruptible()?;
    let mut host = HostState::of_real(&device);
    let Ran {
        run,
        lost,
        left,
        zones,
        ..
    } = target.run(&plan, args.seed, false, &interrupt)?;
    if let Some(host) = &mut host {
        host.after(run.lateness.as_deref());
    }
    let mut report = Report::new(file, &plan, &run, &device, args.seed);
    report.lost = report.lost.or(lost);
    put_more(args, &run)?;
    if let (Some(path), Some(zones)) = (&args.zone_report, &zones) {
        put_zones(path, zones)?;
    }
    let exit = ending.put(args, (&plan, host.as_ref()), &run, &report)?;
    match left {
        Some(error) => Err(crate::devices::gone(error)),
        None => Ok(exit),
    }
}

/// Writes what else was asked for of an emulated drive.
fn put_more(args: &Args, run: &FioRun) -> Result<(), Failure> {
    if let (Some(path), Some(trace)) = (&args.trace, &run.trace) {
        trace::put_named(trace, path)?;
    }
    if let (Some(path), Some(bytes)) = (&args.snapshot, &run.snapshot) {
        output::replace(path, bytes).map_err(Failure::environment)?;
        tell!("zonelab: snapshot: {}", path.display());
    }
    tell_struck(args.conditions.faults(), &run.faults_struck);
    Ok(())
}

/// Writes a report of zones.
fn put_zones(path: &Path, zones: &[ReportedZone]) -> Result<(), Failure> {
    let mut text = String::from("zone,state,written_lbas\n");
    for (index, zone) in zones.iter().enumerate() {
        let state = state_name(zone.state);
        let lbas = zone
            .known_lbas()
            .map_or_else(String::new, |lbas| lbas.to_string());
        text += &format!("{index},{state},{lbas}\n");
    }
    output::replace(path, text.as_bytes()).map_err(Failure::environment)?;
    tell!("zonelab: zones: {}", path.display());
    Ok(())
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        tell!("zonelab: warning: {warning}");
    }
}

/// The drive to run on: the command line's, or else the job file's.
fn device(args: &Args, input: &Input) -> Result<String, Failure> {
    match &args.device {
        Some(device) => {
            tell_other_names(device, &input.file);
            Ok(device.clone())
        }
        None => named_device(&input.file)?.ok_or_else(|| {
            Failure::usage(format!(
                "{}: on which drive? --device PROFILE, for example --device confznspp \
                 (`zonelab profiles` lists them), tcp://HOST:PORT/NQN?nsid=1 or \
                 linux:///dev/ng0n1",
                input.name
            ))
        }),
    }
}

/// Says which drives of zonelab jobs name that are not the one that the command line names: names
/// of other machines' devices stand in most job files.
fn tell_other_names(device: &str, file: &JobFile) {
    for section in &file.sections {
        let Some(fio::Target::Profile(name)) = section.target() else {
            continue;
        };
        let is_ours = name.contains("://") || zonelab_ssd::profile::builtin_text(&name).is_some();
        if is_ours && name != device {
            let place = section.target_origin();
            let what = format!("{name} is not used: --device names {device}");
            tell!("zonelab: warning: {}", place.problem("filename", what, ""));
        }
    }
}

/// The drive that all jobs with a `filename` name.
fn named_device(file: &JobFile) -> Result<Option<String>, Failure> {
    let mut named: Option<String> = None;
    for section in &file.sections {
        let name = match section.target() {
            None => continue,
            Some(fio::Target::Profile(name)) => name,
            Some(fio::Target::Device(path)) => format!("{LINUX_SCHEME}{path}"),
            Some(fio::Target::Spdk(name)) => {
                let what = format!("\"{name}\" is a drive that SPDK would drive");
                let valid = "name a profile (--device confznspp), tcp://HOST:PORT/NQN?nsid=1 or \
                             linux:///dev/ng0n1";
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

/// A flag that the first interruption sets, which ends the jobs; the second ends
/// the program.
fn interruptible() -> Result<Arc<AtomicBool>, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        tell!("zonelab: interrupted; ending the jobs (again to stop at once)");
    };
    ctrlc::set_handler(handler).map_err(Failure::environment)?;
    Ok(interrupt)
}
