//! `zonelab nvme` on the host against the kernel's own target in the guest.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::{Drive, Guest, host};

use crate::served::program;
use crate::target::{self, NQN};

/// What a program on the host did.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs `zonelab nvme` on the host.
pub(crate) fn nvme(args: &[impl AsRef<OsStr>]) -> Result<Ended> {
    let program = program()?;
    let output = Command::new(&program)
        .arg("nvme")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    Ok(Ended {
        code: output.status.code(),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A directory on the host that ends with this value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        let path = host::temporary("scratch");
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The drive as the host reaches it.
struct Remote<'a> {
    url: String,
    scratch: &'a Scratch,
}

impl Remote<'_> {
    fn run(&self, args: &[&str]) -> Result<String> {
        let ended = nvme(&[args, &["--device", &self.url]].concat())?;
        ensure!(ended.code == Some(0), "{args:?}: {ended:?}");
        Ok(ended.output)
    }

    fn json(&self, args: &[&str]) -> Result<Value> {
        let text = self.run(&[args, &["--json"]].concat())?;
        serde_json::from_str(&text).with_context(|| format!("{args:?} printed\n{text}"))
    }

    /// Reads blocks from the drive, and compares them with a file.
    fn compare(&self, lba: u64, blocks: usize, expected: &[u8]) -> Result<()> {
        let back = self.scratch.path("back");
        let (lba, count) = (lba.to_string(), blocks.to_string());
        let data = text(&back)?;
        self.run(&[
            "read",
            "--start-block",
            &lba,
            "--blocks",
            &count,
            "--data",
            data,
        ])?;
        ensure!(
            std::fs::read(&back)? == expected,
            "blocks at {lba} came back changed, {}",
            self.url
        );
        Ok(())
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of the host is text")
}

/// It identifies the drive, reports its zones, writes, appends and reads, with
/// and without digests.
pub(crate) fn uses_the_target_of_the_kernel(guest: &mut Guest) -> Result<()> {
    let drive = Drive::open(guest, "nvme0", 1, None)?;
    drive.reset_all(guest)?;
    target::export(guest, &drive)?;
    let address = guest.forward(target::PORT)?;
    let scratch = Scratch::new()?;
    let found = nvme(&["discover", "--device", &format!("tcp://{address}")])?;
    ensure!(found.output.contains(NQN), "{found:?}");
    for (zone, query) in [
        (1, ""),
        (2, "?hdgst=1"),
        (3, "?ddgst=1"),
        (4, "?hdgst=1&ddgst=1"),
    ] {
        let remote = Remote {
            url: format!("tcp://{address}/{NQN}{query}"),
            scratch: &scratch,
        };
        reads_what_it_wrote(&remote, &drive, zone)?;
    }
    target::withdraw(guest)
}

fn reads_what_it_wrote(remote: &Remote, drive: &Drive, zone: u64) -> Result<()> {
    let controller = remote.json(&["id-ctrl"])?;
    ensure!(controller["mn"] == "Linux", "{controller}");
    let report = remote.json(&["zns", "report-zones"])?;
    ensure!(report["nr_zones"] == drive.zones, "{report}");
    let start = drive.start_lba(zone);
    let number = zone.to_string();
    // More than a capsule holds, so that the controller asks for it, and then a
    // block.
    let block = usize::try_from(drive.lba_bytes)?;
    let large: Vec<u8> = (0..24 * block)
        .map(|at| (at * 7 + at / 251) as u8)
        .collect();
    let file = remote.scratch.write("large", &large)?;
    let large_file = text(&file)?;
    remote.run(&[
        "write",
        "--start-block",
        &start.to_string(),
        "--data",
        large_file,
    ])?;
    let mut small = b"what was appended".to_vec();
    small.resize(block, 0);
    let file = remote.scratch.write("small", &small)?;
    let append = [
        "zns",
        "zone-append",
        "--zone",
        &number,
        "--data",
        text(&file)?,
    ];
    let appended = remote.json(&append)?;
    ensure!(appended["lba"] == start + 24, "{appended}");
    remote.compare(start, 24, &large)?;
    remote.compare(start + 24, 1, &small)?;
    let report = ["zns", "report-zones", "--zone", &number, "--descs", "1"];
    let report = remote.json(&report)?;
    let found = &report["zone_list"][0];
    ensure!(
        found["state"] == "IMP_OPENED" && found["wp"] == start + 25,
        "{report}"
    );
    remote.run(&["zns", "reset-zone", "--zone", &number])?;
    Ok(())
}
