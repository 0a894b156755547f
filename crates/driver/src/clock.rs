//! The monotonic clock: the only place of this crate that reads it or waits.

use std::time::{Duration, Instant};

use zonelab_device::Nanos;

/// The monotonic clock, from the moment it was made. Copies show the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Monotonic {
    start: Instant,
}

impl Monotonic {
    #[expect(clippy::disallowed_methods, reason = "this is a shell's clock")]
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for `span`, whatever wakes the thread early.
    pub(crate) fn sleep(&self, span: Nanos) {
        let end = self.now().saturating_add(span);
        loop {
            let left = end.saturating_sub(self.now());
            if left == Nanos::ZERO {
                return;
            }
            std::thread::park_timeout(Duration::from_nanos(left.0));
        }
    }
}
