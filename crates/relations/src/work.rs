//! Small random workloads for a drive.

use zonelab_ssd::config::{DriveConfig, NamespaceKind};

use crate::case::{Case, DriveText, JobText, Work};
use crate::draw::Draw;

/// Most operations of a job.
const OPERATIONS: u64 = 120;

/// The first zones of a namespace, and how many a workload may use of them.
struct Room {
    nsid: usize,
    /// Zones that are left, counted over the namespace.
    next: u64,
    end: u64,
    /// Zones that may be active at a time, if there is a limit.
    active: u64,
    /// Where the namespace begins on the drive.
    start: u64,
}

/// A drive and a workload that fits it.
///
/// # Panics
/// The generators do not fit each other any more.
#[must_use]
pub fn case(draw: &mut Draw) -> Case {
    let drive = crate::profile::draw(draw);
    let work = work(draw, &drive);
    Case { drive, work }
}

/// A workload for a drive.
///
/// # Panics
/// The profile is refused.
#[must_use]
pub fn work(draw: &mut Draw, drive: &DriveText) -> Work {
    let profile = drive.profile().expect("a drive that was drawn is valid");
    let config = &profile.config;
    let namespaces = config.namespaces.iter();
    let is_log = |of: &NamespaceKind| matches!(of, NamespaceKind::Conventional(_));
    let logs: Vec<usize> = namespaces
        .enumerate()
        .filter(|(_, of)| is_log(&of.kind))
        .map(|(index, _)| index)
        .collect();
    if let Some(index) = logs.first()
        && (config.namespaces.len() == 1 || draw.flag())
    {
        return on_blocks(draw, config, *index);
    }
    on_zones(draw, config)
}

/// Overwrites and reads of a conventional namespace that was filled.
fn on_blocks(draw: &mut Draw, config: &DriveConfig, index: usize) -> Work {
    let nsid = (index + 1).to_string();
    let block = block(draw, config);
    let mut fill = JobText::new(
        "fill",
        &[
            ("work", "write"),
            ("blocks", "0%..100%"),
            ("random", "false"),
            ("passes", "1"),
            ("namespace", &nsid),
        ],
    );
    fill.set("block", format!("{}B", 16 * u64::from(config.lba_bytes)));
    let mut jobs = Vec::new();
    for (name, work) in [("over", "write"), ("look", "read")] {
        if name == "look" && draw.flag() {
            continue;
        }
        let mut job = JobText::new(
            name,
            &[("work", work), ("blocks", "0%..100%"), ("namespace", &nsid)],
        );
        job.set("block", format!("{block}B"));
        job.set("operations", draw.int(20, OPERATIONS));
        job.set("queue_depth", draw.of(&[1, 2, 8]));
        if draw.one_in(4) {
            job.set("random", "false");
        }
        jobs.push(job);
    }
    Work {
        phases: vec![vec![fill], jobs],
        ..Work::default()
    }
}

/// A size of operations: whole logical blocks, pages, parts of pages, or several.
fn block(draw: &mut Draw, config: &DriveConfig) -> u64 {
    let lba = u64::from(config.lba_bytes);
    let page = u64::from(config.geometry.page_bytes);
    let most = u64::from(config.front_end.max_transfer_bytes.unwrap_or(1 << 20));
    let capacity = config.zones.capacity_lbas * lba;
    let size = draw.of(&[lba, page, page, page * 2, page * 4, page / 2, 3 * lba]);
    (size.clamp(lba, most.min(capacity)) / lba) * lba
}

fn on_zones(draw: &mut Draw, config: &DriveConfig) -> Work {
    let mut start = 0;
    let mut room = Room {
        nsid: 0,
        next: 0,
        end: u64::from(config.zones.count),
        active: config.zones.max_open.map_or(u64::MAX, u64::from),
        start: 0,
    };
    for (index, namespace) in config.namespaces.iter().enumerate() {
        let zones = u64::from(namespace.zones);
        if namespace.kind == NamespaceKind::Zoned && (room.nsid == 0 || draw.flag()) {
            room = Room {
                nsid: index + 1,
                next: 0,
                end: zones,
                active: namespace.max_open.map_or(u64::MAX, u64::from),
                start,
            };
        }
        start += zones;
    }
    let mut full = Vec::new();
    let mut jobs: Vec<JobText> = Vec::new();
    for number in 0..draw.int(1, 3) {
        if let Some(job) = job(draw, config, &mut room, (number, &mut full)) {
            jobs.push(job);
        }
    }
    let mut work = Work::of(jobs);
    if !full.is_empty() {
        let ranges = full.iter().map(|(from, to)| format!("{from}..={to}"));
        let ranges: Vec<String> = ranges.collect();
        work.series.insert("full_zones".to_owned(), list(&ranges));
    }
    if draw.one_in(6) {
        let costs = draw.of(&["1024ns", "4096ns"]);
        for key in ["submit", "complete"] {
            work.host.insert(key.to_owned(), costs.to_owned());
        }
    }
    work
}

/// Ranges of zones as an array, or the only one as it is.
fn list(ranges: &[String]) -> String {
    match ranges {
        [one] => one.clone(),
        _ => {
            let quoted: Vec<String> = ranges.iter().map(|one| format!("\"{one}\"")).collect();
            format!("[{}]", quoted.join(", "))
        }
    }
}

/// A job on zones that no other has; `None`: there are none left.
fn job(
    draw: &mut Draw,
    config: &DriveConfig,
    room: &mut Room,
    (number, full): (u64, &mut Vec<(u64, u64)>),
) -> Option<JobText> {
    let left = room.end - room.next;
    if left == 0 {
        return None;
    }
    let zones = draw.int(1, left.min(6));
    let (first, last) = (room.next, room.next + zones - 1);
    room.next += zones;
    // What keeps zones active shares what there is of that.
    let mut may_be_active = || {
        let some = room.active > 0;
        room.active = room.active.saturating_sub(1);
        some
    };
    let works = [
        "write", "write", "append", "read", "read", "finish", "reset", "open", "close",
    ];
    let mut work = draw.of(&works);
    let keeps = config.data == zonelab_ssd::config::DataStore::Memory;
    if work == "read" && keeps || config.allocation.thin {
        work = "write";
    }
    if work != "read" && !may_be_active() {
        return None;
    }
    let mut job = JobText::new(&format!("{work}{number}"), &[("work", work)]);
    job.set("zones", format!("{first}..={last}"));
    if room.nsid > 1 {
        job.set("namespace", room.nsid);
    }
    match work {
        "write" | "append" => {
            writes(draw, config, &mut job, (zones, room));
        }
        "read" => {
            full.push((room.start + first, room.start + last));
            job.set("block", format!("{}B", block(draw, config)));
            job.set("queue_depth", draw.of(&[1, 2, 4, 16]));
            job.set("threads", draw.of(&[1, 1, 2]).min(zones));
            if draw.one_in(3) {
                job.set("random", "false");
            }
            job.set("operations", draw.int(20, OPERATIONS));
        }
        _ => management(draw, config, &mut job),
    }
    if draw.one_in(6) {
        job.set("start", draw.time(1, 2_000));
    }
    if draw.one_in(6) {
        job.set("runtime", draw.time(2_000, 40_000));
    }
    Some(job)
}

fn writes(
    draw: &mut Draw,
    config: &DriveConfig,
    job: &mut JobText,
    (zones, room): (u64, &mut Room),
) {
    let mut size = block(draw, config);
    if job.work() == "append" {
        let most = u64::from(config.front_end.max_append_bytes.unwrap_or(1 << 20));
        size = size.min(most);
    }
    job.set("block", format!("{size}B"));
    if job.work() == "append" || draw.one_in(3) {
        job.set("queue_depth", draw.of(&[1, 2, 8]));
    }
    let threads = draw.of(&[1, 1, 2, 3]).min(zones);
    if threads > 1 && room.active >= threads {
        room.active -= threads;
        job.set("threads", threads);
    } else if zones > 1 && draw.one_in(4) && room.active >= zones {
        room.active -= zones;
        job.set("open_zones", zones);
    }
    if draw.one_in(3) {
        job.set("repeat", "true");
    }
    job.set("operations", draw.int(20, OPERATIONS));
}

fn management(draw: &mut Draw, config: &DriveConfig, job: &mut JobText) {
    let page = u64::from(config.geometry.page_bytes);
    let capacity = config.zones.capacity_lbas * u64::from(config.lba_bytes);
    if matches!(job.work(), "finish" | "reset" | "close") && draw.one_in(2) {
        let pages = draw.int(1, 9);
        job.set("fill", format!("{}B", (pages * page).min(capacity)));
    } else if job.work() == "reset" {
        job.set("fill", draw.of(&["50%", "100%"]));
    } else if job.work() == "close" {
        job.set("fill", format!("{}B", page.min(capacity)));
    }
    if job.get("fill").is_some() {
        let most = u64::from(config.front_end.max_transfer_bytes.unwrap_or(1 << 20));
        job.set(
            "fill_block",
            format!("{}B", (page * draw.of(&[1, 4])).min(most)),
        );
    }
    if draw.one_in(4) {
        job.set("settle", draw.time(10, 4_000));
    }
    if job.work() == "reset" && draw.one_in(4) {
        job.set("finish_first", "true");
    }
}
