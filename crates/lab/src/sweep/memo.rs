//! What was run already: a run that nothing that varies changes is run once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::pack::{JobRun, Line, Pack, Run, jobs, why};
use crate::conditions::Conditions;
use crate::rows::significant;
use crate::run::{Point, Profiles, RunError, RunOptions, run_point};

/// Most results that are kept: beyond it a run may be run again, with the same result.
const MOST: usize = 1 << 12;

/// Results by what was run and with which seed.
///
/// Equal runs measure the same, so that it makes no difference to results whether one is
/// found here. In an experiment whose keys change one series, the other is run once a seed
/// and not once a point.
#[derive(Debug, Default)]
pub struct Memo {
    known: Mutex<BTreeMap<(String, u64), Measured>>,
}

/// What does not depend on what a run is called.
#[derive(Clone, Debug)]
struct Measured {
    simulated_ns: u64,
    jobs: Vec<JobRun>,
}

impl Memo {
    /// Keeps what a task gave in an earlier start.
    pub(super) fn learn(&self, pack: &Pack, line: &Line) {
        let Some(task) = pack.task(line.index) else {
            return;
        };
        for run in line.runs.iter().filter(|run| run.error.is_none()) {
            let measured = Measured {
                simulated_ns: run.simulated_ns,
                jobs: run.jobs.clone(),
            };
            self.keep((run.identity.clone(), task.seed), measured);
        }
    }

    fn keep(&self, key: (String, u64), measured: Measured) {
        // What a panic elsewhere left is whole: entries are put in at once.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST {
            known.entry(key).or_insert(measured);
        }
    }

    fn get(&self, key: &(String, u64)) -> Option<Measured> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).cloned()
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
        let key = point.identity(profiles);
        let key = key
            .map(|identity| (format!("{identity:016x}"), seed))
            .map_err(RunError::from);
        let measured = key.and_then(|key| {
            if let Some(known) = self.get(&key) {
                return Ok((key.0, known));
            }
            let options = RunOptions {
                seed,
                profiles,
                conditions,
                on_point: &|_, _| (),
                interrupted: &|| false,
                abandoned: &|| false,
            };
            let result = run_point(point, &options)?;
            let measured = Measured {
                simulated_ns: result.took.0,
                jobs: jobs(&result),
            };
            self.keep(key.clone(), measured.clone());
            Ok((key.0, measured))
        });
        match measured {
            Ok((identity, measured)) => {
                run.identity = identity;
                run.simulated_ns = measured.simulated_ns;
                run.jobs = measured.jobs;
            }
            Err(error) => run.error = Some(why(&error)),
        }
        run
    }
}
