//! `cargo xtask times`: how long tiers took, beside what each may take.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result};

use crate::tiers::TIERS;
use crate::{made, steps};

/// What is known of a tier that ended.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    tier: String,
    seconds: f64,
    /// The time of a fixed piece of work on every core, just before.
    work_seconds: f64,
    code: u8,
}

/// Runs a tier, and keeps how long it took.
pub(crate) fn timed(tier: &str, run: impl FnOnce() -> Result<u8>) -> Result<u8> {
    let ((), work) = steps::timed(fixed_work);
    let (code, time) = steps::timed(run);
    let code = code?;
    let run = Run {
        tier: tier.to_owned(),
        seconds: time.as_secs_f64(),
        work_seconds: work.as_secs_f64(),
        code,
    };
    let mut runs = read().unwrap_or_default();
    runs.retain(|other| other.tier != tier);
    runs.push(run);
    let lines: Vec<String> = runs.iter().map(Run::line).collect();
    let written = fs::create_dir_all(made()).and_then(|()| fs::write(file(), lines.concat()));
    written.context("cannot keep how long the tier took")?;
    Ok(code)
}

/// Prints the table.
pub(crate) fn chore() -> Result<u8> {
    let runs = read()?;
    print!("{}", table(&runs));
    Ok(0)
}

/// The same work each time, on every core: on a machine that others use, too, it takes longer.
fn fixed_work() {
    /// Steps of a generator of random numbers: some tenths of a second.
    const STEPS: u32 = 20_000_000;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for seed in 1..=cores as u64 {
            scope.spawn(move || {
                let mut state = seed;
                for _ in 0..STEPS {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                }
                black_box(state);
            });
        }
    });
}

fn file() -> PathBuf {
    made().join("tier-times.tsv")
}

fn read() -> Result<Vec<Run>> {
    let text = fs::read_to_string(file()).context("no tier was run")?;
    Ok(text.lines().filter_map(Run::parse).collect())
}

impl Run {
    fn line(&self) -> String {
        let Self {
            tier,
            seconds,
            work_seconds,
            code,
        } = self;
        format!("{tier}\t{seconds:.3}\t{work_seconds:.3}\t{code}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        Some(Self {
            tier: next()?.to_owned(),
            seconds: next()?.parse().ok()?,
            work_seconds: next()?.parse().ok()?,
            code: next()?.parse().ok()?,
        })
    }
}

/// A line for each tier that was run, and their sum.
fn table(runs: &[Run]) -> String {
    let mut text = format!(
        "\n{:<12}{:>9}{:>9}{:>13}\n",
        "tier", "minutes", "budget", "fixed work"
    );
    let (mut sum, mut budgets) = (0.0, 0);
    for run in runs {
        let budget = TIERS.iter().find(|tier| tier.name == run.tier);
        let budget = budget.and_then(|tier| tier.budget_minutes);
        let minutes = run.seconds / 60.0;
        sum += minutes;
        budgets += budget.unwrap_or(0);
        let note = match (run.code, budget) {
            (0, Some(budget)) if minutes > f64::from(budget) => "  over its budget",
            (0, _) => "",
            _ => "  failed",
        };
        let budget = budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string());
        text.push_str(&format!(
            "{:<12}{minutes:>9.1}{budget:>9}{:>11.2} s{note}\n",
            run.tier, run.work_seconds
        ));
    }
    text.push_str(&format!(
        "{:<12}{sum:>9.1}{budgets:>9}\nThe fixed work is the same each time: where it took longer, \
         the machine was slower or busy.\n",
        "together"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_stands_beside_its_budget_and_fails_for_nothing_but_its_code() {
        let run = |tier: &str, seconds, code| Run {
            tier: tier.to_owned(),
            seconds,
            work_seconds: 0.25,
            code,
        };
        let runs = [
            run("fast", 60.0, 0),
            run("fio", 6_000.0, 0),
            run("web", 1.0, 101),
        ];
        for one in &runs {
            assert_eq!(Run::parse(one.line().trim_end()).as_ref(), Some(one));
        }
        let text = table(&runs);
        let line = |tier: &str| text.lines().find(|line| line.starts_with(tier)).unwrap();
        assert!(line("fast").ends_with("0.25 s"), "{text}");
        assert!(line("fio").ends_with("over its budget"), "{text}");
        assert!(line("web").ends_with("failed"), "{text}");
        assert!(line("together").contains("101.0"), "{text}");
    }
}
