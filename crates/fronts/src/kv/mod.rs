//! Key-value workloads by themselves, for `zonelab kv`.
//!
//! * `alone`: a workload by itself on an emulated drive, however that is reached.
//! * `show`: results for people, and as JSON.
//!
//! What a workload is, and how it runs as a job beside others, is in [`zonelab_lab::kv`].

mod alone;
mod show;

pub use alone::{Alone, Way, run_alone};
pub use show::{Report, to_json, to_text};
