//! `--control SOCKET`: faults while a drive is served.
//!
//! A client writes requests, one JSON object in each line, and gets one line
//! back for each. The types here are both ends' (`zonelab fault` is the other).
//! A thread of its own serves each client, and calls into the loop of the server
//! with what is whole, so that a client that is slow, silent or wrong costs
//! nobody else anything.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use zonelab_device::{NamespaceId, Nanos, NoNamespace};
use zonelab_live::http::STACK_BYTES;
use zonelab_live::layer::Served;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::faults::{self, FaultId, FaultPlan, Standing};
use zonelab_target::server::LoopHandle;

use crate::exit::Failure;

/// Version of requests and answers.
pub(crate) const SCHEMA: u64 = 1;
/// Bytes of a request at most, its end of line included.
const LINE_BYTES: usize = 1 << 16;
/// Clients at a time.
pub(super) const CLIENTS: usize = 8;
/// How long a client may be silent, and may take nothing of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long power may be off: what is longer is a slip.
const OFF_MAX_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Pieces in which a request may come.
const PIECES: usize = 64;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Load a plan behind those there are.
    AddFaults {
        /// As TOML.
        plan: String,
    },
    /// The faults there are.
    ListFaults {},
    /// Take one away.
    RemoveFault {
        /// What it is called.
        id: u64,
    },
    /// Take all away.
    ClearFaults {},
    /// Zones fail now.
    FailZones {
        /// The only one if it is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<u32>,
        /// First and last zone of each range, counted from the start of the
        /// namespace.
        zones: Vec<(u32, u32)>,
        state: FailedState,
    },
    /// Power is lost now.
    PowerCut {
        /// How long at least.
        off_ns: u64,
    },
    /// Controllers give up now.
    ResetControllers {
        /// Which; all if it is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        controller: Option<u16>,
    },
}

/// What becomes of a zone that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailedState {
    /// It can be read
    ReadOnly,
    /// Its data is gone
    Offline,
}

impl Request {
    /// The line that says it.
    ///
    /// # Errors
    /// It cannot be said.
    pub(crate) fn to_line(&self) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        value["schema"] = SCHEMA.into();
        Ok(format!("{value}\n"))
    }

    /// Reads a line. The error says what would be valid.
    fn parse(line: &[u8]) -> Result<Self, String> {
        let mut object: Map<String, Value> = serde_json::from_slice(line)
            .map_err(|error| format!("a request is a JSON object in one line: {error}"))?;
        match object.remove("schema") {
            Some(schema) if schema == SCHEMA => {}
            Some(schema) => return Err(format!("schema {schema} is not known; {SCHEMA} is")),
            None => return Err(format!("schema is missing; {SCHEMA} is known")),
        }
        serde_json::from_value(object.into()).map_err(|error| error.to_string())
    }
}

/// The answer to a line: what was done, or why it was not.
fn answer(line: &[u8], handle: &LoopHandle<Served>) -> Value {
    let done = Request::parse(line).and_then(|request| {
        let call = handle.call(|present| carry_out(present.backend, present.now, request));
        call.unwrap_or_else(|ended| Err(ended.to_string()))
    });
    match done {
        Ok(mut value) => {
            value["schema"] = SCHEMA.into();
            value
        }
        Err(message) => refusal(&message),
    }
}

fn refusal(message: &str) -> Value {
    json!({ "schema": SCHEMA, "error": message })
}

/// Does what a request asks for.
fn carry_out(drive: &mut Served, now: Nanos, request: Request) -> Result<Value, String> {
    match request {
        Request::AddFaults { plan } => {
            let plan = FaultPlan::parse("", &plan, &[]).map_err(|errors| errors.to_string())?;
            let ids = drive.add_faults(now, plan)?;
            let ids: Vec<u64> = ids.into_iter().map(|id| id.0).collect();
            Ok(json!({ "ids": ids }))
        }
        Request::ListFaults {} => {
            let list: Vec<Value> = drive.faults().iter().map(as_json).collect();
            let struck = drive.drive().faults_struck();
            Ok(json!({ "faults": list, "struck": struck, "now_ns": now.0 }))
        }
        Request::RemoveFault { id } => match drive.remove_fault(FaultId(id)) {
            true => Ok(json!({ "removed": 1 })),
            false => Err(no_such_fault(id, &drive.faults())),
        },
        Request::ClearFaults {} => Ok(json!({ "removed": drive.clear_faults() })),
        Request::FailZones {
            namespace,
            zones,
            state,
        } => {
            let to = match state {
                FailedState::ReadOnly => ZoneState::READ_ONLY,
                FailedState::Offline => ZoneState::OFFLINE,
            };
            let ranges: Vec<_> = zones
                .into_iter()
                .map(|(first, last)| first..=last)
                .collect();
            if ranges.iter().any(|range| range.is_empty()) || ranges.is_empty() {
                return Err("no zones: give the first and the last of each range".to_owned());
            }
            let info = drive.drive().drive().info();
            let namespace = info.choose(namespace.map(NamespaceId));
            let namespace = namespace.map_err(|why| match why {
                NoNamespace::Several { .. } => format!("{why}: --namespace names one of them"),
                _ => why.to_string(),
            })?;
            drive
                .fail_zones(now, namespace, &ranges, to)
                .map_err(|error| error.to_string())?;
            Ok(json!({ "failed": ranges.into_iter().flatten().count() }))
        }
        Request::PowerCut { off_ns } if off_ns > OFF_MAX_NS => Err(format!(
            "power stays off for {off_ns} ns: a day ({OFF_MAX_NS} ns) is the longest"
        )),
        Request::PowerCut { off_ns } => {
            let cut = drive.power_cut(now, Nanos(off_ns));
            Ok(json!({
                "aborted": cut.aborted, "zones_changed": cut.changes.len(),
                "off_ns": cut.ready_at.saturating_sub(cut.at).0,
            }))
        }
        Request::ResetControllers { controller } => {
            let reset = drive.reset_controllers(now, controller).map_err(|error| {
                let ids = drive.controller_ids();
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                match ids.is_empty() {
                    true => format!("{error}: no host is connected"),
                    false => format!("{error}: there are {}", ids.join(", ")),
                }
            })?;
            Ok(json!({ "reset": reset }))
        }
    }
}

fn no_such_fault(id: u64, standing: &[Standing]) -> String {
    let ids: Vec<String> = standing.iter().map(|of| of.id.0.to_string()).collect();
    match ids.is_empty() {
        true => format!("there is no fault {id}: there is none at all"),
        false => format!("there is no fault {id}: there are {}", ids.join(", ")),
    }
}

fn as_json(standing: &Standing) -> Value {
    let words = standing.fault.keys().into_iter().map(|(key, value)| {
        let value = match value {
            faults::Value::Number(number) => number.into(),
            faults::Value::Text(text) => text.into(),
        };
        (key.to_owned(), value)
    });
    json!({
        "id": standing.id.0, "fault": words.collect::<Map<String, Value>>(),
        "loaded_ns": standing.loaded.0,
        "matched": standing.matched, "struck": standing.struck,
    })
}

/// A socket that clients find. It is gone with this value.
pub(crate) struct ControlSocket {
    path: PathBuf,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Serves clients at `path` from now on, in threads that end with the process.
///
/// # Errors
/// Somebody serves there, something else is there, or it cannot be made.
pub(super) fn bind(path: &Path) -> Result<Bound, Failure> {
    let listener = listen(path).map_err(|error| {
        Failure::environment(anyhow::anyhow!("--control {}: {error}", path.display()))
    })?;
    let socket = ControlSocket {
        path: path.to_owned(),
    };
    Ok(Bound { listener, socket })
}

/// A socket that nobody answers yet.
pub(super) struct Bound {
    listener: UnixListener,
    socket: ControlSocket,
}

impl Bound {
    /// Answers clients until what this returns is dropped.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn answer(self, handle: LoopHandle<Served>) -> Result<ControlSocket, Failure> {
        let Self { listener, socket } = self;
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept(&listener, &handle))
            .map_err(Failure::environment)?;
        Ok(socket)
    }
}

/// Listens at `path`. The socket gets its name when it has its mode.
fn listen(path: &Path) -> io::Result<UnixListener> {
    make_way(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let private = PathBuf::from(name);
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let hidden = private.join("s");
    let made = UnixListener::bind(&hidden).and_then(|listener| {
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        // Unlike a renaming, this replaces nothing.
        fs::hard_link(&hidden, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&hidden);
    let _ = fs::remove_dir(&private);
    made
}

/// Removes a socket that nobody serves any more.
fn make_way(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.file_type().is_socket() {
        return Err(io::Error::other("something else than a socket is there"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(_) => Err(io::Error::other("another server has this socket")),
        Err(error) => Err(error),
    }
}

fn accept(listener: &UnixListener, handle: &LoopHandle<Served>) {
    let clients = Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors: others will be given back.
            std::thread::park_timeout(Duration::from_millis(100));
            continue;
        };
        // One is the one here.
        if Arc::strong_count(&clients) > CLIENTS {
            let refusal = refusal(&format!("{CLIENTS} clients are there already"));
            let _ = respond(&stream, &refusal);
            continue;
        }
        let (client, handle) = (Arc::clone(&clients), handle.clone());
        let started = std::thread::Builder::new()
            .name("control client".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // A client that went away is none of our business.
                let _ = converse(&stream, &handle);
                drop(client);
            });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for a client of the control socket");
        }
    }
}

/// Answers a client until it goes, or is too slow.
fn converse(stream: &UnixStream, handle: &LoopHandle<Served>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = Lines::default();
    loop {
        match lines.next(stream)? {
            Line::Whole(line) => respond(stream, &answer(&line, handle))?,
            Line::End => return Ok(()),
            Line::TooLong => {
                let message = format!("a request has at most {LINE_BYTES} bytes");
                return respond(stream, &refusal(&message));
            }
        }
    }
}

fn respond(mut stream: &UnixStream, answer: &Value) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{answer}\n").as_bytes())
}

/// What came of the bytes of a client.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// It closed its side, or takes too many pieces for a line.
    End,
    TooLong,
}

/// Lines of a client, of bounded length.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    fn next(&mut self, mut from: impl io::Read) -> io::Result<Line> {
        for _ in 0..PIECES {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line = self.bytes.drain(..=end).collect();
                return Ok(Line::Whole(line));
            }
            let room = LINE_BYTES - self.bytes.len();
            if room == 0 {
                return Ok(Line::TooLong);
            }
            let mut part = from.by_ref().take(room as u64);
            let mut piece = [0; 4096];
            match part.read(&mut piece)? {
                0 => return Ok(Line::End),
                len => self.bytes.extend_from_slice(&piece[..len]),
            }
        }
        Ok(Line::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_with_a_version() {
        let all = [
            Request::AddFaults {
                plan: "seed = 1\n".to_owned(),
            },
            Request::ListFaults {},
            Request::RemoveFault { id: 3 },
            Request::ClearFaults {},
            Request::FailZones {
                namespace: None,
                zones: vec![(3, 4)],
                state: FailedState::ReadOnly,
            },
            Request::PowerCut { off_ns: 5 },
            Request::ResetControllers { controller: None },
            Request::ResetControllers {
                controller: Some(1),
            },
        ];
        for request in all {
            let line = request.to_line().expect("it has strings for keys");
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(Request::parse(line.as_bytes()), Ok(request));
        }
        let fixed = br#"{"schema":1,"request":"fail-zones","namespace":2,"zones":[[0,3]],"state":"offline"}"#;
        let request = Request::FailZones {
            namespace: Some(2),
            zones: vec![(0, 3)],
            state: FailedState::Offline,
        };
        assert_eq!(Request::parse(fixed), Ok(request));
    }

    #[test]
    fn what_is_no_request_is_refused_with_what_would_be_one() {
        for (line, part) in [
            ("", "JSON object"),
            ("[1]", "JSON object"),
            ("{\"request\":\"clear-faults\"}", "schema is missing; 1"),
            (
                "{\"schema\":2,\"request\":\"clear-faults\"}",
                "schema 2 is not known; 1",
            ),
            ("{\"schema\":1,\"request\":\"cut\"}", "`power-cut`"),
            ("{\"schema\":1,\"request\":\"power-cut\"}", "off_ns"),
            (
                "{\"schema\":1,\"request\":\"remove-fault\",\"id\":1,\"of\":2}",
                "`of`",
            ),
            (
                "{\"schema\":1,\"request\":\"clear-faults\",\"of\":2}",
                "`of`",
            ),
        ] {
            let message = Request::parse(line.as_bytes()).expect_err(line);
            assert!(message.contains(part), "{line}: {message}");
        }
    }

    #[test]
    fn lines_are_bounded_and_come_in_pieces() {
        let mut lines = Lines::default();
        let mut from = io::Cursor::new(b"one\ntwo\nthr".to_vec());
        assert_eq!(
            lines.next(&mut from).unwrap(),
            Line::Whole(b"one\n".to_vec())
        );
        assert_eq!(
            lines.next(&mut from).unwrap(),
            Line::Whole(b"two\n".to_vec())
        );
        assert_eq!(lines.next(&mut from).unwrap(), Line::End);
        let long = vec![b' '; LINE_BYTES];
        assert_eq!(Lines::default().next(&long[..]).unwrap(), Line::TooLong);
        let mut longest = vec![b' '; LINE_BYTES - 1];
        longest.push(b'\n');
        let line = Lines::default().next(&longest[..]).unwrap();
        assert_eq!(line, Line::Whole(longest));
        // A byte at a time for as long as it likes.
        let drip = io::repeat(b' ');
        struct Drip<R>(R);
        impl<R: io::Read> io::Read for Drip<R> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut buf[..1])
            }
        }
        assert_eq!(Lines::default().next(Drip(drip)).unwrap(), Line::End);
    }
}
