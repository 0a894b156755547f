//! How much of the drive a host may use: operations and bytes per second.
//!
//! A rate is a virtual clock (the generic cell rate algorithm): each command puts it
//! ahead by the time that the command takes at the rate, and the next one may go once
//! the clock is no more than [`BURST`] ahead of the time. All of it is in whole
//! nanoseconds, rounded up: a host never gets more than its rate, and the same commands
//! at the same times go at the same times.

use core::num::NonZeroU64;

use zonelab_device::Nanos;

/// What a host may save up while it asks for nothing, as time at its rate.
pub const BURST: Nanos = Nanos::from_ms(10);
const NS_PER_S: u128 = 1_000_000_000;

/// Most that a host gets of the drive, over all its controllers and queues.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// I/O commands per second; `None`: no bound.
    pub operations_per_s: Option<NonZeroU64>,
    /// Bytes per second that I/O commands move or are about; `None`: no bound.
    pub bytes_per_s: Option<NonZeroU64>,
}

/// What a command counts as.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) operations: u64,
    pub(super) bytes: u64,
}

/// What a host has used of its rates.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    quality: Quality,
    /// When what it had so far would be over at its rates.
    operations_until: Nanos,
    bytes_until: Nanos,
}

impl Meter {
    pub(super) const fn new(quality: Quality) -> Self {
        Self {
            quality,
            operations_until: Nanos::ZERO,
            bytes_until: Nanos::ZERO,
        }
    }

    /// The same use with other rates from now on.
    pub(super) const fn with(self, quality: Quality) -> Self {
        Self { quality, ..self }
    }

    /// When the next command may go.
    #[inline]
    pub(super) fn ready_at(&self) -> Nanos {
        self.operations_until
            .max(self.bytes_until)
            .saturating_sub(BURST)
    }

    /// A command goes.
    #[inline]
    pub(super) fn take(&mut self, now: Nanos, cost: Cost) {
        let Quality {
            operations_per_s,
            bytes_per_s,
        } = self.quality;
        self.operations_until = after(
            self.operations_until,
            now,
            cost.operations,
            operations_per_s,
        );
        self.bytes_until = after(self.bytes_until, now, cost.bytes, bytes_per_s);
    }
}

/// Where a clock is after `amount` more.
fn after(until: Nanos, now: Nanos, amount: u64, per_s: Option<NonZeroU64>) -> Nanos {
    let Some(per_s) = per_s else {
        return Nanos::ZERO;
    };
    let took_ns = (u128::from(amount) * NS_PER_S).div_ceil(per_s.get().into());
    let took = Nanos(u64::try_from(took_ns).unwrap_or(u64::MAX));
    until.max(now).saturating_add(took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_host_never_gets_more_than_its_rate(
            per_s in 1_u64..2_000_000,
            commands in prop::collection::vec((0_u64..3_000_000, 1_u64..64), 1..200),
        ) {
            let quality = Quality {
                operations_per_s: NonZeroU64::new(per_s),
                bytes_per_s: None,
            };
            let mut meter = Meter::new(quality);
            let (mut now, mut went) = (Nanos::ZERO, Vec::new());
            for (pause_ns, operations) in commands {
                now = now.saturating_add(Nanos(pause_ns)).max(meter.ready_at());
                meter.take(now, Cost { operations, bytes: 0 });
                went.push((now, operations));
            }
            // Between any two commands: the rate over that time and the burst, and the last.
            for (at, first) in went.iter().enumerate() {
                let mut sum = 0;
                for (last, operations) in &went[at..] {
                    let window_ns = u128::from(last.0 - first.0.0 + BURST.0);
                    prop_assert!(u128::from(sum) * NS_PER_S <= u128::from(per_s) * window_ns);
                    sum += *operations;
                }
            }
        }
    }

    #[test]
    fn rates_that_are_reached_are_kept() {
        let quality = Quality {
            operations_per_s: NonZeroU64::new(1000),
            bytes_per_s: NonZeroU64::new(4096 * 500),
        };
        let mut meter = Meter::new(quality);
        let mut now = Nanos::ZERO;
        let cost = Cost {
            operations: 1,
            bytes: 4096,
        };
        for _ in 0..500 {
            now = now.max(meter.ready_at());
            meter.take(now, cost);
        }
        // The bytes are the tighter bound: 500 commands take a second less the burst.
        assert_eq!(now, Nanos::from_ms(1000 - 2) - BURST);
    }
}
