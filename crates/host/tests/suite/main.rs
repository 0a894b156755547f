//! The host stack as its users see it: the reactor under both clocks, cores,
//! emulated queues, and workloads.
//!
//! | module | what |
//! | --- | --- |
//! | `support` | a tiny drive, jobs from closures, a queue pair that records |
//! | `reactor` | times, wakes, stop signal, runs that end badly |
//! | `cores` | host costs: on whose core, in whose latency, how they vary |
//! | `slices` | threads that share cores in time slices |
//! | `queue` | depth of emulated queues, and queues over several runs |
//! | `real_clock` | the same jobs against the clock that ticks |
//! | `addresses` | which operations a workload issues |
//! | `pacing` | when it issues them, and when it ends |
//! | `on_a_drive` | workloads against the model |
//! | `softfinish` | finishing a zone by writes: the state machine |
//! | `softfinish_jobs` | the same as the work of a job |
//! | `directed` | jobs in directions, which share zones |
//! | `fio` | job files: what is read, refused, and planned |
//! | `block` | schedulers between queues and a drive: costs, data, switches |
//! | `scheduler` | in which order and when requests go |
//! | `side_by_side` | zones that are written at the same time, on drives with a write buffer |

mod addresses;
mod block;
mod cores;
mod directed;
mod fio;
mod on_a_drive;
mod pacing;
mod queue;
mod reactor;
mod real_clock;
mod scheduler;
mod side_by_side;
mod slices;
mod softfinish;
mod softfinish_jobs;
mod support;
mod tasks;
