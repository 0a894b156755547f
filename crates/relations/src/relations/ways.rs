//! The same work by another way is the same.

use crate::case::{Case, JobText, Work};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, any, ensure, unless};
use crate::run::{Runs, difference, difference_to_hosts};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "over-pcie",
        says: "jobs behind the driver for PCIe measure the same as without it",
        bound: Bound::Exact,
        shape: any,
        check: over_pcie,
    },
    Relation {
        name: "alone-or-beside",
        says: "a job beside another on other channels measures the same as alone",
        bound: Bound::Exact,
        shape: two_groups,
        check: alone_or_beside,
    },
    Relation {
        name: "deeper-queues",
        says: "a fixed number of reads takes no longer with twice as many in flight",
        bound: Bound::Within("5 %: other blocks are read at the same time"),
        shape: any,
        check: deeper_queues,
    },
    Relation {
        name: "waits",
        says: "what commands wait for in a trace sums up to their latencies, and a trace changes \
               nothing",
        bound: Bound::Exact,
        shape: any,
        check: waits,
    },
];

fn over_pcie(case: &Case, runs: &mut Runs) -> Checked {
    let mut other = case.clone();
    other.work.series.insert("via".to_owned(), "pcie".to_owned());
    // Hosts of a driver have queue pairs of 1,024 commands at most.
    let (direct, pcie) = (runs.run("as it is", case)?, runs.run("over PCIe", &other)?);
    unless(difference_to_hosts(&direct, &pcie))
}

/// Two jobs on zones of two groups that share no channel, and nothing in front of them.
fn two_groups(draw: &mut Draw, case: &mut Case) {
    case.drive.unset("front_end.");
    case.drive.unset("write_buffer.");
    case.drive.unset("slc_cache.");
    case.drive.unset("zones.zrwa.");
    case.drive.unset("zones.max_");
    case.drive.unset("zones.ways");
    case.drive.unset("zones.stagger");
    case.drive.unset("geometry.blocks_per_plane");
    case.drive.unset("reset.bookkeeping.");
    case.drive.unset("mapping.physical_zones");
    case.drive.unset("finish.takes_core");
    case.drive.unset("finish.path");
    if case.drive.is("finish.design", "at-fold") {
        case.drive.unset("finish.design");
    }
    case.drive.namespaces.clear();
    case.drive.set("geometry.channels", draw.of(&[2, 4]));
    case.drive.set("zones.channels", 1);
    let jobs = (0..2).map(|zone| {
        let work = draw.of(&["write", "read", "finish", "reset"]);
        let mut job = JobText::new(&format!("{work}{zone}"), &[("work", work)]);
        job.set("zones", format!("{zone}..={zone}"));
        match work {
            "write" => {
                job.set("operations", 20);
                job.set("repeat", "true");
            }
            "read" => {
                job.set("operations", 60);
                job.set("queue_depth", draw.of(&[1, 4]));
            }
            _ => job.set("fill", draw.of(&["0B", "50%"])),
        }
        job
    });
    case.work = Work::of(jobs.collect());
    let reads: Vec<usize> = case.work.jobs().enumerate().filter(|(_, job)| job.work() == "read").map(|(zone, _)| zone).collect();
    if let (Some(first), Some(last)) = (reads.first(), reads.last()) {
        case.drive.unset("data.store");
        case.work.series.insert("full_zones".to_owned(), format!("{first}..={last}"));
    }
}

fn alone_or_beside(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let front = &config.front_end;
    let shares = front.cores > 0
        || front.link_bytes_per_s.is_some()
        || front.max_in_flight_bytes.is_some()
        || config.write_buffer.is_some()
        || config.media.details.program_variation_ppm > 0
        || config.allocation != zonelab_ssd::config::AllocationConfig::NONE
        || config.reset.bookkeeping.is_some()
        || matches!(config.reset.erase, zonelab_ssd::config::EraseWhen::Thresholds(_));
    let zones: Vec<Option<&str>> = case.work.jobs().map(|job| job.get("zones")).collect();
    let is_apart = zones == [Some("0..=0"), Some("1..=1")];
    let has_groups = config.zones.channels < config.geometry.channels;
    let is_short = !case.work.states("runtime") && !case.work.states("start");
    let random = case.work.jobs().any(|job| job.work() == "read" && job.get("random") != Some("false"));
    if shares || !is_apart || !has_groups || !is_short || random {
        return Ok(Verdict::Skipped);
    }
    let mut alone = case.clone();
    alone.work.phases[0].truncate(1);
    let (beside, alone) = (runs.run("as it is", case)?, runs.run("alone", &alone)?);
    let (a, b) = (&beside.jobs[0], &alone.jobs[0]);
    for metric in ["ops", "lat_mean_us", "lat_min_us", "lat_max_us"] {
        let (beside, alone) = (a.metrics.get(metric), b.metrics.get(metric));
        if beside != alone {
            return unless(Some(format!("{metric} of {}: {beside:?} beside, {alone:?} alone", a.name)));
        }
    }
    Ok(Verdict::Holds)
}

fn deeper_queues(case: &Case, runs: &mut Runs) -> Checked {
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else { return Ok(Verdict::Skipped) };
    if job.work() != "read" || job.get("runtime").is_some() || job.number("operations", 0) < 60 {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    for job in other.work.jobs_mut() {
        let depth = job.number("queue_depth", 1);
        job.set("queue_depth", depth * 2);
    }
    let (one, two) = (runs.run("as it is", case)?, runs.run("deeper", &other)?);
    ensure(two.took.0 as f64 <= one.took.0 as f64 * 1.05, || {
        format!("it takes {} instead of {}", two.took, one.took)
    })
}

fn waits(case: &Case, runs: &mut Runs) -> Checked {
    let plain = runs.run("as it is", case)?;
    let traced = runs.run_with("traced", case, |point| point.explain_slowest(40))?;
    if let Some(what) = difference(&plain, &traced) {
        return Ok(Verdict::Broken(format!("with a trace: {what}")));
    }
    for one in &traced.slowest {
        if let Some(waits) = &one.waits
            && waits.total() != one.latency
        {
            return unless(Some(format!("{} took {}, its waits sum up to {}: {waits:?}", one.name, one.latency, waits.total())));
        }
    }
    Ok(Verdict::Holds)
}
