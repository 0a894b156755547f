//! What the firmware does in its tables for a zone that is reset.
//!
//! One zone after another, each in a time that grows with what the host wrote
//! there. It needs no flash and no core of the front end, but the write buffer
//! starts no programs during parts of it: the tables that say where a page goes
//! are in use.

use zonelab_device::Nanos;

use super::Task;
use crate::config::Bookkeeping;
use crate::drive::Drive;
use crate::event::Event;
use crate::zones::Change;

/// The bookkeeping of one zone.
#[derive(Clone, Debug)]
pub(super) struct Books {
    request: u32,
    from: Nanos,
    length: Nanos,
    /// Length of each pause of the drain.
    pause: Nanos,
    pauses: u32,
    /// Pauses that have begun.
    begun: u32,
    /// When it goes on.
    next: Nanos,
}

impl Books {
    /// When the next pause begins or, behind the last, everything ends.
    fn next_at(&self) -> Nanos {
        let length = u128::from(self.length.0) * u128::from(self.begun) / u128::from(self.pauses);
        // Fits: no more than the whole length.
        self.from.saturating_add(Nanos(length as u64))
    }
}

impl Drive {
    /// A zone was reset by `request`: its bookkeeping begins at `start`, or
    /// when that of zones before it is done.
    pub(super) fn begin_bookkeeping(&mut self, change: &Change, request: u32, start: Nanos) {
        let Some(Bookkeeping {
            base_ns,
            full_zone_ns,
            drain_pause_ns,
            slices,
        }) = self.background.reset.bookkeeping
        else {
            return;
        };
        let capacity = u128::from(self.config().zones.capacity_lbas);
        let host_lbas = u128::from(change.host_lbas);
        // Fits: a zone holds no more than its capacity.
        let share = |of: Nanos| Nanos((u128::from(of.0) * host_lbas / capacity) as u64);
        let from = start.max(self.background.books_free_at);
        let length = base_ns.saturating_add(share(full_zone_ns));
        self.background.books_free_at = from.saturating_add(length);
        self.requests.at(request).pending += 1;
        let books = Books {
            request,
            from,
            length,
            pause: Nanos(share(drain_pause_ns).0 / u64::from(slices)),
            pauses: slices,
            begun: 0,
            next: from,
        };
        let task = self.background.tasks.insert(Task::Books(books));
        self.events.push(from, Event::Task(task));
    }

    /// The time may have come for the next pause, or for the end.
    pub(super) fn bookkeeping_on(&mut self, task: u32) {
        let now = self.now;
        let Some(Task::Books(books)) = self.background.tasks.get_mut(task) else {
            return;
        };
        if now < books.next {
            return;
        }
        if books.begun == books.pauses {
            let request = books.request;
            self.background.tasks.remove(task);
            self.part_done(request);
            return;
        }
        books.begun += 1;
        books.next = books.next_at();
        let (next, pause) = (books.next, books.pause);
        self.events.push(next, Event::Task(task));
        if pause > Nanos::ZERO {
            self.pause_drain(now.saturating_add(pause));
        }
    }
}
