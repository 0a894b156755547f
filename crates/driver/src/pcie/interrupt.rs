//! Interrupt vectors of a function, as descriptors that a thread can sleep on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// An interrupt vector, behind an eventfd that the device's signals go to.
///
/// Who sleeps on it takes note of signals first and looks for completions then, never the
/// other way round: a completion that comes between both is signalled once more, at the
/// cost of a look in vain, while in the other order its signal would be lost and nobody
/// would wake up. An epoll that watches the eventfd edge-triggered does that by itself: a
/// wait that ends has taken note, and nothing needs to be read or cleared.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<OwnedFd>);

impl Interrupt {
    /// A vector that nothing signals yet.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(made)))
    }

    /// Signals it, as the device does. For models.
    pub fn signal(&self) {
        // A count that is full has not been heard yet: nothing is lost.
        let _heard = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Takes note of all signals so far. Returns whether there were any.
    pub fn clear(&self) -> bool {
        rustix::io::read(&*self.0, &mut [0_u8; 8]).is_ok()
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
