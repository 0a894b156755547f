//! The interface that every device and every host program share.
//!
//! Host software (workloads, schedulers, the FTL, key-value stores) is written
//! once, against [`QueuePair`]. Behind it stands the emulated drive in virtual
//! or real time, an NVMe/TCP target, a PCIe drive or a Linux device; the
//! program cannot tell, and an experiment only names its device.
//!
//! * [`Command`] and [`Op`]: what to do, parsed, with plain counts.
//! * [`Completion`]: how it ended, and what it [`Found`] to do. [`Rejected`]: it was not even taken.
//! * [`Device`]: the other side of its queue pairs, for the reactor that runs
//!   programs: when something may happen, and how to wait for it.
//! * [`Buf`]: data that is handed over, never shared; [`BufMemory`]: where a driver keeps it.
//! * [`Nanos`]: time; [`Lba`], [`ZoneId`], [`QueueId`], [`Tag`]: things that
//!   are numbers but must not be confused.
//!
//! No logic and no I/O lives here; the one clock ([`Monotonic`]) is here because
//! a device in real time and the reactor that drives it must read the same one.
//! Why it is a crate of its own: `docs/decisions/0001-device-interface.md`.

mod buf;
mod clock;
mod command;
mod device;
mod found;
mod namespaces;
mod queue;
mod time;

pub use buf::{Buf, BufMemory};
pub use clock::Monotonic;
pub use command::{Command, Lba, NamespaceId, Op, QueueId, Tag, ZoneId};
pub use device::{Device, DeviceQueue, Modelled};
pub use found::Found;
pub use namespaces::NoNamespace;
pub use queue::{
    Completion, CopyLimits, DeviceInfo, NamespaceInfo, QueuePair, RejectReason, Rejected,
    ZonedInfo, ZrwaInfo,
};
pub use time::Nanos;
