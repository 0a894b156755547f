//! `cargo xtask test`.

use std::process::Stdio;

use anyhow::Result;

use crate::steps::{self, Policy, Step};
use crate::{USAGE, cargo, root, web};

/// The tiers there are, and what is in them.
const TIERS: &[(&str, &str)] = &[
    (
        "fast",
        "formatting, lints, documentation, unit, property, doc and snapshot tests, fuzz targets",
    ),
    ("web", "the report of `reproduce --quick` in a browser"),
];

/// Tiers that are planned: asked for by name, they should not look like a typo.
const PLANNED: &[&str] = &["guest", "python"];

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
    match tier.unwrap_or("fast") {
        "fast" => steps::run(fast(keep_going, has_component), policy(keep_going)),
        "web" => steps::run(
            web::steps(is_ci()),
            Policy {
                keep_going,
                strict: true,
            },
        ),
        other => {
            eprintln!("{}", no_such_tier(other));
            Ok(USAGE)
        }
    }
}

fn no_such_tier(name: &str) -> String {
    let why = match PLANNED.contains(&name) {
        true => "does not exist yet",
        false => "does not exist",
    };
    format!("cargo xtask test: the tier `{name}` {why}\n\n{}", tiers())
}

fn tiers() -> String {
    let lines = TIERS
        .iter()
        .map(|(name, what)| format!("\n  {name:<8} {what}"));
    lines.fold("there are these tiers:".to_owned(), |text, line| {
        text + &line
    })
}

/// Whether this is continuous integration: what is missing may be installed,
/// and what cannot run is a failure.
fn is_ci() -> bool {
    let ci = std::env::var_os("CI");
    ci.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

fn policy(keep_going: bool) -> Policy {
    Policy {
        keep_going,
        strict: is_ci(),
    }
}

/// The steps of the tier `fast`; `has` says which components are installed.
fn fast(keep_going: bool, has: impl Fn(&'static str) -> bool) -> Vec<Step> {
    let step = |name, args: &[&str], component: Option<&'static str>| {
        let mut command = cargo();
        command.args(args).current_dir(root());
        let missing = component.filter(|component| !has(component));
        Step {
            name,
            command,
            missing: missing.map(|component| match component {
                "rustfmt" => "rustup component add rustfmt",
                _ => "rustup component add clippy",
            }),
        }
    };
    let mut docs = step("documentation", &["doc", "--workspace", "--no-deps"], None);
    docs.command.env("RUSTDOCFLAGS", "-D warnings");
    let mut tests = step("tests and fuzz targets", &["test", "--workspace"], None);
    if keep_going {
        tests.command.arg("--no-fail-fast");
    }
    vec![
        step("formatting", &["fmt", "--all", "--check"], Some("rustfmt")),
        step(
            "lints",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
            Some("clippy"),
        ),
        docs,
        tests,
    ]
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
            ("documentation", None),
            ("tests and fuzz targets", None),
        ];
        assert_eq!(missing, expected);
    }

    #[test]
    fn warnings_are_errors_everywhere() {
        let steps = fast(true, |_| true);
        let lints: Vec<_> = steps[1].command.get_args().collect();
        assert_eq!(lints[lints.len() - 2..], ["-D", "warnings"]);
        let flags = steps[2].command.get_envs().next().unwrap();
        assert_eq!(
            flags,
            ("RUSTDOCFLAGS".as_ref(), Some("-D warnings".as_ref()))
        );
        assert!(
            steps[3]
                .command
                .get_args()
                .any(|arg| arg == "--no-fail-fast")
        );
    }

    #[test]
    fn tiers_that_do_not_exist_are_refused_with_those_that_do() {
        for (name, why) in [
            ("guest", "does not exist yet"),
            ("fats", "does not exist\n"),
        ] {
            let text = no_such_tier(name);
            let names_tiers = TIERS.iter().all(|(name, _)| text.contains(name));
            assert!(text.contains(why) && names_tiers, "{text}");
        }
    }
}
