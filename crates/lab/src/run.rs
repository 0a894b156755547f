//! Runs the points of an experiment.
//!
//! A point is one series at one axis value, a drive of its own, and a seed
//! that depends on nothing but the run's seed and the point's name: results
//! are the same in any order and on any number of threads.
//!
//! * `identity`: when two points are the same.
//! * `real`: points in real time, on emulated drives and on devices from outside.
//! * `needs`: what points need of a device from outside.
//! * `order`: in which order points run.
//! * `phase`: the jobs of a phase, side by side.
//! * `prepare`: zones of a device made those of a new drive.
//! * `repeats`: seeds of repeats, running them, and their means.
//! * `result`: what a point measured.
//! * `sharers`: what threads know together of the zones that they share.
//! * `specs`: from the jobs of a file to those of a phase, for a drive.

mod identity;
mod needs;
mod order;
mod phase;
mod prepare;
mod real;
mod recording;
mod repeats;
mod result;
mod sharers;
mod specs;
mod timeless;

use std::collections::BTreeMap;

use zonelab_config::{Errors, Override, PutIn};
use zonelab_device::{DeviceInfo, NamespaceId, Nanos};
use zonelab_ftl::FtlSettings;
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::counterfactual::WatchPlan;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::profile::Profile;
use zonelab_ssd::record::RecordLimits;
use zonelab_ssd::{Control, Drive, DriveModel};

use crate::conditions::Conditions;
use crate::device::Owner;
use crate::device::Reached;
use crate::device::over_ftl::{OverFtl, seen_through};
#[cfg(not(target_family = "wasm"))]
use crate::device::over_pcie::{self, OverPcie, endpoint_of};
use crate::device::zones::ReportJob;
use crate::device::{zone_count_line, zone_line};
use crate::experiment::{
    AxisValue, Experiment, FtlTemplate, HostModel, JobTemplate, SeriesSpec, Via, WorkTemplate,
};
use crate::idle;
use crate::kv::Wear;
use crate::policies::Policies;
use crate::reference::plausible::InFlight;
use crate::trace::PointTrace;
pub use phase::STORE_DEPTH;
use phase::{PhaseMeasured, Unmeasured, run_phase};
pub use prepare::{Prepared, Preparing};
pub use real::{Attached, RealError, run_point_in_real_time};
pub use repeats::{repeat_seed, run_repeated};
pub use result::{DriveMeasured, EndedEarly, JobMeasured, PointResult, Spread, ZoneHistory};
use specs::{Shape, specs, stores};

/// Most changes of zone states that a point keeps ([`DriveMeasured::zone_history`]).
pub const ZONE_HISTORY_LIMIT: usize = 4096;

/// Why points do not run over PCIe in a browser.
#[cfg(target_family = "wasm")]
const NO_PCIE: &str = "via = \"pcie\": the driver for PCIe is not there in a browser; say \
                       via = \"direct\", or use the command";

/// Why a point could not be run, or what went wrong in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment or the drive is wrong.
    #[error("{0}")]
    Invalid(#[from] Errors),
    /// The experiment asks for something that the drive does not have.
    #[error("{0}")]
    Unfit(Box<AtPoint>),
    /// Jobs wait for completions that faults of the drive have lost.
    #[error("{0}")]
    Lost(Box<AtPoint>),
}

/// What is wrong at a point.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{experiment}, series \"{series}\", {axis} {x}: {what}")]
pub struct AtPoint {
    /// Experiment.
    pub experiment: String,
    /// Series.
    pub series: String,
    /// Name of the axis.
    pub axis: String,
    /// Axis value.
    pub x: String,
    /// What is wrong.
    pub what: String,
}

/// How to find profiles that experiments name.
pub trait Profiles: Sync {
    /// The profile of that name or path, with overrides.
    ///
    /// # Errors
    /// There is none, or it is wrong.
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors>;
}

/// What a run is told, besides the experiment.
pub struct RunOptions<'a> {
    /// Seed of all randomness.
    pub seed: u64,
    /// Where profiles are found.
    pub profiles: &'a dyn Profiles,
    /// Faults, and a state to start from.
    pub conditions: &'a Conditions,
    /// Called when a point is done, with its index.
    pub on_point: &'a (dyn Fn(usize, &PointResult) + Sync),
    /// Asked before each point: stop here?
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Asked before each point and now and then while one runs: leave it as it is, without
    /// a result?
    pub abandoned: &'a (dyn Fn() -> bool + Sync),
}

/// A point to run.
#[derive(Clone, Debug)]
pub struct Point {
    /// The experiment with the axis value put in.
    experiment: Experiment,
    series: SeriesSpec,
    x: AxisValue,
    /// The namespace of its device that it works in, if the device was named with one.
    namespace: Option<NamespaceId>,
    /// What is to be recorded for a trace.
    trace: Option<RecordLimits>,
    /// Of how many of its slowest reads, writes and appends the result says what they waited for.
    slowest: usize,
    /// The commands that the drive watches, of a run that is known.
    watch: Option<WatchPlan>,
}

impl Point {
    /// Lets the point end by `until` at the latest: for a look, not for a result.
    pub(crate) fn end_by(&mut self, until: Nanos) {
        for job in &mut self.experiment.jobs {
            let whole = job
                .stop
                .runtime
                .map(|runtime| runtime.saturating_add(job.ramp));
            job.stop.runtime = Some(whole.map_or(until, |whole| whole.min(until)));
            job.stop.confidence = None;
            job.ramp = Nanos::ZERO;
        }
    }

    /// The experiment, with the axis value put in.
    #[must_use]
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The drive that the point runs on.
    ///
    /// # Errors
    /// There is no such profile, or the settings do not fit it.
    pub fn drive(&self, profiles: &dyn Profiles) -> Result<Profile, Errors> {
        let settings: Vec<Override> = self
            .experiment
            .drive
            .iter()
            .chain(&self.series.drive)
            .cloned()
            .collect();
        profiles.load(&self.experiment.profile, &settings)
    }

    /// Changes settings of the drive, over those of the experiment and the series. Values of
    /// the axes are put in for their names.
    ///
    /// # Errors
    /// There is no axis of such a name.
    pub fn set_drive(&mut self, settings: &[Override]) -> Result<(), Errors> {
        let values = self.values();
        for setting in settings {
            self.series.drive.push(setting.put_in(&values)?);
        }
        Ok(())
    }

    /// Replaces the faults of the drive by those of a plan, in which values of the axes are
    /// put in for their names.
    ///
    /// # Errors
    /// Everything that is wrong with the plan.
    pub fn set_faults(&mut self, file: &str, text: &str) -> Result<(), Errors> {
        let plan = FaultPlan::parse_with(file, text, &[], &self.values())?;
        self.experiment.faults = Some(plan);
        Ok(())
    }

    /// Its jobs that will find nothing to do, by name, and why: those of which the file says it.
    /// A drive that starts from a state is not known from the file. How much zones hold that are
    /// written in part is only known of a drive that `info` is about.
    #[must_use]
    pub fn idle_jobs(&self, info: Option<&DeviceInfo>) -> BTreeMap<String, String> {
        let known = (self.is_in_one_namespace(), info);
        idle::idle_jobs(&self.experiment, &self.series, known)
    }

    /// Whether all jobs work in one namespace, that of the device, whose zones the file counts.
    pub(crate) const fn is_in_one_namespace(&self) -> bool {
        self.namespace.is_some()
    }

    /// What stands for the names of axes here.
    fn values(&self) -> Vec<PutIn> {
        let combination = self.series.combination;
        self.experiment.values_at(&self.x, combination)
    }

    /// The faults of its drive: its own, or else those of the run.
    fn faults<'a>(&'a self, conditions: &'a Conditions) -> Option<&'a FaultPlan> {
        let own = self.experiment.faults.as_ref();
        own.or(conditions.faults.as_ref())
    }

    /// The namespace that it works in, if its jobs name no others.
    fn nsid(&self) -> NamespaceId {
        self.namespace.unwrap_or(NamespaceId::FIRST)
    }

    /// The axis value.
    #[must_use]
    pub fn x(&self) -> &AxisValue {
        &self.x
    }

    /// The host, with the axis value put in and the scheduler of the series.
    #[must_use]
    pub fn host(&self) -> HostModel {
        self.experiment.host_of(&self.series)
    }

    /// How its jobs reach an emulated drive in virtual time.
    #[must_use]
    pub fn via(&self) -> Via {
        self.experiment.via_of(&self.series)
    }

    /// The flash translation layer that its jobs go through, if they do.
    #[must_use]
    pub fn ftl(&self) -> Option<FtlTemplate> {
        let goes = self.via() == Via::Ftl;
        goes.then(|| self.experiment.ftl_of(&self.series))
    }

    /// Lets its jobs reach the drive in that way.
    pub fn set_via(&mut self, via: Via) {
        self.series.via = Some(via);
    }

    /// The jobs of the point, phase by phase, in a stable text that says all of them.
    #[must_use]
    pub fn describe_jobs(&self) -> String {
        let phases: Vec<_> = self
            .series
            .phases
            .iter()
            .map(|phase| self.templates(phase))
            .collect();
        // Of one range or none, the text that results have always had.
        let full = &self.series.full_zones;
        let text = match full.as_slice() {
            [] | [_] => format!("{phases:?} after {:?}", full.first()),
            _ => format!("{phases:?} after {full:?}"),
        };
        match self.nsid() {
            NamespaceId::FIRST => text,
            NamespaceId(nsid) => format!("{text} in namespace {nsid}"),
        }
    }

    /// Operations of a job that are in flight, of all its threads together.
    pub fn in_flight(&self, job: &str) -> InFlight {
        match self.experiment.job(job) {
            Some(job) => job.in_flight(),
            None => InFlight::Unknown,
        }
    }

    /// Shortens every job that has a run time to at most `runtime`, and its ramp to
    /// half of that. What ends by itself still does, and a run that ends with
    /// whole periods of a job keeps its length: part of one says nothing.
    pub fn shorten(&mut self, runtime: Nanos) {
        if self.has_periods() {
            return;
        }
        for job in &mut self.experiment.jobs {
            if let Some(own) = &mut job.stop.runtime {
                *own = runtime.min(*own);
                job.ramp = job.ramp.min(Nanos(runtime.0 / 2));
            }
        }
    }

    /// Whether the zones at its end are to be compared with a listing.
    fn has_listing(&self) -> bool {
        let mut listings = self.experiment.listings.iter();
        listings.any(|listing| listing.series == self.series.name)
    }

    fn jobs(&self) -> impl Iterator<Item = &JobTemplate> {
        let phases = self.series.phases.iter().flatten();
        phases.filter_map(|name| self.experiment.job(name))
    }

    fn has_periods(&self) -> bool {
        self.jobs().any(|job| job.stop.periods.is_some())
    }

    /// The longest run time that [`Self::shorten`] can change; `None` if there is none.
    pub fn runtime(&self) -> Option<Nanos> {
        if self.has_periods() {
            return None;
        }
        self.jobs().filter_map(|job| job.stop.runtime).max()
    }

    /// Experiment, series and axis value, in words.
    #[must_use]
    pub fn title(&self) -> String {
        let Experiment {
            id, title, axis, ..
        } = &self.experiment;
        let (series, x) = (&self.series.name, &self.x.text);
        format!("{id} ({title}), series \"{series}\", {} {x}", axis.name)
    }

    /// Name of the series.
    #[must_use]
    pub fn series(&self) -> &str {
        &self.series.name
    }

    /// Checks that the point can be run, without running it.
    ///
    /// # Errors
    /// As [`run_point`].
    pub fn check(&self, profiles: &dyn Profiles) -> Result<(), RunError> {
        let profile = self.drive(profiles)?;
        if let Some(plan) = &self.experiment.faults {
            plan.check(&profile.config)
                .map_err(|what| self.unfit(what))?;
        }
        if let Some(scheduler) = &self.host().scheduler {
            let built = scheduler.spec.build(&Drive::info_of(&profile.config));
            built.map_err(|error| self.unfit(error.to_string()))?;
        }
        if profile.config.data == DataStore::Memory && !self.series.full_zones.is_empty() {
            return Err(self.unfit(
                "full_zones: the drive keeps data (data.store = \"memory\"), so that no zone is \
                 full of nothing: let a job of an earlier phase write them (phases = [[\"fill\"], \
                 [\"read\"]]), or keep none (--set drive.data.store=none)"
                    .to_owned(),
            ));
        }
        let failing = idle::failing(&self.experiment, &self.series, self.is_in_one_namespace());
        if let Some(what) = failing {
            return Err(self.unfit(what));
        }
        if self.via() == Via::Pcie {
            self.fits_pcie()?;
        }
        self.fits(&self.shape(&profile.config)?)
    }

    /// What on a new drive a job fails with at once, as far as the file says it, and which job
    /// would never end.
    ///
    /// # Errors
    /// There is such a job.
    pub fn check_new(&self, profiles: &dyn Profiles) -> Result<(), RunError> {
        let unopened = idle::closing_nothing(&self.experiment, &self.series);
        let config = self.drive(profiles)?.config;
        let wrong = unopened.or_else(|| self.timeless(&config));
        wrong.map_or(Ok(()), |what| Err(self.unfit(what)))
    }

    /// What its jobs have to know of the drive, or of what is in front of it.
    fn shape(&self, config: &DriveConfig) -> Result<Shape, RunError> {
        let shape = Shape::of_drive(config);
        let Some(ftl) = self.ftl() else {
            return Ok(shape);
        };
        self.fits_ftl()?;
        let info = seen_through(&shape.info, &ftl, self.nsid());
        Ok(shape.seen_as(info.map_err(|what| self.unfit(what))?))
    }

    /// Whether the rest of the point goes with the flash translation layer.
    fn fits_ftl(&self) -> Result<(), RunError> {
        let refuse = |what: &str| Err(self.unfit(format!("via = \"ftl\": {what}")));
        if self.host().scheduler.is_some() {
            return refuse(
                "the layer is above a driver in user space, which goes past the scheduler of the \
                 kernel: leave out `scheduler` (--set host.scheduler= or \
                 --set series.0.scheduler=) or say via = \"direct\"",
            );
        }
        if !self.series.full_zones.is_empty() {
            return refuse(
                "the layer formats the drive, so that no zone is full before its jobs: leave out \
                 `full_zones`, and let a job write first (phases = [[\"fill\"], [\"read\"]])",
            );
        }
        if self.has_listing() {
            return refuse("jobs see no zones: take the series out of [[listing]]");
        }
        Ok(())
    }

    /// There is no such driver in a browser.
    #[cfg(target_family = "wasm")]
    fn fits_pcie(&self) -> Result<(), RunError> {
        Err(self.unfit(NO_PCIE.to_owned()))
    }

    /// Whether its jobs and its host fit the driver for PCIe.
    #[cfg(not(target_family = "wasm"))]
    fn fits_pcie(&self) -> Result<(), RunError> {
        if self.host().scheduler.is_some() {
            return Err(self.unfit(
                "via = \"pcie\": a scheduler is in the kernel, which a driver in user space goes \
                 past: leave out `scheduler` (--set host.scheduler= or --set series.0.scheduler=) \
                 or say via = \"direct\""
                    .to_owned(),
            ));
        }
        let (threads, last) = self.threads();
        let queues = over_pcie::QUEUES;
        if threads > queues.into() {
            return Err(self.unfit(format!(
                "via = \"pcie\": {threads} threads run at the same time, the last of job \
                 \"{last}\", and the controller has {queues} queues: one thread has one"
            )));
        }
        let (deepest, job) = self.deepest();
        let depth = over_pcie::QUEUE_DEPTH;
        if deepest > depth.into() {
            return Err(self.unfit(format!(
                "via = \"pcie\": queue_depth = {deepest} of job \"{job}\": queues hold {depth} \
                 commands"
            )));
        }
        Ok(())
    }

    /// Whether its jobs fit a device.
    fn fits(&self, shape: &Shape) -> Result<(), RunError> {
        for phase in &self.series.phases {
            let templates = self.templates(phase);
            specs(&templates, shape, 0).map_err(|what| self.unfit(what))?;
            stores(&templates, shape).map_err(|what| self.unfit(what))?;
        }
        Ok(())
    }

    fn templates<'a>(&'a self, phase: &'a [String]) -> Vec<&'a JobTemplate> {
        phase
            .iter()
            .filter_map(|name| self.experiment.job(name))
            .collect()
    }

    fn unfit(&self, what: String) -> RunError {
        RunError::Unfit(self.says(what))
    }

    fn unmeasured(&self, error: Unmeasured) -> RunError {
        match error {
            Unmeasured::Lost(what) => RunError::Lost(self.says(what)),
            Unmeasured::Failed(what) => self.unfit(what),
            Unmeasured::Timeless(job) => self.unfit(self.says_timeless(&job)),
        }
    }

    fn says(&self, what: String) -> Box<AtPoint> {
        Box::new(AtPoint {
            experiment: self.experiment.id.clone(),
            series: self.series.name.clone(),
            axis: self.experiment.axis.name.clone(),
            x: self.x.text.clone(),
            what,
        })
    }
}

/// The points of an experiment: every series, with its repetitions for crossed axes, at
/// every axis value.
///
/// # Errors
/// What is wrong with the file, once it is read with each value put in.
pub fn points(file: &str, text: &str, overrides: &[Override]) -> Result<Vec<Point>, Errors> {
    let plain = Experiment::parse(file, text, overrides, None)?;
    let mut points = Vec::new();
    for x in plain.axis.values.iter() {
        let at = |combination| Experiment::parse_in(file, text, overrides, Some(x), combination);
        let experiments: Vec<Experiment> = (0..plain.combinations())
            .map(at)
            .collect::<Result<_, _>>()?;
        for (n, series) in plain.series.iter().enumerate() {
            // With the settings of its combination.
            let experiment = experiments.get(series.combination);
            let own = experiment.and_then(|of| Some((of, of.series.get(n)?)));
            let here = |(_, own): &(_, &SeriesSpec)| own.x.is_empty() || own.x.contains(&x.text);
            points.extend(own.filter(here).map(|(experiment, series)| Point {
                experiment: experiment.clone(),
                series: series.clone(),
                x: x.clone(),
                namespace: None,
                trace: None,
                slowest: 0,
                watch: None,
            }));
        }
    }
    Ok(points)
}

/// Runs points in parallel on the current thread pool, each once: [`run_repeated`] runs
/// them as often as their experiments say. Results come in the order of `points`; `None`
/// stands for one not reached before an interruption.
///
/// # Errors
/// The first point, in their order, that could not be run.
pub fn run(
    points: &[Point],
    options: &RunOptions<'_>,
) -> Result<Vec<Option<PointResult>>, RunError> {
    let run = |index: usize| {
        if (options.interrupted)() || (options.abandoned)() {
            return Ok(None);
        }
        let result = run_point(&points[index], options);
        if (options.abandoned)() {
            return Ok(None);
        }
        let result = result?;
        (options.on_point)(index, &result);
        Ok(Some(result))
    };
    let results = order::longest_first(points.len(), |index| points[index].work(), run);
    results.into_iter().collect()
}

/// Runs one point.
///
/// # Errors
/// The drive's configuration is wrong, or the jobs do not fit the drive.
pub fn run_point(point: &Point, options: &RunOptions<'_>) -> Result<PointResult, RunError> {
    let unfit = |what| point.unfit(what);
    let profile = point.drive(options.profiles)?;
    let faults = point.faults(options.conditions);
    let drive = options.conditions.drive_with(&profile.config, faults);
    let drive = drive.map_err(unfit)?;
    let run = (options, &profile.config);
    match point.via() {
        Via::Direct => {
            let policies = &options.conditions.policies;
            let device = host_device(Emulated::new(drive), &point.host(), policies);
            run_reached(point, run, device.map_err(unfit)?)
        }
        Via::Pcie => {
            point.fits_pcie()?;
            run_over_pcie(point, run, drive)
        }
        Via::Ftl => {
            point.fits_ftl()?;
            let keeps_data = profile.config.data == DataStore::Memory;
            let ftl = point.ftl().unwrap_or_default();
            let costs = point.host().stack.costs;
            let seed = point.rng(options.seed).next_u64();
            let settings = FtlSettings {
                nsid: point.nsid(),
                own_victims: options.conditions.policies.victims.clone(),
                ..ftl.settings(keeps_data, seed)
            };
            let device = OverFtl::new(Emulated::new(drive), &ftl, settings, costs);
            run_reached(point, run, device.map_err(unfit)?)
        }
    }
}

/// Runs one point on a new drive behind the driver for PCIe.
#[cfg(not(target_family = "wasm"))]
fn run_over_pcie(
    point: &Point,
    run: (&RunOptions<'_>, &DriveConfig),
    drive: FaultyDrive,
) -> Result<PointResult, RunError> {
    let unfit = |what| point.unfit(what);
    let endpoint = endpoint_of(drive).map_err(unfit)?;
    let device = OverPcie::new(&endpoint, HostCosts::FREE);
    run_reached(point, run, device.map_err(unfit)?)
}

/// Refuses: there is no such driver in a browser.
#[cfg(target_family = "wasm")]
fn run_over_pcie(
    point: &Point,
    _: (&RunOptions<'_>, &DriveConfig),
    _: FaultyDrive,
) -> Result<PointResult, RunError> {
    Err(point.unfit(NO_PCIE.to_owned()))
}

/// Runs one point on a new drive, which its jobs reach in one way or another.
fn run_reached<R: Reached>(
    point: &Point,
    (options, config): (&RunOptions<'_>, &DriveConfig),
    mut reached: R,
) -> Result<PointResult, RunError> {
    let series = &point.series;
    let unfit = |what| point.unfit(what);
    let host = point.host();
    let owner = reached.owner().clone();
    let before = owner.with_drive(|drive| drive.totals());
    let limits = point.records();
    owner.with_drive(|drive| {
        drive.record(&limits);
        if let Some(plan) = &point.watch {
            drive.watch(plan);
        }
    });
    let began = reached.ready_at();
    for zones in point.full_zones_of(config)? {
        let full = Control::PreconditionFull { zones };
        owner
            .with_drive(|drive| drive.control(began, &full))
            .map_err(|error| unfit(error.to_string()))?;
    }
    let shape = point.shape(config)?;
    let has_faults = point.faults(options.conditions).is_some();
    let wear = || Some(owner.with_drive(|drive| Wear::of(&drive.flash().erase_counts())));
    let mut rng = point.rng(options.seed);
    let mut measured = PhaseMeasured::default();
    let mut queues = Vec::new();
    let (mut at, mut simulated) = (began, Nanos::ZERO);
    for phase in &series.phases {
        let templates = point.templates(phase);
        let specs = specs(&templates, &shape, options.seed).map_err(unfit)?;
        let stores = stores(&templates, &shape).map_err(unfit)?;
        if limits.activity > 0 {
            let names = specs.iter().map(|thread| thread.spec.name.as_str());
            let stores = stores.iter().map(|template| template.name.as_str());
            R::name_queues(&mut queues, queue_names(names.chain(stores)));
        }
        let totals = owner.with_drive(|drive| drive.totals());
        let ftl = reached.ftl();
        let of_drive = (&mut reached, config, options.abandoned);
        let phase = run_phase(of_drive, (specs, &stores), &host, at, &mut rng).map_err(unfit)?;
        at = phase.at;
        simulated += phase.at - phase.from;
        let of_phase = phase.measured(&templates, &wear, has_faults);
        let mut of_phase = of_phase.map_err(|error| point.unmeasured(error))?;
        owner.with_drive(|drive| of_phase.add_drive(drive, totals.erased_blocks));
        let programmed = owner.with_drive(|drive| drive.totals()).since(&totals);
        let ftl = reached
            .ftl()
            .zip(ftl)
            .map(|(now, before)| now.since(&before));
        of_phase.add_amplification(&programmed, ftl.as_ref());
        measured.extend(of_phase);
    }
    if let Some(error) = owner.with_drive(|drive| drive.policy_error().cloned()) {
        return Err(unfit(error.to_string()));
    }
    let record = owner.with_drive(Drive::take_record);
    let watched = owner.with_drive(Drive::take_watched);
    let of_drive = owner.with_drive(|drive| DriveMeasured::of(drive, &before, &record.zones));
    let mut result = point.result(measured, Some(of_drive), simulated);
    if point.has_listing() {
        result.zones = Some(zones_of(&mut reached, point.nsid(), at).map_err(unfit)?);
    }
    result.faults_struck = owner.with_faults(|drive| drive.struck_by_fault());
    result.add_record(point, limits, || PointTrace {
        title: point.title(),
        config: config.clone(),
        limits,
        record,
        queues,
        watched,
        end: owner.with_drive(|drive| drive.now()),
    });
    Ok(result)
}

/// The report of the zones of a namespace, at `at`.
fn zones_of<R: Reached>(
    reached: &mut R,
    nsid: NamespaceId,
    at: Nanos,
) -> Result<Vec<String>, String> {
    let mut job = ReportJob::new(&reached.info(), nsid)?;
    let queue = reached.open_queue(1, HostCosts::FREE, Rng::new(0, 0))?;
    let at = at.max(reached.ready_at());
    let clock = VirtualClock::starting_at(at);
    let mut reactor = Reactor::new(clock, reached.device(), StopSignal::default());
    reactor.add(&mut job, queue, CoreId(0), at);
    reactor.run();
    let zones = job.into_zones()?;
    let mut lines = vec![zone_count_line(zones.len() as u64)];
    lines.extend(zones.iter().map(zone_line));
    Ok(lines)
}

/// The thread behind each queue, in the order in which queues are opened, from
/// the names of their jobs.
pub fn queue_names<'a>(jobs: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut threads: BTreeMap<&str, u32> = BTreeMap::new();
    for job in jobs.clone() {
        *threads.entry(job).or_default() += 1;
    }
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    let name = |job: &'a str| {
        let thread = next.entry(job).or_default();
        *thread += 1;
        if threads[job] > 1 {
            format!("{job} {thread}")
        } else {
            job.to_owned()
        }
    };
    jobs.map(name).collect()
}

impl Point {
    /// The randomness of its run: it depends on the seed and the names only.
    fn rng(&self, seed: u64) -> Rng {
        let (id, series) = (&self.experiment.id, &self.series.name);
        Rng::new(seed, name_hash(&[id, series, &self.x.text]))
    }

    /// What was measured, with what the drive did if that is known.
    fn result(
        &self,
        measured: PhaseMeasured,
        drive: Option<DriveMeasured>,
        took: Nanos,
    ) -> PointResult {
        let mut jobs = measured.jobs;
        for job in &mut jobs {
            // Key-value workloads say themselves what of it was theirs.
            let of = self.experiment.job_of_result(&job.name);
            let is_kv = of.is_some_and(|job| matches!(job.work, WorkTemplate::Kv(_)));
            if let Some(drive) = drive.as_ref().filter(|_| !is_kv) {
                job.metrics.add_drive(drive);
            }
        }
        PointResult {
            series: self.series.name.clone(),
            x: self.x.clone(),
            jobs,
            drive,
            took,
            lateness: None,
            operations: measured.operations,
            failures: measured.failures,
            ended_early: measured.ended_early,
            faults_struck: Vec::new(),
            zones: None,
            slowest: Vec::new(),
            trace: None,
        }
    }
}

/// The device as jobs see it: behind the scheduler of the host, if it has one.
fn host_device(
    device: Emulated,
    host: &HostModel,
    policies: &Policies,
) -> Result<Emulated, String> {
    if let Some(make) = &policies.scheduler {
        let costs = host.scheduler.as_ref().map(|of| host.block_costs(of));
        let scheduler = make(device.info());
        return Ok(device.behind_own(scheduler, costs.unwrap_or_default()));
    }
    match &host.scheduler {
        Some(scheduler) => device
            .behind(&scheduler.spec, host.block_costs(scheduler))
            .map_err(|error| error.to_string()),
        None => Ok(device),
    }
}

/// FNV-1a over parts with a separator: a stream number from a name.
fn name_hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
