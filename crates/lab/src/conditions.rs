//! Under which conditions a run takes place: faults, and a state to start from.

use zonelab_host::stats::OpKind;
use zonelab_nvme::Status;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, snapshot};

/// What a run adds to the drive of each of its points.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Faults.
    pub faults: Option<FaultPlan>,
    /// A snapshot that the drive starts from.
    pub restore: Option<Vec<u8>>,
}

impl Conditions {
    /// A drive under these conditions.
    ///
    /// # Errors
    /// The snapshot is not one of a drive of `config`, or a fault is about
    /// something that such a drive does not have: a text that says so.
    pub fn drive(&self, config: &DriveConfig) -> Result<FaultyDrive, String> {
        if let Some(plan) = &self.faults {
            plan.check(config)?;
        }
        let drive = match &self.restore {
            Some(bytes) => snapshot::restore(config, bytes).map_err(|error| error.to_string())?,
            None => Drive::new(config),
        };
        Ok(match &self.faults {
            Some(plan) => FaultyDrive::new(drive, plan.clone()),
            None => drive.into(),
        })
    }
}

/// A job that ended because an operation failed, as faults make them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFailure {
    /// The job.
    pub job: String,
    /// What failed.
    pub kind: OpKind,
    /// How.
    pub status: Status,
}
