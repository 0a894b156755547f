//! `pcie_device` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| zonelab_fuzz::pcie_device::run(data));
