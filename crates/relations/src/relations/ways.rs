//! The same work by another way is the same.

use zonelab_config::units::parse_size;
use zonelab_fronts::fio::{self, RunSettings};
use zonelab_host::fio::{JobFile, Outside};
use zonelab_lab::conditions::Conditions;
use zonelab_sim::HostCosts;
use zonelab_ssd::Drive;

use crate::case::{Case, DriveText, JobText, Work};
use crate::draw::Draw;
use crate::relation::{Bound, Checked, Relation, Verdict, any, ensure, unless};
use crate::run::{Refused, Runs, SEED, difference, difference_to_hosts};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "over-pcie",
        says: "jobs behind the driver for PCIe measure the same as without it",
        bound: Bound::Within(
            "exact for one thread; with several 5 % of the time that all take: \
                              what comes at the same time is served in another order",
        ),
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
        name: "mapping-unit",
        says: "where all writes are whole mapping units, it does not matter how large those are",
        bound: Bound::Within("5 %: what is collected is moved in other pieces"),
        shape: whole_units,
        check: mapping_unit,
    },
    Relation {
        name: "as-fio",
        says: "one thread that writes a zone, or reads it in order, takes as long in a job file of \
               fio",
        bound: Bound::Exact,
        shape: one_stream,
        check: as_fio,
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
    // The controller takes time to start, in which zones are prepared.
    if case.drive.get("mapping.pool").is_some_and(|of| of != "0") {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other
        .work
        .series
        .insert("via".to_owned(), "pcie".to_owned());
    let (direct, pcie) = (runs.run("as it is", case)?, runs.run("over PCIe", &other)?);
    let alone = |phase: &Vec<JobText>| phase.len() == 1 && phase[0].number("threads", 1) == 1;
    if case.work.phases.iter().all(alone) {
        return unless(difference_to_hosts(&direct, &pcie));
    }
    let (a, b) = (direct.took.0 as f64, pcie.took.0 as f64);
    ensure((a - b).abs() <= 0.05 * a, || {
        format!("it takes {}, and {} over PCIe", direct.took, pcie.took)
    })
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
    let reads: Vec<usize> = case
        .work
        .jobs()
        .enumerate()
        .filter(|(_, job)| job.work() == "read")
        .map(|(zone, _)| zone)
        .collect();
    if let (Some(first), Some(last)) = (reads.first(), reads.last()) {
        case.drive.unset("data.store");
        case.work
            .series
            .insert("full_zones".to_owned(), format!("{first}..={last}"));
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
        || matches!(
            config.reset.erase,
            zonelab_ssd::config::EraseWhen::Thresholds(_)
        );
    let zones: Vec<Option<&str>> = case.work.jobs().map(|job| job.get("zones")).collect();
    let is_apart = zones == [Some("0..=0"), Some("1..=1")];
    let has_groups = config.zones.channels < config.geometry.channels;
    let is_short = !case.work.states("runtime") && !case.work.states("start");
    let random = case
        .work
        .jobs()
        .any(|job| job.work() == "read" && job.get("random") != Some("false"));
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
            return unless(Some(format!(
                "{metric} of {}: {beside:?} beside, {alone:?} alone",
                a.name
            )));
        }
    }
    Ok(Verdict::Holds)
}

/// A conventional drive with blocks of which mapping units are a part.
fn whole_units(draw: &mut Draw, case: &mut Case) {
    let drive = &mut case.drive;
    for key in [
        "slc_cache.",
        "zones.capacity",
        "zones.max_",
        "zones.stagger",
        "zones.zrwa.",
        "geometry.blocks_per_plane",
        "mapping.thin",
        "mapping.physical_zones",
        "front_end.max_transfer",
        "front_end.max_append",
        "reset.",
    ] {
        drive.unset(key);
    }
    if drive.is("finish.design", "at-fold") {
        drive.unset("finish.design");
    }
    drive.set("zones.count", 10);
    let Ok(profile) = DriveText {
        namespaces: Vec::new(),
        ..drive.clone()
    }
    .profile() else {
        return;
    };
    drive.set(
        "zones.size",
        format!("{}B", profile.derived.zone_flash_bytes),
    );
    let unit = draw.of(&[1, 2, 4, 8]) * profile.config.lba_bytes;
    let namespace = [
        ("kind", "conventional".to_owned()),
        ("zones", "10".to_owned()),
        ("spare_zones", "4".to_owned()),
        ("mapping_unit", format!("{unit}B")),
    ];
    let owned = namespace.map(|(key, value)| (key.to_owned(), value));
    drive.namespaces = vec![owned.into_iter().collect()];
    let block = format!("{}B", u64::from(unit) * draw.int(1, 3));
    let fill = [
        ("work", "write"),
        ("blocks", "0%..100%"),
        ("random", "false"),
        ("passes", "1"),
        ("block", "32KiB"),
    ];
    let over = [
        ("work", "write"),
        ("blocks", "0%..100%"),
        ("operations", "80"),
        ("block", block.as_str()),
    ];
    case.work = Work {
        phases: vec![
            vec![JobText::new("fill", &fill)],
            vec![JobText::new("over", &over)],
        ],
        ..Work::default()
    };
}

fn mapping_unit(case: &Case, runs: &mut Runs) -> Checked {
    let size = |text: Option<&str>| text.and_then(|of| parse_size(of).ok());
    let [namespace] = &case.drive.namespaces[..] else {
        return Ok(Verdict::Skipped);
    };
    let unit = size(namespace.get("mapping_unit").map(String::as_str));
    let is_whole = |job: &JobText| {
        let block = size(job.get("block")).unwrap_or(4_096);
        unit.is_some_and(|unit| unit > 0 && block.is_multiple_of(unit))
    };
    if !case.work.jobs().all(is_whole) || !case.work.states("blocks") {
        return Ok(Verdict::Skipped);
    }
    let mut other = case.clone();
    other.drive.namespaces[0].remove("mapping_unit");
    let (unit, block) = (runs.run("as it is", case)?, runs.run("blocks", &other)?);
    let (a, b) = (unit.took.0 as f64, block.took.0 as f64);
    ensure((a / b - 1.0).abs() <= 0.05, || {
        format!(
            "it takes {}, and {} with units of a block",
            unit.took, block.took
        )
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
            return unless(Some(format!(
                "{} took {}, its waits sum up to {}: {waits:?}",
                one.name,
                one.latency,
                waits.total()
            )));
        }
    }
    Ok(Verdict::Holds)
}

/// One thread on one zone, one operation at a time.
fn one_stream(draw: &mut Draw, case: &mut Case) {
    for key in [
        "data.store",
        "front_end.max_transfer",
        "front_end.max_append",
    ] {
        case.drive.unset(key);
    }
    case.drive.namespaces.clear();
    let Ok(profile) = case.drive.profile() else {
        return;
    };
    let config = &profile.config;
    let lba = u64::from(config.lba_bytes);
    // Whole operations: the rest of a zone is left by one and written by the other.
    let capacity = config.zones.capacity_lbas;
    let blocks = draw.divisor(capacity).min(256);
    let work = draw.of(&["read", "write"]);
    let mut job = JobText::new("stream", &[("work", work), ("zones", "0..=0")]);
    job.set("block", format!("{}B", blocks * lba));
    case.work = Work::of(vec![job]);
    if work == "read" {
        let operations = capacity / blocks;
        for job in case.work.jobs_mut() {
            job.set("random", "false");
            job.set("operations", operations);
        }
        let full = ("full_zones".to_owned(), "0..=0".to_owned());
        case.work.series.extend([full]);
    }
}

fn as_fio(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let jobs: Vec<&JobText> = case.work.jobs().collect();
    let [job] = jobs[..] else {
        return Ok(Verdict::Skipped);
    };
    let block = job.get("block").and_then(|of| parse_size(of).ok());
    let capacity = config.zones.capacity_lbas * u64::from(config.lba_bytes);
    let Some(block) = block.filter(|block| *block > 0 && capacity.is_multiple_of(*block)) else {
        return Ok(Verdict::Skipped);
    };
    let is_whole = match job.work() {
        "write" => job.keys.len() == 3,
        "read" => {
            job.get("random") == Some("false") && job.number("operations", 0) == capacity / block
        }
        _ => false,
    };
    let draws = config.media.details.program_variation_ppm > 0;
    let is_one = is_whole && job.get("zones") == Some("0..=0") && case.work.host.is_empty();
    if !is_one || draws || !config.namespaces.is_empty() {
        return Ok(Verdict::Skipped);
    }
    let here = runs.run("as it is", case)?;
    let text = format!(
        "[stream]\nrw={}\nbs={block}\nzonemode=zbd\noffset=0\nsize=1z\niodepth=1\n",
        job.work()
    );
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let refused = |error: &dyn std::fmt::Debug| Refused(format!("{error:?}"));
    let file = JobFile::parse("relation.fio", &text, &outside).map_err(|error| refused(&error))?;
    let info = Drive::new(config).info().clone();
    let plan = file.plan(&info, 1).map_err(|error| refused(&error))?;
    let settings = RunSettings {
        conditions: Conditions::default(),
        trace: None,
        saves: false,
        seed: SEED,
        costs: HostCosts::FREE,
        full_zones: case.work.series.contains_key("full_zones").then_some(0..1),
        interrupt: std::sync::Arc::default(),
    };
    let there = fio::run(&plan, config, &settings).map_err(|error| refused(&error))?;
    ensure(here.took == there.took, || {
        format!(
            "it takes {}, and {} as the job file\n{text}",
            here.took, there.took
        )
    })
}
