//! `zonelab` in the guest, on the kernel's driver and QEMU's drive: `linux://`.
//!
//! The program is that of the host, with the libraries that it was linked to.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::drive::{State, Zone};
use zonelab_guest_tests::{Drive, Guest, HOST};

use crate::ServedCase;
use crate::served::program;

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    ("passthrough::identifies_the_drive", identifies_the_drive),
    ("passthrough::manages_zones", manages_zones),
    ("passthrough::moves_data", moves_data),
    (
        "passthrough::leaves_alone_what_is_held",
        leaves_alone_what_is_held,
    ),
    ("passthrough::jobs_do_what_fio_does", jobs_do_what_fio_does),
    // The last: no drive is left after it.
    ("passthrough::outlives_the_drive", outlives_the_drive),
];

/// How long a job file may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(900);

/// How often a case looks at whether jobs have done something, up to ten times a second.
pub(crate) const LOOKS: u32 = 3000;

/// The program in the guest.
pub(crate) const ZONELAB: &str = "/zonelab/run";

/// A job file whose second job resets the zones that the first wrote.
pub(crate) const JOBS: &str = "\
[global]
zonemode=zbd
direct=1
ioengine=libaio
bs=64k
size=32m

[fill]
rw=write
iodepth=8
verify=crc32c
do_verify=1

[again]
stonewall
rw=write
bs=128k
io_size=20m

[elsewhere]
stonewall
rw=write
offset=32m
size=16m
io_size=1m
bs=4k
";

/// Puts the program into the guest, unless it is there.
pub(crate) fn install(guest: &mut Guest) -> Result<()> {
    if guest.run(&format!("[ -x {ZONELAB} ]"))?.code == 0 {
        return Ok(());
    }
    let program = program()?;
    let linked = Command::new("ldd").arg(&program).output()?;
    let linked = String::from_utf8_lossy(&linked.stdout).into_owned();
    let libraries: Vec<PathBuf> = linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect();
    let loader = libraries.iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        name.starts_with("ld-").then(|| name.to_owned())
    });
    let loader = loader.with_context(|| format!("no loader in\n{linked}"))?;
    let mut archive = Command::new("tar");
    // Only the names: all go into one directory.
    archive.args(["--create", "--dereference", "--transform", "s,.*/,,"]);
    archive
        .arg("--absolute-names")
        .arg(&program)
        .args(&libraries);
    let archive = archive.output()?;
    ensure!(
        archive.status.success(),
        "{}",
        String::from_utf8_lossy(&archive.stderr)
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let sender = std::thread::spawn(move || -> Result<()> {
        let (mut stream, _) = listener.accept()?;
        Ok(stream.write_all(&archive.stdout)?)
    });
    let name = program.file_name().and_then(|name| name.to_str());
    let name = name.context("the program has a name")?;
    guest.ok_for(
        LIMIT,
        &format!(
            "mkdir -p /zonelab && cd /zonelab && nc -w 240 {HOST} {port} < /dev/null | tar x && \
             printf '#!/bin/sh\\nexec /zonelab/{loader} --library-path /zonelab /zonelab/{name} \
             \"$@\"\\n' > {ZONELAB} && chmod +x {ZONELAB}"
        ),
    )?;
    let sent = sender.join();
    sent.unwrap_or_else(|_| Err(anyhow::anyhow!("the sender panicked")))
}

/// The drive with all zones empty, and the program.
fn prepare(guest: &mut Guest) -> Result<Drive> {
    install(guest)?;
    let drive = Drive::open(guest, "nvme0", 1, Some(2))?;
    drive.reset_all(guest)?;
    Ok(drive)
}

/// The script that runs `zonelab nvme` on a node.
fn nvme(node: &str, command: &str) -> String {
    format!("{ZONELAB} nvme {command} --device linux://{node}")
}

pub(crate) fn json(guest: &mut Guest, script: &str) -> Result<Value> {
    let text = guest.ok(script)?;
    serde_json::from_str(&text).with_context(|| format!("`{script}` printed\n{text}"))
}

/// Runs a script that has to fail with `code` and say `words`.
pub(crate) fn refuses(guest: &mut Guest, script: &str, code: i32, words: &str) -> Result<()> {
    let output = guest.run(script)?;
    ensure!(
        output.code == code && output.text.contains(words),
        "`{script}` does not end with {code} and \"{words}\": {output:?}"
    );
    Ok(())
}

/// It reads the same of the drive as nvme-cli, through either node.
fn identifies_the_drive(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    for node in [drive.generic(), drive.block()] {
        for (command, fields) in [
            (
                "id-ctrl",
                &["vid", "cntlid", "mdts", "ver", "nn", "oncs", "subnqn"][..],
            ),
            (
                "id-ns",
                &["nsze", "ncap", "nlbaf", "flbas", "mssrl", "mcl", "lbafs"],
            ),
            ("zns id-ns", &["ozcs", "lbafe"]),
        ] {
            let ours = json(guest, &(nvme(&node, command) + " --json"))?;
            let theirs = json(guest, &format!("nvme {command} {node} -o json"))?;
            for field in fields {
                let (ours, theirs) = (&ours[field], &theirs[field]);
                // nvme-cli of Debian 12 leaves out what a later version added.
                let is_same = match (ours.as_array(), theirs.as_array()) {
                    (Some(ours), Some(theirs)) => ours.len() == theirs.len(),
                    _ => ours == theirs,
                };
                ensure!(is_same, "{command} {node}: {field}: {ours} and {theirs}");
            }
        }
    }
    let conventional = drive.conventional()?.replace("nvme0", "ng0");
    let listed = json(guest, &(nvme(&conventional, "list") + " --json"))?;
    let namespace = &listed["Devices"][0];
    ensure!(
        namespace["NameSpace"] == 2 && namespace["CommandSet"] == "nvm",
        "{listed}"
    );
    refuses(guest, &nvme("/dev/nvme0", "id-ns"), 4, "is a controller")?;
    refuses(guest, &nvme("/dev/null", "id-ns"), 4, "is no NVMe device")?;
    refuses(guest, &nvme("/dev/ng7n1", "id-ns"), 4, "No such file")
}

/// Every action, its errors, and reports by every filter.
fn manages_zones(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    let node = drive.generic();
    let act = |action: &str, rest: &str| nvme(&node, &format!("zns {action} {rest}"));
    for (action, state) in [
        ("open-zone", State::ExplicitlyOpen),
        ("close-zone", State::Closed),
        ("finish-zone", State::Full),
        ("reset-zone", State::Empty),
    ] {
        guest.ok(&act(action, "--zone 3"))?;
        drive.expect(guest, 3, state)?;
        drive.expect(guest, 2, State::Empty)?;
    }
    for (action, zone, status) in [
        ("close-zone", "--zone 0", "(0x1bf)"),
        ("offline-zone", "--zone 0", "(0x1bf)"),
        // Not the first block of a zone.
        ("open-zone", "--start-lba 1", "(0x2)"),
        // Beyond the last zone.
        ("reset-zone", "--zone 64", "(0x80)"),
    ] {
        refuses(guest, &act(action, zone), 5, status)?;
    }
    // The limit of open zones.
    let limit = drive.max_open.context("no limit of open zones")?;
    let open: Vec<String> = (0..limit)
        .map(|zone| act("open-zone", &format!("--zone {zone} > /dev/null")))
        .collect();
    guest.ok(&open.join(" && "))?;
    let more = act("open-zone", &format!("--zone {limit}"));
    refuses(guest, &more, 5, "(0x1be)")?;
    guest.ok(&act("reset-zone", "--all"))?;
    drive.expect(guest, 0, State::Empty)?;
    // Zones in five states.
    guest.ok(&[
        act("open-zone", "--zone 1"),
        act("open-zone", "--zone 2"),
        act("close-zone", "--zone 2"),
        act("finish-zone", "--zone 4"),
        drive.random(1, "/scratch/data"),
        act("zone-append", "--zone 5 --data /scratch/data"),
    ]
    .join(" && "))?;
    for (ours, theirs) in [
        ("all", 0),
        ("empty", 1),
        ("implicitly-opened", 2),
        ("explicitly-opened", 3),
        ("closed", 4),
        ("full", 5),
        ("read-only", 6),
        ("offline", 7),
    ] {
        let report = json(
            guest,
            &(act("report-zones", &format!("--state {ours}")) + " --json"),
        )?;
        let expected = guest.ok(&format!(
            "nvme zns report-zones {node} -S {theirs} -p -o json"
        ))?;
        let expected: Value = serde_json::from_str(&expected)?;
        let slbas = |report: &Value| -> Vec<(Option<u64>, Option<u64>)> {
            let zones = report["zone_list"].as_array().cloned().unwrap_or_default();
            zones
                .iter()
                .map(|zone| (zone["slba"].as_u64(), zone["wp"].as_u64()))
                .collect()
        };
        ensure!(
            slbas(&report) == slbas(&expected),
            "{ours}: {report} and {expected}"
        );
    }
    drive.reset_all(guest)
}

/// Appends say where, reads bring it back, and what the drive refuses is said.
fn moves_data(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    let node = drive.generic();
    let append = nvme(
        &node,
        "zns zone-append --zone 1 --data /scratch/data --json",
    );
    guest.ok(&drive.random(3, "/scratch/data"))?;
    let start = drive.start_lba(1);
    for expected in [start, start + 3] {
        let lba = json(guest, &append)?["lba"].as_u64();
        ensure!(lba == Some(expected), "appended at {lba:?}, not {expected}");
    }
    guest.ok(&drive.read(start + 3, 3, "/scratch/theirs"))?;
    guest.ok("cmp /scratch/data /scratch/theirs")?;
    let write = |node: &str, lba: u64| {
        nvme(
            node,
            &format!("write --start-block {lba} --data /scratch/data"),
        )
    };
    let read = |node: &str, lba: u64| {
        let to = "rm -f /scratch/ours && ";
        let read = format!("read --start-block {lba} --blocks 3 --data /scratch/ours");
        format!(
            "{to}{} && cmp /scratch/data /scratch/ours",
            nvme(node, &read)
        )
    };
    // Through either node, and from one to the other.
    guest.ok(&write(&node, start + 6))?;
    guest.ok(&write(&drive.block(), start + 9))?;
    guest.ok(&read(&drive.block(), start + 6))?;
    guest.ok(&read(&node, start + 9))?;
    refuses(guest, &write(&node, start + 6), 5, "(0x1bc)")?;
    refuses(guest, &write(&node, drive.start_lba(64)), 5, "(0x80)")?;
    guest.ok(&nvme(&node, "zns finish-zone --zone 1"))?;
    refuses(guest, &append, 5, "(0x1b9)")?;
    guest.ok(&nvme(&node, "flush"))?;
    let conventional = drive.conventional()?;
    guest.ok(&write(&conventional.replace("nvme0", "ng0"), 77))?;
    guest.ok(&read(&conventional, 77))?;
    drive.reset_all(guest)
}

/// A drive that is mounted, swap or behind a loop device is refused by what holds
/// it, through either node, and used once nobody does.
fn leaves_alone_what_is_held(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    let block = drive.conventional()?;
    let nodes = [block.replace("nvme0", "ng0"), block.clone()];
    let refused = |guest: &mut Guest, words: &str| -> Result<()> {
        for node in &nodes {
            refuses(guest, &nvme(node, "id-ns"), 4, words)?;
        }
        Ok(())
    };
    guest.ok(&format!("mkfs.f2fs -f {block} && mkdir -p /scratch/mount"))?;
    guest.ok(&format!(
        "modprobe f2fs && mount -t f2fs {block} /scratch/mount"
    ))?;
    refused(guest, "is mounted on /scratch/mount")?;
    guest.ok("umount /scratch/mount")?;
    guest.ok(&format!("mkswap {block} && swapon {block}"))?;
    refused(guest, "is swap space")?;
    guest.ok(&format!("swapoff {block}"))?;
    guest.ok(&format!("modprobe loop && losetup /dev/loop0 {block}"))?;
    refused(guest, "is behind loop0")?;
    guest.ok("losetup -d /dev/loop0")?;
    for node in &nodes {
        guest.ok(&nvme(node, "id-ns"))?;
    }
    // Zones that are not empty are written only if that is said.
    guest.ok(&nvme(&drive.generic(), "zns finish-zone --zone 0"))?;
    guest.ok(&format!(
        "cat > /scratch/job.fio <<'END OF JOB'\n{JOBS}\nEND OF JOB"
    ))?;
    let device = format!("linux://{}", drive.generic());
    let run = format!("{ZONELAB} fio /scratch/job.fio --device {device}");
    refuses(guest, &run, 2, "--overwrite")?;
    drive.expect(guest, 0, State::Full)?;
    drive.reset_all(guest)
}

/// Name of a job, and its operations and bytes, read and written.
pub(crate) type Amounts = (String, [(u64, u64); 2]);

/// What a job file came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Amounts of each job.
    pub(crate) jobs: Vec<Amounts>,
    /// Zones that jobs emptied.
    pub(crate) resets: u64,
    /// State and write pointer of the zones that jobs use, and of one beyond.
    pub(crate) zones: Vec<(State, u64)>,
}

impl Outcome {
    /// The same where zones that are open count as closed.
    pub(crate) fn without_closing(mut self) -> Self {
        for (state, _) in &mut self.zones {
            if matches!(state, State::ImplicitlyOpen | State::ExplicitlyOpen) {
                *state = State::Closed;
            }
        }
        self
    }
}

/// The same job file by the guest's fio on the block device, and by `zonelab fio`
/// through either node.
fn jobs_do_what_fio_does(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    let theirs = fio(guest, &drive)?;
    for node in [drive.generic(), drive.block()] {
        drive.reset_all(guest)?;
        let script = format!(
            "{ZONELAB} fio /scratch/job.fio --device linux://{node} --overwrite --json \
             2> /scratch/err || {{ cat /scratch/err; exit 1; }}"
        );
        let report = run_json(guest, &script)?;
        let ours = ours(guest, &report, &drive)?;
        ensure!(ours == theirs, "{node}: fio\n{theirs:?}\nzonelab\n{ours:?}");
    }
    drive.reset_all(guest)
}

/// What [`JOBS`] come to by the guest's fio on the kernel's driver.
pub(crate) fn fio(guest: &mut Guest, drive: &Drive) -> Result<Outcome> {
    guest.ok(&format!(
        "cat > /scratch/job.fio <<'END OF JOB'\n{JOBS}\nEND OF JOB"
    ))?;
    let text = guest.ok_for(
        LIMIT,
        &format!(
            "fio --output-format=json,normal --filename={} /scratch/job.fio 2> /scratch/err || \
             {{ cat /scratch/err; exit 1; }}",
            drive.block()
        ),
    )?;
    let begin = text.find('{').context("no JSON")?;
    let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    let report = values.next().context("no JSON")??;
    let resets = text[begin + values.byte_offset()..]
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once("; ")?;
            rest.strip_suffix(" zone resets")?.parse::<u64>().ok()
        });
    let theirs = Outcome {
        jobs: amounts(&report)?,
        resets: resets.sum(),
        zones: zones(guest, drive)?,
    };
    ensure!(theirs.resets > 0, "the jobs are to reset zones: {theirs:?}");
    Ok(theirs)
}

pub(crate) fn amounts(report: &Value) -> Result<Vec<Amounts>> {
    let jobs = report["jobs"].as_array().context("no jobs")?;
    jobs.iter()
        .map(|job| {
            let name = job["jobname"].as_str().context("no name")?;
            ensure!(job["error"] == 0, "{name} failed: {}", job["error"]);
            let of = |direction: &str| -> Result<(u64, u64)> {
                let number = |key: &str| job[direction][key].as_u64().context("no number");
                Ok((number("total_ios")?, number("io_bytes")?))
            };
            Ok((name.to_owned(), [of("read")?, of("write")?]))
        })
        .collect()
}

/// Runs a script that prints a report in JSON.
pub(crate) fn run_json(guest: &mut Guest, script: &str) -> Result<Value> {
    let text = guest.ok_for(LIMIT, script)?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

/// What `zonelab fio` says of its jobs in `report`, and the zones that they left.
pub(crate) fn ours(guest: &mut Guest, report: &Value, drive: &Drive) -> Result<Outcome> {
    let jobs = report["jobs"].as_array().context("no jobs")?;
    let resets: Option<u64> = jobs
        .iter()
        .map(|job| job["zonelab"]["cleared_zones"].as_u64())
        .sum();
    Ok(Outcome {
        jobs: amounts(report)?,
        resets: resets.context("no resets")?,
        zones: zones(guest, drive)?,
    })
}

fn zones(guest: &mut Guest, drive: &Drive) -> Result<Vec<(State, u64)>> {
    let report = drive.report(guest, 0, 5)?;
    let pointer = |zone: &Zone| match zone.state {
        State::Full => zone.start_lba + zone.capacity_lbas,
        _ => zone.write_pointer_lba,
    };
    Ok(report
        .iter()
        .map(|zone| (zone.state, pointer(zone)))
        .collect())
}

/// A drive that is removed while jobs run ends them with the exit code of a drive
/// that fails.
fn outlives_the_drive(guest: &mut Guest) -> Result<()> {
    let drive = prepare(guest)?;
    let node = drive.generic();
    guest.spend();
    let job = guest.spawn(&format!(
        "{ZONELAB} fio --name=long --zonemode=zbd --rw=write --bs=16k --size=128m --iodepth=4 \
         --time_based --runtime=900 --device linux://{node} --overwrite"
    ))?;
    // Jobs run once something is written.
    for _ in 0..LOOKS {
        if drive.report(guest, 0, 1)?[0].state != State::Empty {
            break;
        }
        guest.ok("sleep 0.2")?;
    }
    guest.remove_drive()?;
    let output = guest.wait(&job, LIMIT)?;
    ensure!(
        output.code == 5 && output.text.contains(&node) && output.text.contains("gone"),
        "{output:?}"
    );
    refuses(guest, &nvme(&node, "id-ns"), 4, "No such file")
}
