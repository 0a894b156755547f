//! `zonelab serve --ftl`: a conventional namespace on zones, as Linux uses one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::Guest;

use super::Served;
use crate::ServedCase;
use crate::file_systems::lives_through_mounts;
use crate::killed::{PATIENCE, StoreFile};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    (
        "served::ftl::a_conventional_namespace",
        a_conventional_namespace,
    ),
    ("served::ftl::ext4", |guest| through_mounts(guest, &EXT4)),
    ("served::ftl::xfs", |guest| through_mounts(guest, &XFS)),
    ("served::ftl::ext4_and_the_plug_is_pulled", |guest| {
        plug_pulled(guest, &EXT4)
    }),
    ("served::ftl::xfs_and_the_plug_is_pulled", |guest| {
        plug_pulled(guest, &XFS)
    }),
    (
        "served::ftl::synchronous_writes_while_it_is_killed",
        synchronous_writes_while_it_is_killed,
    ),
    (
        "served::ftl::random_writes_are_verified",
        random_writes_are_verified,
    ),
];

/// File systems and fio may take as long as that.
const LIMIT: Duration = Duration::from_secs(300);
/// Files that are replaced again and again, and how often before the plug is pulled.
const NAMES: u32 = 8;
const REPLACED: u32 = 20;

/// A file system for drives without zones.
struct System {
    name: &'static str,
    make: &'static str,
    /// Finds what is wrong, and mends nothing.
    check: &'static str,
}

const EXT4: System = System {
    name: "ext4",
    make: "mkfs.ext4 -q -F",
    check: "fsck.ext4 -f -n",
};
const XFS: System = System {
    name: "xfs",
    make: "mkfs.xfs -q -f",
    check: "xfs_repair -n",
};

/// A drive in a file that is served with the layer, and its block device in the guest.
fn serve(guest: &mut Guest, file: &StoreFile, port: u64) -> Result<(Served, String)> {
    let served = file.serve_with(port, &["--ftl", "--no-timing", "--web", "127.0.0.1:0"])?;
    let controller = served.connect_with(guest, PATIENCE)?;
    Ok((served, format!("/dev/{controller}n1")))
}

/// It has no zones, a volatile write cache that honours FUA, and gives back what is
/// deallocated.
fn a_conventional_namespace(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-seen");
    let (served, block) = serve(guest, &file, 0)?;
    let name = block.trim_start_matches("/dev/");
    for (key, value) in [
        ("zoned", "none"),
        ("write_cache", "write back"),
        ("fua", "1"),
        ("logical_block_size", "4096"),
    ] {
        let found = guest.ok(&format!("cat /sys/block/{name}/queue/{key}"))?;
        ensure!(found.trim() == value, "{key} is {found}");
    }
    let most = guest.ok(&format!("cat /sys/block/{name}/queue/discard_max_bytes"))?;
    ensure!(most.trim() != "0", "nothing can be discarded");
    let size = guest.ok(&format!("cat /sys/block/{name}/size"))?;
    let size: u64 = size.trim().parse().context("a size in sectors")?;
    ensure!(
        served.metric("zonelab_ftl_size_bytes")? == size * 512,
        "{size} sectors"
    );
    // Backwards, which no zone takes, then without the middle.
    guest.ok("head -c 1048576 /dev/urandom > /scratch/data")?;
    guest.ok_for(
        LIMIT,
        &format!(
            "set -e
            for i in $(seq 15 -1 0); do
                dd if=/scratch/data of={block} bs=64k skip=$i seek=$i count=1 oflag=direct
            done
            dd if={block} of=/scratch/read bs=64k count=16 iflag=direct
            cmp /scratch/data /scratch/read
            blkdiscard -o 262144 -l 524288 {block}
            dd if=/dev/zero of=/scratch/data bs=64k seek=4 count=8 conv=notrunc
            dd if={block} of=/scratch/read bs=64k count=16 iflag=direct
            cmp /scratch/data /scratch/read"
        ),
    )?;
    ensure!(served.metric("zonelab_ftl_trimmed_bytes_total")? >= 524_288);
    served.disconnect(guest)
}

/// Made, mounted and filled; then the server is switched off, and serves it again.
fn through_mounts(guest: &mut Guest, system: &System) -> Result<()> {
    let file = StoreFile::new(system.name);
    let (served, block) = serve(guest, &file, 0)?;
    guest.ok_for(LIMIT, &format!("{} {block}", system.make))?;
    lives_through_mounts(guest, system.name, &block)?;
    served.disconnect(guest)?;
    served.interrupt()?;
    let (served, block) = serve(guest, &file, 0)?;
    guest.ok_for(LIMIT, &format!("{} {block}", system.check))?;
    guest.ok(&format!("mount -t {} {block} /mnt", system.name))?;
    guest.ok_for(
        LIMIT,
        "cd /mnt && sha256sum -c /scratch/sums > /scratch/compared",
    )?;
    guest.ok("umount /mnt")?;
    served.disconnect(guest)
}

/// Files are replaced in the way that editors and databases do: written beside, synchronised,
/// renamed, and the directory synchronised. Each of its lines says which version a file is.
fn replacing() -> String {
    format!(
        "cd /mnt/kept
        for i in $(seq 2000); do
            k=$((i % {NAMES}))
            yes \"version $i\" | head -c 300000 > new$k && sync new$k || exit 0
            mv new$k $k && sync . || exit 0
            echo $k $i >> /scratch/told
        done"
    )
}

/// Every file is of the version that was synchronised last, or of a later one, and whole.
fn kept() -> String {
    format!(
        "set -e
        for k in $(seq 0 {}); do
            told=$(grep \"^$k \" /scratch/told | tail -n 1 | cut -d ' ' -f 2)
            found=$(head -n 1 /mnt/kept/$k | cut -d ' ' -f 2)
            echo \"$k: $told was synchronised, $found is there\"
            [ \"$found\" -ge \"$told\" ]
            yes \"version $found\" | head -c 300000 | cmp - /mnt/kept/$k
        done",
        NAMES - 1
    )
}

/// The server is killed, and the host forgets the drive, as when both lose power. What was
/// synchronised is there afterwards, and the file system is sound.
fn plug_pulled(guest: &mut Guest, system: &System) -> Result<()> {
    let file = StoreFile::new(&format!("plug-{}", system.name));
    let (mut served, mut block) = serve(guest, &file, 0)?;
    guest.ok_for(LIMIT, &format!("{} {block}", system.make))?;
    let mount = format!("modprobe {0}; mount -t {0}", system.name);
    guest.ok_for(LIMIT, &format!("{mount} {block} /mnt && mkdir /mnt/kept"))?;
    for turn in 0..2 {
        guest.ok("rm -f /scratch/told")?;
        let writer = guest.spawn(&replacing())?;
        let many = format!(
            "until [ \"$(cat /scratch/told 2> /dev/null | wc -l)\" -ge {REPLACED} ]; do sleep 0.1; done"
        );
        guest.ok_for(LIMIT, &many)?;
        served.kill()?;
        served.disconnect(guest)?;
        guest.wait(&writer, LIMIT)?;
        guest.ok_for(LIMIT, "umount /mnt")?;
        drop(served);
        (served, block) = serve(guest, &file, 0)?;
        // The journal of the file system is replayed by a mount.
        guest.ok_for(LIMIT, &format!("{mount} {block} /mnt"))?;
        let compared = guest.ok_for(LIMIT, &kept());
        compared.with_context(|| format!("turn {turn}"))?;
        guest.ok_for(LIMIT, "umount /mnt")?;
        guest.ok_for(LIMIT, &format!("{} {block}", system.check))?;
        guest.ok_for(LIMIT, &format!("{mount} {block} /mnt"))?;
    }
    guest.ok_for(LIMIT, "umount /mnt")?;
    served.disconnect(guest)
}

/// The kernel goes on when the server is back, and finds every write that was acknowledged
/// as durable. (Each is one command, with FUA. What is written first and flushed later can be
/// lost between the two, and the flush succeeds on a server that never had the write.)
fn synchronous_writes_while_it_is_killed(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-dsync");
    let (mut served, block) = serve(guest, &file, 0)?;
    let port = served.port();
    let fio = |more: &str| {
        format!(
            "fio --name=synchronous --filename={block} --rw=randwrite --bs=16k --size=24m \
             --ioengine=psync --direct=1 --sync=1 --verify=crc32c --randseed=5 \
             --allrandrepeat=1 {more}"
        )
    };
    let writer = guest.spawn(&fio("--do_verify=0"))?;
    for _ in 0..2 {
        let written = "zonelab_ftl_written_bytes_total{purpose=\"host\"}";
        let mut looks = 0..600;
        while served.metric(written)? < 2 << 20 {
            ensure!(looks.next().is_some(), "nothing is written");
            guest.ok("sleep 0.1")?;
        }
        served.kill()?;
        drop(served);
        guest.ok("sleep 1")?;
        served = file.serve_with(port, &["--ftl", "--no-timing", "--web", "127.0.0.1:0"])?;
    }
    let ended = guest.wait(&writer, LIMIT)?;
    ensure!(ended.code == 0, "{ended:?}");
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    guest.ok_for(LIMIT, &fio("--verify_only"))?;
    served.disconnect(guest)
}

/// Linux's fio writes all of it at random, twice, so that the collector has to work, and
/// finds each block as it was written; again from the store.
fn random_writes_are_verified(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-fio");
    // A drive of 20 zones, which two passes write over three times.
    let options = ["--ftl", "--no-timing", "--web", "127.0.0.1:0"];
    let few = ["--set", "zones.count=20", "--set", "zones.size=4MiB"];
    let few = [&few[..], &["--set", "zones.capacity=4MiB"]].concat();
    let serve = |guest: &mut Guest| -> Result<(Served, String)> {
        let served = file.serve_with(0, &[&options[..], &few].concat())?;
        let controller = served.connect(guest)?;
        Ok((served, format!("/dev/{controller}n1")))
    };
    let (served, block) = serve(guest)?;
    let fio = |block: &str, seed: u32, more: &str| {
        format!(
            "fio --name=random --filename={block} --rw=randwrite --bs=16k --iodepth=8 \
             --ioengine=libaio --direct=1 --size=100% --verify=crc32c --verify_fatal=1 \
             --randseed={seed} --allrandrepeat=1 --fsync=64 {more}"
        )
    };
    for seed in 1..=3 {
        guest.ok_for(LIMIT, &fio(&block, seed, "--do_verify=1"))?;
    }
    let collected = served.metric("zonelab_ftl_collected_zones_total")?;
    ensure!(collected >= 10, "{collected} zones were collected");
    served.disconnect(guest)?;
    served.interrupt()?;
    let (served, block) = serve(guest)?;
    guest.ok_for(LIMIT, &fio(&block, 3, "--verify_only"))?;
    served.disconnect(guest)
}
