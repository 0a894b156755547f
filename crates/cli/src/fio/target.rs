//! Where a job file runs: an emulated drive in this process, or one over NVMe/TCP.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use zonelab_config::units::parse_duration;
use zonelab_device::{NamespaceId, Nanos};
use zonelab_driver::DriverError;
use zonelab_fronts::fio::{self, FioRun, RunSettings};
use zonelab_host::fio::{JobFile, Plan, PlannedJob};
use zonelab_host::stats::Latency;
use zonelab_host::workload::directed::Direction;
use zonelab_lab::device::{self, ReportedZone};
use zonelab_lab::experiment::Via;
use zonelab_sim::HostCosts;
use zonelab_sim::stack::{Stack, stacks};
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

use super::layered::{self, Layered};
use super::remote::{self, Remote};
use super::{Args, NO_TIME, warn};
use crate::conditions;
use crate::devices::{self, Named};
use crate::exit::Failure;
use crate::{namespace, profiles};

/// A device that the jobs fit, ready to run them.
pub(super) enum Target {
    Emulated(Box<EmulatedTarget>),
    Remote(Box<Remote>),
    Layered(Box<Layered>),
}

/// How jobs reach an emulated drive.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    /// In virtual time, with modelled costs of the host.
    Virtual,
    /// In real time.
    Real,
    /// In virtual time through the driver for PCIe.
    Pcie,
}

impl Way {
    /// Both together are refused where the name of the device is read.
    const fn of(is_real: bool, via: Via) -> Self {
        match (is_real, via) {
            (true, _) => Self::Real,
            (false, Via::Pcie) => Self::Pcie,
            // The layer was refused before.
            (false, Via::Direct | Via::Ftl) => Self::Virtual,
        }
    }

    /// Whether what the host costs is modelled.
    const fn has_modelled_host(self) -> bool {
        !matches!(self, Self::Real)
    }
}

/// An emulated drive.
pub(super) struct EmulatedTarget {
    device: String,
    profile: Profile,
    nsid: NamespaceId,
    way: Way,
    settings: RunSettings,
    /// What the results say of faults and of the state to start from.
    conditions: Option<Value>,
    /// Whether the zones at the end are wanted.
    reports_zones: bool,
}

/// What a run came to.
pub(super) struct Ran {
    pub(super) run: FioRun,
    /// What an empty command takes, if that was measured.
    pub(super) empty: Option<Latency>,
    /// Why the device is gone.
    pub(super) lost: Option<String>,
    /// What failed when the device was left, after the jobs.
    pub(super) left: Option<DriverError>,
    /// The zones at the end, if they are wanted and the device is there.
    pub(super) zones: Option<Vec<ReportedZone>>,
}

impl Target {
    /// The device of that name, and what the jobs are there. Options that only
    /// emulated drives have may be for another device (`beside_emulated`).
    ///
    /// # Errors
    /// There is no such device, or the jobs do not fit it.
    pub(super) fn prepare(
        args: &Args,
        file: &JobFile,
        device: &str,
        beside_emulated: bool,
    ) -> Result<(Self, Plan), Failure> {
        match Named::parse(device)? {
            Named::Real(address) => {
                if !beside_emulated {
                    remote::refuse(args, device)?;
                }
                if args.ftl {
                    let (layered, plan) = Layered::prepare(args, file, device, address)?;
                    only_reads(args, &plan)?;
                    return Ok((Self::Layered(Box::new(layered)), plan));
                }
                let (remote, plan) = Remote::prepare(args, file, device, address)?;
                only_reads(args, &plan)?;
                Ok((Self::Remote(Box::new(remote)), plan))
            }
            Named::Emulated {
                profile,
                nsid,
                is_real,
                via,
            } => {
                devices::refuse_via(device, via, &[Via::Pcie])?;
                layered::refuse(args, device)?;
                let of = (profile, nsid, Way::of(is_real, via));
                let (target, plan) = EmulatedTarget::prepare(args, file, device, of)?;
                only_reads(args, &plan)?;
                Ok((Self::Emulated(Box::new(target)), plan))
            }
        }
    }

    /// What the results depend on, besides the job file.
    pub(super) fn configuration(&self, args: &Args) -> Value {
        match self {
            Self::Emulated(target) => target.configuration(args),
            Self::Remote(remote) => remote.configuration(),
            Self::Layered(layered) => layered.configuration(),
        }
    }

    /// Gives up what would not outlive a run on another device.
    ///
    /// # Errors
    /// The device is gone.
    pub(super) fn release(&mut self) -> Result<(), Failure> {
        match self {
            Self::Emulated(_) => Ok(()),
            Self::Remote(remote) => remote.release(),
            Self::Layered(layered) => layered.release(),
        }
    }

    /// Runs the jobs; if that is wanted, after measuring empty commands.
    ///
    /// # Errors
    /// They could not begin.
    pub(super) fn run(
        self,
        plan: &Plan,
        seed: u64,
        compares: bool,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ran, Failure> {
        match self {
            Self::Emulated(target) => target.run(plan, compares, interrupt),
            Self::Remote(remote) => remote.run(plan, seed, compares, interrupt),
            Self::Layered(layered) => layered.run(plan, seed, compares, interrupt),
        }
    }
}

impl EmulatedTarget {
    fn prepare(
        args: &Args,
        file: &JobFile,
        device: &str,
        (name, nsid, way): (&str, Option<NamespaceId>, Way),
    ) -> Result<(Self, Plan), Failure> {
        let profile = profiles::load(name, &args.set)?;
        let info = Drive::info_of(&profile.config);
        let nsid = namespace::of_emulated(device, &info, nsid)?;
        let plan = file
            .plan_on(&info, nsid, args.seed)
            .map_err(Failure::input)?;
        warn(&plan.warnings);
        match way {
            Way::Real => processors(&plan)?,
            Way::Virtual | Way::Pcie => warn(&plan.in_virtual_time),
        }
        let conditions = match args.parse_only {
            true => conditions::Loaded::default(),
            false => args.conditions.load()?,
        };
        let settings = settings(args, (&profile, nsid), &conditions)?;
        let mut host = args.host_options().into_iter();
        let given = host.find(|(_, is_given)| *is_given);
        if let (false, Some((option, _))) = (way.has_modelled_host(), given) {
            return Err(Failure::usage(format!(
                "{option} is for virtual time: on {device} the host takes the time that it takes"
            )));
        }
        let target = Self {
            device: device.to_owned(),
            profile,
            nsid,
            way,
            settings,
            conditions: conditions.configuration,
            reports_zones: args.zone_report.is_some(),
        };
        Ok((target, plan))
    }

    fn configuration(&self, args: &Args) -> Value {
        let host = [
            &args.host_submit,
            &args.host_complete,
            &args.host_turn,
            &args.host_jitter,
        ];
        let mut of_device = serde_json::json!({
            "drive": zonelab_ssd::profile::to_toml(&self.profile.config),
            "namespace": self.nsid.0,
            "full_zones": args.full_zones,
            "conditions": self.conditions,
            "host": host.map(|time| time.as_deref().unwrap_or(NO_TIME)),
        });
        if args.host_stack.is_some() {
            let costs = self.settings.costs;
            let times = [
                costs.submit_ns,
                costs.path_ns,
                costs.complete_ns,
                costs.turn_ns,
            ];
            of_device["host_stack_ns"] = serde_json::json!(times.map(|time| time.0));
        }
        match self.way {
            Way::Virtual => {}
            Way::Real => of_device["clock"] = serde_json::json!("real"),
            Way::Pcie => of_device["via"] = serde_json::json!("pcie"),
        }
        of_device
    }

    fn run(self, plan: &Plan, compares: bool, interrupt: &Arc<AtomicBool>) -> Result<Ran, Failure> {
        let device = &self.device;
        let unfit = |what: String| Failure::input(anyhow::anyhow!("{device}: {what}"));
        let config = &self.profile.config;
        let settings = RunSettings {
            interrupt: Arc::clone(interrupt),
            ..self.settings
        };
        let empty = compares.then(|| {
            let is_real = self.way == Way::Real;
            fio::empty_commands_of_emulated(config, plan.namespace, settings.costs, is_real)
        });
        let empty = empty.transpose().map_err(unfit)?;
        let run = match self.way {
            Way::Virtual => fio::run(plan, config, &settings),
            Way::Real => fio::run_in_real_time(plan, config, &settings),
            Way::Pcie => fio::run_over_pcie(plan, config, &settings),
        };
        let run = run.map_err(unfit)?;
        let zones = self.reports_zones.then(|| run.zones.clone());
        Ok(Ran {
            run,
            empty,
            lost: None,
            left: None,
            zones,
        })
    }
}

fn settings(
    args: &Args,
    (profile, nsid): (&Profile, NamespaceId),
    conditions: &conditions::Loaded,
) -> Result<RunSettings, Failure> {
    let costs = costs(args)?;
    let drive = Drive::new(&profile.config);
    let namespace = drive.info().namespace(nsid);
    if namespace.is_some_and(|namespace| namespace.zoned.is_none()) {
        no_zones(args, nsid)?;
    }
    let zones = profile.config.zones_of(nsid).unwrap_or_default().len() as u32;
    let full = args.full_zones.as_deref();
    Ok(RunSettings {
        seed: args.seed,
        costs,
        full_zones: full.map(|text| zone_range(text, zones)).transpose()?,
        conditions: conditions.conditions.clone(),
        trace: args.trace.is_some().then(|| args.window.0.limits()),
        saves: args.snapshot.is_some(),
        interrupt: Arc::new(AtomicBool::new(false)),
    })
}

/// Whether the machine has the processors that jobs are to run on.
///
/// # Errors
/// It has not.
pub(super) fn processors(plan: &Plan) -> Result<(), Failure> {
    let wrong = |what: String| Failure::input(anyhow::anyhow!(what));
    let mut jobs = plan.jobs.iter();
    jobs.try_for_each(|job| device::processors(job).map(drop).map_err(wrong))
}

/// Refuses options about zones on a namespace that has none.
///
/// # Errors
/// One of them is given.
pub(super) fn no_zones(args: &Args, nsid: NamespaceId) -> Result<(), Failure> {
    let given = [
        ("--full-zones", args.full_zones.is_some()),
        ("--zone-report", args.zone_report.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option}: namespace {} has no zones: leave it out",
            nsid.0
        ))),
    }
}

/// What the host costs: a stack by name, with what is given otherwise.
fn costs(args: &Args) -> Result<HostCosts, Failure> {
    let stack = match &args.host_stack {
        None => HostCosts::FREE,
        Some(name) => match Stack::named(name) {
            Some(stack) => stack.costs,
            None => {
                let names: Vec<&str> = stacks().iter().map(|stack| &*stack.name).collect();
                return Err(Failure::usage(format!(
                    "--host-stack {name}: there is no such stack; {}",
                    names.join(", ")
                )));
            }
        },
    };
    let time = |name: &str, text: &Option<String>, of_stack: Nanos| match text {
        None => Ok(of_stack),
        Some(text) => parse_duration(text)
            .map(Nanos)
            .map_err(|problem| Failure::usage(format!("{name}: {problem}"))),
    };
    Ok(HostCosts {
        submit_ns: time("--host-submit", &args.host_submit, stack.submit_ns)?,
        complete_ns: time("--host-complete", &args.host_complete, stack.complete_ns)?,
        turn_ns: time("--host-turn", &args.host_turn, stack.turn_ns)?,
        jitter_ns: time("--host-jitter", &args.host_jitter, stack.jitter_ns)?,
        ..stack
    })
}

/// Refuses jobs that change what the drive holds, if that is wanted.
fn only_reads(args: &Args, plan: &Plan) -> Result<(), Failure> {
    let changes = |job: &&PlannedJob| {
        let of = |direction: Direction| job.spec.work.flows[direction as usize].is_some();
        of(Direction::Write) || of(Direction::Trim) || job.resets_device
    };
    match plan.jobs.iter().find(changes).filter(|_| args.readonly) {
        None => Ok(()),
        Some(job) => Err(Failure::usage(format!(
            "--readonly: job {} writes or resets zones; rw=read and rw=randread do not",
            job.name
        ))),
    }
}

/// `0..=23`, `0..24` or `all`.
fn zone_range(text: &str, zones: u32) -> Result<Range<u32>, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--full-zones {text}: no range within the drive's zones 0..{zones}; \
             write for example 0..=9, or all"
        ))
    };
    if text == "all" {
        return Ok(0..zones);
    }
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let (end, more) = match end.strip_prefix('=') {
        Some(end) => (end, 1),
        None => (end, 0),
    };
    let start: u32 = start.trim().parse().map_err(|_| wrong())?;
    let end: u32 = end.trim().parse().map_err(|_| wrong())?;
    let end = end.checked_add(more).ok_or_else(wrong)?;
    if start >= end || end > zones {
        return Err(wrong());
    }
    Ok(start..end)
}
