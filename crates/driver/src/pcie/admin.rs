//! The admin queue: commands that somebody waits for, event requests, and Abort.

use std::collections::VecDeque;

use zonelab_device::Nanos;
use zonelab_nvme::command::Abort;
use zonelab_nvme::event::AsyncEvent;
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};

use super::bus::{DmaError, Function};
use super::dma::{DmaRegion, PAGE_BYTES};
use super::error::PcieError;
use super::options::Access;
use super::pair::{PairSettings, RingPair};
use super::prp::{self, PrpList};
use super::queue::PAGE;
use crate::error::DriverError;
use crate::socket::Reply;
use crate::tcp::Transfer;

/// Entries of the admin queue: a page of submissions.
pub(crate) const ENTRIES: u32 = 64;

/// Events that are kept until somebody takes them; of more, the oldest are lost.
const MAX_EVENTS: usize = 64;

/// How long to wait before the completion queue is looked at again.
const LOOK_EVERY: Nanos = Nanos::from_us(20);

/// An asynchronous event of the controller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened, and which log page tells more.
    pub event: AsyncEvent,
    /// Dword 1 of the completion; of a zone descriptor change, the namespace.
    pub specific: u32,
}

/// What a slot of the admin queue is for.
#[derive(Debug)]
enum Use {
    Free,
    /// Somebody waits. Its data is in the region, and its list of PRPs behind.
    Call(Option<DmaRegion>),
    /// Nobody waits any more, but the device may still access the data.
    Abandoned(Option<DmaRegion>),
    EventRequest,
    Abort,
}

/// The admin queue of a controller.
#[derive(Debug)]
pub(crate) struct Admin<F: Function> {
    function: F,
    pair: RingPair,
    uses: Box<[Use]>,
    events: VecDeque<Event>,
    access: Access,
}

impl<F: Function> Admin<F> {
    pub(crate) fn new(
        function: F,
        settings: &PairSettings,
        access: Access,
    ) -> Result<Self, DmaError> {
        let pair = RingPair::new(&function, settings)?;
        let uses = (0..pair.ids().slots()).map(|_| Use::Free).collect();
        Ok(Self {
            function,
            pair,
            uses,
            events: VecDeque::with_capacity(MAX_EVENTS),
            access,
        })
    }

    /// Where the rings are, and their entries.
    pub(crate) const fn place(&self) -> ((u64, u64), u32) {
        (self.pair.iovas(), self.pair.entries())
    }

    /// The oldest event that was not taken.
    pub(crate) fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends a command and waits for its end, at most `timeout`.
    ///
    /// # Errors
    /// No memory, no room, no answer, or the device is gone.
    pub(crate) fn call(
        &mut self,
        entry: SubmissionEntry,
        transfer: Transfer,
        timeout: Nanos,
    ) -> Result<Reply, DriverError> {
        let (region, prps) = self.place_data(&transfer)?;
        let is_placed = region.is_some();
        let entry = match is_placed {
            true => entry.with_prps(prps.0, prps.1),
            // Commands that make queues have an address of their own there.
            false => entry,
        };
        let slot = self.push(entry, Use::Call(region));
        let slot = slot.ok_or(PcieError::Late { timeout })?;
        let end = self.function.now().saturating_add(timeout);
        loop {
            let done = self.pump(Some(slot))?;
            if let Some((entry, region)) = done {
                return Ok(reply(entry, region, transfer));
            }
            if self.function.now() >= end {
                self.abandon(slot);
                return Err(PcieError::Late { timeout }.into());
            }
            self.function.pause(LOOK_EVERY);
        }
    }

    /// Data of a command in memory that the device can reach.
    fn place_data(
        &self,
        transfer: &Transfer,
    ) -> Result<(Option<DmaRegion>, (u64, u64)), PcieError> {
        let bytes = transfer.len();
        if bytes == 0 {
            return Ok((None, (0, 0)));
        }
        // The list lies behind the data.
        let data_bytes = bytes.next_multiple_of(PAGE_BYTES);
        let list_pages = PAGE.list_pages(bytes as u64) as usize;
        let region = self
            .function
            .allocate(data_bytes + list_pages * PAGE_BYTES)?;
        if let Transfer::ToController(data) = transfer {
            region.copy_in(data);
        }
        let list = PrpList {
            words: &region.words()[data_bytes / 8..],
            iova: region.iova() + data_bytes as u64,
        };
        let prps = prp::describe(PAGE, region.iova(), bytes as u64, list).unwrap_or_default();
        Ok((Some(region), prps))
    }

    fn push(&mut self, entry: SubmissionEntry, of: Use) -> Option<u16> {
        let slot = self.pair.push(entry)?;
        self.uses[usize::from(slot)] = of;
        self.pair.ring_submission(&self.function);
        Some(slot)
    }

    /// Nobody waits for a command any more.
    fn abandon(&mut self, slot: u16) {
        let of = &mut self.uses[usize::from(slot)];
        if let Use::Call(region) = of {
            *of = Use::Abandoned(region.take());
        }
    }

    /// Takes what has completed, up to the command of slot `awaited`.
    ///
    /// # Errors
    /// The controller broke the protocol.
    pub(crate) fn pump(
        &mut self,
        awaited: Option<u16>,
    ) -> Result<Option<(CompletionEntry, Option<DmaRegion>)>, PcieError> {
        let mut found = None;
        while let Some(popped) = self.pair.pop()? {
            let of = core::mem::replace(&mut self.uses[usize::from(popped.slot)], Use::Free);
            match of {
                Use::Call(region) => {
                    debug_assert_eq!(awaited, Some(popped.slot), "one call at a time");
                    found = Some((popped.entry, region));
                    break;
                }
                Use::EventRequest => self.event(&popped.entry),
                Use::Free | Use::Abandoned(_) | Use::Abort => {}
            }
        }
        self.pair.ring_completion(&self.function);
        Ok(found)
    }

    /// An event request ended: by an event, or because there may not be so many.
    fn event(&mut self, entry: &CompletionEntry) {
        if !entry.status.status().is_success() {
            return;
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            event: AsyncEvent::from_bits(entry.dw0.get()),
            specific: entry.dw1.get(),
        });
        self.request_event();
    }

    /// Asks to be told of an event.
    pub(crate) fn request_event(&mut self) {
        let opcode = AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST;
        // Without room there is one request less.
        let _slot = self.push(SubmissionEntry::new(opcode.0), Use::EventRequest);
    }

    /// Asks for a command of queue `sqid` to be aborted. If that succeeds, the command
    /// completes.
    pub(crate) fn abort(&mut self, sqid: u16, cid: u16) {
        // Without room for an Abort, a reset follows.
        let _slot = self.push(Abort { sqid, cid }.to_entry(), Use::Abort);
    }

    /// The controller was disabled: starts with new rings, and forgets all commands.
    pub(crate) fn restart(&mut self, settings: &PairSettings) -> Result<(), DmaError> {
        debug_assert!(
            !self.access.is_possible(),
            "the device does not access memory"
        );
        self.pair = RingPair::new(&self.function, settings)?;
        self.uses.fill_with(|| Use::Free);
        Ok(())
    }
}

/// What a command that is over brings to the caller.
fn reply(entry: CompletionEntry, region: Option<DmaRegion>, transfer: Transfer) -> Reply {
    let is_success = entry.status.status().is_success();
    let mut bytes = 0;
    let data = match transfer {
        Transfer::ToHost(mut buf) => {
            if let Some(region) = region.filter(|_| is_success) {
                region.copy_out(&mut buf);
                bytes = buf.len();
            }
            Some(buf)
        }
        transfer => {
            bytes = transfer.len();
            transfer.into_buf()
        }
    };
    Reply {
        entry,
        data,
        // Fits: transfers have limits far below.
        transferred: bytes as u32,
    }
}

impl<F: Function> Drop for Admin<F> {
    /// What the device may still access stays.
    fn drop(&mut self) {
        if !self.access.is_possible() {
            return;
        }
        self.pair.leak();
        for of in &self.uses {
            if let Use::Call(Some(region)) | Use::Abandoned(Some(region)) = of {
                region.leak();
            }
        }
    }
}
