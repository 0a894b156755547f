//! What runs host programs on a device needs of it.

use crate::{Nanos, QueueId, QueuePair};

/// A device of any kind, as a reactor drives it: it asks when something may
/// happen, waits, and brings the device to the time that it is then.
///
/// Programs do not see this: they have a [`QueuePair`] each.
pub trait Device {
    /// Its queue pairs. A reactor is compiled for one kind of them.
    type Queue: DeviceQueue;

    /// The latest time for the next [`Self::advance`]: when something happens
    /// of which nothing but the passing of time tells. [`Nanos::MAX`]: commands
    /// are under way, and only the device knows when they end. `None`: nothing
    /// is under way, and nothing completes unless something is submitted.
    fn next_event(&self) -> Option<Nanos>;

    /// Does all that is due until `now`, and adds to `ready` the queues that
    /// have something to be polled now and had nothing before. Does not wait.
    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>);

    /// Blocks the thread for `span` at most, and less if something comes from
    /// outside meanwhile; with [`Nanos::ZERO`] it only looks. Returns whether
    /// [`Self::advance`] is worth a call before its time. May return early for
    /// no reason.
    fn wait(&mut self, span: Nanos) -> bool;
}

/// A device that is a model: it does nothing but in [`Device::advance`], and
/// knows no time but the one that it is given there. A clock may jump over the
/// time in between.
pub trait Modelled: Device {}

/// One queue pair as a reactor holds it.
pub trait DeviceQueue: QueuePair {
    /// What [`Device::advance`] calls it.
    fn id(&self) -> QueueId;

    /// The job of this queue pair begins to run at `now`.
    fn enter(&mut self, now: Nanos);
}

impl<Q: DeviceQueue> DeviceQueue for &mut Q {
    fn id(&self) -> QueueId {
        Q::id(self)
    }

    fn enter(&mut self, now: Nanos) {
        Q::enter(self, now);
    }
}

/// A reactor may borrow a device whose owner has questions afterwards.
impl<D: Device> Device for &mut D {
    type Queue = D::Queue;

    fn next_event(&self) -> Option<Nanos> {
        D::next_event(self)
    }

    fn advance(&mut self, now: Nanos, ready: &mut Vec<QueueId>) {
        D::advance(self, now, ready);
    }

    fn wait(&mut self, span: Nanos) -> bool {
        D::wait(self, span)
    }
}

impl<D: Modelled> Modelled for &mut D {}
