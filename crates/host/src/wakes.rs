//! When each job of a reactor wants to run: one time a job, and the earliest of all.

use zonelab_device::Nanos;

/// A tournament of wake times. Each node holds the job that is due first below
/// it; of two that are due at the same time, the one that was added first.
///
/// A job has one time, which changes at most steps. A heap would keep those
/// that no longer hold: a job that is woken by others before its time leaves
/// one behind at each step, millions in a long run.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// By job; [`Nanos::MAX`] for none.
    at: Vec<Nanos>,
    /// Node 1 is the root, those of `n` are at `2n` and `2n + 1`; the second
    /// half are the jobs themselves.
    winners: Vec<u32>,
}

impl Wakes {
    /// Adds a job that wants to run at `at`. Jobs are numbered as they come.
    pub(crate) fn add(&mut self, at: Nanos) {
        let job = self.at.len();
        self.at.push(at);
        let leaves = self.at.len().next_power_of_two();
        if self.winners.len() < 2 * leaves {
            self.winners = vec![u32::MAX; 2 * leaves];
            for other in 0..job {
                self.enter(other);
            }
        }
        self.enter(job);
    }

    /// Puts a job into its leaf.
    fn enter(&mut self, job: usize) {
        let leaf = self.winners.len() / 2 + job;
        self.winners[leaf] = job as u32;
        self.replay(job);
    }

    /// From now on the job wants to run at `at`; [`Nanos::MAX`]: at no time.
    #[inline]
    pub(crate) fn set(&mut self, job: u32, at: Nanos) {
        let job = job as usize;
        if self.at[job] != at {
            self.at[job] = at;
            self.replay(job);
        }
    }

    /// The earliest time, and its job.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Nanos, u32)> {
        let job = *self.winners.get(1)?;
        let at = self.at[job as usize];
        (at != Nanos::MAX).then_some((at, job))
    }

    #[inline]
    fn replay(&mut self, job: usize) {
        let mut node = (self.winners.len() / 2 + job) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let due = |job: u32| self.at.get(job as usize).copied().unwrap_or(Nanos::MAX);
            self.winners[node] = if due(right) < due(left) { right } else { left };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_and_of_equals_the_one_added_first(
            jobs in 1_u32..40,
            sets in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..20), 0..200),
        ) {
            let mut wakes = Wakes::default();
            prop_assert_eq!(wakes.first(), None);
            let mut oracle = Vec::new();
            for job in 0..jobs {
                let at = Nanos(u64::from(job * 7 % 20));
                wakes.add(at);
                oracle.push(at);
            }
            for (job, at) in sets {
                let job = job.index(jobs as usize);
                // The longest of the times stands for none.
                let at = if at == 19 { Nanos::MAX } else { Nanos(at) };
                wakes.set(job as u32, at);
                oracle[job] = at;
                let first = (0..jobs).map(|job| (oracle[job as usize], job)).min();
                prop_assert_eq!(wakes.first(), first.filter(|(at, _)| *at != Nanos::MAX));
            }
        }
    }
}
