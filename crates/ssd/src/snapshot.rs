//! A drive's state as bytes, so that a preconditioned drive can be used again.
//!
//! A snapshot holds what a drive would know after it was switched off in good
//! order and on again: zones, mapping, wear, totals, and the data if the drive
//! keeps any. It holds no timing: a restored drive is idle, its clock is at
//! zero, and its media may be faster or slower than those of the drive that was
//! saved. What the state depends on (geometry, zones, mapping, data) must be the
//! same, else the snapshot is refused.
//!
//! The format: `ZONELAB`, a zero byte, then little-endian version (4 bytes),
//! length of the body (8 bytes) and its CRC-32C (4 bytes), then the body in
//! postcard. Every value is checked before a drive is made of it. Version 1 is read, and
//! written no more.
//!
//! ```
//! use zonelab_device::Nanos;
//! use zonelab_ssd::{Control, Drive, profile, snapshot};
//!
//! let config = profile::builtin("confznspp").expect("it is built in").config;
//! let mut drive = Drive::new(&config);
//! drive.control(Nanos::ZERO, &Control::PreconditionFull { zones: 0..8 }).expect("they are empty");
//!
//! let bytes = snapshot::save(&drive).expect("nothing is in flight");
//! let same = snapshot::restore(&config, &bytes).expect("it is of the same drive");
//! assert_eq!(same.zones().active_count(), drive.zones().active_count());
//! ```

mod shape;
mod version_1;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zonelab_device::{Nanos, ZoneId};

use crate::account::Totals;
use crate::config::{DataStore, DriveConfig};
use crate::contents::Data;
use crate::conventional::{Ages, Conventional, SavedLog, SavedPlacement};
use crate::data::{SavedChunk, SparseData};
use crate::drive::Drive;
use crate::flash::{SavedCache, SavedFlash, TOTAL_MAX};
use crate::zones::{SavedZones, Zones};

pub use shape::{check_shape, shape};

const MAGIC: &[u8; 8] = b"ZONELAB\0";
const VERSION: u32 = 2;
/// Magic, version, length, checksum.
const HEADER_BYTES: usize = 8 + 4 + 8 + 4;

/// Why a drive cannot be saved or a snapshot not restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The drive has work to do.
    #[error(
        "the drive is busy ({commands} commands in flight, {tasks} background tasks): save it \
         when it is idle"
    )]
    Busy {
        /// Commands in flight, completions not collected included.
        commands: usize,
        /// Background tasks.
        tasks: usize,
    },
    /// The contents of the drive are kept elsewhere.
    #[error("the contents of the drive are kept in a store: that is what to copy")]
    Outside,
    /// A policy of somebody else remembers something that a snapshot does not hold.
    #[error(
        "policy {policy} of the drive remembers something that a snapshot does not hold: save a \
         drive without it, or let it say that it has no memory"
    )]
    OwnPolicy {
        /// Its name.
        policy: String,
    },
    /// Not a snapshot.
    #[error("this is no snapshot of a drive")]
    Foreign,
    /// A snapshot of another version of zonelab.
    #[error(
        "the snapshot has format {found}; this version of zonelab reads formats 1 to {VERSION}"
    )]
    Version {
        /// Its format.
        found: u32,
    },
    /// Bytes are missing, or there are too many.
    #[error(
        "the snapshot is truncated or has something behind it: {found} bytes instead of {expected}"
    )]
    Length {
        /// Bytes there should be.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The checksum is wrong.
    #[error("the snapshot is damaged: its checksum is wrong")]
    Checksum,
    /// It was made from another drive.
    #[error("the snapshot is of another drive: {key} is {saved} there and {here} here")]
    OtherDrive {
        /// The first setting that differs.
        key: String,
        /// Its value in the snapshot.
        saved: String,
        /// Its value in the profile.
        here: String,
    },
    /// Its content makes no sense, though the checksum is right.
    #[error("the snapshot holds something impossible: {what}")]
    Impossible {
        /// What.
        what: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Body {
    /// What the state depends on: keys and values.
    shape: Vec<(String, String)>,
    zones: SavedZones,
    /// Zones with a random write area, and how far it was written.
    areas: Vec<(u32, u64)>,
    flash: SavedFlash,
    totals: Totals,
    collect_program_bytes: u64,
    /// The tables of conventional namespaces, in their order.
    logs: Vec<SavedLog>,
    data: Option<Vec<SavedChunk>>,
}

/// The state of an idle drive.
///
/// # Errors
/// [`SnapshotError::Busy`], [`SnapshotError::Outside`], [`SnapshotError::OwnPolicy`].
pub fn save(drive: &Drive) -> Result<Vec<u8>, SnapshotError> {
    if let Some(policy) = drive.policy_with_memory() {
        let policy = policy.to_owned();
        return Err(SnapshotError::OwnPolicy { policy });
    }
    let commands = drive.core.requests.len() + drive.core.backlog.len();
    let tasks = drive.background_tasks();
    if commands > 0 || tasks > 0 {
        return Err(SnapshotError::Busy { commands, tasks });
    }
    let data = match &drive.core.data {
        None => None,
        Some(Data::Memory(data)) => Some(data.save()),
        Some(Data::Outside(_)) => return Err(SnapshotError::Outside),
    };
    let mut flash = drive.core.flash.clone();
    if let Some(buffer) = &drive.buffer {
        buffer.settle_into((&drive.core, &drive.conventional), &mut flash);
    }
    let areas = drive.config().zones.zrwa;
    let body = Body {
        shape: shape(drive.config()),
        zones: drive.core.zones.save(),
        areas: areas.map_or_else(Vec::new, |_| drive.core.zones.saved_zrwa()),
        flash: flash.save(),
        totals: drive.core.totals,
        collect_program_bytes: drive.core.totals.collect_program_bytes,
        logs: drive.conventional.iter().map(Conventional::save).collect(),
        data,
    };
    let mut bytes = vec![0; HEADER_BYTES];
    bytes = postcard::to_extend(&body, bytes).expect("writing to memory does not fail");
    // Snapshots of drives without flexible data placement say nothing of it.
    if let Some(placement) = drive.placement().save() {
        bytes = postcard::to_extend(&placement, bytes).expect("writing to memory does not fail");
    }
    // The same of drives whose logs keep no ages.
    if drive.config().has_ages() {
        let ages: Vec<_> = drive.conventional.iter().map(|of| of.log.ages()).collect();
        bytes = postcard::to_extend(&ages, bytes).expect("writing to memory does not fail");
    }
    // Nor do those of drives without an SLC cache say anything of that.
    if let Some(cache) = flash.save_cache(drive.core.totals.fold_program_bytes) {
        bytes = postcard::to_extend(&cache, bytes).expect("writing to memory does not fail");
    }
    let length = (bytes.len() - HEADER_BYTES) as u64;
    let checksum = crc32c::crc32c(&bytes[HEADER_BYTES..]);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// A drive of `config` in the state that was saved: idle, at time zero.
///
/// # Errors
/// All but [`SnapshotError::Busy`] and [`SnapshotError::Outside`]; nothing is loaded then.
pub fn restore(config: &DriveConfig, bytes: &[u8]) -> Result<Drive, SnapshotError> {
    let Saved {
        body,
        placement,
        ages,
        cache,
    } = read(bytes, config)?;
    let impossible = |what| SnapshotError::Impossible { what };
    let mut drive = Drive::new(config);
    let count = config.zones.count;
    drive.core.zones =
        Zones::restore(&config.zones, &config.namespaces(), &body.zones).map_err(impossible)?;
    drive
        .core
        .zones
        .restore_zrwa(&body.areas)
        .map_err(impossible)?;
    drive
        .core
        .flash
        .restore(config, &body.flash)
        .map_err(impossible)?;
    if let Some(cache) = &cache {
        drive.core.flash.restore_cache(cache).map_err(impossible)?;
    }
    check_flash(&drive).map_err(impossible)?;
    drive.core.totals = body.totals;
    drive.core.totals.fold_program_bytes = cache.map_or(0, |of| of.fold_program_bytes);
    drive.core.totals.collect_program_bytes = body.collect_program_bytes;
    restore_logs(&mut drive, body.logs, ages)?;
    if let Some(placement) = placement {
        placement
            .restore(&mut drive.core, &mut drive.conventional)
            .map_err(impossible)?;
    }
    let programmed = drive
        .core
        .totals
        .fill_program_bytes
        .checked_add(drive.core.totals.collect_program_bytes)
        .and_then(|bytes| bytes.checked_add(drive.core.totals.fold_program_bytes));
    let is_possible = programmed.is_some_and(|bytes| bytes <= drive.core.flash.totals().1);
    if drive.core.totals.largest() > TOTAL_MAX || !is_possible {
        return Err(impossible("totals".to_owned()));
    }
    if let Some(buffer) = &mut drive.buffer {
        buffer.settle(&drive.core.zones);
    }
    drive.core.data = match (config.data, body.data) {
        (DataStore::None, None) => None,
        (DataStore::Memory, Some(chunks)) => {
            let zone_bytes = config.zones.size_lbas * u64::from(config.lba_bytes);
            let data = SparseData::restore(count, zone_bytes, chunks).map_err(impossible)?;
            Some(Data::Memory(data))
        }
        _ => {
            return Err(impossible(
                "data of a drive that keeps none, or none".to_owned(),
            ));
        }
    };
    // What a design with background erasure had not done, it goes on with.
    drive
        .background
        .resume_erasures(&mut drive.core, Nanos::ZERO);
    drive
        .background
        .resume_folding(&mut drive.core, Nanos::ZERO);
    drive
        .plain
        .look(&drive.core, &drive.background, drive.buffer.is_some());
    Ok(drive)
}

/// Puts the tables of conventional namespaces into a drive whose zones are there.
fn restore_logs(
    drive: &mut Drive,
    logs: Vec<SavedLog>,
    ages: Option<Vec<Option<Ages>>>,
) -> Result<(), SnapshotError> {
    let impossible = |what| SnapshotError::Impossible { what };
    if logs.len() != drive.conventional.len() {
        return Err(impossible(format!("{} logs", logs.len())));
    }
    for (of, saved) in drive.conventional.iter_mut().zip(logs) {
        of.restore(saved, &drive.core.zones).map_err(impossible)?;
    }
    let Some(ages) = ages else {
        return Ok(());
    };
    if ages.len() != drive.conventional.len() {
        return Err(impossible(format!("ages of {} logs", ages.len())));
    }
    for (of, ages) in drive.conventional.iter_mut().zip(ages) {
        of.log.restore_ages(ages).map_err(impossible)?;
    }
    Ok(())
}

/// A whole snapshot.
struct Saved {
    body: Body,
    /// What flexible data placement adds to it.
    placement: Option<SavedPlacement>,
    /// Ages of what logs hold, if some of them keep any.
    ages: Option<Vec<Option<Ages>>>,
    /// What is in an SLC cache.
    cache: Option<SavedCache>,
}

impl From<Body> for Saved {
    fn from(body: Body) -> Self {
        Self {
            body,
            placement: None,
            ages: None,
            cache: None,
        }
    }
}

/// A snapshot of a drive of `config`, if the bytes are one.
fn read(bytes: &[u8], config: &DriveConfig) -> Result<Saved, SnapshotError> {
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(
            if MAGIC.starts_with(&bytes[..bytes.len().min(8)]) && !bytes.is_empty() {
                SnapshotError::Length {
                    expected: HEADER_BYTES as u64,
                    found: bytes.len() as u64,
                }
            } else {
                SnapshotError::Foreign
            },
        );
    };
    if &header[..8] != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if !(1..=VERSION).contains(&word(8)) {
        return Err(SnapshotError::Version { found: word(8) });
    }
    let length = u64::from(word(12)) | u64::from(word(16)) << 32;
    if length != body.len() as u64 {
        return Err(SnapshotError::Length {
            expected: length.saturating_add(HEADER_BYTES as u64),
            found: bytes.len() as u64,
        });
    }
    if crc32c::crc32c(body) != word(20) {
        return Err(SnapshotError::Checksum);
    }
    if word(8) == 1 {
        let body = version_1::read(body, config)?;
        check_shape(&body.shape, config)?;
        if config.has_handles() {
            let what = "version 1 of a drive with flexible data placement".to_owned();
            return Err(SnapshotError::Impossible { what });
        }
        if config.slc_cache.is_some() {
            let what = "version 1 of a drive with an SLC cache".to_owned();
            return Err(SnapshotError::Impossible { what });
        }
        return Ok(body.into());
    }
    let (body, mut rest): (Body, _) = take(body)?;
    check_shape(&body.shape, config)?;
    let mut saved = Saved::from(body);
    if config.has_handles() {
        let (placement, behind) = take(rest)?;
        (saved.placement, rest) = (Some(placement), behind);
    }
    if config.has_ages() {
        let (ages, behind) = take(rest)?;
        (saved.ages, rest) = (Some(ages), behind);
    }
    match config.slc_cache.is_some() {
        true => saved.cache = Some(take_all(rest)?),
        false => take_all(rest)?,
    }
    Ok(saved)
}

/// A value from all of some bytes.
fn take_all<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SnapshotError> {
    match take(bytes)? {
        (value, []) => Ok(value),
        (_, rest) => Err(SnapshotError::Impossible {
            what: format!("{} bytes behind its end", rest.len()),
        }),
    }
}

/// A value from the beginning of some bytes, and what is behind it.
fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), SnapshotError> {
    // What postcard cannot read is nothing that a drive saved.
    postcard::take_from_bytes(bytes).map_err(|error| SnapshotError::Impossible {
        what: error.to_string(),
    })
}

/// Zones, mapping and flash say the same.
fn check_flash(drive: &Drive) -> Result<(), String> {
    let page_lbas = u64::from(drive.core.flash.layout().page_lbas());
    for zone in (0..drive.core.zones.count()).map(ZoneId) {
        let mut lbas = drive.core.zones.host_lbas(zone);
        let physical = drive.core.flash.mapping().physical(zone);
        if let Some(physical) = physical {
            let (is_all, folded) = drive.core.flash.cached_of(physical, lbas);
            if !is_all {
                return Err(format!("the end of zone {} in the SLC cache", zone.0));
            }
            lbas = folded;
        }
        let pages = lbas.div_ceil(page_lbas);
        let programmed = physical.map_or(0, |physical| drive.core.flash.zone_state(physical).0);
        let is_short = |physical| {
            // Fits: no more than were programmed.
            !drive.core.flash.holds(physical, pages as u32)
        };
        if pages > u64::from(programmed) || physical.is_some_and(is_short) {
            return Err(format!(
                "zone {} has more blocks written than pages programmed",
                zone.0
            ));
        }
    }
    Ok(())
}
