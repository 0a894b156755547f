//! `zonelab bench`.

use crate::exit::{Exit, Failure};

/// Options of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Measures.
pub(crate) fn bench(_args: &Args) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
