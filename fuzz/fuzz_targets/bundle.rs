//! `bundle` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::bundle::run(data));
