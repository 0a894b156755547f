//! `zonelab serve --ftl`: a conventional namespace on zones, as Linux uses one.

pub(crate) mod losses;

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::Guest;

use super::Served;
use crate::ServedCase;
use crate::file_systems::lives_through_mounts;
use crate::killed::{IGNORE_SIGPIPE, PATIENCE, StoreFile};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    (
        "served::ftl::a_conventional_namespace",
        a_conventional_namespace,
    ),
    ("served::ftl::commands_of_nvme_cli", commands_of_nvme_cli),
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
/// One that takes longer.
pub(crate) const PLACEMENTS: &[(&str, ServedCase)] = &[(
    "served::ftl::placements_take_turns_on_a_drive",
    placements_take_turns_on_a_drive,
)];

/// File systems and fio may take as long as that.
const LIMIT: Duration = Duration::from_secs(900);
/// Files that are replaced again and again, and how often before the plug is pulled.
const NAMES: u32 = 8;
const REPLACED: u32 = 20;

/// How many times the kernel sends a request again, which it does at once while it still learns
/// that a connection is gone. On a busy machine its own five are over by then, and the write fails.
fn set_tries(guest: &mut Guest, tries: u8) -> Result<()> {
    guest.ok(&format!(
        "echo {tries} > /sys/module/nvme_core/parameters/max_retries"
    ))?;
    Ok(())
}
/// Those that the kernel has by itself.
const TRIES: u8 = 5;

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

/// What nvme-cli asks and does past the block layer. There is nothing that belongs to zones,
/// and no Format, which would take the blocks from under the layer.
fn commands_of_nvme_cli(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-cli");
    let (served, block) = serve(guest, &file, 0)?;
    let controller = block.trim_end_matches("n1");
    let mut json = |command: &str| -> Result<Value> {
        let text = guest.ok(&format!("nvme {command} -o json"))?;
        serde_json::from_str(&text).context(text)
    };
    let namespace = json(&format!("id-ns {block}"))?;
    let blocks = served.metric("zonelab_ftl_size_bytes")? / 4096;
    for key in ["nsze", "ncap", "nuse"] {
        ensure!(namespace[key] == blocks, "{key}, not {blocks}: {namespace}");
    }
    let of = json(&format!("id-ctrl {controller}"))?;
    let bit = |key: &str, bit: u32| of[key].as_u64().map(|value| value >> bit & 1);
    ensure!(of["nn"] == 1, "one namespace: {of}");
    for (key, number, value) in [
        // Volatile Write Cache; Format NVM.
        ("vwc", 0, 1),
        ("oacs", 1, 0),
        // Compare, Dataset Management, Write Zeroes, Verify, Copy.
        ("oncs", 0, 1),
        ("oncs", 2, 1),
        ("oncs", 3, 1),
        ("oncs", 7, 1),
        ("oncs", 8, 0),
    ] {
        ensure!(bit(key, number) == Some(value), "{key}, {number}: {of}");
    }
    guest.ok(&format!("nvme list-ns {controller} | grep '0x1$'"))?;
    guest.ok(&format!("nvme ns-descs {block} | grep '^csi *: 0$'"))?;
    // Blocks 8 to 15, with one word in all of them.
    guest.ok_for(
        LIMIT,
        &format!(
            "set -e
            yes zonelab | head -c 32768 > /scratch/data
            nvme write {block} -s 8 -c 7 -z 32768 -d /scratch/data
            nvme compare {block} -s 8 -c 7 -z 32768 -d /scratch/data
            nvme verify {block} -s 8 -c 7
            nvme flush {block} -n 1
            nvme write-zeroes {block} -s 8 -c 0
            nvme dsm {block} -n 1 -d -s 9 -b 1
            dd if=/dev/zero of=/scratch/data bs=4096 count=2 conv=notrunc
            nvme read {block} -s 8 -c 7 -z 32768 -d /scratch/read
            cmp /scratch/data /scratch/read"
        ),
    )?;
    for refused in [
        format!("nvme format {controller} -n 1 --force"),
        format!("nvme zns id-ns {block}"),
        format!("nvme zns report-zones {block}"),
        format!("nvme zns reset-zone {block} -s 0"),
        format!("nvme zns zone-append {block} -s 0 -z 4096 -d /scratch/data"),
        format!("nvme copy {block} --sdlba=0 --slbs=8 --blocks=0"),
        format!("nvme read {block} -s {blocks} -c 0 -z 4096 -d /scratch/other"),
    ] {
        guest.fails(&refused)?;
    }
    guest.ok(&format!(
        "nvme compare {block} -s 8 -c 7 -z 32768 -d /scratch/data"
    ))?;
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
/// It fails as soon as anything does, and ends when there is a file `/scratch/stop`.
fn replacing() -> String {
    format!(
        "cd /mnt/kept
        for i in $(seq 2000); do
            k=$((i % {NAMES}))
            yes \"version $i\" | head -c 300000 > new$k && sync new$k || exit 1
            mv new$k $k && sync . || exit 1
            echo $k $i >> /scratch/told
            [ ! -e /scratch/stop ] || exit 0
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
    let pass = |number: &str, more: &str| {
        format!(
            "fio --name=synchronous --filename={block} --rw=randwrite --bs=16k --size=24m \
             --ioengine=psync --direct=1 --sync=1 {} --randseed={number} --allrandrepeat=1 {more}",
            of_pass(format!("$(({number} % 8))"))
        )
    };
    // Writes until it is told to stop, however long the kills take to come, and reads each
    // pass back.
    let passes = format!(
        "{IGNORE_SIGPIPE} pass=0
        until [ -e /scratch/stop ]; do
            pass=$((pass + 1))
            {} || exit 1
            {} || exit 1
        done
        echo $pass > /scratch/passes",
        pass("$pass", "--do_verify=0"),
        pass("$pass", "--verify_only")
    );
    set_tries(guest, u8::MAX)?;
    let writer = guest.spawn(&passes)?;
    for _ in 0..2 {
        let written = "zonelab_ftl_written_bytes_total{purpose=\"host\"}";
        let mut looks = 0..3000;
        while served.metric(written)? < 2 << 20 {
            ensure!(looks.next().is_some(), "nothing is written");
            guest.ok("sleep 0.1")?;
        }
        served.kill()?;
        drop(served);
        guest.ok("sleep 1")?;
        served = file.serve_with(port, &["--ftl", "--no-timing", "--web", "127.0.0.1:0"])?;
    }
    guest.ok("touch /scratch/stop")?;
    let ended = guest.wait(&writer, LIMIT)?;
    ensure!(ended.code == 0, "{ended:?}");
    guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
    let last = format!(
        "pass=$(cat /scratch/passes); {}",
        pass("$pass", "--verify_only")
    );
    guest.ok_for(LIMIT, &last)?;
    set_tries(guest, TRIES)?;
    served.disconnect(guest)
}

/// Options for a drive of 20 zones of 4 MiB.
const fn few_zones() -> [&'static str; 6] {
    [
        "--set",
        "zones.count=20",
        "--set",
        "zones.size=4MiB",
        "--set",
        "zones.capacity=4MiB",
    ]
}

/// Options of fio by which each block says where it is and of which pass, a digit, and of
/// which nothing else is taken. (A checksum is not enough: fio takes a block of an earlier
/// pass for a sound one, if it did not write it itself.)
fn of_pass(pass: impl Display) -> String {
    format!("--verify=pattern --verify_pattern=0x1a2b3c0{pass}%o --verify_interval=4096")
}

/// Linux's fio writes all of it at random, twice, so that the collector has to work, and
/// finds each block as it was written; again from the store.
fn random_writes_are_verified(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-fio");
    // A drive of 20 zones, which two passes write over three times.
    let options = ["--ftl", "--no-timing", "--web", "127.0.0.1:0"];
    let serve = |guest: &mut Guest| -> Result<(Served, String)> {
        let served = file.serve_with(0, &[&options[..], &few_zones()].concat())?;
        let controller = served.connect(guest)?;
        Ok((served, format!("/dev/{controller}n1")))
    };
    let (served, block) = serve(guest)?;
    let fio = |block: &str, seed: u32, more: &str| {
        format!(
            "fio --name=random --filename={block} --rw=randwrite --bs=16k --iodepth=8 \
             --ioengine=libaio --direct=1 --size=100% {} --verify_fatal=1 --randseed={seed} \
             --allrandrepeat=1 --fsync=64 {more}",
            of_pass(seed)
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

/// What queues wrote in one way is there for those that write in another, with other victims
/// and generations, and is collected by them.
fn placements_take_turns_on_a_drive(guest: &mut Guest) -> Result<()> {
    let file = StoreFile::new("ftl-placements");
    let fio = |block: &str, seed: u32, more: &str| {
        format!(
            "fio --name=random --filename={block} --rw=randwrite --bsrange=4k-64k --blockalign=4k \
             --iodepth=16 --ioengine=libaio --direct=1 --size=100% {} --verify_fatal=1 \
             --randseed={seed} --allrandrepeat=1 {more}",
            of_pass(seed)
        )
    };
    for (seed, [placement, victims, generations, map_share]) in (1..).zip([
        ["append", "cost-benefit", "2", "99%"],
        ["shared-append", "d-choices:4", "1", "1%"],
        ["write", "fifo", "3", "99%"],
        ["shared-append", "windowed-greedy:8", "2", "5%"],
    ]) {
        let layer = ["--ftl", "--ftl-placement", placement];
        let policy = ["--ftl-victims", victims, "--ftl-generations", generations];
        let map = ["--ftl-map-share", map_share];
        let rest = ["--no-timing", "--web", "127.0.0.1:0"];
        // Each generation takes a zone of the reserve.
        let zones = ["--set", "zones.count=28", "--ftl-reserved-zones", "7"];
        let options = [&layer[..], &policy, &map, &rest, &few_zones(), &zones].concat();
        let served = file.serve_with(0, &options)?;
        let block = format!("/dev/{}n1", served.connect(guest)?);
        if seed > 1 {
            let found = guest.ok_for(LIMIT, &fio(&block, seed - 1, "--verify_only"));
            found.with_context(|| format!("before {placement}"))?;
        }
        let written = guest.ok_for(LIMIT, &fio(&block, seed, "--do_verify=1"));
        written.with_context(|| format!("{placement}, {victims}, {generations}"))?;
        let collected = served.metric("zonelab_ftl_collected_zones_total")?;
        ensure!(
            seed == 1 || collected >= 3,
            "{placement}: {collected} zones"
        );
        let loaded = served.metric("zonelab_ftl_map_lookups_total{found=\"drive\"}")?;
        ensure!(
            loaded >= 1_000 || map_share == "99%",
            "{map_share}: {loaded} pieces"
        );
        served.disconnect(guest)?;
        served.interrupt()?;
    }
    Ok(())
}
