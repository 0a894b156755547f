//! Where a drive keeps what is written: in its own memory, or outside of it.
//!
//! The model does no I/O. Whoever wants the contents of a drive to outlive it
//! implements [`Contents`], hands it over ([`crate::Drive::stored`]), and asks
//! [`crate::Drive::keep`] before it lets completions out. The order of calls is
//! the contract:
//!
//! * data of a write, and the blocks of a log that it holds, come first, then
//!   the record of the zone that says that they are there;
//! * the record of a zone that was reset comes first, then its data is cleared;
//! * what a collection has moved is recorded before its old place is reset;
//! * what completions stand for is recorded, and synchronised if they are of a Flush, before
//!   they are given to anybody.
//!
//! So after any prefix of the calls the records are true of the data.
//!
//! Data can fail to be written: the medium is full, or broken. So it is written
//! before the drive takes the command, where nothing counts yet; if that fails,
//! the command fails with a status and nothing has changed.

use core::fmt::Debug;
use core::ops::Range;

use zonelab_device::ZoneId;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;

use crate::data::SparseData;

/// What there is to know of a zone besides its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRecord {
    /// Its state.
    pub state: ZoneState,
    /// Blocks that the host wrote, from the start of the zone.
    pub host_lbas: u64,
    /// It was finished before it was written to its capacity.
    pub is_finished: bool,
    /// The controller finished it (Zone Finished by Controller).
    pub by_controller: bool,
    /// The block behind the last that was written to its random write area, if
    /// it has one.
    pub zrwa_end_lbas: Option<u64>,
    /// Its descriptor extension, if it has one.
    pub extension: Option<Box<[u8]>>,
}

impl ZoneRecord {
    /// That of a zone of a fresh drive.
    pub const EMPTY: Self = Self {
        state: ZoneState::EMPTY,
        host_lbas: 0,
        is_finished: false,
        by_controller: false,
        zrwa_end_lbas: None,
        extension: None,
    };

    /// The zone counts against the limit of active zones.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(
            self.state,
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED
        )
    }

    /// The block behind the last that can hold data.
    #[must_use]
    pub fn data_end_lbas(&self) -> u64 {
        self.host_lbas.max(self.zrwa_end_lbas.unwrap_or(0))
    }
}

/// Data could not be written. What was at its place before is there still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWritten {
    /// There is no room.
    Full,
    /// The medium failed.
    Failed,
}

impl NotWritten {
    /// What a host is told.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Full => Status::CAPACITY_EXCEEDED,
            Self::Failed => Status::WRITE_FAULT,
        }
    }
}

/// Data cannot be read, or is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Contents of a drive that are kept outside of it.
///
/// Zones are counted over the drive, offsets in bytes from the start of the
/// zone; data is whole blocks. What returns nothing does not fail as far as the
/// drive is concerned: an implementation that cannot do it remembers that, does
/// nothing more, and says so in [`Contents::failure`]; whoever owns the drive
/// lets no completion out then.
pub trait Contents: Debug + Send {
    /// A drive was made of what was kept, and goes on from there.
    fn begin(&mut self);
    /// Stores `bytes` at `offset`.
    ///
    /// # Errors
    /// Nothing has changed.
    fn write(&mut self, zone: ZoneId, offset: u64, bytes: &[u8]) -> Result<(), NotWritten>;
    /// Stores zeros.
    ///
    /// # Errors
    /// Nothing has changed.
    fn write_zeroes(&mut self, zone: ZoneId, range: Range<u64>) -> Result<(), NotWritten>;
    /// Stores blocks that cannot be read.
    ///
    /// # Errors
    /// Nothing has changed.
    fn write_unreadable(&mut self, zone: ZoneId, range: Range<u64>) -> Result<(), NotWritten>;
    /// Fills `out` from `offset`; what was never written reads as zeros.
    ///
    /// # Errors
    /// A block cannot be read; `out` may hold anything.
    fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) -> Result<(), Unreadable>;
    /// Forgets the data of a zone that was reset. Its record comes before. What
    /// [`Contents::sync`] covered must outlive a failure of the machine until the
    /// next one: blocks that a collection moved, or a host wrote over elsewhere,
    /// may be durable here alone.
    fn clear(&mut self, zone: ZoneId);
    /// Forgets bytes that are written to no more, and may be written again.
    fn discard(&mut self, zone: ZoneId, range: Range<u64>);
    /// Keeps the record of a zone.
    fn keep_zone(&mut self, zone: ZoneId, record: &ZoneRecord);
    /// In a zone of a conventional namespace, `count` places from `offset_lbas`
    /// on hold the blocks of the namespace from `block` on: a later such call
    /// for a block, or [`Contents::forget`], makes that void.
    ///
    /// # Errors
    /// Nothing has changed.
    fn place(
        &mut self,
        zone: ZoneId,
        offset_lbas: u32,
        block: u32,
        count: u32,
    ) -> Result<(), NotWritten>;
    /// Blocks of a conventional namespace (by position among those) hold nothing.
    ///
    /// # Errors
    /// Some of them may hold nothing.
    fn forget(&mut self, log: u8, blocks: Range<u32>) -> Result<(), NotWritten>;
    /// Keeps what the drive would know better than nothing: wear and totals. It
    /// may be older than the rest.
    fn checkpoint(&mut self, bytes: &[u8]);
    /// Keeps the reservations of hosts, of which the drive knows no more than these bytes, in
    /// place of those before. They outlive a failure of the machine at once, and a format.
    fn keep_reservations(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }
    /// Most bytes that [`Contents::keep_reservations`] keeps; 0: it keeps none.
    fn reservation_bytes_max(&self) -> usize {
        0
    }
    /// Everything so far outlives a failure of the machine (Flush).
    fn sync(&mut self);
    /// The drive is formatted: nothing is left, and blocks have that size.
    fn format(&mut self, lba_bytes: u32);
    /// The drive is switched off in good order. Nothing follows.
    fn close(&mut self);
    /// What went wrong, if something did.
    fn failure(&self) -> Option<String>;
}

/// Bytes that Verify looks at in one piece; a multiple of any size of blocks.
const VERIFIED_BYTES: usize = 128 << 10;

/// Where data goes.
#[derive(Debug)]
pub(crate) enum Data {
    /// Memory of the model.
    Memory(SparseData),
    /// Somebody else keeps it.
    Outside(Box<dyn Contents>),
}

impl Data {
    #[inline]
    pub(crate) fn write(
        &mut self,
        zone: ZoneId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), NotWritten> {
        match self {
            Self::Memory(data) if data.has_room(zone, offset, bytes) => {
                data.write(zone, offset, bytes);
                Ok(())
            }
            Self::Memory(_) => Err(NotWritten::Full),
            Self::Outside(contents) => contents.write(zone, offset, bytes),
        }
    }

    /// The same for data that the drive moves, which is there already, so that
    /// there is room in memory.
    pub(crate) fn write_moved(
        &mut self,
        zone: ZoneId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), NotWritten> {
        match self {
            Self::Memory(data) => {
                data.write(zone, offset, bytes);
                Ok(())
            }
            Self::Outside(contents) => contents.write(zone, offset, bytes),
        }
    }

    /// A write can fail, so that it has to come before what depends on it.
    #[inline]
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Memory(data) => data.is_limited(),
            Self::Outside(_) => true,
        }
    }

    #[inline]
    pub(crate) fn read(&self, zone: ZoneId, offset: u64, out: &mut [u8]) -> Result<(), Unreadable> {
        match self {
            Self::Memory(data) => {
                data.read(zone, offset, out);
                Ok(())
            }
            Self::Outside(contents) => contents.read(zone, offset, out),
        }
    }

    pub(crate) fn is_same(
        &self,
        zone: ZoneId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<bool, Unreadable> {
        match self {
            Self::Memory(data) => Ok(data.is_same(zone, offset, bytes)),
            Self::Outside(contents) => {
                let mut mine = vec![0; bytes.len()];
                contents.read(zone, offset, &mut mine)?;
                Ok(mine == bytes)
            }
        }
    }

    /// Looks at data, as Verify does.
    pub(crate) fn verify(&self, zone: ZoneId, range: Range<u64>) -> Result<(), Unreadable> {
        let Self::Outside(contents) = self else {
            return Ok(());
        };
        let mut piece = vec![0; VERIFIED_BYTES];
        let mut at = range.start;
        while at < range.end {
            // Fits: no more than a piece.
            let bytes = (range.end - at).min(VERIFIED_BYTES as u64) as usize;
            contents.read(zone, at, &mut piece[..bytes])?;
            at += bytes as u64;
        }
        Ok(())
    }

    /// Forgets bytes below what the zone has written.
    pub(crate) fn discard(&mut self, zone: ZoneId, range: Range<u64>) {
        match self {
            Self::Memory(data) => data.discard(zone, range),
            Self::Outside(contents) => contents.discard(zone, range),
        }
    }

    pub(crate) fn outside(&mut self) -> Option<&mut dyn Contents> {
        match self {
            Self::Memory(_) => None,
            Self::Outside(contents) => Some(&mut **contents),
        }
    }
}
