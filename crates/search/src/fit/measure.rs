//! What probes measured, and the file to go on from.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zonelab_config::{Errors, Override};
use zonelab_ssd::profile::Profile;

use super::probes::Probe;
use crate::evaluations::{self, Log};
use zonelab_lab::conditions::Conditions;
use zonelab_lab::inputs::VERSION;
use zonelab_lab::output::digest;
use zonelab_lab::rows::significant;
use zonelab_lab::run::{self, Point, PointResult, Profiles, RunOptions, repeat_seed};

/// A drive that answers probes.
pub trait Subject {
    /// Runs a point on it.
    ///
    /// # Errors
    /// In words, what failed on the drive or does not fit it.
    fn run(&mut self, point: &Point, seed: u64) -> Result<PointResult, String>;
}

/// A drive of a profile, emulated in virtual time, new for each probe.
#[derive(Clone, Debug)]
pub struct OnProfile(pub Profile);

impl Profiles for OnProfile {
    fn load(&self, _name: &str, _overrides: &[Override]) -> Result<Profile, Errors> {
        Ok(self.0.clone())
    }
}

impl Subject for OnProfile {
    fn run(&mut self, point: &Point, seed: u64) -> Result<PointResult, String> {
        run_on(self, point, seed)
    }
}

/// Runs a point on a new drive of a profile.
pub(super) fn run_on(of: &OnProfile, point: &Point, seed: u64) -> Result<PointResult, String> {
    let options = RunOptions {
        seed,
        profiles: of,
        conditions: &Conditions::default(),
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    run::run_point(point, &options).map_err(|error| error.to_string())
}

/// The values that are compared, of one run; `None`: nothing was measured.
pub(super) type Values = Vec<Option<f64>>;

/// The values of a probe from the result of its point.
pub(super) fn values_of(probe: &Probe, result: &PointResult) -> Values {
    let job = result.jobs.iter().find(|job| job.name == probe.id);
    let value = |name: &&str| {
        let value = job?.metrics.get(name)?;
        (value.is_finite() && value > 0.0).then(|| significant(value))
    };
    probe.metrics.iter().map(value).collect()
}

/// What a probe measured, repeat by repeat.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// The probe.
    pub probe: String,
    /// Of each repeat, the values of its metrics.
    pub repeats: Vec<Vec<Option<f64>>>,
}

impl Measured {
    /// Of a metric: the mean of the logarithms, and the standard deviation of one run.
    pub(super) fn of(&self, metric: usize) -> Option<(f64, f64)> {
        let values = self
            .repeats
            .iter()
            .map(|values| values.get(metric).copied());
        let logs: Option<Vec<f64>> = values.map(|value| value?.map(libm::log)).collect();
        let logs = logs.filter(|logs| !logs.is_empty())?;
        let many = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / many;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let spread = (squares / (many - 1.0).max(1.0)).sqrt();
        Some((mean, spread))
    }
}

/// Measures a probe, as often as is said.
///
/// # Errors
/// In words, what failed on the drive.
pub(super) fn measure(
    subject: &mut dyn Subject,
    probe: &Probe,
    (seed, repeats): (u64, u32),
) -> Result<Measured, String> {
    let run = |repeat| {
        let result = subject.run(&probe.point, repeat_seed(seed, repeat))?;
        Ok(values_of(probe, &result))
    };
    let repeats: Result<Vec<Values>, String> = (0..repeats.max(1)).map(run).collect();
    Ok(Measured {
        probe: probe.id.clone(),
        repeats: repeats?,
    })
}

/// Version of the file.
const SCHEMA: u32 = 1;

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    /// Digest of the drive, the probes, the seed and the version of zonelab.
    fit: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct StoreError {
    path: PathBuf,
    error: io::Error,
}

/// What was measured, in a file if there is one: an interrupted fit goes on from it.
#[derive(Debug, Default)]
pub struct Store {
    log: Option<Log>,
    measured: BTreeMap<String, Measured>,
}

impl Store {
    /// Opens the file in a directory of results, or begins it. What another drive, library
    /// of probes or seed left there is begun anew.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn open(
        dir: &Path,
        probes: &[Probe],
        (drive, seed, repeats): (&str, u64, u32),
    ) -> Result<Self, StoreError> {
        let mut text = format!("{VERSION} {seed} {repeats}\n{drive}");
        text.extend(probes.iter().map(|probe| probe.text.as_str()));
        let head = Head {
            schema: SCHEMA,
            fit: format!("{:016x}", digest(text.as_bytes())),
        };
        let mut log = Log::new(&dir.join(evaluations::FILE));
        let fits = |_: &Head, line: &Measured| probes.iter().any(|probe| probe.id == line.probe);
        let read = log.read(|theirs: &Head| *theirs == head, fits);
        let read = read.and_then(|read| match read {
            Some((_, lines)) => Ok(lines),
            None => log.begin(&head).map(|()| Vec::new()),
        });
        let failed = |error| StoreError {
            path: log.path().to_owned(),
            error,
        };
        let lines = read.map_err(failed)?;
        let measured = lines.into_iter().map(|line| (line.probe.clone(), line));
        Ok(Self {
            measured: measured.collect(),
            log: Some(log),
        })
    }

    /// What a probe measured.
    #[must_use]
    pub fn get(&self, probe: &str) -> Option<&Measured> {
        self.measured.get(probe)
    }

    /// Keeps what a probe measured.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, measured: Measured) -> Result<(), StoreError> {
        if let Some(log) = &mut self.log {
            let appended = log.append(&measured);
            appended.map_err(|error| StoreError {
                path: log.path().to_owned(),
                error,
            })?;
        }
        self.measured.insert(measured.probe.clone(), measured);
        Ok(())
    }
}
