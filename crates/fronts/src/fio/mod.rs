//! Job files of fio: run on a device, with results in fio's shape.
//!
//! | module | what |
//! | --- | --- |
//! | `agreement` | whether two devices agree about a job file |
//! | `zones` | what the zones of a device hold before the first job |
//! | `run` | runs a plan, stage by stage |
//! | `emulated` | the same on a new emulated drive |
//! | `report` | what is reported: one entry for each thread or group |
//! | `json` | `--output-format=json` and `json+` |
//! | `terse` | `--output-format=terse` |
//! | `normal` | `--output-format=normal` |
//! | `logs` | latency, bandwidth and operations over time |

mod agreement;
mod emulated;
mod json;
mod logs;
mod normal;
mod report;
mod run;
mod steady;
mod terse;
mod zones;

pub use agreement::{
    Agreement, EMPTY_COMMANDS, Estimated, Metric, PERCENTILES, Side, TOLERANCE_MAX, Verdict,
    empty_commands,
};
pub use emulated::{empty_commands_of_emulated, run, run_in_real_time, run_over_pcie};
pub use json::{to_json, to_json_plus};
pub use logs::log_files;
pub use normal::to_text;
pub use report::{Entry, Report};
pub use run::{FioRun, RunSettings, ThreadResult, run_on};
pub use terse::to_terse;
pub use zones::{at_risk, bytes_at_risk, table_of};
