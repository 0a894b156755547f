//! Every verb that writes, on one of the three namespaces of QEMU's drive: the other two stay
//! as they are, byte for byte as QEMU keeps them, and zone for zone as the kernel's driver finds
//! them before and after.

use anyhow::{Result, bail, ensure};
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Bytes, Drive, Guest};

use crate::ServedCase;
use crate::passthrough::{LIMIT, LOOKS, ZONELAB, install, refuses};
use crate::pcie::{PcieCase, Way, bind, prepare, release};

/// Through the kernel's driver.
pub(crate) const LINUX: &[(&str, ServedCase)] = &[(
    "passthrough::leaves_other_namespaces_alone",
    through_the_kernel,
)];

/// Through our own.
pub(crate) const PCIE: &[(&str, PcieCase)] =
    &[("leaves_other_namespaces_alone", by_our_own_driver)];

/// The namespace that is written to.
const NSID: u32 = 3;

/// The namespaces that are not: a zoned one and a conventional one.
const OTHERS: [u32; 2] = [1, 2];

/// Verbs that write over what is there, each over what the one before it has left.
const WRITERS: [&str; 3] = [
    "fio --name=a --zonemode=zbd --rw=write --bs=64k --size=16m --io_size=1m --overwrite",
    "kv fillrandom --quiet --operations=100 --value-bytes=512 --overwrite",
    "ftl format --overwrite",
];

/// Those that measure for minutes, and are interrupted once they have written.
const STUDIES: [&str; 2] = [
    "characterize --quiet --repeats=1 --overwrite",
    "fit --quiet --repeats=1 --overwrite",
];

/// What a study writes before that.
const WRITES: u64 = 500;

/// The zone that is finished in the end.
const FINISHED: usize = 2;

/// Verbs that manage zones, of which none but [`FINISHED`] is left with anything in it.
const MANAGERS: [&str; 2] = ["nvme zns reset-zone --all", "nvme zns finish-zone --zone 2"];

/// Puts something into each namespace: the third one, zoned.
fn fill(guest: &mut Guest, drive: &Drive) -> Result<Drive> {
    let third = Drive::open(guest, "nvme0", NSID, None)?;
    third.reset_all(guest)?;
    let script = [
        drive.random(16, "/scratch/data"),
        drive.append(0, 16, "/scratch/data"),
        third.append(0, 16, "/scratch/data"),
        format!(
            "dd if=/scratch/data of={} oflag=direct bs=64k",
            drive.conventional()?
        ),
    ];
    // What earlier cases have written is not to be written back later.
    guest.ok(&(script.join(" && ") + " && sync"))?;
    Ok(third)
}

/// What the others are, and how often each was written to, whatever was written.
struct Others {
    zones: String,
    bytes: [Bytes; 2],
    writes: [u64; 2],
}

impl Others {
    fn look(guest: &mut Guest, drive: &Drive) -> Result<Self> {
        let report = format!("nvme zns report-zones {} -o json", drive.generic());
        let [zoned, conventional] = OTHERS;
        Ok(Self {
            zones: guest.ok(&report)?,
            bytes: [guest.bytes_of(zoned)?, guest.bytes_of(conventional)?],
            writes: [guest.writes_of(zoned)?, guest.writes_of(conventional)?],
        })
    }

    /// Looks again: they are as they were.
    fn are_the_same(&self, guest: &mut Guest, drive: &Drive) -> Result<()> {
        let now = Self::look(guest, drive)?;
        let lines = self.zones.lines().zip(now.zones.lines());
        let changed: Vec<_> = lines.filter(|(before, after)| before != after).collect();
        ensure!(self.zones == now.zones, "zones changed: {changed:?}");
        for (nsid, (before, after)) in OTHERS.iter().zip(self.bytes.iter().zip(&now.bytes)) {
            ensure!(!before.is_zero(), "namespace {nsid} was filled");
            if let Some(at) = before.first_difference(after) {
                bail!("namespace {nsid} is another from byte {at} on");
            }
        }
        let (before, after) = (self.writes, now.writes);
        ensure!(
            before == after,
            "writes of others: {before:?}, then {after:?}"
        );
        Ok(())
    }
}

/// Runs every verb with `device`, the options that name the third namespace.
fn run_all(guest: &mut Guest, device: &str) -> Result<()> {
    for verb in WRITERS {
        let before = guest.writes_of(NSID)?;
        let output = guest.ok_for(LIMIT, &format!("cd /scratch && {ZONELAB} {verb} {device}"))?;
        is_named(verb, &output)?;
        let after = guest.writes_of(NSID)?;
        ensure!(after > before, "{verb} writes nothing: {output}");
    }
    for study in STUDIES {
        // There is something to lose, wherever the study before was interrupted.
        guest.ok_for(
            LIMIT,
            &format!("cd /scratch && {ZONELAB} {} {device}", WRITERS[0]),
        )?;
        interrupt_once_it_writes(guest, study, device)?;
    }
    for verb in MANAGERS {
        guest.ok(&format!("{ZONELAB} {verb} {device}"))?;
    }
    Ok(())
}

/// What is written over is named before it is.
fn is_named(verb: &str, output: &str) -> Result<()> {
    let is_named = output.contains(&format!("of namespace {NSID}"));
    ensure!(is_named, "{verb}: {output}");
    Ok(())
}

/// Runs a study until it has written for a while.
fn interrupt_once_it_writes(guest: &mut Guest, study: &str, device: &str) -> Result<()> {
    let before = guest.writes_of(NSID)?;
    let job = guest.spawn(&format!(
        "cd /scratch\necho $$ > /run/pid\nexec {ZONELAB} {study} {device}"
    ))?;
    for _ in 0..LOOKS {
        if guest.writes_of(NSID)? >= before + WRITES {
            guest.ok("kill -INT $(cat /run/pid)")?;
            let output = guest.wait(&job, LIMIT)?;
            ensure!(output.code == 130, "{study}: {output:?}");
            return is_named(study, &output.text);
        }
        guest.ok("sleep 0.1")?;
    }
    let output = guest.run("cat /run/job*.out")?;
    bail!("{study} writes little: {output:?}");
}

/// The third namespace is as the last of the verbs leaves it.
fn is_as_it_was_left(guest: &mut Guest) -> Result<()> {
    let third = Drive::open(guest, "nvme0", NSID, None)?;
    for (index, zone) in third.report(guest, 0, third.zones)?.iter().enumerate() {
        let expected = if index == FINISHED {
            State::Full
        } else {
            State::Empty
        };
        ensure!(zone.state == expected, "zone {index}: {zone:?}");
    }
    third.reset_all(guest)
}

fn through_the_kernel(guest: &mut Guest) -> Result<()> {
    install(guest)?;
    let drive = Drive::open(guest, "nvme0", 1, Some(2))?;
    drive.reset_all(guest)?;
    let third = fill(guest, &drive)?;
    let others = Others::look(guest, &drive)?;
    run_all(guest, &format!("--device linux://{}", third.generic()))?;
    others.are_the_same(guest, &drive)?;
    is_as_it_was_left(guest)?;
    drive.reset_all(guest)
}

fn by_our_own_driver(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    fill(guest, &drive)?;
    // A controller that is shut down closes its zones, as the kernel's driver does with it when
    // it lets go of it.
    drive.manage(guest, "close-zone", 0)?;
    let others = Others::look(guest, &drive)?;
    bind(guest, way, &address)?;
    let (device, flag) = (format!("--device pcie://{address}"), way.flag);
    for verb in WRITERS.iter().chain(&MANAGERS).chain(&STUDIES) {
        for (query, words) in [("", "it has 3 namespaces"), ("?nsid=7", "no namespace 7")] {
            let script = format!("{ZONELAB} {verb} {flag} {device}{query}");
            refuses(guest, &script, 2, words)?;
        }
    }
    run_all(guest, &format!("{flag} {device}?nsid={NSID}"))?;
    let drive = release(guest, &address)?;
    others.are_the_same(guest, &drive)?;
    is_as_it_was_left(guest)?;
    drive.reset_all(guest)
}
