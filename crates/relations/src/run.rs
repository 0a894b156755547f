//! Running a case as `zonelab run` does, and results as they can be compared.

use std::sync::atomic::{AtomicU64, Ordering};

use zonelab_config::{Errors, Override, Problem};
use zonelab_device::Nanos;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::run::{self, Point, PointResult, Profiles, RunOptions};
use zonelab_ssd::profile::Profile;

use crate::case::{Case, PROFILE};

/// The seed of all runs: what differs between cases are their texts.
pub const SEED: u64 = 1;

/// Operations of a run beyond which a case is too long to be looked at, and to be reduced to.
const MOST_OPERATIONS: u64 = 5_000;

/// How often a run may be asked whether it goes on, which is now and then: far more than any that
/// ends needs.
const MOST_LOOKS: u64 = 2_000;

/// Profiles of which there is one, a text.
struct OneText(String);

impl Profiles for OneText {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        if name == PROFILE {
            return Profile::parse(PROFILE, &self.0, overrides);
        }
        Err(Problem::of_file(name, "there is no such profile".to_owned(), "").into())
    }
}

/// Runs cases, and keeps them.
#[derive(Debug, Default)]
pub struct Runs {
    /// Those that were run, in order, each with a word for it.
    pub cases: Vec<(&'static str, Case)>,
    /// A run has been left as it was, since it did not come to an end.
    pub is_endless: bool,
}

/// A case could not be run: the drive or the work is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl Runs {
    /// Runs a case.
    ///
    /// # Errors
    /// It is refused.
    pub fn run(&mut self, what: &'static str, case: &Case) -> Result<PointResult, Refused> {
        self.run_with(what, case, |_| {})
    }

    /// Runs a case whose point is changed first: to record something.
    ///
    /// # Errors
    /// It is refused.
    pub fn run_with(
        &mut self,
        what: &'static str,
        case: &Case,
        change: impl FnOnce(&mut Point),
    ) -> Result<PointResult, Refused> {
        self.cases.push((what, case.clone()));
        let refused = |error: &dyn std::fmt::Display| Refused(error.to_string());
        let points = run::points("relation.toml", &case.work.toml(), &[]);
        let mut points = points.map_err(|errors| refused(&errors))?;
        let mut point = points.pop().expect("without an axis there is one point");
        change(&mut point);
        let profiles = OneText(case.drive.toml());
        point.check(&profiles).map_err(|error| refused(&error))?;
        let new = point.check_new(&profiles);
        new.map_err(|error| refused(&error))?;
        let looks = AtomicU64::new(0);
        let is_endless = || looks.fetch_add(1, Ordering::Relaxed) > MOST_LOOKS;
        let options = RunOptions {
            seed: SEED,
            profiles: &profiles,
            conditions: &Conditions::default(),
            on_point: &|_, _| {},
            interrupted: &|| false,
            abandoned: &is_endless,
        };
        let result = run::run_point(&point, &options);
        self.is_endless |= looks.load(Ordering::Relaxed) > MOST_LOOKS;
        let result = result.map_err(|error| refused(&error))?;
        match result.operations {
            ..=MOST_OPERATIONS => Ok(result),
            many => Err(Refused(format!(
                "{many} operations are too many for a case"
            ))),
        }
    }
}

/// The first thing in which two results differ, in words. All that a run measures takes part:
/// metrics, distributions, throughput over time, what the drive did, and each resource's time.
#[must_use]
pub fn difference(a: &PointResult, b: &PointResult) -> Option<String> {
    for (a, b) in a.jobs.iter().zip(&b.jobs) {
        for (metric, x) in &a.metrics.values {
            let y = b.metrics.get(metric).unwrap_or(f64::NAN);
            if x.to_bits() != y.to_bits() {
                return Some(format!("{} of {}: {x} and {y}", metric, a.name));
            }
        }
        if a.detail != b.detail || a.metrics != b.metrics {
            return Some(format!("distribution or course of {}", a.name));
        }
    }
    if a.jobs.len() != b.jobs.len() || a.operations != b.operations {
        return Some(format!("operations: {} and {}", a.operations, b.operations));
    }
    if a.took != b.took {
        return Some(format!("end: {} and {}", a.took, b.took));
    }
    let (Some(a), Some(b)) = (&a.drive, &b.drive) else {
        return None;
    };
    if a.totals != b.totals {
        return Some(format!("totals: {:?} and {:?}", a.totals, b.totals));
    }
    if a.busy_ns != b.busy_ns {
        return Some(format!("busy: {:?} and {:?}", a.busy_ns, b.busy_ns));
    }
    (a.detail != b.detail).then(|| "busy time of units, or wear".to_owned())
}

/// The same of what hosts see alone: latencies, throughput, and the end.
#[must_use]
pub fn difference_to_hosts(a: &PointResult, b: &PointResult) -> Option<String> {
    for (a, b) in a.jobs.iter().zip(&b.jobs) {
        // Whether a reset or finish found something to do, a completion of NVMe does not say.
        let is_data = a.kind.moves_data();
        for metric in HOSTS.iter().filter(|metric| is_data || **metric != "mib_s") {
            let (x, y) = (a.metrics.get(metric), b.metrics.get(metric));
            if x.map(f64::to_bits) != y.map(f64::to_bits) {
                return Some(format!("{metric} of {}: {x:?} and {y:?}", a.name));
            }
        }
    }
    (a.took != b.took).then(|| format!("end: {} and {}", a.took, b.took))
}

/// Metrics that hosts see.
const HOSTS: [&str; 8] = [
    "ops",
    "ops_s",
    "mib_s",
    "lat_mean_us",
    "lat_min_us",
    "lat_p50_us",
    "lat_p99_us",
    "lat_max_us",
];

/// When the last measured operation of a run ended.
#[must_use]
pub fn end(result: &PointResult) -> Nanos {
    result.took
}
