//! What a served drive does, for people and for Prometheus; and the layer that it may have.
//!
//! | module | what | what it knows |
//! | --- | --- | --- |
//! | [`layer`] | a translation layer between hosts and the drive | [`zonelab_ftl`] |
//! | [`snapshot`] | numbers of a drive and its server at one time | no thread, no socket |
//! | [`look`] | how they are taken from a running server | [`zonelab_target::server::LoopHandle`] |
//! | [`metrics`] | the numbers in the text format of Prometheus | plain numbers only |
//! | [`state`] | the numbers as JSON, for the page | plain numbers only |
//! | [`page`] | the page | nothing of a drive |
//! | [`http`] | GET and HEAD over HTTP/1.1, within bounds | nothing of a drive |
//! | [`web`] | which path gives what | all of the above |
//!
//! The loop that serves the drive copies plain arrays, in pieces; everything
//! else happens in the threads of [`http`], and only if somebody asks.

pub mod http;
pub mod layer;
pub mod look;
pub mod metrics;
pub mod page;
pub mod snapshot;
pub mod state;
pub mod web;
