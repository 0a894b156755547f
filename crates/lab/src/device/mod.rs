//! Devices that jobs run on: emulated drives under either clock, and any other
//! that implements [`Site`].
//!
//! | module | what |
//! | --- | --- |
//! | `site` | what a run needs of a device, and under which clock it runs |
//! | `threads` | jobs in threads of their own, in real time |
//! | `watch` | ends waits in real time when there is nothing left to wait for |
//! | `zones` | what the zones of a device hold |

pub(crate) mod site;
pub(crate) mod threads;
pub(crate) mod watch;
pub(crate) mod zones;

pub use site::{QueueOf, Site};
pub use threads::{NoPart, Part};
pub use watch::Watched;
pub use zones::{ReportedZone, report_zones, saved_zones};
