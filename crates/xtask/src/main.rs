//! Chores of the workspace: `cargo xtask help` lists them.
//!
//! They call cargo and pass its output through; nothing is decided here but
//! what runs, in which order, and what to say if something cannot.

mod blocks;
mod book;
mod call_cycle;
mod chaos;
mod dist;
mod fuzz;
mod gaps;
mod guest;
mod nightly;
mod package;
mod playground;
mod python;
mod relations;
mod release;
mod soak;
mod steps;
mod tiers;
mod times;
mod tools;
mod verdicts;
mod web;
mod words;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const HELP: &str = "\
Chores of the zonelab workspace.

  cargo xtask test [TIER] [--keep-going]
      Runs the tests of a tier, `fast`, `fio`, `web`, `chaos`, `guest`, `python`, `agreement`,
      `package`, `book` or `verdicts`; without one, of `fast`. Stops at the first step that fails, with its exit code; with
      --keep-going, after the last step. With CI set in the environment, a step that cannot run is a failure.
  cargo xtask times
      Prints how long each tier took when it was last run here, beside its budget, and the time
      of a fixed piece of work, which shows how busy the machine was.
  cargo xtask fuzz TARGET [--seed N] [--runs N] [--seconds N]
      Runs a fuzz target over its corpus and seeded inputs, on stable Rust.
      A failure prints its seed and the command that replays it.
  cargo xtask fuzz TARGET --input FILE
      Runs a fuzz target on one file.
  cargo xtask fuzz TARGET (--seed N | --input FILE) --minimise FILE
      Looks for a simpler input that fails in the same way.
  cargo xtask fuzz --list
      Lists the fuzz targets.
  cargo xtask nightly [--seed N] [--again] [JOB ...]
      Runs the whole form of everything whose small form the tiers have, and writes one page of
      results, target/nightly/nightly.md. What passed at this commit is not run again but with
      --again. Jobs: deny, tests, verdicts, guests, chaos, fits, relations, fuzz.
  cargo xtask relations [--seed N] [--runs N] [--only RELATION]... [--most N] [--list]
      Holds random drives against relations that need no oracle. What does not hold is reduced,
      and printed with the command that replays it; --most: so many cases of each relation.
  cargo xtask soak [--runs N] [--seed N]
      Runs the targets `drive`, `system`, `faults`, `snapshot` and `store` over ten
      million inputs, optimised, with all assertions, on all cores.
  cargo xtask verdicts [--write] [RESULTS_DIR]
      Compares what the documents say of all results with what a whole run came
      to, in results/reproduce/latest unless named; with --write, writes it there. First
      does what `gaps` does.
  cargo xtask gaps [--write]
      Compares what the documents of the models say was tried for statements that
      do not hold with experiments/misfits.toml; with --write, writes it there.
  cargo xtask playground [--out DIR]
      Builds the page that runs zonelab in a browser, in target/site/playground unless named,
      and prints what it weighs; more than 5 MB are a failure.
  cargo xtask call-cycle
      Prints which files of crates/ssd with methods of the drive call each other in a
      circle, its longest files, and how many assertions it has.
  cargo xtask book [--out DIR]
      Builds the documentation as a book, in target/book/html unless named, and checks
      its links, and how many words each page and all of them have.
  cargo xtask package
      Makes the packages that a registry would get, and checks that they compile from
      nothing else, with the oldest Rust that they claim.
  cargo xtask deny [--no-advisories]
      Checks licences, advisories, bans and sources of what we depend on (deny.toml), with
      cargo-deny, which it installs.
  cargo xtask semver [--baseline-rev REVISION]
      Says what users of the libraries would have to change since the last release, with
      cargo-semver-checks, which it installs.
  cargo xtask dist [--container]
      Makes target/dist: a static program with its manual, completions, licences and
      checksums; with --container, a container of it too.
  cargo xtask release --check [--quick]
      Prints what a release needs, and what is missing; --quick leaves out what takes minutes.
  cargo xtask help
      Prints this.

More: docs/testing.md";

/// Exit code of a command line that makes no sense.
const USAGE: u8 = 2;
/// Exit code if the environment lacks something.
const ENVIRONMENT: u8 = 4;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("test") => tiers::chore(&args[1..]),
        Some("times") => times::chore(),
        Some("fuzz") => fuzz::chore(&args[1..]),
        Some("verdicts") => verdicts::chore(&args[1..]),
        Some("gaps") => gaps::chore(&args[1..]),
        Some("playground") => playground::chore(&args[1..], tiers::is_ci()),
        Some("call-cycle") => call_cycle::chore(&args[1..]),
        Some("nightly") => nightly::chore(&args[1..]),
        Some("book") => book::chore(&args[1..]),
        Some("package") => package::chore(),
        Some("deny") => tools::deny(&args[1..]),
        Some("semver") => tools::semver(&args[1..]),
        Some("dist") => dist::chore(&args[1..]),
        Some("release") => release::chore(&args[1..]),
        Some("relations") => relations::chore(&args[1..]),
        Some("soak") => soak::chore(&args[1..]),
        Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("there is no chore `{other}`\n\n{HELP}");
            return ExitCode::from(USAGE);
        }
        None => {
            eprintln!("{HELP}");
            return ExitCode::from(USAGE);
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The directory of the workspace.
fn root() -> PathBuf {
    // Cargo says it at run time, too: a program that was compiled elsewhere knows another place.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    here.ancestors()
        .nth(2)
        .expect("this crate lies two levels down")
        .to_path_buf()
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    // Programs that run in different directories mean the same one.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target)
}

/// Where everything else is made: `target`, also where cargo builds elsewhere.
fn made() -> PathBuf {
    root().join("target")
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
