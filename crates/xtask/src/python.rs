//! The tier `python`: the Python package, installed as a user installs it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::steps::{Step, installing};
use crate::tiers::{built, the_program};
use crate::{made, root, target};

/// What installs Python with virtual environments, on Debian.
const INSTALL: &str = "apt-get install --no-install-recommends python3 python3-venv";
/// What else the tests need.
const REQUIREMENTS: &str = "python/requirements.txt";
/// How to get that where nothing is installed without being asked.
const INSTALL_PACKAGES: &str = "CI=true cargo xtask test python";

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
    made().join("python")
}

/// A program of the virtual environment, in the root of the repository. What it compiles goes
/// where the rest is, which has most of it; formatting and lints of that are the tier `fast`'s.
fn program(name: &str) -> Command {
    let mut command = Command::new(environment().join("bin").join(name));
    command
        .current_dir(root())
        .env("VIRTUAL_ENV", environment())
        .env("CARGO_TARGET_DIR", target());
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
    let missing = match (present.python, present.packages) {
        _ if install => None,
        (true, true) => None,
        (true, false) => Some(INSTALL_PACKAGES),
        (false, _) => Some(INSTALL),
    };
    let interpreter = environment().join("bin/python");
    let interpreter = interpreter.to_string_lossy();
    let mut package = pip();
    package.args(["--no-deps", "."]);
    let mut tests = program("python");
    tests.args(["-m", "pytest"]);
    tests.env("ZONELAB", built());
    let mut with_packages = vec![the_program(), step("pip install .", package)];
    for (name, words) in [
        ("Python formatting", &["ruff", "format", "--check"][..]),
        ("Python lints", &["ruff", "check"]),
        // It asks the first `python` of the path otherwise, which has none of the packages.
        (
            "Python types",
            &["pyright", "--warnings", "--pythonpath", &interpreter],
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
