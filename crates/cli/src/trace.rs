//! `zonelab trace`, and `--trace` of `run` and `reproduce`.

use std::path::{Path, PathBuf};

use zonelab_device::Nanos;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::idle;
use zonelab_lab::output;
use zonelab_lab::run::{Point, PointResult, RunOptions};
use zonelab_lab::trace::{self, Explanation, PointTrace, Question};
use zonelab_ssd::counterfactual::{Factor, Factors};
use zonelab_ssd::record::{RecordLimits, SlowestOf};

use crate::conditions::ConditionArgs;
use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{Files, ProfileFiles};
use crate::reproduce::{self, unstruck};
use crate::results::{self, Destination, Subject};
use crate::session::{self, Finished, Loaded, Settings};

/// Most points that are traced without being asked for by name.
const MAX_POINTS: usize = 16;
/// The slowest commands that are explained without being asked for.
pub(crate) const SLOWEST: usize = 10;

/// How much of a run a trace holds.
#[derive(clap::Args)]
pub(crate) struct Window {
    /// Most records of each kind (commands, busy times of dies, ...) that a
    /// trace keeps; what is dropped is counted
    #[arg(long, value_name = "N", default_value_t = 200_000,
          value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    trace_limit: u32,
    /// Start of what is traced, in simulated time: 10ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    trace_from: Nanos,
    /// Length of what is traced [default: to the end]
    #[arg(long, value_name = "TIME", value_parser = time)]
    trace_for: Option<Nanos>,
}

/// The same for a verb that traces only if it is asked to: without `--trace` it refuses them.
pub(crate) struct WindowOfTrace(pub(crate) Window);

impl clap::Args for WindowOfTrace {
    fn augment_args(command: clap::Command) -> clap::Command {
        let options = ["trace_limit", "trace_from", "trace_for"];
        let command = Window::augment_args(command);
        options.into_iter().fold(command, |command, option| {
            command.mut_arg(option, |arg| arg.requires("trace"))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for WindowOfTrace {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        Window::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// A trace as the bytes of a file, compressed or not.
fn bytes_of(trace: &PointTrace, is_compressed: bool) -> Vec<u8> {
    if is_compressed {
        trace.perfetto_gz()
    } else {
        trace.perfetto()
    }
}

/// Whether the name of a file says that it is compressed.
fn is_gz(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "gz")
}

/// The extension of the files of traces.
const fn extension(uncompressed: bool) -> &'static str {
    if uncompressed {
        "pftrace"
    } else {
        "pftrace.gz"
    }
}

fn time(text: &str) -> Result<Nanos, String> {
    zonelab_config::units::parse_duration(text)
        .map(Nanos)
        .map_err(|error| error.to_string())
}

impl Window {
    /// The options, to give the command again.
    fn words(&self) -> Vec<String> {
        let time = |time: Nanos| format!("{}ns", time.0);
        let options = [
            ("--trace-limit", Some(self.trace_limit.to_string())),
            ("--trace-from", Some(time(self.trace_from))),
            ("--trace-for", self.trace_for.map(time)),
        ];
        let said = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        said.flatten().collect()
    }

    pub(crate) fn limits(&self) -> RecordLimits {
        let limit = self.trace_limit as usize;
        let from = self.trace_from;
        let until = self.trace_for.map(|length| from.saturating_add(length));
        RecordLimits {
            from,
            until: until.unwrap_or(Nanos::MAX),
            ..RecordLimits::everything(limit)
        }
    }
}

/// Traces of a run.
#[derive(clap::Args)]
pub(crate) struct Tracing {
    /// Write a trace of each point for ui.perfetto.dev to traces/ among the
    /// results, or of one point to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    trace: Option<Option<PathBuf>>,
    /// Trace this point only (may be given several times)
    #[arg(long, value_name = "SERIES,X", requires = "trace")]
    trace_point: Vec<String>,
    /// Do not compress traces, for tools that do not read gzip; a FILE is compressed if its name
    /// ends in .gz
    #[arg(long, requires = "trace")]
    uncompressed: bool,
    #[command(flatten)]
    window: WindowOfTrace,
}

impl Tracing {
    /// The options, to give the command again, as far as they change results: a trace that
    /// goes elsewhere is none of them.
    pub(crate) fn words(&self) -> Vec<String> {
        if !matches!(self.trace, Some(None)) {
            return Vec::new();
        }
        let mut words = vec!["--trace".to_owned()];
        for point in &self.trace_point {
            words.extend(["--trace-point".to_owned(), point.clone()]);
        }
        words.extend(self.uncompressed.then(|| "--uncompressed".to_owned()));
        words.extend(self.window.0.words());
        words
    }

    /// Marks the points to be traced.
    ///
    /// # Errors
    /// A point is not there, or they are too many.
    pub(crate) fn mark(&self, loaded: &mut [Loaded]) -> Result<(), Failure> {
        let Some(file) = &self.trace else {
            return Ok(());
        };
        let mut points: Vec<&mut Point> =
            loaded.iter_mut().flat_map(|one| &mut one.points).collect();
        if !self.trace_point.is_empty() {
            let chosen = choose(&points, &self.trace_point)?;
            let mut index = 0;
            points.retain(|_| {
                index += 1;
                chosen.contains(&(index - 1))
            });
        }
        let most = if file.is_some() { 1 } else { MAX_POINTS };
        if points.len() > most {
            let what = match file {
                Some(_) => "--trace=FILE takes one point".to_owned(),
                None => format!("--trace takes at most {MAX_POINTS} points unless they are named"),
            };
            let list = list_of(points.iter().map(|point| &**point));
            if file.is_some() || self.trace_point.is_empty() {
                return Err(Failure::usage(format!(
                    "{what}: choose with --trace-point SERIES,X from\n{list}"
                )));
            }
        }
        for point in points {
            point.trace(self.window.0.limits());
        }
        Ok(())
    }

    /// Whether traces are asked for.
    pub(crate) const fn is_asked(&self) -> bool {
        self.trace.is_some()
    }

    /// Whether traces are written as they are.
    pub(crate) const fn is_uncompressed(&self) -> bool {
        self.uncompressed
    }

    /// The file that the only trace goes to, if it is not among the results.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.trace.as_ref()?.as_deref()
    }
}

/// How a point is named on the command line.
fn name_of(point: &Point) -> String {
    format!("{},{}", point.series(), point.x().text)
}

fn list_of<'a>(points: impl Iterator<Item = &'a Point>) -> String {
    let lines: Vec<String> = points
        .map(|point| format!("  {}", name_of(point)))
        .collect();
    lines.join("\n")
}

/// Positions of the points that words name: `SERIES,X`, or `SERIES` alone if
/// that has one point.
fn choose(points: &[&mut Point], words: &[String]) -> Result<Vec<usize>, Failure> {
    let mut chosen = Vec::new();
    for word in words {
        let matching = |matches: &dyn Fn(&Point) -> bool| -> Vec<usize> {
            let all = points.iter().enumerate();
            all.filter(|(_, point)| matches(point))
                .map(|(i, _)| i)
                .collect()
        };
        let mut found = matching(&|point| name_of(point) == *word);
        if found.is_empty() {
            found = matching(&|point| point.series() == word);
        }
        if found.len() == 1 || (found.len() > 1 && name_of(points[found[0]]) == *word) {
            chosen.extend(found);
            continue;
        }
        let list = list_of(points.iter().map(|point| &**point));
        let problem = if found.is_empty() {
            "there is no point"
        } else {
            "there is more than one point"
        };
        return Err(Failure::usage(format!(
            "{problem} \"{word}\"; the points are\n{list}"
        )));
    }
    Ok(chosen)
}

/// Names of the files of traces, each once: experiment, series and axis value.
fn file_names(traced: &[(&str, &PointResult, &PointTrace)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (id, result, _) in traced {
        let plain = output::file_name(&format!("{id}-{}-{}", result.series, result.x.text));
        let mut name = plain.clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        names.push(name);
    }
    names
}

/// Writes the traces of what was run: with `put` among the results, or to `file`; among the
/// results `uncompressed` or not.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(
    finished: &[Finished],
    (file, uncompressed): (Option<&Path>, bool),
    mut put: impl FnMut(&str, &[u8]) -> Result<PathBuf, Failure>,
) -> Result<(), Failure> {
    let traced: Vec<(&str, &PointResult, &PointTrace)> = finished
        .iter()
        .flat_map(|one| one.results.iter().map(move |result| (one, result)))
        .filter_map(|(one, result)| {
            let trace = result.trace.as_deref()?;
            Some((one.experiment.id.as_str(), result, trace))
        })
        .collect();
    for (name, (_, _, trace)) in file_names(&traced).iter().zip(&traced) {
        let is_compressed = file.map_or(!uncompressed, is_gz);
        let bytes = bytes_of(trace, is_compressed);
        let path = match file {
            Some(file) => {
                put_file(file, &bytes)?;
                file.to_owned()
            }
            None => {
                let csv = trace.zone_history_csv();
                put(&format!("traces/{name}-zone-history.csv"), csv.as_bytes())?;
                put(
                    &format!("traces/{name}.{}", extension(uncompressed)),
                    &bytes,
                )?
            }
        };
        announce(trace, &path);
    }
    Ok(())
}

/// One line on standard error: where the trace is, and what is missing from it.
fn announce(trace: &PointTrace, path: &Path) {
    let path = path.display();
    match trace.dropped() {
        Some(dropped) => tell!(
            "zonelab: trace: {path} (incomplete: {dropped} dropped; see --trace-limit, --trace-from, --trace-for)"
        ),
        None => tell!("zonelab: trace: {path}"),
    }
}

/// Writes a file, and the directories above it.
fn put_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = match path.parent() {
        Some(parent) => std::fs::create_dir_all(parent),
        None => Ok(()),
    };
    written
        .and_then(|()| std::fs::write(path, bytes))
        .map_err(|error| Failure::environment(anyhow::anyhow!("{}: {error}", path.display())))
}

/// Writes a trace and its zone history: to the file that was named, or to a
/// result directory. Gives their paths.
fn put_trace(
    trace: &PointTrace,
    to: &Destination<'_>,
    is_whole: bool,
) -> Result<(PathBuf, PathBuf), Failure> {
    if let Some(out) = to.trace_file {
        return Ok((out.to_owned(), put_beside(trace, out)?));
    }
    let csv = trace.zone_history_csv();
    let name = format!("trace.{}", extension(to.uncompressed));
    let history = "zone-history.csv";
    let bytes = bytes_of(trace, !to.uncompressed);
    let files: [(&str, &[u8]); 2] = [(&name, &bytes), (history, csv.as_bytes())];
    let put = results::put_all(to, &files, is_whole)?;
    Ok((put.path().join(&name), put.path().join(history)))
}

/// Writes a trace to a file, and its zone history to one beside it, whose path
/// it gives.
fn put_beside(trace: &PointTrace, out: &Path) -> Result<PathBuf, Failure> {
    let plain = if is_gz(out) {
        out.with_extension("")
    } else {
        out.to_owned()
    };
    let stem = plain.file_stem().unwrap_or_default().to_string_lossy();
    let history = out.with_file_name(format!("{stem}-zone-history.csv"));
    put_file(out, &bytes_of(trace, is_gz(out)))?;
    put_file(&history, trace.zone_history_csv().as_bytes())?;
    Ok(history)
}

/// Writes the trace of a job file to the file that was named, and its zone
/// history beside it.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn put_named(trace: &PointTrace, out: &Path) -> Result<(), Failure> {
    put_beside(trace, out)?;
    announce(trace, out);
    Ok(())
}

/// Options of `trace`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The experiment: a file, or the id of a built-in one (reset-under-reads
    /// is a good first one)
    experiment: String,
    /// The point to run [default: the first]
    #[arg(long, value_name = "SERIES,X")]
    point: Option<String>,
    /// The trace file, compressed if its name ends in .gz; FILE-zone-history.csv goes beside it
    /// [default: trace.pftrace.gz and zone-history.csv in results/NAME-trace/HASH, to which
    /// results/NAME-trace/latest leads]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the trace of another point or configuration in results/NAME-trace
    #[arg(long, conflicts_with = "out")]
    force: bool,
    /// Change a setting of the experiment file, or of its drive (drive.KEY=VALUE)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all randomness; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With the settings of the file for shorter runs
    #[arg(long)]
    quick: bool,
    /// Do not compress trace.pftrace, for tools that do not read gzip
    #[arg(long, conflicts_with = "out")]
    uncompressed: bool,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    conditions: ConditionArgs,
    #[command(flatten)]
    window: Window,
}

/// What is asked about the slowest commands.
#[derive(clap::Args)]
pub(crate) struct Asking {
    /// What the N slowest reads, writes and appends would have taken without each cause that
    /// they waited for: the point is run again [default: only where their time went, of 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    slowest: Option<u16>,
    /// Try this cause only (may be given several times): read, write, finish, reset, write-erase,
    /// fold, collection, bookkeeping, firmware, link
    #[arg(long, value_name = "CAUSE", value_parser = factor)]
    without: Vec<Factor>,
    /// The cause is gone from so long before the submission of a command on
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    ahead: Nanos,
    /// Print the slowest commands as JSON
    #[arg(long)]
    json: bool,
}

fn factor(text: &str) -> Result<Factor, String> {
    Factor::named(text).ok_or_else(|| {
        let names = Factor::ALL.map(Factor::name).join(", ");
        format!("there is no such cause; there are {names}")
    })
}

impl Asking {
    fn question(&self) -> Question {
        let is_asked = self.slowest.is_some() || !self.without.is_empty();
        let chosen: Factors = self.without.iter().copied().collect();
        Question {
            slowest: SlowestOf::both(self.slowest.map_or(SLOWEST, usize::from)),
            without: match (is_asked, chosen.is_empty()) {
                (false, _) => Factors::NONE,
                (true, true) => Factors::ALL,
                (true, false) => chosen,
            },
            ahead: self.ahead,
        }
    }

    /// The slowest commands of a trace, explained. The point is run again if it has to be.
    fn explain(
        &self,
        point: &Point,
        trace: &PointTrace,
        (seed, profiles, conditions): (u64, &ProfileFiles<'_>, &Conditions),
    ) -> Result<Vec<Explanation>, Failure> {
        let options = RunOptions {
            seed,
            profiles,
            conditions,
            on_point: &|_, _| (),
            interrupted: &|| false,
            abandoned: &|| false,
        };
        trace::explain_traced(point, trace, &self.question(), &options).map_err(Failure::from)
    }
}

/// Leaves the point that is asked for, or the first, and lets it be traced.
fn one_point(args: &Args, loaded: Loaded) -> Result<Loaded, Failure> {
    let Loaded {
        experiment,
        text,
        resolved,
        mut points,
        reference: _,
        is_own,
    } = loaded;
    let all = points.len();
    let chosen = match &args.point {
        Some(word) => {
            let list: Vec<&mut Point> = points.iter_mut().collect();
            choose(&list, std::slice::from_ref(word))?.first().copied()
        }
        None => (all > 0).then_some(0),
    };
    let Some(chosen) = chosen else {
        return Err(Failure::usage(format!(
            "experiment {} runs nothing that could be traced",
            experiment.id
        )));
    };
    let mut point = points.swap_remove(chosen);
    if args.point.is_none() && all > 1 {
        let name = name_of(&point);
        tell!("zonelab: tracing point \"{name}\", the first of {all}; choose with --point");
    }
    let question = args.asking.question();
    point.trace(RecordLimits {
        slowest: question.slowest,
        ..args.window.limits()
    });
    Ok(Loaded {
        experiment,
        text,
        resolved,
        points: vec![point],
        // A trace is compared with nothing.
        reference: None,
        is_own,
    })
}

/// Prints what there is to say of a trace.
fn show(
    asking: &Asking,
    trace: &PointTrace,
    explained: &[Explanation],
    (out, history): (&Path, &Path),
) -> Result<(), Failure> {
    if asking.json {
        let all = |is_data| {
            let of = explained.iter().filter(|one| one.is_data() == is_data);
            of.map(Explanation::to_json).collect::<Vec<_>>()
        };
        let value = serde_json::json!({
            "schema": 1,
            "point": trace.title,
            "ahead_ns": asking.ahead.0,
            "slowest": all(true),
            "slowest_management": all(false),
            "trace": out,
            "zone_history": history,
        });
        return console::print(&format!("{value:#}\n"));
    }
    let style = console::style();
    console::print(&format!(
        "{}{}\ntrace:        {} (open it at https://ui.perfetto.dev)\nzone history: {}\n",
        trace.summary(explained, &style),
        trace::alternatives(explained, &style),
        out.display(),
        history.display(),
    ))
}

/// Runs one point and writes its trace.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn trace(args: &Args) -> Result<Exit, Failure> {
    let files = &Files::default();
    let opened = reproduce::open(files, &args.experiment, &args.set, args.quick)?;
    let (base, source) = (opened.base.as_deref(), opened.source);
    let profiles = ProfileFiles { files, base };
    let mut loaded = one_point(args, opened.loaded)?;
    let conditions = args.conditions.load_for(files, &mut loaded.points)?;
    session::check(std::slice::from_ref(&loaded), &profiles)?;
    let settings = Settings {
        seed: args.seed,
        threads: 1,
        quiet: true,
        profiles,
        conditions: &conditions.conditions,
        on_figure: &|_, _| None,
    };
    let name = format!("{}-trace", output::file_name(&loaded.experiment.id));
    let points = results::configuration(std::slice::from_ref(&loaded), &profiles, None);
    let configuration = serde_json::json!({
        "points": points.map_err(Failure::input)?.value,
        "conditions": conditions.configuration,
        "window": {
            "limit": args.window.trace_limit,
            "from_ns": args.window.trace_from.0,
            "for_ns": args.window.trace_for.map(|time| time.0),
        },
    });
    let subject = Subject {
        name: &name,
        source: &source,
        configuration,
        decides: serde_json::json!({
            "uncompressed": args.uncompressed,
            "slowest": args.asking.question().slowest.data,
        }),
    };
    let to = Destination::new(
        None,
        subject,
        (args.seed, args.force),
        (args.out.as_deref(), args.uncompressed),
    );
    if args.out.is_none() {
        results::prepare(&to)?;
    }
    let (finished, interrupted) = session::run(vec![loaded], &settings)?;
    let failures = reproduce::failures(&finished);
    for failure in &failures {
        tell!("zonelab: {failure}");
    }
    let says_all = conditions.conditions.restore.is_none();
    for one in &finished {
        for warning in idle::warnings(&[(&one.experiment, &*one.points, &*one.results)], says_all) {
            tell!("zonelab: warning: {warning}");
        }
    }
    for warning in unstruck(&finished, &conditions) {
        tell!("zonelab: warning: {warning}");
    }
    let result = finished.iter().flat_map(|one| &one.results).next();
    let Some(trace) = result.and_then(|result| result.trace.as_deref()) else {
        return Ok(Exit::Interrupted);
    };
    let (out, history) = put_trace(trace, &to, !interrupted)?;
    announce(trace, &out);
    let point = finished.iter().flat_map(|one| &one.points).next();
    let explained = match point {
        Some(point) if !interrupted => {
            let how = (args.seed, &profiles, &conditions.conditions);
            args.asking.explain(point, trace, how)?
        }
        _ => trace.explain(),
    };
    show(&args.asking, trace, &explained, (&out, &history))?;
    Ok(match (interrupted, failures.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Done,
        (false, false) => Exit::Device,
    })
}
