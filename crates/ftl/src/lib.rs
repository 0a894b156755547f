//! A host flash translation layer: random writes on a drive of zones.
//!
//! Programs see a conventional namespace; the drive sees zones that are written in
//! order and reset. What programs flushed survives a loss of power at any moment.
//!
//! | module | what |
//! | --- | --- |
//! | [`shape`] | which zones of the drive are for what |
//! | [`map`] | where each logical block is |
//! | [`settings`] | what a user decides |
//! | [`media`] | commands on zones |
//! | [`mod@format`] | metadata byte by byte |
//! | [`durable`] | metadata that survive a loss of power: anchors, journal, images |

pub mod blocks;
pub mod durable;
pub mod error;
pub mod format;
pub mod map;
pub mod media;
mod notify;
pub mod settings;
pub mod shape;
mod sync;

pub use blocks::{DataZone, LogicalBlock, MapChange, PhysicalBlock};
pub use durable::{Durable, Facts};
pub use error::FtlError;
pub use map::ForwardMap;
pub use media::Media;
pub use settings::FormatSettings;
pub use shape::{ImageSlot, Shape};
