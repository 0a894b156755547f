//! Devices that jobs run on: emulated drives under either clock, and any other
//! that implements [`Site`].
//!
//! | module | what |
//! | --- | --- |
//! | `alone` | one program by itself, before and between the jobs |
//! | `over_ftl` | emulated drives behind the flash translation layer, in virtual time |
//! | `over_pcie` | emulated drives behind the driver for PCIe, in virtual time |
//! | `owner` | whoever owns an emulated drive that jobs run on |
//! | `pin`, `no_pin` | processors that threads run on; in a browser there is no choice |
//! | `reached` | emulated drives in virtual time, as jobs of experiments reach them |
//! | `site` | what a run needs of a device, and under which clock it runs |
//! | `threads` | jobs in threads of their own, in real time |
//! | `watch` | ends waits in real time when there is nothing left to wait for |
//! | `zone_text` | zones of a report as text |
//! | `zones` | what the zones of a device hold |

mod alone;
pub(crate) mod over_ftl;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod over_pcie;
mod owner;
#[cfg(not(target_family = "wasm"))]
mod pin;
#[cfg(target_family = "wasm")]
#[path = "no_pin.rs"]
mod pin;
mod reached;
mod site;
pub mod threads;
mod watch;
mod zone_text;
pub(crate) mod zones;

pub use alone::run_alone;
#[cfg(not(target_family = "wasm"))]
pub use over_pcie::{OverPcie, endpoint_of};
pub use owner::Owner;
#[cfg(not(target_family = "wasm"))]
pub use pin::processors;
pub use reached::{FtlWork, Reached};
pub use site::{InRealTime, InVirtualTime, QueueOf, Site};
pub use threads::{NoPart, Part};
pub use watch::Watched;
pub use zone_text::{state_name, zone_count_line, zone_line, zone_type_name};
pub use zones::{ReportedZone, declare, report_zones, runs_of, table_of, zones_of};
