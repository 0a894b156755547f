//! `cargo xtask soak`: a long run of the fuzz targets that drives are in.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::{USAGE, cargo, root, target};

/// The targets, and how many of a thousand inputs each gets: an input of `store` takes some
/// twenty times as long as one of `drive`.
const TARGETS: [(&str, u64); 5] = [
    ("drive", 300),
    ("system", 200),
    ("faults", 240),
    ("snapshot", 250),
    ("store", 10),
];

/// Inputs unless said otherwise.
const INPUTS: u64 = 10_000_000;

/// Each target is cut into so many pieces, so that all cores work to the end.
const PIECES: u64 = 20;

/// A part of a run: consecutive seeds of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    target: &'static str,
    first: u64,
    inputs: u64,
}

/// Runs the targets over new seeds, on all cores, until one fails or all are through.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let Some((seed, inputs)) = parse(args) else {
        eprintln!(
            "cargo xtask soak: takes --runs N (inputs of all targets together, default \
             {INPUTS}) and --seed N (the first of each target, default 1)"
        );
        return Ok(USAGE);
    };
    let mut build = cargo();
    build.args(["build", "--profile", "soak", "--package", "zonelab-fuzz"]);
    let built = build.current_dir(root()).status();
    let built = built.context("cannot start cargo")?;
    ensure!(built.success(), "the fuzz targets are not built");
    let pieces = pieces(seed, inputs);
    match run(&pieces) {
        Ok(done) => {
            let all: u64 = done.values().sum();
            for (target, count) in done {
                println!("soak: {target}: {count} inputs from seed {seed}: ok");
            }
            println!("soak: {all} inputs, nothing found");
            Ok(0)
        }
        Err(error) => {
            eprintln!("{error:#}");
            Ok(1)
        }
    }
}

/// Lets threads take pieces in turn. Returns how many inputs each target had.
fn run(pieces: &[Piece]) -> Result<BTreeMap<&'static str, u64>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(BTreeMap::new());
    let work = || -> Result<()> {
        while !has_failed.load(Ordering::Relaxed)
            && let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let ran = run_piece(piece);
            has_failed.fetch_or(ran.is_err(), Ordering::Relaxed);
            ran?;
            let mut done = done.lock().expect("no thread panics while it counts");
            *done.entry(piece.target).or_default() += piece.inputs;
            let all: u64 = done.values().sum();
            println!(
                "soak: {} from seed {}: ok ({all} inputs)",
                piece.target, piece.first
            );
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut ends = workers.into_iter().map(|worker| worker.join());
        ends.try_for_each(|end| end.expect("a worker says what it has found"))
    })?;
    Ok(done.into_inner().expect("no thread panics while it counts"))
}

fn run_piece(piece: &Piece) -> Result<()> {
    let mut command = Command::new(target().join("soak/zonelab-fuzz"));
    let (first, inputs) = (piece.first.to_string(), piece.inputs.to_string());
    command.args([piece.target, "--seed", &first, "--runs", &inputs]);
    let output = command.output().context("cannot start the fuzz targets")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The pieces of a run: the first of each target, the second of each, and so on.
fn pieces(seed: u64, inputs: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for piece in 0..PIECES {
        for (target, share) in TARGETS {
            let of_target = inputs.saturating_mul(share) / 1_000;
            let start = of_target * piece / PIECES;
            let end = of_target * (piece + 1) / PIECES;
            if start < end {
                pieces.push(Piece {
                    target,
                    first: seed.saturating_add(start),
                    inputs: end - start,
                });
            }
        }
    }
    pieces
}

/// First seed and number of inputs.
fn parse(args: &[String]) -> Option<(u64, u64)> {
    let (mut seed, mut inputs) = (1, INPUTS);
    for pair in args.chunks(2) {
        let [flag, value] = pair else { return None };
        match flag.as_str() {
            "--seed" => seed = value.parse().ok()?,
            // More would not be through in a lifetime.
            "--runs" => inputs = value.parse().ok().filter(|runs| *runs <= 1 << 48)?,
            _ => return None,
        }
    }
    Some((seed, inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let parse = |text: &str| {
            let words = text.split_whitespace().map(str::to_owned);
            parse(&words.collect::<Vec<_>>())
        };
        assert_eq!(parse(""), Some((1, INPUTS)));
        assert_eq!(parse("--runs 3 --seed 9"), Some((9, 3)));
        for wrong in ["--seed", "--runs x", "7", "--runs 999999999999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn pieces_are_all_inputs_once() {
        for inputs in [0, 999, 1_000, 123_456, INPUTS] {
            let pieces = pieces(7, inputs);
            for (target, share) in TARGETS {
                let mut next = 7;
                for piece in pieces.iter().filter(|piece| piece.target == target) {
                    assert_eq!(piece.first, next);
                    next += piece.inputs;
                }
                assert_eq!(next - 7, inputs * share / 1_000);
            }
        }
        let shares: u64 = TARGETS.iter().map(|(_, share)| share).sum();
        assert_eq!(shares, 1_000);
    }
}
