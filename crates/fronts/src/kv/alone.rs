//! A workload by itself on an emulated drive, however that is reached.

use zonelab_host::{CoreId, Reactor, RealClock, Rng, RunEnd, StopSignal, VirtualClock, WaitsFor};
use zonelab_kv::files::FilesError;
use zonelab_lab::device::Owner;
use zonelab_lab::device::Reached;
use zonelab_lab::device::{OverPcie, endpoint_of};
use zonelab_lab::kv::{KvJob, KvRun, KvTemplate, Surroundings, Wear};
use zonelab_lab::owed::Debt;
use zonelab_lab::run::STORE_DEPTH;
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::faults::{FaultyDrive, LostCompletions};

/// How a store reaches an emulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Directly, in virtual time.
    Virtual,
    /// Directly, in real time.
    Real,
    /// Through the driver for PCIe, on a controller in memory, in virtual time.
    Pcie,
}

/// What a run came to.
#[derive(Debug)]
pub struct Alone {
    /// The workload; `None`: the store waits for ever.
    pub run: Option<Result<KvRun, FilesError>>,
    /// When it ended, and how late it was in real time.
    pub end: RunEnd,
    /// How often blocks of the flash were erased.
    pub wear: Wear,
    /// What the drive still owed.
    pub debt: Debt,
    /// Completions that faults have lost, if the store may wait for these.
    pub lost_completions: Option<LostCompletions>,
    /// How often each fault of the plan struck, in its order.
    pub faults_struck: Vec<u64>,
}

/// Runs a workload alone on `drive`. What the drive does is added to `surroundings`.
///
/// # Errors
/// The drive cannot be reached so: a text that says why.
pub fn run_alone(
    drive: FaultyDrive,
    way: Way,
    template: &KvTemplate,
    surroundings: Surroundings,
) -> Result<Alone, String> {
    match way {
        Way::Virtual => on_emulated(drive, VirtualClock::default(), template, surroundings),
        Way::Real => on_emulated(drive, RealClock::new(), template, surroundings),
        Way::Pcie => over_pcie(drive, template, surroundings),
    }
}

fn on_emulated<C: WaitsFor<Emulated>>(
    drive: FaultyDrive,
    clock: C,
    template: &KvTemplate,
    surroundings: Surroundings,
) -> Result<Alone, String> {
    let device = Emulated::new(drive);
    let (mut job, stop, seed) = job_on(&device, template, surroundings);
    let start = clock.now();
    let queue = device.open_queue(STORE_DEPTH, HostCosts::FREE, Rng::new(seed, 1));
    let mut reactor = Reactor::new(clock, device.clone(), stop);
    reactor.add(&mut job, queue, CoreId(0), start);
    let end = reactor.run();
    Ok(ended(job, end, &device))
}

fn over_pcie(
    drive: FaultyDrive,
    template: &KvTemplate,
    surroundings: Surroundings,
) -> Result<Alone, String> {
    let endpoint = endpoint_of(drive)?;
    let mut site = OverPcie::new(&endpoint, HostCosts::FREE)?;
    let (mut job, stop, seed) = job_on(&endpoint, template, surroundings);
    let rng = Rng::new(seed, 1);
    let queue = Reached::open_queue(&mut site, STORE_DEPTH, HostCosts::FREE, rng)?;
    // Starting the controller has taken some time.
    let start = site.ready_at();
    let clock = VirtualClock::starting_at(start);
    let mut reactor = Reactor::new(clock, Reached::device(&mut site), stop);
    reactor.add(&mut job, queue, CoreId(0), start);
    let end = reactor.run();
    Ok(ended(job, end, &endpoint))
}

/// The workload as a job that looks at the drive now and then.
fn job_on<O: Owner + Clone + 'static>(
    owner: &O,
    template: &KvTemplate,
    surroundings: Surroundings,
) -> (KvJob, StopSignal, u64) {
    let (stop, seed) = (surroundings.stop.clone(), surroundings.seed);
    let drive = owner.clone();
    let surroundings = Surroundings {
        totals: Some(Box::new(move || drive.with_drive(|drive| drive.totals()))),
        ..surroundings
    };
    (KvJob::new(template, surroundings, false), stop, seed)
}

fn ended<O: Owner>(job: KvJob, end: RunEnd, owner: &O) -> Alone {
    Alone {
        run: job.into_run(),
        end,
        wear: owner.with_drive(|drive| Wear::of(&drive.flash().erase_counts())),
        debt: owner.with_drive(|drive| Debt::of(drive)),
        lost_completions: owner.with_faults(|drive| drive.lost_completions()),
        faults_struck: owner.with_faults(|drive| drive.struck_by_fault()),
    }
}
