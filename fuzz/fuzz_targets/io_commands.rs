//! `io_commands` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::commands::run_io(data));
