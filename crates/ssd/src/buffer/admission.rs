//! How writes get into the buffer: in the order of the admission queue, as there is room.

use zonelab_device::Lba;
use zonelab_device::Op;
use zonelab_device::ZoneId;

use super::Waiting;
use super::WriteBuffer;
use super::Writer;
use crate::conventional::Role;
use crate::counterfactual::Factor;
use crate::drive::{Below, Core, Stage};

use crate::event::Event;

impl Core {
    /// What a request waits for in the buffer has happened.
    pub(crate) fn buffered_request_done(&mut self, index: u32) {
        let request = self.requests.at(index);
        request.pending = 0;
        request.stage = Stage::Completion;
        if request.role.is_internal() {
            self.events.push(self.now, Event::Request(index));
            return;
        }
        let at = self.front.conclude(self.now, &request.op);
        self.events
            .push(at.unwrap_or(self.now), Event::Request(index));
    }
}

impl WriteBuffer {
    /// The front end lets a write through: it joins the admission queue. A write to a random
    /// write area, or an explicit commit, joins with what it commits; one that commits nothing
    /// is done, unless earlier ones of its zone wait.
    pub(crate) fn write(&mut self, below: &mut Below<'_>, index: u32) {
        let request = below.core.requests.at(index);
        request.pending = 1;
        let slba = match request.op {
            Op::Append { .. } => Lba(request.result),
            op => Lba(op.first_block()),
        };
        let (generation, count) = (request.generation, request.target.range.count);
        let zone = below
            .core
            .zones
            .zone_of(slba)
            .expect("a write that was accepted is on the drive");
        if count == 0 && !self.has_writes_queued(zone) {
            // It is in the random write area.
            below.core.buffered_request_done(index);
            return;
        }
        let write = Waiting {
            whose: Writer::Host(index),
            zone,
            generation,
            count,
        };
        self.join_admission_queue(below, write);
    }

    /// Whether writes of a zone wait for room. Then its random write area may
    /// still hold what they commit.
    fn has_writes_queued(&self, zone: ZoneId) -> bool {
        self.zones[zone.0 as usize].queued > 0
    }

    /// The next `count` blocks of the zone of a fill join the admission queue.
    pub(crate) fn fill(&mut self, below: &mut Below<'_>, task: u32, zone: ZoneId, count: u32) {
        let write = Waiting {
            whose: Writer::Fill(task),
            zone,
            generation: below.core.zones.generation(zone),
            count,
        };
        self.join_admission_queue(below, write);
    }

    /// A finish will fill a zone through the buffer up to `end`.
    pub(crate) fn expects_fill(&mut self, zone: ZoneId, end: u32) {
        self.zones[zone.0 as usize].fill_end = end;
    }

    /// Whether programs of the host's data are under way or wait.
    pub(crate) const fn has_host_data(&self) -> bool {
        self.host_programs > 0
    }

    fn join_admission_queue(&mut self, below: &mut Below<'_>, write: Waiting) {
        self.zones[write.zone.0 as usize].queued += 1;
        self.admission_queue.push_back(write);
        if self.admission_queue.len() == 1 {
            self.admit(below);
        }
    }

    /// Admits the head of the queue as far as there is room.
    pub(crate) fn admit(&mut self, below: &mut Below<'_>) {
        while let Some(&head) = self.admission_queue.front() {
            let zone = head.zone;
            if below.core.zones.generation(zone) != head.generation {
                // Reset meanwhile: its blocks are nobody's.
                self.leave_admission_queue(below, head);
                continue;
            }
            if !below.core.flash.cache_can_save() {
                // Less than the buffer could hold if power is lost: a loss of power has used the
                // reserve, and folding has not made it free again.
                break;
            }
            // What is absent takes more than there is.
            let room = self.size_lbas.saturating_sub(self.fill_lbas);
            debug_assert!(
                below.core.absence.is_some() || self.fill_lbas <= self.size_lbas,
                "there is room for what the buffer holds"
            );
            debug_assert!(
                head.count >= self.head_lbas,
                "no more of a write is in than it has"
            );
            let left = head.count - self.head_lbas;
            let turn = self.turn_of(&head).unwrap_or(left);
            let share = self.share_of(&head, room).unwrap_or(left);
            // Fits: no more than is left.
            let mut taken = u64::from(left.min(turn).min(share)).min(room) as u32;
            if below.core.absence.is_some() && takes_no_room(below, &head) {
                taken = left;
            }
            self.fill_lbas += u64::from(taken);
            self.head_lbas += taken;
            self.zones[zone.0 as usize].admitted += taken;
            debug_assert!(
                u64::from(self.zones[zone.0 as usize].admitted)
                    <= below.core.config.zones.capacity_lbas,
                "no more of {zone:?} is in the buffer than it has"
            );
            if taken > 0 {
                self.issue_whole_units(below, zone);
            }
            if taken == left {
                self.leave_admission_queue(below, head);
                continue;
            }
            if taken == turn {
                self.next_turn();
                continue;
            }
            if self.running == 0 {
                // Full of units that are not whole: the oldest makes room.
                let oldest = ZoneId(self.open_first);
                self.issue_rest(below, oldest);
            }
            break;
        }
        self.record_fill(below.core);
    }

    /// The head of the queue is in, or has become void.
    fn leave_admission_queue(&mut self, below: &mut Below<'_>, head: Waiting) {
        let first = self.admission_queue.pop_front();
        debug_assert!(
            first.is_some_and(|first| first.whose == head.whose),
            "the head leaves the queue"
        );
        self.head_lbas = 0;
        self.zones[head.zone.0 as usize].queued -= 1;
        let core = &mut *below.core;
        match head.whose {
            Writer::Host(request) => core.buffered_request_done(request),
            Writer::Fill(task) => {
                let is_void = core.zones.generation(head.zone) != head.generation;
                below.background.fill_admitted(core, task, is_void);
            }
        }
    }

    /// The buffer may hold more or less than before.
    #[inline]
    fn record_fill(&self, core: &mut Core) {
        if core.recorder.is_some() {
            core.record_buffered(self.bytes(core));
        }
    }

    /// Bytes in the buffer: admitted, and not programmed yet.
    pub(crate) fn bytes(&self, core: &Core) -> u64 {
        self.fill_lbas * u64::from(core.config.lba_bytes)
    }
}

/// Whether a write in the admission queue holds back nobody: a fill, or what a collection
/// moves, that is absent.
#[cold]
fn takes_no_room(below: &Below<'_>, head: &Waiting) -> bool {
    let core = &*below.core;
    match head.whose {
        Writer::Fill(task) => {
            core.is_absent(Factor::FinishFill, below.background.request_of_task(task))
        }
        Writer::Host(request) => {
            let role = core.requests.get(request).map(|request| request.role);
            matches!(role, Some(Role::Collection(_))) && core.is_absent(Factor::Collection, None)
        }
    }
}
