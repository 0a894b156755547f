//! A point of an experiment: where its time went.

use serde::Serialize;
use zonelab_lab::detail::JobDetail;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::rows::significant;
use zonelab_lab::run::JobMeasured;
use zonelab_lab::trace::Explanation;
use zonelab_ssd::account::BusyByCause;

use super::PointSection;
use super::wear::WearData;
use super::zones::ZoneMap;

/// Rows of a chart at most: beyond, neighbours are shown together.
const RESOURCES_MAX: usize = 64;
/// Bars of the wear histogram at most.
const WEAR_BARS: u32 = 40;

/// A point.
#[derive(Serialize)]
pub(super) struct PointData<'a> {
    /// Position of its series in the experiment.
    s: usize,
    /// Axis value, as tables show it and as a number.
    x: String,
    n: f64,
    /// Position of its drive.
    drive: usize,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ns: Option<u64>,
    operations: u64,
    jobs: Vec<JobData<'a>>,
    /// The slowest reads, writes and appends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slowest: Vec<SlowData<'a>>,
    /// Those of an emulated drive only.
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<BusyData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<BusyData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<TotalsData>,
    /// `[least, greatest, blocks]`: blocks erased so often.
    wear: Vec<(u32, u32, u64)>,
    /// Where; none if nothing was erased.
    wear_map: Option<WearData>,
    zones: Option<ZoneMap>,
}

/// A job of a point.
#[derive(Serialize)]
struct JobData<'a> {
    name: &'a str,
    kind: &'static str,
    operations: u64,
    /// `[name, unit, value]`.
    metrics: Vec<(&'static str, &'static str, f64)>,
    /// `[name, low, high, sd, least, greatest]` of those of which it is known how they vary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spread: Vec<SpreadData>,
    /// At the quantiles of the report, as far as there are operations.
    latencies_ns: Vec<u64>,
    /// Operations in equal slots of time; none without operations.
    throughput: Option<ThroughputData>,
}

/// `[command, job, submitted, latency, where the time went]` of a slow request, with times in
/// nanoseconds.
type SlowData<'a> = (&'a str, &'a str, u64, u64, String);

/// How a metric varies.
type SpreadData = (
    &'static str,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    f64,
    f64,
);

/// Operations over time.
#[derive(Serialize)]
struct ThroughputData {
    from_ns: u64,
    /// Length of a slot; the last one ends at `to_ns`.
    step_ns: u64,
    to_ns: u64,
    operations: Vec<u64>,
}

/// Busy time of resources of one sort.
#[derive(Serialize)]
struct BusyData {
    /// Number of resources.
    count: usize,
    /// Resources in each group but the last.
    per_group: usize,
    /// Nanoseconds by cause, of each group.
    busy_ns: Vec<BusyByCause>,
}

/// Bytes and operations of the drive.
#[derive(Serialize)]
struct TotalsData {
    host_write_bytes: u64,
    host_read_bytes: u64,
    host_program_bytes: u64,
    fill_program_bytes: u64,
    dlwa: Option<f64>,
    erased_blocks: u64,
    resets: u64,
    finishes: u64,
    implicit_closes: u64,
}

impl<'a> PointData<'a> {
    pub(super) fn of(experiment: &Experiment, point: &'a PointSection<'a>, drive: usize) -> Self {
        let result = point.result;
        let drive_did = result.drive.as_ref();
        let is_real = result.lateness.is_some();
        let series = experiment.series.iter();
        Self {
            // Results are those of the experiment's series.
            s: series
                .take_while(|series| series.name != result.series)
                .count(),
            x: experiment.axis.shown(&result.x),
            n: result.x.number,
            drive,
            command: &point.command,
            simulated_ns: (!is_real).then_some(result.took.0),
            elapsed_ns: is_real.then_some(result.took.0),
            operations: result.operations,
            jobs: result.jobs.iter().map(JobData::of).collect(),
            slowest: result.slowest.iter().filter_map(slow).collect(),
            channels: drive_did.map(|of| BusyData::of(&of.detail.channels)),
            units: drive_did.map(|of| BusyData::of(&of.detail.units)),
            totals: drive_did.map(|of| &of.totals).map(|totals| TotalsData {
                host_write_bytes: totals.host_write_bytes,
                host_read_bytes: totals.host_read_bytes,
                host_program_bytes: totals.host_program_bytes,
                fill_program_bytes: totals.fill_program_bytes,
                dlwa: totals.dlwa().map(significant),
                erased_blocks: totals.erased_blocks,
                resets: totals.resets,
                finishes: totals.finishes,
                implicit_closes: totals.implicit_closes,
            }),
            wear: drive_did.map_or_else(Vec::new, |of| {
                let erasures = of.detail.erasures.iter();
                wear(erasures.map(|(&count, &blocks)| (count, blocks)))
            }),
            wear_map: drive_did.and_then(|of| WearData::of(&of.detail)),
            zones: drive_did.and_then(|of| ZoneMap::of(&of.zone_history, result.took)),
        }
    }
}

impl<'a> JobData<'a> {
    fn of(job: &'a JobMeasured) -> Self {
        let metrics = zonelab_lab::metrics::NAMES
            .iter()
            .filter_map(|&(name, unit)| {
                let value = job.metrics.get(name)?;
                Some((name, unit, significant(value)))
            });
        Self {
            name: &job.name,
            kind: job.kind.name(),
            operations: job.detail.operations,
            metrics: metrics.collect(),
            spread: spread(job),
            latencies_ns: job
                .detail
                .latencies
                .iter()
                .map(|latency| latency.0)
                .collect(),
            throughput: ThroughputData::of(&job.detail),
        }
    }
}

/// A slow request that moves or looks at blocks.
fn slow(one: &Explanation) -> Option<SlowData<'_>> {
    let times = (one.record.submitted.0, one.latency.0);
    let why = one.where_the_time_went();
    one.is_data()
        .then_some((&one.name, &one.job, times.0, times.1, why))
}

/// How the metrics of a job vary, in their order.
fn spread(job: &JobMeasured) -> Vec<SpreadData> {
    let of_metric = |&(name, _): &(&'static str, &'static str)| {
        let of = job.statistics(name)?;
        let (low, high) = of.interval().unzip();
        let [low, high, sd] = [low, high, of.sd].map(|value| value.map(significant));
        Some((
            name,
            low,
            high,
            sd,
            significant(of.min),
            significant(of.max),
        ))
    };
    zonelab_lab::metrics::NAMES
        .iter()
        .filter_map(of_metric)
        .collect()
}

impl ThroughputData {
    fn of(detail: &JobDetail) -> Option<Self> {
        let (first, last) = (detail.throughput.first()?, detail.throughput.last()?);
        Some(Self {
            from_ns: first.from.0,
            step_ns: first.to.saturating_sub(first.from).0,
            to_ns: last.to.0,
            operations: detail
                .throughput
                .iter()
                .map(|slot| slot.operations)
                .collect(),
        })
    }
}

impl BusyData {
    fn of(resources: &[BusyByCause]) -> Self {
        let per_group = resources.len().div_ceil(RESOURCES_MAX).max(1);
        let sum = |group: &[BusyByCause]| {
            let mut sum = BusyByCause::default();
            for row in group {
                for (total, busy) in sum.iter_mut().zip(row) {
                    *total = total.saturating_add(*busy);
                }
            }
            sum
        };
        Self {
            count: resources.len(),
            per_group,
            busy_ns: resources.chunks(per_group).map(sum).collect(),
        }
    }
}

/// A histogram of erasures per block, in bars of equal width without those
/// that hold nothing.
fn wear(blocks: impl Iterator<Item = (u32, u64)> + Clone) -> Vec<(u32, u32, u64)> {
    let counts = blocks.clone().map(|(count, _)| count);
    let (Some(least), Some(greatest)) = (counts.clone().min(), counts.max()) else {
        return Vec::new();
    };
    let width = ((greatest - least) / WEAR_BARS) + 1;
    let mut bars: Vec<(u32, u32, u64)> = Vec::new();
    for (count, blocks) in blocks {
        let from = least + (count - least) / width * width;
        let to = from.saturating_add(width - 1);
        match bars.last_mut().filter(|bar| bar.0 == from) {
            Some(bar) => bar.2 += blocks,
            None => bars.push((from, to, blocks)),
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_resources_become_groups_and_lose_nothing() {
        let row = |first, last| {
            let mut row = BusyByCause::default();
            row[0] = first;
            row[row.len() - 1] = last;
            row
        };
        let resources: Vec<BusyByCause> = (0..130).map(|n| row(n, 1)).collect();
        let data = BusyData::of(&resources);
        assert_eq!(
            (data.count, data.per_group, data.busy_ns.len()),
            (130, 3, 44)
        );
        assert_eq!(data.busy_ns[0], row(1 + 2, 3));
        assert_eq!(data.busy_ns[43], row(129, 1));
        let few = BusyData::of(&resources[..64]);
        assert_eq!((few.per_group, few.busy_ns.len()), (1, 64));
        assert_eq!(BusyData::of(&[]).busy_ns.len(), 0);
    }

    #[test]
    fn wear_has_few_bars_of_equal_width() {
        assert_eq!(wear([(0, 7), (3, 1)].into_iter()), [(0, 0, 7), (3, 3, 1)]);
        let many: Vec<_> = (100..1_000).map(|count| (count, 1_u64)).collect();
        let bars = wear(many.into_iter());
        assert!(bars.len() <= WEAR_BARS as usize + 1, "{}", bars.len());
        assert_eq!(bars[0], (100, 122, 23));
        assert_eq!(bars.iter().map(|bar| bar.2).sum::<u64>(), 900);
        assert_eq!(wear([(u32::MAX, 1)].into_iter()), [(u32::MAX, u32::MAX, 1)]);
        assert_eq!(wear(std::iter::empty()), []);
    }
}
