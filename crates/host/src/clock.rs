//! The two clocks.

use zonelab_device::{Device, Modelled, Monotonic, Nanos};

/// What time it is.
pub trait Clock {
    /// The time.
    fn now(&self) -> Nanos;

    /// Whether host code takes time by itself. If not, the reactor charges
    /// modelled costs.
    fn is_real(&self) -> bool;
}

/// A clock under which programs can run on a device of this kind.
pub trait WaitsFor<D: Device>: Clock {
    /// Waits until `until`, or until `device` has something before. Returns
    /// the time then: not earlier than `until` unless the device has something.
    fn wait(&mut self, device: &mut D, until: Nanos) -> Nanos;
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
    fn is_real(&self) -> bool {
        false
    }
}

/// Only models let time jump.
impl<D: Modelled> WaitsFor<D> for VirtualClock {
    #[inline]
    fn wait(&mut self, _device: &mut D, until: Nanos) -> Nanos {
        self.now = self.now.max(until);
        self.now
    }
}

/// The last stretch before a time is spent spinning: a sleeping thread wakes
/// late, by the 50 us that Linux lets timers of ordinary threads be late and the
/// way back to the core.
const SPIN: Nanos = Nanos::from_us(80);

/// The monotonic clock.
#[derive(Debug, Clone)]
pub struct RealClock {
    clock: Monotonic,
}

impl RealClock {
    /// A clock that reads zero now.
    #[must_use]
    pub fn new() -> Self {
        Self::sharing(Monotonic::new())
    }

    /// A clock that shows the time of a device that has one of its own.
    #[must_use]
    pub fn sharing(clock: Monotonic) -> Self {
        Self { clock }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn is_real(&self) -> bool {
        true
    }
}

impl<D: Device> WaitsFor<D> for RealClock {
    fn wait(&mut self, device: &mut D, until: Nanos) -> Nanos {
        loop {
            let now = self.now();
            if now >= until {
                return now;
            }
            let asleep = (until - now).saturating_sub(SPIN);
            if device.wait(asleep) {
                return self.now();
            }
            if asleep == Nanos::ZERO {
                std::hint::spin_loop();
            }
        }
    }
}
