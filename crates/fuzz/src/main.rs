//! Runs one fuzz target, or all, outside the tests: what `cargo xtask fuzz` calls.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use zonelab_fuzz::harness::{self, Extent};
use zonelab_fuzz::{TARGETS, Target, target};

/// Inputs that looking for a shorter one may try.
const MINIMISE_ATTEMPTS: u32 = 200_000;

const USAGE: &str = "\
usage: cargo xtask fuzz TARGET [options]      `all` stands for every target
       cargo xtask fuzz --list

Runs TARGET over its corpus (unless --seed is given), then over inputs made
from consecutive seeds.

  --seed N         first seed (default 1); the corpus is left out
  --runs N         number of seeded inputs (default: 10000, or any with --seconds)
  --seconds N      stop after this time
  --input FILE     run this file only
  --minimise FILE  look for a simpler input that fails like the one of
                   --seed or --input does, and write it to FILE";

/// What the command line asks for.
#[derive(Debug, Default)]
struct Options {
    target: Option<String>,
    list: bool,
    seed: Option<u64>,
    runs: Option<u64>,
    seconds: Option<u64>,
    input: Option<PathBuf>,
    minimise: Option<PathBuf>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            let number = |text: String| {
                text.parse::<u64>()
                    .with_context(|| format!("`{text}` is not a number"))
            };
            match arg.as_str() {
                "--list" => options.list = true,
                "--seed" => options.seed = Some(number(value()?)?),
                "--runs" => options.runs = Some(number(value()?)?),
                "--seconds" => options.seconds = Some(number(value()?)?),
                "--input" => options.input = Some(value()?.into()),
                "--minimise" | "--minimize" => options.minimise = Some(value()?.into()),
                name if !name.starts_with('-') && options.target.is_none() => {
                    options.target = Some(arg);
                }
                _ => bail!("`{arg}` is not understood\n\n{USAGE}"),
            }
        }
        Ok(options)
    }

    fn extent(&self) -> Extent {
        let runs = self.runs.or(if self.seconds.is_some() {
            None
        } else {
            Some(10_000)
        });
        Extent {
            first: self.seed.unwrap_or(1),
            runs,
            seconds: self.seconds,
        }
    }
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if options.list {
        for Target {
            name, description, ..
        } in TARGETS
        {
            println!("{name:<12} {description}");
        }
        return Ok(());
    }
    let Some(name) = &options.target else {
        bail!("which target?\n\n{USAGE}")
    };
    let targets: Vec<&'static Target> = match (name.as_str(), target(name)) {
        ("all", _) => TARGETS.iter().collect(),
        (_, Some(target)) => vec![target],
        (_, None) => {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            bail!(
                "there is no fuzz target `{name}`; there are: {}",
                names.join(", ")
            );
        }
    };
    for target in targets {
        run_target(target, options)?;
    }
    Ok(())
}

fn run_target(target: &'static Target, options: &Options) -> Result<()> {
    if let Some(file) = &options.minimise {
        return minimise(target, options, file);
    }
    if let Some(file) = &options.input {
        harness::run_files(target, std::slice::from_ref(file))?;
        println!("{}: {} passes", target.name, file.display());
        return Ok(());
    }
    // A replay must fail for its own reason, not for that of a corpus input.
    let files = match options.seed {
        Some(_) => Vec::new(),
        None => harness::corpus(&harness::corpus_directory(target))?,
    };
    let files = harness::run_files(target, &files)?;
    let extent = options.extent();
    let runs = harness::run_seeds(target, extent)?;
    println!(
        "{}: {files} corpus inputs, {runs} seeds from {}: ok",
        target.name, extent.first
    );
    Ok(())
}

fn minimise(target: &'static Target, options: &Options, file: &Path) -> Result<()> {
    let data = match (&options.input, options.seed) {
        (Some(input), _) => {
            std::fs::read(input).with_context(|| format!("cannot read {}", input.display()))?
        }
        (None, Some(seed)) => harness::seeded(target, seed),
        (None, None) => bail!("--minimise needs the --seed or the --input that fails"),
    };
    if harness::attempt(target, &data).is_ok() {
        bail!(
            "{} passes on this input: there is nothing to minimise",
            target.name
        );
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let small = harness::minimise(target, &data, MINIMISE_ATTEMPTS);
    std::panic::set_hook(hook);
    std::fs::write(file, &small).with_context(|| format!("cannot write {}", file.display()))?;
    println!(
        "{} of {} bytes are left, in {}",
        small.len(),
        data.len(),
        file.display()
    );
    // Once more, to show what it does.
    harness::run_files(target, &[file.to_path_buf()])?;
    Ok(())
}
