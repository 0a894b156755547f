//! No scheduler: requests go to the device as they come.

use std::collections::VecDeque;

use zonelab_device::{Command, Nanos};

use super::{RequestId, Scheduler};

/// Every request goes at once, in the order of arrival, none merged with another.
///
/// Whoever writes to zones must keep the order of their writes on its own: one
/// write of a zone in flight, or appends.
#[derive(Debug, Default)]
pub(super) struct Noop {
    waiting: VecDeque<(RequestId, Command)>,
}

impl Scheduler for Noop {
    fn name(&self) -> &'static str {
        "none"
    }

    #[inline]
    fn insert(&mut self, _now: Nanos, id: RequestId, command: Command) {
        self.waiting.push_back((id, command));
    }

    #[inline]
    fn dispatch(&mut self, _now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        let (id, command) = self.waiting.pop_front()?;
        carried.push(id);
        Some(command)
    }

    #[inline]
    fn completed(&mut self, _now: Nanos, _command: &Command) {}

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        waiting.extend(self.waiting.drain(..));
    }
}
