//! `fio_blkparse` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::trace::run_blkparse(data));
