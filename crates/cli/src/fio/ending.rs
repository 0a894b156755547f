//! How a run of a job file ends: files, what is printed, the exit code.

use serde_json::Value;
use zonelab_device::Nanos;
use zonelab_fronts::fio::{self, FioRun, Report, log_files};
use zonelab_host::fio::{Plan, Section};
use zonelab_host::workload::directed::DirectedWork;
use zonelab_host::workload::{AT_ONCE, Verified};
use zonelab_lab::output::{self, Existing, Manifest, Place, ResultDir};

use super::input::Input;
use super::{Args, Format};
use crate::exit::{Exit, Failure};
use crate::host_state::{self, HostState};
use crate::{console, results};

/// Where results go, checked before anything runs.
pub(super) struct Ending {
    /// The result directory, if there is to be one.
    target: Option<Place>,
    manifest: Manifest,
    existing: Existing,
}

impl Ending {
    /// `configuration` is what the results depend on.
    ///
    /// # Errors
    /// The directory holds results of another configuration, or cannot be used.
    pub(super) fn new(
        args: &Args,
        input: &Input,
        plan: &Plan,
        configuration: &Value,
    ) -> Result<Self, Failure> {
        let tool = concat!("zonelab ", env!("CARGO_PKG_VERSION"));
        // With how much detail they are written.
        let is_plus = args.forms().contains(&Format::JsonPlus);
        let identity = format!("{configuration}\n{is_plus}");
        let manifest = Manifest::new(tool, identity.as_bytes(), args.seed);
        let existing = if args.force {
            Existing::Replace
        } else {
            Existing::Keep
        };
        let target = place(args, input, plan, &manifest);
        if let Some(place) = &target {
            ResultDir::check(place.path(), &manifest, existing).map_err(Failure::environment)?;
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
        (plan, host): (&Plan, Option<&HostState>),
        run: &FioRun,
        report: &Report<'_>,
    ) -> Result<Exit, Failure> {
        if let Some(place) = &self.target {
            let json = json(args, report);
            let is_whole = !report.interrupted && report.lost.is_none();
            let dir = match is_whole {
                true => ResultDir::create(place, self.manifest, self.existing),
                false => ResultDir::create_part(place, self.manifest, self.existing),
            };
            let mut dir = dir.map_err(Failure::environment)?;
            let mut more = log_files(plan, run);
            more.extend(host.map(|host| (host_state::FILE.to_owned(), host.to_json())));
            write(&mut dir, report, &json, more)?;
            let put = results::end(dir, is_whole)?;
            tell!("zonelab: results: {}", put.said());
        }
        print(args, report)?;
        Ok(outcome(report))
    }
}

/// Where files go, if any are asked for.
fn place(args: &Args, input: &Input, plan: &Plan, manifest: &Manifest) -> Option<Place> {
    let logs = plan.jobs.iter().any(|job| job.logs.any());
    let name = output::file_name(&input.stem);
    let place = || Place::new(args.out.as_deref(), &name, manifest).of(&input.name);
    (logs || args.out.is_some()).then(place)
}

/// What the results depend on: the jobs as they were read, and `of_device`, an
/// object that says what they ran on.
pub(super) fn configuration(input: &Input, of_device: Value) -> Value {
    let sections: Vec<_> = input
        .file
        .sections
        .iter()
        .map(|section| (&section.name, &section.echo))
        .collect();
    let mut configuration = serde_json::json!({
        "global": input.file.global,
        "jobs": sections,
        "text": input.text,
    });
    let traces = input.file.sections.iter().flat_map(Section::traces);
    let traces: Vec<_> = traces.map(|trace| trace.fingerprint()).collect();
    if !traces.is_empty() {
        configuration["traces"] = serde_json::json!(traces);
    }
    if !input.words.is_empty() {
        configuration["words"] = serde_json::json!(input.words);
    }
    if let (Value::Object(all), Value::Object(more)) = (&mut configuration, of_device) {
        all.extend(more);
    }
    configuration
}

fn write(
    dir: &mut ResultDir,
    report: &Report<'_>,
    json: &str,
    more: Vec<(String, String)>,
) -> Result<(), Failure> {
    let mut put = |name: &str, text: &str| {
        dir.write(name, text.as_bytes())
            .map_err(Failure::environment)
    };
    put("fio.json", json)?;
    put("fio.txt", &fio::to_text(report))?;
    for (name, text) in more {
        // A prefix may be a path of the machine that the job file was made on.
        let name = name.rsplit('/').next().unwrap_or(&name);
        put(name, &text)?;
    }
    Ok(())
}

fn json(args: &Args, report: &Report<'_>) -> String {
    match args.forms().contains(&Format::JsonPlus) {
        true => fio::to_json_plus(report),
        false => fio::to_json(report),
    }
}

/// The forms that are asked for, one behind the other, in fio's order.
fn forms(args: &Args, report: &Report<'_>) -> String {
    let wanted = args.forms();
    let mut text = String::new();
    if wanted.contains(&Format::Terse) {
        text += &fio::to_terse(report);
    }
    if wanted.contains(&Format::Json) || wanted.contains(&Format::JsonPlus) {
        text += &json(args, report);
    }
    if wanted.contains(&Format::Normal) {
        text += &fio::to_text(report);
    }
    text
}

fn print(args: &Args, report: &Report<'_>) -> Result<(), Failure> {
    put_text(args, &forms(args, report))
}

/// Prints results, or writes them to the file that was named for them.
pub(super) fn put_text(args: &Args, text: &str) -> Result<(), Failure> {
    match &args.output {
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::environment(anyhow::anyhow!("{}: {error}", path.display()))),
        None => console::print(text),
    }
}

/// Says what of a job's blocks was wrong or missing.
fn tell_verified(job: &str, verified: &Verified) {
    let Verified {
        operations,
        bytes,
        missing_bytes,
        untried_bytes,
        unwritten_bytes,
        wrong,
        ..
    } = verified;
    if let Some(first) = &verified.first_wrong {
        tell!(
            "zonelab: job {job}: verify: {wrong} of {operations} blocks are not what was \
             written, first {first}"
        );
    }
    let all = bytes + missing_bytes + untried_bytes;
    if *unwritten_bytes > 0 {
        tell!(
            "zonelab: warning: job {job}: verify: {bytes} bytes were compared; {unwritten_bytes} more \
             of its zones hold nothing, and nobody said how much was written (io_size does)"
        );
    }
    if *untried_bytes > 0 {
        tell!(
            "zonelab: job {job}: verify: {untried_bytes} of {all} bytes were not looked at, since \
             the job ended with its first error"
        );
    }
    if *missing_bytes > 0 {
        tell!(
            "zonelab: job {job}: verify: {missing_bytes} of {all} bytes are missing or could not \
             be read"
        );
    } else if verified.found_nothing > 0 && *untried_bytes == 0 {
        tell!("zonelab: job {job}: verify: nothing was there that could be verified");
    }
}

/// Why a job did nothing that could fail.
fn why_nothing(work: &DirectedWork) -> &'static str {
    let leaves_all_out = work.replay.as_ref().is_some_and(|replay| {
        let mut all = replay.trace.iter();
        all.all(|operation| replay.skips.includes(operation.action))
    });
    match leaves_all_out {
        true => "replay_skip leaves out all operations of its trace",
        false => {
            "reads and trims need written zones (an earlier job, or --full-zones), and writes a \
             zone that may be opened (zones that earlier jobs have written in part count too)"
        }
    }
}

/// Says what went wrong.
pub(super) fn outcome(report: &Report<'_>) -> Exit {
    for entry in &report.entries {
        if let Some(first) = entry.first_error {
            tell!(
                "zonelab: job {}: {} operations failed, first {first}",
                entry.job.name,
                entry.errors
            );
        }
        if let Some(verified) = &entry.verified {
            tell_verified(&entry.job.name, verified);
        }
        for warning in entry.warnings() {
            tell!("zonelab: warning: job {}: {warning}", entry.job.name);
        }
        if entry.is_timeless {
            tell!(
                "zonelab: job {}: {AT_ONCE} operations began at one time and none of them took \
                 any, so that time would never go on; give the host costs (--host-stack), or \
                 the job an end that counts (number_ios, size without time_based)",
                entry.job.name
            );
        }
        if let Some(late) = &entry.too_late {
            tell!(
                "zonelab: job {}: an operation took {}, and may take {}",
                entry.job.name,
                late.latency,
                late.limit
            );
        }
        if entry.stuck > 0 {
            tell!(
                "zonelab: job {}: threads that waited for ever: {}: {}",
                entry.job.name,
                entry.stuck,
                report.waited_for()
            );
        }
        let did_nothing = entry.operations() == 0 && entry.errors == 0 && report.lost.is_none();
        let ramp = entry.job.spec.ramp;
        if did_nothing && ramp > Nanos::ZERO && entry.elapsed <= ramp {
            tell!(
                "zonelab: job {} did nothing in the measured time: it ended after {}, before its \
                 ramp_time of {ramp} was over",
                entry.job.name,
                entry.elapsed
            );
        } else if did_nothing {
            let (name, why) = (&entry.job.name, why_nothing(&entry.job.spec.work));
            tell!("zonelab: job {name} did nothing in the measured time: {why}");
        }
    }
    if let Some(lost) = &report.lost {
        tell!(
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
