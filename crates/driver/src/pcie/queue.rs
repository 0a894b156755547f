//! An I/O queue of a controller on PCIe as a queue pair.

use std::sync::Arc;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, Nanos, Op, QueueId, QueuePair, RejectReason,
    Rejected, Tag,
};
use zonelab_nvme::Status;
use zonelab_nvme::queue::{CompletionEntry, SglDescriptor, StatusField, SubmissionEntry};

use super::bus::{DmaError, Function};
use super::dma::{DmaRegion, Domain, PAGE_BYTES};
use super::error::{PcieError, Violation};
use super::interrupt::Interrupt;
use super::options::Access;
use super::pair::{PairCounts, RingPair};
use super::prp::{self, PageSize, PrpList};
use super::slot::Slot;
use crate::entry::{Direction, Prepared};
use crate::error::DriverError;
use crate::inquiry::Asks;
use crate::socket::Reply;
use crate::tcp::Transfer;

/// Pages whose addresses fit in a command without a list.
const PAGES_IN_COMMAND: u64 = 2;

/// The memory page that the driver sets.
pub(crate) const PAGE: PageSize = PageSize::from_mps(0);

/// An I/O queue on PCIe.
///
/// Every command that was taken completes exactly once: with the status that the
/// controller gave it, or with one of the host's if the controller was reset
/// ([`Status::ABORTED_BY_HOST`]) or is gone ([`Status::HOST_PATHING_ERROR`]).
///
/// A read, write or append without a buffer is carried out with memory of the slot,
/// for loads that do not look at the data. Buffers of
/// [`PcieController::buffer`](super::PcieController::buffer) are accessed by the device
/// itself; all others are copied.
///
/// Threads that have a queue each write to no cache line of each other.
#[derive(Debug)]
#[repr(align(128))]
pub struct PcieQueue<F: Function> {
    pair: RingPair,
    slots: Box<[Slot]>,
    function: F,
    info: Arc<DeviceInfo>,
    /// Lists of PRPs, of every slot `list_bytes`: none, if there are SGLs.
    lists: DmaRegion,
    list_bytes: usize,
    domain: Domain,
    id: QueueId,
    /// The time of the last poll or ring: of a batch, the clock is read once.
    now: Nanos,
    timeout: Nanos,
    /// No command is late before.
    look_at: Nanos,
    /// Completions that were not the controller's.
    local: Vec<Completion>,
    error: Option<PcieError>,
    last_status: StatusField,
    access: Access,
    /// What the controller signals when something completes, if it does.
    interrupt: Option<Interrupt>,
    /// The controller takes SGLs.
    has_sgls: bool,
}

/// A command that was in flight for too long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Its slot.
    slot: u16,
    /// Its identifier, for Abort.
    pub cid: u16,
    /// An Abort was sent, and has not helped.
    pub is_aborted: bool,
}

impl<F: Function> PcieQueue<F> {
    pub(crate) fn new(
        function: F,
        pair: RingPair,
        info: Arc<DeviceInfo>,
        (qid, timeout): (u16, Nanos),
        access: Access,
        (interrupt, has_sgls): (Option<Interrupt>, bool),
    ) -> Result<Self, DmaError> {
        let slots = usize::from(pair.ids().slots());
        let pages = match has_sgls {
            true => 0,
            false => PAGE.list_pages(info.max_transfer_bytes.into()).max(1) as usize,
        };
        let list_bytes = pages * PAGE_BYTES;
        let lists = function.allocate((list_bytes * slots).max(PAGE_BYTES))?;
        let now = function.now();
        Ok(Self {
            slots: (0..slots).map(|_| Slot::new()).collect(),
            domain: lists.domain(),
            lists,
            list_bytes,
            pair,
            function,
            info,
            id: QueueId(qid),
            now,
            timeout,
            look_at: Nanos::MAX,
            local: Vec::with_capacity(slots),
            error: None,
            last_status: StatusField::default(),
            access,
            interrupt,
            has_sgls,
        })
    }

    /// Its identifier.
    #[must_use]
    pub const fn id(&self) -> QueueId {
        self.id
    }

    /// Commands in flight at most.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.pair.ids().slots()
    }

    /// Commands in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pair.ids().in_flight()
    }

    /// Why it takes no commands, if it does not.
    #[must_use]
    pub const fn error(&self) -> Option<&PcieError> {
        self.error.as_ref()
    }

    /// Status field of the completion that [`QueuePair::poll`] moved last, with its
    /// DNR and CRD.
    #[must_use]
    pub const fn last_status(&self) -> StatusField {
        self.last_status
    }

    /// What the controller signals when something completes, if it has interrupts.
    #[must_use]
    pub const fn interrupt(&self) -> Option<&Interrupt> {
        self.interrupt.as_ref()
    }

    /// What it counts.
    #[must_use]
    pub const fn counts(&self) -> PairCounts {
        self.pair.counts()
    }

    /// What was wrong with the last completion that belonged to no command.
    #[must_use]
    pub const fn last_violation(&self) -> Option<Violation> {
        self.pair.last_violation()
    }

    /// When a command that is in flight is late; earlier is possible.
    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        if !self.local.is_empty() {
            return Some(self.now);
        }
        (self.pair.ids().in_flight() > 0).then_some(self.look_at)
    }

    /// More is known of the device now. Limits of transfers stay.
    pub(crate) fn set_info(&mut self, info: Arc<DeviceInfo>) {
        self.info = info;
    }

    /// The controller does not know it any more.
    pub(crate) fn is_deleted(&mut self) {
        self.access = Access::none();
    }

    /// Looks for a command that is in flight for too long at `now`. Costs nothing
    /// before the first can be.
    pub(crate) fn late(&mut self, now: Nanos) -> Option<Late> {
        if now < self.look_at {
            return None;
        }
        let mut first: Option<(Nanos, u16)> = None;
        for (slot, at) in (0..).zip(&self.slots) {
            if self.pair.ids().is_in_flight(slot) {
                // An Abort has as long again.
                let began = if at.is_aborted {
                    at.began + self.timeout
                } else {
                    at.began
                };
                first = first.min(Some((began, slot))).or(Some((began, slot)));
            }
        }
        let Some((began, slot)) = first else {
            self.look_at = Nanos::MAX;
            return None;
        };
        self.look_at = began.saturating_add(self.timeout);
        if now < self.look_at {
            return None;
        }
        let cid = self.pair.ids().identifier(slot)?;
        let is_aborted = self.slots[usize::from(slot)].is_aborted;
        Some(Late {
            slot,
            cid,
            is_aborted,
        })
    }

    /// Longest time of a command.
    pub(crate) const fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// The time of the last poll or ring.
    pub(crate) const fn last_look(&self) -> Nanos {
        self.now
    }

    /// An Abort is on its way for a command.
    pub(crate) fn aborting(&mut self, late: Late) {
        self.slots[usize::from(late.slot)].is_aborted = true;
        self.look_at = self.now;
    }

    /// No command is taken any more until [`Self::restart`]; those in flight stay so
    /// until [`Self::give_up`].
    pub(crate) fn fail(&mut self, error: PcieError) {
        self.error.get_or_insert(error);
    }

    /// Takes the reason why it takes no commands.
    pub(crate) fn take_error(&mut self) -> Option<PcieError> {
        let error = self.error.as_mut()?;
        Some(core::mem::replace(error, PcieError::Gone))
    }

    /// Ends all commands in flight. If the device may still access memory, what it
    /// knows of is kept for good.
    pub(crate) fn give_up(&mut self, status: Status) {
        let is_quiet = !self.access.is_possible();
        for slot in 0..self.pair.ids().slots() {
            if !self.pair.ids().is_in_flight(slot) {
                continue;
            }
            self.pair.give_up(slot);
            let at = &mut self.slots[usize::from(slot)];
            let tag = at.tag;
            let data = match is_quiet {
                true => at.empty(false),
                false => at.abandon(),
            };
            self.complete_locally(tag, status, data);
        }
        self.look_at = Nanos::MAX;
    }

    /// The queue goes on with new rings, after a reset. Nothing is in flight.
    pub(crate) fn restart(&mut self, pair: RingPair) {
        debug_assert_eq!(self.in_flight(), 0, "everything was given up");
        self.pair = pair;
        self.error = None;
    }

    /// Sends any command and waits for its end. Its identifier and data pointer are
    /// filled in; the status is the caller's to look at. Completions of other commands
    /// meanwhile are kept for the next poll.
    ///
    /// # Errors
    /// The queue takes no commands, or the command is not over in time.
    pub fn passthrough(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, PcieError> {
        let bytes = transfer.len();
        let direction = match (bytes, &transfer) {
            (0, _) | (_, Transfer::None) => Direction::None,
            (_, Transfer::ToHost(_)) => Direction::ToHost,
            (_, Transfer::ToController(_)) => Direction::ToController,
        };
        let data = transfer.into_buf();
        let late = PcieError::Late {
            timeout: self.timeout,
        };
        let Some(slot) = self.pair.next_slot().filter(|_| self.error.is_none()) else {
            return Err(late);
        };
        if let Err((error, _)) = self.push(slot, entry, (bytes, direction), (Tag(0), data)) {
            return Err(error.into());
        }
        self.ring();
        let end = self.function.now().saturating_add(self.timeout);
        loop {
            self.now = self.function.now();
            while let Some(popped) = self.pair.pop()? {
                let (tag, data) = self.finish(popped.slot, &popped.entry);
                if popped.slot == slot {
                    self.pair.ring_completion(&self.function);
                    let is_success = popped.entry.status.status().is_success();
                    return Ok(Reply {
                        entry: popped.entry,
                        data,
                        // Fits: transfers have limits far below.
                        transferred: if is_success { bytes as u32 } else { 0 },
                    });
                }
                let status = popped.entry.status.status();
                self.complete_locally(tag, status, data);
            }
            self.pair.ring_completion(&self.function);
            if self.now >= end {
                self.slots[usize::from(slot)].is_aborted = true;
                return Err(late);
            }
            self.function.pause(Nanos::from_us(20));
        }
    }

    /// Puts a command into the ring and its data where the device finds it.
    #[inline]
    fn push(
        &mut self,
        slot: u16,
        entry: SubmissionEntry,
        transfer: (usize, Direction),
        (tag, data): (Tag, Option<Buf>),
    ) -> Result<(), (DmaError, Option<Buf>)> {
        if self.pair.ids().in_flight() == 0 {
            // The last poll may be long ago.
            self.now = self.function.now();
        }
        let place = usize::from(slot);
        let at = &mut self.slots[place];
        let iova = at.fill((&self.function, self.domain), transfer, data)?;
        at.tag = tag;
        at.began = self.now;
        let Some(entry) = self.point(entry, slot, (iova, transfer.0 as u64)) else {
            let why = "its list of PRPs has no room".to_owned();
            let bytes = transfer.0;
            let data = self.slots[place].empty(false);
            return Err((DmaError::Exhausted { bytes, why }, data));
        };
        let pushed = self.pair.push(entry);
        debug_assert_eq!(pushed, Some(slot), "next_slot has said so");
        if self.look_at == Nanos::MAX {
            self.look_at = self.now.saturating_add(self.timeout);
        }
        Ok(())
    }

    /// A command with the way to its data: the address in one piece, and its bytes. `None`:
    /// it is too long.
    #[inline]
    fn point(
        &self,
        entry: SubmissionEntry,
        slot: u16,
        (iova, bytes): (u64, u64),
    ) -> Option<SubmissionEntry> {
        // In one piece, a descriptor holds any length; up to two pages PRPs do as well.
        if self.has_sgls && PAGE.touched(iova, bytes) > PAGES_IN_COMMAND {
            let length = u32::try_from(bytes).ok()?;
            return Some(entry.with_sgl(SglDescriptor::data_block(iova, length)));
        }
        let (place, words) = (usize::from(slot), self.list_bytes / 8);
        let first = place * words;
        let list = PrpList {
            words: &self.lists.words()[first..first + words],
            iova: self.lists.iova() + (place * self.list_bytes) as u64,
        };
        // Regions begin with pages, and lists have room for the largest transfer.
        let (prp1, prp2) = prp::describe(PAGE, iova, bytes, list).ok()?;
        Some(entry.with_prps(prp1, prp2))
    }

    /// The command of a slot is over.
    #[inline]
    fn finish(&mut self, slot: u16, entry: &CompletionEntry) -> (Tag, Option<Buf>) {
        self.last_status = entry.status;
        let is_success = entry.status.status().is_success();
        let at = &mut self.slots[usize::from(slot)];
        (at.tag, at.empty(is_success))
    }

    /// A command that the controller has no part in completes at the next poll.
    pub(crate) fn complete_locally(&mut self, tag: Tag, status: Status, data: Option<Buf>) {
        self.local.push(Completion {
            queue: self.id,
            tag,
            status,
            at: self.now,
            result: 0,
            found: Found::Unknown,
            data,
        });
    }

    /// Most bytes of data of a command.
    #[inline]
    fn most(&self, op: &Op) -> u32 {
        match op {
            Op::Append { .. } => self.info.max_append_bytes,
            _ => self.info.max_transfer_bytes,
        }
    }
}

impl<F: Function> QueuePair for PcieQueue<F> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.function.now()
    }

    fn submit(&mut self, command: Command, tag: Tag, data: Option<Buf>) -> Result<(), Rejected> {
        if self.error.is_some() {
            let reason = RejectReason::Disconnected;
            return Err(Rejected { reason, data });
        }
        let given = data.as_ref().map(|data| data.len());
        let prepared = Prepared::new(&self.info, &command, given).and_then(|prepared| {
            let is_possible = prepared.bytes as u64 <= u64::from(self.most(&command.op));
            is_possible.then_some(prepared).ok_or(Status::INVALID_FIELD)
        });
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(status) => {
                self.complete_locally(tag, status, data);
                return Ok(());
            }
        };
        let Some(slot) = self.pair.next_slot() else {
            let reason = RejectReason::QueueFull {
                queue: self.id,
                depth: self.depth().into(),
            };
            return Err(Rejected { reason, data });
        };
        let transfer = (prepared.bytes, prepared.direction);
        if let Err((_, data)) = self.push(slot, prepared.entry, transfer, (tag, data)) {
            // The host has no memory for it; the controller has not seen it.
            self.complete_locally(tag, Status::HOST_PATHING_ERROR, data);
        }
        Ok(())
    }

    fn ring(&mut self) {
        if self.error.is_none() {
            self.pair.ring_submission(&self.function);
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        self.now = self.function.now();
        if self.error.is_none() {
            loop {
                match self.pair.pop() {
                    Ok(None) => break,
                    Ok(Some(popped)) => {
                        let (tag, data) = self.finish(popped.slot, &popped.entry);
                        done.push(Completion {
                            queue: self.id,
                            tag,
                            status: popped.entry.status.status(),
                            at: self.now,
                            result: popped.entry.result(),
                            found: Found::Unknown,
                            data,
                        });
                    }
                    Err(violation) => {
                        self.fail(violation.into());
                        break;
                    }
                }
            }
            self.pair.ring_completion(&self.function);
        }
        if !self.local.is_empty() {
            let at = self.now;
            done.extend(self.local.drain(..).map(|local| Completion { at, ..local }));
        }
        done.len() - before
    }
}

impl<F: Function> Drop for PcieQueue<F> {
    /// What the device may still access stays.
    fn drop(&mut self) {
        if self.access.is_possible() {
            self.pair.leak();
            self.lists.leak();
            self.slots.iter().for_each(Slot::leak);
        }
    }
}

impl<F: Function> Asks for PcieQueue<F> {
    fn ask(
        &mut self,
        _: &'static str,
        entry: SubmissionEntry,
        transfer: Transfer,
    ) -> Result<Reply, DriverError> {
        Ok(self.passthrough(entry, transfer)?)
    }
}
