//! What is not used does not matter: results are the same, byte for byte.

use crate::case::{Case, JobText};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, any, ensure};
use crate::run::{Runs, difference};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "no-reads",
        says: "where nothing reads, what reads take, interrupt and go ahead of changes nothing",
        bound: Bound::Exact,
        shape: without_reads,
        check: no_reads,
    },
    Relation {
        name: "no-finishes",
        says: "where nothing finishes zones, the design of finish changes nothing",
        bound: Bound::Exact,
        shape: without_finishes,
        check: no_finishes,
    },
    Relation {
        name: "no-resets",
        says: "where nothing resets zones, erasures and the design of reset change nothing",
        bound: Bound::Exact,
        shape: without_resets,
        check: no_resets,
    },
    Relation {
        name: "no-appends",
        says: "where nothing appends, what appends take changes nothing",
        bound: Bound::Exact,
        shape: any,
        check: no_appends,
    },
    Relation {
        name: "neutral",
        says: "limits that are not reached, costs of nothing and commands that nobody sends \
               change nothing",
        bound: Bound::Exact,
        shape: any,
        check: neutral,
    },
    Relation {
        name: "endless-drain",
        says: "a write buffer whose drain is too fast to notice is as one without that limit",
        bound: Bound::Within("0.1 %: each unit takes the drain a nanosecond at least"),
        shape: any,
        check: endless_drain,
    },
    Relation {
        name: "yield-alone",
        says: "finishes that have the drive for themselves have nobody to give way to",
        bound: Bound::Exact,
        shape: finishes_alone,
        check: yield_alone,
    },
];

/// Whether jobs see zones, and nothing behind them works on its own.
fn is_zoned(case: &Case) -> bool {
    !case.work.states("blocks")
}

fn retain(case: &mut Case, keep: impl Fn(&JobText) -> bool) {
    for phase in &mut case.work.phases {
        phase.retain(&keep);
    }
    case.work.phases.retain(|phase| !phase.is_empty());
}

fn without_reads(_: &mut Draw, case: &mut Case) {
    retain(case, |job| job.work() != "read");
}

fn without_finishes(_: &mut Draw, case: &mut Case) {
    retain(case, |job| job.work() != "finish");
    for job in case.work.jobs_mut() {
        job.keys.remove("finish_first");
    }
}

fn without_resets(_: &mut Draw, case: &mut Case) {
    retain(case, |job| {
        !matches!(job.work(), "reset" | "open" | "close")
    });
    for job in case.work.jobs_mut() {
        job.keys.remove("repeat");
    }
}

/// Runs the case as it is and with each of the settings that it can have, and says which one
/// changes something. At the end of each run the drive has nothing more to do, so that it does not
/// matter when something is counted.
fn each(case: &Case, runs: &mut Runs, settings: &[&[&str]]) -> Checked {
    each_settled(&case.settled_by("read"), runs, settings)
}

fn each_settled(case: &Case, runs: &mut Runs, settings: &[&[&str]]) -> Checked {
    if case.work.jobs().nth(1).is_none() {
        return Ok(Verdict::Skipped);
    }
    let base = runs.run("as it is", case)?;
    for set in settings {
        let mut other = case.clone();
        other.drive.set_all(set);
        if other == *case {
            continue;
        }
        let Ok(result) = runs.run("changed", &other) else {
            continue;
        };
        if let Some(what) = difference(&base, &result) {
            return Ok(Verdict::Broken(format!("with {}: {what}", set.join(" "))));
        }
    }
    Ok(Verdict::Holds)
}

fn no_reads(case: &Case, runs: &mut Runs) -> Checked {
    if case.work.has("read") || !is_zoned(case) {
        return Ok(Verdict::Skipped);
    }
    const SETTINGS: &[&[&str]] = &[
        &["media.read=75776ns"],
        &["media.die_queue=read-first"],
        &["media.die_queue=weighted"],
        &["media.suspend.program=true", "media.suspend.erase=true"],
        &["media.suspend.program=true", "media.suspend.overhead=20us"],
        &["media.suspend.erase=true", "media.suspend.interval=50us"],
        &["front_end.read=9us"],
        &["front_end.costs.read_per_kib=100ns"],
        &["front_end.costs.read_completion=2us"],
        &["front_end.latency.read=5us"],
        &["zones.read_across=true"],
    ];
    // Folds read, too.
    let has_cache = case.drive.is("slc_cache.mode", "static");
    let settings = if has_cache { &SETTINGS[6..] } else { SETTINGS };
    each_settled(&case.settled_by("finish"), runs, settings)
}

fn no_finishes(case: &Case, runs: &mut Runs) -> Checked {
    if case.work.has("finish") || case.work.states("finish_first") || !is_zoned(case) {
        return Ok(Verdict::Skipped);
    }
    each(
        case,
        runs,
        &[
            &["finish.design=metadata"],
            &["finish.design=fill"],
            &["finish.granularity=1MiB"],
            &["finish.pause=1ms"],
            &["finish.yield_to_host=true"],
            &["finish.path=buffer"],
            &["finish.path=buffer", "finish.takes_core=true"],
        ],
    )
}

fn no_resets(case: &Case, runs: &mut Runs) -> Checked {
    let resets = ["reset", "open", "close"]
        .into_iter()
        .any(|work| case.work.has(work));
    if resets || case.work.states("repeat") || !is_zoned(case) {
        return Ok(Verdict::Skipped);
    }
    each(
        case,
        runs,
        &[
            &["media.erase=7ms"],
            &["reset.timing=synchronous"],
            &["reset.timing=asynchronous"],
            &["reset.timing=asynchronous", "reset.erase_at=background"],
            &[
                "reset.timing=asynchronous",
                "reset.erase_at=first-block-write",
            ],
            &["reset.extent=full"],
            &["reset.preemptive=true"],
            &["reset.bookkeeping.base=1ms"],
        ],
    )
}

fn no_appends(case: &Case, runs: &mut Runs) -> Checked {
    if case.work.has("append") {
        return Ok(Verdict::Skipped);
    }
    each(
        case,
        runs,
        &[
            &["front_end.append=9us"],
            &["front_end.costs.append_per_kib=100ns"],
            &["front_end.costs.append_completion=2us"],
            &["front_end.latency.append=5us"],
            &["front_end.max_append=4KiB"],
            &["front_end.appends_per_zone=1"],
        ],
    )
}

fn neutral(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let unit = format!("media.transfer_unit={}B", config.geometry.page_bytes);
    let active = format!("zones.max_active={}", config.zones.count);
    let area = config.zones.capacity_lbas.min(65_535);
    let area = match config.zones.capacity_lbas % area {
        0 => area,
        _ => 1,
    } * u64::from(config.lba_bytes);
    let area = [
        format!("zones.zrwa.size={area}B"),
        format!("zones.zrwa.flush_granularity={area}B"),
    ];
    let mut settings: Vec<Vec<&str>> = vec![
        vec![
            "copy.max_ranges=4",
            "copy.max_range=64KiB",
            "copy.max_length=64KiB",
        ],
        vec!["zones.descriptor_extension=64B"],
        vec![&area[0], &area[1]],
    ];
    let mut add_absent = |key: &str, setting: &'static str| {
        if case.drive.get(key).is_none() {
            settings.push(vec![setting]);
        }
    };
    add_absent("front_end.cores", "front_end.cores=1024");
    add_absent("front_end.max_in_flight", "front_end.max_in_flight=1GiB");
    add_absent(
        "front_end.appends_per_zone",
        "front_end.appends_per_zone=100000",
    );
    add_absent("media.program_variation", "media.program_variation=0%");
    if case.drive.get("front_end.max_transfer").is_none() && !case.work.states("blocks") {
        settings.push(vec!["front_end.max_transfer=1GiB"]);
    }
    if case.drive.get("zones.max_open").is_none() {
        settings.push(vec![&active]);
    }
    if !case.drive.is("media.planes", "multi-plane")
        && config.media.details.transfer_unit_bytes.is_none()
    {
        settings.push(vec![&unit]);
    }
    if !case.work.series.contains_key("full_zones") {
        settings.push(vec!["data.store=memory"]);
    }
    // A log waits until what it moved outlives a loss of power.
    let has_log = case.work.states("blocks");
    if config.slc_cache.is_none() && config.write_buffer.is_some() && !has_log {
        settings.push(vec!["write_buffer.power_loss_protection=true"]);
    }
    let settings: Vec<&[&str]> = settings.iter().map(Vec::as_slice).collect();
    each(case, runs, &settings)
}

fn endless_drain(case: &Case, runs: &mut Runs) -> Checked {
    // A reset takes back what waits in the buffer, and not what waits for its die.
    let takes_back = |job: &JobText| {
        matches!(job.work(), "reset" | "open" | "close") || job.get("repeat").is_some()
    };
    let is_limited = case
        .work
        .jobs()
        .any(|job| takes_back(job) || job.get("runtime").is_some());
    let is_idle = case.work.jobs().next().is_none();
    if is_idle
        || is_limited
        || !is_zoned(case)
        || case.drive.get("media.program_variation").is_some()
    {
        return Ok(Verdict::Skipped);
    }
    let mut base = case.clone();
    base.drive.unset("write_buffer.drain");
    let mut other = base.clone();
    other.drive.set("write_buffer.drain", "1000000GB/s");
    let (base, other) = (runs.run("as it is", &base)?, runs.run("drain", &other)?);
    let (a, b) = (base.took.0 as f64, other.took.0 as f64);
    ensure((a / b - 1.0).abs() <= 1e-3, || {
        format!("it takes {} instead of {}", other.took, base.took)
    })
}

fn finishes_alone(draw: &mut Draw, case: &mut Case) {
    case.work = super::idle::finishes(draw);
    case.drive.unset("finish.yield_to_host");
    case.drive.unset("finish.max_hold");
}

fn yield_alone(case: &Case, runs: &mut Runs) -> Checked {
    // What was written before is programmed by then.
    let is_settled = |job: &JobText| job.get("settle") == Some("1s");
    let mut jobs = case.work.jobs();
    let finishes = jobs.all(|job| job.work() == "finish" && is_settled(job));
    // A part of a row that the host wrote is programmed with the first that is filled.
    let through_buffer = case.drive.is("finish.path", "buffer");
    let is_part = through_buffer && !case.work.jobs().all(|job| job.get("fill") == Some("0%"));
    if !finishes || is_part || case.work.jobs().count() > 1 {
        return Ok(Verdict::Skipped);
    }
    each(case, runs, &[&["finish.yield_to_host=true"]])
}
