//! Finishes and resets, one zone at a time.

use zonelab_device::{Lba, Nanos, Op, ZonedInfo};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::targets::{Pick, Role, Step};
use super::{DirectedSpec, Direction, Pattern, WriteStyle};
use crate::rng::Rng;
use crate::softfinish::{self, NoData, SoftFinish, Zone, ZoneFinisher};
use crate::workload::distribution::{Distribution, Positions};
use crate::workload::zone_table::{Admission, SharedZones};

/// What is being done to one zone.
#[derive(Clone, Debug)]
struct Chore {
    zone: u32,
    /// Blocks of it that are written.
    written: u64,
    /// The write in front has completed, or there is none.
    prepared: bool,
    /// The softfinish, once it has begun.
    soft: Option<Soft>,
}

/// A softfinish that has begun.
#[derive(Clone, Debug)]
struct Soft {
    finisher: ZoneFinisher<NoData>,
    /// Blocks that it found to fill.
    lbas: u64,
    /// When its first write was decided on, and when it had been submitted;
    /// known when that has completed.
    first: Option<(Nanos, Nanos)>,
}

/// What a completed step of a chore comes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Managed {
    /// There is more to do.
    Goes,
    /// Done. Of a softfinish: when it was decided on, when its first write was
    /// submitted, and its blocks.
    Done(Option<(Nanos, Nanos, u64)>),
}

/// Finishes or resets zones in turn.
pub(super) struct Manage {
    table: SharedZones,
    zoned: ZonedInfo,
    lba_bytes: u32,
    direction: Direction,
    /// Next zone in order.
    next: u32,
    positions: Option<Positions>,
    /// A zone that was drawn and could not be had yet.
    drawn: Option<u32>,
    chore: Option<Chore>,
    in_flight: bool,
}

impl Manage {
    /// `None` if the job transfers data.
    pub(super) fn new(
        spec: &DirectedSpec,
        zoned: ZonedInfo,
        lba_bytes: u32,
        table: SharedZones,
    ) -> Option<Self> {
        let trims = spec.flows[Direction::Trim as usize].is_some();
        let direction = match spec.style {
            _ if trims => Direction::Trim,
            WriteStyle::Write | WriteStyle::Append => return None,
            _ => Direction::Write,
        };
        let positions = match spec.pattern {
            Pattern::Sequential => None,
            // Zones are drawn, not blocks: all alike.
            Pattern::Random { .. } => Some(Positions::new(
                Distribution::Uniform,
                spec.zones.len() as u64,
            )),
        };
        Some(Self {
            table,
            zoned,
            lba_bytes,
            direction,
            next: spec.zones.start,
            positions,
            drawn: None,
            chore: None,
            in_flight: false,
        })
    }

    /// Whether a zone is being worked on: the next step belongs to an
    /// operation that has begun.
    pub(super) fn is_under_way(&self) -> bool {
        self.chore.is_some()
    }

    /// Whether there is anything left to do, if nobody else changes that. Who
    /// waits for its rate should know that it waits for something.
    pub(super) fn has_more(&self, spec: &DirectedSpec) -> bool {
        let in_order = self.positions.is_none();
        let from = if in_order {
            self.next
        } else {
            spec.zones.start
        };
        let waits = self.chore.is_some() || self.drawn.is_some();
        waits || (from..spec.zones.end).any(|zone| self.suits(zone, in_order))
    }

    /// Not before this time can the operation under way go on.
    pub(super) fn resume_at(&self) -> Nanos {
        let soft = self.chore.as_ref().and_then(|chore| chore.soft.as_ref());
        soft.map_or(Nanos::ZERO, |soft| soft.finisher.resume_at())
    }

    /// The next step, at `now`, which is not before [`Self::resume_at`].
    /// `lbas`: of the write in front.
    pub(super) fn next(
        &mut self,
        spec: &DirectedSpec,
        lbas: u32,
        now: Nanos,
        rng: &mut Rng,
    ) -> Pick {
        if self.in_flight {
            return Pick::Wait;
        }
        if self.chore.is_none() {
            let Some(zone) = self.choose(spec, rng) else {
                return Pick::Exhausted;
            };
            if let Some(pick) = self.take(spec, zone) {
                return pick;
            }
        }
        let Some(mut chore) = self.chore.take() else {
            return Pick::Wait;
        };
        let step = self.step(spec, &mut chore, lbas, now);
        self.chore = Some(chore);
        match step {
            Some(step) => {
                self.in_flight = true;
                Pick::Issue(step)
            }
            None => Pick::Wait,
        }
    }

    fn step(&self, spec: &DirectedSpec, chore: &mut Chore, lbas: u32, now: Nanos) -> Option<Step> {
        let left = self.zoned.zone_capacity_lbas - chore.written;
        if !chore.prepared {
            chore.prepared = true;
            let op = Op::Write {
                slba: self.write_pointer(chore),
                // Fits: at most `lbas`.
                nlb: u64::from(lbas).min(left) as u32,
            };
            return Some(self.write(chore, op, Role::Trigger));
        }
        match spec.style {
            WriteStyle::SoftFinish(how) if self.direction == Direction::Write && left > 0 => {
                self.chunk(spec, how, chore, now)
            }
            _ => Some(self.command(spec, chore)),
        }
    }

    /// The zone whose turn it is; `None` if there is none.
    fn choose(&mut self, spec: &DirectedSpec, rng: &mut Rng) -> Option<u32> {
        // Who had the zone before may have left nothing to do.
        let in_order = self.positions.is_none();
        if let Some(zone) = self.drawn.take().filter(|zone| self.suits(*zone, in_order)) {
            self.drawn = Some(zone);
            return Some(zone);
        }
        let zone = match &self.positions {
            None => {
                let zone = (self.next..spec.zones.end).find(|&zone| self.suits(zone, true))?;
                self.next = zone + 1;
                zone
            }
            Some(positions) => {
                // Fits: fewer zones than 2^32.
                let from = spec.zones.start + positions.next(rng) as u32;
                let mut around = (from..spec.zones.end).chain(spec.zones.start..from);
                around.find(|&zone| self.suits(zone, false))?
            }
        };
        self.drawn = Some(zone);
        Some(zone)
    }

    /// Whether there is something to do to a zone: resets in order take every
    /// zone, at random those with data; finishes those that are not full.
    fn suits(&self, zone: u32, in_order: bool) -> bool {
        let written = self.table.borrow().written(zone);
        match self.direction {
            Direction::Trim => in_order || written > 0,
            _ => written < self.zoned.zone_capacity_lbas,
        }
    }

    /// Takes the zone that was chosen, if it can be had: else what to do.
    fn take(&mut self, spec: &DirectedSpec, zone: u32) -> Option<Pick> {
        let mut table = self.table.borrow_mut();
        let resets = self.direction == Direction::Trim;
        let admission = match table.is_quiet(zone) {
            false => Admission::Busy,
            true if resets => Admission::Granted,
            true => table.admit(zone, spec.id, false, spec.open_limit),
        };
        match admission {
            Admission::Granted => {}
            Admission::TooManyOpen if !table.can_hope(spec.id) => return Some(Pick::Exhausted),
            Admission::Busy | Admission::TooManyOpen => {
                table.wait(spec.id);
                return Some(Pick::Wait);
            }
        }
        table.begin_managing(zone, spec.id);
        self.drawn = None;
        self.chore = Some(Chore {
            zone,
            written: table.written(zone),
            prepared: resets,
            soft: None,
        });
        None
    }

    fn zslba(&self, chore: &Chore) -> Lba {
        Lba(u64::from(chore.zone) * self.zoned.zone_size_lbas)
    }

    fn write_pointer(&self, chore: &Chore) -> Lba {
        Lba(self.zslba(chore).0 + chore.written)
    }

    /// The next write of a softfinish.
    fn chunk(
        &self,
        spec: &DirectedSpec,
        how: SoftFinish,
        chore: &mut Chore,
        now: Nanos,
    ) -> Option<Step> {
        let zone = Zone {
            namespace: spec.namespace,
            zslba: self.zslba(chore),
            write_pointer: self.write_pointer(chore),
            capacity_lbas: self.zoned.zone_capacity_lbas,
            lba_bytes: self.lba_bytes,
        };
        let soft = chore.soft.get_or_insert_with(|| {
            let finisher = ZoneFinisher::new(zone, how, NoData);
            Soft {
                lbas: finisher.left_lbas(),
                finisher,
                first: None,
            }
        });
        let begins = soft.first.is_none();
        let softfinish::Step::Write { command, data: _ } = soft.finisher.step(now) else {
            return None;
        };
        Some(Step {
            paced: begins,
            ..self.write(chore, command.op, Role::Chunk)
        })
    }

    fn write(&self, chore: &mut Chore, op: Op, role: Role) -> Step {
        let lbas = u64::from(op.nlb());
        chore.written += lbas;
        Step {
            op,
            direction: self.direction,
            zone: chore.zone,
            lbas,
            counted: 0,
            role,
            paced: false,
        }
    }

    fn command(&self, spec: &DirectedSpec, chore: &Chore) -> Step {
        let resets = self.direction == Direction::Trim || spec.style == WriteStyle::Reset;
        let (action, counted) = if resets {
            (ZoneSendAction::RESET, self.zoned.zone_size_lbas)
        } else {
            let left = self.zoned.zone_capacity_lbas - chore.written;
            (ZoneSendAction::FINISH, left)
        };
        Step {
            op: Op::ZoneSend {
                slba: self.zslba(chore),
                action,
                select_all: false,
            },
            direction: self.direction,
            zone: chore.zone,
            lbas: 0,
            counted,
            role: Role::Managing,
            paced: true,
        }
    }

    /// Notes that a step has completed with success at `at`; it was decided on at `decided`
    /// and submitted at `submitted`.
    pub(super) fn completed(
        &mut self,
        spec: &DirectedSpec,
        role: Role,
        times: [Nanos; 3],
    ) -> Managed {
        let [decided, submitted, at] = times;
        self.in_flight = false;
        let Some(chore) = &mut self.chore else {
            return Managed::Goes;
        };
        let capacity = self.zoned.zone_capacity_lbas;
        match role {
            Role::Chunk => {
                let Some(soft) = &mut chore.soft else {
                    return Managed::Goes;
                };
                soft.finisher.completed(at, Status::SUCCESS, None);
                let (decided, submitted) = *soft.first.get_or_insert((decided, submitted));
                if soft.finisher.left_lbas() > 0 {
                    return Managed::Goes;
                }
                let lbas = soft.lbas;
                self.give_back(capacity);
                Managed::Done(Some((decided, submitted, lbas)))
            }
            Role::Managing => {
                let resets = self.direction == Direction::Trim || spec.style == WriteStyle::Reset;
                self.give_back(if resets { 0 } else { capacity });
                Managed::Done(None)
            }
            Role::Trigger | Role::Transfer | Role::Clearing | Role::Ending | Role::Sync => {
                Managed::Goes
            }
        }
    }

    /// Gives up what is under way, if anything: the job ends, or a step failed.
    pub(super) fn abandon(&mut self) {
        if let Some(chore) = &self.chore {
            self.give_back(chore.written);
        }
    }

    fn give_back(&mut self, written: u64) {
        if let Some(chore) = self.chore.take() {
            self.table.borrow_mut().end_managing(chore.zone, written);
        }
    }
}
