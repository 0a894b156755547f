//! Seeds of randomised tests, and how to replay one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Runs a case with consecutive seeds: `ZONELAB_FTL_RUNS` of them from
/// `ZONELAB_FTL_SEED` on, if those are set. A case that panics leaves word how to
/// replay it. Seeds have nothing to do with each other, so each processor takes the next one.
pub(crate) fn each_seed(test: &str, runs: u64, case: impl Fn(u64) + Sync) {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = number("ZONELAB_FTL_SEED").unwrap_or(1);
    let runs = number("ZONELAB_FTL_RUNS").unwrap_or(runs);
    let (next, failed) = (AtomicU64::new(first), AtomicBool::new(false));
    let end = first.saturating_add(runs);
    let take_turns = || {
        while !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let _word = Word {
                test,
                seed,
                failed: &failed,
            };
            case(seed);
        }
    };
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    thread::scope(|scope| {
        for _ in 0..processors.min(runs) {
            scope.spawn(take_turns);
        }
    });
}

struct Word<'a> {
    test: &'a str,
    seed: u64,
    failed: &'a AtomicBool,
}

impl Drop for Word<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { test, seed, failed } = self;
            failed.store(true, Ordering::Relaxed);
            eprintln!(
                "replay: ZONELAB_FTL_SEED={seed} ZONELAB_FTL_RUNS=1 cargo test -p zonelab-ftl {test}"
            );
        }
    }
}
