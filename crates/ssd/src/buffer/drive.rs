//! What the rest of the drive asks of its write buffer.

use zonelab_device::{Nanos, ZoneId};

use super::{Flush, NONE, WriteBuffer};
use crate::counterfactual::{Factor, Factors};
use crate::drive::{Below, Core, Drive};

impl WriteBuffer {
    /// Some factors are absent from now on: what is on its way ends, and others may go on.
    pub(crate) fn leaves_out(&mut self, below: &mut Below<'_>, factors: Factors) {
        let now = below.core.now;
        let program = self.programs.get(self.leaving).copied();
        // That of the last to leave can be over, where programs are quicker than the way there.
        let is_gone = match program {
            Some(program) => {
                let cause = self.cause_of(&program);
                below.core.is_program_absent(self.leaving, cause)
            }
            None => factors.contains(Factor::HostWrite),
        };
        if is_gone {
            self.drain_free_at = self.drain_free_at.min(now);
        }
        self.drain_on(below);
        self.admit(below);
    }

    /// Whose unit is on its way to its die, so that no other leaves.
    pub(crate) fn leaving_factor(&self, now: Nanos) -> Option<Factor> {
        let is_leaving = self.drain_free_at > now;
        is_leaving.then(|| match self.programs.get(self.leaving) {
            Some(program) => Factor::of(self.cause_of(program)),
            // Its program can be over before it has left.
            None => Factor::HostWrite,
        })
    }

    /// Starts a flush. Returns whether it waits for programs.
    pub(crate) fn flush(&mut self, below: &mut Below<'_>, index: u32) -> bool {
        if self.is_protected {
            return false;
        }
        while self.open_first != NONE {
            self.issue_rest(below, ZoneId(self.open_first));
        }
        if self.running == 0 {
            return false;
        }
        self.flushes.push(Flush {
            request: index,
            before: self.issued,
            programs: self.running,
        });
        below.core.requests.at(index).pending = 1;
        true
    }

    /// The program with this number is over.
    pub(super) fn flushes_go_on(&mut self, core: &mut Core, number: u64) {
        let mut at = 0;
        while let Some(flush) = self.flushes.get_mut(at) {
            flush.programs -= u32::from(number < flush.before);
            if flush.programs > 0 {
                at += 1;
                continue;
            }
            let request = flush.request;
            self.flushes.remove(at);
            core.buffered_request_done(request);
        }
    }

    /// Whether all that the host wrote to a zone, and what a finish fills it
    /// with, is on the flash.
    pub(crate) fn is_drained(&self, core: &Core, zone: ZoneId) -> bool {
        let blocks = &self.zones[zone.0 as usize];
        let on_flash = blocks.first_program == NONE;
        let end = core.zones.host_lbas(zone).max(u64::from(blocks.fill_end));
        on_flash && u64::from(blocks.issued) == end
    }

    /// Sends a zone that was finished to the flash. Returns whether it is
    /// there; if not, `task` is woken when it is.
    pub(crate) fn drain_zone(&mut self, below: &mut Below<'_>, zone: ZoneId, task: u32) -> bool {
        self.issue_rest(below, zone);
        if self.is_drained(below.core, zone) {
            return true;
        }
        if !self.drains.contains(&(zone, task)) {
            self.drains.push((zone, task));
        }
        false
    }

    /// A task does not wait for its zone any more.
    pub(crate) fn cancel_drain(&mut self, task: u32) {
        self.drains.retain(|(_, other)| *other != task);
    }

    /// A program of a zone is over: fills that waited for that go on.
    pub(super) fn drains_go_on(&mut self, below: &mut Below<'_>, zone: ZoneId) {
        let is_waited_for = self.drains.iter().any(|(of, _)| *of == zone);
        if !is_waited_for || !self.is_drained(below.core, zone) {
            return;
        }
        let core = &mut *below.core;
        for (_, task) in self.drains.extract_if(.., |(of, _)| *of == zone) {
            below.background.push_wake(core, core.now, task);
        }
    }
}

impl Drive {
    /// Bytes in the write buffer: admitted, and not programmed yet.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        let buffer = self.buffer.as_ref();
        buffer.map_or(0, |buffer| buffer.bytes(&self.core))
    }
}
