//! What time an endpoint thinks it is.

use std::cell::Cell;

use zonelab_device::{Monotonic, Nanos};

/// The clock of an endpoint.
#[derive(Debug)]
pub(crate) enum Clock {
    /// It stands at what the endpoint was told.
    Virtual(Cell<Nanos>),
    /// It goes by itself.
    Real(Monotonic),
}

impl Clock {
    pub(crate) fn now(&self) -> Nanos {
        match self {
            Self::Virtual(now) => now.get(),
            Self::Real(clock) => clock.now(),
        }
    }

    /// It is `now`, or later.
    pub(crate) fn reach(&self, now: Nanos) {
        if let Self::Virtual(at) = self {
            at.set(at.get().max(now));
        }
    }
}
