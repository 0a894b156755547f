//! A host in memory against a subsystem: no transport, a clock that jumps.

mod activity;
mod admin;
mod authentication;
mod connecting;
mod events;
mod faults;
mod garbage;
mod host;
mod hosts;
mod identify;
mod io;
mod lifetime;
mod media;
mod past;
mod placement;
mod protocol;
mod reservation_rules;
mod reservations;
mod tenants;
