//! Tasks of one program that take turns.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use zonelab_host::notify::Notify;

/// One at a time, in the order in which they asked.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    next: Cell<u64>,
    queue: RefCell<VecDeque<u64>>,
    change: Notify,
}

impl Turns {
    /// Waits for one's turn, which lasts until the result is dropped.
    pub(crate) async fn take(&self) -> Turn<'_> {
        let ticket = self.next.get();
        self.next.set(ticket + 1);
        self.queue.borrow_mut().push_back(ticket);
        // Whoever no longer waits loses the place.
        let turn = Turn {
            turns: self,
            ticket,
        };
        while self.queue.borrow().front() != Some(&ticket) {
            self.change.next().await;
        }
        turn
    }
}

/// A turn, or a place in the queue.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    ticket: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.turns.queue.borrow_mut();
        queue.retain(|ticket| *ticket != self.ticket);
        drop(queue);
        self.turns.change.ring();
    }
}
