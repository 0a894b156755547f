//! Job files on the layer of `zonelab ftl` over a real drive, in real time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;

use serde_json::Value;
use zonelab_device::{DeviceInfo, NamespaceId, Nanos};
use zonelab_driver::url::Address;
use zonelab_driver::{AnyOptions, Controller as _};
use zonelab_fronts::fio;
use zonelab_ftl::FtlDevice;
use zonelab_ftl::device::info_of;
use zonelab_host::fio::{JobFile, Plan};
use zonelab_host::workload::zone_table::ZoneTable;
use zonelab_host::{RealClock, Rng};
use zonelab_lab::device::{NoPart, QueueOf, Site};

use super::target::{self, Ran};
use super::{Args, warn};
use crate::devices;
use crate::exit::{Exit, Failure};
use crate::ftl::{ground, uuid_text};
use crate::namespace::{self, Loss, OpenNamespace};
use crate::real_drive::{self, Drive};

/// A formatted drive, with the plan of the jobs for the layer on it.
pub(super) struct Layered {
    options: AnyOptions,
    /// What the drive was called.
    device: String,
    /// The namespace with the zones; `None`: it is opened again when the jobs run.
    opened: Option<OpenNamespace>,
    may_overwrite: bool,
    /// What programs see.
    info: DeviceInfo,
    uuid: u128,
}

impl Layered {
    /// Connects, and sees whether the jobs fit the layer and may destroy what they would.
    pub(super) fn prepare(
        args: &Args,
        file: &JobFile,
        device: &str,
        address: Address,
    ) -> Result<(Self, Plan), Failure> {
        let options = real_drive::options(&args.host, address)?;
        let mut opened = OpenNamespace::open(device, &options)?;
        let look = ground::look(&mut opened, device)?;
        let info = info_of(opened.drive.info(), &look.shape);
        let plan = file.plan_on(&info, NamespaceId::FIRST, args.seed);
        let plan = plan.map_err(Failure::input)?;
        warn(&plan.warnings);
        target::processors(&plan)?;
        target::no_zones(args, NamespaceId::FIRST)?;
        one_at_a_time(&plan)?;
        let mut prepared = Self {
            options,
            device: device.to_owned(),
            opened: Some(opened),
            may_overwrite: args.overwrite,
            info,
            uuid: look.facts.uuid,
        };
        if args.parse_only {
            prepared.release()?;
        } else if !args.overwrite {
            prepared.may_destroy(&plan)?;
        }
        Ok((prepared, plan))
    }

    /// Says what of the layer's blocks the jobs may destroy.
    fn may_destroy(&self, plan: &Plan) -> Result<(), Failure> {
        let lba_bytes = self.info.namespaces.first().map_or(1, |of| of.lba_bytes);
        let bytes = fio::bytes_at_risk(plan, lba_bytes.into());
        let loss = bytes.map(|bytes| Loss::of_bytes(NamespaceId::FIRST, bytes));
        let layer = format!("{}, through the layer", self.device);
        namespace::may_lose(&layer, loss, self.may_overwrite)
    }

    /// What the results depend on.
    pub(super) fn configuration(&self) -> Value {
        let namespace = self.info.namespaces.first();
        serde_json::json!({
            "device": self.device, "model": self.info.model, "ftl": uuid_text(self.uuid),
            "lba_bytes": namespace.map(|of| of.lba_bytes),
            "size_lbas": namespace.map(|of| of.size_lbas),
        })
    }

    /// Closes the connection until the jobs run: nobody would keep it alive.
    pub(super) fn release(&mut self) -> Result<(), Failure> {
        let Some(opened) = self.opened.take() else {
            return Ok(());
        };
        let controller = opened.drive.0.close().map_err(devices::gone)?;
        controller.disconnect().map_err(devices::gone)
    }

    /// Mounts, and runs the jobs.
    pub(super) fn run(
        mut self,
        plan: &Plan,
        seed: u64,
        compares: bool,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ran, Failure> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => OpenNamespace::open(&self.device, &self.options)?,
        };
        self.may_destroy(plan)?;
        let mut site = OnLayer(ground::mount(opened, &self.device)?);
        let empty = match compares {
            false => None,
            true => {
                let empty = fio::empty_commands(&mut site, NamespaceId::FIRST);
                let device = &self.device;
                let failed = |what| Failure::new(Exit::Device, anyhow::anyhow!("{device}: {what}"));
                Some(empty.map_err(failed)?)
            }
        };
        let run = fio::run_on(plan, &mut site, ZoneTable::of_none(), seed, interrupt);
        let mut failed = site.0.failure().map(|error| error.to_string());
        if failed.is_none() && !site.0.inner().is_lost() {
            // As a file system does when it is unmounted: what was written stays.
            let flushed = ground::flush(&mut site.0, &self.device);
            failed = flushed.err().map(|failure| failure.error.to_string());
        }
        let (lost, left) = match site.0.into_inner().close() {
            Ok(controller) => (failed, devices::leave(controller).err()),
            Err(lost) => (Some(lost.to_string()), None),
        };
        Ok(Ran {
            run,
            empty,
            lost,
            left,
            zones: None,
        })
    }
}

/// Refuses the layer on a drive that begins empty with each run.
///
/// # Errors
/// It is asked for.
pub(super) fn refuse(args: &Args, device: &str) -> Result<(), Failure> {
    match args.ftl {
        false => Ok(()),
        true => Err(Failure::usage(format!(
            "--ftl is for drives that `zonelab ftl format` has made ready, and {device} begins \
             empty: serve it (`zonelab serve`), format it, and name tcp://HOST:PORT/NQN?nsid=1"
        ))),
    }
}

/// Refuses jobs side by side: the layer is run by one thread.
fn one_at_a_time(plan: &Plan) -> Result<(), Failure> {
    for stage in 0..plan.stages {
        let jobs = || plan.jobs.iter().filter(|job| job.stage == stage);
        let threads = jobs().count();
        if threads > 1 {
            let name = jobs().next_back().map_or("", |job| &job.name);
            return Err(Failure::input(anyhow::anyhow!(
                "numjobs: {threads} threads run at the same time, the last of job {name}, and \
                 with --ftl one does: let jobs follow each other (stonewall)"
            )));
        }
    }
    Ok(())
}

/// The layer as a device that jobs run on, all in this thread.
struct OnLayer(FtlDevice<Drive>);

impl Site for OnLayer {
    type Device = FtlDevice<Drive>;
    type Clock = RealClock;

    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn clock(&self, _at: Nanos) -> RealClock {
        self.real_clock()
    }

    fn open_queue(&mut self, depth: u32, _rng: Rng) -> Result<QueueOf<Self>, String> {
        let below = self.0.inner_mut().open_queue();
        let below = below.map_err(|error| error.to_string())?;
        let queue = self.0.queue(below, depth);
        queue.map_err(|error| error.to_string())
    }

    fn device(&mut self) -> &mut FtlDevice<Drive> {
        &mut self.0
    }

    fn is_lost(device: &FtlDevice<Drive>) -> bool {
        device.inner().is_lost() || device.failure().is_some()
    }

    type Part = NoPart<FtlDevice<Drive>>;
    const HAS_THREADS: bool = false;

    fn part(&mut self, _depth: u32) -> Result<Self::Part, String> {
        Err("the layer is run by one thread".to_owned())
    }

    fn take_back(&mut self, _part: Self::Part) -> Result<(), String> {
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.0.inner().waker()
    }

    fn real_clock(&self) -> RealClock {
        RealClock::sharing(self.0.inner().clock())
    }
}
