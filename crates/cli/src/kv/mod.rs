//! `zonelab kv`.

mod remote;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_config::Override;
use zonelab_fronts::kv::{self, Alone, Report, Way};
use zonelab_host::StopSignal;
use zonelab_host::workload::HORIZON;
use zonelab_kv::work::run::{Moment, Stage};
use zonelab_kv::work::{NAMES, Spec, builtin, ycsb};
use zonelab_lab::experiment::Via;
use zonelab_lab::kv::{KvRun, KvTemplate, Surroundings};
use zonelab_lab::output::BUILTIN;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DataStore;
use zonelab_ssd::profile::{Profile, to_toml};

use crate::conditions::{self, ConditionArgs};
use crate::devices::{self, HostArgs, Named};
use crate::exit::{Exit, Failure};
use crate::host_state::{self, HostState};
use crate::reproduce::tell_struck;
use crate::results::Subject;
use crate::{console, files, namespace, profiles, results};

/// Options of `kv`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The workload: kvbench-ii, those of db_bench (fillrandom, readrandom, ...), ycsb-a to
    /// ycsb-f; or a property file of YCSB
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    /// The drive: a built-in profile or a profile file, with ?clock=real in real
    /// time or ?via=pcie through the driver for PCIe; tcp://HOST:PORT/NQN?nsid=1; or
    /// linux:///dev/ng0n1
    #[arg(long, value_name = "DEV")]
    device: String,
    /// Change a setting of the drive
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Change a setting of the workload, its files or its store: keys of [job.kv]
    /// in experiments, as in store.write_buffer_size=32MiB
    #[arg(long = "kv", value_name = "KEY=VALUE")]
    kv: Vec<String>,
    /// Operations that clients do
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Keys that are there before
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Bytes of a key, 8 to 1024
    #[arg(long, value_name = "BYTES")]
    key_bytes: Option<u32>,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES")]
    value_bytes: Option<u32>,
    /// Clients side by side
    #[arg(long, value_name = "N")]
    clients: Option<u32>,
    /// A zone may be finished when at most this share of it is left, as in 10%
    #[arg(long, value_name = "PERCENT")]
    finish_threshold: Option<String>,
    /// Run the workload so often, each time on a new store on the same drive
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Seed of all randomness; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    conditions: ConditionArgs,
    /// The zones of the real drive that the store is in are reset: what they hold is lost
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    host: HostArgs,
    /// Results as JSON
    #[arg(long)]
    json: bool,
    /// Also write results to a directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
A store of RocksDB's design keeps its files in the zones of the drive as ZenFS does.
docs/kv-workloads.md has the workloads, every key and what is measured. On an emulated drive
time is virtual, unless ?clock=real stands behind its profile. Exit code 5: an operation failed, or the drive ran out of zones,
active zones or space, which the message names.

  zonelab kv kvbench-ii --device confznspp --set zones.max_active=14 \\
    --finish-threshold 90%";

/// Runs a workload.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn kv(args: &Args) -> Result<Exit, Failure> {
    let file = match builtin::spec(&args.workload) {
        Some(_) => None,
        None => Some(of_file(&args.workload)?),
    };
    let template = template(args, file)?;
    match Named::parse(&args.device)? {
        Named::Real(address) => remote::kv(args, &template, address),
        Named::Emulated {
            profile,
            nsid,
            is_real,
            via,
        } => {
            devices::refuse_via(&args.device, via, &[Via::Pcie])?;
            args.host.refuse_on_emulated(&args.device)?;
            let mut template = template;
            let profile = profiles::load(profile, &args.set)?;
            let info = Drive::info_of(&profile.config);
            template.setup.files.namespace = namespace::of_emulated(&args.device, &info, nsid)?;
            let way = match (is_real, via) {
                (true, _) => Way::Real,
                (false, Via::Pcie) => Way::Pcie,
                (false, _) => Way::Virtual,
            };
            emulated(args, &template, &profile, way)
        }
    }
}

/// The workload of a property file of YCSB.
fn of_file(path: &str) -> Result<Spec, Failure> {
    let is_path = path.contains(['/', '.']) || Path::new(path).is_file();
    if !is_path {
        return Err(unknown(path));
    }
    let text = files::read(path)?;
    let name = Path::new(path).file_stem().and_then(|stem| stem.to_str());
    ycsb::spec(name.unwrap_or(path), &text)
        .map_err(|error| Failure::input(anyhow::anyhow!("{path}: {error}")))
}

fn unknown(name: &str) -> Failure {
    if let Some(why) = builtin::why_not(name) {
        return Failure::usage(format!("{name} of db_bench is not built: {why}"));
    }
    let known = || NAMES.iter().map(|(known, _)| *known);
    let near = zonelab_config::nearest(name, known());
    let hint = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    let list: Vec<String> = NAMES
        .iter()
        .map(|(name, what)| format!("  {name:<22} {what}"))
        .collect();
    Failure::usage(format!(
        "there is no workload \"{name}\"; {hint}there are property files of YCSB by their path, \
         and:\n{}",
        list.join("\n")
    ))
}

/// The workload with what the command line says of it.
fn template(args: &Args, file: Option<Spec>) -> Result<KvTemplate, Failure> {
    let mut settings = Vec::new();
    let mut add = |option: &str, key: &str, value: Option<String>| -> Result<(), Failure> {
        let Some(value) = value else { return Ok(()) };
        let setting = Override::parse(&format!("{key}={value}"))
            .map_err(|problem| Failure::usage(problem.to_string()))?;
        let shown = value.trim_end_matches('B');
        settings.push(setting.written_as(format!("--{option} {shown}")));
        Ok(())
    };
    add(
        "operations",
        "operations",
        args.operations.map(|n| n.to_string()),
    )?;
    add("records", "records", args.records.map(|n| n.to_string()))?;
    add(
        "key-bytes",
        "key",
        args.key_bytes.map(|bytes| format!("{bytes}B")),
    )?;
    add(
        "value-bytes",
        "value",
        args.value_bytes.map(|bytes| format!("{bytes}B")),
    )?;
    add("clients", "clients", args.clients.map(|n| n.to_string()))?;
    add("repeats", "repeats", args.repeats.map(|n| n.to_string()))?;
    add(
        "finish-threshold",
        "files.finish_threshold",
        args.finish_threshold.clone(),
    )?;
    for (setting, text) in files::overrides(&args.kv)?.into_iter().zip(&args.kv) {
        settings.push(setting.written_as(format!("--kv {text}")));
    }
    let template = match file {
        Some(spec) => KvTemplate::of(spec, &settings),
        None => KvTemplate::named(&args.workload, &settings),
    };
    template.map_err(|errors| Failure::usage(errors.to_string()))
}

/// Where results go, if anywhere; `on` says what they are measured on, besides its drive.
fn destination<'a>(
    args: &'a Args,
    configuration: serde_json::Value,
    on: &str,
) -> Option<results::Destination<'a>> {
    let out = args.out.as_deref()?;
    let subject = Subject {
        name: &args.workload,
        source: BUILTIN,
        configuration,
        decides: on.into(),
    };
    Some(results::Destination::new(
        Some(out),
        subject,
        (args.seed, args.force),
        (None, false),
    ))
}

fn emulated(
    args: &Args,
    template: &KvTemplate,
    profile: &Profile,
    way: Way,
) -> Result<Exit, Failure> {
    let info = Drive::info_of(&profile.config);
    let keeps_data = profile.config.data == DataStore::Memory;
    let unfit = |what: String| Failure::input(anyhow::anyhow!("{}: {what}", args.device));
    template.check(&info, keeps_data).map_err(unfit)?;
    let conditions = args.conditions.load()?;
    let drive_toml = to_toml(&profile.config);
    let to = destination(
        args,
        configuration(template, Some(&drive_toml), &conditions),
        match way {
            Way::Virtual => "virtual time",
            Way::Real => "real time",
            Way::Pcie => "the driver for PCIe",
        },
    );
    if let Some(to) = &to {
        results::prepare(to)?;
    }
    let drive = conditions
        .conditions
        .drive(&profile.config)
        .map_err(unfit)?;
    let mut host = HostState::of_real(&args.device);
    let progress = Progress::new(args.quiet)?;
    let stop = StopSignal::default();
    let surroundings = Surroundings {
        info,
        totals: None,
        keeps_data,
        stop: stop.clone(),
        seed: args.seed,
        on_moment: progress.watch(&stop),
    };
    let Alone {
        run,
        end,
        wear,
        debt,
        lost_completions,
        faults_struck,
    } = kv::run_alone(drive, way, template, surroundings).map_err(unfit)?;
    if let Some(host) = &mut host {
        host.after(None);
    }
    progress.clear();
    if way == Way::Real && !args.quiet {
        let late = zonelab_config::units::fmt_duration(end.lateness_max.0);
        tell!("zonelab: in real time; what was to happen was at most {late} late");
    }
    tell_struck(args.conditions.faults(), &faults_struck);
    let Some(result) = run else {
        let at = zonelab_config::units::fmt_duration(end.at.0);
        // A store that slows its writes down while others wait can go on for centuries.
        let since = if end.at < HORIZON {
            format!(", since {at}")
        } else {
            String::new()
        };
        let why = lost_completions.map_or_else(String::new, |lost| format!(": {lost}"));
        let what = format!("{}: the store waits for ever{since}{why}", args.device);
        return Err(Failure::new(Exit::Device, anyhow::anyhow!(what)));
    };
    let run = result.map_err(|error| Failure::new(Exit::Device, error))?;
    let report = Report {
        template,
        run: &run,
        device: &args.device,
        drive: Some(drive_toml),
        wear: Some(wear),
        debt: Some(debt),
        seed: args.seed,
        interrupted: progress.is_interrupted(),
    };
    finish(args, (to.as_ref(), host.as_ref()), &report)
}

fn configuration(
    template: &KvTemplate,
    drive: Option<&str>,
    conditions: &conditions::Loaded,
) -> serde_json::Value {
    let mut configuration = Report::configuration(template, drive);
    if let Some(of) = &conditions.configuration {
        configuration["conditions"] = of.clone();
    }
    configuration
}

/// Writes and prints what there is, and says how it ended.
fn finish(
    args: &Args,
    (to, host): (Option<&results::Destination<'_>>, Option<&HostState>),
    report: &Report<'_>,
) -> Result<Exit, Failure> {
    let json = kv::to_json(report);
    if let Some(to) = to {
        let plain = zonelab_lab::table::Style {
            width: None,
            colour: None,
        };
        let text = kv::to_text(report, &plain);
        let host = host.map(HostState::to_json);
        let mut files = vec![("kv.json", json.as_bytes()), ("kv.txt", text.as_bytes())];
        files.extend(host.iter().map(|text| (host_state::FILE, text.as_bytes())));
        let put = results::put_all(to, &files, !report.interrupted)?;
        tell!("zonelab: results: {}", put.said());
    }
    if args.json {
        console::print(&json)?;
    } else {
        console::print(&kv::to_text(report, &console::style()))?;
    }
    Ok(outcome(report.run, report.interrupted))
}

fn outcome(run: &KvRun, interrupted: bool) -> Exit {
    let measured = &run.outcome.measured;
    if measured.wrong > 0 {
        tell!(
            "zonelab: {} values that were read are not those of their keys",
            measured.wrong
        );
        return Exit::Device;
    }
    if let Some(failed) = &run.outcome.failure {
        tell!("zonelab: the run ended early: {}", failed.error);
        return Exit::Device;
    }
    match interrupted {
        true => Exit::Interrupted,
        false => Exit::Done,
    }
}

/// Progress on standard error, and interruptions.
struct Progress {
    bar: indicatif::ProgressBar,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    fn new(quiet: bool) -> Result<Self, Failure> {
        Ok(Self {
            bar: console::operations(quiet),
            interrupted: console::interruptible("the run")?,
        })
    }

    /// Shows each look at the run, and ends it when the user says so.
    fn watch(&self, stop: &StopSignal) -> Box<dyn FnMut(&Moment<'_>)> {
        let (bar, interrupted, stop) = (
            self.bar.clone(),
            Arc::clone(&self.interrupted),
            stop.clone(),
        );
        Box::new(move |moment| {
            let what = match moment.stage {
                Stage::Loading => "loading",
                Stage::Begins | Stage::Running => "running",
                Stage::Ended => "done",
            };
            bar.set_length(moment.planned);
            bar.set_position(moment.done);
            bar.set_message(format!("{what}, at {:.1} s", moment.at.as_secs_f64()));
            if interrupted.load(Ordering::Relaxed) {
                stop.stop();
            }
        })
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
