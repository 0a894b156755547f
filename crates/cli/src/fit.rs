//! `zonelab fit`.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use zonelab_config::Override;
use zonelab_device::{Monotonic, Nanos};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::output::{self, Manifest, Place};
use zonelab_lab::run::{Point, PointResult, Profiles as _, RunOptions};
use zonelab_search::evaluations;
use zonelab_search::fit::{
    self, FitError, Known, OnProfile, Probe, Progress, Settings, Store, Subject, probes,
};

use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{Files, ProfileFiles};
use crate::on_device::On;
use crate::report;
use crate::results;
use crate::study::{self, How, StudyArgs};

/// Options of `fit`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The drive: PROFILE (virtual time), PROFILE?clock=real, tcp://HOST:PORT/NQN?nsid=1,
    /// linux:///dev/ng0n1 or pcie://ADDRESS (all in real time)
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// Probes that are run at most [default: as many as tell something]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_probes: Option<u32>,
    /// Where results go [default: results/fit-DEVICE/HASH, to which results/fit-DEVICE/latest
    /// leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    study: StudyArgs,
    /// Print fit.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
Measures a drive by small workloads, each chosen by what it would tell, and fits a profile to
what they show: every number with a 95 % interval, and a list of what cannot be identified from
outside. Interrupted (Ctrl-C, exit code 130) or not, the same command goes on where it was.
docs/fit.md explains intervals and mechanisms.

  zonelab fit --device zn540
  zonelab fit --device linux:///dev/ng0n1 --overwrite";

impl Args {
    fn words(&self) -> Vec<String> {
        let mut words = ["fit", "--device", &self.device]
            .map(str::to_owned)
            .to_vec();
        let most = self.max_probes.iter();
        words.extend(most.flat_map(|n| ["--max-probes".to_owned(), n.to_string()]));
        words.extend(self.study.words());
        words
    }
}

/// The drive, and what is known of it before anything is measured.
struct Opened {
    known: Known,
    probes: Vec<Probe>,
    drive: Drive,
    /// What results depend on besides the probes.
    about: String,
}

/// How probes are run.
enum Drive {
    Virtual(OnProfile),
    Real(On, Option<OnProfile>),
}

/// A drive in real time: emulated, or one that is connected.
struct InRealTime<'a> {
    on: &'a mut On,
    profile: Option<OnProfile>,
    interrupt: Arc<AtomicBool>,
}

impl Subject for InRealTime<'_> {
    fn run(&mut self, point: &Point, seed: u64) -> Result<PointResult, String> {
        let files = Files::default();
        let anywhere = ProfileFiles {
            files: &files,
            base: None,
        };
        let options = RunOptions {
            seed,
            profiles: match &self.profile {
                Some(profile) => profile,
                None => &anywhere,
            },
            conditions: &Conditions::default(),
            on_point: &|_, _| {},
            interrupted: &|| false,
            abandoned: &|| false,
        };
        let runner = self.on.runner(&self.interrupt);
        let mut runner = runner.ok_or_else(|| "the device is in virtual time".to_owned())?;
        let result = runner.run(point, &options);
        result.map_err(|error| error.to_string())
    }
}

/// Fits a profile to a drive.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn fit(args: &Args) -> Result<Exit, Failure> {
    let Opened {
        known,
        probes,
        drive,
        about,
    } = open(args)?;
    let texts: Vec<&str> = probes.iter().map(|probe| probe.text.as_str()).collect();
    let configuration = json!({
        "device": args.device,
        "about": about,
        "probes": texts,
        "repeats": args.study.repeats(),
        "max_probes": args.max_probes,
    });
    let configuration = configuration.to_string();
    let manifest = Manifest::new(
        results::TOOL,
        configuration.as_bytes(),
        args.study.work.seed,
    );
    let name = format!("fit-{}", output::file_name(&args.device));
    let place = Place::new(args.out.as_deref(), &name, &manifest).of(&args.device);
    let mut dir = results::open_kept(&place, manifest, args.force, evaluations::FILE)?;
    let interrupt = console::interruptible("the probe that runs")?;
    let about = (about.as_str(), args.study.work.seed, args.study.repeats());
    let store = Store::open(place.path(), &probes, about);
    let mut store = store.map_err(Failure::environment)?;
    let settings = Settings {
        seed: args.study.work.seed,
        repeats: args.study.repeats(),
        most_probes: args.max_probes.map_or(probes.len(), |most| most as usize),
    };
    let of = (&known, probes.as_slice());
    let mut run =
        |subject: &mut dyn Subject| run(args, of, (subject, &mut store), settings, &interrupt);
    let fitted = match drive {
        Drive::Virtual(mut profile) => run(&mut profile),
        Drive::Real(mut on, profile) => {
            let mut subject = InRealTime {
                on: &mut on,
                profile,
                interrupt: Arc::clone(&interrupt),
            };
            let fitted = run(&mut subject);
            if let Some(lost) = on.leave() {
                tell!("zonelab: warning: when the device was left: {lost}");
            }
            fitted
        }
    }?;
    let Some(fitted) = fitted else {
        let path = place.path().display();
        tell!("zonelab: interrupted; the same command goes on from what is in {path}");
        return Ok(Exit::Interrupted);
    };
    let command = report::line(&args.words());
    let files = fit::files(&known, &fitted, (&args.device, results::TOOL, &command));
    for (name, text) in &files {
        let written = dir.write(name, text.as_bytes());
        written.map_err(Failure::environment)?;
    }
    let put = results::end(dir, true)?;
    if args.json {
        console::print(files.first().map_or("", |(_, text)| text.as_str()))?;
        return Ok(Exit::Done);
    }
    console::print(&format!(
        "{}\nprofile: {}\nresults: {}\npage:    {}\n",
        fit::text(&fitted, &console::style()),
        place.path().join("profile.toml").display(),
        put.said(),
        place.path().join("fit.html").display()
    ))?;
    Ok(Exit::Done)
}

/// How long it takes at least until the next line says how many candidates were run.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Measures and fits; `None`: it was interrupted.
fn run(
    args: &Args,
    of: (&Known, &[Probe]),
    (subject, store): (&mut dyn Subject, &mut Store),
    settings: Settings,
    interrupt: &AtomicBool,
) -> Result<Option<fit::Fit>, Failure> {
    let quiet = args.quiet || args.json;
    let clock = Monotonic::new();
    let said = Cell::new(clock.now());
    let show = |progress: &Progress<'_>| match progress {
        _ if quiet => {}
        Progress::Running(runs) => {
            let now = clock.now();
            if now.saturating_sub(said.get()) >= PATIENCE {
                said.set(now);
                tell!("zonelab: {runs} runs of candidates so far");
            }
        }
        Progress::Measuring(probe, before) => {
            tell!("zonelab: probe {}: {probe}", before + 1);
        }
        Progress::Fitting(values) => tell!("zonelab: fitting {values} values"),
        Progress::Fitted(error) => {
            tell!(
                "zonelab: the best candidate is off by {:.2} % in the mean",
                100.0 * error
            );
        }
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.study.work.threads())
        .build_global();
    if let Err(error) = pool {
        return Err(Failure::environment(error));
    }
    let is_interrupted = || interrupt.load(Ordering::Relaxed);
    match fit::fit(of, (subject, store), settings, &show, &is_interrupted) {
        Ok(fitted) => Ok(Some(fitted)),
        Err(FitError::Interrupted) => Ok(None),
        Err(error @ FitError::Subject { .. }) => {
            let what = anyhow::anyhow!("{}: {error}", args.device);
            Err(Failure::new(Exit::Device, what))
        }
        Err(error @ FitError::Store(_)) => Err(Failure::environment(error)),
    }
}

/// Opens the drive, and makes the probes that it can be asked with.
fn open(args: &Args) -> Result<Opened, Failure> {
    let files = Files::default();
    let profiles = ProfileFiles {
        files: &files,
        base: None,
    };
    let what = "a fit is about the drive itself";
    let study::Opened {
        how,
        info,
        reach,
        granted,
        about,
    } = args.study.open(&args.device, &profiles, what)?;
    let known = Known::of(&info, reach, granted).map_err(Failure::input)?;
    let probes = probes(&known, args.study.effort()).map_err(Failure::input)?;
    let drive = match how {
        How::Emulated { profile, is_real } => {
            // What zones hold makes no difference to times.
            let set = Override::parse("data.store=none").map_err(Failure::input)?;
            let loaded = profiles.load(&profile, &[set]).map_err(Failure::input)?;
            match is_real {
                false => Drive::Virtual(OnProfile(loaded)),
                true => Drive::Real(On::Real, Some(OnProfile(loaded))),
            }
        }
        How::Connected(mut remote) => {
            let points: Vec<Point> = probes.iter().map(|probe| probe.point.clone()).collect();
            args.study.permit(&mut remote, &points)?;
            Drive::Real(On::Drive(remote), None)
        }
    };
    Ok(Opened {
        known,
        probes,
        drive,
        about,
    })
}
