//! The system calls that a server makes: no other is left to it.
//!
//! Any other one fails with ENOSYS, as on a kernel that does not have it: libraries then take
//! the call that they took before it was there, and nobody dies who tries.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Calls that are allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // Threads, and how they wait for each other.
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getpriority,
    libc::SYS_gettid,
    libc::SYS_membarrier,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setpriority,
    libc::SYS_sigaltstack,
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mlock,
    libc::SYS_mremap,
    libc::SYS_munlock,
    libc::SYS_munmap,
    // Time and chance.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    // Files: which of them, Landlock says.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sync_file_range,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
    // Connections that others make, and waiting for them.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_listen,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    // Who it is, and what it may have.
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// Older forms of the same, which not every architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// The argument at this place, of the bits of `mask`, is `value`.
fn is(place: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    let compare = SeccompCmpOp::MaskedEq(mask);
    SeccompCondition::new(place, SeccompCmpArgLen::Qword, compare, value)
}

/// Calls that are allowed with some arguments: rules, of which one has to hold.
fn conditional() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let word = u64::from(u32::MAX);
    let executable = libc::PROT_EXEC as u64;
    let (inet, inet6) = (libc::AF_INET as u64, libc::AF_INET6 as u64);
    let (kind, stream) = (0xf, libc::SOCK_STREAM as u64);
    let mut rules = BTreeMap::new();
    let mut allow = |call: libc::c_long, conditions: Vec<SeccompCondition>| {
        let of_call: &mut Vec<SeccompRule> = rules.entry(call).or_default();
        of_call.push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::BackendError>(())
    };
    // No new code.
    allow(libc::SYS_mmap, vec![is(2, executable, 0)?])?;
    allow(libc::SYS_mprotect, vec![is(2, executable, 0)?])?;
    // TCP, to be listened on.
    for family in [inet, inet6] {
        let tcp = vec![is(0, word, family)?, is(1, kind, stream)?];
        allow(libc::SYS_socket, tcp)?;
    }
    // Between its own threads.
    let local = vec![is(0, word, libc::AF_UNIX as u64)?];
    allow(libc::SYS_socketpair, local)?;
    // Names of threads, and what anonymous memory is for.
    for option in [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA] {
        allow(libc::SYS_prctl, vec![is(0, word, option as u64)?])?;
    }
    // Whether reads and writes wait, and how much there is to read.
    for request in [
        libc::FIONBIO,
        libc::FIONREAD,
        libc::TIOCGWINSZ,
        libc::TCGETS,
    ] {
        #[expect(clippy::unnecessary_cast, reason = "with musl it is an i32")]
        let request = request as u64;
        allow(libc::SYS_ioctl, vec![is(1, word, request)?])?;
    }
    // Limits are read, and not set.
    allow(libc::SYS_prlimit64, vec![is(2, u64::MAX, 0)?])?;
    // It may end itself.
    let own = u64::from(std::process::id());
    allow(libc::SYS_tgkill, vec![is(0, word, own)?])?;
    Ok(rules)
}

/// The filter of all of this.
///
/// # Errors
/// Nothing is known about system calls of this architecture.
pub(super) fn filter() -> anyhow::Result<BpfProgram> {
    let any = ALLOWED.iter().chain(OLDER).map(|call| (*call, Vec::new()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = any.collect();
    rules.append(&mut conditional()?);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::ENOSYS as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}
