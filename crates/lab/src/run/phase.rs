//! The jobs of a phase, side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use zonelab_device::{DeviceInfo, DeviceQueue, Nanos};
use zonelab_host::block::MergeCount;
use zonelab_host::stats::{GroupStats, Latency, OpKind};
use zonelab_host::workload::{JobResult, JobSpec, Shared, Work, WorkloadJob};
use zonelab_host::{CoreId, Job, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_kv::files::FilesError;
use zonelab_sim::HostCosts;
use zonelab_ssd::Drive;
use zonelab_ssd::account::Totals;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::LostCompletions;

use super::sharers::Sharers;
use super::specs::Thread;
use super::{EndedEarly, JobMeasured};
use crate::conditions::JobFailure;
use crate::detail::JobDetail;
use crate::device::Owner;
use crate::device::{FtlWork, Reached, zones_of};
use crate::experiment::{BlocksTemplate, HostModel, JobTemplate, WorkTemplate};
use crate::kv::{self, KvJob, KvRun, Surroundings, Wear};
use crate::metrics::Metrics;

/// What jobs that ran side by side came to.
pub(super) struct PhaseEnd {
    /// Threads of jobs.
    pub(super) jobs: Vec<JobResult>,
    /// Key-value workloads by job.
    pub(super) stores: Vec<(String, Result<KvRun, FilesError>)>,
    /// When they could begin, and when the last of them ended.
    pub(super) from: Nanos,
    pub(super) at: Nanos,
    /// Jobs that wait for something that cannot happen any more.
    pub(super) stuck_jobs: u32,
    /// What they wait for, if faults have lost it.
    pub(super) lost: Option<LostCompletions>,
}

/// Why the jobs of a phase measured nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Unmeasured {
    /// They wait for ever, since faults of the drive lost completions.
    #[error("{0}")]
    Lost(String),
    /// A job failed on a drive without faults, or waits for what nobody gives.
    #[error("{0}")]
    Failed(String),
    /// A job of that name was ended since its operations took no time.
    #[error("job \"{0}\": its operations take no time")]
    Timeless(String),
}

impl From<String> for Unmeasured {
    fn from(what: String) -> Self {
        Self::Failed(what)
    }
}

/// What the jobs of a phase, or of several, measured.
#[derive(Default)]
pub(super) struct PhaseMeasured {
    pub(super) jobs: Vec<JobMeasured>,
    pub(super) failures: Vec<JobFailure>,
    pub(super) ended_early: Vec<EndedEarly>,
    /// Operations, measured or not.
    pub(super) operations: u64,
}

impl PhaseEnd {
    /// The measurements of the jobs, in the order of `templates`, on a drive that may
    /// have faults. How worn its blocks are says `wear`, if that is known.
    ///
    /// # Errors
    /// A job failed on a drive without faults, or waits for ever.
    pub(super) fn measured(
        self,
        templates: &[&JobTemplate],
        wear: &dyn Fn() -> Option<Wear>,
        has_faults: bool,
    ) -> Result<PhaseMeasured, Unmeasured> {
        let Self {
            jobs,
            stores,
            stuck_jobs,
            lost,
            ..
        } = self;
        if let Some(job) = jobs.iter().find(|job| job.is_timeless) {
            return Err(Unmeasured::Timeless(job.name.clone()));
        }
        if stuck_jobs > 0 {
            let stuck = format!("jobs that wait for ever: {stuck_jobs}");
            return Err(match lost {
                Some(lost) => Unmeasured::Lost(format!(
                    "{stuck}: {lost}; a `timeout` of the fault ends such a command"
                )),
                None => Unmeasured::Failed(stuck),
            });
        }
        let failures: Vec<JobFailure> = jobs.iter().filter_map(failure).collect();
        if let (false, Some(failure)) = (has_faults, failures.first()) {
            let JobFailure { job, failed } = failure;
            return Err(format!("job \"{job}\" failed: {failed}").into());
        }
        let mut of_phase = PhaseMeasured {
            operations: jobs.iter().map(|job| job.operations).sum(),
            jobs: Vec::new(),
            failures,
            ended_early: Vec::new(),
        };
        let mut runs: BTreeMap<String, KvRun> = BTreeMap::new();
        for (name, run) in stores {
            let run = run.map_err(|error| format!("job \"{name}\": {error}"))?;
            of_phase.operations += run.outcome.measured.operations();
            let ended = run.ended_early(&name, has_faults)?;
            of_phase.ended_early.extend(ended);
            runs.insert(name, run);
        }
        for template in templates {
            match runs.get(&template.name) {
                Some(run) => of_phase.jobs.extend(kv::jobs(&template.name, run, wear())),
                None => of_phase.jobs.push(measure(template, &jobs)),
            }
        }
        Ok(of_phase)
    }
}

impl PhaseMeasured {
    /// Adds what the drive erased in the phase, of which it had `erased` blocks before.
    pub(super) fn add_drive(&mut self, drive: &Drive, erased: u64) {
        for job in &mut self.jobs {
            job.metrics.add_erasures(drive, erased);
            job.metrics.add_pool(drive);
        }
    }

    /// Adds what the phase programmed into flash, and what the layer between jobs and the
    /// drive did in it, if there is one.
    pub(super) fn add_amplification(&mut self, drive: &Totals, ftl: Option<&FtlWork>) {
        for job in &mut self.jobs {
            job.metrics.add_flash(drive, ftl);
            if let Some(ftl) = ftl {
                job.metrics.add_ftl(&ftl.done);
            }
        }
    }

    /// Adds the next phase.
    pub(super) fn extend(&mut self, next: Self) {
        self.jobs.extend(next.jobs);
        self.failures.extend(next.failures);
        self.ended_early.extend(next.ended_early);
        self.operations += next.operations;
    }
}

/// Commands that a key-value store may have in flight.
pub const STORE_DEPTH: u32 = 1024;

/// Runs jobs side by side until all have ended or are `abandoned`, each thread on a core of
/// its own or, if there are fewer, in turn with others.
///
/// # Errors
/// The drive has no queue for one of them: a text that says so.
pub(super) fn run_phase<R: Reached>(
    (reached, config, abandoned): (&mut R, &DriveConfig, &(dyn Fn() -> bool + Sync)),
    (threads, stores): (Vec<Thread>, &[&JobTemplate]),
    host: &HostModel,
    from: Nanos,
    rng: &mut Rng,
) -> Result<PhaseEnd, String> {
    let stop = StopSignal::default();
    let (info, owner) = (reached.info(), reached.owner().clone());
    let held = |spec: &JobSpec| held_lbas(&owner, config, spec);
    let mut sharers = Sharers::of(&owner, &info, config);
    let mut jobs: Vec<(WorkloadJob, Nanos, HostCosts)> = threads
        .into_iter()
        .map(|mut thread| {
            let start = thread.delay + rng_within(rng, host.start_spread);
            let addresses = Rng::new(rng.next_u64(), 0);
            let stack = thread.stack.unwrap_or(host.stack);
            thread.spec.sleep_slack = stack.sleep_slack;
            let sharing = thread
                .shares_zones
                .then(|| sharers.table_of(&thread.spec))
                .flatten();
            let shared = Shared {
                zones: sharing,
                held_lbas: held(&thread.spec),
                ..Shared::from(stop.clone())
            };
            let job = WorkloadJob::new(thread.spec, &info, addresses, shared);
            (job, start, stack.costs)
        })
        .collect();
    let mut stores: Vec<(&JobTemplate, KvJob)> = stores
        .iter()
        .filter_map(|template| {
            let job = store_job(template, (&owner, &info), config, &stop, rng)?;
            Some((*template, job))
        })
        .collect();
    sharers.start(stop.bell());
    let mut queues = Vec::with_capacity(jobs.len() + stores.len());
    for (job, start, costs) in &jobs {
        let queue = reached.open_queue(job.depth(), *costs, Rng::new(rng.next_u64(), 1))?;
        queues.push((queue, *start));
    }
    for (template, _) in &stores {
        let start = template.start + rng_within(rng, host.start_spread);
        let costs = template.stack.unwrap_or(host.stack).costs;
        let queue = reached.open_queue(STORE_DEPTH, costs, Rng::new(rng.next_u64(), 1))?;
        queues.push((queue, start));
    }
    // Opening queues may have taken time.
    let from = from.max(reached.ready_at());
    let mut reactor = Reactor::new(VirtualClock::starting_at(from), reached.device(), stop);
    reactor = reactor.abandoned_if(abandoned);
    if let Some((_, slice)) = host.cores {
        reactor = reactor.in_slices(slice);
    }
    let workloads = jobs.iter_mut().map(|(job, ..)| job as &mut dyn Job);
    let all = workloads.chain(stores.iter_mut().map(|(_, job)| job as &mut dyn Job));
    let mut ids = Vec::with_capacity(queues.len());
    for ((thread, job), (queue, start)) in (0..).zip(all).zip(queues) {
        ids.push(queue.id());
        // Fits: templates have at most 4096 threads.
        let core = host.cores.map_or(thread, |(cores, _)| thread % cores);
        reactor.add(job, queue, CoreId(core), from + start);
    }
    let end = reactor.run();
    let results = jobs.into_iter().zip(ids).map(|((job, ..), queue)| {
        let mut result = job.into_result();
        result.merges = reached.merges(queue);
        result
    });
    let ended = |(template, job): (&JobTemplate, KvJob)| {
        // One that waits for ever has no result, and is counted among the stuck.
        Some((template.name.clone(), job.into_run()?))
    };
    Ok(PhaseEnd {
        jobs: results.collect(),
        stores: stores.into_iter().filter_map(ended).collect(),
        from,
        at: end.at,
        stuck_jobs: end.stuck_jobs,
        lost: owner.with_faults(|drive| drive.lost_completions()),
    })
}

/// What the zones hold that a job resets or finishes: drives that are reached through a driver do
/// not tell what these find.
fn held_lbas<O: Owner>(owner: &O, config: &DriveConfig, spec: &JobSpec) -> Option<Arc<[u64]>> {
    matches!(spec.work, Work::Reset { .. } | Work::Finish { .. }).then_some(())?;
    let mine = config.zones_of(spec.namespace)?;
    let zones = owner.with_drive(|drive| zones_of(drive, mine));
    Some(zones.iter().map(|zone| zone.written_lbas).collect())
}

/// A key-value workload on the drive of `owner`, as a job.
fn store_job<O: Owner + Clone + 'static>(
    template: &JobTemplate,
    (owner, info): (&O, &DeviceInfo),
    config: &DriveConfig,
    stop: &StopSignal,
    rng: &mut Rng,
) -> Option<KvJob> {
    let WorkTemplate::Kv(kv) = &template.work else {
        return None;
    };
    let drive = owner.clone();
    let surroundings = Surroundings {
        info: info.clone(),
        totals: Some(Box::new(move || drive.with_drive(|drive| drive.totals()))),
        keeps_data: config.data == DataStore::Memory,
        stop: stop.clone(),
        seed: rng.next_u64(),
        on_moment: Box::new(|_| {}),
    };
    Some(KvJob::new(kv, surroundings, template.ends_run))
}

pub(super) fn rng_within(rng: &mut Rng, spread: Nanos) -> Nanos {
    if spread == Nanos::ZERO {
        Nanos::ZERO
    } else {
        Nanos(rng.below(spread.0))
    }
}

/// The measurements of all threads of a job together.
fn measure(template: &JobTemplate, results: &[JobResult]) -> JobMeasured {
    let kind = match template.work {
        WorkTemplate::Write { append: false, .. } => OpKind::Write,
        WorkTemplate::Write { append: true, .. } => OpKind::Append,
        WorkTemplate::Read { .. } => OpKind::Read,
        WorkTemplate::Finish { .. } | WorkTemplate::SoftFinish { .. } => OpKind::Finish,
        WorkTemplate::Reset { .. } => OpKind::Reset,
        WorkTemplate::Open { .. } => OpKind::Open,
        WorkTemplate::Close { .. } => OpKind::Close,
        WorkTemplate::Blocks(BlocksTemplate { is_write, .. }) => match is_write {
            true => OpKind::Write,
            false => OpKind::Read,
        },
        // One that never ended; what it would have done last.
        WorkTemplate::Kv(_) => OpKind::Write,
    };
    let mine = || results.iter().filter(|job| job.name == template.name);
    let mut first_writes = Latency::new();
    let mut service: Option<Latency> = None;
    let mut merges = MergeCount::default();
    for job in mine() {
        first_writes.merge(&job.recorder.first_writes);
        if let Some(of_thread) = &job.recorder.service {
            service.get_or_insert_default().merge(of_thread);
        }
        merges += job.merges;
    }
    let group = GroupStats::of(mine().map(|job| &job.recorder.stats), kind);
    let mut metrics = Metrics::default();
    if let Some(group) = group {
        metrics = Metrics::of(&group, &first_writes);
        metrics.add_finds(kind, &group.finds);
        match &service {
            Some(service) => metrics.add_service(service),
            None if kind.moves_data() => metrics.add_stalls(&group.latency),
            None => {}
        }
    }
    metrics.add_merges(merges);
    let mut detail = JobDetail::of(mine().map(|job| &job.recorder.stats), kind);
    let from = mine().map(|job| job.measured_from).min();
    detail.measured = from.zip(mine().map(|job| job.ended).max());
    detail.is_uncertain = mine().any(|job| job.is_uncertain);
    detail.behind = mine().map(|job| job.behind).max().unwrap_or_default();
    metrics.add_seconds(&detail.throughput);
    JobMeasured {
        name: template.name.clone(),
        kind,
        metrics,
        spread: None,
        detail,
    }
}

/// How a job failed, if it did.
fn failure(job: &JobResult) -> Option<JobFailure> {
    Some(JobFailure {
        job: job.name.clone(),
        failed: job.first_error?,
    })
}
