//! The translation layer on QEMU's zoned drive: what is written through our own driver is
//! found through the kernel's, and the other way round, also after a kill.

use anyhow::{Result, bail, ensure};
use zonelab_guest_tests::Guest;

use crate::passthrough::{LIMIT, LOOKS, ZONELAB, json, refuses};
use crate::pcie::{PcieCase, Way, bind, prepare, release, zoned};

pub(crate) const CASES: &[(&str, PcieCase)] =
    &[("ftl_is_the_same_by_every_way", is_the_same_by_every_way)];

/// Blocks of each file that is written by itself.
const BLOCKS: u64 = 500;

/// The layer by one way to the drive.
struct Layer {
    /// What tells the command which drive.
    device: String,
}

impl Layer {
    fn by_pcie(way: &Way, address: &str) -> Self {
        let flag = way.flag;
        Self {
            device: format!("--device {} {flag}", zoned(address)),
        }
    }

    fn by_the_kernel(node: &str) -> Self {
        Self {
            device: format!("--device linux://{node}"),
        }
    }

    fn command(&self, command: &str) -> String {
        format!("{ZONELAB} ftl {command} {}", self.device)
    }

    fn jobs(&self, options: &str) -> String {
        format!(
            "{ZONELAB} fio {} --ftl --overwrite --ioengine=libaio {options}",
            self.device
        )
    }

    /// Writes a file of random bytes at a block, durably.
    fn write(&self, guest: &mut Guest, file: &str, at: u64, block_bytes: u64) -> Result<()> {
        let bytes = BLOCKS * block_bytes;
        let write = self.command(&format!("write --slba {at} --data {file}"));
        guest.ok_for(
            LIMIT,
            &format!("head -c {bytes} /dev/urandom > {file} && {write}"),
        )?;
        Ok(())
    }

    /// Whether the blocks from `at` on are those of a file.
    fn holds(&self, guest: &mut Guest, file: &str, at: u64) -> Result<()> {
        let read = format!("read --slba {at} --nlb {BLOCKS} --data /scratch/back");
        let read = self.command(&read);
        guest.ok_for(
            LIMIT,
            &format!("rm -f /scratch/back && {read} && cmp {file} /scratch/back"),
        )?;
        Ok(())
    }

    fn is_sound(&self, guest: &mut Guest) -> Result<()> {
        let said = guest.ok_for(LIMIT, &self.command("check"))?;
        ensure!(said.contains("It is sound."), "{said}");
        Ok(())
    }

    /// Jobs that write anywhere, and verify what they wrote.
    fn verifies(&self, guest: &mut Guest) -> Result<()> {
        let jobs = "--name=anywhere --rw=randwrite --bs=4k --offset=64m --size=6m --iodepth=16 \
                    --verify=crc32c --do_verify=1 --json";
        let script = format!(
            "{} 2> /scratch/err || {{ cat /scratch/err; exit 1; }}",
            self.jobs(jobs)
        );
        let report = json(guest, &script)?;
        let job = &report["jobs"][0];
        let (written, read) = (&job["write"]["io_bytes"], &job["read"]["io_bytes"]);
        ensure!(
            written.as_u64() == Some(6 << 20) && read == written && job["error"] == 0,
            "{report}"
        );
        Ok(())
    }

    /// Kills a job in the middle of its writes.
    fn is_killed(&self, guest: &mut Guest) -> Result<()> {
        let before = guest.drive_writes()?;
        let jobs = self.jobs(
            "--name=killed --rw=randwrite --bs=4k --offset=64m --size=64m --iodepth=16 \
             --fsync=64 --time_based --runtime=900",
        );
        let job = guest.spawn(&format!("echo $$ > /run/pid\nexec {jobs}"))?;
        for _ in 0..LOOKS {
            if guest.drive_writes()? > before + 500 {
                guest.ok("kill -KILL $(cat /run/pid)")?;
                let output = guest.wait(&job, LIMIT)?;
                ensure!(output.code == 128 + 9, "{output:?}");
                return Ok(());
            }
            guest.ok("sleep 0.1")?;
        }
        let output = guest.run("cat /run/job*.out")?;
        bail!("little is written: {output:?}");
    }
}

/// Formatted, written and killed through our own driver, found through the kernel's, written
/// and killed there, and found through ours again: all that was durable, and sound.
fn is_the_same_by_every_way(guest: &mut Guest, way: &Way) -> Result<()> {
    let (drive, address) = prepare(guest, way)?;
    let block_bytes = drive.lba_bytes;
    let (one, other) = ("/scratch/one", "/scratch/other");
    bind(guest, way, &address)?;
    let ours = Layer::by_pcie(way, &address);
    refuses(guest, &ours.command("info"), 3, "zonelab ftl format")?;
    guest.ok_for(LIMIT, &ours.command("format"))?;
    ours.verifies(guest)?;
    ours.write(guest, one, 1000, block_bytes)?;
    // Half of it once more: blocks that are overwritten.
    ours.write(guest, other, 1000 + BLOCKS / 2, block_bytes)?;
    ours.write(guest, one, 1000, block_bytes)?;
    ours.is_killed(guest)?;
    ours.is_sound(guest)?;

    let drive = release(guest, &address)?;
    let theirs = Layer::by_the_kernel(&drive.generic());
    theirs.is_sound(guest)?;
    theirs.holds(guest, one, 1000)?;
    theirs.verifies(guest)?;
    theirs.write(guest, other, 3000, block_bytes)?;
    theirs.is_killed(guest)?;

    bind(guest, way, &address)?;
    ours.is_sound(guest)?;
    ours.holds(guest, one, 1000)?;
    ours.holds(guest, other, 3000)?;
    let drive = release(guest, &address)?;
    drive.reset_all(guest)
}
