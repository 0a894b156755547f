//! Results as JSON in fio's shape: names, nesting and order of keys as fio 3.33
//! writes them, so that scripts made for fio read it. What fio has no place for
//! is under keys of its own, `zonelab`.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use zonelab_host::fio::Echo;
use zonelab_host::stats::{self, OpKind};
use zonelab_host::workload::record::{BUCKETS, DirectionStats, Spread};

use super::report::{Entry, LATENESS, Report, Samples};

/// Version of what is under `zonelab`.
const SCHEMA: u32 = 1;

/// What fio prints for a time to go that it does not know.
const NO_ETA: u64 = 2_147_483_647;

/// Prints a report as JSON.
#[must_use]
pub fn to_json(report: &Report<'_>) -> String {
    let entries = report.entries.iter();
    let root = Root {
        version: concat!("zonelab-", env!("CARGO_PKG_VERSION")),
        // Virtual time has no date, and results are the same whenever they are made.
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global: &report.file.global,
        jobs: entries.map(|entry| job(report, entry)).collect(),
        zonelab: Extra {
            schema: SCHEMA,
            device: &report.device,
            seed: report.seed,
            simulated_ns: report.lateness.is_none().then_some(report.took.0),
            real: report.lateness.as_ref().map(|late| RealTime {
                clock: "real",
                elapsed_ns: report.took.0,
                lateness_ns: Latency {
                    min: late.min().unwrap_or_default().0,
                    max: late.max().unwrap_or_default().0,
                    mean: rounded(late.mean_ns().unwrap_or(0.0)),
                    stddev: rounded(late.stddev_ns().unwrap_or(0.0)),
                    count: late.count(),
                    percentile: Some(Percentiles {
                        all: late,
                        list: &LATENESS,
                    }),
                },
            }),
            interrupted: report.interrupted || report.lost.is_some(),
            lost: report.lost.as_deref(),
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
    zonelab: JobExtra,
}

#[derive(Serialize)]
struct JobExtra {
    threads: u32,
    failed_ios: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
    cleared_zones: u64,
    ended_zones: u64,
    operations: Kinds,
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

/// Six decimals, as fio prints.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn job<'a>(report: &'a Report<'_>, entry: &'a Entry<'_>) -> Job<'a> {
    let section = &report.file.sections[entry.job.section];
    let [read, write, trim] = [0, 1, 2].map(|index| direction(entry, index));
    let operations = entry.operations();
    let all = |value: f64| if operations > 0 { value } else { 0.0 };
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
            lat_ns: latency(entry.syncs.as_ref(), &entry.job.percentile_list),
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
        latency_depth: entry.spec().queue_depth,
        latency_target: 0,
        latency_percentile: 100.0,
        latency_window: 0,
        zonelab: JobExtra {
            threads: entry.threads,
            failed_ios: entry.errors,
            first_error: entry
                .first_error
                .map(|(kind, status)| format!("{}: {status}", kind.name())),
            cleared_zones: entry.cleared_zones,
            ended_zones: entry.ended_zones,
            operations: Kinds(entry.kinds),
        },
    }
}

fn direction<'a>(entry: &'a Entry<'_>, index: usize) -> Direction<'a> {
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
    let part = |get: fn(&DirectionStats) -> &Spread| latency(stats.map(get), list);
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

fn latency<'a>(spread: Option<&'a Spread>, list: &'a [f64]) -> Latency<'a> {
    let moments = spread.map(Spread::moments);
    Latency {
        min: moments.and_then(|m| m.min()).unwrap_or(0),
        max: moments.and_then(|m| m.max()).unwrap_or(0),
        mean: rounded(moments.and_then(|m| m.mean()).unwrap_or(0.0)),
        stddev: rounded(moments.and_then(|m| m.stddev()).unwrap_or(0.0)),
        count: moments.map_or(0, |m| m.count()),
        percentile: spread
            .and_then(Spread::percentiles)
            .map(|all| Percentiles { all, list }),
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
