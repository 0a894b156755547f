//! `serve --store`: the drive that is in a file.

use std::io;
use std::path::Path;

use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_store::{Found, OpenError, Store};
use zonelab_target::controller::formatted;

use super::Args;
use crate::exit::Failure;

/// A drive of `config`: that of the store if there is one, with what was found
/// in it, or a fresh one.
///
/// # Errors
/// The store cannot be opened, is in use, damaged, or of another drive.
pub(super) fn drive(
    path: Option<&Path>,
    config: &DriveConfig,
) -> Result<(Drive, Option<Found>), Failure> {
    let Some(path) = path else {
        return Ok((Drive::new(config), None));
    };
    let (store, found) = Store::at(path, config).map_err(|error| {
        let at = anyhow::anyhow!("{}: {error}", path.display());
        match error {
            OpenError::System(_) | OpenError::InUse | OpenError::Limit { .. } => {
                Failure::environment(at)
            }
            _ => Failure::input(at),
        }
    })?;
    let damaged =
        |what: String| Failure::input(anyhow::anyhow!("{}: it is damaged: {what}", path.display()));
    // What a host formatted the drive to is part of its contents.
    let config = match config.lba_bytes == found.lba_bytes {
        true => Some(config.clone()),
        false => formatted(config, found.lba_bytes),
    };
    let config = config.ok_or_else(|| damaged(format!("blocks of {} bytes", found.lba_bytes)))?;
    let drive = Drive::stored(&config, &found.kept, Box::new(store));
    let drive = drive.map_err(|impossible| damaged(impossible.to_string()))?;
    Ok((drive, Some(found)))
}

/// What was found in a store, to be said.
pub(super) struct Summary {
    file: String,
    is_new: bool,
    is_clean: bool,
    zones_with_data: usize,
}

impl Summary {
    pub(super) fn new(args: &Args, found: &Found) -> Self {
        let file = args.store.as_ref().map(|path| path.display().to_string());
        Self {
            file: file.unwrap_or_default(),
            is_new: found.is_new,
            is_clean: found.is_clean,
            zones_with_data: found.zones_with_data(),
        }
    }

    /// Its part of the line that says where the server listens.
    pub(super) fn as_json(&self) -> serde_json::Value {
        serde_json::json!({
            "file": self.file, "is_new": self.is_new, "is_clean": self.is_clean,
            "zones_with_data": self.zones_with_data,
        })
    }

    /// A line of text.
    pub(super) fn line(&self) -> String {
        let how = match (self.is_new, self.is_clean) {
            (true, _) => "a new store",
            (false, true) => "switched off in good order",
            (false, false) => "as after a loss of power",
        };
        let (file, zones) = (&self.file, self.zones_with_data);
        format!("{file}: {how}; zones with data: {zones}\n")
    }
}

/// The server ended otherwise than by an interruption.
pub(super) fn ended(path: Option<&Path>, error: io::Error) -> Failure {
    Failure::environment(match path {
        Some(path) => anyhow::anyhow!(
            "{}: {error}\nThe drive stopped as by a loss of power. What it acknowledged is in \
             the store: serve it again when the cause is gone.",
            path.display()
        ),
        None => anyhow::anyhow!(error),
    })
}
