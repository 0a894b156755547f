//! What a job wants to do next: a direction, and how much.

use zonelab_device::Nanos;

use crate::rng::Rng;
use crate::workload::directed::{DirectedWork, Direction};
use crate::workload::pace::Rates;

/// An operation without its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) direction: Direction,
    pub(super) lbas: u32,
}

/// The next wish of a job: once drawn, it stays until it is granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    next: Option<Wish>,
    /// The only wish that the job ever has.
    only: Option<Wish>,
}

impl Wishes {
    /// Those of a job that does this work.
    pub(super) fn of_work(work: &DirectedWork) -> Self {
        let one_size = |direction| {
            let sizes = &work.flow(direction)?.sizes;
            let lbas = sizes.min;
            (sizes.min == sizes.max).then_some(Wish { direction, lbas })
        };
        let reads = work.flow(Direction::Read).is_some();
        let writes = work.flow(Direction::Write).is_some();
        Self {
            next: None,
            only: match (reads, writes) {
                (true, false) => one_size(Direction::Read),
                (false, true) => one_size(Direction::Write),
                _ => None,
            },
        }
    }

    /// Direction and size of the next operation.
    #[inline]
    pub(super) fn next(&mut self, work: &DirectedWork, rng: &mut Rng) -> Wish {
        match self.only {
            Some(wish) => wish,
            None => self.drawn(work, rng),
        }
    }

    fn drawn(&mut self, work: &DirectedWork, rng: &mut Rng) -> Wish {
        if let Some(wish) = self.next {
            return wish;
        }
        let reads = work.flow(Direction::Read).is_some();
        let writes = work.flow(Direction::Write).is_some();
        let direction = match (reads, writes) {
            (true, true) if rng.below(100) < u64::from(work.read_percent) => Direction::Read,
            (true, false) => Direction::Read,
            (false, false) => Direction::Trim,
            _ => Direction::Write,
        };
        self.of(direction, work, rng)
    }

    /// A wish of this direction takes the place of what there was.
    pub(super) fn of(&mut self, direction: Direction, work: &DirectedWork, rng: &mut Rng) -> Wish {
        let flow = work.flow(direction);
        let lbas = flow.map_or(1, |flow| flow.sizes.draw(rng));
        *self.next.insert(Wish { direction, lbas })
    }

    /// It has been granted.
    #[inline]
    pub(super) const fn granted(&mut self) {
        self.next = None;
    }

    /// When the wish may go ahead; one of the other direction takes its place
    /// if that may go ahead now.
    pub(super) fn ready_at(
        &mut self,
        work: &DirectedWork,
        rates: &Rates,
        now: Nanos,
        rng: &mut Rng,
    ) -> Nanos {
        let wish = self.next(work, rng);
        let ready = rates.ready_at(wish.direction);
        if ready <= now {
            return ready;
        }
        let other = match wish.direction {
            Direction::Read => Direction::Write,
            Direction::Write | Direction::Trim => Direction::Read,
        };
        if work.flow(other).is_none() {
            return ready;
        }
        let at = rates.ready_at(other);
        if at > now {
            return ready.min(at);
        }
        self.of(other, work, rng);
        at
    }
}
