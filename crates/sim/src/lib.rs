//! The emulated drive behind queue pairs in this process: a device like any
//! other to the programs of [`zonelab_host`], in virtual or in real time.
//!
//! | module | what |
//! | --- | --- |
//! | [`emulated`] | the drive, its queue pairs, and the block layer between them |
//! | [`hosted`] | the same costs in front of any other model: the driver for PCIe on a controller in memory |
//! | [`ports`] | the drive for several threads, in real time |
//! | [`costs`] | what using them costs a host, as occupancy of its cores and locks |
//! | [`stack`] | storage stacks by name, with what they cost |
//!
//! Real devices bring their costs with them; these are for hosts that are
//! modelled. So they are here, and not with the programs.
//!
//! ```
//! use zonelab_device::{Command, Lba, Nanos, Op};
//! use zonelab_host::tasks::{Tasks, TasksConfig};
//! use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
//! use zonelab_sim::{Emulated, HostCosts};
//! use zonelab_ssd::{Drive, profile};
//!
//! let profile = profile::builtin("confznspp").expect("it is built in");
//! let device = Emulated::new(Drive::new(&profile.config));
//! let queue = device.open_queue(8, HostCosts::FREE, Rng::new(1, 0));
//! let info = Drive::info_of(&profile.config);
//! let mut tasks = Tasks::new(&info, TasksConfig::default(), async |io| {
//!     io.work(Nanos::from_us(5)).await; // thinks for 5 us
//!     let write = Command::new(Op::Write { slba: Lba(0), nlb: 4 });
//!     io.run(write, None).await.map(|answer| answer.at)
//! });
//! let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
//! reactor.add(&mut tasks, queue, CoreId(0), Nanos::ZERO);
//! reactor.run();
//! assert_eq!(tasks.into_result(), Some(Ok(Nanos::from_us(730))));
//! ```

pub mod costs;
pub mod emulated;
pub mod hosted;
pub mod ports;
pub mod stack;

pub use costs::{BlockCosts, HostCosts};
pub use emulated::{Emulated, EmulatedQueue};
pub use hosted::{Hosted, HostedQueue};
pub use ports::{Port, PortDevice, PortQueue, SharedDrive};
