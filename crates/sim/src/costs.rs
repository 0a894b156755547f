//! What host code costs on its way to an emulated drive and back.

use zonelab_device::{Completion, Nanos};
use zonelab_host::Rng;

/// What it costs a host to use a queue pair: occupancy of the job's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// Core time from the job's decision to the drive's doorbell.
    pub submit_ns: Nanos,
    /// Time that a command is on its way between the doorbell and the drive: in
    /// a kernel thread with a core of its own, say. It occupies nothing.
    pub path_ns: Nanos,
    /// Core time to take a completion off the queue and hand it to the job.
    pub complete_ns: Nanos,
    /// Core time of the program between the completions that it takes at a time and its next
    /// submission: the accounts that it keeps, and a turn of its loop. It is in no latency, and
    /// with one operation in flight in every cycle.
    pub turn_ns: Nanos,
    /// Mean of an exponentially distributed addition to submissions and completions.
    pub jitter_ns: Nanos,
    /// One submission or completion in so many finds its core taken away.
    pub hiccup_one_in: u64,
    /// Mean of the exponentially distributed time for which the core is taken away.
    pub hiccup_ns: Nanos,
}

impl HostCosts {
    /// A host that takes no time.
    pub const FREE: Self = Self {
        submit_ns: Nanos::ZERO,
        path_ns: Nanos::ZERO,
        complete_ns: Nanos::ZERO,
        turn_ns: Nanos::ZERO,
        jitter_ns: Nanos::ZERO,
        hiccup_one_in: 0,
        hiccup_ns: Nanos::ZERO,
    };

    #[inline]
    pub(crate) fn draw(&self, base: Nanos, rng: &mut Rng) -> Nanos {
        let mut cost = base;
        if self.jitter_ns > Nanos::ZERO {
            cost += rng.exponential(self.jitter_ns);
        }
        if self.hiccup_one_in > 0 && rng.below(self.hiccup_one_in) == 0 {
            cost += rng.exponential(self.hiccup_ns);
        }
        cost
    }

    /// Takes completions off a queue, one after another, from `now` on. Each counts from when
    /// it has been taken. Returns when the core can go on with something else.
    #[inline]
    pub(crate) fn take(&self, now: Nanos, done: &mut [Completion], rng: &mut Rng) -> Nanos {
        let mut core_now = now;
        for completion in &mut *done {
            core_now += self.draw(self.complete_ns, rng);
            completion.at = core_now;
        }
        match done.is_empty() {
            true => core_now,
            false => core_now + self.turn_ns,
        }
    }
}

/// What a block layer costs the host, beyond what the queues of its programs do.
///
/// A request takes its time under the lock of the scheduler before it is
/// inserted, one after another, and goes on from there if it may. A command that
/// had to wait takes that time again when something else lets it go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCosts {
    /// Time under the lock.
    pub dispatch_ns: Nanos,
    /// Time that a command of several requests takes more: the list of its
    /// pieces in memory must be built and mapped.
    pub merged_ns: Nanos,
    /// Length of a tick of the kernel's timers, 4 ms where it counts 250 a
    /// second. A timer rings at the first tick after its time, never at it.
    /// Zero: timers are exact.
    pub tick_ns: Nanos,
}

impl BlockCosts {
    /// When a timer that is set for `at` rings.
    #[inline]
    #[must_use]
    pub fn rings_at(&self, at: Nanos) -> Nanos {
        match self.tick_ns {
            Nanos::ZERO => at,
            tick => Nanos((at.0 / tick.0 + 1).saturating_mul(tick.0)),
        }
    }
}
