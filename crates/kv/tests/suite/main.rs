//! Files and the store of keys, on drives that lose power and fail.
//!
//! | module | what |
//! | --- | --- |
//! | `files` | files in zones, on drives that work |
//! | `files_faults` | files on devices that fail, are full, or are not what they should be |
//! | `files_model` | random operations of several clients on files |
//! | `files_placement` | where files go, and what that costs: rules of placement, limits, usage |
//! | `lsm_clients` | several clients of one store at the same time, with losses of power |
//! | `lsm_crash` | losses of power under the store |
//! | `lsm_faults` | the store on devices that fail or are full |
//! | `lsm_model` | the store against an ordered map, with and without data |
//! | `support` | small drives, and programs of tasks that lose power in the middle |
//! | `work` | workloads run on stores, on drives with and without data |

mod files;
mod files_faults;
mod files_model;
mod files_placement;
mod lsm_clients;
mod lsm_crash;
mod lsm_faults;
mod lsm_model;
mod support;
mod work;
