//! Linux kernels and their tools with a zoned drive: `cargo xtask test guest`.
//!
//! Guests run side by side ([`crew`]), each booted when its first case runs; one that a
//! case breaks is replaced before the next. A case also fails if the kernel prints a fault
//! of its own.
//!
//! Cases share nothing but the host: files and ports that they make there are theirs alone.

mod auth;
mod blocks;
mod boot;
mod crew;
mod dissected;
mod file_systems;
mod initiator;
mod killed;
mod layer;
mod limits;
mod namespaces;
mod passthrough;
mod pcie;
mod reservations;
mod served;
mod states;
mod target;
mod tls;
mod uio;
mod vfio;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use crew::{Kind, Plan};
use libtest_mimic::Arguments;
use pcie::{PcieCase, Way};
use zonelab_guest_tests::{Chassis, Drive, Guest, Image, Kernel, image};

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
    (
        "served::reservations_of_two_hosts_outlive_a_kill",
        reservations::of_two_hosts_outlive_a_kill,
    ),
];

/// Cases about the kernel's own target.
const KERNEL: &[(&str, ServedCase)] = &[
    ("target::of_the_kernel", target::of_the_kernel),
    (
        "initiator::uses_the_target_of_the_kernel",
        initiator::uses_the_target_of_the_kernel,
    ),
];

/// Cases for a kernel with in-band authentication and TLS, which 6.1 of Debian has not.
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
    (
        "tls::survives_a_kill_with_other_keys",
        tls::survives_a_kill_with_other_keys,
    ),
];

/// Cases for one without.
const WITHOUT_AUTH: &[(&str, ServedCase)] = &[(
    "auth::refuses_a_kernel_without_authentication",
    auth::refuses_a_kernel_without_authentication,
)];

/// With this variable both kernels run every case that they can: `cargo xtask nightly`.
const EVERY: &str = "ZONELAB_GUEST_EVERY";

/// Cases run with one of the kernels, and with both only where there is time for that.
#[derive(Clone, Copy)]
struct Once {
    is_every: bool,
}

impl Once {
    /// `cases` if the kernel at hand is the one that they run with, or every kernel does.
    fn with<T>(self, wanted: Kernel, kernel: Kernel, cases: &'static [T]) -> &'static [T] {
        only(wanted, if self.is_every { wanted } else { kernel }, cases)
    }
}

/// `cases` if the kernel at hand is the one that they run with.
fn only<T>(wanted: Kernel, kernel: Kernel, cases: &'static [T]) -> &'static [T] {
    if wanted == kernel { cases } else { &[] }
}

fn main() -> ExitCode {
    let mut plan = Plan::default();
    let once = Once {
        is_every: std::env::var_os(EVERY).is_some(),
    };
    for kernel in Kernel::ALL {
        if let Ok(image) = Image::open(&image::directory(), kernel) {
            eprintln!("{}: Linux {}", kernel.name(), image.release);
        }
        on_a_plain_machine(&mut plan, kernel, once);
        let kind = Kind {
            kernel,
            chassis: Chassis::Iommu,
        };
        let driver = driver_cases(Kernel::Backports, kernel, once);
        for case in vfio::CASES.iter().chain(driver) {
            handed_over(&mut plan, kind, &vfio::WAY, case);
        }
    }
    if !once.is_every {
        eprintln!("most cases run with one of the kernels; {EVERY}=1 runs all with both");
    }
    plan.run(Arguments::from_args()).exit_code()
}

/// The cases about our driver, which has the device to itself: each way with one of the kernels.
fn driver_cases(
    wanted: Kernel,
    kernel: Kernel,
    once: Once,
) -> impl Iterator<Item = &'static (&'static str, PcieCase)> {
    // The last of these takes the drive away.
    let cases = [layer::CASES, namespaces::PCIE, pcie::CASES];
    cases
        .into_iter()
        .flat_map(move |cases| once.with(wanted, kernel, cases))
}

/// The cases on a machine without IOMMU.
fn on_a_plain_machine(plan: &mut Plan, kernel: Kernel, once: Once) {
    let kind = Kind {
        kernel,
        chassis: Chassis::Plain,
    };
    for &(name, case) in BOOT {
        plan.add(kind, name, case);
    }
    let stable = |cases| once.with(Kernel::Stable, kernel, cases);
    let backports = |cases| once.with(Kernel::Backports, kernel, cases);
    // What a kernel cannot do is no case for it.
    let is_newer = kernel == Kernel::Backports;
    let newer = if is_newer { BACKPORTS } else { &[] };
    // QEMU's drive is the measure of the cases themselves.
    let of_qemu = once.with(Kernel::Stable, kernel, DRIVE);
    for &(name, case) in of_qemu.iter().chain(newer) {
        plan.add(kind, name, move |guest, _| emulated(guest, case));
    }
    let of_ours = once.with(Kernel::Backports, kernel, DRIVE);
    for &(name, case) in of_ours.iter().chain(newer) {
        let name = format!("served::{name}");
        plan.add(kind, &name, move |guest, _| served::on_a_drive(guest, case));
    }
    let auth = if is_newer { AUTH } else { WITHOUT_AUTH };
    let served = [
        stable(SERVED),
        stable(served::faults::CASES),
        backports(served::features::CASES),
        backports(served::placement::CASES),
        backports(served::ftl::CASES),
        // About the layer, and about fio, which is the same in both guests.
        only(Kernel::Backports, kernel, served::ftl::losses::CASES),
        only(Kernel::Backports, kernel, served::ftl::PLACEMENTS),
        only(Kernel::Stable, kernel, served::jobs::CASES),
        auth,
        backports(KERNEL),
        stable(namespaces::LINUX),
        // The last of these takes the drive away.
        stable(passthrough::CASES),
    ];
    for &(name, case) in served.into_iter().flatten() {
        plan.add(kind, name, move |guest, _| case(guest));
    }
    let driver = driver_cases(Kernel::Stable, kernel, once);
    for case in uio::CASES.iter().chain(driver) {
        handed_over(plan, kind, &uio::WAY, case);
    }
}

/// Runs a case on the drive that QEMU emulates.
fn emulated(guest: &mut Guest, case: DriveCase) -> Result<()> {
    let drive = Drive::open(guest, "nvme0", 1, Some(2))?;
    drive.reset_all(guest)?;
    case(guest, &drive)
}

/// A case about a drive that is handed over by `way`.
fn handed_over(plan: &mut Plan, kind: Kind, way: &'static Way, &(name, case): &(&str, PcieCase)) {
    let name = format!("{}::{name}", way.name);
    plan.add(kind, &name, move |guest, _| case(guest, way));
}
