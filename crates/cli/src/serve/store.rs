//! `serve --store`: the drive that is in a file.

use std::io;
use std::path::Path;

use zonelab_config::units::parse_size;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_store::{Found, Options};

use super::Args;
use super::memory::Measure;
use crate::exit::Failure;
use crate::stores;

/// Whether blocks of a new store get checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Checksums {
    /// Yes: a block that is not what was written cannot be read
    On,
    /// No
    Off,
}

/// What data may take if the machine does not say how much memory it has.
const DATA_LIMIT_BYTES: u64 = 1 << 30;

/// Most bytes of memory that data may take, before it is known what the rest takes.
fn data_limit(args: &Args, measure: &Measure) -> Result<u64, Failure> {
    args.data_limit.as_deref().map_or_else(
        || {
            Ok(measure
                .available_bytes()
                .map_or(DATA_LIMIT_BYTES, |bytes| bytes / 4))
        },
        |text| {
            parse_size(text).map_err(|problem| Failure::usage(format!("--data-limit: {problem}")))
        },
    )
}

/// A drive of `config`: that of the store if there is one, with what was found
/// in it, or a fresh one.
///
/// # Errors
/// The store cannot be opened, is in use, damaged, or of another drive.
pub(super) fn drive(
    args: &Args,
    config: &DriveConfig,
    measure: &Measure,
) -> Result<(Drive, Option<Found>), Failure> {
    let Some(path) = args.store.as_deref() else {
        let mut drive = Drive::new(config);
        drive.limit_data(Some(data_limit(args, measure)?));
        return Ok((drive, None));
    };
    let options = Options {
        has_checksums: args.store_checksums != Some(Checksums::Off),
    };
    let (drive, found) = stores::drive(path, config, options)?;
    let other = args
        .store_checksums
        .filter(|wanted| (*wanted == Checksums::On) != found.has_checksums);
    if other.is_some() {
        let has = if found.has_checksums { "on" } else { "off" };
        return Err(Failure::input(anyhow::anyhow!(
            "{}: it was made with --store-checksums {has}, which stays",
            path.display()
        )));
    }
    Ok((drive, Some(found)))
}

/// What was found in a store, to be said.
pub(super) struct Summary {
    file: String,
    is_new: bool,
    is_clean: bool,
    is_rolled_back: bool,
    has_checksums: bool,
    zones_with_data: usize,
}

impl Summary {
    pub(super) fn new(args: &Args, found: &Found) -> Self {
        let file = args.store.as_ref().map(|path| path.display().to_string());
        Self {
            file: file.unwrap_or_default(),
            is_new: found.is_new,
            is_clean: found.is_clean,
            is_rolled_back: found.is_rolled_back,
            has_checksums: found.has_checksums,
            zones_with_data: found.zones_with_data(),
        }
    }

    /// Its part of the line that says where the server listens.
    pub(super) fn as_json(&self) -> serde_json::Value {
        serde_json::json!({
            "file": self.file, "is_new": self.is_new, "is_clean": self.is_clean,
            "zones_with_data": self.zones_with_data, "is_rolled_back": self.is_rolled_back,
            "has_checksums": self.has_checksums,
        })
    }

    /// A line of text.
    pub(super) fn line(&self) -> String {
        let how = match (self.is_new, self.is_clean) {
            (true, _) => "a new store",
            (false, true) => "switched off in good order",
            (false, false) if self.is_rolled_back => {
                "the machine has ended since: it is as the last Flush left it"
            }
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
