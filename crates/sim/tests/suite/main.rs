//! The host stack on emulated drives: the reactor under both clocks, cores,
//! queues, and workloads.
//!
//! | module | what |
//! | --- | --- |
//! | `support` | a tiny drive, and runs on it |
//! | `reactor` | times, wakes, stop signal, runs that end badly |
//! | `cores` | host costs: on whose core, in whose latency, how they vary |
//! | `slices` | threads that share cores in time slices |
//! | `queue` | depth of emulated queues, and queues over several runs |
//! | `real_clock` | the same jobs against the clock that ticks |
//! | `on_a_drive` | workloads against the model |
//! | `softfinish` | finishing a zone by writes: data and buffers |
//! | `softfinish_jobs` | the same as the work of a job |
//! | `directed` | jobs in directions, which share zones |
//! | `hosted` | the same costs in front of any other model |
//! | `tasks` | programs as async code |
//! | `block` | schedulers between queues and a drive: costs, data, switches |
//! | `side_by_side` | zones that are written at the same time, on drives with a write buffer |

mod block;
mod cores;
mod directed;
mod hosted;
mod on_a_drive;
mod ports;
mod queue;
mod reactor;
mod real_clock;
mod side_by_side;
mod slices;
mod softfinish;
mod softfinish_jobs;
mod support;
mod tasks;
