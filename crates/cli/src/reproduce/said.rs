//! What is said of a run besides its results.

use zonelab_lab::idle;
use zonelab_lab::rows::Row;

use super::{Plan, Ran, is_altered};
use crate::conditions::Loaded;
use crate::host_state::HostState;
use crate::session::Finished;

/// The jobs that ended because an operation failed, in words.
pub(crate) fn failures(finished: &[Finished]) -> Vec<String> {
    let results = finished.iter().flat_map(|one| &one.results);
    results
        .flat_map(|result| result.failures.iter().map(move |failure| (result, failure)))
        .map(|(result, failure)| {
            format!(
                "{}, {}: job \"{}\" ended by a failure: {}",
                result.series, result.x.text, failure.job, failure.failed
            )
        })
        .collect()
}

/// Key-value workloads that ended for want of zones or space, which is a result.
fn ended_early(finished: &[Finished]) -> Vec<String> {
    let results = finished.iter().flat_map(|one| &one.results);
    results
        .flat_map(|result| result.ended_early.iter().map(move |ended| (result, ended)))
        .map(|(result, ended)| {
            let (series, x) = (&result.series, &result.x.text);
            format!(
                "{series}, {x}: job \"{}\" ended early: {}",
                ended.job, ended.why
            )
        })
        .collect()
}

/// Warnings that the terminal shows of several experiments; the results have all.
const WARNINGS_SHOWN: usize = 2;

/// Messages about the jobs of a run.
pub(super) struct JobMessages {
    /// A job ended because an operation failed.
    pub(super) failed: bool,
    /// Jobs that failed, and those that ended early.
    pub(super) ended: Vec<String>,
    /// These, and warnings.
    pub(super) lines: Vec<String>,
    /// The same with the number of warnings in their place.
    pub(super) brief: Vec<String>,
}

/// What is said of jobs.
pub(super) fn of_jobs(finished: &[Finished], warnings: &[String]) -> JobMessages {
    let failures = failures(finished);
    let failed = !failures.is_empty();
    let ended: Vec<String> = failures.into_iter().chain(ended_early(finished)).collect();
    let shown = match finished {
        [_] => warnings.len(),
        _ => WARNINGS_SHOWN,
    };
    let counted = |count: usize, more: &str| {
        let are = if count == 1 {
            "warning is"
        } else {
            "warnings are"
        };
        (count > 0).then(|| format!("{count}{more} {are} in summary.md and the report"))
    };
    let rest = counted(warnings.len().saturating_sub(shown), " more");
    let first = warnings
        .iter()
        .take(shown)
        .map(|of| format!("warning: {of}"));
    JobMessages {
        failed,
        lines: ended.iter().cloned().chain(first).chain(rest).collect(),
        brief: ended
            .iter()
            .cloned()
            .chain(counted(warnings.len(), ""))
            .collect(),
        ended,
    }
}

/// Operations that did nothing, where they are more than a few.
pub(super) fn idle(finished: &[Finished], plan: &Plan<'_>) -> Vec<String> {
    let measured = finished
        .iter()
        .map(|one| (&one.experiment, &*one.points, &*one.results));
    let says_all = plan.conditions.conditions.restore.is_none();
    idle::warnings(&measured.collect::<Vec<_>>(), says_all)
}

/// Faults that struck at no point, as a mistyped zone or time has it.
pub(crate) fn unstruck(finished: &[Finished], conditions: &Loaded) -> Vec<String> {
    let words = &conditions.words;
    let file = words.iter().skip_while(|word| *word != "--faults").nth(1);
    let of_one = |one: &Finished| {
        let plan = match (&one.experiment.faults, file) {
            (_, Some(file)) => file.clone(),
            (Some(_), None) => format!("[faults] of {}", one.experiment.id),
            (None, None) => return None,
        };
        let mut struck: Vec<u64> = Vec::new();
        for result in &one.results {
            struck.resize(struck.len().max(result.faults_struck.len()), 0);
            for (all, of_point) in struck.iter_mut().zip(&result.faults_struck) {
                *all += of_point;
            }
        }
        never_struck(&plan, &struck)
    };
    finished.iter().flat_map(of_one).collect()
}

/// How often faults struck, and which never did: on the standard error output.
pub(crate) fn tell_struck(plan: Option<&str>, struck: &[u64]) {
    let times: u64 = struck.iter().sum();
    if times > 0 {
        tell!("zonelab: faults struck {times} times");
    }
    if let Some(warning) = plan.and_then(|plan| never_struck(plan, struck)) {
        tell!("zonelab: warning: {warning}");
    }
}

/// What is said of a plan of faults some of which, or all, never struck; `struck` is how often
/// each did, in the order of the plan.
fn never_struck(plan: &str, struck: &[u64]) -> Option<String> {
    let never = (1..).zip(struck).filter(|(_, times)| **times == 0);
    let never: Vec<u32> = never.map(|(number, _)| number).collect();
    let which = match &*never {
        [] => return None,
        all if all.len() == struck.len() => format!("no fault of {plan} struck"),
        [number] => format!("[[fault]] number {number} of {plan} never struck"),
        some => format!(
            "[[fault]] numbers {} of {plan} never struck",
            in_words(some)
        ),
    };
    Some(format!(
        "{which}: no command, zone or time was as it says, or an earlier fault of the plan acted \
         (docs/models/faults.md)"
    ))
}

/// `1, 2 and 4`.
fn in_words(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match &*words {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

/// What a reader of the report must know first.
pub(super) fn notices(plan: &Plan<'_>, (ran, rows): (&Ran, &[Row])) -> Vec<String> {
    let notices = [
        (
            ran.is_interrupted,
            "The run was interrupted: points are missing.",
        ),
        (
            is_altered(plan, rows),
            "Settings or conditions differ from the file's: published values are shown, not judged.",
        ),
        (
            plan.invocation.quick,
            "Quick: what is steady was run for a shorter time. Rare latencies need the whole run.",
        ),
    ];
    let repeats = ran.finished.iter().map(|one| one.experiment.repeats);
    let repeated = repeats.max().filter(|&repeats| repeats > 1).map(|repeats| {
        format!(
            "Points were run {repeats} times, with seeds of their own. Values are means, bands \
             and what stands behind ± are 95 % confidence intervals of them; what happened \
             inside a run is shown of the first."
        )
    });
    let holds = notices.into_iter().filter(|(holds, _)| *holds);
    let mut notices: Vec<String> = holds.map(|(_, text)| text.to_owned()).collect();
    notices.extend(repeated);
    notices.extend(ran.host.as_ref().map(HostState::words));
    notices.extend(
        ran.lost
            .as_ref()
            .map(|lost| format!("The device failed, and points are missing: {lost}")),
    );
    notices.extend(plan.skipped.iter().cloned());
    notices
}
