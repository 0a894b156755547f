//! Waiting for something that another task does.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// Wakes all who wait for it. Whoever wakes looks again at what it waited for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    rings: Cell<u64>,
    wakers: RefCell<Vec<Waker>>,
}

impl Signal {
    pub(crate) fn ring(&self) {
        self.rings.set(self.rings.get() + 1);
        for waker in self.wakers.take() {
            waker.wake();
        }
    }

    /// Until the next ring after this call.
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + '_ {
        let seen = self.rings.get();
        poll_fn(move |context| {
            if self.rings.get() != seen {
                return Poll::Ready(());
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
    }
}
