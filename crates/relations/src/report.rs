//! Failures in words, and the table of relations.

use std::fmt::Write as _;

use crate::case::Case;
use crate::open::{OPEN, Open};
use crate::relation::{Bound, Relation, Verdict};
use crate::relations;
use crate::run::SEED;

/// A relation that does not hold, with its smallest case.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The relation.
    pub relation: &'static Relation,
    /// What was expected, and what was got.
    pub what: String,
    /// The case, reduced.
    pub case: Case,
}

/// A word for a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=._-/:%".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{text}'"),
    }
}

impl Failure {
    /// The failure with its files and the commands that replay it.
    #[must_use]
    pub fn text(&self) -> String {
        let Relation { name, says, .. } = self.relation;
        let mut text = format!(
            "relation {name} does not hold (seed {}): {}\n  it says: {says}\n",
            self.seed, self.what
        );
        let mut line = |line: String| {
            writeln!(text, "{line}").expect("writing to a string does not fail");
        };
        line(format!("--- drive.toml\n{}", self.case.drive.toml()));
        line(format!("--- relation.toml\n{}", self.case.work.toml()));
        let (_, runs) = self.relation.check(&self.case);
        // The first is as it is, and with the last it is seen that the relation does not hold.
        let ends = runs
            .cases
            .first()
            .into_iter()
            .chain(runs.cases.iter().skip(1).next_back());
        for (what, case) in ends {
            let mut base = self.case.clone();
            if base.settings_for(case).is_none() {
                base.work = case.work.clone();
                line(format!("--- {what}: relation.toml\n{}", base.work.toml()));
            }
            let settings = base.settings_for(case).unwrap_or_default();
            let settings: Vec<String> = settings
                .iter()
                .map(|setting| format!(" --set {}", word(setting)))
                .collect();
            let settings = settings.concat();
            line(format!(
                "zonelab run relation.toml --seed {SEED}{settings}   # {what}"
            ));
        }
        line(format!(
            "replay: ZONELAB_RELATIONS_SEED={} ZONELAB_RELATIONS_RUNS=1 cargo test -p \
             zonelab-relations relations_hold, or cargo xtask relations --seed {} --runs 1 \
             --only {name}",
            self.seed, self.seed
        ));
        text
    }
}

/// How often relations were looked at.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By relation, in their order: held, did not, were skipped, did not as is known.
    pub counts: Vec<(&'static str, [u64; 4])>,
}

impl Tally {
    /// Counts a verdict.
    pub fn add(&mut self, name: &'static str, verdict: &Verdict, is_open: bool) {
        let at = match verdict {
            Verdict::Holds => 0,
            Verdict::Broken(_) if is_open => 3,
            Verdict::Broken(_) => 1,
            Verdict::Skipped => 2,
        };
        let known = self.counts.iter_mut().find(|(of, _)| *of == name);
        match known {
            Some((_, counts)) => counts[at] += 1,
            None => {
                let mut counts = [0; 4];
                counts[at] = 1;
                self.counts.push((name, counts));
            }
        }
    }

    /// Adds what somebody else counted.
    pub fn merge(&mut self, other: &Self) {
        for (name, counts) in &other.counts {
            match self.counts.iter_mut().find(|(of, _)| of == name) {
                Some((_, mine)) => {
                    for (mine, other) in mine.iter_mut().zip(counts) {
                        *mine += other;
                    }
                }
                None => self.counts.push((name, *counts)),
            }
        }
    }

    /// Cases that a relation was looked at in.
    #[must_use]
    pub fn looked_at(&self, name: &str) -> u64 {
        let known = self.counts.iter().find(|(of, _)| *of == name);
        known.map_or(0, |(_, [held, broken, _, open])| held + broken + open)
    }

    /// A line for each relation.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |(name, [held, broken, skipped, open]): &(&str, [u64; 4])| {
            format!(
                "{name:22} {held:7} hold {broken:5} broken {open:5} known {skipped:7} skipped\n"
            )
        };
        self.counts.iter().map(line).collect()
    }
}

/// The table of relations, and that of cases in which one is known not to hold.
#[must_use]
pub fn table() -> String {
    let mut text = "| relation | what it says | bound |\n| --- | --- | --- |\n".to_owned();
    for Relation {
        name, says, bound, ..
    } in relations::all()
    {
        let bound = match bound {
            Bound::Exact => "exact",
            Bound::Within(within) => within,
        };
        writeln!(text, "| `{name}` | {says} | {bound} |").expect("writing does not fail");
    }
    if !OPEN.is_empty() {
        text += "\n";
        text += &open_table();
    }
    text
}

/// The table of cases in which a relation is known not to hold, as `docs/testing.md` has it.
#[must_use]
pub fn open_table() -> String {
    let mut text = "| does not hold | where, and why |\n| --- | --- |\n".to_owned();
    for Open { relation, why, .. } in OPEN {
        writeln!(text, "| `{relation}` | {why} |").expect("writing does not fail");
    }
    text
}
