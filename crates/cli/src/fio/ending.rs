//! How a run of a job file ends: files, what is printed, the exit code.

use std::path::{Path, PathBuf};

use serde_json::Value;
use zonelab_host::fio::{JobFile, Plan};
use zonelab_lab::fio::{self, FioRun, Report};
use zonelab_lab::output::{Existing, Manifest, ResultDir};

use super::Args;
use crate::exit::{Exit, Failure};
use crate::{console, files, results};

/// Where results go, checked before anything runs.
pub(super) struct Ending {
    /// The result directory, if there is to be one.
    target: Option<PathBuf>,
    manifest: Manifest,
    existing: Existing,
}

impl Ending {
    /// `configuration` is what the results depend on.
    ///
    /// # Errors
    /// The directory holds results of another configuration, or cannot be used.
    pub(super) fn new(args: &Args, plan: &Plan, configuration: &Value) -> Result<Self, Failure> {
        let tool = concat!("zonelab ", env!("CARGO_PKG_VERSION"));
        let manifest = Manifest::new(tool, configuration.to_string().as_bytes(), args.seed);
        let existing = if args.force {
            Existing::Replace
        } else {
            Existing::Keep
        };
        let target = directory(args, plan);
        if let Some(path) = &target {
            ResultDir::check(path, &manifest, existing).map_err(Failure::environment)?;
        }
        Ok(Self {
            target,
            manifest,
            existing,
        })
    }

    /// Writes and prints the results, and says how it went.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn put(
        self,
        args: &Args,
        plan: &Plan,
        run: &FioRun,
        report: &Report<'_>,
    ) -> Result<Exit, Failure> {
        if let Some(path) = &self.target {
            write(path, self.manifest, self.existing, report, plan, run)?;
        }
        print(args, report)?;
        Ok(outcome(report))
    }
}

/// Where files go, if any are asked for.
fn directory(args: &Args, plan: &Plan) -> Option<PathBuf> {
    let logs = plan.jobs.iter().any(|job| job.logs.any());
    args.out.clone().or_else(|| {
        let name = Path::new(&args.file).file_stem().unwrap_or_default();
        let name = results::file_name(&name.to_string_lossy());
        logs.then(|| Path::new("results").join(name))
    })
}

/// What the results depend on: the job file as it was read, and `of_device`, an
/// object that says what it ran on.
///
/// # Errors
/// The job file cannot be read any more.
pub(super) fn configuration(
    args: &Args,
    file: &JobFile,
    of_device: Value,
) -> Result<Value, Failure> {
    let sections: Vec<_> = file
        .sections
        .iter()
        .map(|section| (&section.name, &section.echo))
        .collect();
    let mut configuration = serde_json::json!({
        "global": file.global,
        "jobs": sections,
        "text": files::read(&args.file)?,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut configuration, of_device) {
        all.extend(more);
    }
    Ok(configuration)
}

fn write(
    path: &Path,
    manifest: Manifest,
    existing: Existing,
    report: &Report<'_>,
    plan: &Plan,
    run: &FioRun,
) -> Result<(), Failure> {
    let mut dir = ResultDir::create(path, manifest, existing).map_err(Failure::environment)?;
    let mut put = |name: &str, text: &str| {
        dir.write(name, text.as_bytes())
            .map_err(Failure::environment)
    };
    put("fio.json", &fio::to_json(report))?;
    put("fio.txt", &fio::to_text(report))?;
    for (name, text) in fio::log_files(plan, run) {
        // A prefix may be a path of the machine that the job file was made on.
        let name = name.rsplit('/').next().unwrap_or(&name);
        put(name, &text)?;
    }
    if !report.interrupted && report.lost.is_none() {
        dir.finish().map_err(Failure::environment)?;
    }
    eprintln!("zonelab: results: {}", path.display());
    Ok(())
}

fn print(args: &Args, report: &Report<'_>) -> Result<(), Failure> {
    let text = match args.is_json() {
        true => fio::to_json(report),
        false => fio::to_text(report),
    };
    put_text(args, &text)
}

/// Prints results, or writes them to the file that was named for them.
pub(super) fn put_text(args: &Args, text: &str) -> Result<(), Failure> {
    match &args.output {
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::environment(anyhow::anyhow!("{}: {error}", path.display()))),
        None => console::print(text),
    }
}

/// Says what went wrong.
pub(super) fn outcome(report: &Report<'_>) -> Exit {
    for entry in &report.entries {
        if let Some((kind, status)) = entry.first_error {
            eprintln!(
                "zonelab: job {}: {} operations failed, first a {}: {status}",
                entry.job.name,
                entry.errors,
                kind.name()
            );
        }
        if entry.stuck > 0 {
            eprintln!(
                "zonelab: job {}: {} threads waited for ever, for zones that nobody gives back",
                entry.job.name, entry.stuck
            );
        }
        if entry.operations() == 0 && entry.errors == 0 && report.lost.is_none() {
            eprintln!(
                "zonelab: job {} did nothing in the measured time: reads and trims need written \
                 zones (an earlier job, or --full-zones), and writes a zone that may be opened \
                 (zones that earlier jobs have written in part count too)",
                entry.job.name
            );
        }
    }
    if let Some(lost) = &report.lost {
        eprintln!(
            "zonelab: {}: {lost}; the results are those until then",
            report.device
        );
        return Exit::Device;
    }
    if report.interrupted {
        return Exit::Interrupted;
    }
    if report.errors() > 0 || report.stuck() > 0 {
        return Exit::Device;
    }
    Exit::Done
}
