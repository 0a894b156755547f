//! Key-value workloads on drives, as jobs.
//!
//! * `read`: the keys of a workload and of its store.
//! * `run`: a workload on an emulated drive, with what it did to the drive.
//! * `values`: its metrics.

mod read;
mod run;
mod values;

use zonelab_config::{Document, Errors, Override};
use zonelab_device::DeviceInfo;
use zonelab_kv::files::FilesError;
use zonelab_kv::lsm::DbError;
use zonelab_kv::work::Spec;
use zonelab_kv::work::run::Setup;

pub use run::{KvJob, KvRun, Sample, Surroundings};
pub(crate) use values::MORE;
pub use values::{TreeWork, Wear, jobs, space};

pub(crate) use read::kv;

/// A workload and its store.
#[derive(Clone, Debug, PartialEq)]
pub struct KvTemplate {
    /// What clients do.
    pub spec: Spec,
    /// What they do it on.
    pub setup: Setup,
    /// Cores of the host that clients and background work share; 0: one for each.
    pub cores: u32,
}

impl KvTemplate {
    /// The built-in workload `name` with `settings`, whose keys are those of
    /// `[job.kv]` in an experiment.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn named(name: &str, settings: &[Override]) -> Result<Self, Errors> {
        let text = toml::Table::from_iter([("workload".to_owned(), name.into())]).to_string();
        let document = Document::parse("", &text, settings)?;
        let value = kv(&document.root());
        document.finish(value)
    }

    /// The same of a workload that is no built-in one.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn of(spec: Spec, settings: &[Override]) -> Result<Self, Errors> {
        let document = Document::parse("", "", settings)?;
        let value = read::of_spec(&document.root(), spec);
        document.finish(value)
    }
}

impl KvTemplate {
    /// Checks that it can be run on a device.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check(&self, info: &DeviceInfo, keeps_data: bool) -> Result<(), String> {
        self.spec.check().map_err(|error| error.to_string())?;
        let files = &self.setup.files;
        files.check(info).map_err(|error| in_files(&error))?;
        let options = self.setup.options_for(&self.spec, keeps_data);
        options.check().map_err(|error| in_store(&error))
    }
}

/// What is wrong with the files, by the keys of `[job.kv.files]`.
fn in_files(error: &FilesError) -> String {
    let FilesError::Config { key, value, valid } = error else {
        return error.to_string();
    };
    let key = match *key {
        "io_bytes" => "io",
        "finish_threshold_percent" => "finish_threshold",
        key => key,
    };
    let or_of_drive = match key {
        "max_active" | "max_open" => format!(" (or zones.{key} of the drive)"),
        _ => String::new(),
    };
    format!("files.{key} = {value}{or_of_drive}: must be {valid}")
}

/// What is wrong with the tree, by the keys of `[job.kv.store]`.
fn in_store(error: &DbError) -> String {
    match error {
        DbError::Option { name, value, valid } => {
            format!("store.{name} = {value}: must be {valid}")
        }
        error => error.to_string(),
    }
}

/// Name of the results of one kind of operation of a job.
#[must_use]
pub fn job_of_kind(job: &str, kind: zonelab_kv::work::Kind) -> String {
    format!("{job}: {}", kind.name())
}
