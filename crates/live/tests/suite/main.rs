//! A served drive, seen over HTTP.

mod drive;
mod exposition;
mod http;
mod metrics;
mod state;
