//! Results for people, in the form of fio's normal output.

use std::fmt::Write as _;

use zonelab_device::Nanos;
use zonelab_host::stats::{Latency, Moments, OpKind};
use zonelab_host::workload::directed::Direction;
use zonelab_host::workload::record::{DirectionStats, Spread};
use zonelab_lab::table::number;

use super::json::{bucket_shares, bucket_shares_ms, depth_shares};
use super::report::{Entry, LATENESS, Report, Samples};
use super::run::DriveWork;
use super::steady;

/// Prints a report as text.
#[must_use]
pub fn to_text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for entry in &report.entries {
        push_entry(&mut text, report, entry);
    }
    let groups = report.entries.iter().map(|entry| entry.job.group);
    for group in 0..groups.max().map_or(0, |last| last + 1) {
        push_group(&mut text, report, group);
    }
    let (device, took, seed) = (&report.device, report.took, report.seed);
    let _ = match &report.lateness {
        None => writeln!(text, "\n{device}: {took} simulated, seed {seed}"),
        Some(_) => writeln!(text, "\n{device}: {took} in real time, seed {seed}"),
    };
    if let Some(late) = &report.lateness {
        push_lateness(&mut text, late);
    }
    if let Some(work) = report.drive.as_deref() {
        push_drive(&mut text, work);
    }
    if let Some(lost) = &report.lost {
        let _ = writeln!(text, "PARTIAL: {lost}");
    }
    text
}

/// Whether it became steady, if it was to.
fn push_steady_state(text: &mut String, entry: &Entry<'_>) {
    let Some(of) = &entry.steadiness else {
        return;
    };
    let _ = writeln!(
        text,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {}={:.3}{}",
        if of.is_attained { "yes" } else { "no" },
        binary(of.mean(|of| of.bytes_per_second), "/s"),
        decimal(of.mean(|of| of.bytes_per_second), "/s"),
        count(of.mean(|of| of.iops)),
        steady::name(&of.goal, " slope", " mean dev"),
        of.criterion,
        if of.goal.is_percent { "%" } else { "" },
    );
}

/// What the drive did, if it did anything.
fn push_drive(text: &mut String, work: &DriveWork) {
    let totals = &work.totals;
    if totals.programmed_bytes() + totals.erased_blocks + totals.host_read_bytes > 0 {
        let dlwa = totals.dlwa();
        let dlwa = dlwa.map_or_else(String::new, |dlwa| format!(" (DLWA {dlwa:.3})"));
        let _ = writeln!(
            text,
            "  drive: read={}, written={}, programmed={}{dlwa}, erased={} blocks",
            binary(totals.host_read_bytes as f64, ""),
            binary(totals.host_write_bytes as f64, ""),
            binary(totals.programmed_bytes() as f64, ""),
            totals.erased_blocks
        );
    }
    if let Some(warning) = work.warning() {
        let _ = writeln!(text, "  warning: {warning}");
    }
}

// Writing to a string does not fail: results of `writeln!` are dropped.

fn push_entry(text: &mut String, report: &Report<'_>, entry: &Entry<'_>) {
    let section = &report.file.sections[entry.job.section];
    let _ = writeln!(
        text,
        "\n{}: (groupid={}, jobs={}): err={:2}",
        entry.job.name,
        entry.job.group,
        entry.threads,
        entry.error()
    );
    if let Some(description) = section.description() {
        let _ = writeln!(text, "  Description  : [{description}]");
    }
    for direction in Direction::ALL {
        let index = direction as usize;
        if let Some(stats) = &entry.directions[index] {
            push_direction(text, entry, direction, stats);
        }
    }
    push_syncs(text, entry);
    if entry.operations() > 0 {
        push_shares(text, entry);
    }
    let issued = Direction::ALL.map(|d| {
        let stats = entry.directions[d as usize].as_ref();
        stats.map_or(0, |stats| stats.operations)
    });
    let [read, write, trim] = issued;
    let syncs = entry.syncs.as_ref().map_or(0, |of| of.moments().count());
    let _ = writeln!(
        text,
        "     issued rwts: total={read},{write},{trim},{syncs} short=0,0,0,0 dropped=0,0,0,0"
    );
    if let (Some(target), Some(depth)) = (entry.spec().latency.target, entry.depth_found) {
        let _ = writeln!(
            text,
            "     latency   : target={}, window={}, percentile={:.2}%, depth={depth}",
            target.latency.0, target.window.0, target.percent
        );
    }
    push_steady_state(text, entry);
    if let Some(late) = entry.too_late {
        let _ = writeln!(
            text,
            "     too late   : {} is longer than {}",
            late.latency, late.limit
        );
    }
    if let Some(replayed) = &entry.replayed {
        let _ = writeln!(
            text,
            "     replay: moved={}, skipped reads={}, skipped trims={}, split={}, cleared zones={}",
            replayed.moved_writes,
            replayed.skipped_reads,
            replayed.skipped_trims,
            replayed.split,
            entry.cleared_zones
        );
        push_lateness(text, &replayed.lateness);
    }
    let kinds: Vec<String> = OpKind::ALL
        .into_iter()
        .filter(|kind| entry.kinds[*kind as usize] > 0)
        .map(|kind| format!("{}={}", kind.name(), entry.kinds[kind as usize]))
        .collect();
    if !kinds.is_empty() {
        let _ = writeln!(text, "     operations : {}", kinds.join(", "));
    }
    for warning in entry.warnings() {
        let _ = writeln!(text, "     warning    : {warning}");
    }
    if let Some(first) = entry.first_error {
        let failed = entry.errors;
        let _ = writeln!(text, "     failed     : {failed}, first {first}");
    }
    if entry.stuck > 0 {
        let _ = writeln!(
            text,
            "     stuck      : {} threads waited for ever: {}",
            entry.stuck,
            report.waited_for()
        );
    }
}

fn push_direction(
    text: &mut String,
    entry: &Entry<'_>,
    direction: Direction,
    stats: &DirectionStats,
) {
    let run_time = entry.run_time[direction as usize];
    let rate = per_second(stats.bytes, run_time);
    // Of what took no time, there is no rate.
    let rates = match run_time {
        Nanos::ZERO => "IOPS=-, BW=-".to_owned(),
        _ => format!(
            "IOPS={}, BW={} ({})",
            count(per_second(stats.operations, run_time)),
            binary(rate, "/s"),
            decimal(rate, "/s"),
        ),
    };
    let _ = write!(
        text,
        "  {:>5}: {rates}({}/{}msec)",
        direction.name(),
        binary(stats.bytes as f64, ""),
        run_time.0 / 1_000_000,
    );
    if direction == Direction::Write {
        let resets = entry.cleared_zones + entry.kinds[OpKind::Reset as usize];
        let _ = write!(text, "; {resets} zone resets");
    }
    text.push('\n');
    let parts: [(&str, &Spread); 3] = [
        ("slat", &stats.submission),
        ("clat", &stats.completion),
        (" lat", &stats.total),
    ];
    for (name, spread) in parts {
        push_latency(text, name, spread.moments());
    }
    for (name, spread) in parts {
        if let Some(latency) = spread.percentiles() {
            push_percentiles(text, name.trim(), latency, &entry.job.percentile_list);
        }
    }
    let bandwidth = Samples::of_bandwidth(&stats.bandwidth);
    if bandwidth.count > 0 {
        let _ = writeln!(
            text,
            "   bw (  KiB/s): min={:5}, max={:5}, avg={:.2}, stdev={:.2}, samples={}",
            bandwidth.min, bandwidth.max, bandwidth.mean, bandwidth.stddev, bandwidth.count
        );
    }
    let iops = Samples::of_iops(&stats.iops);
    if iops.count > 0 {
        let _ = writeln!(
            text,
            "   iops        : min={:5}, max={:5}, avg={:.2}, stdev={:.2}, samples={}",
            iops.min, iops.max, iops.mean, iops.stddev, iops.count
        );
    }
}

/// What was done in a second; of no time nothing is known.
fn per_second(amount: u64, run_time: Nanos) -> f64 {
    let seconds = run_time.as_secs_f64();
    if seconds > 0.0 {
        amount as f64 / seconds
    } else {
        0.0
    }
}

/// Flushes, as fio has them.
fn push_syncs(text: &mut String, entry: &Entry<'_>) {
    let Some(syncs) = &entry.syncs else { return };
    text.push_str("  fsync/fdatasync/sync_file_range:\n");
    push_latency(text, "sync", syncs.moments());
    if let Some(latency) = syncs.percentiles() {
        push_percentiles(text, "sync", latency, &entry.job.percentile_list);
    }
}

/// The unit in which a latency of about `ns` is printed.
fn unit(ns: f64) -> (&'static str, f64) {
    if ns < 2_000.0 {
        ("nsec", 1.0)
    } else if ns < 2_000_000.0 {
        ("usec", 1e3)
    } else {
        ("msec", 1e6)
    }
}

fn push_latency(text: &mut String, name: &str, moments: &Moments) {
    let (Some(min), Some(max), Some(mean)) = (moments.min(), moments.max(), moments.mean()) else {
        return;
    };
    if max == 0 {
        return;
    }
    let (unit, size) = unit(mean);
    let stddev = moments.stddev().unwrap_or(0.0);
    let _ = writeln!(
        text,
        "    {name} ({unit}): min={:.2}, max={:.2}, avg={:.2}, stdev={:.2}",
        min as f64 / size,
        max as f64 / size,
        mean / size,
        stddev / size
    );
}

/// How late the host was.
fn push_lateness(text: &mut String, late: &Latency) {
    let [Some(min), Some(max)] = [late.min(), late.max()] else {
        return;
    };
    let [mean, stddev] = [late.mean_ns(), late.stddev_ns()].map(Option::unwrap_or_default);
    let (unit, size) = unit(mean);
    let _ = writeln!(
        text,
        "    late ({unit}): min={:.2}, max={:.2}, avg={:.2}, stdev={:.2}",
        min.0 as f64 / size,
        max.0 as f64 / size,
        mean / size,
        stddev / size
    );
    push_percentiles(text, "late", late, &LATENESS);
}

fn push_percentiles(text: &mut String, name: &str, latency: &Latency, list: &[f64]) {
    let (unit, size) = unit(latency.mean_ns().unwrap_or(0.0));
    let _ = writeln!(text, "    {name} percentiles ({unit}):");
    for row in list.chunks(4) {
        let cells: Vec<String> = row
            .iter()
            .map(|percent| {
                let value = latency.percentile(*percent).unwrap_or_default();
                format!("{percent:5.2}th=[{:8.2}]", value.0 as f64 / size)
            })
            .collect();
        let _ = writeln!(text, "     | {}", cells.join(", "));
    }
}

fn push_shares(text: &mut String, entry: &Entry<'_>) {
    let mut push = |unit: &str, shares: &[(&str, f64)]| {
        let cells: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share >= 0.005)
            .map(|(name, share)| format!("{name}={share:.2}%"))
            .collect();
        if !cells.is_empty() {
            let _ = writeln!(text, "  lat ({unit})   : {}", cells.join(", "));
        }
    };
    push("nsec", &bucket_shares(entry, 0));
    push("usec", &bucket_shares(entry, 10));
    push("msec", &bucket_shares_ms(entry));
    let depths: Vec<String> = depth_shares(entry)
        .iter()
        .map(|(name, share)| format!("{name}={share:.1}%"))
        .collect();
    let _ = writeln!(text, "  IO depths    : {}", depths.join(", "));
}

fn push_group(text: &mut String, report: &Report<'_>, group: u32) {
    let entries: Vec<&Entry<'_>> = report
        .entries
        .iter()
        .filter(|entry| entry.job.group == group)
        .collect();
    let lines: Vec<String> = Direction::ALL
        .into_iter()
        .filter_map(|direction| group_line(&entries, direction))
        .collect();
    if !lines.is_empty() {
        let _ = writeln!(
            text,
            "\nRun status group {group} (all jobs):\n{}",
            lines.join("\n")
        );
    }
}

fn group_line(entries: &[&Entry<'_>], direction: Direction) -> Option<String> {
    let index = direction as usize;
    let rates: Vec<(u64, Nanos)> = entries
        .iter()
        .filter_map(|entry| {
            Some((
                entry.directions[index].as_ref()?.bytes,
                entry.run_time[index],
            ))
        })
        .collect();
    let bytes: u64 = rates.iter().map(|(bytes, _)| bytes).sum();
    if bytes == 0 {
        return None;
    }
    let each = rates.iter().map(|(bytes, time)| per_second(*bytes, *time));
    let (low, high) = each.fold((f64::MAX, 0.0_f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    let times = rates.iter().map(|(_, time)| time.0 / 1_000_000);
    let (shortest, longest) = times.fold((u64::MAX, 0), |(a, b), ms| (a.min(ms), b.max(ms)));
    let longest_time = rates.iter().map(|(_, time)| *time).max();
    let total = per_second(bytes, longest_time.unwrap_or_default());
    Some(format!(
        "{:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={shortest}-{longest}msec",
        direction.name().to_uppercase(),
        binary(total, "/s"),
        decimal(total, "/s"),
        binary(low, "/s"),
        binary(high, "/s"),
        decimal(low, "/s"),
        decimal(high, "/s"),
        binary(bytes as f64, ""),
        decimal(bytes as f64, ""),
    ))
}

/// A number in three digits or so, with a suffix.
fn scaled(value: f64, base: f64, suffixes: [&str; 5]) -> String {
    let mut value = value;
    let mut suffix = suffixes[0];
    for next in &suffixes[1..] {
        if value < base {
            break;
        }
        value /= base;
        suffix = next;
    }
    match value {
        // A finish each quarter of a minute is not none.
        v if v < 10.0 && v.fract() > 0.0 && suffix == suffixes[0] => number(v),
        v if v < 10.0 && suffix != suffixes[0] => format!("{v:.2}{suffix}"),
        v if v < 100.0 && suffix != suffixes[0] => format!("{v:.1}{suffix}"),
        v => format!("{v:.0}{suffix}"),
    }
}

fn binary(bytes: f64, per: &str) -> String {
    scaled(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"]) + per
}

fn decimal(bytes: f64, per: &str) -> String {
    scaled(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB"]) + per
}

fn count(value: f64) -> String {
    scaled(value, 1000.0, ["", "k", "M", "G", "T"])
}
