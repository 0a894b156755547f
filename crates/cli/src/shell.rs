//! `zonelab completions` and `zonelab man`: what shells and `man` know of the command,
//! made from the definition of its command line.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Cli;
use crate::console;
use crate::exit::{Exit, Failure};

/// Options of `completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that they are for
    shell: Shell,
}

/// Options of `man`.
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages, which is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints what a shell has to read to complete the words of the command.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "zonelab", &mut script);
    console::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a page of the manual for the command and for each verb.
///
/// # Errors
/// They cannot be written.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let directory = &args.directory;
    let write = || {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(Cli::command(), directory)
    };
    write().map_err(|error| {
        let directory = directory.display();
        Failure::environment(anyhow!("cannot write manual pages to {directory}: {error}"))
    })?;
    let text = format!("man -l {}\n", directory.join("zonelab.1").display());
    console::print(&text)?;
    Ok(Exit::Done)
}
