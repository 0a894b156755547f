//! What Linux makes of faults at run time: `zonelab fault`.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use zonelab_guest_tests::drive::{State, Status};
use zonelab_guest_tests::{Drive, Guest};

use super::Served;
use super::control::Control;
use crate::ServedCase;
use crate::file_systems::{make_btrfs, mount_btrfs};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    ("served::faults::media_error", media_error),
    ("served::faults::changed_zones", changed_zones),
    ("served::faults::latency", latency),
    ("served::faults::lost_completion", lost_completion),
    ("served::faults::controller_reset", controller_reset),
    ("served::faults::power_cut", power_cut),
    ("served::faults::offline_under_btrfs", offline_under_btrfs),
    ("served::faults::read_only_under_f2fs", read_only_under_f2fs),
];

/// File systems may take as long as that.
const LIMIT: Duration = Duration::from_secs(900);
/// Linux tries again each second instead of each ten.
const RECONNECT: &str = "--reconnect-delay=1 --ctrl-loss-tmo=600";
/// A zoned namespace of 52 zones, and 128 MiB of a conventional one.
pub(super) const BESIDE: &str =
    "namespaces=[{zones=52}, {kind=\"conventional\", zones=12, spare_zones=4}]";

/// A drive that is served with a control socket.
struct Faulty {
    served: Served,
    control: Control,
    controller: String,
    drive: Drive,
}

impl Faulty {
    /// Serves it, and connects the guest.
    fn start(guest: &mut Guest, options: &[&str]) -> Result<Self> {
        let control = Control::new();
        let served = Served::start_with(&[&["--control", control.name()?], options].concat())?;
        // So that what it prints is of this case.
        guest.ok("dmesg -c > /dev/null")?;
        let controller = served.connect_with(guest, RECONNECT)?;
        let drive = Drive::open(guest, &controller, 1, None)?;
        Ok(Self {
            served,
            control,
            controller,
            drive,
        })
    }

    /// `zonelab fault ARGS...`.
    fn fault(&self, args: &[&str]) -> Result<Value> {
        self.control.fault(args)
    }

    /// How often the faults struck.
    fn struck(&self) -> Result<u64> {
        self.fault(&["list"])?["struck"].as_u64().context("a count")
    }

    /// Waits until the kernel, whose connection was lost, has another. (It may not know
    /// yet that it was lost, so that the state of the controller says nothing.)
    fn is_back(&self, guest: &mut Guest) -> Result<()> {
        for _ in 0..600 {
            if guest.ok("dmesg")?.contains("Successfully reconnected") {
                return Ok(());
            }
            guest.ok("sleep 0.5")?;
        }
        bail!("it does not come back:\n{}", guest.ok("dmesg")?)
    }

    /// What the health log counts.
    fn health(&self, guest: &mut Guest, key: &str) -> Result<u64> {
        let text = guest.ok(&format!("nvme smart-log /dev/{} -o json", self.controller))?;
        let log: Value = serde_json::from_str(&text)?;
        // What has more than 64 bits is a text.
        let number = log[key].as_u64();
        let number = number.or_else(|| log[key].as_str()?.parse().ok());
        number.with_context(|| format!("{key}: {text}"))
    }

    /// Leaves the guest as it was, and checks that it can still be used.
    fn end(self, guest: &mut Guest) -> Result<()> {
        self.served.disconnect(guest)?;
        guest.ok("sync; ls /sys/block > /dev/null")?;
        Ok(())
    }
}

/// What the kernel has printed has to have this.
fn printed(guest: &mut Guest, words: &str) -> Result<()> {
    let text = guest.ok("dmesg")?;
    ensure!(text.contains(words), "no \"{words}\" in\n{text}");
    Ok(())
}

/// Reads a zone through the block layer, past its cache.
fn read_zone(drive: &Drive, zone: u64, bytes: u64) -> String {
    let block = drive.block();
    let skip = drive.start_byte(zone);
    format!(
        "dd if={block} of=/scratch/read iflag=direct,skip_bytes,count_bytes bs=16k skip={skip} \
         count={bytes}"
    )
}

/// A weak spot on the media.
fn media_error(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    guest.ok(&it.drive.random(8, "/scratch/data"))?;
    guest.ok(&it.drive.write(0, 8, "/scratch/data"))?;
    it.fault(&[
        "add",
        "--on",
        "read",
        "--lbas",
        "4",
        "--effect",
        "media-error",
    ])?;
    guest.ok(&it.drive.read(0, 4, "/scratch/read"))?;
    let text = guest.fails(&it.drive.read(0, 8, "/scratch/read"))?;
    let status = Status::parse(&text).context(text)?;
    ensure!(status.code == 0x281, "{status:x?}");
    guest.fails(&read_zone(&it.drive, 0, 32 << 10))?;
    printed(guest, "critical medium error")?;
    ensure!(it.health(guest, "media_errors")? >= 2, "none is counted");
    it.fault(&["clear"])?;
    guest.ok(&read_zone(&it.drive, 0, 32 << 10))?;
    guest.ok("cmp /scratch/data /scratch/read")?;
    it.end(guest)
}

/// Zones fail, and the host that wants to know is told.
fn changed_zones(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    let controller = format!("/dev/{}", it.controller);
    // Linux does not ask for it by itself.
    guest.ok(&format!(
        "nvme set-feature {controller} -f 0x0b -v 0x08000004"
    ))?;
    it.fault(&["zone", "3", "7..=8", "--state", "offline"])?;
    it.fault(&["zone", "5", "--state", "read-only"])?;
    for (zone, state) in [
        (3, State::Offline),
        (5, State::ReadOnly),
        (8, State::Offline),
    ] {
        it.drive.expect(guest, zone, state)?;
    }
    guest.ok("until dmesg | grep -q 00bfef02; do sleep 0.1; done")?;
    printed(guest, "async event result 00bfef02")?;
    let device = it.drive.generic();
    let read_list = format!("nvme zns changed-zone-list {device} | grep ^zid | cut -d ' ' -f 3");
    let mut listed: Vec<u64> = Vec::new();
    for line in guest.ok(&read_list)?.lines() {
        listed.push(line.trim().parse()?);
    }
    listed.sort_unstable();
    let failed = [3, 5, 7, 8].map(|zone| it.drive.start_lba(zone));
    ensure!(listed == failed, "{listed:?}");
    // It was read.
    let again = guest.ok(&read_list)?;
    ensure!(again.is_empty(), "{again}");
    ensure!(
        it.health(guest, "critical_warning")? & 4 != 0,
        "it is degraded"
    );
    // The block layer sees it in its reports.
    let report = guest.ok(&format!("blkzone report {}", it.drive.block()))?;
    let offline = report.matches("zcond:15(of)").count();
    let read_only = report.matches("zcond:13(ro)").count();
    ensure!((offline, read_only) == (3, 1), "{report}");
    let write = it.drive.write(it.drive.start_lba(3), 1, "/scratch/data");
    guest.ok(&it.drive.random(1, "/scratch/data"))?;
    let status = Status::parse(&guest.fails(&write)?).context("no status")?;
    ensure!(status.code == 0x1bb, "{status:x?}");
    it.end(guest)
}

/// One read takes two seconds.
fn latency(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    let slow = [
        "add", "--on", "read", "--count", "1", "--effect", "delay", "--delay", "2s",
    ];
    it.fault(&slow)?;
    let read = it.drive.read(0, 1, "/scratch/read");
    let script = format!(
        "cut -d ' ' -f 1 /proc/uptime; {{ {read}; }} > /dev/null; cut -d ' ' -f 1 /proc/uptime"
    );
    let text = guest.ok(&script)?;
    let times: Vec<f64> = text
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    let [before, after] = times[..] else {
        bail!("no two times in\n{text}");
    };
    // The clock of the guest ticks in hundredths.
    ensure!(after - before > 1.98, "it took {} s", after - before);
    ensure!(it.struck()? == 1, "it struck once");
    it.end(guest)
}

/// A completion never comes: the kernel gives up, connects again, and sends the
/// read once more.
fn lost_completion(guest: &mut Guest) -> Result<()> {
    let timeout = "/sys/module/nvme_core/parameters/io_timeout";
    guest.ok(&format!("echo 5 > {timeout}"))?;
    let it = Faulty::start(guest, &[])?;
    guest.ok(&format!("echo 30 > {timeout}"))?;
    guest.ok(&it.drive.random(4, "/scratch/data"))?;
    guest.ok(&it.drive.write(0, 4, "/scratch/data"))?;
    it.fault(&["add", "--on", "read", "--count", "1", "--effect", "lose"])?;
    guest.ok(&read_zone(&it.drive, 0, 16 << 10))?;
    guest.ok("cmp /scratch/data /scratch/read")?;
    ensure!(it.struck()? == 1, "it struck once");
    printed(guest, "timeout")?;
    printed(guest, "starting error recovery")?;
    it.is_back(guest)?;
    // Nothing is left in the drive: a format need not wait.
    let controller = format!("/dev/{}", it.controller);
    guest.ok(&format!(
        "nvme admin-passthru {controller} -o 0x80 -n 1 --cdw10=1"
    ))?;
    it.end(guest)
}

/// The controller gives up while it is written to; what was written is there.
fn controller_reset(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    let block = it.drive.block();
    guest.ok("head -c 8388608 /dev/urandom > /scratch/data")?;
    let job = guest.spawn(&format!(
        "dd if=/scratch/data of={block} bs=64k oflag=direct && sync"
    ))?;
    it.fault(&["reset-controller"])?;
    let output = guest.wait(&job, LIMIT)?;
    it.is_back(guest)?;
    printed(guest, "starting error recovery")?;
    printed(guest, "Reconnecting in 1 seconds")?;
    // A write that was cut off may have been carried out: what is sent again
    // then lies before the write pointer, and fails.
    if output.code == 0 {
        guest.ok(&read_zone(&it.drive, 0, 8 << 20))?;
        guest.ok("cmp /scratch/data /scratch/read")?;
    }
    it.drive.reset_all(guest)?;
    guest.ok(&format!(
        "dd if=/scratch/data of={block} bs=64k oflag=direct"
    ))?;
    guest.ok(&read_zone(&it.drive, 0, 8 << 20))?;
    guest.ok("cmp /scratch/data /scratch/read")?;
    it.end(guest)
}

/// Power is lost for a second: what was flushed is there afterwards.
fn power_cut(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    let block = it.drive.block();
    guest.ok("head -c 4194304 /dev/urandom > /scratch/data")?;
    guest.ok(&format!(
        "dd if=/scratch/data of={block} bs=64k oflag=direct conv=fsync"
    ))?;
    it.fault(&["power-cut", "--off", "1s"])?;
    // It waits until the drive is back.
    guest.ok_for(LIMIT, &read_zone(&it.drive, 0, 4 << 20))?;
    guest.ok("cmp /scratch/data /scratch/read")?;
    it.is_back(guest)?;
    printed(guest, "Reconnecting in 1 seconds")?;
    it.drive.expect(guest, 0, State::Closed)?;
    let counts = (
        it.health(guest, "power_cycles")?,
        it.health(guest, "unsafe_shutdowns")?,
    );
    ensure!(counts == (2, 1), "{counts:?}");
    it.end(guest)
}

/// Every zone that Btrfs has written is gone: it fails, and can be unmounted.
fn offline_under_btrfs(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &[])?;
    let block = it.drive.block();
    make_btrfs(guest, &block)?;
    mount_btrfs(guest, &block)?;
    guest.ok_for(LIMIT, "head -c 4000000 /dev/urandom > /mnt/file && sync")?;
    fail_written(guest, &it, "offline")?;
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    let failed =
        "head -c 4000000 /dev/urandom > /mnt/other && sync /mnt/other && cat /mnt/file > /dev/null";
    guest.fails(failed)?;
    guest.ok_for(LIMIT, "umount /mnt")?;
    printed(guest, "I/O error")?;
    guest.fails(&format!("mount -t btrfs {block} /mnt"))?;
    it.end(guest)
}

/// Every zone that F2FS writes to is read-only from now on.
fn read_only_under_f2fs(guest: &mut Guest) -> Result<()> {
    let it = Faulty::start(guest, &["--set", BESIDE])?;
    let drive = it.drive.clone().beside(guest, &it.controller, 2)?;
    let (zoned, conventional) = (drive.block(), drive.conventional()?);
    guest.ok_for(LIMIT, &format!("mkfs.f2fs -f -m -c {zoned} {conventional}"))?;
    guest.ok_for(
        LIMIT,
        &format!("modprobe f2fs; mount -t f2fs {conventional} /mnt"),
    )?;
    guest.ok_for(LIMIT, "head -c 40000000 /dev/urandom > /mnt/file && sync")?;
    guest.ok("sha256sum /mnt/file > /scratch/sum")?;
    fail_written(guest, &it, "read-only")?;
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    // What was written can be read.
    guest.ok("sha256sum -c /scratch/sum")?;
    guest.fails("head -c 4000000 /dev/urandom > /mnt/other && sync /mnt/other")?;
    guest.ok_for(LIMIT, "umount /mnt")?;
    printed(guest, "I/O error")?;
    it.end(guest)
}

/// Zones of the drive that are not empty fail; it is namespace 1, beside which there may be
/// another.
fn fail_written(guest: &mut Guest, it: &Faulty, state: &str) -> Result<()> {
    let zones = it.drive.report(guest, 0, it.drive.zones)?;
    let written = zones.iter().enumerate();
    let written = written.filter(|(_, zone)| zone.state != State::Empty);
    let written: Vec<String> = written.map(|(index, _)| index.to_string()).collect();
    ensure!(!written.is_empty(), "the file system has written nothing");
    let mut args = vec!["zone", "--namespace", "1", "--state", state];
    args.extend(written.iter().map(String::as_str));
    it.fault(&args)?;
    Ok(())
}
