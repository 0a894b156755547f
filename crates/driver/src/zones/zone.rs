//! The handle of one zone.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use zonelab_device::{Buf, Lba, Op, QueuePair, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};

use super::append::Appender;
use super::error::{MoveFailed, Refused, ZoneError};
use super::namespace::ZonedNamespace;
use super::random::Area;
use super::report::ZoneInfo;
use super::state::{AnyZone, Closed, Empty, Finishable, Full, Open, Readable, Resettable, State};

/// Data that was written, and where.
#[derive(Debug)]
pub struct Written {
    /// The block where it begins.
    pub lba: Lba,
    /// The buffer.
    pub data: Buf,
}

/// What a handle knows, in whichever state its zone is. Dropping it gives the zone back to the
/// namespace.
pub(super) struct Core<'ns, Q: QueuePair> {
    pub(super) namespace: &'ns ZonedNamespace<Q>,
    pub(super) id: ZoneId,
    pub(super) start: u64,
    pub(super) capacity: u64,
    /// The block that is written next; the end of the zone where there is none.
    pub(super) wp: u64,
    /// Appends in flight, and blocks of those started since there were none.
    pub(super) appends: u32,
    pub(super) appended: u64,
    /// What this handle has written to the random write area of the zone; empty: it has none.
    pub(super) area: Area,
    /// False after a command that failed.
    known: Cell<bool>,
}

impl<Q: QueuePair> Drop for Core<'_, Q> {
    fn drop(&mut self) {
        self.namespace.release(self.id);
    }
}

impl<'ns, Q: QueuePair> Core<'ns, Q> {
    /// A zone of which nothing is known yet. The caller has taken it.
    pub(super) fn new(namespace: &'ns ZonedNamespace<Q>, id: ZoneId) -> Self {
        Self {
            namespace,
            id,
            start: 0,
            capacity: 0,
            wp: 0,
            appends: 0,
            appended: 0,
            area: Area::default(),
            known: Cell::new(false),
        }
    }

    /// Asks the drive.
    pub(super) fn refresh(mut self) -> Result<AnyZone<'ns, Q>, MoveFailed<'ns, Q>> {
        match self.namespace.look(self.id) {
            Ok(info) => {
                self.learn(&info);
                Ok(self.into_state(info.state, info.attributes.zrwav()))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn learn(&mut self, info: &ZoneInfo) {
        self.start = info.start.0;
        self.capacity = info.capacity_lbas;
        self.wp = info.write_pointer.map_or(self.end(), |lba| lba.0);
        (self.appends, self.appended) = (0, 0);
        self.area = Area::default();
        self.known.set(true);
    }

    fn into_state(self, state: ZoneState, has_area: bool) -> AnyZone<'ns, Q> {
        match state {
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED if has_area => {
                AnyZone::OpenRandom(self.into())
            }
            ZoneState::CLOSED if has_area => AnyZone::ClosedRandom(self.into()),
            ZoneState::EMPTY => AnyZone::Empty(self.into()),
            ZoneState::CLOSED => AnyZone::Closed(self.into()),
            ZoneState::FULL => AnyZone::Full(self.into()),
            ZoneState::READ_ONLY => AnyZone::ReadOnly(self.into()),
            ZoneState::OFFLINE => AnyZone::Offline(self.into()),
            // A report has no other states.
            _ => AnyZone::Open(self.into()),
        }
    }

    /// The handle after an error.
    pub(super) fn failed(self, error: ZoneError) -> MoveFailed<'ns, Q> {
        self.doubt();
        let zone = self.into();
        MoveFailed { error, zone }
    }

    /// From now on only a refresh is possible.
    pub(super) fn doubt(&self) {
        self.known.set(false);
    }

    /// The block behind the last that can be written.
    pub(super) const fn end(&self) -> u64 {
        self.start + self.capacity
    }

    /// Blocks that can still be written.
    pub(super) const fn room(&self) -> u64 {
        self.end() - self.wp - self.appended
    }

    /// Whether the handle may be used. One whose appends were forgotten may not.
    pub(super) fn check_known(&self) -> Result<(), ZoneError> {
        match self.known.get() && self.appends == 0 {
            true => Ok(()),
            false => Err(ZoneError::NotKnown { zone: self.id }),
        }
    }

    /// The blocks of a buffer that one command of at most `most` bytes moves.
    pub(super) fn blocks(&self, data: &Buf, most: u32) -> Result<u32, ZoneError> {
        let lba_bytes = self.namespace.lba_bytes();
        let bytes = data.len();
        if bytes == 0 || !bytes.is_multiple_of(lba_bytes as usize) {
            return Err(ZoneError::NotBlocks { bytes, lba_bytes });
        }
        if bytes > most as usize {
            return Err(ZoneError::TooLarge { bytes, most });
        }
        u32::try_from(bytes / lba_bytes as usize).map_err(|_| ZoneError::TooLarge { bytes, most })
    }

    /// The blocks of a buffer, if they fit.
    pub(super) fn blocks_that_fit(&self, data: &Buf, most: u32) -> Result<u32, ZoneError> {
        let blocks = self.blocks(data, most)?;
        let (zone, room) = (self.id, self.room());
        match u64::from(blocks) {
            blocks if blocks > room => Err(ZoneError::NoRoom { zone, blocks, room }),
            _ => Ok(blocks),
        }
    }

    /// The blocks of a read, if they are written.
    fn blocks_that_are_there(&self, lba: Lba, into: &Buf) -> Result<u32, ZoneError> {
        let blocks = self.blocks(into, self.namespace.facts().max_transfer_bytes)?;
        let end = lba.0.checked_add(blocks.into());
        let is_written = end.is_some_and(|end| {
            end <= self.wp
                || self
                    .area
                    .is_written(lba.0.max(self.wp) - self.wp, end - self.wp)
        });
        if lba.0 >= self.start && is_written {
            return Ok(blocks);
        }
        Err(ZoneError::NotWritten {
            zone: self.id,
            lba,
            blocks: blocks.into(),
            start: Lba(self.start),
            end: Lba(self.wp),
        })
    }

    /// Sends a command with data. What was sent and failed leaves the handle in doubt if it
    /// `changes` the zone or says that the zone is not what the handle takes it for.
    pub(super) fn transfer(
        &self,
        command: &'static str,
        op: Op,
        data: Buf,
        changes: bool,
    ) -> Result<(u64, Buf), Refused> {
        let ended = self
            .namespace
            .engine()
            .run(Some(self.id), command, op, Some(data));
        match ended {
            Ok(completion) => {
                let data = completion.data.unwrap_or_else(|| Buf::zeroed(0));
                Ok((completion.result, data))
            }
            Err(refused) => {
                let is_in_doubt = match refused.error {
                    ZoneError::Failed { status, .. } => changes || contradicts(status),
                    ZoneError::TimedOut { .. } => changes,
                    _ => false,
                };
                if is_in_doubt {
                    self.doubt();
                }
                Err(refused)
            }
        }
    }

    /// Sends an action that moves the zone.
    pub(super) fn act(
        self,
        command: &'static str,
        action: ZoneSendAction,
    ) -> Result<Self, MoveFailed<'ns, Q>> {
        let op = Op::ZoneSend {
            slba: Lba(self.start),
            action,
            select_all: false,
        };
        self.act_by(command, op)
    }

    /// Sends a command that moves the zone.
    pub(super) fn act_by(self, command: &'static str, op: Op) -> Result<Self, MoveFailed<'ns, Q>> {
        if let Err(error) = self.check_known() {
            return Err(self.failed(error));
        }
        let ended = self
            .namespace
            .engine()
            .run(Some(self.id), command, op, None);
        match ended {
            Ok(_) => Ok(self),
            Err(refused) => Err(self.failed(refused.error)),
        }
    }
}

/// Whether a read that ends so says that the zone is not what was reported.
fn contradicts(status: Status) -> bool {
    let of_zones = [
        Status::ZONE_BOUNDARY_ERROR,
        Status::ZONE_IS_OFFLINE,
        Status::ZONE_IS_READ_ONLY,
    ];
    of_zones.contains(&status)
}

/// The handle of a zone in state `S`: the only one that its namespace gives out.
///
/// The methods of each state are those that the state allows:
///
/// | state | moves | and besides |
/// | --- | --- | --- |
/// | [`Empty`] | `open`, `open_random`, `finish` | |
/// | [`Open`] | `close`, `finish`, `reset`, `seal` | `write`, `append`, `appender`, `read` |
/// | [`Closed`] | `open`, `finish`, `reset` | `read` |
/// | [`OpenRandom`](super::OpenRandom) | `close`, `finish`, `reset`, `seal` | `write_at`, `commit`, `read` |
/// | [`ClosedRandom`](super::ClosedRandom) | `open`, `finish`, `reset` | `read` |
/// | [`Full`] | `reset` | `read` |
/// | [`ReadOnly`](super::ReadOnly) | | `read` |
/// | [`Offline`](super::Offline), [`Unknown`](super::Unknown) | | |
///
/// `refresh` is possible in every state. What the table does not have does not compile. A full zone
/// cannot be written to:
///
/// ```compile_fail,E0599
/// # use zonelab_device::{Buf, QueuePair};
/// # use zonelab_driver::zones::{Full, Refused, Zone};
/// # fn f<Q: QueuePair>(mut zone: Zone<'_, Q, Full>, data: Buf) -> Result<(), Refused> {
/// zone.write(data)?;
/// # Ok(())
/// # }
/// ```
///
/// one that failed to move cannot be used before it is refreshed:
///
/// ```compile_fail,E0599
/// # use zonelab_device::QueuePair;
/// # use zonelab_driver::zones::{MoveFailed, Zone, Empty};
/// # fn f<Q: QueuePair>(failed: MoveFailed<'_, Q>) {
/// let _ = failed.zone.reset();
/// # }
/// ```
///
/// a handle is gone once it has moved:
///
/// ```compile_fail,E0382
/// # use zonelab_device::{Buf, QueuePair};
/// # use zonelab_driver::zones::{Open, Zone, ZoneError};
/// # fn f<Q: QueuePair>(mut zone: Zone<'_, Q, Open>, data: Buf) -> Result<(), ZoneError> {
/// let full = zone.finish()?;
/// zone.write(data)?; // `finish` has consumed it
/// # Ok(())
/// # }
/// ```
///
/// and nobody copies one:
///
/// ```compile_fail,E0599
/// # use zonelab_device::QueuePair;
/// # use zonelab_driver::zones::{Open, Zone};
/// # fn f<Q: QueuePair>(zone: Zone<'_, Q, Open>) {
/// let second = zone.clone();
/// # }
/// ```
pub struct Zone<'ns, Q: QueuePair, S: State> {
    pub(super) core: Core<'ns, Q>,
    state: PhantomData<S>,
}

impl<'ns, Q: QueuePair, S: State> From<Core<'ns, Q>> for Zone<'ns, Q, S> {
    fn from(core: Core<'ns, Q>) -> Self {
        let state = PhantomData;
        Self { core, state }
    }
}

impl<Q: QueuePair, S: State> fmt::Debug for Zone<'_, Q, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Zone");
        fields.field("id", &self.core.id.0);
        if self.core.known.get() {
            fields.field("start", &self.core.start);
            fields.field("capacity", &self.core.capacity);
            fields.field("write_pointer", &self.core.wp);
        }
        fields.finish_non_exhaustive()
    }
}

impl<'ns, Q: QueuePair, S: State> Zone<'ns, Q, S> {
    /// Which zone.
    #[must_use]
    pub const fn id(&self) -> ZoneId {
        self.core.id
    }

    /// Asks the drive what the zone is like. Waits for commands of the zone that were given up
    /// before.
    ///
    /// # Errors
    /// The report fails, is not valid, or does not come in time. The handle comes back, and the
    /// refresh can be tried again.
    pub fn refresh(self) -> Result<AnyZone<'ns, Q>, MoveFailed<'ns, Q>> {
        self.core.refresh()
    }

    /// Whether nothing but a refresh is possible.
    #[must_use]
    pub fn needs_refresh(&self) -> bool {
        self.core.check_known().is_err()
    }
}

impl<Q: QueuePair, S: Readable> Zone<'_, Q, S> {
    /// Its first block.
    #[must_use]
    pub const fn start(&self) -> Lba {
        Lba(self.core.start)
    }

    /// The block behind the last that can be read: the write pointer, or the end of its
    /// capacity.
    #[must_use]
    pub const fn end_of_data(&self) -> Lba {
        Lba(self.core.wp)
    }

    /// Reads the blocks from `lba` on that `into` has room for.
    ///
    /// # Errors
    /// [`ZoneError::NotWritten`] if some of them are beyond what is written; nothing is sent
    /// then. What the drive says of it else. Only a status that contradicts what the handle knows
    /// makes a refresh necessary.
    pub fn read(&self, lba: Lba, into: Buf) -> Result<Buf, Refused> {
        let known = self.core.check_known();
        let nlb = match known.and_then(|()| self.core.blocks_that_are_there(lba, &into)) {
            Ok(nlb) => nlb,
            Err(error) => return Err(Refused::new(error, into)),
        };
        let op = Op::Read { slba: lba, nlb };
        let (_, data) = self.core.transfer("the read", op, into, false)?;
        Ok(data)
    }
}

impl<'ns, Q: QueuePair, S: Resettable> Zone<'ns, Q, S> {
    /// Empties it: what it holds is lost.
    ///
    /// # Errors
    /// The drive refuses, or does not answer in time.
    pub fn reset(self) -> Result<Zone<'ns, Q, Empty>, MoveFailed<'ns, Q>> {
        let mut core = self.core.act("the reset", ZoneSendAction::RESET)?;
        core.wp = core.start;
        core.area = Area::default();
        Ok(core.into())
    }
}

impl<'ns, Q: QueuePair, S: Finishable> Zone<'ns, Q, S> {
    /// Makes it full, however much is written.
    ///
    /// # Errors
    /// The drive refuses, or does not answer in time.
    pub fn finish(self) -> Result<Zone<'ns, Q, Full>, MoveFailed<'ns, Q>> {
        let core = self.core.act("the finish", ZoneSendAction::FINISH)?;
        Ok(core.full())
    }
}

impl<'ns, Q: QueuePair> Core<'ns, Q> {
    pub(super) fn full(mut self) -> Zone<'ns, Q, Full> {
        self.wp = self.end();
        self.area = Area::default();
        self.into()
    }

    fn open(self) -> Result<Zone<'ns, Q, Open>, MoveFailed<'ns, Q>> {
        Ok(self.act("the open", ZoneSendAction::OPEN)?.into())
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, Empty> {
    /// Opens it, for writing.
    ///
    /// # Errors
    /// The drive refuses ([`Status::TOO_MANY_OPEN_ZONES`], for example), or does not answer in
    /// time.
    pub fn open(self) -> Result<Zone<'ns, Q, Open>, MoveFailed<'ns, Q>> {
        self.core.open()
    }

    /// Blocks that it can hold.
    #[must_use]
    pub const fn capacity_lbas(&self) -> u64 {
        self.core.capacity
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, Closed> {
    /// Opens it, for writing.
    ///
    /// # Errors
    /// The drive refuses ([`Status::TOO_MANY_OPEN_ZONES`], for example), or does not answer in
    /// time.
    pub fn open(self) -> Result<Zone<'ns, Q, Open>, MoveFailed<'ns, Q>> {
        self.core.open()
    }
}

impl<'ns, Q: QueuePair> Zone<'ns, Q, Open> {
    /// Where the next write goes.
    #[must_use]
    pub const fn write_pointer(&self) -> Lba {
        Lba(self.core.wp)
    }

    /// Blocks that can still be written.
    #[must_use]
    pub const fn room_lbas(&self) -> u64 {
        self.core.room()
    }

    /// Writes whole blocks at the write pointer, and moves it.
    ///
    /// # Errors
    /// [`ZoneError::NoRoom`] if they do not fit, [`ZoneError::NotBlocks`],
    /// [`ZoneError::TooLarge`], [`ZoneError::NotKnown`]: nothing was sent. If the drive refuses
    /// or does not answer in time, the handle has to be refreshed.
    pub fn write(&mut self, data: Buf) -> Result<Written, Refused> {
        let most = self.core.namespace.facts().max_transfer_bytes;
        let lba = Lba(self.core.wp);
        self.put(
            "the write",
            data,
            most,
            |nlb| Op::Write { slba: lba, nlb },
            |_| lba,
        )
    }

    /// Appends whole blocks, one command at a time. They go to the write pointer, as those of a
    /// write do, but the drive says where that was: [`ZoneError::Misplaced`] tells that somebody
    /// else wrote to the zone, without damage to what they wrote.
    ///
    /// # Errors
    /// As [`Self::write`], and [`ZoneError::Misplaced`].
    pub fn append(&mut self, data: Buf) -> Result<Written, Refused> {
        let most = self.core.namespace.facts().max_append_bytes;
        let zslba = Lba(self.core.start);
        self.put(
            "the append",
            data,
            most,
            |nlb| Op::Append { zslba, nlb },
            Lba,
        )
    }

    fn put(
        &mut self,
        command: &'static str,
        data: Buf,
        most: u32,
        op: impl FnOnce(u32) -> Op,
        place: impl FnOnce(u64) -> Lba,
    ) -> Result<Written, Refused> {
        let core = &mut self.core;
        let known = core.check_known();
        let nlb = match known.and_then(|()| core.blocks_that_fit(&data, most)) {
            Ok(nlb) => nlb,
            Err(error) => return Err(Refused::new(error, data)),
        };
        let (result, data) = core.transfer(command, op(nlb), data, true)?;
        let lba = place(result);
        let expected = core.wp;
        if lba.0 != expected {
            core.doubt();
            let error = ZoneError::Misplaced {
                zone: core.id,
                lba,
                start: Lba(expected),
                end: Lba(expected + u64::from(nlb)),
            };
            return Err(Refused::new(error, data));
        }
        core.wp += u64::from(nlb);
        Ok(Written { lba, data })
    }

    /// For many appends in flight at once.
    ///
    /// # Errors
    /// [`ZoneError::NotKnown`]: the handle has to be refreshed first.
    pub fn appender(&mut self) -> Result<Appender<'_, 'ns, Q>, ZoneError> {
        self.core.check_known()?;
        Ok(Appender::new(&mut self.core))
    }

    /// Closes it: it frees its open resource, and keeps its active one, even if nothing has been
    /// written to it.
    ///
    /// # Errors
    /// [`ZoneError::WrongState`] if it has been written full: see [`Self::seal`]. Else the drive
    /// refuses, or does not answer in time.
    pub fn close(self) -> Result<Zone<'ns, Q, Closed>, MoveFailed<'ns, Q>> {
        if self.core.room() == 0 {
            let (zone, state) = (self.core.id, ZoneState::FULL);
            return Err(self.core.failed(ZoneError::WrongState { zone, state }));
        }
        let core = self.core.act("the close", ZoneSendAction::CLOSE)?;
        Ok(core.into())
    }

    /// The handle of a full zone, if the last block has been written. The drive made it full
    /// then, so that no command is sent.
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
