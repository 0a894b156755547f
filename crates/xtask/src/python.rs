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

    #[test]
    fn profiles_are_those_of_the_workspace() {
        let profiles = |file: &str| {
            let text = std::fs::read_to_string(root().join(file)).expect("it is there");
            let manifest: toml::Table = text.parse().expect("manifests are TOML");
            manifest["profile"].as_table().expect("a table").clone()
        };
        assert_eq!(profiles("python/Cargo.toml"), profiles("Cargo.toml"));
    }

    const LACKS_ALL: Present = Present {
        python: false,
        packages: false,
    };
    const LACKS_PACKAGES: Present = Present {
        python: true,
        packages: false,
    };
    const HAS_ALL: Present = Present {
        python: true,
        packages: true,
    };

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn what_is_missing_is_installed_or_named() {
        let always = names(&plan(HAS_ALL, false)).len();
        assert_eq!(plan(HAS_ALL, true).len(), always);
        let ci = plan(LACKS_ALL, true);
        let first = ["package lists", "Python", "virtual environment", "packages"];
        assert_eq!(names(&ci)[..4], first);
        assert_eq!(names(&plan(LACKS_PACKAGES, true))[..2], first[2..]);
        assert!(ci.iter().all(|step| step.missing.is_none()));
        for (present, how) in [
            (LACKS_ALL, Some(INSTALL)),
            (LACKS_PACKAGES, Some(INSTALL_PACKAGES)),
            (HAS_ALL, None),
        ] {
            let here = plan(present, false);
            assert_eq!(names(&here), names(&plan(HAS_ALL, true)));
            assert_eq!(here.last().and_then(|step| step.missing), how);
        }
    }

    #[test]
    fn the_package_is_installed_before_it_is_looked_at() {
        let steps = plan(HAS_ALL, true);
        let names = names(&steps);
        let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
        assert!(place("pip install .") < place("Python types"));
        // What that compiles, the package has in common with it.
        assert!(place("zonelab") < place("pip install ."));
    }
}
