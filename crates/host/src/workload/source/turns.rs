//! Whose turn it is among the zones that are finished, reset, opened or closed.

use std::ops::Range;

use zonelab_device::{Nanos, ZonedInfo};

use crate::rng::Rng;
use crate::softfinish::asleep;
use crate::workload::Fill;
use crate::workload::directed::{DirectedWork, Direction, Pattern, Sizes};
use crate::workload::distribution::{Distribution, Positions};
use crate::workload::zone_table::{Admission, JobId, SharedZones, ZoneTable};

/// Gives out one zone after another.
pub(super) enum Turns {
    /// Zones of a list, in its order, which are empty and nobody else's.
    Listed {
        zones: Vec<u32>,
        /// Position of the next.
        at: usize,
        /// All have had their turn before.
        is_again: bool,
        fill: Fill,
    },
    /// Zones that jobs share.
    Shared(Box<SharedTurns>),
}

/// A zone that is given out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) zone: u32,
    /// Blocks of it that are written.
    pub(super) written: u64,
    /// What is done to it first.
    pub(super) fill: Fill,
    /// It has had its turn before.
    pub(super) is_again: bool,
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Zone(Turn),
    /// The device is to be asked first what it holds.
    Look(u32),
    /// None before somebody else gives one back.
    Wait,
    /// None ever again.
    Exhausted,
}

impl Turns {
    /// Zones of a list, each prepared as `fill` says by a host whose sleeps last
    /// `slack` longer.
    pub(super) fn listed(zones: Vec<u32>, fill: &Fill, zoned: ZonedInfo, slack: Nanos) -> Self {
        let fill = Fill {
            lbas: fill.lbas.min(zoned.zone_capacity_lbas),
            settle: asleep(fill.settle, slack),
            ..*fill
        };
        Self::Listed {
            zones,
            at: 0,
            is_again: false,
            fill,
        }
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Next {
        match self {
            Self::Listed {
                zones,
                at,
                is_again,
                fill,
            } => {
                if *at == zones.len() && fill.repeat {
                    (*at, *is_again) = (0, true);
                }
                let Some(&zone) = zones.get(*at) else {
                    return Next::Exhausted;
                };
                *at += 1;
                Next::Zone(Turn {
                    zone,
                    written: 0,
                    fill: *fill,
                    is_again: *is_again,
                })
            }
            Self::Shared(turns) => turns.next(rng),
        }
    }

    /// Whether a zone is left, if nobody else changes that. Who waits for a rate
    /// should know that it waits for something.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Listed {
                zones, at, fill, ..
            } => *at < zones.len() || fill.repeat && !zones.is_empty(),
            Self::Shared(turns) => turns.has_more(),
        }
    }

    /// A zone comes back, with `written` blocks in it.
    pub(super) fn give_back(&mut self, zone: u32, written: u64) {
        if let Self::Shared(turns) = self {
            turns.table.borrow_mut().end_managing(zone, written);
        }
    }

    /// A zone comes back to which a command failed.
    pub(super) fn give_up(&mut self, zone: u32) {
        if let Self::Shared(turns) = self {
            turns.table.borrow_mut().fail_managing(zone);
        }
    }

    /// What is known of the zones, if jobs share it.
    pub(super) const fn table(&self) -> Option<&SharedZones> {
        match self {
            Self::Shared(turns) => Some(&turns.table),
            Self::Listed { .. } => None,
        }
    }

    /// The job has come to its end.
    pub(super) fn ended(&mut self) {
        if let Self::Shared(turns) = self {
            turns.table.borrow_mut().job_ended();
        }
    }
}

/// Zones that jobs share, in order or drawn.
pub(super) struct SharedTurns {
    table: SharedZones,
    /// The job among those that share the zones.
    id: JobId,
    zones: Range<u32>,
    capacity_lbas: u64,
    /// Resets, which need no write in front of them: any zone that is not in use.
    /// Else zones are taken that can be written to.
    trims: bool,
    open_limit: Option<u32>,
    /// Of the write in front of what is done to a zone.
    sizes: Option<Sizes>,
    /// Next zone in order.
    next: u32,
    positions: Option<Positions>,
    /// A zone that was chosen and could not be had yet.
    chosen: Option<u32>,
    /// The size that was drawn for the write in front, likewise.
    size: Option<u32>,
}

impl SharedTurns {
    pub(super) fn new(
        work: &DirectedWork,
        zoned: ZonedInfo,
        table: SharedZones,
        id: JobId,
    ) -> Self {
        let trims = work.flow(Direction::Trim).is_some();
        let positions = match work.pattern {
            Pattern::Sequential => None,
            // Zones are drawn, not blocks: all alike.
            Pattern::Random { .. } => Some(Positions::new(
                &Distribution::Uniform,
                work.zones.len() as u64,
            )),
        };
        let flow = work.flow(Direction::Write).filter(|_| !trims);
        Self {
            table,
            id,
            zones: work.zones.clone(),
            capacity_lbas: zoned.zone_capacity_lbas,
            trims,
            open_limit: work.open_limit,
            sizes: flow.map(|flow| flow.sizes.clone()),
            next: work.zones.start,
            positions,
            chosen: None,
            size: None,
        }
    }

    fn has_more(&self) -> bool {
        let in_order = self.positions.is_none();
        let from = if in_order {
            self.next
        } else {
            self.zones.start
        };
        let table = self.table.borrow();
        let mut zones = from..self.zones.end;
        self.chosen.is_some() || zones.any(|zone| self.suits(&table, zone, in_order))
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Next {
        let block_lbas = match (&self.sizes, self.size) {
            (_, Some(lbas)) => lbas,
            (Some(sizes), None) => sizes.draw(rng),
            (None, None) => 0,
        };
        self.size = Some(block_lbas);
        // One look for all: another thread may have the table next.
        let shared = self.table.clone();
        let mut table = shared.borrow_mut();
        let Some(zone) = self.choose(&table, rng) else {
            return Next::Exhausted;
        };
        let admission = match table.is_quiet(zone) {
            false => Admission::Busy,
            true if self.trims && !table.is_in_doubt(zone) => Admission::Granted,
            true => table.admit(zone, self.id, false, self.open_limit),
        };
        match admission {
            // One that is dead does not suit.
            Admission::Granted | Admission::Dead => {}
            Admission::InDoubt => {
                table.begin_managing(zone, self.id);
                return Next::Look(zone);
            }
            Admission::TooManyOpen if !table.can_hope(self.id) => return Next::Exhausted,
            Admission::Busy | Admission::TooManyOpen => {
                table.wait(self.id);
                return Next::Wait;
            }
        }
        table.begin_managing(zone, self.id);
        (self.chosen, self.size) = (None, None);
        let written = table.written(zone);
        let left = self.capacity_lbas - written;
        Next::Zone(Turn {
            zone,
            written,
            fill: Fill {
                lbas: u64::from(block_lbas).min(left),
                block_lbas,
                ..Fill::default()
            },
            is_again: false,
        })
    }

    /// The zone whose turn it is; `None` if there is none.
    fn choose(&mut self, table: &ZoneTable, rng: &mut Rng) -> Option<u32> {
        let in_order = self.positions.is_none();
        // Who had the zone before may have left nothing to do.
        if let Some(zone) = self
            .chosen
            .filter(|zone| self.suits(table, *zone, in_order))
        {
            return Some(zone);
        }
        self.chosen = None;
        let zone = match &self.positions {
            None => {
                let zone =
                    (self.next..self.zones.end).find(|&zone| self.suits(table, zone, true))?;
                self.next = zone + 1;
                zone
            }
            Some(positions) => {
                // Fits: fewer zones than 2^32.
                let from = self.zones.start + positions.next(rng) as u32;
                let mut around = (from..self.zones.end).chain(self.zones.start..from);
                around.find(|&zone| self.suits(table, zone, false))?
            }
        };
        self.chosen = Some(zone);
        Some(zone)
    }

    /// Whether there is something to do to a zone that is not dead: resets in order take every
    /// zone, at random those with data; anything else those that are not full.
    fn suits(&self, table: &ZoneTable, zone: u32, in_order: bool) -> bool {
        let written = table.written(zone);
        if table.is_dead(zone) {
            return false;
        }
        if self.trims {
            in_order || written > 0
        } else {
            written < self.capacity_lbas
        }
    }
}
