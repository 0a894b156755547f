//! Recovers drives that are drawn at random, and prints how well: `cargo run --release -p
//! zonelab-lab --example fit_recovery -- 20`.

use rayon as _;
use zonelab_search::characterize::Effort;
use zonelab_search::fit::recovery::{Recovered, Totals, recover};

fn main() {
    let mut words = std::env::args().skip(1);
    let many: u64 = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(20);
    let first: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let mut all: Vec<Recovered> = Vec::new();
    for seed in first..first + many {
        match recover(seed, (Effort::Quick, 3)) {
            Ok((one, _)) => {
                show(&one);
                all.push(one);
            }
            Err(error) => println!("drive {seed}: {error}"),
        }
    }
    println!("{:#?}", Totals::of(&all));
}

fn show(one: &Recovered) {
    println!(
        "drive {}: {} probes, {} runs of candidates, misfit {:.2}, wrong {:?}, undecided {:?}",
        one.seed, one.probes, one.runs, one.misfit, one.wrong, one.undecided
    );
    for number in &one.numbers {
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
        println!(
            "    {:6.1} %  {name}: {measured:.1} {ours:.1}",
            100.0 * (ours / measured - 1.0)
        );
    }
}
