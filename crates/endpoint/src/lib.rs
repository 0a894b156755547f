//! PCIe endpoints in ordinary memory: NVMe controllers for the driver's real code.
//!
//! The driver above has no other path for a model: it writes registers and doorbells,
//! fills rings, builds PRPs and sees phase tags, and what it does wrong, the endpoint
//! finds out.
//!
//! | type or module | what |
//! | --- | --- |
//! | [`Endpoint`] | the emulated drive with a whole controller (`target`) behind rings |
//! | [`Fault`] | what it does wrong if it is asked to |
//! | [`Immediate`] | a controller that completes everything at once, and does nothing else: for measuring the driver |
//! | [`prp`] | the way along PRPs, as the specification describes it |
//! | [`sgl`] | the same along SGLs |
//!
//! An endpoint knows the time that it is told: in virtual time that of the reactor, so
//! that a run is the same each time, in real time that of the monotonic clock.

mod clock;
mod controller;
mod endpoint;
mod fault;
mod immediate;
pub mod prp;
mod queues;
mod registers;
pub mod sgl;

pub use endpoint::{Endpoint, EndpointError, EndpointSettings};
pub use fault::{Fault, Stuck};
pub use immediate::Immediate;
