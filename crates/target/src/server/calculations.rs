//! Diffie-Hellman calculations, in a thread of their own.
//!
//! A calculation takes milliseconds, and whoever reaches the server can ask for
//! one. So the loop only hands them over, one at a time: to the thread, which
//! leaves the processor to the loop if both want it, and from the address that
//! had the fewest of late. Each address has a bound on how many it gets.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use zonelab_device::Nanos;

use super::rates::{Pace, Rates};
use crate::controller::{Calculated, Calculation};

/// Over this time, an address gets as many calculations as it gets in a row.
const SPAN: Nanos = Nanos::from_secs(4);
/// Niceness of the thread.
const NICE: i32 = 10;

struct Thread {
    work: SyncSender<Calculation>,
    results: Receiver<Calculated>,
}

/// Calculations that wait, and the thread that does them.
pub(super) struct Calculations {
    waiting: VecDeque<(IpAddr, Calculation)>,
    rates: Rates,
    thread: Option<Thread>,
    /// The thread has one.
    is_busy: bool,
    bell: Arc<OwnedFd>,
}

impl Calculations {
    /// Nothing to do yet, and no thread. An address gets `most` in a row.
    pub(super) fn new(most: u32) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let most = most.max(1);
        Ok(Self {
            waiting: VecDeque::new(),
            rates: Rates::new(Pace {
                interval: Nanos(SPAN.0 / u64::from(most)),
                burst: most,
            }),
            thread: None,
            is_busy: false,
            bell: Arc::new(bell),
        })
    }

    /// What becomes readable when a calculation is done.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// One more, for a peer at `address`. A queue has at most one at a time, so
    /// there are never more than connections.
    pub(super) fn add(&mut self, address: IpAddr, work: Calculation) {
        self.waiting.push_back((address, work));
    }

    /// Forgets those that nobody waits for any more.
    pub(super) fn retain(&mut self, mut is_wanted: impl FnMut(&Calculation) -> bool) {
        self.waiting.retain(|(_, work)| is_wanted(work));
    }

    /// The result of the last one, if it is there.
    pub(super) fn finished(&mut self) -> Option<Calculated> {
        if !self.is_busy {
            return None;
        }
        let result = self.thread.as_ref()?.results.try_recv().ok()?;
        // It rings again with the next one.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.is_busy = false;
        Some(result)
    }

    /// Gives the thread the next one if it has none.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.is_busy || self.waiting.is_empty() {
            return;
        }
        let (rates, waiting) = (&mut self.rates, &self.waiting);
        let ready = waiting.iter().enumerate().filter_map(|(at, (address, _))| {
            let ahead = rates.ahead(now, *address)?;
            Some((ahead, at))
        });
        let Some((_, at)) = ready.min() else {
            return;
        };
        let Some((address, work)) = self.waiting.remove(at) else {
            return;
        };
        self.rates.allows(now, address);
        let bell = &self.bell;
        let thread = self.thread.get_or_insert_with(|| start(Arc::clone(bell)));
        // Nothing else is in the channel; and a thread that is gone answers nothing,
        // so that the authentication runs out of time.
        self.is_busy = thread.work.try_send(work).is_ok();
    }
}

fn start(bell: Arc<OwnedFd>) -> Thread {
    let (work, inbox) = sync_channel::<Calculation>(1);
    let (outbox, results) = sync_channel(1);
    let run = move || {
        // Of this thread alone, and without it the loop only has less of the processor.
        let _ = rustix::process::setpriority_process(None, NICE);
        for work in inbox {
            if outbox.send(work.run()).is_err() {
                return;
            }
            // It can only fail when the count is full, and then the loop wakes anyway.
            let _ = rustix::io::write(&bell, &1u64.to_ne_bytes());
        }
    };
    // A system without threads to spare: nobody can authenticate.
    if let Err(error) = std::thread::Builder::new()
        .name("calculations".to_owned())
        .spawn(run)
    {
        tracing::error!(%error, "no thread for calculations");
    }
    Thread { work, results }
}
