//! The tier `python`: the Python package, installed as a user installs it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::steps::{Step, installing};
use crate::{root, target};

/// What installs Python with virtual environments, on Debian.
const INSTALL: &str = "apt-get install --no-install-recommends python3 python3-venv";
/// What else the tests need.
const REQUIREMENTS: &str = "python/requirements.txt";
/// How to get that where nothing is installed without being asked.
const INSTALL_PACKAGES: &str = "CI=true cargo xtask test python";
/// The package's own workspace.
const MANIFEST: [&str; 2] = ["--manifest-path", "python/Cargo.toml"];

/// What there is of what the tests need.
#[derive(Clone, Copy, Debug)]
struct Present {
    /// Python that makes virtual environments.
    python: bool,
    /// A virtual environment with all packages.
    packages: bool,
}

/// The steps; with `install`, what is missing is installed first.
pub(crate) fn steps(install: bool) -> Vec<Step> {
    let python = succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    let packages = python && succeeds(pip().args(["--no-index", "--dry-run", "-r", REQUIREMENTS]));
    plan(Present { python, packages }, install)
}

/// Where the virtual environment is.
fn environment() -> PathBuf {
    target().join("python")
}

/// A program of the virtual environment, in the root of the repository. What it compiles goes
/// where the rest is, which has most of it.
fn program(name: &str) -> Command {
    let mut command = Command::new(environment().join("bin").join(name));
    command
        .current_dir(root())
        .env("VIRTUAL_ENV", environment())
        .env("CARGO_TARGET_DIR", target())
        .env("PYO3_PYTHON", environment().join("bin/python"));
    command
}

fn pip() -> Command {
    let mut pip = program("python");
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn plan(present: Present, install: bool) -> Vec<Step> {
    let step = |name, command| Step {
        name,
        command,
        missing: None,
    };
    let mut steps = Vec::new();
    if install && !present.python {
        steps.extend(installing("Python", INSTALL));
    }
    if install && !present.packages {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(environment());
        steps.push(step("virtual environment", make));
        let mut packages = pip();
        packages.args(["-r", REQUIREMENTS]);
        steps.push(step("packages", packages));
    }
    let formatting = [&["fmt"], &MANIFEST[..], &["--check"]].concat();
    steps.push(Step::cargo("formatting", &formatting));
    let missing = match (present.python, present.packages) {
        _ if install => None,
        (true, true) => None,
        (true, false) => Some(INSTALL_PACKAGES),
        (false, _) => Some(INSTALL),
    };
    let all_targets = ["--all-targets", "--", "-D", "warnings"];
    let mut lints = Step::cargo(
        "lints",
        &[&["clippy"], &MANIFEST[..], &all_targets].concat(),
    );
    // The bindings ask it for its version.
    let python = environment().join("bin/python");
    let python_path = python.to_string_lossy();
    lints.command.env("PYO3_PYTHON", &python);
    lints.command.env("CARGO_TARGET_DIR", target());
    let mut package = pip();
    package.args(["--no-deps", "."]);
    // As a user installs it, but for the optimisation, which would take longer than the tests.
    package.env("MATURIN_PEP517_ARGS", "--profile dev");
    let mut tests = program("python");
    tests.args(["-m", "pytest"]);
    tests.env("ZONELAB", target().join("release/zonelab"));
    let command = ["build", "--release", "--quiet", "--package", "zonelab"];
    let command = Step::cargo("zonelab", &command);
    let mut with_packages = vec![lints, command, step("pip install .", package)];
    for (name, words) in [
        ("Python formatting", &["ruff", "format", "--check"][..]),
        ("Python lints", &["ruff", "check"]),
        // It asks the first `python` of the path otherwise, which has none of the packages.
        (
            "Python types",
            &["pyright", "--warnings", "--pythonpath", &python_path],
        ),
    ] {
        let mut command = program(words[0]);
        command.args(&words[1..]);
        with_packages.push(step(name, command));
    }
    with_packages.push(step("tests in Python", tests));
    for mut step in with_packages {
        step.missing = missing;
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The TOML of a file of the repository.
    fn toml(file: &str) -> toml::Table {
        let text = std::fs::read_to_string(root().join(file)).expect("it is there");
        text.parse().expect("it is TOML")
    }

    #[test]
    fn profiles_are_those_of_the_workspace() {
        let profiles = |file: &str| toml(file)["profile"].as_table().expect("a table").clone();
        let locked = toml("python/Cargo.lock");
        let locked = locked["package"].as_array().expect("a list");
        let has = |name: &str| {
            locked
                .iter()
                .any(|package| package["name"].as_str() == Some(name))
        };
        let (ours, mut expected) = (profiles("python/Cargo.toml"), profiles("Cargo.toml"));
        expected.retain(|profile, _| ours.contains_key(profile));
        for profile in ["dev", "release"] {
            // What the package does not depend on has no place in its manifest: cargo would warn.
            let of_packages = expected[profile]["package"]
                .as_table_mut()
                .expect("a table");
            of_packages.retain(|name, _| has(name));
        }
        assert_eq!(ours, expected);
    }
}
