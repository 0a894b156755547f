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

#[test]
fn hello_zone_says_hello() {
    hello_zone::common::on_emulated(hello_zone::hello).unwrap();
}

#[test]
fn append_log_finds_its_records() {
    append_log::common::on_emulated(append_log::log).unwrap();
}

#[test]
fn copy_zone_copies() {
    copy_zone::common::on_emulated(copy_zone::copy).unwrap();
}

#[test]
fn polling_reader_reads() {
    polling_reader::common::on_emulated(polling_reader::read).unwrap();
}
