//! Runs a plan on an emulated drive, under either clock.

use zonelab_device::{Monotonic, NamespaceId};
use zonelab_host::fio::Plan;
use zonelab_host::stats::Latency;
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_lab::device::Owner;
use zonelab_lab::device::Site;
use zonelab_lab::device::{InRealTime, InVirtualTime};
use zonelab_lab::device::{OverPcie, endpoint_of};
use zonelab_lab::device::{declare, zones_of};
use zonelab_lab::owed::Debt;
use zonelab_lab::trace::PointTrace;
use zonelab_sim::{Emulated, HostCosts, SharedDrive};
use zonelab_ssd::account::Totals;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::record::RecordLimits;
use zonelab_ssd::{Control, Drive, DriveModel, snapshot};

use super::agreement::empty_commands;
use super::run::{DriveWork, FioRun, RunSettings, Runner};

/// Runs a plan on a new drive, which keeps no data, in virtual time.
///
/// # Errors
/// The zones to be declared full do not exist, or resetting the device failed:
/// a text that says so.
pub fn run(plan: &Plan, config: &DriveConfig, settings: &RunSettings) -> Result<FioRun, String> {
    let costs = settings.costs;
    let drive = |drive| Ok(Emulated::new(drive));
    let site = |device: &Emulated| {
        let device = device.clone();
        Ok(InVirtualTime { device, costs })
    };
    on_emulated(plan, config, settings, drive, site)
}

/// The same in real time; the costs of the host are its own.
///
/// # Errors
/// As [`run`].
pub fn run_in_real_time(
    plan: &Plan,
    config: &DriveConfig,
    settings: &RunSettings,
) -> Result<FioRun, String> {
    let drive = |drive| Ok(SharedDrive::new(drive, Monotonic::new()));
    let site = |drive: &SharedDrive| Ok(InRealTime::new(drive.clone()));
    on_emulated(plan, config, settings, drive, site)
}

/// The same in virtual time through the driver for PCIe, on a controller in memory: the
/// driver's own code takes no time of the model, and the host has the costs that
/// `settings` say.
///
/// # Errors
/// As [`run`].
pub fn run_over_pcie(
    plan: &Plan,
    config: &DriveConfig,
    settings: &RunSettings,
) -> Result<FioRun, String> {
    let costs = settings.costs;
    let site = |endpoint: &_| OverPcie::new(endpoint, costs);
    on_emulated(plan, config, settings, endpoint_of, site)
}

/// What an empty command takes ([`empty_commands`]) on a new drive, in virtual or
/// in real time.
///
/// # Errors
/// As [`empty_commands`].
pub fn empty_commands_of_emulated(
    config: &DriveConfig,
    namespace: NamespaceId,
    costs: HostCosts,
    is_real: bool,
) -> Result<Latency, String> {
    let drive = Drive::new(config);
    if is_real {
        let drive = SharedDrive::new(drive, Monotonic::new());
        return empty_commands(&mut InRealTime::new(drive), namespace);
    }
    let device = Emulated::new(drive);
    empty_commands(&mut InVirtualTime { device, costs }, namespace)
}

fn on_emulated<O: Owner, S: Site>(
    plan: &Plan,
    config: &DriveConfig,
    settings: &RunSettings,
    owner: impl FnOnce(FaultyDrive) -> Result<O, String>,
    site: impl FnOnce(&O) -> Result<S, String>,
) -> Result<FioRun, String> {
    // Without verification jobs neither give data nor look at any.
    let verifies = plan.jobs.iter().any(|job| job.spec.verify.is_some());
    let config = DriveConfig {
        data: match verifies {
            true => DataStore::Memory,
            false => DataStore::None,
        },
        ..config.clone()
    };
    let device = owner(settings.conditions.drive(&config)?)?;
    if let Some(limits) = &settings.trace {
        device.with_drive(|drive| drive.record(limits));
    }
    let mut site = site(&device)?;
    let namespace = site.info().namespace(plan.namespace);
    let zoned = namespace.and_then(|namespace| namespace.zoned);
    let mine = config.zones_of(plan.namespace).unwrap_or_default();
    let mut zones = zoned.map_or_else(ZoneTable::of_none, |zoned| {
        ZoneTable::new(zoned, plan.max_open_zones)
    });
    if settings.conditions.restore.is_some() && zoned.is_some() {
        device.with_drive(|drive| declare(drive, mine.clone(), &mut zones));
    }
    if let Some(full) = &settings.full_zones {
        zoned.ok_or("the namespace has no zones that could be full")?;
        let control = Control::PreconditionFull {
            zones: full.start.saturating_add(mine.start)..full.end.saturating_add(mine.start),
        };
        device
            .with_drive(|drive| drive.control(drive.now(), &control))
            .map_err(|error| error.to_string())?;
        zones.declare_full(full.clone());
    }
    let before = device.with_drive(|drive| drive.totals());
    let of_data = (settings.seed, verifies);
    let mut runner = Runner::new(plan, &mut site, zones, of_data, &settings.interrupt);
    let run = runner.run();
    if let Some(failure) = run.failure {
        return Err(failure);
    }
    let lost_completions = device.with_faults(|drive| drive.lost_completions());
    let queues = std::mem::take(&mut runner.queues);
    let trace = settings
        .trace
        .map(|limits| trace_of(&device, limits, config, queues));
    let drive = device.with_drive(|drive| work_of(drive, &before));
    let snapshot = settings.saves.then(|| saved(&device)).transpose()?;
    Ok(FioRun {
        faults_struck: device.with_faults(|drive| drive.struck_by_fault()),
        lost_completions,
        trace,
        snapshot,
        drive: Some(Box::new(drive)),
        zones: match zoned {
            Some(_) => device.with_drive(|drive| zones_of(drive, mine)),
            None => Vec::new(),
        },
        ..run
    })
}

/// What a drive did since its totals were `before`.
fn work_of(drive: &Drive, before: &Totals) -> DriveWork {
    DriveWork {
        totals: drive.totals().since(before),
        debt: Debt::of(drive),
    }
}

/// What was recorded, with what it takes to understand it.
fn trace_of(
    device: &impl Owner,
    limits: RecordLimits,
    config: DriveConfig,
    queues: Vec<String>,
) -> Box<PointTrace> {
    Box::new(PointTrace {
        title: format!("job file on {}", config.name),
        config,
        limits,
        record: device.with_drive(Drive::take_record),
        queues,
        watched: Vec::new(),
        end: device.with_drive(|drive| drive.now()),
    })
}

/// The state of a drive once it has done what it does by itself.
fn saved(device: &impl Owner) -> Result<Vec<u8>, String> {
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
