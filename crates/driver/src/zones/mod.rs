//! Zones as values: handles whose write pointer and state types and checks keep honest.
//!
//! A [`QueuePair`](zonelab_device::QueuePair) takes any command at any time, and the drive
//! says what was wrong with it. Programs that keep data in zones want less: a zone that
//! nobody else in the program writes to, whose write pointer they need not count, and that
//! they cannot write to when it is full. That is a [`Zone`], of a [`ZonedNamespace`] on any
//! queue pair.
//!
//! ```
//! use zonelab_device::{Buf, QueuePair, ZoneId};
//! use zonelab_driver::zones::{ZoneError, ZonedNamespace};
//!
//! /// Empties zone 3, writes a block, and reads it again.
//! fn hello<Q: QueuePair>(namespace: &ZonedNamespace<Q>) -> Result<(), ZoneError> {
//!     let mut zone = namespace.zone(ZoneId(3))?.reset()?.open()?;
//!     let block = namespace.lba_bytes() as usize;
//!     let written = zone.write(Buf::zeroed(block))?;
//!     let read = zone.read(written.lba, Buf::zeroed(block))?;
//!     assert_eq!(read, written.data);
//!     zone.finish()?;
//!     Ok(())
//! }
//! ```
//!
//! * **State is a type.** [`Empty`], [`Open`], [`Closed`], [`Full`], [`ReadOnly`], [`Offline`]:
//!   what a state does not allow is not there. A move consumes the handle and gives one of
//!   the next state.
//! * **No address to write to.** A write goes to the write pointer, which the handle counts. What
//!   does not fit is refused before it is sent, and the buffer comes back ([`Refused`]).
//! * **One handle for each zone.** The namespace hands a zone out once; dropping the handle
//!   gives it back.
//! * **Errors are not guessed at.** After a command that failed nobody but the drive knows how
//!   far it got. The handle then refuses all but [`Zone::refresh`], which asks the drive.
//! * **Many appends at once.** An [`Appender`] has them in flight, and checks the addresses that
//!   the drive assigned.
//!
//! * **Random write areas are a state of their own.** [`OpenRandom`] has `write_at` and `commit`
//!   instead of `write`: its write pointer moves by commits alone, as the drive's does.
//!
//! The checks hold for what goes through one [`ZonedNamespace`]. Another host, or another queue of
//! this program, may still change a zone; the handle finds out when the drive refuses a command, or
//! when an append lands where it should not.
//!
//! The module needs no more than `zonelab-device` and `zonelab-nvme`. Commands wait by polling, with
//! a hook in between ([`Settings::pause`]) so that a queue pair in virtual time can go on. The
//! calls that write allocate nothing. Why it is as it is:
//! `docs/decisions/0032-zone-handles.md`.

mod append;
mod engine;
mod error;
mod namespace;
mod random;
mod report;
mod state;
mod zone;

pub use append::{AppendFailed, AppendId, Appended, Appender};
pub use error::{MoveFailed, Refused, ZoneError};
pub use namespace::{Pause, Settings, ZonedNamespace, driving};
pub use report::{Report, ZoneInfo};
pub use state::{
    AnyZone, Closed, ClosedRandom, Empty, Finishable, Full, Offline, Open, OpenRandom, ReadOnly,
    Readable, Resettable, State, Unknown,
};
pub use zone::{Written, Zone};
