//! `zonelab doctor`: whether this machine can use its drives.

mod checks;
mod machine;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Value, json};

use crate::console;
use crate::exit::{Exit, Failure};
use checks::{Check, State, Way, checks, is_open};
use machine::Machine;

/// Options of `doctor`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Nothing is changed, and neither root nor a drive is needed. Lines that say \"missing\" end with
what helps.

Exit codes: 0 at least one way to a drive is open, or there is no drive to need one; 4 drives
are there, and no way to them is open.";

/// Says what this machine has and lacks.
///
/// # Errors
/// It cannot be printed.
pub(crate) fn doctor(args: &Args) -> Result<Exit, Failure> {
    let io_uring = zonelab_driver::linux::try_io_uring().map_err(|error| error.to_string());
    let report = Report::new(&Machine::at(Path::new("/"), io_uring));
    console::print(&match args.json {
        true => report.to_json(),
        false => report.to_text(),
    })?;
    Ok(report.exit())
}

/// What there is to say.
struct Report {
    checks: Vec<Check>,
    has_drives: bool,
}

impl Report {
    fn new(machine: &Machine) -> Self {
        Self {
            checks: checks(machine),
            has_drives: !machine.controllers.is_empty(),
        }
    }

    fn exit(&self) -> Exit {
        let is_any_open = Way::ALL.iter().any(|way| is_open(&self.checks, *way));
        match is_any_open || !self.has_drives {
            true => Exit::Done,
            false => Exit::Environment,
        }
    }

    /// Whether nothing on this machine needs a way.
    fn is_needless(&self, way: Way) -> bool {
        let mut of_way = self.checks.iter().filter(|check| check.way == way);
        of_way.all(|check| check.state == State::NotNeeded)
    }

    /// A paragraph for each way, and a line for each check.
    fn to_text(&self) -> String {
        let names = self.checks.iter().map(|check| check.name.chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for way in [Way::Any].into_iter().chain(Way::ALL) {
            let verdict = match way {
                Way::Any => "",
                way if is_open(&self.checks, way) => ": open",
                way if self.is_needless(way) => ": not needed",
                _ => ": not open",
            };
            text += &format!("{}{verdict}\n", way.name());
            for check in self.checks.iter().filter(|check| check.way == way) {
                let (state, name, found) = (check.state.name(), &check.name, &check.found);
                text += &format!("  {state:<10}  {name:<width$}  {found}");
                if let Some(help) = &check.help {
                    text += &format!("; what helps: {help}");
                }
                text.push('\n');
            }
        }
        text
    }

    fn to_json(&self) -> String {
        let check = |check: &Check| {
            json!({
                "way": check.way.name(),
                "name": check.name,
                "state": check.state.name(),
                "found": check.found,
                "help": check.help,
            })
        };
        let ways = Way::ALL.iter().map(|way| {
            let is_open = is_open(&self.checks, *way);
            (way.name().to_owned(), Value::from(is_open))
        });
        let value = json!({
            "schema": 1,
            "ways": ways.collect::<serde_json::Map<String, Value>>(),
            "checks": self.checks.iter().map(check).collect::<Vec<Value>>(),
        });
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        format!("{text}\n")
    }
}
