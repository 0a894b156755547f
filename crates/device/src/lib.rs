//! The interface that every device and every host program share.
//!
//! Host software (workloads, schedulers, the FTL, key-value stores) is written
//! once, against [`QueuePair`]. Behind it stands the emulated drive in virtual
//! or real time, an NVMe/TCP target, a PCIe drive or a Linux device; the
//! program cannot tell, and an experiment only names its device.
//!
//! * [`Command`] and [`Op`]: what to do, parsed, with plain counts.
//! * [`Completion`]: how it ended. [`Rejected`]: it was not even taken.
//! * [`Buf`]: data that is handed over, never shared.
//! * [`Nanos`]: time; [`Lba`], [`ZoneId`], [`QueueId`], [`Tag`]: things that
//!   are numbers but must not be confused.
//!
//! No logic, no clock, no I/O lives here. Why it is a crate of its own:
//! `docs/decisions/0001-device-interface.md`.

mod buf;
mod command;
mod queue;
mod time;

pub use buf::Buf;
pub use command::{Command, Lba, NamespaceId, Op, QueueId, Tag, ZoneId};
pub use queue::{
    Completion, CopyLimits, DeviceInfo, NamespaceInfo, QueuePair, RejectReason, Rejected,
    ZonedInfo, ZrwaInfo,
};
pub use time::Nanos;
