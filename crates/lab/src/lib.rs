//! Experiments: what is run, how it compares with what was published, and how
//! that is shown.
//!
//! | module | what |
//! | --- | --- |
//! | [`experiment`] | experiment files |
//! | [`library`] | the experiments that are built in |
//! | [`catalogue`] | the results that are to be reproduced, and what is missing |
//! | [`inputs`] | everything that a run depends on, to send it elsewhere |
//! | [`run`] | runs the points of an experiment in parallel |
//! | [`conditions`] | faults, a state to start from, policies of somebody else |
//! | [`policies`] | makers of such policies |
//! | [`metrics`] | what can be read off a run, by name; the interference model |
//! | [`matrix`] | every operation beside every other: interference, and why |
//! | [`compare`] | from results to rows of comparison and figures |
//! | [`published`] | published values of points |
//! | [`rows`] | rows, the rule that judges them, known misfits, JSON and CSV |
//! | [`reference`](mod@reference) | tables of published measurements |
//! | [`figure`] | SVG charts |
//! | [`trace`] | timelines of dies, channels and jobs for Perfetto |
//! | [`mod@device`] | devices that jobs run on |
//! | [`kv`] | key-value workloads on drives |
//! | [`table`] | tables for a terminal |
//! | [`results`] | result files |
//! | [`session`] | experiments and profiles by name or path, read for a run |
//! | [`space`] | keys that are varied, and what is better: the terms of sweeps and searches |
//! | [`settings`] | settings of an experiment or of its drive, as `--set` takes them |
//! | [`idle`] | operations that had nothing to do, in words |
//! | [`detail`] | distributions, and what happened over time, of each point |
//! | [`statistics`] | means of repeats, and how well they are known |
//! | [`difference`] | differences between two series, paired by seed |
//! | [`output`] | result directories |
//! | [`bundle`] | results with everything that they were made from, in one file |
//!
//! For `wasm32-unknown-unknown` there is all that experiments in virtual time need. What needs
//! threads, devices or large libraries is left out: `bundle` and jobs over PCIe.

pub mod arrivals;
#[cfg(not(target_family = "wasm"))]
pub mod bundle;
pub mod catalogue;
pub mod compare;
pub mod conditions;
pub mod detail;
pub mod device;
pub mod difference;
pub mod experiment;
pub mod idle;
pub mod inputs;
pub mod kv;
pub mod library;
pub mod matrix;
pub mod metrics;
mod notices;
pub mod outlast;
pub mod output;
pub mod owed;
pub mod policies;
mod preparing;
pub mod published;
pub mod reference;
pub mod results;
pub mod rows;
pub mod run;
pub mod session;
pub mod settings;
pub mod space;
pub mod statistics;
pub mod table;
pub mod trace;
pub mod wear;

pub use zonelab_figures::figure;
