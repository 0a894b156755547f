//! In a browser nobody chooses processors.

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn pin(_: &[u32]) -> Result<(), String> {
    Err("processors cannot be chosen in a browser".to_owned())
}
