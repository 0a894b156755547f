//! PDUs of the controller: every field is checked before it is used.

use zonelab_nvme::Status;
use zonelab_nvme::queue::CompletionEntry;
use zonelab_nvme::tcp::{
    C2hData, CapsuleResp, CommonHeader, DIGEST_LEN, Framing, IcResp, MAX_PDA_Z, MIN_MAXH2CDATA,
    PFV, PduType, R2t, TermReq,
};
use zonelab_nvme::zerocopy::FromBytes;

use super::slot::Requested;
use super::{Connection, Done, ProtocolError, Transfer};

/// Bytes that are received at once beside the data of a command: enough for
/// many small PDUs, and for a header behind the largest data.
const STAGING_BYTES: usize = 64 << 10;

/// Data of a command on its way in.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    cid: u16,
    /// Next byte in the buffer of the command.
    at: usize,
    /// Bytes to come.
    left: usize,
    /// A digest follows, and what it is so far.
    digest: Option<u32>,
    success: bool,
}

/// Where the parser stands.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Before a PDU, or in its header.
    Header,
    /// In the data of a PDU.
    Data(Incoming),
    /// In the digest after the data.
    Digest(Incoming),
}

/// The parser: bytes that belong to no command, and where they stand.
#[derive(Debug)]
pub(super) struct Receiver {
    staging: Box<[u8]>,
    start: usize,
    end: usize,
    stage: Stage,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            staging: vec![0; STAGING_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            stage: Stage::Header,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.staging.get(self.start..self.end).unwrap_or_default()
    }

    /// Moves what is left to the front, so that there is room behind it.
    fn compact(&mut self) {
        if self.start > 0 {
            self.staging.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }
}

/// A check of one field.
fn require(
    holds: bool,
    (pdu, field, offset): (PduType, &'static str, u32),
    value: impl Into<u64>,
    valid: &'static str,
) -> Result<(), ProtocolError> {
    if holds {
        return Ok(());
    }
    Err(ProtocolError::Field {
        pdu,
        field,
        offset,
        value: value.into(),
        valid,
    })
}

/// The value of type `T` that `bytes` start with.
fn header<T: FromBytes>(pdu: PduType, bytes: &[u8]) -> Result<T, ProtocolError> {
    // The parser calls with HLEN bytes, which is the size of the type.
    T::read_from_prefix(bytes)
        .map(|(value, _)| value)
        .map_err(|_| ProtocolError::Field {
            pdu,
            field: "HLEN",
            offset: 2,
            value: bytes.len() as u64,
            valid: "the size of the header",
        })
}

impl Connection {
    /// Where the next bytes of the socket go: first the one, then the other.
    /// The first is empty unless the data of a command is being received.
    pub fn input(&mut self) -> [&mut [u8]; 2] {
        let receiver = &mut self.receiver;
        receiver.compact();
        let data: &mut [u8] = match receiver.stage {
            Stage::Data(incoming) => {
                let slot = self.slots.get_mut(usize::from(incoming.cid));
                match slot.map(|slot| &mut slot.transfer) {
                    Some(Transfer::ToHost(buf)) => buf
                        .get_mut(incoming.at..incoming.at + incoming.left)
                        .unwrap_or_default(),
                    _ => &mut [],
                }
            }
            _ => &mut [],
        };
        let end = receiver.end;
        [data, receiver.staging.get_mut(end..).unwrap_or_default()]
    }

    /// The first `bytes` of [`Connection::input`] were filled.
    ///
    /// # Errors
    /// The controller violated the protocol. The same error comes again until
    /// the connection is dropped.
    pub fn received(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut rest = bytes;
        if let Stage::Data(incoming) = self.receiver.stage {
            let taken = rest.min(incoming.left);
            self.advance_data(incoming, taken);
            rest -= taken;
        }
        self.receiver.end = (self.receiver.end + rest).min(STAGING_BYTES);
        while self.step()? {}
        Ok(())
    }

    /// The same for bytes that are somewhere else.
    ///
    /// # Errors
    /// As [`Connection::received`].
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolError> {
        while !bytes.is_empty() {
            let mut filled = 0;
            for room in self.input() {
                let len = room.len().min(bytes.len());
                let (now, later) = bytes.split_at(len);
                room[..len].copy_from_slice(now);
                bytes = later;
                filled += len;
            }
            self.received(filled)?;
        }
        Ok(())
    }

    /// Goes on with what is in the staging area; false if that needs more bytes.
    fn step(&mut self) -> Result<bool, ProtocolError> {
        match self.receiver.stage {
            Stage::Header => self.step_header(),
            Stage::Data(incoming) => Ok(self.step_data(incoming)),
            Stage::Digest(incoming) => Ok(self.step_digest(incoming)),
        }
    }

    /// `bytes` more of the data are in the buffer.
    fn advance_data(&mut self, incoming: Incoming, bytes: usize) {
        let mut incoming = incoming;
        if let Some(digest) = &mut incoming.digest {
            let slot = self.slots.get(usize::from(incoming.cid));
            let buf = slot.and_then(|slot| slot.transfer.buf());
            let fresh = buf.and_then(|buf| buf.get(incoming.at..incoming.at + bytes));
            *digest = crc32c::crc32c_append(*digest, fresh.unwrap_or_default());
        }
        incoming.at += bytes;
        incoming.left -= bytes;
        self.receiver.stage = match incoming {
            Incoming { left: 1.., .. } => Stage::Data(incoming),
            Incoming {
                digest: Some(_), ..
            } => Stage::Digest(incoming),
            _ => self.data_done(incoming),
        };
    }

    fn step_data(&mut self, incoming: Incoming) -> bool {
        let receiver = &mut self.receiver;
        let len = incoming.left.min(receiver.end - receiver.start);
        if len == 0 {
            return false;
        }
        let from = receiver.start..receiver.start + len;
        let slot = self.slots.get_mut(usize::from(incoming.cid));
        if let Some(Transfer::ToHost(buf)) = slot.map(|slot| &mut slot.transfer) {
            let to = buf.get_mut(incoming.at..incoming.at + len);
            if let (Some(to), Some(from)) = (to, receiver.staging.get(from)) {
                to.copy_from_slice(from);
            }
        }
        receiver.start += len;
        self.advance_data(incoming, len);
        true
    }

    fn step_digest(&mut self, incoming: Incoming) -> bool {
        let Some(received) = self.receiver.bytes().first_chunk::<4>() else {
            return false;
        };
        let is_damaged = incoming.digest != Some(u32::from_le_bytes(*received));
        self.receiver.start += DIGEST_LEN as usize;
        if is_damaged && let Some(slot) = self.slots.get_mut(usize::from(incoming.cid)) {
            slot.damaged = true;
        }
        self.receiver.stage = self.data_done(incoming);
        true
    }

    fn data_done(&mut self, incoming: Incoming) -> Stage {
        if incoming.success {
            self.complete(CompletionEntry::new(incoming.cid, Status::SUCCESS));
        }
        Stage::Header
    }

    /// The command of `entry` is done.
    fn complete(&mut self, entry: CompletionEntry) {
        let cid = entry.cid.get();
        let Some(slot) = self.slots.get_mut(usize::from(cid)) else {
            return;
        };
        slot.busy = false;
        let mut entry = entry;
        if slot.damaged && entry.status.status().is_success() {
            entry.status = entry
                .status
                .with_status(Status::TRANSIENT_TRANSPORT_ERROR)
                .with_dnr(false);
        }
        let done = Done {
            token: slot.token,
            entry,
            data: core::mem::take(&mut slot.transfer).into_buf(),
            transferred: slot.moved,
        };
        self.free.push(cid);
        self.done.push_back(done);
    }

    fn step_header(&mut self) -> Result<bool, ProtocolError> {
        let Ok((ch, _)) = CommonHeader::read_from_prefix(self.receiver.bytes()) else {
            return Ok(false);
        };
        let checked = self.check_common(&ch);
        let needed = match checked {
            Ok(needed) if needed > self.receiver.bytes().len() => return Ok(false),
            Ok(needed) => needed,
            Err(error) => return Err(self.fail_here(error, usize::from(ch.hlen))),
        };
        // The longest header is that of the connection response; padding and
        // what follows a termination need not be kept.
        let mut head = [0; size_of::<IcResp>() + DIGEST_LEN as usize];
        let len = needed.min(head.len());
        head[..len].copy_from_slice(&self.receiver.bytes()[..len]);
        let result = self
            .check_digest(&ch, &head)
            .and_then(|()| self.dispatch(&ch, &head));
        match result {
            Ok(stage) => {
                self.receiver.start += needed;
                self.receiver.stage = stage;
                Ok(true)
            }
            Err(error) => Err(self.fail_here(error, usize::from(ch.hlen))),
        }
    }

    /// Fails with the header that is next in the staging area.
    fn fail_here(&mut self, error: ProtocolError, hlen: usize) -> ProtocolError {
        let bytes = self.receiver.bytes();
        let header = bytes[..bytes.len().min(hlen)].to_vec();
        self.fail(error, &header)
    }

    /// Checks the common header, and returns how many bytes there are up to the
    /// data, or in all if there is none.
    fn check_common(&self, ch: &CommonHeader) -> Result<usize, ProtocolError> {
        let pdu = ch.pdu_type;
        let hlen = pdu.hlen().filter(|_| pdu.is_to_host());
        let valid = "ICResp, C2HTermReq, CapsuleResp, C2HData or R2T";
        require(hlen.is_some(), (pdu, "PDU-Type", 0), pdu.0, valid)?;
        let is_opening = pdu == PduType::IC_RESP;
        if pdu != PduType::C2H_TERM_REQ && is_opening == self.open.is_some() {
            let when = if is_opening {
                "on an open connection"
            } else {
                "before the connection was open"
            };
            return Err(ProtocolError::Sequence { pdu, when });
        }
        let valid = "the header length of its type";
        require(hlen == Some(ch.hlen), (pdu, "HLEN", 2), ch.hlen, valid)?;
        let plen = ch.plen.get();
        if pdu == PduType::C2H_TERM_REQ {
            let min = size_of::<TermReq>() as u32;
            let fits = (min..=min + TermReq::MAX_DATA).contains(&plen);
            require(fits, (pdu, "PLEN", 4), plen, "24 to 152")?;
            return Ok(plen as usize);
        }
        let framing = self.framing_in();
        let hdgstf = framing.hdgst && pdu.has_header_digest();
        let valid = "HDGSTF as agreed for the connection";
        let is_agreed = ch.flags.hdgstf() == hdgstf;
        require(is_agreed, (pdu, "FLAGS", 1), ch.flags.bits(), valid)?;
        let head = u32::from(ch.hlen) + if hdgstf { DIGEST_LEN } else { 0 };
        if !pdu.may_have_data() {
            let valid = "the length of header and digest";
            require(plen == head, (pdu, "PLEN", 4), plen, valid)?;
            return Ok(head as usize);
        }
        check_data_header(ch, framing, head)?;
        Ok(usize::from(ch.pdo))
    }

    /// The layout of what the controller sends.
    fn framing_in(&self) -> Framing {
        let dgst = self.open.unwrap_or_default();
        Framing {
            hdgst: dgst.hdgst(),
            ddgst: dgst.ddgst(),
            pda_z: self.settings.hpda_z,
        }
    }

    fn check_digest(&self, ch: &CommonHeader, head: &[u8]) -> Result<(), ProtocolError> {
        if !ch.flags.hdgstf() || !ch.pdu_type.has_header_digest() {
            return Ok(());
        }
        let (covered, rest) = head.split_at(usize::from(ch.hlen).min(head.len()));
        let received = rest.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let computed = crc32c::crc32c(covered);
        if received == computed {
            return Ok(());
        }
        Err(ProtocolError::HeaderDigest {
            pdu: ch.pdu_type,
            received,
            computed,
        })
    }

    fn dispatch(&mut self, ch: &CommonHeader, head: &[u8]) -> Result<Stage, ProtocolError> {
        let pdu = ch.pdu_type;
        match pdu {
            PduType::IC_RESP => self.on_ic_resp(&header(pdu, head)?)?,
            PduType::CAPSULE_RESP => self.on_capsule_resp(&header(pdu, head)?)?,
            PduType::C2H_DATA => return self.on_c2h_data(&header(pdu, head)?),
            PduType::R2T => self.on_r2t(&header(pdu, head)?)?,
            _ => {
                let request: TermReq = header(pdu, head)?;
                return Err(ProtocolError::Terminated {
                    fes: request.fes.fes(),
                    fei: request.fei.get(),
                });
            }
        }
        Ok(Stage::Header)
    }

    fn on_ic_resp(&mut self, response: &IcResp) -> Result<(), ProtocolError> {
        let pdu = PduType::IC_RESP;
        let pfv = response.pfv.get();
        require(pfv == PFV, (pdu, "PFV", 8), pfv, "0")?;
        let cpda_z = response.cpda_z;
        require(cpda_z <= MAX_PDA_Z, (pdu, "CPDA", 10), cpda_z, "0 to 31")?;
        let dgst = response.dgst;
        let is_wanted = (dgst.hdgst(), dgst.ddgst()) == (self.settings.hdgst, self.settings.ddgst);
        let valid = "the digests that the host asked for";
        require(is_wanted, (pdu, "DGST", 11), dgst.bits(), valid)?;
        let max = response.maxh2cdata.get();
        let fits = max >= MIN_MAXH2CDATA && max.is_multiple_of(4);
        let valid = "a multiple of 4 from 4096";
        require(fits, (pdu, "MAXH2CDATA", 12), max, valid)?;
        self.max_h2c_data = max;
        self.framing_out = Framing {
            hdgst: dgst.hdgst(),
            ddgst: dgst.ddgst(),
            pda_z: cpda_z,
        };
        self.open = Some(dgst);
        Ok(())
    }

    /// [`ProtocolError::NoSuchCommand`] unless the command is in flight, and a
    /// sequence error unless all that was to be sent for it has been sent.
    fn check_answerable(&self, pdu: PduType, cid: u16) -> Result<&super::Slot, ProtocolError> {
        let slot = self.slots.get(usize::from(cid));
        match slot.filter(|slot| slot.busy) {
            None => Err(ProtocolError::NoSuchCommand { pdu, cid }),
            Some(slot) if pdu == PduType::R2T && slot.requested.is_some() => {
                Err(ProtocolError::R2tLimit { cid })
            }
            Some(slot) if slot.queued || slot.requested.is_some() => Err(ProtocolError::Sequence {
                pdu,
                when: "before the host had sent the command and the data asked for",
            }),
            Some(slot) => Ok(slot),
        }
    }

    fn on_capsule_resp(&mut self, response: &CapsuleResp) -> Result<(), ProtocolError> {
        self.check_answerable(PduType::CAPSULE_RESP, response.rccqe.cid.get())?;
        self.complete(response.rccqe);
        Ok(())
    }

    fn on_c2h_data(&mut self, header: &C2hData) -> Result<Stage, ProtocolError> {
        let pdu = PduType::C2H_DATA;
        let cid = header.cccid.get();
        let slot = self.check_answerable(pdu, cid)?;
        if !matches!(slot.transfer, Transfer::ToHost(_)) {
            let when = "for a command that reads nothing";
            return Err(ProtocolError::Sequence { pdu, when });
        }
        let (offset, len) = (header.datao.get(), header.datal.get());
        let carried = header.ch.data_len();
        let valid = "the length of the data in the PDU, and not 0";
        let fits = len > 0 && carried == Some(len);
        require(fits, (pdu, "DATAL", 16), len, valid)?;
        let end = check_next(pdu, cid, (offset, len), (slot.moved, slot.size))?;
        let flags = header.ch.flags;
        let is_last = end == slot.size;
        let valid = "LAST_PDU with the last data of the command only";
        require(
            flags.last_pdu() == is_last,
            (pdu, "FLAGS", 1),
            flags.bits(),
            valid,
        )?;
        let valid = "SUCCESS with LAST_PDU only";
        let fits = is_last || !flags.success();
        require(fits, (pdu, "FLAGS", 1), flags.bits(), valid)?;
        if let Some(slot) = self.slots.get_mut(usize::from(cid)) {
            slot.moved = end;
        }
        Ok(Stage::Data(Incoming {
            cid,
            at: offset as usize,
            left: len as usize,
            digest: flags.ddgstf().then_some(0),
            success: flags.success(),
        }))
    }

    fn on_r2t(&mut self, header: &R2t) -> Result<(), ProtocolError> {
        let pdu = PduType::R2T;
        let cid = header.cccid.get();
        let slot = self.check_answerable(pdu, cid)?;
        if !matches!(slot.transfer, Transfer::ToController(_)) {
            let when = "for a command that writes nothing";
            return Err(ProtocolError::Sequence { pdu, when });
        }
        let (offset, len) = (header.r2to.get(), header.r2tl.get());
        require(len > 0, (pdu, "R2TL", 16), len, "at least 1")?;
        let end = check_next(pdu, cid, (offset, len), (slot.moved, slot.size))?;
        let ttag = header.ttag.get();
        let requested = Requested {
            ttag,
            at: offset,
            end,
        };
        self.answer(cid, requested);
        Ok(())
    }
}

/// Checks what a common header says about data after `head` bytes of header.
fn check_data_header(ch: &CommonHeader, framing: Framing, head: u32) -> Result<(), ProtocolError> {
    let pdu = ch.pdu_type;
    let pdo = u32::from(ch.pdo);
    let fits = pdo >= head && pdo.is_multiple_of(framing.alignment());
    let valid = "behind header and digest, and aligned as the host asked for (HPDA)";
    require(fits, (pdu, "PDO", 3), ch.pdo, valid)?;
    let valid = "DDGSTF as agreed for the connection";
    let is_agreed = ch.flags.ddgstf() == framing.ddgst;
    require(is_agreed, (pdu, "FLAGS", 1), ch.flags.bits(), valid)?;
    let valid = "the length of header, digests, padding and data";
    let has_data = ch.data_len().is_some_and(|len| len > 0);
    require(has_data, (pdu, "PLEN", 4), ch.plen.get(), valid)
}

/// The offset after `len` bytes at `offset`, which must be the `next` of `size`.
fn check_next(
    pdu: PduType,
    cid: u16,
    (offset, len): (u32, u32),
    (next, size): (u32, u32),
) -> Result<u32, ProtocolError> {
    let end = offset.checked_add(len).filter(|end| *end <= size);
    match end.filter(|_| offset == next) {
        Some(end) => Ok(end),
        None => Err(ProtocolError::DataOutOfRange {
            pdu,
            cid,
            offset,
            len,
            next,
            size,
        }),
    }
}
