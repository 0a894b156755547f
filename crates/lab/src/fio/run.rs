//! Runs a plan.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonelab_device::{Command, Completion, Lba, NamespaceId, Nanos, Op, QueuePair, Tag, ZoneId};
use zonelab_host::fio::{ExitWhat, Plan, PlannedJob};
use zonelab_host::workload::directed::{DirectedJob, DirectedResult, HORIZON, Shared};
use zonelab_host::workload::zone_table::{SharedZones, ZoneTable};
use zonelab_host::{Bell, CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::record::RecordLimits;
use zonelab_ssd::{Control, Drive, snapshot};

use crate::conditions::Conditions;
use crate::run::queue_names;
use crate::trace::PointTrace;

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

/// What a thread of a plan did.
#[derive(Clone, Debug)]
pub struct ThreadResult {
    /// What it measured; `None` if it was ended before it began.
    pub result: Option<DirectedResult>,
    /// It waited for something that could not happen any more.
    pub is_stuck: bool,
}

/// A plan that has been run.
#[derive(Clone, Debug)]
pub struct FioRun {
    /// The threads, in the order of the plan.
    pub threads: Vec<ThreadResult>,
    /// Simulated time.
    pub simulated: Nanos,
    /// It was interrupted.
    pub interrupted: bool,
    /// How often faults have struck.
    pub faults_struck: u64,
    /// The trace, if it was asked for.
    pub trace: Option<Box<PointTrace>>,
    /// The drive's state at the end, if it was wanted.
    pub snapshot: Option<Vec<u8>>,
}

/// Runs a plan on a new drive, which keeps no data.
///
/// # Errors
/// The zones to be declared full do not exist, or resetting the device failed:
/// a text that says so.
pub fn run(plan: &Plan, config: &DriveConfig, settings: &RunSettings) -> Result<FioRun, String> {
    // Jobs neither give data nor look at any.
    let config = DriveConfig {
        data: DataStore::None,
        ..config.clone()
    };
    let drive = settings.conditions.drive(&config);
    let device = Emulated::new(drive?);
    if let Some(limits) = &settings.trace {
        device.with_drive(|drive| drive.record(limits));
    }
    let namespace = device.info().namespace(plan.namespace);
    let zoned = namespace.and_then(|namespace| namespace.zoned);
    let zoned = zoned.ok_or("the device has no zones")?;
    let mine = config.zones_of(plan.namespace).unwrap_or_default();
    let zones = SharedZones::new(ZoneTable::new(zoned, plan.max_open_zones).into());
    if settings.conditions.restore.is_some() {
        device.with_drive(|drive| declare(drive, mine.clone(), &mut zones.borrow_mut()));
    }
    if let Some(full) = &settings.full_zones {
        let control = Control::PreconditionFull {
            zones: full.start.saturating_add(mine.start)..full.end.saturating_add(mine.start),
        };
        device
            .with_drive(|drive| drive.control(Nanos::ZERO, &control))
            .map_err(|error| error.to_string())?;
        zones.borrow_mut().declare_full(full.clone());
    }
    let mut runner = Runner {
        plan,
        settings,
        device,
        zones,
        everybody: StopSignal::default(),
        rng: Rng::new(settings.seed, 0),
        now: Nanos::ZERO,
        queues: Vec::new(),
    };
    let mut threads = Vec::new();
    for stage in 0..plan.stages {
        threads.extend(runner.stage(stage)?);
    }
    let trace = settings
        .trace
        .map(|limits| runner.trace(limits, config.clone()));
    let snapshot = settings.saves.then(|| saved(&runner.device)).transpose()?;
    Ok(FioRun {
        threads,
        faults_struck: runner.device.with_faults(|drive| drive.faults_struck()),
        trace,
        snapshot,
        simulated: runner.now,
        interrupted: settings.interrupt.load(Ordering::Relaxed),
    })
}

/// Tells the table of zones what the zones `mine` of a drive hold that was restored.
pub(crate) fn declare(drive: &Drive, mine: Range<u32>, table: &mut ZoneTable) {
    let capacity = drive.config().zones.capacity_lbas;
    for (index, zone) in (0..).zip(mine.map(ZoneId)) {
        let written = match drive.zones().state(zone) {
            // They cannot be written any more.
            ZoneState::READ_ONLY | ZoneState::OFFLINE => capacity,
            _ => drive.zones().written_lbas(zone),
        };
        table.declare_written(index, written);
    }
}

/// The state of a drive once it has done what it does by itself.
fn saved(device: &Emulated) -> Result<Vec<u8>, String> {
    device.with_faults(|faulty| {
        // What faults have in store belongs to this run.
        faulty.clear_faults();
        let mut done = Vec::new();
        while let Some(at) = faulty.next_event() {
            faulty.advance(at, &mut done);
        }
        snapshot::save(faulty.drive()).map_err(|error| error.to_string())
    })
}

struct Runner<'a> {
    plan: &'a Plan,
    settings: &'a RunSettings,
    device: Emulated,
    zones: SharedZones,
    /// What `exit_what=all` rings: later stages do not begin.
    everybody: StopSignal,
    rng: Rng,
    now: Nanos,
    /// Names of the threads behind the queues, in the order of these.
    queues: Vec<String>,
}

/// The signals of a stage.
struct Signals {
    bell: Bell,
    /// By group, from the first of the stage.
    groups: Vec<StopSignal>,
    first_group: u32,
}

impl Signals {
    fn new(jobs: &[&PlannedJob]) -> Self {
        let bell = Bell::default();
        let first_group = jobs.first().map_or(0, |job| job.group);
        let last_group = jobs.last().map_or(0, |job| job.group);
        Self {
            groups: (first_group..=last_group)
                .map(|_| StopSignal::over(&bell))
                .collect(),
            bell,
            first_group,
        }
    }

    fn of_group(&self, group: u32) -> StopSignal {
        self.groups[(group - self.first_group) as usize].clone()
    }
}

impl Runner<'_> {
    /// What was recorded, with what it takes to understand it.
    fn trace(&mut self, limits: RecordLimits, config: DriveConfig) -> Box<PointTrace> {
        Box::new(PointTrace {
            title: format!("job file on {}", config.name),
            config,
            limits,
            record: self.device.with_drive(Drive::take_record),
            queues: std::mem::take(&mut self.queues),
            end: self.device.with_drive(|drive| drive.now()),
        })
    }

    fn stage(&mut self, stage: u32) -> Result<Vec<ThreadResult>, String> {
        let planned: Vec<&PlannedJob> = self
            .plan
            .jobs
            .iter()
            .filter(|job| job.stage == stage)
            .collect();
        if self.everybody.is_stopped() || self.settings.interrupt.load(Ordering::Relaxed) {
            let idle = ThreadResult {
                result: None,
                is_stuck: false,
            };
            return Ok(vec![idle; planned.len()]);
        }
        if planned.iter().any(|job| job.resets_device) {
            self.reset_device()?;
        }
        self.queues
            .extend(queue_names(planned.iter().map(|job| job.name.as_str())));
        let signals = Signals::new(&planned);
        let count = planned.len() as u32;
        self.zones
            .borrow_mut()
            .start_run(signals.bell.clone(), count);
        let mut jobs: Vec<DirectedJob> =
            planned.iter().map(|job| self.job(job, &signals)).collect();
        let stop = StopSignal::over(&signals.bell);
        let clock = VirtualClock::starting_at(self.now);
        let mut reactor = Reactor::new(clock, self.device.clone(), stop);
        for (index, (job, planned)) in jobs.iter_mut().zip(&planned).enumerate() {
            let rng = Rng::new(self.rng.next_u64(), 1);
            let queue = self
                .device
                .open_queue(job.depth(), self.settings.costs, rng);
            let start = self.start_of(planned);
            // Fits: a plan has at most 4096 threads.
            reactor.add(job, queue, CoreId(index as u32), start);
        }
        self.now = reactor.run().at;
        Ok(jobs
            .into_iter()
            .map(|job| ThreadResult {
                is_stuck: !job.has_ended(),
                result: Some(job.into_result()),
            })
            .collect())
    }

    fn start_of(&self, planned: &PlannedJob) -> Nanos {
        self.now.saturating_add(planned.spec.start).min(HORIZON)
    }

    fn job(&mut self, planned: &PlannedJob, signals: &Signals) -> DirectedJob {
        let mut spec = planned.spec.clone();
        spec.start = self.start_of(planned);
        let whom = || match planned.exit_what {
            ExitWhat::Group => vec![signals.of_group(planned.group)],
            ExitWhat::Stonewall => signals.groups.clone(),
            ExitWhat::All => {
                let mut all = signals.groups.clone();
                all.push(self.everybody.clone());
                all
            }
        };
        let shared = Shared {
            zones: Rc::clone(&self.zones),
            stop: signals.of_group(planned.group),
            ends: if self.plan.exitall {
                whom()
            } else {
                Vec::new()
            },
            ends_on_error: if self.plan.exitall_on_error {
                whom()
            } else {
                Vec::new()
            },
            interrupt: Arc::clone(&self.settings.interrupt),
        };
        let rng = Rng::new(self.rng.next_u64() ^ planned.seed, 0);
        DirectedJob::new(spec, self.device.info(), rng, shared)
    }

    /// Resets every zone with one command, unless all are empty.
    fn reset_device(&mut self) -> Result<(), String> {
        let namespace = self.device.info().namespace(self.plan.namespace);
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
        let stop = StopSignal::default();
        let clock = VirtualClock::starting_at(self.now);
        let mut reactor = Reactor::new(clock, self.device.clone(), stop);
        let queue =
            self.device
                .open_queue(1, self.settings.costs, Rng::new(self.rng.next_u64(), 1));
        reactor.add(&mut job, queue, CoreId(0), self.now);
        self.now = reactor.run().at;
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
            self.is_sent = queue.submit(Command { nsid, op }, Tag(0), None).is_ok();
            queue.ring();
        }
        NextWake::Completion
    }
}
