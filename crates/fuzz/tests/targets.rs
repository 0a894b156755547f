//! Every target over its corpus and over seeded inputs.
//!
//! `ZONELAB_FUZZ_RUNS` sets the number of seeded inputs of each target,
//! `ZONELAB_FUZZ_SEED` the first seed.

use std::io::Write as _;

use zonelab_fuzz::harness::{self, Extent};
use zonelab_fuzz::target;

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
    )
}

/// Runs a target and says on how much. Written past the capture of test
/// output: a run that passed on nothing should not look like one that passed.
fn run(name: &str) {
    let target = target(name).expect("it has a row in TARGETS");
    let files = harness::corpus(&harness::corpus_directory(target)).expect("it can be listed");
    let corpus = harness::run_files(target, &files).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(corpus > 0 || name == "smoke", "{name} has no corpus");
    let extent = Extent {
        first: number_from("ZONELAB_FUZZ_SEED").unwrap_or(1),
        runs: Some(number_from("ZONELAB_FUZZ_RUNS").unwrap_or(target.runs)),
        seconds: None,
    };
    let runs = harness::run_seeds(target, extent).unwrap_or_else(|failure| panic!("{failure}"));
    let first = extent.first;
    writeln!(
        std::io::stderr(),
        "fuzz {name}: {corpus} corpus inputs, {runs} seeds from {first}"
    )
    .expect("standard error takes a line");
}

#[test]
fn smoke() {
    run("smoke");
}

#[test]
fn units() {
    run("units");
}

#[test]
fn nvme_entry() {
    run("nvme_entry");
}

#[test]
fn pdu_stream() {
    run("pdu_stream");
}

#[test]
fn answers() {
    run("answers");
}

#[test]
fn admin_commands() {
    run("admin_commands");
}

#[test]
fn io_commands() {
    run("io_commands");
}

#[test]
fn profile() {
    run("profile");
}

#[test]
fn experiment() {
    run("experiment");
}

#[test]
fn fio_iolog() {
    run("fio_iolog");
}

#[test]
fn fio_blkparse() {
    run("fio_blkparse");
}

#[test]
fn fio_words() {
    run("fio_words");
}

#[test]
fn fio() {
    run("fio");
}

#[test]
fn drive() {
    run("drive");
}

#[test]
fn faults() {
    run("faults");
}

#[test]
fn snapshot() {
    run("snapshot");
}

#[test]
fn bundle() {
    run("bundle");
}

#[test]
fn store() {
    run("store");
}

#[test]
fn kv() {
    run("kv");
}

#[test]
fn system() {
    run("system");
}

#[test]
fn pcie_device() {
    run("pcie_device");
}
