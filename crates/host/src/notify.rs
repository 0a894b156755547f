//! Tells tasks that something has changed.
//!
//! For the tasks of one [program](crate::tasks): on one thread.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Wakes everybody who waits.
#[derive(Debug, Default)]
pub struct Notify {
    changes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Notify {
    /// Something has changed.
    pub fn ring(&self) {
        self.changes.set(self.changes.get() + 1);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Changes until now: to be asked for before one looks whether to wait.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Waits for the next change.
    pub async fn next(&self) {
        self.after(self.changes()).await;
    }

    /// Waits for a change after the first `seen`.
    pub async fn after(&self, seen: u64) {
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
