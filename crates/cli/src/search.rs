//! `zonelab search`.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use zonelab_lab::evaluations;
use zonelab_lab::experiment::{MAX_BUDGET, SearchSpec};
use zonelab_lab::output::{self, Manifest, Place, ResultDir};
use zonelab_lab::search::{
    self, Commands, Goal, Knob, Method, ObjectiveSpec, Outcome, Progress, Runner, Search,
    SearchError, Source, Stop,
};
use zonelab_lab::settings::Settings;

use crate::console::{self, Candidates};
use crate::exit::{Exit, Failure};
use crate::files::{Files, ProfileFiles};
use crate::report;
use crate::reproduce::{self, Named};
use crate::results;
use crate::session::{Loaded, Work};

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

/// Searches for settings that nothing beats.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn search(args: &Args) -> Result<Exit, Failure> {
    let files = &Files::default();
    let named = reproduce::named(files, &args.experiment)?;
    let base = named.base.clone();
    let base = base.as_deref();
    let profiles = ProfileFiles { files, base };
    let search = prepare(args, named, &profiles)?;
    let configuration = configuration(&search, &profiles)?;
    let configured = configuration.to_string();
    let manifest = Manifest::new(results::TOOL, configured.as_bytes(), args.work.seed);
    let name = format!("{}-search", output::file_name(&search.experiment().id));
    let place = Place::new(args.out.as_deref(), &name, &manifest);
    let path = place.path();
    let dir = results::open_kept(path, manifest, args.force, evaluations::FILE)?;
    // Also of one that is interrupted, which goes on there.
    results::link(&place);
    let quiet = args.quiet || args.json;
    if !quiet {
        eprintln!(
            "zonelab: {} keys, {} objectives, at most {} candidates ({})",
            search.knobs().len(),
            search.objectives().len(),
            search.most(),
            search.method().name()
        );
    }
    let interrupted = console::interruptible("the points that run")?;
    let bar = Candidates::new(quiet);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.work.threads())
        .build()
        .map_err(Failure::environment)?;
    let runner = Runner {
        profiles: &profiles,
        on_progress: &|progress| show(&bar, progress),
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let result = pool.install(|| search.run(path, &configuration, &runner));
    bar.clear();
    match result {
        Ok(outcome) => finish(args, dir, &place, &outcome),
        Err(Stop::Failed(error)) => Err(failure(args, error)),
        Err(Stop::Interrupted | Stop::Spent) => {
            eprintln!(
                "zonelab: interrupted; the same command goes on from what is in {}",
                path.display()
            );
            Ok(Exit::Interrupted)
        }
    }
}

/// What the file's `[search]` says, with what the command line says in its place.
fn prepare(args: &Args, named: Named, profiles: &ProfileFiles<'_>) -> Result<Search, Failure> {
    let loaded = reproduce::load(profiles.files, &named, &args.set, args.quick)?;
    let mut settings = Settings::default();
    if args.quick {
        settings.file = loaded.experiment.quick.set;
    }
    let set = Settings::parse(&args.set);
    let set = set.map_err(|problem| Failure::usage(problem.to_string()))?;
    let source = Source {
        file: named.file,
        text: named.text,
        settings: settings.and(&set),
    };
    let spec = loaded.experiment.search.unwrap_or_default();
    let spec = spec_of(args, spec)?;
    let search = Search::prepare(source, spec, args.work.seed, profiles);
    let search = search.map_err(|error| failure(args, error))?;
    Ok(search.with_commands(commands(args)))
}

/// The commands that the page names.
fn commands(args: &Args) -> Commands {
    let with_set = |command: &str| {
        let mut words = vec![command.to_owned(), args.experiment.clone()];
        let set = args.set.iter();
        words.extend(set.flat_map(|set| ["--set".to_owned(), set.clone()]));
        words
    };
    let mut search = with_set("search");
    let options = [
        ("--over", &args.over),
        ("--minimize", &args.minimize),
        ("--maximize", &args.maximize),
    ];
    for (name, values) in options {
        search.extend(
            values
                .iter()
                .flat_map(|value| [name.to_owned(), value.clone()]),
        );
    }
    let single = [
        ("--method", args.method.clone()),
        ("--budget", args.budget.map(|budget| budget.to_string())),
        ("--weights", args.weights.clone()),
    ];
    for (name, value) in single {
        search.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    }
    let mut after = Vec::new();
    if args.quick {
        after.push("--quick".to_owned());
    }
    after.extend(["--seed".to_owned(), args.work.seed.to_string()]);
    search.extend(after.iter().cloned());
    Commands {
        tool: results::TOOL.to_owned(),
        search: report::line(&search),
        run: (report::line(&with_set("run")), after.join(" ")),
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
        spec.method = Method::ALL.into_iter().find(|method| method.name() == name);
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
    search::weights(pair).map_err(|wrong| Failure::usage(format!("--weights {text}: {wrong}")))
}

/// The exit code that an error leads to: what stands on the command line is
/// wrong usage, all else stands in files.
fn failure(args: &Args, error: SearchError) -> Failure {
    let has_objectives = !(args.minimize.is_empty() && args.maximize.is_empty());
    match &error {
        SearchError::Io { .. } => Failure::environment(error),
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
    };
    let over = search.knobs().iter();
    let over = over.map(|knob| json!({ "key": knob.key, "values": knob.describe() }));
    Ok(json!({
        "over": over.collect::<Vec<_>>(),
        "experiment": results::configuration(std::slice::from_ref(&loaded), profiles, None)?.value,
    }))
}

fn finish(
    args: &Args,
    mut dir: ResultDir,
    place: &Place,
    outcome: &Outcome,
) -> Result<Exit, Failure> {
    for (name, text) in &outcome.files {
        dir.write(name, text.as_bytes())
            .map_err(Failure::environment)?;
    }
    dir.finish().map_err(Failure::environment)?;
    if args.json {
        console::print(&outcome.json)?;
    } else {
        let path = place.path();
        console::print(&format!(
            "{}\nresults: {}\nfigure:  {}\npage:    {}\n",
            outcome.text(args.all, &console::style()),
            place.said(),
            path.join("front.svg").display(),
            path.join("search.html").display()
        ))?;
    }
    Ok(Exit::Done)
}

fn show(bar: &Candidates, progress: Progress) {
    let Progress {
        evaluations,
        most,
        on_front,
    } = progress;
    bar.show(
        evaluations as u64,
        most as u64,
        format!("{on_front} on the front"),
    );
    bar.line(&format!(
        "{evaluations} of at most {most} candidates, {on_front} on the front"
    ));
}
