//! Limits of open and of active zones.

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::drive::{State, Status, refused};
use zonelab_guest_tests::{Drive, Guest};

/// Explicitly open zones are refused beyond the limit; one that a write opened
/// makes room.
pub(crate) fn open_zones(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let limit = u64::from(
        drive
            .max_open
            .context("the drive has no limit of open zones")?,
    );
    let active = u64::from(drive.max_active.context("nor of active ones")?);
    ensure!(limit < active, "the limits cannot be told apart");
    guest.ok(&drive.random(1, "/scratch/data"))?;
    for zone in 0..limit {
        drive.manage(guest, "open-zone", zone)?;
    }
    let write = drive.write(drive.start_lba(limit), 1, "/scratch/data");
    drive.refuses(guest, "open-zone", limit, Status::TOO_MANY_OPEN)?;
    refused(guest, &write, Status::TOO_MANY_OPEN)?;
    drive.expect(guest, limit, State::Empty)?;
    drive.manage(guest, "close-zone", 0)?;
    guest.ok(&write)?;
    drive.expect(guest, limit, State::ImplicitlyOpen)?;
    // The drive closes the zone that was opened by the write.
    drive.manage(guest, "open-zone", 0)?;
    drive.expect(guest, 0, State::ExplicitlyOpen)?;
    drive.expect(guest, limit, State::Closed)?;
    drive.reset_all(guest)
}

/// Zones that writes open are closed by the drive up to the limit of active
/// zones, and refused beyond it.
pub(crate) fn active_zones(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let limit = u64::from(
        drive
            .max_active
            .context("the drive has no limit of active zones")?,
    );
    guest.ok(&drive.random(1, "/scratch/data"))?;
    for zone in 0..limit {
        guest.ok(&drive.write(drive.start_lba(zone), 1, "/scratch/data"))?;
    }
    let start = drive.start_lba(limit);
    refused(
        guest,
        &drive.write(start, 1, "/scratch/data"),
        Status::TOO_MANY_ACTIVE,
    )?;
    refused(
        guest,
        &drive.append(start, 1, "/scratch/data"),
        Status::TOO_MANY_ACTIVE,
    )?;
    drive.refuses(guest, "open-zone", limit, Status::TOO_MANY_ACTIVE)?;
    drive.expect(guest, limit, State::Empty)?;
    let states = drive.report(guest, 0, limit)?;
    let open = states
        .iter()
        .filter(|zone| zone.state == State::ImplicitlyOpen)
        .count();
    let closed = states
        .iter()
        .filter(|zone| zone.state == State::Closed)
        .count();
    ensure!(open + closed == states.len(), "{states:?}");
    if let Some(most) = drive.max_open {
        ensure!(open <= usize::try_from(most)?, "{open} zones are open");
    }
    // A zone that is no longer active makes room.
    drive.manage(guest, "finish-zone", 0)?;
    guest.ok(&drive.write(start, 1, "/scratch/data"))?;
    drive.reset_all(guest)
}
