//! What components tell each other through the drive.

use std::collections::VecDeque;

use super::Drive;

/// What a component has done that others have to hear of. It says so, and the drive tells them
/// as soon as the component has returned.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// One of the things that a request waits for is done.
    PartDone(u32),
    /// The time has come for the next step of a fill.
    FillGoesOn(u32),
    /// A fill has ended.
    FillEnded {
        /// It.
        task: u32,
        /// The request that waits for it, if one does.
        request: Option<u32>,
    },
    /// Programs that ran when the drain was held have ended.
    DrainIsQuiet,
    /// A row of the SLC cache was erased: units that wait for room in it may leave.
    CacheHasRoom,
    /// A group of zones serves the host again: what was held back meanwhile goes on, in order.
    Served {
        /// The group.
        group: u32,
        /// Requests whose events were due.
        requests: VecDeque<u32>,
        /// Fills.
        fills: VecDeque<u32>,
    },
}

/// Effects that nobody has been told of yet, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    queue: VecDeque<Effect>,
}

impl Effects {
    /// Adds one behind the others.
    #[inline]
    pub(crate) fn push(&mut self, effect: Effect) {
        self.queue.push_back(effect);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Drive {
    /// Tells of all effects, and of those that follow from them.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if !self.core.effects.is_empty() {
            self.settle_effects();
        }
        if self.background.folds() {
            self.background.fold_on(&mut self.core);
            self.settle_effects();
        }
    }

    #[cold]
    fn settle_effects(&mut self) {
        while let Some(effect) = self.core.effects.queue.pop_front() {
            match effect {
                Effect::PartDone(request) => self.part_done(request),
                Effect::FillGoesOn(task) => self.fill_on(task, true),
                Effect::FillEnded { task, request } => {
                    self.copies.cancel_fill(task);
                    if let Some(request) = request {
                        self.part_done(request);
                    }
                    self.background.fill_has_ended(&mut self.core);
                }
                Effect::DrainIsQuiet => self.back_end().drain_is_quiet(),
                Effect::CacheHasRoom => {
                    if let Some((buffer, mut below)) = self.back_end().with_buffer() {
                        buffer.drain_on(&mut below);
                        buffer.admit(&mut below);
                    }
                }
                Effect::Served {
                    group,
                    requests,
                    fills,
                } => {
                    for request in requests {
                        self.step(request);
                    }
                    for fill in fills {
                        self.fill_on(fill, true);
                    }
                    self.background.group_may_erase(&mut self.core, group);
                }
            }
        }
    }
}
