//! The monotonic clock.

use std::time::Instant;

use crate::Nanos;

/// The monotonic clock, from the moment it was made. Copies show the same time.
///
/// A queue pair in real time stamps completions and keeps deadlines; a reactor
/// wakes jobs. They share one of these, or their times would differ.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    start: Instant,
}

impl Monotonic {
    /// A clock that reads zero now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever makes one has decided for real time"
    )]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}
