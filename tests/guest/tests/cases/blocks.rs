//! Reads, writes and appends past the block layer, with their errors.

use anyhow::{Result, ensure};
use zonelab_guest_tests::drive::{State, Status, refused};
use zonelab_guest_tests::{Drive, Guest};

/// Appends tell where they went, in turn, and hold what was sent.
pub(crate) fn append_says_where(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let start = drive.start_lba(7);
    guest.ok(&drive.random(3, "/scratch/data"))?;
    for turn in 0..3 {
        let lba = start + 3 * turn;
        let text = guest.ok(&drive.append(start, 3, "/scratch/data"))?;
        ensure!(
            text.contains(&format!("LBA {lba:x}")),
            "not at {lba:#x}: {text}"
        );
        guest.ok(&drive.read(lba, 3, "/scratch/back"))?;
        guest.ok("cmp /scratch/data /scratch/back")?;
    }
    drive.expect(guest, 7, State::ImplicitlyOpen)?;
    // Not the first block of a zone.
    refused(
        guest,
        &drive.append(start + 1, 1, "/scratch/data"),
        Status::INVALID_FIELD,
    )?;
    drive.manage(guest, "finish-zone", 7)?;
    refused(
        guest,
        &drive.append(start, 1, "/scratch/data"),
        Status::ZONE_FULL,
    )?;
    drive.reset_all(guest)
}

/// Writes go to the write pointer and nowhere else.
pub(crate) fn write_pointer(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let start = drive.start_lba(2);
    guest.ok(&drive.random(4, "/scratch/data"))?;
    refused(
        guest,
        &drive.write(start + 1, 1, "/scratch/data"),
        Status::ZONE_INVALID_WRITE,
    )?;
    drive.expect(guest, 2, State::Empty)?;
    guest.ok(&drive.write(start, 4, "/scratch/data"))?;
    for lba in [start, start + 3, start + 5] {
        refused(
            guest,
            &drive.write(lba, 1, "/scratch/data"),
            Status::ZONE_INVALID_WRITE,
        )?;
    }
    let zone = drive.expect(guest, 2, State::ImplicitlyOpen)?;
    ensure!(zone.write_pointer_lba == start + 4, "{zone:?}");
    guest.ok(&drive.read(start, 4, "/scratch/back"))?;
    guest.ok("cmp /scratch/data /scratch/back")?;
    drive.manage(guest, "finish-zone", 2)?;
    refused(
        guest,
        &drive.write(start + 4, 1, "/scratch/data"),
        Status::ZONE_FULL,
    )?;
    // What was written stays readable in a full zone, and goes with a reset.
    guest.ok(&drive.read(start, 4, "/scratch/back"))?;
    guest.ok("cmp /scratch/data /scratch/back")?;
    drive.manage(guest, "reset-zone", 2)?;
    drive.expect(guest, 2, State::Empty)?;
    drive.reset_all(guest)
}

/// A zone that is written to its end: no write and no append goes past it.
pub(crate) fn end_of_a_zone(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let zone = drive.zone(guest, 1)?;
    let last = zone.start_lba + zone.capacity_lbas - 1;
    let (device, block) = (drive.block(), drive.lba_bytes);
    // All but the last block through the block layer: large writes first.
    let blocks = zone.capacity_lbas - 1;
    let large = (1 << 20) / block;
    let (many, rest) = (blocks / large, blocks % large);
    let at = drive.start_byte(1);
    guest.ok(&format!(
        "dd if=/dev/urandom of={device} bs=1M count={many} oflag=direct seek={}",
        at >> 20
    ))?;
    guest.ok(&format!(
        "dd if=/dev/urandom of={device} bs={block} count={rest} oflag=direct seek={}",
        at / block + many * large
    ))?;
    let written = drive.expect(guest, 1, State::ImplicitlyOpen)?;
    ensure!(written.write_pointer_lba == last, "{written:?}");
    guest.ok(&drive.random(2, "/scratch/data"))?;
    refused(
        guest,
        &drive.write(last, 2, "/scratch/data"),
        Status::ZONE_BOUNDARY,
    )?;
    refused(
        guest,
        &drive.append(zone.start_lba, 2, "/scratch/data"),
        Status::ZONE_BOUNDARY,
    )?;
    guest.ok(&drive.append(zone.start_lba, 1, "/scratch/data"))?;
    drive.expect(guest, 1, State::Full)?;
    drive.expect(guest, 2, State::Empty)?;
    guest.ok(&format!(
        "{}; cmp -n {block} /scratch/data /scratch/back",
        drive.read(last, 1, "/scratch/back")
    ))?;
    drive.reset_all(guest)
}
