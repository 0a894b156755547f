//! Recovers drives that are drawn at random, and prints how well; the exit code is 1 if the
//! bars of `docs/fit.md` are missed. Drives and the first seed are arguments:
//! `cargo run --release -p zonelab-search --example fit_recovery -- 20 1`.

use std::process::ExitCode;

use zonelab_search::characterize::Effort;
use zonelab_search::fit::recovery::{Recovered, Totals, recover};

/// Least share of numbers whose interval has the truth.
const INSIDE: f64 = 0.9;
/// Greatest median error of predictions.
const PREDICTIONS: f64 = 0.05;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: u64| {
        let word = words.next();
        word.map_or(Some(usual), |word| word.parse().ok())
    };
    let (Some(many), Some(first)) = (number(20), number(1)) else {
        eprintln!("fit_recovery: takes the number of drives and the first seed: 20 1");
        return ExitCode::from(2);
    };
    let mut all: Vec<Recovered> = Vec::new();
    for seed in first..first.saturating_add(many) {
        match recover(seed, (Effort::Quick, 3)) {
            Ok((one, _)) => {
                show(&one);
                all.push(one);
            }
            Err(error) => println!("drive {seed}: {error}"),
        }
    }
    let totals = Totals::of(&all);
    println!("{totals:#?}");
    let is_good = totals.inside >= INSIDE && totals.prediction_median <= PREDICTIONS;
    ExitCode::from(u8::from(!is_good))
}

fn show(one: &Recovered) {
    println!(
        "drive {}: {} probes, {} runs of candidates, misfit {:.2}, missed by {:.1}, wrong {:?}, \
         undecided {:?}",
        one.seed, one.probes, one.runs, one.misfit, one.missed_by, one.wrong, one.undecided
    );
    for number in &one.numbers {
        // Inside, inside of one that is open, outside, outside of one that is open.
        let mark = match (number.is_inside, number.is_determined) {
            (true, true) => " ",
            (true, false) => "?",
            (false, true) => "!",
            (false, false) => "x",
        };
        println!(
            "  {mark} {:28} {:>12} {:?} {:?}",
            number.key, number.truth, number.value, number.interval
        );
    }
    for (name, measured, ours) in &one.predictions {
        let off = 100.0 * (ours / measured - 1.0);
        println!("    {off:6.1} %  {name}: {measured:.1} {ours:.1}");
    }
}
