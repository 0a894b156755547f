//! What arrives on an NVMe/TCP connection: drawn PDUs, mostly right, damaged
//! or not, in drawn pieces. Whatever comes, the connection gives commands with
//! the data that they claim, sends whole PDUs, and ends a peer that breaks the
//! protocol with one termination request.

use std::io::IoSlice;

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::queue::CompletionEntry;
use zonelab_target::Buffers;
use zonelab_target::controller::{Connected, QueueHandle};
use zonelab_target::tcp::{Connection, End, Event, Settings};

/// Bytes taken from the front of the input, zeros once it is used up.
struct Draw<'d>(&'d [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Feeds a connection the PDUs that `data` draws.
///
/// # Panics
/// Something is wrong with the connection.
pub fn run(data: &[u8]) {
    let mut draw = Draw(data);
    let settings = Settings {
        in_capsule_bytes: 4096,
        maxh2cdata: 4096,
        receive_bytes: 1024 + u32::from(draw.byte()) * 16,
        transfer_bytes: 1 << 16,
        ..Settings::default()
    };
    let connection = Connection::new(settings).expect("the settings are in range");
    let mut peer = Peer {
        connection,
        buffers: Buffers::default(),
        sent: Vec::new(),
        held: Vec::new(),
        cut: usize::from(draw.byte()) + 1,
    };
    peer.feed(&ic_req());
    peer.feed(&connect());
    while !draw.is_empty() && peer.connection.end().is_none() {
        let pdu = pdu(&mut draw, peer.last_tag());
        peer.feed(&pdu);
        if draw.byte() & 3 == 0 {
            peer.complete();
        }
    }
    peer.check();
}

fn ic_req() -> Vec<u8> {
    let mut pdu = vec![0x00, 0, 128, 0, 128];
    pdu.resize(128, 0);
    pdu
}

fn connect() -> Vec<u8> {
    let mut pdu = vec![0x04, 0, 72, 72, 0x48, 4, 0, 0, 0x7f, 0x40, 0, 0, 0x01];
    pdu.resize(72 + 1024, 0);
    pdu[8 + 32..8 + 36].copy_from_slice(&1024u32.to_le_bytes());
    pdu[8 + 39] = 0x01;
    pdu[8 + 42] = 1;
    pdu[8 + 44] = 15;
    pdu
}

/// A capsule or data PDU that may be right, and may be damaged in a byte.
fn pdu(draw: &mut Draw<'_>, tag: (u16, u16)) -> Vec<u8> {
    let shape = draw.byte();
    let len = usize::from(draw.word()) % 5000;
    let mut pdu = if shape & 1 == 0 {
        let mut pdu = vec![0x04, 0, 72, 0];
        let in_capsule = if shape & 2 == 0 { len } else { 0 };
        pdu[3] = if in_capsule > 0 { 72 } else { 0 };
        pdu.extend((72 + in_capsule as u32).to_le_bytes());
        let cid = u16::from(draw.byte() & 31);
        pdu.extend([draw.byte(), 0x40]);
        pdu.extend(cid.to_le_bytes());
        pdu.resize(72 + in_capsule, 0xa5);
        pdu[8 + 4..72].fill(0);
        pdu[8 + 32..8 + 36].copy_from_slice(&(len as u32).to_le_bytes());
        pdu[8 + 39] = if shape & 2 == 0 { 0x01 } else { 0x5a };
        pdu
    } else {
        let mut pdu = vec![0x06, if shape & 4 == 0 { 0x04 } else { 0 }, 24, 24];
        pdu.extend((24 + len as u32).to_le_bytes());
        pdu.extend(tag.0.to_le_bytes());
        pdu.extend(tag.1.to_le_bytes());
        pdu.extend([0; 4]);
        pdu.extend((len as u32).to_le_bytes());
        pdu.resize(24 + len, 0x5a);
        pdu
    };
    if shape & 0xe0 == 0xe0 {
        let at = usize::from(draw.word()) % pdu.len();
        pdu[at] = draw.byte();
    }
    pdu
}

/// The other end of the connection, and its owner.
struct Peer {
    connection: Connection,
    buffers: Buffers,
    sent: Vec<u8>,
    /// Commands that wait for their completion: identifier and room for data.
    held: Vec<(u16, u32, bool)>,
    /// Bytes that arrive at once.
    cut: usize,
}

impl Peer {
    fn feed(&mut self, bytes: &[u8]) {
        for mut piece in bytes.chunks(self.cut) {
            while !piece.is_empty() {
                let mut taken = 0;
                for slice in &mut self.connection.receive_slices() {
                    let len = slice.len().min(piece.len() - taken);
                    slice[..len].copy_from_slice(&piece[taken..taken + len]);
                    taken += len;
                }
                assert!(taken > 0, "no room though every event is taken");
                self.connection.received(taken);
                piece = &piece[taken..];
                self.take_events();
                self.flush();
            }
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.connection.next_event(&mut self.buffers) {
            match event {
                Event::Connect { entry, .. } => {
                    let completion = CompletionEntry::new(entry.cdw0.cid(), Status::SUCCESS);
                    self.connection.connected(&Connected {
                        queue: QueueHandle(0),
                        depth: 16,
                        is_admin: false,
                        completion,
                    });
                }
                Event::Announced { entry, data_len } => {
                    assert!(data_len <= 1 << 16);
                    self.connection.accept(entry.cdw0.cid());
                }
                Event::Command {
                    entry,
                    data,
                    data_len,
                } => {
                    let is_from_host = data.is_some();
                    let len = data.as_ref().map_or(data_len as usize, |data| data.len());
                    assert_eq!(len, data_len as usize);
                    assert!(data_len <= 1 << 16);
                    assert!(self.held.len() < 16, "more commands than the queue is deep");
                    let cid = entry.cdw0.cid();
                    assert!(self.held.iter().all(|held| held.0 != cid));
                    self.held.push((cid, data_len, is_from_host));
                    data.into_iter().for_each(|data| self.buffers.give(data));
                }
            }
        }
    }

    /// The oldest command completes.
    fn complete(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let (cid, len, is_from_host) = self.held.remove(0);
        let data = (!is_from_host && len > 0).then(|| self.buffers.take(len as usize));
        let completion = CompletionEntry::new(cid, Status::SUCCESS);
        let unused = self.connection.complete(completion, data, Nanos(1));
        // A connection that is broken drops the answer, and nothing else does.
        assert!(unused.is_none() || self.connection.end().is_some());
        self.flush();
    }

    fn flush(&mut self) {
        while self.connection.has_output() {
            let mut slices = [IoSlice::new(&[]); 8];
            let count = self.connection.send_slices(&mut slices);
            let before = self.sent.len();
            for slice in &slices[..count] {
                self.sent.extend_from_slice(slice);
            }
            let len = (self.sent.len() - before).min(self.cut);
            assert!(len > 0, "there is output and nothing to send");
            self.sent.truncate(before + len);
            self.connection.sent(len, &mut self.buffers, |_, _| ());
        }
    }

    /// Command and tag of the last R2T.
    fn last_tag(&self) -> (u16, u16) {
        let mut last = (0, 0);
        for pdu in pdus(&self.sent) {
            if pdu[0] == 0x09 {
                let word = |at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]);
                last = (word(8), word(10));
            }
        }
        last
    }

    /// What was sent is whole PDUs of a controller, and a termination request
    /// is the last if and only if the peer broke the protocol.
    fn check(&self) {
        let types: Vec<u8> = pdus(&self.sent).map(|pdu| pdu[0]).collect();
        let whole: usize = pdus(&self.sent).map(<[u8]>::len).sum();
        assert_eq!(whole, self.sent.len(), "half a PDU was sent");
        assert!(
            types
                .iter()
                .all(|of| matches!(of, 0x01 | 0x03 | 0x05 | 0x07 | 0x09))
        );
        let is_broken = matches!(self.connection.end(), Some(End::Violation(_)));
        let requests = types.iter().filter(|of| **of == 0x03).count();
        assert_eq!(requests, usize::from(is_broken));
        assert_eq!(types.last() == Some(&0x03), is_broken);
    }
}

/// The PDUs of a stream.
fn pdus(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let plen = bytes.get(4..8)?.first_chunk().copied()?;
        let (pdu, rest) = bytes.split_at_checked(u32::from_le_bytes(plen) as usize)?;
        bytes = rest;
        Some(pdu)
    })
}
