//! `cargo xtask test`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::steps::{self, Policy, Step};
use crate::{
    USAGE, book, cargo, chaos, dist, guest, package, python, root, target, times, verdicts, web,
};

/// A tier of tests.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    /// What is in it.
    what: &'static str,
    /// Minutes that it may take on two quiet cores in continuous integration; `None` if it is
    /// not run there.
    pub(crate) budget_minutes: Option<u32>,
}

/// The tiers there are. What continuous integration runs of them takes 50 minutes together.
pub(crate) const TIERS: &[Tier] = &[
    Tier {
        name: "fast",
        what: "formatting, lints, documentation, unit, property, doc and snapshot tests, fuzz targets",
        budget_minutes: Some(16),
    },
    Tier {
        name: "fio",
        what: "our reading of job files beside that of the real fio",
        budget_minutes: Some(1),
    },
    Tier {
        name: "agreement",
        what: "the same jobs in virtual time and on the drive served in real time; the machine must be at rest",
        budget_minutes: Some(1),
    },
    Tier {
        name: "web",
        what: "the report of `reproduce --quick`, the page of a sweep, the playground, in a browser",
        budget_minutes: Some(9),
    },
    Tier {
        name: "chaos",
        what: "a served drive under hosts, hostile peers, kills and losses of power, all at once",
        budget_minutes: Some(5),
    },
    Tier {
        name: "guest",
        what: "Linux kernels and their tools with a zoned drive, in an emulated machine",
        budget_minutes: Some(11),
    },
    Tier {
        name: "python",
        what: "the Python package, installed by pip: types, tests, sweeps under Dask, notebooks",
        budget_minutes: Some(5),
    },
    Tier {
        name: "package",
        what: "the packages as a registry gets them, with the oldest Rust that they claim; the static program compiles",
        budget_minutes: Some(3),
    },
    Tier {
        name: "book",
        what: "the documentation as a book, whether its links lead somewhere, and its words",
        budget_minutes: Some(1),
    },
    Tier {
        name: "verdicts",
        what: "all published results, whole, and what the documents say of them",
        budget_minutes: None,
    },
];

/// Runs a tier.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let mut tier = None;
    let mut keep_going = false;
    for arg in args {
        match arg.as_str() {
            "--keep-going" => keep_going = true,
            name if tier.is_none() && !name.starts_with('-') => tier = Some(name),
            other => {
                eprintln!(
                    "cargo xtask test: `{other}` is not understood\n\n{}",
                    tiers()
                );
                return Ok(USAGE);
            }
        }
    }
    let tier = tier.unwrap_or("fast");
    if !TIERS.iter().any(|known| known.name == tier) {
        eprintln!("{}", no_such_tier(tier));
        return Ok(USAGE);
    }
    times::timed(tier, || run(tier, keep_going))
}

fn run(tier: &str, keep_going: bool) -> Result<u8> {
    let strict = Policy {
        keep_going,
        strict: true,
    };
    match tier {
        "fast" => steps::run(fast(keep_going, has_component), policy(keep_going)),
        "fio" => {
            let policy = policy(keep_going);
            steps::run(fio(policy.strict, steps::runs), policy)
        }
        "web" => steps::run(web::steps(is_ci()), strict),
        "guest" => steps::run(guest::steps(is_ci()), strict),
        "python" => steps::run(python::steps(is_ci()), strict),
        "chaos" => steps::run(chaos::steps(), strict),
        "agreement" => steps::run(agreement(), policy(keep_going)),
        "book" => steps::run(book::steps(), policy(keep_going)),
        "package" => steps::run(packages(is_ci())?, policy(keep_going)),
        // The last of those that there are.
        _ => steps::run(verdicts::steps(), policy(keep_going)),
    }
}

fn no_such_tier(name: &str) -> String {
    format!(
        "cargo xtask test: the tier `{name}` does not exist\n\n{}",
        tiers()
    )
}

fn tiers() -> String {
    let lines = TIERS
        .iter()
        .map(|Tier { name, what, .. }| format!("\n  {name:<9} {what}"));
    lines.fold("there are these tiers:".to_owned(), |text, line| {
        text + &line
    })
}

/// Whether this is continuous integration: what is missing may be installed,
/// and what cannot run is a failure.
pub(crate) fn is_ci() -> bool {
    let ci = std::env::var_os("CI");
    ci.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

fn policy(keep_going: bool) -> Policy {
    Policy {
        keep_going,
        strict: is_ci(),
    }
}

/// From what seed property tests draw. It is shown with the step, so that a failure
/// that comes with few seeds can be had again.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// A seed that is another one each time.
fn new_seed() -> u32 {
    use std::hash::{BuildHasher, RandomState};

    // Fits: the lower half.
    (RandomState::new().hash_one(()) & u64::from(u32::MAX)) as u32
}

/// All that the program can have: the libraries of TLS and of Parquet are compiled anyway, for
/// other packages of the workspace.
pub(crate) const FULL: &str = "zonelab-cli/full";

/// The steps of the tier `fast`; `has` says which components are installed.
fn fast(keep_going: bool, has: impl Fn(&'static str) -> bool) -> Vec<Step> {
    let step = |name, args: &[&str], component: Option<&'static str>| {
        let mut command = cargo();
        command.args(args).current_dir(root());
        Step {
            name,
            command,
            missing: component.filter(|component| !has(component)).map(adding),
        }
    };
    let mut docs = step("documentation", &["doc", "--workspace", "--no-deps"], None);
    docs.command.env("RUSTDOCFLAGS", "-D warnings");
    let mut tests = step(
        "tests and fuzz targets",
        &["test", "--workspace", "--features", FULL],
        None,
    );
    if keep_going {
        tests.command.arg("--no-fail-fast");
    }
    if std::env::var_os(PROPERTY_SEED).is_none() {
        tests.command.env(PROPERTY_SEED, new_seed().to_string());
    }
    // `--all-targets` has none of them, as `cargo test` has not.
    let mut others = vec!["clippy", "--workspace", "--features", FULL];
    let named = OTHERS.iter().chain(&web::TESTS);
    others.extend(named.flat_map(|test| ["--test", test]));
    others.extend(["--", "-D", "warnings"]);
    vec![
        step("formatting", &["fmt", "--all", "--check"], Some("rustfmt")),
        step(
            "lints",
            &[
                "clippy",
                "--workspace",
                "--features",
                FULL,
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
            Some("clippy"),
        ),
        step("lints of other tiers' tests", &others, Some("clippy")),
        docs,
        tests,
    ]
}

/// The command that adds a component of the toolchain.
fn adding(component: &'static str) -> &'static str {
    match component {
        "clippy" => "rustup component add clippy",
        _ => "rustup component add rustfmt",
    }
}

/// The tests of other tiers in the package of the command.
const OTHERS: [&str; 3] = ["agreement", "chaos", "real_fio"];

/// A test of the workspace that `cargo test` does not run unless it is named. The rest of what
/// cargo is told is as in the tier `fast`, which has linted these tests and built all else: with
/// other features, or without `--workspace`, the program would be compiled anew.
pub(crate) fn named_test(name: &'static str, tests: &[&str]) -> Step {
    let named = tests.iter().flat_map(|test| ["--test", test]);
    let words = ["test", "--workspace", "--features", FULL].into_iter();
    Step::cargo(name, &words.chain(named).collect::<Vec<_>>())
}

/// What the tier `fio` needs besides Rust.
const FIO_PROGRAMS: [&str; 2] = ["fio", "python3"];
/// How to get it, on Debian and its relatives.
const INSTALL_FIO: &str = "apt-get install fio python3";

/// What fetches a file, with the settings that apt has.
const FETCHES: &str = "/usr/lib/apt/apt-helper";
/// The job files of fio 3.39, in a package of Debian 13. The project keeps none of them.
const EXAMPLES: &str = "http://deb.debian.org/debian/pool/main/f/fio/fio-examples_3.39-1_all.deb";
const EXAMPLES_SUM: &str =
    "SHA256:cb35b548bf607353e901947dfa33b4c559e57d3d9dc816839f7f3c2c1924947f";

/// The steps of the tier `fio`. Where machines are made for one run
/// (`install`), it installs what it needs.
fn fio(install: bool, has: impl Fn(&str) -> bool) -> Vec<Step> {
    let is_there = FIO_PROGRAMS.iter().all(|program| has(program));
    let mut steps = Vec::new();
    if !is_there && install {
        let mut words = vec![
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "install",
            "--yes",
        ];
        words.extend(FIO_PROGRAMS);
        // Who is not the administrator asks to be.
        if has("sudo") {
            words.insert(0, "sudo");
        }
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(root());
        steps.push(Step {
            name: "installing fio",
            command,
            missing: None,
        });
    }
    let mut tests = named_test("tests beside the real fio", &["real_fio"]);
    let is_there = is_there || install;
    tests.missing = if !is_there {
        Some(INSTALL_FIO)
    } else if ![FETCHES, "dpkg-deb"].into_iter().all(&has) {
        Some("a Debian, which fetches fio's own job files")
    } else {
        let package = target().join("fio-examples.deb").display().to_string();
        let unpacked = target().join("fio-examples");
        let examples = unpacked.join("usr/share/doc/fio/examples");
        tests.command.env("ZONELAB_FIO_EXAMPLES", examples);
        let unpacked = unpacked.display().to_string();
        let fetch = [FETCHES, "download-file", EXAMPLES, &package, EXAMPLES_SUM];
        let unpack = ["dpkg-deb", "--extract", &package, &unpacked];
        steps.push(Step::program("job files of fio", &fetch));
        steps.push(Step::program("unpacking them", &unpack));
        None
    };
    steps.push(tests);
    steps
}

/// The step that builds the program for tests that run it: one for all tiers, since each set of
/// features would build it anew. For the same reason it is built together with the library of the
/// Python package, which is no more than that needs alone but for the library itself.
pub(crate) fn the_program() -> Step {
    let words = ["build", "--quiet", "--release"];
    let packages = ["--package", "zonelab-cli", "--package", "zonelab-python"];
    Step::cargo(
        "zonelab",
        &[&words[..], &packages, &["--features", FULL]].concat(),
    )
}

/// Where it is then.
pub(crate) fn built() -> PathBuf {
    target().join("release").join("zonelab")
}

/// The steps of the tier `agreement`.
fn agreement() -> Vec<Step> {
    let mut tests = named_test("virtual and real time", &["agreement"]);
    // It would take longer than the drive if it were compiled for debugging.
    tests.command.env("ZONELAB", built());
    vec![the_program(), tests]
}

/// The steps of the tier `package`; with `install`, the oldest Rust is installed first.
fn packages(install: bool) -> Result<Vec<Step>> {
    let rust = package::rust_version()?;
    let mut steps = Vec::new();
    if install {
        let words = [
            "rustup",
            "toolchain",
            "install",
            &rust,
            "--profile",
            "minimal",
        ];
        steps.push(Step::program("the oldest Rust", &words));
    }
    steps.push(Step::cargo("packages", &["xtask", "package"]));
    if install {
        let words: Vec<&str> = dist::INSTALL.split(' ').collect();
        steps.push(Step::program("the target of the static program", &words));
    }
    let words = ["check", "--package", "zonelab-cli", "--features", "parquet"];
    let of_target = ["--target", dist::TARGET];
    let mut check = Step::cargo("the static program", &[&words[..], &of_target].concat());
    check.missing = (!install && !dist::has_target()).then_some(dist::INSTALL);
    steps.push(check);
    Ok(steps)
}

/// Whether a component of the toolchain works.
fn has_component(component: &'static str) -> bool {
    let subcommand = if component == "rustfmt" {
        "fmt"
    } else {
        component
    };
    cargo()
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_component_concerns_only_the_step_that_needs_it() {
        let steps = fast(false, |component| component != "clippy");
        let missing: Vec<_> = steps.iter().map(|step| (step.name, step.missing)).collect();
        let expected = [
            ("formatting", None),
            ("lints", Some("rustup component add clippy")),
            (
                "lints of other tiers' tests",
                Some("rustup component add clippy"),
            ),
            ("documentation", None),
            ("tests and fuzz targets", None),
        ];
        assert_eq!(missing, expected);
    }

    #[test]
    fn fio_is_installed_where_that_is_asked_for_and_named_elsewhere() {
        let names = |steps: &[Step]| -> Vec<&str> { steps.iter().map(|step| step.name).collect() };
        let tests = "tests beside the real fio";
        let fetched = ["job files of fio", "unpacking them"];
        assert_eq!(
            names(&fio(true, |_| true)),
            [&fetched[..], &[tests]].concat()
        );
        let installs = fio(true, |program| program != "fio");
        let expected = [&["installing fio"], &fetched[..], &[tests]].concat();
        assert_eq!(names(&installs), expected);
        assert!(installs.iter().all(|step| step.missing.is_none()));
        let lacks = fio(false, |program| program != "fio");
        assert_eq!(names(&lacks), [tests]);
        assert_eq!(lacks[0].missing, Some(INSTALL_FIO));
    }

    #[test]
    fn warnings_are_errors_everywhere() {
        let steps = fast(true, |_| true);
        for step in &steps[1..3] {
            let lints: Vec<_> = step.command.get_args().collect();
            assert_eq!(lints[lints.len() - 2..], ["-D", "warnings"]);
        }
        let flags = steps[3].command.get_envs().next().unwrap();
        assert_eq!(
            flags,
            ("RUSTDOCFLAGS".as_ref(), Some("-D warnings".as_ref()))
        );
        assert!(
            steps[4]
                .command
                .get_args()
                .any(|arg| arg == "--no-fail-fast")
        );
    }

    #[test]
    fn tiers_that_do_not_exist_are_refused_with_those_that_do() {
        let text = no_such_tier("fats");
        let names_tiers = TIERS.iter().all(|tier| text.contains(tier.name));
        assert!(
            text.contains("`fats` does not exist\n") && names_tiers,
            "{text}"
        );
    }
}
