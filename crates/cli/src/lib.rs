//! zonelab: a laboratory for zoned (ZNS) SSDs.
//!
//! This is the umbrella crate: it re-exports the parts, and its binary is the
//! `zonelab` command.
//!
//! * [`ssd`]: the emulated drive, a sans-I/O state machine.
//! * [`host`]: reactor, clocks, workloads, statistics.
//! * [`lab`]: experiments, comparison with published results, figures.
//! * [`target`]: the drive behind an NVMe controller, over NVMe/TCP.
//! * [`device`]: the interface between host software and any device.
//! * [`nvme`]: wire layouts.
//! * [`auth`]: DH-HMAC-CHAP, the in-band authentication of both ends.
//! * [`driver`]: queue pairs to drives over NVMe/TCP.
//! * [`config`]: input files with line-numbered errors and units.

pub use zonelab_auth as auth;
pub use zonelab_config as config;
pub use zonelab_device as device;
pub use zonelab_driver as driver;
pub use zonelab_host as host;
pub use zonelab_lab as lab;
pub use zonelab_nvme as nvme;
pub use zonelab_ssd as ssd;
pub use zonelab_target as target;
