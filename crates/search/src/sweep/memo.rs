//! What was run already: a run that nothing that varies changes is run once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use zonelab_lab::conditions::Conditions;
use zonelab_lab::rows::significant;
use zonelab_lab::run::{Point, Profiles, RunOptions, run_point};

use super::pack::{JobRun, Line, Run, Task, jobs, why};

/// Most results that are kept: beyond it a run may be run again, with the same result.
const MOST: usize = 1 << 12;

/// What a run is, by its identity ([`Point::identity`]) and its seed: the same, the same
/// results.
type Key = (u64, u64);

/// Results by what was run and with which seed.
///
/// Equal runs measure the same, so that it makes no difference to results whether one is
/// found here. In an experiment whose keys change one series, the other is run once a seed
/// and not once a point.
#[derive(Debug, Default)]
pub struct Memo {
    /// Whoever comes second to a run that is under way waits for it.
    known: Mutex<BTreeMap<Key, Arc<OnceLock<Measured>>>>,
}

/// What of a run does not depend on what it is called; or why it cannot be run.
type Measured = Result<(u64, Vec<JobRun>), String>;

impl Memo {
    /// Keeps what a task gave in an earlier start.
    pub(super) fn learn(&self, task: &Task, line: &Line) {
        for run in line.runs.iter().filter(|run| run.error.is_none()) {
            let identity = u64::from_str_radix(&run.identity, 16).ok();
            let cell = identity.and_then(|identity| self.cell((identity, task.seed)));
            if let Some(cell) = cell {
                cell.get_or_init(|| Ok((run.simulated_ns, run.jobs.clone())));
            }
        }
    }

    /// The place for a result; `None`: there is no room for more.
    fn cell(&self, key: Key) -> Option<Arc<OnceLock<Measured>>> {
        // What a panic elsewhere left is whole: entries are put in at once.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            return known.get(&key).cloned();
        }
        Some(Arc::clone(known.entry(key).or_default()))
    }

    /// Runs one point of an experiment, unless its result is here, and keeps what sweeps
    /// keep of it.
    pub(super) fn run(
        &self,
        point: &Point,
        seed: u64,
        profiles: &dyn Profiles,
        conditions: &Conditions,
    ) -> Run {
        let mut run = Run {
            series: point.series().to_owned(),
            x: point.x().text.clone(),
            x_number: significant(point.x().number),
            drive: String::new(),
            host: point.host().stack.name().to_owned(),
            identity: String::new(),
            simulated_ns: 0,
            error: None,
            jobs: Vec::new(),
        };
        if let Ok(profile) = point.drive(profiles) {
            run.drive = profile.config.name;
        }
        let identity = match point.identity(profiles) {
            Ok(identity) => identity,
            Err(errors) => {
                run.error = Some(super::in_short(&errors));
                return run;
            }
        };
        let measure = || -> Measured {
            let options = RunOptions {
                seed,
                profiles,
                conditions,
                on_point: &|_, _| (),
                interrupted: &|| false,
                abandoned: &|| false,
            };
            let result = run_point(point, &options).map_err(|error| why(&error))?;
            Ok((result.took.0, jobs(point, &result)))
        };
        let measured = match self.cell((identity, seed)) {
            Some(cell) => cell.get_or_init(measure).clone(),
            None => measure(),
        };
        match measured {
            Ok((simulated_ns, jobs)) => {
                run.identity = format!("{identity:016x}");
                run.simulated_ns = simulated_ns;
                run.jobs = jobs;
            }
            Err(error) => run.error = Some(error),
        }
        run
    }
}
