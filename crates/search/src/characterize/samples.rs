//! What the suite measured, repeat by repeat, and the file of it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zonelab_lab::inputs::VERSION;
use zonelab_lab::output::digest;
use zonelab_lab::rows::significant;
use zonelab_lab::run::PointResult;

use super::suite::Part;
use crate::evaluations::{self, Log};

/// Version of the file.
const SCHEMA: u32 = 1;

/// What one job measured at one point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// Series.
    pub series: String,
    /// Value of the axis, as a number.
    pub x: f64,
    /// Job.
    pub job: String,
    /// Of each repeat, every metric that has a value, to six digits.
    pub repeats: Vec<BTreeMap<String, f64>>,
}

/// What the suite measured on a drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    parts: BTreeMap<String, Vec<Sample>>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct SamplesError {
    path: PathBuf,
    error: io::Error,
}

impl Sample {
    /// Those of the results of a part.
    #[must_use]
    pub fn of(results: &[PointResult]) -> Vec<Self> {
        let mut samples = Vec::new();
        for result in results {
            for job in &result.jobs {
                let repeats = job.spread.as_ref().map_or(0, |spread| spread.repeats.len());
                let repeats = u32::try_from(repeats.max(1)).unwrap_or(u32::MAX);
                let of_repeat = |repeat: u32| -> BTreeMap<String, f64> {
                    let names = job.metrics.values.keys();
                    let value = |name: &&'static str| {
                        let value = job.of_repeat(repeat, name)?;
                        Some(((*name).to_owned(), significant(value)))
                    };
                    names.filter_map(value).collect()
                };
                samples.push(Self {
                    series: result.series.clone(),
                    x: significant(result.x.number),
                    job: job.name.clone(),
                    repeats: (0..repeats).map(of_repeat).collect(),
                });
            }
        }
        samples
    }
}

impl Samples {
    /// Adds what a part measured.
    pub fn add(&mut self, part: &str, samples: Vec<Sample>) {
        self.parts.insert(part.to_owned(), samples);
    }

    /// Every part that was measured.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &[Sample])> {
        let parts = self.parts.iter();
        parts.map(|(id, samples)| (id.as_str(), samples.as_slice()))
    }

    /// A metric of a series by its job of the same name, at a value of the axis: of each
    /// repeat. Empty: it was not measured.
    pub(super) fn at(&self, part: &str, series: &str, x: f64, metric: &str) -> Vec<f64> {
        self.of_job(part, (series, series), x, metric)
    }

    /// The same of any job of a series.
    #[expect(clippy::float_cmp, reason = "both are the same number of the suite")]
    pub(super) fn of_job(
        &self,
        part: &str,
        (series, job): (&str, &str),
        x: f64,
        metric: &str,
    ) -> Vec<f64> {
        let samples = self.parts.get(part).into_iter().flatten();
        let mut found = samples.filter(|of| of.series == series && of.job == job && of.x == x);
        let sample = found.next();
        let repeats = sample.into_iter().flat_map(|sample| &sample.repeats);
        let values: Option<Vec<f64>> = repeats.map(|of| of.get(metric).copied()).collect();
        values.unwrap_or_default()
    }

    /// P95 of a job of a series of one value, by time: what 95 % of the time of its
    /// operations passed in. A job that waits for each of them issues few while one is slow.
    pub(super) fn by_time(&self, part: &str, (series, job): (&str, &str)) -> Vec<f64> {
        let samples = self.parts.get(part).into_iter().flatten();
        let mut found = samples.filter(|of| of.series == series && of.job == job);
        let repeats = found.next().into_iter().flat_map(|of| &of.repeats);
        let of_repeat = |of: &BTreeMap<String, f64>| {
            let by_count = *of.get("lat_p95_us")?;
            // Without stalls there is no difference.
            let by_time = of.get("lat_by_time_p95_us").unwrap_or(&by_count);
            Some(by_time.max(by_count))
        };
        repeats.filter_map(of_repeat).collect()
    }

    /// The points of a curve: the values of the axis and what was measured there.
    pub(super) fn curve(&self, part: &str, series: &str, metric: &str) -> Vec<(f64, Vec<f64>)> {
        let samples = self.parts.get(part).into_iter().flatten();
        let of_series = samples.filter(|of| of.series == series && of.job == series);
        let points = of_series.map(|of| (of.x, self.at(part, series, of.x, metric)));
        points.filter(|(_, values)| !values.is_empty()).collect()
    }

    /// The greatest value of a curve, in each repeat.
    pub(super) fn peak(&self, part: &str, series: &str, metric: &str) -> Vec<f64> {
        let curve = self.curve(part, series, metric);
        let repeats = curve.iter().map(|(_, values)| values.len()).min();
        let of_repeat = |repeat: usize| {
            let values = curve.iter().map(|(_, values)| values[repeat]);
            values.fold(f64::NEG_INFINITY, f64::max)
        };
        (0..repeats.unwrap_or(0)).map(of_repeat).collect()
    }
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    /// Digest of the drive, the suite, the seed and the version of zonelab.
    suite: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Line {
    part: String,
    samples: Vec<Sample>,
}

/// The file of what was measured: a line for each part, so that what was interrupted goes
/// on from there.
#[derive(Debug)]
pub struct Store {
    log: Log,
    samples: Samples,
}

impl Store {
    /// Opens the file in a directory of results, or begins it. What another suite, drive or
    /// seed left there is begun anew.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn open(
        dir: &Path,
        parts: &[&Part],
        (drive, seed): (&str, u64),
    ) -> Result<Self, SamplesError> {
        let mut text = format!("{VERSION} {seed}\n{drive}");
        text.extend(parts.iter().map(|part| part.text.as_str()));
        let head = Head {
            schema: SCHEMA,
            suite: format!("{:016x}", digest(text.as_bytes())),
        };
        let mut log = Log::new(&dir.join(evaluations::FILE));
        let mut samples = Samples::default();
        let is_part = |_: &Head, line: &Line| parts.iter().any(|part| part.id == line.part);
        let read = log.read(|theirs: &Head| *theirs == head, is_part);
        let read = read.and_then(|read| match read {
            Some((_, lines)) => Ok(lines),
            None => log.begin(&head).map(|()| Vec::new()),
        });
        for line in read.map_err(|error| failed(&log, error))? {
            samples.add(&line.part, line.samples);
        }
        Ok(Self { log, samples })
    }

    /// What was measured so far.
    #[must_use]
    pub const fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Whether a part was measured.
    #[must_use]
    pub fn has(&self, part: &str) -> bool {
        self.samples.parts.contains_key(part)
    }

    /// Keeps what a part measured.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, part: &str, samples: Vec<Sample>) -> Result<(), SamplesError> {
        let line = Line {
            part: part.to_owned(),
            samples,
        };
        let appended = self.log.append(&line);
        appended.map_err(|error| failed(&self.log, error))?;
        self.samples.add(part, line.samples);
        Ok(())
    }
}

fn failed(log: &Log, error: io::Error) -> SamplesError {
    SamplesError {
        path: log.path().to_owned(),
        error,
    }
}
