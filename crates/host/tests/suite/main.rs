//! Host programs as their users see them, without any drive: the tests on
//! emulated drives are those of `zonelab-sim`.
//!
//! | module | what |
//! | --- | --- |
//! | `support` | jobs from closures, a queue pair that records |
//! | `reactor` | a device of any kind: what the reactor asks of it, and when |
//! | `addresses` | which operations a workload issues |
//! | `arrivals` | operations that are due at times of their own |
//! | `pacing` | when it issues them, and when it ends |
//! | `softfinish` | finishing a zone by writes: the state machine |
//! | `fio` | job files: what is read, refused, and planned |
//! | `traces` | traces that jobs replay: what is read and refused, and what fits a device |
//! | `scheduled` | a scheduler in front of any queue pair |
//! | `scheduler` | in which order and when requests go |

mod addresses;
mod arrivals;
mod blocks;
mod fio;
mod option_table;
mod pacing;
mod public_traces;
mod reactor;
mod scheduled;
mod scheduler;
mod softfinish;
mod support;
mod traces;
mod verify;
