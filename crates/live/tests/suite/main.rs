//! A served drive, seen over HTTP.

mod drive;
mod exposition;
mod http;
mod kill_points;
mod layer;
mod made;
mod metrics;
mod state;
