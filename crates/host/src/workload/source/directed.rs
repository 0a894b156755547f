//! Reads and writes in directions, over zones that jobs share.

use zonelab_device::{Found, Lba, Nanos, ZonedInfo};

use super::targets::Targets;
use super::wishes::Wishes;
use super::{ByTheWay, Offer, Role, Sent};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::directed::{DirectedWork, Direction, Pattern, WriteStyle};
use crate::workload::pace::Rates;
use crate::workload::zone_table::{JobId, SharedZones};

/// Chooses direction and size, and leaves places to [`Targets`].
pub(crate) struct Directed {
    work: DirectedWork,
    targets: Targets,
    table: SharedZones,
    wishes: Wishes,
    /// Its operations are writes of so many blocks in order, without anything between.
    in_order_lbas: Option<u32>,
    by_the_way: ByTheWay,
}

/// The blocks of each operation, if the job does nothing but write in order, all of one size.
fn in_order_lbas(work: &DirectedWork) -> Option<u32> {
    let [reads, Some(writes), trims] = &work.flows else {
        return None;
    };
    let is_alone = reads.is_none() && trims.is_none() && work.early_reset.is_none();
    let is_in_order = work.pattern == Pattern::Sequential && work.hole_lbas == 0;
    let sizes = &writes.sizes;
    (is_alone && is_in_order && sizes.min == sizes.max).then_some(sizes.min)
}

impl Directed {
    pub(super) fn new(work: DirectedWork, zoned: ZonedInfo, table: SharedZones, id: JobId) -> Self {
        let targets = Targets::new(&work, zoned, &table.borrow(), id);
        Self {
            targets,
            in_order_lbas: in_order_lbas(&work),
            wishes: Wishes::of_work(&work),
            work,
            table,
            by_the_way: ByTheWay::default(),
        }
    }

    /// When the next operation may go ahead.
    pub(super) fn ready_at(&mut self, rates: &Rates, now: Nanos, rng: &mut Rng) -> Nanos {
        self.wishes.ready_at(&self.work, rates, now, rng)
    }

    #[inline]
    pub(super) fn offer(&mut self, rng: &mut Rng) -> Offer {
        if let Some(lbas) = self.in_order_lbas {
            let append = self.work.style == WriteStyle::Append;
            let table = &mut *self.table.borrow_mut();
            if let Some(step) = self.targets.go_on(table, lbas, append) {
                self.wishes.granted();
                return Offer::Issue(step);
            }
        }
        let wish = self.wishes.next(&self.work, rng);
        let offer = match wish.direction {
            Direction::Read => self.offer_read(wish.lbas, rng),
            Direction::Write | Direction::Trim => self.offer_write(wish.lbas, rng),
        };
        // What was wished for comes after what makes a zone fit for it.
        if matches!(&offer, Offer::Issue(step) if step.role == Role::Measured) {
            self.wishes.granted();
        }
        offer
    }

    #[inline]
    fn offer_read(&mut self, lbas: u32, rng: &mut Rng) -> Offer {
        let smallest = self.work.flow(Direction::Read).map(|flow| flow.sizes.min);
        let min = smallest.unwrap_or(1);
        let table = self.table.borrow();
        let offer = self.targets.read(&self.work, &table, lbas, min, rng);
        drop(table);
        // A job that writes too makes what it can read.
        let makes = self.work.flow(Direction::Write).is_some();
        if !makes || !matches!(offer, Offer::Exhausted) {
            return offer;
        }
        let wish = self.wishes.of(Direction::Write, &self.work, rng);
        self.offer_write(wish.lbas, rng)
    }

    #[inline]
    fn offer_write(&mut self, lbas: u32, rng: &mut Rng) -> Offer {
        let table = &mut *self.table.borrow_mut();
        self.targets.write(&self.work, table, lbas, rng)
    }

    #[inline]
    pub(super) fn completed(&mut self, sent: &Sent) {
        let zone = sent.stream;
        match (sent.role, sent.kind) {
            (Role::Measured, OpKind::Read) | (Role::Sync | Role::Check | Role::Look, _) => {}
            (Role::Measured, _) => self.table.borrow_mut().end_write(zone, sent.lbas),
            (_, OpKind::Finish) => {
                self.table.borrow_mut().end_finishing(zone);
                self.by_the_way.ended += 1;
            }
            _ => {
                self.table.borrow_mut().end_clearing(zone);
                self.by_the_way.cleared += 1;
            }
        }
    }

    /// See [`super::Source::found`].
    pub(super) fn found(&self, sent: &Sent, at: Lba) -> Found {
        if sent.kind != OpKind::Read {
            return Found::Unknown;
        }
        // Others go to what is written.
        let may_be_nothing = self.work.reads_beyond_write_pointer;
        let is_behind = || {
            let written = self.table.borrow().written(sent.stream);
            self.targets.offset_of(sent.stream, at) >= written
        };
        Found::Presumed {
            nothing: may_be_nothing && is_behind(),
        }
    }

    pub(super) fn failed(&mut self, sent: &Sent, moved: u64) {
        let zone = sent.stream;
        let mut table = self.table.borrow_mut();
        match (sent.role, sent.kind) {
            (Role::Measured, OpKind::Read) | (Role::Sync | Role::Check | Role::Look, _) => {}
            (Role::Measured, _) => table.fail_write(zone, sent.lbas, moved),
            _ => table.fail_managing(zone),
        }
    }

    /// What is known of the zones.
    pub(super) const fn table(&self) -> &SharedZones {
        &self.table
    }

    pub(super) fn ended(&mut self) {
        self.table.borrow_mut().job_ended();
    }

    pub(super) fn by_the_way(&self) -> ByTheWay {
        ByTheWay {
            empty: self.targets.empty(&self.work, &self.table.borrow()),
            ..self.by_the_way
        }
    }
}
