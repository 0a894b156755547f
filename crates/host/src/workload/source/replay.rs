//! Operations of a trace, one after another.
//!
//! What happens to zones whose state is not that of the trace is in `docs/fio.md`.

use std::ops::Range;

use zonelab_device::{Lba, Nanos, Op, ZonedInfo};

use super::{ByTheWay, Offer, Role, Sent, Step, send};
use crate::stats::OpKind;
use crate::workload::directed::{DirectedWork, Direction};
use crate::workload::replay::{Action, Replay, Replayed};
use crate::workload::zone_table::{Admission, JobId, SharedZones, ZoneTable};

/// The stream of a command that the table of zones does not know of.
const UNTRACKED: u32 = u32::MAX;

/// What is left of the operation that comes next.
#[derive(Clone, Copy, Debug)]
struct Rest {
    action: Action,
    /// Where it goes on, and how much is left.
    lba: u64,
    lbas: u64,
    due: Nanos,
    /// A command of it has been issued, or another than it says.
    is_begun: bool,
    is_split: bool,
    /// It goes to the write pointer, and that has been counted.
    is_moved: bool,
    /// A part of it was left out, and that has been counted.
    is_skipped: bool,
}

/// Replays a trace.
pub(crate) struct Replaying {
    replay: Replay,
    zones: Range<u32>,
    zoned: ZonedInfo,
    reads_beyond_write_pointer: bool,
    open_limit: Option<u32>,
    table: SharedZones,
    id: JobId,
    /// It works on blocks without write pointers: nothing of zones matters.
    is_on_blocks: bool,
    /// The blocks of the last trim of these.
    trim: (u64, u32),
    index: usize,
    /// When this pass began.
    began: Option<Nanos>,
    passes: u64,
    /// Anything was issued in this pass.
    has_issued: bool,
    rest: Option<Rest>,
    by_the_way: ByTheWay,
    replayed: Replayed,
}

impl Replaying {
    pub(super) fn new(
        replay: Replay,
        work: &DirectedWork,
        zoned: ZonedInfo,
        table: SharedZones,
        id: JobId,
    ) -> Self {
        Self {
            passes: replay.passes.max(1),
            replay,
            zones: work.zones.clone(),
            zoned,
            reads_beyond_write_pointer: work.reads_beyond_write_pointer,
            open_limit: work.open_limit,
            table,
            id,
            is_on_blocks: work.blocks.is_some(),
            trim: (0, 0),
            index: 0,
            began: None,
            has_issued: false,
            rest: None,
            by_the_way: ByTheWay::default(),
            replayed: Replayed::default(),
        }
    }

    pub(super) fn offer(&mut self, now: Nanos) -> Offer {
        loop {
            let Some(rest) = self.rest else {
                match self.take(now) {
                    Some(offer) => return offer,
                    None => continue,
                }
            };
            if self.is_on_blocks {
                let Some(offer) = self.on_blocks(rest) else {
                    continue;
                };
                if let Offer::Issue(step) = &offer {
                    self.issued(rest, step, now);
                }
                return offer;
            }
            // What is seen of the zones holds until it has been acted on: jobs of
            // other threads have the table too.
            let shared = self.table.clone();
            let mut table = shared.borrow_mut();
            let offer = match rest.action {
                Action::Read => self.read(rest, &mut table),
                Action::Write => self.write(rest, &mut table),
                Action::Append => self.append(rest, &mut table),
                Action::Trim => self.trim(rest, &mut table),
                Action::ResetAll => self.reset_all(rest, &mut table),
                Action::Finish => self.finish(rest, &mut table),
                Action::Sync => Some(self.sync()),
            };
            drop(table);
            let Some(offer) = offer else { continue };
            if let Offer::Issue(step) = &offer {
                self.issued(rest, step, now);
            }
            return offer;
        }
    }

    /// Takes the next operation, or says what comes instead.
    fn take(&mut self, now: Nanos) -> Option<Offer> {
        let began = *self.began.get_or_insert(now);
        let Some(operation) = self.replay.trace.get(self.index) else {
            self.passes -= 1;
            if self.passes == 0 || !self.has_issued {
                self.passes = 1;
                return Some(Offer::Exhausted);
            }
            (self.index, self.began, self.has_issued) = (0, None, false);
            return None;
        };
        if self.replay.skips.includes(operation.action) {
            self.index += 1;
            return None;
        }
        let due = began.saturating_add(self.replay.due(operation.at));
        if due > now {
            return Some(Offer::PauseUntil(due));
        }
        self.index += 1;
        // The planner has refused operations that are not of whole blocks.
        let (lba, lbas) = self.replay.place(&operation)?;
        let lba = match operation.action {
            Action::ResetAll => u64::from(self.zones.start) * self.zoned.zone_size_lbas,
            _ => lba,
        };
        self.rest = Some(Rest {
            action: operation.action,
            lba,
            lbas,
            due,
            is_begun: false,
            is_split: false,
            is_moved: false,
            is_skipped: false,
        });
        None
    }

    /// Notes that a command of an operation goes out.
    fn issued(&mut self, before: Rest, step: &Step, now: Nanos) {
        self.has_issued = true;
        if step.role == Role::Preparation {
            return;
        }
        if !before.is_begun && self.replay.speed_percent.is_some() {
            self.replayed
                .lateness
                .record(now.saturating_sub(before.due));
        }
        let Some(rest) = &mut self.rest else { return };
        rest.is_begun = true;
        let is_data = matches!(rest.action, Action::Read | Action::Write | Action::Append);
        if is_data && !rest.is_split {
            rest.is_split = true;
            self.replayed.split += 1;
        }
    }

    /// The zone of a block, and its place in that.
    const fn zone_of(&self, lba: u64) -> (u32, u64) {
        let size = self.zoned.zone_size_lbas;
        // Fits: the planner has seen that the block is on the device.
        ((lba / size) as u32, lba % size)
    }

    const fn start_of(&self, zone: u32) -> u64 {
        zone as u64 * self.zoned.zone_size_lbas
    }

    /// Goes on behind `lbas` blocks of the operation.
    fn advance(&mut self, rest: Rest, lbas: u64) {
        let left = rest.lbas.saturating_sub(lbas);
        self.rest = (left > 0).then_some(Rest {
            lba: rest.lba + lbas,
            lbas: left,
            ..rest
        });
    }

    /// The next command of an operation on blocks: it is issued as it is, in as many commands as
    /// it takes.
    fn on_blocks(&mut self, rest: Rest) -> Option<Offer> {
        let most = match rest.action {
            Action::Trim => u64::from(u32::MAX),
            _ => u64::from(self.replay.max_lbas),
        };
        let lbas = rest.lbas.min(most);
        // Fits: at most what one command moves, or a range of Dataset Management has.
        let (slba, nlb) = (Lba(rest.lba), lbas as u32);
        let (op, kind, direction) = match rest.action {
            Action::Read => (Op::Read { slba, nlb }, OpKind::Read, Direction::Read),
            Action::Write => (Op::Write { slba, nlb }, OpKind::Write, Direction::Write),
            Action::Trim => {
                self.trim = (rest.lba, nlb);
                (Op::Deallocate { ranges: 1 }, OpKind::Reset, Direction::Trim)
            }
            Action::Sync => return Some(self.sync()),
            // The planner has refused what needs zones.
            Action::Append | Action::ResetAll | Action::Finish => {
                self.rest = None;
                return None;
            }
        };
        self.advance(rest, lbas);
        Some(measured(op, kind, direction, lbas, UNTRACKED))
    }

    /// First block, and number of blocks, of the last trim on blocks.
    pub(super) const fn trim_of_blocks(&self) -> Option<(u64, u32)> {
        match self.is_on_blocks {
            true => Some(self.trim),
            false => None,
        }
    }

    fn read(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (zone, at) = self.zone_of(rest.lba);
        // Commands do not reach across the ends of zones.
        let lbas = rest
            .lbas
            .min(u64::from(self.replay.max_lbas))
            .min(self.zoned.zone_size_lbas - at);
        let readable = match self.reads_beyond_write_pointer {
            true => self.zoned.zone_capacity_lbas,
            false => table.written(zone),
        };
        if at + lbas > readable {
            if !rest.is_skipped {
                self.replayed.skipped_reads += 1;
            }
            let is_skipped = true;
            self.advance(Rest { is_skipped, ..rest }, lbas);
            return None;
        }
        self.advance(rest, lbas);
        let op = Op::Read {
            slba: Lba(rest.lba),
            // Fits: at most what one command moves.
            nlb: lbas as u32,
        };
        Some(measured(op, OpKind::Read, Direction::Read, lbas, zone))
    }

    fn write(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (zone, at) = self.zone_of(rest.lba);
        let lbas = rest.lbas.min(u64::from(self.replay.max_lbas));
        if let Some(offer) = self.make_way(zone, false, table) {
            return Some(offer);
        }
        let capacity = self.zoned.zone_capacity_lbas;
        let written = table.written(zone);
        let is_at_pointer = at == written && at + rest.lbas <= capacity && !rest.is_moved;
        let moves = self.replay.moves_writes && !is_at_pointer;
        let is_anew = at == 0 && written > 0 && !rest.is_moved;
        let is_too_long = moves && written + rest.lbas.min(capacity) > capacity;
        if is_anew || is_too_long {
            if !is_anew {
                self.note_moved(rest);
            }
            return Some(self.clear(zone, table));
        }
        if !is_at_pointer && !moves {
            // The device says what is wrong with it.
            self.advance(rest, lbas);
            let slba = Lba(rest.lba);
            let nlb = lbas as u32;
            let op = Op::Write { slba, nlb };
            return Some(measured(
                op,
                OpKind::Write,
                Direction::Write,
                lbas,
                UNTRACKED,
            ));
        }
        let rest = match moves {
            true => self.note_moved(rest),
            false => rest,
        };
        let begins = table.begin_write(zone, self.id, lbas, false);
        // What is moved stays in its zone, wherever it would have gone on.
        match moves {
            true => {
                self.advance(rest, lbas);
                if let Some(left) = &mut self.rest {
                    left.lba = rest.lba;
                }
            }
            false => self.advance(rest, lbas),
        }
        let slba = Lba(self.start_of(zone) + begins);
        let nlb = lbas as u32;
        let op = Op::Write { slba, nlb };
        Some(measured(op, OpKind::Write, Direction::Write, lbas, zone))
    }

    /// Counts a write that is moved, once.
    fn note_moved(&mut self, rest: Rest) -> Rest {
        self.replayed.moved_writes += u64::from(!rest.is_moved);
        let is_moved = true;
        *self.rest.insert(Rest { is_moved, ..rest })
    }

    fn append(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (zone, _) = self.zone_of(rest.lba);
        let lbas = rest.lbas.min(u64::from(self.replay.max_append_lbas));
        if let Some(offer) = self.make_way(zone, true, table) {
            return Some(offer);
        }
        let written = table.written(zone);
        let fits = written + lbas <= self.zoned.zone_capacity_lbas;
        if !fits && self.replay.moves_writes {
            self.note_moved(rest);
            return Some(self.clear(zone, table));
        }
        self.advance(rest, lbas);
        if let Some(left) = &mut self.rest {
            left.lba = rest.lba;
        }
        let zslba = Lba(self.start_of(zone));
        let op = Op::Append {
            zslba,
            nlb: lbas as u32,
        };
        if fits {
            table.begin_write(zone, self.id, lbas, true);
        }
        let stream = if fits { zone } else { UNTRACKED };
        Some(measured(op, OpKind::Append, Direction::Write, lbas, stream))
    }

    /// A trim resets the zones that lie within it as a whole.
    fn trim(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (zone, at) = self.zone_of(rest.lba);
        let (size, capacity) = (self.zoned.zone_size_lbas, self.zoned.zone_capacity_lbas);
        let here = rest.lbas.min(size - at);
        // What lies behind the capacity holds nothing.
        if at > 0 || here < capacity {
            if !rest.is_skipped {
                self.replayed.skipped_trims += 1;
            }
            let is_skipped = true;
            self.advance(Rest { is_skipped, ..rest }, here);
            return None;
        }
        if !table.is_quiet(zone) {
            return Some(self.wait(table));
        }
        self.advance(rest, here);
        Some(self.manage(zone, OpKind::Reset, size, table))
    }

    /// Resets the zones of the job that hold anything.
    fn reset_all(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (from, _) = self.zone_of(rest.lba);
        let mut zones = from..self.zones.end;
        let next = { zones.find(|zone| table.written(*zone) > 0) };
        let Some(zone) = next else {
            self.rest = None;
            return None;
        };
        if !table.is_quiet(zone) {
            return Some(self.wait(table));
        }
        self.rest = Some(Rest {
            lba: self.start_of(zone + 1),
            ..rest
        });
        Some(self.manage(zone, OpKind::Reset, self.zoned.zone_size_lbas, table))
    }

    fn finish(&mut self, rest: Rest, table: &mut ZoneTable) -> Option<Offer> {
        let (zone, _) = self.zone_of(rest.lba);
        if !table.is_quiet(zone) {
            return Some(self.wait(table));
        }
        self.rest = None;
        let left = self.zoned.zone_capacity_lbas - table.written(zone);
        Some(self.manage(zone, OpKind::Finish, left, table))
    }

    fn sync(&mut self) -> Offer {
        self.rest = None;
        Offer::Issue(Step {
            op: Op::Flush,
            kind: OpKind::Write,
            direction: Direction::Write,
            lbas: 0,
            stream: UNTRACKED,
            role: Role::Sync,
        })
    }

    /// What comes before a write to a zone, if anything does. Of a dead one it is for the device
    /// to say that it is.
    fn make_way(&self, zone: u32, append: bool, table: &mut ZoneTable) -> Option<Offer> {
        match table.admit(zone, self.id, append, self.open_limit) {
            Admission::Granted | Admission::Dead => None,
            Admission::Busy => Some(self.wait(table)),
            Admission::TooManyOpen => self.make_room(table),
            Admission::InDoubt => {
                table.begin_managing(zone, self.id);
                Some(Offer::Look(zone))
            }
        }
    }

    fn wait(&self, table: &mut ZoneTable) -> Offer {
        table.wait(self.id);
        Offer::Wait
    }

    /// Resets or finishes a zone as an operation of the trace.
    fn manage(&self, zone: u32, kind: OpKind, lbas: u64, table: &mut ZoneTable) -> Offer {
        table.begin_managing(zone, self.id);
        let direction = match kind {
            OpKind::Reset => Direction::Trim,
            _ => Direction::Write,
        };
        let op = send(Lba(self.start_of(zone)), kind);
        measured(op, kind, direction, lbas, zone)
    }

    /// Resets a zone so that it can be written.
    fn clear(&self, zone: u32, table: &mut ZoneTable) -> Offer {
        if !table.is_quiet(zone) {
            return self.wait(table);
        }
        table.begin_clearing(zone, self.id);
        self.prepare(zone, OpKind::Reset)
    }

    /// Where writes are moved, finishes the zone of the job that has been open
    /// longest, so that another may be opened. `None`: it is for the device to
    /// say that too many are.
    fn make_room(&self, table: &mut ZoneTable) -> Option<Offer> {
        if !self.replay.moves_writes {
            return None;
        }
        let (oldest, can_hope) = {
            let mine = |zone: &&u32| self.zones.contains(*zone) && table.is_quiet(**zone);
            let oldest = table.open_zones().iter().find(mine).copied();
            (oldest, table.can_hope(self.id))
        };
        match oldest {
            Some(zone) => {
                table.begin_managing(zone, self.id);
                Some(self.prepare(zone, OpKind::Finish))
            }
            None => can_hope.then(|| self.wait(table)),
        }
    }

    fn prepare(&self, zone: u32, kind: OpKind) -> Offer {
        Offer::Issue(Step {
            op: send(Lba(self.start_of(zone)), kind),
            kind,
            direction: Direction::Write,
            lbas: 0,
            stream: zone,
            role: Role::Preparation,
        })
    }

    pub(super) fn completed(&mut self, sent: &Sent) {
        let zone = sent.stream;
        let mut table = self.table.borrow_mut();
        match (sent.role, sent.kind) {
            _ if zone == UNTRACKED => {}
            (Role::Preparation, OpKind::Finish) => {
                self.by_the_way.ended += 1;
                table.end_finishing(zone);
            }
            (Role::Preparation, _) => {
                self.by_the_way.cleared += 1;
                table.end_clearing(zone);
            }
            (_, OpKind::Write | OpKind::Append) => table.end_write(zone, sent.lbas),
            (_, OpKind::Reset) => table.end_managing(zone, 0),
            (_, OpKind::Finish) => table.end_finishing(zone),
            (_, OpKind::Read | OpKind::Open | OpKind::Close) => {}
        }
    }

    pub(super) fn failed(&mut self, sent: &Sent) {
        let zone = sent.stream;
        if zone == UNTRACKED {
            return;
        }
        let mut table = self.table.borrow_mut();
        match sent.kind {
            OpKind::Write | OpKind::Append => table.fail_write(zone, sent.lbas, 0),
            OpKind::Reset | OpKind::Finish => table.fail_managing(zone),
            OpKind::Read | OpKind::Open | OpKind::Close => {}
        }
    }

    /// What is known of the zones.
    pub(super) const fn table(&self) -> &SharedZones {
        &self.table
    }

    pub(super) fn ended(&mut self) {
        self.table.borrow_mut().job_ended();
    }

    pub(super) const fn by_the_way(&self) -> ByTheWay {
        self.by_the_way
    }

    pub(super) const fn replayed(&self) -> &Replayed {
        &self.replayed
    }
}

/// A command of the trace.
fn measured(op: Op, kind: OpKind, direction: Direction, lbas: u64, stream: u32) -> Offer {
    Offer::Issue(Step {
        op,
        kind,
        direction,
        lbas,
        stream,
        role: Role::Measured,
    })
}
