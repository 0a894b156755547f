//! The connection: its phases, what arrives, what completes.

use std::io::{IoSlice, IoSliceMut};

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::Status;
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};
use zonelab_nvme::tcp::{
    C2hData, CapsuleCmd, CapsuleResp, CommonHeader, Digests, FatalErrorStatus, Framing, H2cData,
    IcReq, IcResp, MAX_ADMIN_IN_CAPSULE, MAX_PDA_Z, MIN_MAXH2CDATA, PFV, PduType, R2t, TermReq,
};
use zonelab_nvme::zerocopy::{FromBytes, IntoBytes};

use super::Violation;
use super::header::{self, Expectation, Layout, offset};
use super::pointer::{self, Plan, PointerLimits};
use super::receive::{Incoming, Received, Receiver, Target};
use super::send::Output;
use super::slots::{SlotId, Slots, State};
use crate::Buffers;
use crate::controller::Connected;

/// When a command that reads gets its data with the success flag and no
/// response capsule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum SuccessFlag {
    /// Never.
    Never,
    /// Where the host has disabled submission queue flow control: a response
    /// that is left out cannot carry a queue head.
    #[default]
    WithoutFlowControl,
    /// Always, as SPDK does. Hosts that do not look at the queue head, such as
    /// Linux, never miss it.
    Always,
}

/// What a controller offers a connection, and how much it lets it hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most data in a command capsule of an I/O queue, in bytes.
    pub in_capsule_bytes: u32,
    /// Most commands in flight of one queue, 1 to 65534.
    pub queue_depth: u16,
    /// Grant header and data digests to hosts that want them.
    pub digests: Digests,
    /// Alignment of data to the controller (CPDA), zero based in dwords, at most 31.
    pub cpda_z: u8,
    /// Most data of an H2CData PDU in bytes: a multiple of 4, at least 4096.
    pub maxh2cdata: u32,
    /// Most data of a command in bytes; what has more fails with Invalid Field.
    pub transfer_bytes: u32,
    /// Receive buffer in bytes, at least 1024.
    pub receive_bytes: u32,
    /// When reads end without a response capsule.
    pub success: SuccessFlag,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            in_capsule_bytes: 8192,
            queue_depth: 128,
            digests: Digests::default().with_hdgst(true).with_ddgst(true),
            cpda_z: 0,
            maxh2cdata: 1 << 20,
            transfer_bytes: 1 << 20,
            receive_bytes: 64 << 10,
            success: SuccessFlag::default(),
        }
    }
}

/// A setting outside what the protocol has room for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}; valid: {valid}")]
pub struct SettingsError {
    /// Which.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// What would be valid.
    pub valid: &'static str,
}

impl Settings {
    /// Checks them.
    ///
    /// # Errors
    /// The first that is outside what the protocol has room for.
    pub fn check(&self) -> Result<(), SettingsError> {
        let check = |is_valid, key, value, valid| {
            if is_valid {
                return Ok(());
            }
            Err(SettingsError { key, value, valid })
        };
        let depth = self.queue_depth;
        check(
            (1..u16::MAX).contains(&depth),
            "queue_depth",
            depth.into(),
            "1 to 65534",
        )?;
        let is_valid = self.maxh2cdata >= MIN_MAXH2CDATA && self.maxh2cdata.is_multiple_of(4);
        let valid = "a multiple of 4, at least 4096";
        check(is_valid, "maxh2cdata", self.maxh2cdata.into(), valid)?;
        check(
            self.cpda_z <= MAX_PDA_Z,
            "cpda_z",
            self.cpda_z.into(),
            "0 to 31",
        )?;
        let bytes = self.receive_bytes;
        check(
            bytes >= 1024,
            "receive_bytes",
            bytes.into(),
            "at least 1024",
        )
    }
}

/// A command that a host sent, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Make a queue of this connection: answer with [`Connection::connected`] or
    /// [`Connection::refused`] before anything else.
    Connect {
        /// Its entry.
        entry: SubmissionEntry,
        /// The same, parsed.
        command: Connect,
        /// Its data.
        data: Box<ConnectData>,
    },
    /// Any other: answer with [`Connection::complete`].
    Command {
        /// Its entry.
        entry: SubmissionEntry,
        /// What the host sent with it.
        data: Option<Buf>,
        /// How much data the host has room for, in bytes.
        data_len: u32,
    },
}

/// Why a connection is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The host broke the protocol.
    Violation(Violation),
    /// The host says that the controller did: status and information.
    HostTerminated(FatalErrorStatus, u32),
    /// Its Connect command was refused.
    Refused,
    /// Its owner closed it: controller reset, shutdown, Disconnect.
    Closed,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing but ICReq may come.
    Initializing,
    /// ICReq came; nothing but Connect succeeds.
    Connecting,
    /// It is a queue.
    Live,
    /// What is queued goes out; what comes is dropped.
    Ending(End),
}

/// One connection of a controller.
///
/// Its owner reads from the socket into [`receive_slices`](Self::receive_slices),
/// says how much with [`received`](Self::received), takes every
/// [`next_event`](Self::next_event), and writes [`send_slices`](Self::send_slices),
/// of which [`sent`](Self::sent) says how much went out.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    phase: Phase,
    receiver: Receiver,
    output: Output,
    slots: Slots,
    to_host: Framing,
    to_controller: Framing,
    is_admin: bool,
    /// Number of entries of the submission queue.
    depth: u32,
    /// Entries that were consumed, modulo depth (SQHD).
    head: u16,
    has_flow_control: bool,
}

impl Connection {
    /// A connection of which nothing has arrived yet.
    ///
    /// # Errors
    /// A setting is outside what the protocol has room for.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            settings,
            phase: Phase::Initializing,
            receiver: Receiver::new(settings.receive_bytes as usize),
            output: Output::new(1),
            // The one for Connect.
            slots: Slots::new(1),
            to_host: Framing::default(),
            to_controller: Framing::default(),
            is_admin: true,
            depth: 1,
            head: 0,
            has_flow_control: true,
        })
    }

    /// Why it is over; `None`: it is not.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Ending(end) => Some(end),
            _ => None,
        }
    }

    /// True once a Connect command succeeded, until the end.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// True if the host has begun a PDU and owes the rest.
    #[must_use]
    pub fn is_in_pdu(&self) -> bool {
        self.receiver.is_in_pdu()
    }

    /// Where to put what arrives next. Empty only if events are left to be taken.
    pub fn receive_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        self.receiver.slices(&mut self.slots)
    }

    /// The first `len` bytes of [`receive_slices`](Self::receive_slices) arrived.
    pub fn received(&mut self, len: usize) {
        self.receiver.filled(len, &mut self.slots);
    }

    /// The next command that is whole. `None`: more must arrive first.
    pub fn next_event(&mut self, buffers: &mut Buffers) -> Option<Event> {
        loop {
            if self.end().is_some() {
                self.receiver.discard();
                return None;
            }
            let step = if self.receiver.is_in_data() {
                self.data_step()
            } else {
                self.header_step(buffers)
            };
            match step {
                Step::Again => (),
                Step::Starved => return None,
                Step::Event(event) => return Some(event),
            }
        }
    }

    fn data_step(&mut self) -> Step {
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

    fn header_step(&mut self, buffers: &mut Buffers) -> Step {
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
                let end = End::HostTerminated(request.fes.fes(), request.fei.get());
                self.phase = Phase::Ending(end);
                Ok(Step::Again)
            }
            PduType::CAPSULE_CMD => {
                let capsule = read::<CapsuleCmd>(lead)?;
                let step = self.command(&capsule.ccsqe, layout, buffers)?;
                self.receiver.consume(layout.lead);
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
        let Some((id, is_unique)) = self.slots.take(entry) else {
            return Err(Violation::sequence("more commands than the queue is deep"));
        };
        let admitted = if is_unique {
            self.admit(entry, layout.data)
        } else {
            Err(Status::COMMAND_ID_CONFLICT)
        };
        let mut incoming = Incoming::dropped(layout.data, layout.ddgst);
        let slot = self.slots.slot(id);
        let step = match admitted {
            Err(status) => self.fail(id, status),
            Ok(Plan::Nothing) => self.hand_over(id),
            Ok(Plan::ToHost { len }) => {
                slot.data_len = len;
                self.hand_over(id)
            }
            Ok(Plan::InCapsule { offset, len }) => {
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
            Ok(Plan::FromHost { len }) => {
                slot.data_len = len;
                slot.data = Some(buffers.take(len as usize));
                self.ask(id);
                Step::Again
            }
        };
        if layout.data > 0 {
            self.receiver.expect(incoming);
        }
        Ok(step)
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
        self.receiver.expect(Incoming {
            target: Target::Transfer(id),
            before: 0,
            wanted: datal,
            at: datao,
            ..Incoming::dropped(datal, layout.ddgst)
        });
        Ok(())
    }

    /// A Connect command succeeded: this is a queue.
    pub fn connected(&mut self, connected: &Connected) {
        let Some(id) = self.held(connected.completion.cid.get()) else {
            return;
        };
        self.phase = Phase::Live;
        self.is_admin = connected.is_admin;
        self.depth = connected.depth.max(1);
        let slots = u16::try_from(connected.depth).unwrap_or(u16::MAX);
        let slots = slots.min(self.settings.queue_depth);
        self.slots.grow(slots);
        self.output.reserve(self.slots.len());
        let attributes = Connect::parse(&self.slots.slot(id).entry).map(|command| command.cattr);
        let is_disabled = attributes.is_ok_and(|cattr| cattr.disable_sq_flow_control());
        self.has_flow_control = !is_disabled;
        self.respond(id, connected.completion, None);
    }

    /// A Connect command was refused: the connection ends with its completion.
    pub fn refused(&mut self, completion: CompletionEntry) {
        if let Some(id) = self.held(completion.cid.get()) {
            self.respond(id, completion, None);
        }
        self.close(End::Refused);
    }

    /// No more commands; what is queued goes out first.
    pub fn close(&mut self, end: End) {
        if self.end().is_none() {
            self.phase = Phase::Ending(end);
        }
    }

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
    fn held(&self, cid: u16) -> Option<SlotId> {
        let is_held = |id: &SlotId| {
            self.slots
                .get(*id)
                .is_some_and(|slot| slot.state == State::Held)
        };
        self.slots.find(cid).filter(is_held)
    }

    /// Fails a command that would fail again.
    fn fail(&mut self, id: SlotId, status: Status) -> Step {
        let cid = self.slots.slot(id).cid();
        self.respond(id, CompletionEntry::new(cid, status).with_dnr(true), None);
        Step::Again
    }

    /// Queues the response of a command; gives back data that does not go out.
    fn respond(
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
    fn terminate(&mut self, violation: Violation, header: usize) -> Step {
        let bytes = self.receiver.bytes();
        let header = header.min(bytes.len()).min(TermReq::MAX_DATA as usize);
        let (status, information) = (violation.status, violation.information);
        let request = TermReq::to_host(status, information, header as u32);
        self.output.end(&request, &bytes[..header]);
        self.phase = Phase::Ending(End::Violation(violation));
        Step::Again
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Puts what is to be sent into `slices`, as much as fits; returns how many
    /// of them are used.
    #[must_use]
    pub fn send_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.output.slices(&self.slots, slices)
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
        self.output.advance(&mut self.slots, len, |slots, id| {
            let slot = slots.slot(id);
            if slot.state == State::Asking {
                slot.state = State::Collecting;
                return;
            }
            let (due, data) = (slot.due.take(), slots.release(id));
            match due {
                Some(due) => finished(due, data),
                None => data.into_iter().for_each(|data| buffers.give(data)),
            }
        });
    }
}

/// What came of looking at what arrived.
enum Step {
    /// Something; there may be more.
    Again,
    /// Nothing: more must arrive.
    Starved,
    /// A command.
    Event(Event),
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

/// Adds a header, and its digest if the connection has them.
fn push_header<const N: usize>(
    piece: &mut super::slots::Piece<N>,
    header: &[u8],
    framing: Framing,
) {
    piece.push(header);
    if framing.hdgst {
        piece.push(&crc32c::crc32c(header).to_le_bytes());
    }
}
