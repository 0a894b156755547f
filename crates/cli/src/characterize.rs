//! `zonelab characterize`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use zonelab_config::Override;
use zonelab_device::NamespaceId;
use zonelab_lab::characterize::{
    self, Device, Effort, FORMATS, Facts, Part, Reach, Sample, Store, Verdict, suite,
};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::evaluations;
use zonelab_lab::experiment::Via;
use zonelab_lab::output::{self, Manifest, Place};
use zonelab_lab::run::Profiles as _;
use zonelab_lab::session::Files;

use crate::console;
use crate::devices::{HostArgs, Named};
use crate::exit::{Exit, Failure};
use crate::files::ProfileFiles;
use crate::on_device::{self, On, Remote};
use crate::report;
use crate::results;
use crate::session::{self, Loaded, Work};

/// Options of `characterize`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The drive: PROFILE (virtual time), PROFILE?clock=real, tcp://HOST:PORT/NQN?nsid=1,
    /// linux:///dev/ng0n1 or pcie://ADDRESS (all in real time). Several are compared with
    /// each other: one of them at most in real time
    #[arg(long, value_name = "DEVICE", required = true, num_args = 1..)]
    device: Vec<String>,
    /// The drive may be reset and written as a whole: what it holds is lost. Only a real
    /// drive with zones that are not empty needs it
    #[arg(long)]
    overwrite: bool,
    /// Ten times as long, at more points
    #[arg(long)]
    full: bool,
    /// Runs of each point [default: 3, with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Where results go [default: results/characterize-DEVICE/HASH, to which
    /// results/characterize-DEVICE/latest leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    work: Work,
    /// Print every number, and not only the one that decides about an observation
    #[arg(long)]
    all: bool,
    /// Print characterization.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
Looks for the 13 observations of a study of a real zoned drive (CLUSTER'23) on any drive, and
says which of its recommendations follow. Interrupted (Ctrl-C, exit code 130) or not, the same
command goes on where it was. docs/characterize.md explains verdicts and bounds.

  zonelab characterize --device zn540
  zonelab characterize --device zn540 confznspp silentzns-zn540";

impl Args {
    const fn effort(&self) -> Effort {
        match self.full {
            true => Effort::Full,
            false => Effort::Quick,
        }
    }

    fn repeats(&self) -> u32 {
        self.repeats.unwrap_or(self.effort().repeats())
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec!["characterize".to_owned(), "--device".to_owned()];
        words.extend(self.device.iter().cloned());
        words.extend(self.full.then(|| "--full".to_owned()));
        let repeats = self.repeats.iter();
        words.extend(repeats.flat_map(|n| ["--repeats".to_owned(), n.to_string()]));
        words.extend(self.overwrite.then(|| "--overwrite".to_owned()));
        words.extend(self.host.words());
        words.extend(["--seed".to_owned(), self.work.seed.to_string()]);
        words
    }
}

/// A drive that is about to be measured.
struct Subject {
    name: String,
    facts: Facts,
    parts: Vec<Part>,
    how: How,
    /// What results depend on besides the suite.
    about: String,
}

/// How its points are run.
enum How {
    /// On drives of this profile.
    Emulated { profile: String, is_real: bool },
    /// On the drive that is connected.
    Connected(Box<Remote>),
}

/// Characterises drives.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn characterize(args: &Args) -> Result<Exit, Failure> {
    let files = Files::default();
    let profiles = ProfileFiles {
        files: &files,
        base: None,
    };
    let mut subjects = Vec::new();
    for name in &args.device {
        if args.device.iter().filter(|other| *other == name).count() > 1 {
            return Err(Failure::usage(format!(
                "--device {name}: it is named twice"
            )));
        }
        subjects.push(open(args, name, &profiles)?);
    }
    let real = subjects
        .iter()
        .filter(|one| one.facts.reach.is_real())
        .count();
    if real > 1 {
        return Err(Failure::usage(
            "--device: one at most in real time, since they would share this host".to_owned(),
        ));
    }
    let place = place(args, &subjects);
    let manifest = manifest(args, &subjects);
    let path = place.path();
    // Of each drive a file of its own, to go on from.
    let kept: Vec<PathBuf> = match subjects.len() {
        1 => vec![path.to_owned()],
        many => (0..many).map(|n| path.join(format!("drive-{n}"))).collect(),
    };
    let mut dir = results::open_kept(path, manifest, args.force, evaluations::FILE)?;
    results::link(&place);
    let interrupted = console::interruptible("the points that run")?;
    let mut devices = Vec::new();
    for (subject, at) in subjects.into_iter().zip(&kept) {
        std::fs::create_dir_all(at).map_err(Failure::environment)?;
        match measure(args, subject, (at, &profiles), &interrupted)? {
            Some(device) => devices.push(device),
            None => {
                let path = path.display();
                eprintln!("zonelab: interrupted; the same command goes on from what is in {path}");
                return Ok(Exit::Interrupted);
            }
        }
    }
    let command = report::line(&args.words());
    let files = characterize::files(&devices, results::TOOL, &command);
    for (name, text) in &files {
        let written = dir.write(name, text.as_bytes());
        written.map_err(Failure::environment)?;
    }
    dir.finish().map_err(Failure::environment)?;
    if args.json {
        let json = files.first().map_or("", |(_, text)| text.as_str());
        console::print(json)?;
        return Ok(Exit::Done);
    }
    show(args, &devices, &place)?;
    Ok(Exit::Done)
}

fn show(args: &Args, devices: &[Device], place: &Place) -> Result<(), Failure> {
    let style = console::style();
    let mut text = String::new();
    for device in devices {
        text.push_str(&characterize::text(device, args.all, &style));
        text.push('\n');
    }
    if devices.len() > 1 {
        text.push_str(&characterize::comparison(devices, &style));
        text.push('\n');
    }
    let unclear = devices.iter().flat_map(|device| &device.judged);
    if unclear
        .into_iter()
        .any(|one| one.verdict == Verdict::Unclear)
    {
        text.push_str(
            "unclear: the bound lies within the confidence interval; more --repeats or --full \
             may decide\n\n",
        );
    }
    text.push_str(&format!(
        "results: {}\npage:    {}\n",
        place.said(),
        place.path().join("characterization.html").display()
    ));
    console::print(&text)
}

/// Where results go.
fn place(args: &Args, subjects: &[Subject]) -> Place {
    let names: Vec<String> = subjects
        .iter()
        .map(|one| output::file_name(&one.name))
        .collect();
    let name = match names.as_slice() {
        [one] => one.clone(),
        [first, ..] => format!("{first}-and-others"),
        [] => String::new(),
    };
    let manifest = manifest(args, subjects);
    Place::new(
        args.out.as_deref(),
        &format!("characterize-{name}"),
        &manifest,
    )
}

fn manifest(args: &Args, subjects: &[Subject]) -> Manifest {
    let subject = |one: &Subject| {
        let parts: Vec<&str> = one.parts.iter().map(|part| part.text.as_str()).collect();
        json!({ "device": one.name, "about": one.about, "facts": one.facts, "parts": parts })
    };
    let all: Vec<_> = subjects.iter().map(subject).collect();
    let text = json!(all).to_string();
    Manifest::new(results::TOOL, text.as_bytes(), args.work.seed)
}

/// Opens a drive, and writes its suite.
fn open(args: &Args, name: &str, profiles: &ProfileFiles<'_>) -> Result<Subject, Failure> {
    let (how, info, reach, granted, about) = match Named::parse(name)? {
        Named::Emulated {
            profile,
            nsid,
            is_real,
            via,
        } => {
            on_device::in_first_namespace(name, nsid.unwrap_or(NamespaceId::FIRST))?;
            if via != Via::Direct {
                return Err(Failure::usage(format!(
                    "--device {name}: the suite measures the drive itself: leave out via="
                )));
            }
            let profile = on_device::from_here(profile)?;
            let loaded = profiles.load(&profile, &[]).map_err(Failure::input)?;
            let info = zonelab_ssd::Drive::info_of(&loaded.config);
            let reach = if is_real {
                Reach::RealTime
            } else {
                Reach::Virtual
            };
            let about = zonelab_ssd::profile::to_toml(&loaded.config);
            (How::Emulated { profile, is_real }, info, reach, None, about)
        }
        Named::Real(address) => {
            let scheme = name.split(':').next().unwrap_or_default().to_owned();
            let mut remote = Remote::connect(name, &args.host, address)?;
            let granted = remote.granted()?;
            let info = remote.info().clone();
            let about = remote.describe();
            let how = How::Connected(Box::new(remote));
            (how, info, Reach::Transport(scheme), Some(granted), about)
        }
    };
    let is_real = reach.is_real();
    let mut facts = Facts::of(&info, reach, granted).map_err(Failure::input)?;
    if is_real {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        facts = facts.on_cores(u32::try_from(cores).unwrap_or(u32::MAX));
    }
    let mut subject = Subject {
        name: name.to_owned(),
        parts: suite(&facts, args.effort(), args.repeats()),
        facts,
        how,
        about,
    };
    if matches!(subject.how, How::Emulated { .. }) {
        let formats = subject.parts.iter().find(|part| part.id == FORMATS);
        let formats = formats.map(|part| subject.part(profiles.files, part));
        let formats = formats.transpose()?;
        if formats.is_some_and(|one| session::check(&[one], profiles).is_err()) {
            subject.parts.retain(|part| part.id != FORMATS);
        }
    }
    let all = subject.loaded(profiles.files)?;
    let points = || all.iter().flat_map(|one| &one.points);
    match &mut subject.how {
        // What the profile refuses is refused before anything runs.
        How::Emulated { .. } => session::check(&all, profiles)?,
        How::Connected(remote) => {
            let points: Vec<_> = points().cloned().collect();
            remote.fits(&points)?;
            if !args.overwrite {
                remote.may_destroy(&points)?;
            }
        }
    }
    Ok(subject)
}

impl Subject {
    /// Its parts as experiments.
    fn loaded(&self, files: &Files) -> Result<Vec<Loaded>, Failure> {
        let parts = self.parts.iter();
        parts.map(|part| self.part(files, part)).collect()
    }

    fn part(&self, files: &Files, part: &Part) -> Result<Loaded, Failure> {
        let file = format!("{}.toml", part.id);
        let mut loaded = session::load(files, (&file, &part.text), &[], false)?;
        if let How::Emulated { profile, .. } = &self.how {
            // What zones hold makes no difference to times, and zones can be declared full
            // only where nobody asks for it.
            let set = Override::parse("data.store=none").map_err(Failure::input)?;
            for point in &mut loaded.points {
                point.set_profile(profile);
                let set = point.set_drive(std::slice::from_ref(&set));
                set.map_err(Failure::input)?;
            }
        }
        Ok(loaded)
    }
}

/// Measures what is not measured yet; `None`: it was interrupted.
fn measure(
    args: &Args,
    subject: Subject,
    (at, profiles): (&Path, &ProfileFiles<'_>),
    interrupted: &AtomicBool,
) -> Result<Option<Device>, Failure> {
    let store = Store::open(at, &subject.parts, &subject.about);
    let mut store = store.map_err(Failure::environment)?;
    let quiet = args.quiet || args.json;
    let settings = session::Settings {
        seed: args.work.seed,
        threads: args.work.threads(),
        quiet,
        profiles: *profiles,
        conditions: &Conditions::default(),
        on_figure: &|_, _| None,
    };
    let many = subject.parts.len();
    let loaded = subject.loaded(profiles.files)?;
    let mut on = match subject.how {
        How::Emulated { is_real: false, .. } => On::Virtual,
        How::Emulated { is_real: true, .. } => On::Real,
        How::Connected(remote) => On::Drive(remote),
    };
    for (number, (part, loaded)) in (1..).zip(subject.parts.iter().zip(loaded)) {
        if store.has(part.id) {
            continue;
        }
        if !quiet {
            let observations: Vec<String> = part.observations.iter().map(u8::to_string).collect();
            eprintln!(
                "zonelab: {}: {number} of {many}: {} (observation {})",
                subject.name,
                part.title.to_lowercase(),
                observations.join(", ")
            );
        }
        let points = loaded.points.len();
        let finished = if on.is_real() {
            let run = session::run_in_real_time(vec![loaded], &settings, &mut on)?;
            if let Some(failure) = run.failure {
                let left = on
                    .leave()
                    .map_or_else(String::new, |lost| format!(": {lost}"));
                let what = format!("{}: {failure}{left}", subject.name);
                return Err(Failure::new(Exit::Device, anyhow::anyhow!(what)));
            }
            run.finished
        } else {
            session::run(vec![loaded], &settings)?.0
        };
        let results = finished
            .first()
            .map_or(&[][..], |one| one.results.as_slice());
        if interrupted.load(Ordering::Relaxed) || results.len() < points {
            return Ok(None);
        }
        let kept = store.keep(part.id, Sample::of(results));
        kept.map_err(Failure::environment)?;
    }
    if let Some(lost) = on.leave() {
        eprintln!("zonelab: warning: when the device was left: {lost}");
    }
    let samples = store.samples().clone();
    let (judged, recommendations) = characterize::judge(&subject.facts, &samples);
    Ok(Some(Device {
        name: subject.name,
        facts: subject.facts,
        effort: args.effort(),
        samples,
        judged,
        recommendations,
    }))
}
