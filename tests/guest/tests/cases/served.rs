//! The drive of `zonelab serve`, connected to over NVMe/TCP.

pub(crate) mod control;
pub(crate) mod faults;
pub(crate) mod features;
pub(crate) mod ftl;
pub(crate) mod jobs;
pub(crate) mod placement;

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use zonelab_guest_tests::{Drive, Guest, host};

/// Where the guest finds what listens on the loopback of its host.
const HOST: &str = "10.0.2.2";
/// The drive: 64 zones of 16 MiB, 10 open and 12 active.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
/// How often the guest looks for a namespace, twice a second.
const LOOKS: u32 = 480;

/// The program whose ends of NVMe/TCP are tested.
pub(crate) fn program() -> Result<PathBuf> {
    let program = std::env::var_os("ZONELAB").map(PathBuf::from);
    program.context("ZONELAB is to name the program: cargo xtask test guest")
}

/// A drive that is served, and ends with this value.
pub(crate) struct Served {
    process: Child,
    /// What it logs, which stays if the case fails.
    log: PathBuf,
    /// Whether the case has ended it, or disconnected the guest in good order.
    is_through: Cell<bool>,
    pub(crate) port: u64,
    pub(crate) nqn: String,
    /// Its port for TLS, if it has one.
    tls_port: Option<u64>,
    /// Where its page is, if it has one.
    pub(crate) web: Option<String>,
}

impl Served {
    /// Serves the drive, on a port that the system chooses.
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same with more options.
    pub(crate) fn start_with(options: &[&str]) -> Result<Self> {
        Self::start_at(0, options)
    }

    /// The same on a port of the host.
    pub(crate) fn start_at(port: u64, options: &[&str]) -> Result<Self> {
        let program = program()?;
        let listen = format!("127.0.0.1:{port}");
        let log = host::temporary("serve.log");
        let mut process = Command::new(&program)
            .args(["serve", PROFILE, "--listen", &listen, "--json"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| program.display().to_string())?;
        let output = process.stdout.take().context("no output")?;
        let mut served = Self {
            process,
            log,
            is_through: Cell::new(true),
            port: 0,
            nqn: String::new(),
            tls_port: None,
            web: None,
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let listens: Value = serde_json::from_str(&line).with_context(|| {
            let said = std::fs::read_to_string(&served.log).unwrap_or_default();
            format!("it does not listen: {said}")
        })?;
        served.port = listens["port"].as_u64().context("no port")?;
        served.nqn = listens["nqn"].as_str().context("no name")?.to_owned();
        served.tls_port = listens["tls_port"].as_u64();
        served.web = listens["web"].as_str().map(str::to_owned);
        Ok(served)
    }

    /// The same by its port for TLS.
    pub(crate) fn over_tls(mut self) -> Result<Self> {
        self.port = self.tls_port.context("no port for TLS")?;
        Ok(self)
    }

    /// What nvme-cli is told of where it is.
    pub(crate) fn at(&self) -> String {
        format!("-t tcp -a {HOST} -s {}", self.port)
    }

    /// Where the guest finds it.
    pub(crate) fn host(&self) -> &'static str {
        HOST
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u64 {
        self.port
    }

    /// Connects the guest, and gives the name of the controller.
    pub(crate) fn connect(&self, guest: &mut Guest) -> Result<String> {
        self.connect_with(guest, "")
    }

    /// The same, with options of `nvme connect`.
    pub(crate) fn connect_with(&self, guest: &mut Guest, options: &str) -> Result<String> {
        self.connect_by(guest, "nvme", options)
    }

    /// The same, by another nvme-cli.
    pub(crate) fn connect_by(
        &self,
        guest: &mut Guest,
        program: &str,
        options: &str,
    ) -> Result<String> {
        guest.ok("modprobe nvme_tcp")?;
        let (at, nqn) = (self.at(), &self.nqn);
        self.is_through.set(false);
        guest.ok(&format!("{program} connect {at} -n {nqn} {options}"))?;
        let find = format!(
            "for c in /sys/class/nvme/nvme*; do
                [ \"$(cat $c/subsysnqn)\" = {} ] || continue
                ls $c | grep -q '^nvme.*n1$' && basename $c
            done",
            self.nqn
        );
        for _ in 0..LOOKS {
            let name = guest.run(&find)?.text.trim().to_owned();
            if !name.is_empty() {
                return Ok(name);
            }
            guest.ok("sleep 0.5")?;
        }
        bail!("no namespace appears")
    }

    /// A metric that has one sample, from its page.
    pub(crate) fn metric(&self, name: &str) -> Result<u64> {
        let url = self.web.as_deref().context("no page")?;
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let mut values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = values.next().with_context(|| text.clone())?;
        Ok(value.trim().parse()?)
    }

    /// Ends it in good order, as an interruption does.
    pub(crate) fn interrupt(mut self) -> Result<()> {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status()?;
        ensure!(sent.success(), "no signal for {pid}");
        let ended = self.process.wait()?;
        ensure!(ended.success(), "it ended with {ended}");
        self.is_through.set(true);
        Ok(())
    }

    /// Ends it as SIGKILL does: at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let ended = self.process.try_wait()?;
        ensure!(ended.is_none(), "it ended by itself: {ended:?}");
        self.process.kill()?;
        self.process.wait()?;
        self.is_through.set(true);
        Ok(())
    }

    /// Disconnects the guest.
    pub(crate) fn disconnect(&self, guest: &mut Guest) -> Result<()> {
        guest.ok(&format!("nvme disconnect -n {}", self.nqn))?;
        self.is_through.set(true);
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.is_through.get() {
            let _ = std::fs::remove_file(&self.log);
        } else {
            // It may have ended by itself.
            let (ended, log) = (self.process.try_wait(), self.log.display());
            eprintln!("a case ended before its server, {ended:?}, whose log is {log}");
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a case on a new drive.
pub(crate) fn on_a_drive(
    guest: &mut Guest,
    case: fn(&mut Guest, &Drive) -> Result<()>,
) -> Result<()> {
    let served = Served::start()?;
    let controller = served.connect(guest)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    // File systems that need one have the conventional namespace of QEMU's drive.
    let drive = drive.beside(guest, "nvme0", 2)?;
    case(guest, &drive)?;
    served.disconnect(guest)
}

/// It is found, describes itself, and has the limits of its profile.
pub(crate) fn is_what_its_profile_says(guest: &mut Guest) -> Result<()> {
    let served = Served::start()?;
    guest.ok("modprobe nvme_tcp")?;
    let found = guest.ok(&format!("nvme discover {}", served.at()))?;
    ensure!(found.contains(&served.nqn), "{found}");
    let controller = served.connect(guest)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    let shape = (drive.zones, drive.zone_lbas * drive.lba_bytes);
    ensure!(shape == (64, 16 << 20), "{drive:?}");
    ensure!(
        (drive.max_open, drive.max_active) == (Some(10), Some(12)),
        "{drive:?}"
    );
    for (file, value) in [
        ("zoned", "host-managed"),
        ("nr_zones", "64"),
        ("max_open_zones", "10"),
        ("max_active_zones", "12"),
        ("logical_block_size", "4096"),
    ] {
        let found = drive.queue(guest, file)?;
        ensure!(found == value, "{file} is {found}");
    }
    for command in ["id-ctrl", "smart-log", "error-log", "fw-log", "effects-log"] {
        guest.ok(&format!("nvme {command} /dev/{controller}"))?;
    }
    served.disconnect(guest)
}

/// It goes away under a host, and a host that comes back finds another.
pub(crate) fn outlives_its_hosts(guest: &mut Guest) -> Result<()> {
    let served = Served::start()?;
    for _ in 0..3 {
        let controller = served.connect(guest)?;
        let drive = Drive::open(guest, &controller, 1, None)?;
        guest.ok(&format!(
            "dd if=/dev/zero of={} bs=64k count=4 oflag=direct",
            drive.block()
        ))?;
        drive.reset_all(guest)?;
        served.disconnect(guest)?;
    }
    Ok(())
}
