//! Parts that are the same are the same wherever they are.

use zonelab_ssd::config::{DriveConfig, MappingConfig, PlaneMode, StripeOrder};

use crate::case::{Case, Keys};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, any, unless};
use crate::run::{Runs, difference, difference_to_hosts};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "zones-moved",
        says: "work on other zones, as far from the first ones as groups and stagger repeat, \
               measures the same",
        bound: Bound::Exact,
        shape: roomy,
        check: zones_moved,
    },
    Relation {
        name: "ways-for-dies",
        says: "as many dies are as fast on more ways of fewer dies",
        bound: Bound::Exact,
        shape: any,
        check: ways_for_dies,
    },
    Relation {
        name: "planes-for-dies",
        says: "independent planes are dies",
        bound: Bound::Exact,
        shape: independent,
        check: planes_for_dies,
    },
    Relation {
        name: "wide-page",
        says: "planes that work together are one plane with a page as wide as all of theirs, for \
               work of whole rows",
        bound: Bound::Exact,
        shape: rows_together,
        check: wide_page,
    },
    Relation {
        name: "lazy-is-direct",
        says: "where nothing is reset, a zone that gets its flash at the first write is as fast as \
               one that always had it",
        bound: Bound::Exact,
        shape: lazy_without_resets,
        check: lazy_is_direct,
    },
];

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Leaves out what bounds the number of zones.
fn roomy(_: &mut Draw, case: &mut Case) {
    case.drive.unset("geometry.blocks_per_plane");
    case.drive.unset("mapping.physical_zones");
    case.drive.unset("mapping.thin");
}

/// Ranges of zones moved up by so many.
fn moved(ranges: &str, by: u64) -> Option<String> {
    if let Some(list) = ranges.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
        let each = list
            .split(',')
            .map(|one| moved(one.trim().trim_matches('"'), by));
        let each: Option<Vec<String>> = each
            .map(|one| one.map(|one| format!("\"{one}\"")))
            .collect();
        return each.map(|each| format!("[{}]", each.join(", ")));
    }
    let (first, last) = ranges.split_once("..=")?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some(format!("{}..={}", first + by, last + by))
}

fn zones_moved(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let has_places = matches!(
        config.mapping,
        MappingConfig::Direct | MappingConfig::Lazy { .. }
    );
    let is_bounded = ["geometry.blocks_per_plane", "mapping.physical_zones"]
        .into_iter()
        .any(|key| case.drive.get(key).is_some());
    if !has_places || is_bounded || !config.namespaces.is_empty() {
        return Ok(Verdict::Skipped);
    }
    let width = u64::from(profile.derived.planes_per_zone);
    let turn = width / gcd(width, u64::from(config.zones.stagger));
    let by = u64::from(profile.derived.zone_groups) * turn;
    let mut base = case.clone();
    base.drive
        .set("zones.count", u64::from(config.zones.count) + by);
    let mut other = base.clone();
    let move_up = |keys: &mut Keys, key: &str| -> Option<()> {
        if let Some(ranges) = keys.get_mut(key) {
            *ranges = moved(ranges, by)?;
        }
        Some(())
    };
    let mut all = Some(());
    for job in other.work.jobs_mut() {
        all = all.and(move_up(&mut job.keys, "zones"));
    }
    if all
        .and(move_up(&mut other.work.series, "full_zones"))
        .is_none()
    {
        return Ok(Verdict::Skipped);
    }
    let (here, there) = (runs.run("here", &base)?, runs.run("there", &other)?);
    if let Some(what) = difference_to_hosts(&here, &there) {
        return Ok(Verdict::Broken(what));
    }
    let totals = |result: &zonelab_lab::run::PointResult| result.drive.as_ref().map(|of| of.totals);
    let (here, there) = (totals(&here), totals(&there));
    unless((here != there).then(|| format!("totals: {here:?} and {there:?}")))
}

fn ways_for_dies(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let DriveConfig {
        geometry, zones, ..
    } = &profile.config;
    if geometry.ways == geometry.dies || zones.ways != geometry.ways {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other.drive.set("geometry.ways", geometry.dies);
    other.drive.set("geometry.dies", geometry.ways);
    other.drive.unset("zones.ways");
    let (ways, dies) = (runs.run("as it is", case)?, runs.run("swapped", &other)?);
    unless(difference(&ways, &dies))
}

fn independent(draw: &mut Draw, case: &mut Case) {
    if draw.flag() {
        case.drive.set("media.planes", "independent");
        case.drive.set("zones.stripe", "channel-first");
    }
}

fn planes_for_dies(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let DriveConfig {
        geometry,
        zones,
        media,
        ..
    } = &profile.config;
    let is_chunk = matches!(profile.config.mapping, MappingConfig::Chunk { .. });
    let is_same =
        media.planes == PlaneMode::Independent && zones.stripe == StripeOrder::ChannelFirst;
    if geometry.planes == 1 || !is_same || is_chunk {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other
        .drive
        .set("geometry.dies", geometry.dies * geometry.planes);
    other.drive.set("geometry.planes", 1);
    let (planes, dies) = (runs.run("as it is", case)?, runs.run("as dies", &other)?);
    unless(difference_to_hosts(&planes, &dies))
}

/// A multi-plane drive with work of whole rows of pages.
fn rows_together(draw: &mut Draw, case: &mut Case) {
    if !draw.one_in(3) {
        return;
    }
    let drive = &mut case.drive;
    if !matches!(drive.get("geometry.planes"), Some("2" | "4")) {
        drive.set("geometry.planes", draw.of(&[2, 4]));
    }
    for key in [
        "zones.capacity",
        "zones.stagger",
        "zones.channels",
        "zones.ways",
        "zones.zrwa.",
        "geometry.blocks_per_plane",
        "mapping.chunk_blocks",
        "slc_cache.",
        "finish.granularity",
        "media.transfer_unit",
        "media.program_variation",
    ] {
        drive.unset(key);
    }
    if drive.is("finish.design", "at-fold") {
        drive.unset("finish.design");
    }
    drive.namespaces.clear();
    drive.set("media.planes", "multi-plane");
    drive.set("zones.stripe", "plane-first");
    let Ok(profile) = drive.profile() else { return };
    let config = &profile.config;
    let row = config.geometry.page_bytes * config.geometry.planes;
    let block = row * config.geometry.pages_per_block;
    let luns = config.geometry.luns();
    let rows = draw.int(1, 2);
    drive.set(
        "zones.size",
        format!("{}B", u64::from(block) * u64::from(luns) * rows),
    );
    if config.write_buffer.is_some() {
        drive.set(
            "write_buffer.size",
            format!("{}B", u64::from(row) * draw.int(1, 8)),
        );
    }
    case.work = crate::work::work(draw, &case.drive);
    for job in case.work.jobs_mut() {
        for key in ["block", "fill_block"] {
            if job.get(key).is_some() {
                job.set(key, format!("{row}B"));
            }
        }
        if job.get("fill").is_some() {
            job.set("fill", draw.of(&["50%", "100%", "0B"]));
        }
    }
}

fn wide_page(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let DriveConfig {
        geometry,
        zones,
        media,
        lba_bytes,
        ..
    } = &profile.config;
    let row = geometry.page_bytes * geometry.planes;
    let is_together = media.planes == PlaneMode::MultiPlane
        && zones.stripe == StripeOrder::PlaneFirst
        && geometry.planes > 1;
    let is_whole = (zones.capacity_lbas * u64::from(*lba_bytes)).is_multiple_of(u64::from(row));
    let rows_only = case.work.jobs().all(|job| {
        let block = job
            .get("block")
            .is_none_or(|block| block == format!("{row}B"));
        let fill = job
            .get("fill_block")
            .is_none_or(|block| block == format!("{row}B"));
        let part = job
            .get("fill")
            .is_none_or(|fill| matches!(fill, "50%" | "100%" | "0B"));
        block && fill && part
    });
    let is_plain = profile.config.slc_cache.is_none()
        && zones.stagger == 0
        && zones.zrwa.is_none()
        && media.details.read_parts.is_none()
        && media.details.transfer_unit_bytes.is_none()
        && profile.config.namespaces.is_empty()
        && case.drive.get("finish.granularity").is_none()
        && case.drive.get("media.program_variation").is_none();
    if !(is_together && is_whole && rows_only && is_plain) {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other.drive.set("geometry.page_size", format!("{row}B"));
    other.drive.set("geometry.planes", 1);
    let transfer = media.transfer_ns.0 * u64::from(geometry.planes);
    other.drive.set("media.transfer", format!("{transfer}ns"));
    let (planes, page) = (runs.run("as it is", case)?, runs.run("wide", &other)?);
    unless(difference_to_hosts(&planes, &page))
}

/// Zones that get their flash late, and keep it.
fn lazy_without_resets(draw: &mut Draw, case: &mut Case) {
    if draw.flag() {
        case.drive.unset("mapping.");
        case.drive.unset("finish.extent");
        case.drive.unset("reset.thresholds.");
        if case.drive.is("reset.erase_at", "thresholds") {
            case.drive.unset("reset.erase_at");
        }
        case.drive.set("mapping.design", "lazy");
        case.drive.unset("zones.stagger");
    }
    for phase in &mut case.work.phases {
        phase.retain(|job| !matches!(job.work(), "reset" | "open" | "close"));
    }
    case.work.phases.retain(|phase| !phase.is_empty());
    for job in case.work.jobs_mut() {
        job.keys.remove("repeat");
    }
}

fn lazy_is_direct(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let resets = ["reset", "open", "close"]
        .into_iter()
        .any(|work| case.work.has(work));
    let states = |key: &str| case.drive.get(key).is_some();
    let is_lazy = matches!(config.mapping, MappingConfig::Lazy { .. });
    let decides = states("mapping.allocation") || states("reset.thresholds.free_zones");
    let has_log = case.work.states("blocks");
    let moves = config.zones.stagger > 0 || resets || has_log || case.work.states("repeat");
    if !is_lazy || decides || moves || case.drive.is("reset.erase_at", "thresholds") {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other.drive.unset("mapping.");
    let (lazy, direct) = (runs.run("as it is", case)?, runs.run("direct", &other)?);
    unless(difference_to_hosts(&lazy, &direct))
}
