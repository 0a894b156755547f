//! `zonelab` in the guest, driving QEMU's drive by itself: `pcie://`, by VFIO behind an
//! IOMMU. What it did is seen by the kernel's driver afterwards, and the other way round.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest};

use crate::ServedCase;
use crate::passthrough::{
    JOBS, LIMIT, Outcome, ZONELAB, amounts, fio, install, json, refuses, zones,
};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    (
        "vfio::hands_over_what_nobody_uses",
        hands_over_what_nobody_uses,
    ),
    ("vfio::identifies_the_drive", identifies_the_drive),
    (
        "vfio::manages_zones_and_moves_data",
        manages_zones_and_moves_data,
    ),
    ("vfio::jobs_do_what_fio_does", jobs_do_what_fio_does),
    // The last: no drive is left after it.
    ("vfio::outlives_the_drive", outlives_the_drive),
];

/// The drive under the kernel's driver with all zones empty, the program, and the address
/// of the controller.
fn prepare(guest: &mut Guest) -> Result<(Drive, String)> {
    install(guest)?;
    guest.ok("modprobe vfio_iommu_type1 && modprobe vfio_pci")?;
    let path = "for device in /sys/bus/pci/devices/*; do \
                if grep -q 0x010802 $device/class; then basename $device; fi; done";
    let address = guest.ok(path)?.trim().to_owned();
    ensure!(address.len() == 12, "one controller: {address}");
    // A case that failed has left it to us.
    guest.run(&format!("{ZONELAB} nvme release {address}"))?;
    let drive = open(guest)?;
    drive.reset_all(guest)?;
    Ok((drive, address))
}

/// The drive under the kernel's driver, once that has found its namespaces. Their names
/// are new each time: Linux looks for namespaces in parallel since 6.12, and numbers them
/// as it comes across them.
fn open(guest: &mut Guest) -> Result<Drive> {
    Drive::open(guest, "nvme0", 1, Some(2))
}

fn bind(guest: &mut Guest, address: &str) -> Result<()> {
    guest
        .ok(&format!("{ZONELAB} nvme bind {address}"))
        .map(drop)
}

fn release(guest: &mut Guest, address: &str) -> Result<Drive> {
    guest.ok(&format!("{ZONELAB} nvme release {address}"))?;
    open(guest)
}

fn nvme(address: &str, command: &str) -> String {
    format!("{ZONELAB} nvme {command} --device pcie://{address}")
}

/// A mounted drive stays with the kernel; one that nobody uses is handed over and back,
/// and what is not handed over is not used.
fn hands_over_what_nobody_uses(guest: &mut Guest) -> Result<()> {
    let (drive, address) = prepare(guest)?;
    let block = drive.conventional()?;
    refuses(guest, &nvme(&address, "id-ctrl"), 4, "zonelab nvme bind")?;
    guest.ok(&format!(
        "mkfs.f2fs -f {block} && mkdir -p /scratch/mount && modprobe f2fs && \
         mount -t f2fs {block} /scratch/mount"
    ))?;
    let bind_it = format!("{ZONELAB} nvme bind {address}");
    refuses(guest, &bind_it, 4, "is mounted on /scratch/mount")?;
    guest.ok("umount /scratch/mount")?;
    let bound = json(guest, &format!("{bind_it} --json"))?;
    ensure!(
        bound["before"] == "nvme" && bound["driver"] == "vfio-pci",
        "{bound}"
    );
    ensure!(bound["iommu_group"].is_string(), "{bound}");
    guest.ok("[ ! -e /dev/nvme0n1 ] && [ ! -e /dev/nvme0n2 ]")?;
    let again = json(guest, &format!("{bind_it} --json"))?;
    ensure!(again["before"] == "vfio-pci", "{again}");
    release(guest, &address)?;
    // What has no class of NVMe, and what is not there.
    let other = guest.ok("for device in /sys/bus/pci/devices/*; do \
         if grep -q 0x020000 $device/class; then basename $device; fi; done")?;
    let refused = format!("{ZONELAB} nvme bind {}", other.trim());
    refuses(guest, &refused, 4, "is no NVMe controller")?;
    refuses(
        guest,
        &format!("{ZONELAB} nvme bind 0000:7f:1f.7"),
        4,
        &address,
    )
}

/// It reads the same of the drive as nvme-cli did under the kernel's driver.
fn identifies_the_drive(guest: &mut Guest) -> Result<()> {
    const FIELDS: &[(&str, u32, &[&str])] = &[
        (
            "id-ctrl",
            1,
            &["vid", "cntlid", "mdts", "ver", "nn", "oncs", "subnqn"],
        ),
        (
            "id-ns",
            1,
            &["nsze", "ncap", "nlbaf", "flbas", "mssrl", "mcl"],
        ),
        (
            "id-ns",
            2,
            &["nsze", "ncap", "nlbaf", "flbas", "mssrl", "mcl"],
        ),
        ("zns id-ns", 1, &["ozcs"]),
    ];
    let (drive, address) = prepare(guest)?;
    let mut theirs = Vec::new();
    for (command, nsid, _) in FIELDS {
        let device = match nsid {
            1 => drive.block(),
            _ => drive.conventional()?,
        };
        theirs.push(json(guest, &format!("nvme {command} {device} -o json"))?);
    }
    bind(guest, &address)?;
    for ((command, nsid, fields), theirs) in FIELDS.iter().zip(&theirs) {
        let ours = json(
            guest,
            &(nvme(&address, command) + &format!(" -n {nsid} --json")),
        )?;
        for field in *fields {
            let (ours, theirs) = (&ours[field], &theirs[field]);
            ensure!(
                ours == theirs,
                "{command} {nsid}: {field}: {ours} and {theirs}"
            );
        }
    }
    let words = "no active namespace 3";
    refuses(guest, &(nvme(&address, "id-ns") + "?nsid=3"), 5, words)?;
    release(guest, &address).map(drop)
}

/// Every action on zones, appends and reads, and the errors of each; the kernel's driver
/// finds the zones and the data where they are said to be.
fn manages_zones_and_moves_data(guest: &mut Guest) -> Result<()> {
    let (drive, address) = prepare(guest)?;
    let start = drive.start_lba(1);
    guest.ok(&drive.random(3, "/scratch/data"))?;
    bind(guest, &address)?;
    let act = |command: &str| nvme(&address, command);
    let append = act("zns zone-append --zone 1 --data /scratch/data --json");
    for expected in [start, start + 3] {
        let lba = json(guest, &append)?["lba"].as_u64();
        ensure!(lba == Some(expected), "appended at {lba:?}, not {expected}");
    }
    let write = act(&format!(
        "write --start-block {} --data /scratch/data",
        start + 6
    ));
    guest.ok(&write)?;
    refuses(guest, &write, 5, "(0x1bc)")?;
    let read = format!(
        "read --start-block {} --blocks 3 --data /scratch/ours",
        start + 3
    );
    guest.ok(&format!(
        "{} && cmp /scratch/data /scratch/ours",
        act(&read)
    ))?;
    for (zone, actions) in [
        (2, &["open-zone"][..]),
        (4, &["finish-zone"]),
        (5, &["finish-zone", "reset-zone"]),
    ] {
        for action in actions {
            guest.ok(&act(&format!("zns {action} --zone {zone}")))?;
        }
    }
    let refused = act("zns close-zone --zone 4");
    refuses(guest, &refused, 5, "(0x1bf)")?;
    let full = act("zns zone-append --zone 4 --data /scratch/data");
    refuses(guest, &full, 5, "(0x1b9)")?;
    let report = json(guest, &act("zns report-zones --json"))?;
    let ours = report["zone_list"].as_array().context("no zones")?.clone();
    guest.ok(&act("flush"))?;
    let drive = release(guest, &address)?;
    let theirs = drive.report(guest, 0, 6)?;
    // QEMU's controller closes zones when it is shut down, as each of these commands does.
    let states: Vec<State> = theirs.iter().map(|zone| zone.state).collect();
    let empty = State::Empty;
    ensure!(
        states[0] == empty && states[4] == State::Full && states[5] == empty,
        "{states:?}"
    );
    ensure!(theirs[1].write_pointer_lba == start + 9, "{:?}", theirs[1]);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        ensure!(
            ours["slba"].as_u64() == Some(theirs.start_lba),
            "{ours} and {theirs:?}"
        );
        let is_full = theirs.state == State::Full;
        let is_same = ours["wp"].as_u64() == Some(theirs.write_pointer_lba);
        ensure!(is_full || is_same, "{ours} and {theirs:?}");
    }
    for at in [start, start + 3, start + 6] {
        guest.ok(&drive.read(at, 3, "/scratch/theirs"))?;
        guest.ok("cmp /scratch/data /scratch/theirs")?;
    }
    drive.reset_all(guest)
}

/// The same job file by the guest's fio on the kernel's driver, and by `zonelab fio` on
/// ours: the same operations, bytes and resets, and zones that end alike.
fn jobs_do_what_fio_does(guest: &mut Guest) -> Result<()> {
    let (drive, address) = prepare(guest)?;
    let theirs = fio(guest, &drive)?;
    drive.reset_all(guest)?;
    bind(guest, &address)?;
    let script = format!(
        "cat > /scratch/job.fio <<'END OF JOB'\n{JOBS}\nEND OF JOB\n\
         {ZONELAB} fio /scratch/job.fio --device pcie://{address}?nsid=1 --overwrite --json \
         2> /scratch/err || {{ cat /scratch/err; exit 1; }}"
    );
    let text = guest.ok_for(LIMIT, &script)?;
    let report: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    // Several queues at once.
    guest.ok_for(
        LIMIT,
        &format!(
            "{ZONELAB} fio --name=several --zonemode=zbd --rw=write --bs=64k --size=16m --io_size=8m --offset=256m \
             --offset_increment=16m --numjobs=4 --iodepth=4 --verify=crc32c --do_verify=1 \
             --ioengine=libaio --device pcie://{address} --overwrite 2> /scratch/err || \
             {{ cat /scratch/err; exit 1; }}"
        ),
    )?;
    let drive = release(guest, &address)?;
    let jobs = report["jobs"].as_array().context("no jobs")?;
    let resets: Option<u64> = jobs
        .iter()
        .map(|job| job["zonelab"]["cleared_zones"].as_u64())
        .sum();
    let ours = Outcome {
        jobs: amounts(&report)?,
        resets: resets.context("no resets")?,
        zones: zones(guest, &drive)?,
    };
    // A controller that is shut down closes its zones.
    let (ours, theirs) = (ours.without_closing(), theirs.without_closing());
    ensure!(ours == theirs, "fio\n{theirs:?}\nzonelab\n{ours:?}");
    drive.reset_all(guest)
}

/// A drive that is removed while jobs run ends them with the exit code of a drive that
/// fails, and lets the host have it.
fn outlives_the_drive(guest: &mut Guest) -> Result<()> {
    let (_, address) = prepare(guest)?;
    bind(guest, &address)?;
    guest.spend();
    let job = guest.spawn(&format!(
        "{ZONELAB} fio --name=long --zonemode=zbd --rw=write --bs=16k --size=128m --iodepth=4 \
         --time_based --runtime=200 --device pcie://{address} --overwrite"
    ))?;
    guest.ok("sleep 10")?;
    guest.remove_drive()?;
    let output = guest.wait(&job, LIMIT)?;
    let is_said = output.text.contains("gone") || output.text.contains("asks for the device");
    ensure!(output.code == 5 && is_said, "{output:?}");
    guest.ok("until [ -z \"$(ls /sys/kernel/iommu_groups/*/devices | grep '^0000:01')\" ]; do sleep 0.1; done")?;
    refuses(
        guest,
        &nvme(&address, "id-ns"),
        4,
        "there is no PCI function",
    )
}
