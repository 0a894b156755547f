//! Seeds of randomised tests, and how to replay one.

/// Runs a case with consecutive seeds: `ZONELAB_FTL_RUNS` of them from
/// `ZONELAB_FTL_SEED` on, if those are set. A case that panics leaves word how to
/// replay it.
pub(crate) fn each_seed(test: &str, runs: u64, case: impl Fn(u64)) {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = number("ZONELAB_FTL_SEED").unwrap_or(1);
    let runs = number("ZONELAB_FTL_RUNS").unwrap_or(runs);
    for seed in first..first.saturating_add(runs) {
        let _word = Word { test, seed };
        case(seed);
    }
}

struct Word<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Word<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            eprintln!(
                "replay: ZONELAB_FTL_SEED={seed} ZONELAB_FTL_RUNS=1 cargo test -p zonelab-ftl {test}"
            );
        }
    }
}
