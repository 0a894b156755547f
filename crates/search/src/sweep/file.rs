//! Reading sweep files.

use std::collections::BTreeSet;

use zonelab_config::{Document, Errors, FileKind, Item, Override, Problem, Reported, Table};
use zonelab_lab::experiment::reading::{objective, tables, text, weights};
use zonelab_lab::metrics;
use zonelab_lab::settings::Settings;
use zonelab_lab::space::ObjectiveSpec;
use zonelab_lab::space::{Constraint, Names};
use zonelab_lab::space::{InSteps, Knob, Values, Wrong};
use zonelab_lab::space::{MAX_POINTS, Sample, Space};

use super::adaptive;
use super::dataset;

/// Version of the format that this program reads.
const SCHEMA: u32 = 1;
/// Most repeats of a point.
pub const MAX_REPEATS: u32 = 100_000;
/// Most keys.
const MAX_KEYS: usize = 64;

/// A value, and how to say what is wrong with it: with a problem at its line.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    at: Problem,
}

impl<T> Placed<T> {
    fn read(item: &Item<'_>, value: T) -> Self {
        Self {
            value,
            at: item.problem("", ""),
        }
    }

    /// What is wrong with the value.
    pub(crate) fn wrong(&self, what: impl Into<String>, valid: impl Into<String>) -> Problem {
        Problem {
            what: what.into(),
            valid: valid.into(),
            ..self.at.clone()
        }
    }
}

/// A way to set several keys at once, by a name of its own.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) set: Vec<String>,
}

/// Something that differs from point to point.
#[derive(Clone, Debug)]
pub(crate) struct Vary {
    /// By this name expressions and columns speak of it.
    pub(crate) name: Placed<String>,
    /// A key, or a name with cases.
    pub(crate) knob: Knob,
    /// What each value of a name with cases sets; of a key nothing.
    pub(crate) cases: Vec<Case>,
}

/// What `--quick` changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuickSweep {
    pub(crate) points: Option<u32>,
    pub(crate) repeats: Option<u32>,
    pub(crate) set: Vec<String>,
}

/// A sweep file, read.
#[derive(Clone, Debug)]
pub(crate) struct SweepFile {
    pub(crate) title: String,
    pub(crate) experiment: Placed<String>,
    pub(crate) set: Vec<String>,
    pub(crate) sample: Placed<Sample>,
    pub(crate) points: Option<u32>,
    pub(crate) repeats: u32,
    pub(crate) series: Vec<Placed<String>>,
    pub(crate) metrics: Vec<String>,
    pub(crate) varies: Vec<Vary>,
    /// Of a list, its points.
    pub(crate) rows: Vec<Values>,
    pub(crate) names: Names,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) objectives: Vec<(ObjectiveSpec, Problem)>,
    pub(crate) weights: Option<(f64, f64)>,
    pub(crate) quick: QuickSweep,
}

impl SweepFile {
    /// Reads a file. `overrides` are settings of the sweep file itself.
    ///
    /// # Errors
    /// Everything that is wrong with it, with lines.
    pub(crate) fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Self, Errors> {
        let document = Document::parse(file, text, overrides)?;
        document.is_a(FileKind::Sweep)?;
        let value = read(&document);
        document.finish(value)
    }

    /// The points, at most `count` of them if that is said.
    ///
    /// # Errors
    /// There are not so many, or none.
    pub(crate) fn points(&self, count: Option<u32>, seed: u64) -> Result<Vec<Values>, Problem> {
        let knobs: Vec<Knob> = self.varies.iter().map(|vary| vary.knob.clone()).collect();
        let space = Space {
            knobs: &knobs,
            names: &self.names,
            constraints: &self.constraints,
        };
        let wrong = |wrong: Wrong| self.sample.wrong(wrong.what, wrong.valid);
        let points = match self.sample.value {
            Sample::Grid => thinned(space.grid().map_err(wrong)?, count),
            Sample::List => thinned(space.kept(self.rows.clone()), count),
            // They are chosen while it runs.
            Sample::Evolve => return Ok(Vec::new()),
            sample => {
                let count = count.unwrap_or_default();
                space.draw(sample, count, seed).map_err(wrong)?
            }
        };
        if points.is_empty() {
            let what = "there is no point that fulfils the constraints";
            return Err(self.sample.wrong(what, "other constraints, or more values"));
        }
        Ok(points)
    }
}

/// So many of some points, evenly spread among them.
fn thinned(points: Vec<Values>, count: Option<u32>) -> Vec<Values> {
    let (all, Some(count)) = (points.len() as u64, count) else {
        return points;
    };
    let count = u64::from(count).min(all);
    let chosen: BTreeSet<u64> = (0..count).map(|n| n * all / count).collect();
    let points = points.into_iter().zip(0_u64..);
    points
        .filter(|(_, place)| chosen.contains(place))
        .map(|(point, _)| point)
        .collect()
}

fn read(document: &Document) -> Result<SweepFile, Reported> {
    let root = document.root();
    let schema = root.u32("schema").within(SCHEMA..=SCHEMA).required();
    let title = root.string("title").or(String::new());
    let experiment = root.get("experiment", placed).required_or(
        "the experiment that is run at each point: a file, or the id of a built-in one",
    );
    let set = root.list("set", setting).or(Vec::new());
    let sample = sample(document);
    let points = root.u32("points").within(1..=MAX_POINTS).optional();
    let repeats = root.u32("repeats").within(1..=MAX_REPEATS).or(1);
    let series = root.list("series", placed).or(Vec::new());
    let metrics = root.list("metrics", metric).or(Vec::new());
    let objectives = tables(&root, "objective", |table| {
        let at = table
            .get("metric", |item| Ok(item.problem("", "")))
            .optional();
        let spec = objective(table)?;
        let nowhere = || Problem::of_file("", "", "");
        Ok((spec, at?.unwrap_or_else(nowhere)))
    });
    let weights = root.get("weights", weights).optional();
    let quick = quick(&root.table("quick"));
    // What depends on something that is wrong cannot be read: nothing is said of it.
    let alone = |reported| {
        let _ = root.keys();
        reported
    };
    let sample = sample.map_err(alone)?;
    let is_list = sample.value == Sample::List;
    // Rows make the values of keys, so that both are read together.
    let rows = root.get("rows", |item| rows(item));
    let rows = rows.optional();
    let varies = tables(&root, "vary", |table| {
        Varied::read(document, table, is_list)
    });
    let (rows, varies) = (rows.map_err(alone)?, varies.map_err(alone)?);
    if varies.is_empty() {
        return Err(document.report(
            "vary",
            "nothing differs from point to point",
            "write [[vary]] with `key` and `values`, or with `low` and `high`",
        ));
    }
    if varies.len() > MAX_KEYS {
        let what = format!("{} keys vary", varies.len());
        return Err(document.report("vary", what, format!("at most {MAX_KEYS}")));
    }
    let (varies, rows) = with_rows(document, varies, rows, is_list).map_err(alone)?;
    names_differ(&varies, document).map_err(alone)?;
    let points = points.map_err(alone)?;
    check_sample(
        document,
        &sample,
        points,
        &varies,
        objectives.as_ref().map(Vec::as_slice),
    )
    .map_err(alone)?;
    let named = varies.iter();
    let names = Names::of(named.map(|vary| (vary.name.value.as_str(), vary.knob.listed())));
    let constraints = tables(&root, "constraint", |table| {
        let require = table.get("require", |item| {
            let constraint = Constraint::parse(item.str()?, &names);
            constraint.map_err(|wrong| item.fail(wrong.what, wrong.valid))
        });
        require.required()
    });
    schema?;
    Ok(SweepFile {
        title: title?,
        experiment: experiment?,
        set: set?,
        sample,
        points,
        repeats: repeats?,
        series: series?,
        metrics: metrics?,
        varies,
        rows,
        names,
        constraints: constraints?,
        objectives: objectives?,
        weights: weights?,
        quick: quick?,
    })
}

/// Checks that a sample has what it needs, and nothing that it does not use.
fn check_sample(
    document: &Document,
    sample: &Placed<Sample>,
    points: Option<u32>,
    varies: &[Vary],
    objectives: Result<&[(ObjectiveSpec, Problem)], &Reported>,
) -> Result<(), Reported> {
    let root = document.root();
    if sample.value == Sample::Evolve {
        // Of objectives that are wrong their own errors say enough.
        return objectives.map_or(Ok(()), |objectives| {
            check_search(document, varies, objectives)
        });
    }
    if sample.value.is_counted() && points.is_none() {
        let hint = format!("sample = \"{}\" draws so many", sample.value.name());
        root.u32("points").required_or(&hint)?;
    }
    if !sample.value.is_counted() {
        let why = "a grid and a list have the points that they have; [quick] may have fewer";
        root.refuse("points", why)?;
    }
    Ok(())
}

/// Checks what a search needs: few keys, and objectives to trade against each other.
fn check_search(
    document: &Document,
    varies: &[Vary],
    objectives: &[(ObjectiveSpec, Problem)],
) -> Result<(), Reported> {
    let most = adaptive::MAX_KEYS;
    if varies.len() > most {
        let what = format!("{} keys vary", varies.len());
        let valid = format!("with sample = \"evolve\" at most {most}");
        return Err(document.report("vary", what, valid));
    }
    let (least, most) = adaptive::OBJECTIVES;
    if !(least..=most).contains(&objectives.len()) {
        let what = format!("{} objectives", objectives.len());
        let valid = format!(
            "sample = \"evolve\" looks where {least} to {most} of them are traded against each \
             other: write [[objective]]"
        );
        return Err(document.report("objective", what, valid));
    }
    Ok(())
}

/// The name of a metric.
fn metric(item: &Item<'_>) -> Result<String, Reported> {
    let known: Vec<(&str, &str)> = metrics::NAMES
        .iter()
        .map(|(name, _)| (*name, *name))
        .collect();
    item.choice(&known).map(str::to_owned)
}

/// How points are chosen; a grid if nothing is said.
fn sample(document: &Document) -> Result<Placed<Sample>, Reported> {
    let samples = Sample::ALL.map(|sample| (sample.name(), sample));
    let root = document.root();
    let sample = root.get("sample", |item| {
        let sample = item.choice(&samples)?;
        Ok(Placed::read(item, sample))
    });
    let none = || Placed {
        value: Sample::Grid,
        at: Problem::of_file(document.file(), "", ""),
    };
    Ok(sample.optional()?.unwrap_or_else(none))
}

fn placed(item: &Item<'_>) -> Result<Placed<String>, Reported> {
    Ok(Placed::read(item, text(item)?))
}

fn setting(item: &Item<'_>) -> Result<String, Reported> {
    let text = text(item)?;
    Settings::parse([&text]).map_err(|problem| item.fail(problem.what, problem.valid))?;
    Ok(text)
}

fn quick(table: &Table<'_>) -> Result<QuickSweep, Reported> {
    let points = table.u32("points").within(1..=MAX_POINTS).optional();
    let repeats = table.u32("repeats").within(1..=MAX_REPEATS).optional();
    let set = table.list("set", setting).or(Vec::new());
    Ok(QuickSweep {
        points: points?,
        repeats: repeats?,
        set: set?,
    })
}

/// Rows of values, each with its place.
fn rows(item: &Item<'_>) -> Result<Vec<Placed<Vec<String>>>, Reported> {
    let row = |item: &Item<'_>| {
        let values: Vec<_> = item.items()?.iter().map(Item::after_set).collect();
        let values: Result<Vec<String>, Reported> = values.into_iter().collect();
        Ok(Placed::read(item, values?))
    };
    let rows: Vec<_> = item.items()?.iter().map(row).collect();
    rows.into_iter().collect()
}

/// A `[[vary]]`, whose values may still be in rows.
struct Varied {
    name: Placed<String>,
    key: String,
    knob: Option<Knob>,
    cases: Vec<Case>,
}

impl Varied {
    fn read(document: &Document, table: &Table<'_>, is_list: bool) -> Result<Self, Reported> {
        let key = table.get("key", key).optional();
        let name = table.get("name", column_name).optional();
        let cases = tables(table, "case", case);
        let list = table.list("values", Item::after_set).optional();
        let low = table.get("low", Item::after_set).optional();
        let high = table.get("high", Item::after_set).optional();
        let scale = table
            .choice("scale", &[("linear", false), ("log", true)])
            .optional();
        let step = table.get("step", Item::after_set).optional();
        let steps = table.u32("steps").within(2..=1000).optional();
        let (key, name, cases, list) = (key?, name?, cases?, list?);
        let (low, high, scale, step, steps) = (low?, high?, scale?, step?, steps?);
        let refuse = |keys: &[&str], why: &str| {
            let refuse = |key: &&str| table.refuse(key, why);
            keys.iter().try_for_each(refuse)
        };
        if !cases.is_empty() {
            let why = "a [[vary]] with cases has a `name`, and each [[vary.case]] sets keys";
            refuse(
                &["key", "values", "low", "high", "scale", "step", "steps"],
                why,
            )?;
            let name = match name {
                Some(name) => name,
                None => table.get("name", column_name).required_or(why)?,
            };
            let key = name.value.clone();
            let items = cases.iter().map(|case| case.name.clone()).collect();
            let knob = Knob::list(&key, items);
            let knob = knob.map_err(|wrong| fail((document, table), "case", wrong))?;
            return Ok(Self {
                name,
                key,
                knob: Some(knob),
                cases,
            });
        }
        let hint =
            "a key that --set takes, `drive.finish.granularity`; or `name` and [[vary.case]]";
        let key = match key {
            Some(key) => key,
            None => table.get("key", self::key).required_or(hint)?,
        };
        let name = name.unwrap_or_else(|| key.clone());
        let key = key.value;
        if is_list {
            let why = "with sample = \"list\" the values are in `rows`";
            refuse(&["values", "low", "high", "scale", "step", "steps"], why)?;
            return Ok(Self {
                name,
                key,
                knob: None,
                cases,
            });
        }
        let bounds = Bounds {
            low,
            high,
            scale,
            step,
            steps,
        };
        let knob = bounds.knob((document, table), &key, list)?;
        Ok(Self {
            name,
            key,
            knob: Some(knob),
            cases,
        })
    }
}

/// What is said of the values of a key besides a list of them.
struct Bounds {
    low: Option<String>,
    high: Option<String>,
    scale: Option<bool>,
    step: Option<String>,
    steps: Option<u32>,
}

impl Bounds {
    /// The values of `key`: those of the list, or all between the bounds.
    fn knob(
        self,
        (document, table): (&Document, &Table<'_>),
        key: &str,
        list: Option<Vec<String>>,
    ) -> Result<Knob, Reported> {
        let Self {
            low,
            high,
            scale,
            step,
            steps,
        } = self;
        let refuse = |keys: &[&str], why: &str| {
            let refuse = |key: &&str| table.refuse(key, why);
            keys.iter().try_for_each(refuse)
        };
        match (list, low, high) {
            (Some(list), None, None) => {
                refuse(&["scale", "step", "steps"], "only with `low` and `high`")?;
                Knob::list(key, list).map_err(|wrong| fail((document, table), "values", wrong))
            }
            (None, Some(low), Some(high)) => {
                if step.is_some() {
                    table.refuse("steps", "a `step` is enough")?;
                }
                let in_steps = match (step, steps) {
                    (Some(step), _) => InSteps::Of(step),
                    (None, Some(steps)) => InSteps::Count(steps.into()),
                    (None, None) => InSteps::No,
                };
                let knob = Knob::between(key, (&low, &high), scale, &in_steps);
                knob.map_err(|wrong| fail((document, table), "high", wrong))
            }
            (Some(_), ..) => {
                refuse(
                    &["low", "high", "scale", "step", "steps"],
                    "`values` are enough",
                )?;
                Err(fail(
                    (document, table),
                    "values",
                    Wrong::new("there are bounds, too", ""),
                ))
            }
            _ => {
                let hint = "give `values`, or both `low` and `high`";
                let missing = if table.has("low") {
                    "high"
                } else if table.has("high") {
                    "low"
                } else {
                    "values"
                };
                table.get(missing, Item::after_set).required_or(hint)?;
                Err(fail(
                    (document, table),
                    "key",
                    Wrong::new("it has no values", hint),
                ))
            }
        }
    }
}

/// Reports what is wrong with a key of a table that is there.
fn fail((document, table): (&Document, &Table<'_>), key: &str, wrong: Wrong) -> Reported {
    let path = format!("{}.{key}", table.path());
    document.report(&path, wrong.what, wrong.valid)
}

/// A key that differs from point to point.
fn key(item: &Item<'_>) -> Result<Placed<String>, Reported> {
    let key = text(item)?;
    Override::parse(&format!("{key}=1"))
        .map_err(|problem| item.fail(problem.what, "keys are joined by dots"))?;
    let first = key.split('.').next().unwrap_or_default();
    if ["schema", "id", "search"].contains(&first) {
        let valid = "any key that a run depends on";
        return Err(item.fail("this is no setting of what is run", valid));
    }
    Ok(Placed::read(item, key))
}

/// A name that columns and expressions can have.
fn column_name(item: &Item<'_>) -> Result<Placed<String>, Reported> {
    let name = text(item)?;
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(in_name) {
        let valid = "letters, digits and _, and a letter first";
        return Err(item.fail("this is no name for a column", valid));
    }
    if dataset::is_fixed_column(&name) {
        return Err(item.fail("each data set has a column of this name", "another one"));
    }
    Ok(Placed::read(item, name))
}

fn case(table: &Table<'_>) -> Result<Case, Reported> {
    let name = table.string("name").required();
    let set = table.list("set", setting).required();
    Ok(Case {
        name: name?,
        set: set?,
    })
}

/// Keys with their values, of rows as well, and the rows as points.
fn with_rows(
    document: &Document,
    varied: Vec<Varied>,
    rows: Option<Vec<Placed<Vec<String>>>>,
    is_list: bool,
) -> Result<(Vec<Vary>, Vec<Values>), Reported> {
    match (&rows, is_list) {
        (None, true) => {
            let hint = "sample = \"list\" has a row for each point, of a value for each key";
            return Err(document.report("rows", "missing", hint));
        }
        (Some(_), false) => {
            let valid = "only with sample = \"list\"";
            return Err(document.report("rows", "there are rows", valid));
        }
        _ => {}
    }
    let rows = rows.unwrap_or_default();
    let count = varied.len();
    if let Some((at, row)) = rows
        .iter()
        .enumerate()
        .find(|(_, row)| row.value.len() != count)
    {
        let what = format!("the row has {} values", row.value.len());
        let valid = format!("{count}: one for each [[vary]], in their order");
        return Err(document.report(&format!("rows.{at}"), what, valid));
    }
    let mut varies = Vec::new();
    for (place, one) in varied.into_iter().enumerate() {
        let knob = match one.knob {
            Some(knob) => knob,
            None => {
                let mut seen = BTreeSet::new();
                let values = rows.iter().map(|row| row.value[place].clone());
                let values = values.filter(|value| seen.insert(value.clone())).collect();
                Knob::list(&one.key, values)
                    .map_err(|wrong| document.report("rows", wrong.what, wrong.valid))?
            }
        };
        varies.push(Vary {
            name: one.name,
            knob,
            cases: one.cases,
        });
    }
    let mut points = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut point = Values::new();
        for (vary, value) in varies.iter().zip(&row.value) {
            let Some(value) = vary.knob.value_of(value) else {
                let what = format!("{} has no case \"{value}\"", vary.name.value);
                let valid = vary.knob.describe();
                return Err(document.report(&format!("rows.{at}"), what, valid));
            };
            point.push(value);
        }
        points.push(point);
    }
    Ok((varies, points))
}

fn names_differ(varies: &[Vary], document: &Document) -> Result<(), Reported> {
    for (place, vary) in varies.iter().enumerate() {
        let name = &vary.name.value;
        if varies[..place]
            .iter()
            .any(|other| other.name.value == *name)
        {
            let path = format!("vary.{place}");
            let what = format!("{name} varies twice");
            return Err(document.report(&path, what, "one [[vary]] for each, or another `name`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SweepFile, Errors> {
        SweepFile::parse("s.toml", text, &[])
    }

    #[test]
    fn a_file_with_everything_is_read() {
        let file = parse(
            r#"
schema = 1
title = "All of it"
experiment = "x.toml"
set = ["job.0.runtime=1s"]
sample = "sobol"
points = 100
repeats = 3
series = ["beside"]
metrics = ["ops_s", "lat_p99_us"]
weights = [0.3, 0.7]
[[vary]]
key = "drive.finish.granularity"
name = "granularity"
low = "16KiB"
high = "1MiB"
[[vary]]
key = "drive.finish.pause"
low = "0us"
high = "1ms"
step = "100us"
[[vary]]
key = "job.0.queue_depth"
values = [1, 4, 16]
[[vary]]
name = "reset"
[[vary.case]]
name = "now"
set = ["drive.reset.timing=synchronous"]
[[vary.case]]
name = "later"
set = ["drive.reset.timing=background", "drive.reset.erase_at=reset"]
[[constraint]]
require = "granularity >= 64KiB || reset == \"now\""
[[objective]]
goal = "minimize"
metric = "lat_p99_us"
[quick]
points = 10
repeats = 1
set = ["job.0.runtime=1ms"]
"#,
        )
        .unwrap();
        let counts: Vec<u64> = file.varies.iter().map(|vary| vary.knob.count()).collect();
        assert_eq!(counts, [64, 11, 3, 2]);
        assert_eq!(file.varies[3].cases[1].set.len(), 2);
        let points = file.points(file.points, 1).unwrap();
        assert_eq!(points.len(), 100);
        assert!(
            points
                .iter()
                .all(|point| point[0] >= 64 << 10 || point[3] == 0)
        );
        assert_eq!((file.repeats, file.quick.points), (3, Some(10)));
    }

    #[test]
    fn rows_are_points() {
        let file = parse(
            "schema = 1\nexperiment = \"x\"\nsample = \"list\"\n\
             rows = [[\"1ms\", 4], [\"2ms\", 4], [\"1ms\", [1, 2]]]\n\
             [[vary]]\nkey = \"a\"\n[[vary]]\nkey = \"b.c\"\n\
             [[constraint]]\nrequire = \"a < 2ms\"\n",
        )
        .unwrap();
        let points = file.points(None, 1).unwrap();
        assert_eq!(points, [[0, 0], [0, 1]]);
        assert_eq!(file.varies[1].knob.setting(1), "b.c=[1,2]");
        // A part of them, if that is asked for.
        assert_eq!(file.points(Some(1), 1).unwrap(), [[0, 0]]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        const HEAD: &str = "schema = 1\nexperiment = \"x\"\n";
        const VARY: &str = "[[vary]]\nkey = \"a\"\nvalues = [1, 2]\n";
        const REQUIRE: &str = "[[constraint]]\nrequire = \"a < 2\"\n";
        for (text, message) in [
            (
                String::new(),
                "s.toml: experiment: missing; the experiment that is run",
            ),
            (HEAD.to_owned(), "s.toml: vary: nothing differs"),
            (
                format!("{HEAD}[[vary]]\nkey = \"a\"\n"),
                "s.toml:3: vary.0.values: missing; give `values`, or both",
            ),
            (
                format!("{HEAD}[[vary]]\nkey = \"a\"\nlow = 1\n"),
                "vary.0.high: missing; give `values`, or both",
            ),
            (
                format!("{HEAD}[[vary]]\nkey = \"a\"\nlow = 5\nhigh = 1\n"),
                "s.toml:6: vary.0.high: the bounds 5..1 are empty",
            ),
            (
                format!("{HEAD}[[vary]]\nkey = \"a\"\nlow = 0\nhigh = 9\nscale = \"log\"\n"),
                "vary.0.high: 0 has no logarithm",
            ),
            (
                format!("{HEAD}[[vary]]\nkey = \"a\"\nvalues = [1, 1]\n"),
                "s.toml:5: vary.0.values: the value 1 is there twice",
            ),
            (
                format!("{HEAD}[[vary]]\nkey = \"id\"\nvalues = [1]\n"),
                "s.toml:4: vary.0.key",
            ),
            (
                format!("{HEAD}{VARY}{VARY}"),
                "s.toml:6: vary.1: a varies twice",
            ),
            (
                format!("{HEAD}{VARY}name = \"seed\"\n"),
                "s.toml:6: vary.0.name: each data set has a column",
            ),
            (
                format!("{HEAD}sample = \"random\"\n{VARY}"),
                "points: missing; sample = \"random\" draws so many",
            ),
            (format!("{HEAD}points = 3\n{VARY}"), "s.toml:3: points: "),
            (
                format!("{HEAD}sample = \"sobol\"\npoints = 0\n{VARY}{REQUIRE}"),
                "s.toml:4: points: 0 is out of range",
            ),
            (
                format!("{HEAD}sample = \"evolve\"\n{VARY}{REQUIRE}"),
                "s.toml: objective: 0 objectives",
            ),
            (
                format!("{HEAD}rows = [[1]]\n{VARY}"),
                "s.toml:3: rows: there are rows; only with",
            ),
            (
                format!("{HEAD}sample = \"list\"\nrows = [[1], [1, 2]]\n[[vary]]\nkey = \"a\"\n"),
                "s.toml:4: rows.1: the row has 2 values; 1: one for each",
            ),
            (
                format!("{HEAD}{VARY}[[constraint]]\nrequire = \"b < 2\"\n"),
                "s.toml:7: constraint.0.require: no key is named b",
            ),
            (
                format!("{HEAD}smaple = \"grid\"\n{VARY}"),
                "s.toml:3: smaple: unknown key `smaple`; did you mean `sample`?",
            ),
            (
                format!("{HEAD}metrics = [\"ops\", \"lat_p99\"]\n{VARY}"),
                "s.toml:3: metrics.1: ",
            ),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
            // What is right is not said to be wrong as well.
            assert!(
                !error.contains("unknown key `constraint`"),
                "{text}: {error}"
            );
        }
    }
}
