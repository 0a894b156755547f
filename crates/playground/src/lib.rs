//! The laboratory in a browser: what the page of the playground asks of the drive, the host
//! stack and the report, compiled to WebAssembly.
//!
//! Experiments are read, run and written by the code of the command: a [`Bench`] has the files
//! of a page in place of those of a machine, and gives the bytes that `zonelab run` writes. Its
//! points run one at a time, so that a page can show what there is so far.
//!
//! * `request`: what a page asks for.
//! * `bench`: an experiment that is run point by point.
//! * `picture`: the timeline and the zones of a point.
//! * `problem`: what is wrong, with its lines.
//! * `starts`: where one can start from.
//! * `bindings`: all of it for JavaScript.

mod bench;
mod bindings;
mod picture;
mod problem;
mod request;
mod starts;

pub use bench::Bench;
pub use bindings::{Playground, profile_text, starting_points};
pub use picture::Window;
pub use problem::Problems;
pub use request::Request;
pub use starts::{Start, starts};
