//! `zonelab run --device`: an experiment on another drive, in real time, or on a real
//! drive.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use zonelab_device::{DeviceInfo, NamespaceId};
use zonelab_driver::AnyController;
use zonelab_driver::url::Address;
use zonelab_lab::device::{Site, report_zones};
use zonelab_lab::experiment::Via;
use zonelab_lab::run::{self, Attached, Point, PointResult, Prepared, RealError, RunOptions};

use crate::conditions::ConditionArgs;
use crate::devices::{self, HostArgs, Named};
use crate::exit::{Exit, Failure};
use crate::files::ProfileFiles;
use crate::namespace::{self, Loss, OpenNamespace};
use crate::real_drive::{self, Drive, RealDrive};
use crate::results::Configuration;
use crate::session::Loaded;

/// Where an experiment runs.
#[derive(clap::Args)]
pub(crate) struct DeviceArgs {
    /// Run on this device instead of the file's profile: PROFILE (virtual time),
    /// PROFILE?via=pcie (the same through the driver for PCIe), PROFILE?via=ftl (the same
    /// through the flash translation layer), PROFILE?clock=real, tcp://HOST:PORT/NQN or
    /// linux:///dev/ng0n1 (all in real time). With ?nsid=2, jobs that name no namespace work
    /// in that one
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The zones of the real drive that the experiment uses may be reset and
    /// written: what they hold is lost
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// What the options of a run are, for what a device may refuse.
pub(crate) struct Options<'a> {
    pub(crate) set: &'a [String],
    pub(crate) conditions: &'a ConditionArgs,
    pub(crate) is_traced: bool,
}

/// The device of a run.
pub(crate) enum On {
    /// Emulated drives, in virtual time.
    Virtual,
    /// Emulated drives, in real time.
    Real,
    /// A real drive, in real time.
    Drive(Box<Remote>),
}

/// A real drive that points run on.
pub(crate) struct Remote {
    device: String,
    site: RealDrive,
    /// How long it took to prepare zones so far.
    prepared: Prepared,
}

impl DeviceArgs {
    /// The device that was named.
    pub(crate) fn name(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// The options, to give the command again.
    pub(crate) fn words(&self) -> Vec<String> {
        let device = self.device.iter();
        let mut words: Vec<String> = device
            .flat_map(|device| ["--device".to_owned(), device.clone()])
            .collect();
        if self.overwrite {
            words.push("--overwrite".to_owned());
        }
        words.extend(self.host.words());
        words
    }

    /// Whether the drive is emulated, in virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        let named = self.device.as_deref().map(Named::parse);
        named.is_none_or(|named| matches!(named, Ok(Named::Emulated { is_real: false, .. })))
    }

    /// The device, and the points made ready for it.
    ///
    /// # Errors
    /// There is no such device, it does not have what an option or the experiment asks
    /// for, or it holds data that would be lost.
    pub(crate) fn open(
        &self,
        loaded: &mut Loaded,
        profiles: &ProfileFiles<'_>,
        options: &Options<'_>,
    ) -> Result<On, Failure> {
        let Some(device) = &self.device else {
            self.host.refuse_on_emulated("the drive of the file")?;
            return Ok(On::Virtual);
        };
        match Named::parse(device)? {
            Named::Emulated {
                profile,
                nsid,
                is_real,
                via,
            } => {
                self.host.refuse_on_emulated(device)?;
                let profile = from_here(profile)?;
                for point in &mut loaded.points {
                    point.set_profile(&profile);
                    if via != Via::Direct {
                        point.set_via(via);
                    }
                }
                if is_real {
                    in_real_time(device, &mut loaded.points, options)?;
                }
                for point in &mut loaded.points {
                    let drive = point.drive(profiles).map_err(Failure::input)?;
                    let info = zonelab_ssd::Drive::info_of(&drive.config);
                    // Jobs may all say themselves where they work.
                    if nsid.is_some() || point.unnamed_job().is_some() {
                        let nsid = namespace::of_emulated(device, &info, nsid)?;
                        point.set_namespace(nsid).map_err(Failure::input)?;
                    }
                }
                Ok(match is_real {
                    true => On::Real,
                    false => On::Virtual,
                })
            }
            Named::Real(address) => {
                only_emulated(device, &loaded.points, options)?;
                in_real_time(device, &mut loaded.points, options)?;
                let mut remote = Remote::open_for(device, &self.host, address, loaded)?;
                remote.fits(&loaded.points)?;
                remote.may_destroy(&loaded.points, self.overwrite)?;
                Ok(On::Drive(Box::new(remote)))
            }
        }
    }
}

/// The profile as it is found from the directory of the command: one that an experiment
/// names is relative to its file.
pub(crate) fn from_here(profile: &str) -> Result<String, Failure> {
    let is_file = profile.contains('/') || Path::new(profile).extension().is_some();
    if !is_file {
        return Ok(profile.to_owned());
    }
    let path = std::path::absolute(profile).map_err(Failure::environment)?;
    Ok(path.display().to_string())
}

/// Refuses what only emulated drives have, by options or by the file.
fn only_emulated(device: &str, points: &[Point], options: &Options<'_>) -> Result<(), Failure> {
    let set = options.set.iter();
    let set: Vec<String> = set
        .filter(|set| set.starts_with("drive."))
        .cloned()
        .collect();
    let restore =
        "its zones are reset for each point; full_zones = \"0..=9\" of a series fills some";
    devices::refuse_making(device, &set, options.conditions, restore)?;
    for point in points {
        if point.experiment().faults.is_some() {
            return Err(Failure::usage(format!(
                "{}: [faults] are those of an emulated drive, and {device} is none: serve one with \
                 `zonelab serve --faults FILE` and leave them out (--set faults=)",
                point.title()
            )));
        }
        if let Some(setting) = point.drive_settings().next() {
            return Err(Failure::usage(format!(
                "{}: drive = [\"{setting}\"] is for emulated drives, and {device} is none: serve \
                 one with `zonelab serve --set {setting}` and leave the setting out \
                 (--set drive= or --set series.0.drive=)",
                point.title()
            )));
        }
    }
    Ok(())
}

/// Refuses what belongs to virtual time, and says once what has no meaning in real time.
fn in_real_time(device: &str, points: &mut [Point], options: &Options<'_>) -> Result<(), Failure> {
    if options.is_traced {
        return Err(Failure::usage(format!(
            "--trace is for virtual time, and {device} is not in it: name a profile \
             without ?clock=real"
        )));
    }
    let mut costs: Vec<String> = Vec::new();
    for point in points.iter_mut() {
        if point.host().scheduler.is_some() {
            return Err(Failure::usage(format!(
                "{}: its scheduler is one of the modelled host, and on {device} the host is \
                 real: leave out `scheduler` of [host] and of the series (--set \
                 host.scheduler= or --set series.0.scheduler=)",
                point.title()
            )));
        }
        for cost in point.modelled_costs() {
            if !costs.contains(&cost) {
                costs.push(cost);
            }
        }
        point.set_via(Via::Direct);
    }
    if !costs.is_empty() {
        tell!(
            "zonelab: warning: {device}: in real time the host takes the time that it takes: {} \
             do not count",
            costs.join(", ")
        );
    }
    Ok(())
}

impl Remote {
    /// Opens a namespace of the drive of that name.
    ///
    /// # Errors
    /// Nobody is there, or not what it should be; or there is no such namespace, or several
    /// and none is named.
    pub(crate) fn open(
        device: &str,
        host: &HostArgs,
        address: Address,
    ) -> Result<(Self, NamespaceId), Failure> {
        let opened = OpenNamespace::open(device, &real_drive::options(host, address)?)?;
        let remote = Self {
            device: device.to_owned(),
            site: opened.drive,
            prepared: Prepared::default(),
        };
        Ok((remote, opened.nsid))
    }

    /// Opens the drive for an experiment: the namespace that the address names, or the only
    /// one; all of them if each job says itself where it works.
    ///
    /// # Errors
    /// As [`Self::open`]; or a job names another namespace than the address.
    fn open_for(
        device: &str,
        host: &HostArgs,
        address: Address,
        loaded: &mut Loaded,
    ) -> Result<Self, Failure> {
        let options = real_drive::options(host, address)?;
        let controller = AnyController::connect(options).map_err(devices::gone)?;
        let is_named = |point: &Point| point.unnamed_job().is_none();
        let site = if controller.named().is_none() && loaded.points.iter().all(is_named) {
            RealDrive(Drive::new(controller).map_err(devices::gone)?)
        } else {
            let opened = OpenNamespace::of(device, controller)?;
            for point in &mut loaded.points {
                let placed = point.set_namespace(opened.nsid);
                placed.map_err(Failure::input)?;
            }
            opened.drive
        };
        Ok(Self {
            device: device.to_owned(),
            site,
            prepared: Prepared::default(),
        })
    }

    /// The drive.
    pub(crate) fn info(&self) -> &DeviceInfo {
        self.site.info()
    }

    /// Queues that it grants, and how deep they are.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn granted(&mut self) -> Result<(u32, u32), Failure> {
        let queues = self.site.0.granted_queues();
        // It is opened for good by the first thread.
        let depth = self.site.0.open_queue().map_err(devices::gone)?.depth();
        Ok((queues.into(), depth.into()))
    }

    /// Whether the drive has zones and queues for all jobs.
    ///
    /// # Errors
    /// It has not.
    pub(crate) fn fits(&mut self, points: &[Point]) -> Result<(), Failure> {
        let info = self.site.info().clone();
        let (granted, depth) = self.granted()?;
        let device = &self.device;
        let unfit = |what: String| Failure::input(anyhow::anyhow!("{device}: {what}"));
        for point in points {
            point
                .check_on(&info)
                .map_err(|error| unfit(error.to_string()))?;
            let ((threads, last), (deepest, job)) = (point.threads(), point.deepest());
            let title = point.title();
            if threads > granted {
                return Err(unfit(format!(
                    "{title}: {threads} threads run at the same time, the last of job \"{last}\", \
                     and the drive grants {granted} queues: one thread has one"
                )));
            }
            if deepest > depth {
                return Err(unfit(format!(
                    "{title}: queue_depth = {deepest} of job \"{job}\": queues of the drive hold \
                     {depth} commands"
                )));
            }
        }
        Ok(())
    }

    /// Says what zones hold that are not empty and that the points reset, and which blocks
    /// they write where there are no zones.
    ///
    /// # Errors
    /// There are some, and nothing says that they may be lost.
    pub(crate) fn may_destroy(&mut self, points: &[Point], overwrite: bool) -> Result<(), Failure> {
        let info = self.site.info().clone();
        let mut used: BTreeMap<NamespaceId, BTreeSet<u32>> = BTreeMap::new();
        for (nsid, zone) in points.iter().flat_map(|point| point.zones_on(&info)) {
            used.entry(nsid).or_default().insert(zone);
        }
        let mut losses = Vec::new();
        for (nsid, zones) in used {
            let Some(namespace) = info.namespace(nsid) else {
                continue;
            };
            let reported = report_zones(&mut self.site, nsid);
            let reported = reported.map_err(|what| self.failed(&what))?;
            losses.extend(Loss::of_zones(nsid, namespace, &reported, zones));
        }
        let mut written: BTreeMap<NamespaceId, Range<u64>> = BTreeMap::new();
        for (nsid, bytes) in points.iter().flat_map(|point| point.bytes_on(&info)) {
            let all = written.entry(nsid).or_insert(bytes.clone());
            *all = all.start.min(bytes.start)..all.end.max(bytes.end);
        }
        let bytes = written.into_iter();
        losses.extend(bytes.map(|(nsid, bytes)| Loss::of_bytes(nsid, bytes)));
        namespace::may_lose(&self.device, losses, overwrite)
    }

    fn failed(&self, what: &str) -> Failure {
        Failure::new(Exit::Device, anyhow::anyhow!("{}: {what}", self.device))
    }

    /// Ends the connection. Why it is lost, if it is.
    pub(crate) fn close(self) -> Result<(), String> {
        match self.site.0.close() {
            Ok(controller) => devices::leave(controller).map_err(|error| error.to_string()),
            Err(lost) => Err(lost.to_string()),
        }
    }

    /// What results depend on.
    pub(crate) fn describe(&self) -> String {
        let info = self.site.info();
        let mut table = toml_line("device", &self.device) + &toml_line("model", &info.model);
        for (nsid, namespace) in (1..).zip(&info.namespaces) {
            if let Some(zoned) = namespace.zoned {
                table += &format!(
                    "\n[namespace_{nsid}]\nzones = {}\nzone_capacity_lbas = {}\nlba_bytes = {}\n",
                    zoned.zones, zoned.zone_capacity_lbas, namespace.lba_bytes
                );
            }
        }
        table
    }
}

fn toml_line(key: &str, text: &str) -> String {
    // A JSON string of printable characters is a TOML string.
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("{key} = {}\n", Value::from(plain))
}

impl On {
    /// Whether time is real.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self, Self::Virtual)
    }

    /// Checks that every point can be run.
    ///
    /// # Errors
    /// The first that cannot.
    pub(crate) fn check(
        &self,
        loaded: &[Loaded],
        profiles: &ProfileFiles<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::Virtual | Self::Real => Ok(crate::session::check(loaded, profiles)?),
            // It was checked when it was opened.
            Self::Drive(_) => Ok(()),
        }
    }

    /// What results depend on.
    ///
    /// # Errors
    /// A drive's profile is wrong.
    pub(crate) fn configuration(
        &self,
        loaded: &[Loaded],
        profiles: &ProfileFiles<'_>,
    ) -> Result<Configuration, Failure> {
        let drive: Option<Rc<str>> = match self {
            Self::Drive(remote) => Some(remote.describe().into()),
            _ => None,
        };
        let mut configuration =
            crate::results::configuration(loaded, profiles, drive).map_err(Failure::input)?;
        if let (Self::Real, Some(list)) = (self, configuration.value.as_array_mut()) {
            list.push(json!({ "clock": "real" }));
        }
        Ok(configuration)
    }

    /// Something that runs points in real time, one after another.
    pub(crate) fn runner<'a>(&'a mut self, interrupt: &'a Arc<AtomicBool>) -> Option<Runner<'a>> {
        match self {
            Self::Virtual => None,
            Self::Real => Some(Runner::Emulated(interrupt)),
            Self::Drive(remote) => {
                let attached = Attached::new(&mut remote.site, interrupt);
                Some(Runner::Drive(attached.knowing(remote.prepared)))
            }
        }
    }

    /// Remembers how long it took to prepare zones so far, for the next runner.
    pub(crate) fn has_prepared(&mut self, prepared: Prepared) {
        if let Self::Drive(remote) = self {
            remote.prepared = prepared;
        }
    }

    /// How long it took to prepare zones so far.
    pub(crate) fn prepared(&self) -> Prepared {
        match self {
            Self::Virtual | Self::Real => Prepared::default(),
            Self::Drive(remote) => remote.prepared,
        }
    }

    /// What the device is, if it is one from outside.
    pub(crate) fn info(&self) -> Option<DeviceInfo> {
        match self {
            Self::Virtual | Self::Real => None,
            Self::Drive(remote) => Some(remote.info().clone()),
        }
    }

    /// Leaves the device; why it is lost, if it is.
    pub(crate) fn leave(self) -> Option<String> {
        match self {
            Self::Virtual | Self::Real => None,
            Self::Drive(remote) => remote.close().err(),
        }
    }
}

/// Runs points in real time.
pub(crate) enum Runner<'a> {
    Emulated(&'a Arc<AtomicBool>),
    Drive(Attached<'a, RealDrive>),
}

impl Runner<'_> {
    /// How long it took to prepare zones so far.
    pub(crate) fn prepared(&self) -> Prepared {
        match self {
            Self::Emulated(_) => Prepared::default(),
            Self::Drive(attached) => attached.prepared(),
        }
    }

    /// Runs a point.
    ///
    /// # Errors
    /// It cannot be run, the device failed, or the run was interrupted.
    pub(crate) fn run(
        &mut self,
        point: &Point,
        options: &RunOptions<'_>,
    ) -> Result<PointResult, RealError> {
        match self {
            Self::Emulated(interrupt) => run::run_point_in_real_time(point, options, interrupt),
            Self::Drive(attached) => attached.run(point, options.seed),
        }
    }
}
