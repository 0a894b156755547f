//! Finishes, resets, opens and closes: what is done to one zone after another.

use std::sync::Arc;

use zonelab_device::{Found, Lba, NamespaceId, Nanos, Op, ZonedInfo};
use zonelab_nvme::Status;

use super::turns::{Next, Turn, Turns};
use super::{Offer, Role, Sent, Step, send};
use crate::rng::Rng;
use crate::softfinish::{self, NoData, SoftFinish, Zone, ZoneFinisher};
use crate::stats::OpKind;
use crate::workload::JobSpec;
use crate::workload::directed::Direction;
use crate::workload::pace::Rates;
use crate::workload::zone_table::SharedZones;

/// Finishes, resets, opens or closes, one zone at a time, each after
/// preparing it.
pub(crate) struct Manage {
    turns: Turns,
    kind: OpKind,
    direction: Direction,
    namespace: NamespaceId,
    zoned: ZonedInfo,
    lba_bytes: u32,
    /// In the place of finishes by the device.
    soft: Option<SoftFinish>,
    chore: Option<Chore>,
    in_flight: bool,
    /// Blocks that zones held before the job, if that is known.
    held_lbas: Option<Arc<[u64]>>,
    /// Blocks that what is measured finds, as far as the job knows.
    finds_lbas: u64,
    /// What is measured is done to a zone that is so already, by what the job knows.
    finds_nothing: bool,
}

/// What is being done to one zone.
#[derive(Clone, Debug)]
struct Chore {
    turn: Turn,
    /// What comes next.
    stage: Stage,
    /// Blocks of the zone that are written, what is in flight included.
    written: u64,
    /// Blocks of the fill that are not.
    to_fill: u64,
    /// It goes on then.
    resume_at: Nanos,
    /// The softfinish, once it has begun.
    soft: Option<Soft>,
}

/// A softfinish that has begun.
#[derive(Clone, Debug)]
struct Soft {
    finisher: ZoneFinisher<NoData>,
    /// Blocks that it found to fill.
    lbas: u64,
}

/// What is done to a zone, in this order; what is not asked for is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Of a zone that comes round again.
    Empty,
    Open,
    Fill,
    Finish,
    Settle,
    Measure,
    /// Give back what an opened or closed zone holds.
    Clear,
    Done,
}

impl Manage {
    /// Does what is of `kind`, and counts as `direction`.
    pub(super) fn new(
        spec: &JobSpec,
        turns: Turns,
        (kind, direction): (OpKind, Direction),
        zoned: ZonedInfo,
        lba_bytes: u32,
    ) -> Self {
        Self {
            turns,
            kind,
            direction,
            namespace: spec.namespace,
            zoned,
            lba_bytes,
            soft: None,
            chore: None,
            in_flight: false,
            held_lbas: None,
            finds_lbas: 0,
            finds_nothing: false,
        }
    }

    /// The same with softfinishes in the place of finishes, if there are any, on
    /// a host whose sleeps last `slack` longer.
    pub(super) fn softly(self, soft: Option<SoftFinish>, slack: Nanos) -> Self {
        Self {
            soft: soft.map(|how| how.oversleeping(slack)),
            ..self
        }
    }

    /// It is known what zones hold.
    pub(super) fn knows(&mut self, held_lbas: Option<Arc<[u64]>>) {
        self.held_lbas = held_lbas;
    }

    /// See [`super::Source::finds_lbas`]: of a reset, what the job wrote before, or else what is
    /// known of the zone; if nothing is, as much as a zone can hold.
    pub(super) const fn finds_lbas(&self, asked: u64) -> u64 {
        match self.soft {
            Some(_) => asked,
            None => self.finds_lbas,
        }
    }

    /// See [`super::Source::found`]. Of zones that are in no table that jobs share it may not be
    /// known what they held before.
    pub(super) const fn found(&self) -> Found {
        let is_known = self.held_lbas.is_some() || matches!(self.turns, Turns::Shared(_));
        match self.kind {
            OpKind::Reset | OpKind::Finish if is_known => Found::Presumed {
                nothing: self.finds_nothing,
            },
            _ => Found::Unknown,
        }
    }

    /// Whether the next command is the first for a zone.
    pub(super) const fn is_between_zones(&self) -> bool {
        self.chore.is_none()
    }

    /// Whether a softfinish has begun and not ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.chore
            .as_ref()
            .is_some_and(|chore| chore.soft.is_some())
    }

    /// See [`super::Source::ready_at`].
    pub(super) fn ready_at(&self, rates: &Rates, now: Nanos) -> Nanos {
        if self.chore.is_some() {
            return Nanos::ZERO;
        }
        let ready = rates.ready_at(self.direction);
        if ready > now && !self.turns.has_more() {
            return Nanos::ZERO;
        }
        ready
    }

    pub(super) fn offer(&mut self, now: Nanos, rng: &mut Rng) -> Offer {
        if self.in_flight {
            return Offer::Wait;
        }
        loop {
            let mut chore = match self.chore.take() {
                Some(chore) => chore,
                None => match self.turns.next(rng) {
                    Next::Zone(turn) => Chore::new(turn),
                    Next::Look(zone) => return Offer::Look(zone),
                    Next::Wait => return Offer::Wait,
                    Next::Exhausted => return Offer::Exhausted,
                },
            };
            let next = self.go_on(&mut chore, now);
            match next {
                Some(offer) => {
                    self.chore = Some(chore);
                    self.in_flight = matches!(offer, Offer::Issue(_));
                    return offer;
                }
                None => self.turns.give_back(chore.turn.zone, chore.written),
            }
        }
    }

    /// What comes next for a zone; `None` if it is done with.
    fn go_on(&mut self, chore: &mut Chore, now: Nanos) -> Option<Offer> {
        if chore.resume_at > now {
            return Some(Offer::PauseUntil(chore.resume_at));
        }
        let fill = chore.turn.fill;
        loop {
            match chore.stage {
                Stage::Empty => {
                    chore.stage = Stage::Open;
                    if chore.turn.is_again && self.kind == OpKind::Finish {
                        return Some(self.prepare(chore, OpKind::Reset));
                    }
                }
                Stage::Open => {
                    chore.stage = Stage::Fill;
                    if fill.open_first {
                        return Some(self.prepare(chore, OpKind::Open));
                    }
                }
                Stage::Fill if chore.to_fill > 0 => return Some(self.write(chore)),
                Stage::Fill => chore.stage = Stage::Finish,
                Stage::Finish => {
                    chore.stage = Stage::Settle;
                    if fill.finish_first {
                        return Some(self.prepare(chore, OpKind::Finish));
                    }
                }
                Stage::Settle => {
                    chore.stage = Stage::Measure;
                    if fill.settle > Nanos::ZERO {
                        chore.resume_at = now.saturating_add(fill.settle);
                        return Some(Offer::PauseUntil(chore.resume_at));
                    }
                }
                Stage::Measure => match self.soft {
                    Some(how) => return self.write_on(chore, how, now),
                    None => return Some(self.measure(chore)),
                },
                Stage::Clear => {
                    chore.stage = Stage::Done;
                    return Some(self.prepare(chore, OpKind::Reset));
                }
                Stage::Done => return None,
            }
        }
    }

    fn zslba(&self, chore: &Chore) -> Lba {
        Lba(u64::from(chore.turn.zone) * self.zoned.zone_size_lbas)
    }

    fn step(&self, chore: &Chore, (op, kind): (Op, OpKind), lbas: u64, role: Role) -> Offer {
        Offer::Issue(Step {
            op,
            kind,
            direction: self.direction,
            lbas,
            stream: chore.turn.zone,
            role,
        })
    }

    /// What prepares the zone or clears it.
    fn prepare(&self, chore: &Chore, kind: OpKind) -> Offer {
        let op = send(self.zslba(chore), kind);
        self.step(chore, (op, kind), 0, Role::Preparation)
    }

    fn write(&self, chore: &mut Chore) -> Offer {
        let block_lbas = u64::from(chore.turn.fill.block_lbas.max(1));
        let lbas = block_lbas.min(chore.to_fill);
        let op = Op::Write {
            slba: Lba(self.zslba(chore).0 + chore.written),
            // Fits: at most `block_lbas`.
            nlb: lbas as u32,
        };
        chore.written += lbas;
        chore.to_fill -= lbas;
        self.step(chore, (op, OpKind::Write), 0, Role::Preparation)
    }

    /// Goes on with a softfinish; `None` if there is nothing to write.
    fn write_on(&self, chore: &mut Chore, how: SoftFinish, now: Nanos) -> Option<Offer> {
        let role = match chore.soft {
            None => Role::FirstPart,
            Some(_) => Role::Part,
        };
        let zslba = self.zslba(chore);
        let soft = chore.soft.get_or_insert_with(|| {
            let zone = Zone {
                namespace: self.namespace,
                zslba,
                write_pointer: Lba(zslba.0 + chore.written),
                capacity_lbas: self.zoned.zone_capacity_lbas,
                lba_bytes: self.lba_bytes,
            };
            let finisher = ZoneFinisher::new(zone, how, NoData);
            Soft {
                lbas: finisher.left_lbas(),
                finisher,
            }
        });
        let lbas = soft.lbas;
        match soft.finisher.step(now) {
            softfinish::Step::Write { command, data: _ } => {
                chore.written += u64::from(command.op.nlb());
                Some(self.step(chore, (command.op, OpKind::Finish), lbas, role))
            }
            softfinish::Step::PauseUntil(at) => Some(Offer::PauseUntil(at)),
            softfinish::Step::InFlight | softfinish::Step::Failed { .. } => Some(Offer::Wait),
            softfinish::Step::Done(_) => {
                chore.soft = None;
                None
            }
        }
    }

    /// Blocks that the zone of a chore holds; `None`: it is not known.
    fn holds(&self, chore: &Chore) -> Option<u64> {
        let Turn { zone, fill, .. } = chore.turn;
        let before = self.held_lbas.as_deref();
        let before = before.and_then(|held| held.get(zone as usize)).copied();
        match (chore.written, before, &self.turns) {
            _ if fill.finish_first => Some(self.zoned.zone_capacity_lbas),
            (0, before, Turns::Listed { .. }) if !chore.turn.is_again => before,
            (written, ..) => Some(written),
        }
    }

    fn measure(&mut self, chore: &mut Chore) -> Offer {
        let capacity = self.zoned.zone_capacity_lbas;
        let held = self.holds(chore);
        self.finds_lbas = match self.kind {
            OpKind::Reset => held.unwrap_or(capacity),
            OpKind::Finish => capacity.saturating_sub(held.unwrap_or(0)),
            _ => 0,
        };
        self.finds_nothing = matches!(self.kind, OpKind::Reset | OpKind::Finish)
            && held.is_some()
            && self.finds_lbas == 0;
        let lbas = match self.kind {
            OpKind::Finish => self.zoned.zone_capacity_lbas - chore.written,
            OpKind::Reset => self.zoned.zone_size_lbas,
            _ => 0,
        };
        chore.stage = if matches!(self.kind, OpKind::Open | OpKind::Close) {
            Stage::Clear
        } else {
            Stage::Done
        };
        let op = send(self.zslba(chore), self.kind);
        self.step(chore, (op, self.kind), lbas, Role::Measured)
    }

    /// A command has completed with success at `at`. Whether its operation has
    /// ended with it.
    pub(super) fn completed(&mut self, sent: &Sent, at: Nanos) -> bool {
        self.in_flight = false;
        let Some(chore) = &mut self.chore else {
            return true;
        };
        if let Some(soft) = &mut chore.soft {
            soft.finisher.completed(at, Status::SUCCESS, None);
            if soft.finisher.left_lbas() > 0 {
                return false;
            }
            chore.soft = None;
            chore.stage = Stage::Done;
        }
        if chore.stage == Stage::Done {
            let written = match sent.kind {
                OpKind::Finish => self.zoned.zone_capacity_lbas,
                _ => 0,
            };
            self.turns.give_back(chore.turn.zone, written);
            self.chore = None;
        }
        true
    }

    /// Gives up what is under way, if anything: the job ends, or a command failed.
    pub(super) fn abandon(&mut self) {
        let has_failed = std::mem::take(&mut self.in_flight);
        match self.chore.take() {
            Some(chore) if has_failed => self.turns.give_up(chore.turn.zone),
            Some(chore) => self.turns.give_back(chore.turn.zone, chore.written),
            None => {}
        }
    }

    /// What is known of the zones, if jobs share it.
    pub(super) const fn table(&self) -> Option<&SharedZones> {
        self.turns.table()
    }

    /// The job has come to its end.
    pub(super) fn ended(&mut self) {
        self.abandon();
        self.turns.ended();
    }
}

impl Chore {
    fn new(turn: Turn) -> Self {
        Self {
            stage: Stage::Empty,
            written: turn.written,
            to_fill: turn.fill.lbas,
            resume_at: Nanos::ZERO,
            soft: None,
            turn,
        }
    }
}
