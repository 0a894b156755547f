//! The zoned drive below, of any kind: programs of tasks run on it, and on the layer.

use std::path::PathBuf;

use zonelab_device::{Command, Device, DeviceInfo, NamespaceId, Nanos, Op};
use zonelab_ftl::{Durable, FtlDevice, FtlError, FtlQueue, FtlSettings, Lent, Look, Start};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Reactor, RealClock, Rng, StopSignal, VirtualClock, WaitsFor};
use zonelab_sim::{Emulated, EmulatedQueue, HostCosts};
use zonelab_ssd::config::DataStore;
use zonelab_store::Options;

use super::failure;
use crate::devices::{self, HostArgs, Named};
use crate::exit::{Exit, Failure};
use crate::namespace::{self, OpenNamespace};
use crate::profiles;
use crate::real_drive::{self, Drive};
use crate::stores::{self, Use};

/// Commands in flight of a queue.
const DEPTH: u32 = 64;

/// The drive.
#[derive(clap::Args)]
pub(crate) struct DeviceArgs {
    /// The drive: tcp://HOST:PORT/NQN?nsid=1, linux:///dev/ng0n1,
    /// pcie://0000:01:00.0?nsid=1, or a profile with --store FILE
    #[arg(long, short = 'd', value_name = "DEV", global = true)]
    device: Option<String>,
    /// The file that an emulated drive is in, as of `zonelab serve --store`; `format` makes it
    /// if it is not there, and commands that write nothing leave it as it is
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
    /// Change a setting of the emulated drive
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    set: Vec<String>,
    #[command(flatten)]
    host: HostArgs,
}

/// What a command does to a drive in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Everything: without a file it makes one.
    Make,
    /// It writes to a drive that is there.
    Write,
    /// It reads, and the file stays as it is.
    Look,
}

/// A drive that is open.
pub(super) struct Ground {
    /// What it was called.
    pub(super) name: String,
    /// The namespace with the zones.
    pub(super) nsid: NamespaceId,
    of: Of,
}

enum Of {
    Real(Box<Drive>),
    Kept(Kept),
}

/// An emulated drive in a file.
#[derive(Clone)]
struct Kept {
    drive: Emulated,
    /// In real time; `None`: in virtual time.
    clock: Option<RealClock>,
    /// When the last program ended.
    now: Nanos,
}

impl Ground {
    /// Opens the drive that the command line names.
    ///
    /// # Errors
    /// It names none, or it cannot be opened.
    pub(super) fn open(args: &DeviceArgs, needs: Needs) -> Result<Self, Failure> {
        let Some(device) = &args.device else {
            return Err(Failure::usage(
                "--device is missing: name the drive, as in --device tcp://127.0.0.1:4420/NQN, or \
                 --device zn540 --store drive.zonelab"
                    .to_owned(),
            ));
        };
        match Named::parse(device)? {
            Named::Real(address) => {
                let store = args.store.is_some();
                let served = "`zonelab serve --store` keeps a drive in a file that is served";
                devices::refuse(device, "--store", store, served)?;
                let served = "a drive that is served gets its settings from `zonelab serve --set`";
                devices::refuse(device, "--set", !args.set.is_empty(), served)?;
                let options = real_drive::options(&args.host, address)?;
                let opened = OpenNamespace::open(device, &options)?;
                Ok(Self {
                    name: device.clone(),
                    nsid: opened.nsid,
                    of: Of::Real(Box::new(opened.drive.0)),
                })
            }
            Named::Emulated {
                profile,
                nsid,
                is_real,
                via,
            } => {
                devices::refuse_via(device, via, &[])?;
                args.host.refuse_on_emulated(device)?;
                let mut config = profiles::load(profile, &args.set)?.config;
                let info = zonelab_ssd::Drive::info_of(&config);
                let nsid = namespace::of_emulated(device, &info, nsid)?;
                let Some(path) = &args.store else {
                    return Err(Failure::usage(format!(
                        "{device}: in memory it would be gone with this command: say --store FILE, \
                         or serve it (`zonelab serve {profile}`) and name tcp://HOST:PORT/NQN"
                    )));
                };
                config.data = DataStore::Memory;
                let drive = match needs {
                    Needs::Make => stores::drive(path, &config, Options::default())?.0,
                    Needs::Write => stores::drive_there(path, &config, Use::Write)?,
                    Needs::Look => stores::drive_there(path, &config, Use::Look)?,
                };
                Ok(Self {
                    name: device.clone(),
                    nsid,
                    of: Of::Kept(Kept {
                        drive: Emulated::new(drive),
                        clock: is_real.then(RealClock::new),
                        now: Nanos::ZERO,
                    }),
                })
            }
        }
    }

    /// What the drive is.
    pub(super) fn info(&self) -> &DeviceInfo {
        match &self.of {
            Of::Real(drive) => drive.info(),
            Of::Kept(kept) => kept.drive.info(),
        }
    }

    /// Runs a program on the drive itself.
    ///
    /// # Errors
    /// The program failed, or the drive takes no queue.
    pub(super) fn ask<T, F>(&mut self, program: impl FnOnce(Io) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, FtlError>> + 'static,
        T: 'static,
    {
        let end = match &mut self.of {
            Of::Real(drive) => {
                let queue = drive.open_queue().map_err(devices::gone)?;
                let clock = RealClock::sharing(drive.clock());
                run(&mut **drive, clock, queue, program).0
            }
            Of::Kept(kept) => {
                let (mut drive, queue) = (kept.drive.clone(), kept.queue());
                let (end, at) = match kept.clock.clone() {
                    Some(clock) => run(&mut drive, clock, queue, program),
                    None => run(&mut drive, kept.virtual_clock(), queue, program),
                };
                kept.now = at;
                end
            }
        };
        end.map_err(|error| failure(&self.name, &error))
    }

    /// Mounts the layer, runs a program on it, and leaves the drive.
    ///
    /// # Errors
    /// It cannot be mounted, the program failed, or the drive is gone.
    pub(super) fn mounted<T, F>(self, program: impl FnOnce(Io) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, FtlError>> + 'static,
        T: 'static,
    {
        let settings = FtlSettings {
            nsid: self.nsid,
            ..FtlSettings::default()
        };
        let name = self.name.clone();
        let of_layer = |error: FtlError| failure(&name, &error);
        let (of, end) = match self.of {
            Of::Real(drive) => {
                let clock = RealClock::sharing(drive.clock());
                let mut layer = mount_with(*drive, &name, settings)?;
                let below = layer.inner_mut().open_queue().map_err(devices::gone)?;
                let end = match layer.queue(below, DEPTH) {
                    Ok(queue) => run(&mut layer, clock, queue, program).0,
                    Err(error) => Err(error),
                };
                (
                    Of::Real(Box::new(layer.into_inner())),
                    end.map_err(of_layer),
                )
            }
            Of::Kept(kept) => {
                let end = match kept.clock.clone() {
                    Some(clock) => kept.mounted(|_| clock.clone(), settings, program),
                    None => kept.mounted(VirtualClock::starting_at, settings, program),
                };
                (Of::Kept(kept), end.map_err(of_layer))
            }
        };
        Self { of, ..self }.end(end)
    }

    /// Leaves the drive, after something that came to `result`.
    ///
    /// # Errors
    /// Those of `result`; why the drive is lost, if it is; or it cannot be left in order.
    pub(super) fn end<T>(self, result: Result<T, Failure>) -> Result<T, Failure> {
        let left = match self.of {
            Of::Real(drive) => drive
                .close()
                .and_then(devices::leave)
                .map_err(devices::gone),
            Of::Kept(kept) => {
                let off = kept.drive.with_drive(zonelab_ssd::Drive::switch_off);
                off.map_err(|error| Failure::environment(anyhow::anyhow!("{}: {error}", self.name)))
            }
        };
        match (result, left) {
            // A connection that is lost says more than the command that was.
            (Err(error), Err(lost)) if error.exit == Exit::Device => Err(lost),
            (Ok(value), left) => left.map(|()| value),
            (Err(error), _) => Err(error),
        }
    }
}

impl Kept {
    fn queue(&self) -> EmulatedQueue {
        self.drive
            .open_queue(DEPTH, HostCosts::FREE, Rng::new(1, 1))
    }

    fn virtual_clock(&self) -> VirtualClock {
        VirtualClock::starting_at(self.now)
    }

    /// Mounts the layer and runs a program on it.
    fn mounted<C, T, F>(
        &self,
        clock: impl Fn(Nanos) -> C,
        settings: FtlSettings,
        program: impl FnOnce(Io) -> F,
    ) -> Result<T, FtlError>
    where
        C: for<'d> WaitsFor<Lent<'d, Emulated>> + for<'d> WaitsFor<&'d mut FtlDevice<Emulated>>,
        F: Future<Output = Result<T, FtlError>> + 'static,
        T: 'static,
    {
        let (drive, queue) = (self.drive.clone(), self.queue());
        let started = FtlDevice::start(drive, clock(self.now), queue, Start::Mount, settings);
        let (mut layer, at) = started?;
        let queue: FtlQueue<EmulatedQueue> = layer.queue(self.queue(), DEPTH)?;
        run(&mut layer, clock(at), queue, program).0
    }
}

/// Mounts the layer on a namespace of a real drive, in real time.
///
/// # Errors
/// It cannot be mounted, or the drive grants too few queues.
pub(crate) fn mount(opened: OpenNamespace, name: &str) -> Result<FtlDevice<Drive>, Failure> {
    let settings = FtlSettings {
        nsid: opened.nsid,
        ..FtlSettings::default()
    };
    mount_with(opened.drive.0, name, settings)
}

fn mount_with(
    mut drive: Drive,
    name: &str,
    settings: FtlSettings,
) -> Result<FtlDevice<Drive>, Failure> {
    let queue = drive.open_queue().map_err(devices::gone)?;
    let clock = RealClock::sharing(drive.clock());
    let started = FtlDevice::start(drive, clock, queue, Start::Mount, settings);
    let (layer, _) = started.map_err(|error| failure(name, &error))?;
    Ok(layer)
}

/// Makes durable what was written to the layer.
///
/// # Errors
/// The flush failed, or the drive is gone.
pub(crate) fn flush(layer: &mut FtlDevice<Drive>, name: &str) -> Result<(), Failure> {
    let clock = RealClock::sharing(layer.inner().clock());
    let below = layer.inner_mut().open_queue().map_err(devices::gone)?;
    let flushed = layer.queue(below, DEPTH).and_then(|queue| {
        let program = async move |io: Io| {
            let answer = io.run(Command::new(Op::Flush), None).await;
            Ok(answer.map_err(FtlError::Gone)?.status)
        };
        run(layer, clock, queue, program).0
    });
    match flushed.map_err(|error| failure(name, &error))? {
        status if status.is_success() => Ok(()),
        status => Err(Failure::new(
            Exit::Device,
            anyhow::anyhow!("{name}: flush of the layer: {status}"),
        )),
    }
}

/// What is in a namespace of a real drive, without a write.
///
/// # Errors
/// As [`Durable::look`].
pub(crate) fn look(opened: &mut OpenNamespace, name: &str) -> Result<Look, Failure> {
    let (drive, nsid) = (&mut opened.drive.0, opened.nsid);
    let queue = drive.open_queue().map_err(devices::gone)?;
    let clock = RealClock::sharing(drive.clock());
    let program = async move |io: Io| Durable::look(&io, nsid).await;
    let (looked, _) = run(drive, clock, queue, program);
    looked.map_err(|error| failure(name, &error))
}

/// Runs a program to its end; what came of it, and when.
fn run<D, C, T, F>(
    device: &mut D,
    clock: C,
    queue: D::Queue,
    program: impl FnOnce(Io) -> F,
) -> (Result<T, FtlError>, Nanos)
where
    D: Device,
    C: for<'d> WaitsFor<&'d mut D>,
    F: Future<Output = Result<T, FtlError>> + 'static,
    T: 'static,
{
    use zonelab_device::QueuePair as _;
    let mut tasks = Tasks::new(queue.info(), TasksConfig::default(), program);
    let start = clock.now();
    let mut reactor = Reactor::new(clock, device, StopSignal::default());
    reactor.add(&mut tasks, queue, CoreId(0), start);
    let end = reactor.run();
    (tasks.into_result().unwrap_or(Err(FtlError::Stuck)), end.at)
}
