//! What a controller sends to our initiator: drawn PDUs, mostly right, some
//! damaged, in drawn pieces. Each command ends once: with its own data, or by
//! being given back after the connection failed.

use std::io::IoSlice;

use zonelab_device::{Buf, Nanos};
use zonelab_driver::tcp::{Connection, Settings, Transfer};
use zonelab_nvme::command::{Read, Write};

use crate::draw::Draw;

/// Commands in flight at most.
const SLOTS: u16 = 4;
/// What a buffer has before anything arrives in it.
const BLANK: u8 = 0xee;
/// When commands are late: never, here.
const NEVER: Nanos = Nanos(u64::MAX);

/// A command in flight.
#[derive(Clone, Copy)]
struct Sent {
    token: u64,
    is_read: bool,
    len: u32,
    /// Bytes that came, or were asked for.
    moved: u32,
}

/// Feeds a connection the PDUs that `data` draws.
///
/// # Panics
/// Something is wrong with the connection.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let settings = Settings {
        slots: SLOTS,
        in_capsule_bytes: draw.pick(&[0, 512, 4096]),
        hdgst: draw.flag(),
        ddgst: draw.flag(),
        hpda_z: draw.pick(&[0, 1, 7]),
        open_by: NEVER,
    };
    let digests = u8::from(settings.hdgst) | u8::from(settings.ddgst) << 1;
    let mut host = Host {
        connection: Connection::new(settings),
        in_flight: [None; SLOTS as usize],
        next_token: 0,
        cut: draw.int(1..=3000),
        alignment: (usize::from(settings.hpda_z) + 1) * 4,
        digests: if draw.one_in(8) { 0 } else { digests },
        is_damaged: false,
    };
    host.feed(&ic_resp(host.digests));
    while !draw.is_empty() && host.connection.error().is_none() {
        if draw.flag() {
            host.submit(&mut draw);
        } else {
            host.answer(&mut draw);
        }
    }
    host.end();
}

/// ICResp: version 0, no alignment, the most data of a PDU.
fn ic_resp(digests: u8) -> Vec<u8> {
    let mut pdu = vec![0x01, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, digests];
    pdu.extend(4096u32.to_le_bytes());
    pdu.resize(128, 0);
    pdu
}

/// The byte of a command's data at a place.
fn pattern(token: u64, at: u32) -> u8 {
    (token as u8).wrapping_mul(31).wrapping_add(at as u8) & 0x7f
}

struct Host {
    connection: Connection,
    /// By command identifier.
    in_flight: [Option<Sent>; SLOTS as usize],
    next_token: u64,
    /// Bytes that arrive at once.
    cut: usize,
    alignment: usize,
    digests: u8,
    /// A byte of data was changed on its way, where no digest shows it.
    is_damaged: bool,
}

impl Host {
    /// Reads or writes something, and tells which identifier it got.
    fn submit(&mut self, draw: &mut Draw<'_>) {
        let (is_read, len) = (draw.flag(), draw.pick(&[1, 512, 4096, 8192, 12_288]));
        self.next_token += 1;
        let token = self.next_token;
        let (entry, transfer) = if is_read {
            let mut buf = Buf::zeroed(len as usize);
            buf.fill(BLANK);
            (Read::new(1, 0, 1).to_entry(), Transfer::ToHost(buf))
        } else {
            let mut buf = Buf::zeroed(len as usize);
            for (at, byte) in (0..).zip(buf.iter_mut()) {
                *byte = pattern(token, at);
            }
            (Write::new(1, 0, 1).to_entry(), Transfer::ToController(buf))
        };
        let entry = entry.expect("one block is a number of blocks");
        let is_full = self.in_flight.iter().all(Option::is_some);
        let taken = self.connection.submit(entry, transfer, token, NEVER);
        assert_eq!(taken.is_err(), is_full || !self.connection.is_open());
        if taken.is_err() {
            return;
        }
        let sent = self.flush();
        // The capsule is the last PDU that was sent.
        let in_capsule = sent.len() > 8 && self.capsule_data(&sent, token, len);
        let cid = self.cid_of(&sent);
        let slot = self
            .in_flight
            .get_mut(usize::from(cid))
            .expect("a slot's number");
        assert!(slot.is_none(), "identifier {cid} is in use");
        *slot = Some(Sent {
            token,
            is_read,
            len,
            moved: if in_capsule { len } else { 0 },
        });
    }

    /// Identifier of the capsule that `sent` is.
    fn cid_of(&self, sent: &[u8]) -> u16 {
        assert_eq!(sent[0], 0x04, "a capsule");
        u16::from_le_bytes([sent[10], sent[11]])
    }

    /// Whether the capsule has data, which must be those of the command.
    fn capsule_data(&self, sent: &[u8], token: u64, len: u32) -> bool {
        let pdo = usize::from(sent[3]);
        if pdo == 0 {
            return false;
        }
        let data = &sent[pdo..pdo + len as usize];
        assert!(
            (0..)
                .zip(data)
                .all(|(at, byte)| *byte == pattern(token, at))
        );
        true
    }

    /// The controller sends something about a command, mostly right.
    fn answer(&mut self, draw: &mut Draw<'_>) {
        let cid: u16 = draw.int(0..=SLOTS - 1);
        let slot = usize::from(cid);
        let Some(sent) = self.in_flight[slot] else {
            if draw.one_in(8) {
                self.feed(&response(cid, 0, self.digests));
            }
            return;
        };
        let left = sent.len - sent.moved;
        let is_strange = draw.one_in(16);
        let mut pdu = if left == 0 || draw.one_in(8) {
            let status = if left == 0 && !draw.one_in(4) {
                0
            } else {
                0x2002
            };
            response(cid, status, self.digests)
        } else {
            let len = draw.int(1..=left.min(4096));
            let at = if is_strange {
                draw.int(0..=20_000)
            } else {
                sent.moved
            };
            self.in_flight[slot] = Some(Sent {
                moved: sent.moved + len,
                ..sent
            });
            if sent.is_read {
                let data: Vec<u8> = (at..at + len).map(|at| pattern(sent.token, at)).collect();
                let is_last = sent.moved + len == sent.len;
                let flags = u8::from(is_last) << 2 | u8::from(is_last && draw.flag()) << 3;
                self.c2h_data(cid, at, &data, flags)
            } else {
                r2t(cid, at, len, self.digests)
            }
        };
        if draw.one_in(32) {
            let at = draw.int(0..=pdu.len() - 1);
            pdu[at] ^= draw.int(1..=255u8);
            self.is_damaged = true;
        }
        self.feed(&pdu);
    }

    fn c2h_data(&self, cid: u16, at: u32, data: &[u8], flags: u8) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(cid.to_le_bytes());
        header.extend([0; 2]);
        header.extend(at.to_le_bytes());
        header.extend((data.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        pdu(0x07, flags, &header, (data, self.alignment), self.digests)
    }

    /// Bytes arrive, in pieces; the host takes what is done, and sends.
    fn feed(&mut self, bytes: &[u8]) {
        for mut piece in bytes.chunks(self.cut) {
            while !piece.is_empty() && self.connection.error().is_none() {
                let mut taken = 0;
                for room in self.connection.input() {
                    let len = room.len().min(piece.len() - taken);
                    room[..len].copy_from_slice(&piece[taken..taken + len]);
                    taken += len;
                }
                assert!(taken > 0, "no room for bytes");
                let result = self.connection.received(taken);
                assert_eq!(result.err().as_ref(), self.connection.error());
                piece = &piece[taken..];
                self.collect();
            }
        }
        self.flush();
    }

    fn collect(&mut self) {
        while let Some(done) = self.connection.next_done() {
            let cid = done.entry.cid.get();
            let slot = self.in_flight.get_mut(usize::from(cid));
            let sent = slot.and_then(Option::take).expect("it was in flight");
            assert_eq!(done.token, sent.token);
            assert!(done.transferred <= sent.len);
            let data = done.data.expect("each command came with a buffer");
            assert_eq!(data.len(), sent.len as usize);
            if sent.is_read && !self.is_damaged {
                for (at, byte) in (0..).zip(data.iter()) {
                    let expected = match at < done.transferred {
                        true => pattern(sent.token, at),
                        false => BLANK,
                    };
                    assert_eq!(*byte, expected, "byte {at} of {}", sent.len);
                }
            }
        }
    }

    /// What the host has to say.
    fn flush(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while self.connection.has_output() {
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = self.connection.output(&mut slices);
            let before = all.len();
            for slice in &slices[..filled] {
                all.extend_from_slice(slice);
            }
            let len = (all.len() - before).min(self.cut);
            assert!(len > 0, "there is output and nothing to send");
            all.truncate(before + len);
            self.connection.sent(len);
        }
        all
    }

    /// What is left comes back, once.
    fn end(mut self) {
        self.collect();
        assert_eq!(
            self.connection.in_flight(),
            self.in_flight.iter().flatten().count()
        );
        while let Some((token, data)) = self.connection.give_back() {
            let at = self
                .in_flight
                .iter()
                .position(|sent| sent.is_some_and(|sent| sent.token == token));
            let at = at.expect("it was in flight");
            let sent = self.in_flight[at].take().expect("it was found");
            let data = data.expect("each command came with a buffer");
            assert_eq!(data.len(), sent.len as usize);
        }
        assert!(self.in_flight.iter().all(Option::is_none), "one is lost");
    }
}

fn response(cid: u16, status: u16, digests: u8) -> Vec<u8> {
    let mut header = vec![0; 8];
    header.extend([0xff, 0xff, 0, 0]);
    header.extend(cid.to_le_bytes());
    header.extend((status << 1).to_le_bytes());
    pdu(0x05, 0, &header, (&[], 4), digests)
}

fn r2t(cid: u16, at: u32, len: u32, digests: u8) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(cid.to_le_bytes());
    header.extend(7u16.to_le_bytes());
    header.extend(at.to_le_bytes());
    header.extend(len.to_le_bytes());
    header.extend([0; 4]);
    pdu(0x09, 0, &header, (&[], 4), digests)
}

/// Common header, specific header, digest, padding, data, digest.
fn pdu(
    of_type: u8,
    flags: u8,
    specific: &[u8],
    (data, alignment): (&[u8], usize),
    digests: u8,
) -> Vec<u8> {
    let hlen = 8 + specific.len();
    let head = hlen + usize::from(digests & 1) * 4;
    let (mut pdo, mut plen, mut flags) = (0, head, flags | digests & 1);
    if !data.is_empty() {
        pdo = head.next_multiple_of(alignment);
        plen = pdo + data.len() + usize::from(digests >> 1) * 4;
        flags |= digests & 2;
    }
    let mut bytes = vec![of_type, flags, hlen as u8, pdo as u8];
    bytes.extend((plen as u32).to_le_bytes());
    bytes.extend(specific);
    if digests & 1 != 0 {
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    }
    if !data.is_empty() {
        bytes.resize(pdo, 0);
        bytes.extend(data);
        if digests & 2 != 0 {
            bytes.extend(crc32c::crc32c(data).to_le_bytes());
        }
    }
    bytes
}
