//! Contents of an emulated drive in a file: sparse data and zone state that
//! outlive the process, however it ends.
//!
//! | module | what |
//! | --- | --- |
//! | [`medium`] | where bytes go: a file, or what a test puts in its place |
//! | `layout` | where what is in the file, and the bytes of each record |
//! | `store` | writing: [`Store`], which a drive keeps its contents in |
//! | `open` | reading: what an earlier drive left, of which nothing is believed |
//! | `logs` | which blocks of conventional namespaces are where |
//!
//! # What the file survives
//!
//! *The end of the process, at any point* (SIGKILL, a crash, a full disk). What
//! was written is in the page cache, in the order in which it was written, so
//! nothing has to be synchronised for that. Each write of the file may be torn
//! at any byte:
//!
//! * data behind the write pointer of the last whole record of its zone is void;
//! * a record has two slots, each with a sequence number and a checksum, that are
//!   written in turn, so that a torn one falls back on its predecessor;
//! * what is written over in place (random write areas, marks of blocks that
//!   were forgotten) is written to a redo area first.
//!
//! *The end of the machine*: what the last Flush or orderly end covered, since
//! those synchronise the file. What came later may be there in part, in any
//! order.
//!
//! Data has no checksum of its own: bits that rot in it are for the file system.
//! Records that are damaged are found.

mod layout;
mod logs;
pub mod medium;
mod open;
mod store;

pub use medium::{File, Medium};
pub use open::{Found, OpenError, create, open};
pub use store::Store;
