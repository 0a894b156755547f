//! Fitting a drive: a profile of a drive that nobody has described, from what it does.
//!
//! A [`Subject`] is measured by small workloads, the [`Probe`]s. A [`Design`] says which
//! mechanisms a candidate has, and [`PARAMETERS`] which numbers go with them; both are fitted
//! to what was measured, and the next probes are those that would tell most about what is
//! still open. In the end every number has an interval, and what cannot be told from outside
//! is named.
//!
//! | module | what |
//! | --- | --- |
//! | `known` | what a drive says of itself, which is not fitted |
//! | `design` | mechanisms and their alternatives |
//! | `parameters` | numbers, their bounds and scales; the profile of a candidate |
//! | `probes` | the library of small workloads |
//! | `measure` | what probes measured, and the file to go on from |
//! | `predict` | what a candidate would have measured |
//! | `solve` | numbers of one design: least squares, covariance |
//! | `designs` | which design, and which others cannot be told apart |
//! | `choose` | the next probes |
//! | `fitting` | all of it, in turn |
//! | `intervals` | what each number could be |
//! | `found` | parameters with intervals, combinations that are known |
//! | `report` | table, JSON, page |
//! | `recovery` | drives drawn at random, and how well they are recovered |
//!
//! Why this way: `docs/decisions/0052-fitting-a-drive.md`. For users: `docs/fit.md`.

mod choose;
mod design;
mod designs;
mod fitting;
mod found;
mod intervals;
mod known;
mod measure;
mod parameters;
mod predict;
mod probes;
pub mod recovery;
mod report;
mod solve;
mod survey;
#[cfg(test)]
mod tests;

pub use design::{Design, FACTORS, Factor};
pub use fitting::{Fit, FitError, Progress, Settings, Stopped, fit};
pub use found::{Combination, Found, Known as KnownShare, Mechanism};
pub use known::Known;
pub use measure::{Measured, OnProfile, Store, StoreError, Subject};
pub use parameters::{Declared, PARAMETERS, profile_text};
pub use probes::{Probe, probes};
pub use report::{files, text};
