//! Flash timing: channels, and units that do array operations.
