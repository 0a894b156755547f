//! `cargo xtask book`, and the tier `book`: the documentation as a book, and how many words
//! it has.
//!
//! What makes it is a workspace of its own, in `site/book`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::steps::{Step, exit_code};
use crate::{USAGE, root, target, words};

const MANIFEST: &str = "site/book/Cargo.toml";

/// Builds the book and checks its links, and the words of its pages.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let out = match args {
        [] => None,
        [option, directory] if option == "--out" => Some(Path::new(directory)),
        _ => {
            eprintln!("cargo xtask book: takes --out DIR, where the pages go");
            return Ok(USAGE);
        }
    };
    let mut build = build(out)?;
    let too_long = words::violations(&root())?;
    for violation in &too_long {
        eprintln!("cargo xtask book: {violation}");
    }
    let status = build.command.status().context("cannot start cargo")?;
    Ok(exit_code(status).max(u8::from(!too_long.is_empty())))
}

fn step(name: &'static str, command: &str, rest: &[&str]) -> Step {
    let mut step = Step::cargo(name, &[command, "--manifest-path", MANIFEST]);
    if command != "fmt" {
        step.command.arg("--target-dir").arg(target().join("book"));
    }
    step.command.args(rest);
    step
}

fn build(out: Option<&Path>) -> Result<Step> {
    let mut build = step("book", "run", &["--quiet"]);
    if let Some(out) = out {
        // It runs at the root of the workspace, and this may not.
        let out = std::path::absolute(out).context("no such directory")?;
        build.command.arg("--").arg(out);
    }
    Ok(build)
}

/// The steps of the tier.
pub(crate) fn steps() -> Vec<Step> {
    vec![
        step("formatting", "fmt", &["--check"]),
        step(
            "lints",
            "clippy",
            &["--all-targets", "--", "-D", "warnings"],
        ),
        step("tests", "test", &[]),
        Step::cargo("book", &["xtask", "book"]),
    ]
}
