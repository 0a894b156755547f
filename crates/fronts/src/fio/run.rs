//! Runs a plan.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use zonelab_device::{
    Command, Completion, DeviceQueue, Lba, NamespaceId, Nanos, Op, QueuePair, Tag,
};
use zonelab_host::fio::{ExitWhat, Plan, PlannedJob};
use zonelab_host::stats::Latency;
use zonelab_host::workload::directed::DirectedWork;
use zonelab_host::workload::share::{Share, ShareGroup};
use zonelab_host::workload::zone_table::{JobId, SharedZones, ZoneTable};
use zonelab_host::workload::{HORIZON, JobSpec, Shared, WorkloadJob};
use zonelab_host::{Bell, Clock, CoreId, Job, NextWake, Reactor, Rng, StopSignal};
use zonelab_lab::conditions::Conditions;
pub use zonelab_lab::device::threads::ThreadResult;
use zonelab_lab::device::threads::{self, Between, Program, Task};
use zonelab_lab::device::{ReportedZone, Site, Watched, processors};
use zonelab_lab::owed::Debt;
use zonelab_lab::run::queue_names;
use zonelab_lab::trace::PointTrace;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_sim::HostCosts;
use zonelab_ssd::account::Totals;
use zonelab_ssd::faults::LostCompletions;
use zonelab_ssd::record::RecordLimits;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Seed of all randomness.
    pub seed: u64,
    /// What using a queue pair costs the host.
    pub costs: HostCosts,
    /// Zones of the namespace that are full before anything runs.
    pub full_zones: Option<Range<u32>>,
    /// Faults, and a state to start from.
    pub conditions: Conditions,
    /// What is recorded for a trace; `None`: nothing.
    pub trace: Option<RecordLimits>,
    /// Whether the drive's state is wanted at the end.
    pub saves: bool,
    /// Set from elsewhere: jobs end, and what was done is reported.
    pub interrupt: Arc<AtomicBool>,
}

/// A plan that has been run.
#[derive(Clone, Debug)]
pub struct FioRun {
    /// The threads, in the order of the plan.
    pub threads: Vec<ThreadResult>,
    /// When it began: results have times of the same clock.
    pub began: Nanos,
    /// How long it took: simulated time, or real time.
    pub took: Nanos,
    /// In real time, how long what was due waited for its handling; `None`: time
    /// was virtual.
    pub lateness: Option<Box<Latency>>,
    /// It was interrupted.
    pub interrupted: bool,
    /// Why jobs of later stages did not begin, if the device is the reason.
    pub failure: Option<String>,
    /// How often each fault of the plan struck, in its order.
    pub faults_struck: Vec<u64>,
    /// Completions that they have lost, if threads may wait for these.
    pub lost_completions: Option<LostCompletions>,
    /// The trace, if it was asked for.
    pub trace: Option<Box<PointTrace>>,
    /// The drive's state at the end, if it was wanted.
    pub snapshot: Option<Vec<u8>>,
    /// What the drive did; `None`: it does not tell.
    pub drive: Option<Box<DriveWork>>,
    /// The zones of an emulated drive at the end; empty: it has none.
    pub zones: Vec<ReportedZone>,
}

/// What a drive did for jobs.
#[derive(Clone, Debug)]
pub struct DriveWork {
    /// Bytes and operations.
    pub totals: Totals,
    /// What it had still to do at the end.
    pub debt: Debt,
}

impl DriveWork {
    /// What it put off, in words, if that is more than a little.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.debt.words(&self.totals)
    }
}

/// Runs a plan on any device, whose zones are as `zones` says. In real time each
/// thread of a job is a thread of this program. Jobs end when `interrupt` is set.
///
/// A device that fails between the jobs ends the run with what was done, and
/// with the reason ([`FioRun::failure`]).
#[must_use]
pub fn run_on<S: Site>(
    plan: &Plan,
    site: &mut S,
    zones: ZoneTable,
    seed: u64,
    interrupt: &Arc<AtomicBool>,
) -> FioRun {
    Runner::new(plan, site, zones, (seed, true), interrupt).run()
}

pub(super) struct Runner<'a, S> {
    plan: &'a Plan,
    interrupt: &'a Arc<AtomicBool>,
    /// Whether the device keeps what is written.
    keeps_data: bool,
    site: &'a mut S,
    zones: SharedZones,
    /// The same for threads of their own, if jobs have them here.
    table: Option<Arc<Mutex<ZoneTable>>>,
    /// What `exit_what=all` rings: later stages do not begin.
    everybody: StopSignal,
    rng: Rng,
    /// By number: jobs that keep to shares of what they do together.
    shares: BTreeMap<i64, ShareGroup>,
    now: Nanos,
    /// In real time, how late what was due was handled.
    lateness: Option<Box<Latency>>,
    /// Names of the threads behind the queues, in the order of these.
    pub(super) queues: Vec<String>,
}

/// The signals of a stage.
struct Signals {
    bell: Bell,
    /// By group, from the first of the stage.
    groups: Vec<StopSignal>,
    first_group: u32,
    /// By thread: rung when it has ended. Of those that others wait for.
    ended: BTreeMap<JobId, StopSignal>,
}

impl Signals {
    fn new(jobs: &[&PlannedJob]) -> Self {
        let bell = Bell::default();
        let first_group = jobs.first().map_or(0, |job| job.group);
        let last_group = jobs.last().map_or(0, |job| job.group);
        let waited_for = jobs.iter().flat_map(|job| job.waits_for.clone());
        let ended = waited_for.map(|number| (number, StopSignal::over(&bell)));
        let of_stage = |(number, _): &(JobId, _)| jobs.iter().any(|job| job.number == *number);
        Self {
            groups: (first_group..=last_group)
                .map(|_| StopSignal::over(&bell))
                .collect(),
            ended: ended.filter(of_stage).collect(),
            bell,
            first_group,
        }
    }

    /// What is rung when each of these threads has ended, if that is waited for.
    fn ended_of(&self, threads: Range<JobId>) -> Vec<StopSignal> {
        let each = threads.filter_map(|number| self.ended.get(&number));
        each.cloned().collect()
    }

    fn of_group(&self, group: u32) -> StopSignal {
        self.groups[(group - self.first_group) as usize].clone()
    }
}

/// What a job is made of, wherever it runs.
struct Told {
    spec: JobSpec<DirectedWork>,
    rng: Rng,
    stop: StopSignal,
    starts_after: Vec<StopSignal>,
    ends: Vec<StopSignal>,
    ends_on_error: Vec<StopSignal>,
    share: Option<Share>,
}

impl<'a, S: Site> Runner<'a, S> {
    pub(super) fn new(
        plan: &'a Plan,
        site: &'a mut S,
        zones: ZoneTable,
        (seed, keeps_data): (u64, bool),
        interrupt: &'a Arc<AtomicBool>,
    ) -> Self {
        let (zones, table) = match S::HAS_THREADS {
            false => (SharedZones::new(zones), None),
            true => {
                let table = Arc::new(Mutex::new(zones));
                (
                    SharedZones::between_threads(Arc::clone(&table)),
                    Some(table),
                )
            }
        };
        Self {
            plan,
            interrupt,
            keeps_data,
            site,
            zones,
            table,
            everybody: StopSignal::default(),
            rng: Rng::new(seed, 0),
            shares: BTreeMap::new(),
            now: Nanos::ZERO,
            lateness: None,
            queues: Vec::new(),
        }
    }

    pub(super) fn run(&mut self) -> FioRun {
        let clock = self.site.clock(self.now);
        let began = clock.now();
        self.now = began;
        self.lateness = clock.is_real().then(Box::default);
        let mut threads = Vec::new();
        let mut failure = None;
        for stage in 0..self.plan.stages {
            let of_stage = self.plan.jobs.iter().filter(|job| job.stage == stage);
            let planned: Vec<&PlannedJob> = of_stage.collect();
            let is_over = self.everybody.is_stopped()
                || self.interrupt.load(Ordering::Relaxed)
                || S::is_lost(self.site.device())
                || failure.is_some();
            let done = match is_over {
                true => Ok(idle(planned.len())),
                false => self.stage(&planned),
            };
            threads.extend(done.unwrap_or_else(|error| {
                failure = Some(error);
                idle(planned.len())
            }));
        }
        FioRun {
            threads,
            began,
            took: self.now.saturating_sub(began),
            lateness: self.lateness.take(),
            interrupted: self.interrupt.load(Ordering::Relaxed),
            failure,
            faults_struck: Vec::new(),
            lost_completions: None,
            trace: None,
            snapshot: None,
            drive: None,
            zones: Vec::new(),
        }
    }

    /// Runs jobs that hear `signals`, over one bell; each with a queue and the time
    /// of its start, on a core of its own.
    fn drive<'j>(
        &mut self,
        signals: &[StopSignal],
        jobs: impl Iterator<Item = (&'j mut dyn Job, Box<dyn DeviceQueue + 'j>, Nanos)>,
    ) {
        let clock = self.site.clock(self.now);
        let stop = signals.first().cloned().unwrap_or_default();
        let watched = Watched::new(
            self.site.device(),
            S::is_lost,
            self.interrupt,
            signals.to_vec(),
        );
        let mut reactor = Reactor::new(clock, watched, stop);
        if let Some(lateness) = &mut self.lateness {
            reactor = reactor.recording_lateness(lateness);
        }
        for (index, (job, queue, start)) in (0..).zip(jobs) {
            reactor.add_through(job, queue, CoreId(index), start);
        }
        self.now = reactor.run().at;
    }

    fn stage(&mut self, planned: &[&PlannedJob]) -> Result<Vec<ThreadResult>, String> {
        if planned.iter().any(|job| job.resets_device) {
            self.reset_device()?;
        }
        self.queues
            .extend(queue_names(planned.iter().map(|job| job.name.as_str())));
        let signals = Signals::new(planned);
        let count = planned.len() as u32;
        self.zones
            .borrow_mut()
            .start_run(signals.bell.clone(), count);
        self.now = self.site.clock(self.now).now();
        match self.table.clone() {
            Some(table) => self.in_threads(planned, &signals, &table),
            None => self.together(planned, &signals),
        }
    }

    /// Runs the jobs of a stage on one reactor, in this thread.
    fn together(
        &mut self,
        planned: &[&PlannedJob],
        signals: &Signals,
    ) -> Result<Vec<ThreadResult>, String> {
        let mut jobs: Vec<WorkloadJob> = planned.iter().map(|job| self.job(job, signals)).collect();
        let mut queues = Vec::with_capacity(jobs.len());
        for planned in planned {
            let rng = Rng::new(self.rng.next_u64(), 1);
            let (depth, between) = queue_of(planned);
            queues.push(between.over(self.site.open_queue(depth, rng)?));
        }
        let starts: Vec<Nanos> = planned.iter().map(|job| self.start_of(job)).collect();
        let driven = jobs.iter_mut().zip(queues).zip(starts);
        self.drive(
            &signals.groups,
            driven.map(|((job, queue), start)| (job as &mut dyn Job, queue, start)),
        );
        Ok(jobs.into_iter().map(Program::into_output).collect())
    }

    /// Runs the jobs of a stage in threads of their own, while this one looks after
    /// the device.
    fn in_threads(
        &mut self,
        planned: &[&PlannedJob],
        signals: &Signals,
        zones: &Arc<Mutex<ZoneTable>>,
    ) -> Result<Vec<ThreadResult>, String> {
        let mut tasks = Vec::with_capacity(planned.len());
        for job in planned {
            let (depth, between) = queue_of(job);
            let told = self.told(job, signals);
            let (spec, rng, number) = (told.spec, told.rng, job.number);
            let shared = (Arc::clone(zones), Arc::clone(self.interrupt));
            let (stop, starts_after) = (told.stop.clone(), told.starts_after);
            let (ends, ends_on_error) = (told.ends, told.ends_on_error);
            let share = told.share;
            tasks.push(Task {
                name: job.name.clone(),
                cpus: processors(job)?,
                part: self.site.part(depth)?,
                between,
                start: spec.start,
                stop: told.stop,
                make: Box::new(move |info| {
                    let (zones, interrupt) = shared;
                    let shared = Shared {
                        zones: Some((SharedZones::between_threads(zones), number)),
                        held_lbas: None,
                        stop,
                        starts_after,
                        ends,
                        ends_on_error,
                        share,
                        interrupt: Some(interrupt),
                    };
                    WorkloadJob::new(spec, info, rng, shared)
                }),
            });
        }
        let (bell, groups) = (&signals.bell, &signals.groups);
        let ended = threads::run(self.site, tasks, bell, groups, self.interrupt)?;
        self.now = self.now.max(ended.at);
        if let Some(lateness) = &mut self.lateness {
            lateness.merge(&ended.lateness);
        }
        Ok(ended.outputs)
    }

    fn start_of(&self, planned: &PlannedJob) -> Nanos {
        self.now.saturating_add(planned.spec.start).min(HORIZON)
    }

    fn job(&mut self, planned: &PlannedJob, signals: &Signals) -> WorkloadJob {
        let told = self.told(planned, signals);
        let shared = Shared {
            zones: Some((self.zones.clone(), planned.number)),
            held_lbas: None,
            stop: told.stop,
            starts_after: told.starts_after,
            ends: told.ends,
            ends_on_error: told.ends_on_error,
            share: told.share,
            interrupt: Some(Arc::clone(self.interrupt)),
        };
        WorkloadJob::new(told.spec, self.site.info(), told.rng, shared)
    }

    /// What a job is told: it starts from now on.
    fn told(&mut self, planned: &PlannedJob, signals: &Signals) -> Told {
        let mut spec = planned.spec.clone();
        spec.start = self.start_of(planned);
        spec.contents = spec.contents.filter(|_| self.keeps_data);
        let whom = |is_asked: bool| match planned.exit_what {
            _ if !is_asked => Vec::new(),
            ExitWhat::Group => vec![signals.of_group(planned.group)],
            ExitWhat::Stonewall => signals.groups.clone(),
            ExitWhat::All => {
                let mut all = signals.groups.clone();
                all.push(self.everybody.clone());
                all
            }
        };
        let mut ends = whom(self.plan.exitall);
        ends.extend(signals.ended_of(planned.number..planned.number + 1));
        Told {
            spec,
            stop: signals.of_group(planned.group),
            starts_after: signals.ended_of(planned.waits_for.clone()),
            ends,
            ends_on_error: whom(self.plan.exitall_on_error),
            share: planned.share.map(|share| Share {
                group: self.shares.entry(share.group).or_default().clone(),
                weight: share.weight,
                sleep: share.sleep,
            }),
            rng: Rng::new(self.rng.next_u64() ^ planned.seed, 0),
        }
    }

    /// Resets every zone with one command, unless all are empty.
    fn reset_device(&mut self) -> Result<(), String> {
        let namespace = self.site.info().namespace(self.plan.namespace);
        let all = namespace.and_then(|namespace| namespace.zoned);
        let zones = all.map_or(0..0, |zoned| 0..zoned.zones);
        let written = zones
            .clone()
            .any(|zone| self.zones.borrow().written(zone) > 0);
        if !written {
            return Ok(());
        }
        self.queues.push("initial zone reset".to_owned());
        let mut job = ResetAll {
            namespace: self.plan.namespace,
            is_sent: false,
            status: None,
        };
        let queue = self.site.open_queue(1, Rng::new(self.rng.next_u64(), 1))?;
        let queue = Between::default().over(queue);
        let driven = [(&mut job as &mut dyn Job, queue, self.now)];
        self.drive(&[], driven.into_iter());
        match job.status {
            Some(status) if status.is_success() => {
                self.zones.borrow_mut().declare_empty(zones);
                Ok(())
            }
            Some(status) => Err(format!("resetting all zones failed: {status}")),
            None => Err("resetting all zones never ended".to_owned()),
        }
    }
}

/// Commands that a queue has room for by which a block layer sends parts of others, as in Linux;
/// queues of other drives have what these grant.
const ROOM: u32 = 1023;

/// The depth of the queue of a job, and what is between the two: a block layer takes as many
/// commands at a time as the job has, if it sends some in parts.
fn queue_of(job: &PlannedJob) -> (u32, Between) {
    let depth = job.spec.queue_depth.max(1);
    let taken = u16::try_from(depth).unwrap_or(u16::MAX);
    let between = Between {
        splits: (job.parts > 1).then_some(taken),
        writes_through: job.writes_through,
    };
    match job.parts {
        1 => (depth, between),
        parts => (depth.max(ROOM.min(depth.saturating_mul(parts))), between),
    }
}

/// Threads that did not begin.
fn idle(threads: usize) -> Vec<ThreadResult> {
    let idle = ThreadResult {
        result: None,
        is_stuck: false,
    };
    vec![idle; threads]
}

/// Resets all zones of a namespace.
struct ResetAll {
    namespace: NamespaceId,
    is_sent: bool,
    status: Option<Status>,
}

impl Job for ResetAll {
    fn step(
        &mut self,
        _now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        if let Some(completion) = done.first() {
            self.status = Some(completion.status);
            return NextWake::Finished;
        }
        if !self.is_sent {
            let op = Op::ZoneSend {
                slba: Lba(0),
                action: ZoneSendAction::RESET,
                select_all: true,
            };
            let nsid = self.namespace;
            self.is_sent = queue.submit(Command::on(nsid, op), Tag(0), None).is_ok();
            if !self.is_sent {
                // It holds a command: the device is gone.
                self.status = Some(Status::HOST_PATHING_ERROR);
                return NextWake::Finished;
            }
            queue.ring();
        }
        NextWake::Completion
    }
}
