//! The two clocks.

use zonelab_device::Nanos;

/// What time it is, and how to wait.
pub trait Clock {
    /// The time.
    fn now(&self) -> Nanos;

    /// Waits until `at`, and returns the time then, which is not earlier.
    fn wait_until(&mut self, at: Nanos) -> Nanos;

    /// Whether host code takes time by itself. If not, the reactor charges
    /// modelled costs.
    fn is_real(&self) -> bool;
}

/// Time that jumps to whatever happens next: hours of drive time in seconds,
/// and the same on every machine.
#[derive(Debug, Default, Clone)]
pub struct VirtualClock {
    now: Nanos,
}

impl VirtualClock {
    /// A clock that reads `now`: a run that goes on where another ended.
    #[must_use]
    pub fn starting_at(now: Nanos) -> Self {
        Self { now }
    }
}

impl Clock for VirtualClock {
    #[inline]
    fn now(&self) -> Nanos {
        self.now
    }

    #[inline]
    fn wait_until(&mut self, at: Nanos) -> Nanos {
        self.now = self.now.max(at);
        self.now
    }

    #[inline]
    fn is_real(&self) -> bool {
        false
    }
}

/// The monotonic clock, from the moment it was made.
#[derive(Debug, Clone)]
pub struct RealClock {
    start: std::time::Instant,
    /// The last stretch before a deadline is spent spinning: a sleeping thread
    /// wakes late by tens of microseconds.
    spin: Nanos,
}

impl RealClock {
    /// A clock that reads zero now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
            spin: Nanos::from_us(200),
        }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn wait_until(&mut self, at: Nanos) -> Nanos {
        loop {
            let now = self.now();
            if now >= at {
                return now;
            }
            let left = at - now;
            if left > self.spin {
                std::thread::park_timeout(std::time::Duration::from_nanos((left - self.spin).0));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn is_real(&self) -> bool {
        true
    }
}
