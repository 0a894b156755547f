//! Wire layouts of NVMe: what travels between a host and a drive, and nothing else.
//!
//! # What is here
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | [`queue`] | submission and completion queue entries, opcodes, PRPs and SGL descriptors | base 2.0, section 3.3.3 |
//! | [`command`] | commands as plain structs, and to and from their entries | NVM 1.0, ZNS 1.1, base 2.0 |
//! | [`status`] | every status code with its name | base 2.0, ZNS 1.1 |
//! | [`identify`] | the data structures that Identify returns | base 2.0, NVM 1.0, ZNS 1.1 |
//! | [`zns`] | zone descriptors, zone reports, the changed zone list | ZNS 1.1 |
//! | [`log`] | log pages: errors, health, firmware, effects, discovery | base 2.0, section 5.16 |
//! | [`placement`] | flexible data placement: log pages, features, reclaim unit handles | base 2.1 |
//! | [`reservation`] | reservations: data of commands, notification log page, features | base 2.0, section 8.19 |
//! | [`feature`] | features and the layouts of their values | base 2.0, section 5.27 |
//! | [`event`] | asynchronous events | base 2.0, section 5.2; ZNS 1.1 |
//! | [`property`] | controller properties, which are registers on PCIe | base 2.0, section 3.1.3 |
//! | [`fabrics`] | fabrics commands, the data and the response of Connect | base 2.0, section 6 |
//! | [`auth`] | messages and secrets of DH-HMAC-CHAP | base 2.0, section 8.13.5 |
//! | [`tcp`] | protocol data units of NVMe/TCP | NVMe/TCP 1.0 |
//!
//! # What is not
//!
//! * Behaviour: no state machine, no check against a namespace, no I/O. The
//!   drive lives in `zonelab-ssd`.
//! * Properties that only PCIe controllers have, beyond those of the admin
//!   queue. Digests of NVMe/TCP: where they lie is here, CRC32C is not.
//! * Parsed forms of commands other than those in [`command`] and [`fabrics`];
//!   their opcodes are named. Log pages and features of which only the number
//!   is named in [`log`] and [`feature`].
//! * Hashes, exponents and the transformation of secrets of DH-HMAC-CHAP.
//! * The upper bits of storage and reference tags (command dwords 2 and 3) that
//!   only formats with 32-bit and 64-bit guards use.
//! * Fields that are younger than the specifications above: they read as
//!   reserved.
//!
//! # How to read it
//!
//! * A struct that lies in memory is `#[repr(C)]`, has little-endian fields of
//!   alignment 1 and the zerocopy derives: any bytes of the right length are a
//!   valid value, on any host, at any address. Its size is asserted right after
//!   it. Make one with `FromZeros::new_zeroed` or from bytes with
//!   `FromBytes::read_from_bytes`; [`zerocopy`] is re-exported.
//! * Fields have the abbreviation that the specification gives them (`nsze`,
//!   `mdts`, `zslba`), so that its index is the index of this crate.
//! * A zero-based count ends in `_z`: `mar_z == 13` means fourteen. Nothing in
//!   [`command`] is zero based; the conversion happens there.
//! * Code points are open enumerations ([`open_enum!`]): a number without a
//!   name is data, not an error.
//! * Bit fields are declared with the `hi:lo` numbers of the specification's
//!   tables, by a macro of this crate and not by a bit field crate. Three
//!   reasons: the declaration can be held against the table; overlapping
//!   fields do not compile; and a setter cannot panic (it drops bits that do
//!   not fit, and the builders in [`command`] check before they call one).
//! * Nothing here panics, whatever the bytes.
//!
//! ```
//! use zonelab_nvme::command::{IoCommand, ZoneAppend};
//! use zonelab_nvme::Status;
//!
//! let append = ZoneAppend::new(1, 0x8000, 4); // namespace 1, zone at 8000h, 4 blocks
//! let entry = append.to_entry()?.with_cid(7);
//! assert_eq!(entry.cdw12.get(), 3); // NLB is zero based on the wire
//! assert_eq!(IoCommand::parse(&entry), Ok(IoCommand::ZoneAppend(append)));
//!
//! let unknown = zonelab_nvme::queue::SubmissionEntry::new(0xc0);
//! assert_eq!(IoCommand::parse(&unknown), Err(Status::INVALID_OPCODE));
//! # Ok::<(), zonelab_nvme::command::OutOfRange>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

#[macro_use]
mod bits;
mod open_enum;
mod reserved;

pub mod auth;
pub mod command;
pub mod event;
pub mod fabrics;
pub mod feature;
pub mod identify;
pub mod log;
pub mod placement;
pub mod property;
pub mod queue;
pub mod reservation;
pub mod status;
pub mod tcp;
pub mod zns;

pub use reserved::Reserved;
pub use status::Status;
/// The crate whose derives the layouts carry, for its conversion traits.
pub use zerocopy;
