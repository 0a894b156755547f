//! `--faults` and `--restore`: conditions that a run takes place under.

use serde_json::{Value, json};
use zonelab_config::Errors;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::run::Point;
use zonelab_ssd::faults::FaultPlan;

use crate::exit::Failure;
use crate::files::{self, Files};

/// Options of commands that run something on emulated drives.
#[derive(clap::Args)]
pub(crate) struct ConditionArgs {
    /// Faults and losses of power of the drive: a TOML file, see docs/models/faults.md
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
    /// Start from the state of a drive that `zonelab fio --snapshot` saved
    #[arg(long, value_name = "FILE")]
    restore: Option<String>,
}

/// Conditions, and what results say of them.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) conditions: Conditions,
    /// Part of the configuration that results depend on; `None` if there are no conditions.
    pub(crate) configuration: Option<Value>,
    /// The options, to give the command again.
    pub(crate) words: Vec<String>,
}

impl ConditionArgs {
    pub(crate) fn has_faults(&self) -> bool {
        self.faults.is_some()
    }

    /// The file with the faults.
    pub(crate) fn faults(&self) -> Option<&str> {
        self.faults.as_deref()
    }

    pub(crate) fn has_restore(&self) -> bool {
        self.restore.is_some()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read, or is wrong.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let files = &Files::default();
        self.load_with(files, |file, text| {
            FaultPlan::parse(file, text, &[]).map(Some)
        })
    }

    /// Reads the files for points of an experiment: each has the plan of faults with the
    /// values of its axes put in.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(crate) fn load_for(&self, files: &Files, points: &mut [Point]) -> Result<Loaded, Failure> {
        self.load_with(files, |file, text| {
            let mut points = points.iter_mut();
            points.try_for_each(|point| point.set_faults(file, text))?;
            Ok(None)
        })
    }

    fn load_with(
        &self,
        files: &Files,
        plan: impl FnOnce(&str, &str) -> Result<Option<FaultPlan>, Errors>,
    ) -> Result<Loaded, Failure> {
        let mut loaded = Loaded::default();
        let mut parts = serde_json::Map::new();
        if let Some(file) = &self.faults {
            let text = files::read_from(files, file)?;
            loaded.conditions.faults = plan(file, &text).map_err(Failure::input)?;
            parts.insert("faults".to_owned(), json!(text));
            loaded.words.extend(["--faults".to_owned(), file.clone()]);
        }
        if let Some(file) = &self.restore {
            let bytes = files::read_whole_from(files, file)?;
            let checksum = crc32c::crc32c(&bytes);
            parts.insert(
                "restore_crc32c".to_owned(),
                json!(format!("{checksum:08x}")),
            );
            loaded.conditions.restore = Some(bytes);
            loaded.words.extend(["--restore".to_owned(), file.clone()]);
        }
        if !parts.is_empty() {
            loaded.configuration = Some(Value::Object(parts));
        }
        Ok(loaded)
    }
}
