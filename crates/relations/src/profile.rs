//! Random valid profiles over all keys of the grammar, of drives so small that a run of one takes
//! a few milliseconds.
//!
//! A draw that the rules of profiles refuse is drawn again, so that what a rule forbids today can
//! be drawn once it is allowed. [`UNDRAWN`] has the keys that are not drawn, each with its reason;
//! a test holds both together with the declarations of keys.

mod designs;

use crate::case::DriveText;
use crate::draw::Draw;

/// Keys that are not drawn, and why.
pub const UNDRAWN: &[(&str, &str)] = &[
    ("schema", "there is one version of the format"),
    ("name", "it names results, and changes none"),
    ("description", "it is for people"),
    ("source", "it is for people"),
];

/// Draws that are refused before somebody should look at the generator.
const ATTEMPTS: u64 = 200;

/// What later choices depend on.
struct Sizes {
    lba: u64,
    page: u64,
    planes: u64,
    /// Planes of a zone.
    width: u64,
    groups: u64,
    /// Rows of blocks of a zone.
    rows: u64,
    pages_per_block: u64,
    /// Of a zone, in bytes.
    capacity: u64,
    count: u64,
}

/// A valid profile.
///
/// # Panics
/// Hardly any draw is valid: the generator lags behind the rules.
#[must_use]
pub fn draw(draw: &mut Draw) -> DriveText {
    for _ in 0..ATTEMPTS {
        let drive = attempt(draw);
        if drive.profile().is_ok() {
            return drive;
        }
    }
    panic!("none of {ATTEMPTS} draws is a valid profile");
}

/// A profile that may be refused.
#[must_use]
pub fn attempt(draw: &mut Draw) -> DriveText {
    let mut drive = DriveText::default();
    let sizes = geometry(draw, &mut drive);
    zones(draw, &mut drive, &sizes);
    media(draw, &mut drive, &sizes);
    if draw.one_in(3) {
        front_end(draw, &mut drive);
    }
    let has_buffer = draw.flag();
    if has_buffer {
        write_buffer(draw, &mut drive, &sizes);
    }
    finish(draw, &mut drive, &sizes, has_buffer);
    designs::mapping(draw, &mut drive, &sizes);
    designs::reset(draw, &mut drive, has_buffer);
    if has_buffer && draw.one_in(5) {
        designs::slc_cache(draw, &mut drive, &sizes);
    } else if has_buffer && draw.one_in(5) {
        designs::areas(draw, &mut drive, &sizes);
    }
    if draw.one_in(5) {
        designs::namespaces(draw, &mut drive, &sizes);
    }
    if draw.one_in(8) {
        drive.set("copy.max_ranges", draw.int(1, 8));
        drive.set("copy.max_range", "64KiB");
        drive.set("copy.max_length", draw.of(&["64KiB", "256KiB"]));
    }
    if draw.one_in(6) {
        drive.set("data.store", draw.of(&["none", "memory"]));
    }
    drive
}

fn geometry(draw: &mut Draw, drive: &mut DriveText) -> Sizes {
    let channels = draw.of(&[1, 1, 2, 2, 3, 4]);
    let ways = draw.of(&[1, 1, 1, 2]);
    let dies = draw.of(&[1, 1, 1, 2]);
    let planes = draw.of(&[1, 1, 2, 4]);
    let pages_per_block = draw.of(&[4, 6, 8, 12, 16]);
    let page = draw.of(&[4, 8, 16, 16, 32]) * 1_024;
    let lba = draw.of(&[512, 4_096]);
    drive.set("geometry.channels", channels);
    drive.set("geometry.pages_per_block", pages_per_block);
    drive.set("geometry.page_size", format!("{}KiB", page / 1_024));
    for (key, value) in [("ways", ways), ("dies", dies), ("planes", planes)] {
        if value > 1 || draw.one_in(4) {
            drive.set(&format!("geometry.{key}"), value);
        }
    }
    if lba == 512 || draw.flag() {
        let size = if lba == 512 { "512B" } else { "4KiB" };
        drive.set("namespace.lba_size", size);
    }
    let (mut of_channels, mut of_ways) = (channels, ways);
    if draw.one_in(3) {
        of_channels = draw.divisor(channels);
        drive.set("zones.channels", of_channels);
    }
    if draw.one_in(4) {
        of_ways = draw.divisor(ways);
        drive.set("zones.ways", of_ways);
    }
    let width = of_channels * of_ways * dies * planes;
    let groups = channels * ways / (of_channels * of_ways);
    let rows = draw.of(&[1, 1, 2]);
    let whole = rows * width * pages_per_block * page;
    // A capacity may leave blocks over, but no row of them.
    let capacity = match draw.one_in(4) {
        true => whole - draw.int(1, pages_per_block - 1) * draw.of(&[lba, page]),
        false => whole,
    };
    let count = (groups * draw.int(3, 6)).max(draw.int(8, 16));
    drive.set("zones.count", count);
    let size = match draw.one_in(3) {
        true => whole.next_power_of_two(),
        false => whole,
    };
    drive.set("zones.size", format!("{size}B"));
    if capacity != size || draw.one_in(4) {
        drive.set("zones.capacity", format!("{capacity}B"));
    }
    if draw.one_in(4) {
        let needed = count.div_ceil(groups) * rows;
        drive.set("geometry.blocks_per_plane", needed + draw.int(0, 12));
    }
    Sizes {
        lba,
        page,
        planes,
        width,
        groups,
        rows,
        pages_per_block,
        capacity,
        count,
    }
}

fn zones(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    if draw.one_in(4) {
        let active = draw.int(1, of.count);
        drive.set("zones.max_active", active);
        if draw.flag() {
            drive.set("zones.max_open", draw.int(1, active));
        }
    } else if draw.one_in(8) {
        drive.set("zones.max_open", draw.int(1, of.count));
    }
    if draw.one_in(3) {
        let order = draw.of(&["plane-first", "channel-first"]);
        drive.set("zones.stripe", order);
    }
    if draw.one_in(6) {
        drive.set("zones.stagger", draw.int(0, of.width - 1));
    }
    if draw.one_in(8) {
        drive.set("zones.read_across", draw.flag());
    }
    if draw.one_in(8) {
        let extension = draw.of(&["0B", "64B", "128B"]);
        drive.set("zones.descriptor_extension", extension);
    }
}

fn media(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    let has_cell = draw.one_in(5);
    if has_cell {
        let cell = draw.of(&["slc", "mlc", "tlc", "qlc"]);
        drive.set("media.cell", cell);
    }
    if !has_cell || draw.flag() {
        let read = match draw.one_in(8) {
            true => {
                let times: Vec<String> = (0..draw.of(&[2, 4]))
                    .map(|_| format!("\"{}\"", draw.time(20, 120)))
                    .collect();
                format!("[{}]", times.join(", "))
            }
            false => draw.time(20, 140),
        };
        drive.set("media.read", read);
        drive.set("media.program", draw.time(100, 2_000));
        drive.set("media.erase", draw.time(1_000, 8_000));
    }
    let transfer = match draw.one_in(6) {
        true => "0ns".to_owned(),
        false => draw.time(2, 60),
    };
    drive.set("media.transfer", transfer);
    if draw.flag() {
        drive.set("media.partial_transfer", draw.flag());
    }
    if draw.flag() {
        let register = draw.of(&["overlap", "hold", "cache"]);
        drive.set("media.page_register", register);
    }
    if of.planes > 1 || draw.one_in(4) {
        let planes = draw.of(&["independent", "multi-plane", "multi-plane", "single"]);
        drive.set("media.planes", planes);
    }
    if draw.flag() {
        let queue = draw.of(&["fifo", "read-first", "weighted"]);
        drive.set("media.die_queue", queue);
        if queue == "weighted" && draw.flag() {
            drive.set("media.read_weight", draw.int(1, 6));
        }
    }
    if draw.one_in(3) {
        let arbitration = draw.of(&["arrival", "ready"]);
        drive.set("media.channel_arbitration", arbitration);
    }
    if draw.one_in(5) {
        let unit = draw.of(&[512, 1_024, 4_096]);
        drive.set("media.transfer_unit", format!("{unit}B"));
    }
    if draw.one_in(10) {
        let share = draw.of(&["0%", "5%", "40%"]);
        drive.set("media.program_variation", share);
    }
    if draw.one_in(4) {
        suspend(draw, drive);
    }
}

fn suspend(draw: &mut Draw, drive: &mut DriveText) {
    let (program, erase) = draw.of(&[(true, true), (true, false), (false, true)]);
    drive.set("media.suspend.program", program);
    drive.set("media.suspend.erase", erase);
    if draw.flag() {
        drive.set("media.suspend.overhead", draw.time(0, 40));
    }
    if draw.one_in(3) {
        drive.set("media.suspend.max_per_operation", draw.int(1, 5));
    }
    if draw.one_in(3) {
        drive.set("media.suspend.interval", draw.time(5, 200));
    }
}

fn front_end(draw: &mut Draw, drive: &mut DriveText) {
    let has_cores = draw.flag();
    if has_cores {
        drive.set("front_end.cores", draw.int(1, 3));
        for kind in ["read", "write", "append", "management"] {
            if draw.flag() {
                drive.set(&format!("front_end.{kind}"), draw.time(0, 12));
            }
        }
    }
    if has_cores && draw.flag() {
        costs(draw, drive);
    }
    if draw.one_in(3) {
        // Whole nanoseconds for each byte.
        let link = draw.of(&["250MB/s", "500MB/s", "1GB/s"]);
        drive.set("front_end.link", link);
    }
    if draw.one_in(4) {
        let (transfer, append) = draw.of(&[(128, 64), (256, 256), (512, 128)]);
        drive.set("front_end.max_transfer", format!("{transfer}KiB"));
        drive.set("front_end.max_append", format!("{append}KiB"));
    }
    if draw.one_in(4) {
        let room = draw.of(&[16, 64, 256, 1_024]);
        drive.set("front_end.max_in_flight", format!("{room}KiB"));
    }
    if draw.one_in(4) {
        drive.set("front_end.appends_per_zone", draw.int(1, 8));
    }
    if draw.one_in(3) {
        for kind in ["read", "write", "append", "management", "completion"] {
            if draw.flag() {
                let key = format!("front_end.latency.{kind}");
                drive.set(&key, draw.time(0, 20));
            }
        }
    }
}

fn costs(draw: &mut Draw, drive: &mut DriveText) {
    if draw.flag() {
        drive.set("front_end.costs.unit", draw.of(&["4KiB", "8KiB", "16KiB"]));
        drive.set("front_end.costs.part_of_unit", draw.time(1, 6));
    }
    for kind in ["read_per_kib", "write_per_kib", "append_per_kib"] {
        if draw.one_in(3) {
            let time = format!("{}ns", 2 * draw.int(0, 100));
            drive.set(&format!("front_end.costs.{kind}"), time);
        }
    }
    for kind in [
        "small_blocks",
        "open",
        "close",
        "implicit_open",
        "read_completion",
        "write_completion",
        "append_completion",
    ] {
        if draw.one_in(3) {
            drive.set(&format!("front_end.costs.{kind}"), draw.time(0, 8));
        }
    }
    if draw.one_in(6) {
        drive.set("front_end.costs.variation", draw.of(&["0%", "25%"]));
    }
}

fn write_buffer(draw: &mut Draw, drive: &mut DriveText, of: &Sizes) {
    drive.set("write_buffer.mode", "write-back");
    let pages = draw.of(&[1, 2, 4, 16, 64]) * of.planes;
    drive.set("write_buffer.size", format!("{}B", pages * of.page));
    if draw.one_in(3) {
        drive.set("write_buffer.power_loss_protection", draw.flag());
    }
    if draw.one_in(3) {
        let release = draw.of(&["program", "transfer"]);
        drive.set("write_buffer.release", release);
    }
    if draw.one_in(5) {
        drive.set("write_buffer.drain", draw.of(&["50MB/s", "500MB/s"]));
    }
    if draw.one_in(4) {
        drive.set("write_buffer.turn", draw.of(&["4KiB", "16KiB", "64KiB"]));
    }
    if draw.one_in(3) {
        let placement = draw.of(&["in-order", "least-work"]);
        drive.set("write_buffer.placement", placement);
    }
}

fn finish(draw: &mut Draw, drive: &mut DriveText, of: &Sizes, has_buffer: bool) {
    let design = draw.of(&["fill", "fill", "metadata"]);
    if design == "metadata" || draw.flag() {
        drive.set("finish.design", design);
    }
    if design == "metadata" {
        return;
    }
    if draw.flag() {
        let pages = draw.of(&[1, 2, of.planes, of.width, 3 * of.width]);
        drive.set("finish.granularity", format!("{}B", pages * of.page));
    }
    if draw.one_in(4) {
        drive.set("finish.pause", draw.time(0, 3_000));
    }
    if draw.one_in(4) {
        drive.set("finish.yield_to_host", "true");
        if draw.flag() {
            drive.set("finish.max_hold", draw.time(0, 5_000));
        }
    } else if draw.one_in(8) {
        drive.set("finish.yield_to_host", "false");
    }
    if has_buffer && draw.one_in(3) {
        drive.set("finish.path", "buffer");
        if drive.get("front_end.cores").is_some() && draw.flag() {
            drive.set("finish.takes_core", "true");
        }
    } else if draw.one_in(8) {
        drive.set("finish.path", "flash");
    }
}

impl DriveText {
    /// Planes of the drive.
    fn profile_planes(&self) -> u64 {
        let of = |key: &str| {
            let stated = self.get(&format!("geometry.{key}"));
            stated.and_then(|value| value.parse().ok()).unwrap_or(1)
        };
        ["channels", "ways", "dies", "planes"]
            .into_iter()
            .map(of)
            .product()
    }
}
