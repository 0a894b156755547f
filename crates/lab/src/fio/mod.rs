//! Job files of fio: run on a device, with results in fio's shape.
//!
//! | module | what |
//! | --- | --- |
//! | `site` | what a run needs of a device, and under which clock it runs |
//! | `zones` | what the zones of a device hold before the first job |
//! | `run` | runs a plan, stage by stage |
//! | `report` | what is reported: one entry for each thread or group |
//! | `json` | `--output-format=json` |
//! | `normal` | `--output-format=normal` |
//! | `logs` | latency, bandwidth and operations over time |

mod json;
mod logs;
mod normal;
mod report;
mod run;
mod site;
mod zones;

pub use json::to_json;
pub use logs::log_files;
pub use normal::to_text;
pub use report::{Entry, Report};
pub use run::{FioRun, RunSettings, ThreadResult, run, run_in_real_time, run_on};
pub use site::{QueueOf, Site};
pub(crate) use zones::declare;
pub use zones::{ReportedZone, at_risk, report_zones, table_of};
