//! Targets that test the harness.

/// Passes.
pub fn smoke(data: &[u8]) {
    assert!(isize::try_from(data.len()).is_ok(), "no input is that long");
}

/// Fails.
///
/// # Panics
/// Always.
pub fn canary(data: &[u8]) {
    panic!(
        "the canary fails on every input, this time of {} bytes",
        data.len()
    );
}
