//! A drive that does one thing has a closed form for it.

use zonelab_config::units::parse_size;
use zonelab_lab::run::PointResult;
use zonelab_ssd::config::{DriveConfig, PlaneMode};
use zonelab_ssd::profile::Profile;

use crate::case::{Case, JobText, Work};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, ensure, unless};
use crate::run::{Refused, Runs};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "finish-is-monotone",
        says: "the more is written of a zone, the less its finish takes",
        bound: Bound::Within(
            "one device write: where in a row the first one begins decides how \
                              many dies it has",
        ),
        shape: one_finish,
        check: finish_is_monotone,
    },
    Relation {
        name: "finish-as-expected",
        says: "the finish of an empty zone takes what `zonelab check` expects",
        bound: Bound::Within(
            "2 %, and what the front end takes; through a buffer 10 % and twice \
                              what fits in it: the stream has a beginning and an end",
        ),
        shape: one_finish,
        check: finish_as_expected,
    },
    Relation {
        name: "erase-as-expected",
        says: "the erasure of a zone that was written takes what `zonelab check` expects",
        bound: Bound::Within("what the front end takes"),
        shape: one_reset,
        check: erase_as_expected,
    },
    Relation {
        name: "preemptive-alone",
        says: "an erasure that nobody is in the way of takes no longer for being preemptive",
        bound: Bound::Exact,
        shape: one_reset,
        check: preemptive_alone,
    },
];

/// Finishes one after another, of zones of which something is written.
pub(super) fn finishes(draw: &mut Draw) -> Work {
    let mut job = JobText::new(
        "finish",
        &[("work", "finish"), ("threads", "1"), ("settle", "1s")],
    );
    job.set("zones", format!("0..={}", draw.int(0, 1)));
    job.set("fill", format!("{}%", draw.int(0, 9) * 10));
    job.set("fill_block", "4KiB");
    Work::of(vec![job])
}

fn is_alone(case: &Case, work: &str) -> bool {
    case.work.jobs().count() == 1 && case.work.has(work)
}

/// What keeps a drive from doing one thing alone, or draws.
pub(super) fn plain(case: &mut Case) {
    for key in [
        "slc_cache.",
        "media.program_variation",
        "front_end.costs.variation",
        "mapping.allocation",
        "mapping.pool",
        "reset.bookkeeping.",
    ] {
        case.drive.unset(key);
    }
    if case.drive.is("finish.design", "at-fold") {
        case.drive.unset("finish.design");
    }
    case.drive.namespaces.clear();
}

pub(super) fn is_plain(config: &DriveConfig) -> bool {
    config.slc_cache.is_none()
        && config.namespaces.is_empty()
        && config.media.details.program_variation_ppm == 0
        && config.front_end.costs.variation_ppm == 0
        && config.allocation.time_ns.0 == 0
        && config.reset.bookkeeping.is_none()
}

/// What the front end adds to a management command.
fn front_end_ns(config: &DriveConfig) -> f64 {
    let front = &config.front_end;
    let costs = &front.costs;
    let latency = costs.management_latency_ns.0 + costs.completion_latency_ns.0;
    (front.management_ns.0 + latency) as f64
}

pub(super) fn mean_us(result: &PointResult, job: &str) -> Result<f64, Refused> {
    let job = result.jobs.iter().find(|of| of.name == job);
    let mean = job.and_then(|job| job.metrics.get("lat_mean_us"));
    mean.ok_or_else(|| Refused("it measured nothing".to_owned()))
}

fn one_finish(draw: &mut Draw, case: &mut Case) {
    plain(case);
    case.work = finishes(draw);
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let page = profile.config.geometry.page_bytes;
    let pages = u64::from(profile.derived.zone_pages)
        .saturating_sub(1)
        .max(1);
    for job in case.work.jobs_mut() {
        job.set("zones", "0..=0");
        job.set("fill", format!("{}B", u64::from(page) * draw.int(1, pages)));
        job.set("fill_block", format!("{page}B"));
    }
}

fn finish_is_monotone(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    if !is_alone(case, "finish") || !is_plain(config) {
        return Ok(Verdict::Skipped);
    }
    let job = case.work.jobs().next().expect("there is one");
    // Elements that nothing was written to are given back.
    let gives_back = case.drive.is("finish.extent", "elements");
    if job.get("settle") != Some("1s") || gives_back {
        return Ok(Verdict::Skipped);
    }
    let Some(fill) = job.get("fill").and_then(|fill| parse_size(fill).ok()) else {
        return Ok(Verdict::Skipped);
    };
    let page = u64::from(config.geometry.page_bytes);
    let mut least = case.clone();
    for job in least.work.jobs_mut() {
        let pages = (fill / page).saturating_sub(1);
        job.set("fill", format!("{}B", pages * page));
    }
    let (less, more) = (
        runs.run("less written", &least)?,
        runs.run("as it is", case)?,
    );
    let (less, more) = (mean_us(&less, &job.name)?, mean_us(&more, &job.name)?);
    // A buffer programs the rest of a row that the host began when the zone is finished.
    let row = u64::from(config.geometry.planes) * config.media.transfer_ns.0;
    let rest = config
        .write_buffer
        .map_or(0, |_| row + config.media.program_ns.0);
    let one = device_write_us(&profile) + rest as f64 / 1e3;
    // A nanosecond for what the two fractions lose.
    ensure(more <= less + one + 1e-3, || {
        format!(
            "with a page more written it takes {more} us instead of {less}; a device write takes {one}"
        )
    })
}

/// What one device write of a finish takes, and what waits between two.
fn device_write_us(profile: &Profile) -> f64 {
    let config = &profile.config;
    let zonelab_ssd::config::FinishConfig::Fill {
        granularity_bytes,
        pause_ns,
        ..
    } = config.finish
    else {
        return 0.0;
    };
    let pages = u64::from(granularity_bytes.div_ceil(config.geometry.page_bytes));
    let units = u64::from(match config.media.planes {
        PlaneMode::Single => profile.derived.planes_per_zone / config.geometry.planes,
        _ => profile.derived.planes_per_zone,
    });
    let programs = pages.div_ceil(units).max(1) + 1;
    let ns = programs * config.media.program_ns.0 + pages * config.media.transfer_ns.0 + pause_ns.0;
    ns as f64 / 1e3
}

fn finish_as_expected(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    if !is_alone(case, "finish") || !is_plain(config) {
        return Ok(Verdict::Skipped);
    }
    let mut empty = case.clone();
    for job in empty.work.jobs_mut() {
        for key in ["fill", "fill_block", "settle"] {
            job.keys.remove(key);
        }
    }
    let result = runs.run("nothing written", &empty)?;
    let got = mean_us(&result, &empty.work.phases[0][0].name)? * 1e3;
    let expected = profile.derived.figures.zone_finish_ns.0 as f64;
    let front = front_end_ns(config);
    let held = config.write_buffer.filter(|_| config.finish.is_buffered());
    // Pieces of the transfers of a device write take turns, which is not expected.
    if config.media.details.transfer_unit_bytes.is_some() {
        return Ok(Verdict::Skipped);
    }
    // A smaller buffer does not keep all dies busy.
    let row = u64::from(profile.derived.planes_per_zone * config.geometry.page_bytes);
    if held.is_some_and(|buffer| buffer.size_bytes < 2 * row) {
        return Ok(Verdict::Skipped);
    }
    let (share, more) = match held {
        Some(buffer) => {
            let rate = profile.derived.figures.zone_write_bytes_per_s.per_s.max(1);
            let room = buffer.size_bytes as f64 * 2e9 / rate as f64;
            let page = profile.derived.figures.page_write_ns.0 as f64;
            (0.10, room + 2.0 * page)
        }
        None => (0.02, 0.0),
    };
    let least = expected * (1.0 - share) - more;
    let most = expected * (1.0 + share) + more + front;
    ensure((least..=most).contains(&got), || {
        format!("a finish takes {got} ns, {expected} expected")
    })
}

fn one_reset(draw: &mut Draw, case: &mut Case) {
    plain(case);
    let mut job = JobText::new(
        "reset",
        &[
            ("work", "reset"),
            ("zones", "0..=0"),
            ("fill", "100%"),
            ("settle", "1s"),
        ],
    );
    if let Ok(profile) = case.drive.profile() {
        job.set(
            "fill_block",
            format!("{}B", profile.config.geometry.page_bytes),
        );
    }
    if draw.flag() {
        job.set("fill", format!("{}%", draw.int(1, 10) * 10));
    }
    case.work = Work::of(vec![job]);
    if draw.flag() {
        case.drive.unset("reset.");
        case.drive.set("reset.preemptive", draw.flag());
    }
}

fn erase_as_expected(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let is_synchronous = config.reset.erase == zonelab_ssd::config::EraseWhen::Synchronous;
    if !is_alone(case, "reset") || !is_plain(config) || !is_synchronous {
        return Ok(Verdict::Skipped);
    }
    let mut full = case.clone();
    for job in full.work.jobs_mut() {
        job.set("fill", "100%");
    }
    let result = runs.run("all written", &full)?;
    let got = mean_us(&result, &full.work.phases[0][0].name)? * 1e3;
    let expected = profile.derived.figures.zone_erase_ns.0 as f64;
    let most = expected + front_end_ns(config) + 1.0;
    ensure((expected - 1.0..=most).contains(&got), || {
        format!("a reset takes {got} ns, {expected} expected")
    })
}

fn preemptive_alone(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    if !is_alone(case, "reset") || !is_plain(&profile.config) {
        return Ok(Verdict::Skipped);
    }
    let mut whole = case.clone();
    whole.drive.unset("reset.preemptive");
    whole.drive.unset("reset.max_hold");
    let mut preemptive = whole.clone();
    preemptive.drive.set("reset.preemptive", true);
    let (whole, preemptive) = (
        runs.run("whole", &whole)?,
        runs.run("preemptive", &preemptive)?,
    );
    for metric in ["lat_mean_us", "free_after_mean_us"] {
        let of = |result: &PointResult| result.jobs[0].metrics.get(metric);
        let (Some(whole), Some(preemptive)) = (of(&whole), of(&preemptive)) else {
            continue;
        };
        if preemptive > whole {
            return unless(Some(format!(
                "{metric}: {whole} whole, {preemptive} preemptive"
            )));
        }
    }
    Ok(Verdict::Holds)
}
