//! What takes many runs of one experiment or one drive.
//!
//! | module | what |
//! | --- | --- |
//! | [`sweep`] | an experiment at many settings, and one data set of all of it |
//! | [`search`] | settings that trade objectives against each other: the Pareto front |
//! | [`calibrate`] | profile parameters fitted to measurements |
//! | [`fit`] | a profile of a drive that nobody has described |
//! | [`characterize`] | the observations of a study, on any drive |
//! | [`explore`] | a page to look through the points of a sweep or a search |
//! | [`evaluations`] | the file of what was evaluated, to go on from |
//!
//! Which keys may be varied, and what is better, is said in the terms of
//! [`zonelab_lab::space`], which experiment files use too.

pub mod calibrate;
pub mod characterize;
pub mod evaluations;
pub mod explore;
pub mod fit;
pub mod search;
pub mod sweep;
