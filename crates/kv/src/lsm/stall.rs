//! When writes wait for flushes and compactions, and how long.
//!
//! `RocksDB`'s write controller: writes stop, or go on at a rate that falls while
//! compactions fall behind and rises while they catch up.

use zonelab_device::Nanos;

use super::options::Options;
use super::stats::StallCause;

/// Writes that a delayed store lets through are counted in steps of this.
const REFILL: Nanos = Nanos(1_000_000);

/// The rate never falls below this, in bytes per second.
const RATE_MIN: u64 = 16 << 10;

/// What decides whether writes wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// Memtables that wait for their flush or are being flushed.
    pub(crate) unflushed: usize,
    pub(crate) level0_files: usize,
    pub(crate) pending_bytes: u64,
}

/// What writes have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Normal,
    Delayed(StallCause),
    Stopped(StallCause),
}

impl Pressure {
    fn condition(&self, options: &Options) -> Condition {
        let buffers = options.max_write_buffer_number;
        if self.unflushed >= buffers {
            Condition::Stopped(StallCause::MemtableLimit)
        } else if self.level0_files >= options.level0_stop_writes_trigger {
            Condition::Stopped(StallCause::Level0Stop)
        } else if self.pending_bytes >= options.hard_pending_compaction_bytes_limit {
            Condition::Stopped(StallCause::PendingBytesStop)
        } else if buffers > 3 && self.unflushed >= buffers - 1 {
            Condition::Delayed(StallCause::MemtableSlowdown)
        } else if self.level0_files >= options.level0_slowdown_writes_trigger {
            Condition::Delayed(StallCause::Level0Slowdown)
        } else if self.pending_bytes >= options.soft_pending_compaction_bytes_limit {
            Condition::Delayed(StallCause::PendingBytesSlowdown)
        } else {
            Condition::Normal
        }
    }

    /// Whether the stop that belongs to this delay is near.
    fn is_near_stop(&self, cause: StallCause, options: &Options) -> bool {
        let soft = options.soft_pending_compaction_bytes_limit;
        let hard = options.hard_pending_compaction_bytes_limit;
        match cause {
            StallCause::Level0Slowdown => {
                self.level0_files + 2 >= options.level0_stop_writes_trigger
            }
            StallCause::PendingBytesSlowdown => {
                self.pending_bytes.saturating_sub(soft) > (hard - soft) / 4 * 3
            }
            _ => false,
        }
    }

    /// Whether compactions should go on side by side: level 0 has twice its
    /// trigger, or a quarter of the way to the slowdown, or a quarter of the soft limit is owed.
    pub(crate) fn is_high(&self, options: &Options) -> bool {
        let trigger = options.level0_file_num_compaction_trigger;
        let quarter = (options.level0_slowdown_writes_trigger - trigger) / 4;
        self.level0_files >= (2 * trigger).min(trigger + quarter)
            || self.pending_bytes >= options.soft_pending_compaction_bytes_limit / 4
    }
}

/// Decides how long writes wait.
#[derive(Clone, Debug)]
pub(crate) struct WriteController {
    condition: Condition,
    /// Bytes per second while delayed.
    rate: u64,
    pending_bytes: u64,
    credit_bytes: u64,
    next_refill: Nanos,
}

impl WriteController {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            condition: Condition::Normal,
            rate: options.delayed_write_rate,
            pending_bytes: 0,
            credit_bytes: 0,
            next_refill: Nanos::ZERO,
        }
    }

    #[inline]
    pub(crate) fn condition(&self) -> Condition {
        self.condition
    }

    /// Tables or memtables have changed.
    pub(crate) fn update(&mut self, pressure: Pressure, options: &Options) {
        let before = core::mem::replace(&mut self.condition, pressure.condition(options));
        let previous = core::mem::replace(&mut self.pending_bytes, pressure.pending_bytes);
        let was_stopped = matches!(before, Condition::Stopped(_));
        let was_delayed = matches!(before, Condition::Delayed(_));
        let max = options.delayed_write_rate;
        match self.condition {
            Condition::Delayed(cause) => {
                if max <= RATE_MIN || !(was_stopped || was_delayed) {
                    return;
                }
                if was_stopped || pressure.is_near_stop(cause, options) {
                    self.rate = (self.rate * 6 / 10).max(RATE_MIN);
                } else if previous > 0 && previous <= pressure.pending_bytes {
                    self.rate = (self.rate * 8 / 10).max(RATE_MIN);
                } else if previous > pressure.pending_bytes {
                    self.rate = (self.rate * 10 / 8).min(max);
                }
            }
            Condition::Normal if was_delayed => self.rate = (self.rate * 14 / 10).min(max),
            Condition::Normal | Condition::Stopped(_) => {}
        }
    }

    /// How long a write of so many bytes waits while writes are delayed.
    pub(crate) fn delay(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let take = |credit: &mut u64| match credit.checked_sub(bytes) {
            Some(rest) => {
                *credit = rest;
                true
            }
            None => false,
        };
        if take(&mut self.credit_bytes) {
            return Nanos::ZERO;
        }
        if self.next_refill == Nanos::ZERO {
            self.next_refill = now;
        }
        if self.next_refill <= now {
            let elapsed = now - self.next_refill + REFILL;
            let bytes = u128::from(elapsed.0) * u128::from(self.rate) / 1_000_000_000;
            self.credit_bytes += u64::try_from(bytes).unwrap_or(u64::MAX / 2) + 1;
            self.next_refill = now + REFILL;
            if take(&mut self.credit_bytes) {
                return Nanos::ZERO;
            }
        }
        let over = u128::from(bytes - self.credit_bytes);
        self.credit_bytes = 0;
        let needed = over * 1_000_000_000 / u128::from(self.rate.max(1));
        self.next_refill += Nanos(u64::try_from(needed).unwrap_or(u64::MAX / 4));
        (self.next_refill - now).max(REFILL)
    }
}
