//! Time has no scale and no origin.

use zonelab_config::units::{parse_duration, parse_rate};
use zonelab_lab::run::PointResult;
use zonelab_ssd::profile::to_toml;

use crate::case::{Case, DriveText, Keys};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, any, ensure, unless};
use crate::run::{Runs, difference};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "dilation",
        says: "with all times doubled and all rates halved, everything takes twice as long",
        bound: Bound::Exact,
        shape: undrawn_times,
        check: dilation,
    },
    Relation {
        name: "start-later",
        says: "jobs that all start later measure the same",
        bound: Bound::Exact,
        shape: any,
        check: start_later,
    },
    Relation {
        name: "slower-parts",
        says: "with a part of the flash that takes half as long again, fixed work takes no less \
               time",
        bound: Bound::Within(
            "5 %: whoever is served in another order may end earlier (Graham's anomalies)",
        ),
        shape: fixed_work,
        check: slower_parts,
    },
];

/// Takes out what rounds, or is drawn while it runs.
fn undrawn_times(_: &mut Draw, case: &mut Case) {
    for key in [
        "media.program_variation",
        "front_end.costs.variation",
        "reset.bookkeeping.",
        "reset.thresholds.adapt",
    ] {
        case.drive.unset(key);
    }
}

/// Whether a profile has something that rounds to nanoseconds, or draws.
fn rounds(drive: &DriveText) -> bool {
    let rounding = [
        "media.program_variation",
        "front_end.costs.variation",
        "reset.bookkeeping.full_zone",
        "reset.bookkeeping.drain_pause",
        "reset.thresholds.adapt",
    ];
    rounding.into_iter().any(|key| drive.get(key).is_some())
}

/// The same value with its times doubled and its rates halved.
fn dilated(value: &str) -> Option<String> {
    let time = |text: &str| parse_duration(text).ok().map(|ns| format!("{}ns", ns * 2));
    if let Some(list) = value.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
        let times: Option<Vec<String>> = list
            .split(',')
            .map(|text| time(text.trim().trim_matches('"')).map(|text| format!("\"{text}\"")))
            .collect();
        return times.map(|times| format!("[{}]", times.join(", ")));
    }
    let rate = || {
        parse_rate(value)
            .ok()
            .map(|rate| format!("{}B/s", rate / 2))
    };
    time(value).or_else(rate)
}

fn dilate(keys: &mut Keys) {
    for value in keys.values_mut() {
        if let Some(longer) = dilated(value) {
            *value = longer;
        }
    }
}

fn dilation(case: &Case, runs: &mut Runs) -> Checked {
    if rounds(&case.drive) {
        return Ok(Verdict::Skipped);
    }
    let profile = case.drive.profile()?;
    let mut other = case.clone();
    // Defaults are times, too.
    other.drive.keys = DriveText::of_toml(&to_toml(&profile.config)).keys;
    dilate(&mut other.drive.keys);
    dilate(&mut other.work.host);
    for job in other.work.jobs_mut() {
        dilate(&mut job.keys);
    }
    let (once, twice) = (runs.run("as it is", case)?, runs.run("dilated", &other)?);
    unless(not_doubled(&once, &twice))
}

fn not_doubled(once: &PointResult, twice: &PointResult) -> Option<String> {
    for (a, b) in once.jobs.iter().zip(&twice.jobs) {
        for (metric, factor) in [
            ("ops", 1.0),
            ("lat_mean_us", 2.0),
            ("lat_min_us", 2.0),
            ("lat_max_us", 2.0),
            ("ops_s", 0.5),
            ("blocks_erased", 1.0),
            ("free_after_max_us", 2.0),
        ] {
            let (x, y) = (a.metrics.get(metric), b.metrics.get(metric));
            let (x, y) = (x.unwrap_or(0.0) * factor, y.unwrap_or(0.0));
            if (x - y).abs() > 1e-9 * x.abs() {
                return Some(format!("{metric} of {}: {x} expected, {y}", a.name));
            }
        }
    }
    if once.took.0 * 2 != twice.took.0 {
        return Some(format!("end: twice {} expected, {}", once.took, twice.took));
    }
    let (Some(a), Some(b)) = (&once.drive, &twice.drive) else {
        return None;
    };
    if a.totals != b.totals {
        return Some(format!("totals: {:?} and {:?}", a.totals, b.totals));
    }
    let mut both = a.busy_ns.1.iter().zip(b.busy_ns.1.values());
    let wrong = both.find(|((_, a), b)| **a * 2 != **b);
    wrong.map(|((cause, a), b)| format!("busy with {cause}: twice {a} expected, {b}"))
}

/// How much later.
const LATER_NS: u64 = 12_345_678;

fn start_later(case: &Case, runs: &mut Runs) -> Checked {
    // What a drive does while nobody wants something of it is more if it has longer.
    let pools = case.drive.get("mapping.pool").is_some_and(|of| of != "0");
    let adapts = case.drive.get("reset.thresholds.adapt").is_some();
    if pools || adapts || case.work.phases.len() > 1 {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    for job in other.work.jobs_mut() {
        let own = job
            .get("start")
            .and_then(|start| parse_duration(start).ok());
        job.set("start", format!("{}ns", own.unwrap_or(0) + LATER_NS));
    }
    let (now, mut later) = (runs.run("as it is", case)?, runs.run("later", &other)?);
    for job in &mut later.jobs {
        if let Some((from, to)) = &mut job.detail.measured {
            from.0 -= LATER_NS;
            to.0 -= LATER_NS;
        }
        for slot in &mut job.detail.throughput {
            slot.from.0 -= LATER_NS;
            slot.to.0 -= LATER_NS;
        }
    }
    later.took.0 = later.took.0.saturating_sub(LATER_NS);
    unless(difference(&now, &later))
}

/// Work that ends by itself.
fn fixed_work(_: &mut Draw, case: &mut Case) {
    for job in case.work.jobs_mut() {
        job.keys.remove("runtime");
    }
}

fn slower_parts(case: &Case, runs: &mut Runs) -> Checked {
    if case.work.states("runtime") {
        return Ok(Verdict::Skipped);
    }
    let profile = case.drive.profile()?;
    let base = runs.run("as it is", case)?;
    let stated = DriveText::of_toml(&to_toml(&profile.config));
    for key in [
        "media.program",
        "media.erase",
        "media.transfer",
        "media.read",
    ] {
        let Some(ns) = stated.get(key).and_then(|text| parse_duration(text).ok()) else {
            continue;
        };
        let mut other = case.clone();
        other.drive.set(key, format!("{}ns", ns + ns / 2));
        let slower = runs.run("slower", &other)?;
        let (a, b) = (base.took.0 as f64, slower.took.0 as f64);
        let verdict = ensure(b >= a * 0.95, || {
            format!(
                "with a longer {key} it takes {} instead of {}",
                slower.took, base.took
            )
        })?;
        if verdict != Verdict::Holds {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Holds)
}
