//! `cargo xtask nightly`: an hour of chaos, every case of the guests in both kernels, and the
//! fuzz targets, turn after turn.

use anyhow::Result;

use crate::steps::{self, Policy};
use crate::tiers::is_ci;
use crate::{USAGE, chaos, fuzz, guest, tools};

/// Seconds that each target gets in a turn.
const TURN_SECONDS: u64 = 60;
/// Between the first seeds of two turns: no target gets through so many in one.
const STRIDE: u64 = 1 << 20;

/// Looks at what we depend on, runs the tests of the tier `chaos` for long and those of the tier
/// `guest` with both kernels, and then all targets in turn, on new seeds each time, until one
/// fails.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let fuzz_only = args.first().is_some_and(|arg| arg == "--fuzz-only");
    let Some((first, turns)) = parse(&args[usize::from(fuzz_only)..]) else {
        eprintln!(
            "cargo xtask nightly: takes --fuzz-only, which leaves out `cargo xtask deny`, the hour \
             of chaos\nand the guests, and then --seed N (say, the number of the night) and\n--turns N \
             (default: until interrupted)"
        );
        return Ok(USAGE);
    };
    if !fuzz_only {
        let code = tools::deny(&[])?;
        if code != 0 {
            return Ok(code);
        }
        for steps in [chaos::long(), guest::long(is_ci())] {
            let code = steps::run(steps, Policy::STRICT)?;
            if code != 0 {
                return Ok(code);
            }
        }
    }
    let mut seed = first.wrapping_mul(STRIDE).wrapping_mul(1_000);
    let mut turn = 0;
    while turns.is_none_or(|turns| turn < turns) {
        println!("nightly: turn {turn}, from seed {seed}");
        let (length, from) = (TURN_SECONDS.to_string(), seed.to_string());
        let args = ["all", "--seconds", &length, "--seed", &from].map(str::to_owned);
        let code = fuzz::chore(&args)?;
        if code != 0 {
            return Ok(code);
        }
        seed = seed.wrapping_add(STRIDE);
        turn += 1;
    }
    Ok(0)
}

/// First seed and number of turns.
fn parse(args: &[String]) -> Option<(u64, Option<u64>)> {
    let (mut seed, mut turns) = (1, None);
    for pair in args.chunks(2) {
        let [flag, value] = pair else { return None };
        match flag.as_str() {
            "--seed" => seed = value.parse().ok()?,
            "--turns" => turns = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some((seed, turns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let parse = |text: &str| {
            parse(
                &text
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(parse(""), Some((1, None)));
        assert_eq!(parse("--turns 3 --seed 9"), Some((9, Some(3))));
        for wrong in ["--seed", "--turns x", "7", "--hours 8"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
