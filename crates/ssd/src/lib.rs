//! A configurable zoned SSD as a sans-I/O state machine.
//!
//! [`Drive`] takes commands and gives completions. It has no thread, no clock
//! and no I/O of its own: its owner says what time it is, and asks when
//! something will happen next. The same type is a simulator under a clock that
//! jumps, and a live device under one that ticks.
//!
//! ```
//! use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag};
//! use zonelab_ssd::{Drive, DriveModel, profile};
//!
//! let profile = profile::builtin("confznspp").expect("it is built in");
//! let mut drive = Drive::new(&profile.config);
//! let write = Command::new(Op::Write { slba: Lba(0), nlb: 4 }); // one page of 16 KiB
//! drive.submit(Nanos::ZERO, QueueId(0), Tag(7), write, None).expect("nothing is in flight");
//!
//! let mut done = Vec::new();
//! while let Some(at) = drive.next_event() {
//!     drive.advance(at, &mut done);
//! }
//! // 25 us on the channel, 700 us on the plane.
//! assert_eq!(done[0].at, Nanos::from_us(725));
//! ```
//!
//! # Where things are
//!
//! | module | what |
//! | --- | --- |
//! | [`profile`] | drives as TOML files, defaults, checks, what follows from them |
//! | [`config`] | the resolved configuration that the model is built from |
//! | [`zones`] | the zone state machine: states, limits, write pointers, random write areas, reports |
//! | [`mapping`] | which flash a zone stands on: direct, lazy, or assembled from elements |
//! | [`layout`] | pages and blocks of a zone on channels, dies and planes |
//! | [`flash`] | the state of every erase block; block ranges to flash operations |
//! | `conventional` | namespaces without zones: a log, and its garbage collection |
//! | `copy` | Copy, and what waits behind it |
//! | `background` | zone finish and zone reset: fills and erasures beside host I/O |
//! | [`media`] | who gets a die and a channel when |
//! | [`front`] | firmware cores and host link |
//! | `buffer` | the write-back buffer: admission, drain, flush |
//! | `zrwa` | commands on random write areas |
//! | `changed` | zones that changed by themselves, for the Changed Zone List |
//! | [`account`] | busy time by cause, bytes, write amplification |
//! | [`record`] | what happened, in order of time: zone states, ... |
//! | [`counterfactual`] | what a command would have taken without something it waited for |
//! | [`data`] | written data, if the drive keeps it |
//! | [`contents`] | the same, and the zones, where somebody else keeps them |
//! | [`stored`] | drives whose contents are kept elsewhere, and outlive them |
//! | [`policy`] | decisions of the drive from outside of this crate: resets, allocation |
//! | `power` | loss of power: what is left |
//! | `interface` | [`DriveModel`]: how a drive is run; [`FaultTarget`]: what faults are injected into |
//! | [`faults`] | drives that fail on demand |
//! | [`snapshot`] | a drive's state as bytes |
//! | [`slab`] | slots that are reused |
//!
//! # What is not modelled yet
//!
//! Copies within a conventional namespace. Conventional
//! zones: NVMe has none (decision 18).

pub mod account;
mod background;
mod buffer;
mod changed;
pub mod config;
pub mod contents;
mod conventional;
mod copy;
pub mod counterfactual;
pub mod data;
mod draw;
mod drive;
pub mod event;
pub mod faults;
pub mod flash;
pub mod front;
mod interface;
pub mod layout;
pub mod mapping;
pub mod media;
pub mod policy;
mod power;
pub mod profile;
mod ranges;
pub mod record;
pub mod slab;
pub mod snapshot;
pub mod stored;
mod window;
pub mod zones;
mod zrwa;

pub use background::{Freed, ResetState, ZoneCounts};
pub use conventional::{
    LogHealth, PLACEMENT_EVENT_TYPES, PLACEMENT_EVENTS, PlacementEvent, PlacementEventKind,
    PlacementHandle, PlacementStatistics, PlacementView,
};
pub use drive::{Control, ControlError, Drive};
pub use interface::{DriveModel, FaultTarget};
pub use power::{Lost, PowerLoss};
