//! A configurable zoned SSD as a sans-I/O state machine.
//!
//! [`Drive`] takes commands and gives completions. It has no thread, no clock
//! and no I/O of its own: its owner says what time it is, and asks when
//! something will happen next. The same type is a simulator under a clock that
//! jumps, and a live device under one that ticks.
//!
//! ```
//! use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag};
//! use zonelab_ssd::{Drive, profile};
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
//! | [`zones`] | the zone state machine: states, limits, write pointers, reports |
//! | [`mapping`] | which flash a zone stands on: direct, lazy |
//! | [`layout`] | pages and blocks of a zone on channels, dies and planes |
//! | [`flash`] | what is programmed, what must be erased; commands to flash operations |
//! | `background` | zone finish and zone reset: fills and erasures beside host I/O |
//! | [`media`] | who gets a die and a channel when |
//! | [`front`] | firmware cores and host link |
//! | `buffer` | the write-back buffer: admission, drain, flush |
//! | [`account`] | busy time by cause, bytes, write amplification |
//! | [`record`] | what happened, in order of time: zone states, ... |
//! | [`data`] | written data, if the drive keeps it |
//! | `power` | loss of power: what is left |
//! | [`faults`] | drives that fail on demand |
//! | [`snapshot`] | a drive's state as bytes |

//!
//! # What is not modelled yet
//!
//! Random write areas (ZRWA), simple copy, and conventional zones.

pub mod account;
mod background;
mod buffer;
pub mod config;
pub mod data;
mod draw;
mod drive;
pub mod event;
pub mod faults;
pub mod flash;
pub mod front;
pub mod layout;
pub mod mapping;
pub mod media;
mod power;
pub mod profile;
pub mod record;
mod slab;
pub mod snapshot;
pub mod zones;

pub use drive::{Control, ControlError, Drive};
pub use power::{Lost, PowerLoss};
