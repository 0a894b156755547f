//! The host FTL: its layer, its log, its settings.
//!
//! | module | what |
//! | --- | --- |
//! | `amplification` | write amplification in the steady state, against what analysis says |
//! | `check` | checking what is on a drive |
//! | `crash` | losses of power at any event |
//! | `durable` | metadata under losses of power at any moment, also while they are formatted and mounted |
//! | `durable_faults` | metadata on drives whose commands fail |
//! | `durable_format` | what is on the media |
//! | `layer` | the layer as programs see it: blocks that hold what was written to them |
//! | `media` | data zones that fail |
//! | `own_victims` | rules for victims from outside of the crate |
//! | `repair` | every block of metadata is damaged, and repaired |
//! | `room` | drives that have no room for a while |
//! | `support` | small drives, and programs of tasks that lose power in the middle |
//! | `threads` | several threads, each with a queue pair of its own, on one drive in real time |

mod amplification;
mod check;
mod crash;
mod durable;
mod durable_faults;
mod durable_format;
mod layer;
mod media;
mod own_victims;
mod repair;
mod room;
mod support;
mod threads;
