//! Characterising a drive: the observations of a study of a real one, looked for on any.
//!
//! "Performance Characterization of NVMe Flash Devices with Zoned Namespaces" (CLUSTER'23)
//! ends in 13 observations and five recommendations. A [`suite`] of experiments measures
//! what they are about on a drive of any geometry, emulated or real, and [`judge`] says of
//! each whether it holds there, with the numbers and how well they are known.
//!
//! | module | what |
//! | --- | --- |
//! | `facts` | what of a drive the suite depends on |
//! | `suite` | the experiments, as text |
//! | `samples` | what they measured, repeat by repeat; the file to go on from |
//! | `effect` | ratios with their intervals, and bounds for them |
//! | `observations` | the observations and when each holds |
//! | `report` | table, files, figures, page |
//!
//! For users: `docs/characterize.md`.

mod effect;
mod facts;
mod observations;
mod report;
mod samples;
mod suite;
#[cfg(test)]
mod tests;

pub use effect::{Effect, Verdict};
pub use facts::{Facts, FactsError, Reach};
pub use observations::{Evidence, Judged, Observation, Recommendation, judge};
pub use report::{Device, comparison, files, text};
pub use samples::{Sample, Samples, SamplesError, Store};
pub use suite::{Effort, FORMATS, Part, suite};
pub(crate) use suite::{Job, range, series};
