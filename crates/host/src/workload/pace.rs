//! When a job may issue its next operation: limits of all its operations
//! together, and of each direction.

use zonelab_device::Nanos;

use super::directed::{Direction, Flow};
use super::{JobSpec, Work};
use crate::rate::{Counting, Limit, Limiter};
use crate::rng::Rng;
use crate::stats::OpKind;

/// The limits of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// Of all operations together.
    all: Option<Pace>,
    /// By [`Direction`].
    directions: [Option<Pace>; 3],
    /// There is any.
    pub(super) exist: bool,
}

impl Rates {
    /// The limits of `spec`, on a device with logical blocks of `lba_bytes`.
    pub(super) fn new(spec: &JobSpec, lba_bytes: u64) -> Self {
        let finishes = match &spec.work {
            Work::Finish { .. } => true,
            Work::Directed(work) => {
                matches!(work.managing(), Some((OpKind::Finish, _)))
            }
            _ => false,
        };
        let counting = spec.counting.unwrap_or(if finishes {
            Counting::AtCompletion
        } else {
            Counting::AtIssue
        });
        let all = spec.rate.map(|limit| Pace::within(limit, counting));
        let directions = Direction::ALL.map(|direction| match &spec.work {
            Work::Directed(work) => Pace::of(work.flow(direction)?, counting, lba_bytes),
            _ => None,
        });
        Self {
            exist: all.is_some() || directions.iter().any(Option::is_some),
            all,
            directions,
        }
    }

    /// From when on the next operation in `direction` may be issued; in the past
    /// if it may at once.
    #[inline]
    pub(super) fn ready_at(&self, direction: Direction) -> Nanos {
        let of = |pace: &Option<Pace>| pace.as_ref().map_or(Nanos::ZERO, Pace::ready_at);
        of(&self.all).max(of(&self.directions[direction as usize]))
    }

    /// Notes that an operation was issued.
    #[inline]
    pub(super) fn issued(&mut self, direction: Direction, now: Nanos, bytes: u64, rng: &mut Rng) {
        if self.exist {
            let paces = [&mut self.all, &mut self.directions[direction as usize]];
            for pace in paces.into_iter().flatten() {
                pace.issued(now, bytes, rng);
            }
        }
    }

    /// Notes that an operation has completed.
    #[inline]
    pub(super) fn completed(&mut self, direction: Direction, bytes: u64) {
        if self.exist {
            let paces = [&mut self.all, &mut self.directions[direction as usize]];
            for pace in paces.into_iter().flatten() {
                pace.completed(bytes);
            }
        }
    }
}

/// The limits of one direction, or of the whole.
#[derive(Clone, Debug)]
struct Pace {
    limiters: [Option<Limiter>; 2],
    poisson: Option<Poisson>,
}

/// Arrivals at random times.
#[derive(Clone, Debug)]
struct Poisson {
    mean: Nanos,
    next: Nanos,
}

impl Pace {
    /// One limit.
    const fn within(limit: Limit, counting: Counting) -> Self {
        Self {
            limiters: [Some(Limiter::new(limit, counting)), None],
            poisson: None,
        }
    }

    /// The limits of `flow`, whose operations count as `counting` says; `None`
    /// if it has none.
    fn of(flow: &Flow, counting: Counting, lba_bytes: u64) -> Option<Self> {
        if flow.poisson {
            let (mean, next) = (flow.period(lba_bytes)?, Nanos::ZERO);
            return Some(Self {
                limiters: [None, None],
                poisson: Some(Poisson { mean, next }),
            });
        }
        let limits = [
            flow.bytes_per_second.map(Limit::bytes_per_second),
            flow.ops_per_second.map(Limit::ops_per_second),
        ];
        let limiters = limits.map(|limit| Some(Limiter::new(limit?, counting)));
        limiters.iter().any(Option::is_some).then_some(Self {
            limiters,
            poisson: None,
        })
    }

    #[inline]
    fn ready_at(&self) -> Nanos {
        let [a, b] = &self.limiters;
        let of =
            |limiter: &Option<Limiter>| limiter.as_ref().map_or(Nanos::ZERO, Limiter::ready_at);
        let poisson = self.poisson.as_ref().map_or(Nanos::ZERO, |p| p.next);
        of(a).max(of(b)).max(poisson)
    }

    #[inline]
    fn issued(&mut self, now: Nanos, bytes: u64, rng: &mut Rng) {
        for limiter in self.limiters.iter_mut().flatten() {
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
    fn completed(&mut self, bytes: u64) {
        for limiter in self.limiters.iter_mut().flatten() {
            limiter.completed(bytes);
        }
    }
}
