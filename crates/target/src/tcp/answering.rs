//! What goes out: responses with their data, requests for data, the last PDU.

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::queue::CompletionEntry;
use zonelab_nvme::tcp::{C2hData, CapsuleResp, Framing, TermReq};
use zonelab_nvme::zerocopy::IntoBytes;

use super::Violation;
use super::arriving::Step;
use super::connection::{Connection, End, Phase};
use super::settings::SuccessFlag;
use super::slots::{Piece, SlotId, State};
use crate::Buffers;

impl Connection {
    /// Answers a command that the owner has. `data` goes to the host, if
    /// the command succeeded and as far as there is room; `due` is when it was
    /// to be answered. Gives back data that does not go out. A connection that
    /// broke in the meantime has no such command, and drops the answer.
    pub fn complete(
        &mut self,
        completion: CompletionEntry,
        data: Option<Buf>,
        due: Nanos,
    ) -> Option<Buf> {
        let is_broken = matches!(self.phase, Phase::Ending(End::Violation(_)));
        let Some(id) = self.held(completion.cid.get()).filter(|_| !is_broken) else {
            return data;
        };
        self.slots.slot(id).due = Some(due);
        self.respond(id, completion, data)
    }

    /// The slot of a command that the owner has.
    pub(super) fn held(&self, cid: u16) -> Option<SlotId> {
        let is_held = |id: &SlotId| {
            self.slots
                .get(*id)
                .is_some_and(|slot| slot.state == State::Held)
        };
        self.slots.find(cid).filter(is_held)
    }

    /// Fails a command that would fail again.
    pub(super) fn fail(&mut self, id: SlotId, status: Status) -> Step {
        let cid = self.slots.slot(id).cid();
        self.respond(id, CompletionEntry::new(cid, status).with_dnr(true), None);
        Step::Again
    }

    /// Queues the response of a command; gives back data that does not go out.
    pub(super) fn respond(
        &mut self,
        id: SlotId,
        mut completion: CompletionEntry,
        data: Option<Buf>,
    ) -> Option<Buf> {
        completion.sqhd = self.queue_head().into();
        let (framing, omits_response) = (self.to_host, self.omits_response(&completion));
        let slot = self.slots.slot(id);
        slot.state = State::Responding;
        slot.head.clear();
        slot.tail.clear();
        slot.sent_len = 0;
        self.output.push(id);
        let is_success = completion.status.status().is_success();
        let room = if is_success { slot.data_len } else { 0 };
        let sent = data
            .as_ref()
            .map_or(0, |data| data.len().min(room as usize));
        let pdu = C2hData::new(framing, slot.cid(), (0, sent as u32), true, omits_response);
        let (Some(pdu), Some(bytes), true) = (pdu, &data, sent > 0) else {
            push_header(
                &mut slot.head,
                CapsuleResp::new(framing, completion).as_bytes(),
                framing,
            );
            return data;
        };
        push_header(&mut slot.head, pdu.as_bytes(), framing);
        slot.head.pad_to(usize::from(pdu.ch.pdo));
        if framing.ddgst {
            slot.tail
                .push(&crc32c::crc32c(&bytes[..sent]).to_le_bytes());
        }
        if !omits_response {
            push_header(
                &mut slot.tail,
                CapsuleResp::new(framing, completion).as_bytes(),
                framing,
            );
        }
        slot.sent_len = sent;
        // What arrived for the command is gone to its owner, or was of no use.
        std::mem::replace(&mut slot.data, data)
    }

    /// Whether a response says nothing that a success flag does not.
    fn omits_response(&self, completion: &CompletionEntry) -> bool {
        let may = match self.settings.success {
            SuccessFlag::Never => false,
            SuccessFlag::WithoutFlowControl => !self.has_flow_control,
            SuccessFlag::Always => true,
        };
        may && completion.status.status().is_success() && completion.result() == 0
    }

    /// One more entry of the submission queue is free; where its head is then.
    /// It moves with responses and not with arrivals: so a host that goes by it
    /// never has more in flight than there are slots.
    fn queue_head(&mut self) -> u16 {
        if !self.has_flow_control {
            return match std::mem::replace(&mut self.head, u16::MAX) {
                // The response of Connect says that there is none.
                0 => u16::MAX,
                _ => 0,
            };
        }
        let head = (u32::from(self.head) + 1) % self.depth;
        // A queue has at most 65536 entries.
        self.head = head as u16;
        self.head
    }

    /// Ends the connection because of `violation`, in a PDU of which `header`
    /// bytes are there to be shown.
    pub(super) fn terminate(&mut self, violation: Violation, header: usize) -> Step {
        let bytes = self.receiver.bytes();
        let header = header.min(bytes.len()).min(TermReq::MAX_DATA as usize);
        let (status, information) = (violation.status, violation.information);
        let request = TermReq::to_host(status, information, header as u32);
        self.output.end(&request, &bytes[..header]);
        self.phase = Phase::Ending(End::Violation(violation));
        self.forget_collected();
        Step::Again
    }

    /// The first `len` bytes of [`send_slices`](Self::send_slices) are gone.
    /// Calls `finished` for each completion that went out with them: when it
    /// was due, and its data.
    pub fn sent(
        &mut self,
        len: usize,
        buffers: &mut Buffers,
        mut finished: impl FnMut(Nanos, Option<Buf>),
    ) {
        let allowance = &mut self.allowance;
        self.output.advance(&mut self.slots, len, |slots, id| {
            let slot = slots.slot(id);
            if slot.state == State::Asking {
                slot.state = State::Collecting;
                return;
            }
            allowance.release(std::mem::take(&mut slot.charged));
            let (due, data) = (slot.due.take(), slots.release(id));
            match due {
                Some(due) => finished(due, data),
                None => data.into_iter().for_each(|data| buffers.give(data)),
            }
        });
    }
}

/// Adds a header, and its digest if the connection has them.
pub(super) fn push_header<const N: usize>(piece: &mut Piece<N>, header: &[u8], framing: Framing) {
    piece.push(header);
    if framing.hdgst {
        piece.push(&crc32c::crc32c(header).to_le_bytes());
    }
}
