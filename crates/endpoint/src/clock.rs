//! What time an endpoint thinks it is.

use std::sync::atomic::{AtomicU64, Ordering};

use zonelab_device::{Monotonic, Nanos};

/// The clock of an endpoint.
#[derive(Debug)]
pub(crate) enum Clock {
    /// It stands at what the endpoint was told.
    Virtual(AtomicU64),
    /// It goes by itself.
    Real(Monotonic),
}

impl Clock {
    pub(crate) fn now(&self) -> Nanos {
        match self {
            Self::Virtual(now) => Nanos(now.load(Ordering::Relaxed)),
            Self::Real(clock) => clock.now(),
        }
    }

    /// It is `now`, or later.
    pub(crate) fn reach(&self, now: Nanos) {
        if let Self::Virtual(at) = self {
            at.fetch_max(now.0, Ordering::Relaxed);
        }
    }
}
