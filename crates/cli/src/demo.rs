//! `zonelab demo`: the first minute.

use std::path::PathBuf;

use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::{console, report};

/// Options of `demo`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    out: PathBuf,
    /// Replace results of another configuration in that directory
    #[arg(long)]
    force: bool,
    /// Print where the results are as JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// The experiment: random reads, alone and beside a finish.
const EXPERIMENT: &str = "finish-on-read";
/// What makes it short: reads alone for two seconds in place of five, and four of the seven
/// depths.
const SHORT: [&str; 2] = ["job.0.runtime=2s", "axis.values=[1, 4, 16, 64]"];
/// The line of the drive's profile that is changed.
const CHANGE: &str = "finish.granularity=64KiB";

/// Runs an experiment, then again with one line of its drive changed, and says what to look
/// at. `run` does what the words of a command line say, and shows nothing of it if it is told to
/// be silent.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn demo(
    args: &Args,
    run: impl Fn(&[String], bool) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let (as_it_is, changed) = (args.out.join("as-it-is"), args.out.join("changed"));
    let words = |out: &PathBuf, drive: Option<&str>| {
        let mut words = vec!["zonelab".to_owned(), "run".into(), EXPERIMENT.into()];
        words.extend(["--out".into(), out.display().to_string()]);
        words.extend(args.force.then(|| "--force".to_owned()));
        words.extend((args.quiet || args.json).then(|| "--quiet".to_owned()));
        let drive = drive.map(|set| format!("drive.{set}"));
        for set in SHORT.map(str::to_owned).into_iter().chain(drive) {
            words.extend(["--set".to_owned(), set]);
        }
        words
    };
    if args.json {
        for (out, drive) in [(&as_it_is, None), (&changed, Some(CHANGE))] {
            match run(&words(out, drive), true)? {
                Exit::Done => {}
                other => return Ok(other),
            }
        }
        return as_json([(None, &as_it_is), (Some(CHANGE), &changed)]);
    }
    console::print(
        "A drive with four dies (the profile confznspp) serves random reads of 16 KiB: alone, and \
         beside\nthe finish of a zone, which fills what is left of the zone in device writes of \
         256 KiB. A short\nform of the experiment finish-on-read: four queue depths of seven, \
         and reads alone for 2 s, not 5.\n\n",
    )?;
    match run(&words(&as_it_is, None), false)? {
        Exit::Done => {}
        other => return Ok(other),
    }
    console::print(&format!(
        "\nThe same drive with one line of its profile changed: {CHANGE}. Each device write \
         keeps\nevery die busy once, not four times: reads wait less, and the finish takes \
         longer.\n\n"
    ))?;
    match run(&words(&changed, Some(CHANGE)), false)? {
        Exit::Done => {}
        other => return Ok(other),
    }
    let (first, second) = (as_it_is.display(), changed.display());
    console::print(&format!(
        "
What to look at, in a browser:
  {first}/report.html
  {second}/report.html     each point, and what kept every die and channel busy

What to do next:
  zonelab profiles show confznspp --toml > my.toml    a drive of your own: change a line
  zonelab check my.toml                               what follows from it
  zonelab run {EXPERIMENT} --set profile=my.toml
  zonelab trace {EXPERIMENT} --point \"beside a finish,64\"   a timeline for ui.perfetto.dev
  zonelab reproduce --quick                           published results beside ours
  zonelab serve zn540 --web 127.0.0.1:8420            a drive that Linux connects to
"
    ))?;
    Ok(Exit::Done)
}

/// Where the results of each run are, with what was changed for it.
fn as_json(runs: [(Option<&str>, &PathBuf); 2]) -> Result<Exit, Failure> {
    let runs = runs.map(|(change, results)| {
        json!({ "change": change, "results": results, "report": results.join(report::FILE) })
    });
    let value = json!({ "schema": 1, "experiment": EXPERIMENT, "runs": runs });
    console::print(&format!("{value:#}\n"))?;
    Ok(Exit::Done)
}
