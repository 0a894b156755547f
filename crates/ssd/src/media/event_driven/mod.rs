//! The engine for everything that needs decisions: two lines per unit, one per
//! channel, and at most one event of each that counts.
//!
//! An event means "look again". What is to be done follows from the state
//! alone, so a look too many changes nothing, and an event that has been
//! overtaken is told by its time: it is not the one that the unit or channel
//! waits for. Nothing is queued for an end that nobody waits for.

mod channel;
mod queues;
mod unit;
mod without;

use zonelab_device::Nanos;

use super::idle::IdleWaits;
use super::{FlashKind, FlashOp};
use crate::account::{Cause, Ledger};
use crate::config::{ChannelArbitration, DiePolicy, MediaConfig, PageRegister, Suspend};
use crate::event::{Event, EventQueue, Place};
use crate::record::Work;
use crate::slab::Slab;

use channel::Channel;
use queues::OpRecord;
use unit::Unit;
use without::Certain;

/// Channels, units, and the operations whose end is not certain yet.
#[derive(Clone, Debug)]
pub(super) struct EventDriven {
    rules: Rules,
    units: Vec<Unit>,
    channels: Vec<Channel>,
    ops: Slab<OpRecord>,
    groups: Slab<Group>,
    /// Operations submitted so far.
    sequence: u64,
    waits: IdleWaits,
    programs: Programs,
    /// Ends of groups that are certain, if groups are tracked.
    certain: Option<Box<Certain>>,
    pub(super) ledger: Ledger,
}

/// Programs behind cache registers, drive-wide.
#[derive(Clone, Copy, Debug, Default)]
struct Programs {
    /// No further page is asked for.
    held: bool,
    /// Those whose page has been asked for and whose end is not certain.
    under_way: u32,
    /// The latest end that is.
    end: Nanos,
}

/// The part of the configuration that decides.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// A unit is held during the transfer of a read.
    hold_reads: bool,
    /// A unit is held during the transfer of a program.
    hold_programs: bool,
    /// The page of the next program arrives while a unit works, and no other.
    one_ahead: bool,
    /// The longest that one transfer keeps its channel; `u32::MAX`: to its end.
    piece_ns: u32,
    /// Arrivals of pages at their units are reported.
    reports_loads: bool,
    /// A page counts as arrived when its unit begins to program it, since registers have no
    /// number.
    loads_at_start: bool,
    /// Channels serve tickets drawn at submission.
    tickets: bool,
    policy: DiePolicy,
    suspend: Suspend,
}

impl Rules {
    /// How often an operation may be suspended.
    fn suspends(&self, kind: FlashKind) -> u32 {
        let allowed = match kind {
            FlashKind::Read => false,
            FlashKind::Program => self.suspend.program,
            FlashKind::Erase => self.suspend.erase,
        };
        if allowed {
            self.suspend.max_per_operation
        } else {
            0
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Group {
    token: u32,
    /// Operations whose end is not certain yet.
    uncertain: u32,
    /// The latest certain end.
    end: Nanos,
    /// The place of its end among events of the same time: that of the start of its last
    /// operation, whether it could be suspended or not.
    place: Place,
}

impl EventDriven {
    pub(super) fn new(channel_of_unit: &[u16], channels: u32, config: &MediaConfig) -> Self {
        let unit = |channel: &u16| Unit::new(u32::from(*channel));
        Self {
            rules: Rules {
                hold_reads: config.page_register != PageRegister::Overlap,
                hold_programs: config.page_register == PageRegister::Hold,
                one_ahead: config.page_register == PageRegister::Cache,
                piece_ns: u32::MAX,
                reports_loads: false,
                loads_at_start: config.page_register == PageRegister::Overlap,
                tickets: config.arbitration == ChannelArbitration::Arrival,
                policy: config.policy,
                suspend: config.suspend,
            },
            units: channel_of_unit.iter().map(unit).collect(),
            channels: vec![Channel::IDLE; channels as usize],
            ops: Slab::default(),
            groups: Slab::default(),
            sequence: 0,
            waits: IdleWaits::new(channel_of_unit.len()),
            programs: Programs::default(),
            certain: None,
            ledger: Ledger::new(channels, channel_of_unit.len() as u32),
        }
    }

    /// No transfer keeps its channel longer than this.
    pub(super) fn limit_pieces(&mut self, piece_ns: u32) {
        self.rules.piece_ns = piece_ns.max(1);
    }

    pub(super) fn report_loads(&mut self) {
        self.rules.reports_loads = true;
    }

    pub(super) fn submit(
        &mut self,
        now: Nanos,
        token: u32,
        cause: Cause,
        ops: &[FlashOp],
        events: &mut EventQueue,
    ) {
        debug_assert!(
            events.next_at().is_none_or(|at| at >= now),
            "events that were due before {now} come first"
        );
        if ops.is_empty() {
            events.push(now, Event::GroupDone(token));
            return;
        }
        let uncertain = u32::try_from(ops.len()).expect("a group has fewer than 2^32 operations");
        let end = now;
        let group = self.groups.insert(Group {
            token,
            uncertain,
            end,
            place: Place::default(),
        });
        for op in ops {
            self.start(now, group, cause, op, events);
        }
    }

    /// Puts an operation in its lines, and looks what can start.
    fn start(
        &mut self,
        now: Nanos,
        group: u32,
        cause: Cause,
        op: &FlashOp,
        events: &mut EventQueue,
    ) {
        debug_assert!(
            op.kind != FlashKind::Erase || op.transfer_ns == 0,
            "an erase has no page to move"
        );
        self.sequence += 1;
        self.note_time(now);
        let mut record = OpRecord::new(now, op, cause, group, self.sequence);
        let uses_channel = record.transfer_ns > 0;
        // The page of a program goes ahead of it, to a register.
        let page_first = op.kind == FlashKind::Program && uses_channel && !self.rules.hold_programs;
        record.startable = !page_first;
        let unit = op.unit;
        let index = self.ops.insert(record);
        self.join_unit(unit, index);
        if uses_channel && self.rules.tickets {
            self.draw_ticket(index);
        }
        if page_first && self.rules.one_ahead {
            self.load_next(unit, now, events);
        } else if page_first {
            self.request_transfer(index, now, events);
        } else {
            if op.kind == FlashKind::Read {
                self.suspend_for_read(unit, now);
            }
            self.look_at_unit(unit, now, events);
        }
    }

    /// Asks for no further page of a program, if there are cache registers.
    /// Whether there are, and no program is under way; if some are,
    /// [`Event::Quiet`] follows.
    pub(super) fn hold_programs(&mut self, now: Nanos, events: &mut EventQueue) -> Option<bool> {
        if !self.rules.one_ahead {
            return None;
        }
        self.programs.held = true;
        let Programs { under_way, end, .. } = self.programs;
        let is_quiet = under_way == 0 && end <= now;
        if under_way == 0 && !is_quiet {
            events.push(end, Event::Quiet);
        }
        Some(is_quiet)
    }

    /// Asks for pages again.
    pub(super) fn release_programs(&mut self, now: Nanos, events: &mut EventQueue) {
        if !core::mem::take(&mut self.programs.held) {
            return;
        }
        // Fits: units are counted in 32 bits.
        for unit in 0..self.units.len() as u32 {
            self.load_next(unit, now, events);
        }
    }

    fn program_end_is_certain(&mut self, at: Nanos, events: &mut EventQueue) {
        let programs = &mut self.programs;
        programs.under_way -= 1;
        programs.end = programs.end.max(at);
        if programs.held && programs.under_way == 0 {
            events.push(programs.end, Event::Quiet);
        }
    }

    /// Forgets an operation that begins: it ends at `at`, whatever happens.
    fn end_is_certain(&mut self, op: u32, at: Nanos, events: &mut EventQueue) {
        self.groups.at(self.ops[op].group).place = events.reserve();
        self.has_ended(op, at, events);
    }

    /// Forgets an operation that ends at `at`.
    fn has_ended(&mut self, op: u32, at: Nanos, events: &mut EventQueue) {
        let OpRecord {
            group,
            under_way,
            cause,
            ..
        } = self.ops.remove(op);
        if under_way {
            self.program_end_is_certain(at, events);
        }
        let record = self.groups.at(group);
        record.end = record.end.max(at);
        record.uncertain -= 1;
        if record.uncertain == 0 {
            let Group {
                token, end, place, ..
            } = self.groups.remove(group);
            events.push_to(place, end, Event::GroupDone(token));
            if let Some(certain) = &mut self.certain {
                certain.add(end, token, cause);
            }
        }
    }

    pub(super) fn handle(&mut self, now: Nanos, event: Event, events: &mut EventQueue) {
        match event {
            Event::Unit(unit) => {
                if self.waits.any(unit) {
                    let idle = self.is_idle(now, unit);
                    self.waits.wake(now, unit, idle, events);
                }
                if self.units[unit as usize].woken(now) {
                    self.look_at_unit(unit, now, events);
                }
            }
            Event::Ended(unit) => self.write_ends(unit, now, events),
            Event::Idle(unit) => {
                self.waits.has_told(unit);
                if self.waits.any(unit) {
                    let idle = self.is_idle(now, unit);
                    self.waits.wake(now, unit, idle, events);
                    self.await_end(unit, now, events);
                }
            }
            Event::Channel(channel) => {
                if self.channels[channel as usize].woken(now) {
                    self.look_at_channel(channel, now, events);
                }
            }
            Event::GroupDone(_)
            | Event::Task(_)
            | Event::Request(_)
            | Event::Drain
            | Event::Quiet
            | Event::Fold
            | Event::Loaded(_)
            | Event::Line => {}
        }
    }

    pub(super) fn wait_for_idle(
        &mut self,
        now: Nanos,
        unit: u32,
        task: u32,
        deadline: Option<Nanos>,
        events: &mut EventQueue,
    ) {
        self.waits.add(now, unit, task, deadline, events);
        self.await_end(unit, now, events);
    }
}

/// What a booking for an operation of one of `groups` is for.
fn work(groups: &Slab<Group>, record: &OpRecord) -> Work {
    Work {
        token: groups[record.group].token,
        kind: record.kind,
        ready: record.ready,
        suspends: record.suspends,
    }
}

/// Whether the event that is due now is the one that `wake_at` waits for; if
/// so, none is pending any more.
fn woken(wake_at: &mut Nanos, now: Nanos) -> bool {
    assert!(
        *wake_at >= now,
        "an event of {wake_at} was handled at {now}"
    );
    let due = *wake_at == now;
    if due {
        *wake_at = Nanos::MAX;
    }
    due
}
