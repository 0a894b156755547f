//! Zones with a random write area (ZRWA): writes anywhere in the area, and commits.
//!
//! The area is the blocks from the write pointer on, as many as the namespace says (ZRWASZ). They
//! can be written in any order and again, until a commit moves the write pointer over them. Drives
//! also commit by themselves when a write goes beyond the area; these handles send no such write,
//! so that the write pointer is where the last commit has put it.

use core::ops::Range;

use zonelab_device::{Buf, Lba, Op, QueuePair, ZrwaInfo};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::error::{MoveFailed, Refused, ZoneError};
use super::state::{ClosedRandom, Empty, Full, OpenRandom};
use super::zone::{Core, Zone};

/// Which blocks of an area a handle has written, counted from the write pointer. None, as
/// long as it is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Area(Box<[bool]>);

impl Area {
    /// Whether all blocks from `first` to `end` (exclusive) were written.
    pub(super) fn is_written(&self, first: u64, end: u64) -> bool {
        let range = usize::try_from(first).ok().zip(usize::try_from(end).ok());
        let blocks = range.and_then(|(first, end)| self.0.get(first..end));
        blocks.is_some_and(|blocks| blocks.iter().all(|is_written| *is_written))
    }

    /// Blocks were written, of an area of `size` blocks.
    fn note(&mut self, size: u32, first: u64, blocks: u32) {
        if self.0.is_empty() {
            self.0 = vec![false; size as usize].into_boxed_slice();
        }
        let end = first as usize + blocks as usize;
        if let Some(written) = self.0.get_mut(first as usize..end) {
            written.fill(true);
        }
    }

    /// The write pointer moves.
    fn advance(&mut self, blocks: u64) {
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        let gone = blocks.min(self.0.len());
        self.0.rotate_left(gone);
        let kept = self.0.len() - gone;
        self.0[kept..].fill(false);
    }
}

impl<Q: QueuePair> Core<'_, Q> {
    /// What areas are like here.
    fn areas(&self) -> Result<ZrwaInfo, ZoneError> {
        let none = |why| ZoneError::NoArea { zone: self.id, why };
        let zrwa = self.namespace.facts().zrwa;
        let zrwa = zrwa.ok_or_else(|| none("the namespace has none (OZCS)"))?;
        match zrwa.explicit_flush && zrwa.flush_granularity_lbas > 0 {
            true => Ok(zrwa),
            false => Err(none("the drive has no Flush Explicit ZRWA (ZRWACAP)")),
        }
    }

    /// The block behind the last of the area.
    fn end_of_area(&self) -> u64 {
        let size = self.namespace.facts().zrwa.map_or(0, |zrwa| zrwa.size_lbas);
        self.wp.saturating_add(size.into()).min(self.end())
    }

    /// The blocks of a write at `lba`, if they are all in the area.
    fn blocks_in_area(&self, lba: Lba, data: &Buf) -> Result<u32, ZoneError> {
        self.check_known()?;
        let blocks = self.blocks(data, self.namespace.facts().max_transfer_bytes)?;
        let (start, end) = (self.wp, self.end_of_area());
        let behind = lba.0.checked_add(blocks.into());
        match lba.0 >= start && behind.is_some_and(|behind| behind <= end) {
            true => Ok(blocks),
            false => Err(ZoneError::NotInArea {
                zone: self.id,
                lba,
                blocks: blocks.into(),
                start: Lba(start),
                end: Lba(end),
            }),
        }
    }

    /// How many blocks a commit up to `end` moves the write pointer.
    fn step_to(&self, end: Lba) -> Result<u64, ZoneError> {
        self.check_known()?;
        let granularity_lbas = self.areas()?.flush_granularity_lbas;
        let (start, most) = (self.wp, self.end_of_area());
        let step = end.0.checked_sub(start).filter(|_| end.0 <= most);
        let is_even = |step: &u64| step.is_multiple_of(granularity_lbas.into());
        step.filter(is_even).ok_or(ZoneError::NotCommittable {
            zone: self.id,
            end,
            start: Lba(start),
            most: Lba(most),
            granularity_lbas,
        })
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, Empty> {
    /// Opens it with a random write area.
    ///
    /// # Errors
    /// [`ZoneError::NoArea`] if zones of the namespace can have none, or if the drive does not
    /// commit when it is told to: nothing was sent. Else the drive refuses
    /// ([`Status::ZRWA_RESOURCES_UNAVAILABLE`](zonelab_nvme::Status::ZRWA_RESOURCES_UNAVAILABLE),
    /// for example), or does not answer in time.
    pub fn open_random(self) -> Result<Zone<'ns, Q, OpenRandom>, MoveFailed<'ns, Q>> {
        if let Err(error) = self.core.areas() {
            return Err(self.core.failed(error));
        }
        let (slba, action) = (Lba(self.core.start), ZoneSendAction::OPEN);
        let op = Op::ZrwaSend { slba, action };
        Ok(self.core.act_by("the open with an area", op)?.into())
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, ClosedRandom> {
    /// Opens it, for writing. It has its area still.
    ///
    /// # Errors
    /// The drive refuses, or does not answer in time.
    pub fn open(self) -> Result<Zone<'ns, Q, OpenRandom>, MoveFailed<'ns, Q>> {
        Ok(self.core.act("the open", ZoneSendAction::OPEN)?.into())
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, OpenRandom> {
    /// The first block that is not committed. Only [`Self::commit`] moves it.
    #[must_use]
    pub const fn write_pointer(&self) -> Lba {
        Lba(self.core.wp)
    }

    /// The blocks that can be written: from the write pointer on, as many as an area and the zone
    /// have.
    #[must_use]
    pub fn area(&self) -> Range<Lba> {
        Lba(self.core.wp)..Lba(self.core.end_of_area())
    }

    /// Blocks by which the write pointer moves (ZRWAFG).
    #[must_use]
    pub fn granularity_lbas(&self) -> u32 {
        let zrwa = self.core.namespace.facts().zrwa;
        zrwa.map_or(1, |zrwa| zrwa.flush_granularity_lbas)
    }

    /// Writes whole blocks anywhere in the area, over what is there. The write pointer stays.
    /// What this handle has written to the area, it can read.
    ///
    /// # Errors
    /// [`ZoneError::NotInArea`], [`ZoneError::NotBlocks`], [`ZoneError::TooLarge`],
    /// [`ZoneError::NotKnown`]: nothing was sent. If the drive refuses or does not answer in time,
    /// the handle has to be refreshed.
    pub fn write_at(&mut self, lba: Lba, data: Buf) -> Result<Buf, Refused> {
        let core = &mut self.core;
        let nlb = match core.blocks_in_area(lba, &data) {
            Ok(nlb) => nlb,
            Err(error) => return Err(Refused::new(error, data)),
        };
        let op = Op::Write { slba: lba, nlb };
        let (_, data) = core.transfer("the write", op, data, true)?;
        let size = core.namespace.facts().zrwa.map_or(0, |zrwa| zrwa.size_lbas);
        core.area.note(size, lba.0 - core.wp, nlb);
        Ok(data)
    }

    /// Commits the blocks up to `end` (exclusive): the write pointer moves there, and they are not
    /// written again. Those that were never written read as zeros from then on. The last block of
    /// the zone makes it full: see [`Self::seal`].
    ///
    /// # Errors
    /// [`ZoneError::NotCommittable`], [`ZoneError::NotKnown`]: nothing was sent. If the drive
    /// refuses or does not answer in time, the handle has to be refreshed.
    pub fn commit(&mut self, end: Lba) -> Result<(), ZoneError> {
        let core = &mut self.core;
        let step = core.step_to(end)?;
        if step == 0 {
            return Ok(());
        }
        let op = Op::ZoneSend {
            slba: Lba(end.0 - 1),
            action: ZoneSendAction::ZRWA_FLUSH,
            select_all: false,
        };
        let mut engine = core.namespace.engine();
        let ended = engine.run(Some(core.id), "the commit", op, None);
        drop(engine);
        if let Err(refused) = ended {
            core.doubt();
            return Err(refused.error);
        }
        core.wp = end.0;
        core.area.advance(step);
        Ok(())
    }

    /// Closes it: it frees its open resource, and keeps its area with what was written there.
    ///
    /// # Errors
    /// [`ZoneError::WrongState`] if it was committed to its end: see [`Self::seal`]. Else the
    /// drive refuses, or does not answer in time.
    pub fn close(self) -> Result<Zone<'ns, Q, ClosedRandom>, MoveFailed<'ns, Q>> {
        if self.core.room() == 0 {
            let (zone, state) = (self.core.id, ZoneState::FULL);
            return Err(self.core.failed(ZoneError::WrongState { zone, state }));
        }
        Ok(self.core.act("the close", ZoneSendAction::CLOSE)?.into())
    }

    /// The handle of a full zone, if the last block has been committed. No command is sent.
    ///
    /// # Errors
    /// There is room left, or the handle has to be refreshed: it comes back as it was.
    pub fn seal(self) -> Result<Zone<'ns, Q, Full>, Self> {
        match self.core.room() == 0 && !self.needs_refresh() {
            true => Ok(self.core.full()),
            false => Err(self),
        }
    }
}
