//! Storage stacks of a host: what lies between a program and a drive, as costs.
//!
//! A stack matters to a drive only through when commands arrive, so a stack is
//! a set of times ([`HostCosts`], [`BlockCosts`](crate::BlockCosts)). The drives
//! that have been calibrated here were fitted with SPDK as a host that takes
//! nothing; the others stand relative to it.
//!
//! The figures are those of the measurement papers on a ZN540. They belong to
//! the papers' hosts as much as to the interfaces: the same interface costs
//! 1.3 us on one of them and 4.2 us on another. Experiments that know better
//! state their own.

use zonelab_device::Nanos;

use crate::costs::HostCosts;

/// A storage stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name in experiment files.
    pub name: &'static str,
    /// What an operation costs.
    pub costs: HostCosts,
    /// What a command of several merged requests costs more
    /// ([`BlockCosts::merged_ns`](crate::BlockCosts)).
    pub merged_ns: Nanos,
    /// Tick of its timers ([`BlockCosts::tick_ns`](crate::BlockCosts)).
    pub tick_ns: Nanos,
    /// How much longer a sleep is than asked for.
    pub sleep_slack_ns: Nanos,
    /// Where the figures are from.
    pub source: &'static str,
}

/// The stacks that are known by name.
pub const STACKS: [Stack; 8] = [
    Stack::user_space("spdk", "the reference that drives are calibrated with"),
    Stack::user_space(
        "vroom",
        "ZNS in a user-space driver, section 5.2.2: no difference from SPDK",
    ),
    Stack::kernel(
        "io_uring-sqpoll",
        [300, 660, 300],
        "ZN540 characterisation (CLUSTER'23), observation 2: 12.62 us where SPDK has 11.36, \
         with a polling thread in the kernel, fixed buffers and registered files",
    ),
    Stack::kernel(
        "io_uring-passthrough",
        [700, 2_800, 700],
        "ConfZNS++ (SYSTOR'24): 8 KiB writes take 15.4 us where SPDK has 11.2, reads 4 us more; \
         one job reaches 294 K reads/s",
    ),
    Stack::kernel(
        "io_uring",
        [4_000, 0, 6_000],
        "ZNS in a user-space driver, section 5.2.2: about 10 us more than SPDK, for the \
         system call and the interrupt; how they share it is not published",
    ),
    Stack::kernel(
        "libaio",
        [4_000, 0, 6_000],
        "as io_uring: the thesis finds the same offset",
    ),
    Stack::kernel(
        "psync",
        [4_000, 0, 6_000],
        "as io_uring; a thread that waits has one operation in flight",
    ),
    Stack::kernel(
        "ioctl",
        [5_000, 0, 14_600],
        "ConfZNS++ (SYSTOR'24), softfinish alone by blocking passthrough: writes of 8 and 16 KiB \
         take 31.0 and 35.7 us where SPDK has 11.2 and 16.3",
    ),
];

impl Stack {
    /// The stack of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        STACKS.iter().find(|stack| stack.name == name)
    }

    const fn user_space(name: &'static str, source: &'static str) -> Self {
        Self {
            name,
            costs: HostCosts::FREE,
            merged_ns: Nanos::ZERO,
            tick_ns: Nanos::ZERO,
            sleep_slack_ns: Nanos::ZERO,
            source,
        }
    }

    /// A stack in a kernel that counts 250 ticks a second, on the way to whose
    /// device a command takes these times in nanoseconds: to submit, on its
    /// way, to complete.
    const fn kernel(
        name: &'static str,
        [submit, path, complete]: [u64; 3],
        source: &'static str,
    ) -> Self {
        Self {
            name,
            costs: HostCosts {
                submit_ns: Nanos(submit),
                path_ns: Nanos(path),
                complete_ns: Nanos(complete),
                ..HostCosts::FREE
            },
            merged_ns: Nanos(MERGED_NS),
            tick_ns: Nanos::from_ms(4),
            sleep_slack_ns: Nanos(SLEEP_SLACK_NS),
            source,
        }
    }
}

/// Writes of 4 KiB that mq-deadline merges, CLUSTER'23 figure 4a: 8 in flight
/// take 26.3 us for each command of 16 KiB on average, 10 us more than SPDK.
const MERGED_NS: u64 = 8_000;

/// A sleep of 50 us takes 107 us (ConfZNS++, softfinish with pauses, alone:
/// 137.9 us for each 8 KiB write against 31.0 without). Linux lets timers of
/// ordinary threads be up to 50 us late; the rest is the way back to the core.
const SLEEP_SLACK_NS: u64 = 57_000;
