//! What is reported: one entry for each thread, or for each group that asks
//! for it.

use zonelab_device::Nanos;
use zonelab_host::fio::{JobFile, Plan, PlannedJob};
use zonelab_host::stats::{Intervals, Latency, Moments, OpKind};
use zonelab_host::workload::directed::{DirectedWork, Direction};
use zonelab_host::workload::latency::TooLate;
use zonelab_host::workload::record::{BUCKETS, DEPTHS, DirectionStats, Spread};
use zonelab_host::workload::replay::Replayed;
use zonelab_host::workload::steady::Steadiness;
use zonelab_host::workload::{FailedCommand, JobSpec, Verified};
use zonelab_lab::idle::{BUFFERED, LEAST_SHARE, grouped, why};
use zonelab_ssd::faults::LostCompletions;

use super::run::{DriveWork, FioRun, ThreadResult};

/// Error number of an entry with failed operations: EIO, as fio reports it.
pub(super) const EIO: u32 = 5;

/// That of one whose operations succeeded, but whose blocks were wrong: EILSEQ.
pub(super) const EILSEQ: u32 = 84;

/// That of one with a latency that was longer than it may be.
pub(super) const ETIMEDOUT: u32 = 110;

/// Percentiles of lateness.
pub(super) const LATENESS: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Everything that a run came to.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The job file.
    pub file: &'a JobFile,
    /// Name of the device.
    pub device: String,
    /// Seed of the run.
    pub seed: u64,
    /// How long the run took: simulated time, or real time.
    pub took: Nanos,
    /// In real time, how long what was due waited for its handling; `None`: time
    /// was virtual.
    pub lateness: Option<Box<Latency>>,
    /// It was interrupted.
    pub interrupted: bool,
    /// Why the device is gone, or failed between the jobs: what is reported is
    /// what was done until then.
    pub lost: Option<String>,
    /// Completions that faults have lost: threads that waited for ever waited for these, or
    /// for what those who did hold.
    pub lost_completions: Option<LostCompletions>,
    /// The entries, in the order of the file.
    pub entries: Vec<Entry<'a>>,
    /// What the drive did; `None`: it does not tell.
    pub drive: Option<Box<DriveWork>>,
}

/// A thread, or threads that are reported as one.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The first thread.
    pub job: &'a PlannedJob,
    /// Number of threads.
    pub threads: u32,
    /// By direction.
    pub directions: [Option<DirectionStats>; 3],
    /// By direction, the longest time that a thread was measured.
    pub run_time: [Nanos; 3],
    /// The longest time that a thread was measured, in any direction.
    pub job_run_time: Nanos,
    /// From the start of the run until the last thread ended.
    pub elapsed: Nanos,
    /// Operations by completion latency.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// Operations by depth.
    pub depths: [u64; DEPTHS],
    /// Operations by kind, in the order of [`OpKind::ALL`].
    pub kinds: [u64; OpKind::ALL.len()],
    /// Flushes of `fsync`; `None`: there were none.
    pub syncs: Option<Spread>,
    /// Flushes of any sort.
    pub flushes: u64,
    /// Zones reset because they were full and written again.
    pub cleared_zones: u64,
    /// Zones finished because what was left of them was too small for a write.
    pub ended_zones: u64,
    /// Zones that reads in order left out, since nothing is written there.
    pub empty_zones: u64,
    /// Of its zones, those that are read only or offline.
    pub dead_zones: u64,
    /// What became of the operations of a trace.
    pub replayed: Option<Box<Replayed>>,
    /// Failed operations.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<FailedCommand>,
    /// The first latency that was longer than it may be.
    pub too_late: Option<TooLate>,
    /// A thread was ended since its operations took no time.
    pub is_timeless: bool,
    /// A thread had more to do when its device was gone.
    pub is_cut_off: bool,
    /// The depth that a search for a latency came to, of the last thread.
    pub depth_found: Option<u32>,
    /// How steady it became, of the last thread.
    pub steadiness: Option<Box<Steadiness>>,
    /// What became of blocks that were verified; `None`: none were.
    pub verified: Option<Verified>,
    /// Threads that waited for ever.
    pub stuck: u32,
}

impl<'a> Report<'a> {
    /// Puts results together.
    #[must_use]
    pub fn new(file: &'a JobFile, plan: &'a Plan, run: &FioRun, device: &str, seed: u64) -> Self {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for (job, thread) in plan.jobs.iter().zip(&run.threads) {
            let joins = job.group_reporting
                && entries
                    .last()
                    .is_some_and(|last| last.job.group == job.group && last.job.group_reporting);
            if !joins {
                entries.push(Entry::new(job));
            }
            if let Some(entry) = entries.last_mut() {
                entry.add(thread, run.began);
            }
        }
        Self {
            file,
            device: device.to_owned(),
            seed,
            took: run.took,
            lateness: run.lateness.clone(),
            interrupted: run.interrupted,
            lost: run.failure.clone(),
            lost_completions: run.lost_completions.clone(),
            entries,
            drive: run.drive.clone(),
        }
    }

    /// Failed operations of all entries.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.entries.iter().map(|entry| entry.errors).sum()
    }

    /// Threads that waited for ever.
    #[must_use]
    pub fn stuck(&self) -> u32 {
        self.entries.iter().map(|entry| entry.stuck).sum()
    }

    /// What threads that waited for ever waited for.
    #[must_use]
    pub fn waited_for(&self) -> String {
        match &self.lost_completions {
            Some(lost) => format!("{lost}; a `timeout` of the fault ends such a command"),
            None => "for zones that nobody gives back".to_owned(),
        }
    }
}

impl<'a> Entry<'a> {
    fn new(job: &'a PlannedJob) -> Self {
        Self {
            job,
            threads: 0,
            directions: [None, None, None],
            run_time: [Nanos::ZERO; 3],
            job_run_time: Nanos::ZERO,
            elapsed: Nanos::ZERO,
            buckets: [0; BUCKETS.len() + 1],
            depths: [0; DEPTHS],
            kinds: [0; OpKind::ALL.len()],
            syncs: None,
            flushes: 0,
            cleared_zones: 0,
            ended_zones: 0,
            empty_zones: 0,
            dead_zones: 0,
            replayed: None,
            errors: 0,
            first_error: None,
            too_late: None,
            is_timeless: false,
            is_cut_off: false,
            depth_found: None,
            steadiness: None,
            verified: None,
            stuck: 0,
        }
    }

    fn add(&mut self, thread: &ThreadResult, began: Nanos) {
        self.threads += 1;
        self.stuck += u32::from(thread.is_stuck);
        let Some(result) = &thread.result else {
            return;
        };
        let all = result.ended.saturating_sub(result.measured_from);
        let checking = result.verified.as_ref().map(|of| of.checking);
        let checking = checking.unwrap_or_default().min(all);
        // As in fio, what is read back counts as reads, whose time is that of it.
        let run_time = all.saturating_sub(checking);
        let reads = self.spec().work.flows[0].is_some();
        self.job_run_time = self.job_run_time.max(run_time);
        let elapsed = result.ended.saturating_sub(began);
        self.elapsed = self.elapsed.max(elapsed);
        for (index, stats) in result.recorder.directions.iter().enumerate() {
            let Some(stats) = stats else { continue };
            let run_time = match index {
                0 if reads => all,
                0 => checking,
                _ => run_time,
            };
            self.run_time[index] = self.run_time[index].max(run_time);
            match &mut self.directions[index] {
                Some(all) => all.merge(stats),
                none => *none = Some((**stats).clone()),
            }
        }
        add_all(&mut self.buckets, &result.recorder.buckets);
        add_all(&mut self.depths, &result.recorder.depths);
        add_all(&mut self.kinds, &result.recorder.counts);
        match (&mut self.syncs, &result.recorder.syncs) {
            (Some(all), Some(syncs)) => all.merge(syncs),
            (none, syncs) => *none = none.take().or_else(|| syncs.clone()),
        }
        self.flushes += result.recorder.flushes;
        self.cleared_zones += result.cleared_zones;
        self.ended_zones += result.ended_zones;
        self.empty_zones += result.empty_zones;
        self.dead_zones += result.dead_zones;
        match (&mut self.replayed, &result.replayed) {
            (Some(all), Some(replayed)) => all.merge(replayed),
            (none, replayed) => *none = none.take().or_else(|| replayed.clone()),
        }
        self.errors += result.errors;
        self.first_error = self.first_error.or(result.first_error);
        self.too_late = self.too_late.or(result.too_late);
        self.is_timeless |= result.is_timeless;
        self.is_cut_off |= result.is_cut_off;
        self.depth_found = result.depth_found.or(self.depth_found);
        if let Some(steadiness) = &result.steadiness {
            self.steadiness = Some(steadiness.clone());
        }
        if let Some(verified) = &result.verified {
            self.verified.get_or_insert_default().merge(verified);
        }
    }

    /// Zones of its threads.
    fn zones(&self) -> u64 {
        self.spec().work.zones.len() as u64 * u64::from(self.threads)
    }

    /// What of it did nothing, in words, if that is more than a little; and what was left out.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.empty_zones > 0 {
            let zones = self.zones();
            let (empty, why) = (self.empty_zones, "nothing is written there");
            warnings.push(format!("{empty} of {zones} zones were not read: {why}"));
        }
        if self.dead_zones > 0 {
            let (dead, zones) = (self.dead_zones, self.zones());
            warnings.push(format!(
                "{dead} of {zones} zones are read only or offline, and were left alone"
            ));
        }
        for direction in Direction::ALL {
            let Some(stats) = &self.directions[direction as usize] else {
                continue;
            };
            let (finds, name) = (&stats.finds, direction.name());
            let why = match (direction, self.spec().work.blocks) {
                (Direction::Read, _) => why(OpKind::Read),
                (Direction::Write, _) => why(OpKind::Finish),
                (Direction::Trim, None) => why(OpKind::Reset),
                (Direction::Trim, Some(_)) => "the blocks hold nothing",
            };
            let nothing = format!("{name}s did nothing: {why}");
            warnings.extend(share(finds.nothing, finds.known, &nothing));
            let buffered = format!("{name}s {BUFFERED}");
            warnings.extend(share(finds.buffered, finds.told, &buffered));
        }
        if let Some(replayed) = &self.replayed {
            let of_trace = |skipped: u64, direction: Direction, what: &str| {
                let stats = self.directions[direction as usize].as_ref();
                let issued = stats.map_or(0, |stats| stats.operations);
                let what = format!(
                    "{}s of the trace were not issued, or in part: {what}",
                    direction.name()
                );
                share(skipped, issued + skipped, &what)
            };
            let reads = "nothing is written there";
            warnings.extend(of_trace(replayed.skipped_reads, Direction::Read, reads));
            let trims = "they are of no whole zones";
            warnings.extend(of_trace(replayed.skipped_trims, Direction::Trim, trims));
        }
        warnings
    }

    /// What its first thread does.
    #[must_use]
    pub fn spec(&self) -> &JobSpec<DirectedWork> {
        &self.job.spec
    }

    /// Operations of all directions.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.directions
            .iter()
            .flatten()
            .map(|stats| stats.operations)
            .sum()
    }

    /// The error number of the entry: 0 if nothing failed.
    #[must_use]
    pub const fn error(&self) -> u32 {
        match (self.errors, self.first_error, self.too_late) {
            (0, ..) if self.is_cut_off || self.stuck > 0 => EIO,
            (0, ..) => 0,
            (_, Some(_), _) => EIO,
            (_, None, Some(_)) => ETIMEDOUT,
            (_, None, None) if self.is_timeless => EIO,
            (_, None, None) => EILSEQ,
        }
    }
}

/// "12.5 % of 51,200 reads did nothing", of a share that is worth it.
fn share(part: u64, all: u64, what: &str) -> Option<String> {
    let share = part as f64 / all.max(1) as f64;
    let (percent, all) = (share * 100.0, grouped(all));
    (share > LEAST_SHARE).then(|| format!("{percent:.1} % of {all} {what}"))
}

fn add_all<const N: usize>(to: &mut [u64; N], from: &[u64; N]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Samples of throughput over jobs, in the way of fio's group reporting: means
/// and squared deviations add, extremes are of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) stddev: f64,
    pub(super) count: u64,
}

impl Samples {
    /// Operations per second.
    pub(super) fn of_iops(jobs: &[Intervals]) -> Self {
        Self::add(jobs.iter().filter_map(|job| {
            let (min, max) = job.range_iops()?;
            Some((
                min,
                max,
                job.mean_iops()?,
                job.stddev_iops()?,
                job.samples(),
            ))
        }))
    }

    /// KiB per second.
    pub(super) fn of_bandwidth(jobs: &[Intervals]) -> Self {
        Self::add(jobs.iter().filter_map(|job| {
            let moments: &Moments = job.bytes_per_second();
            let kib = |bytes: f64| bytes / 1024.0;
            Some((
                kib(moments.min()? as f64),
                kib(moments.max()? as f64),
                kib(moments.mean()?),
                kib(moments.stddev()?),
                moments.count(),
            ))
        }))
    }

    fn add(jobs: impl Iterator<Item = (f64, f64, f64, f64, u64)>) -> Self {
        let mut all = Self::default();
        let mut squares = 0.0;
        let (mut low, mut high) = (f64::MAX, 0.0_f64);
        for (min, max, mean, stddev, count) in jobs {
            low = low.min(min);
            high = high.max(max);
            all.mean += mean;
            squares += stddev * stddev * count.saturating_sub(1) as f64;
            all.count += count;
        }
        if all.count > 0 {
            all.min = low as u64;
            all.max = high as u64;
        }
        if all.count > 1 {
            all.stddev = (squares / (all.count - 1) as f64).sqrt();
        }
        all
    }
}
