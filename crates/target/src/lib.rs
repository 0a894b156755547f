//! A live drive: the emulated drive behind an NVMe controller, over NVMe/TCP.
//!
//! Four parts, each without I/O of its own but the last:
//!
//! | module | what | what it knows |
//! | --- | --- | --- |
//! | [`reservations`] | who has reserved a namespace, and what that lets others do | the rules of NVMe for that |
//! | [`controller`] | a subsystem: controllers, queues, admin commands, log pages, features, events | NVMe, and no transport |
//! | [`tcp`] | one connection: bytes in, bytes out, commands between | PDUs, digests, R2T; no socket |
//! | [`server`] | sockets, the monotonic clock, one loop | when to wait and when to spin |
//!
//! A subsystem owns its drive. It takes submission queue entries, with the data
//! that the host sends, and gives completion queue entries, with the data that
//! the host gets; what it answers at once and what the drive answers later come
//! out of the same place, in order of time. So a test can hold a whole host,
//! target and drive in one thread under a clock that jumps, and the same code
//! serves a kernel under one that ticks.
//!
//! One thread does all of it but key exchanges, which take it too long. The work
//! of an operation is mostly that of its sockets, and a second thread between
//! sockets and drive would add a handover to each; nothing here has a lock.

mod buffers;
pub mod controller;
pub mod reservations;
pub mod server;
pub mod tcp;

pub use buffers::Buffers;
