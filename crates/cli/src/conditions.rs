//! `--faults` and `--restore`: conditions that a run takes place under.

use serde_json::{Value, json};
use zonelab_lab::conditions::Conditions;
use zonelab_ssd::faults::FaultPlan;

use crate::exit::Failure;
use crate::files;

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

    pub(crate) fn has_restore(&self) -> bool {
        self.restore.is_some()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read, or is wrong.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let mut loaded = Loaded::default();
        let mut parts = serde_json::Map::new();
        if let Some(file) = &self.faults {
            let text = files::read(file)?;
            let plan = FaultPlan::parse(file, &text, &[]).map_err(Failure::input)?;
            loaded.conditions.faults = Some(plan);
            parts.insert("faults".to_owned(), json!(text));
            loaded.words.extend(["--faults".to_owned(), file.clone()]);
        }
        if let Some(file) = &self.restore {
            let bytes = files::read_whole(file)?;
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
