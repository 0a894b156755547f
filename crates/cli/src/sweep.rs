//! `zonelab sweep`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use serde_json::json;
use zonelab_lab::bundle::Recipe;
use zonelab_lab::output::{Existing, Place};
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_search::sweep::{
    self, End, Finished, Format, MAX_POINTS, MAX_REPEATS, Observer, Pack, SUMMARY, Source, Store,
    Sweep, SweepError,
};

use crate::console::{self, Runs};
use crate::exit::{Exit, Failure};
use crate::files::{self, Files};
use crate::reproduce::{Again, Setting};
use crate::results;
use crate::session::Work;

/// Options of `sweep`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The sweep file: an experiment, what differs from point to point, and how points
    /// are chosen
    file: String,
    /// Change a setting of the experiment or its drive for all points, as in `run`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// So many points, in place of those of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_POINTS)))]
    points: Option<u32>,
    /// So many repeats of each point with seeds of their own, in place of those of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_REPEATS)))]
    repeats: Option<u32>,
    /// The reduced form: [quick] of the sweep and of the experiment
    #[arg(long)]
    quick: bool,
    /// Print the points, and run nothing
    #[arg(long)]
    list: bool,
    /// Where results go [default: results/NAME/HASH, a directory for each configuration,
    /// to the newest of which results/NAME/latest leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    /// Write the data set in this form, too, beside CSV and JSON Lines: parquet
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    work: Work,
    /// Print every point, also those that are not on the front, or every row of measurements
    #[arg(long)]
    all: bool,
    /// Print sweep.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
Interrupted (Ctrl-C, exit code 130) or killed, the same command goes on where it was: what
was run is in DIR/evaluations.jsonl. The data set is DIR/sweep.csv, and the same as
DIR/sweep.jsonl. docs/sweep.md explains it.

  zonelab sweep docs/examples/sweep-interference.toml --quick";

impl Args {
    /// The words of the command that gives the same results, without the program.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["sweep".to_owned(), self.file.clone()];
        for set in &self.set {
            words.extend(["--set".to_owned(), set.clone()]);
        }
        let counts = [("--points", self.points), ("--repeats", self.repeats)];
        for (name, count) in counts {
            words.extend(
                count
                    .into_iter()
                    .flat_map(|n| [name.to_owned(), n.to_string()]),
            );
        }
        words.extend(self.quick.then(|| "--quick".to_owned()));
        if self.format.is_some() {
            words.extend(["--format", "parquet"].map(str::to_owned));
        }
        words.extend(["--seed".to_owned(), self.work.seed.to_string()]);
        words
    }

    /// Makes it write results to be compared.
    pub(crate) fn again(&mut self, again: &Again<'_>) {
        self.out = Some(again.out.to_owned());
        self.force = false;
        self.list = false;
        self.json = false;
        self.quiet = again.quiet;
        self.work.set_threads(again.threads);
    }
}

/// Runs a sweep.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn sweep(args: &Args, setting: Setting<'_>) -> Result<Exit, Failure> {
    let sweep = prepare(args, setting.files)?;
    if args.list {
        return list(&sweep.pack().with_first(), args.json);
    }
    let place = sweep.pack().place(args.out.as_deref()).of(&args.file);
    let existing = if args.force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let store = Store::create(&place, sweep.into_pack(), existing).map_err(failure)?;
    let store = store.with_format(args.format);
    run(args, store, &place, setting)
}

fn prepare(args: &Args, files: &Files) -> Result<Sweep, Failure> {
    let text = files::read_from(files, &args.file)?;
    let source = Source {
        settings: args.set.clone(),
        quick: args.quick,
        seed: args.work.seed,
        points: args.points,
        repeats: args.repeats,
        ..Source::new(&args.file, &text)
    };
    prepared(&source, files)
}

fn prepared(source: &Source, files: &Files) -> Result<Sweep, Failure> {
    zonelab_lab::settings::Settings::parse(&source.settings)
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    let base = Path::new(&source.file).parent().map(Path::to_owned);
    let read = |path: &str| {
        let path = base
            .as_ref()
            .map_or_else(|| path.into(), |base| base.join(path));
        files.text(&path)
    };
    Sweep::prepare(source, &read).map_err(Failure::input)
}

fn run(
    args: &Args,
    mut store: Store,
    place: &Place,
    setting: Setting<'_>,
) -> Result<Exit, Failure> {
    let quiet = args.quiet || args.json;
    let (done, _) = store.counts();
    let most = store.pack().most();
    if !quiet {
        let before = match done {
            0 => String::new(),
            done => format!(", {done} of them done before"),
        };
        let pack = store.pack();
        let at_most = if pack.adaptive.is_some() {
            "at most "
        } else {
            ""
        };
        let points = most / u64::from(pack.inputs.repeats);
        tell!(
            "zonelab: {at_most}{points} points ({}), {at_most}{most} runs{before}",
            pack.sample.name()
        );
    }
    let interrupted = console::interruptible("the runs that are under way")?;
    let progress = Runs::new(quiet, (done, most));
    let observer = Observer {
        on_progress: &|so_far| progress.show(so_far.done, so_far.failed, so_far.tasks),
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let end = sweep::run(&mut store, args.work.threads(), &observer);
    progress.clear();
    match end.map_err(failure)? {
        End::Done => {
            // What several searches left here cannot be made again by the last of them.
            if store.is_of_one_search() {
                let mut recipe = Recipe::new(results::TOOL, args.words());
                for (name, bytes) in results::written(&mut recipe, setting.files.read())? {
                    store.put(&name, &bytes).map_err(failure)?;
                }
            }
            let finished = store.finish().map_err(failure)?;
            results::warn(&finished.put);
            if !setting.is_silent {
                show(args, &finished)?;
            }
            Ok(Exit::Done)
        }
        End::Interrupted => {
            let (done, _) = store.counts();
            tell!(
                "zonelab: interrupted after {done} of {most} runs; the same command goes on from \
                 what is in {}",
                place.path().display()
            );
            Ok(Exit::Interrupted)
        }
    }
}

fn show(args: &Args, finished: &Finished) -> Result<(), Failure> {
    if args.json {
        let summary = finished.put.path().join(SUMMARY);
        let text = std::fs::read_to_string(&summary).map_err(Failure::environment)?;
        return console::print(&text);
    }
    let mut text = finished
        .pack
        .text(&finished.lines, args.all, &console::style())
        .map_err(failure)?;
    text.push_str(&format!("\nresults: {}\n", finished.put.said()));
    for file in &finished.files {
        text.push_str(&format!("  {}\n", file.display()));
    }
    console::print(&text)
}

/// The points, with the number of each.
fn list(pack: &Pack, as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        let names: Vec<&String> = pack.keys.iter().map(|key| &key.name).collect();
        let value = json!({
            "schema": 1,
            "name": pack.name,
            "sample": pack.sample,
            "repeats": pack.inputs.repeats,
            "runs": pack.len(),
            "keys": names,
            "points": pack.points,
        });
        console::print(&format!("{value}\n"))?;
        return Ok(Exit::Done);
    }
    let keys = pack.keys.iter().map(|key| Column::number(&key.name));
    let mut table = Table::new([Column::number("point")].into_iter().chain(keys));
    for (number, point) in pack.points.iter().enumerate() {
        let number = Cell::from(number.to_string().as_str());
        let values = point.iter().map(|value| Cell::from(value.as_str()));
        table.push([number].into_iter().chain(values));
    }
    let text = table.to_text(&console::style());
    let (points, runs) = (pack.points.len(), pack.len());
    let more = match &pack.adaptive {
        None => String::new(),
        Some(_) => format!(
            ", and others as these come out: at most {} runs",
            pack.most()
        ),
    };
    console::print(&format!("{text}{points} points, {runs} runs{more}\n"))?;
    Ok(Exit::Done)
}

/// `zonelab check` of a sweep file: every point, without running any.
///
/// # Errors
/// The file is wrong, or none of its points can be run.
pub(crate) fn check(
    file: &str,
    text: &str,
    set: &[String],
    as_json: bool,
) -> Result<Exit, Failure> {
    let source = Source {
        settings: set.to_vec(),
        ..Source::new(file, text)
    };
    let sweep = prepared(&source, &Files::default())?;
    let pack = &sweep.pack().with_first();
    let refused: Vec<(usize, String)> = (0..pack.points.len())
        .into_par_iter()
        .filter_map(|point| Some((point, pack.check(point).err()?)))
        .collect();
    let points = pack.points.len();
    let of_points: Vec<Vec<String>> = (0..points)
        .into_par_iter()
        .map(|of| pack.idle(of))
        .collect();
    let warnings: BTreeSet<String> = of_points.into_iter().flatten().collect();
    if as_json {
        let refused: Vec<_> = refused
            .iter()
            .map(|(point, why)| json!({ "point": point, "why": why }))
            .collect();
        let value = json!({
            "schema": 1,
            "sweep": pack.name,
            "experiment": pack.experiment,
            "points": points,
            "runs": pack.len(),
            "refused": refused,
            "warnings": warnings,
        });
        console::print(&format!("{value}\n"))?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{file}: sweep of {}, {} keys, {points} points ({}), {} runs; ",
        pack.experiment,
        pack.keys.len(),
        pack.sample.name(),
        pack.len()
    );
    match refused.first() {
        None => text.push_str("all can be run\n"),
        Some((point, why)) => {
            let count = refused.len();
            text.push_str(&format!(
                "{count} of the points are refused and will be rows that say so, the first of \
                 them, {point}: {why}\n"
            ));
        }
    }
    for warning in &warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    console::print(&text)?;
    Ok(Exit::Done)
}

/// The exit code that an error leads to.
pub(crate) fn failure(error: SweepError) -> Failure {
    match &error {
        SweepError::Output(_) | SweepError::Io { .. } | SweepError::Unfinished { .. } => {
            Failure::environment(error)
        }
        SweepError::Invalid(_)
        | SweepError::Pack(_)
        | SweepError::Version { .. }
        | SweepError::NoSuchTask { .. } => Failure::input(error),
    }
}
