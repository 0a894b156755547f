//! What a point measured.

use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_host::stats::{Latency, OpKind};
use zonelab_ssd::Drive;
use zonelab_ssd::account::{Cause, Totals};
use zonelab_ssd::flash::Owed;
pub use zonelab_ssd::record::ZoneHistory;

#[cfg(doc)]
use super::Point;
use super::ZONE_HISTORY_LIMIT;
use crate::conditions::JobFailure;
use crate::detail::{JobDetail, PointDetail};
use crate::experiment::AxisValue;
use crate::metrics::Metrics;
use crate::owed::Debt;
use crate::statistics::{Statistics, throughput_of};
use crate::trace::{Explanation, PointTrace};

/// What a point measured. Of one that was repeated, metrics are means over the repeats; what
/// the drive did and where time went is of the first of them.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// Series.
    pub series: String,
    /// Axis value.
    pub x: AxisValue,
    /// By job, in the order of the phases.
    pub jobs: Vec<JobMeasured>,
    /// What the drive did; `None`: it is not emulated, and does not tell.
    pub drive: Option<DriveMeasured>,
    /// How long it took: simulated time, or real time.
    pub took: Nanos,
    /// In real time, how long what was due waited for its handling by the host; `None`:
    /// time was virtual.
    pub lateness: Option<Box<Latency>>,
    /// Operations of all jobs, measured or not.
    pub operations: u64,
    /// Jobs that ended early because of a fault, by phase; none without faults.
    pub failures: Vec<JobFailure>,
    /// Key-value workloads that ended early, for want of zones or space.
    pub ended_early: Vec<EndedEarly>,
    /// How often each fault of the plan struck, in its order.
    pub faults_struck: Vec<u64>,
    /// The report of zones at its end, line by line, if the experiment has a listing to
    /// compare it with.
    pub zones: Option<Vec<String>>,
    /// Its slowest commands and what they waited for, if that was asked for
    /// ([`Point::explain_slowest`], [`Point::trace`]).
    pub slowest: Vec<Explanation>,
    /// Its trace, if it was asked for ([`Point::trace`]).
    pub trace: Option<Box<PointTrace>>,
}

/// What an emulated drive did while a point ran.
#[derive(Clone, Debug)]
pub struct DriveMeasured {
    /// Bytes and operations of the drive in this run.
    pub totals: Totals,
    /// Busy time of all channels, and of all units, by cause, in nanoseconds.
    pub busy_ns: (BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>),
    /// Number of channels and units.
    pub resources: (u32, u32),
    /// What it had still to do when the run ended.
    pub owed: Owed,
    /// Where time and wear went.
    pub detail: PointDetail,
    /// The first [`ZONE_HISTORY_LIMIT`] changes of zone states.
    pub zone_history: ZoneHistory,
}

impl PointResult {
    /// The same without what is large: the metrics of its jobs, for whoever only
    /// compares.
    #[must_use]
    pub fn metrics_only(&self) -> Self {
        let jobs = self.jobs.iter().map(|job| JobMeasured {
            name: job.name.clone(),
            kind: job.kind,
            metrics: job.metrics.clone(),
            spread: job.spread.clone(),
            detail: JobDetail::default(),
        });
        Self {
            series: self.series.clone(),
            x: self.x.clone(),
            jobs: jobs.collect(),
            drive: self.drive.as_ref().map(|drive| DriveMeasured {
                totals: drive.totals,
                busy_ns: drive.busy_ns.clone(),
                resources: drive.resources,
                owed: drive.owed,
                detail: PointDetail::default(),
                zone_history: ZoneHistory::default(),
            }),
            took: self.took,
            lateness: None,
            operations: self.operations,
            failures: Vec::new(),
            ended_early: Vec::new(),
            faults_struck: self.faults_struck.clone(),
            zones: self.zones.clone(),
            slowest: Vec::new(),
            trace: None,
        }
    }
}

impl PointResult {
    /// Adds how well the throughput of a run in real time is known by itself, which no
    /// seed repeats: by batches of it.
    pub(super) fn add_batches(&mut self) {
        const THROUGHPUT: [&str; 4] = ["kiops", "kiops_by_count", "mib_s", "ops_s"];
        for job in &mut self.jobs {
            let of = |metric| {
                let value = job.metrics.get(metric)?;
                Some((metric, throughput_of(&job.detail.throughput, value)?))
            };
            let statistics: BTreeMap<_, _> = THROUGHPUT.into_iter().filter_map(of).collect();
            if !statistics.is_empty() {
                job.spread = Some(Box::new(Spread {
                    statistics,
                    repeats: BTreeMap::new(),
                }));
            }
        }
    }
}

/// A job that could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedEarly {
    /// The job.
    pub job: String,
    /// What it lacked, and how far it got.
    pub why: String,
}

/// What one job of a point measured.
#[derive(Clone, Debug)]
pub struct JobMeasured {
    /// Job.
    pub name: String,
    /// What it did.
    pub kind: OpKind,
    /// Its metrics; empty if it completed nothing while it was measured.
    pub metrics: Metrics,
    /// How they vary, if that is known: over repeats, or within a run in real time.
    pub spread: Option<Box<Spread>>,
    /// Its latencies and its throughput over time.
    pub detail: JobDetail,
}

/// How the metrics of a job vary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// By metric: of every one over repeats, of throughput within a run.
    pub statistics: BTreeMap<&'static str, Statistics>,
    /// The metrics of each repeat, by its number from 0; empty within a run.
    pub repeats: BTreeMap<u32, Metrics>,
}

impl JobMeasured {
    /// How a metric varies, if that is known.
    #[must_use]
    pub fn statistics(&self, metric: &str) -> Option<&Statistics> {
        self.spread.as_ref()?.statistics.get(metric)
    }

    /// A metric of one repeat; of what was not repeated, number 0.
    #[must_use]
    pub fn of_repeat(&self, repeat: u32, metric: &str) -> Option<f64> {
        match self.spread.as_ref().filter(|of| !of.repeats.is_empty()) {
            Some(spread) => spread.repeats.get(&repeat)?.get(metric),
            None => self.metrics.get(metric).filter(|_| repeat == 0),
        }
    }
}

impl DriveMeasured {
    /// What it still owed, beside the busy time of its dies, or planes that work by themselves.
    #[must_use]
    pub fn debt(&self) -> Debt {
        Debt {
            owed: self.owed,
            busy: Nanos(self.busy_ns.1.values().sum()),
        }
    }

    /// [`Debt::share`]. `None`: nothing is owed.
    #[must_use]
    pub fn owed_share(&self) -> Option<f64> {
        let share = self.debt().share();
        (share > 0.0).then_some(share)
    }

    /// What `drive` did since its totals were `before`.
    pub(super) fn of(drive: &Drive, before: &Totals, zones: &ZoneHistory) -> Self {
        let ledger = drive.flash().media().ledger();
        let by_cause = |rows: &[[u64; Cause::ALL.len()]]| -> BTreeMap<&'static str, u64> {
            let sum = |cause: &Cause| rows.iter().map(|row| row[*cause as usize]).sum();
            // Of drives without an SLC cache there is nothing to say.
            let has_cache = drive.config().slc_cache.is_some();
            let all = Cause::ALL.iter();
            let all = all.filter(|cause| **cause != Cause::Fold || has_cache);
            all.map(|cause| (cause.name(), sum(cause))).collect()
        };
        Self {
            totals: drive.totals().since(before),
            busy_ns: (by_cause(&ledger.channels), by_cause(&ledger.units)),
            resources: (ledger.channels.len() as u32, ledger.units.len() as u32),
            owed: drive.owed(),
            detail: PointDetail::of(drive),
            zone_history: first_changes(zones),
        }
    }
}

/// As much of a zone history as every point keeps, whether it is traced or not.
fn first_changes(history: &ZoneHistory) -> ZoneHistory {
    let kept = history.records.len().min(ZONE_HISTORY_LIMIT);
    ZoneHistory {
        records: history.records[..kept].to_vec(),
        dropped: history.dropped + (history.records.len() - kept) as u64,
    }
}
