//! Reading: what an earlier drive left, of which nothing is believed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};
use zonelab_device::ZoneId;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::contents::ZoneRecord;
use zonelab_ssd::stored::{self, Kept, ShapeError};

use crate::layout::{
    CHECKPOINT_HEADER_BYTES, HEADER_BYTES, Layout, MAGIC, PREFIX_BYTES, REDO_BYTES_MAX,
    REDO_HEADER_BYTES, Redo, STATE_BYTES, Slot, State, VERSION, is_whole, is_zero, u32_at, u64_at,
};
use crate::logs;
use crate::medium::{File, Medium};
use crate::store::{OfZone, Store};

/// Beyond any sequence number that a store gets to.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refuses.
    #[error("{0}")]
    System(#[source] io::Error),
    /// Somebody else has it.
    #[error("another process uses it")]
    InUse,
    /// Not a store.
    #[error("it is no store of a drive")]
    Foreign,
    /// A store of another version of zonelab.
    #[error("it has format {found}; this version of zonelab reads format {VERSION}")]
    Version {
        /// Its format.
        found: u32,
    },
    /// Bytes are not what was written.
    #[error("it is damaged: {what}")]
    Damaged {
        /// What cannot be read.
        what: String,
    },
    /// It was made for another drive.
    #[error("it was made for another drive: {key} is {saved} there and {here} here")]
    OtherDrive {
        /// The first setting that differs.
        key: String,
        /// Its value in the store.
        saved: String,
        /// Its value in the profile.
        here: String,
    },
    /// This process may not write files of that length (RLIMIT_FSIZE), so that
    /// writing to it would end the process.
    #[error(
        "it has {bytes} bytes, most of them holes, and this process may write files of at most \
         {limit} (ulimit -f)"
    )]
    Limit {
        /// Length of the file.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The description of its drive is too long.
    #[error("the description of the drive has {bytes} bytes, at most {HEADER_BYTES}")]
    Description {
        /// Its length.
        bytes: usize,
    },
}

/// What a store holds.
#[derive(Clone, Debug)]
pub struct Found {
    /// It was made just now.
    pub is_new: bool,
    /// It was closed in good order; else power was lost, as far as its drive is
    /// concerned.
    pub is_clean: bool,
    /// Size of blocks that the drive was formatted to, in bytes: it is the
    /// configuration of that size that the rest is of.
    pub lba_bytes: u32,
    /// The state of the drive.
    pub kept: Kept,
}

impl Found {
    /// Zones that hold data.
    #[must_use]
    pub fn zones_with_data(&self) -> usize {
        let records = self.kept.zones.iter();
        records.filter(|record| record.data_end_lbas() > 0).count()
    }
}

impl Store<File> {
    /// The store in a file, which is made if it is not there, for a drive of `config`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing has changed then.
    pub fn at(path: &Path, config: &DriveConfig) -> Result<(Self, Found), OpenError> {
        let bytes = Layout::new(config).file_bytes();
        if let Some(limit) = getrlimit(Resource::Fsize)
            .current
            .filter(|limit| *limit < bytes)
        {
            return Err(OpenError::Limit { bytes, limit });
        }
        let opened = fs::OpenOptions::new().read(true).write(true).open(path);
        match opened {
            Ok(file) => {
                let (medium, bytes) = locked(file)?;
                let (store, found) = open(medium, config)?;
                let expected = store.layout.file_bytes();
                if bytes != expected {
                    let what = format!("{bytes} bytes instead of {expected}");
                    return Err(OpenError::Damaged { what });
                }
                Ok((store, found))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, config),
            Err(error) => Err(OpenError::System(error)),
        }
    }
}

fn locked(file: fs::File) -> Result<(File, u64), OpenError> {
    let bytes = file.metadata().map_err(OpenError::System)?.len();
    let file = File::lock(file).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse,
        _ => OpenError::System(error),
    })?;
    Ok((file, bytes))
}

/// Makes a store beside `path` and moves it there when it is whole.
fn make(path: &Path, config: &DriveConfig) -> Result<(Store<File>, Found), OpenError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new: PathBuf = path.with_file_name(name);
    let make = || {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&new)
            .map_err(OpenError::System)?;
        // What another process left that did not get to the end, or is making.
        let (mut medium, _) = locked(file)?;
        medium.set_len(0).map_err(OpenError::System)?;
        medium
            .set_len(Layout::new(config).file_bytes())
            .map_err(OpenError::System)?;
        create(&mut medium, config)?;
        fs::rename(&new, path).map_err(OpenError::System)?;
        File::sync_entry(path).map_err(OpenError::System)?;
        let (store, found) = open(medium, config)?;
        Ok((
            store,
            Found {
                is_new: true,
                ..found
            },
        ))
    };
    let made = make();
    if matches!(made, Err(OpenError::System(_))) {
        // Nothing of use is in it; that it cannot be removed is not what went wrong.
        let _ = fs::remove_file(&new);
    }
    made
}

/// Makes an empty store for a drive of `config` of what is all zeros.
///
/// # Errors
/// [`OpenError::System`]; [`OpenError::Description`].
pub fn create<M: Medium>(medium: &mut M, config: &DriveConfig) -> Result<(), OpenError> {
    let shape = postcard::to_stdvec(&stored::shape(config)).expect("writing to memory never fails");
    let mut header = vec![0; PREFIX_BYTES];
    header.extend_from_slice(&shape);
    if header.len() as u64 > HEADER_BYTES {
        let bytes = shape.len();
        return Err(OpenError::Description { bytes });
    }
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // Fits: it is below the length of the header.
    header[16..20].copy_from_slice(&(shape.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c(&header[16..]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    let state = State {
        sequence: 1,
        epoch: 1,
        lba_bytes: config.lba_bytes,
        is_clean: true,
    };
    let mut write = || {
        medium.write(Layout::state_at(state.sequence), &state.encode())?;
        medium.write(0, &header)?;
        medium.sync()
    };
    write().map_err(OpenError::System)
}

/// The store in a medium, and what it holds.
///
/// # Errors
/// [`OpenError`].
pub fn open<M: Medium>(
    mut medium: M,
    config: &DriveConfig,
) -> Result<(Store<M>, Found), OpenError> {
    let saved = read_header(&medium)?;
    stored::check_shape(&saved, config).map_err(|error| match error {
        ShapeError::OtherDrive { key, saved, here } => OpenError::OtherDrive { key, saved, here },
        other => OpenError::Damaged {
            what: other.to_string(),
        },
    })?;
    let layout = Layout::new(config);
    let state = read_state(&medium)?;
    let (mut zones, records, torn_at) = read_zones(&medium, &layout, &state)?;
    for (of, record) in zones.iter_mut().zip(&records) {
        let end = record.data_end_lbas();
        let end = end.saturating_mul(u64::from(state.lba_bytes));
        of.end = end.min(layout.zone_bytes);
    }
    redo(&mut medium, &layout, &state, &zones)?;
    let written = |zone: ZoneId| records[zone.0 as usize].host_lbas;
    let mut places = Vec::new();
    let mut entry_sequence = 0;
    for log in &layout.logs {
        let (of, highest) = logs::recover(&medium, log, state.lba_bytes, written)?;
        places.push(of);
        entry_sequence = entry_sequence.max(highest);
    }
    let (checkpoint_sequence, checkpoint) = read_checkpoint(&medium, &layout, &state)?;
    let found = Found {
        is_new: false,
        is_clean: state.is_clean,
        lba_bytes: state.lba_bytes,
        kept: Kept {
            zones: records,
            logs: places,
            checkpoint,
        },
    };
    let store = Store {
        medium,
        layout,
        state,
        zones,
        entry_sequence,
        checkpoint_sequence,
        scratch: Vec::new(),
        torn_at,
        failure: OnceLock::new(),
    };
    Ok((store, found))
}

/// What the data depends on: keys and values.
fn read_header(medium: &impl Medium) -> Result<Vec<(String, String)>, OpenError> {
    let mut header = vec![0; HEADER_BYTES as usize];
    medium.read(0, &mut header).map_err(OpenError::System)?;
    if &header[..8] != MAGIC {
        return Err(OpenError::Foreign);
    }
    let found = u32_at(&header, 8);
    if found != VERSION {
        return Err(OpenError::Version { found });
    }
    let damaged = || OpenError::Damaged {
        what: "its header".to_owned(),
    };
    let length = u32_at(&header, 16) as usize;
    let end = PREFIX_BYTES.checked_add(length).ok_or_else(damaged)?;
    let body = header.get(16..end).ok_or_else(damaged)?;
    if crc32c::crc32c(body) != u32_at(&header, 12) {
        return Err(damaged());
    }
    postcard::from_bytes(&body[4..]).map_err(|_| damaged())
}

fn read_state(medium: &impl Medium) -> Result<State, OpenError> {
    let mut newest: Option<State> = None;
    for slot in 0..2 {
        let mut bytes = [0; STATE_BYTES];
        let at = Layout::state_at(slot);
        medium.read(at, &mut bytes).map_err(OpenError::System)?;
        if is_whole(at, &bytes) {
            let state = State::decode(&bytes);
            if newest.is_none_or(|newest| state.sequence > newest.sequence) {
                newest = Some(state);
            }
        }
    }
    newest
        .filter(|state| state.lba_bytes >= 512 && state.sequence < SEQUENCE_MAX)
        .ok_or_else(|| OpenError::Damaged {
            what: "both slots of its state".to_owned(),
        })
}

/// What is known of all zones, and where a record is torn.
type Records = (Vec<OfZone>, Vec<ZoneRecord>, Option<u64>);

/// The newest whole record of each zone, and where one is torn.
fn read_zones(medium: &impl Medium, layout: &Layout, state: &State) -> Result<Records, OpenError> {
    let mut zones = Vec::new();
    let mut records = Vec::new();
    let mut torn = Vec::new();
    let mut bytes = vec![0; layout.record_bytes()];
    for zone in 0..layout.zones {
        let mut newest: Option<Slot> = None;
        for slot in 0..2 {
            let at = layout.record_at(zone, slot);
            medium.read(at, &mut bytes).map_err(OpenError::System)?;
            if is_zero(&bytes) {
                continue;
            }
            if !is_whole(at, &bytes) {
                torn.push((zone, at));
                continue;
            }
            let slot = Slot::decode(&bytes);
            if slot.sequence >= SEQUENCE_MAX {
                let what = format!("the record of zone {zone}");
                return Err(OpenError::Damaged { what });
            }
            if newest
                .as_ref()
                .is_none_or(|newest| slot.sequence > newest.sequence)
            {
                newest = Some(slot);
            }
        }
        let of = newest.as_ref().map_or_else(OfZone::default, |slot| OfZone {
            sequence: slot.sequence,
            life: slot.life,
            end: 0,
        });
        zones.push(of);
        let current = newest.filter(|slot| slot.epoch == state.epoch);
        records.push(current.map_or(ZoneRecord::EMPTY, |slot| slot.record));
    }
    // One write was under way when the drive lost power, and none when it was
    // switched off.
    let possible = usize::from(!state.is_clean);
    if torn.len() > possible {
        let mut torn: Vec<u32> = torn.into_iter().map(|(zone, _)| zone).collect();
        torn.dedup();
        let what = format!("records of zones {torn:?}");
        return Err(OpenError::Damaged { what });
    }
    let torn_at = torn.first().map(|(_, at)| *at);
    Ok((zones, records, torn_at))
}

/// Ends the last write in place, if it did not end and is not void.
fn redo(
    medium: &mut impl Medium,
    layout: &Layout,
    state: &State,
    zones: &[OfZone],
) -> Result<(), OpenError> {
    let at = Layout::redo_at();
    let mut bytes = vec![0; REDO_HEADER_BYTES + REDO_BYTES_MAX];
    medium.read(at, &mut bytes).map_err(OpenError::System)?;
    let redo = Redo::decode(&bytes);
    if !redo.is_zero && redo.len > REDO_BYTES_MAX as u64 {
        return Ok(());
    }
    // Fits: see above.
    let len = if redo.is_zero { 0 } else { redo.len as usize };
    let whole = &bytes[..REDO_HEADER_BYTES + len];
    let is_alive = redo.of.is_none_or(|(zone, life)| {
        let of = zones.get(zone as usize);
        of.is_some_and(|of| of.life == life)
    });
    let end = redo.at.checked_add(redo.len);
    let is_inside =
        redo.at >= layout.tables_at && end.is_some_and(|end| end <= layout.file_bytes());
    if !is_whole(at, whole) || redo.epoch != state.epoch || !is_alive || !is_inside {
        return Ok(());
    }
    if redo.is_zero {
        medium.zero(redo.at, redo.len)
    } else {
        medium.write(redo.at, &whole[REDO_HEADER_BYTES..])
    }
    .map_err(OpenError::System)
}

/// The newest whole checkpoint of this epoch, and the number of the newest.
fn read_checkpoint(
    medium: &impl Medium,
    layout: &Layout,
    state: &State,
) -> Result<(u64, Option<Vec<u8>>), OpenError> {
    let mut newest = (0, None);
    for slot in 0..2 {
        let at = layout.checkpoint_at(slot);
        let mut header = [0; CHECKPOINT_HEADER_BYTES];
        medium.read(at, &mut header).map_err(OpenError::System)?;
        let (epoch, sequence) = (u32_at(&header, 4), u64_at(&header, 8));
        let len = u64_at(&header, 16);
        let is_possible = (newest.0 + 1..SEQUENCE_MAX).contains(&sequence);
        if len > layout.checkpoint_bytes_max || !is_possible {
            continue;
        }
        // Fits: see above.
        let mut bytes = vec![0; CHECKPOINT_HEADER_BYTES + len as usize];
        medium.read(at, &mut bytes).map_err(OpenError::System)?;
        if is_whole(at, &bytes) {
            let body = bytes.split_off(CHECKPOINT_HEADER_BYTES);
            newest = (sequence, (epoch == state.epoch).then_some(body));
        }
    }
    Ok(newest)
}
