//! Nothing is more than its parts can do, and nothing gets lost.

use zonelab_config::units::parse_size;
use zonelab_lab::run::{DriveMeasured, PointResult};
use zonelab_ssd::account::{BusyByCause, Cause};
use zonelab_ssd::config::{DriveConfig, NamespaceKind, PlaneMode};
use zonelab_ssd::profile::Profile;

use crate::case::Case;
use crate::relation::{Bound, Checked, Relation, Verdict, any, ensure, unless};
use crate::run::{Refused, Runs};

pub(super) const ALL: &[Relation] = &[
    Relation {
        name: "little",
        says: "throughput times mean latency is at most what a job has in flight (Little)",
        bound: Bound::Exact,
        shape: any,
        check: little,
    },
    Relation {
        name: "busy-is-elapsed",
        says: "no channel and no unit is busy for longer than the run",
        bound: Bound::Exact,
        shape: any,
        check: busy,
    },
    Relation {
        name: "programmed",
        says: "what is programmed is at most what all dies can program in the time of the run, and \
               each page takes a die its time",
        bound: Bound::Within(
            "what write buffer and registers hold, which counts when a die has it \
                              ahead of it",
        ),
        shape: any,
        check: programmed,
    },
    Relation {
        name: "written",
        says: "what hosts wrote is at most what was programmed and what write buffer and registers \
               hold",
        bound: Bound::Exact,
        shape: any,
        check: written,
    },
    Relation {
        name: "erased",
        says: "the wear of all blocks is what was erased, and each erasure takes a die its time",
        bound: Bound::Exact,
        shape: any,
        check: erased,
    },
    Relation {
        name: "ceilings",
        says: "no more is programmed for hosts than what is expected of the drive at most",
        bound: Bound::Within(
            "an operation of each unit, and of each that is in flight: begun before the time that \
             counts, and ended in it",
        ),
        shape: any,
        check: ceilings,
    },
];

fn measured(case: &Case, runs: &mut Runs) -> Result<(PointResult, DriveMeasured), Refused> {
    let result = runs.run("as it is", case)?;
    let drive = result.drive.clone();
    let drive = drive.ok_or_else(|| Refused("the drive is not emulated".to_owned()))?;
    Ok((result, drive))
}

/// What the drive has done when it has done all that it put off.
fn settled(case: &Case, runs: &mut Runs) -> Result<(PointResult, DriveMeasured), Refused> {
    let result = runs.run("settled", &case.settled_by("read"))?;
    let drive = result.drive.clone();
    let drive = drive.ok_or_else(|| Refused("the drive is not emulated".to_owned()))?;
    Ok((result, drive))
}

fn little(case: &Case, runs: &mut Runs) -> Checked {
    let result = runs.run("as it is", case)?;
    for job in &result.jobs {
        let text = case.work.jobs().find(|text| text.name == job.name);
        let Some(text) = text else { continue };
        let in_flight = text.number("threads", 1) * text.number("queue_depth", 1);
        let value = |metric| job.metrics.get(metric).unwrap_or(0.0);
        let mean = value("ops_s") * value("lat_mean_us") / 1e6;
        if mean > in_flight as f64 * (1.0 + 1e-6) {
            return Ok(Verdict::Broken(format!(
                "{}: {:.1}/s of {:.1} us each are {mean:.3} in flight, of {in_flight}",
                job.name,
                value("ops_s"),
                value("lat_mean_us"),
            )));
        }
    }
    Ok(Verdict::Holds)
}

fn busy(case: &Case, runs: &mut Runs) -> Checked {
    let (result, drive) = measured(case, runs)?;
    let kinds = [
        ("channel", &drive.detail.channels),
        ("unit", &drive.detail.units),
    ];
    for (kind, rows) in kinds {
        for (index, row) in rows.iter().enumerate() {
            let busy: u64 = row.iter().sum();
            if busy > result.took.0 + 1 {
                return Ok(Verdict::Broken(format!(
                    "{kind} {index} is busy for {busy} ns of {} ns",
                    result.took.0
                )));
            }
        }
    }
    Ok(Verdict::Holds)
}

/// Busy time of all units for causes of a kind.
fn time_for(units: &[BusyByCause], is_kind: impl Fn(Cause) -> bool) -> u64 {
    let causes = Cause::ALL.into_iter().filter(|cause| is_kind(*cause));
    causes
        .map(|cause| units.iter().map(|unit| unit[cause as usize]).sum::<u64>())
        .sum()
}

/// Pages, or blocks, that one operation takes at most.
fn together(config: &DriveConfig) -> u64 {
    match config.media.planes {
        PlaneMode::MultiPlane => u64::from(config.geometry.planes),
        PlaneMode::Independent | PlaneMode::Single => 1,
    }
}

/// The shortest time that a page is programmed in, in nanoseconds, with variation.
fn program_ns(config: &DriveConfig) -> f64 {
    let program = config.media.program_ns.0 as f64;
    // In parts per million.
    let less = f64::from(config.media.details.program_variation_ppm) / 1e6;
    program * (1.0 - less) - 1.0
}

fn programmed(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    if config.slc_cache.is_some() {
        return Ok(Verdict::Skipped);
    }
    let (result, drive) = measured(case, runs)?;
    let page = u64::from(config.geometry.page_bytes);
    let pages = (drive.totals.programmed_bytes() / page) as f64;
    let most = drive.resources.1 as f64 * (result.took.0 as f64 / program_ns(config)).floor();
    let most = most * together(config) as f64;
    let held = config.write_buffer.map_or(0, |buffer| buffer.size_bytes) / page;
    let most = most + (held + registers(&profile) + on_the_way(case) / page) as f64;
    if pages > most {
        return Ok(Verdict::Broken(format!(
            "{pages} pages are programmed in {}, of {most} that are possible",
            result.took
        )));
    }
    let (_, drive) = settled(case, runs)?;
    let pages = (drive.totals.programmed_bytes() / page) as f64;
    let busy = time_for(&drive.detail.units, |cause| cause.is_program()) as f64;
    let needed = pages / together(config) as f64 * program_ns(config);
    ensure(needed <= busy * (1.0 + 1e-9) + 1.0, || {
        format!("{pages} pages are programmed in {busy} ns of dies, and take {needed} ns")
    })
}

/// Pages that may be on their way in a register or two of each plane, and in its cells.
fn registers(profile: &Profile) -> u64 {
    3 * u64::from(profile.derived.planes)
}

/// Bytes of writes that can be in flight.
fn on_the_way(case: &Case) -> u64 {
    let writes = case
        .work
        .jobs()
        .filter(|job| matches!(job.work(), "write" | "append"));
    let bytes = writes.map(|job| {
        let block = job.get("block").and_then(|of| parse_size(of).ok());
        job.number("threads", 1) * job.number("queue_depth", 1) * block.unwrap_or(4_096)
    });
    bytes.sum()
}

fn written(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let (_, drive) = measured(case, runs)?;
    let held = config.write_buffer.map_or(0, |buffer| buffer.size_bytes);
    let page = u64::from(config.geometry.page_bytes);
    let totals = drive.totals;
    // Areas are written over, and what is in the cache is folded later.
    if config.zones.zrwa.is_some() || config.slc_cache.is_some() {
        return Ok(Verdict::Skipped);
    }
    let room = held + registers(&profile) * page + on_the_way(case);
    let host = totals.host_write_bytes;
    ensure(host <= totals.host_program_bytes + room, || {
        format!(
            "{host} bytes were written, {} programmed for them, and {room} can be on their way",
            totals.host_program_bytes
        )
    })
}

fn erased(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let (_, drive) = settled(case, runs)?;
    let wear: u64 = drive
        .detail
        .erasures
        .iter()
        .map(|(times, blocks)| u64::from(*times) * blocks)
        .sum();
    let erased = drive.totals.erased_blocks;
    if config.slc_cache.is_some() {
        return Ok(Verdict::Skipped);
    }
    if wear != erased {
        return unless(Some(format!(
            "{erased} blocks were erased, and wear is {wear}"
        )));
    }
    let is_erasure = |cause| {
        matches!(
            cause,
            Cause::ResetErase | Cause::WriteErase | Cause::CollectErase
        )
    };
    let busy = time_for(&drive.detail.units, is_erasure);
    let needed = erased.div_ceil(together(config)) * config.media.erase_ns.0;
    ensure(needed <= busy, || {
        format!("{erased} blocks are erased in {busy} ns of dies, and take {needed} ns at least")
    })
}

fn ceilings(case: &Case, runs: &mut Runs) -> Checked {
    let profile = case.drive.profile()?;
    let config = &profile.config;
    let is_log = |kind: &NamespaceKind| *kind != NamespaceKind::Zoned;
    let has_log = config.namespaces.iter().any(|of| is_log(&of.kind));
    if config.slc_cache.is_some() || has_log || config.media.details.program_variation_ppm > 0 {
        return Ok(Verdict::Skipped);
    }
    let (result, drive) = measured(case, runs)?;
    let seconds = result.took.0 as f64 / 1e9;
    let page = f64::from(config.geometry.page_bytes);
    let units = f64::from(drive.resources.1) * together(config) as f64;
    let in_flight: f64 = case
        .work
        .jobs()
        .map(|job| (job.number("threads", 1) * job.number("queue_depth", 1)) as f64)
        .sum();
    let figures = &profile.derived.figures;
    let slack = (units + in_flight) * page;
    let held = config
        .write_buffer
        .map_or(0.0, |buffer| buffer.size_bytes as f64);
    let writes = figures.write_bytes_per_s.per_s as f64 * seconds + slack + held;
    let host = drive.totals.host_program_bytes as f64;
    ensure(host <= writes, || {
        format!(
            "{host} bytes are programmed in {}, {writes} expected at most",
            result.took
        )
    })
}
