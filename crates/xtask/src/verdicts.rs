//! `cargo xtask verdicts`: what the documents say of all results, beside what a
//! run came to.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::blocks::{Block, difference};
use crate::steps::Step;
use crate::{USAGE, cargo, gaps, root};

/// Where a document has the summary of a whole run.
const BLOCK: Block = Block("verdicts");

/// The documents with such a block, relative to the root.
const DOCUMENTS: [(&str, Extent); 2] = [("README.md", Extent::Numbers), (GAPS, Extent::Worst)];
const GAPS: &str = "docs/known-gaps.md";
/// How many of the gaps it has: the worst. All of them are in the documents of the models.
const WORST: usize = 20;

/// How much of the summary a document has.
#[derive(Clone, Copy)]
enum Extent {
    /// All of it but for the gaps that are not the worst.
    Worst,
    /// Its main numbers, in a few sentences.
    Numbers,
}

impl Extent {
    /// What a document has of `summary`.
    ///
    /// # Errors
    /// It is not the summary of a run of everything.
    fn of(self, summary: &str) -> Result<String> {
        match self {
            Self::Worst => Ok(worst(summary)),
            Self::Numbers => numbers(summary).context("the summary is not that of a whole run"),
        }
    }
}

/// The summary with the first rows of its table, which are the worst.
fn worst(summary: &str) -> String {
    let mut rows = 0;
    let is_kept = |line: &&str| {
        rows += usize::from(line.starts_with("| "));
        // Two more are the head of the table.
        rows <= WORST + 2
    };
    let lines: Vec<_> = summary.trim().lines().take_while(is_kept).collect();
    lines.join("\n")
}

/// How many rows match, and how far off they are, in a few sentences; `None` if a line is missing.
fn numbers(summary: &str) -> Option<String> {
    let line = |start: &str| summary.lines().find(|line| line.starts_with(start));
    let emulators = line("* kind E,")?;
    let (_, error) = emulators.split_once("median ")?;
    let error = error.split(',').next()?;
    let of_emulators = |word| count(emulators, word).unwrap_or_default();
    let ok = of_emulators("ok");
    let judged = ok + of_emulators("MISFIT") + of_emulators("FAIL");
    let statements = line("* statements:")?;
    let of_statements = |word| count(statements, word).unwrap_or_default();
    let hold = of_statements("hold") + of_statements("holds");
    let others = of_statements("MISSED") + of_statements("FAIL");
    let bar = |quantity: &str| {
        let line = line(&format!("* bar: {quantity}: median"))?;
        line.rsplit(", ").next()
    };
    let values = bar("throughput, mean latency and M together")?;
    let percentiles = bar("percentiles of latency")?;
    let bars = || summary.lines().filter(|line| line.starts_with("* bar: "));
    let missed = bars().filter(|bar| !bar.contains(": holds, ")).count();
    Some(format!(
        "Emulators and prototypes: **{ok} of {judged}** published points match, median error \
         **{error}**. A real drive, the ZN540: median error **{values}** in throughput and mean \
         latency, **{percentiles}** in percentiles of latency; {missed} of the {} bars set for it \
         are missed. Sentences of the papers: **{hold} of {}** hold.",
        bars().count(),
        hold + others
    ))
}

/// The number before a word in a line of counts: that of `ok` in "5 rows, 3 ok; ...".
fn count(line: &str, word: &str) -> Option<u32> {
    let mut parts = line.split([',', ';', ':']).map(str::trim);
    parts.find_map(|part| part.strip_suffix(word)?.trim_end().parse().ok())
}

/// Where results are unless a directory is named.
const RESULTS: &str = "results/reproduce/latest";
/// Where the tier `verdicts` puts them, below the root.
const TIER_RESULTS: &str = "target/verdicts";

/// The file of the summary among the results.
const SUMMARY: &str = "summary.md";

/// Compares the blocks with the summary of a run, or writes them; and what the
/// documents of the models have of the list of gaps, which needs no run.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let mut write = false;
    let mut results = None;
    for arg in args {
        match arg.as_str() {
            "--write" => write = true,
            name if results.is_none() && !name.starts_with('-') => {
                results = Some(PathBuf::from(name));
            }
            other => {
                eprintln!("cargo xtask verdicts: `{other}` is not understood");
                return Ok(USAGE);
            }
        }
    }
    let mut differences = gaps::update(write)?;
    let path = results
        .unwrap_or_else(|| root().join(RESULTS))
        .join(SUMMARY);
    let summary = std::fs::read_to_string(&path).with_context(|| {
        let path = path.display();
        format!("{path} cannot be read: `cargo run --release -- reproduce` writes it")
    })?;
    for (name, extent) in DOCUMENTS {
        let file = root().join(name);
        let text = std::fs::read_to_string(&file).with_context(|| name.to_owned())?;
        let summary = extent.of(&summary)?;
        let stated = BLOCK.read(&text).with_context(|| name.to_owned())?;
        if stated.trim() == summary.trim() {
            continue;
        }
        if write {
            let text = BLOCK.replace(&text, &summary)?;
            std::fs::write(&file, text).with_context(|| name.to_owned())?;
            println!("{name} now says what {} says", path.display());
        } else {
            differences += 1;
            let source = path.display().to_string();
            eprint!("{}", difference(name, stated, &source, &summary));
        }
    }
    if differences > 0 {
        eprintln!("`cargo xtask verdicts --write` writes what the run came to");
        return Ok(1);
    }
    Ok(0)
}

/// The steps of the tier `verdicts`: everything, whole; then the comparison.
pub(crate) fn steps() -> Vec<Step> {
    let step = |name, args: &[&str]| {
        let mut command = cargo();
        command.args(args).current_dir(root());
        Step {
            name,
            command,
            missing: None,
        }
    };
    let run = ["run", "--release", "--", "reproduce", "--quiet", "--force"];
    vec![
        step(
            "all results",
            &[&run[..], &["--out", TIER_RESULTS]].concat(),
        ),
        step("documents", &["xtask", "verdicts", TIER_RESULTS]),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The figure of each gap of whole runs, by its id and sentence.
    fn gaps() -> BTreeMap<(String, String), f64> {
        let path = root().join("experiments/misfits.toml");
        let text = std::fs::read_to_string(path).expect("the list is there");
        let list: toml::Table = text.parse().expect("the list is TOML");
        let gaps = list.get("gap").and_then(toml::Value::as_array);
        let text = |gap: &toml::Value, key: &str| gap[key].as_str().expect("a text").to_owned();
        let of_one = |gap: &toml::Value| {
            let today = gap.get("today")?;
            let today = today
                .as_float()
                .or(today.as_integer().map(|today| today as f64));
            let key = (text(gap, "id"), text(gap, "says").replace('|', "\\|"));
            Some((key, today.expect("a number")))
        };
        gaps.into_iter().flatten().filter_map(of_one).collect()
    }

    /// Whether a cell shows a figure, as far as its digits go.
    fn shows(cell: &str, figure: f64) -> bool {
        let (text, scale) = match cell.strip_suffix(" %") {
            Some(text) => (text, 0.01),
            None => (cell, 1.0),
        };
        let decimals = text
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        let digit = std::iter::repeat_n(0.1, decimals).fold(scale, |digit, tenth| digit * tenth);
        let value = text.parse::<f64>().map(|value| value * scale);
        value.is_ok_and(|value| (value - figure).abs() <= digit + 0.005 * figure.abs())
    }

    #[test]
    fn documents_name_the_known_gaps() {
        let text = std::fs::read_to_string(root().join(GAPS)).expect("it is there");
        let whole = BLOCK.read(&text).expect("there is a block of verdicts");
        let rows = whole
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| --- "));
        let rows = rows.map(|line| {
            let inner = line.trim_start_matches("| ").trim_end_matches(" |");
            inner.split(" | ").map(str::to_owned).collect::<Vec<_>>()
        });
        let listed = gaps();
        let mut stated = BTreeSet::new();
        for cells in rows.filter(|cells| cells[0] != "result") {
            let [id, says, _, ours, _] = cells.as_slice() else {
                panic!("a row of {GAPS} has {} cells: {cells:?}", cells.len());
            };
            let gap = (id.clone(), says.clone());
            let Some(today) = listed.get(&gap) else {
                panic!("{GAPS} states a gap that is not listed: {gap:?}");
            };
            assert!(
                shows(ours, *today),
                "{gap:?}: {ours} in {GAPS}, {today} in the list"
            );
            stated.insert(gap);
        }
        assert_eq!(stated.len(), WORST.min(listed.len()), "{GAPS}");
        let readme = std::fs::read_to_string(root().join("README.md")).expect("it is there");
        let first = BLOCK
            .read(&readme)
            .expect("the README has a block of verdicts");
        let numbers = Extent::Numbers.of(whole).expect("a whole run");
        assert_eq!(first.trim(), numbers, "README and {GAPS}");
    }

    #[test]
    fn the_first_page_has_the_numbers() {
        let summary = "* kind E, emulators: 9 rows, 5 ok, 2 MISFIT, 1 input; \\|error\\| median \
                       0.1 %, P90 0.9 %\n* statements: 8, 4 hold, 3 MISSED, 1 input\n\
                       * bar: throughput, mean latency and M together: median error at most 3 %: \
                       holds, 2.5 %\n* bar: percentiles of latency: median error at most 5 %: \
                       MISSED, 8.0 %\n";
        let numbers = Extent::Numbers.of(summary).unwrap();
        for says in [
            "**5 of 7** published points match, median error **0.1 %**",
            "**2.5 %** in throughput",
            "**8.0 %** in percentiles",
            "1 of the 2 bars",
            "**4 of 7** hold",
        ] {
            assert!(numbers.contains(says), "{says}: {numbers}");
        }
        assert!(Extent::Numbers.of("* statements: 8\n").is_err());
        assert_eq!(Extent::Worst.of(summary).unwrap(), summary.trim());
        let head = "* kind\n\n| result |\n| --- |\n";
        let rows = |count: usize| format!("{head}{}", "| C8 |\n".repeat(count));
        assert_eq!(
            Extent::Worst.of(&rows(WORST + 3)).unwrap(),
            rows(WORST).trim()
        );
    }

    #[test]
    fn a_cell_shows_a_figure() {
        for (cell, figure, expected) in [
            ("-8.1 %", -0.081, true),
            ("-8.1 %", -0.0814, true),
            ("+8.1 %", -0.081, false),
            ("1.235", 1.23, true),
            ("1.235", 1.2, false),
            ("12350", 12_345.6, true),
            ("-", 0.0, false),
        ] {
            assert_eq!(shows(cell, figure), expected, "{cell} {figure}");
        }
    }

    #[test]
    fn the_tier_runs_everything_whole() {
        let steps = steps();
        let words: Vec<Vec<_>> = steps
            .iter()
            .map(|step| step.command.get_args().collect())
            .collect();
        assert!(
            words[0].contains(&"reproduce".as_ref()) && !words[0].contains(&"--quick".as_ref())
        );
        assert_eq!(words[0].last(), words[1].last());
    }
}
