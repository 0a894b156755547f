//! When two points are the same.

use serde_json::Value;
use zonelab_config::Errors;
use zonelab_ssd::profile::to_toml;

use super::{Point, Profiles};
use crate::experiment::{Experiment, SeriesSpec, Via};
use crate::output::digest;

impl Point {
    /// A digest of everything that the results of the point depend on, besides
    /// the seed: points of the same identity measure the same.
    ///
    /// # Errors
    /// There is no such drive.
    pub fn identity(&self, profiles: &dyn Profiles) -> Result<u64, Errors> {
        let Self {
            experiment,
            series,
            x,
            namespace: _, // in the jobs: below
            trace: _,
            slowest: _,
            watch: _,
        } = self;
        // Field by field, so that whoever adds one says here whether a run
        // depends on it.
        let Experiment {
            id,      // names make the seed
            host: _, // with the series' scheduler: below
            scheduler: _,
            via: _, // that of the series: below
            ftl: _, // likewise
            schedulers: _,
            jobs: _,    // those of the series: below
            profile: _, // in the drive, as are settings of it
            drive: _,
            faults,
            title: _,
            kind: _,
            source: _,
            axis: _,
            crossed: _, // what they put in: with what it was put in
            series: _,
            reference: _,
            compare: _,
            interference: _,
            matrix: _,
            worked: _,
            checks: _,
            listings: _, // zones are asked for when the jobs have ended
            quick: _,
            figures: _,
            search: _,
            repeats: _, // each is a run of its own
            differences: _,
        } = experiment;
        let SeriesSpec {
            name,
            place: _,
            combination: _,
            phases: _, // with their jobs: below
            full_zones: _,
            drive: _,
            scheduler: _,
            via: _,
            ftl: _,
            x: _,
            published: _,
            points: _,
        } = series;
        let mut parts = vec![
            id.clone(),
            name.clone(),
            x.text.clone(),
            format!("{:?}", self.host()),
            self.describe_jobs(),
            to_toml(&self.drive(profiles)?.config),
        ];
        // Of the direct way, the identity that points have always had.
        if self.via() != Via::Direct {
            parts.push(self.via().name().to_owned());
        }
        if let Some(ftl) = self.ftl() {
            parts.push(format!("{ftl:?}"));
        }
        if let Some(faults) = faults {
            parts.push(format!("{faults:?}"));
        }
        Ok(digest(Value::from(parts).to_string().as_bytes()))
    }
}
