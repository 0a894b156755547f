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
    /// Commands per second, of I/O and of administration; `None`: no bound.
    pub operations_per_s: Option<NonZeroU64>,
    /// Bytes per second that commands move or are about; `None`: no bound.
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

    /// The same use with other rates from now on. What is still to be waited for becomes
    /// what the same commands take at the new rates: after the correction of a rate that was
    /// far too low, a host need not wait by the wrong one.
    pub(super) fn with(self, now: Nanos, quality: Quality) -> Self {
        let (old, new) = (self.quality, quality);
        let operations = (old.operations_per_s, new.operations_per_s);
        let bytes = (old.bytes_per_s, new.bytes_per_s);
        Self {
            quality,
            operations_until: rescaled(self.operations_until, now, operations),
            bytes_until: rescaled(self.bytes_until, now, bytes),
        }
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

/// Where a clock is once it goes at the second rate instead of the first.
fn rescaled(until: Nanos, now: Nanos, rates: (Option<NonZeroU64>, Option<NonZeroU64>)) -> Nanos {
    let (Some(old), Some(new)) = rates else {
        return Nanos::ZERO;
    };
    let debt_ns = u128::from(until.saturating_sub(now).0);
    // Fits: both factors have 64 bits.
    let debt_ns = (debt_ns * u128::from(old.get())).div_ceil(new.get().into());
    now.saturating_add(Nanos(u64::try_from(debt_ns).unwrap_or(u64::MAX)))
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
    fn what_is_to_be_waited_for_follows_the_rate() {
        let rate = |per_s| Quality {
            operations_per_s: NonZeroU64::new(per_s),
            bytes_per_s: None,
        };
        let mut meter = Meter::new(rate(1));
        let now = Nanos::from_secs(5);
        let cost = Cost {
            operations: 3,
            bytes: 1 << 20,
        };
        meter.take(now, cost);
        let left = |meter: Meter| meter.ready_at().saturating_sub(now - BURST);
        assert_eq!(left(meter.clone()), Nanos::from_secs(3));
        // A second later two operations are still owed.
        let later = Nanos::from_secs(6);
        let faster = meter.clone().with(later, rate(1000));
        assert_eq!(faster.ready_at(), later + Nanos::from_ms(2) - BURST);
        let slower = faster.with(later, rate(1));
        assert_eq!(slower.ready_at(), later + Nanos::from_secs(2) - BURST);
        // Without a rate nothing is owed, and what was before it gave none is not either.
        let free = meter.with(later, Quality::default());
        assert!(free.ready_at() <= later);
        assert!(free.with(later, rate(1)).ready_at() <= later);
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
