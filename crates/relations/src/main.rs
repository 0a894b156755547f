//! `cargo xtask relations`.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use zonelab_relations::{look_at_all, reduced, relations, report};

const USAGE: &str = "cargo xtask relations [--seed N] [--runs N] [--only RELATION]...
                       [--most N] [--list]";

/// Profiles that are drawn unless somebody says how many.
const RUNS: NonZeroU64 = NonZeroU64::new(500).expect("it is more than none");

fn main() -> Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let (mut seed, mut runs, mut most, mut only) = (1, RUNS, 1, Vec::new());
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} takes a value"));
        match arg.as_str() {
            "--seed" => seed = value()?.parse().context("--seed takes a number")?,
            "--runs" => {
                runs = value()?
                    .parse()
                    .context("--runs takes a number from 1 on")?
            }
            "--most" => most = value()?.parse().context("--most takes a number")?,
            "--only" => only.push(value()?),
            "--list" => {
                print!("{}", report::table());
                return Ok(ExitCode::SUCCESS);
            }
            _ => bail!("unknown: {arg}\n{USAGE}"),
        }
    }
    let unknown = only
        .iter()
        .find(|name| relations::all().all(|relation| relation.name != **name));
    if let Some(name) = unknown {
        bail!("there is no relation {name}: --list says which there are");
    }
    let (tally, failures) = look_at_all(seed, runs.get(), &only);
    print!("{}", tally.text());
    std::io::stdout().flush()?;
    let failed = !failures.is_empty();
    for failure in reduced(failures, most) {
        println!("\n{}", failure.text());
    }
    Ok(ExitCode::from(u8::from(failed)))
}
