//! Reading: what an earlier drive left, of which nothing is believed.

use std::io;
use std::sync::OnceLock;

use zonelab_device::ZoneId;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::stored::{self, Kept, ShapeError};

use crate::layout::{
    CHECKPOINT_HEADER_BYTES, HEADER_BYTES, Layout, MAGIC, PREFIX_BYTES, State, VERSION, is_whole,
    u32_at, u64_at,
};
use crate::logs;
use crate::medium::Medium;
use crate::notice::Notices;
use crate::records::Records;
use crate::redo;
use crate::reservations::Slots;
use crate::store::Store;

/// Beyond any sequence number that a store gets to.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refuses.
    #[error("{0}")]
    System(#[source] io::Error),
    /// Somebody else has it.
    #[error("another process uses it")]
    InUse,
    /// A pipe, a device or a directory.
    #[error(
        "it is no ordinary file: a store is one, which `zonelab serve --store FILE` makes if \
         nothing is there"
    )]
    NoOrdinaryFile,
    /// Not a store.
    #[error("it is no store of a drive")]
    Foreign,
    /// A store of another version of zonelab.
    #[error(
        "it has format {found}; this version of zonelab reads format {VERSION}: serve it with the \
         version that made it, and copy what it holds to a new store"
    )]
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
    /// A record that a Flush covers is not there.
    #[error(
        "it is damaged: {}; `zonelab store check FILE` says what it holds, and \
         `zonelab store repair FILE` makes the most of it",
        lost_text(.0)
    )]
    Lost(Vec<LostRecord>),
    /// Another process has made it at the same time.
    #[error("another process has just made it")]
    MadeByAnother,
    /// What a process left that did not get to the end of making a store is in
    /// the way, or something else of that name.
    #[error("{path} is in the way: remove it if no other server is being started")]
    InTheWay {
        /// Where it would be made.
        path: String,
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

/// A record of a zone that a Flush covers and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRecord {
    /// Its zone.
    pub zone: u32,
    /// The slots of the zone whose records are damaged.
    pub damaged_slots: Vec<u64>,
    /// Number of the newest record that is whole, if one is.
    pub found: Option<u64>,
    /// Number of the record that a Flush covers.
    pub expected: u64,
}

fn lost_text(lost: &[LostRecord]) -> String {
    let of = |of: &LostRecord| {
        let found = of
            .found
            .map_or_else(|| "none".to_owned(), |of| of.to_string());
        format!(
            "the record of zone {} (damaged slots: {:?}) has sequence {found}, and a Flush covers {}",
            of.zone, of.damaged_slots, of.expected
        )
    };
    lost.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// What a store holds.
#[derive(Clone, Debug)]
pub struct Found {
    /// It was made just now.
    pub is_new: bool,
    /// It was closed in good order; else power was lost, as far as its drive is
    /// concerned.
    pub is_clean: bool,
    /// The machine has ended since: the drive is as the last Flush covers it.
    pub is_rolled_back: bool,
    /// Blocks have checksums.
    pub has_checksums: bool,
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

/// The store in a medium, and what it holds.
///
/// # Errors
/// [`OpenError`].
pub fn open<M: Medium>(
    mut medium: M,
    config: &DriveConfig,
) -> Result<(Store<M>, Found), OpenError> {
    let (shape, layout) = read_layout(&medium)?;
    stored::check_shape(&shape, config).map_err(|error| match error {
        ShapeError::OtherDrive { key, saved, here } => OpenError::OtherDrive { key, saved, here },
        other => OpenError::Damaged {
            what: other.to_string(),
        },
    })?;
    if layout != Layout::new(config, layout.has_sums()) {
        let what = "where its parts are".to_owned();
        return Err(OpenError::Damaged { what });
    }
    let mut records = Records::read(&medium, &layout)?;
    if !records.lost.is_empty() {
        return Err(OpenError::Lost(records.lost));
    }
    records.check_torn()?;
    let redo_sequence = redo::replay(&mut medium, &layout, &records)?;
    let state = records.state;
    let mut reservations = Slots::read(&medium, described_bytes(&medium)?)?;
    reservations.check(state.is_clean)?;
    let zones = std::mem::take(&mut records.records);
    let written = |zone: ZoneId| zones[zone.0 as usize].host_lbas;
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
        is_rolled_back: records.is_rolled_back,
        has_checksums: layout.has_sums(),
        lba_bytes: state.lba_bytes,
        kept: Kept {
            zones,
            logs: places,
            checkpoint,
            reservations: std::mem::take(&mut reservations.bytes),
        },
    };
    let void_at = records.void_at();
    let void_notes = records.void_notes;
    let store = Store {
        medium,
        layout,
        state,
        zones: records.zones,
        sequence: records.sequence,
        durable: records.durable,
        entry_sequence,
        checkpoint_sequence,
        redo_sequence,
        durable_redos: 0,
        syncs: records.syncs,
        scratch: Vec::new(),
        void_at,
        void_notes,
        changed: records.changed,
        // What was found need not be durable.
        unsynced_bytes: 1,
        failure: OnceLock::new(),
        reservations,
        notices: Notices::default(),
    };
    Ok((store, found))
}

/// What the data depends on: keys and values; and where what is.
pub(crate) fn read_layout(
    medium: &impl Medium,
) -> Result<(Vec<(String, String)>, Layout), OpenError> {
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

/// Bytes of the header that it takes to say that.
pub(crate) fn described_bytes(medium: &impl Medium) -> Result<usize, OpenError> {
    let mut prefix = [0; PREFIX_BYTES];
    medium.read(0, &mut prefix).map_err(OpenError::System)?;
    Ok(PREFIX_BYTES + u32_at(&prefix, 16) as usize)
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
