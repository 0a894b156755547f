//! `zonelab` in the guest, driving QEMU's drive by itself: `pcie://`. What it did is seen by
//! the kernel's driver afterwards, and the other way round.
//!
//! The cases are the same whichever driver of the kernel hands the drive over: [`Way`].

use anyhow::{Context, Result, bail, ensure};
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest, Job};

use crate::passthrough::{
    JOBS, LIMIT, LOOKS, ZONELAB, amounts, fio, install, json, ours, refuses, run_json,
};

/// How a drive is handed to a program.
pub(crate) struct Way {
    /// What the names of its cases begin with.
    pub(crate) name: &'static str,
    /// The script that gets the kernel ready for it.
    pub(crate) prepare: &'static str,
    /// The driver.
    pub(crate) driver: &'static str,
    /// What a command needs besides to use the drive.
    pub(crate) flag: &'static str,
}

/// A case about a drive that is handed over.
pub(crate) type PcieCase = fn(&mut Guest, &Way) -> Result<()>;

pub(crate) const CASES: &[(&str, PcieCase)] = &[
    ("hands_over_what_nobody_uses", hands_over_what_nobody_uses),
    ("identifies_the_drive", identifies_the_drive),
    ("manages_zones_and_moves_data", manages_zones_and_moves_data),
    ("jobs_do_what_fio_does", jobs_do_what_fio_does),
    ("appends_from_several_queues", appends_from_several_queues),
    ("is_taken_again_after_a_kill", is_taken_again_after_a_kill),
    ("goes_on_after_a_reset", goes_on_after_a_reset),
    // The last: no drive is left after it.
    ("outlives_the_drive", outlives_the_drive),
];

/// The drive under the kernel's driver with all zones empty, the program, and the address
/// of the controller.
pub(crate) fn prepare(guest: &mut Guest, way: &Way) -> Result<(Drive, String)> {
    install(guest)?;
    guest.ok(way.prepare)?;
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
pub(crate) fn open(guest: &mut Guest) -> Result<Drive> {
    Drive::open(guest, "nvme0", 1, Some(2))
}

pub(crate) fn bind(guest: &mut Guest, way: &Way, address: &str) -> Result<()> {
    guest.ok(&binding(way, address)).map(drop)
}

/// The command that hands the drive over.
fn binding(way: &Way, address: &str) -> String {
    format!("{ZONELAB} nvme bind --driver {} {address}", way.driver)
}

pub(crate) fn release(guest: &mut Guest, address: &str) -> Result<Drive> {
    guest.ok(&format!("{ZONELAB} nvme release {address}"))?;
    open(guest)
}

pub(crate) fn nvme(way: &Way, address: &str, command: &str) -> String {
    let (flag, device) = (way.flag, zoned(address));
    format!("{ZONELAB} nvme {command} {flag} --device '{device}'")
}

/// The zoned namespace of a drive at an address, which may have keys behind it.
pub(crate) fn zoned(address: &str) -> String {
    let mark = if address.contains('?') { '&' } else { '?' };
    format!("pcie://{address}{mark}nsid=1")
}

/// The command that runs jobs, all but their options.
pub(crate) fn jobs(way: &Way, address: &str) -> String {
    let (flag, device) = (way.flag, zoned(address));
    format!("{ZONELAB} fio --device '{device}' {flag} --overwrite")
}

/// A mounted drive stays with the kernel; one that nobody uses is handed over and back,
/// and what is not handed over is not used.
fn hands_over_what_nobody_uses(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    let block = drive.conventional()?;
    refuses(
        guest,
        &nvme(way, &address, "id-ctrl"),
        4,
        "zonelab nvme bind",
    )?;
    guest.ok(&format!(
        "mkfs.f2fs -f {block} && mkdir -p /scratch/mount && modprobe f2fs && \
         mount -t f2fs {block} /scratch/mount"
    ))?;
    let bind_it = binding(way, &address);
    refuses(guest, &bind_it, 4, "is mounted on /scratch/mount")?;
    guest.ok("umount /scratch/mount")?;
    let bound = json(guest, &format!("{bind_it} --json"))?;
    ensure!(
        bound["before"] == "nvme" && bound["driver"] == way.driver,
        "{bound}"
    );
    ensure!(
        bound["iommu_group"].is_string() == way.flag.is_empty(),
        "{bound}"
    );
    guest.ok("[ ! -e /dev/nvme0n1 ] && [ ! -e /dev/nvme0n2 ]")?;
    let again = json(guest, &format!("{bind_it} --json"))?;
    ensure!(again["before"] == way.driver, "{again}");
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
fn identifies_the_drive(guest: &mut Guest, way: &Way) -> Result<()> {
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
    let (drive, address) = prepare(guest, way)?;
    let mut theirs = Vec::new();
    for (command, nsid, _) in FIELDS {
        let device = match nsid {
            1 => drive.block(),
            _ => drive.conventional()?,
        };
        theirs.push(json(guest, &format!("nvme {command} {device} -o json"))?);
    }
    bind(guest, way, &address)?;
    for ((command, nsid, fields), theirs) in FIELDS.iter().zip(&theirs) {
        let ours = json(
            guest,
            &(nvme(way, &address, command) + &format!(" -n {nsid} --json")),
        )?;
        for field in *fields {
            let (ours, theirs) = (&ours[field], &theirs[field]);
            ensure!(
                ours == theirs,
                "{command} {nsid}: {field}: {ours} and {theirs}"
            );
        }
    }
    let words = "there is no namespace 4";
    refuses(guest, &nvme(way, &address, "id-ns -n 4"), 2, words)?;
    release(guest, &address).map(drop)
}

/// Every action on zones, appends and reads, and the errors of each; the kernel's driver
/// finds the zones and the data where they are said to be.
fn manages_zones_and_moves_data(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    let start = drive.start_lba(1);
    guest.ok(&drive.random(3, "/scratch/data"))?;
    bind(guest, way, &address)?;
    let act = |command: &str| nvme(way, &address, command);
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
fn jobs_do_what_fio_does(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    let theirs = fio(guest, &drive)?;
    drive.reset_all(guest)?;
    bind(guest, way, &address)?;
    let run = jobs(way, &address);
    let script = format!(
        "cat > /scratch/job.fio <<'END OF JOB'\n{JOBS}\nEND OF JOB\n\
         {run} /scratch/job.fio --json 2> /scratch/err || {{ cat /scratch/err; exit 1; }}"
    );
    let report = run_json(guest, &script)?;
    let drive = release(guest, &address)?;
    let ours = ours(guest, &report, &drive)?;
    // A controller that is shut down closes its zones.
    let (ours, theirs) = (ours.without_closing(), theirs.without_closing());
    ensure!(ours == theirs, "fio\n{theirs:?}\nzonelab\n{ours:?}");
    drive.reset_all(guest)
}

/// Jobs that each have a queue pair append to one zone, and to zones of their own: nothing
/// is lost, doubled or mixed up.
fn appends_from_several_queues(guest: &mut Guest, way: &Way) -> Result<()> {
    const JOBS: u64 = 4;
    const BYTES_EACH: u64 = 1 << 20;
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    let run = jobs(way, &address);
    let options =
        format!("--zonemode=zbd --rw=write --zone_append=1 --numjobs={JOBS} --iodepth=8 --json");
    let mut done = |what: &str| -> Result<u64> {
        let script = format!(
            "{run} --name=appends {what} {options} 2> /scratch/err || \
             {{ cat /scratch/err; exit 1; }}"
        );
        Ok(amounts(&run_json(guest, &script)?)?
            .iter()
            .map(|(_, [_, (_, bytes)])| bytes)
            .sum())
    };
    let shared = done(&format!(
        "--bs=16k --size=16m --io_size={BYTES_EACH} --offset=16m"
    ))?;
    ensure!(
        shared == JOBS * BYTES_EACH,
        "{shared} bytes appended to one zone"
    );
    let apart = done(&format!(
        "--bs=32k --size=16m --io_size={BYTES_EACH} --offset=32m --offset_increment=16m \
         --verify=crc32c --do_verify=1"
    ))?;
    ensure!(
        apart == JOBS * BYTES_EACH,
        "{apart} bytes appended to zones apart"
    );
    let drive = release(guest, &address)?;
    let zones = drive.report(guest, 0, 7)?;
    let written: Vec<u64> = zones
        .iter()
        .map(|zone| (zone.write_pointer_lba - zone.start_lba) * drive.lba_bytes)
        .collect();
    let each = BYTES_EACH;
    ensure!(
        written == [0, JOBS * each, each, each, each, each, 0],
        "{written:?}"
    );
    drive.reset_all(guest)
}

/// A job that runs, with the number of its process in `/run/pid`.
fn running(guest: &mut Guest, way: &Way, address: &str) -> Result<Job> {
    let options = "--size=128m --time_based --runtime=900";
    running_with(guest, way, address, options)
}

/// The same with options of its own.
fn running_with(guest: &mut Guest, way: &Way, address: &str, options: &str) -> Result<Job> {
    let before = guest.drive_writes()?;
    let run = jobs(way, address);
    let job = guest.spawn(&format!(
        "echo $$ > /run/pid\nexec {run} --name=long --zonemode=zbd --rw=write --bs=16k --iodepth=4 \
         {options}"
    ))?;
    for _ in 0..LOOKS {
        if guest.drive_writes()? > before {
            return Ok(job);
        }
        guest.ok("sleep 0.2")?;
    }
    let output = guest.run("cat /run/job*.out")?;
    bail!("nothing is written: {output:?}");
}

/// A program that is killed leaves its controller enabled; the next takes it as it is, and
/// so does the kernel. While one runs, the drive stays with it.
fn is_taken_again_after_a_kill(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    let job = running(guest, way, &address)?;
    refuses(guest, &nvme(way, &address, "id-ctrl"), 4, "another program")?;
    guest.ok("kill -KILL $(cat /run/pid)")?;
    let output = guest.wait(&job, LIMIT)?;
    ensure!(output.code == 128 + 9, "{output:?}");
    // Bit 2 of the command register, which is at byte 4: the device may access memory.
    let command = format!("od -An -tu1 -j4 -N1 /sys/bus/pci/devices/{address}/config");
    let command: u8 = guest.ok(&command)?.trim().parse()?;
    ensure!(command & 4 == 0, "it may still access memory: {command:#x}");
    guest.ok(&nvme(way, &address, "zns reset-zone --all"))?;
    let report = json(
        guest,
        &nvme(way, &address, "zns report-zones --descs 1 --json"),
    )?;
    ensure!(report["zone_list"][0]["wp"] == 0, "{report}");
    let drive = release(guest, &address)?;
    drive.expect(guest, 0, State::Empty).map(drop)
}

/// A drive that stops answering in time is reset under load; the jobs of both queues go on,
/// and each command is accounted for.
fn goes_on_after_a_reset(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    let options = "--ioengine=libaio --zone_append=1 --size=64m --offset_increment=64m \
                   --numjobs=2 --time_based --runtime=900 --continue_on_error=all --command-timeout 1s";
    let job = running_with(guest, way, &address, options)?;
    // A write a second: all but the first are late, and so is their abortion.
    guest.await_trace("pci_nvme_mmio_stopped", |guest| guest.throttle_drive(1))?;
    guest.throttle_drive(0)?;
    let before = guest.drive_writes()?;
    let mut looks = 0..LOOKS;
    while guest.drive_writes()? <= before + 100 && looks.next().is_some() {
        guest.ok("sleep 0.1")?;
    }
    // It ends the jobs and says what they came to.
    guest.ok("kill -INT $(cat /run/pid)")?;
    let output = guest.wait(&job, LIMIT)?;
    let after = guest.drive_writes()?;
    ensure!(
        output.code == 130 && output.text.contains("the controller was reset"),
        "{output:?}"
    );
    ensure!(
        after > before + 100,
        "{before} to {after} writes: {output:?}"
    );
    let drive = release(guest, &address)?;
    drive.reset_all(guest)
}

/// A drive that is removed while jobs run ends them with the exit code of a drive that
/// fails, and lets the host have it.
fn outlives_the_drive(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    guest.spend();
    let job = running(guest, way, &address)?;
    guest.remove_drive()?;
    let output = guest.wait(&job, LIMIT)?;
    let is_said = output.text.contains("gone") || output.text.contains("asks for the device");
    ensure!(output.code == 5 && is_said, "{output:?}");
    guest.ok(&format!(
        "while [ -e /sys/bus/pci/devices/{address} ]; do sleep 0.1; done"
    ))?;
    let refused = nvme(way, &address, "id-ns");
    refuses(guest, &refused, 4, "there is no PCI function")
}
