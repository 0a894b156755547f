//! What `zonelab check` expects of a drive is what a run measures.

use zonelab_config::units::parse_size;
use zonelab_lab::run::PointResult;
use zonelab_ssd::config::MappingConfig;
use zonelab_ssd::profile::Profile;

use super::idle::{is_plain, mean_us, plain};
use crate::case::{Case, JobText, Work};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, ensure, unless};
use crate::run::{Refused, Runs, difference_to_hosts};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "page-as-expected",
        says: "a read of a page and a write of a page take what `zonelab check` expects",
        bound: Bound::Within("what the front end takes"),
        shape: one_page,
        check: page_as_expected,
    },
    Relation {
        name: "reads-as-expected",
        says: "random reads of a block are as many as `zonelab check` expects",
        bound: Bound::Within("15 % fewer: of many in flight, some are at the same die"),
        shape: random_reads,
        check: reads_as_expected,
    },
    Relation {
        name: "writes-as-expected",
        says: "writes of whole rows to all dies are as fast as `zonelab check` expects",
        bound: Bound::Within("15 % slower: they have a beginning and an end"),
        shape: wide_writes,
        check: writes_as_expected,
    },
    Relation {
        name: "declared-is-written",
        says: "zones that are declared full are read as those that were written are",
        bound: Bound::Within("exact in order of the stripe; 5 % where writes choose their dies"),
        shape: reads_of_full_zones,
        check: declared_is_written,
    },
];

fn one_page(draw: &mut Draw, case: &mut Case) {
    plain(case);
    for key in ["front_end.", "write_buffer.", "zones.zrwa."] {
        case.drive.unset(key);
    }
    if case.drive.is("finish.path", "buffer") {
        case.drive.unset("finish.");
    }
    let work = draw.of(&["read", "write"]);
    let mut job = JobText::new(
        work,
        &[("work", work), ("zones", "0..=0"), ("operations", "2")],
    );
    if let Ok(profile) = case.drive.profile() {
        job.set("block", format!("{}B", profile.config.geometry.page_bytes));
    }
    case.work = Work::of(vec![job]);
    if work == "read" {
        case.drive.unset("data.store");
        let range = ("full_zones".to_owned(), "0..=0".to_owned());
        case.work.series.extend([range]);
    }
}

fn page_as_expected(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let front = &config.front_end;
    let has_front = front.cores > 0 || front.link_bytes_per_s.is_some();
    let costs = &front.costs;
    let delays = [
        costs.read_latency_ns,
        costs.write_latency_ns,
        costs.completion_latency_ns,
    ];
    let page = format!("{}B", config.geometry.page_bytes);
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    // A zone may end within a page.
    let capacity = config.zones.capacity_lbas * u64::from(config.lba_bytes);
    let is_one = job.get("block") == Some(&page) && job.number("queue_depth", 1) == 1;
    let is_short =
        job.number("operations", 3) <= 2 && capacity >= 2 * u64::from(config.geometry.page_bytes);
    let is_bare = is_plain(config) && !has_front && config.write_buffer.is_none();
    let is_quick = delays.iter().all(|delay| delay.0 == 0) && case.work.host.is_empty();
    let whole = capacity.is_multiple_of(u64::from(config.geometry.page_bytes));
    if !(is_one && is_short && is_bare && is_quick && whole) || job.number("threads", 1) > 1 {
        return Ok(Verdict::Skipped);
    }
    let figures = &profile.derived.figures;
    let expected = match job.work() {
        "read" => figures.page_read_ns,
        "write" => figures.page_write_ns,
        _ => return Ok(Verdict::Skipped),
    };
    let result = runs.run("as it is", case)?;
    let got = mean_us(&result, &job.name)?;
    ensure((got - expected.0 as f64 / 1e3).abs() < 1e-6, || {
        format!("it takes {got} us, {expected} expected")
    })
}

fn random_reads(draw: &mut Draw, case: &mut Case) {
    plain(case);
    case.drive.unset("data.store");
    case.drive.unset("front_end.max_in_flight");
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let last = profile.config.zones.count - 1;
    let planes = u64::from(profile.derived.planes);
    let mut job = JobText::new("read", &[("work", "read")]);
    job.set("zones", format!("0..={last}"));
    job.set("block", format!("{}B", profile.config.lba_bytes));
    job.set("queue_depth", (planes * draw.of(&[24, 32])).max(64));
    job.set("operations", planes * 200);
    case.work = Work::of(vec![job]);
    let range = ("full_zones".to_owned(), format!("0..={last}"));
    case.work.series.extend([range]);
}

fn reads_as_expected(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let lba = format!("{}B", config.lba_bytes);
    let planes = u64::from(profile.derived.planes);
    let is_deep =
        job.number("queue_depth", 1) >= 24 * planes && job.number("operations", 0) >= 200 * planes;
    let everywhere = format!("0..={}", config.zones.count - 1);
    let is_all = job.get("zones") == Some(&everywhere)
        && case.work.series.get("full_zones") == Some(&everywhere);
    let is_fit = job.work() == "read" && job.get("block") == Some(&lba) && is_deep && is_all;
    let front = &config.front_end;
    let limits = front.max_in_flight_bytes.is_some()
        || front.costs.read_completion_ns.0 > 0
        || front.costs.variation_ppm > 0;
    // Zones that do not fill their last page or row are not everywhere equally.
    let even = profile.derived.zone_capacity_bytes == profile.derived.zone_flash_bytes
        && config
            .zones
            .count
            .is_multiple_of(profile.derived.zone_groups);
    let random = job.get("random") != Some("false");
    // Pieces of transfers that take turns end together, and late.
    let parts = config.media.details.read_parts.is_some()
        || config.media.details.transfer_unit_bytes.is_some();
    if !is_fit
        || !is_plain(config)
        || limits
        || !even
        || !random
        || parts
        || !case.work.host.is_empty()
    {
        return Ok(Verdict::Skipped);
    }
    let result = runs.run("as it is", case)?;
    let got = result.jobs[0].metrics.get("ops_s").unwrap_or(0.0);
    let expected = profile.derived.figures.read_iops.per_s as f64;
    ensure(
        (expected * 0.85..=expected * 1.01 + 1.0).contains(&got),
        || format!("{got:.0} reads per second, {expected} expected"),
    )
}

fn wide_writes(draw: &mut Draw, case: &mut Case) {
    plain(case);
    for key in [
        "front_end.",
        "write_buffer.",
        "zones.max_",
        "zones.zrwa.",
        "finish.path",
        "finish.takes_core",
        "zones.capacity",
        "zones.stagger",
        "media.transfer_unit",
    ] {
        case.drive.unset(key);
    }
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let groups = profile.derived.zone_groups;
    let row = profile.derived.planes_per_zone * profile.config.geometry.page_bytes;
    case.drive.set(
        "zones.size",
        format!("{}B", profile.derived.zone_flash_bytes),
    );
    let mut job = JobText::new("write", &[("work", "append"), ("queue_depth", "4")]);
    job.set("zones", format!("0..={}", groups - 1));
    job.set("threads", groups);
    job.set("block", format!("{}B", row * draw.of(&[1, 2])));
    case.work = Work::of(vec![job]);
}

fn writes_as_expected(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let derived = &profile.derived;
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let row = u64::from(derived.planes_per_zone * config.geometry.page_bytes);
    let block = job
        .get("block")
        .and_then(|of| parse_size(of).ok())
        .unwrap_or(0);
    let all = format!("0..={}", derived.zone_groups - 1);
    let is_wide = job.work() == "append"
        && block >= row
        && block.is_multiple_of(row)
        && job.number("queue_depth", 1) >= 4
        && job.number("threads", 1) == u64::from(derived.zone_groups)
        && job.get("zones") == Some(&all)
        && job.get("operations").is_none();
    let bare = Profile::parse("", BARE, &[]).map_err(|errors| Refused(errors.to_string()))?;
    let is_bare = is_plain(config)
        && config.write_buffer.is_none()
        && config.front_end == bare.config.front_end
        // Pieces of all pages that wait take turns, so that programs begin together and late.
        && config.media.details.transfer_unit_bytes.is_none()
        && config.zones.stagger == 0;
    let is_whole = derived.zone_capacity_bytes == derived.zone_flash_bytes;
    // Enough rows that the first and the last count little.
    let rows = derived.zone_capacity_bytes / row;
    if !is_wide
        || !is_bare
        || !is_whole
        || rows < 16
        || matches!(config.mapping, MappingConfig::Chunk { .. })
    {
        return Ok(Verdict::Skipped);
    }
    let result = runs.run("as it is", case)?;
    let got = result.jobs[0].metrics.get("mib_s").unwrap_or(0.0) * f64::from(1 << 20);
    let expected = derived.figures.write_bytes_per_s.per_s as f64;
    ensure(
        (expected * 0.85..=expected * 1.0001 + 1.0).contains(&got),
        || format!("{got:.0} bytes per second, {expected} expected"),
    )
}

/// A drive of which only the front end is looked at.
const BARE: &str = "schema = 1\nname = \"bare\"\n[geometry]\nchannels = 1\npages_per_block = 4\n\
                    page_size = \"4KiB\"\n[zones]\ncount = 1\nsize = \"16KiB\"\n[media]\n\
                    read = \"1us\"\nprogram = \"1us\"\nerase = \"1us\"\ntransfer = \"0ns\"\n";

fn reads_of_full_zones(draw: &mut Draw, case: &mut Case) {
    case.drive.unset("data.store");
    case.drive.unset("slc_cache.");
    case.drive.unset("zones.max_");
    if case.drive.is("finish.design", "at-fold") {
        case.drive.unset("finish.design");
    }
    case.drive.namespaces.clear();
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let config = &profile.config;
    let mut job = JobText::new("read", &[("work", "read"), ("zones", "0..=1")]);
    let blocks = draw.of(&[1, 2, 4]) * config.geometry.page_bytes;
    let most = config.front_end.max_transfer_bytes.unwrap_or(u32::MAX);
    let capacity = config.zones.capacity_lbas * u64::from(config.lba_bytes);
    job.set(
        "block",
        format!("{}B", u64::from(blocks.min(most)).min(capacity)),
    );
    job.set("queue_depth", draw.of(&[1, 2, 4]));
    job.set("random", "false");
    job.set("operations", 60);
    case.work = Work::of(vec![job]);
    case.work
        .series
        .insert("full_zones".to_owned(), "0..=1".to_owned());
}

fn declared_is_written(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let declared = case.work.series.get("full_zones");
    // Blocks that are drawn are others in a second phase.
    let is_read = job.work() == "read"
        && job.get("random") == Some("false")
        && declared.map(String::as_str) == job.get("zones");
    // An element is chosen when a zone is written, and another when it is declared full.
    if !is_read || !is_plain(config) || config.mapping.has_elements() || config.allocation.thin {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other.work.series.remove("full_zones");
    let mut fill = JobText::new("fill", &[("work", "write")]);
    fill.set("zones", declared.expect("it was looked at"));
    let block = config.geometry.page_bytes;
    fill.set("block", format!("{block}B"));
    // Reads begin when all is programmed.
    let mut later = job.clone();
    later.set("start", "1s");
    other.work.phases = vec![vec![fill], vec![later]];
    let (declared, written) = (runs.run("declared", case)?, runs.run("written", &other)?);
    let of = |result: &PointResult| PointResult {
        jobs: result
            .jobs
            .iter()
            .filter(|of| of.name == job.name)
            .cloned()
            .collect(),
        took: zonelab_device::Nanos::ZERO,
        ..result.clone()
    };
    let (declared, written) = (of(&declared), of(&written));
    if !config.places_by_work() {
        return unless(difference_to_hosts(&declared, &written));
    }
    let rate = |result: &PointResult| result.jobs[0].metrics.get("ops_s").unwrap_or(0.0);
    let (declared, written) = (rate(&declared), rate(&written));
    // Fewer reads than are in flight are not measured.
    if declared <= 0.0 {
        return Ok(Verdict::Skipped);
    }
    ensure((declared / written - 1.0).abs() <= 0.05, || {
        format!("{declared:.0} reads per second of declared zones, {written:.0} of written ones")
    })
}
