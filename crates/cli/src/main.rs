//! The `zonelab` command.

// It panics if nobody can read it: `tell!` does not.
#![warn(clippy::print_stderr)]

/// A line on standard error. If that is full or closed, what it says is lost: the exit code
/// is not.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::console::tell(format_args!($($words)*))
    };
}

mod ahead;
mod bench;
mod bundle;
mod calibrate;
mod characterize;
mod check;
mod conditions;
mod console;
mod demo;
mod devices;
mod doctor;
mod exit;
mod fault;
mod files;
mod fio;
mod fit;
mod ftl;
mod host_keys;
mod host_state;
mod kv;
mod namespace;
mod nvme;
mod on_device;
mod profiles;
mod real_drive;
mod report;
mod reproduce;
mod results;
mod search;
mod serve;
mod session;
mod shell;
mod stores;
mod study;
mod sweep;
mod trace;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::files::Files;
use crate::reproduce::{Again, Setting};

/// A laboratory for zoned (ZNS) SSDs: emulated drives in virtual time, host
/// software, and the experiments that compare them with published results.
#[derive(Parser)]
#[command(name = "zonelab", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 an expectation failed, 2 usage, 3 invalid input file,
4 environment, 5 device or protocol error, 70 broken invariant, 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    /// The first minute: an experiment in a short form, and the same with one line of the drive
    /// changed
    Demo(demo::Args),
    /// Reproduce published results and set them beside ours
    Reproduce(reproduce::Args),
    /// Run one experiment file, in virtual time, in real time, or on a drive over
    /// NVMe/TCP
    Run(reproduce::RunArgs),
    /// Run one point of an experiment, and write what every die, channel and
    /// job did as a timeline for ui.perfetto.dev
    Trace(trace::Args),
    /// Run fio jobs on a drive: from job files, or from the command line
    Fio(fio::Args),
    /// Run a workload on a key-value store in the zones of a drive
    Kv(kv::Args),
    /// Keep a conventional namespace on the zones of a drive: format, look, check,
    /// read and write
    Ftl(ftl::Args),
    /// Fit parameters of a drive to what a real one was measured to do
    Calibrate(calibrate::Args),
    /// Run an experiment at many settings: grids, samples, repeats; one data set of all
    /// of it
    Sweep(sweep::Args),
    /// Find settings that trade objectives against each other: the Pareto front
    Search(search::Args),
    /// Look for the observations of a study of a real zoned drive on any drive: one page
    /// of what holds, with evidence
    Characterize(characterize::Args),
    /// Fit a profile to a drive that nobody has described: every number with an interval, and
    /// what cannot be told from outside
    Fit(fit::Args),
    /// Serve a drive over NVMe/TCP, in real time
    Serve(serve::Args),
    /// Make a drive that is served fail: media errors, zones, lost answers, power
    Fault(fault::Args),
    /// Check or repair the file that a served drive is kept in
    Store(stores::Args),
    /// Pack results with everything that they were made from into one file, which
    /// `zonelab reproduce` checks byte by byte
    Bundle(bundle::Args),
    /// Check a profile or experiment file, and print what follows from it
    Check(check::Args),
    /// List the built-in drives, or show one
    Profiles(profiles::Args),
    /// Ask a drive over NVMe/TCP, as nvme-cli does: identify, zones, reads and
    /// writes, logs, features
    Nvme(nvme::Args),
    /// Say what this machine has and lacks for its drives, and what helps
    Doctor(doctor::Args),
    /// Measure the speed of zonelab itself
    Bench(bench::Args),
    /// Print a script that lets a shell complete the words of this command
    Completions(shell::CompletionsArgs),
    /// Write manual pages of this command and its verbs
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    console::explain_panics();
    console::survive_long_files();
    let files = &Files::default();
    let words: Vec<OsString> = fio::arrange(std::env::args_os());
    let cli = Cli::try_parse_from(&words)
        .unwrap_or_else(|error| usage::end(&error, words.get(1).and_then(|verb| verb.to_str())));
    let result = match cli.command {
        Command::Demo(args) => demo::demo(&args, |words, is_silent| {
            let setting = Setting { files, is_silent };
            match Cli::parse_from(words).command {
                Command::Run(args) => reproduce::run(&args, setting),
                _ => unreachable!("it is the command of a run"),
            }
        }),
        Command::Reproduce(args) => match args.bundle() {
            Some(rerun) => bundle::reproduce(&rerun, run_again),
            None => reproduce::reproduce(&args, Setting::of_machine(files)),
        },
        Command::Run(args) => reproduce::run(&args, Setting::of_machine(files)),
        Command::Trace(args) => trace::trace(&args),
        Command::Fio(args) => fio::fio(&args),
        Command::Kv(args) => kv::kv(&args),
        Command::Ftl(args) => ftl::ftl(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Sweep(args) => sweep::sweep(&args, Setting::of_machine(files)),
        Command::Search(args) => search::search(&args, Setting::of_machine(files)),
        Command::Characterize(args) => characterize::characterize(&args),
        Command::Fit(args) => fit::fit(&args),
        Command::Serve(mut args) => serve::serve(&mut args),
        Command::Fault(args) => fault::fault(&args),
        Command::Store(args) => stores::store(&args),
        Command::Bundle(args) => bundle::bundle(&args),
        Command::Check(args) => check::check(&args),
        Command::Profiles(args) => profiles::profiles(&args),
        Command::Nvme(args) => nvme::nvme(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // A reader that went away (`zonelab ... | head`) is no failure.
            if console::is_broken_pipe(&failure.error) {
                return Exit::Done.into();
            }
            tell!("zonelab: {}", failure.error);
            failure.exit.into()
        }
    }
}

/// Gives a command of a bundle again.
///
/// # Errors
/// It is none that makes results, or fails.
fn run_again(words: &[String], again: &Again<'_>) -> Result<Exit, Failure> {
    let program = std::iter::once("zonelab");
    let words = program.chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words)
        .map_err(|error| Failure::input(anyhow::anyhow!("the command in the bundle: {error}")))?;
    match cli.command {
        // A bundle does not name another one.
        Command::Reproduce(mut args) if args.bundle().is_none() => {
            args.again(again)?;
            reproduce::reproduce(&args, Setting::of_bundle(again))
        }
        Command::Run(mut args) => {
            args.again(again)?;
            reproduce::run(&args, Setting::of_bundle(again))
        }
        Command::Sweep(mut args) => {
            args.again(again);
            sweep::sweep(&args, Setting::of_bundle(again))
        }
        Command::Search(mut args) => {
            args.again(again);
            search::search(&args, Setting::of_bundle(again))
        }
        _ => Err(Failure::input(anyhow::anyhow!(
            "the command in the bundle is not one whose results are compared"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// clap looks at a command only when it is used: here it looks at all of them, for
    /// options with one name and the like.
    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }
}
