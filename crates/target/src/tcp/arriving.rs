//! What arrives: PDUs, the commands in them, and their data.

use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};
use zonelab_nvme::tcp::{
    CapsuleCmd, CommonHeader, Digests, Framing, H2cData, IcReq, IcResp, MAX_ADMIN_IN_CAPSULE,
    MAX_PDA_Z, PFV, PduType, R2t, TermReq,
};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

use super::Violation;
use super::allowance::Fit;
use super::answering::push_header;
use super::connection::{Connection, End, Event, Phase};
use super::header::{self, Expectation, Layout, offset};
use super::pointer::{self, Plan, PointerLimits};
use super::receive::{Incoming, Received, Target};
use super::slots::{SlotId, State};
use crate::Buffers;

/// What came of looking at what arrived.
pub(super) enum Step {
    /// Something; there may be more.
    Again,
    /// Nothing: more must arrive, or there must be room first.
    Starved,
    /// A command.
    Event(Event),
}

impl Connection {
    pub(super) fn data_step(&mut self) -> Step {
        let Some(Received { target, is_intact }) = self.receiver.data(&mut self.slots) else {
            return Step::Starved;
        };
        let (Target::Capsule(id) | Target::Transfer(id)) = target else {
            return Step::Again;
        };
        let slot = self.slots.slot(id);
        if !is_intact {
            slot.failure = Some(Status::TRANSIENT_TRANSPORT_ERROR);
        }
        if slot.received < slot.data_len {
            return Step::Again;
        }
        self.hand_over(id)
    }

    /// The data of a command is all there.
    fn hand_over(&mut self, id: SlotId) -> Step {
        let slot = self.slots.slot(id);
        if let Some(status) = slot.failure {
            let entry = CompletionEntry::new(slot.cid(), status);
            self.respond(id, entry, None);
            return Step::Again;
        }
        let (entry, data, data_len) = (slot.entry, slot.data.take(), slot.data_len);
        slot.state = State::Held;
        if self.phase == Phase::Live {
            return Step::Event(Event::Command {
                entry,
                data,
                data_len,
            });
        }
        // Nothing else gets here in the phase before.
        let command = Connect::parse(&entry);
        let data = data.and_then(|data| ConnectData::read_from_bytes(&data).ok());
        match (command, data) {
            (Ok(command), Some(data)) => Step::Event(Event::Connect {
                entry,
                command,
                data: Box::new(data),
            }),
            _ => self.fail(id, Status::DATA_SGL_LENGTH_INVALID),
        }
    }

    pub(super) fn header_step(&mut self, buffers: &mut Buffers) -> Step {
        let bytes = self.receiver.bytes();
        let Ok((ch, _)) = CommonHeader::read_from_prefix(bytes) else {
            return Step::Starved;
        };
        let layout = match header::check(&ch, self.expectation()) {
            Ok(layout) => layout,
            Err(violation) => return self.terminate(violation, size_of::<CommonHeader>()),
        };
        if bytes.len() < layout.lead {
            return Step::Starved;
        }
        match self.pdu(ch.pdu_type, layout, buffers) {
            Ok(step) => step,
            Err(violation) => self.terminate(violation, layout.header),
        }
    }

    fn expectation(&self) -> Expectation {
        Expectation {
            is_initialized: self.phase != Phase::Initializing,
            framing: self.to_controller,
            // A fabrics command has room for as much on any queue.
            capsule: self.settings.in_capsule_bytes.max(MAX_ADMIN_IN_CAPSULE),
        }
    }

    /// A PDU whose header is all there, and as it must be so far.
    fn pdu(
        &mut self,
        pdu_type: PduType,
        layout: Layout,
        buffers: &mut Buffers,
    ) -> Result<Step, Violation> {
        let bytes = self.receiver.bytes();
        let lead = &bytes[..layout.lead];
        if layout.hdgst {
            check_header_digest(lead, layout.header)?;
        }
        match pdu_type {
            PduType::IC_REQ => {
                let request = read::<IcReq>(lead)?;
                self.receiver.consume(layout.lead);
                self.initialize(&request)?;
                Ok(Step::Again)
            }
            PduType::H2C_TERM_REQ => {
                let request = read::<TermReq>(lead)?;
                self.close(End::HostTerminated(request.fes.fes(), request.fei.get()));
                Ok(Step::Again)
            }
            PduType::CAPSULE_CMD => {
                let capsule = read::<CapsuleCmd>(lead)?;
                let step = self.command(&capsule.ccsqe, layout, buffers)?;
                if !self.is_paused() {
                    self.receiver.consume(layout.lead);
                }
                Ok(step)
            }
            _ => {
                let data = read::<H2cData>(lead)?;
                self.transfer(&data, layout)?;
                self.receiver.consume(layout.lead);
                Ok(Step::Again)
            }
        }
    }

    fn initialize(&mut self, request: &IcReq) -> Result<(), Violation> {
        if request.pfv.get() != PFV {
            return Err(Violation::unsupported(
                offset::PFV,
                "no such PDU format version",
            ));
        }
        if request.hpda_z > MAX_PDA_Z {
            return Err(Violation::field(offset::HPDA, "HPDA exceeds 31"));
        }
        let hdgst = request.dgst.hdgst() && self.settings.digests.hdgst();
        let ddgst = request.dgst.ddgst() && self.settings.digests.ddgst();
        let framing = |pda_z| Framing {
            hdgst,
            ddgst,
            pda_z,
        };
        self.to_host = framing(request.hpda_z);
        self.to_controller = framing(self.settings.cpda_z);
        let digests = Digests::default().with_hdgst(hdgst).with_ddgst(ddgst);
        let (cpda_z, maxh2cdata) = (self.settings.cpda_z, self.settings.maxh2cdata);
        self.output.open(&IcResp::new(cpda_z, digests, maxh2cdata));
        self.phase = Phase::Connecting;
        Ok(())
    }

    fn command(
        &mut self,
        entry: &SubmissionEntry,
        layout: Layout,
        buffers: &mut Buffers,
    ) -> Result<Step, Violation> {
        let is_unique = self.slots.find(entry.cdw0.cid()).is_none();
        let admitted = if is_unique {
            self.admit(entry, layout.data)
        } else {
            Err(Status::COMMAND_ID_CONFLICT)
        };
        self.allowance.paused_for = match admitted {
            Ok(Plan::InCapsule { len, .. }) if self.allowance.fit(len) == Fit::Later => Some(len),
            _ => None,
        };
        if self.is_paused() {
            return Ok(Step::Starved);
        }
        let Some((id, _)) = self.slots.take(entry) else {
            return Err(Violation::sequence("more commands than the queue is deep"));
        };
        let mut incoming = Incoming::dropped(layout.data, layout.ddgst);
        let step = match admitted {
            Err(status) => self.fail(id, status),
            Ok(Plan::Nothing) => self.hand_over(id),
            Ok(Plan::ToHost { len }) => self.take_on(id, (len, false)),
            Ok(Plan::FromHost { len }) => self.take_on(id, (len, true)),
            Ok(Plan::InCapsule { len, .. }) if self.allowance.fit(len) == Fit::Never => {
                self.take_on(id, (len, true))
            }
            Ok(Plan::InCapsule { offset, len }) => {
                self.charge(id, len);
                let slot = self.slots.slot(id);
                slot.data_len = len;
                slot.received = len;
                slot.data = Some(buffers.take(len as usize));
                incoming = Incoming {
                    target: Target::Capsule(id),
                    before: offset,
                    wanted: len,
                    after: layout.data - offset - len,
                    ..incoming
                };
                Step::Again
            }
        };
        if layout.data > 0 {
            self.receiver.expect(incoming);
        }
        Ok(step)
    }

    /// Takes on a command whose data the transport moves, now or when there is
    /// room. The owner is asked first if the data has to be asked for, or is more
    /// than this peer may have: so nothing is set aside for a command that fails.
    fn take_on(&mut self, id: SlotId, (len, is_from_host): (u32, bool)) -> Step {
        let fit = self.allowance.fit(len);
        let is_live = self.phase == Phase::Live;
        let slot = self.slots.slot(id);
        slot.data_len = len;
        slot.is_from_host = is_from_host;
        if is_live && (is_from_host || fit == Fit::Never) {
            slot.state = State::Announced;
            let entry = slot.entry;
            return Step::Event(Event::Announced {
                entry,
                data_len: len,
            });
        }
        if fit == Fit::Now && !is_from_host && self.allowance.waiting.is_empty() {
            self.charge(id, len);
            return self.hand_over(id);
        }
        self.wait_for_room(id);
        Step::Again
    }

    /// The owner lets a command that was announced have its data.
    pub fn accept(&mut self, cid: u16) {
        let Some(id) = self.announced(cid) else {
            return;
        };
        if self.allowance.fit(self.slots.slot(id).data_len) == Fit::Never {
            self.fail(id, Status::INVALID_FIELD);
        } else {
            self.wait_for_room(id);
        }
    }

    /// The owner fails a command that was announced.
    pub fn decline(&mut self, completion: CompletionEntry) {
        if let Some(id) = self.announced(completion.cid.get()) {
            self.respond(id, completion, None);
        }
    }

    fn announced(&self, cid: u16) -> Option<SlotId> {
        let id = self.slots.find(cid)?;
        let slot = self.slots.get(id)?;
        (slot.state == State::Announced).then_some(id)
    }

    fn wait_for_room(&mut self, id: SlotId) {
        self.slots.slot(id).state = State::Waiting;
        self.allowance.waiting.push_back(id);
    }

    /// The first command that waits goes on if there is room for it.
    pub(super) fn waiting_step(&mut self, buffers: &mut Buffers) -> Option<Step> {
        let id = self.allowance.waiting.front().copied()?;
        let (len, is_from_host) = {
            let slot = self.slots.get(id)?;
            (slot.data_len, slot.is_from_host)
        };
        if self.allowance.fit(len) != Fit::Now {
            return None;
        }
        self.allowance.waiting.pop_front();
        self.charge(id, len);
        if !is_from_host {
            return Some(self.hand_over(id));
        }
        self.slots.slot(id).data = Some(buffers.take(len as usize));
        self.ask(id);
        Some(Step::Again)
    }

    fn charge(&mut self, id: SlotId, len: u32) {
        self.allowance.charge(len);
        self.slots.slot(id).charged = len;
    }

    /// Whether a command may come now, and what is to be done about its data.
    fn admit(&self, entry: &SubmissionEntry, capsule: u32) -> Result<Plan, Status> {
        let is_connect = Connect::parse(entry).is_ok();
        let is_live = self.phase == Phase::Live;
        if is_connect == is_live {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let is_fabrics = entry.cdw0.opc() == AdminOpcode::FABRICS.0;
        let in_capsule = if self.is_admin || is_fabrics {
            MAX_ADMIN_IN_CAPSULE
        } else {
            self.settings.in_capsule_bytes
        };
        let limits = PointerLimits {
            capsule,
            in_capsule,
            transfer: self.settings.transfer_bytes,
        };
        let plan = pointer::plan(entry, limits)?;
        match plan {
            Plan::InCapsule { len, .. } | Plan::FromHost { len } if is_connect => {
                let is_whole = len as usize == size_of::<ConnectData>();
                is_whole
                    .then_some(plan)
                    .ok_or(Status::DATA_SGL_LENGTH_INVALID)
            }
            _ if is_connect => Err(Status::DATA_SGL_LENGTH_INVALID),
            _ => Ok(plan),
        }
    }

    /// Asks for all data of a command at once: one R2T in flight is within any
    /// MAXR2T.
    fn ask(&mut self, id: SlotId) {
        let framing = self.to_host;
        let slot = self.slots.slot(id);
        let r2t = R2t::new(framing, (slot.cid(), id.0), (0, slot.data_len));
        self.asked_bytes += u64::from(slot.data_len);
        slot.state = State::Asking;
        slot.head.clear();
        slot.tail.clear();
        slot.sent_len = 0;
        push_header(&mut slot.head, r2t.as_bytes(), framing);
        self.output.push(id);
    }

    fn transfer(&mut self, pdu: &H2cData, layout: Layout) -> Result<(), Violation> {
        let id = SlotId(pdu.ttag.get());
        let is_asked = |state| state == State::Collecting;
        let Some(slot) = self.slots.get(id).filter(|slot| is_asked(slot.state)) else {
            return Err(Violation::field(
                offset::TTAG,
                "TTAG is of no R2T that was sent",
            ));
        };
        if slot.cid() != pdu.cccid.get() {
            return Err(Violation::field(
                offset::CCCID,
                "CCCID is not that of the R2T",
            ));
        }
        let (datao, datal) = (pdu.datao.get(), pdu.datal.get());
        if datal > self.settings.maxh2cdata {
            return Err(Violation::limit());
        }
        if datal == 0 {
            return Err(Violation::field(offset::DATAL, "no data"));
        }
        if datal != layout.data {
            return Err(Violation::field(offset::PLEN, "PLEN does not fit DATAL"));
        }
        if datao != slot.received {
            return Err(Violation::out_of_range("data is not in order"));
        }
        if datal > slot.data_len - slot.received {
            return Err(Violation::out_of_range("more data than the R2T asked for"));
        }
        let is_last = slot.received + datal == slot.data_len;
        if pdu.ch.flags.last_pdu() != is_last {
            let what = "LAST_PDU belongs to the last data of an R2T and to no other";
            return Err(Violation::field(offset::FLAGS, what));
        }
        self.slots.slot(id).received += datal;
        self.asked_bytes -= u64::from(datal);
        self.receiver.expect(Incoming {
            target: Target::Transfer(id),
            before: 0,
            wanted: datal,
            at: datao,
            ..Incoming::dropped(datal, layout.ddgst)
        });
        Ok(())
    }
}

/// A header that is all there.
fn read<T: FromBytes>(lead: &[u8]) -> Result<T, Violation> {
    // HLEN was checked to be that of the type, so it is never too short.
    let too_short = Violation::field(offset::HLEN, "HLEN is not that of the type");
    T::read_from_prefix(lead)
        .map(|(header, _)| header)
        .map_err(|_| too_short)
}

fn check_header_digest(lead: &[u8], header: usize) -> Result<(), Violation> {
    let (bytes, rest) = lead.split_at(header);
    let digest = rest.first_chunk().map(|digest| u32::from_le_bytes(*digest));
    match digest {
        Some(digest) if digest == crc32c::crc32c(bytes) => Ok(()),
        digest => Err(Violation::header_digest(digest.unwrap_or_default())),
    }
}
