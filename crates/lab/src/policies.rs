//! Policies of somebody else in the runs of an experiment.
//!
//! Points run in parallel and each on a drive of its own, so that what is given here makes
//! policies: one of each for every run.

use std::fmt;
use std::sync::Arc;

use zonelab_device::DeviceInfo;
use zonelab_ftl::OwnVictims;
use zonelab_host::scheduler::Scheduler;
use zonelab_ssd::Drive;
use zonelab_ssd::policy::{AllocationPolicy, PolicyError, ResetPolicy};

/// Makes policies, one for each run.
pub type Maker<P> = Arc<dyn Fn() -> Box<P> + Send + Sync>;

/// Makes schedulers for devices.
pub type SchedulerMaker = Arc<dyn Fn(&DeviceInfo) -> Box<dyn Scheduler> + Send + Sync>;

/// Who decides in place of what profiles and experiments name.
#[derive(Clone, Default)]
pub struct Policies {
    /// When the flash of reset zones is erased, in place of the thresholds of a profile.
    pub reset: Option<Maker<dyn ResetPolicy>>,
    /// Which flash zones get.
    pub allocation: Option<Maker<dyn AllocationPolicy>>,
    /// Which zone the translation layer empties next, where there is one.
    pub victims: Option<OwnVictims>,
    /// In which order requests of jobs go to a drive, in place of the host's scheduler.
    pub scheduler: Option<SchedulerMaker>,
}

impl Policies {
    /// Puts those of the drive into one.
    ///
    /// # Errors
    /// The drive has a design in which there is nothing to decide for one of them.
    pub fn install(&self, drive: &mut Drive) -> Result<(), PolicyError> {
        if let Some(make) = &self.reset {
            drive.set_reset_policy(make())?;
        }
        if let Some(make) = &self.allocation {
            drive.set_allocation_policy(make())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = [
            ("reset", self.reset.is_some()),
            ("allocation", self.allocation.is_some()),
            ("victims", self.victims.is_some()),
            ("scheduler", self.scheduler.is_some()),
        ];
        let names = given.iter().filter(|(_, is_given)| *is_given);
        f.debug_list().entries(names.map(|(name, _)| name)).finish()
    }
}
