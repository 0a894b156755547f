//! Programs of others that chores run and install if they are not there.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::steps::{self, Policy, Step, exit_code};
use crate::{ENVIRONMENT, USAGE, cargo, root, target};

/// A subcommand of cargo, as a package of a registry.
struct Tool {
    /// The package, and the program in it.
    name: &'static str,
    /// What continuous integration has run with.
    version: &'static str,
}

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};
const SEMVER: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
};

impl Tool {
    /// The program: one that the shell finds, or the one that was installed here.
    fn program(&self) -> Option<PathBuf> {
        let own = target().join("tools/bin").join(self.name);
        let found = [PathBuf::from(self.name), own];
        found
            .into_iter()
            .find(|program| steps::runs(&program.to_string_lossy()))
    }

    /// Installs it below the directory of builds, if it is not there: as a binary that
    /// somebody has built, if there is `cargo-binstall`, and otherwise from its source.
    fn installed(&self) -> Result<PathBuf> {
        if let Some(program) = self.program() {
            return Ok(program);
        }
        let how = match steps::runs("cargo-binstall") {
            true => &["binstall", "--no-confirm"][..],
            false => &["install", "--locked"],
        };
        let Self { name, version } = self;
        println!("{name} is not there: cargo {} {name}", how.join(" "));
        let mut install = cargo();
        install
            .args(how)
            .args([name, "--version", version, "--root"]);
        // It is no part of the workspace, and its build shares nothing with it.
        install
            .arg(target().join("tools"))
            .current_dir(std::env::temp_dir());
        install.env("CARGO_TARGET_DIR", target().join("tools/build"));
        let step = Step {
            name,
            command: install,
            missing: None,
        };
        // It says how long it took.
        let code = steps::run(vec![step], Policy::STRICT)?;
        ensure!(code == 0, "{name} {version} cannot be installed");
        self.program()
            .with_context(|| format!("{name} does not run"))
    }
}

/// Runs a program at the root of the workspace.
fn run(command: &mut Command) -> Result<u8> {
    let status = command.current_dir(root()).status();
    Ok(exit_code(
        status.with_context(|| format!("cannot start {command:?}"))?,
    ))
}

/// Licences, advisories, bans and sources of what we depend on, as `deny.toml` says.
pub(crate) fn deny(args: &[String]) -> Result<u8> {
    let checks: &[&str] = match args {
        [] => &["advisories", "bans", "licenses", "sources"],
        // The advisories are a repository that is fetched.
        [option] if option == "--no-advisories" => &["bans", "licenses", "sources"],
        _ => {
            eprintln!("cargo xtask deny: takes --no-advisories, for machines that reach no GitHub");
            return Ok(USAGE);
        }
    };
    let program = DENY.installed()?;
    run(Command::new(program)
        .args(["--all-features", "check"])
        .args(checks))
}

/// What users of the libraries would have to change, beside the last release.
pub(crate) fn semver(args: &[String]) -> Result<u8> {
    let revision = match args {
        [] => last_release()?,
        [option, revision] if option == "--baseline-rev" => Some(revision.clone()),
        _ => {
            eprintln!("cargo xtask semver: takes --baseline-rev REVISION, to compare with");
            return Ok(USAGE);
        }
    };
    let Some(revision) = revision else {
        eprintln!(
            "cargo xtask semver: nothing has been released (no tag v*): name what to compare with \
             by --baseline-rev REVISION"
        );
        return Ok(ENVIRONMENT);
    };
    let program = SEMVER.installed()?;
    let words = ["semver-checks", "--workspace", "--baseline-rev", &revision];
    run(Command::new(program).args(words))
}

/// The newest tag of a version.
pub(crate) fn last_release() -> Result<Option<String>> {
    let mut git = Command::new("git");
    git.args(["tag", "--list", "v[0-9]*", "--sort=-version:refname"]);
    let output = git
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    ensure!(output.status.success(), "git cannot list tags");
    let tags = String::from_utf8_lossy(&output.stdout);
    Ok(tags.lines().next().map(str::to_owned))
}
