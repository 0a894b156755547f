//! Steps: what a chore runs, one after another.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{ENVIRONMENT, cargo, root};

/// One step.
#[derive(Debug)]
pub(crate) struct Step {
    /// What it is, in a word or two.
    pub(crate) name: &'static str,
    /// What it runs.
    pub(crate) command: Command,
    /// How to install what it needs, if that is missing.
    pub(crate) missing: Option<&'static str>,
}

impl Step {
    /// A step that runs cargo in the directory of the workspace.
    pub(crate) fn cargo(name: &'static str, args: &[&str]) -> Self {
        let mut command = cargo();
        command.args(args).current_dir(root());
        Self {
            name,
            command,
            missing: None,
        }
    }

    /// A step that runs another program there.
    pub(crate) fn program(name: &'static str, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(root());
        Self {
            name,
            command,
            missing: None,
        }
    }

    /// A step that needs the rights of root: by `sudo` if there is one.
    pub(crate) fn as_root(name: &'static str, words: &[&str]) -> Self {
        let mut words = words.to_vec();
        if runs("sudo") {
            words.insert(0, "sudo");
        }
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive");
        Self {
            name,
            command,
            missing: None,
        }
    }
}

/// Steps that install packages: those of `command`, which begins with `apt-get`.
pub(crate) fn installing(name: &'static str, command: &'static str) -> [Step; 2] {
    let wait = ["apt-get", "-o", "DPkg::Lock::Timeout=600"];
    let words = command.split_whitespace().skip(1);
    let words: Vec<&str> = wait.into_iter().chain(words).chain(["--yes"]).collect();
    [
        Step::as_root("package lists", &["apt-get", "update"]),
        Step::as_root(name, &words),
    ]
}

/// Whether a program starts.
pub(crate) fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed(Duration),
    Failed(Duration, u8),
    /// Something is missing, which this would install.
    Skipped(&'static str),
    /// The same, where that is not accepted.
    Missing(&'static str),
    /// An earlier step failed.
    NotRun,
}

impl Outcome {
    /// The exit code of a step that stands in the way of success.
    fn code(self) -> Option<u8> {
        match self {
            Self::Failed(_, code) => Some(code),
            Self::Missing(_) => Some(ENVIRONMENT),
            Self::Passed(_) | Self::Skipped(_) | Self::NotRun => None,
        }
    }

    /// One line about it.
    pub(crate) fn line(self, name: &str) -> String {
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        match self {
            Self::Passed(time) => format!("ok       {name}: {}", seconds(time)),
            Self::Failed(time, code) => {
                format!("FAILED   {name}: exit code {code} after {}", seconds(time))
            }
            Self::Skipped(how) => format!("SKIPPED: {name}: install with {how}"),
            Self::Missing(how) => format!("MISSING: {name}: install with {how}"),
            Self::NotRun => format!("not run  {name}"),
        }
    }
}

/// What to do about trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Go on after a step that failed.
    pub(crate) keep_going: bool,
    /// A step that cannot run is a failure.
    pub(crate) strict: bool,
}

impl Policy {
    /// A step that fails or cannot run ends it.
    pub(crate) const STRICT: Self = Self {
        keep_going: false,
        strict: true,
    };
}

/// Runs steps and returns the exit code of the first that failed, or 0.
pub(crate) fn run(steps: Vec<Step>, policy: Policy) -> Result<u8> {
    let mut outcomes: Vec<(&'static str, Outcome)> = Vec::new();
    for mut step in steps {
        let failed = outcomes.iter().any(|(_, outcome)| outcome.code().is_some());
        let outcome = if failed && !policy.keep_going {
            Outcome::NotRun
        } else {
            println!("\n==> {}: {}", step.name, shown(&step.command));
            let outcome = run_one(&mut step, policy)?;
            println!("==> {}", outcome.line(step.name));
            outcome
        };
        outcomes.push((step.name, outcome));
    }
    println!("\n==> all steps");
    for (name, outcome) in &outcomes {
        println!("{}", outcome.line(name));
    }
    Ok(outcomes
        .iter()
        .find_map(|(_, outcome)| outcome.code())
        .unwrap_or(0))
}

/// What something gives, and how long it takes.
#[expect(
    clippy::disallowed_methods,
    reason = "how long something takes is for people to read"
)]
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = run();
    (result, start.elapsed())
}

fn run_one(step: &mut Step, policy: Policy) -> Result<Outcome> {
    if let Some(how) = step.missing {
        return Ok(match policy.strict {
            true => Outcome::Missing(how),
            false => Outcome::Skipped(how),
        });
    }
    let (status, time) = timed(|| step.command.status());
    let status = status.with_context(|| format!("cannot start {}", shown(&step.command)))?;
    Ok(match exit_code(status) {
        0 => Outcome::Passed(time),
        code => Outcome::Failed(time, code),
    })
}

/// The exit code to pass on; 1 for a program that a signal ended.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    status
        .code()
        .map_or(1, |code| u8::try_from(code).unwrap_or(1))
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(key, value)| {
            Some(format!(
                "{}={:?}",
                key.to_string_lossy(),
                value?.to_string_lossy()
            ))
        })
        .collect();
    let program = std::path::Path::new(command.get_program());
    words.extend(
        program
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
    );
    words.extend(
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Policy = Policy::STRICT;
    const LAX: Policy = Policy {
        keep_going: false,
        strict: false,
    };

    fn step(name: &'static str, args: &[&str], missing: Option<&'static str>) -> Step {
        // Every machine that gets here has a cargo.
        let mut command = cargo();
        command
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Step {
            name,
            command,
            missing,
        }
    }

    #[test]
    fn the_first_failure_decides_and_stops_the_rest_unless_told_otherwise() {
        let steps = || {
            vec![
                step("good", &["--version"], None),
                step("bad", &["no-such-command"], None),
                step("missing", &["--version"], Some("an installer")),
            ]
        };
        assert_eq!(run(steps(), STRICT).unwrap(), 101);
        let keep_going = Policy {
            keep_going: true,
            strict: true,
        };
        assert_eq!(run(steps(), keep_going).unwrap(), 101);
        assert_eq!(run(vec![], STRICT).unwrap(), 0);
    }

    #[test]
    fn what_cannot_run_fails_only_where_that_is_asked_for() {
        let steps = || vec![step("lints", &["--version"], Some("an installer"))];
        assert_eq!(run(steps(), STRICT).unwrap(), ENVIRONMENT);
        assert_eq!(run(steps(), LAX).unwrap(), 0);
        assert_eq!(
            Outcome::Skipped("rustup component add clippy").line("lints"),
            "SKIPPED: lints: install with rustup component add clippy"
        );
    }

    #[test]
    fn commands_are_shown_with_their_environment() {
        let mut command = Command::new("cargo");
        command.env("RUSTDOCFLAGS", "-D warnings").arg("doc");
        assert_eq!(shown(&command), "RUSTDOCFLAGS=\"-D warnings\" cargo doc");
    }
}
