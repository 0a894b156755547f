//! What a run measured.
//!
//! * [`Latency`]: the distribution of latencies.
//! * [`Intervals`]: throughput as the mean of samples, in fio's way.
//! * [`JobStats`]: both, with counts, bytes and errors, by kind of operation;
//!   [`GroupStats`]: jobs reported as one.
//! * [`Confidence`]: whether the run has lasted long enough.
//! * [`Moments`], [`Samples`], [`IntervalClock`]: what the others are made of.
//!
//! Everything that is recorded is an integer and takes constant memory;
//! results are floating point only where they are read out.

mod buckets;
mod confidence;
mod finds;
mod intervals;
mod job;
mod latency;
mod moments;
mod samples;
mod timeline;

pub use confidence::{Confidence, Estimate, Sample, Statistic};
pub use finds::Finds;
pub use intervals::{IntervalClock, Intervals};
pub use job::{GroupStats, JobStats, OpKind, OpStats, Outcome, Outcomes};
pub use latency::Latency;
pub use moments::Moments;
pub use samples::Samples;
pub use timeline::{Slot, Timeline};
