//! `zonelab calibrate`.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use zonelab_lab::output::{self, Manifest, ResultDir};
use zonelab_lab::{library, session};
use zonelab_search::calibrate::{
    self, CalibrateError, Calibration, DataFile, ExperimentFile, FreeKey, Outcome, Progress, Stop,
};
use zonelab_ssd::profile::{Profile, builtin_text};

use crate::console::Candidates;
use crate::exit::{Exit, Failure};
use crate::session::Work;
use crate::{console, files, results};

/// What the name of a directory of results ends with.
const RESULTS: &str = ".calibration";
/// Files of a data directory that are read.
const EXTENSIONS: [&str; 3] = ["csv", "json", "fio"];
/// Files and directories that are looked at: a data directory is small, and
/// `--data /` is a mistake.
const MAX_ENTRIES: usize = 10_000;
/// Directories within directories.
const MAX_DEPTH: usize = 4;

/// Options of `calibrate`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Directory of measurements: tables (.csv) that experiments give a
    /// meaning, and results of fio (.json, with .fio beside them)
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The profile to start from: a file, or the name of a built-in one
    #[arg(long, value_name = "PROFILE")]
    start: String,
    /// What may be changed: media.read, or with bounds media.read=40us..90us
    /// [default bounds: half to twice the start value]
    #[arg(long, value_name = "KEY[=LOW..HIGH]", num_args = 1.., required = true)]
    free: Vec<String>,
    /// Where the calibrated profile goes; results go to FILE.calibration
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Experiments that give tables a meaning: ids or files [default: the
    /// built-in ones of kind D of this drive whose tables are all in DIR]
    #[arg(long, value_name = "ID", num_args = 1..)]
    experiments: Vec<String>,
    /// Parts of the data for cross-validation; 0: none
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    folds: u32,
    /// Every second axis value, shorter runs, fewer candidates: minutes
    #[arg(long)]
    coarse: bool,
    /// Candidates to try at most; each fold tries two thirds as many [default: 50 and
    /// 4 for each key; coarse: 20 and 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_evaluations: Option<u32>,
    #[command(flatten)]
    work: Work,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Replace the profile, and results of another configuration
    #[arg(long)]
    force: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
Interrupted (Ctrl-C, exit code 130) or not, the same command goes on where it was:
what was run is in FILE.calibration/evaluations.jsonl. docs/calibration.md explains
the data, the method and the results.

  zonelab calibrate --data measured --start my-drive.toml --out fitted.toml \\
      --free media.read media.program front_end.write=1us..20us";

/// Fits a profile to measurements.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn calibrate(args: &Args) -> Result<Exit, Failure> {
    let calibration = prepare(args)?;
    for warning in &calibration.data().warnings {
        tell!("zonelab: warning: {warning}");
    }
    if !args.force && args.out.exists() {
        let out = args.out.display();
        return Err(Failure::environment(anyhow::anyhow!(
            "{out} exists: write elsewhere with --out FILE, or replace it with --force"
        )));
    }
    let (dir, path) = open(args, &calibration)?;
    if !(args.quiet || args.json) {
        let (data, keys) = (calibration.data(), calibration.parameters().len());
        tell!(
            "zonelab: {keys} free keys, {} measured values of {} runs",
            data.measurements.len(),
            data.runs()
        );
    }
    let interrupted = console::interruptible("the runs that go on")?;
    let bar = Candidates::new(args.quiet || args.json);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.work.threads())
        .build()
        .map_err(Failure::environment)?;
    let result = pool.install(|| {
        let is_interrupted = || interrupted.load(Ordering::Relaxed);
        calibration.run(&path, &|progress| show(&bar, progress), &is_interrupted)
    });
    bar.clear();
    match result {
        Ok(outcome) => finish(args, dir, &path, &outcome),
        Err(Stop::Interrupted) => {
            tell!(
                "zonelab: interrupted; the same command goes on from what is in {}",
                path.display()
            );
            Ok(Exit::Interrupted)
        }
        Err(Stop::Failed(error)) => Err(failure(error)),
    }
}

/// Reads everything that the command line names.
fn prepare(args: &Args) -> Result<Calibration, Failure> {
    let free = args.free.iter().map(|text| FreeKey::parse(text));
    let settings = calibrate::Settings {
        free: free.collect::<Result<_, _>>().map_err(failure)?,
        seed: args.work.seed,
        folds: args.folds,
        coarse: args.coarse,
        max_evaluations: args.max_evaluations,
    };
    let start = start(&args.start)?;
    let profile = Profile::parse(&start.name, &start.text, &[]).map_err(Failure::input)?;
    let files = data(&args.data)?;
    let experiments = if args.experiments.is_empty() {
        calibrate::default_experiments(&profile.config.name, &files).map_err(failure)?
    } else {
        let named = args.experiments.iter().map(|name| experiment(name));
        named.collect::<Result<_, _>>()?
    };
    Calibration::prepare(start, &files, &experiments, settings).map_err(failure)
}

/// The exit code that an error leads to: keys stand on the command line, all
/// else in files.
fn failure(error: CalibrateError) -> Failure {
    match error {
        CalibrateError::Key { .. } => Failure::new(Exit::Usage, error),
        CalibrateError::Io { .. } => Failure::environment(error),
        _ => Failure::input(error),
    }
}

/// The text of a built-in profile, or of a file.
fn start(name: &str) -> Result<DataFile, Failure> {
    let file = |name: String, text: String| DataFile {
        below: name.clone(),
        name,
        text,
    };
    if let Some(text) = builtin_text(name) {
        return Ok(file(format!("{name}.toml"), text.to_owned()));
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        // Says which there are.
        crate::profiles::load(name, &[])?;
    }
    Ok(file(name.to_owned(), files::read(name)?))
}

fn experiment(name: &str) -> Result<ExperimentFile, Failure> {
    if let Some(text) = library::text(name) {
        let (name, text) = (format!("{name}.toml"), text.to_owned());
        return Ok(ExperimentFile { name, text });
    }
    if !name.contains(['/', '.']) {
        return Err(Failure::usage(session::no_experiment(name)));
    }
    let (name, text) = (name.to_owned(), files::read(name)?);
    Ok(ExperimentFile { name, text })
}

/// The files of a data directory, in order of their names.
fn data(root: &Path) -> Result<Vec<DataFile>, Failure> {
    let wrong =
        |path: &Path, what: String| Failure::input(anyhow::anyhow!("{}: {what}", path.display()));
    let unread = |path: &Path, why: &str| tell!("zonelab: warning: {}: {why}", path.display());
    let mut found = Vec::new();
    let mut entries = 0;
    let mut directories = vec![(root.to_owned(), String::new(), 0)];
    while let Some((path, below, depth)) = directories.pop() {
        let list = std::fs::read_dir(&path).map_err(|error| wrong(&path, error.to_string()))?;
        for entry in list {
            let entry = entry.map_err(|error| wrong(&path, error.to_string()))?;
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(wrong(root, format!("more than {MAX_ENTRIES} files in it")));
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let below = format!("{below}{name}");
            let is_data = EXTENSIONS
                .iter()
                .any(|extension| name.ends_with(&format!(".{extension}")));
            if entry.path().is_dir() {
                // Results of a calibration are no data for the next.
                if name.ends_with(RESULTS) {
                    continue;
                }
                match depth < MAX_DEPTH {
                    true => directories.push((entry.path(), format!("{below}/"), depth + 1)),
                    false => unread(
                        &entry.path(),
                        "directories deeper than this are not searched",
                    ),
                }
            } else if is_data {
                found.push((below, entry.path()));
            } else if !name.starts_with('.') {
                unread(&entry.path(), "only .csv, .json and .fio are read");
            }
        }
    }
    found.sort();
    let read = |(below, path): (String, PathBuf)| {
        let text = files::read_bounded(&path).map_err(|error| wrong(&path, error.to_string()))?;
        let name = path.display().to_string();
        Ok(DataFile { name, below, text })
    };
    found.into_iter().map(read).collect()
}

/// Opens the directory of results beside the profile. Evaluations of the same
/// configuration stay in it.
fn open(args: &Args, calibration: &Calibration) -> Result<(ResultDir, PathBuf), Failure> {
    let mut name = args.out.file_name().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Failure::usage("--out: name a file".to_owned()));
    }
    name.push(RESULTS);
    let path = args.out.with_file_name(name);
    let configuration = calibration.configuration().as_bytes();
    let manifest = Manifest::new(results::TOOL, configuration, args.work.seed);
    let dir = results::open_kept(path.as_path(), manifest, args.force, calibrate::EVALUATIONS)?;
    Ok((dir, path))
}

fn finish(
    args: &Args,
    mut dir: ResultDir,
    path: &Path,
    outcome: &Outcome,
) -> Result<Exit, Failure> {
    for (name, text) in &outcome.files {
        dir.write(name, text.as_bytes())
            .map_err(Failure::environment)?;
    }
    output::replace(&args.out, outcome.profile.as_bytes()).map_err(Failure::environment)?;
    let _ = results::end(dir, true)?;
    if args.json {
        let summary = serde_json::to_string_pretty(&outcome.summary);
        console::print(&format!("{}\n", summary.map_err(Failure::environment)?))?;
    } else {
        console::print(&format!(
            "{}\nprofile: {}\nresults: {}\npage:    {}\n",
            outcome.text,
            args.out.display(),
            path.display(),
            path.join("calibration.html").display()
        ))?;
    }
    Ok(Exit::Done)
}

/// Candidates between two lines of progress.
const EVERY: u32 = 10;

fn show(bar: &Candidates, progress: &Progress<'_>) {
    let Progress {
        stage,
        evaluations,
        most,
        best,
    } = *progress;
    let best = if best.is_finite() {
        format!(", typical error {:.2} %", 100.0 * best.sqrt())
    } else {
        String::new()
    };
    if evaluations == 1 {
        bar.restart();
    }
    bar.show(
        u64::from(evaluations),
        u64::from(most),
        format!("{stage}{best}"),
    );
    if evaluations.is_multiple_of(EVERY) || evaluations == 1 {
        bar.line(&format!(
            "{stage}: {evaluations} of at most {most} candidates{best}"
        ));
    }
}
