//! `zonelab characterize`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use zonelab_config::Override;
use zonelab_device::NamespaceId;
use zonelab_host::stats::Latency;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::output::{self, MANIFEST, Manifest, Place, Put};
use zonelab_lab::run::Prepared;
use zonelab_lab::session::{Files, read_whole};
use zonelab_search::characterize::{
    self, Device, FORMATS, Facts, Part, Sample, Store, Verdict, suite,
};
use zonelab_search::evaluations;

use crate::ahead::Ahead;
use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::ProfileFiles;
use crate::host_state::{self, HostState};
use crate::on_device::On;
use crate::report;
use crate::results;
use crate::session::{self, Loaded};
use crate::study::{How, Opened, StudyArgs};

/// Options of `characterize`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The drive: PROFILE (virtual time), PROFILE?clock=real, tcp://HOST:PORT/NQN?nsid=1,
    /// linux:///dev/ng0n1 or pcie://ADDRESS (all in real time). Several are compared with
    /// each other: one of them at most in real time
    #[arg(long, value_name = "DEVICE", required = true, num_args = 1..)]
    device: Vec<String>,
    /// Where results go [default: results/characterize-DEVICE/HASH, to which
    /// results/characterize-DEVICE/latest leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    study: StudyArgs,
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
    fn words(&self) -> Vec<String> {
        let mut words = vec!["characterize".to_owned(), "--device".to_owned()];
        words.extend(self.device.iter().cloned());
        words.extend(self.study.words());
        words
    }
}

/// A drive that is about to be measured.
struct Subject {
    name: String,
    facts: Facts,
    /// The parts of the suite, each as an experiment that can be run.
    parts: Vec<(Part, Loaded)>,
    how: How,
    /// What results depend on besides the suite.
    about: String,
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
    args.study.fits(&args.device)?;
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
    let manifest = manifest(args, &subjects);
    let place = place(args, &subjects, &manifest);
    let path = place.path();
    let was_complete = is_complete(path);
    // Of each drive a file of its own, to go on from.
    let kept: Vec<PathBuf> = match subjects.len() {
        1 => vec![path.to_owned()],
        many => (0..many).map(|n| path.join(format!("drive-{n}"))).collect(),
    };
    let mut dir = results::open_kept(&place, manifest, args.force, evaluations::FILE)?;
    let interrupted = console::interruptible("the points that run")?;
    let mut devices = Vec::new();
    let mut host = None;
    for (subject, at) in subjects.into_iter().zip(&kept) {
        std::fs::create_dir_all(at).map_err(Failure::environment)?;
        // What was measured in real time is not the same again: who asks again wants to know.
        // What was interrupted meanwhile goes on.
        let log = at.join(evaluations::FILE);
        let is_again = was_complete && has_all(&log, subject.parts.len());
        if is_again && subject.facts.reach.is_real() {
            match std::fs::remove_file(log) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::environment(error));
                }
                _ => {}
            }
        }
        match measure_on(args, subject, (at, &profiles), &interrupted, &mut host)? {
            Some(device) => devices.push(device),
            None => {
                let path = path.display();
                tell!("zonelab: interrupted; the same command goes on from what is in {path}");
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
    if let Some(host) = &host {
        let written = dir.write(host_state::FILE, host.to_json().as_bytes());
        written.map_err(Failure::environment)?;
    }
    let put = results::end(dir, true)?;
    if args.json {
        let json = files.first().map_or("", |(_, text)| text.as_str());
        console::print(json)?;
        return Ok(Exit::Done);
    }
    show(args, &devices, &put)?;
    Ok(Exit::Done)
}

fn show(args: &Args, devices: &[Device], put: &Put) -> Result<(), Failure> {
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
        put.said(),
        put.path().join("characterization.html").display()
    ));
    console::print(&text)
}

/// Where results go.
fn place(args: &Args, subjects: &[Subject], manifest: &Manifest) -> Place {
    let names: Vec<String> = subjects
        .iter()
        .map(|one| output::file_name(&one.name))
        .collect();
    let devices: Vec<&str> = subjects.iter().map(|one| one.name.as_str()).collect();
    let name = match names.as_slice() {
        [one] => one.clone(),
        [first, ..] => format!("{first}-and-others"),
        [] => String::new(),
    };
    Place::new(
        args.out.as_deref(),
        &format!("characterize-{name}"),
        manifest,
    )
    .of(&devices.join(", "))
}

/// Whether a file to go on from has every part: a line for each, after the first.
fn has_all(log: &Path, parts: usize) -> bool {
    let lines = read_whole(log).map_or(0, |bytes| String::from_utf8_lossy(&bytes).lines().count());
    lines > parts
}

/// Whether a directory holds results that came to their end.
fn is_complete(path: &Path) -> bool {
    let manifest = read_whole(&path.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok());
    manifest.is_some_and(|manifest| manifest.complete)
}

fn manifest(args: &Args, subjects: &[Subject]) -> Manifest {
    let subject = |one: &Subject| {
        let parts = one.parts.iter().map(|(part, _)| part.text.as_str());
        let parts: Vec<&str> = parts.collect();
        json!({ "device": one.name, "about": one.about, "facts": one.facts, "parts": parts })
    };
    let all: Vec<_> = subjects.iter().map(subject).collect();
    let text = json!(all).to_string();
    Manifest::new(results::TOOL, text.as_bytes(), args.study.work.seed)
}

/// Opens a drive, and writes its suite.
fn open(args: &Args, name: &str, profiles: &ProfileFiles<'_>) -> Result<Subject, Failure> {
    let Opened {
        how,
        info,
        nsid,
        reach,
        granted,
        about,
    } = args
        .study
        .open(name, profiles, "the suite measures the drive itself")?;
    let is_real = reach.is_real();
    let mut facts = Facts::of(&info, nsid, reach, granted).map_err(Failure::input)?;
    if is_real {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        facts = facts.on_cores(u32::try_from(cores).unwrap_or(u32::MAX));
    }
    let mut parts = Vec::new();
    for part in suite(&facts, args.study.effort(), args.study.repeats()) {
        let loaded = [load(profiles.files, &part, (&how, nsid))?];
        if matches!(how, How::Emulated { .. }) {
            // What the profile refuses is refused before anything runs; but it need not take
            // another format.
            match session::check(&loaded, profiles) {
                Err(_) if part.id == FORMATS => continue,
                checked => checked?,
            }
        }
        let [loaded] = loaded;
        parts.push((part, loaded));
    }
    let mut subject = Subject {
        name: name.to_owned(),
        parts,
        facts,
        how,
        about,
    };
    if let How::Connected(remote) = &mut subject.how {
        let points = subject.parts.iter().flat_map(|(_, loaded)| &loaded.points);
        let points: Vec<_> = points.cloned().collect();
        args.study.permit(remote, &points)?;
    }
    Ok(subject)
}

/// A part of the suite as an experiment, in the namespace that it is for.
fn load(files: &Files, part: &Part, (how, nsid): (&How, NamespaceId)) -> Result<Loaded, Failure> {
    let file = format!("{}.toml", part.id);
    let mut loaded = session::load(files, (&file, &part.text), &[], false)?;
    for point in &mut loaded.points {
        point.set_namespace(nsid).map_err(Failure::input)?;
    }
    if let How::Emulated { profile, .. } = how {
        // What zones hold makes no difference to times, and zones can be declared full only
        // where nobody asks for it.
        let set = Override::parse("data.store=none").map_err(Failure::input)?;
        for point in &mut loaded.points {
            point.set_profile(profile);
            let set = point.set_drive(std::slice::from_ref(&set));
            set.map_err(Failure::input)?;
        }
    }
    Ok(loaded)
}

/// Measures a drive, with the state of the host, if it is in real time: of one that was too busy nothing is
/// concluded.
fn measure_on(
    args: &Args,
    subject: Subject,
    at: (&Path, &ProfileFiles<'_>),
    interrupted: &AtomicBool,
    host: &mut Option<HostState>,
) -> Result<Option<Device>, Failure> {
    let name = subject.facts.reach.is_real().then(|| subject.name.clone());
    let mut state = name.map(|name| (HostState::before(&name), Latency::new()));
    let mut measured = measure(args, subject, at, interrupted, &mut state)?;
    if let Some((mut state, late)) = state {
        state.after(Some(&late));
        if let (Some(device), Some(why)) = (&mut measured, state.was_too_busy()) {
            device.doubt(why.to_owned());
        }
        *host = Some(state);
    }
    Ok(measured)
}

/// Measures what is not measured yet; `None`: it was interrupted. How late this host was in
/// real time is added to `state`.
fn measure(
    args: &Args,
    subject: Subject,
    (at, profiles): (&Path, &ProfileFiles<'_>),
    interrupted: &AtomicBool,
    state: &mut Option<(HostState, Latency)>,
) -> Result<Option<Device>, Failure> {
    let Subject {
        name,
        facts,
        parts,
        how,
        about,
    } = subject;
    let suite: Vec<&Part> = parts.iter().map(|(part, _)| part).collect();
    let store = Store::open(at, &suite, (&about, args.study.work.seed));
    let mut store = store.map_err(Failure::environment)?;
    let quiet = args.quiet || args.json;
    let settings = session::Settings {
        seed: args.study.work.seed,
        threads: args.study.work.threads(),
        quiet,
        profiles: *profiles,
        conditions: &Conditions::default(),
        on_figure: &|_, _| None,
    };
    let many = parts.len();
    let mut on = match how {
        How::Emulated { is_real: false, .. } => On::Virtual,
        How::Emulated { is_real: true, .. } => On::Real,
        How::Connected(remote) => On::Drive(remote),
    };
    let mut ended = Ended::Done;
    if on.is_real() && !quiet {
        let words = ahead_of(&parts, &store, &on).words(&Prepared::default());
        tell!("zonelab: {name}: {words}");
    }
    let mut left: Ahead = ahead_of(&parts, &store, &on);
    for (number, (part, loaded)) in (1..).zip(parts) {
        if store.has(part.id) {
            continue;
        }
        if !quiet {
            let to_go = on.is_real().then(|| left.to_go((1, 1), &on.prepared()));
            tell_part(&name, (number, many), &part, to_go.as_deref());
        }
        left = left.without(&ahead(&loaded, &on));
        let late = state.as_mut().map(|(_, late)| late);
        let samples = run(loaded, &settings, &mut on, late)?;
        match samples.filter(|_| !interrupted.load(Ordering::Relaxed)) {
            Some(Ok(samples)) => {
                let kept = store.keep(part.id, samples);
                kept.map_err(Failure::environment)?;
            }
            Some(Err(failure)) => {
                ended = Ended::Failed(failure);
                break;
            }
            None => {
                ended = Ended::Interrupted;
                break;
            }
        }
    }
    let lost = on.leave();
    match (ended, lost) {
        (Ended::Done, None) => {}
        (Ended::Done, Some(lost)) => {
            tell!("zonelab: warning: when the device was left: {lost}");
        }
        (Ended::Interrupted, _) => return Ok(None),
        // A connection that is lost says more than the command that was.
        (Ended::Failed(failure), lost) => {
            let lost = lost.map_or_else(String::new, |lost| format!(": {lost}"));
            let what = anyhow::anyhow!("{name}: {failure}{lost}");
            return Err(Failure::new(Exit::Device, what));
        }
    }
    let samples = store.samples().clone();
    let (judged, recommendations) = characterize::judge(&facts, &samples);
    Ok(Some(Device {
        name,
        facts,
        effort: args.study.effort(),
        samples,
        judged,
        recommendations,
        too_busy: None,
    }))
}

/// Says which part is measured next, and how long it and those behind it take.
fn tell_part(name: &str, (number, many): (usize, usize), part: &Part, to_go: Option<&str>) {
    let observations: Vec<String> = part.observations.iter().map(u8::to_string).collect();
    let to_go = to_go.map_or_else(String::new, |to_go| format!(", {to_go}"));
    tell!(
        "zonelab: {name}: {number} of {many}: {} (observation {}){to_go}",
        part.title.to_lowercase(),
        observations.join(", ")
    );
}

/// How long the parts take that are not measured yet.
fn ahead_of(parts: &[(Part, Loaded)], store: &Store, on: &On) -> Ahead {
    let left = parts.iter().filter(|(part, _)| !store.has(part.id));
    left.map(|(_, loaded)| ahead(loaded, on)).sum()
}

/// How long a part takes.
fn ahead(loaded: &Loaded, on: &On) -> Ahead {
    let runs = session::runs_of(&loaded.points);
    let points: Vec<_> = runs
        .iter()
        .map(|&(index, _)| &loaded.points[index])
        .collect();
    Ahead::of_each(&points, on.info().as_ref())
        .into_iter()
        .sum()
}

/// How the measurement of a drive ended.
enum Ended {
    Done,
    Interrupted,
    /// What failed on the device.
    Failed(String),
}

/// Runs a part: what it measured, or what failed on the device; `None`: points are missing,
/// since it was interrupted.
fn run(
    loaded: Loaded,
    settings: &session::Settings<'_>,
    on: &mut On,
    late: Option<&mut Latency>,
) -> Result<Option<Result<Vec<Sample>, String>>, Failure> {
    let points = loaded.points.len();
    let finished = if on.is_real() {
        let run = session::run_in_real_time(vec![loaded], settings, on)?;
        if let Some(late) = late {
            late.merge(&run.lateness());
        }
        if let Some(failure) = run.failure {
            return Ok(Some(Err(failure)));
        }
        run.finished
    } else {
        session::run(vec![loaded], settings)?.0
    };
    let results = finished.first().map(|one| one.results.as_slice());
    let whole = results.filter(|results| results.len() == points);
    Ok(whole.map(|results| Ok(Sample::of(results))))
}
