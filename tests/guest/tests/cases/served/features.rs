//! What nvme-cli and Linux see of the rarer features.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::drive::{State, Status, refused};
use zonelab_guest_tests::{Drive, Guest};

use super::Served;
use super::faults::BESIDE;
use crate::{ServedCase, file_systems, workload};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    ("served::features::zrwa", zrwa),
    (
        "served::features::descriptor_extension",
        descriptor_extension,
    ),
    ("served::features::copy", copy),
    ("served::features::compare_and_verify", compare_and_verify),
    ("served::features::zeroes", zeroes),
    ("served::features::deallocate", deallocate),
    ("served::features::format", format),
    ("served::features::conventional_beside", conventional_beside),
    ("served::features::capacity_below_size", capacity_below_size),
    ("served::features::thin", thin),
];

/// Serves a drive with settings of its own, and runs a case on it.
fn on(
    guest: &mut Guest,
    settings: &[&str],
    case: impl FnOnce(&mut Guest, &str, &Drive) -> Result<()>,
) -> Result<()> {
    let mut options = Vec::new();
    for setting in settings {
        options.extend(["--set", setting]);
    }
    let served = Served::start_with(&options)?;
    let controller = served.connect(guest)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    case(guest, &controller, &drive)?;
    served.disconnect(guest)
}

/// Blocks of a random write area are written in any order, and again.
fn zrwa(guest: &mut Guest) -> Result<()> {
    let area = [
        "zones.zrwa.size=64KiB",
        "zones.zrwa.flush_granularity=16KiB",
        "zones.zrwa.count=2",
    ];
    on(guest, &area, |guest, _, drive| {
        let device = drive.generic();
        let identify = guest.ok(&format!("nvme zns id-ns {device} -o json"))?;
        let identify: Value = serde_json::from_str(&identify)?;
        for (key, value) in [("numzrwa", 1), ("zrwafg", 4), ("zrwasz", 16)] {
            ensure!(identify[key] == value, "{key}: {identify}");
        }
        let open = |zone: u64| {
            let slba = drive.start_lba(zone);
            format!("nvme zns open-zone {device} -s {slba} --zrwaa")
        };
        guest.ok(&open(0))?;
        guest.ok(&open(1))?;
        let text = guest.fails(&open(2))?;
        let status = Status::parse(&text).context(text)?;
        // ZRWA Resources Unavailable.
        ensure!(status.code == 0x1b7, "{status:x?}");
        guest.ok(&drive.random(4, "/scratch/first"))?;
        guest.ok(&drive.random(4, "/scratch/second"))?;
        guest.ok(&drive.write(4, 4, "/scratch/first"))?;
        guest.ok(&drive.write(0, 4, "/scratch/first"))?;
        guest.ok(&drive.write(0, 4, "/scratch/second"))?;
        let zone = drive.expect(guest, 0, State::ExplicitlyOpen)?;
        ensure!(zone.write_pointer_lba == 0, "{zone:?}");
        guest.ok(&format!("nvme zns zrwa-flush-zone {device} -l 7"))?;
        let zone = drive.expect(guest, 0, State::ExplicitlyOpen)?;
        ensure!(zone.write_pointer_lba == 8, "{zone:?}");
        refused(
            guest,
            &drive.write(4, 4, "/scratch/first"),
            Status::ZONE_INVALID_WRITE,
        )?;
        // Beyond the area: as much as it takes is committed.
        guest.ok(&drive.write(24, 4, "/scratch/first"))?;
        let zone = drive.zone(guest, 0)?;
        ensure!(zone.write_pointer_lba == 12, "{zone:?}");
        guest.ok(&drive.read(0, 8, "/scratch/read"))?;
        guest.ok("cat /scratch/second /scratch/first | cmp - /scratch/read")?;
        drive.reset_all(guest)
    })
}

/// More zones than flash (decision 20): the block layer offers all of them, and
/// an empty zone without flash is a device without space; a finish makes room.
fn thin(guest: &mut Guest) -> Result<()> {
    let settings = [
        "mapping.design=chunk",
        "mapping.physical_zones=8",
        "mapping.thin=true",
        "finish.extent=elements",
    ];
    on(guest, &settings, |guest, _, drive| {
        let (device, block) = (drive.generic(), drive.block());
        let identify = guest.ok(&format!("nvme id-ns {device} -o json"))?;
        let identify: Value = serde_json::from_str(&identify)?;
        let zone_lbas = drive.start_lba(1);
        ensure!(identify["nsze"] == 64 * zone_lbas, "{identify}");
        ensure!(identify["ncap"] == 8 * zone_lbas, "{identify}");
        ensure!(identify["nuse"] == 0, "{identify}");
        ensure!(identify["nsfeat"].as_u64().is_some_and(|of| of & 1 == 1));
        let bytes = guest.ok(&format!("blockdev --getsize64 {block}"))?;
        ensure!(
            bytes.trim().parse::<u64>()? == drive.start_byte(64),
            "{bytes}"
        );

        guest.ok(&drive.random(1, "/scratch/data"))?;
        let by_the_block_layer = |zone: u64| {
            let at = drive.start_lba(zone);
            format!("dd if=/scratch/data of={block} bs=4096 count=1 seek={at} oflag=direct")
        };
        for zone in 0..8 {
            guest.ok(&by_the_block_layer(zone))?;
        }
        let text = guest.fails(&by_the_block_layer(8))?;
        ensure!(text.contains("No space left on device"), "{text}");
        // Capacity Exceeded.
        refused(
            guest,
            &drive.write(drive.start_lba(8), 1, "/scratch/data"),
            0x081,
        )?;
        drive.expect(guest, 8, State::Empty)?;
        // What is open can be written on.
        guest.ok(&drive.write(drive.start_lba(7) + 1, 1, "/scratch/data"))?;
        for zone in 0..8 {
            drive.manage(guest, "finish-zone", zone)?;
        }
        // Past the block layer's own write pointers.
        guest.ok(&drive.write(drive.start_lba(8), 1, "/scratch/data"))?;
        guest.ok(&drive.read(drive.start_lba(0), 1, "/scratch/read"))?;
        guest.ok("cmp /scratch/data /scratch/read")?;
        drive.reset_all(guest)
    })
}

/// 64 bytes of the host's own for a zone.
fn descriptor_extension(guest: &mut Guest) -> Result<()> {
    on(
        guest,
        &["zones.descriptor_extension=64B"],
        |guest, _, drive| {
            let device = drive.generic();
            guest.ok("head -c 64 /dev/urandom > /scratch/extension")?;
            let slba = drive.start_lba(2);
            guest.ok(&format!(
                "nvme zns set-zone-desc {device} -s {slba} -d /scratch/extension"
            ))?;
            drive.expect(guest, 2, State::Closed)?;
            let script = format!(
                "hexdump -v -e '16/1 \"%02x \" \"\\n\"' /scratch/extension | sed 's/ $//' > /scratch/hex
                 nvme zns report-zones {device} -s {slba} -d 1 -e | grep '^00.0: ' | cut -c 7-53 |
                 cmp - /scratch/hex"
            );
            guest.ok(&script)?;
            drive.reset_all(guest)?;
            drive.expect(guest, 2, State::Empty)?;
            Ok(())
        },
    )
}

/// Blocks go from one zone to another without the host.
fn copy(guest: &mut Guest) -> Result<()> {
    let limits = [
        "copy.max_ranges=4",
        "copy.max_range=64KiB",
        "copy.max_length=128KiB",
    ];
    on(guest, &limits, |guest, _, drive| {
        let device = drive.generic();
        guest.ok(&drive.random(16, "/scratch/data"))?;
        guest.ok(&drive.write(0, 16, "/scratch/data"))?;
        let to = drive.start_lba(1);
        // Zero-based lengths, as nvme-cli has them.
        guest.ok(&format!(
            "nvme copy {device} --sdlba={to} --slbs=8,0 --blocks=7,3"
        ))?;
        let zone = drive.zone(guest, 1)?;
        ensure!(zone.write_pointer_lba == to + 12, "{zone:?}");
        guest.ok(&drive.read(to, 12, "/scratch/read"))?;
        guest.ok(
            "(tail -c 32768 /scratch/data; head -c 16384 /scratch/data) | cmp - /scratch/read",
        )?;
        let text = guest.fails(&format!(
            "nvme copy {device} --sdlba={} --slbs=0 --blocks=16",
            to + 12
        ))?;
        let status = Status::parse(&text).context(text)?;
        // Command Size Limit Exceeded: more blocks than a range may have.
        ensure!(status.code == 0x183, "{status:x?}");
        drive.reset_all(guest)
    })
}

fn compare_and_verify(guest: &mut Guest) -> Result<()> {
    on(guest, &[], |guest, _, drive| {
        let device = drive.generic();
        guest.ok(&drive.random(2, "/scratch/data"))?;
        guest.ok(&drive.random(2, "/scratch/other"))?;
        guest.ok(&drive.write(0, 2, "/scratch/data"))?;
        let compare = |file: &str| format!("nvme compare {device} -s 0 -c 1 -z 8192 -d {file}");
        guest.ok(&compare("/scratch/data"))?;
        let text = guest.fails(&compare("/scratch/other"))?;
        let status = Status::parse(&text).context(text)?;
        ensure!(status.code == 0x285, "{status:x?}");
        guest.ok(&format!("nvme verify {device} -s 0 -c 1"))?;
        let beyond = drive.start_lba(drive.zones);
        let text = guest.fails(&format!("nvme verify {device} -s {beyond} -c 0"))?;
        let status = Status::parse(&text).context(text)?;
        ensure!(status.code == 0x080, "{status:x?}");
        drive.reset_all(guest)
    })
}

/// Zeroes are written at a write pointer.
fn zeroes(guest: &mut Guest) -> Result<()> {
    on(guest, &[], |guest, _, drive| {
        let device = drive.generic();
        guest.ok(&drive.random(1, "/scratch/data"))?;
        guest.ok(&drive.write(0, 1, "/scratch/data"))?;
        guest.ok(&format!("nvme write-zeroes {device} -s 1 -c 6"))?;
        let zone = drive.zone(guest, 0)?;
        ensure!(zone.write_pointer_lba == 8, "{zone:?}");
        guest.ok(&drive.read(1, 7, "/scratch/read"))?;
        guest.ok("head -c 28672 /dev/zero | cmp - /scratch/read")?;
        let again = format!("nvme write-zeroes {device} -s 1 -c 7");
        refused(guest, &again, Status::ZONE_INVALID_WRITE)?;
        drive.reset_all(guest)
    })
}

/// Blocks of a conventional namespace are given back, and read as zeros.
fn deallocate(guest: &mut Guest) -> Result<()> {
    on(guest, &[BESIDE], |guest, controller, drive| {
        let drive = drive.clone().beside(guest, controller, 2)?;
        let block = drive.conventional()?;
        guest.ok("head -c 65536 /dev/urandom > /scratch/data")?;
        guest.ok(&format!(
            "dd if=/scratch/data of={block} bs=64k oflag=direct"
        ))?;
        guest.ok(&format!("nvme dsm {block} --ad --slbs=0,8 --blocks=4,4"))?;
        guest.ok(&format!(
            "dd if={block} of=/scratch/read bs=64k count=1 iflag=direct"
        ))?;
        guest.ok("z() { head -c 16384 /dev/zero; }
             part() { dd if=/scratch/data bs=16k skip=$1 count=$2; }
             (z; part 1 1; z; part 3 1) 2> /dev/null | cmp - /scratch/read")?;
        // And by the block layer.
        guest.ok(&format!("blkdiscard {block}"))?;
        guest.ok(&format!(
            "dd if={block} of=/scratch/read bs=64k count=1 iflag=direct"
        ))?;
        guest.ok("head -c 65536 /dev/zero | cmp - /scratch/read")?;
        Ok(())
    })
}

/// Blocks become 512 bytes, and 4 KiB again; what was there is gone.
fn format(guest: &mut Guest) -> Result<()> {
    on(guest, &[], |guest, controller, drive| {
        let block = drive.block();
        guest.ok(&drive.random(1, "/scratch/data"))?;
        guest.ok(&drive.write(0, 1, "/scratch/data"))?;
        for (index, bytes) in [(0, 512), (1, 4096)] {
            guest.ok(&format!(
                "nvme format /dev/{controller} -n 1 -l {index} --force"
            ))?;
            let now = Drive::open(guest, controller, 1, None)?;
            ensure!(now.lba_bytes == bytes, "{now:?}");
            ensure!(
                now.zone_lbas * bytes == 16 << 20 && now.zones == 64,
                "{now:?}"
            );
            let seen = now.queue(guest, "logical_block_size")?;
            ensure!(seen == bytes.to_string(), "the block layer has {seen}");
            now.expect(guest, 0, State::Empty)?;
            // The block layer keeps write pointers itself, and has not heard.
            now.reset_all(guest)?;
            guest.ok(&format!(
                "dd if=/scratch/data of={block} bs=4k oflag=direct && \
                 dd if={block} of=/scratch/read bs=4k count=1 iflag=direct && \
                 cmp /scratch/data /scratch/read"
            ))?;
            let zone = now.zone(guest, 0)?;
            ensure!(zone.write_pointer_lba == 4096 / bytes, "{zone:?}");
        }
        drive.reset_all(guest)
    })
}

/// F2FS over a zoned and a conventional namespace of one drive.
fn conventional_beside(guest: &mut Guest) -> Result<()> {
    on(guest, &[BESIDE], |guest, controller, drive| {
        let drive = drive.clone().beside(guest, controller, 2)?;
        let name = drive.conventional()?.replace("/dev/", "");
        let kind = guest.ok(&format!("cat /sys/block/{name}/queue/zoned"))?;
        ensure!(kind.trim() == "none", "{kind}");
        let sectors = guest.ok(&format!("cat /sys/block/{name}/size"))?;
        ensure!(
            sectors.trim() == ((128 << 20) / 512).to_string(),
            "{sectors}"
        );
        file_systems::f2fs(guest, &drive)
    })
}

/// Zones end before the next begins.
fn capacity_below_size(guest: &mut Guest) -> Result<()> {
    on(guest, &["zones.capacity=12MiB"], |guest, _, drive| {
        let zone = drive.zone(guest, 1)?;
        ensure!(
            zone.capacity_lbas == 3072 && drive.zone_lbas == 4096,
            "{zone:?}"
        );
        let report = guest.ok(&format!("blkzone report -c 1 {}", drive.block()))?;
        ensure!(report.contains("len 0x008000, cap 0x006000"), "{report}");
        let block = drive.block();
        guest.ok(&format!(
            "dd if=/dev/zero of={block} bs=1M count=12 oflag=direct"
        ))?;
        drive.expect(guest, 0, State::Full)?;
        // Between the capacity and the end there is nothing to write.
        guest.ok(&drive.random(1, "/scratch/data"))?;
        refused(
            guest,
            &drive.write(3072, 1, "/scratch/data"),
            Status::ZONE_BOUNDARY,
        )?;
        drive.reset_all(guest)?;
        workload::sequential(guest, drive)
    })
}
