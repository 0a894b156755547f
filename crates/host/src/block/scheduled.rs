//! A scheduler in front of a queue pair of any device.

use zonelab_device::{Buf, Command, Completion, DeviceInfo, Nanos, QueueId, QueuePair};
use zonelab_device::{RejectReason, Rejected, Tag};

use super::{BlockLayer, Issue};
use crate::scheduler::{SchedulerSpec, SettingError};

/// A queue pair whose commands pass through a scheduler of their own.
///
/// It adds no cost and no time of its own: what the scheduler lets go is
/// submitted at once, and its timers are looked at whenever the queue pair is
/// polled. It holds as many requests as the program may submit (`depth`), of
/// which the queue pair below has some.
pub struct Scheduled<Q> {
    inner: Q,
    layer: BlockLayer,
    depth: usize,
    held: usize,
    /// A command that the queue pair below had no room for.
    postponed: Option<Issue>,
    scratch: Vec<Completion>,
}

/// The queue pair has one user, whose queue needs no number.
const QUEUE: QueueId = QueueId(0);

impl<Q: QueuePair> Scheduled<Q> {
    /// `inner`, behind a scheduler, for up to `depth` requests.
    ///
    /// # Errors
    /// A setting of the scheduler is out of its range.
    pub fn new(inner: Q, scheduler: &SchedulerSpec, depth: u32) -> Result<Self, SettingError> {
        let scheduler = scheduler.build(inner.info())?;
        Ok(Self {
            inner,
            layer: BlockLayer::new(scheduler),
            depth: depth as usize,
            held: 0,
            postponed: None,
            scratch: Vec::new(),
        })
    }

    /// Lets another scheduler take over ([`BlockLayer::switch_to`]).
    ///
    /// # Errors
    /// A setting of it is out of its range: the old one stays.
    pub fn switch_to(&mut self, scheduler: &SchedulerSpec) -> Result<(), SettingError> {
        let scheduler = scheduler.build(self.inner.info())?;
        self.layer.switch_to(self.inner.now(), scheduler);
        Ok(())
    }

    /// The queue pair below.
    pub fn device_mut(&mut self) -> &mut Q {
        &mut self.inner
    }

    /// The block layer.
    #[must_use]
    pub fn layer(&self) -> &BlockLayer {
        &self.layer
    }

    /// Submits what may go.
    fn pump(&mut self) {
        loop {
            let now = self.inner.now();
            let Some(issue) = self.postponed.take().or_else(|| self.layer.next(now)) else {
                return;
            };
            let Issue {
                queue,
                tag,
                command,
                data,
                is_merged,
            } = issue;
            match self.inner.submit(command, tag, data) {
                Ok(()) => {}
                Err(Rejected { data, .. }) => {
                    // Full, until something completes; or gone for good, which
                    // whoever submits next is told.
                    self.postponed = Some(Issue {
                        queue,
                        tag,
                        command,
                        data,
                        is_merged,
                    });
                    return;
                }
            }
        }
    }
}

impl<Q: QueuePair> QueuePair for Scheduled<Q> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.held == self.depth {
            let reason = RejectReason::QueueFull {
                queue: QUEUE,
                depth: self.depth as u32,
            };
            return Err(Rejected { reason, data });
        }
        self.held += 1;
        let now = self.inner.now();
        self.layer.insert(now, QUEUE, tag, command, data);
        self.pump();
        Ok(())
    }

    fn ring(&mut self) {
        self.inner.ring();
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        self.scratch.clear();
        self.inner.poll(&mut self.scratch);
        let now = self.inner.now();
        for completion in self.scratch.drain(..) {
            self.layer.completed(now, completion, done);
        }
        if self.layer.next_timer().is_some_and(|at| at <= now) {
            self.layer.timer(now);
        }
        self.pump();
        self.inner.ring();
        self.held -= done.len() - before;
        done.len() - before
    }
}
