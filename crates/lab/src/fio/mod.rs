//! Job files of fio: run on an emulated drive, with results in fio's shape.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | runs a plan, stage by stage, in virtual time |
//! | `report` | what is reported: one entry for each thread or group |
//! | `json` | `--output-format=json` |
//! | `normal` | `--output-format=normal` |
//! | `logs` | latency, bandwidth and operations over time |

mod json;
mod logs;
mod normal;
mod report;
mod run;

pub use json::to_json;
pub use logs::log_files;
pub use normal::to_text;
pub use report::{Entry, Report};
pub(crate) use run::declare;
pub use run::{FioRun, RunSettings, ThreadResult, run};
