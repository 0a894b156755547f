//! Under which conditions a run takes place: faults, a state to start from, and policies
//! of somebody else.

use zonelab_host::workload::FailedCommand;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::snapshot::SnapshotError;
use zonelab_ssd::{Drive, snapshot};

use crate::policies::Policies;

/// What a run adds to the drive of each of its points.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Faults.
    pub faults: Option<FaultPlan>,
    /// A snapshot that the drive starts from.
    pub restore: Option<Vec<u8>>,
    /// Who decides in place of what profiles and experiments name.
    pub policies: Policies,
}

impl Conditions {
    /// A drive under these conditions.
    ///
    /// # Errors
    /// The snapshot is not one of a drive of `config`, or a fault or a policy is
    /// about something that such a drive does not have: a text that says so.
    pub fn drive(&self, config: &DriveConfig) -> Result<FaultyDrive, String> {
        self.drive_with(config, self.faults.as_ref())
    }

    /// A drive under these conditions, with other faults.
    ///
    /// # Errors
    /// As [`Self::drive`].
    pub fn drive_with(
        &self,
        config: &DriveConfig,
        faults: Option<&FaultPlan>,
    ) -> Result<FaultyDrive, String> {
        if let Some(plan) = faults {
            plan.check(config)?;
        }
        let mut drive = match &self.restore {
            Some(bytes) => restored(config, bytes)?,
            None => Drive::new(config),
        };
        let installed = self.policies.install(&mut drive);
        installed.map_err(|error| error.to_string())?;
        Ok(match faults {
            Some(plan) => FaultyDrive::new(drive, plan.clone()),
            None => drive.into(),
        })
    }
}

/// The drive of a snapshot. Data that it holds are kept, whether the run looks at them or not.
fn restored(config: &DriveConfig, bytes: &[u8]) -> Result<Drive, String> {
    let error = match snapshot::restore(config, bytes) {
        Ok(drive) => return Ok(drive),
        Err(error) => error,
    };
    let is_store = matches!(&error, SnapshotError::OtherDrive { key, .. } if key == "data.store");
    match (is_store, config.data) {
        (false, _) => Err(error.to_string()),
        (true, DataStore::None) => {
            let keeping = DriveConfig {
                data: DataStore::Memory,
                ..config.clone()
            };
            snapshot::restore(&keeping, bytes).map_err(|error| error.to_string())
        }
        (true, DataStore::Memory) => Err(format!(
            "{error}: save it from jobs that verify (`zonelab fio --verify=crc32c`), or run on a \
             drive that keeps no data (`zonelab run --set drive.data.store=none`)"
        )),
    }
}

/// A job that ended because an operation failed, as faults make them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFailure {
    /// The job.
    pub job: String,
    /// What failed, where, and how.
    pub failed: FailedCommand,
}
