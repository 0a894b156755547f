//! Allocations that the firmware prepares while the host wants nothing
//! (SilentZNS, section 5: allocation "can be further amortized by ... performing
//! allocation during idle times").
//!
//! Preparing is computing: a prepared zone is one whose computation is done, up
//! to a stated number of them. Which elements it gets is settled when it is
//! used. In between, elements become available; one with less wear than a
//! prepared one takes its place, which needs a comparison and no computation
//! of the whole. So a pool costs nothing of what allocation is for: a zone from
//! it has the least total wear that there is at its first write.
//!
//! A computation that a command interrupts goes on in the next idle time.

use zonelab_device::Nanos;

use crate::config::AllocationConfig;

/// Prepared allocations. Lost with the power, and not in snapshots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    time_ns: Nanos,
    most: u32,
    ready: u32,
    /// Spent on the next.
    spent_ns: Nanos,
    /// Since when no command of a host is in flight.
    idle_since: Option<Nanos>,
}

impl Prepared {
    /// A drive that begins at `now` with none; `None`: it never has any.
    pub(crate) fn new(config: &AllocationConfig, now: Nanos) -> Option<Self> {
        (config.pool_zones > 0).then_some(Self {
            time_ns: config.time_ns,
            most: config.pool_zones,
            ready: 0,
            spent_ns: Nanos::ZERO,
            idle_since: Some(now),
        })
    }

    /// No command of a host is in flight from `now` on.
    pub(crate) fn idles(&mut self, now: Nanos) {
        self.idle_since = Some(now);
    }

    /// A command arrives.
    pub(crate) fn wakes(&mut self, now: Nanos) {
        let Some(since) = self.idle_since.take() else {
            return;
        };
        let missing = self.most - self.ready;
        let spent_ns = self
            .spent_ns
            .0
            .saturating_add(now.0.saturating_sub(since.0));
        // Once the pool is full nothing is begun.
        match u32::try_from(spent_ns / self.time_ns.0.max(1)) {
            Ok(done) if done < missing => {
                self.ready += done;
                self.spent_ns = Nanos(spent_ns % self.time_ns.0.max(1));
            }
            _ => {
                self.ready = self.most;
                self.spent_ns = Nanos::ZERO;
            }
        }
    }

    /// Uses a prepared allocation, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let has_one = self.ready > 0;
        self.ready -= u32::from(has_one);
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_idle_time_and_no_further() {
        let config = AllocationConfig {
            time_ns: Nanos(10),
            pool_zones: 2,
            ..AllocationConfig::NONE
        };
        let mut pool = Prepared::new(&config, Nanos(0)).unwrap();
        // One and a half, then the other half.
        pool.wakes(Nanos(15));
        pool.wakes(Nanos(90));
        assert!(pool.take() && !pool.take());
        pool.idles(Nanos(100));
        pool.wakes(Nanos(104));
        assert!(!pool.take());
        pool.idles(Nanos(104));
        pool.wakes(Nanos(105));
        assert!(pool.take() && !pool.take());
        // However long it is: two, and nothing begun.
        pool.idles(Nanos(200));
        pool.wakes(Nanos(1_000_009));
        assert!(pool.take() && pool.take() && !pool.take());
        pool.idles(Nanos(1_000_010));
        pool.wakes(Nanos(1_000_019));
        assert!(!pool.take());
    }
}
