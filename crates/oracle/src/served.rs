//! Served equals generated: every command that is submitted completes exactly once.

use std::collections::BTreeMap;

use zonelab_device::{Completion, Nanos, QueueId, Tag};

/// The commands of a host.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// When each command that is under way was submitted.
    under_way: BTreeMap<(QueueId, Tag), Nanos>,
    submitted: u64,
    completed: u64,
    /// Neither completed nor under way: power took them.
    lost: u64,
    last: Nanos,
}

impl Served {
    /// A drive took a command.
    ///
    /// # Panics
    /// Another of that name is under way: the host is wrong.
    pub fn submitted(&mut self, now: Nanos, queue: QueueId, tag: Tag) {
        let other = self.under_way.insert((queue, tag), now);
        assert_eq!(other, None, "{tag:?} of {queue:?} is under way already");
        self.submitted += 1;
    }

    /// A completion came, when the host asked for those up to `now`.
    ///
    /// # Panics
    /// Nothing of that name is under way, or the time cannot be true.
    pub fn completed(&mut self, now: Nanos, completion: &Completion) {
        let Completion { queue, tag, at, .. } = *completion;
        let submitted = self.under_way.remove(&(queue, tag));
        let submitted = submitted
            .unwrap_or_else(|| panic!("{tag:?} of {queue:?} completes, but is not under way"));
        assert!(submitted <= at, "{tag:?} completes before it is submitted");
        assert!(at <= now, "{tag:?} completes at {at}, in the future");
        assert!(
            self.last <= at,
            "{tag:?} completes before the one before it"
        );
        self.last = at;
        self.completed += 1;
    }

    /// Power took a command: it never completes.
    ///
    /// # Panics
    /// Nothing of that name is under way.
    pub fn lost(&mut self, queue: QueueId, tag: Tag) {
        let submitted = self.under_way.remove(&(queue, tag));
        assert!(submitted.is_some(), "{tag:?} of {queue:?} is lost twice");
        self.lost += 1;
    }

    /// The drive was restored, and counts time from zero again.
    ///
    /// # Panics
    /// Something is under way, which a drive that is saved has not.
    pub fn clock_starts_anew(&mut self) {
        self.check_at_rest();
        self.last = Nanos::ZERO;
    }

    /// Commands under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Nothing is under way any more: as much was served as was generated.
    ///
    /// # Panics
    /// A command never completed.
    pub fn check_at_rest(&self) {
        let Self {
            under_way,
            submitted,
            completed,
            lost,
            ..
        } = self;
        assert!(under_way.is_empty(), "never completed: {under_way:?}");
        assert_eq!(completed + lost, *submitted, "served and generated");
    }
}
