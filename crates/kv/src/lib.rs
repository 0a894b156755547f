//! A key-value store on zones, and its workloads.
//!
//! A log-structured merge tree keeps its files in zones by how long they will
//! live, as `RocksDB` does on `ZenFS`. It runs over any queue pair, in virtual or in
//! real time, as [tasks](zonelab_host::tasks) on one thread.
//!
//! | module | what |
//! | --- | --- |
//! | [`content`] | bytes that are there, or only their number |
//! | [`files`] | files in zones, placed by lifetime |
//! | [`lsm`] | the tree: writes, queries, flushes, compactions |
//! | [`work`] | workloads: what clients do with the store |

pub mod content;
pub mod files;
pub mod lsm;
pub mod work;

pub use content::Content;
