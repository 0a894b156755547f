//! `zonelab fit`.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use zonelab_config::Override;
use zonelab_device::{Monotonic, NamespaceId, Nanos};
use zonelab_host::stats::Latency;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::output::{self, Manifest, Place};
use zonelab_lab::run::{Point, PointResult, Prepared, Profiles as _, RunError, RunOptions};
use zonelab_search::evaluations;
use zonelab_search::fit::{
    self, FitError, Known, OnProfile, Probe, Progress, Settings, Store, Subject, probes,
};

use crate::ahead::Ahead;
use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{Files, ProfileFiles};
use crate::host_state::{self, HostState};
use crate::on_device::{On, Runner};
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
    Virtual(InVirtualTime),
    Real(On, Option<OnProfile>, NamespaceId),
}

/// A probe in a namespace of the drive; candidates have none but theirs.
fn placed(point: &Point, nsid: NamespaceId) -> Result<Point, RunError> {
    let mut point = point.clone();
    point.set_namespace(nsid)?;
    Ok(point)
}

/// A namespace of emulated drives in virtual time.
struct InVirtualTime(OnProfile, NamespaceId);

impl Subject for InVirtualTime {
    fn run(&mut self, point: &Point, seed: u64) -> Result<PointResult, String> {
        let Self(profile, nsid) = self;
        let point = placed(point, *nsid).map_err(|error| error.to_string())?;
        profile.run(&point, seed)
    }
}

/// A drive in real time: emulated, or one that is connected.
struct InRealTime<'a> {
    runner: Runner<'a>,
    profile: Option<OnProfile>,
    nsid: NamespaceId,
    /// How long it took to prepare zones so far.
    prepared: &'a Cell<Prepared>,
    /// How late this host was.
    late: Latency,
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
        let point = placed(point, self.nsid).map_err(|error| error.to_string())?;
        let result = self.runner.run(&point, &options);
        self.prepared.set(self.runner.prepared());
        let result = result.map_err(|error| error.to_string())?;
        if let Some(late) = &result.lateness {
            self.late.merge(late);
        }
        Ok(result)
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
    let manifest = manifest(args, &about, &probes);
    let name = format!("fit-{}", output::file_name(&args.device));
    let place = Place::new(args.out.as_deref(), &name, &manifest).of(&args.device);
    let mut dir = results::open_kept(&place, manifest, args.force, evaluations::FILE)?;
    let interrupt = console::interruptible("the probe that runs")?;
    let about = (about.as_str(), args.study.work.seed, args.study.repeats());
    let store = Store::open(place.path(), &probes, about);
    let mut store = store.map_err(Failure::environment)?;
    let settings = settings(args, &probes);
    let of = (&known, probes.as_slice());
    let mut run = |subject: &mut dyn Subject, to_go: &ToGo<'_>| {
        run(
            args,
            of,
            (subject, &mut store),
            settings,
            (&interrupt, to_go),
        )
    };
    let mut host = None;
    let fitted = match drive {
        Drive::Virtual(mut subject) => run(&mut subject, &|_| None),
        Drive::Real(mut on, profile, nsid) => {
            let all = all_probes(args, &probes, &on);
            if !args.quiet && !args.json {
                tell!("zonelab: {}: {}", args.device, ahead(args, &probes, &all));
            }
            let prepared = Cell::new(Prepared::default());
            // Which probes come is not known: each of them takes what one does in the mean.
            let to_go = |before: usize| {
                let left = settings.most_probes.saturating_sub(before);
                Some(all.to_go((left, probes.len()), &prepared.get()))
            };
            let mut state = HostState::before(&args.device);
            let mut fitted = Ok(None);
            if let Some(runner) = on.runner(&interrupt) {
                let late = Latency::new();
                let mut subject = InRealTime {
                    runner,
                    profile,
                    nsid,
                    prepared: &prepared,
                    late,
                };
                fitted = run(&mut subject, &to_go);
                state.after(Some(&subject.late));
            }
            host = Some(state);
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
    let of_host = host.map(|host| (host_state::FILE, host.to_json()));
    let of_host = of_host.iter().map(|(name, text)| (*name, text));
    let of_fit = files.iter().map(|(name, text)| (&**name, text));
    for (name, text) in of_fit.chain(of_host) {
        let written = dir.write(name, text.as_bytes());
        written.map_err(Failure::environment)?;
    }
    let put = results::end(dir, true)?;
    let text = match args.json {
        true => files.into_iter().next().map_or_else(String::new, |of| of.1),
        false => format!(
            "{}\nprofile: {}\nresults: {}\npage:    {}\n",
            fit::text(&fitted, &console::style()),
            place.path().join("profile.toml").display(),
            put.said(),
            place.path().join("fit.html").display()
        ),
    };
    console::print(&text)?;
    Ok(Exit::Done)
}

/// How the drive is fitted.
fn settings(args: &Args, probes: &[Probe]) -> Settings {
    Settings {
        seed: args.study.work.seed,
        repeats: args.study.repeats(),
        most_probes: args.max_probes.map_or(probes.len(), |most| most as usize),
    }
}

/// All that results depend on.
fn manifest(args: &Args, about: &str, probes: &[Probe]) -> Manifest {
    let texts: Vec<&str> = probes.iter().map(|probe| probe.text.as_str()).collect();
    let configuration = json!({
        "device": args.device,
        "about": about,
        "probes": texts,
        "repeats": args.study.repeats(),
        "max_probes": args.max_probes,
    });
    let configuration = configuration.to_string();
    let seed = args.study.work.seed;
    Manifest::new(results::TOOL, configuration.as_bytes(), seed)
}

/// How long it takes at most to measure what is left after so many probes, in real time.
type ToGo<'a> = dyn Fn(usize) -> Option<String> + 'a;

/// How long it takes to measure, as if every probe were run.
fn all_probes(args: &Args, probes: &[Probe], on: &On) -> Ahead {
    let repeats = args.study.repeats();
    let each = |probe| std::iter::repeat_n(probe, repeats as usize);
    let points: Vec<&Point> = probes
        .iter()
        .map(|probe| &probe.point)
        .flat_map(each)
        .collect();
    let each = Ahead::of_each(&points, on.info().as_ref());
    each.into_iter().sum()
}

/// The same in words.
fn ahead(args: &Args, probes: &[Probe], all: &Ahead) -> String {
    let repeats = args.study.repeats();
    let most = args.max_probes.map_or(probes.len(), |most| most as usize);
    format!(
        "at most {} of {} probes, {repeats} runs each; with all of them {}; candidates are computed besides",
        most.min(probes.len()),
        probes.len(),
        all.words(&Prepared::default())
    )
}

/// How long it takes at least until the next line says how many candidates were run.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Measures and fits; `None`: it was interrupted.
fn run(
    args: &Args,
    of: (&Known, &[Probe]),
    (subject, store): (&mut dyn Subject, &mut Store),
    settings: Settings,
    (interrupt, to_go): (&AtomicBool, &ToGo<'_>),
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
            let left = to_go(*before);
            let left = left.map_or_else(String::new, |left| format!(", at most {left}"));
            tell!("zonelab: probe {}: {probe}{left}", before + 1);
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
    args.study.fits(std::slice::from_ref(&args.device))?;
    let what = "a fit is about the drive itself";
    let study::Opened {
        how,
        info,
        nsid,
        reach,
        granted,
        about,
    } = args.study.open(&args.device, &profiles, what)?;
    let known = Known::of(&info, nsid, reach, granted).map_err(Failure::input)?;
    let probes = probes(&known, args.study.effort()).map_err(Failure::input)?;
    let drive = match how {
        How::Emulated { profile, is_real } => {
            // What zones hold makes no difference to times.
            let set = Override::parse("data.store=none").map_err(Failure::input)?;
            let loaded = profiles.load(&profile, &[set]).map_err(Failure::input)?;
            match is_real {
                false => Drive::Virtual(InVirtualTime(OnProfile(loaded), nsid)),
                true => Drive::Real(On::Real, Some(OnProfile(loaded)), nsid),
            }
        }
        How::Connected(mut remote) => {
            let points = probes.iter().map(|probe| placed(&probe.point, nsid));
            let points: Vec<Point> = points.collect::<Result<_, _>>().map_err(Failure::input)?;
            args.study.permit(&mut remote, &points)?;
            Drive::Real(On::Drive(remote), None, nsid)
        }
    };
    Ok(Opened {
        known,
        probes,
        drive,
        about,
    })
}
