//! `serve --sandbox`: the server gives away what it does not need, before anybody can reach it.
//!
//! Landlock takes away files, ports, and signals and abstract sockets of other processes; seccomp
//! leaves the system calls that a server makes. Both hold for all threads that are started
//! afterwards, and for the one that calls.

mod calls;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope,
};

use super::Args;
use crate::exit::Failure;

/// The newest version of Landlock of which something is used; older ones do less.
const LANDLOCK: ABI = ABI::V6;
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

/// What each version of Landlock was the first to hold.
const HELD: [(ABI, &str); 6] = [
    (ABI::V1, "files"),
    (ABI::V2, "links between directories"),
    (ABI::V3, "truncation"),
    (ABI::V4, "ports"),
    (ABI::V5, "ioctls of devices"),
    (ABI::V6, "signals, abstract sockets"),
];

/// What this kernel does not hold.
fn not_held(landlock: LandlockStatus) -> Vec<&'static str> {
    let held = match landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        _ => ABI::Unsupported,
    };
    let missing = HELD.iter().filter(|(abi, _)| *abi > held);
    missing.map(|(_, what)| *what).collect()
}

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
    let mut missing = landlock.as_ref().map_or_else(
        |_| not_held(LandlockStatus::NotEnabled),
        |status| not_held(status.landlock),
    );
    let landlock = landlock.map(|status| status.ruleset);
    let of_landlock = match &landlock {
        Ok(RulesetStatus::FullyEnforced) => "full",
        Ok(RulesetStatus::PartiallyEnforced) => "partial",
        Ok(RulesetStatus::NotEnforced) => "none",
        Err(_) => "failed",
    };
    let of_seccomp = if seccomp.is_ok() { "full" } else { "failed" };
    if seccomp.is_err() {
        missing.push("system calls");
    }
    let not_held = (!missing.is_empty()).then(|| missing.join(", "));
    let errors = [
        landlock.as_ref().err().map(ToString::to_string),
        seccomp.as_ref().err().map(ToString::to_string),
    ];
    let errors: Vec<String> = errors.into_iter().flatten().collect();
    let error = (!errors.is_empty()).then(|| errors.join("; "));
    tracing::info!(
        landlock = of_landlock,
        seccomp = of_seccomp,
        not_held,
        error,
        "sandbox"
    );
    let is_whole = matches!(landlock, Ok(RulesetStatus::FullyEnforced)) && seccomp.is_ok();
    if args.sandbox == Sandbox::Required && !is_whole {
        return Err(Failure::environment(anyhow::anyhow!(
            "--sandbox required: Landlock is {of_landlock}, seccomp {of_seccomp}{}{}",
            not_held.map_or_else(String::new, |what| format!(", not held: {what}")),
            error.map_or_else(String::new, |error| format!(": {error}"))
        )));
    }
    Ok(())
}

/// Files, ports, signals and abstract sockets.
fn restrict(args: &Args) -> Result<RestrictionStatus, RulesetError> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
        .scope(Scope::from_all(LANDLOCK))?
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
    rules.restrict_self()
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
    Ok(seccompiler::apply_filter_all_threads(&calls::filter()?)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// In a thread, which alone is in the sandbox.
    fn in_thread(try_out: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(try_out);
        assert!(thread.join().is_ok(), "see above");
    }

    #[test]
    fn calls_that_no_server_makes_are_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        in_thread(move || {
            seccompiler::apply_filter(&calls::filter().unwrap()).unwrap();
            let mode = std::fs::Permissions::from_mode(0o777);
            let own = rustix::process::getpid();
            let tried = [
                (
                    "starting a program",
                    std::process::Command::new("true").spawn().err(),
                ),
                ("connecting", TcpStream::connect(address).err()),
                ("UDP", UdpSocket::bind("127.0.0.1:0").err()),
                ("a local socket", UnixStream::connect("/none").err()),
                ("chmod", std::fs::set_permissions(file.path(), mode).err()),
                ("renaming", std::fs::rename(file.path(), "/none").err()),
                (
                    "making a directory",
                    std::fs::create_dir("/none/none").err(),
                ),
                (
                    "a signal",
                    rustix::process::test_kill_process(own)
                        .err()
                        .map(Into::into),
                ),
            ];
            for (what, error) in tried {
                let error = error.unwrap_or_else(|| panic!("{what} is possible"));
                assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{what}: {error}");
            }
            // What it does is possible.
            TcpListener::bind("[::1]:0")
                .or_else(|_| TcpListener::bind("127.0.0.1:0"))
                .unwrap();
            std::fs::read(file.path()).unwrap();
            std::thread::spawn(|| vec![1_u8; 1 << 24].len())
                .join()
                .unwrap();
        });
    }

    #[test]
    fn signals_and_abstract_sockets_are_out_of_reach_where_the_kernel_can() {
        let line =
            Line::try_parse_from(["serve", "zn540"]).unwrap_or_else(|error| panic!("{error}"));
        let name =
            SocketAddr::from_abstract_name(format!("zonelab-{}", std::process::id())).unwrap();
        let listener = UnixListener::bind_addr(&name).unwrap();
        let parent = rustix::process::getppid().unwrap();
        in_thread(move || {
            // Without Landlock it holds nothing, which is no error.
            let status = restrict(&line.args).unwrap();
            let missing = not_held(status.landlock);
            if !missing.contains(&"files") {
                let error = File::open("/proc/self/status").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            }
            let is_held = !missing.contains(&"signals, abstract sockets");
            let connected = UnixStream::connect_addr(&name);
            let is_refused = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
            assert_eq!(
                connected.as_ref().is_err_and(is_refused),
                is_held,
                "{connected:?}"
            );
            // Whoever started this may be of another user.
            let signal = rustix::process::test_kill_process(parent);
            assert!(
                signal == Err(rustix::io::Errno::PERM) || !is_held,
                "{signal:?}"
            );
            drop(listener);
        });
    }

    #[test]
    fn what_a_kernel_does_not_hold_is_said() {
        let of = |effective_abi| LandlockStatus::Available {
            effective_abi,
            kernel_abi: None,
        };
        assert_eq!(not_held(of(LANDLOCK)), [""; 0]);
        let of_debian_12 = [
            "truncation",
            "ports",
            "ioctls of devices",
            "signals, abstract sockets",
        ];
        assert_eq!(not_held(of(ABI::V2)), of_debian_12);
        assert_eq!(not_held(LandlockStatus::NotImplemented).len(), HELD.len());
    }
}
