//! Snapshots of version 1, in which what not every drive has followed the body.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Body, SnapshotError, check_shape};
use crate::account::Totals;
use crate::config::{DriveConfig, NamespaceConfig, NamespaceKind};
use crate::conventional::SavedLog;
use crate::data::SavedChunk;
use crate::flash::Version1;
use crate::mapping::elements_behind;
use crate::zones::SavedZones;

#[derive(Debug, Deserialize)]
struct Body1 {
    shape: Vec<(String, String)>,
    zones: SavedZones,
    flash: Version1,
    totals: Totals,
    data: Option<Vec<SavedChunk>>,
}

/// What follows the body if the drive has conventional namespaces.
#[derive(Debug, Default, Deserialize)]
struct Logs {
    logs: Vec<SavedLog>,
    collect_program_bytes: u64,
}

/// The body of a snapshot of a drive of `config`, as it is now.
pub(super) fn read(bytes: &[u8], config: &DriveConfig) -> Result<Body, SnapshotError> {
    let mut rest = bytes;
    let body: Body1 = take(&mut rest)?;
    check_shape(&body.shape, config)?;
    let elements = elements_behind(config, || take(&mut rest))?;
    let areas = match config.zones.zrwa {
        Some(_) => take(&mut rest)?,
        None => Vec::new(),
    };
    let is_conventional = |of: &NamespaceConfig| of.kind != NamespaceKind::Zoned;
    let has_logs = config.namespaces.iter().any(is_conventional);
    let logs = match has_logs {
        true => take(&mut rest)?,
        false => Logs::default(),
    };
    let placements = match rest {
        [] => None,
        _ if config.write_buffer.is_some() => Some(take(&mut rest)?),
        _ => None,
    };
    let impossible = |what| SnapshotError::Impossible { what };
    if !rest.is_empty() {
        return Err(impossible(format!("{} bytes behind its end", rest.len())));
    }
    let flash = body.flash.into_saved(config, elements, placements);
    Ok(Body {
        shape: body.shape,
        zones: body.zones,
        areas,
        flash: flash.map_err(impossible)?,
        totals: body.totals,
        collect_program_bytes: logs.collect_program_bytes,
        logs: logs.logs,
        data: body.data,
    })
}

/// Takes a value from the beginning of some bytes.
fn take<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, SnapshotError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, rest)) => {
            *bytes = rest;
            Ok(value)
        }
        Err(error) => Err(SnapshotError::Impossible {
            what: error.to_string(),
        }),
    }
}
