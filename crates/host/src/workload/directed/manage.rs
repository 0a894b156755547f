//! Finishes and resets, one zone at a time.

use zonelab_device::{Lba, Nanos, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::targets::{Pick, Role, Step};
use super::{DirectedSpec, Direction, Pattern, WriteStyle};
use crate::rng::Rng;
use crate::workload::distribution::{Distribution, Positions};
use crate::workload::zone_table::{Admission, SharedZones};

/// What is being done to one zone.
#[derive(Clone, Copy, Debug)]
struct Chore {
    zone: u32,
    /// Blocks of it that are written.
    written: u64,
    /// The write in front has completed, or there is none.
    prepared: bool,
    /// When the first write of a softfinish was decided on, and blocks it
    /// found to fill.
    soft: Option<(Nanos, Nanos, u64)>,
    /// Not before.
    resume: Nanos,
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
    pub(super) fn new(spec: &DirectedSpec, zoned: ZonedInfo, table: SharedZones) -> Option<Self> {
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
        self.chore.map_or(Nanos::ZERO, |chore| chore.resume)
    }

    /// The next step. `lbas`: of the write in front.
    pub(super) fn next(&mut self, spec: &DirectedSpec, lbas: u32, rng: &mut Rng) -> Pick {
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
        let Some(mut chore) = self.chore else {
            return Pick::Wait;
        };
        let left = self.zoned.zone_capacity_lbas - chore.written;
        let step = if !chore.prepared {
            let lbas = u64::from(lbas).min(left);
            chore.prepared = true;
            self.write(&mut chore, lbas, Role::Trigger)
        } else if let WriteStyle::SoftFinish { granularity, .. } = spec.style
            && self.direction == Direction::Write
            && left > 0
        {
            let lbas = u64::from(granularity).min(left);
            self.write(&mut chore, lbas, Role::Chunk)
        } else {
            self.command(spec, &chore)
        };
        self.chore = Some(chore);
        self.in_flight = true;
        Pick::Issue(step)
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
            resume: Nanos::ZERO,
        });
        None
    }

    fn write(&self, chore: &mut Chore, lbas: u64, role: Role) -> Step {
        let start = u64::from(chore.zone) * self.zoned.zone_size_lbas;
        let slba = Lba(start + chore.written);
        chore.written += lbas;
        Step {
            // Fits: at most a block size of the job.
            op: Op::Write {
                slba,
                nlb: lbas as u32,
            },
            direction: self.direction,
            zone: chore.zone,
            lbas,
            counted: 0,
            role,
            paced: role == Role::Chunk && chore.soft.is_none(),
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
                slba: Lba(u64::from(chore.zone) * self.zoned.zone_size_lbas),
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

    /// Notes that a step has completed at `at`; it was decided on at `decided`
    /// and submitted at `submitted`.
    pub(super) fn completed(
        &mut self,
        spec: &DirectedSpec,
        role: Role,
        lbas: u64,
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
                let (first, first_submitted, filled) =
                    chore.soft.unwrap_or((decided, submitted, 0));
                let soft = (first, first_submitted, filled + lbas);
                chore.soft = Some(soft);
                if chore.written < capacity {
                    if let WriteStyle::SoftFinish { pause, .. } = spec.style {
                        chore.resume = at.saturating_add(pause);
                    }
                    return Managed::Goes;
                }
                self.give_back(capacity);
                Managed::Done(Some(soft))
            }
            Role::Managing => {
                let resets = self.direction == Direction::Trim || spec.style == WriteStyle::Reset;
                self.give_back(if resets { 0 } else { capacity });
                Managed::Done(None)
            }
            Role::Trigger | Role::Transfer | Role::Clearing => Managed::Goes,
        }
    }

    /// Gives up what is under way, if anything: the job ends, or a step failed.
    pub(super) fn abandon(&mut self) {
        if let Some(chore) = self.chore {
            self.give_back(chore.written);
        }
    }

    fn give_back(&mut self, written: u64) {
        if let Some(chore) = self.chore.take() {
            self.table.borrow_mut().end_managing(chore.zone, written);
        }
    }
}
