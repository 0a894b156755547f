//! What waits to be sent.

use std::collections::VecDeque;
use std::io::IoSlice;

use zonelab_nvme::tcp::{IcResp, TermReq};
use zonelab_nvme::zerocopy::IntoBytes;

use super::slots::{Piece, Slot, SlotId, Slots};

/// The PDUs of one connection in the order in which they go out: the response
/// that opens it, one PDU or two of each slot in the queue, the request that
/// ends it.
#[derive(Debug)]
pub(super) struct Output {
    opening: Piece<128>,
    queue: VecDeque<SlotId>,
    ending: Piece<152>,
    /// Bytes of the first of them that are gone.
    gone: usize,
}

impl Output {
    /// Nothing to send, and room for `slots` slots.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            opening: Piece::default(),
            queue: VecDeque::with_capacity(slots),
            ending: Piece::default(),
            gone: 0,
        }
    }

    /// Room for `slots` slots, so that none is made later.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.queue.reserve(slots.saturating_sub(self.queue.len()));
    }

    pub(super) fn open(&mut self, response: &IcResp) {
        self.opening.push(response.as_bytes());
    }

    pub(super) fn push(&mut self, id: SlotId) {
        self.queue.push_back(id);
    }

    /// The last PDU. What has not begun to go out before it never will.
    pub(super) fn end(&mut self, request: &TermReq, header: &[u8]) {
        let has_begun = self.opening.bytes().is_empty() && self.gone > 0;
        self.queue.truncate(usize::from(has_begun));
        self.ending.push(request.as_bytes());
        self.ending.push(header);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.opening.bytes().is_empty() && self.queue.is_empty() && self.ending.bytes().is_empty()
    }

    /// Puts what is to be sent into `slices`, as much as fits; returns how many
    /// there are.
    pub(super) fn slices<'a>(&'a self, slots: &'a Slots, slices: &mut [IoSlice<'a>]) -> usize {
        let queued = self.queue.iter().filter_map(|id| slots.get(*id));
        let pieces = [self.opening.bytes()]
            .into_iter()
            .chain(queued.flat_map(pieces))
            .chain([self.ending.bytes()]);
        let mut gone = self.gone;
        let mut count = 0;
        for piece in pieces {
            let skip = gone.min(piece.len());
            gone -= skip;
            if skip == piece.len() {
                continue;
            }
            let Some(slice) = slices.get_mut(count) else {
                break;
            };
            *slice = IoSlice::new(&piece[skip..]);
            count += 1;
        }
        count
    }

    /// `sent` bytes are gone: calls `finished` for each slot whose PDUs are.
    pub(super) fn advance(
        &mut self,
        slots: &mut Slots,
        sent: usize,
        mut finished: impl FnMut(&mut Slots, SlotId),
    ) {
        self.gone += sent;
        if !self.opening.bytes().is_empty() {
            let len = self.opening.bytes().len();
            if self.gone < len {
                return;
            }
            self.gone -= len;
            self.opening.clear();
        }
        while let Some(id) = self.queue.front().copied() {
            let len: usize = slots
                .get(id)
                .map_or(0, |slot| pieces(slot).iter().map(|piece| piece.len()).sum());
            if self.gone < len {
                return;
            }
            self.gone -= len;
            self.queue.pop_front();
            finished(slots, id);
        }
        if self.gone > 0 && self.gone >= self.ending.bytes().len() {
            self.gone = 0;
            self.ending.clear();
        }
    }
}

/// What a slot in the queue sends.
fn pieces(slot: &Slot) -> [&[u8]; 3] {
    let data = slot
        .data
        .as_deref()
        .and_then(|data| data.get(..slot.sent_len));
    [
        slot.head.bytes(),
        data.unwrap_or_default(),
        slot.tail.bytes(),
    ]
}
