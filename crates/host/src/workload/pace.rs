//! When a job may issue its next operation: limits of all its operations
//! together, and of each direction.

use zonelab_device::Nanos;

use super::directed::{Direction, Flow};
use super::{Arrival, JobSpec, Work};
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
    /// Operations are due at times of their own, whenever they can be issued.
    pub(super) is_open: bool,
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
        let all = spec.rate.map(|limit| match spec.arrival {
            Arrival::Closed => Pace::within(limit, counting),
            Arrival::Fixed => Pace::within(limit, Counting::AtIssue),
            Arrival::Poisson => Pace::at_random(Gap::At(limit)),
        });
        let directions = Direction::ALL.map(|direction| match &spec.work {
            Work::Directed(work) => Pace::of(work.limits(direction)?, counting, lba_bytes),
            _ => None,
        });
        Self {
            exist: all.is_some() || directions.iter().any(Option::is_some),
            is_open: all.is_some() && spec.arrival.is_open(),
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

    /// When the operation that is issued `now` was due: now, unless operations have times of
    /// their own.
    #[inline]
    pub(super) fn due(&self, now: Nanos) -> Nanos {
        match &self.all {
            // The first is due when the job is ready for it.
            Some(pace) if self.is_open && pace.ready_at() > Nanos::ZERO => pace.ready_at().min(now),
            _ => now,
        }
    }

    /// Whether operations that were due before `at` are still to be issued.
    #[inline]
    pub(super) fn is_behind(&self, at: Nanos) -> bool {
        let next = self.all.as_ref().map_or(Nanos::ZERO, Pace::ready_at);
        self.is_open && next < at
    }

    /// For how long an operation that was not issued has been due at `at`; zero: none has.
    pub(super) fn behind(&self, at: Nanos) -> Nanos {
        match &self.all {
            Some(pace) if self.is_open => at.saturating_sub(pace.ready_at()),
            _ => Nanos::ZERO,
        }
    }

    /// Notes that an operation was issued.
    #[inline]
    pub(super) fn issued(&mut self, direction: Direction, now: Nanos, bytes: u64, rng: &mut Rng) {
        if self.exist {
            self.issued_within(direction, now, bytes, rng);
        }
    }

    fn issued_within(&mut self, direction: Direction, now: Nanos, bytes: u64, rng: &mut Rng) {
        let paces = [&mut self.all, &mut self.directions[direction as usize]];
        for pace in paces.into_iter().flatten() {
            pace.issued(now, bytes, rng);
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
    gap: Gap,
    next: Nanos,
}

/// The mean time between two arrivals.
#[derive(Clone, Copy, Debug)]
enum Gap {
    /// The same, whatever the size of an operation.
    Of(Nanos),
    /// The time that the operation takes at a limit.
    At(Limit),
}

impl Pace {
    /// One limit.
    const fn within(limit: Limit, counting: Counting) -> Self {
        Self {
            limiters: [Some(Limiter::new(limit, counting)), None],
            poisson: None,
        }
    }

    /// Arrivals at random times.
    const fn at_random(gap: Gap) -> Self {
        Self {
            limiters: [None, None],
            poisson: Some(Poisson {
                gap,
                next: Nanos::ZERO,
            }),
        }
    }

    /// The limits of `flow`, whose operations count as `counting` says; `None`
    /// if it has none.
    fn of(flow: &Flow, counting: Counting, lba_bytes: u64) -> Option<Self> {
        if flow.poisson {
            return Some(Self::at_random(Gap::Of(flow.period(lba_bytes)?)));
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
            let mean = match poisson.gap {
                Gap::Of(mean) => mean,
                Gap::At(limit) => limit.period(bytes),
            };
            poisson.next = from.saturating_add(rng.exponential(mean));
        }
    }

    #[inline]
    fn completed(&mut self, bytes: u64) {
        for limiter in self.limiters.iter_mut().flatten() {
            limiter.completed(bytes);
        }
    }
}
