//! More of what helps does not hurt.

use crate::case::{Case, JobText, Work};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, ensure};
use crate::run::Runs;

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "deeper-queues",
        says: "a fixed number of reads takes no longer with twice as many in flight",
        bound: Bound::Within("10 %: other blocks are read at the same time"),
        shape: many_reads,
        check: deeper_queues,
    },
    Relation {
        name: "threads-for-depth",
        says: "threads with one read each are as fast as one with as many in flight",
        bound: Bound::Within("15 %: they read other blocks"),
        shape: many_reads,
        check: threads_for_depth,
    },
    Relation {
        name: "more-dies",
        says: "a fixed number of reads takes no longer on twice as many dies",
        bound: Bound::Within("10 %: blocks are elsewhere"),
        shape: many_reads,
        check: more_dies,
    },
    Relation {
        name: "reads-first",
        says: "reads beside writes, finishes or resets are no slower for going first, interrupting \
               them, or for erasures that give way",
        bound: Bound::Within("10 %: the others are done at other times"),
        shape: reads_beside,
        check: reads_first,
    },
    Relation {
        name: "larger-buffer",
        says: "fixed writes take no longer with a write buffer twice as large",
        bound: Bound::Within("10 %: dies are chosen at other times"),
        shape: buffered_writes,
        check: larger_buffer,
    },
];

/// Reads of blocks, everywhere in two or more zones, and enough of them for a mean.
fn many_reads(draw: &mut Draw, case: &mut Case) {
    for key in [
        "data.store",
        "slc_cache.",
        "zones.max_",
        "mapping.chunk_blocks",
    ] {
        case.drive.unset(key);
    }
    case.drive.unset("geometry.blocks_per_plane");
    case.drive.unset("front_end.max_in_flight");
    if case.drive.is("finish.design", "at-fold") {
        case.drive.unset("finish.design");
    }
    case.drive.namespaces.clear();
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let zones = format!("0..={}", profile.config.zones.count - 1);
    let mut job = JobText::new("read", &[("work", "read"), ("operations", "1500")]);
    job.set("zones", &zones);
    job.set("block", format!("{}B", profile.config.lba_bytes));
    job.set("queue_depth", draw.of(&[1, 2, 4, 8]));
    case.work = Work::of(vec![job]);
    case.work.series.insert("full_zones".to_owned(), zones);
}

/// The only job, if it makes many random reads.
fn only_reads(case: &Case) -> Option<&JobText> {
    let mut jobs = case.work.jobs();
    let job = jobs.next().filter(|job| job.work() == "read")?;
    let is_random = job.get("random").is_none() && job.get("runtime").is_none();
    let is_many = job.number("operations", 0) >= 1_000 && job.number("threads", 1) == 1;
    (jobs.next().is_none() && is_random && is_many).then_some(job)
}

fn no_slower(case: &Case, other: &Case, (runs, share): (&mut Runs, f64)) -> Checked {
    let (one, two) = (runs.run("as it is", case)?, runs.run("with more", other)?);
    ensure(two.took.0 as f64 <= one.took.0 as f64 * share, || {
        format!("it takes {} instead of {}", two.took, one.took)
    })
}

fn deeper_queues(case: &Case, runs: &mut Runs) -> Checked {
    let Some(job) = only_reads(case) else {
        return Ok(Verdict::Skipped);
    };
    let depth = job.number("queue_depth", 1);
    let mut other = case.clone();
    for job in other.work.jobs_mut() {
        job.set("queue_depth", depth * 2);
    }
    no_slower(case, &other, (runs, 1.10))
}

fn threads_for_depth(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let depth = only_reads(case).map_or(1, |job| job.number("queue_depth", 1));
    let zones = u64::from(profile.config.zones.count);
    // Threads share zones, of which all dies have to have some.
    if depth == 1 || !zones.is_multiple_of(depth) || profile.derived.zone_groups > 1 {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    for job in other.work.jobs_mut() {
        let operations = job.number("operations", 0) / depth;
        job.set("queue_depth", 1);
        job.set("threads", depth);
        job.set("operations", operations);
    }
    let (one, two) = (runs.run("as it is", case)?, runs.run("threads", &other)?);
    let rate = |result: &zonelab_lab::run::PointResult| result.jobs[0].metrics.get("ops_s");
    let (Some(one), Some(two)) = (rate(&one), rate(&two)) else {
        return Ok(Verdict::Skipped);
    };
    ensure((two / one - 1.0).abs() <= 0.15, || {
        format!("{one:.0} reads per second of one thread, {two:.0} of {depth}")
    })
}

fn more_dies(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    if only_reads(case).is_none() || profile.config.mapping.has_elements() {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other
        .drive
        .set("geometry.dies", profile.config.geometry.dies * 2);
    no_slower(case, &other, (runs, 1.10))
}

/// Reads of full zones beside something else, for a time.
fn reads_beside(draw: &mut Draw, case: &mut Case) {
    many_reads(draw, case);
    case.drive.unset("media.suspend.");
    case.drive.unset("reset.");
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let work = draw.of(&["write", "reset", "finish"]);
    let mut other = JobText::new("other", &[("work", work)]);
    let last = profile.config.zones.count - 1;
    other.set("zones", "0..=1");
    match work {
        "write" => {
            other.set("block", format!("{}B", profile.config.geometry.page_bytes));
            other.set("repeat", "true");
        }
        "reset" => other.set("fill", "100%"),
        _ => {}
    }
    for job in case.work.jobs_mut() {
        job.set("zones", format!("2..={last}"));
        job.set("queue_depth", draw.of(&[1, 2]));
        job.keys.remove("operations");
        job.set("runtime", "100ms");
    }
    other.set("runtime", "100ms");
    case.work.phases[0].push(other);
    case.work
        .series
        .insert("full_zones".to_owned(), format!("2..={last}"));
}

fn reads_first(case: &Case, runs: &mut Runs) -> Checked {
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [read, other] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let is_fit = read.work() == "read"
        && read.get("runtime") == Some("100ms")
        && other.get("runtime") == Some("100ms")
        && other.work() != "read";
    let states = |key: &str| case.drive.get(key).is_some();
    if !is_fit || states("media.suspend.program") || states("reset.preemptive") {
        return Ok(Verdict::Skipped);
    }
    let mut base = case.clone();
    base.drive.set("media.die_queue", "fifo");
    base.drive.unset("media.read_weight");
    let before = runs.run("as it is", &base)?;
    let settings: &[&[&str]] = &[
        &["media.die_queue=read-first"],
        &["media.suspend.program=true", "media.suspend.erase=true"],
        &["reset.preemptive=true"],
    ];
    for set in settings {
        let mut helped = base.clone();
        helped.drive.set_all(set);
        let Ok(after) = runs.run("helped", &helped) else {
            continue;
        };
        let mean =
            |result: &zonelab_lab::run::PointResult| result.jobs[0].metrics.get("lat_mean_us");
        let (Some(before), Some(after)) = (mean(&before), mean(&after)) else {
            continue;
        };
        if after > before * 1.10 {
            let set = set.join(" ");
            return Ok(Verdict::Broken(format!(
                "with {set} reads take {after} us instead of {before}"
            )));
        }
    }
    Ok(Verdict::Holds)
}

fn buffered_writes(draw: &mut Draw, case: &mut Case) {
    case.drive.unset("slc_cache.");
    if case.drive.is("finish.design", "at-fold") {
        case.drive.unset("finish.design");
    }
    case.drive.unset("front_end.max_in_flight");
    case.drive.namespaces.clear();
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let page = u64::from(profile.config.geometry.page_bytes);
    let planes = u64::from(profile.derived.planes);
    case.drive.set("write_buffer.mode", "write-back");
    let pages = draw.int(1, 3) * planes;
    case.drive
        .set("write_buffer.size", format!("{}B", pages * page));
    let mut job = JobText::new("write", &[("work", "write"), ("zones", "0..=0")]);
    job.set("block", format!("{page}B"));
    case.work = Work::of(vec![job]);
}

fn larger_buffer(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let Some(buffer) = profile.config.write_buffer else {
        return Ok(Verdict::Skipped);
    };
    if !matches!(job.work(), "write" | "append") || job.get("runtime").is_some() {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other
        .drive
        .set("write_buffer.size", format!("{}B", buffer.size_bytes * 2));
    no_slower(case, &other, (runs, 1.10))
}
