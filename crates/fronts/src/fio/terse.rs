//! Results in fio's terse form, version 3: a line for each entry, whose fields are
//! separated by `;`, in the order that fio's manual gives. Latencies are in
//! microseconds, and amounts in KiB.

use std::fmt::Write as _;

use zonelab_host::stats::Latency;
use zonelab_host::workload::record::{DirectionStats, Spread};

use super::json::{bucket_shares, bucket_shares_ms, depth_shares};
use super::report::{Entry, Report, Samples};

/// Version of the form.
const VERSION: u32 = 3;
/// Fields for percentiles, whether there are so many or not.
const PERCENTILES: usize = 20;

/// Prints a report in terse form.
///
/// CPU use is 0. Fields about block devices of the host are left out, as by fio
/// for jobs that use none; fields about trims are in no line of this version.
#[must_use]
pub fn to_terse(report: &Report<'_>) -> String {
    let mut text = String::new();
    for entry in &report.entries {
        push_entry(&mut text, report, entry);
    }
    text
}

// Writing to a string does not fail: results of `write!` are dropped.

fn push_entry(text: &mut String, report: &Report<'_>, entry: &Entry<'_>) {
    let _ = write!(
        text,
        "{VERSION};zonelab-{};{};{};{}",
        env!("CARGO_PKG_VERSION"),
        entry.job.name,
        entry.job.group,
        entry.error()
    );
    for index in [0, 1] {
        push_direction(text, entry, index);
    }
    // Use of the CPU, context switches and page faults.
    text.push_str(";0.000000%;0.000000%;0;0;0");
    for (_, share) in depth_shares(entry) {
        let _ = write!(text, ";{share:.1}%");
    }
    // What takes less than a microsecond is within two.
    let below: f64 = bucket_shares(entry, 0).iter().map(|(_, share)| share).sum();
    let mut micros = bucket_shares(entry, 10);
    micros[0].1 += below;
    for (_, share) in micros.into_iter().chain(bucket_shares_ms(entry)) {
        let _ = write!(text, ";{share:.2}%");
    }
    let section = &report.file.sections[entry.job.section];
    if let Some(description) = section.description() {
        let _ = write!(text, ";{description}");
    }
    text.push('\n');
}

fn push_direction(text: &mut String, entry: &Entry<'_>, index: usize) {
    let stats = entry.directions[index].as_ref();
    let run_time = entry.run_time[index];
    let seconds = run_time.as_secs_f64();
    let per_second = |amount: f64| match seconds > 0.0 {
        true => amount / seconds,
        false => 0.0,
    };
    let bytes = stats.map_or(0, |stats| stats.bytes);
    let operations = stats.map_or(0, |stats| stats.operations);
    let _ = write!(
        text,
        ";{};{};{};{}",
        bytes / 1024,
        (per_second(bytes as f64) / 1024.0) as u64,
        per_second(operations as f64) as u64,
        run_time.0 / 1_000_000
    );
    push_latency(text, stats.map(|stats| &stats.submission));
    push_latency(text, stats.map(|stats| &stats.completion));
    push_percentiles(text, entry, stats);
    push_latency(text, stats.map(|stats| &stats.total));
    let bandwidth = stats.map_or_else(Samples::default, |s| Samples::of_bandwidth(&s.bandwidth));
    let share = if bandwidth.count > 0 { 100.0 } else { 0.0 };
    let _ = write!(
        text,
        ";{};{};{share:.6}%;{:.6};{:.6}",
        bandwidth.min, bandwidth.max, bandwidth.mean, bandwidth.stddev
    );
}

/// Shortest, longest, mean, standard deviation.
fn push_latency(text: &mut String, spread: Option<&Spread>) {
    let moments = spread.map(Spread::moments);
    let whole = |ns: Option<u64>| ns.unwrap_or(0) / 1000;
    let exact = |ns: Option<f64>| ns.unwrap_or(0.0) / 1000.0;
    let _ = write!(
        text,
        ";{};{};{:.6};{:.6}",
        whole(moments.and_then(|m| m.min())),
        whole(moments.and_then(|m| m.max())),
        exact(moments.and_then(|m| m.mean())),
        exact(moments.and_then(|m| m.stddev()))
    );
}

/// Percentiles of completion latencies, or of total ones if only these are wanted.
fn push_percentiles(text: &mut String, entry: &Entry<'_>, stats: Option<&DirectionStats>) {
    let recording = entry.spec().recording.directions;
    let is_kept = recording.map(|of| (of.completion_percentiles, of.total_percentiles));
    let spread = match is_kept.unwrap_or_default() {
        (true, _) => Some(stats.map(|stats| &stats.completion)),
        (false, true) => Some(stats.map(|stats| &stats.total)),
        (false, false) => None,
    };
    let latency: Option<&Latency> = spread.flatten().and_then(Spread::percentiles);
    let list: &[f64] = match spread {
        Some(_) => &entry.job.percentile_list,
        None => &[],
    };
    for percent in list {
        let value = latency.and_then(|latency| latency.percentile(*percent));
        let us = value.unwrap_or_default().0 / 1000;
        let _ = write!(text, ";{percent:.6}%={us}");
    }
    for _ in list.len()..PERCENTILES {
        text.push_str(";0%=0");
    }
}
