//! Losses of power at every command of a piece of work.

use std::fmt;

use super::{CrashReport, TestDrive, TestDriveError};

/// At which commands power is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPlan {
    /// The first of the seeds that drives are made with.
    pub seed: u64,
    /// Runs with a loss of power, at most. If the work has more commands, they are
    /// spread over it; if it has fewer, there are several for each, with seeds of their
    /// own.
    pub runs: u64,
    /// Only the run with this number: what a [`CrashFailure`] names, to look at it.
    pub only: Option<u64>,
    /// What losses of power have to meet while it is under way, or the test fails: commands
    /// as faults name them (`"reset"`), and what the work marks ([`TestDrive::mark`]). What
    /// the work is seen to do when no power is lost (changes, and marks) has to be met anyway.
    pub needs: &'static [&'static str],
}

impl Default for CrashPlan {
    fn default() -> Self {
        Self {
            seed: 1,
            runs: 1_000,
            only: None,
            needs: &[],
        }
    }
}

impl CrashPlan {
    /// The same with the run that `ZONELAB_CRASH_RUN` in the environment names, if it
    /// names one.
    #[must_use]
    pub fn with_environment(mut self) -> Self {
        let named = std::env::var("ZONELAB_CRASH_RUN").ok();
        self.only = named.and_then(|text| text.parse().ok()).or(self.only);
        self
    }
}

/// What fails if losses did not meet what they should.
const PLAN: &str = "the plan";

/// A loss of power that the work did not survive, or a failure without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashFailure<E> {
    /// The run; `None`: the work or the check failed without a loss of power.
    pub run: Option<u64>,
    /// The command at which power was lost, counted from 0.
    pub command: u64,
    /// The seed of the drive.
    pub seed: u64,
    /// What failed: `"the work"`, `"the check"`, or `"the plan"`, whose losses did not meet
    /// what they should.
    pub what: &'static str,
    /// What it said.
    pub error: E,
}

impl<E: fmt::Display> fmt::Display for CrashFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run,
            command,
            seed,
            what,
            error,
        } = self;
        match run {
            Some(run) => write!(
                f,
                "power lost at command {command}, seed {seed}: {what} failed: {error} \
                 (again: ZONELAB_CRASH_RUN={run})"
            ),
            None if *what == PLAN => write!(f, "the plan failed: {error}"),
            None => write!(f, "without a loss of power, {what} failed: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for CrashFailure<E> {}

/// Does a piece of work on a fresh drive, and again and again with power lost at one of
/// its commands after another; after each, the drive starts again and is checked.
///
/// * `make` makes the drive from a seed.
/// * `work` is what a program does, with notes of what it was told: what is acknowledged,
///   what is flushed. It ends with an error when the drive has no power.
/// * `check` opens what `work` left on the drive, and says whether it is as the notes
///   have it.
///
/// Returns how many losses of power there were, and what they met: commands of which kind
/// were under way, and which had come to their end. A test that never loses power while data
/// is moved says nothing about moving it.
///
/// # Errors
/// Something that losses have to meet ([`CrashPlan::needs`]) was never met, or the first run
/// that failed: `work` without a loss of power (or after it, with
/// another error than that), or `check`. [`CrashFailure`] says how to see it again.
pub fn at_every_crash<N: Default, E: From<TestDriveError>>(
    plan: CrashPlan,
    mut make: impl FnMut(u64) -> TestDrive,
    mut work: impl FnMut(&TestDrive, &mut N) -> Result<(), E>,
    mut check: impl FnMut(&TestDrive, &N) -> Result<(), E>,
) -> Result<CrashReport, CrashFailure<E>> {
    let failed = |what, error| CrashFailure {
        run: None,
        command: 0,
        seed: plan.seed,
        what,
        error,
    };
    let drive = make(plan.seed);
    let before = drive.commands();
    let mut notes = N::default();
    drive.state().journal.begin();
    work(&drive, &mut notes).map_err(|error| failed("the work", error))?;
    let commands = drive.commands() - before;
    let mut report = CrashReport {
        done: drive.state().journal.done().clone(),
        ..CrashReport::default()
    };
    check(&drive, &notes).map_err(|error| failed("the check", error))?;
    let runs = match plan.only {
        Some(run) => run..run.saturating_add(1),
        None => 0..plan.runs,
    };
    for run in runs.filter(|_| commands > 0) {
        let seed = plan.seed.wrapping_add(run);
        let command = command_of(run, plan.runs, commands);
        let failed = |what, error| CrashFailure {
            run: Some(run),
            command,
            seed,
            what,
            error,
        };
        let drive = make(seed);
        drive.state().journal.begin();
        drive.lose_power_in(command);
        let mut notes = N::default();
        let result = work(&drive, &mut notes);
        if drive.is_on() {
            // The work of this seed is shorter, or failed by itself.
            result.map_err(|error| failed("the work", error))?;
            drive.lose_power();
        }
        report.add(drive.state().journal.last());
        drive.restart();
        check(&drive, &notes).map_err(|error| failed("the check", error))?;
    }
    let missing = report.missing(plan.needs);
    if let (None, Some(kind)) = (plan.only, missing) {
        let losses = report.losses;
        let error = TestDriveError::NeverMet { kind, losses };
        return Err(failed(PLAN, error.into()));
    }
    Ok(report)
}

/// The command of a run: each in turn, or some of many.
fn command_of(run: u64, runs: u64, commands: u64) -> u64 {
    match commands <= runs {
        true => run % commands,
        false => {
            let spread = u128::from(run) * u128::from(commands) / u128::from(runs.max(1));
            // Fits: a run that is named can lie behind the last.
            u64::try_from(spread).unwrap_or(u64::MAX) % commands
        }
    }
}
