//! Experiments as their users see them: files, runs, comparison.
//!
//! | module | what |
//! | --- | --- |
//! | `support` | a tiny drive and an experiment on it |
//! | `reading` | experiment files: what is refused, where, with which remedy |
//! | `determinism` | same seed, same bytes, on any number of threads |
//! | `running` | what a point measures, and which points cannot be run |
//! | `looking_up` | published values, repeats, and mistakes in asking for them |
//! | `repeats` | points that run several times, and differences between series |
//! | `softfinish` | finishes by writes of the host: keys, refusals, metrics |
//! | `elsewhere` | ZINC and softfinish on drives that they were not published on |
//! | `comparing` | rows, interference, checks, misfits, figures |
//! | `tracing` | traces: true, bounded, without effect on results |
//! | `explaining` | why the slowest commands were slow, and what they would have taken otherwise |
//! | `perfetto` | a reader of trace files that shares nothing with the writer |
//! | `matrix` | every operation beside every other, and why |
//! | `builtin` | the experiments and misfits that come with zonelab |
//! | `coverage` | every result that is to be reproduced is built, or says what is missing |

mod axes;
mod builtin;
mod comparing;
mod coverage;
mod determinism;
mod elsewhere;
mod explaining;
mod looking_up;
mod matrix;
mod perfetto;
mod reading;
mod reference_file;
mod repeats;
mod running;
mod softfinish;
mod support;
mod tiny;
mod tracing;
