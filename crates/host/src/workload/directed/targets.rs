//! Where the reads and writes of a job go.

use zonelab_device::{Lba, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::{DirectedSpec, Direction, EarlyReset, Pattern, WriteStyle};
use crate::rng::Rng;
use crate::workload::distribution::Positions;
use crate::workload::zone_table::{Admission, SharedZones};

/// An operation to issue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) direction: Direction,
    pub(super) zone: u32,
    /// Logical blocks moved.
    pub(super) lbas: u64,
    /// Logical blocks that it counts as.
    pub(super) counted: u64,
    pub(super) role: Role,
    /// It counts towards the rate of its direction: of an operation of several
    /// steps the one that is measured, or the first of these.
    pub(super) paced: bool,
}

/// What an operation is to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A read, write or append: measured.
    Transfer,
    /// A reset of a zone that is to be written again.
    Clearing,
    /// A finish of a zone whose rest is too small for a write.
    Ending,
    /// A flush: measured by itself.
    Sync,
    /// The write in front of a finish or reset.
    Trigger,
    /// A finish or reset: measured.
    Managing,
    /// A write of a softfinish; measured when the zone is full.
    Chunk,
}

/// What can be issued.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    Issue(Step),
    /// Nothing before something completes, here or elsewhere.
    Wait,
    /// Nothing in this direction, ever again.
    Exhausted,
}

/// A place in the job's zones.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    zone: u32,
    /// Reads: blocks from the start of the zone.
    offset: u64,
    /// Writes: this zone has been looked at, and reset if it was full.
    entered: bool,
}

/// Chooses addresses of reads and writes.
pub(super) struct Targets {
    table: SharedZones,
    zoned: ZonedInfo,
    /// By direction; trims have theirs elsewhere.
    cursors: [Cursor; 2],
    /// By direction, over whole blocks of the smallest size.
    positions: [Option<(Positions, u64)>; 2],
    /// The zone that was drawn for the next write, which could not be issued yet.
    drawn: Option<u32>,
    early: Option<Early>,
}

/// Resets before zones are full.
#[derive(Clone, Copy, Debug)]
struct Early {
    when: EarlyReset,
    /// Blocks that were written in the zones of other jobs when this one began.
    elsewhere_lbas: u64,
    /// Writes until the next one.
    left: u64,
    /// Whether the write that comes next resets its zone; `None`: not known yet.
    is_due: Option<bool>,
}

impl Targets {
    pub(super) fn new(spec: &DirectedSpec, zoned: ZonedInfo, table: SharedZones) -> Self {
        let cursor = Cursor {
            zone: spec.zones.start,
            offset: 0,
            entered: false,
        };
        let positions = [Direction::Read, Direction::Write].map(|direction| {
            let flow = spec.flows[direction as usize].as_ref()?;
            let Pattern::Random { distribution, .. } = spec.pattern else {
                return None;
            };
            let per_zone = (zoned.zone_capacity_lbas / u64::from(flow.sizes.min.max(1))).max(1);
            let blocks = per_zone.saturating_mul(spec.zones.len() as u64);
            Some((Positions::new(distribution, blocks), per_zone))
        });
        Self {
            zoned,
            cursors: [cursor; 2],
            positions,
            drawn: None,
            early: spec.early_reset.map(|when| Early {
                when,
                elsewhere_lbas: elsewhere_lbas(&table, &spec.zones),
                left: when.every_writes.max(1),
                is_due: None,
            }),
            table,
        }
    }

    fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zoned.zone_size_lbas
    }

    /// The random position of an operation: zone, and block of the smallest
    /// size in it. `None`: this one is sequential.
    #[inline]
    fn random(
        &self,
        spec: &DirectedSpec,
        direction: Direction,
        rng: &mut Rng,
    ) -> Option<(u32, u64)> {
        let (positions, per_zone) = self.positions[direction as usize].as_ref()?;
        if let Pattern::Random { percent, .. } = spec.pattern {
            let percent = percent[direction as usize];
            if percent < 100 && !rng.ratio(u64::from(percent), 100) {
                return None;
            }
        }
        let block = positions.next(rng);
        // Fits: fewer zones than 2^32.
        let zone = spec.zones.start + (block / per_zone) as u32;
        Some((zone, block % per_zone))
    }

    /// The next read, of `lbas` or what there is.
    pub(super) fn read(&mut self, spec: &DirectedSpec, lbas: u32, min: u32, rng: &mut Rng) -> Pick {
        let min = u64::from(min);
        if let Some((zone, block)) = self.random(spec, Direction::Read, rng) {
            let Some(zone) = self.zone_with_data(spec, zone, min, true) else {
                return Pick::Exhausted;
            };
            let blocks = self.readable(spec, zone) / min;
            let last = (blocks - 1) * min;
            let offset = (block % blocks * min).min(last);
            return self.issue_read(spec, zone, offset, lbas, min);
        }
        let cursor = self.cursors[Direction::Read as usize];
        let left = self
            .readable(spec, cursor.zone)
            .saturating_sub(cursor.offset);
        if cursor.offset > 0 && left >= min {
            return self.issue_read(spec, cursor.zone, cursor.offset, lbas, min);
        }
        let from = cursor.zone + u32::from(cursor.offset > 0);
        let next = self.zone_with_data(spec, from, min, false).or_else(|| {
            let wraps = spec.end.repeats.then_some(spec.zones.start);
            wraps.and_then(|start| self.zone_with_data(spec, start, min, false))
        });
        match next {
            Some(zone) => self.issue_read(spec, zone, 0, lbas, min),
            None => Pick::Exhausted,
        }
    }

    fn readable(&self, spec: &DirectedSpec, zone: u32) -> u64 {
        if spec.reads_beyond_write_pointer {
            return self.zoned.zone_capacity_lbas;
        }
        self.table.borrow().readable(zone)
    }

    /// The first zone from `from` on with at least `min` blocks to read.
    fn zone_with_data(
        &self,
        spec: &DirectedSpec,
        from: u32,
        min: u64,
        around: bool,
    ) -> Option<u32> {
        let before = if around { spec.zones.start..from } else { 0..0 };
        let mut zones = (from..spec.zones.end).chain(before);
        zones.find(|&zone| self.readable(spec, zone) >= min)
    }

    fn issue_read(
        &mut self,
        spec: &DirectedSpec,
        zone: u32,
        offset: u64,
        lbas: u32,
        min: u64,
    ) -> Pick {
        let left = self.readable(spec, zone) - offset;
        let lbas = u64::from(lbas).min(left / min * min);
        self.cursors[Direction::Read as usize] = Cursor {
            zone,
            offset: offset + lbas,
            entered: true,
        };
        let slba = Lba(self.start_of(zone) + offset);
        // Fits: at most the `lbas` asked for.
        let nlb = lbas as u32;
        Pick::Issue(Step {
            op: Op::Read { slba, nlb },
            direction: Direction::Read,
            zone,
            lbas,
            counted: lbas,
            role: Role::Transfer,
            paced: true,
        })
    }

    /// The next write, of `lbas` or what fits into its zone.
    pub(super) fn write(&mut self, spec: &DirectedSpec, lbas: u32, rng: &mut Rng) -> Pick {
        let drawn = self.drawn.take().or_else(|| {
            let (zone, _) = self.random(spec, Direction::Write, rng)?;
            Some(zone)
        });
        if let Some(zone) = drawn {
            let cursor = &mut self.cursors[Direction::Write as usize];
            *cursor = Cursor {
                zone,
                offset: 0,
                entered: true,
            };
            let pick = self.write_to(spec, zone, lbas);
            self.drawn = match &pick {
                Pick::Issue(step) if step.role == Role::Ending => {
                    Some(next_of(&spec.zones, step.zone))
                }
                Pick::Issue(step) if step.role == Role::Transfer => None,
                Pick::Issue(step) => Some(step.zone),
                _ => Some(zone),
            };
            return pick;
        }
        // Every zone of the job is looked at once at most.
        for _ in 0..=spec.zones.len() {
            let Cursor { zone, entered, .. } = self.cursors[Direction::Write as usize];
            if zone == spec.zones.end {
                return Pick::Exhausted;
            }
            let is_full = self.rest(zone) == 0;
            if !entered || !is_full {
                let pick = self.write_to(spec, zone, lbas);
                let cursor = &mut self.cursors[Direction::Write as usize];
                // Not by its reset, during which it still counts as full.
                cursor.entered |= matches!(&pick, Pick::Issue(step)
                    if step.zone == zone && step.role != Role::Clearing);
                return pick;
            }
            let last = zone + 1 == spec.zones.end;
            let next = if last && spec.end.repeats {
                spec.zones.start
            } else {
                zone + 1
            };
            self.cursors[Direction::Write as usize] = Cursor {
                zone: next,
                offset: 0,
                entered: false,
            };
        }
        Pick::Wait
    }

    /// Blocks of a zone that are not written.
    fn rest(&self, zone: u32) -> u64 {
        self.zoned.zone_capacity_lbas - self.table.borrow().written(zone)
    }

    /// A write to `zone`, to which it must be reset first if it is full, or to
    /// another that is open if no more may be.
    fn write_to(&mut self, spec: &DirectedSpec, zone: u32, lbas: u32) -> Pick {
        let append = spec.style == WriteStyle::Append;
        let mut table = self.table.borrow_mut();
        let zone = match table.admit(zone, spec.id, append, spec.open_limit) {
            Admission::Granted => zone,
            Admission::Busy => {
                table.wait(spec.id);
                return Pick::Wait;
            }
            Admission::TooManyOpen => {
                let usable = |zone: &&u32| {
                    spec.zones.contains(*zone)
                        && table.admit(**zone, spec.id, append, None) == Admission::Granted
                };
                // As fio does it: the place among the open zones is that of the
                // zone among all of the job.
                let count = table.open_zones().iter().filter(usable).count();
                let nth = (zone - spec.zones.start) as usize * count / spec.zones.len().max(1);
                match table.open_zones().iter().filter(usable).nth(nth).copied() {
                    Some(other) => other,
                    None if table.can_hope(spec.id) => {
                        table.wait(spec.id);
                        return Pick::Wait;
                    }
                    None => return Pick::Exhausted,
                }
            }
        };
        drop(table);
        let is_early = self.is_reset_early() && self.table.borrow().written(zone) > 0;
        if self.rest(zone) > 0 && !is_early {
            return self.issue_write(spec, zone, lbas);
        }
        let mut table = self.table.borrow_mut();
        if !table.is_quiet(zone) {
            table.wait(spec.id);
            return Pick::Wait;
        }
        table.begin_clearing(zone, spec.id);
        drop(table);
        if let Some(early) = &mut self.early {
            early.is_due = Some(false);
        }
        Pick::Issue(self.manage(zone, ZoneSendAction::RESET, Role::Clearing))
    }

    /// Whether the next write resets its zone, full or not: found out once for
    /// each write.
    fn is_reset_early(&mut self) -> bool {
        let Some(early) = &mut self.early else {
            return false;
        };
        let written = self.table.borrow().written_lbas();
        *early.is_due.get_or_insert_with(|| {
            if written.saturating_sub(early.elsewhere_lbas) < early.when.threshold_lbas {
                return false;
            }
            early.left -= 1;
            let is_due = early.left == 0;
            if is_due {
                early.left = early.when.every_writes.max(1);
            }
            is_due
        })
    }

    /// Writes what fits in whole blocks of the smallest size. What is left of a
    /// zone when not even one fits is finished, so that the zone becomes full.
    fn issue_write(&mut self, spec: &DirectedSpec, zone: u32, lbas: u32) -> Pick {
        let smallest = spec.flows[Direction::Write as usize].as_ref();
        let min = smallest.map_or(1, |flow| u64::from(flow.sizes.min.max(1)));
        let rest = self.rest(zone);
        let mut table = self.table.borrow_mut();
        if rest < min {
            if !table.is_quiet(zone) {
                table.wait(spec.id);
                return Pick::Wait;
            }
            table.begin_managing(zone, spec.id);
            drop(table);
            return Pick::Issue(self.manage(zone, ZoneSendAction::FINISH, Role::Ending));
        }
        if let Some(early) = &mut self.early {
            early.is_due = None;
        }
        let lbas = u64::from(lbas).min(rest) / min * min;
        let at = table.begin_write(zone, spec.id, lbas);
        let zslba = Lba(self.start_of(zone));
        // Fits: at most the `lbas` asked for.
        let nlb = lbas as u32;
        let op = match spec.style {
            WriteStyle::Append => Op::Append { zslba, nlb },
            _ => Op::Write {
                slba: Lba(zslba.0 + at),
                nlb,
            },
        };
        Pick::Issue(Step {
            op,
            direction: Direction::Write,
            zone,
            lbas,
            counted: lbas,
            role: Role::Transfer,
            paced: true,
        })
    }

    /// What makes a zone fit for writes, or full.
    fn manage(&self, zone: u32, action: ZoneSendAction, role: Role) -> Step {
        Step {
            op: Op::ZoneSend {
                slba: Lba(self.start_of(zone)),
                action,
                select_all: false,
            },
            direction: Direction::Write,
            zone,
            lbas: 0,
            counted: 0,
            role,
            paced: false,
        }
    }
}

/// Blocks that are written outside of `zones`.
fn elsewhere_lbas(table: &SharedZones, zones: &std::ops::Range<u32>) -> u64 {
    let table = table.borrow();
    let own: u64 = zones.clone().map(|zone| table.written(zone)).sum();
    table.written_lbas().saturating_sub(own)
}

/// The zone behind one of `zones`, or the first.
fn next_of(zones: &std::ops::Range<u32>, zone: u32) -> u32 {
    match zone + 1 {
        next if zones.contains(&next) => next,
        _ => zones.start,
    }
}
