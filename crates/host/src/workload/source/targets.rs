//! Where the reads and writes of a job go, in zones that it shares.

use zonelab_device::{Lba, Op, ZonedInfo};

use super::{Offer, Role, Step, send, write_op};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::directed::{DirectedWork, Direction, EarlyReset, Pattern, WriteStyle};
use crate::workload::distribution::Positions;
use crate::workload::zone_table::{Admission, JobId, ZoneTable};

/// A place in the job's zones.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    zone: u32,
    /// Reads: blocks from the start of the zone.
    offset: u64,
    /// Writes: this zone has been looked at, and reset if it was full.
    entered: bool,
}

/// Chooses addresses of reads and writes. What is chosen is entered in the table
/// of zones in the same look at it: another thread may have it next.
pub(super) struct Targets {
    /// The job among those that share the zones.
    id: JobId,
    zoned: ZonedInfo,
    /// By direction; trims have theirs elsewhere.
    cursors: [Cursor; 2],
    /// By direction, over whole blocks of the smallest size.
    positions: [Option<(Positions, u64)>; 2],
    /// By direction: operations that still follow the last random one in order.
    in_a_row_left: [u32; 2],
    /// By direction, the last random position.
    last_random: [(u32, u64); 2],
    /// The zone that was drawn for the next write, which could not be issued yet.
    drawn: Option<u32>,
    /// What was left of a zone in this pass, and of the zone that is being written,
    /// was too small for a write.
    left_rest: [bool; 2],
    /// The pass has gone on from the first zone for that reason.
    goes_on: bool,
    early: Option<Early>,
    /// Zones that reads in order left out since nothing is written there.
    empty: u64,
    /// Reads in order are in their first pass.
    is_first_pass: bool,
    /// Reads at random drew zones in which nothing is written, and went elsewhere.
    has_drawn_empty: bool,
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
    pub(super) fn new(work: &DirectedWork, zoned: ZonedInfo, table: &ZoneTable, id: JobId) -> Self {
        let cursor = Cursor {
            zone: work.zones.start,
            offset: 0,
            entered: false,
        };
        let positions = [Direction::Read, Direction::Write].map(|direction| {
            let flow = work.flow(direction)?;
            let Pattern::Random { distribution, .. } = &work.pattern else {
                return None;
            };
            let per_zone = (zoned.zone_capacity_lbas / u64::from(flow.sizes.min.max(1))).max(1);
            let blocks = per_zone.saturating_mul(work.zones.len() as u64);
            Some((Positions::new(distribution, blocks), per_zone))
        });
        Self {
            id,
            zoned,
            cursors: [cursor; 2],
            positions,
            in_a_row_left: [0; 2],
            last_random: [(work.zones.start, 0); 2],
            drawn: None,
            left_rest: [false; 2],
            goes_on: false,
            early: work.early_reset.map(|when| Early {
                when,
                elsewhere_lbas: elsewhere_lbas(table, &work.zones),
                left: when.every_writes.max(1),
                is_due: None,
            }),
            empty: 0,
            // Who writes too makes what it reads.
            is_first_pass: work.flow(Direction::Write).is_none(),
            has_drawn_empty: false,
        }
    }

    /// Zones that reads left out since nothing is written there: those in order in their first
    /// pass; of those at random that would have gone there, all that hold nothing.
    pub(super) fn empty(&self, work: &DirectedWork, table: &ZoneTable) -> u64 {
        if !self.has_drawn_empty {
            return self.empty;
        }
        let is_empty = |zone: &u32| table.written(*zone) == 0;
        work.zones.clone().filter(is_empty).count() as u64
    }

    /// Blocks from the start of a zone to `at`.
    pub(super) fn offset_of(&self, zone: u32, at: Lba) -> u64 {
        at.0.saturating_sub(self.start_of(zone))
    }

    fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zoned.zone_size_lbas
    }

    /// The random position of an operation: zone, and block of the smallest
    /// size in it. `None`: this one is sequential.
    #[inline(always)]
    fn random(
        &mut self,
        work: &DirectedWork,
        direction: Direction,
        rng: &mut Rng,
    ) -> Option<(u32, u64)> {
        let (positions, per_zone) = self.positions[direction as usize].as_ref()?;
        if let Pattern::Random {
            percent,
            in_a_row,
            is_identical,
            ..
        } = work.pattern
        {
            let left = &mut self.in_a_row_left[direction as usize];
            if *left > 0 {
                *left -= 1;
                return is_identical.then_some(self.last_random[direction as usize]);
            }
            *left = in_a_row.saturating_sub(1);
            let percent = percent[direction as usize];
            if percent < 100 && !rng.ratio(u64::from(percent), 100) {
                return None;
            }
        }
        let block = positions.next(rng);
        // Fits: fewer zones than 2^32.
        let zone = work.zones.start + (block / per_zone) as u32;
        let position = (zone, block % per_zone);
        self.last_random[direction as usize] = position;
        Some(position)
    }

    /// The next read, of `lbas` or what there is.
    #[inline]
    pub(super) fn read(
        &mut self,
        work: &DirectedWork,
        table: &ZoneTable,
        lbas: u32,
        min: u32,
        rng: &mut Rng,
    ) -> Offer {
        let min = u64::from(min);
        if let Some((zone, block)) = self.random(work, Direction::Read, rng) {
            let drawn = zone;
            let Some(zone) = self.zone_with_data(work, table, drawn, min, true) else {
                return Offer::Exhausted;
            };
            if zone != drawn && self.is_first_pass {
                self.has_drawn_empty = true;
            }
            let blocks = self.readable(work, table, zone) / min;
            let last = (blocks - 1) * min;
            let offset = (block % blocks * min).min(last);
            return self.issue_read(work, table, zone, offset, lbas, min);
        }
        self.read_in_order(work, table, lbas, min)
    }

    /// The next read behind the last one.
    fn read_in_order(
        &mut self,
        work: &DirectedWork,
        table: &ZoneTable,
        lbas: u32,
        min: u64,
    ) -> Offer {
        let cursor = self.cursors[Direction::Read as usize];
        if cursor.offset > 0 {
            let readable = self.readable(work, table, cursor.zone);
            if readable.saturating_sub(cursor.offset) >= min {
                return self.issue_read(work, table, cursor.zone, cursor.offset, lbas, min);
            }
        }
        let from = cursor.zone + u32::from(cursor.offset > 0);
        let further = self.zone_with_data(work, table, from, min, false);
        if self.is_first_pass {
            self.empty += u64::from(further.unwrap_or(work.zones.end) - from);
            self.is_first_pass = further.is_some();
        }
        let next = further.or_else(|| {
            let wraps = work.repeats.then_some(work.zones.start);
            wraps.and_then(|start| self.zone_with_data(work, table, start, min, false))
        });
        match next {
            Some(zone) => self.issue_read(work, table, zone, 0, lbas, min),
            None => Offer::Exhausted,
        }
    }

    #[inline]
    fn readable(&self, work: &DirectedWork, table: &ZoneTable, zone: u32) -> u64 {
        if work.reads_beyond_write_pointer {
            return self.zoned.zone_capacity_lbas;
        }
        table.readable(zone)
    }

    /// The first zone from `from` on with at least `min` blocks to read.
    #[inline]
    fn zone_with_data(
        &self,
        work: &DirectedWork,
        table: &ZoneTable,
        from: u32,
        min: u64,
        around: bool,
    ) -> Option<u32> {
        let before = if around { work.zones.start..from } else { 0..0 };
        if work.reads_beyond_write_pointer {
            let mut zones = (from..work.zones.end).chain(before);
            return zones.find(|&zone| self.readable(work, table, zone) >= min);
        }
        let after = table.first_readable(from..work.zones.end, min);
        after.or_else(|| table.first_readable(before, min))
    }

    #[inline]
    fn issue_read(
        &mut self,
        work: &DirectedWork,
        table: &ZoneTable,
        zone: u32,
        offset: u64,
        lbas: u32,
        min: u64,
    ) -> Offer {
        let left = self.readable(work, table, zone) - offset;
        let lbas = u64::from(lbas).min(left / min * min);
        self.cursors[Direction::Read as usize] = Cursor {
            zone,
            offset: offset + lbas,
            entered: true,
        };
        if work.hole_lbas > 0 {
            self.leave_out_read(work);
        }
        let slba = Lba(self.start_of(zone) + offset);
        // Fits: at most the `lbas` asked for.
        let nlb = lbas as u32;
        Offer::Issue(Step {
            op: Op::Read { slba, nlb },
            kind: OpKind::Read,
            direction: Direction::Read,
            lbas,
            stream: zone,
            role: Role::Measured,
        })
    }

    /// The next read in order comes behind a hole.
    fn leave_out_read(&mut self, work: &DirectedWork) {
        let size = self.zoned.zone_size_lbas;
        let cursor = &mut self.cursors[Direction::Read as usize];
        let at = cursor.offset.saturating_add(work.hole_lbas);
        let zone = u64::from(cursor.zone) + at / size;
        let is_inside = zone < u64::from(work.zones.end);
        *cursor = Cursor {
            // Fits: it is one of the zones.
            zone: if is_inside {
                zone as u32
            } else {
                work.zones.end
            },
            offset: if is_inside { at % size } else { 0 },
            entered: true,
        };
    }

    /// The next write in order goes to the zone behind a hole, if that is another
    /// one: within a zone there are no holes.
    fn leave_out_write(&mut self, work: &DirectedWork, table: &ZoneTable, zone: u32) {
        let size = self.zoned.zone_size_lbas;
        let at = table.written(zone).saturating_add(work.hole_lbas);
        let next = u64::from(zone) + at / size;
        if next == u64::from(zone) {
            return;
        }
        let is_inside = next < u64::from(work.zones.end);
        self.cursors[Direction::Write as usize] = Cursor {
            zone: match (is_inside, work.repeats) {
                // Fits: it is one of the zones.
                (true, _) => next as u32,
                (false, true) => work.zones.start,
                (false, false) => work.zones.end,
            },
            offset: 0,
            entered: false,
        };
    }

    /// The next write in order, of `lbas`, if it goes where the last one went and nothing has to
    /// be asked for it. `None`: nothing has changed.
    #[inline]
    pub(super) fn go_on(&mut self, table: &mut ZoneTable, lbas: u32, append: bool) -> Option<Step> {
        let Cursor { zone, entered, .. } = self.cursors[Direction::Write as usize];
        if !entered {
            return None;
        }
        let at = table.go_on(zone, self.id, u64::from(lbas), append)?;
        let zslba = Lba(self.start_of(zone));
        let (op, kind) = write_op(append, zslba, Lba(zslba.0 + at), lbas);
        Some(Step {
            op,
            kind,
            direction: Direction::Write,
            lbas: u64::from(lbas),
            stream: zone,
            role: Role::Measured,
        })
    }

    /// The next write, of `lbas` or what fits into its zone.
    pub(super) fn write(
        &mut self,
        work: &DirectedWork,
        table: &mut ZoneTable,
        lbas: u32,
        rng: &mut Rng,
    ) -> Offer {
        let drawn = self.drawn.take().or_else(|| {
            let (zone, _) = self.random(work, Direction::Write, rng)?;
            Some(zone)
        });
        if let Some(zone) = drawn {
            let Some(zone) = alive(&work.zones, table, zone) else {
                return Offer::Exhausted;
            };
            let cursor = &mut self.cursors[Direction::Write as usize];
            *cursor = Cursor {
                zone,
                offset: 0,
                entered: true,
            };
            let pick = self.write_to(work, table, zone, lbas);
            self.drawn = match &pick {
                Offer::Issue(step) if step.kind == OpKind::Finish => {
                    Some(next_of(&work.zones, step.stream))
                }
                Offer::Issue(step) if step.role == Role::Measured => None,
                Offer::Issue(step) => Some(step.stream),
                _ => Some(zone),
            };
            return pick;
        }
        // Every zone of the job is looked at once at most.
        for _ in 0..=work.zones.len() {
            let Cursor { zone, entered, .. } = self.cursors[Direction::Write as usize];
            if zone == work.zones.end {
                return Offer::Exhausted;
            }
            let is_full = self.rest(table, zone) == 0;
            if (!entered || !is_full) && !table.is_dead(zone) {
                let pick = self.write_to(work, table, zone, lbas);
                let cursor = &mut self.cursors[Direction::Write as usize];
                // Not by its reset, during which it still counts as full.
                cursor.entered |= matches!(&pick, Offer::Issue(step)
                    if step.stream == zone && step.kind != OpKind::Reset);
                if matches!(&pick, Offer::Issue(step) if step.kind == OpKind::Finish) {
                    self.left_rest = [true; 2];
                }
                if work.hole_lbas > 0
                    && let Offer::Issue(step) = &pick
                    && step.role == Role::Measured
                {
                    self.leave_out_write(work, table, step.stream);
                }
                return pick;
            }
            let last = zone + 1 == work.zones.end;
            // As in fio, a pass that had to leave out a rest goes on from the first zone
            // until its size is done, or a zone is written to its end; one that wrote
            // every block to the last is over.
            let [of_pass, of_zone] = self.left_rest;
            self.left_rest = [of_pass && !last, false];
            if self.goes_on && !of_zone && !work.repeats {
                return Offer::Exhausted;
            }
            self.goes_on |= last && of_pass;
            let next = if last && (of_pass || work.repeats) {
                work.zones.start
            } else {
                zone + 1
            };
            self.cursors[Direction::Write as usize] = Cursor {
                zone: next,
                offset: 0,
                entered: false,
            };
        }
        match alive(&work.zones, table, work.zones.start) {
            Some(_) => Offer::Wait,
            None => Offer::Exhausted,
        }
    }

    /// Blocks of a zone that are not written.
    fn rest(&self, table: &ZoneTable, zone: u32) -> u64 {
        self.zoned.zone_capacity_lbas - table.written(zone)
    }

    /// A write to `zone`, to which it must be reset first if it is full, or to
    /// another that is open if no more may be.
    fn write_to(
        &mut self,
        work: &DirectedWork,
        table: &mut ZoneTable,
        zone: u32,
        lbas: u32,
    ) -> Offer {
        let append = work.style == WriteStyle::Append;
        let look = |table: &mut ZoneTable, zone| {
            table.begin_managing(zone, self.id);
            Offer::Look(zone)
        };
        let zone = match table.admit(zone, self.id, append, work.open_limit) {
            Admission::Granted => zone,
            Admission::InDoubt => return look(table, zone),
            Admission::Busy | Admission::Dead => {
                table.wait(self.id);
                return Offer::Wait;
            }
            Admission::TooManyOpen => {
                let admission = |zone| table.admit(zone, self.id, append, None);
                let usable = |zone: &&u32| {
                    work.zones.contains(*zone)
                        && self.rest(table, **zone) > 0
                        && matches!(admission(**zone), Admission::Granted | Admission::InDoubt)
                };
                // As fio does it: the place among the open zones is that of the
                // zone among all of the job.
                let count = table.open_zones().iter().filter(usable).count();
                let nth = (zone - work.zones.start) as usize * count / work.zones.len().max(1);
                match table.open_zones().iter().filter(usable).nth(nth).copied() {
                    Some(other) if admission(other) == Admission::InDoubt => {
                        return look(table, other);
                    }
                    Some(other) => other,
                    None if table.can_hope(self.id) => {
                        table.wait(self.id);
                        return Offer::Wait;
                    }
                    None => return Offer::Exhausted,
                }
            }
        };
        let is_early = self.is_reset_early(table) && table.written(zone) > 0;
        if self.rest(table, zone) > 0 && !is_early {
            return self.issue_write(work, table, zone, lbas);
        }
        if !table.is_quiet(zone) {
            table.wait(self.id);
            return Offer::Wait;
        }
        table.begin_clearing(zone, self.id);
        if let Some(early) = &mut self.early {
            early.is_due = Some(false);
        }
        Offer::Issue(self.manage(zone, OpKind::Reset))
    }

    /// Whether the next write resets its zone, full or not: found out once for
    /// each write.
    fn is_reset_early(&mut self, table: &ZoneTable) -> bool {
        let Some(early) = &mut self.early else {
            return false;
        };
        let written = table.written_lbas();
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
    fn issue_write(
        &mut self,
        work: &DirectedWork,
        table: &mut ZoneTable,
        zone: u32,
        lbas: u32,
    ) -> Offer {
        let smallest = work.flow(Direction::Write);
        let min = smallest.map_or(1, |flow| u64::from(flow.sizes.min.max(1)));
        let rest = self.rest(table, zone);
        if rest < min {
            if !table.is_quiet(zone) {
                table.wait(self.id);
                return Offer::Wait;
            }
            table.begin_managing(zone, self.id);
            return Offer::Issue(self.manage(zone, OpKind::Finish));
        }
        if let Some(early) = &mut self.early {
            early.is_due = None;
        }
        let lbas = u64::from(lbas).min(rest) / min * min;
        let append = work.style == WriteStyle::Append;
        let at = table.begin_write(zone, self.id, lbas, append);
        let zslba = Lba(self.start_of(zone));
        // Fits: at most the `lbas` asked for.
        let nlb = lbas as u32;
        let (op, kind) = write_op(append, zslba, Lba(zslba.0 + at), nlb);
        Offer::Issue(Step {
            op,
            kind,
            direction: Direction::Write,
            lbas,
            stream: zone,
            role: Role::Measured,
        })
    }

    /// What makes a zone fit for writes (a reset), or full (a finish).
    fn manage(&self, zone: u32, kind: OpKind) -> Step {
        Step {
            op: send(Lba(self.start_of(zone)), kind),
            kind,
            direction: Direction::Write,
            lbas: 0,
            stream: zone,
            role: Role::Preparation,
        }
    }
}

/// Blocks that are written outside of `zones`.
fn elsewhere_lbas(table: &ZoneTable, zones: &std::ops::Range<u32>) -> u64 {
    let own: u64 = zones.clone().map(|zone| table.written(zone)).sum();
    table.written_lbas().saturating_sub(own)
}

/// The first of some zones from `zone` on, and round to it, that is not dead.
fn alive(zones: &std::ops::Range<u32>, table: &ZoneTable, zone: u32) -> Option<u32> {
    let mut around = (zone..zones.end).chain(zones.start..zone);
    around.find(|zone| !table.is_dead(*zone))
}

/// The zone behind one of `zones`, or the first.
fn next_of(zones: &std::ops::Range<u32>, zone: u32) -> u32 {
    match zone + 1 {
        next if zones.contains(&next) => next,
        _ => zones.start,
    }
}
