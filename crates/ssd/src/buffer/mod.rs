//! The write-back buffer: a write completes when its blocks are in it, and the
//! flash follows.
//!
//! A write or append that the front end lets through joins the *admission queue*. The
//! head of the queue takes room block by block, so a command larger than the
//! buffer gets through in pieces; it completes when its last block is in. A
//! full buffer holds the whole queue back.
//!
//! Blocks leave in *units*: what one program takes, a page or the pages of a
//! multi-plane operation. A unit goes to its die as soon as it is whole. One
//! that is not whole goes when somebody waits for it: a flush, a zone that is
//! full or finished, or a queue that waits for room while nothing is being
//! programmed. The rest of its pages is padding, and the page is programmed
//! again when the rest of its blocks comes. The room of a unit is free when its
//! program is over, so that room comes in steps of a unit; or, if the profile
//! says so, of each piece of it that a transfer has taken to its die. Dies whose
//! registers have no number ([`PageRegister::Overlap`]) take a unit when its program
//! begins.
//!
//! The way from the buffer to the dies may have a bandwidth of its own: then
//! units leave one after the other, and each is at its die when it has left.
//!
//! Blocks that are in the buffer are read from it. A reset drops what its zone
//! has in the buffer; programs under way end in their time. A finish waits
//! until its zone is on the flash. With protection against power loss the
//! buffer is not volatile: a flush has nothing to do, and a loss of power
//! takes nothing that was admitted.
//!
//! See `docs/decisions/0011-write-buffer.md`.

mod admission;
mod drive;
mod invariants;
mod power;
mod programs;

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::{Nanos, ZoneId};

use crate::config::{BufferRelease, DriveConfig, PageRegister, WriteBufferConfig};
use crate::drive::Core;
use crate::slab::Slab;
use crate::zones::Zones;

/// "None" of a link.
const NONE: u32 = u32::MAX;

/// The buffer of a drive that has one.
#[derive(Clone, Debug)]
pub(crate) struct WriteBuffer {
    size_lbas: u64,
    unit_lbas: u32,
    /// Blocks whose room is free when a die has taken them; 0: when the program is over.
    piece_lbas: u32,
    pub(crate) is_protected: bool,
    /// Blocks in the buffer. Never more than `size_lbas`.
    fill_lbas: u64,
    /// Writes that wait for room, in order of arrival.
    admission_queue: VecDeque<Waiting>,
    /// Blocks of the head of the queue that are in.
    head_lbas: u32,
    zones: Vec<ZoneBlocks>,
    programs: Slab<Program>,
    /// Programs that are not over.
    running: u32,
    /// Programs with data of the host that are not over.
    host_programs: u32,
    /// Programs so far.
    issued: u64,
    /// Zones with a unit that is not whole, from the one that waits longest.
    open_first: u32,
    open_last: u32,
    flushes: Vec<Flush>,
    /// Blocks of a turn in the admission queue; `u32::MAX`: no turns.
    turn_lbas: u32,
    /// Bytes per second from the buffer to the dies; `None`: no limit but theirs.
    drain_bytes_per_s: Option<u64>,
    /// End of the transfer of the unit that is on its way to a die; no other leaves before.
    drain_free_at: Nanos,
    /// Program of the unit that is on its way.
    leaving: u32,
    /// End of a pause, before which no unit leaves.
    paused_until: Nanos,
    /// Drain held until running programs finish.
    is_held: bool,
    /// What is at the dies already, but in none of their registers, is held too.
    holds_media: bool,
    /// Programs that have started and are not over.
    started: u32,
    /// Units that wait for that, in order.
    ready: VecDeque<u32>,
    /// Fills that wait until their zone is on the flash: zone and task.
    drains: Vec<(ZoneId, u32)>,
}

/// Blocks of one zone. They are written, admitted and issued from its start.
#[derive(Clone, Copy, Debug)]
struct ZoneBlocks {
    /// Blocks before this one have been admitted.
    admitted: u32,
    /// Blocks before this one are on the flash or on their way.
    issued: u32,
    /// A finish fills the zone up to here through the buffer; 0: none does.
    fill_end: u32,
    /// Programs under way, in order; those that ended before an earlier one included.
    first_program: u32,
    last_program: u32,
    /// Neighbours among the zones with a unit that is not whole.
    older: u32,
    newer: u32,
    is_open: bool,
    /// What is written to it was collected.
    is_collected: bool,
    /// Programs that are not over.
    running: u32,
    /// Writes and appends in the admission queue.
    queued: u32,
}

impl ZoneBlocks {
    const EMPTY: Self = Self {
        admitted: 0,
        issued: 0,
        fill_end: 0,
        first_program: NONE,
        last_program: NONE,
        older: NONE,
        newer: NONE,
        is_open: false,
        is_collected: false,
        running: 0,
        queued: 0,
    };
}

/// A write in the admission queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    whose: Writer,
    zone: ZoneId,
    /// Of the zone when the write was accepted.
    generation: u32,
    count: u32,
}

/// Whose write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// A write or append of the host: this request.
    Host(u32),
    /// A finish that fills its zone: this task.
    Fill(u32),
}

/// A unit on its way to the flash.
#[derive(Clone, Copy, Debug)]
struct Program {
    zone: ZoneId,
    physical: u32,
    /// Programs are numbered in the order in which they begin.
    number: u64,
    first: u32,
    end: u32,
    /// Blocks whose room is free already.
    released: u32,
    /// Groups of flash operations that are not over, or 1 before it starts: 0
    /// when it is over.
    groups: u32,
    /// It has been handed to the flash.
    has_started: bool,
    /// Nothing in it comes from the host.
    is_fill: bool,
    /// The zone was reset meanwhile.
    is_orphan: bool,
    /// The next program of its zone.
    next: u32,
}

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
struct Flush {
    request: u32,
    /// It waits for programs with a number below this one.
    before: u64,
    /// Programs that it waits for and that are not over.
    programs: u32,
}

/// Blocks that one program takes.
fn unit_lbas(config: &DriveConfig, page_lbas: u32) -> u32 {
    page_lbas * config.pages_per_program()
}

impl WriteBuffer {
    /// The empty buffer of a fresh drive.
    pub(crate) fn new(buffer: &WriteBufferConfig, config: &DriveConfig, page_lbas: u32) -> Self {
        Self {
            size_lbas: buffer.size_bytes / u64::from(config.lba_bytes),
            unit_lbas: unit_lbas(config, page_lbas),
            piece_lbas: match buffer.release {
                BufferRelease::Program => 0,
                BufferRelease::Transfer => match config.media.details.transfer_unit_bytes {
                    Some(bytes) if config.media.page_register != PageRegister::Overlap => {
                        (bytes / config.lba_bytes).max(1)
                    }
                    _ => unit_lbas(config, page_lbas),
                },
            },
            is_protected: buffer.power_loss_protection,
            fill_lbas: 0,
            admission_queue: VecDeque::new(),
            head_lbas: 0,
            zones: vec![ZoneBlocks::EMPTY; config.zones.count as usize],
            programs: Slab::default(),
            running: 0,
            host_programs: 0,
            issued: 0,
            open_first: NONE,
            open_last: NONE,
            flushes: Vec::new(),
            turn_lbas: match buffer.turn_bytes {
                // Fits, or is more than any write has.
                Some(bytes) => (bytes / u64::from(config.lba_bytes))
                    .try_into()
                    .unwrap_or(u32::MAX),
                None => u32::MAX,
            },
            drain_bytes_per_s: buffer.drain_bytes_per_s,
            drain_free_at: Nanos::ZERO,
            leaving: NONE,
            paused_until: Nanos::ZERO,
            is_held: false,
            holds_media: false,
            started: 0,
            ready: VecDeque::new(),
            drains: Vec::new(),
        }
    }

    /// Programs that are not over.
    pub(crate) fn running(&self) -> usize {
        self.running as usize
    }

    /// Nothing is in the buffer: all that `zones` have is on the flash.
    pub(crate) fn settle(&mut self, zones: &Zones) {
        self.fill_lbas = 0;
        self.admission_queue.clear();
        self.head_lbas = 0;
        self.programs = Slab::default();
        self.running = 0;
        self.host_programs = 0;
        (self.open_first, self.open_last) = (NONE, NONE);
        self.flushes.clear();
        self.drains.clear();
        self.drain_free_at = Nanos::ZERO;
        self.paused_until = Nanos::ZERO;
        self.is_held = false;
        self.holds_media = false;
        self.started = 0;
        self.ready.clear();
        for (zone, blocks) in (0..).map(ZoneId).zip(&mut self.zones) {
            *blocks = ZoneBlocks::EMPTY;
            blocks.admitted = blocks_of(zones.host_lbas(zone));
            blocks.issued = blocks.admitted;
        }
    }

    /// A zone was declared written to `lbas` blocks.
    pub(crate) fn settle_zone(&mut self, zone: ZoneId, lbas: u64) {
        let blocks = &mut self.zones[zone.0 as usize];
        blocks.admitted = blocks_of(lbas);
        blocks.issued = blocks.admitted;
    }

    /// Blocks of `zones` that are in the buffer, and that no die has been given.
    pub(crate) fn held_lbas(&self, zones: &Zones) -> u64 {
        let behind = (0..).map(ZoneId).zip(&self.zones);
        let behind = behind.map(|(zone, blocks)| {
            let end = u64::from(blocks.admitted).min(zones.host_lbas(zone));
            end.saturating_sub(u64::from(blocks.issued))
        });
        let ready = self.programs.iter().map(|(_, program)| program);
        let ready = ready.filter(|of| !(of.has_started || of.is_orphan || of.is_fill));
        behind.sum::<u64>() + ready.map(|of| u64::from(of.end - of.first)).sum::<u64>()
    }

    /// Says whether what is written to a zone was collected.
    pub(crate) fn holds_collected(&mut self, zone: ZoneId, is_collected: bool) {
        self.zones[zone.0 as usize].is_collected = is_collected;
    }

    /// What the head of the queue may still take in its turn. `None`: all it
    /// wants, as nobody else waits, or somebody who is of its zone.
    fn turn_of(&self, head: &Waiting) -> Option<u32> {
        let alone = self.admission_queue.len() == 1 || self.zones[head.zone.0 as usize].queued > 1;
        if self.turn_lbas == u32::MAX || alone {
            return None;
        }
        Some(self.turn_lbas.saturating_sub(self.head_lbas))
    }

    /// What a head that has the queue for itself may take: all, or if it has more
    /// than a turn and other zones have programs, half of the room. Those that
    /// come next find some, and what leaves the buffer makes more.
    fn share_of(&self, head: &Waiting, room: u64) -> Option<u32> {
        let own = self.zones[head.zone.0 as usize].running;
        let is_small = head.count <= self.turn_lbas || self.running == own;
        if is_small || self.admission_queue.len() > 1 {
            return None;
        }
        Some(u32::try_from(room / 2).unwrap_or(u32::MAX).max(1))
    }

    /// The turn of the head is over: it goes behind the others.
    fn next_turn(&mut self) {
        if let Some(mut head) = self.admission_queue.pop_front() {
            head.count -= self.head_lbas;
            self.head_lbas = 0;
            self.admission_queue.push_back(head);
        }
    }

    /// Whether a unit may leave now.
    fn may_leave(&self, core: &Core) -> bool {
        let now = core.now;
        let may = !self.is_held && now >= self.paused_until && now >= self.drain_free_at;
        may && core.flash.cache_has_room()
    }

    /// Forgets that the unit at the end of a zone is not whole.
    fn unlist(&mut self, zone: ZoneId) {
        let blocks = &mut self.zones[zone.0 as usize];
        if !blocks.is_open {
            return;
        }
        blocks.is_open = false;
        let (older, newer) = (blocks.older, blocks.newer);
        match self.zones.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.open_first = newer,
        }
        match self.zones.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.open_last = older,
        }
    }

    /// Notes that the unit at the end of a zone has begun and is not whole.
    fn list(&mut self, zone: ZoneId) {
        let older = self.open_last;
        let blocks = &mut self.zones[zone.0 as usize];
        if blocks.is_open {
            return;
        }
        blocks.is_open = true;
        (blocks.older, blocks.newer) = (older, NONE);
        match self.zones.get_mut(older as usize) {
            Some(older) => older.newer = zone.0,
            None => self.open_first = zone.0,
        }
        self.open_last = zone.0;
    }

    /// Puts a program behind the others of its zone.
    fn link(&mut self, program: Program) -> u32 {
        let zone = program.zone.0 as usize;
        let slot = self.programs.insert(program);
        let last = self.zones[zone].last_program;
        match self.programs.get_mut(last) {
            Some(last) => {
                debug_assert!(
                    last.end <= program.first,
                    "programs of zone {zone} follow each other"
                );
                last.next = slot;
            }
            None => self.zones[zone].first_program = slot,
        }
        self.zones[zone].last_program = slot;
        slot
    }

    /// Takes the programs that are over from the front of a zone's list.
    fn unlink_ended(&mut self, zone: ZoneId) {
        let blocks = &mut self.zones[zone.0 as usize];
        while let Some(program) = self.programs.get_mut(blocks.first_program) {
            if program.groups > 0 {
                return;
            }
            let slot = blocks.first_program;
            blocks.first_program = program.next;
            self.programs.free(slot);
        }
        blocks.last_program = NONE;
    }

    /// A zone was reset: what it has in the buffer is dropped, and its
    /// programs go on without it.
    pub(crate) fn drop_zone(&mut self, zone: ZoneId) {
        self.unlist(zone);
        let blocks = &mut self.zones[zone.0 as usize];
        debug_assert!(
            blocks.issued <= blocks.admitted,
            "no more of {zone:?} has left the buffer than was in it"
        );
        self.fill_lbas -= u64::from(blocks.admitted - blocks.issued);
        let mut slot = blocks.first_program;
        (blocks.admitted, blocks.issued, blocks.fill_end) = (0, 0, 0);
        (blocks.first_program, blocks.last_program) = (NONE, NONE);
        while let Some(program) = self.programs.get_mut(slot) {
            let next = program.next;
            if program.groups > 0 {
                program.is_orphan = true;
            } else {
                self.programs.free(slot);
            }
            slot = next;
        }
    }

    /// The first part of `range` of a zone that is on the flash, if any is.
    pub(crate) fn next_on_flash(&self, zone: ZoneId, range: Range<u32>) -> Option<Range<u32>> {
        let blocks = &self.zones[zone.0 as usize];
        let end = range.end.min(blocks.issued);
        let mut start = range.start;
        let mut slot = blocks.first_program;
        while slot != NONE && start < end {
            let program = &self.programs[slot];
            if program.groups > 0 && program.end > start {
                if program.first > start {
                    return Some(start..end.min(program.first));
                }
                start = program.end;
            }
            slot = program.next;
        }
        (start < end).then_some(start..end)
    }

    /// The first block of a zone that is in no program that has started.
    fn first_not_started(&self, blocks: &ZoneBlocks) -> u32 {
        let mut slot = blocks.first_program;
        while slot != NONE {
            let program = &self.programs[slot];
            if !program.has_started {
                return program.first;
            }
            slot = program.next;
        }
        blocks.issued
    }
}

/// A number of blocks of a zone.
fn blocks_of(lbas: u64) -> u32 {
    u32::try_from(lbas).expect("checked: a zone has fewer than 2^32 blocks")
}
