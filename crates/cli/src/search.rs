//! `zonelab search`.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use zonelab_lab::bundle::Recipe;
use zonelab_lab::experiment::{MAX_BUDGET, SearchSpec};
use zonelab_lab::output::Existing;
use zonelab_lab::settings::Settings;
use zonelab_search::search::{Commands, Search, SearchError, Source};
use zonelab_search::sweep::{
    self, End, Files as Written, Format, Goal, Knob, ObjectiveSpec, Observer, Progress, Sample,
    Store, weights as sum_to_one,
};

use crate::console::{self, Candidates};
use crate::exit::{Exit, Failure};
use crate::files::ProfileFiles;
use crate::report;
use crate::reproduce::{self, Again, Named, Setting};
use crate::results;
use crate::session::{Loaded, Work};
use crate::sweep as of_sweeps;

/// Options of `search`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The experiment: a file, or the id of a built-in one
    experiment: String,
    /// What may be changed, with its values or its bounds: any key that --set
    /// takes [default: `over` in the file's [search]]
    #[arg(long, value_name = "KEY=V1,V2 | KEY=LOW..HIGH", num_args = 1..)]
    over: Vec<String>,
    /// An objective: METRIC, JOB/METRIC or SERIES/JOB/METRIC, with @X,X for some
    /// axis values; m_inter is interference. All that are given replace those
    /// of the file; minimized ones come first
    #[arg(long, value_name = "METRIC", num_args = 1..)]
    minimize: Vec<String>,
    /// An objective, the more the better
    #[arg(long, value_name = "METRIC", num_args = 1..)]
    maximize: Vec<String>,
    /// How candidates are chosen [default: grid if all keys have lists and all
    /// combinations fit the budget, else evolve]
    #[arg(long, value_parser = ["grid", "evolve"])]
    method: Option<String>,
    /// Candidates to evaluate at most [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_BUDGET)))]
    budget: Option<u32>,
    /// Weights of throughput and latency in m_inter; they add up to 1 [default:
    /// those of the file]
    #[arg(long, value_name = "ALPHA,BETA")]
    weights: Option<String>,
    /// Change a setting for all candidates, as in `run`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With the file's settings for --quick
    #[arg(long)]
    quick: bool,
    /// Where results go [default: results/ID-search/HASH, to which results/ID-search/latest
    /// leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    work: Work,
    /// Write the data set in this form, too, beside CSV and JSON Lines: parquet
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print what was dominated, too
    #[arg(long)]
    all: bool,
    /// Print search.json on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const HELP: &str = "\
Interrupted (Ctrl-C, exit code 130) or not, the same command goes on where it was: what
was run is in DIR/evaluations.jsonl. Other objectives of the same series, or other
weights, look at what is there without running it again. docs/search.md explains it.

  zonelab search C10a --quick --over drive.finish.granularity=16KiB..1MiB \\
      --minimize '256 KiB/write/m_inter' --maximize '256 KiB/finish/ops_s'";

impl Args {
    /// Makes it write results to be compared.
    pub(crate) fn again(&mut self, again: &Again<'_>) {
        self.out = Some(again.out.to_owned());
        self.force = false;
        self.json = false;
        self.quiet = again.quiet;
        self.work.set_threads(again.threads);
    }

    /// The words of the command that gives the same results, without the program.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["search".to_owned(), self.experiment.clone()];
        let options = [
            ("--set", &self.set),
            ("--over", &self.over),
            ("--minimize", &self.minimize),
            ("--maximize", &self.maximize),
        ];
        for (name, values) in options {
            let values = values.iter();
            words.extend(values.flat_map(|value| [name.to_owned(), value.clone()]));
        }
        let single = [
            ("--method", self.method.clone()),
            ("--budget", self.budget.map(|budget| budget.to_string())),
            ("--weights", self.weights.clone()),
        ];
        for (name, value) in single {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        if self.format.is_some() {
            words.extend(["--format", "parquet"].map(str::to_owned));
        }
        words.extend(self.after());
        words
    }

    /// What of it a command that runs the experiment has as well, after its settings.
    fn after(&self) -> Vec<String> {
        let quick = self.quick.then(|| "--quick".to_owned());
        let seed = ["--seed".to_owned(), self.work.seed.to_string()];
        quick.into_iter().chain(seed).collect()
    }
}

/// Searches for settings that nothing beats.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn search(args: &Args, setting: Setting<'_>) -> Result<Exit, Failure> {
    let named = reproduce::named(setting.files, &args.experiment)?;
    let base = named.base.clone();
    let source = named.source().to_owned();
    let profiles = ProfileFiles {
        files: setting.files,
        base: base.as_deref(),
    };
    let search = prepare(args, named, &profiles)?;
    let configuration = configuration(&search, &profiles)?;
    let place = search.pack().place(args.out.as_deref()).of(&source);
    let existing = match args.force {
        true => Existing::Replace,
        false => Existing::Keep,
    };
    let store = Store::create(&place, search.pack().clone(), existing);
    let mut store = store.map_err(of_sweeps::failure)?.with_format(args.format);
    let quiet = args.quiet || args.json;
    if !quiet {
        tell!(
            "zonelab: {} keys, {} objectives, at most {} candidates ({})",
            search.knobs().len(),
            search.objectives().len(),
            search.most(),
            search.method().name()
        );
    }
    let interrupted = console::interruptible("the points that run")?;
    let bar = Candidates::new(quiet);
    let observer = Observer {
        on_progress: &|progress| show(&bar, progress),
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let end = sweep::run(&mut store, args.work.threads(), &observer);
    bar.clear();
    match end.map_err(of_sweeps::failure)? {
        End::Done => finish(args, &search, store, &configuration, setting),
        End::Interrupted => {
            tell!(
                "zonelab: interrupted; the same command goes on from what is in {}",
                place.path().display()
            );
            Ok(Exit::Interrupted)
        }
    }
}

/// What the file's `[search]` says, with what the command line says in its place.
fn prepare(args: &Args, named: Named, profiles: &ProfileFiles<'_>) -> Result<Search, Failure> {
    let loaded = reproduce::load(profiles.files, &named, &args.set, args.quick)?;
    Settings::parse(&args.set).map_err(|problem| Failure::usage(problem.to_string()))?;
    // Settings of --quick, but every series: objectives may look at any.
    let quick = loaded.experiment.quick.set.iter().filter(|_| args.quick);
    let quick = quick.map(|set| set.text().to_owned());
    let source = Source {
        file: named.file,
        text: named.text,
        named: args.experiment.clone(),
        settings: quick.chain(args.set.iter().cloned()).collect(),
        seed: args.work.seed,
    };
    let spec = loaded.experiment.search.unwrap_or_default();
    let spec = spec_of(args, spec)?;
    let read = |path: &str| {
        let base = profiles.base.as_ref();
        let path = base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
        profiles.files.text(&path)
    };
    let search = Search::prepare(&source, spec, &read);
    let search = search.map_err(|error| failure(args, error))?;
    Ok(search.with_commands(commands(args)))
}

/// The commands that the page names.
fn commands(args: &Args) -> Commands {
    let mut run = vec!["run".to_owned(), args.experiment.clone()];
    let set = args.set.iter();
    run.extend(set.flat_map(|set| ["--set".to_owned(), set.clone()]));
    Commands {
        tool: results::TOOL.to_owned(),
        search: report::line(&args.words()),
        run: (report::line(&run), args.after().join(" ")),
    }
}

fn spec_of(args: &Args, mut spec: SearchSpec) -> Result<SearchSpec, Failure> {
    if !args.over.is_empty() {
        let knob = |text: &String| {
            Knob::parse(text).map_err(|wrong| Failure::usage(format!("--over {text}: {wrong}")))
        };
        spec.over = args.over.iter().map(knob).collect::<Result<_, _>>()?;
    }
    if !(args.minimize.is_empty() && args.maximize.is_empty()) {
        let objective = |goal: Goal, text: &String| {
            ObjectiveSpec::parse(goal, text)
                .map_err(|wrong| Failure::usage(format!("--{} {text}: {wrong}", goal.name())))
        };
        let minimized = args
            .minimize
            .iter()
            .map(|text| objective(Goal::Minimize, text));
        let maximized = args
            .maximize
            .iter()
            .map(|text| objective(Goal::Maximize, text));
        spec.objectives = minimized.chain(maximized).collect::<Result<_, _>>()?;
        // Values of the file's objectives.
        spec.published.clear();
    }
    if let Some(name) = &args.method {
        let mut methods = Sample::OF_SEARCH.into_iter();
        spec.method = methods.find(|method| method.name() == name);
    }
    spec.budget = args.budget.or(spec.budget);
    if let Some(text) = &args.weights {
        spec.weights = Some(weights(text)?);
    }
    Ok(spec)
}

fn weights(text: &str) -> Result<(f64, f64), Failure> {
    let pair = text.split_once(',').and_then(|(alpha, beta)| {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some((number(alpha)?, number(beta)?))
    });
    let pair = pair.ok_or_else(|| {
        Failure::usage(format!(
            "--weights {text}: these are not two numbers; write for example 0.5,0.5"
        ))
    })?;
    sum_to_one(pair).map_err(|wrong| Failure::usage(format!("--weights {text}: {wrong}")))
}

/// The exit code that an error leads to: what stands on the command line is
/// wrong usage, all else stands in files.
fn failure(args: &Args, error: SearchError) -> Failure {
    let has_objectives = !(args.minimize.is_empty() && args.maximize.is_empty());
    match &error {
        SearchError::Over { key, .. } if key.is_empty() || !args.over.is_empty() => {
            Failure::new(Exit::Usage, error)
        }
        SearchError::Objectives { named, .. } if !named || has_objectives => {
            Failure::new(Exit::Usage, error)
        }
        SearchError::Method(_) => Failure::new(Exit::Usage, error),
        _ => Failure::input(error),
    }
}

/// Everything that evaluations depend on. What is better, and for how long to
/// look for it, is no part of it.
fn configuration(search: &Search, profiles: &ProfileFiles<'_>) -> Result<Value, Failure> {
    let loaded = Loaded {
        text: String::new(),
        resolved: search.resolved().map_err(Failure::input)?,
        experiment: search.experiment().clone(),
        points: search.own_points().map_err(Failure::input)?,
        reference: None,
        is_own: true,
    };
    let over = search.knobs().iter();
    let over = over.map(|knob| json!({ "key": knob.key, "values": knob.describe() }));
    let experiment = results::configuration(std::slice::from_ref(&loaded), profiles, None);
    Ok(json!({
        "over": over.collect::<Vec<_>>(),
        "experiment": experiment.map_err(Failure::input)?.value,
    }))
}

fn finish(
    args: &Args,
    search: &Search,
    mut store: Store,
    configuration: &Value,
    setting: Setting<'_>,
) -> Result<Exit, Failure> {
    // What several searches left here cannot be made again by the last of them.
    if store.is_of_one_search() {
        let mut recipe = Recipe::new(results::TOOL, args.words());
        for (name, bytes) in results::written(&mut recipe, setting.files.read())? {
            store.put(&name, &bytes).map_err(of_sweeps::failure)?;
        }
    }
    let mut outcome = None;
    let finished = store.finish_with(|pack, lines, _| {
        let found = search.outcome(pack, lines, configuration);
        let files = found.files.iter();
        let files = files.map(|(name, text)| (name.clone(), text.clone().into_bytes()));
        let files: Written = files.collect();
        outcome = Some(found);
        Ok(files)
    });
    let finished = finished.map_err(of_sweeps::failure)?;
    results::warn(&finished.put);
    let Some(outcome) = outcome.filter(|_| !setting.is_silent) else {
        return Ok(Exit::Done);
    };
    if args.json {
        console::print(&outcome.json)?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{}\nresults: {}\n",
        outcome.text(args.all, &console::style()),
        finished.put.said()
    );
    for file in &finished.files {
        text.push_str(&format!("  {}\n", file.display()));
    }
    console::print(&text)?;
    Ok(Exit::Done)
}

fn show(bar: &Candidates, progress: Progress) {
    /// Candidates for each line, where there is no bar.
    const LINE_EVERY: u64 = 8;
    let Progress {
        done,
        tasks,
        on_front,
        ..
    } = progress;
    // The first is the file as it is.
    let (done, most) = (done.saturating_sub(1), tasks.saturating_sub(1));
    let on_front = on_front.map_or_else(String::new, |count| format!("{count} on the front"));
    let comma = if on_front.is_empty() { "" } else { ", " };
    // As often as candidates are chosen.
    if done % LINE_EVERY == 0 || done == most {
        bar.line(&format!(
            "{done} of at most {most} candidates{comma}{on_front}"
        ));
    }
    bar.show(done, most, on_front);
}
