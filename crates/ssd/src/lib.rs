//! A configurable zoned SSD as a sans-I/O state machine.

pub mod account;
pub mod config;
pub mod event;
pub mod media;
pub mod profile;
pub mod zones;
