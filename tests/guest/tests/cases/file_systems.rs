//! File systems on zones: make, mount, write, unmount, mount, compare.

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest};

const LIMIT: Duration = Duration::from_secs(900);

/// Large and small files, one that is removed, and one that is written over,
/// so that the file system leaves holes in its zones.
pub(crate) const FILL: &str = "set -e
cd /mnt
dd if=/dev/urandom of=large bs=1M count=40
dd if=/dev/urandom of=removed bs=1M count=20
mkdir small
for i in $(seq 100); do head -c $((i * 321)) /dev/urandom > small/$i; done
sync
rm removed
dd if=/dev/urandom of=large bs=64k seek=100 count=50 conv=notrunc
find . -type f | sort | xargs sha256sum > /scratch/sums
sync";

/// F2FS, with its metadata in the conventional namespace.
pub(crate) fn f2fs(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let (zoned, conventional) = (drive.block(), drive.conventional()?);
    guest.ok_for(LIMIT, &format!("mkfs.f2fs -f -m -c {zoned} {conventional}"))?;
    lives_through_mounts(guest, "f2fs", &conventional)?;
    guest.ok_for(LIMIT, &format!("fsck.f2fs {conventional}"))?;
    drive.reset_all(guest)
}

/// Makes a Btrfs in its zoned mode.
pub(crate) fn make_btrfs(guest: &mut Guest, device: &str) -> Result<()> {
    let make = format!("mkfs.btrfs -f -O zoned -d single -m single {device}");
    guest.ok_for(LIMIT, &make).map(drop)
}

/// Mounts a Btrfs at /mnt.
pub(crate) fn mount_btrfs(guest: &mut Guest, device: &str) -> Result<()> {
    let mount = format!("modprobe btrfs; mount -t btrfs {device} /mnt");
    guest.ok_for(LIMIT, &mount).map(drop)
}

/// Btrfs in its zoned mode.
pub(crate) fn btrfs(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let device = drive.block();
    make_btrfs(guest, &device)?;
    lives_through_mounts(guest, "btrfs", &device)?;
    guest.ok_for(LIMIT, &format!("btrfs check {device}"))?;
    drive.reset_all(guest)
}

/// Mounts it, fills it, and mounts it twice more, with the files as they were.
pub(crate) fn lives_through_mounts(guest: &mut Guest, system: &str, device: &str) -> Result<()> {
    let mount = format!("modprobe {system}; mount -t {system} {device} /mnt");
    guest.ok_for(LIMIT, &mount)?;
    guest.ok_for(LIMIT, FILL)?;
    let compare = "cd /mnt && sha256sum -c /scratch/sums > /scratch/compared && [ ! -e removed ]";
    for turn in 0..2 {
        guest.ok_for(LIMIT, "umount /mnt")?;
        // The block layer must not answer from memory.
        guest.ok("echo 3 > /proc/sys/vm/drop_caches")?;
        guest.ok_for(LIMIT, &mount)?;
        guest.ok_for(LIMIT, compare)?;
        let script = "head -c 3000000 /dev/urandom > /mnt/turn";
        guest.ok_for(LIMIT, &format!("{script}{turn} && sync"))?;
    }
    guest.ok_for(LIMIT, "umount /mnt")?;
    Ok(())
}

/// zonefs: a file for each zone, of the size that is written.
pub(crate) fn zonefs(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let device = drive.block();
    let block = drive.lba_bytes;
    let super_block = BASE64.encode(zonefs_super_block());
    guest.ok(&format!("echo {super_block} | base64 -d > /scratch/super"))?;
    guest.ok(&format!(
        "dd if=/scratch/super of={device} bs=4096 oflag=direct"
    ))?;
    let mount = format!("modprobe zonefs; mount -t zonefs {device} /mnt");
    guest.ok(&mount)?;
    let files = guest.ok("ls /mnt/seq | wc -l")?;
    // The first zone holds the super block.
    ensure!(
        files.trim() == (drive.zones - 1).to_string(),
        "{files} files"
    );
    let blocks = 64;
    guest.ok(&drive.random(blocks, "/scratch/data"))?;
    let append = "dd if=/scratch/data of=/mnt/seq/5 conv=notrunc oflag=direct,append";
    guest.ok(&format!("{append} bs={block}"))?;
    // Twice as much, in two larger writes.
    guest.ok(&format!("{append} bs={}", blocks / 2 * block))?;
    let zone = drive
        .expect(guest, 6, State::Closed)
        .or_else(|_| drive.zone(guest, 6))?;
    ensure!(
        zone.write_pointer_lba == zone.start_lba + 2 * blocks,
        "{zone:?}"
    );
    // Elsewhere than at the end.
    guest.fails(&format!(
        "dd if=/scratch/data of=/mnt/seq/5 bs={block} count=1 conv=notrunc oflag=direct"
    ))?;
    guest.ok("umount /mnt && echo 3 > /proc/sys/vm/drop_caches")?;
    guest.ok(&mount)?;
    let size = guest.ok("stat -c %s /mnt/seq/5")?;
    ensure!(
        size.trim() == (2 * blocks * block).to_string(),
        "{size} bytes"
    );
    guest.ok("cat /scratch/data /scratch/data | cmp - /mnt/seq/5")?;
    // Truncation to nothing resets the zone, to its length finishes it.
    guest.ok("truncate -s 0 /mnt/seq/5")?;
    drive.expect(guest, 6, State::Empty)?;
    guest.ok("truncate -s $(($(stat -c %b /mnt/seq/6) * 512)) /mnt/seq/6")?;
    drive.expect(guest, 7, State::Full)?;
    guest.ok("umount /mnt")?;
    drive.reset_all(guest)
}

/// What mkzonefs would write, which the distribution has not (fs/zonefs/zonefs.h
/// of the kernel): magic, checksum, label, UUID, features, owner, permissions.
fn zonefs_super_block() -> Vec<u8> {
    let mut block = vec![0; 4096];
    block[0..4].copy_from_slice(b"SFOZ");
    block[72..88].copy_from_slice(b"zonelab guest 01");
    // The checksum is taken with its own field at zero, and not inverted at the end.
    let checksum = !crc32fast::hash(&block);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
    block
}
