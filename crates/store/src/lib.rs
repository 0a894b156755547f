//! Contents of an emulated drive in a file: sparse data and zone state that
//! outlive the process, however it ends.
//!
//! | module | what |
//! | --- | --- |
//! | [`medium`] | where bytes go: a file, or what a test puts in its place |
//! | `layout` | where what is in the file, and the bytes of each record |
//! | `create` | making a file |
//! | `store` | writing: [`Store`], which a drive keeps its contents in |
//! | `open` | reading: what an earlier drive left, of which nothing is believed |
//! | `records` | which records of zones count |
//! | `redo` | writes in place that may not have come to their end |
//! | `logs` | which blocks of conventional namespaces are where |
//! | `reservations` | reservations of hosts |
//! | `overlay` | what is written to a store that is only looked at |
//! | `sums` | checksums of blocks |
//! | [`check`] | looking at a store without a drive, and repairing it |
//!
//! # What the file survives
//!
//! *The end of the process, at any point* (SIGKILL, a crash). What
//! was written is in the page cache, in the order in which it was written, so
//! nothing has to be synchronised for that. Each write of the file may be torn
//! at any byte:
//!
//! * data behind the write pointer of the last whole record of its zone is void;
//! * records have slots, each with a sequence number and a checksum, that are
//!   written in turn, so that a torn one falls back on its predecessor;
//! * what is written over in place (random write areas, marks of blocks that
//!   were forgotten) is written to a redo area first.
//!
//! *The end of the machine*: the drive is as the last Flush that completed left
//! it. A Flush synchronises the file and then writes the number of the last
//! record that it covers. When the machine has been started since (Linux names
//! each start), records with higher numbers are void. Nothing that they would
//! fall back on is destroyed before the next Flush, or a synchronisation of the
//! store's own: the record of each zone that is durable has a slot to itself,
//! and the data of a zone that was reset stays until the record of the reset
//! is durable.
//!
//! *Bits that rot*: records and blocks have checksums. A block that is not what
//! was written cannot be read; a record that a Flush covers and that is damaged
//! is refused.

pub mod check;
mod create;
mod layout;
mod logs;
pub mod medium;
mod notice;
mod open;
mod overlay;
mod records;
mod redo;
mod reservations;
mod store;
mod sums;

pub use create::{Options, create, file};
pub use medium::{File, Medium};
pub use notice::Notice;
pub use open::{Found, LostRecord, OpenError, open};
pub use overlay::Overlay;
pub use store::Store;
