//! How writes get into the buffer: in the order of the admission queue, as there is room.

use zonelab_device::Lba;
use zonelab_device::Op;
use zonelab_device::ZoneId;

use super::Deferred;
use super::NONE;
use super::Waiting;
use super::Writer;
use crate::conventional::Role;
use crate::counterfactual::Factor;
use crate::drive::Drive;
use crate::drive::Stage;
use crate::event::Event;

impl Drive {
    /// The front end lets a write through: it joins the admission queue, or waits for its
    /// turn to. A write to a random write area, or an explicit commit, joins with
    /// what it commits; one that commits nothing is done, unless earlier ones of
    /// its zone wait.
    pub(crate) fn buffer_write(&mut self, index: u32) {
        let request = self.requests.at(index);
        request.pending = 1;
        let (slba, is_append) = match request.op {
            Op::Append { .. } => (Lba(request.result), true),
            op => (Lba(op.first_block()), false),
        };
        let (generation, count) = (request.generation, request.target.range.count);
        let zone = self
            .zones
            .zone_of(slba)
            .expect("a write that was accepted is on the drive");
        if count == 0 && !self.has_writes_queued(zone) {
            // It is in the random write area.
            self.buffered_request_done(index);
            return;
        }
        self.join_admission_queue(Waiting {
            whose: Writer::Host(index),
            zone,
            generation,
            count,
            is_append,
        });
    }

    /// Whether writes of a zone wait for room. Then its random write area may
    /// still hold what they commit.
    fn has_writes_queued(&self, zone: ZoneId) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| {
            let blocks = &buffer.zones[zone.0 as usize];
            blocks.queued > 0 || blocks.first_deferred != NONE
        })
    }

    /// The next `count` blocks of the zone of a fill join the admission queue.
    pub(crate) fn buffer_fill(&mut self, task: u32, zone: ZoneId, count: u32) {
        self.join_admission_queue(Waiting {
            whose: Writer::Fill(task),
            zone,
            generation: self.zones.generation(zone),
            count,
            is_append: false,
        });
    }

    /// A finish will fill a zone through the buffer up to `end`.
    pub(crate) fn buffer_expects_fill(&mut self, zone: ZoneId, end: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.zones[zone.0 as usize].fill_end = end;
        }
    }

    /// Whether programs of the host's data are under way or wait.
    pub(crate) fn buffers_host_data(&self) -> bool {
        self.buffer
            .as_ref()
            .is_some_and(|buffer| buffer.host_programs > 0)
    }

    fn join_admission_queue(&mut self, write: Waiting) {
        let Waiting {
            zone, is_append, ..
        } = write;
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let blocks = &mut buffer.zones[zone.0 as usize];
        let may_join = !is_append || blocks.appends < buffer.appends_per_zone;
        if may_join && blocks.first_deferred == NONE {
            blocks.appends += u32::from(is_append);
            blocks.queued += 1;
            buffer.admission_queue.push_back(write);
            if buffer.admission_queue.len() == 1 {
                self.admit();
            }
            return;
        }
        // Nothing must get ahead of an append that its zone accepted first.
        let deferred = buffer.deferred.insert(Deferred { write, next: NONE });
        match buffer.deferred.get_mut(blocks.last_deferred) {
            Some(last) => last.next = deferred,
            None => blocks.first_deferred = deferred,
        }
        blocks.last_deferred = deferred;
    }

    /// Admits the head of the queue as far as there is room.
    pub(crate) fn admit(&mut self) {
        loop {
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            let Some(&head) = buffer.admission_queue.front() else {
                break;
            };
            let zone = head.zone;
            if self.zones.generation(zone) != head.generation {
                // Reset meanwhile: its blocks are nobody's.
                self.leave_admission_queue(head);
                continue;
            }
            // What is absent takes more than there is.
            let room = buffer.size_lbas.saturating_sub(buffer.fill_lbas);
            let left = head.count - buffer.head_lbas;
            let turn = buffer.turn_of(&head).unwrap_or(left);
            let share = buffer.share_of(&head, room).unwrap_or(left);
            // Fits: no more than is left.
            let mut taken = u64::from(left.min(turn).min(share)).min(room) as u32;
            if self.absence.is_some() && self.takes_no_room(&head) {
                taken = left;
            }
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            buffer.fill_lbas += u64::from(taken);
            buffer.head_lbas += taken;
            buffer.zones[zone.0 as usize].admitted += taken;
            if taken > 0 {
                self.issue_whole_units(zone);
            }
            if taken == left {
                self.leave_admission_queue(head);
                continue;
            }
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            if taken == turn {
                buffer.next_turn();
                continue;
            }
            if buffer.running == 0 {
                // Full of units that are not whole: the oldest makes room.
                let oldest = ZoneId(buffer.open_first);
                self.issue_rest(oldest);
            }
            break;
        }
        self.record_buffer_fill();
    }

    /// The head of the queue is in, or has become void.
    fn leave_admission_queue(&mut self, head: Waiting) {
        if let Some(buffer) = &mut self.buffer {
            buffer.admission_queue.pop_front();
            buffer.head_lbas = 0;
            let blocks = &mut buffer.zones[head.zone.0 as usize];
            blocks.appends -= u32::from(head.is_append);
            blocks.queued -= 1;
            while let Some(&mut Deferred { write, next }) =
                buffer.deferred.get_mut(blocks.first_deferred)
            {
                if write.is_append && blocks.appends >= buffer.appends_per_zone {
                    break;
                }
                buffer.deferred.free(blocks.first_deferred);
                blocks.first_deferred = next;
                if next == NONE {
                    blocks.last_deferred = NONE;
                }
                blocks.appends += u32::from(write.is_append);
                blocks.queued += 1;
                buffer.admission_queue.push_back(write);
            }
        }
        match head.whose {
            Writer::Host(request) => self.buffered_request_done(request),
            Writer::Fill(task) => {
                let is_void = self.zones.generation(head.zone) != head.generation;
                self.fill_admitted(task, is_void);
            }
        }
    }

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

    /// Whether a write in the admission queue holds back nobody: a fill, or what a collection moves, that is
    /// absent.
    #[cold]
    fn takes_no_room(&self, head: &Waiting) -> bool {
        match head.whose {
            Writer::Fill(task) => self.is_absent(Factor::FinishFill, self.request_of_task(task)),
            Writer::Host(request) => {
                let role = self.requests.get(request).map(|request| request.role);
                matches!(role, Some(Role::Collection(_)))
                    && self.is_absent(Factor::Collection, None)
            }
        }
    }
}
