//! fio in its zoned mode. What it wrote is verified by jobs that read: fio
//! resets zones even if it is told to verify only.

use std::time::Duration;

use anyhow::{Result, ensure};
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest};

const LIMIT: Duration = Duration::from_secs(900);

/// Sequential writes with several in flight, read back and verified.
pub(crate) fn sequential(guest: &mut Guest, drive: &Drive) -> Result<()> {
    write_and_verify(guest, drive, "write", "64k", 3)
}

/// Writes that wander over zones, as many as may be open.
pub(crate) fn many_zones(guest: &mut Guest, drive: &Drive) -> Result<()> {
    write_and_verify(guest, drive, "randwrite", "16k", 6)
}

fn write_and_verify(
    guest: &mut Guest,
    drive: &Drive,
    pattern: &str,
    block: &str,
    zones: u64,
) -> Result<()> {
    let open = drive.max_open.map_or(8, |most| most.min(8));
    let size = drive.start_byte(zones);
    let common = format!(
        "fio --name=guest --filename={} --direct=1 --ioengine=libaio --iodepth=8 --zonemode=zbd \
         --max_open_zones={open} --size={size} --bs={block} --randseed=7 --verify=crc32c \
         --minimal",
        drive.block()
    );
    guest.ok_for(LIMIT, &format!("{common} --rw={pattern} --do_verify=0"))?;
    for (index, zone) in drive.report(guest, 0, zones)?.iter().enumerate() {
        let is_written = zone.state != State::Empty;
        ensure!(is_written, "fio did not write zone {index}: {zone:?}");
    }
    guest.ok_for(LIMIT, &format!("{common} --rw=read"))?;
    drive.reset_all(guest)
}
