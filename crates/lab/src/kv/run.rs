//! A workload on a drive, and what it did to it.

use core::ops::ControlFlow;
use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::{Completion, DeviceInfo, Nanos, QueuePair};
use zonelab_host::tasks::{Tasks, TasksConfig};
use zonelab_host::{Job, NextWake, StopSignal};
use zonelab_kv::files::{FilesError, Scarce, ZoneCounts};
use zonelab_kv::lsm::DbError;
use zonelab_kv::work::run::{Moment, Outcome, Stage};
use zonelab_ssd::account::Totals;

use super::KvTemplate;
use crate::run::EndedEarly;

/// Looks that are kept; beyond, every second one is dropped, and only every second
/// one kept from then on.
const SAMPLES_MAX: usize = 1 << 14;

/// The store and its device at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// Counted operations done until then.
    pub operations: u64,
    /// Bytes of files, padding included.
    pub valid_bytes: u64,
    /// Bytes of deleted files in zones that were not reset since.
    pub invalid_bytes: u64,
    /// Bytes behind the write pointers of finished zones.
    pub unusable_bytes: u64,
    /// Zones by state.
    pub zones: ZoneCounts,
    /// What the drive did until then; nothing is known of one that is not emulated.
    pub totals: Totals,
}

/// What a run is told besides the workload.
pub struct Surroundings {
    /// What the device is.
    pub info: DeviceInfo,
    /// Tells what the drive did, if that is known: it is emulated.
    pub totals: Option<Box<dyn Fn() -> Totals>>,
    /// The device keeps data.
    pub keeps_data: bool,
    /// Ends the run early.
    pub stop: StopSignal,
    /// Seed of everything random.
    pub seed: u64,
    /// Sees the run as it goes.
    pub on_moment: Box<dyn FnMut(&Moment<'_>)>,
}

/// A workload as a job.
pub struct KvJob {
    tasks: Tasks<Result<Outcome, FilesError>>,
    seen: Rc<RefCell<Seen>>,
    /// Ends the others' run when this one has ended.
    ends: Option<StopSignal>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct KvRun {
    /// What clients measured, and how the run ended.
    pub outcome: Outcome,
    /// The store over time.
    pub samples: Vec<Sample>,
    /// What the drive did while clients ran, and between repetitions.
    pub totals: Totals,
}

#[derive(Default)]
struct Seen {
    samples: Vec<Sample>,
    /// Looks at the running store so far, and of how many one is kept.
    looks: u64,
    one_in: u64,
    /// What the drive had done when clients began.
    began: Option<Totals>,
    last: Totals,
}

impl Seen {
    fn note(&mut self, moment: &Moment<'_>, totals: Totals) {
        self.last = totals;
        match moment.stage {
            Stage::Loading => return,
            Stage::Begins => drop(self.began.get_or_insert(totals)),
            Stage::Running | Stage::Ended => {}
        }
        self.looks += 1;
        if moment.stage == Stage::Running && !self.looks.is_multiple_of(self.one_in.max(1)) {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            let mut is_kept = false;
            self.samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.one_in = 2 * self.one_in.max(1);
        }
        let usage = moment.usage;
        self.samples.push(Sample {
            at: moment.at,
            operations: moment.done,
            valid_bytes: usage.valid_bytes + usage.padding_bytes,
            invalid_bytes: usage.invalid_bytes,
            unusable_bytes: usage.unusable_bytes,
            zones: usage.zones,
            totals,
        });
    }
}

impl KvJob {
    /// `template` as a job. With `ends_run` it stops the others when it has ended.
    #[must_use]
    pub fn new(template: &KvTemplate, surroundings: Surroundings, ends_run: bool) -> Self {
        let Surroundings {
            info,
            totals,
            keeps_data,
            stop,
            seed,
            mut on_moment,
        } = surroundings;
        let (spec, mut setup) = (template.spec.clone(), template.setup.clone());
        setup.seed = seed;
        setup.files.keeps_data = keeps_data;
        let seen = Rc::new(RefCell::new(Seen::default()));
        let watch = {
            let (seen, stop) = (Rc::clone(&seen), stop.clone());
            move |moment: Moment<'_>| {
                let totals = totals
                    .as_ref()
                    .map_or_else(Totals::default, |totals| totals());
                seen.borrow_mut().note(&moment, totals);
                on_moment(&moment);
                match stop.is_stopped() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
        };
        let config = TasksConfig {
            cores: template.cores,
        };
        let tasks = Tasks::new(&info, config, move |io| {
            zonelab_kv::work::run::run(io, spec, setup, Box::new(watch))
        });
        Self {
            tasks,
            seen,
            ends: ends_run.then_some(stop),
        }
    }

    /// What it came to; `None`: it has not ended.
    #[must_use]
    pub fn into_run(self) -> Option<Result<KvRun, FilesError>> {
        let Self { tasks, seen, .. } = self;
        let outcome = match tasks.into_result()? {
            Ok(outcome) => outcome,
            Err(error) => return Some(Err(error)),
        };
        let seen = seen.take();
        let began = seen.began.unwrap_or(seen.last);
        Some(Ok(KvRun {
            outcome,
            samples: seen.samples,
            totals: seen.last.since(&began),
        }))
    }
}

impl Job for KvJob {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        let next = self.tasks.step(now, done, queue);
        if next == NextWake::Finished
            && let Some(stop) = &self.ends
        {
            stop.stop();
        }
        next
    }
}

impl KvRun {
    /// What is scarce, if the run ended for want of it.
    #[must_use]
    pub fn scarce(&self) -> Option<Scarce> {
        let mut error = &self.outcome.failure.as_ref()?.error;
        while let DbError::ReadOnly { cause, .. } = error {
            error = cause;
        }
        match error {
            DbError::Files(FilesError::OutOf(shortage)) => Some(shortage.scarce),
            _ => None,
        }
    }

    /// Why the run of `job` ended early, if that is a result: something is scarce,
    /// or the drive `has_faults`.
    ///
    /// # Errors
    /// The run failed otherwise, in words.
    pub fn ended_early(&self, job: &str, has_faults: bool) -> Result<Option<EndedEarly>, String> {
        let measured = &self.outcome.measured;
        if measured.wrong > 0 {
            let wrong = measured.wrong;
            return Err(format!(
                "job \"{job}\": {wrong} values were not those of their keys"
            ));
        }
        let Some(failed) = &self.outcome.failure else {
            return Ok(None);
        };
        let (done, planned) = (self.outcome.done, self.outcome.planned);
        let at = zonelab_config::units::fmt_duration(failed.at.0);
        let why = format!(
            "{} (at {at}, after {done} of {planned} operations)",
            failed.error
        );
        match has_faults || self.scarce().is_some() {
            true => Ok(Some(EndedEarly {
                job: job.to_owned(),
                why,
            })),
            false => Err(format!("job \"{job}\": {why}")),
        }
    }
}
