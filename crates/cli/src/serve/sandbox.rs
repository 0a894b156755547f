//! `serve --sandbox`: the server gives away what it does not need, before anybody can reach it.
//!
//! Landlock takes away files, programs and connections to others; seccomp takes away system
//! calls that change the machine or other processes. Both hold for all threads that are started
//! afterwards, and for the one that calls.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::Args;
use crate::exit::Failure;

/// The newest version of Landlock of which something is used; older ones do less.
const LANDLOCK: ABI = ABI::V4;
/// Where the library for TLS gets random numbers.
#[cfg(feature = "tls")]
const RANDOM: &str = "/dev/urandom";

/// Whether the server gives away what it does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sandbox {
    /// As far as the kernel can
    Auto,
    /// Yes, or it does not start
    Required,
    /// No
    Off,
}

/// System calls that no server needs: they fail with EPERM.
const REFUSED: [libc::c_long; 43] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Enters the sandbox. What the options name is still within reach: files that are read again,
/// and the places of files and ports that are made later.
///
/// # Errors
/// It is required, and the kernel cannot do all of it.
pub(super) fn enter(args: &Args) -> Result<(), Failure> {
    if args.sandbox == Sandbox::Off {
        tracing::info!(landlock = "off", seccomp = "off", "sandbox");
        return Ok(());
    }
    let (landlock, seccomp) = (restrict(args), refuse());
    let of_landlock = match &landlock {
        Ok(RulesetStatus::FullyEnforced) => "full",
        Ok(RulesetStatus::PartiallyEnforced) => "partial",
        Ok(RulesetStatus::NotEnforced) => "none",
        Err(_) => "failed",
    };
    let of_seccomp = if seccomp.is_ok() { "full" } else { "failed" };
    let errors = [
        landlock.as_ref().err().map(ToString::to_string),
        seccomp.as_ref().err().map(ToString::to_string),
    ];
    let errors: Vec<String> = errors.into_iter().flatten().collect();
    let error = (!errors.is_empty()).then(|| errors.join("; "));
    tracing::info!(
        landlock = of_landlock,
        seccomp = of_seccomp,
        error,
        "sandbox"
    );
    let is_whole = matches!(landlock, Ok(RulesetStatus::FullyEnforced)) && seccomp.is_ok();
    if args.sandbox == Sandbox::Required && !is_whole {
        return Err(Failure::environment(anyhow::anyhow!(
            "--sandbox required: Landlock is {of_landlock}, seccomp {of_seccomp}{}",
            error.map_or_else(String::new, |error| format!(": {error}"))
        )));
    }
    Ok(())
}

/// Files and ports.
fn restrict(args: &Args) -> Result<RulesetStatus, RulesetError> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = read_again(args)
        .into_iter()
        .try_fold(rules, |rules, place| within(rules, &place, read))?;
    #[cfg(feature = "tls")]
    {
        rules = within(rules, Path::new(RANDOM), AccessFs::ReadFile.into())?;
    }
    if let Some(socket) = &args.control {
        // It is made already, and goes with the server.
        rules = within(rules, &directory(socket), AccessFs::RemoveFile.into())?;
    }
    if let Some(log) = args.layer.log() {
        let access = AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::ReadFile;
        rules = within(rules, &directory(log), access)?;
    }
    let ports = [Some(args.listen), args.tls.listen(), args.web];
    for address in ports.into_iter().flatten() {
        rules = rules.add_rule(NetPort::new(address.port(), AccessNet::BindTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// Directories with files that are looked at again: another file may take the place of one, and
/// links are followed.
fn read_again(args: &Args) -> Vec<PathBuf> {
    let files = [
        args.hosts.as_deref(),
        args.authentication.file(),
        args.tls.file(),
    ];
    let mut places = Vec::new();
    for file in files.into_iter().flatten() {
        places.push(directory(file));
        places.extend(file.canonicalize().ok().as_deref().map(directory));
    }
    places
}

/// Allows something of what is at `place` and below. What is not there cannot be reached.
fn within(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(place) {
        Ok(opened) => rules.add_rule(PathBeneath::new(opened, access)),
        Err(_) => Ok(rules),
    }
}

/// The directory that a file is in.
fn directory(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// System calls.
fn refuse() -> anyhow::Result<()> {
    let rules = REFUSED.map(|call| (call, Vec::new()));
    let filter = SeccompFilter::new(
        rules.into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter_all_threads(&program)?;
    Ok(())
}
