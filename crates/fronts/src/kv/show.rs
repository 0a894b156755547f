//! Results of a workload for people, and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use zonelab_config::Document;
use zonelab_config::units::fmt_size;
use zonelab_device::Nanos;
use zonelab_host::stats::Latency;
use zonelab_kv::files::Usage;
use zonelab_kv::lsm::StallCause;
use zonelab_kv::work::Kind;
use zonelab_lab::kv::{KvRun, KvTemplate, Sample, TreeWork, Wear, space};
use zonelab_lab::owed::{self, Debt};
use zonelab_lab::rows::significant;
use zonelab_lab::table::{Cell, Column, Style, Table, microseconds, number};

/// Version of the JSON.
const SCHEMA: u32 = 2;

/// Percentiles of latencies.
const PERCENTS: [(&str, f64); 6] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
    ("max", 100.0),
];

/// Lines of zone use over time.
const TIMES: usize = 16;

/// Everything that a run came to.
pub struct Report<'a> {
    /// The workload.
    pub template: &'a KvTemplate,
    /// What it came to.
    pub run: &'a KvRun,
    /// Name of the device.
    pub device: &'a str,
    /// Settings of an emulated drive, resolved, as TOML.
    pub drive: Option<String>,
    /// How often blocks were erased, of an emulated drive.
    pub wear: Option<Wear>,
    /// What the drive still owed, of an emulated one.
    pub debt: Option<Debt>,
    /// Seed of the run.
    pub seed: u64,
    /// It was interrupted.
    pub interrupted: bool,
}

impl Report<'_> {
    /// What the results depend on, besides the seed.
    #[must_use]
    pub fn configuration(template: &KvTemplate, drive: Option<&str>) -> Value {
        let KvTemplate { spec, setup, cores } = template;
        let drive = drive.map(|toml| {
            // The text is one that this program made of a profile.
            let document = Document::parse("drive", toml, &[]);
            document.map_or(Value::Null, |document| document.to_json())
        });
        json!({
            "workload": spec.name,
            "operations": spec.operations(),
            "records": spec.records,
            "loads": spec.loads,
            "key_bytes": spec.key_bytes,
            "values": spec.values,
            "clients": spec.clients,
            "repeats": setup.repeats,
            "sample_ns": setup.sample.0,
            "stop_at_errors": setup.stops_at_errors,
            "cores": cores,
            "files": setup.files,
            "store": setup.options,
            "drive": drive,
        })
    }
}

/// The results for people.
#[must_use]
pub fn to_text(report: &Report<'_>, style: &Style) -> String {
    let Report { template, run, .. } = report;
    let measured = &run.outcome.measured;
    let mut text = String::new();
    let seconds = measured.elapsed().as_secs_f64();
    let (done, all) = (run.outcome.done, measured.operations());
    let rate = done as f64 / seconds;
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{} on {}: {} of {} operations in {} s, {} a second{}",
        template.spec.name,
        report.device,
        done,
        run.outcome.planned,
        number(seconds),
        number(if rate.is_finite() { rate } else { 0.0 }),
        match all.saturating_sub(done) {
            0 => String::new(),
            beside => format!("; {beside} beside them, of clients without a number of operations"),
        },
    );
    if run.outcome.load > Nanos::ZERO {
        let load = number(run.outcome.load.as_secs_f64());
        let _ = writeln!(
            text,
            "loading {} records took {load} s",
            template.spec.records
        );
    }
    if let Some(failed) = &run.outcome.failure {
        let at = number(failed.at.as_secs_f64());
        let _ = writeln!(text, "ENDED EARLY, at {at} s: {}", failed.error);
    }
    for warning in TreeWork::of(&run.outcome.stores).warnings() {
        let _ = writeln!(text, "warning: {warning}");
    }
    if let Some(owed) = report.debt.and_then(|debt| debt.words(&run.totals)) {
        let _ = writeln!(text, "warning: {owed}");
    }
    text.push('\n');
    text.push_str(&latencies(run, style));
    text.push('\n');
    text.push_str(&summary(report, style));
    if run.samples.len() > 1 {
        text.push('\n');
        text.push_str(&over_time(&run.samples, style));
    }
    text
}

fn latencies(run: &KvRun, style: &Style) -> String {
    let mut columns = vec![
        Column::word("operation"),
        Column::number("count"),
        Column::number("op/s"),
        Column::number("mean us"),
    ];
    columns.extend(PERCENTS.map(|(name, _)| Column::number(&format!("{name} us"))));
    let mut table = Table::new(columns);
    let measured = &run.outcome.measured;
    for (kind, stats) in measured.all() {
        let latency = &stats.latency;
        let group = measured.group(&[kind]);
        let rate = group.and_then(|group| group.iops()).unwrap_or(0.0);
        let mean = latency.mean_ns().unwrap_or(0.0) / 1e3;
        let mut cells: Vec<Cell> = vec![
            kind.name().into(),
            latency.count().to_string().into(),
            number(rate).into(),
            microseconds(mean).into(),
        ];
        cells.extend(PERCENTS.map(|(_, percent)| us(latency, percent).into()));
        table.push(cells);
    }
    table.to_text(style)
}

fn us(latency: &Latency, percent: f64) -> String {
    let value = latency.percentile(percent).unwrap_or_default();
    microseconds(value.as_us_f64())
}

/// Names, values and what they mean.
fn summary(report: &Report<'_>, style: &Style) -> String {
    let Report { run, wear, .. } = report;
    let (tree, space) = (TreeWork::of(&run.outcome.stores), space(run));
    let (_, usage) = &run.outcome.usage;
    // To whole MiB, of less than one to whole KiB.
    let size = |bytes: f64| match bytes as u64 {
        bytes if bytes < 1 << 20 => fmt_size(bytes >> 10 << 10),
        bytes => fmt_size(bytes >> 20 << 20),
    };
    let none = || "-".to_owned();
    let mut rows: Vec<(&str, String)> = vec![
        (
            "write amplification",
            tree.write_amplification().map_or_else(none, number),
        ),
        (
            "  log, flushes, compactions",
            [tree.wal_bytes, tree.flushed_bytes, tree.compacted_bytes]
                .map(|bytes| size(bytes as f64))
                .join(", "),
        ),
        (
            "read amplification (blocks per get)",
            tree.read_amplification().map_or_else(none, number),
        ),
        (
            "gets from memtables, cache, drive",
            [
                tree.gets_from_memtables,
                tree.gets_from_cache(),
                tree.gets_from_files,
            ]
            .map(|gets| gets.to_string())
            .join(", "),
        ),
        (
            "space amplification (held by valid)",
            number(space.amplification()),
        ),
        ("  mean of invalid bytes", size(space.mean_invalid_bytes())),
        ("  mean of valid bytes", size(space.mean_valid_bytes())),
        (
            "  mean lost behind finished zones",
            size(space.mean_unusable_bytes()),
        ),
        ("stalls", stalls(&tree)),
        (
            "zones finished, reset",
            format!("{}, {}", usage.finishes, usage.resets),
        ),
        ("files placed", placements(usage)),
    ];
    if let Some(wear) = wear {
        let totals = &run.totals;
        rows.extend([
            (
                "device write amplification",
                totals.dlwa().map_or_else(none, number),
            ),
            (
                "  by the host, filled by finish",
                [totals.host_write_bytes, totals.fill_program_bytes]
                    .map(|bytes| size(bytes as f64))
                    .join(", "),
            ),
            ("blocks erased", totals.erased_blocks.to_string()),
            (
                "  per block: median, mean, deviation, max",
                format!(
                    "{}, {}, {}, {}",
                    wear.median,
                    number(wear.mean),
                    number(wear.deviation),
                    wear.max
                ),
            ),
        ]);
    }
    let mut table = Table::new([Column::text("over the run"), Column::text("")]);
    for (name, value) in rows {
        // Indented lines belong to the one above.
        let name = name
            .strip_prefix("  ")
            .map_or(name.to_owned(), |rest| format!("- {rest}"));
        table.push([name.into(), value.into()]);
    }
    table.to_text(style)
}

fn stalls(tree: &TreeWork) -> String {
    let causes = StallCause::ALL.iter().zip(&tree.stalls);
    let named: Vec<String> = causes
        .filter(|(_, stall)| stall.count > 0)
        .map(|(cause, stall)| {
            let time = number(stall.time.as_secs_f64());
            format!("{} x {} ({time} s)", stall.count, cause.name())
        })
        .collect();
    if named.is_empty() {
        return "none".to_owned();
    }
    named.join(", ")
}

fn placements(usage: &Usage) -> String {
    let of = &usage.placements;
    format!(
        "{} by lifetime, {} in new zones, {} anywhere, {} taken over, {} waits",
        of.matched, of.new_zone, of.relaxed, of.taken_over, of.waits
    )
}

fn over_time(samples: &[Sample], style: &Style) -> String {
    let mut table = Table::new([
        Column::number("at s"),
        Column::number("operations"),
        Column::number("valid MiB"),
        Column::number("invalid MiB"),
        Column::number("unusable MiB"),
        Column::number("empty"),
        Column::number("open"),
        Column::number("closed"),
        Column::number("full"),
        Column::number("finished"),
    ]);
    let step = samples.len().div_ceil(TIMES).max(1);
    let last = samples.len() - 1;
    let shown = |(i, sample)| (i % step == 0 || i == last).then_some(sample);
    for sample in samples.iter().enumerate().filter_map(shown) {
        let zones = &sample.zones;
        let mib = |bytes: u64| (bytes >> 20).to_string();
        let cells = [
            number(sample.at.as_secs_f64()),
            sample.operations.to_string(),
            mib(sample.valid_bytes),
            mib(sample.invalid_bytes),
            mib(sample.unusable_bytes),
            zones.empty.to_string(),
            zones.open.to_string(),
            zones.closed.to_string(),
            zones.full.to_string(),
            zones.finished.to_string(),
        ];
        table.push(cells.map(Cell::from));
    }
    table.to_text(style)
}

/// The results as JSON.
#[must_use]
pub fn to_json(report: &Report<'_>) -> String {
    let Report { template, run, .. } = report;
    let outcome = &run.outcome;
    let measured = &outcome.measured;
    let operations: serde_json::Map<String, Value> = measured
        .all()
        .map(|(kind, _)| (kind.name().to_owned(), kind_json(run, kind)))
        .collect();
    let (tree, space) = (TreeWork::of(&outcome.stores), space(run));
    let stalls: serde_json::Map<String, Value> = StallCause::ALL
        .iter()
        .zip(&tree.stalls)
        .map(|(cause, of)| {
            let stall = json!({ "count": of.count, "time_ns": of.time.0 });
            (cause.name().replace(' ', "_"), stall)
        })
        .collect();
    let (_, usage) = &outcome.usage;
    let failure = outcome.failure.as_ref().map(|failed| {
        json!({
            "at_ns": failed.at.0,
            "error": failed.error.to_string(),
            "scarce": run.scarce(),
        })
    });
    let warnings = tree.warnings();
    let value = json!({
        "schema": SCHEMA,
        "seed": report.seed,
        "device": report.device,
        "configuration": Report::configuration(template, report.drive.as_deref()),
        "interrupted": report.interrupted,
        "failure": failure,
        "operations": measured.operations(),
        "planned": outcome.planned,
        "done": outcome.done,
        "missing": measured.missing,
        "warnings": warnings,
        "run_ns": measured.elapsed().0,
        "load_ns": outcome.load.0,
        "kinds": operations,
        "tree": {
            "write_amplification": tree.write_amplification().map(significant),
            "read_amplification": tree.read_amplification().map(significant),
            "gets": tree.gets,
            "gets_from_memtables": tree.gets_from_memtables,
            "gets_from_files": tree.gets_from_files,
            "scans": tree.scans,
            "scans_from_memtables": tree.scans_from_memtables,
            "user_bytes": tree.user_bytes,
            "wal_bytes": tree.wal_bytes,
            "flushed_bytes": tree.flushed_bytes,
            "compacted_bytes": tree.compacted_bytes,
            "stalls": stalls,
        },
        "space": {
            "amplification": significant(space.amplification()),
            "mean_invalid_bytes": significant(space.mean_invalid_bytes()),
            "mean_valid_bytes": significant(space.mean_valid_bytes()),
            "mean_unusable_bytes": significant(space.mean_unusable_bytes()),
        },
        "zones": {
            "finishes": usage.finishes,
            "resets": usage.resets,
        },
        "device_writes": report
            .wear
            .zip(report.debt)
            .map(|(wear, debt)| device_json(run, wear, &debt)),
        "samples": run.samples.iter().map(sample_json).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn kind_json(run: &KvRun, kind: Kind) -> Value {
    let measured = &run.outcome.measured;
    let Some(stats) = measured.get(kind) else {
        return Value::Null;
    };
    let latency = &stats.latency;
    let percentiles: serde_json::Map<String, Value> = PERCENTS
        .iter()
        .map(|(name, percent)| {
            let value = latency.percentile(*percent).unwrap_or_default();
            ((*name).to_owned(), json!(value.0))
        })
        .collect();
    json!({
        "count": latency.count(),
        "bytes": stats.bytes,
        "mean_ns": latency.mean_ns().map(significant),
        "latency_ns": percentiles,
    })
}

fn device_json(run: &KvRun, wear: Wear, debt: &Debt) -> Value {
    let totals = &run.totals;
    json!({
        "dlwa": totals.dlwa().map(significant),
        "host_write_bytes": totals.host_write_bytes,
        "host_program_bytes": totals.host_program_bytes,
        "fill_program_bytes": totals.fill_program_bytes,
        "erased_blocks": totals.erased_blocks,
        "zone_finishes": totals.finishes,
        "zone_resets": totals.resets,
        "owed": owed::to_json(&debt.owed),
        "erases": {
            "median": wear.median,
            "mean": significant(wear.mean),
            "deviation": significant(wear.deviation),
            "max": wear.max,
        },
    })
}

fn sample_json(sample: &Sample) -> Value {
    let zones = &sample.zones;
    json!({
        "at_ns": sample.at.0,
        "operations": sample.operations,
        "valid_bytes": sample.valid_bytes,
        "invalid_bytes": sample.invalid_bytes,
        "unusable_bytes": sample.unusable_bytes,
        "zones": {
            "empty": zones.empty,
            "open": zones.open,
            "closed": zones.closed,
            "full": zones.full,
            "finished": zones.finished,
            "read_only": zones.read_only,
            "offline": zones.offline,
        },
        "host_write_bytes": sample.totals.host_write_bytes,
        "fill_program_bytes": sample.totals.fill_program_bytes,
        "erased_blocks": sample.totals.erased_blocks,
    })
}
