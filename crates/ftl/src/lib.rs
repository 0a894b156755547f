//! A host flash translation layer: random writes on a drive of zones.
//!
//! Programs see a conventional namespace; the drive sees zones that are written in
//! order and reset. What programs flushed survives a loss of power at any moment.
//!
//! | module | what |
//! | --- | --- |
//! | [`device`] | the conventional namespace as a device |
//! | [`mounting`] | a mount that is under way |
//! | [`part`] | the same for further threads |
//! | [`queue`] | its queue pairs: what each write and read takes |
//! | `upkeep` | commits, footers, collecting, checkpoints |
//! | [`durable`] | anchors, journal and images of the map, and what a mount makes of them |
//! | [`mod@format`] | blocks of metadata, byte by byte |
//! | [`map`] | where each logical block is |
//! | `segments` | a map of which a share is in memory |
//! | `census` | what a mount finds in the data zones |
//! | `changes` | changes of the map, in the order of the journal |
//! | `epochs` | which reads may still be under way to a zone |
//! | [`zones`] | the data zones |
//! | [`victims`] | which zone the collector empties next |
//! | [`shape`] | which zones of the drive are for what |
//! | [`settings`] | what a user decides |
//! | [`media`] | commands on zones |
//! | [`durable::look`] | what a mount would find, without a write |
//! | [`durable::repair`] | making what is damaged mountable again |
//! | [`check`] | whether what is on a drive fits together |
//! | [`write_log`] | what was written, for tools that replay it |

pub mod blocks;
mod census;
mod changes;
pub mod check;
mod core;
pub mod device;
pub mod durable;
mod epochs;
pub mod error;
pub mod format;
mod frontier;
pub mod map;
pub mod media;
pub mod metrics;
mod mount;
pub mod mounting;
pub mod part;
pub mod queue;
mod segments;
pub mod settings;
pub mod shape;
mod sync;
mod turns;
mod upkeep;
pub mod victims;
pub mod write_log;
pub mod zones;

pub use blocks::{DataZone, LogicalBlock, MapChange, PhysicalBlock};
pub use device::FtlDevice;
pub use durable::{Durable, Facts, Look, repair};
pub use error::FtlError;
pub use map::ForwardMap;
pub use media::Media;
pub use metrics::Metrics;
pub use mount::Start;
pub use mounting::{FtlMount, Lent};
pub use part::{FtlPart, FtlShare};
pub use queue::FtlQueue;
pub use settings::{FormatSettings, FtlSettings, Placement, map_memory_bytes};
pub use shape::{ImageSlot, Shape};
pub use victims::{OwnVictims, Policy, VictimCandidate, VictimPolicy};
pub use write_log::WriteLog;
