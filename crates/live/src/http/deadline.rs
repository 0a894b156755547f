//! Time limits.

use std::time::{Duration, Instant};

/// A point in time by which something must be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// After `time` from now.
    #[expect(
        clippy::disallowed_methods,
        reason = "a peer on a socket is held to real time: this is the one place of the crate"
    )]
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Time that is left; `None`: it is over. Never zero, which for a socket
    /// means no limit.
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub(crate) fn left(self) -> Option<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}
