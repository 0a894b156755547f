//! Profiles: drives as TOML files.
