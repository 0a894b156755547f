//! Reads, writes and trims of blocks that have no write pointers.
//!
//! Places follow fio's rules for `zonemode=none` and `zonemode=strided`: in order
//! from where the last operation of the direction ended, or drawn, without
//! repetition as long as anything is left of the range.

use std::collections::VecDeque;

use zonelab_device::{Lba, Nanos, Op};

use super::free_blocks::FreeBlocks;
use super::wishes::{Wish, Wishes};
use super::{Offer, Role, Sent, Step};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::blocks::BlockRange;
use crate::workload::directed::{DirectedWork, Direction, Pattern};
use crate::workload::distribution::{Distribution, Positions};
use crate::workload::pace::Rates;
use crate::workload::zone_table::SharedZones;

/// Blocks from the start of the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    at: u64,
    lbas: u32,
}

/// Chooses the places of a job on blocks.
pub(crate) struct Blocks {
    work: DirectedWork,
    range: BlockRange,
    /// Where the end of the job is told to those that share zones.
    table: Option<SharedZones>,
    wishes: Wishes,
    /// By direction, in units of its smallest size.
    positions: [Option<Positions>; 3],
    /// What is left of the range, in blocks of `unit`.
    left: Option<FreeBlocks>,
    /// The smallest size of all directions.
    unit: u64,
    /// By direction, the last operation.
    last: [Span; 3],
    /// By direction: operations that still follow the last random one.
    in_a_row_left: [u32; 3],
    /// Blocks that were transferred in this pass.
    of_pass: u64,
    /// Passes that have begun.
    passes: u64,
    /// With a stride: where the part begins, and what was transferred in it.
    part: (u64, u64),
    /// The blocks of the last trim that was offered.
    trim: Span,
    /// Trims before writes that are on their way, by stream.
    trimming: Vec<Option<Span>>,
    /// Blocks that have been trimmed and are to be written.
    trimmed: VecDeque<Span>,
}

impl Blocks {
    pub(super) fn new(work: DirectedWork, range: BlockRange, table: Option<SharedZones>) -> Self {
        let sizes = |direction| Some(u64::from(work.flow(direction)?.sizes.min.max(1)));
        let unit = Direction::ALL.into_iter().filter_map(sizes).min();
        let unit = unit.unwrap_or(1);
        // A part may be said to be larger than the namespace.
        let most = range.namespace_lbas - range.first;
        let of_part = range.stride.map(|stride| stride.range_lbas.min(most));
        let drawn_lbas = of_part.unwrap_or(range.lbas);
        let distribution = match &work.pattern {
            Pattern::Random { distribution, .. } => Some(distribution),
            Pattern::Sequential => None,
        };
        let positions = Direction::ALL.map(|direction| {
            let blocks = drawn_lbas / sizes(direction)?;
            Some(Positions::new(distribution?, blocks.max(1)))
        });
        let has_map = range.has_map && distribution == Some(&Distribution::Uniform);
        Self {
            range,
            table,
            wishes: Wishes::of_work(&work),
            positions,
            left: has_map.then(|| FreeBlocks::new(drawn_lbas / unit)),
            unit,
            last: [Span::default(); 3],
            in_a_row_left: [0; 3],
            of_pass: 0,
            passes: 1,
            part: (0, 0),
            trim: Span::default(),
            trimming: Vec::new(),
            trimmed: VecDeque::new(),
            work,
        }
    }

    pub(super) fn ready_at(&mut self, rates: &Rates, now: Nanos, rng: &mut Rng) -> Nanos {
        match (self.work.trims_first(), self.trimmed.is_empty()) {
            (true, true) => rates.ready_at(Direction::Trim),
            (true, false) => rates.ready_at(Direction::Write),
            (false, _) => self.wishes.ready_at(&self.work, rates, now, rng),
        }
    }

    pub(super) fn offer(&mut self, rng: &mut Rng) -> Offer {
        if let Some(span) = self.trimmed.pop_front() {
            return self.issue(Direction::Write, span, 0);
        }
        let wish = match self.work.trims_first() {
            true => self.wishes.of(Direction::Trim, &self.work, rng),
            false => self.wishes.next(&self.work, rng),
        };
        let Some(span) = self.place_in_pass(wish, rng) else {
            let is_trimming = self.trimming.iter().any(Option::is_some);
            return if is_trimming {
                Offer::Wait
            } else {
                Offer::Exhausted
            };
        };
        self.wishes.granted();
        let mut stream = 0;
        if self.work.trims_first() {
            let free = self.trimming.iter().position(Option::is_none);
            let slot = free.unwrap_or(self.trimming.len());
            self.trimming
                .resize(self.trimming.len().max(slot + 1), None);
            self.trimming[slot] = Some(span);
            // Fits: no more than a queue holds.
            stream = slot as u32;
        }
        self.issue(wish.direction, span, stream)
    }

    /// The place of the next operation, in another pass if this one is over.
    fn place_in_pass(&mut self, wish: Wish, rng: &mut Rng) -> Option<Span> {
        let is_over = self.range.passes.is_some() && self.of_pass >= self.range.lbas;
        if !is_over && let Some(span) = self.place(wish, rng) {
            return Some(span);
        }
        if self.range.passes.is_some_and(|all| self.passes >= all) {
            return None;
        }
        self.passes += 1;
        self.of_pass = 0;
        self.last = [Span::default(); 3];
        self.in_a_row_left = [0; 3];
        self.part = (0, 0);
        if let Some(left) = &mut self.left {
            left.refill();
        }
        self.place(wish, rng)
    }

    /// The place of the next operation; `None`: the pass is over.
    fn place(&mut self, wish: Wish, rng: &mut Rng) -> Option<Span> {
        let index = wish.direction as usize;
        self.step_part(index);
        let (span, is_drawn) = self.place_of(wish, rng)?;
        if let Some(left) = self.left.as_mut().filter(|_| is_drawn) {
            let from = (span.at - self.part.0) / self.unit;
            left.take(from, u64::from(span.lbas).div_ceil(self.unit));
        }
        self.last[index] = span;
        self.of_pass = self.of_pass.saturating_add(span.lbas.into());
        self.part.1 = self.part.1.saturating_add(span.lbas.into());
        Some(span)
    }

    /// Whether the place was drawn is the second.
    fn place_of(&mut self, wish: Wish, rng: &mut Rng) -> Option<(Span, bool)> {
        let Pattern::Random {
            percent,
            in_a_row,
            is_identical,
            ..
        } = self.work.pattern
        else {
            return Some((self.in_order(wish)?, false));
        };
        let index = wish.direction as usize;
        let left = &mut self.in_a_row_left[index];
        let follows = *left > 0;
        if follows {
            *left -= 1;
        } else {
            *left = in_a_row.saturating_sub(1);
        }
        if follows && is_identical {
            let at = self.last[index].at;
            return Some((self.cut(at, wish)?, false));
        }
        let percent = u64::from(percent[index]);
        let is_in_order = follows || percent < 100 && !rng.ratio(percent, 100);
        if is_in_order && let Some(span) = self.in_order(wish) {
            return Some((span, false));
        }
        Some((self.drawn(wish, rng)?, true))
    }

    /// A place behind the last operation of the direction.
    fn in_order(&mut self, wish: Wish) -> Option<Span> {
        let BlockRange {
            first,
            lbas,
            namespace_lbas,
            ..
        } = self.range;
        let last = &mut self.last[wish.direction as usize];
        let mut end = last.at + u64::from(last.lbas);
        if self.range.passes.is_none() && end >= self.part.0 + lbas {
            (*last, end) = (Span::default(), 0);
        }
        if end + first >= namespace_lbas {
            return None;
        }
        let mut at = end;
        if at > self.part.0 && self.work.hole_lbas > 0 {
            at = at.saturating_add(self.work.hole_lbas);
            if at.saturating_add(first) >= namespace_lbas {
                at = 0;
            }
        }
        if at >= self.part.0 + lbas {
            return None;
        }
        let flow = self.work.flow(wish.direction)?;
        if flow.sizes.min == flow.sizes.max {
            let lbas = wish.lbas;
            return (first + at + u64::from(lbas) <= namespace_lbas).then_some(Span { at, lbas });
        }
        self.cut(at, wish)
    }

    /// As much of a wish as there is from `at` to the end of the range, in whole
    /// blocks of the smallest size.
    fn cut(&self, at: u64, wish: Wish) -> Option<Span> {
        let min = u64::from(self.work.flow(wish.direction)?.sizes.min.max(1));
        let of_range = (self.part.0 + self.range.lbas).saturating_sub(at);
        let of_namespace = self.range.namespace_lbas - self.range.first;
        let rest = of_range.min(of_namespace.saturating_sub(at));
        let lbas = u64::from(wish.lbas).min(rest / min * min);
        // Fits: at most what was wished for.
        (lbas > 0).then_some(Span {
            at,
            lbas: lbas as u32,
        })
    }

    /// A random place; one that nobody has had in this pass, if that matters.
    fn drawn(&mut self, wish: Wish, rng: &mut Rng) -> Option<Span> {
        let min = u64::from(self.work.flow(wish.direction)?.sizes.min.max(1));
        let positions = self.positions[wish.direction as usize].as_ref()?;
        let from = positions.next(rng) * min;
        let Some(left) = &self.left else {
            return self.cut(self.part.0 + from, wish);
        };
        let block = left.next(from / self.unit)?;
        let wanted = u64::from(wish.lbas).div_ceil(self.unit);
        let lbas = left.run(block, wanted) * self.unit;
        let lbas = lbas.min(wish.lbas.into());
        let at = self.part.0 + block * self.unit;
        let is_inside = self.range.first + at + lbas <= self.range.namespace_lbas;
        // Fits: at most what was wished for.
        is_inside.then_some(Span {
            at,
            lbas: lbas as u32,
        })
    }

    /// With a stride: goes on to the next part if this one has had its share.
    fn step_part(&mut self, index: usize) {
        let Some(stride) = self.range.stride else {
            return;
        };
        if self.part.1 >= stride.transfer_lbas {
            let next = self.part.0.saturating_add(stride.range_lbas);
            let next = next.saturating_add(stride.skip_lbas);
            let is_inside = next.saturating_add(self.range.first) < self.range.namespace_lbas;
            self.part = (if is_inside { next } else { 0 }, 0);
            self.last[index] = Span {
                at: self.part.0,
                lbas: 0,
            };
        }
        let last = &mut self.last[index];
        if last.at + u64::from(last.lbas) >= self.part.0 + stride.range_lbas {
            *last = Span {
                at: self.part.0,
                lbas: 0,
            };
        }
        if let Some(left) = &mut self.left
            && self.part.1.is_multiple_of(stride.range_lbas)
        {
            left.refill();
        }
    }

    fn issue(&mut self, direction: Direction, span: Span, stream: u32) -> Offer {
        let (slba, nlb) = (Lba(self.range.first + span.at), span.lbas);
        let (op, kind) = match direction {
            Direction::Read => (Op::Read { slba, nlb }, OpKind::Read),
            Direction::Write => (Op::Write { slba, nlb }, OpKind::Write),
            Direction::Trim => {
                self.trim = span;
                (Op::Deallocate { ranges: 1 }, OpKind::Reset)
            }
        };
        Offer::Issue(Step {
            op,
            kind,
            direction,
            lbas: u64::from(nlb),
            stream,
            role: Role::Measured,
        })
    }

    /// First block, and number of blocks, of the trim that was offered last.
    pub(super) const fn trim(&self) -> (u64, u32) {
        (self.range.first + self.trim.at, self.trim.lbas)
    }

    pub(super) fn completed(&mut self, sent: &Sent) {
        if sent.direction == Direction::Trim
            && let Some(span) = self.trimming.get_mut(sent.stream as usize)
        {
            self.trimmed.extend(span.take());
        }
    }

    pub(super) fn failed(&mut self, sent: &Sent) {
        if sent.direction == Direction::Trim
            && let Some(span) = self.trimming.get_mut(sent.stream as usize)
        {
            *span = None;
        }
    }

    pub(super) fn ended(&mut self) {
        if let Some(table) = &self.table {
            table.borrow_mut().job_ended();
        }
    }
}
