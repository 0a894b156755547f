//! What may take how much of the memory that this process may have.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::memory::Measure;
use crate::exit::Failure;

/// Stack of a thread that nothing else is said of.
const STACK_BYTES: u64 = 2 << 20;
/// Address space that glibc reserves for the memory of a thread that gets some: an arena.
const ARENA_BYTES: u64 = 64 << 20;
/// How many arenas there may be, in glibc.
const ARENAS: &str = "MALLOC_ARENA_MAX";
/// The least that is to be shared out: below, a host's large commands would wait for each other.
const LEAST_BYTES: u64 = 16 << 20;

/// What comes in addition to what is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    /// Most connections.
    pub(super) connections: u32,
    /// What each of them takes.
    pub(super) connection_bytes: u64,
    /// What the map of the layer may grow by.
    pub(super) map_bytes: u64,
    /// Threads that clients of the page and of the control socket can have started, with small
    /// stacks.
    pub(super) client_threads: u64,
}

/// What is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// For all of it.
    whole_bytes: u64,
}

impl Shares {
    /// Data of a drive in memory: half.
    pub(super) const fn data_bytes(self) -> u64 {
        self.whole_bytes / 2
    }

    /// What data of commands is an eighth of.
    pub(super) const fn whole_bytes(self) -> u64 {
        self.whole_bytes
    }

    /// Buffers kept for reuse by each of the two that keep some: a sixteenth, at most 64 MiB.
    pub(super) const fn kept_bytes(self) -> usize {
        let share = self.whole_bytes / 16;
        if share < 64 << 20 {
            share as usize
        } else {
            64 << 20
        }
    }

    /// By what this process may have now; `None`: nothing says how much that is.
    ///
    /// # Errors
    /// It is too little.
    pub(super) fn now(measure: &Measure, beside: Beside) -> Result<Option<Self>, Failure> {
        let arenas = later_arenas(env::var(ARENAS).ok().as_deref(), beside.client_threads);
        let threads = threads_bytes(beside, arenas);
        let left = measure.left_to_reserve_bytes();
        let left = left.map(|left| left.saturating_sub(threads));
        match measure.available_bytes().into_iter().chain(left).min() {
            None => Ok(None),
            Some(available) => Self::of(available, beside).map(Some),
        }
    }

    fn of(available: u64, beside: Beside) -> Result<Self, Failure> {
        let connections = u64::from(beside.connections) * beside.connection_bytes;
        let needed = connections + beside.map_bytes;
        match available.checked_sub(needed) {
            Some(whole_bytes) if whole_bytes >= LEAST_BYTES => Ok(Self { whole_bytes }),
            _ => Err(Failure::environment(anyhow::anyhow!(
                "this process may have {} MiB of memory more, and needs {} MiB with \
                 --max-connections {} of up to {} KiB each (docs/serve.md, Peers): raise its \
                 limit (ulimit -v, MemoryMax=, memory of the container), or take fewer \
                 connections or a lower --queue-depth",
                available >> 20,
                (needed + LEAST_BYTES).div_ceil(1 << 20),
                beside.connections,
                beside.connection_bytes >> 10,
            ))),
        }
    }
}

/// Arenas that threads can have reserved that are still to come, if so many may be.
fn later_arenas(most: Option<&str>, client_threads: u64) -> u64 {
    if !cfg!(target_env = "gnu") {
        return 0;
    }
    let threads = client_threads + 2;
    let others = most.and_then(|most| most.parse::<u64>().ok()?.checked_sub(1));
    others.map_or(threads, |others| others.min(threads))
}

/// Address space of threads that are still to come: those of clients, that of key exchanges,
/// that which says that the server was interrupted.
const fn threads_bytes(beside: Beside, arenas: u64) -> u64 {
    let clients = beside.client_threads * zonelab_live::http::STACK_BYTES as u64;
    2 * STACK_BYTES + clients + arenas * ARENA_BYTES
}

/// Starts this program anew with one arena for all threads, if its address space is limited:
/// each thread would take 64 MiB of that for itself. Returns if there is no such limit, if
/// somebody has said how many arenas there are, or if it cannot be started.
pub(super) fn one_arena(measure: &Measure) {
    if !cfg!(target_env = "gnu")
        || env::var_os(ARENAS).is_some()
        || measure.left_to_reserve_bytes().is_none()
    {
        return;
    }
    let mut own = env::args_os();
    let (Some(name), Ok(program)) = (own.next(), env::current_exe()) else {
        return;
    };
    // Only returns if it failed. Then the arenas are counted.
    let _ = Command::new(program)
        .arg0(name)
        .args(own)
        .env(ARENAS, "1")
        .exec();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_threads_come_before_what_is_shared_out() {
        let mib = 1 << 20;
        let beside = Beside {
            connections: 64,
            connection_bytes: 256 << 10,
            map_bytes: 8 * mib,
            client_threads: 16,
        };
        let shares = Shares::of(88 * mib, beside).unwrap_or_else(|_| panic!("enough"));
        assert_eq!(shares.whole_bytes(), 64 * mib);
        assert_eq!(shares.data_bytes(), 32 * mib);
        assert_eq!(shares.kept_bytes() as u64, 4 * mib);
        let most = Shares::of(1 << 40, beside).unwrap_or_else(|_| panic!("enough"));
        assert_eq!(most.kept_bytes(), 64 << 20);
        assert!(Shares::of(40 * mib, beside).is_ok());
        for available in [0, 40 * mib - 1] {
            let error = Shares::of(available, beside).unwrap_err().error.to_string();
            assert!(
                error.contains("needs 40 MiB with --max-connections 64"),
                "{error}"
            );
        }
        let has_arenas = u64::from(cfg!(target_env = "gnu"));
        for (most, arenas) in [(None, 18), (Some("1"), 0), (Some("3"), 2), (Some("99"), 18)] {
            assert_eq!(later_arenas(most, 16), arenas * has_arenas, "{most:?}");
        }
        assert_eq!(threads_bytes(beside, 2), (4 + 8 + 128) * mib);
    }
}
