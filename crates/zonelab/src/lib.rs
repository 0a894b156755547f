//! Emulated zoned (ZNS) SSDs, the host software that uses them, and drives that fail on
//! demand for tests.
//!
//! A drive is a state machine without threads, clock or I/O: in virtual time it is a
//! simulator, an hour of a drive in seconds and the same bytes on every machine; in real
//! time, behind an NVMe/TCP port, it is a drive that Linux connects to.
//!
//! ```
//! use zonelab::device::{Command, Lba, Nanos, Op, QueueId, Tag};
//! use zonelab::ssd::{Drive, DriveModel, profile};
//!
//! let profile = profile::builtin("zn540").expect("it is built in");
//! let mut drive = Drive::new(&profile.config);
//! let append = Command::new(Op::Append { zslba: Lba(0), nlb: 1 });
//! drive.submit(Nanos::ZERO, QueueId(0), Tag(0), append, None).expect("nothing is in flight");
//! let mut done = Vec::new();
//! while done.is_empty() {
//!     let at = drive.next_event().expect("the append is under way");
//!     drive.advance(at, &mut done);
//! }
//! assert_eq!((done[0].result, done[0].status.is_success()), (0, true));
//! ```
//!
//! | module | what | feature |
//! | --- | --- | --- |
//! | [`testing`] | drives for the tests of one's own storage engine: losses of power at every command, media faults | |
//! | [`ssd`] | the emulated drive: profiles, flash, zones, policies, faults | |
//! | [`host`] | reactor, clocks, schedulers, workloads, fio job files, statistics: on any device | |
//! | [`sim`] | the emulated drive as such a device, with what using it costs a host | |
//! | [`device`] | what both sides of a queue pair agree on: commands, buffers, completions | |
//! | [`nvme`] | wire layouts of NVMe, ZNS and NVMe/TCP, and status codes | |
//! | [`config`] | input files with units, and errors with lines | |
//! | `ftl` | a translation layer: random writes on zones | `ftl` |
//! | `kv` | a key-value store on zones | `kv` |
//! | `driver` | the same queue pairs to real drives: NVMe/TCP, PCIe, Linux | `driver` |
//! | `target`, `auth` | a drive behind an NVMe controller, over NVMe/TCP, with authentication | `target` |
//! | `lab` | experiments, comparison with published results, figures | `lab` |
//!
//! The feature `full` is all of them. The command `zonelab` is the package `zonelab-cli`.
//! The directory `examples` of this package has a program for each way to use it.

pub mod testing;

#[cfg(feature = "target")]
pub use zonelab_auth as auth;
pub use zonelab_config as config;
pub use zonelab_device as device;
#[cfg(feature = "driver")]
pub use zonelab_driver as driver;
#[cfg(feature = "ftl")]
pub use zonelab_ftl as ftl;
pub use zonelab_host as host;
#[cfg(feature = "kv")]
pub use zonelab_kv as kv;
pub use zonelab_nvme as nvme;
pub use zonelab_sim as sim;
pub use zonelab_ssd as ssd;
#[cfg(feature = "target")]
pub use zonelab_target as target;

/// Experiments, comparison with published results, figures, and what is above them: sweeps and
/// searches, the report, job files of fio.
#[cfg(feature = "lab")]
pub mod lab {
    pub use zonelab_fronts::fio;
    pub use zonelab_lab::*;
    pub use zonelab_report as report;
    pub use zonelab_search::{calibrate, characterize, evaluations, explore, search, sweep};

    /// Key-value workloads: as jobs, and by themselves.
    pub mod kv {
        pub use zonelab_fronts::kv::*;
        pub use zonelab_lab::kv::*;
    }
}
