//! Host software above a queue pair.
//!
//! Programs here are state machines ([`Job`]) that a [`Reactor`] runs over
//! queue pairs, under a clock that jumps or one that ticks. They never block,
//! read no clock, and draw no random number but from a generator they were
//! given, so that the same program is a deterministic experiment in virtual
//! time and a load generator in real time.
//!
//! | module | what |
//! | --- | --- |
//! | [`reactor`] | runs jobs on modelled cores; the only place that waits |
//! | [`clock`] | the virtual and the real clock |
//! | [`scheduler`] | in which order requests go to a device |
//! | [`block`] | the block layer: many queues, one scheduler, one device |
//! | [`tasks`] | programs written as async code, run as a job |
//! | [`notify`] | tells tasks that something has changed |
//! | [`workload`] | jobs that read, write, append, finish and reset |
//! | [`fio`] | job files of fio: from text to such jobs |
//! | [`rate`] | limits in bytes or operations per second, as fio keeps them |
//! | [`softfinish`] | finishing a zone by writes of the host |
//! | [`verify`] | blocks whose contents can be checked |
//! | [`stats`] | latency distributions, throughput, confidence intervals |
//! | [`rng`] | the seeded generator |

pub mod block;
pub mod clock;
pub mod fio;
pub mod notify;
pub mod rate;
pub mod reactor;
pub mod rng;
pub mod scheduler;
mod slices;
pub mod softfinish;
pub mod stats;
pub mod tasks;
pub mod verify;
mod wakes;
pub mod workload;

pub use block::BlockLayer;
pub use clock::{Clock, RealClock, VirtualClock, WaitsFor};
pub use reactor::{Bell, CoreId, Job, NextWake, Reactor, RunEnd, StopSignal};
pub use rng::Rng;
