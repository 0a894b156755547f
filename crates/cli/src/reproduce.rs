//! `zonelab reproduce` and `zonelab run`.

mod said;
mod shown;

use std::path::{Path, PathBuf};

use zonelab_lab::catalogue;
use zonelab_lab::compare;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;
use zonelab_lab::published::References;
use zonelab_lab::rows::{self, Misfits, Outdated, Row, Scope, Stats, Summary};
use zonelab_lab::run::PointResult;
use zonelab_lab::settings::Settings;
use zonelab_lab::table::{self, Cell, Column, Table};

use crate::conditions::{self, ConditionArgs};
use crate::console;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::on_device::{self, DeviceArgs, On};
use crate::report::{Asked, Invocation};
use crate::results::{self, Destination, Outcome};
use crate::session::{self, Finished, Loaded, Work};
use crate::trace::Tracing;
use said::{ended_early, failures, notices};
use shown::{Shown, text};

/// Options of both commands.
#[derive(clap::Args)]
struct Common {
    /// Where results go [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    work: Work,
    /// Print every row, also of several figures
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
    #[command(flatten)]
    tracing: Tracing,
}

impl Common {
    fn invocation(&self, asked: Asked) -> Invocation {
        Invocation {
            asked,
            quick: self.quick,
            seed: self.work.seed,
            options: Vec::new(),
        }
    }
}

/// What both commands do with experiments.
struct Plan<'a> {
    /// Directory of the results, below `results`.
    name: String,
    /// Directory that profiles named by path are relative to.
    base: Option<&'a Path>,
    /// Settings differ from those of the file, so published values are shown
    /// and not judged.
    altered: bool,
    /// What was asked for.
    invocation: Invocation,
    /// Faults, and a state to start from.
    conditions: conditions::Loaded,
    /// What was not run of what was asked for, and why.
    skipped: Vec<String>,
    /// How much of everything it is.
    scope: Scope,
}

/// Options of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to reproduce: ids such as C10a, or a paper's letter such as C [default: everything]
    #[arg(value_name = "PAPER|ID")]
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
pub(crate) fn reproduce(args: &Args) -> Result<Exit, Failure> {
    if args.list {
        return list();
    }
    let ids = selected(&args.what)?;
    let mut loaded = Vec::new();
    let mut skipped = Vec::new();
    for id in &ids {
        let text = library::text(id).unwrap_or_default();
        let file = format!("{id}.toml");
        let one = session::load(&file, text, &[], args.common.quick)?;
        match &one.experiment.quick.skip {
            Some(why) if args.common.quick && !args.what.iter().any(|word| word == id) => {
                skipped.push(format!("{id} is not part of --quick: {why}."));
            }
            _ => loaded.push(one),
        }
    }
    // Results of one experiment do not stand in the way of those of another.
    let all = ids.len() == library::ids().count();
    let which = if all {
        String::new()
    } else {
        format!("-{}", ids.join("-"))
    };
    let quick = if args.common.quick { "-quick" } else { "" };
    let plan = Plan {
        name: format!("reproduce{which}{quick}"),
        base: None,
        altered: false,
        invocation: args.common.invocation(Asked::Reproduce(args.what.clone())),
        conditions: conditions::Loaded::default(),
        skipped,
        scope: Scope {
            quick: args.common.quick,
            whole: all,
        },
    };
    execute(loaded, &args.common, &plan, On::Virtual)
}

/// Runs one experiment file.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let opened = open(&args.experiment, &args.set, args.common.quick)?;
    let Opened { mut loaded, base } = opened;
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
    let on = args.device.open(&mut loaded, &options)?;
    let is_other = profiles(&loaded) != own_profiles;
    let conditions = args.conditions.load()?;
    let mut invocation = args.common.invocation(asked);
    invocation.options = [args.device.words(), conditions.words.clone()].concat();
    let plan = Plan {
        name: results::file_name(&loaded.experiment.id),
        base: base.as_deref(),
        altered: !args.set.is_empty() || is_other || conditions.configuration.is_some(),
        invocation,
        conditions,
        skipped: Vec::new(),
        scope: Scope {
            quick: args.common.quick,
            whole: false,
        },
    };
    execute(vec![loaded], &args.common, &plan, on)
}

/// An experiment that was named on the command line.
pub(crate) struct Opened {
    pub(crate) loaded: Loaded,
    /// Directory that profiles named by path are relative to.
    pub(crate) base: Option<PathBuf>,
}

/// Reads an experiment, a file or a built-in one, with settings changed.
///
/// # Errors
/// There is none, or something is wrong with it or with a setting.
pub(crate) fn open(name: &str, set: &[String], quick: bool) -> Result<Opened, Failure> {
    let named = named(name)?;
    let loaded = load(&named, set, quick)?;
    Ok(Opened {
        loaded,
        base: named.base,
    })
}

/// The text of an experiment that was named on the command line.
pub(crate) struct Named {
    /// Name of the file, for messages.
    pub(crate) file: String,
    pub(crate) text: String,
    /// Directory that profiles named by path are relative to.
    pub(crate) base: Option<PathBuf>,
}

/// Finds an experiment, a file or a built-in one.
///
/// # Errors
/// There is none.
pub(crate) fn named(name: &str) -> Result<Named, Failure> {
    if let Some(text) = library::text(name).or_else(|| library::example(name)) {
        return Ok(Named {
            file: format!("{name}.toml"),
            text: text.to_owned(),
            base: None,
        });
    }
    if !Path::new(name).exists() && !name.contains(['/', '.']) {
        let ids: Vec<_> = library::ids().collect();
        return Err(Failure::usage(format!(
            "there is no experiment \"{name}\": name a file, or one of {}",
            ids.join(", ")
        )));
    }
    Ok(Named {
        file: name.to_owned(),
        text: files::read(name)?,
        base: Path::new(name).parent().map(Path::to_owned),
    })
}

/// Reads an experiment with settings changed.
///
/// # Errors
/// Something is wrong with it, or with a setting.
pub(crate) fn load(named: &Named, set: &[String], quick: bool) -> Result<Loaded, Failure> {
    let set = Settings::parse(set).map_err(|problem| Failure::usage(problem.to_string()))?;
    let mut loaded = session::load(&named.file, &named.text, &set.file, quick)?;
    for point in &mut loaded.points {
        point.set_drive(&set.drive);
    }
    Ok(loaded)
}

fn list() -> Result<Exit, Failure> {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("title"),
        Column::text("source"),
    ]);
    for id in library::ids() {
        let text = library::text(id).unwrap_or_default();
        let loaded = session::load(&format!("{id}.toml"), text, &[], false)?;
        let experiment = loaded.experiment;
        table.push([id, &experiment.title, &experiment.source].map(Cell::from));
    }
    let mut text = table.to_text(&console::style());
    let missing = catalogue::results().map_err(Failure::input)?;
    let mut table = Table::new([
        Column::word("not built"),
        Column::text("title"),
        Column::text("missing"),
    ]);
    for result in &missing {
        if let Some(why) = &result.not_built {
            table.push([&result.id, &result.title, why].map(Cell::from));
        }
    }
    if missing.iter().any(|result| result.not_built.is_some()) {
        text.push('\n');
        text.push_str(&table.to_text(&console::style()));
    }
    let mut table = Table::new([Column::word("result"), Column::text("what is no row")]);
    for result in &missing {
        if let Some(elsewhere) = &result.elsewhere {
            table.push([&result.id, elsewhere].map(Cell::from));
        }
    }
    text.push('\n');
    text.push_str(&table.to_text(&console::style()));
    console::print(&text)?;
    Ok(Exit::Done)
}

/// The ids that words stand for, each once, in the order of the library.
fn selected(words: &[String]) -> Result<Vec<&'static str>, Failure> {
    let all: Vec<&'static str> = library::ids().collect();
    if words.is_empty() {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for word in words {
        let mut ids = library::select(word);
        if ids.is_empty() {
            ids = parts_of(word)?;
        }
        if ids.is_empty() {
            if let Some(missing) = not_built(word)? {
                return Err(missing);
            }
            let near = zonelab_config::nearest(word, all.iter().copied());
            let hint = near
                .map(|near| format!(" (did you mean {near}?)"))
                .unwrap_or_default();
            return Err(Failure::usage(format!(
                "there is nothing to reproduce under \"{word}\"{hint}; there are: C, P, S, V, Z, {}",
                all.join(", ")
            )));
        }
        chosen.extend(ids);
    }
    Ok(all.into_iter().filter(|id| chosen.contains(id)).collect())
}

/// The experiments of a line that stands for several figures, by its own name: `V6-8`.
fn parts_of(word: &str) -> Result<Vec<&'static str>, Failure> {
    let results = catalogue::results().map_err(Failure::input)?;
    let line = results.iter().find(|line| line.id == word);
    let parts = line.map_or(&[][..], |line| &line.also);
    Ok(parts
        .iter()
        .flat_map(|part| library::select(part))
        .collect())
}

/// The failure to reproduce what is known and not built; `None` for other words.
fn not_built(word: &str) -> Result<Option<Failure>, Failure> {
    let missing = catalogue::not_built(word).map_err(Failure::input)?;
    let missing = missing.into_iter().filter_map(|result| result.not_built);
    let missing: Vec<String> = missing.collect();
    Ok((!missing.is_empty()).then(|| {
        let missing = missing.join("; ");
        Failure::usage(format!("{word} is not built: missing is {missing}"))
    }))
}

/// Runs experiments, writes their results and shows them.
fn execute(
    mut loaded: Vec<Loaded>,
    common: &Common,
    plan: &Plan<'_>,
    on: On,
) -> Result<Exit, Failure> {
    let (base, altered) = (plan.base, plan.altered);
    let path = common.out.clone();
    let path = path.unwrap_or_else(|| Path::new("results").join(&plan.name));
    let references = session::references(&loaded)?;
    let misfits =
        Misfits::parse(library::MISFITS_FILE, library::MISFITS).map_err(Failure::input)?;
    let scope = plan.scope;
    // One figure is shown with its rows at the end anyway.
    let says_lines = loaded.len() > 1;
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
        base,
        conditions: &plan.conditions.conditions,
        on_figure: &on_figure,
    };
    // What can go wrong should do so before anything runs, not after.
    on.check(&loaded, base)?;
    let check = |one: &Loaded| references.check(&one.experiment);
    loaded.iter().try_for_each(check).map_err(Failure::input)?;
    common.tracing.mark(&mut loaded)?;
    let configuration = configuration(&loaded, plan, &on)?;
    let to = Destination {
        path: &path,
        seed: common.work.seed,
        force: common.force,
        configuration: configuration.value,
        trace_file: common.tracing.file(),
    };
    results::prepare(&to)?;
    let is_real = on.is_real();
    let ran = run_points(loaded, &settings, on)?;
    let (finished, is_partial) = (&ran.finished, ran.is_partial());
    let rows = rows_of(finished, &references, is_partial)?;
    let scope = Scope {
        whole: scope.whole && !is_partial,
        ..scope
    };
    let Judged {
        rows,
        summary,
        outdated,
    } = judged(rows, scope, (altered, is_real), &misfits);
    let failures = failures(finished);
    let ended_early = ended_early(finished);
    let said = failures.iter().chain(&ended_early).chain(&plan.skipped);
    said.for_each(|text| eprintln!("zonelab: {text}"));
    let outcome = Outcome {
        finished,
        rows: &rows,
        summary: &summary,
        drives: &configuration.drives,
        references: &references,
        misfits: &misfits,
        invocation: &plan.invocation,
        notices: notices(plan, &ran, &[failures.as_slice(), &ended_early].concat()),
        complete: !is_partial,
        lost: ran.lost.as_deref(),
    };
    let figures = results::write(&to, outcome)?;
    if common.json {
        console::print(&rows::to_json(&rows, &summary, common.work.seed))?;
    } else {
        let shown = Shown {
            finished,
            rows: &rows,
            summary: &summary,
            every_row: common.rows || finished.len() == 1,
            is_partial,
        };
        console::print(&text(&shown, &path, &figures))?;
        let outdated = outdated.iter();
        outdated.for_each(|entry| eprintln!("zonelab: {entry}"));
    }
    Ok(exit(&path, &ran, !failures.is_empty(), &summary))
}

/// What was run.
struct Ran {
    finished: Vec<Finished>,
    is_interrupted: bool,
    /// What failed on the device, after which no point was run.
    lost: Option<String>,
}

impl Ran {
    /// Whether points are missing.
    const fn is_partial(&self) -> bool {
        self.is_interrupted || self.lost.is_some()
    }
}

/// Runs experiments, under either clock.
fn run_points(
    loaded: Vec<Loaded>,
    settings: &session::Settings<'_>,
    mut on: On,
) -> Result<Ran, Failure> {
    if !on.is_real() {
        let (finished, is_interrupted) = session::run(loaded, settings)?;
        return Ok(Ran {
            finished,
            is_interrupted,
            lost: None,
        });
    }
    let run = session::run_in_real_time(loaded, settings, &mut on);
    let left = on.leave();
    let run = run?;
    // A connection that is lost says more than the command that was.
    let lost = match (run.failure, left) {
        (Some(failure), Some(lost)) => Some(format!("{failure}: {lost}")),
        (Some(failure), None) => Some(failure),
        (None, Some(lost)) => {
            eprintln!("zonelab: warning: when the device was left: {lost}");
            None
        }
        (None, None) => None,
    };
    Ok(Ran {
        finished: run.finished,
        is_interrupted: run.is_interrupted,
        lost,
    })
}

/// How it ended.
fn exit(path: &Path, ran: &Ran, failed: bool, summary: &Summary) -> Exit {
    if let Some(lost) = &ran.lost {
        let path = path.display();
        eprintln!("zonelab: {lost}\nzonelab: {path} holds the points that were done before");
        return Exit::Device;
    }
    if ran.is_interrupted {
        eprintln!(
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

/// What was compared, and what it comes to.
struct Judged {
    rows: Vec<Row>,
    summary: Summary,
    /// What has to be changed in the list of misfits and gaps.
    outdated: Vec<Outdated>,
}

/// Marks what the list knows of `rows`, and sums them up. Of an altered run,
/// published values are shown.
fn judged(
    mut rows: Vec<Row>,
    scope: Scope,
    (altered, is_real): (bool, bool),
    misfits: &Misfits,
) -> Judged {
    rows::count_once(&mut rows);
    let mut outdated = misfits.apply(&mut rows, scope);
    if altered {
        let why = "settings or conditions differ from the file's";
        rows = rows.into_iter().map(|row| row.shown(why)).collect();
        eprintln!("zonelab: {why}: published values are shown, not judged");
    }
    let summary = Summary::of(&rows, scope, misfits);
    let drive = summary.drive.iter();
    outdated.extend(drive.flat_map(|drive| misfits.outdated_bars(drive, scope)));
    if scope.quick {
        // Points are left out, and shorter runs may meet a bar by luck.
        outdated.retain(|entry| !matches!(entry, Outdated::NotNeeded { .. }));
    }
    // The list is about the emulated drives.
    if altered || is_real {
        outdated.clear();
    }
    Judged {
        rows,
        summary,
        outdated,
    }
}

/// All that results depend on, besides the seed.
fn configuration(
    loaded: &[Loaded],
    plan: &Plan<'_>,
    on: &On,
) -> Result<results::Configuration, Failure> {
    let mut configuration = on.configuration(loaded, plan.base)?;
    let list = configuration.value.as_array_mut();
    if let (Some(list), Some(conditions)) = (list, &plan.conditions.configuration) {
        list.push(conditions.clone());
    }
    Ok(configuration)
}

/// The rows of all experiments. Of an interrupted run, only those that need no
/// missing point.
fn rows_of(
    finished: &[Finished],
    references: &References,
    interrupted: bool,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for one in finished {
        if interrupted && one.results.len() < one.points.len() {
            continue;
        }
        let of_one = compare::rows(&one.experiment, &one.results, references);
        rows.extend(of_one.map_err(Failure::input)?);
    }
    Ok(rows)
}
