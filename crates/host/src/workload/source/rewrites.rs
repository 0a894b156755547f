//! Zones that are reset and then written, one after the other: `trimwrite` on zones.

use zonelab_device::{Found, Lba, Nanos, Op, ZonedInfo};

use super::turns::{Next, SharedTurns};
use super::wishes::Wishes;
use super::{Offer, Role, Sent, Step, send};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::directed::{DirectedWork, Direction};
use crate::workload::pace::Rates;
use crate::workload::zone_table::{Admission, JobId, SharedZones};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A zone is chosen next.
    Choose,
    /// Its reset is in flight.
    Reset,
    /// It is being written.
    Write(u32),
}

/// Resets a zone and writes it up to its capacity, then the next one.
pub(crate) struct Rewrites {
    work: DirectedWork,
    zoned: ZonedInfo,
    table: SharedZones,
    id: JobId,
    turns: SharedTurns,
    wishes: Wishes,
    stage: Stage,
    /// Something was done since the job last began with its first zone.
    has_done_any: bool,
}

impl Rewrites {
    pub(super) fn new(work: DirectedWork, zoned: ZonedInfo, table: SharedZones, id: JobId) -> Self {
        let turns = SharedTurns::new(&work, zoned, table.clone(), id);
        Self {
            wishes: Wishes::of_work(&work),
            work,
            zoned,
            table,
            id,
            turns,
            stage: Stage::Choose,
            has_done_any: false,
        }
    }

    pub(super) fn ready_at(&self, rates: &Rates) -> Nanos {
        match self.stage {
            Stage::Choose => rates.ready_at(Direction::Trim),
            Stage::Reset => Nanos::ZERO,
            Stage::Write(_) => rates.ready_at(Direction::Write),
        }
    }

    pub(super) fn offer(&mut self, rng: &mut Rng) -> Offer {
        // What is written to the end of one zone is followed by the reset of another.
        for _ in 0..2 {
            match self.stage {
                Stage::Reset => return Offer::Wait,
                Stage::Choose => return self.reset(rng),
                Stage::Write(zone) => {
                    if let Some(offer) = self.write(zone, rng) {
                        return offer;
                    }
                    self.stage = Stage::Choose;
                }
            }
        }
        Offer::Wait
    }

    fn reset(&mut self, rng: &mut Rng) -> Offer {
        let mut next = self.turns.next(rng);
        if matches!(next, Next::Exhausted) && self.work.repeats && self.has_done_any {
            let (table, zoned) = (self.table.clone(), self.zoned);
            self.turns = SharedTurns::new(&self.work, zoned, table, self.id);
            self.has_done_any = false;
            next = self.turns.next(rng);
        }
        let zone = match next {
            Next::Zone(turn) => turn.zone,
            Next::Look(zone) => return Offer::Look(zone),
            Next::Wait => return Offer::Wait,
            Next::Exhausted => return Offer::Exhausted,
        };
        self.stage = Stage::Reset;
        self.has_done_any = true;
        Offer::Issue(Step {
            op: send(self.start_of(zone), OpKind::Reset),
            kind: OpKind::Reset,
            direction: Direction::Trim,
            lbas: self.zoned.zone_size_lbas,
            stream: zone,
            role: Role::Measured,
        })
    }

    /// The next write to `zone`; `None`: there is no room for one.
    fn write(&mut self, zone: u32, rng: &mut Rng) -> Option<Offer> {
        let wish = match self.wishes.next(&self.work, rng) {
            wish if wish.direction == Direction::Write => wish,
            _ => self.wishes.of(Direction::Write, &self.work, rng),
        };
        let min = self.work.flow(Direction::Write)?.sizes.min.max(1);
        let mut table = self.table.borrow_mut();
        let rest = self.zoned.zone_capacity_lbas - table.written(zone);
        let lbas = u64::from(wish.lbas).min(rest / u64::from(min) * u64::from(min));
        if lbas == 0 {
            return None;
        }
        match table.admit(zone, self.id, false, self.work.open_limit) {
            Admission::Granted => {}
            Admission::TooManyOpen if !table.can_hope(self.id) => return Some(Offer::Exhausted),
            Admission::TooManyOpen | Admission::Busy => {
                table.wait(self.id);
                return Some(Offer::Wait);
            }
            Admission::InDoubt => {
                table.begin_managing(zone, self.id);
                return Some(Offer::Look(zone));
            }
            Admission::Dead => return None,
        }
        let at = table.begin_write(zone, self.id, lbas, false);
        drop(table);
        self.wishes.granted();
        let slba = Lba(self.start_of(zone).0 + at);
        // Fits: at most what was wished for.
        let nlb = lbas as u32;
        Some(Offer::Issue(Step {
            op: Op::Write { slba, nlb },
            kind: OpKind::Write,
            direction: Direction::Write,
            lbas,
            stream: zone,
            role: Role::Measured,
        }))
    }

    fn start_of(&self, zone: u32) -> Lba {
        Lba(u64::from(zone) * self.zoned.zone_size_lbas)
    }

    /// See [`super::Source::found`].
    pub(super) fn found(&self, sent: &Sent) -> Found {
        match sent.direction {
            Direction::Trim => Found::Presumed {
                nothing: self.table.borrow().written(sent.stream) == 0,
            },
            _ => Found::Unknown,
        }
    }

    pub(super) fn completed(&mut self, sent: &Sent) {
        let zone = sent.stream;
        match sent.role {
            Role::Measured if sent.direction == Direction::Trim => {
                self.table.borrow_mut().end_managing(zone, 0);
                self.stage = Stage::Write(zone);
            }
            Role::Measured => self.table.borrow_mut().end_write(zone, sent.lbas),
            _ => {}
        }
    }

    pub(super) fn failed(&mut self, sent: &Sent, moved: u64) {
        let mut table = self.table.borrow_mut();
        let zone = sent.stream;
        match sent.role {
            Role::Measured if sent.direction == Direction::Trim => {
                table.fail_managing(zone);
                self.stage = Stage::Choose;
            }
            Role::Measured => table.fail_write(zone, sent.lbas, moved),
            _ => {}
        }
    }

    /// What is known of the zones.
    pub(super) const fn table(&self) -> &SharedZones {
        &self.table
    }

    pub(super) fn ended(&mut self) {
        self.table.borrow_mut().job_ended();
    }
}
