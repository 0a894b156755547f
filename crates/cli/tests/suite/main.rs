//! The `zonelab` command as scripts see it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod bench;
mod bundle;
mod calibrate;
mod characterize;
mod command;
mod conclusions;
mod conditions;
mod counted;
mod doctor;
mod documented;
mod experiments;
mod fault;
mod field;
mod fio_against;
mod fio_blocks;
mod fio_devices;
mod fio_jobs;
mod fio_words;
mod fit;
mod ftl;
mod idle;
mod idle_held;
mod idle_owed;
mod inputs_used;
mod judged;
mod keys;
mod kv;
mod mistakes;
mod namespaces;
mod nvme;
mod nvme_commands;
mod nvme_shape;
mod pages;
mod pipes;
mod repeats;
mod reservations;
mod result_directories;
mod run_devices;
mod run_ftl;
mod run_pcie;
mod schemas;
mod scratch;
mod search;
mod serve_ftl;
mod serve_linux;
mod serve_sandbox;
mod serve_ulimits;
mod serve_web;
mod served;
mod shells;
mod store;
mod sweep;
mod traces;
