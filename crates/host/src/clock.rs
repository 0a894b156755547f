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
        // Compared as numbers: whoever compiles this need not optimise it.
        if until.0 > self.now.0 {
            self.now = until;
        }
        self.now
    }
}

/// The last stretch before a time is spent spinning: a sleeping thread wakes
/// late, by the 50 us that Linux lets timers of ordinary threads be late and the
/// way back to the core.
const SPIN: Nanos = Nanos::from_us(80);

/// How long a thread looks whether its device has something before it sleeps: a
/// wake-up takes as long as a short command, and this much of it is saved.
const LOOK: Nanos = Nanos::from_us(50);

/// Waits in vain after which a thread does not look first any more, but once in
/// [`LOOK_AGAIN`] waits: its commands take longer, or whoever would answer needs
/// this core.
const IN_VAIN: u32 = 8;

/// Of so many waits one looks first, to see whether that has become worth it.
const LOOK_AGAIN: u32 = 64;

/// The monotonic clock.
#[derive(Debug, Clone)]
pub struct RealClock {
    clock: Monotonic,
    /// Looks in a row after which it slept all the same.
    in_vain: u32,
    /// Waits since the last look.
    waits: u32,
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
        Self {
            clock,
            in_vain: 0,
            waits: 0,
        }
    }

    /// Whether a wait begins with a look of [`LOOK`].
    fn looks_first(&mut self) -> bool {
        self.waits += 1;
        let looks = self.in_vain < IN_VAIN || self.waits >= LOOK_AGAIN;
        if looks {
            self.waits = 0;
        }
        looks
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
        let mut now = self.now();
        if now < until && self.looks_first() {
            let looked = until.min(now.saturating_add(LOOK));
            while now < looked {
                if device.wait(Nanos::ZERO) {
                    self.in_vain = 0;
                    return self.now();
                }
                std::hint::spin_loop();
                now = self.now();
            }
            self.in_vain = self.in_vain.saturating_add(1);
        }
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
