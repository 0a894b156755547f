//! Commands and completions that a fault keeps from going straight through.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use zonelab_device::{Buf, Command, Completion, Nanos, QueueId, Tag};

use super::{Effect, Swallowed};

/// What is between the host and the drive.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Commands in flight whose completion is not what the drive says.
    marked: Vec<Marked>,
    /// Completions that wait for their time, by time and order.
    held: BinaryHeap<Reverse<Held>>,
    held_count: u64,
    /// Commands that wait for the drive to be ready after a loss of power.
    pub(super) waiting: VecDeque<Waiting>,
    /// Commands whose completions were lost for good: a host that resets the
    /// controller ends them.
    pub(super) swallowed: Vec<(Marked, Option<Buf>)>,
}

/// A command in flight with an effect on its completion.
#[derive(Debug)]
pub(super) struct Marked {
    pub(super) queue: QueueId,
    pub(super) tag: Tag,
    /// With its address counted over the drive.
    pub(super) command: Command,
    pub(super) submitted: Nanos,
    pub(super) effect: Effect,
}

impl Marked {
    /// The command as whoever ends it needs it.
    pub(super) fn swallowed(self, data: Option<Buf>) -> Swallowed {
        let Self { queue, tag, .. } = self;
        Swallowed { queue, tag, data }
    }
}

/// A command that came while the drive was not ready.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) queue: QueueId,
    pub(super) tag: Tag,
    pub(super) command: Command,
    pub(super) data: Option<Buf>,
}

/// A completion that comes at a time of its own.
#[derive(Debug)]
struct Held {
    at: Nanos,
    /// Of those of the same time, the first that was held comes first.
    sequence: u64,
    completion: Completion,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl Pending {
    /// When the next of it goes on, if the drive takes commands from `ready_at` on.
    pub(super) fn next_event(&self, ready_at: Nanos) -> Option<Nanos> {
        let held = self.held.peek().map(|Reverse(held)| held.at);
        let waiting = (!self.waiting.is_empty()).then_some(ready_at);
        [held, waiting].into_iter().flatten().min()
    }

    /// The completion of a command will not be what the drive says.
    pub(super) fn mark(&mut self, marked: Marked) {
        self.marked.push(marked);
    }

    /// Takes the mark of a command away, if it has one.
    pub(super) fn unmark(&mut self, queue: QueueId, tag: Tag) -> Option<Marked> {
        let at = self
            .marked
            .iter()
            .position(|marked| marked.queue == queue && marked.tag == tag)?;
        Some(self.marked.swap_remove(at))
    }

    /// Takes the commands whose completions were lost for good.
    pub(super) fn take_swallowed(&mut self) -> Vec<Swallowed> {
        let swallowed = std::mem::take(&mut self.swallowed).into_iter();
        swallowed
            .map(|(marked, data)| marked.swallowed(data))
            .collect()
    }

    /// Keeps a completion until `at`, which becomes its time.
    pub(super) fn hold(&mut self, at: Nanos, mut completion: Completion) {
        completion.at = at;
        self.held_count += 1;
        self.held.push(Reverse(Held {
            at,
            sequence: self.held_count,
            completion,
        }));
    }

    /// Hands out the completions that are held until `now`.
    pub(super) fn release(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(Reverse(held)) = self.held.peek() {
            if held.at > now {
                return;
            }
            if let Some(Reverse(held)) = self.held.pop() {
                done.push(held.completion);
            }
        }
    }

    /// A loss of power: what had not reached the host by `now` does not reach it
    /// any more. Adds these commands to `aborted`, in order of time.
    pub(super) fn abort_later(&mut self, now: Nanos, aborted: &mut Vec<Swallowed>) {
        for Reverse(held) in std::mem::take(&mut self.held)
            .into_sorted_vec()
            .into_iter()
            .rev()
        {
            if held.at <= now {
                self.hold(held.at, held.completion);
            } else {
                let Completion {
                    queue, tag, data, ..
                } = held.completion;
                aborted.push(Swallowed { queue, tag, data });
            }
        }
    }
}
