//! How this crate waits.

use std::time::Duration;

use rustix::event::Timespec;
use zonelab_device::{Monotonic, Nanos};

/// Waits for `span`, whatever wakes the thread early.
pub(crate) fn sleep(clock: Monotonic, span: Nanos) {
    let end = clock.now().saturating_add(span);
    loop {
        let left = end.saturating_sub(clock.now());
        if left == Nanos::ZERO {
            return;
        }
        std::thread::park_timeout(Duration::from_nanos(left.0));
    }
}

/// `span`, at most an hour, as the kernel takes it: whoever waits for longer
/// waits again.
pub(crate) fn time_limit(span: Nanos) -> Timespec {
    let Nanos(ns) = span.min(Nanos::from_secs(3600));
    Timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}
