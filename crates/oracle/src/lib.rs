//! Oracles: what a drive must do, written a second time, in the simplest way and without
//! the drive's code. Property tests of `zonelab-ssd` and fuzz targets share them.
//!
//! | module | what it knows | what it is compared with |
//! | --- | --- | --- |
//! | [`zones`] | the zone state machine: states, write pointers, limits, random write areas | the drive's zone table, by `zones_oracle`; [`host`] builds on it |
//! | [`host`] | what a host knows: how each command must end, and what blocks hold | completions, states and data of a drive |
//! | [`blocks`] | NAND flash, block by block: what is programmed, what may be erased | the block log and the erase counts of a drive |
//! | [`disk`] | what a medium can hold when its process or its machine ends | what a store makes of it |
//! | [`ends`] | when a process or its machine can end | what is left of the host's work, when it is opened again |
//! | [`served`] | commands that were submitted | completions: each command has one |
//!
//! An oracle panics if something is wrong, and the message says with which zone, block or
//! command. It draws nothing and prints no seed: whoever runs it knows how to repeat the run.

pub mod blocks;
pub mod disk;
pub mod ends;
pub mod host;
mod owners;
mod report;
pub mod served;
pub mod zones;
