//! The monotonic clock.

use std::time::Instant;

use zonelab_device::Nanos;

/// Time since it was made.
#[derive(Copy, Clone, Debug)]
pub(super) struct Monotonic {
    start: Instant,
}

impl Monotonic {
    /// A clock that reads zero now.
    #[expect(
        clippy::disallowed_methods,
        reason = "a server is a shell: this is the one place of the crate that reads the clock"
    )]
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(super) fn now(self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
