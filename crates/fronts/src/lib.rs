//! Programs that ask for work in the words of others: job files of fio, and key-value
//! workloads.
//!
//! | module | what |
//! | --- | --- |
//! | [`fio`] | job files of fio, and results in its shape |
//! | [`kv`] | key-value workloads by themselves, and their results |
//!
//! What they run on is a device of [`zonelab_lab::device`].

pub mod fio;
pub mod kv;
