//! Commands of a test drive.

use zonelab_device::{Buf, Lba, Op};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::state::Answer;
use super::{TestDrive, TestDriveError};

/// A zone as the drive reports it. All counts are of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Its first block.
    pub start: u64,
    /// Blocks that can be written.
    pub capacity: u64,
    /// Where the write pointer is, counted from its start: the capacity if it is full.
    pub written: u64,
    /// Its state.
    pub state: ZoneState,
}

impl ZoneReport {
    /// The block that is written next.
    #[must_use]
    pub const fn write_pointer(&self) -> u64 {
        self.start + self.written
    }
}

/// A command that is under way. Whoever wants several at a time starts them, and waits
/// for each ([`Started::wait`]).
#[derive(Debug)]
#[must_use = "it is not known whether it succeeds before somebody waits for it"]
pub struct Started {
    drive: TestDrive,
    tag: u32,
    losses: u32,
}

impl Started {
    fn answer(self) -> Result<Answer, TestDriveError> {
        self.drive.state().wait(self.tag, self.losses)
    }

    /// Waits until the drive has carried it out. Returns the block that an append was
    /// written to, and 0 of other commands.
    ///
    /// # Errors
    /// The status with which it ended, or [`TestDriveError::PowerLost`]: nobody knows
    /// whether it was carried out.
    pub fn wait(self) -> Result<u64, TestDriveError> {
        self.answer().map(|answer| answer.result)
    }
}

impl TestDrive {
    fn start(&self, op: Op, data: Option<Buf>) -> Result<Started, TestDriveError> {
        let mut state = self.state();
        let tag = state.start(op, data)?;
        Ok(Started {
            losses: state.losses,
            drive: self.clone(),
            tag,
        })
    }

    /// Blocks of some data.
    fn blocks_of(&self, bytes: usize) -> Result<u32, TestDriveError> {
        let block = self.block_bytes as usize;
        let count = u32::try_from(bytes / block).unwrap_or(u32::MAX);
        match bytes.is_multiple_of(block) && (1..=self.most).contains(&count) {
            true => Ok(count),
            false => Err(TestDriveError::Length {
                bytes,
                block_bytes: self.block_bytes,
                most: self.most,
            }),
        }
    }

    /// The first block of a zone.
    pub(super) fn start_of(&self, zone: u32) -> Result<Lba, TestDriveError> {
        match zone < self.zones {
            true => Ok(Lba(u64::from(zone) * self.zone_size)),
            false => Err(TestDriveError::NoSuchZone {
                zone,
                zones: self.zones,
            }),
        }
    }

    /// Reads `blocks` blocks from block `at` on. Blocks that were never written are zeros.
    ///
    /// # Errors
    /// The status with which the command ended, for instance
    /// [`Status::LBA_OUT_OF_RANGE`](zonelab_nvme::Status::LBA_OUT_OF_RANGE), and those
    /// of [`TestDriveError`].
    pub fn read(&self, at: u64, blocks: u32) -> Result<Vec<u8>, TestDriveError> {
        let bytes = blocks as usize * self.block_bytes as usize;
        self.blocks_of(bytes)?;
        let (slba, nlb) = (Lba(at), blocks);
        let read = self.start(Op::Read { slba, nlb }, Some(Buf::zeroed(bytes)))?;
        let data = read.answer()?.data;
        Ok(data.map_or_else(Vec::new, |data| data.to_vec()))
    }

    /// Writes whole blocks from block `at` on. With zones, that is the write pointer of
    /// one.
    ///
    /// # Errors
    /// The status with which the command ended, for instance
    /// [`Status::ZONE_INVALID_WRITE`](zonelab_nvme::Status::ZONE_INVALID_WRITE), and
    /// those of [`TestDriveError`].
    pub fn write(&self, at: u64, data: &[u8]) -> Result<(), TestDriveError> {
        self.start_write(at, data)?.wait().map(drop)
    }

    /// The same without waiting for its end.
    ///
    /// # Errors
    /// The drive did not take it.
    pub fn start_write(&self, at: u64, data: &[u8]) -> Result<Started, TestDriveError> {
        let (slba, nlb) = (Lba(at), self.blocks_of(data.len())?);
        self.start(Op::Write { slba, nlb }, Some(Buf::from(data.to_vec())))
    }

    /// Appends whole blocks to a zone. Returns the block that the first was written to.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(&self, zone: u32, data: &[u8]) -> Result<u64, TestDriveError> {
        self.start_append(zone, data)?.wait()
    }

    /// The same without waiting for its end.
    ///
    /// # Errors
    /// The drive did not take it.
    pub fn start_append(&self, zone: u32, data: &[u8]) -> Result<Started, TestDriveError> {
        let (zslba, nlb) = (self.start_of(zone)?, self.blocks_of(data.len())?);
        self.start(Op::Append { zslba, nlb }, Some(Buf::from(data.to_vec())))
    }

    /// Makes all durable that was acknowledged before.
    ///
    /// # Errors
    /// Those of [`TestDriveError`].
    pub fn flush(&self) -> Result<(), TestDriveError> {
        self.start(Op::Flush, None)?.wait().map(drop)
    }

    fn manage(&self, zone: u32, action: ZoneSendAction) -> Result<(), TestDriveError> {
        let op = Op::ZoneSend {
            slba: self.start_of(zone)?,
            action,
            select_all: false,
        };
        self.start(op, None)?.wait().map(drop)
    }

    /// Opens a zone explicitly.
    ///
    /// # Errors
    /// The status with which the command ended, for instance
    /// [`Status::TOO_MANY_OPEN_ZONES`](zonelab_nvme::Status::TOO_MANY_OPEN_ZONES).
    pub fn open_zone(&self, zone: u32) -> Result<(), TestDriveError> {
        self.manage(zone, ZoneSendAction::OPEN)
    }

    /// Closes a zone: it stays active.
    ///
    /// # Errors
    /// As [`Self::open_zone`].
    pub fn close_zone(&self, zone: u32) -> Result<(), TestDriveError> {
        self.manage(zone, ZoneSendAction::CLOSE)
    }

    /// Finishes a zone: nothing can be written to it before it is reset.
    ///
    /// # Errors
    /// As [`Self::open_zone`].
    pub fn finish_zone(&self, zone: u32) -> Result<(), TestDriveError> {
        self.manage(zone, ZoneSendAction::FINISH)
    }

    /// Resets a zone: it is empty, and what it held is gone.
    ///
    /// # Errors
    /// As [`Self::open_zone`].
    pub fn reset_zone(&self, zone: u32) -> Result<(), TestDriveError> {
        self.manage(zone, ZoneSendAction::RESET)
    }
}
