//! Jobs that keep to shares of what they do together: fio's `flow`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zonelab_device::Nanos;

use crate::reactor::Bell;

/// Jobs whose operations keep the ratio of their weights. Those of one group have
/// clones of it, whichever threads they run in.
#[derive(Clone, Debug, Default)]
pub struct ShareGroup {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Operations of those that are at work.
    operations: AtomicU64,
    /// Their weights.
    weight: AtomicU64,
    /// Somebody waits for others to do more.
    has_waiting: AtomicBool,
}

/// The share of one job.
#[derive(Clone, Debug)]
pub struct Share {
    /// With whom.
    pub group: ShareGroup,
    /// Its weight among theirs, at least 1.
    pub weight: u32,
    /// How long it sleeps when it has done more than its share, before it looks
    /// again; zero: it goes on as soon as the others have caught up.
    pub sleep: Nanos,
}

/// The share of a job that has begun.
#[derive(Debug)]
pub(super) struct Sharing {
    share: Share,
    operations: u64,
    is_at_work: bool,
}

impl Sharing {
    pub(super) const fn new(share: Share) -> Self {
        Self {
            share,
            operations: 0,
            is_at_work: false,
        }
    }

    /// The job begins: its weight counts.
    pub(super) fn begin(&mut self, bell: &Bell) {
        self.is_at_work = true;
        let counts = &self.share.group.counts;
        let weight = self.share.weight.max(1).into();
        counts.weight.fetch_add(weight, Ordering::AcqRel);
        counts.wake(bell);
    }

    /// The job has ended: neither its weight nor what it did counts any more.
    pub(super) fn end(&mut self, bell: &Bell) {
        if std::mem::take(&mut self.is_at_work) {
            let counts = &self.share.group.counts;
            let weight = self.share.weight.max(1).into();
            counts.weight.fetch_sub(weight, Ordering::AcqRel);
            counts
                .operations
                .fetch_sub(self.operations, Ordering::AcqRel);
            counts.wake(bell);
        }
    }

    /// An operation has begun.
    pub(super) fn begun(&mut self, bell: &Bell) {
        self.operations += 1;
        let counts = &self.share.group.counts;
        counts.operations.fetch_add(1, Ordering::AcqRel);
        counts.wake(bell);
    }

    /// Whether it has done more than its share: then it is woken when others have
    /// done more, or looks again after [`Self::sleep`].
    pub(super) fn is_ahead(&self) -> bool {
        if !self.compare() {
            return false;
        }
        // Who does something after this sees that somebody waits, and who did
        // before is counted by the second look.
        let counts = &self.share.group.counts;
        counts.has_waiting.store(true, Ordering::SeqCst);
        self.compare()
    }

    /// Shares add up to the whole, so that not everybody can be ahead.
    fn compare(&self) -> bool {
        let counts = &self.share.group.counts;
        let all = u128::from(counts.operations.load(Ordering::SeqCst));
        let weights = u128::from(counts.weight.load(Ordering::SeqCst));
        let weight = u128::from(self.share.weight.max(1));
        u128::from(self.operations) * weights > weight * all
    }

    pub(super) const fn sleep(&self) -> Nanos {
        self.share.sleep
    }
}

impl Counts {
    /// Lets those look again that wait.
    fn wake(&self, bell: &Bell) {
        if self.has_waiting.load(Ordering::SeqCst) {
            self.has_waiting.store(false, Ordering::SeqCst);
            bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(group: &ShareGroup, weight: u32) -> Sharing {
        Sharing::new(Share {
            group: group.clone(),
            weight,
            sleep: Nanos::ZERO,
        })
    }

    #[test]
    fn shares_are_kept_until_somebody_leaves() {
        let (group, bell) = (ShareGroup::default(), Bell::default());
        let mut jobs = [3, 2, 1].map(|weight| sharing(&group, weight));
        jobs.iter_mut().for_each(|job| job.begin(&bell));
        for _ in 0..600 {
            // Whoever comes first and may.
            let next = jobs.iter_mut().find(|job| !job.is_ahead());
            next.expect("not everybody is ahead").begun(&bell);
        }
        let counts = jobs.each_ref().map(|job| job.operations);
        for (count, share) in counts.into_iter().zip([300, 200, 100]) {
            assert!(u64::abs_diff(count, share) <= 1, "{counts:?}");
        }
        let [a, b, c] = &mut jobs;
        b.end(&bell);
        c.end(&bell);
        for _ in 0..100 {
            assert!(!a.is_ahead(), "it is alone");
            a.begun(&bell);
        }
    }

    #[test]
    fn who_waits_is_rung_for_when_others_go_on() {
        let (group, bell) = (ShareGroup::default(), Bell::default());
        let [mut a, mut b] = [1, 1].map(|weight| sharing(&group, weight));
        a.begin(&bell);
        b.begin(&bell);
        a.begun(&bell);
        assert!(a.is_ahead());
        let rings = bell.rings();
        b.begun(&bell);
        assert_eq!(bell.rings(), rings + 1);
        assert!(!a.is_ahead());
    }
}
