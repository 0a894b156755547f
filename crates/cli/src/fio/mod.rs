//! `zonelab fio`.

mod against;
mod ending;
mod remote;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_config::Problem;
use zonelab_host::fio::{self, JobFile, Outside};
use zonelab_lab::fio::{FioRun, Report};
use zonelab_lab::output;

use crate::conditions::ConditionArgs;
use crate::devices::HostArgs;
use crate::exit::{Exit, Failure};
use crate::{files, trace};

use ending::{Ending, configuration};
use target::{Ran, Target};

/// What the host costs that costs nothing.
const NO_TIME: &str = "0us";

/// Options of `fio`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The job file
    #[arg(value_name = "JOB.fio")]
    file: String,
    /// The drive: a built-in profile or a profile file, with ?clock=real in real
    /// time; or tcp://HOST:PORT/NQN?nsid=1 [default: the job file's `filename`]
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
    /// Form of the results
    #[arg(long, value_enum, default_value_t = Format::Normal)]
    output_format: Format,
    /// The same as --output-format=json
    #[arg(long)]
    json: bool,
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
    #[command(flatten)]
    host: HostArgs,
    /// Save the state of the drive at the end to this file, for --restore
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Time of a host core to submit a command, as in 3us
    #[arg(long, value_name = "TIME", default_value = NO_TIME)]
    host_submit: String,
    /// Time of a host core to take a completion
    #[arg(long, value_name = "TIME", default_value = NO_TIME)]
    host_complete: String,
    /// Mean of an exponentially distributed addition to both
    #[arg(long, value_name = "TIME", default_value = NO_TIME)]
    host_jitter: String,
}

/// Forms of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Normal,
    /// fio's JSON
    Json,
}

impl Args {
    fn is_json(&self) -> bool {
        self.json || self.output_format == Format::Json
    }
}

const HELP: &str = "\
The job file is fio's, unchanged; docs/fio.md has every option, and what differs.
On an emulated drive each thread runs on a core of its own, in virtual time: a job of
60 seconds takes as long as its operations take to simulate. With ?clock=real behind
the profile, and over NVMe/TCP, it takes 60 seconds, and all threads run on one core.
Exit code 5: an operation failed, or the drive went away.

  zonelab fio docs/examples/writers-and-finishes.fio --device confznspp --json";

/// Runs a job file.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn fio(args: &Args) -> Result<Exit, Failure> {
    let file = read(&args.file)?;
    warn(&file.warnings);
    if args.parse_only && args.device.is_none() && named_device(&file).ok().flatten().is_none() {
        return Ok(Exit::Done);
    }
    let device = device(args, &file)?;
    if let Some(other) = &args.against {
        return against::fio(args, &file, &device, other);
    }
    let (target, plan) = Target::prepare(args, &file, &device, false)?;
    if args.parse_only {
        return Ok(Exit::Done);
    }
    let configuration = configuration(args, &file, target.configuration(args))?;
    let ending = Ending::new(args, &plan, &configuration)?;
    let interrupt = interruptible()?;
    let Ran {
        run, lost, left, ..
    } = target.run(&plan, args.seed, false, &interrupt)?;
    let mut report = Report::new(&file, &plan, &run, &device, args.seed);
    report.lost = report.lost.or(lost);
    put_more(args, &run)?;
    let exit = ending.put(args, &plan, &run, &report)?;
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
        eprintln!("zonelab: snapshot: {}", path.display());
    }
    if run.faults_struck > 0 {
        eprintln!("zonelab: faults struck {} times", run.faults_struck);
    }
    Ok(())
}

/// Reads the job file, and those that it includes.
fn read(name: &str) -> Result<JobFile, Failure> {
    let text = files::read(name)?;
    let base = Path::new(name).parent().unwrap_or(Path::new(""));
    let include = |name: &str| {
        // Relative to the job file, or, as in fio, to the current directory.
        let beside = base.join(name);
        let path = if beside.exists() {
            beside
        } else {
            PathBuf::from(name)
        };
        files::read_bounded(&path).map_err(|error| error.to_string())
    };
    let variable = |name: &str| std::env::var(name).ok();
    let outside = Outside {
        variable: &variable,
        include: &include,
    };
    JobFile::parse(name, &text, &outside).map_err(Failure::input)
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        eprintln!("zonelab: warning: {warning}");
    }
}

/// The drive to run on: the command line's, or else the job file's.
fn device(args: &Args, file: &JobFile) -> Result<String, Failure> {
    match &args.device {
        Some(device) => Ok(device.clone()),
        None => named_device(file)?.ok_or_else(|| {
            Failure::usage(format!(
                "{}: on which drive? --device PROFILE, for example --device confznspp \
                 (`zonelab profiles` lists them), or tcp://HOST:PORT/NQN?nsid=1",
                args.file
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
            Some(fio::Target::Profile(name)) => name,
            Some(fio::Target::Spdk(name) | fio::Target::Device(name)) => {
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

/// A flag that the first interruption sets, which ends the jobs; the second ends
/// the program.
fn interruptible() -> Result<Arc<AtomicBool>, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        eprintln!("zonelab: interrupted; ending the jobs (again to stop at once)");
    };
    ctrlc::set_handler(handler).map_err(Failure::environment)?;
    Ok(interrupt)
}
