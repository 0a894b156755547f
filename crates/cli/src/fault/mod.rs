//! `zonelab fault`: faults of a drive that is being served.

mod plan;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use zonelab_config::units::{fmt_duration, parse_duration};
use zonelab_lab::table::{Column, Table};

use crate::console;
use crate::exit::{Exit, Failure};
use crate::serve::control::{FailedState, Request, SCHEMA};

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer at most: a list of many faults.
const ANSWER_BYTES: u64 = 64 << 20;

/// Options of `fault`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// The socket that `zonelab serve --control` made
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
    /// As JSON: the answer of the server
    #[arg(long, global = true)]
    json: bool,
}

const AFTER_HELP: &str = "\
  zonelab serve zn540 --control zn540.sock &
  zonelab fault --control zn540.sock add --on read --lbas 4096..=4351 --effect media-error
  zonelab fault --control zn540.sock list
  zonelab fault --control zn540.sock zone 3 7..=9 --state offline
  zonelab fault --control zn540.sock power-cut --off 500ms

Exit codes: 0 done, 2 usage, 3 input file, 4 nobody serves at the socket, 5 the
server refused. docs/models/faults.md has the vocabulary.";

#[derive(clap::Subcommand)]
enum Command {
    /// Load a fault, or a plan of them, behind those there are
    Add(Box<plan::AddArgs>),
    /// The faults there are, and how often each struck
    List,
    /// Take one fault away
    Remove {
        /// Its number, as `list` shows it
        id: u64,
    },
    /// Take all faults away; blocks that could not be read can be again
    Clear,
    /// Zones fail now: hosts get the changed-zone event
    Zone(ZoneArgs),
    /// Power is lost now: every connection ends, and hosts that come back find
    /// what a loss of power leaves
    PowerCut {
        /// How long the drive is off, at least
        #[arg(long, value_name = "TIME", default_value = "0s")]
        off: String,
    },
    /// Controllers give up now, as after an internal error: CSTS.CFS is set, and
    /// the connections of their I/O queues end
    ResetController {
        /// Only this controller (CNTLID), instead of all
        #[arg(long, value_name = "ID")]
        controller: Option<u16>,
    },
}

/// Options of `fault zone`.
#[derive(clap::Args)]
#[command(after_help = ZONE_HELP)]
struct ZoneArgs {
    /// Zones by number, from 0: 3, or 7..=9
    #[arg(value_name = "ZONE", required = true, value_parser = zones)]
    zones: Vec<RangeInclusive<u32>>,
    /// What becomes of them
    #[arg(long, value_enum)]
    state: FailedState,
    /// Their namespace [default: the only one]
    #[arg(long, value_name = "NSID")]
    namespace: Option<u32>,
}

const ZONE_HELP: &str = "\
All of the zones fail, or none if one cannot: an offline zone stays so.

  zonelab fault --control zn540.sock zone 12 --state read-only
  zonelab fault --control zn540.sock zone 0..=3 8 --namespace 2 --state offline";

/// Does what the command line says.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn fault(args: &Args) -> Result<Exit, Failure> {
    let request = match &args.command {
        Command::Add(add) => Request::AddFaults { plan: add.plan()? },
        Command::List => Request::ListFaults {},
        Command::Remove { id } => Request::RemoveFault { id: *id },
        Command::Clear => Request::ClearFaults {},
        Command::Zone(of) => Request::FailZones {
            namespace: of.namespace,
            zones: of
                .zones
                .iter()
                .map(|range| (*range.start(), *range.end()))
                .collect(),
            state: of.state,
        },
        Command::PowerCut { off } => Request::PowerCut {
            off_ns: parse_duration(off)
                .map_err(|problem| Failure::usage(format!("--off: {problem}")))?,
        },
        Command::ResetController { controller } => Request::ResetControllers {
            controller: *controller,
        },
    };
    let control = args.control.as_ref().ok_or_else(|| {
        let missing = "--control is missing: name the socket of `zonelab serve --control SOCKET`";
        Failure::usage(missing.to_owned())
    })?;
    let (line, answer) = ask(control, &request)?;
    let text = match args.json {
        true => line,
        false => in_words(&request, &answer),
    };
    console::print(&text)?;
    Ok(Exit::Done)
}

/// Sends a request; the answer as it came, and what it says.
fn ask(control: &std::path::Path, request: &Request) -> Result<(String, Value), Failure> {
    let at = |error: std::io::Error| {
        let path = control.display();
        Failure::environment(match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                anyhow::anyhow!("nobody serves at {path} (zonelab serve --control {path}): {error}")
            }
            _ => anyhow::anyhow!("{path}: {error}"),
        })
    };
    let mut stream = UnixStream::connect(control).map_err(at)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(at)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(at)?;
    let request = request.to_line().map_err(Failure::environment)?;
    // A server that refuses us has said so, and does not read.
    let sent = stream.write_all(request.as_bytes());
    let mut line = String::new();
    let mut answers = BufReader::new((&stream).take(ANSWER_BYTES));
    let read = answers.read_line(&mut line).map_err(at)?;
    if read == 0 {
        sent.map_err(at)?;
        return Err(at(std::io::ErrorKind::UnexpectedEof.into()));
    }
    let device = |message: String| Failure::new(Exit::Device, anyhow::anyhow!(message));
    let answer: Value = serde_json::from_str(&line)
        .map_err(|error| device(format!("the server answers what is no JSON: {error}")))?;
    if answer["schema"] != SCHEMA {
        let schema = &answer["schema"];
        return Err(device(format!(
            "the server speaks schema {schema}; {SCHEMA} is known"
        )));
    }
    match answer["error"].as_str() {
        Some(message) => Err(device(format!("refused: {message}"))),
        None => Ok((line, answer)),
    }
}

/// What the server did.
fn in_words(request: &Request, answer: &Value) -> String {
    let number = |key: &str| answer[key].as_u64().unwrap_or_default();
    match request {
        Request::AddFaults { .. } => {
            let ids = answer["ids"].as_array().into_iter().flatten();
            let ids: Vec<String> = ids.map(Value::to_string).collect();
            format!("loaded: {}\n", ids.join(", "))
        }
        Request::ListFaults {} => list(answer),
        Request::RemoveFault { .. } | Request::ClearFaults {} => {
            format!("removed: {}\n", number("removed"))
        }
        Request::FailZones { .. } => format!("zones failed: {}\n", number("failed")),
        Request::PowerCut { .. } => format!(
            "power lost; commands in flight ended: {}; zones that changed their state: {}; \
             off for {}\n",
            number("aborted"),
            number("zones_changed"),
            fmt_duration(number("off_ns")),
        ),
        Request::ResetControllers { .. } => format!("controllers reset: {}\n", number("reset")),
    }
}

/// The faults as a table, in the words of plans.
fn list(answer: &Value) -> String {
    let mut table = Table::new([
        Column::number("id"),
        Column::number("struck"),
        Column::number("matched"),
        Column::text("fault"),
    ]);
    let faults = answer["faults"].as_array();
    for fault in faults.into_iter().flatten() {
        let words = fault["fault"].as_object().into_iter().flatten();
        let mut words: Vec<_> = words.collect();
        // In the order of the documents; what is not known there comes last.
        words.sort_by_key(|(key, _)| {
            let place = plan::KEYS.iter().position(|known| known == key);
            place.unwrap_or(plan::KEYS.len())
        });
        let words = words.into_iter().map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        });
        let numbers = ["id", "struck", "matched"].map(|key| fault[key].to_string());
        let words: Vec<String> = words.collect();
        let row = numbers.into_iter().chain([words.join(" ")]);
        table.push(row.map(Into::into));
    }
    match faults.is_some_and(|faults| !faults.is_empty()) {
        true => table.to_text(&console::style()),
        false => "there are no faults\n".to_owned(),
    }
}

/// Zones of the command line.
fn zones(text: &str) -> Result<RangeInclusive<u32>, String> {
    let valid = "a zone is a number from 0, several are as in 7..=9";
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| valid.to_owned());
    let (first, last) = text.split_once("..=").unwrap_or((text, text));
    let range = number(first)?..=number(last)?;
    match range.is_empty() {
        true => Err("write the lower end first, as in 7..=9".to_owned()),
        false => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_numbers_and_ranges() {
        assert_eq!(zones("3"), Ok(3..=3));
        assert_eq!(zones("7..=9"), Ok(7..=9));
        for text in ["", "x", "-1", "3..5", "9..=7", "4294967296"] {
            assert!(zones(text).is_err(), "{text}");
        }
    }
}
