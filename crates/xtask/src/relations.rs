//! `cargo xtask relations`.

use anyhow::{Context, Result};

use crate::steps::{self, Policy, Step};
use crate::{cargo, root};

/// Profiles of a night.
const NIGHT: u64 = 50_000;
/// Between the first seeds of two nights.
const STRIDE: u64 = 1 << 20;

/// Builds the relations as the tests do, and hands the arguments on.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let mut command = cargo();
    let words = [
        "run",
        "--quiet",
        "--package",
        "zonelab-relations",
        "--manifest-path",
    ];
    command.args(words);
    command.arg(root().join("Cargo.toml")).arg("--").args(args);
    let status = command.status().context("cannot start cargo")?;
    Ok(steps::exit_code(status))
}

/// The relations over many profiles, optimised, on the seeds of a night.
pub(crate) fn night(seed: u64) -> Result<u8> {
    let (seed, runs) = (seed.wrapping_mul(STRIDE).to_string(), NIGHT.to_string());
    let words = [
        "run",
        "--profile",
        "soak",
        "--package",
        "zonelab-relations",
        "--",
    ];
    let args = ["--seed", &seed, "--runs", &runs];
    let step = Step::cargo("relations of random drives", &[&words[..], &args].concat());
    steps::run(vec![step], Policy::STRICT)
}
