//! Job files of fio 3.x: from their text to jobs for an emulated or real drive.
//!
//! [`JobFile::parse`] reads the text and finds what is wrong with it, line by
//! line; [`JobFile::gather`] also takes jobs of a [`CommandLine`];
//! [`JobFile::plan`] puts them on a device. Running a plan and printing results in
//! fio's shape is the business of the crate `zonelab-lab`. Nothing here does I/O:
//! environment and included files come through [`Outside`].
//!
//! What each option does, and what differs from fio: `docs/fio.md`.
//!
//! | module | what |
//! | --- | --- |
//! | `text` | sections, options, includes, comments, variables |
//! | `arguments` | the same on a command line |
//! | `value` | numbers with fio's suffixes, times, percentages, zones |
//! | `beside` | those about other jobs, processors and latencies |
//! | `cpus` | processors that jobs may run on |
//! | [`options`] | all options: used, without meaning, refused |
//! | `job`, `defaults` | the options of one job |
//! | `setting` | values of single options |
//! | `file` | sections to jobs, with what `[global]` hands down |
//! | [`trace`] | logs of fio and blkparse that jobs replay |
//! | `plan` | threads, groups and stages; zones, sizes and limits on a device |

mod arguments;
mod beside;
mod cpus;
mod defaults;
mod engines;
mod file;
mod job;
pub mod options;
mod placement;
mod plan;
mod setting;
mod text;
pub mod trace;
mod value;

pub use arguments::CommandLine;
pub use cpus::Cpus;
pub use file::{Echo, JobFile, JobText, OpenTrace, Section, Target};
pub use job::ExitWhat;
pub use plan::{IssueLog, Log, Logs, Plan, PlannedJob, PlannedShare};
pub use text::{Origin, Outside};
