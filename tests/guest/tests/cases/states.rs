//! States of zones, by each way to change and to see them.

use anyhow::{Context, Result, ensure};
use zonelab_guest_tests::drive::{State, Status};
use zonelab_guest_tests::{Drive, Guest};

/// The block layer has the limits that the drive identifies, and nvme-cli,
/// blkzone and zbd see the same zones.
pub(crate) fn block_layer_and_tools_agree(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let limit = |limit: Option<u32>| limit.unwrap_or(0).to_string();
    for (file, expected) in [
        ("zoned", "host-managed".to_owned()),
        ("nr_zones", drive.zones.to_string()),
        ("max_open_zones", limit(drive.max_open)),
        ("max_active_zones", limit(drive.max_active)),
        ("chunk_sectors", drive.sectors(0).1.to_string()),
        ("logical_block_size", drive.lba_bytes.to_string()),
    ] {
        let value = drive.queue(guest, file)?;
        ensure!(value == expected, "{file} is {value}, not {expected}");
    }
    // One zone in each state that a command leads to.
    drive.manage(guest, "open-zone", 1)?;
    drive.manage(guest, "open-zone", 2)?;
    drive.manage(guest, "close-zone", 2)?;
    drive.manage(guest, "finish-zone", 3)?;
    guest.ok(&drive.random(2, "/scratch/data"))?;
    guest.ok(&drive.write(drive.start_lba(4), 2, "/scratch/data"))?;
    let states: Vec<State> = drive
        .report(guest, 0, 5)?
        .iter()
        .map(|zone| zone.state)
        .collect();
    let expected = [
        State::Empty,
        State::ExplicitlyOpen,
        State::Closed,
        State::Full,
        State::ImplicitlyOpen,
    ];
    ensure!(states == expected, "{states:?}");
    let seen_by_blkzone = blkzone(guest, drive)?;
    let seen_by_zbd = zbd(guest, drive)?;
    for (index, zone) in drive.report(guest, 0, drive.zones)?.iter().enumerate() {
        let offset = match zone.state {
            State::Full => None,
            _ => Some((zone.write_pointer_lba - zone.start_lba) * drive.lba_bytes),
        };
        let capacity = zone.capacity_lbas * drive.lba_bytes;
        let expected = (zone.state.block_layer_code(), offset, capacity);
        for (program, seen) in [("blkzone", &seen_by_blkzone), ("zbd", &seen_by_zbd)] {
            let seen = seen.get(index);
            ensure!(
                seen == Some(&expected),
                "{program} sees {seen:?} of zone {index}: {zone:?}"
            );
        }
    }
    drive.reset_all(guest)
}

/// State, bytes written unless the zone is full, bytes of capacity.
type Seen = (u32, Option<u64>, u64);

/// Zones by `blkzone report`.
fn blkzone(guest: &mut Guest, drive: &Drive) -> Result<Vec<Seen>> {
    let text = guest.ok(&format!("blkzone report {}", drive.block()))?;
    let zone = |line: &str| -> Option<Seen> {
        let hex = |name: &str| {
            let (_, rest) = line.split_once(name)?;
            let digits = rest.strip_prefix(" 0x")?;
            u64::from_str_radix(digits.split([',', ' ']).next()?, 16).ok()
        };
        let (_, condition) = line.split_once("zcond:")?;
        let state = condition.split('(').next()?.trim().parse().ok()?;
        let offset = (state != State::Full.block_layer_code()).then_some(hex("wptr")? * 512);
        Some((state, offset, hex("cap")? * 512))
    };
    text.lines()
        .map(|line| zone(line).with_context(|| format!("blkzone says {line}")))
        .collect()
}

/// Zones by `zbd report`.
fn zbd(guest: &mut Guest, drive: &Drive) -> Result<Vec<Seen>> {
    let text = guest.ok(&format!("zbd report -csv {}", drive.block()))?;
    let zone = |line: &str| -> Option<Seen> {
        let fields: Vec<&str> = line.split(", ").collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let state = u32::from_str_radix(fields.get(6)?.strip_prefix("0x")?, 16).ok()?;
        // libzbd gives an empty zone no write pointer of its own.
        let offset = match state {
            0x1 => Some(0),
            0xe => None,
            _ => Some(number(5)? - number(2)?),
        };
        Some((state, offset, number(4)?))
    };
    let lines = text.lines().filter(|line| !line.starts_with("zone num"));
    lines
        .map(|line| zone(line).with_context(|| format!("zbd says {line}")))
        .collect()
}

/// Open, close, finish and reset of one zone, from each state that allows it.
pub(crate) fn by_actions(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let zone = 3;
    let start = drive.start_lba(zone);
    guest.ok(&drive.random(1, "/scratch/data"))?;
    for (action, state) in [
        ("open-zone", State::ExplicitlyOpen),
        // A second time is no change.
        ("open-zone", State::ExplicitlyOpen),
        ("close-zone", State::Closed),
        ("close-zone", State::Closed),
        ("open-zone", State::ExplicitlyOpen),
        ("reset-zone", State::Empty),
        ("reset-zone", State::Empty),
        ("finish-zone", State::Full),
        ("finish-zone", State::Full),
        ("reset-zone", State::Empty),
    ] {
        drive.manage(guest, action, zone)?;
        drive.expect(guest, zone, state)?;
    }
    guest.ok(&drive.write(start, 1, "/scratch/data"))?;
    let written = drive.expect(guest, zone, State::ImplicitlyOpen)?;
    ensure!(written.write_pointer_lba == start + 1, "{written:?}");
    drive.manage(guest, "close-zone", zone)?;
    drive.expect(guest, zone, State::Closed)?;
    guest.ok(&drive.write(start + 1, 1, "/scratch/data"))?;
    drive.expect(guest, zone, State::ImplicitlyOpen)?;
    drive.manage(guest, "open-zone", zone)?;
    let opened = drive.expect(guest, zone, State::ExplicitlyOpen)?;
    ensure!(opened.write_pointer_lba == start + 2, "{opened:?}");
    drive.manage(guest, "finish-zone", zone)?;
    drive.expect(guest, zone, State::Full)?;
    drive.manage(guest, "reset-zone", zone)?;
    let reset = drive.expect(guest, zone, State::Empty)?;
    ensure!(reset.write_pointer_lba == start, "{reset:?}");
    // Its neighbours saw nothing of it.
    for neighbour in [zone - 1, zone + 1] {
        drive.expect(guest, neighbour, State::Empty)?;
    }
    Ok(())
}

/// Actions with the bit that selects all zones.
pub(crate) fn by_actions_on_all(guest: &mut Guest, drive: &Drive) -> Result<()> {
    guest.ok(&drive.random(1, "/scratch/data"))?;
    drive.manage(guest, "open-zone", 0)?;
    guest.ok(&drive.write(drive.start_lba(1), 1, "/scratch/data"))?;
    drive.manage(guest, "finish-zone", 2)?;
    let states = |guest: &mut Guest| -> Result<Vec<State>> {
        Ok(drive
            .report(guest, 0, 4)?
            .iter()
            .map(|zone| zone.state)
            .collect())
    };
    for (action, expected) in [
        (
            "close-zone",
            [State::Closed, State::Closed, State::Full, State::Empty],
        ),
        (
            "open-zone",
            [
                State::ExplicitlyOpen,
                State::ExplicitlyOpen,
                State::Full,
                State::Empty,
            ],
        ),
        (
            "finish-zone",
            [State::Full, State::Full, State::Full, State::Empty],
        ),
        ("reset-zone", [State::Empty; 4]),
    ] {
        drive.manage_all(guest, action)?;
        let states = states(guest)?;
        ensure!(states == expected, "after {action} of all: {states:?}");
    }
    Ok(())
}

/// Open, close, finish and reset by blkzone and zbd.
pub(crate) fn by_the_block_layer(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let device = drive.block();
    let (start, length) = drive.sectors(5);
    let (offset, bytes) = (drive.start_byte(6), drive.zone_lbas * drive.lba_bytes);
    for (action, state) in [
        ("open", State::ExplicitlyOpen),
        ("close", State::Closed),
        ("finish", State::Full),
        ("reset", State::Empty),
    ] {
        guest.ok(&format!("blkzone {action} -o {start} -l {length} {device}"))?;
        drive.expect(guest, 5, state)?;
        guest.ok(&format!(
            "zbd {action} -ofst {offset} -len {bytes} {device}"
        ))?;
        drive.expect(guest, 6, state)?;
    }
    Ok(())
}

/// Actions that the state of a zone does not allow.
pub(crate) fn refused_transitions(guest: &mut Guest, drive: &Drive) -> Result<()> {
    let refused = Status::INVALID_TRANSITION;
    drive.refuses(guest, "close-zone", 0, refused)?;
    drive.refuses(guest, "offline-zone", 0, refused)?;
    drive.expect(guest, 0, State::Empty)?;
    drive.manage(guest, "finish-zone", 0)?;
    drive.refuses(guest, "close-zone", 0, refused)?;
    drive.refuses(guest, "open-zone", 0, refused)?;
    drive.refuses(guest, "offline-zone", 0, refused)?;
    drive.expect(guest, 0, State::Full)?;
    drive.manage(guest, "open-zone", 1)?;
    drive.refuses(guest, "offline-zone", 1, refused)?;
    drive.expect(guest, 1, State::ExplicitlyOpen)?;
    drive.reset_all(guest)
}

/// Reports of the zones in one state.
pub(crate) fn filters_of_reports(guest: &mut Guest, drive: &Drive) -> Result<()> {
    guest.ok(&drive.random(1, "/scratch/data"))?;
    drive.manage(guest, "finish-zone", 1)?;
    drive.manage(guest, "finish-zone", 4)?;
    drive.manage(guest, "open-zone", 2)?;
    drive.manage(guest, "open-zone", 3)?;
    drive.manage(guest, "close-zone", 3)?;
    guest.ok(&drive.write(drive.start_lba(5), 1, "/scratch/data"))?;
    // Codes of the report's filter, as nvme-cli takes them.
    for (filter, expected) in [
        (1, drive.zones - 5),
        (2, 1),
        (3, 1),
        (4, 1),
        (5, 2),
        (6, 0),
        (7, 0),
    ] {
        let script = format!("nvme zns report-zones {} -S {filter} -p", drive.generic());
        let text = guest.ok(&script)?;
        let listed = text
            .lines()
            .filter(|line| line.starts_with("SLBA:"))
            .count();
        let count = format!("nr_zones: {expected}");
        ensure!(
            text.lines().any(|line| line == count),
            "filter {filter}: not {count}\n{text}"
        );
        ensure!(
            u64::try_from(listed)? == expected,
            "filter {filter}:\n{text}"
        );
    }
    drive.reset_all(guest)
}
