//! Job files on a real drive, in real time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use zonelab_device::NamespaceInfo;
use zonelab_driver::url::Address;
use zonelab_driver::{AnyOptions, Controller as _};
use zonelab_fronts::fio;
use zonelab_host::fio::{JobFile, Plan};
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_lab::device::{ReportedZone, Site};

use super::target::{self, Ran};
use super::{Args, warn};
use crate::devices;
use crate::exit::{Exit, Failure};
use crate::namespace::{self, Loss, OpenNamespace};
use crate::real_drive::{self, RealDrive};

/// A namespace of a real drive, with the plan of the jobs for it.
pub(super) struct Remote {
    options: AnyOptions,
    /// What it was called.
    device: String,
    /// Its model, as it identifies itself.
    model: String,
    /// `None`: it is opened again when the jobs run.
    opened: Option<OpenNamespace>,
    namespace: NamespaceInfo,
    may_overwrite: bool,
    /// Whether the zones at the end are wanted.
    reports_zones: bool,
}

impl Remote {
    /// Connects, and sees whether the jobs fit the drive and may destroy what they would.
    pub(super) fn prepare(
        args: &Args,
        file: &JobFile,
        device: &str,
        address: Address,
    ) -> Result<(Self, Plan), Failure> {
        let options = real_drive::options(&args.host, address)?;
        let mut opened = OpenNamespace::open(device, &options)?;
        let (site, nsid) = (&mut opened.drive, opened.nsid);
        let plan = file.plan_on(site.info(), nsid, args.seed);
        let plan = plan.map_err(Failure::input)?;
        warn(&plan.warnings);
        target::processors(&plan)?;
        let unfit = |what: String| Failure::input(anyhow::anyhow!("{device}: {what}"));
        // It is opened for good by the first thread.
        let depth = site.0.open_queue().map_err(devices::gone)?.depth();
        fits(&plan, site.0.granted_queues(), depth).map_err(unfit)?;
        let model = site.info().model.clone();
        let namespace = opened.info();
        if namespace.zoned.is_none() {
            target::no_zones(args, nsid)?;
        }
        let mut prepared = Self {
            options,
            device: device.to_owned(),
            model,
            opened: Some(opened),
            namespace,
            may_overwrite: args.overwrite,
            reports_zones: args.zone_report.is_some(),
        };
        if args.parse_only {
            prepared.release()?;
        } else if !args.overwrite {
            prepared.opened = Some(prepared.open(&plan)?.0);
        }
        Ok((prepared, plan))
    }

    /// What the results depend on.
    pub(super) fn configuration(&self) -> Value {
        let (namespace, zoned) = (&self.namespace, self.namespace.zoned);
        serde_json::json!({
            "device": self.device, "model": self.model, "zones": zoned.map(|of| of.zones),
            "zone_capacity_lbas": zoned.map(|of| of.zone_capacity_lbas),
            "lba_bytes": namespace.lba_bytes, "size_lbas": namespace.size_lbas,
        })
    }

    /// Closes the connection until the jobs run: nobody would keep it alive.
    pub(super) fn release(&mut self) -> Result<(), Failure> {
        match self.opened.take() {
            Some(opened) => {
                let controller = opened.drive.0.close().map_err(devices::gone)?;
                controller.disconnect().map_err(devices::gone)
            }
            None => Ok(()),
        }
    }

    /// The namespace, and what its zones, if there are any, hold now: what of it the jobs
    /// may destroy is said.
    fn open(&mut self, plan: &Plan) -> Result<(OpenNamespace, Vec<ReportedZone>), Failure> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => OpenNamespace::open(&self.device, &self.options)?,
        };
        let zones = match opened.zones() {
            Ok(zones) => zones,
            Err(failure) => return Err(Self::failed(opened, failure)),
        };
        let (nsid, namespace) = (opened.nsid, &self.namespace);
        let loss = match namespace.zoned {
            Some(_) => Loss::of_zones(nsid, namespace, &zones, fio::at_risk(plan, &zones)),
            None => {
                let bytes = fio::bytes_at_risk(plan, namespace.lba_bytes.into());
                bytes.map(|bytes| Loss::of_bytes(nsid, bytes))
            }
        };
        namespace::may_lose(&self.device, loss, self.may_overwrite)?;
        Ok((opened, zones))
    }

    /// Something failed before the first job.
    fn failed(opened: OpenNamespace, failure: Failure) -> Failure {
        match opened.drive.0.close() {
            // A connection that is lost says more than the command that was.
            Err(lost) => devices::gone(lost),
            Ok(_) => failure,
        }
    }

    /// Runs the jobs.
    pub(super) fn run(
        mut self,
        plan: &Plan,
        seed: u64,
        compares: bool,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ran, Failure> {
        let (mut opened, zones) = self.open(plan)?;
        let nsid = opened.nsid;
        let empty = match compares {
            false => None,
            true => match fio::empty_commands(&mut opened.drive, nsid) {
                Ok(empty) => Some(empty),
                Err(what) => {
                    let what = anyhow::anyhow!("{}: {what}", self.device);
                    return Err(Self::failed(opened, Failure::new(Exit::Device, what)));
                }
            },
        };
        let table = match self.namespace.zoned {
            Some(zoned) => fio::table_of(plan, zoned, &zones),
            None => ZoneTable::of_none(),
        };
        let run = fio::run_on(plan, &mut opened.drive, table, seed, interrupt);
        let is_there = !RealDrive::is_lost(opened.drive.device());
        let after = match self.reports_zones && is_there {
            false => None,
            true => match opened.zones() {
                Ok(zones) => Some(zones),
                Err(failure) => return Err(Self::failed(opened, failure)),
            },
        };
        let (lost, left) = match opened.drive.0.close() {
            Ok(controller) => (None, devices::leave(controller).err()),
            Err(lost) => (Some(lost.to_string()), None),
        };
        Ok(Ran {
            run,
            empty,
            lost,
            left,
            zones: after,
        })
    }
}

/// Refuses options about what only emulated drives have.
///
/// # Errors
/// One of them is given.
pub(super) fn refuse(args: &Args, device: &str) -> Result<(), Failure> {
    let no =
        |option: &str, is_given: bool, why: &str| devices::refuse(device, option, is_given, why);
    let restore = "it is as it is; a job with rw=write fills zones";
    devices::refuse_making(device, &args.set, &args.conditions, restore)?;
    let snapshot = "it keeps its state itself (`zonelab serve --store FILE`)";
    no("--snapshot", args.snapshot.is_some(), snapshot)?;
    let trace = "a host does not see its dies; logs of the jobs (write_lat_log) are written";
    no("--trace", args.trace.is_some(), trace)?;
    let full = "it reports its zones itself; a job with rw=write fills them";
    no("--full-zones", args.full_zones.is_some(), full)?;
    let host = "in real time the host takes the time that it takes";
    for (option, is_given) in args.host_options() {
        no(option, is_given, host)?;
    }
    Ok(())
}

/// Whether the drive has the queues for all threads.
fn fits(plan: &Plan, granted: u16, depth: u16) -> Result<(), String> {
    for stage in 0..plan.stages {
        let jobs = || plan.jobs.iter().filter(|job| job.stage == stage);
        let threads = jobs().count();
        if threads > usize::from(granted) {
            let name = jobs().next_back().map_or("", |job| &job.name);
            return Err(format!(
                "numjobs: {threads} threads run at the same time, the last of job {name}, and \
                 the drive grants {granted} queues: one thread has one"
            ));
        }
    }
    let deepest = plan.jobs.iter().max_by_key(|job| job.spec.queue_depth);
    match deepest {
        Some(job) if job.spec.queue_depth > u32::from(depth) => Err(format!(
            "iodepth={} of job {}: queues of the drive hold {depth} commands",
            job.spec.queue_depth, job.name
        )),
        _ => Ok(()),
    }
}
