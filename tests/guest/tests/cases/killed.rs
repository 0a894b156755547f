//! `zonelab serve` with a store, ended by SIGKILL while the guest writes, and
//! started again: the kernel reconnects, and finds what it was told is there.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest, Job, host};

use super::file_systems::{make_btrfs, mount_btrfs};
use super::served::Served;

pub(crate) const LIMIT: Duration = Duration::from_secs(900);
/// The kernel tries again every second, and queues commands until then.
pub(crate) const PATIENCE: &str = "--reconnect-delay=1 --ctrl-loss-tmo=600";
/// Stands before a writer that outlives its server. The kernel sends commands in the context
/// of the process that submits them, and a connection that has broken just then brings SIGPIPE
/// to it (seen with 6.12: "fio: got signal=13"). If that is ignored, the kernel sends them again.
pub(crate) const IGNORE_SIGPIPE: &str = "trap '' PIPE;";
/// Zones that are written at a time, each from its start.
const WRITERS: u64 = 3;
/// Pieces of 64 KiB that each zone has at least when the server is killed.
const ACKNOWLEDGED: u64 = 20;

/// A file for the store, which goes with this value.
pub(crate) struct StoreFile(PathBuf);

impl StoreFile {
    pub(crate) fn new(name: &str) -> Self {
        Self(host::temporary(&format!("{name}.store")))
    }

    /// Serves the drive that is in it, on a port, or 0 for one that stays free if the
    /// server ends.
    fn serve(&self, port: u64) -> Result<Served> {
        self.serve_with(port, &[])
    }

    /// The same with more options.
    pub(crate) fn serve_with(&self, port: u64, options: &[&str]) -> Result<Served> {
        let path = self.0.to_str().context("the path of the store")?;
        let port = match port {
            0 => host::lasting_port()?.into(),
            port => port,
        };
        Served::start_at(port, &[&["--store", path], options].concat())
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        // There may be none yet.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Kills the server, and serves its store again where it was.
fn killed(guest: &mut Guest, mut served: Served, file: &StoreFile) -> Result<Served> {
    let port = served.port();
    served.kill()?;
    drop(served);
    // The kernel has seen it go.
    guest.ok("sleep 2")?;
    file.serve(port)
}

/// Writers of raw zones, each of which notes what was acknowledged.
pub(crate) fn under_load(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("load");
    let served = file.serve(0)?;
    let controller = served.connect_with(guest, PATIENCE)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    let (block, per_zone) = (drive.block(), drive.start_byte(1) >> 16);
    let mut writers = Vec::new();
    for zone in 0..WRITERS {
        // A piece says in each of its lines which one it is. The kernel repeats a
        // write that was under way; it fails if the drive had done it already.
        writers.push(guest.spawn(&format!(
            "for i in $(seq 0 {last}); do
                yes \"piece $i of zone {zone}\" | head -c 65536 > /scratch/piece{zone}
                dd if=/scratch/piece{zone} of={block} bs=64k seek=$((i + {zone} * {per_zone})) \
                    count=1 oflag=direct || exit 0
                echo $i >> /scratch/told{zone}
                [ ! -e /scratch/stop ] || exit 0
            done",
            last = per_zone - 1,
        ))?);
    }
    let all = format!(
        "for zone in $(seq 0 {}); do
            until [ \"$(wc -l < /scratch/told$zone)\" -ge {ACKNOWLEDGED} ]; do sleep 0.1; done
        done",
        WRITERS - 1
    );
    guest.ok_for(LIMIT, &all)?;
    let served = killed(guest, served, &file)?;
    // What the kernel had queued ends, in one way or another.
    guest.ok("touch /scratch/stop")?;
    for writer in &writers {
        guest.wait(writer, LIMIT)?;
    }
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    for zone in 0..WRITERS {
        let found = drive.zone(guest, zone)?;
        let pieces = guest.ok(&format!("wc -l < /scratch/told{zone}"))?;
        let pieces: u64 = pieces.trim().parse().context("a number of pieces")?;
        let written = ((found.write_pointer_lba - found.start_lba) * drive.lba_bytes) >> 16;
        // One more can have been under way.
        ensure!(
            (pieces..=pieces + 1).contains(&written),
            "zone {zone}: {pieces} acknowledged, {found:?}"
        );
        guest.ok_for(
            LIMIT,
            &format!(
                "for i in $(cat /scratch/told{zone}); do
                    yes \"piece $i of zone {zone}\" | head -c 65536 > /scratch/piece
                    dd if={block} of=/scratch/found bs=64k skip=$((i + {zone} * {per_zone})) \
                        count=1 iflag=direct 2> /dev/null
                    cmp /scratch/piece /scratch/found || exit 1
                done"
            ),
        )?;
    }
    drive.expect(guest, WRITERS, State::Empty)?;
    served.disconnect(guest)
}

/// Btrfs: what was synchronised before is whole after.
pub(crate) fn under_a_file_system(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("btrfs");
    let served = file.serve(0)?;
    let controller = served.connect_with(guest, PATIENCE)?;
    let block = Drive::open(guest, &controller, 1, None)?.block();
    let writer = keep_and_write(guest, &block, 30)?;
    let served = killed(guest, served, &file)?;
    guest.ok("touch /scratch/stop")?;
    guest.wait(&writer, LIMIT)?;
    // A write that the kernel repeats can fail (see above), whereupon Btrfs ends
    // its transaction and can be read only: it is mounted anew.
    guest.ok_for(LIMIT, "umount /mnt")?;
    served.disconnect(guest)?;
    let controller = served.connect(guest)?;
    let block = Drive::open(guest, &controller, 1, None)?.block();
    expect_kept(guest, &block)?;
    served.disconnect(guest)
}

/// Makes a Btrfs with so many files that are synchronised, and a writer that goes on until
/// `/scratch/stop` is there. It has synchronised some files when this returns.
pub(crate) fn keep_and_write(guest: &mut Guest, block: &str, files: u32) -> Result<Job> {
    make_btrfs(guest, block)?;
    mount_btrfs(guest, block)?;
    let keep = format!(
        "set -e
        mkdir /mnt/kept
        cd /mnt/kept
        for i in $(seq {files}); do head -c $((i * 54321)) /dev/urandom > $i; done
        sync
        sha256sum * > /scratch/sums"
    );
    guest.ok_for(LIMIT, &keep)?;
    let writer = guest.spawn(
        "for i in $(seq 200); do
            head -c 1000000 /dev/urandom > /mnt/more$i && sync -f /mnt/more$i || exit 0
            echo $i >> /scratch/more
            [ ! -e /scratch/stop ] || exit 0
        done",
    )?;
    guest.ok_for(
        LIMIT,
        "until [ \"$(wc -l < /scratch/more)\" -ge 3 ]; do sleep 0.1; done",
    )?;
    Ok(writer)
}

/// Mounts what [`keep_and_write`] made: it has its files, takes another, and is whole.
pub(crate) fn expect_kept(guest: &mut Guest, block: &str) -> Result<()> {
    guest.ok_for(LIMIT, &format!("mount -t btrfs {block} /mnt"))?;
    guest.ok_for(
        LIMIT,
        "cd /mnt/kept && sha256sum -c /scratch/sums > /dev/null",
    )?;
    guest.ok_for(LIMIT, "head -c 3000000 /dev/urandom > /mnt/after && sync")?;
    guest.ok_for(LIMIT, "umount /mnt")?;
    guest.ok_for(LIMIT, &format!("btrfs check {block}"))?;
    Ok(())
}
