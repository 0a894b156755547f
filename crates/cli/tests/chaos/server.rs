//! `zonelab serve` as a process: started, killed, cut, measured.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The drive that is served.
pub(crate) const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chaos/drive.toml");
/// How long the control socket may take to answer.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(120);
/// Lines of the log that a failure shows.
const LOG_LINES: usize = 30;

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Zoned,
    /// The conventional namespace of the translation layer (`--ftl`).
    Layer,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zoned => "zoned",
            Self::Layer => "layer",
        }
    }

    /// Settings of the drive that must not change while it has a store.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Zoned => &[],
            // The layer reserves as many zones as may be active.
            Self::Layer => &[
                "--set",
                "zones.max_active=10",
                "--ftl",
                "--ftl-spare",
                "20%",
            ],
        }
    }
}

/// A server that has said that it listens.
pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) nqn: String,
    /// Whether its write buffer outlives a loss of power.
    pub(crate) is_protected: bool,
    /// Before anybody connected.
    pub(crate) idle: Footprint,
}

/// What a process takes of its system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) descriptors: u64,
    pub(crate) resident_kib: u64,
}

/// `zonelab ARGS...` in a directory.
pub(crate) fn zonelab(directory: &Path, args: &[&str]) -> Command {
    let own = || env!("CARGO_BIN_EXE_zonelab").into();
    let program = std::env::var_os("ZONELAB_UNDER_TEST").unwrap_or_else(own);
    let mut command = Command::new(program);
    command.current_dir(directory).args(args);
    command
}

/// The end of what the servers in `directory` have logged.
pub(crate) fn log(directory: &Path) -> String {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

impl Server {
    /// Serves the drive whose store is in `directory`.
    pub(crate) fn start(directory: &Path, kind: Kind, is_protected: bool) -> Self {
        let fixed = "--listen 127.0.0.1:0 --json --store drive --control control --spin 0us \
                     --stall 5s --log warn";
        let protection = format!("write_buffer.power_loss_protection={is_protected}");
        let args: Vec<&str> = ["serve", PROFILE, "--set", &protection]
            .into_iter()
            .chain(fixed.split_whitespace())
            .chain(kind.settings().iter().copied())
            .collect();
        let log_file: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join("log"))
            .unwrap();
        let mut command = zonelab(directory, &args);
        command.stdout(Stdio::piped()).stderr(log_file);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("the server does not start: {}", log(directory)));
        let port = u16::try_from(said["port"].as_u64().unwrap()).unwrap();
        let mut server = Self {
            child,
            directory: directory.to_owned(),
            address: ([127, 0, 0, 1], port).into(),
            nqn: said["nqn"].as_str().unwrap().to_owned(),
            is_protected,
            idle: Footprint {
                descriptors: 0,
                resident_kib: 0,
            },
        };
        server.idle = server.footprint();
        server
    }

    /// What it takes now.
    pub(crate) fn footprint(&self) -> Footprint {
        let of = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{of}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        Footprint {
            descriptors: std::fs::read_dir(format!("{of}/fd")).unwrap().count() as u64,
            resident_kib: number.parse().unwrap(),
        }
    }

    /// Panics unless it is still there.
    pub(crate) fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!(
                "the server ended by itself ({status}): {}",
                log(&self.directory)
            );
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in good order.
    pub(crate) fn interrupt(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        let log = || log(&self.directory);
        assert!(
            status.success(),
            "interrupted, it ends with {status}: {}",
            log()
        );
    }

    /// Sends a request to its control socket, and gives the answer.
    pub(crate) fn control(&self, request: &serde_json::Value) -> serde_json::Value {
        let mut stream = UnixStream::connect(self.directory.join("control")).unwrap();
        stream.set_read_timeout(Some(CONTROL_TIMEOUT)).unwrap();
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        let read = BufReader::new(stream).read_line(&mut line);
        read.unwrap_or_else(|error| panic!("{request} gets no answer, the server hangs: {error}"));
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{request} is answered by {line:?}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Panics unless the store that a server has left is sound.
pub(crate) fn check_store(directory: &Path, kind: Kind) {
    let run = |args: &[&str]| -> Output { zonelab(directory, args).output().unwrap() };
    let check = run(&["store", "check", "drive"]);
    let text = |output: &Output| {
        let both = [&output.stdout[..], &output.stderr].concat();
        String::from_utf8_lossy(&both).into_owned()
    };
    assert!(check.status.success(), "{}", text(&check));
    if kind == Kind::Layer {
        let fixed = ["ftl", "check", "-d", PROFILE, "--store", "drive"];
        let check = run(&[&fixed[..], &["--set", "zones.max_active=10"]].concat());
        assert!(check.status.success(), "{}", text(&check));
        assert!(text(&check).ends_with("It is sound.\n"), "{}", text(&check));
    }
    let log = std::fs::read_to_string(directory.join("log")).unwrap();
    let panicked = log.lines().find(|line| line.contains("panicked"));
    assert_eq!(panicked, None, "a server panicked");
}
