//! Drives whose contents are kept outside of them, and outlive them.
//!
//! [`Drive::stored`] makes a drive of what was kept of an earlier one: as that
//! would come back after a loss of power at which stored energy saved all that
//! was in its buffer. Everything acknowledged is there, since a
//! drive keeps what completions stand for before it gives them out, and whoever
//! owns it asks [`Drive::keep`] whether it could before they go further; open
//! zones are closed, and zones of which nothing is left are empty (ZNS command
//! set 1.1, section 2.1.1.3). Random write areas are there with their contents.
//!
//! Wear, totals and the mapping of zones to flash come from a checkpoint, made
//! at an orderly end and now and then; they are made to agree with the zones.
//! Data depends on neither: it is addressed by zone.

use serde::{Deserialize, Serialize};
use zonelab_device::{Nanos, ZoneId};
use zonelab_nvme::zns::ZoneState;

use crate::account::Totals;
use crate::config::{DataStore, DriveConfig};
use crate::contents::{Contents, Data, ZoneRecord};
use crate::drive::{BackEnd, Core, Drive};
use crate::flash::{Flash, SavedFlash, TOTAL_MAX, Version1};
use crate::layout::Layout;
use crate::mapping::{SavedMapping, elements_behind};
use crate::zones::Zones;

pub use crate::snapshot::{SnapshotError as ShapeError, check_shape, shape};

/// Resets between two checkpoints.
const RESETS_PER_CHECKPOINT: u64 = 64;

/// What was kept of a drive.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Records of all zones, in order.
    pub zones: Vec<ZoneRecord>,
    /// Of each conventional namespace, the block of it that each place of its
    /// zones holds: zone by zone, as many as the capacity of a zone.
    pub logs: Vec<Vec<Option<u32>>>,
    /// What [`Contents::checkpoint`] got last.
    pub checkpoint: Option<Vec<u8>>,
    /// What [`Contents::keep_reservations`] got last; empty: nothing.
    pub reservations: Vec<u8>,
}

/// Where reservations are kept that outlive a drive ([`Drive::kept_reservations`]).
pub struct KeptReservations<'a>(&'a mut Core);

impl KeptReservations<'_> {
    /// Most bytes that can be kept; 0: none.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match &self.0.data {
            Some(Data::Outside(contents)) => contents.reservation_bytes_max(),
            _ => 0,
        }
    }

    /// Takes those that were kept of an earlier drive; empty: there were none, or they were taken
    /// before.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0.reservations)
    }

    /// Keeps others in their place. [`Drive::keep`] says whether that succeeded.
    pub fn put(&mut self, bytes: &[u8]) {
        if let Some(contents) = self.0.outside() {
            contents.keep_reservations(bytes);
        }
    }
}

/// What was kept cannot be of this drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was kept of the drive holds something impossible: {what}")]
pub struct Impossible {
    /// What.
    pub what: String,
}

/// Contents could not be kept: nothing that the drive did since can be relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the contents of the drive cannot be kept any more: {what}")]
pub struct NotKept {
    /// What went wrong.
    pub what: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Checkpoint {
    flash: SavedFlash,
    totals: Totals,
    collect_program_bytes: u64,
}

/// A checkpoint from before states of blocks were kept. Elements follow, if zones consist
/// of them.
#[derive(Debug, Deserialize)]
struct Checkpoint1 {
    flash: Version1,
    totals: Totals,
    collect_program_bytes: u64,
}

impl Checkpoint {
    /// What is in a checkpoint of now or of then; `None`: nothing that makes sense.
    fn read(bytes: &[u8], config: &DriveConfig) -> Option<Self> {
        match postcard::take_from_bytes::<Self>(bytes) {
            Ok((checkpoint, [])) => return Some(checkpoint),
            // What folds have programmed.
            Ok((mut checkpoint, rest)) if config.slc_cache.is_some() => {
                checkpoint.totals.fold_program_bytes = postcard::from_bytes(rest).ok()?;
                return Some(checkpoint);
            }
            _ => {}
        }
        let (old, rest) = postcard::take_from_bytes::<Checkpoint1>(bytes).ok()?;
        let elements = elements_behind(config, || postcard::from_bytes(rest)).ok()?;
        Some(Self {
            flash: old.flash.into_saved(config, elements, None).ok()?,
            totals: old.totals,
            collect_program_bytes: old.collect_program_bytes,
        })
    }
}

/// The number of bytes that a checkpoint of a drive never exceeds.
#[must_use]
pub fn checkpoint_bytes_max(config: &DriveConfig) -> u64 {
    let geometry = &config.geometry;
    let blocks = u64::from(geometry.planes_total()) * u64::from(geometry.blocks_per_plane);
    // A number has at most 5 bytes if it is one of 32 bits.
    4096 + 5 * blocks + SavedMapping::bytes_max(config, &Layout::new(config))
}

impl Core {
    fn keep_in(&mut self, contents: Box<dyn Contents>) {
        self.data = Some(Data::Outside(contents));
        self.zones.track();
    }

    const fn is_stored(&self) -> bool {
        matches!(self.data, Some(Data::Outside(_)))
    }

    #[inline]
    pub(crate) fn keep(&mut self) -> Result<(), NotKept> {
        if self.is_stored() {
            self.keep_outside()
        } else {
            Ok(())
        }
    }

    fn keep_outside(&mut self) -> Result<(), NotKept> {
        self.keep_zones();
        let is_sync_wanted = core::mem::take(&mut self.is_sync_wanted);
        let is_checkpoint_due = self.totals.resets - self.resets_kept >= RESETS_PER_CHECKPOINT;
        let checkpoint = is_checkpoint_due.then(|| self.checkpoint());
        let Some(contents) = self.outside() else {
            return Ok(());
        };
        if let Some(bytes) = checkpoint {
            contents.checkpoint(&bytes);
        }
        if is_sync_wanted {
            contents.sync();
        }
        contents
            .failure()
            .map_or(Ok(()), |what| Err(NotKept { what }))
    }

    fn limit_data(&mut self, bytes: Option<u64>) {
        if let Some(Data::Memory(data)) = &mut self.data {
            data.limit(bytes);
        }
    }

    /// Brings the records of zones up to date.
    pub(crate) fn keep_zones(&mut self) {
        let Some(Data::Outside(contents)) = &mut self.data else {
            return;
        };
        for zone in self.zones.take_changed() {
            contents.keep_zone(zone, &self.zones.record_of(zone));
        }
    }

    /// Forgets the data of a zone that was reset.
    pub(crate) fn clear_data(&mut self, zone: ZoneId) {
        match &mut self.data {
            None => {}
            Some(Data::Memory(data)) => data.clear(zone),
            Some(Data::Outside(contents)) => {
                contents.keep_zone(zone, &self.zones.record_of(zone));
                contents.clear(zone);
                self.zones.was_kept(zone);
            }
        }
    }

    fn outside(&mut self) -> Option<&mut dyn Contents> {
        self.data.as_mut()?.outside()
    }

    fn checkpoint(&mut self) -> Vec<u8> {
        self.resets_kept = self.totals.resets;
        let checkpoint = Checkpoint {
            flash: self.flash.save().without_placements(),
            totals: self.totals,
            collect_program_bytes: self.totals.collect_program_bytes,
        };
        let mut bytes = postcard::to_stdvec(&checkpoint).expect("writing to memory does not fail");
        // Checkpoints of drives without an SLC cache say nothing of it.
        if self.flash.has_cache() {
            bytes = postcard::to_extend(&self.totals.fold_program_bytes, bytes)
                .expect("writing to memory does not fail");
        }
        bytes
    }

    /// Takes wear, mapping and totals from a checkpoint, if they can be those
    /// of this drive. Otherwise its flash is as good as new: no data depends on it.
    fn resume_wear(&mut self, checkpoint: &Checkpoint) {
        let totals = Totals {
            collect_program_bytes: checkpoint.collect_program_bytes,
            ..checkpoint.totals
        };
        let mut flash = Flash::new(&self.config);
        if flash.restore(&self.config, &checkpoint.flash).is_err() {
            return;
        }
        let own = totals
            .fill_program_bytes
            .checked_add(totals.collect_program_bytes)
            .and_then(|bytes| bytes.checked_add(totals.fold_program_bytes));
        let is_possible = own.is_some_and(|bytes| bytes <= flash.totals().1);
        if is_possible && totals.largest() <= TOTAL_MAX {
            self.flash = flash;
            self.totals = totals;
        }
    }
}

impl Drive {
    /// Whether its contents are kept outside.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        self.core.is_stored()
    }

    /// Brings what is kept outside up to date, and says whether it is: whoever owns the drive
    /// calls it before what [`DriveModel::advance`](crate::DriveModel::advance) gave leaves the
    /// process. `advance` itself keeps what its completions stand for. Costs nothing if nothing
    /// is kept outside.
    ///
    /// # Errors
    /// Contents were not kept. Completions that are not out must stay in, as if
    /// power had been lost before them.
    #[inline]
    pub fn keep(&mut self) -> Result<(), NotKept> {
        self.core.keep()
    }

    /// Where reservations of hosts are kept, of which the drive knows no more than their bytes.
    pub fn kept_reservations(&mut self) -> KeptReservations<'_> {
        KeptReservations(&mut self.core)
    }

    /// Lets data that the drive keeps in its memory take no more than so many
    /// bytes (in pieces of 64 KiB). A write beyond fails with Capacity Exceeded
    /// and changes nothing; resets make room.
    pub fn limit_data(&mut self, bytes: Option<u64>) {
        self.core.limit_data(bytes);
    }

    /// A drive in the state that was kept, which keeps its contents in `contents`
    /// from now on: idle, at time zero.
    ///
    /// # Errors
    /// What is impossible about the state, or about a drive that keeps no data.
    pub fn stored(
        config: &DriveConfig,
        kept: &Kept,
        contents: Box<dyn Contents>,
    ) -> Result<Self, Impossible> {
        let impossible = |what: String| Impossible { what };
        if config.data != DataStore::Memory {
            return Err(impossible("contents of a drive that keeps no data".into()));
        }
        let zones = Zones::recovered(&config.zones, &config.namespaces(), &kept.zones);
        let mut drive = Self::new(config);
        drive.core.zones = zones.map_err(impossible)?;
        let checkpoint = kept.checkpoint.as_deref();
        if let Some(checkpoint) = checkpoint.and_then(|bytes| Checkpoint::read(bytes, config)) {
            drive.core.resume_wear(&checkpoint);
        }
        drive.core.flash.empty_cache();
        drive.back_end().settle_wear().map_err(impossible)?;
        if kept.logs.len() != drive.conventional.len() {
            return Err(impossible(format!("{} logs", kept.logs.len())));
        }
        for (of, blocks) in drive.conventional.iter_mut().zip(&kept.logs) {
            of.recover(blocks, &drive.core.zones).map_err(impossible)?;
        }
        if let Some(buffer) = &mut drive.buffer {
            buffer.settle(&drive.core.zones);
        }
        drive
            .background
            .resume_erasures(&mut drive.core, Nanos::ZERO);
        drive
            .background
            .resume_folding(&mut drive.core, Nanos::ZERO);
        drive.core.resets_kept = drive.core.totals.resets;
        drive.core.reservations = kept.reservations.clone();
        drive.core.keep_in(contents);
        drive
            .plain
            .look(&drive.core, &drive.background, drive.buffer.is_some());
        if let Some(contents) = drive.core.outside() {
            contents.begin();
        }
        // What was open is closed now: the limits hold for what is kept, too.
        drive.core.zones.note_differences(&kept.zones);
        drive.core.keep_zones();
        Ok(drive)
    }

    /// Switches the drive off in good order. It can be used no more.
    ///
    /// # Errors
    /// As [`Drive::keep`].
    pub fn switch_off(&mut self) -> Result<(), NotKept> {
        self.core.keep()?;
        let checkpoint = self.core.is_stored().then(|| self.core.checkpoint());
        let (Some(contents), Some(bytes)) = (self.core.outside(), checkpoint) else {
            return Ok(());
        };
        contents.checkpoint(&bytes);
        contents.close();
        contents
            .failure()
            .map_or(Ok(()), |what| Err(NotKept { what }))
    }

    /// Makes it a fresh drive of `config`, which differs in the size of blocks
    /// only (Format NVM). What is kept outside goes with it.
    pub fn format(&mut self, config: &DriveConfig) {
        let data = self.core.data.take();
        *self = Self::new(config);
        match data {
            Some(Data::Outside(mut contents)) => {
                contents.format(config.lba_bytes);
                self.core.keep_in(contents);
            }
            Some(Data::Memory(data)) => self.core.limit_data(data.limit_bytes()),
            None => {}
        }
        self.plain
            .look(&self.core, &self.background, self.buffer.is_some());
    }
}

impl BackEnd<'_> {
    /// Makes the flash agree with the zones, which are right.
    ///
    /// # Errors
    /// There is not enough of it.
    fn settle_wear(&mut self) -> Result<(), String> {
        let page_lbas = u64::from(self.core.flash.layout().page_lbas());
        let zones = || (0..self.core.zones.count()).map(ZoneId);
        // Fits: a zone has fewer than 2^32 pages.
        let pages_of = |zone| self.core.zones.host_lbas(zone).div_ceil(page_lbas) as u32;
        let zones: Vec<(ZoneId, u32)> = zones().map(|zone| (zone, pages_of(zone))).collect();
        // First all that gives something back: others may have it.
        for &(zone, pages) in &zones {
            self.settle_mapped(zone, pages);
        }
        self.core.release_unwritten();
        for &(zone, pages) in &zones {
            self.settle_unmapped(zone, pages)?;
        }
        Ok(())
    }

    /// Takes flash from a zone that is not that of a checkpoint any more, or what a
    /// finish took since.
    fn settle_mapped(&mut self, zone: ZoneId, pages: u32) {
        let Some(physical) = self.core.flash.mapping().physical(zone) else {
            return;
        };
        let state = self.core.zones.state(zone);
        let programmed = self.core.flash.zone_state(physical).0;
        let is_active = self.core.is_active(zone);
        let needed = match is_active {
            true => self.core.flash.layout().zone_pages(),
            false => pages,
        };
        let was_reset = programmed > pages && state != ZoneState::FULL;
        if was_reset || !self.core.flash.has_pages(physical, needed) {
            self.core.flash.release(zone);
        } else if !is_active {
            // Fits, as above.
            let written = self.core.zones.host_lbas(zone) as u32;
            self.background.trim_finished(self.core, zone, written);
        }
    }

    /// Gives a zone flash for what it holds, and if it is active for the rest.
    fn settle_unmapped(&mut self, zone: ZoneId, pages: u32) -> Result<(), String> {
        let is_active = self.core.is_active(zone);
        // The others get theirs when they are written.
        if pages == 0 && !(is_active && self.core.config.allocation.thin) {
            return Ok(());
        }
        let physical = match (
            self.core.flash.mapping().physical(zone),
            self.background.gives_back(),
        ) {
            (Some(physical), _) => Some(physical),
            (None, Some(by_line)) if !is_active => {
                let written = (pages, by_line);
                self.core.flash.map_finished(zone, written)
            }
            (None, _) => {
                let is_there = self.core.flash.zones_left(zone) > 0;
                is_there.then(|| self.core.flash.map(zone))
            }
        };
        let physical = physical.ok_or_else(|| format!("no flash for zone {}", zone.0))?;
        if self.core.flash.zone_state(physical).0 < pages {
            self.core.flash.precondition(physical, pages);
        }
        Ok(())
    }
}
