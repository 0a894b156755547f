//! When a direction of a job may issue its next operation.

use std::num::NonZeroU64;

use zonelab_device::Nanos;

use super::Flow;
use crate::rate::{Counting, Limit, Limiter};
use crate::rng::Rng;

/// The limits of one direction.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    bytes: Option<Limiter>,
    ops: Option<Limiter>,
    poisson: Option<Poisson>,
}

/// Arrivals at random times.
#[derive(Clone, Debug)]
struct Poisson {
    mean: Nanos,
    next: Nanos,
}

impl Pace {
    /// The limits of `flow`, whose operations count as `counting` says and are
    /// of `bytes` on average.
    pub(super) fn new(flow: &Flow, counting: Counting, bytes: u64) -> Self {
        let of_bytes = flow.bytes_per_second;
        let of_ops = flow.ops_per_second;
        let poisson = flow.poisson.then(|| Poisson::new(of_bytes, of_ops, bytes));
        if let Some(Some(poisson)) = poisson {
            return Self {
                bytes: None,
                ops: None,
                poisson: Some(poisson),
            };
        }
        Self {
            bytes: of_bytes.map(|rate| Limiter::new(Limit::bytes_per_second(rate), counting)),
            ops: of_ops.map(|rate| Limiter::new(Limit::ops_per_second(rate), counting)),
            poisson: None,
        }
    }

    /// From when on the next operation may be issued; in the past if it may at once.
    #[inline]
    pub(super) fn ready_at(&self) -> Nanos {
        let of =
            |limiter: &Option<Limiter>| limiter.as_ref().map_or(Nanos::ZERO, Limiter::ready_at);
        let poisson = self.poisson.as_ref().map_or(Nanos::ZERO, |p| p.next);
        of(&self.bytes).max(of(&self.ops)).max(poisson)
    }

    #[inline]
    pub(super) fn issued(&mut self, now: Nanos, bytes: u64, rng: &mut Rng) {
        for limiter in [&mut self.bytes, &mut self.ops].into_iter().flatten() {
            limiter.issued(now, bytes);
        }
        if let Some(poisson) = &mut self.poisson {
            // Arrivals do not wait for one another: who is late catches up.
            let from = if poisson.next == Nanos::ZERO {
                now
            } else {
                poisson.next
            };
            poisson.next = from.saturating_add(rng.exponential(poisson.mean));
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, bytes: u64) {
        for limiter in [&mut self.bytes, &mut self.ops].into_iter().flatten() {
            limiter.completed(bytes);
        }
    }
}

impl Poisson {
    /// `None` without a limit.
    fn new(bytes: Option<NonZeroU64>, ops: Option<NonZeroU64>, size: u64) -> Option<Self> {
        const SECOND: u128 = 1_000_000_000;
        let by_ops = ops.map(|rate| SECOND / u128::from(rate.get()));
        let by_bytes = bytes.map(|rate| u128::from(size) * SECOND / u128::from(rate.get()));
        let mean = by_ops.max(by_bytes)?;
        Some(Self {
            mean: Nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            next: Nanos::ZERO,
        })
    }
}
