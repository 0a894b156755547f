//! What tasks of one program wait for: a change, or their turn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Wakes everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    changes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Notify {
    /// Something has changed.
    pub(crate) fn ring(&self) {
        self.changes.set(self.changes.get() + 1);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Waits for the next change.
    pub(crate) async fn next(&self) {
        let seen = self.changes.get();
        poll_fn(|context| {
            if self.changes.get() != seen {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

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
