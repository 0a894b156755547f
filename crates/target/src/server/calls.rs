//! Calls into the loop from other threads.
//!
//! The loop owns what it serves, without a lock. Who wants something of it from
//! elsewhere (a control socket, a page that shows what it does) hands over a
//! closure, and waits until the loop has run it between two turns.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::event::{EventfdFlags, eventfd};
use zonelab_device::Nanos;

use super::Server;

/// What a call into the loop finds.
pub struct Present<'a, B> {
    /// What is served. It has not been advanced to `now` yet.
    pub backend: &'a mut B,
    /// What serves it.
    pub server: &'a mut Server,
    /// The time.
    pub now: Nanos,
}

impl<B: std::fmt::Debug> std::fmt::Debug for Present<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Present")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

type LoopCall<B> = Box<dyn FnOnce(Present<'_, B>) + Send>;

/// The loop has ended, or ends: nothing more is answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has ended")]
pub struct Ended;

/// The end of the loop: what [`Server::run_with_calls`] takes.
pub struct LoopCalls<B> {
    queue: Receiver<LoopCall<B>>,
    bell: Arc<OwnedFd>,
}

/// The other end, of which each thread can have its own.
pub struct LoopHandle<B> {
    queue: Sender<LoopCall<B>>,
    bell: Arc<OwnedFd>,
}

impl<B> Clone for LoopHandle<B> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            bell: Arc::clone(&self.bell),
        }
    }
}

/// Both ends.
///
/// # Errors
/// The system has no descriptor left.
pub fn loop_calls<B>() -> io::Result<(LoopHandle<B>, LoopCalls<B>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = mpsc::channel();
    let handle = LoopHandle {
        queue: sender,
        bell: Arc::clone(&bell),
    };
    Ok((
        handle,
        LoopCalls {
            queue: receiver,
            bell,
        },
    ))
}

impl<B> LoopHandle<B> {
    /// Has the loop call `f`, and waits for what it returns. The loop does
    /// nothing else meanwhile: `f` should be brief.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Present<'_, B>) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        let (reply, answer) = mpsc::sync_channel(1);
        let call: LoopCall<B> = Box::new(move |present| {
            // Nobody may wait any more.
            let _ = reply.send(f(present));
        });
        self.queue.send(call).map_err(|_| Ended)?;
        // It can only fail when the count is full, and then the loop wakes anyway.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        answer.recv().map_err(|_| Ended)
    }
}

impl<B> LoopCalls<B> {
    /// What becomes readable when there is a call.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Runs the calls there are.
    pub(super) fn receive(&self, server: &mut Server, backend: &mut B, now: Nanos) {
        // Before the queue is looked at: a call that comes later rings again.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        for call in self.queue.try_iter() {
            call(Present {
                backend: &mut *backend,
                server: &mut *server,
                now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerSettings;

    #[test]
    fn a_visit_is_answered_or_told_that_nobody_is_there() {
        let (handle, calls) = loop_calls::<u32>().expect("two descriptors");
        let mut server = Server::bind(
            "127.0.0.1:0".parse().expect("an address"),
            ServerSettings::default(),
        )
        .expect("a free port");
        let other = handle.clone();
        let asking = std::thread::spawn(move || {
            other.call(|present| {
                *present.backend += 1;
                (*present.backend, present.now)
            })
        });
        let mut backend = 41;
        while !asking.is_finished() {
            calls.receive(&mut server, &mut backend, Nanos(7));
        }
        assert_eq!(
            asking.join().expect("it does not panic"),
            Ok((42, Nanos(7)))
        );
        drop(calls);
        assert_eq!(handle.call(|present| present.now), Err(Ended));
    }
}
