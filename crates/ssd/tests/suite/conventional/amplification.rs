//! Write amplification of greedy collection under uniform random writes, beside what the
//! mean of infinitely many zones would give.

use super::policies::{amplification_of, with_zones};

/// What greedy collection amplifies uniform random writes by, where `sets` sets of `pages`
/// pages each are written in full and hold `valid` pages that are overwritten equally often.
///
/// Each host write takes a page away from one of the sets, so that of those with `k` pages a
/// share of `k / valid` goes on to `k - 1`; full ones come with a rate `r`, and leave where
/// they are collected: some with `low + 1` pages, and the others, a flow of `f`, with `low`.
/// Sets with `k > low + 1` pages are `r * valid / k` then, and those with `low + 1` are
/// `f * valid / (low + 1)`. They are `sets` together, and what is gained is what the host
/// writes: `r * (pages - low - 1) + f = 1`. Only for one `low` is `f` between 0 and `r`.
/// Each set is written in full: `r * pages` pages for each of the host's.
fn solved(sets: f64, pages: u32, valid: f64) -> f64 {
    for low in 0..pages - 1 {
        let above = f64::from(low + 1);
        let harmonic: f64 = (low + 2..=pages).map(|k| 1.0 / f64::from(k)).sum();
        let gained = f64::from(pages) - above;
        let rate = (sets / valid - 1.0 / above) / (harmonic - gained / above);
        let flow = 1.0 - rate * gained;
        if rate > 0.0 && (0.0..=rate).contains(&flow) {
            return rate * f64::from(pages);
        }
    }
    unreachable!("{valid} pages leave no spare in {sets} sets of {pages}")
}

#[test]
fn the_solution_is_that_of_large_sets_where_they_are_large() {
    // With infinitely large sets, of which data is a share of `load`, u = low / pages solves
    // ln u = (u - 1) / load, and 1 / (1 - u) of what the host writes is written.
    for (load, limit) in [(0.5, 1.255_001), (0.8, 2.692_731), (0.9, 5.178_659)] {
        let (pages, sets) = (5_000, 1_000.0);
        let ours = solved(sets, pages, load * sets * f64::from(pages));
        assert!((ours / limit - 1.0).abs() < 1e-3, "{ours} and {limit}");
    }
}

#[test]
fn greedy_collection_amplifies_as_the_mean_of_many_zones_does() {
    const ZONES: u32 = 240;
    const PAGES: u32 = 16;
    for spare in [24, 48, 96] {
        let config = with_zones(ZONES, spare);
        let addressable = u64::from(ZONES - spare) * u64::from(PAGES);
        let next = |drawn: u64| drawn % addressable;
        let measured = amplification_of(&config, addressable, true, next);
        // Two zones are empty while the host writes; of the one that it fills and the one that
        // collection fills, half is written on average.
        let sets = f64::from(ZONES - 2 - 1);
        let expected = solved(sets, PAGES, addressable as f64);
        println!("{spare} spare: {measured} and {expected}");
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.03, "{measured} and {expected}: {error}");
    }
}
