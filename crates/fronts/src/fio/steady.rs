//! What a job with fio's `steadystate` came to.

use serde_json::{Value, json};
use zonelab_host::workload::steady::{Interval, Metric, Steadiness, SteadyGoal};

/// What fio says of a job with `steadystate`.
pub(super) fn to_json(of: &Steadiness) -> Value {
    let unit = if of.goal.is_percent { "%" } else { "" };
    let series = |each: fn(&Interval) -> f64| -> Vec<u64> {
        of.intervals
            .iter()
            .map(|of| each(of).round() as u64)
            .collect()
    };
    json!({
        "ss": format!("{}:{:.6}{unit}", name(&of.goal, "_slope", ""), of.goal.limit),
        "duration": of.goal.duration.0 / 1_000_000_000,
        "attained": u8::from(of.is_attained),
        "criterion": format!("{:.6}{unit}", of.criterion),
        "max_deviation": of.deviation,
        "slope": of.slope,
        "data": {
            "bw_mean": of.mean(|of| of.bytes_per_second).round() as u64,
            "iops_mean": of.mean(|of| of.iops).round() as u64,
            "lat_mean": of.mean(|of| of.latency_ns).round() as u64,
            "bw": series(|of| of.bytes_per_second),
            "iops": series(|of| of.iops),
            "lat": series(|of| of.latency_ns),
        },
    })
}

/// What is to be steady: `iops_slope`, `bw mean dev` and the like.
pub(super) fn name(goal: &SteadyGoal, slope: &str, deviation: &str) -> String {
    let base = match goal.metric {
        Metric::Iops => "iops",
        Metric::Bandwidth => "bw",
        Metric::Latency => "lat",
    };
    format!("{base}{}", if goal.is_slope { slope } else { deviation })
}
