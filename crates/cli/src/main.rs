//! The `zonelab` command.
fn main() {}
