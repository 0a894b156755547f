//! Linux kernels and their tools with a zoned drive: `cargo xtask test guest`.
//!
//! Each kernel is booted once, when its first case runs; a guest that a case
//! breaks is replaced before the next. A case also fails if the kernel prints
//! a fault of its own.

mod auth;
mod blocks;
mod boot;
mod dissected;
mod file_systems;
mod initiator;
mod killed;
mod layer;
mod limits;
mod passthrough;
mod pcie;
mod served;
mod states;
mod target;
mod uio;
mod vfio;
mod workload;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Trial};
use pcie::{PcieCase, Way};
use zonelab_guest_tests::{Chassis, Disk, Drive, Guest, Image, Kernel, image};

/// Cases about the guest itself.
type BootCase = fn(&mut Guest, &Image) -> Result<()>;
/// Cases about a drive, whoever serves it.
type DriveCase = fn(&mut Guest, &Drive) -> Result<()>;

/// Cases about what serves a drive.
pub(crate) type ServedCase = fn(&mut Guest) -> Result<()>;

const BOOT: &[(&str, BootCase)] = &[
    ("boot::release", boot::release),
    ("boot::modules", boot::modules),
    ("boot::programs", boot::programs),
    ("boot::scripts_and_limits", boot::scripts_and_limits),
    ("boot::loopback_of_the_host", boot::loopback_of_the_host),
];

const DRIVE: &[(&str, DriveCase)] = &[
    (
        "states::block_layer_and_tools_agree",
        states::block_layer_and_tools_agree,
    ),
    ("states::by_actions", states::by_actions),
    ("states::by_actions_on_all", states::by_actions_on_all),
    ("states::by_the_block_layer", states::by_the_block_layer),
    ("states::refused_transitions", states::refused_transitions),
    ("states::filters_of_reports", states::filters_of_reports),
    ("blocks::append_says_where", blocks::append_says_where),
    ("blocks::write_pointer", blocks::write_pointer),
    ("blocks::end_of_a_zone", blocks::end_of_a_zone),
    ("limits::open_zones", limits::open_zones),
    ("limits::active_zones", limits::active_zones),
    ("workload::sequential", workload::sequential),
    ("workload::many_zones", workload::many_zones),
    ("file_systems::f2fs", file_systems::f2fs),
    ("file_systems::btrfs", file_systems::btrfs),
];

/// Cases that only the kernel of the backports passes, and why.
const BACKPORTS: &[(&str, DriveCase)] = &[
    // 6.1 fails synchronous direct writes to zonefs: a fault of that kernel.
    ("file_systems::zonefs", file_systems::zonefs),
];

/// Cases about what serves a drive.
const SERVED: &[(&str, ServedCase)] = &[
    (
        "served::is_what_its_profile_says",
        served::is_what_its_profile_says,
    ),
    ("served::outlives_its_hosts", served::outlives_its_hosts),
    ("served::dissected_by_tshark", dissected::by_tshark),
    ("served::killed_under_load", killed::under_load),
    (
        "served::killed_under_a_file_system",
        killed::under_a_file_system,
    ),
];

/// Cases for a kernel with in-band authentication, which 6.1 of Debian has not.
const AUTH: &[(&str, ServedCase)] = &[
    (
        "auth::keys_are_those_of_nvme_cli",
        auth::keys_are_those_of_nvme_cli,
    ),
    ("auth::lets_the_kernel_in", auth::lets_the_kernel_in),
    ("auth::refuses_the_kernel", auth::refuses_the_kernel),
    (
        "auth::is_let_in_by_the_kernel",
        auth::is_let_in_by_the_kernel,
    ),
    (
        "auth::is_refused_by_the_kernel",
        auth::is_refused_by_the_kernel,
    ),
];

/// Cases for one without.
const WITHOUT_AUTH: &[(&str, ServedCase)] = &[(
    "auth::refuses_a_kernel_without_authentication",
    auth::refuses_a_kernel_without_authentication,
)];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // A guest takes a core, and ends with the thread that started it.
    arguments.test_threads = Some(1);
    let mut trials = Vec::new();
    for kernel in Kernel::ALL {
        if let Ok(image) = Image::open(&image::directory(), kernel) {
            eprintln!("{}: Linux {}", kernel.name(), image.release);
        }
        let machine = Arc::new(Machine::new(kernel, Chassis::Plain));
        for &(name, case) in BOOT {
            trials.push(trial(&machine, name, move |guest, image| {
                case(guest, image)
            }));
        }
        // What a kernel cannot do is no case for it.
        let is_newer = kernel == Kernel::Backports;
        let newer = if is_newer { BACKPORTS } else { &[] };
        for &(name, case) in DRIVE.iter().chain(newer) {
            trials.push(trial(&machine, name, move |guest, _| emulated(guest, case)));
        }
        for &(name, case) in DRIVE.iter().chain(newer) {
            let name = format!("served::{name}");
            trials.push(trial(&machine, &name, move |guest, _| {
                served::on_a_drive(guest, case)
            }));
        }
        let auth = if is_newer { AUTH } else { WITHOUT_AUTH };
        // About fio, which is the same in both guests.
        let jobs = if is_newer { &[] } else { served::jobs::CASES };
        // About the layer more than about the kernel: one of the two is enough.
        let (losses, placements) = match is_newer {
            true => (served::ftl::losses::CASES, served::ftl::PLACEMENTS),
            false => (&[][..], &[][..]),
        };
        let served = [
            SERVED,
            served::faults::CASES,
            served::features::CASES,
            served::ftl::CASES,
            losses,
            placements,
            jobs,
            auth,
        ];
        for &(name, case) in served.into_iter().flatten() {
            trials.push(trial(&machine, name, move |guest, _| case(guest)));
        }
        trials.push(trial(&machine, "target::of_the_kernel", |guest, _| {
            target::of_the_kernel(guest)
        }));
        let name = "initiator::uses_the_target_of_the_kernel";
        trials.push(trial(&machine, name, |guest, _| {
            initiator::uses_the_target_of_the_kernel(guest)
        }));
        // The last case of each takes the drive away.
        for &(name, case) in passthrough::CASES {
            trials.push(trial(&machine, name, move |guest, _| case(guest)));
        }
        let by_uio = uio::CASES.iter().chain(layer::CASES).chain(pcie::CASES);
        trials.extend(by_uio.map(|case| handed_over(&machine, &uio::WAY, case)));
        let machine = Arc::new(Machine::new(kernel, Chassis::Iommu));
        let by_vfio = vfio::CASES.iter().chain(layer::CASES).chain(pcie::CASES);
        trials.extend(by_vfio.map(|case| handed_over(&machine, &vfio::WAY, case)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs a case on the drive that QEMU emulates.
fn emulated(guest: &mut Guest, case: DriveCase) -> Result<()> {
    let drive = Drive::open(guest, "nvme0", 1, Some(2))?;
    drive.reset_all(guest)?;
    case(guest, &drive)
}

/// A kernel, and the guest that runs it once a case needs one.
struct Machine {
    kernel: Kernel,
    chassis: Chassis,
    guest: Mutex<Option<Guest>>,
}

impl Machine {
    fn new(kernel: Kernel, chassis: Chassis) -> Self {
        Self {
            kernel,
            chassis,
            guest: Mutex::new(None),
        }
    }

    fn run(&self, case: impl FnOnce(&mut Guest, &Image) -> Result<()>) -> Result<()> {
        let image = Image::open(&image::directory(), self.kernel)?;
        // A case that panicked leaves a guest of which nothing is known.
        let was_poisoned = self.guest.is_poisoned();
        let mut slot = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        self.guest.clear_poison();
        if was_poisoned {
            *slot = None;
        }
        let guest = match &mut *slot {
            Some(guest) => guest,
            empty => empty.insert(Guest::boot_in(&image, self.chassis, &Disk::PAIR)?),
        };
        // No case finds what an earlier one left.
        guest.ok("rm -rf /scratch/*")?;
        let result = case(guest, &image);
        let complaints = guest.complaints()?;
        if result.is_ok() && complaints.is_empty() {
            if guest.is_spent() {
                *slot = None;
            }
            return Ok(());
        }
        let note = format!("the whole console is in {}", guest.keep().display());
        // What failed half-way has mounts and jobs left.
        *slot = None;
        ensure!(
            complaints.is_empty(),
            "the kernel complains; {note}\n{}\n{result:?}",
            complaints.join("\n\n")
        );
        result.context(note)
    }
}

/// A case about a drive that is handed over by `way`.
fn handed_over(
    machine: &Arc<Machine>,
    way: &'static Way,
    &(name, case): &(&str, PcieCase),
) -> Trial {
    let name = format!("{}::{name}", way.name);
    trial(machine, &name, move |guest, _| case(guest, way))
}

fn trial(
    machine: &Arc<Machine>,
    name: &str,
    case: impl FnOnce(&mut Guest, &Image) -> Result<()> + Send + 'static,
) -> Trial {
    let machine = Arc::clone(machine);
    let name = format!("{}::{name}", machine.kernel.name());
    Trial::test(name, move || {
        machine
            .run(case)
            .map_err(|error| format!("{error:#}").into())
    })
}
