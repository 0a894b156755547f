//! `zonelab reproduce` and `zonelab run`.

mod again;
mod listed;
mod said;
mod shown;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zonelab_lab::bundle::Recipe;
use zonelab_lab::compare;
use zonelab_lab::difference::{self, Difference};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::figure::Width;
use zonelab_lab::library;
use zonelab_lab::output;
use zonelab_lab::published::References;
use zonelab_lab::rows::{self, Misfits, Row, Scope, Stats, Summary};
use zonelab_lab::run::PointResult;
use zonelab_lab::session::{
    ALTERED, Gathered, Judged, Measured, Selected, Terms, alters, selected,
};
pub(crate) use zonelab_lab::session::{Named, load_named as load, named, open};
use zonelab_lab::table;

use crate::conditions::{self, ConditionArgs};
use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{self, ProfileFiles};
use crate::host_state::HostState;
use crate::on_device::{self, DeviceArgs, On};
use crate::report::{Asked, Invocation};
use crate::results::{self, Destination, Outcome, Subject};
use crate::session::{self, Finished, Loaded, Work};
use crate::trace::{SLOWEST, Tracing};
pub(crate) use again::{Again, Setting};
use said::{JobMessages, idle, notices, of_jobs};
pub(crate) use said::{failures, tell_struck, unstruck};
use shown::{Shown, text};

/// Options of both commands.
#[derive(clap::Args)]
struct Common {
    /// Where results go [default: results/NAME/HASH, a directory for each configuration,
    /// to the newest of which results/NAME/latest leads]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    work: Work,
    /// Run every point so often, each time with a seed of its own, for means with
    /// confidence intervals [default: what the experiment says, or once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Print the tables of all rows, also of several figures
    #[arg(long)]
    rows: bool,
    /// Print the rows as JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
    /// Shorter runs of what is steady, and fewer points of real drives
    #[arg(long)]
    quick: bool,
    /// Draw figures for this width, as 85mm for a column of a paper or 640px [default: the
    /// experiment's `figure.width`, or that of a page on a screen]
    #[arg(long, value_name = "WIDTH")]
    figure_width: Option<Width>,
    #[command(flatten)]
    tracing: Tracing,
}

impl Common {
    fn invocation(&self, asked: Asked) -> Invocation {
        let width = self.figure_width.iter();
        let width = width.flat_map(|width| ["--figure-width".to_owned(), width.to_string()]);
        Invocation {
            asked,
            quick: self.quick,
            seed: self.work.seed,
            options: width.collect(),
        }
    }

    /// The setting of experiment files that `--repeats` is.
    fn repeats(&self) -> Vec<String> {
        let set = self.repeats.iter();
        set.map(|repeats| format!("repeats={repeats}")).collect()
    }

    /// The option, to give the command again, if it says something else than the file.
    fn repeats_words(&self, own: u32) -> Vec<String> {
        match self.repeats {
            Some(repeats) if repeats != own => vec!["--repeats".to_owned(), repeats.to_string()],
            _ => Vec::new(),
        }
    }
}

/// What both commands do with experiments.
struct Plan<'a> {
    /// Directory of the results, below `results`.
    name: String,
    /// What they are results of ([`output::Place::of`]).
    source: String,
    /// Where files are read, and whether results are shown.
    setting: Setting<'a>,
    /// Where profiles are found.
    profiles: ProfileFiles<'a>,
    /// Settings differ from those of the file, so published values are shown
    /// and not judged.
    altered: bool,
    /// The experiment is a user's own.
    is_own: bool,
    /// The device that was named.
    device: Option<String>,
    /// What was asked for.
    invocation: Invocation,
    /// Faults, and a state to start from.
    conditions: conditions::Loaded,
    /// What was not run of what was asked for, and why.
    skipped: Vec<String>,
    /// The same in one line, without the reasons.
    left_out: Option<String>,
    /// How much of everything it is.
    scope: Scope,
}

/// Options of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to reproduce: ids such as C10a, a paper's letter such as C, or a bundle that
    /// `zonelab bundle` made [default: everything]
    #[arg(value_name = "PAPER|ID|BUNDLE")]
    what: Vec<String>,
    /// List what there is, and stop
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    common: Common,
}

/// Options of `run`.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// The experiment: a file, or the id of a built-in one
    experiment: String,
    /// Change a setting of the experiment file (`job.0.runtime=20s`), or of
    /// its drive (`drive.finish.granularity=64KiB`)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    conditions: ConditionArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    common: Common,
}

/// Runs built-in experiments and judges them.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn reproduce(args: &Args, setting: Setting<'_>) -> Result<Exit, Failure> {
    if args.list {
        return match args.common.json {
            true => listed::as_json(),
            false => listed::as_text(),
        };
    }
    let Setting { files, .. } = setting;
    let repeats = files::overrides(&args.common.repeats())?;
    let selected = selected(files, &args.what, &repeats, args.common.quick)?;
    // Results of one experiment do not stand in the way of those of another.
    let which = if selected.is_all {
        String::new()
    } else {
        format!("-{}", selected.ids.join("-"))
    };
    let quick = if args.common.quick { "-quick" } else { "" };
    let left_out = left_out(&selected);
    let mut invocation = args.common.invocation(Asked::Reproduce(args.what.clone()));
    // None of the built-in ones says how often.
    invocation.options.extend(args.common.repeats_words(1));
    let plan = Plan {
        name: format!("reproduce{which}{quick}"),
        source: output::BUILTIN.to_owned(),
        setting,
        profiles: ProfileFiles { files, base: None },
        altered: false,
        is_own: false,
        device: None,
        invocation,
        conditions: conditions::Loaded::default(),
        skipped: selected.skipped,
        left_out,
        scope: Scope {
            quick: args.common.quick,
            whole: selected.is_all,
        },
    };
    execute(selected.loaded, &args.common, &plan, On::Virtual)
}

/// The ids of what is not part of `--quick`, in one line.
fn left_out(selected: &Selected) -> Option<String> {
    let is_run = |id: &&str| selected.loaded.iter().any(|one| one.experiment.id == **id);
    let ids = selected.ids.iter().filter(|id| !is_run(id));
    let ids: Vec<&str> = ids.copied().collect();
    let line = || {
        format!(
            "not part of --quick: {} (the report says why)",
            ids.join(", ")
        )
    };
    (!ids.is_empty()).then(line)
}

/// Runs one experiment file.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn run(args: &RunArgs, setting: Setting<'_>) -> Result<Exit, Failure> {
    let Setting { files, .. } = setting;
    let named = named(files, &args.experiment)?;
    let own = load(files, &named, &args.set, args.common.quick)?;
    let own_repeats = own.experiment.repeats;
    let mut loaded = match args.common.repeats {
        None => own,
        Some(_) => {
            let set = [args.set.as_slice(), &args.common.repeats()].concat();
            load(files, &named, &set, args.common.quick)?
        }
    };
    let source = named.source().to_owned();
    let base = named.base;
    let asked = Asked::Run(args.experiment.clone(), args.set.clone());
    let profiles = |loaded: &Loaded| -> Vec<String> {
        let points = loaded.points.iter();
        points.map(|p| p.experiment().profile.clone()).collect()
    };
    let own_profiles = profiles(&loaded);
    let options = on_device::Options {
        set: &args.set,
        conditions: &args.conditions,
        is_traced: args.common.tracing.is_asked(),
    };
    let profile_files = ProfileFiles {
        files,
        base: base.as_deref(),
    };
    let on = args.device.open(&mut loaded, &profile_files, &options)?;
    let is_other = profiles(&loaded) != own_profiles;
    let conditions = args.conditions.load_for(files, &mut loaded.points)?;
    let mut invocation = args.common.invocation(asked);
    let options = &mut invocation.options;
    options.extend(args.device.words());
    options.extend(conditions.words.clone());
    options.extend(args.common.repeats_words(own_repeats));
    let plan = Plan {
        name: output::file_name(&loaded.experiment.id),
        source,
        is_own: loaded.is_own,
        setting,
        profiles: profile_files,
        device: args.device.name().map(str::to_owned),
        altered: args.set.iter().any(|set| alters(set))
            || is_other
            || conditions.configuration.is_some(),
        invocation,
        conditions,
        skipped: Vec::new(),
        left_out: None,
        scope: Scope {
            quick: args.common.quick,
            whole: false,
        },
    };
    execute(vec![loaded], &args.common, &plan, on)
}

/// Runs experiments, writes their results and shows them.
fn execute(
    mut loaded: Vec<Loaded>,
    common: &Common,
    plan: &Plan<'_>,
    on: On,
) -> Result<Exit, Failure> {
    let scope = plan.scope;
    let references = session::references(&loaded)?;
    let misfits =
        Misfits::parse(library::MISFITS_FILE, library::MISFITS).map_err(Failure::input)?;
    // One figure is shown with its rows at the end anyway.
    let says_lines = common.rows && loaded.len() > 1;
    let on_figure = |experiment: &Experiment, results: &[PointResult]| {
        let mut rows = compare::rows(experiment, results, &references).ok()?;
        rows::count_once(&mut rows);
        let _ = misfits.apply(&mut rows, scope);
        says_lines.then(|| table::figure_line(&experiment.id, &Stats::of(&rows)))
    };
    let settings = session::Settings {
        seed: common.work.seed,
        threads: common.work.threads(),
        quiet: common.quiet || common.json,
        profiles: plan.profiles,
        conditions: &plan.conditions.conditions,
        on_figure: &on_figure,
    };
    // What can go wrong should do so before anything runs, not after.
    on.check(&loaded, &plan.profiles)?;
    let mut experiments = loaded.iter().map(|one| &one.experiment);
    let checked = experiments.try_for_each(|one| references.check(one));
    checked.map_err(Failure::input)?;
    let left = session::look_at(&loaded, &references)?;
    common.tracing.mark(&mut loaded)?;
    explain_slowest(&mut loaded);
    let configuration = configuration(&loaded, plan, &on)?;
    let to = destination(common, plan, configuration.value);
    results::prepare(&to)?;
    let (is_real, device) = (on.is_real(), plan.device.as_deref().unwrap_or_default());
    let ran = run_points(loaded, &settings, (on, device))?;
    let (finished, is_partial) = (&ran.finished, ran.is_partial());
    let of_one = |one: &Finished| difference::differences(&one.experiment, &one.results);
    let differences: Vec<Difference> = finished.iter().flat_map(of_one).collect();
    let scope = Scope {
        whole: scope.whole && !is_partial,
        ..scope
    };
    let Judged {
        rows,
        mut summary,
        outdated,
        suspects,
    } = judged(finished, &references, (plan, is_real), (scope, &misfits))?;
    let warnings = [idle(finished, plan), unstruck(finished, &plan.conditions)].concat();
    let of_jobs = of_jobs(finished, &warnings);
    summary.warnings = [of_jobs.ended.clone(), warnings].concat();
    suspects.iter().for_each(|what| warn(what));
    let every_row = common.rows || finished.len() == 1;
    say_of_run(&of_jobs, plan, every_row);
    let outcome = Outcome {
        finished,
        rows: &rows,
        differences: &differences,
        summary: &summary,
        drives: &configuration.drives,
        references: &references,
        misfits: &misfits,
        invocation: &plan.invocation,
        notices: [notices(plan, (&ran, &rows)), left, suspects].concat(),
        complete: !is_partial,
        lost: ran.lost.as_deref(),
        host: ran.host.as_ref(),
        // What is measured in real time is not the same again.
        recipe: (!is_real).then(|| recipe(common, plan)),
    };
    let (put, figures) = results::write(&to, outcome)?;
    let shown = Shown {
        finished,
        rows: &rows,
        differences: &differences,
        summary: &summary,
        every_row,
        is_own: plan.is_own,
        is_partial,
    };
    if !plan.setting.is_silent {
        show(common, &shown, &text(&shown, &put, &figures))?;
        say(outdated.iter().filter(|_| !common.json));
    }
    Ok(exit(put.path(), &ran, of_jobs.failed, &summary))
}

/// Says what became of jobs, and what was not run: with all reasons, or in a line each.
fn say_of_run(of_jobs: &JobMessages, plan: &Plan<'_>, every_row: bool) {
    match every_row {
        true => say(of_jobs.lines.iter().chain(&plan.skipped)),
        false => say(of_jobs.brief.iter().chain(&plan.left_out)),
    }
}

/// Has the points of a single experiment say what their slowest commands waited for. It takes a
/// fifth more time, which all figures together cannot spare.
fn explain_slowest(loaded: &mut [Loaded]) {
    if let [one] = loaded {
        for point in &mut one.points {
            point.explain_slowest(SLOWEST);
        }
    }
}

/// Prints results, for people or for programs.
fn show(common: &Common, shown: &Shown<'_>, text: &str) -> Result<(), Failure> {
    if !common.json {
        return console::print(text);
    }
    let (rows, summary, differences) = (shown.rows, shown.summary, shown.differences);
    let seed = common.work.seed;
    console::print(&rows::to_json_with(rows, summary, seed, differences))
}

/// How the same results are made: the command, and what it read.
fn recipe(common: &Common, plan: &Plan<'_>) -> (Recipe, Gathered) {
    let words = [plan.invocation.words(), common.tracing.words()].concat();
    (Recipe::new(results::TOOL, words), plan.setting.files.read())
}

/// Says something that a user should not overlook.
fn warn(what: &str) {
    tell!("zonelab: warning: {what}");
}

/// Says something that is no result, each on a line.
fn say(lines: impl Iterator<Item: std::fmt::Display>) {
    lines.for_each(|line| tell!("zonelab: {line}"));
}

/// What was run.
struct Ran {
    finished: Vec<Finished>,
    is_interrupted: bool,
    /// What failed on the device, after which no point was run.
    lost: Option<String>,
    /// The state of the host of a run in real time.
    host: Option<HostState>,
}

impl Ran {
    /// Whether points are missing.
    const fn is_partial(&self) -> bool {
        self.is_interrupted || self.lost.is_some()
    }
}

/// Whether points were not run, or what is said of a matrix may not be whole: an interruption
/// that came after the last of them changed nothing.
fn are_missing(finished: &[Finished]) -> bool {
    let mut all = finished.iter();
    all.any(|one| one.results.len() < one.points.len() || one.experiment.matrix.is_some())
}

/// Runs experiments, under either clock.
fn run_points(
    loaded: Vec<Loaded>,
    settings: &session::Settings<'_>,
    (mut on, device): (On, &str),
) -> Result<Ran, Failure> {
    if !on.is_real() {
        let (finished, is_interrupted) = session::run(loaded, settings)?;
        return Ok(Ran {
            is_interrupted: is_interrupted && are_missing(&finished),
            finished,
            lost: None,
            host: None,
        });
    }
    let mut host = HostState::before(device);
    let run = session::run_in_real_time(loaded, settings, &mut on);
    let late = run.as_ref().ok().map(session::InRealTime::lateness);
    host.after(late.as_ref());
    let left = on.leave();
    let run = run?;
    // A connection that is lost says more than the command that was.
    let lost = match (run.failure, left) {
        (Some(failure), Some(lost)) => Some(format!("{failure}: {lost}")),
        (Some(failure), None) => Some(failure),
        (None, Some(lost)) => {
            tell!("zonelab: warning: when the device was left: {lost}");
            None
        }
        (None, None) => None,
    };
    Ok(Ran {
        is_interrupted: run.is_interrupted && are_missing(&run.finished),
        finished: run.finished,
        lost,
        host: Some(host),
    })
}

/// How it ended.
fn exit(path: &Path, ran: &Ran, failed: bool, summary: &Summary) -> Exit {
    if let Some(lost) = &ran.lost {
        let path = path.display();
        tell!("zonelab: {lost}\nzonelab: {path} holds the points that were done before");
        return Exit::Device;
    }
    if ran.is_interrupted {
        tell!(
            "zonelab: interrupted: {} holds what was done",
            path.display()
        );
        return Exit::Interrupted;
    }
    match (failed, summary.pass()) {
        (true, _) => Exit::Device,
        (false, true) => Exit::Done,
        (false, false) => Exit::ExpectationFailed,
    }
}

/// Compares and judges. Of an altered run, published values are shown.
fn judged(
    finished: &[Finished],
    references: &References,
    (plan, is_real): (&Plan<'_>, bool),
    (scope, misfits): (Scope, &Misfits),
) -> Result<Judged, Failure> {
    let shown = plan.altered.then_some(ALTERED);
    let measured = finished.iter().map(|one| Measured {
        experiment: &one.experiment,
        results: &one.results,
        points: one.points.len(),
    });
    let all: Vec<Measured<'_>> = measured.collect();
    let terms = Terms {
        misfits,
        scope,
        shown,
        is_own: plan.is_own,
    };
    let mut judged = Judged::of(&all, references, terms).map_err(Failure::input)?;
    // The list is about the emulated drives.
    if is_real {
        judged.outdated.clear();
    }
    if is_altered(plan, &judged.rows) {
        tell!("zonelab: {ALTERED}: published values are shown, not judged");
    }
    Ok(judged)
}

/// Whether something that was published is shown and not judged, since settings or conditions
/// are others.
fn is_altered(plan: &Plan<'_>, rows: &[Row]) -> bool {
    let is_shown = |row: &Row| row.published.is_some() || (row.is_statement() && !plan.is_own);
    plan.altered && rows.iter().any(is_shown)
}

/// Where results go, and what they are results of.
fn destination<'a>(common: &'a Common, plan: &Plan<'_>, configuration: Value) -> Destination<'a> {
    let subject = Subject {
        name: &plan.name,
        source: &plan.source,
        configuration,
        decides: decides(common, plan),
    };
    let to = Destination::new(
        common.out.as_deref(),
        subject,
        (common.work.seed, common.force),
        (common.tracing.file(), common.tracing.is_uncompressed()),
    );
    to.with_figures(common.figure_width)
}

/// What decides verdicts and files besides what is measured.
fn decides(common: &Common, plan: &Plan<'_>) -> Value {
    json!({
        "altered": plan.altered,
        "own": plan.is_own,
        "quick": plan.scope.quick,
        "figure_width": common.figure_width.map(|width| width.to_string()),
        "trace": common.tracing.words(),
    })
}

/// All that results depend on, besides the seed.
fn configuration(
    loaded: &[Loaded],
    plan: &Plan<'_>,
    on: &On,
) -> Result<results::Configuration, Failure> {
    let mut configuration = on.configuration(loaded, &plan.profiles)?;
    let list = configuration.value.as_array_mut();
    if let (Some(list), Some(conditions)) = (list, &plan.conditions.configuration) {
        list.push(conditions.clone());
    }
    Ok(configuration)
}
