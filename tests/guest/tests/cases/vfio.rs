//! Drives that are handed over by VFIO, behind QEMU's emulated IOMMU.

use anyhow::{Context, Result, bail, ensure};
use zonelab_guest_tests::Guest;

use crate::passthrough::{LIMIT, LOOKS, ZONELAB, amounts, refuses, run_json};
use crate::pcie::{PcieCase, Way, bind, jobs, prepare, release};

/// The way, with the kernel's modules for it.
pub(crate) const WAY: Way = Way {
    name: "vfio",
    prepare: "modprobe vfio_iommu_type1 && modprobe vfio_pci",
    driver: "vfio-pci",
    flag: "",
};

pub(crate) const CASES: &[(&str, PcieCase)] = &[
    (
        "refuses_to_go_around_the_iommu",
        refuses_to_go_around_the_iommu,
    ),
    (
        "interrupts_do_what_polling_does",
        interrupts_do_what_polling_does,
    ),
    ("completions_are_interrupts", completions_are_interrupts),
    ("long_transfers_have_sgls", long_transfers_have_sgls),
];

/// By UIO the drive would be given addresses that its IOMMU does not know.
fn refuses_to_go_around_the_iommu(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    let bind = format!("{ZONELAB} nvme bind --driver uio_pci_generic {address}");
    refuses(guest, &bind, 4, "behind an IOMMU that translates")?;
    guest.ok(&format!(
        "[ \"$(basename $(readlink /sys/bus/pci/devices/{address}/driver))\" = nvme ]"
    ))?;
    Ok(())
}

/// The same jobs, from several queues, with interrupts and without: the same operations and
/// bytes, which are where they should be.
fn interrupts_do_what_polling_does(guest: &mut Guest, way: &Way) -> Result<()> {
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    let mut run = |query: &str| {
        let run = jobs(way, &format!("{address}{query}"));
        let script = format!(
            "{run} --name=many --zonemode=zbd --rw=write --bs=16k --numjobs=3 --iodepth=8 \
             --zone_append=1 --size=16m --io_size=1m --offset_increment=16m \
             --verify=crc32c --do_verify=1 --json 2> /scratch/err || \
             {{ cat /scratch/err; exit 1; }}"
        );
        amounts(&run_json(guest, &script)?)
    };
    let polled = run("")?;
    let announced = run("?interrupts=1")?;
    ensure!(
        polled == announced,
        "polled\n{polled:?}\nwith interrupts\n{announced:?}"
    );
    let drive = release(guest, &address)?;
    drive.reset_all(guest)
}

/// While a command takes long, each completion is announced by an interrupt; if the queue
/// is polled, the device signals nothing.
fn completions_are_interrupts(guest: &mut Guest, way: &Way) -> Result<()> {
    /// Writes of each run, of which QEMU carries out ten a second.
    const WRITES: u64 = 20;
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    guest.throttle_drive(10)?;
    let mut run = |query: &str| -> Result<Waits> {
        let before = guest.drive_writes()?;
        let run = jobs(way, &format!("{address}{query}"));
        let job = guest.spawn(&format!(
            "echo $$ > /run/pid\nexec {run} --name=slow --zonemode=zbd --rw=write --bs=16k \
             --iodepth=1 --size=64m --time_based --runtime=900"
        ))?;
        for _ in 0..LOOKS {
            if guest.drive_writes()? > before + WRITES {
                let waits = Waits::read(guest)?;
                guest.ok("kill -KILL $(cat /run/pid)")?;
                guest.wait(&job, LIMIT)?;
                return Ok(waits);
            }
            guest.ok("sleep 0.1")?;
        }
        let output = guest.run("cat /run/job*.out")?;
        bail!("nothing is written: {output:?}");
    };
    let polled = run("")?;
    let announced = run("?interrupts=1")?;
    println!("polled: {polled:?}\nwith interrupts: {announced:?}");
    guest.throttle_drive(0)?;
    ensure!(
        polled.interrupts == 0 && announced.interrupts >= WRITES,
        "interrupts for {WRITES} writes: polled {polled:?}, else {announced:?}"
    );
    let drive = release(guest, &address)?;
    drive.reset_all(guest)
}

/// Transfers that would need a list of PRPs have an SGL descriptor, unless that is switched
/// off; data that was written one way is read back by both.
fn long_transfers_have_sgls(guest: &mut Guest, way: &Way) -> Result<()> {
    const COMMANDS: u64 = 16;
    let (_, address) = prepare(guest, way)?;
    bind(guest, way, &address)?;
    let mut run = |query: &str, rw: &str| -> Result<(u64, u64)> {
        let run = jobs(way, &format!("{address}{query}"));
        let script = format!(
            "{run} --name=long --zonemode=zbd --rw={rw} --bs=64k --iodepth=4 --size=16m \
             --io_size={} --verify=crc32c --json 2> /scratch/err || \
             {{ cat /scratch/err; exit 1; }}",
            COMMANDS << 16
        );
        let (sgls, amounts) = guest.count("pci_nvme_map_sgl", |guest| {
            amounts(&run_json(guest, &script)?)
        })?;
        let done = amounts.iter().flat_map(|(_, both)| both);
        Ok((sgls as u64, done.map(|(count, _)| count).sum()))
    };
    // `verify` reads what was written.
    let found = run("", "write --do_verify=1")?;
    let all = 2 * COMMANDS;
    ensure!(found == (all, all), "SGLs and commands: {found:?}");
    let found = run("?sgls=0", "read")?;
    ensure!(found == (0, COMMANDS), "SGLs and commands: {found:?}");
    let drive = release(guest, &address)?;
    drive.reset_all(guest)
}

/// How a program waits, from what the kernel counts.
#[derive(Debug)]
struct Waits {
    /// Of all vectors that VFIO has connected.
    interrupts: u64,
    /// Time on the processor, in units of 10 ms: to be looked at, and not for judging.
    #[expect(dead_code, reason = "it is printed")]
    ticks: u64,
}

impl Waits {
    /// Of the process in `/run/pid`.
    fn read(guest: &mut Guest) -> Result<Self> {
        let table = guest.ok("cat /proc/interrupts")?;
        let vectors = table.lines().filter(|line| line.contains("vfio-msix"));
        let counts = vectors.flat_map(|line| {
            let numbers = line.split_whitespace().skip(1);
            numbers.map_while(|word| word.parse::<u64>().ok())
        });
        let interrupts = counts.sum();
        let stat = guest.ok("cat /proc/$(cat /run/pid)/stat")?;
        // Fields 14 and 15, of which the second is a name in parentheses.
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks = times.map(|field| field.parse::<u64>().unwrap_or(0)).sum();
        Ok(Self { interrupts, ticks })
    }
}
