//! `cargo xtask nightly`: the fuzz targets, for as long as there is time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::{USAGE, fuzz};

/// Length of one turn of all targets; each gets the same.
const TURN_SECONDS: u64 = 60;

/// Runs all targets in turn until one fails or the time is over.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let seconds = match args {
        [] => None,
        [flag, number] if flag == "--seconds" => match number.parse::<u64>() {
            Ok(seconds) => Some(seconds),
            Err(_) => return Ok(usage(&format!("`{number}` is not a number"))),
        },
        _ => return Ok(usage("this takes nothing but --seconds N")),
    };
    // Seeds that no other night had: consecutive ones from the time on.
    let started = now();
    let mut seed = started
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_secs())
        << 20;
    let over = |at: SystemTime| {
        let elapsed = at.duration_since(started).unwrap_or(Duration::ZERO);
        seconds.is_some_and(|seconds| elapsed.as_secs() >= seconds)
    };
    while !over(now()) {
        println!("nightly: a turn from seed {seed}");
        let turn = [
            "all",
            "--seconds",
            &TURN_SECONDS.to_string(),
            "--seed",
            &seed.to_string(),
        ]
        .map(str::to_owned);
        let code = fuzz::chore(&turn)?;
        if code != 0 {
            return Ok(code);
        }
        // No target gets through so many in a turn.
        seed += 1 << 20;
    }
    Ok(0)
}

fn usage(problem: &str) -> u8 {
    eprintln!("cargo xtask nightly: {problem}");
    USAGE
}

#[expect(
    clippy::disallowed_methods,
    reason = "a night is over by the clock; what runs in it follows from the seed it prints"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
