//! Results as JSON in fio's shape: names, nesting and order of keys as fio 3.33
//! writes them, so that scripts made for fio read it. What fio has no place for
//! is under keys of its own, `zonelab`.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};
use zonelab_host::fio::Echo;
use zonelab_host::stats::{self, Finds, OpKind};
use zonelab_host::workload::directed as workload;
use zonelab_host::workload::record::{BUCKETS, DirectionStats, Spread};
use zonelab_host::workload::replay::Replayed;
use zonelab_lab::owed;
use zonelab_lab::rows::significant;

use super::report::{Entry, LATENESS, Report, Samples};
use super::run::DriveWork;
use super::steady;

/// Version of what is under `zonelab`.
const SCHEMA: u32 = 1;

/// What fio prints for a time to go that it does not know.
const NO_ETA: u64 = 2_147_483_647;

/// Prints a report as JSON.
#[must_use]
pub fn to_json(report: &Report<'_>) -> String {
    print(report, false)
}

/// The same with the distributions of latencies, `bins`, beside each list of
/// percentiles.
#[must_use]
pub fn to_json_plus(report: &Report<'_>) -> String {
    print(report, true)
}

fn print(report: &Report<'_>, with_bins: bool) -> String {
    let entries = report.entries.iter();
    let root = Root {
        version: concat!("zonelab-", env!("CARGO_PKG_VERSION")),
        // Virtual time has no date, and results are the same whenever they are made.
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global: &report.file.global,
        jobs: entries.map(|entry| job(report, entry, with_bins)).collect(),
        zonelab: Extra {
            schema: SCHEMA,
            device: &report.device,
            seed: report.seed,
            simulated_ns: report.lateness.is_none().then_some(report.took.0),
            real: report.lateness.as_ref().map(|late| RealTime {
                clock: "real",
                elapsed_ns: report.took.0,
                lateness_ns: lateness(late, with_bins),
            }),
            interrupted: report.interrupted || report.lost.is_some(),
            lost: report.lost.as_deref(),
            drive: report.drive.as_deref().map(drive),
        },
    };
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Root<'a> {
    #[serde(rename = "fio version")]
    version: &'static str,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    #[serde(rename = "global options")]
    global: &'a Echo,
    jobs: Vec<Job<'a>>,
    zonelab: Extra<'a>,
}

#[derive(Serialize)]
struct Extra<'a> {
    schema: u32,
    device: &'a str,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_ns: Option<u64>,
    #[serde(flatten)]
    real: Option<RealTime<'a>>,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drive: Option<Value>,
}

/// What the drive did, with the keys of `points.json`.
fn drive(work: &DriveWork) -> Value {
    let DriveWork { totals, debt } = work;
    json!({
        "host_write_bytes": totals.host_write_bytes,
        "host_read_bytes": totals.host_read_bytes,
        "host_program_bytes": totals.host_program_bytes,
        "fill_program_bytes": totals.fill_program_bytes,
        "collect_program_bytes": totals.collect_program_bytes,
        "fold_program_bytes": totals.fold_program_bytes,
        "dlwa": totals.dlwa().map(significant),
        "erased_blocks": totals.erased_blocks,
        "resets": totals.resets,
        "finishes": totals.finishes,
        "unit_busy_ns": debt.owed.done(debt.busy).0,
        "owed": owed::to_json(&debt.owed),
    })
}

/// What takes the place of simulated time.
#[derive(Serialize)]
struct RealTime<'a> {
    clock: &'static str,
    elapsed_ns: u64,
    lateness_ns: Latency<'a>,
}

#[derive(Serialize)]
struct Job<'a> {
    jobname: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    desc: Option<&'a str>,
    groupid: u32,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: &'a Echo,
    read: Direction<'a>,
    write: Direction<'a>,
    trim: Direction<'a>,
    sync: Sync<'a>,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Shares<7>,
    iodepth_submit: Shares<7>,
    iodepth_complete: Shares<7>,
    latency_ns: Shares<10>,
    latency_us: Shares<10>,
    latency_ms: Shares<12>,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    steadystate: Option<Value>,
    zonelab: JobExtra<'a>,
}

#[derive(Serialize)]
struct JobExtra<'a> {
    threads: u32,
    failed_ios: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
    cleared_zones: u64,
    ended_zones: u64,
    flushes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck: Option<Stuck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<Verify>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<Replay<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nothing_ios: Option<ByDirection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffered_reads: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    operations: Kinds,
}

/// Threads that waited for ever.
#[derive(Serialize)]
struct Stuck {
    threads: u32,
    waited_for: String,
}

/// Operations that did nothing; absent of a device that does not tell.
#[derive(Serialize)]
struct ByDirection {
    read: u64,
    trim: u64,
}

/// What became of blocks that were verified.
#[derive(Serialize)]
struct Verify {
    total_ios: u64,
    bytes: u64,
    missing_bytes: u64,
    untried_bytes: u64,
    unwritten_bytes: u64,
    wrong: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_wrong: Option<String>,
}

/// What became of the operations of a trace.
#[derive(Serialize)]
struct Replay<'a> {
    moved_writes: u64,
    skipped_reads: u64,
    skipped_trims: u64,
    split: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness_ns: Option<Latency<'a>>,
}

impl<'a> Replay<'a> {
    fn of(replayed: &'a Replayed, with_bins: bool) -> Self {
        let late = &replayed.lateness;
        Self {
            moved_writes: replayed.moved_writes,
            skipped_reads: replayed.skipped_reads,
            skipped_trims: replayed.skipped_trims,
            split: replayed.split,
            lateness_ns: (late.count() > 0).then(|| lateness(late, with_bins)),
        }
    }
}

/// How late something was.
fn lateness(late: &stats::Latency, with_bins: bool) -> Latency<'_> {
    Latency {
        min: late.min().unwrap_or_default().0,
        max: late.max().unwrap_or_default().0,
        mean: rounded(late.mean_ns().unwrap_or(0.0)),
        stddev: rounded(late.stddev_ns().unwrap_or(0.0)),
        count: late.count(),
        percentile: Some(Percentiles {
            all: late,
            list: &LATENESS,
        }),
        bins: with_bins.then_some(Bins(late)),
    }
}

/// Operations by kind.
struct Kinds([u64; OpKind::ALL.len()]);

impl Serialize for Kinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Jobs of fio open and close no zones.
        let is_of_fio = |(kind, _): &(OpKind, u64)| !matches!(kind, OpKind::Open | OpKind::Close);
        let counts = OpKind::ALL.into_iter().zip(self.0).filter(is_of_fio);
        serializer.collect_map(counts.map(|(kind, count)| (kind.name(), count)))
    }
}

#[derive(Serialize)]
struct Sync<'a> {
    total_ios: u64,
    lat_ns: Latency<'a>,
}

/// Percentages by name.
struct Shares<const N: usize>([(&'static str, f64); N]);

impl<const N: usize> Serialize for Shares<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0)
    }
}

#[derive(Serialize)]
struct Direction<'a> {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Latency<'a>,
    clat_ns: Latency<'a>,
    lat_ns: Latency<'a>,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Serialize)]
struct Latency<'a> {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Percentiles<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Bins<'a>>,
}

/// Percentiles in ascending order, with fio's keys: six decimals.
struct Percentiles<'a> {
    all: &'a stats::Latency,
    list: &'a [f64],
}

impl Serialize for Percentiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.list.len()))?;
        for percent in self.list {
            let latency = self.all.percentile(*percent);
            map.serialize_entry(&format!("{percent:.6}"), &latency.unwrap_or_default().0)?;
        }
        map.end()
    }
}

/// A distribution in fio's buckets: each by the latency in its middle, with the
/// number of latencies in it.
struct Bins<'a>(&'a stats::Latency);

impl Serialize for Bins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bins: Vec<(u64, u64)> = Vec::new();
        for (latency, count) in self.0.buckets() {
            let middle = middle_of_bin(latency.0);
            match bins.last_mut() {
                Some((last, sum)) if *last == middle => *sum += count,
                _ => bins.push((middle, count)),
            }
        }
        serializer.collect_map(bins)
    }
}

/// Buckets of fio for each power of two.
const BINS_BITS: u32 = 6;
/// Number of powers of two that fio has buckets for, the first 64 nanoseconds as
/// one: latencies from 2^34 ns on are in the last bucket.
const BINS_GROUPS: u32 = 29;

/// The latency by which fio names its bucket of `ns`: the value itself below 128,
/// above it the middle of one of 64 equal parts of a power of two.
fn middle_of_bin(ns: u64) -> u64 {
    const EXACT: u64 = 2 << BINS_BITS;
    if ns < EXACT {
        return ns;
    }
    let largest = (1_u64 << (BINS_GROUPS + BINS_BITS - 1)) - 1;
    let ns = ns.min(largest);
    let shift = ns.ilog2() - BINS_BITS;
    ((ns >> shift) << shift) + (1 << (shift - 1))
}

/// Six decimals, as fio prints.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn job<'a>(report: &'a Report<'_>, entry: &'a Entry<'_>, with_bins: bool) -> Job<'a> {
    let section = &report.file.sections[entry.job.section];
    let [read, write, trim] = [0, 1, 2].map(|index| direction(entry, index, with_bins));
    let operations = entry.operations();
    let all = |value: f64| if operations > 0 { value } else { 0.0 };
    let target = entry.spec().latency.target;
    let finds = finds(entry);
    Job {
        jobname: &entry.job.name,
        desc: section.description(),
        groupid: entry.job.group,
        error: entry.error(),
        eta: NO_ETA,
        // fio counts whole seconds, and begun ones.
        elapsed: entry.elapsed.0 / 1_000_000_000 + 1,
        options: &section.echo,
        read,
        write,
        trim,
        sync: Sync {
            total_ios: entry.syncs.as_ref().map_or(0, |of| of.moments().count()),
            lat_ns: latency(entry.syncs.as_ref(), &entry.job.percentile_list, with_bins),
        },
        job_runtime: entry.job_run_time.0 / 1_000_000,
        usr_cpu: 0.0,
        sys_cpu: 0.0,
        ctx: 0,
        majf: 0,
        minf: 0,
        iodepth_level: Shares(depth_shares(entry)),
        iodepth_submit: batches(all(100.0)),
        iodepth_complete: batches(all(100.0)),
        latency_ns: Shares(bucket_shares(entry, 0)),
        latency_us: Shares(bucket_shares(entry, 10)),
        latency_ms: Shares(bucket_shares_ms(entry)),
        latency_depth: entry.depth_found.unwrap_or(entry.spec().queue_depth),
        // fio has microseconds here.
        latency_target: target.map_or(0, |target| target.latency.0 / 1_000),
        latency_percentile: target.map_or(100.0, |target| target.percent),
        latency_window: target.map_or(0, |target| target.window.0 / 1_000),
        steadystate: entry.steadiness.as_deref().map(steady::to_json),
        zonelab: JobExtra {
            threads: entry.threads,
            failed_ios: entry.errors,
            first_error: entry.first_error.map(|failed| failed.to_string()),
            cleared_zones: entry.cleared_zones,
            ended_zones: entry.ended_zones,
            flushes: entry.flushes,
            stuck: (entry.stuck > 0).then(|| Stuck {
                threads: entry.stuck,
                waited_for: report.waited_for(),
            }),
            verify: entry.verified.as_ref().map(|of| Verify {
                total_ios: of.operations,
                bytes: of.bytes,
                missing_bytes: of.missing_bytes,
                untried_bytes: of.untried_bytes,
                unwritten_bytes: of.unwritten_bytes,
                wrong: of.wrong,
                first_wrong: of.first_wrong.as_ref().map(ToString::to_string),
            }),
            replay: (entry.replayed.as_ref()).map(|replayed| Replay::of(replayed, with_bins)),
            nothing_ios: finds.map(|[read, trim]| ByDirection {
                read: read.nothing,
                trim: trim.nothing,
            }),
            buffered_reads: finds
                .filter(|both| both.iter().any(|of| of.told > 0))
                .map(|[read, _]| read.buffered),
            warnings: entry.warnings(),
            operations: Kinds(entry.kinds),
        },
    }
}

/// What reads and trims found to do, if it is known.
fn finds(entry: &Entry<'_>) -> Option<[Finds; 2]> {
    let of = |direction: workload::Direction| {
        let stats = entry.directions[direction as usize].as_ref();
        stats.map_or_else(Finds::default, |stats| stats.finds)
    };
    let both = [of(workload::Direction::Read), of(workload::Direction::Trim)];
    both.iter().any(|of| of.known > 0).then_some(both)
}

fn direction<'a>(entry: &'a Entry<'_>, index: usize, with_bins: bool) -> Direction<'a> {
    let stats = entry.directions[index].as_ref();
    let run_time = entry.run_time[index];
    let seconds = run_time.as_secs_f64();
    let per_second = |amount: u64| match seconds > 0.0 {
        true => amount as f64 / seconds,
        false => 0.0,
    };
    let bytes = stats.map_or(0, |stats| stats.bytes);
    let operations = stats.map_or(0, |stats| stats.operations);
    let bandwidth = stats.map_or_else(Samples::default, |s| Samples::of_bandwidth(&s.bandwidth));
    let iops = stats.map_or_else(Samples::default, |s| Samples::of_iops(&s.iops));
    let list = &entry.job.percentile_list;
    let part = |get: fn(&DirectionStats) -> &Spread| latency(stats.map(get), list, with_bins);
    Direction {
        io_bytes: bytes,
        io_kbytes: bytes / 1024,
        bw_bytes: per_second(bytes) as u64,
        bw: (per_second(bytes) / 1024.0) as u64,
        iops: rounded(per_second(operations)),
        runtime: run_time.0 / 1_000_000,
        total_ios: operations,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: part(|stats| &stats.submission),
        clat_ns: part(|stats| &stats.completion),
        lat_ns: part(|stats| &stats.total),
        bw_min: bandwidth.min,
        bw_max: bandwidth.max,
        bw_agg: if bandwidth.count > 0 { 100.0 } else { 0.0 },
        bw_mean: rounded(bandwidth.mean),
        bw_dev: rounded(bandwidth.stddev),
        bw_samples: bandwidth.count,
        iops_min: iops.min,
        iops_max: iops.max,
        iops_mean: rounded(iops.mean),
        iops_stddev: rounded(iops.stddev),
        iops_samples: iops.count,
    }
}

fn latency<'a>(spread: Option<&'a Spread>, list: &'a [f64], with_bins: bool) -> Latency<'a> {
    let all = spread.and_then(Spread::percentiles);
    let moments = spread.map(Spread::moments);
    Latency {
        min: moments.and_then(|m| m.min()).unwrap_or(0),
        max: moments.and_then(|m| m.max()).unwrap_or(0),
        mean: rounded(moments.and_then(|m| m.mean()).unwrap_or(0.0)),
        stddev: rounded(moments.and_then(|m| m.stddev()).unwrap_or(0.0)),
        count: moments.map_or(0, |m| m.count()),
        percentile: all.map(|all| Percentiles { all, list }),
        bins: all.filter(|_| with_bins).map(Bins),
    }
}

/// Names of the classes of depths.
pub(super) const DEPTH_NAMES: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// Names of the classes of latencies below a second.
const BUCKET_NAMES: [&str; 10] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000",
];

pub(super) fn depth_shares(entry: &Entry<'_>) -> [(&'static str, f64); 7] {
    let all: u64 = entry.depths.iter().sum();
    std::array::from_fn(|i| (DEPTH_NAMES[i], share(entry.depths[i], all)))
}

/// Commands go one at a time: the class of 1 to 4.
fn batches(share: f64) -> Shares<7> {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    Shares(names.map(|name| (name, if name == "4" { share } else { 0.0 })))
}

pub(super) fn bucket_shares(entry: &Entry<'_>, from: usize) -> [(&'static str, f64); 10] {
    let all: u64 = entry.buckets.iter().sum();
    std::array::from_fn(|i| (BUCKET_NAMES[i], share(entry.buckets[from + i], all)))
}

pub(super) fn bucket_shares_ms(entry: &Entry<'_>) -> [(&'static str, f64); 12] {
    let all: u64 = entry.buckets.iter().sum();
    let names = ["2000", ">=2000"];
    let begin = BUCKETS.len() - 11;
    std::array::from_fn(|i| {
        let name = if i < 10 {
            BUCKET_NAMES[i]
        } else {
            names[i - 10]
        };
        (name, share(entry.buckets[begin + i], all))
    })
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    rounded(part as f64 * 100.0 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonelab_device::Nanos;

    /// What fio 3.33 prints for latencies of its buckets.
    #[test]
    fn bins_are_named_as_by_fio() {
        for (ns, name) in [
            (0, 0),
            (127, 127),
            (128, 129),
            (129, 129),
            (130, 131),
            (255, 255),
            (256, 258),
            (6_144, 6_176),
            (6_207, 6_176),
            (6_208, 6_240),
            (216_000, 216_064),
            (7_086_769, 7_110_656),
        ] {
            assert_eq!(middle_of_bin(ns), name, "{ns}");
        }
        // Index 1855 of fio: the last 128 ms below 2^34 ns.
        let last = (1 << 34) - (1 << 27) + (1 << 26);
        for ns in [(1 << 34) - 1, 1 << 34, u64::MAX] {
            assert_eq!(middle_of_bin(ns), last, "{ns}");
        }
    }

    /// No latency changes its bucket by having been in the finer histogram.
    #[test]
    fn bins_hold_what_was_recorded() {
        let mut latency = stats::Latency::new();
        let mut expected = std::collections::BTreeMap::new();
        let mut ns = 1;
        while ns < 20_000_000_000_u64 {
            latency.record(Nanos(ns));
            *expected.entry(middle_of_bin(ns)).or_insert(0) += 1;
            ns += 1 + ns / 700;
        }
        let bins = serde_json::to_value(Bins(&latency)).expect("numbers");
        let bins = bins.as_object().expect("an object").iter();
        let bins = bins.map(|(name, count)| (name.parse().ok(), count.as_i64()));
        let bins: std::collections::BTreeMap<_, _> = bins.collect();
        let expected = expected.into_iter().map(|(name, n)| (Some(name), Some(n)));
        assert_eq!(bins, expected.collect());
    }
}
