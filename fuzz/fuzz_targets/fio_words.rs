//! `fio_words` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::fio::run_words(data));
