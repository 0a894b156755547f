//! Experiments: what is run, how it compares with what was published, and how
//! that is shown.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@bench`] | our own speed |
//! | [`calibrate`] | profile parameters fitted to measurements |
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
//! | [`fit`] | a profile of a drive that nobody has described |
//! | [`fio`] | job files of fio, and results in its shape |
//! | [`kv`] | key-value workloads on drives |
//! | [`table`] | tables for a terminal |
//! | [`search`] | settings that trade objectives against each other: the Pareto front |
//! | [`results`] | result files |
//! | [`session`] | experiments and profiles by name or path, read for a run |
//! | [`sweep`] | an experiment at many settings, and one data set of all of it |
//! | [`settings`] | settings of an experiment or of its drive, as `--set` takes them |
//! | [`evaluations`] | the file of what was evaluated |
//! | [`detail`] | distributions, and what happened over time, of each point |
//! | [`statistics`] | means of repeats, and how well they are known |
//! | [`difference`] | differences between two series, paired by seed |
//! | [`report`] | the HTML report |
//! | [`explore`] | a page to look through the points of a sweep or a search |
//! | [`output`] | result directories |
//! | [`bundle`] | results with everything that they were made from, in one file |
//!
//! For `wasm32-unknown-unknown` there is all that experiments in virtual time need. What needs
//! threads, devices or large libraries is left out: `bench`, `bundle`, `calibrate`,
//! `characterize`, `fio`, `fit`, jobs over PCIe, and Parquet.

#![cfg_attr(
    target_family = "wasm",
    expect(
        dead_code,
        reason = "modules that are left out use more of what is here"
    )
)]

#[cfg(not(target_family = "wasm"))]
pub mod bench;
#[cfg(not(target_family = "wasm"))]
pub mod bundle;
#[cfg(not(target_family = "wasm"))]
pub mod calibrate;
pub mod catalogue;
#[cfg(not(target_family = "wasm"))]
pub mod characterize;
pub mod compare;
pub mod conditions;
pub mod detail;
pub mod device;
pub mod difference;
pub mod evaluations;
pub mod experiment;
pub mod explore;
pub mod figure;
#[cfg(not(target_family = "wasm"))]
pub mod fio;
#[cfg(not(target_family = "wasm"))]
pub mod fit;
mod html;
pub mod inputs;
pub mod kv;
pub mod library;
pub mod matrix;
pub mod metrics;
pub mod output;
pub mod policies;
pub mod published;
mod quantity;
pub mod reference;
pub mod report;
pub mod results;
pub mod rows;
pub mod run;
pub mod search;
pub mod session;
pub mod settings;
pub mod statistics;
pub mod sweep;
pub mod table;
pub mod trace;
pub mod wear;
