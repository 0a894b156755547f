//! Spaces of settings: keys that are varied, rules between them, points of them, and what is
//! better.
//!
//! Experiment files and sweep files say these things in the same words. Nothing here runs
//! anything: [`Objective::value`] is given a way to look measured values up.
//!
//! | module | what |
//! | --- | --- |
//! | `quantity` | values as numbers: what they count, and ranges of them |
//! | `knob` | keys: lists of values, bounds |
//! | `constraint` | conditions on keys |
//! | `expression` | arithmetic and comparisons over numbers that have names |
//! | `sample`, `sobol` | which points there are |
//! | `objective` | what is to be little or much |

mod constraint;
mod expression;
mod knob;
mod objective;
mod quantity;
mod sample;
mod sobol;

pub use constraint::{Constraint, Names};
pub(crate) use expression::{Expression, Meaning, Word};
pub use knob::{InSteps, Knob, STEPS, Values, Wrong};
pub use objective::{Goal, METRIC_M, Objective, ObjectiveSpec, WrongKey, weights};
pub use quantity::{Quantity, Span};
pub use sample::{MAX_POINTS, Sample, Space};
