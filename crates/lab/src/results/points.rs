//! `points.json`: what each point measured, and what it all depends on.

use serde_json::{Value, json};
use zonelab_host::stats::Latency;

use super::{Finished, exports};
use crate::conditions::JobFailure;
use crate::owed;
use crate::rows::significant;
use crate::run::{EndedEarly, PointResult};

/// Version of the format of `points.json`.
const POINTS_SCHEMA: u32 = 2;

/// Percentiles of lateness.
const LATENESS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The points of all experiments with their configuration; `lost` says what failed on a
/// device, after which no point was run.
pub(super) fn points_json(
    finished: &[Finished],
    (configuration, seed): (&Value, u64),
    lost: Option<&str>,
) -> String {
    let points: Vec<Value> = finished
        .iter()
        .flat_map(|one| {
            one.results
                .iter()
                .map(|result| point_json(&one.experiment.id, result, seed))
        })
        .collect();
    let mut value = json!({
        "schema": POINTS_SCHEMA,
        "seed": seed,
        "configuration": configuration,
        "points": points,
    });
    if let Some(lost) = lost {
        value["lost"] = json!(lost);
    }
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

/// A point as it stands among them.
#[must_use]
pub fn point_json(experiment: &str, result: &PointResult, seed: u64) -> Value {
    let jobs: Vec<Value> = result
        .jobs
        .iter()
        .map(|job| {
            let values = job.metrics.values.iter();
            let metrics: serde_json::Map<String, Value> = values
                .map(|(name, value)| ((*name).to_owned(), json!(significant(*value))))
                .collect();
            let mut value = json!({
                "name": job.name,
                "kind": job.kind.name(),
                "metrics": metrics,
            });
            exports::add_spread(&mut value, job, seed);
            value
        })
        .collect();
    let mut point = json!({
        "experiment": experiment,
        "series": result.series,
        "x": significant(result.x.number),
        "x_label": result.x.text,
        "jobs": jobs,
    });
    if let Some(drive) = &result.drive {
        let totals = &drive.totals;
        point["drive"] = json!({
            "simulated_ns": result.took.0,
            "host_write_bytes": totals.host_write_bytes,
            "host_read_bytes": totals.host_read_bytes,
            "host_program_bytes": totals.host_program_bytes,
            "fill_program_bytes": totals.fill_program_bytes,
            "dlwa": totals.dlwa().map(significant),
            "erased_blocks": totals.erased_blocks,
            "resets": totals.resets,
            "finishes": totals.finishes,
            "implicit_closes": totals.implicit_closes,
            "channels": drive.resources.0,
            "channel_busy_ns": drive.busy_ns.0,
            "units": drive.resources.1,
            "unit_busy_ns": drive.busy_ns.1,
            "owed": owed::to_json(&drive.owed),
        });
    }
    if let Some(late) = &result.lateness {
        // Real time takes the place of simulated time.
        if let Some(drive) = point.get_mut("drive").and_then(Value::as_object_mut) {
            drive.remove("simulated_ns");
        }
        point["real"] = json!({
            "elapsed_ns": result.took.0,
            "lateness_ns": lateness(late),
        });
    }
    if !result.ended_early.is_empty() {
        let ended = |ended: &EndedEarly| json!({ "job": ended.job, "why": ended.why });
        point["ended_early"] = result.ended_early.iter().map(ended).collect();
    }
    // Only where there can be any: without faults, a failure ends the run.
    let struck: u64 = result.faults_struck.iter().sum();
    if struck > 0 || !result.failures.is_empty() {
        let failure = |failure: &JobFailure| {
            let JobFailure { job, failed } = failure;
            json!({
                "job": job, "kind": failed.name(), "status": failed.status.to_string(),
                "namespace": failed.namespace.0, "zone": failed.zone.map(|zone| zone.0),
                "lba": failed.lba.map(|lba| lba.0),
            })
        };
        point["faults_struck"] = json!(struck);
        point["failures"] = result.failures.iter().map(failure).collect();
    }
    point
}

/// How late the host was, in the shape of fio's latencies.
fn lateness(late: &Latency) -> Value {
    let percentile = |percent: &f64| {
        let value = late.percentile(*percent).unwrap_or_default();
        (format!("{percent:.6}"), json!(value.0))
    };
    let percentiles: serde_json::Map<String, Value> = LATENESS.iter().map(percentile).collect();
    json!({
        "min": late.min().unwrap_or_default().0,
        "max": late.max().unwrap_or_default().0,
        "mean": significant(late.mean_ns().unwrap_or_default()),
        "stddev": significant(late.stddev_ns().unwrap_or_default()),
        "N": late.count(),
        "percentile": percentiles,
    })
}
