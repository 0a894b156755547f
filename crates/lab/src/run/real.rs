//! Points in real time: on new emulated drives, and on a device from outside.
//!
//! Jobs, phases, and how they end are those of virtual time; each thread of a job is a
//! thread of this program. The costs of the modelled host have no meaning here: it takes
//! the time that it takes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use zonelab_device::{Completion, DeviceInfo, Monotonic, NamespaceId, Nanos, QueuePair};
use zonelab_host::stats::Latency;
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::workload::{JobResult, Shared, Work, WorkloadJob};
use zonelab_host::{Bell, Clock, Job, NextWake, Rng, StopSignal};
use zonelab_kv::files::FilesError;
use zonelab_sim::SharedDrive;
use zonelab_ssd::account::Totals;
use zonelab_ssd::record::RecordLimits;
use zonelab_ssd::{Control, Drive, DriveModel};

use super::phase::{PhaseEnd, PhaseMeasured, STORE_DEPTH, rng_within};
use super::prepare::{Preparation, Prepared};
use super::specs::{Shape, Thread, specs, stores};
use super::{DriveMeasured, Point, PointResult, RunError, RunOptions, ZONE_HISTORY_LIMIT};
use crate::device::InRealTime;
use crate::device::threads::{self, Between, Ended, Program, Task};
use crate::device::{ReportedZone, Site, report_zones, zones};
use crate::experiment::{JobTemplate, WorkTemplate};
use crate::kv::{KvJob, KvRun, KvTemplate, Surroundings, Wear};

/// Why a point has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RealError {
    /// The experiment, or the device for it, is wrong.
    #[error("{0}")]
    Unfit(#[from] RunError),
    /// The device failed a command, or is gone.
    #[error("{0}")]
    Device(String),
    /// The run was interrupted.
    #[error("the run was interrupted")]
    Interrupted,
}

/// Runs one point on a new emulated drive in real time.
///
/// # Errors
/// The drive's configuration is wrong, the jobs do not fit it or failed, or `interrupt`
/// was set.
pub fn run_point_in_real_time(
    point: &Point,
    options: &RunOptions<'_>,
    interrupt: &Arc<AtomicBool>,
) -> Result<PointResult, RealError> {
    let unfit = |what| RealError::Unfit(point.unfit(what));
    let profile = point.drive(options.profiles).map_err(RunError::from)?;
    let faults = point.faults(options.conditions);
    let drive = options.conditions.drive_with(&profile.config, faults);
    let drive = drive.map_err(unfit)?;
    let drive = SharedDrive::new(drive, Monotonic::new());
    let before = drive.with_drive(|drive| drive.totals());
    let limits = RecordLimits::zones_only(ZONE_HISTORY_LIMIT);
    drive.with_drive(|drive| drive.record(&limits));
    for zones in point.full_zones_of(&profile.config)? {
        let full = Control::PreconditionFull { zones };
        let done = drive.with_drive(|drive| drive.control(drive.now(), &full));
        done.map_err(|error| unfit(error.to_string()))?;
    }
    let mut site = InRealTime::new(drive.clone());
    let mut phases = Phases {
        site: &mut site,
        shape: Shape::of_drive(&profile.config),
        has_faults: faults.is_some(),
        emulated: Some(&drive),
        interrupt,
    };
    let (measured, took, lateness) = phases.run(point, options.seed)?;
    let record = drive.with_drive(Drive::take_record);
    let of_drive = drive.with_drive(|drive| DriveMeasured::of(drive, &before, &record.zones));
    let mut result = point.result(measured, Some(of_drive), took);
    result.faults_struck = drive.with_faults(|drive| drive.struck_by_fault());
    result.lateness = Some(lateness);
    result.add_batches();
    Ok(result)
}

/// A device from outside that points run on, one after another.
pub struct Attached<'a, S> {
    site: &'a mut S,
    interrupt: &'a Arc<AtomicBool>,
    preparation: Preparation,
}

impl<'a, S: Site> Attached<'a, S> {
    /// A device whose zones are taken as they are found.
    pub fn new(site: &'a mut S, interrupt: &'a Arc<AtomicBool>) -> Self {
        Self {
            site,
            interrupt,
            preparation: Preparation::default(),
        }
    }

    /// The same, of which it is known how long it took to prepare zones before.
    #[must_use]
    pub fn knowing(mut self, prepared: Prepared) -> Self {
        self.preparation.prepared = prepared;
        self
    }

    /// How long it took to prepare zones so far.
    pub fn prepared(&self) -> Prepared {
        self.preparation.prepared
    }

    /// Runs a point: resets what it uses, writes the zones that have to be full, and runs
    /// its phases.
    ///
    /// # Errors
    /// The jobs do not fit the device, a command failed, the device is gone, or the run was
    /// interrupted.
    pub fn run(&mut self, point: &Point, seed: u64) -> Result<PointResult, RealError> {
        let info = self.site.info().clone();
        let (all, full) = (point.zones_on(&info), point.full_on(&info));
        let prepared = self
            .preparation
            .prepare(self.site, &all, &full, self.interrupt);
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(RealError::Interrupted);
        }
        let failed = |what| RealError::Device(format!("{}: {what}", point.title()));
        prepared.map_err(failed)?;
        self.preparation.changed(&point.changed_on(&info));
        let mut phases = Phases {
            site: self.site,
            shape: Shape::of_device(&info),
            has_faults: false,
            emulated: None,
            interrupt: self.interrupt,
        };
        let (measured, took, lateness) = phases.run(point, seed)?;
        let mut result = point.result(measured, None, took);
        result.lateness = Some(lateness);
        result.add_batches();
        Ok(result)
    }
}

/// The phases of a point, one after another.
struct Phases<'a, S> {
    site: &'a mut S,
    shape: Shape,
    /// Operations may fail: that is a result.
    has_faults: bool,
    /// The drive, if it is emulated here.
    emulated: Option<&'a SharedDrive>,
    interrupt: &'a Arc<AtomicBool>,
}

impl<S: Site> Phases<'_, S> {
    /// What they measured, how long they took, and how late the host was.
    fn run(
        &mut self,
        point: &Point,
        seed: u64,
    ) -> Result<(PhaseMeasured, Nanos, Box<Latency>), RealError> {
        let mut rng = point.rng(seed);
        let mut measured = PhaseMeasured::default();
        let mut lateness = Box::new(Latency::new());
        let began = self.site.real_clock().now();
        let mut ended = began;
        for phase in &point.series.phases {
            let templates = point.templates(phase);
            let unfit = |what| RealError::Unfit(point.unfit(what));
            let threads = specs(&templates, &self.shape, seed).map_err(unfit)?;
            let stores = stores(&templates, &self.shape).map_err(unfit)?;
            let failed = |what| RealError::Device(format!("{}: {what}", point.title()));
            let erased = self.erased();
            let spread = point.host().start_spread;
            let end = self.phase(threads, &stores, spread, &mut rng, &mut lateness);
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(RealError::Interrupted);
            }
            if S::is_lost(self.site.device()) {
                return Err(failed("the device is gone".to_owned()));
            }
            let mut end = end.map_err(failed)?;
            ended = end.at;
            let drive = self.emulated;
            end.lost = drive.and_then(|drive| drive.with_faults(|of| of.lost_completions()));
            let wear =
                || drive.map(|drive| drive.with_drive(|of| Wear::of(&of.flash().erase_counts())));
            let of_phase = end.measured(&templates, &wear, self.has_faults);
            let mut of_phase = of_phase.map_err(|error| failed(error.to_string()))?;
            if let Some(drive) = drive {
                drive.with_drive(|drive| of_phase.add_drive(drive, erased));
            }
            measured.extend(of_phase);
        }
        Ok((measured, ended.saturating_sub(began), lateness))
    }

    /// Blocks that an emulated drive has erased.
    fn erased(&self) -> u64 {
        let erased = |drive: &SharedDrive| drive.with_drive(|of| of.totals().erased_blocks);
        self.emulated.map_or(0, erased)
    }

    /// What zones hold that threads reset or finish, on a device that does not tell what these
    /// find: by namespace.
    fn held(&mut self, threads: &[Thread]) -> Result<BTreeMap<NamespaceId, Arc<[u64]>>, String> {
        let mut held = BTreeMap::new();
        if self.emulated.is_some() {
            return Ok(held);
        }
        for Thread { spec, .. } in threads {
            let finds = matches!(spec.work, Work::Reset { .. } | Work::Finish { .. });
            if finds && !held.contains_key(&spec.namespace) {
                let zones = report_zones(self.site, spec.namespace)?;
                let written = zones.iter().map(|zone| zone.written_lbas);
                held.insert(spec.namespace, written.collect());
            }
        }
        Ok(held)
    }

    /// Runs the jobs of a phase, each thread in a thread of this program. Random numbers
    /// are drawn in the order of virtual time.
    fn phase(
        &mut self,
        specs: Vec<Thread>,
        stores: &[&JobTemplate],
        start_spread: Nanos,
        rng: &mut Rng,
        lateness: &mut Latency,
    ) -> Result<PhaseEnd, String> {
        let stop = StopSignal::default();
        let mut sharers = Sharers::default();
        for thread in specs.iter().filter(|thread| thread.shares_zones) {
            sharers.join(self.site, &thread.spec.name, thread.spec.namespace)?;
        }
        sharers.start(stop.bell());
        let held = self.held(&specs)?;
        let mut tasks = Vec::with_capacity(specs.len() + stores.len());
        let from = self.site.real_clock().now();
        for thread in specs {
            let Thread {
                mut spec,
                delay,
                shares_zones,
                ..
            } = thread;
            let start = from + delay + rng_within(rng, start_spread);
            let addresses = Rng::new(rng.next_u64(), 0);
            spec.start = start;
            let zones = shares_zones.then(|| sharers.table_of(&spec.name)).flatten();
            let held_lbas = held.get(&spec.namespace).cloned();
            let (ends, interrupt) = (stop.clone(), Arc::clone(self.interrupt));
            tasks.push(Task {
                name: spec.name.clone(),
                cpus: None,
                part: self.site.part(spec.queue_depth.max(1))?,
                between: Between::default(),
                start,
                stop: stop.clone(),
                make: Box::new(move |info| {
                    let shared = Shared {
                        zones: zones
                            .map(|(table, number)| (SharedZones::between_threads(table), number)),
                        held_lbas,
                        interrupt: Some(interrupt),
                        ..Shared::from(ends)
                    };
                    let job = WorkloadJob::new(spec, info, addresses, shared);
                    PhaseJob::Workload(Box::new(job))
                }),
            });
        }
        let mut names = Vec::new();
        for template in stores {
            let WorkTemplate::Kv(kv) = &template.work else {
                continue;
            };
            let seed = rng.next_u64();
            let start = from + template.start + rng_within(rng, start_spread);
            names.push(template.name.clone());
            let make = store(
                kv,
                seed,
                (self.shape.keeps_data, self.emulated),
                &stop,
                template.ends_run,
            );
            tasks.push(Task {
                name: template.name.clone(),
                cpus: None,
                part: self.site.part(STORE_DEPTH)?,
                between: Between::default(),
                start,
                stop: stop.clone(),
                make: Box::new(make),
            });
        }
        let signals = [stop.clone()];
        let ended = threads::run(self.site, tasks, stop.bell(), &signals, self.interrupt)?;
        lateness.merge(&ended.lateness);
        Ok(phase_end(ended, names))
    }
}

/// What the threads of a phase left; `stores` are the names of its key-value workloads.
fn phase_end(ended: Ended<Output>, stores: Vec<String>) -> PhaseEnd {
    let mut end = PhaseEnd {
        jobs: Vec::new(),
        stores: Vec::new(),
        from: Nanos::ZERO,
        at: ended.at,
        stuck_jobs: 0,
        lost: None,
    };
    let mut stores = stores.into_iter();
    for output in ended.outputs {
        match output {
            Output::Workload { result, is_stuck } => {
                end.stuck_jobs += u32::from(is_stuck);
                end.jobs.push(*result);
            }
            Output::Kv(run) => {
                let name = stores.next().unwrap_or_default();
                match run {
                    Some(run) => end.stores.push((name, *run)),
                    None => end.stuck_jobs += 1,
                }
            }
        }
    }
    end
}

/// Makes a key-value workload in its thread.
fn store(
    kv: &KvTemplate,
    seed: u64,
    (keeps_data, drive): (bool, Option<&SharedDrive>),
    stop: &StopSignal,
    ends_run: bool,
) -> impl FnOnce(&DeviceInfo) -> PhaseJob + Send + use<> {
    let (kv, stop, drive) = (kv.clone(), stop.clone(), drive.cloned());
    move |info| {
        let surroundings = Surroundings {
            info: info.clone(),
            totals: drive.map(|drive| -> Box<dyn Fn() -> Totals> {
                Box::new(move || drive.with_drive(|drive| drive.totals()))
            }),
            keeps_data,
            stop,
            seed,
            on_moment: Box::new(|_| {}),
        };
        PhaseJob::Kv(Box::new(KvJob::new(&kv, surroundings, ends_run)))
    }
}

/// A job of a phase, in its thread.
enum PhaseJob {
    Workload(Box<WorkloadJob>),
    Kv(Box<KvJob>),
}

/// What it leaves.
enum Output {
    Workload {
        result: Box<JobResult>,
        /// It waits for something that cannot happen any more.
        is_stuck: bool,
    },
    /// `None`: as `is_stuck`.
    Kv(Option<Box<Result<KvRun, FilesError>>>),
}

impl Job for PhaseJob {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        match self {
            Self::Workload(job) => job.step(now, done, queue),
            Self::Kv(job) => job.step(now, done, queue),
        }
    }
}

impl Program for PhaseJob {
    type Output = Output;

    fn into_output(self) -> Output {
        match self {
            Self::Workload(job) => Output::Workload {
                is_stuck: !job.has_ended(),
                result: Box::new(job.into_result()),
            },
            Self::Kv(job) => Output::Kv(job.into_run().map(Box::new)),
        }
    }
}

/// The tables of jobs whose threads share zones, by their names, with the number of
/// threads that have each.
#[derive(Default)]
struct Sharers {
    tables: BTreeMap<String, (Arc<Mutex<ZoneTable>>, u32)>,
    /// Threads that were given a table, by job.
    given: BTreeMap<String, u32>,
}

impl Sharers {
    /// One more thread of a job.
    fn join<S: Site>(
        &mut self,
        site: &mut S,
        job: &str,
        namespace: NamespaceId,
    ) -> Result<(), String> {
        if let Some((_, threads)) = self.tables.get_mut(job) {
            *threads += 1;
            return Ok(());
        }
        let Some(zoned) = site.info().namespace(namespace).and_then(|of| of.zoned) else {
            return Ok(());
        };
        let reported: Vec<ReportedZone> = report_zones(site, namespace)?;
        let table = zones::table_of(zoned, None, &reported);
        let table = Arc::new(Mutex::new(table));
        self.tables.insert(job.to_owned(), (table, 1));
        Ok(())
    }

    /// The threads begin to run, under a bell that wakes them.
    fn start(&self, bell: &Bell) {
        for (table, threads) in self.tables.values() {
            let table = SharedZones::between_threads(Arc::clone(table));
            table.borrow_mut().start_run(bell.clone(), *threads);
        }
    }

    /// The table for the next thread of a job, and the number of the thread.
    fn table_of(&mut self, job: &str) -> Option<(Arc<Mutex<ZoneTable>>, u32)> {
        let (table, _) = self.tables.get(job)?;
        let given = self.given.entry(job.to_owned()).or_default();
        *given += 1;
        Some((Arc::clone(table), *given - 1))
    }
}
