//! The Python package `zonelab`: profiles, experiments and their results for Python.
//!
//! Everything that decides or calculates is in the other crates, which know nothing of
//! Python; here their types are given a Python face. Results leave as Arrow tables, which
//! pandas and polars read without a copy, and the interpreter's lock is released while
//! anything runs.
//!
//! | module | what |
//! | --- | --- |
//! | `commands` | commands by name, and their completions |
//! | `convert` | Python objects as TOML and as settings, JSON as Python objects |
//! | `drive` | a drive, step by step |
//! | `errors` | errors as the exceptions of `zonelab.errors`, with the same texts |
//! | `experiment` | experiments, read |
//! | `figure` | what figures draw |
//! | `frame` | tables of results, for Arrow |
//! | `interrupt` | work in other threads, without the interpreter's lock, that Ctrl-C ends |
//! | `jobs` | job files of fio, and key-value workloads |
//! | `metrics` | the interference model |
//! | `policies` | policies that are Python objects |
//! | `profile` | drives |
//! | `result` | what experiments measured |
//! | `running` | running experiments |
//! | `simulate` | workloads that are Python objects |
//! | `sweep` | sweeps: what a coordinator and its workers need |
//! | `tables` | tables of what was measured |
//! | `trace` | traces of points |

mod commands;
mod convert;
mod drive;
mod errors;
mod experiment;
mod figure;
mod frame;
mod interrupt;
mod jobs;
mod metrics;
mod policies;
mod profile;
mod result;
mod running;
mod simulate;
mod sweep;
mod tables;
mod trace;

use pyo3::prelude::*;

/// Keeps the memory of one drive for the next.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What of `zonelab` is written in Rust. Import it from `zonelab`.
///
/// Each module registers what it has here, and nowhere else.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::commands::Completion;
    #[pymodule_export]
    use super::convert::to_toml;
    #[pymodule_export]
    use super::drive::Drive;
    #[pymodule_export]
    use super::experiment::{Experiment, experiments};
    #[pymodule_export]
    use super::figure::Figure;
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::jobs::{JobReport, run_fio, run_kv};
    #[pymodule_export]
    use super::metrics::m_inter;
    #[pymodule_export]
    use super::policies::{
        AllocationRequest, FreeElement, FreeZone, InvalidZone, Policies, ResetView, VictimZone,
    };
    #[pymodule_export]
    use super::profile::{Profile, profiles};
    #[pymodule_export]
    use super::result::Results;
    #[pymodule_export]
    use super::running::{reproduce, run_experiment};
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::sweep::{SweepPack, SweepResults, SweepStore, run_batch};
    #[pymodule_export]
    use super::trace::Trace;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
