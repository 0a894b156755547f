//! `cargo xtask fuzz`.

use anyhow::{Context, Result};

use crate::{cargo, root, steps};

/// Builds the fuzz targets with debug assertions and hands the arguments on.
pub(crate) fn chore(args: &[String]) -> Result<u8> {
    let mut command = cargo();
    // Not in the root directory: `--input` names files from where the user is.
    command.args([
        "run",
        "--quiet",
        "--package",
        "zonelab-fuzz",
        "--manifest-path",
    ]);
    command.arg(root().join("Cargo.toml")).arg("--").args(args);
    let status = command.status().context("cannot start cargo")?;
    Ok(steps::exit_code(status))
}
