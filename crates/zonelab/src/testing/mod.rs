//! Drives for the tests of one's own storage engine, file system or database.
//!
//! A [`TestDrive`] is an emulated drive in the process of the test: no kernel module, no
//! root, no files, no waiting. Its time is virtual, so that an hour of the drive's is
//! milliseconds of the test's, and everything is drawn from a seed, so that a failure
//! comes again. It can be what tests otherwise never meet:
//!
//! * a drive that loses power while commands are under way, at any command
//!   ([`TestDrive::lose_power_in`]), or at each in turn ([`at_every_crash`]): writes that
//!   were not flushed are gone, from the end of each zone, as drives are allowed to lose
//!   them;
//! * a drive whose blocks cannot be read, whose zones become read-only or offline, that
//!   is slow, or does not answer ([`TestDrive::inject`]);
//! * a strict one: writes that are not at the write pointer, or open too many zones, end
//!   with the status that the specification has for it.
//!
//! ```
//! use zonelab::testing::{TestDrive, TestDriveError};
//! use zonelab::nvme::Status;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let drive = TestDrive::zoned()?;
//! let at = drive.append(0, &[7; 4096])?;
//! drive.flush()?;
//! drive.append(0, &[8; 4096])?; // acknowledged, and not flushed
//! drive.lose_power();
//! assert_eq!(drive.flush(), Err(TestDriveError::PowerLost));
//! drive.restart();
//! assert_eq!(drive.read(at, 1)?, [7; 4096]); // what was flushed is there
//!
//! // Writes of a zone go to its write pointer, or nowhere.
//! let wrong = drive.write(100, &[0; 4096]);
//! assert_eq!(wrong, Err(TestDriveError::Status(Status::ZONE_INVALID_WRITE)));
//! # Ok(())
//! # }
//! ```
//!
//! A handle can be cloned and used from several threads; commands take their turns.

mod builder;
mod crash;
mod error;
mod met;
mod ops;
#[cfg(feature = "target")]
mod served;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zonelab_device::{NamespaceId, Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{CannotFail, FaultPlan};
use zonelab_ssd::{Drive, DriveModel as _};

pub use builder::TestDriveBuilder;
pub use crash::{CrashFailure, CrashPlan, at_every_crash};
pub use error::{TestDriveError, TestDriveSettingError};
pub use met::{CrashReport, Mark, MetCount};
pub use ops::{Started, ZoneReport};
#[cfg(feature = "target")]
pub use served::{ServeError, ServedDrive};
use state::State;

/// A drive for tests. Clones are handles of the same drive.
///
/// Blocks are counted from 0, zones likewise: zone `n` begins at block `n` times
/// [`TestDrive::zone_size`]. All operations wait until the drive has carried them out, in
/// the drive's time: [`TestDrive::now`] says how long that took.
#[derive(Clone, Debug)]
pub struct TestDrive {
    state: Arc<Mutex<State>>,
    block_bytes: u32,
    blocks: u64,
    zones: u32,
    zone_size: u64,
    zone_capacity: u64,
    /// Most blocks of one command.
    most: u32,
}

impl TestDrive {
    /// A drive of 64 zones of 1 MiB with blocks of 4 KiB, 14 of which can be open, and a
    /// volatile write buffer of 256 KiB.
    ///
    /// # Errors
    /// None, unless this crate is wrong about its own settings.
    pub fn zoned() -> Result<Self, TestDriveSettingError> {
        Self::builder().build()
    }

    /// A drive of 64 MiB without zones, with blocks of 4 KiB.
    ///
    /// # Errors
    /// As [`Self::zoned`].
    pub fn conventional() -> Result<Self, TestDriveSettingError> {
        Self::builder().conventional().build()
    }

    /// Settings of a drive.
    #[must_use]
    pub fn builder() -> TestDriveBuilder {
        TestDriveBuilder::default()
    }

    /// The first namespace of a drive of any configuration, for instance of a profile
    /// ([`zonelab_ssd::profile`]). Data is kept if `config.data` says so. `seed` as
    /// [`TestDriveBuilder::seed`].
    #[must_use]
    pub fn of_config(config: &DriveConfig, seed: u64) -> Self {
        let drive = Drive::new(config);
        let info = drive.info();
        let namespace = &info.namespaces[0];
        let zoned = namespace.zoned;
        let most = (info.max_transfer_bytes / namespace.lba_bytes).clamp(1, 1 << 16);
        Self {
            block_bytes: namespace.lba_bytes,
            blocks: namespace.size_lbas,
            zones: zoned.map_or(0, |of| of.zones),
            zone_size: zoned.map_or(0, |of| of.zone_size_lbas),
            zone_capacity: zoned.map_or(0, |of| of.zone_capacity_lbas),
            most,
            state: Arc::new(Mutex::new(State::new(drive, seed))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked did so in a test, not in the midst of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a logical block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Logical blocks of the drive, those behind the capacities of zones included.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Zones; 0: the drive has none.
    #[must_use]
    pub const fn zones(&self) -> u32 {
        self.zones
    }

    /// Blocks from the start of a zone to that of the next; 0 without zones.
    #[must_use]
    pub const fn zone_size(&self) -> u64 {
        self.zone_size
    }

    /// Blocks of a zone that can be written; 0 without zones.
    #[must_use]
    pub const fn zone_capacity(&self) -> u64 {
        self.zone_capacity
    }

    /// The time on the drive's clock since it was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.state().now.0)
    }

    /// Lets time pass without a command: erasures and collections of the drive go on.
    pub fn wait_for(&self, time: Duration) {
        let mut state = self.state();
        let time = Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let until = state.now.saturating_add(time);
        while let Some(at) = state.drive.next_event().filter(|at| *at <= until) {
            state.advance(at);
        }
        state.advance(until);
    }

    /// Commands that the drive has taken since it was made.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.state().commands
    }

    // ---- what goes wrong -------------------------------------------------

    /// Power is lost now. Everything fails until [`Self::restart`].
    pub fn lose_power(&self) {
        self.state().lose_power();
    }

    /// Power is lost while the command is under way that comes after `commands` others
    /// from now on: 0 is the next. How far it gets is drawn from the seed; it ends with
    /// [`TestDriveError::PowerLost`], and so does all that follows, until
    /// [`Self::restart`].
    pub fn lose_power_in(&self, commands: u64) {
        self.state().crash_in(commands);
    }

    /// Whether the drive has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state().is_on
    }

    /// Gives the drive its power back; nothing if it has some.
    pub fn restart(&self) {
        self.state().restart();
    }

    /// Adds faults, in the language of `docs/models/faults.md`: for instance
    /// `[[fault]]`, `on = "read"`, `lbas = "8..=15"`, `effect = "media-error"`.
    ///
    /// # Errors
    /// What is wrong with the plan, with lines; nothing has changed then.
    pub fn inject(&self, plan: &str) -> Result<(), TestDriveSettingError> {
        let plan = FaultPlan::parse("faults", plan, &[])
            .map_err(|error| TestDriveSettingError::Faults(error.to_string()))?;
        let mut state = self.state();
        plan.check(state.drive.drive().config())
            .map_err(TestDriveSettingError::Faults)?;
        let now = state.now;
        state.drive.add_faults(now, plan);
        Ok(())
    }

    /// Takes all faults away. Zones that failed stay as they are.
    pub fn clear_faults(&self) {
        self.state().drive.clear_faults();
    }

    /// A zone becomes [`ZoneState::READ_ONLY`] or [`ZoneState::OFFLINE`], as zones of
    /// worn drives do.
    ///
    /// # Errors
    /// There is no such zone, or it cannot become that.
    pub fn fail_zone(&self, zone: u32, to: ZoneState) -> Result<(), CannotFail> {
        let mut state = self.state();
        let now = state.now;
        let zones = [zone..=zone];
        state.drive.fail_zones(now, NamespaceId::FIRST, &zones, to)
    }

    // ---- what the drive knows --------------------------------------------

    /// State and write pointer of a zone, without a command.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn zone(&self, zone: u32) -> Result<ZoneReport, TestDriveError> {
        self.start_of(zone)?;
        let state = self.state();
        let (zones, id) = (state.drive.drive().zones(), ZoneId(zone));
        Ok(ZoneReport {
            start: u64::from(zone) * self.zone_size,
            capacity: self.zone_capacity,
            written: zones.written_lbas(id),
            state: zones.state(id),
        })
    }

    /// Looks at the drive behind the handle: wear, totals, busy times.
    pub fn look<T>(&self, look: impl FnOnce(&Drive) -> T) -> T {
        look(self.state().drive.drive())
    }
}
