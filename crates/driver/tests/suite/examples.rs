//! The examples are run, so that they stay right.

#![expect(
    clippy::duplicate_mod,
    reason = "each example has the same module beside it"
)]

#[expect(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../examples/append_log.rs"]
mod append_log;
#[expect(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../examples/copy_zone.rs"]
mod copy_zone;
#[expect(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../examples/hello_zone.rs"]
mod hello_zone;
#[expect(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../examples/polling_reader.rs"]
mod polling_reader;

use zonelab_device::ZoneId;

use crate::emulated::Target;

#[test]
fn examples_run_on_an_emulated_drive() {
    hello_zone::common::on_emulated(hello_zone::hello).unwrap();
    append_log::common::on_emulated(append_log::log).unwrap();
    copy_zone::common::on_emulated(copy_zone::copy).unwrap();
    polling_reader::common::on_emulated(polling_reader::read).unwrap();
}

/// On a drive at an address: each leaves what the next needs, and nothing is reset unasked.
#[test]
fn examples_run_on_a_drive_over_tcp() {
    let target = Target::start();
    let url = target.url();
    let (none, first) = ((None, false), (Some(ZoneId(0)), false));
    hello_zone::common::on_real(&url, none, hello_zone::hello).unwrap();
    append_log::common::on_real(&url, none, append_log::log).unwrap();
    // The first fills zone 0 and copies it to zone 1; the others copy it until no zone is empty.
    copy_zone::common::on_real(&url, none, copy_zone::copy).unwrap();
    polling_reader::common::on_real(&url, first, polling_reader::read).unwrap();
    for _ in 2..6 {
        copy_zone::common::on_real(&url, first, copy_zone::copy).unwrap();
    }
    let failure = copy_zone::common::on_real(&url, first, copy_zone::copy).unwrap_err();
    let why = format!("{failure:?}");
    assert!(why.contains("--overwrite"), "{why}");
    copy_zone::common::on_real(&url, (first.0, true), copy_zone::copy).unwrap();
}
