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
use crate::controller::{Calculated, Calculation, QueueHandle};

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
    /// The thread has one, of this queue.
    at_work: Option<QueueHandle>,
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
            at_work: None,
            bell: Arc::new(bell),
        })
    }

    /// What becomes readable when a calculation is done.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// It rang. This takes the ring whether the result has been taken or not: the thread rings
    /// after it has handed over the result, so that a turn of the loop can find that first, and
    /// a ring that nobody takes would keep the loop from sleeping.
    pub(super) fn heard(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
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

    /// Whether one of a queue waits or is under way.
    pub(super) fn has(&self, queue: QueueHandle) -> bool {
        let mut waiting = self.waiting.iter();
        self.at_work == Some(queue) || waiting.any(|(_, work)| work.queue() == queue)
    }

    /// The result of the last one, if it is there, and the queue that it is for.
    pub(super) fn finished(&mut self) -> Option<(QueueHandle, Calculated)> {
        let queue = self.at_work?;
        let result = self.thread.as_ref()?.results.try_recv().ok()?;
        self.at_work = None;
        Some((queue, result))
    }

    /// Gives the thread the next one if it has none.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.at_work.is_some() || self.waiting.is_empty() {
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
        let queue = work.queue();
        self.at_work = thread.work.try_send(work).is_ok().then_some(queue);
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

#[cfg(test)]
mod tests {
    use super::super::{Backend, Server, ServerSettings, loop_calls};
    use crate::controller::{Connected, Done};
    use zonelab_device::Buf;
    use zonelab_nvme::fabrics::{Connect, ConnectData};
    use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};

    use super::*;

    /// Nobody connects, and nothing is to be done.
    struct Idle;

    impl Backend for Idle {
        fn connect(
            &mut self,
            _: Nanos,
            _: (&SubmissionEntry, &Connect),
            _: &ConnectData,
        ) -> Result<Connected, CompletionEntry> {
            unreachable!("nobody connects")
        }

        fn disconnect(&mut self, _: Nanos, _: QueueHandle) {}

        fn submit(
            &mut self,
            _: Nanos,
            _: QueueHandle,
            _: &SubmissionEntry,
            _: Option<Buf>,
            _: u32,
        ) {
        }

        fn recycle(&mut self, _: Buf) {}

        fn next_event(&self) -> Option<Nanos> {
            None
        }

        fn advance(&mut self, _: Nanos, _: &mut Vec<Done>, _: &mut Vec<QueueHandle>) {}
    }

    /// A turn that came between the result and its ring has taken the result already.
    #[test]
    fn a_ring_without_a_result_wakes_the_loop_once() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let mut server = Server::bind(address, ServerSettings::default()).expect("a free port");
        let (_handle, calls) = loop_calls().expect("two descriptors");
        let bell = Arc::clone(&server.calculations.bell);
        rustix::io::write(&bell, &1u64.to_ne_bytes()).expect("there is room");
        let mut events = Vec::with_capacity(4);
        let turn = server.turn(&mut Idle, &calls, &mut events);
        turn.expect("it waits");
        let again = server.wait(Nanos::ZERO, &mut events);
        again.expect("it looks");
        assert!(events.is_empty());
    }
}
