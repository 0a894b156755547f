//! `zonelab fio --against`: the same jobs on two devices.

use std::path::Path;

use zonelab_fronts::fio::{self, Agreement, Report, Side, TOLERANCE_MAX, Verdict};
use zonelab_host::fio::Plan;
use zonelab_host::stats::Latency;
use zonelab_lab::output::{Existing, Manifest, ResultDir};

use super::ending::{configuration, outcome, put_text};
use super::input::Input;
use super::target::{Ran, Target};
use super::{Args, interruptible};
use crate::devices::Named;
use crate::exit::{Exit, Failure};
use crate::host_state::{self, HostState};
use crate::{console, results};

/// Runs the jobs on both devices, one after the other, and compares.
pub(super) fn fio(args: &Args, input: &Input, device: &str, other: &str) -> Result<Exit, Failure> {
    let file = &input.file;
    refuse(args)?;
    let tolerance = tolerance(args)?;
    let names = [device, other];
    let is_emulated =
        |name| Ok::<bool, Failure>(matches!(Named::parse(name)?, Named::Emulated { .. }));
    let any_emulated = is_emulated(device)? || is_emulated(other)?;
    let (mut targets, mut plans): (Vec<Target>, Vec<Plan>) = (Vec::new(), Vec::new());
    for name in names {
        let (mut target, mut plan) = Target::prepare(args, file, name, any_emulated)?;
        plan.keep_for_comparison();
        target.release()?;
        targets.push(target);
        plans.push(plan);
    }
    if args.parse_only {
        return Ok(Exit::Done);
    }
    let of_devices: Vec<_> = targets.iter().map(|of| of.configuration(args)).collect();
    let of_devices = serde_json::json!({"devices": of_devices, "tolerance": tolerance});
    let configuration = configuration(input, of_devices);
    let existing = match args.force {
        true => Existing::Replace,
        false => Existing::Keep,
    };
    let tool = concat!("zonelab ", env!("CARGO_PKG_VERSION"));
    let manifest = Manifest::new(tool, configuration.to_string().as_bytes(), args.seed);
    if let Some(path) = &args.out {
        ResultDir::check(path, &manifest, existing).map_err(Failure::environment)?;
    }
    let interrupt = interruptible()?;
    // One state for both: what the first run asks of this machine is nothing foreign to it.
    let host = names.into_iter().find_map(HostState::of_real);
    let mut ran = Vec::new();
    for ((target, plan), name) in targets.into_iter().zip(&plans).zip(names) {
        tell!("zonelab: running on {name}");
        ran.push(target.run(plan, args.seed, true, &interrupt)?);
    }
    let reports: Vec<Report<'_>> = (0..2)
        .map(|index| {
            let Ran { run, lost, .. } = &ran[index];
            let mut report = Report::new(file, &plans[index], run, names[index], args.seed);
            report.lost = report.lost.take().or_else(|| lost.clone());
            report
        })
        .collect();
    // What went wrong on a device says more than that it does not agree.
    let ends: Vec<Exit> = reports.iter().map(outcome).collect();
    let failed = ends.into_iter().find(|end| *end != Exit::Done);
    let sides = [0, 1].map(|index| Side {
        device: names[index].to_owned(),
        empty: ran[index].empty.clone().unwrap_or_default(),
        lateness: ran[index].run.lateness.as_deref().cloned(),
    });
    let host = after(host, &sides);
    let agreement = Agreement::between([&reports[0], &reports[1]], sides, tolerance);
    let mut agreement = agreement.map_err(|what| Failure::input(anyhow::anyhow!(what)))?;
    let too_busy = host.as_ref().and_then(HostState::was_too_busy);
    agreement.too_busy = too_busy.map(str::to_owned);
    if let Some(path) = &args.out {
        let of = (&agreement, host.as_ref(), failed.is_none());
        write(path, (manifest, existing), &reports, of)?;
    }
    let text = match args.is_json() {
        true => agreement.to_json(),
        false => agreement.to_text(&console::style()),
    };
    put_text(args, &text)?;
    Ok(match failed {
        Some(exit) => exit,
        None if agreement.count(Verdict::Differs) > 0 => Exit::ExpectationFailed,
        None if !agreement.is_agreed() => Exit::Environment,
        None => Exit::Done,
    })
}

/// Options that are about one run.
fn refuse(args: &Args) -> Result<(), Failure> {
    let of_one = [
        ("--trace", args.trace.is_some()),
        ("--snapshot", args.snapshot.is_some()),
        ("--zone-report", args.zone_report.is_some()),
    ];
    match of_one.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is about one run, and --against makes two: run the jobs without --against"
        ))),
    }
}

/// The tolerance as a share.
fn tolerance(args: &Args) -> Result<f64, Failure> {
    let percent = args.tolerance.trim_end_matches('%').trim().parse::<f64>();
    match percent {
        Ok(percent) if (0.0..=100.0 * TOLERANCE_MAX).contains(&percent) => Ok(percent / 100.0),
        _ => Err(Failure::usage(format!(
            "--tolerance {}: a number of percent from 0 to {}, as in 3",
            args.tolerance,
            100.0 * TOLERANCE_MAX
        ))),
    }
}

/// The state of the host after both runs, as late as it was in either.
fn after(host: Option<HostState>, sides: &[Side; 2]) -> Option<HostState> {
    let mut host = host?;
    let mut late = Latency::new();
    let of_sides = sides.iter().filter_map(|side| side.lateness.as_ref());
    of_sides.for_each(|of| late.merge(of));
    host.after(Some(&late));
    Some(host)
}

/// Writes the results of both runs and the comparison.
fn write(
    path: &Path,
    (manifest, existing): (Manifest, Existing),
    reports: &[Report<'_>],
    (agreement, host, is_whole): (&Agreement, Option<&HostState>, bool),
) -> Result<(), Failure> {
    let dir = match is_whole {
        true => ResultDir::create(path, manifest, existing),
        false => ResultDir::create_part(path, manifest, existing),
    };
    let mut dir = dir.map_err(Failure::environment)?;
    let mut put = |name: &str, text: &str| {
        dir.write(name, text.as_bytes())
            .map_err(Failure::environment)
    };
    for (name, report) in ["first", "second"].into_iter().zip(reports) {
        put(&format!("{name}.json"), &fio::to_json(report))?;
        put(&format!("{name}.txt"), &fio::to_text(report))?;
    }
    put("agreement.json", &agreement.to_json())?;
    let style = zonelab_lab::table::Style::default();
    put("agreement.txt", &agreement.to_text(&style))?;
    if let Some(host) = host {
        put(host_state::FILE, &host.to_json())?;
    }
    let put = results::end(dir, is_whole)?;
    tell!("zonelab: results: {}", put.said());
    Ok(())
}
