//! `pdu_stream` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::pdu_stream::run(data));
