//! PDUs by hand, and a connection to feed them to.

use std::io::IoSlice;

use zonelab_device::Nanos;
use zonelab_nvme::queue::CompletionEntry;
use zonelab_target::Buffers;
use zonelab_target::controller::{Connected, QueueHandle};
use zonelab_target::tcp::{Connection, Event, Settings};

/// CRC32C, bit by bit: as slow and as plain as its definition.
pub(crate) fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 {
                crc >> 1
            } else {
                (crc >> 1) ^ 0x82f6_3b78
            };
        }
    }
    (!crc).to_le_bytes()
}

/// What a host wants of a connection.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Dialect {
    pub(crate) hdgst: bool,
    pub(crate) ddgst: bool,
    pub(crate) hpda: u8,
}

impl Dialect {
    pub(crate) fn ic_req(self) -> Vec<u8> {
        let mut pdu = vec![0; 128];
        pdu[..8].copy_from_slice(&[0x00, 0, 128, 0, 128, 0, 0, 0]);
        pdu[10] = self.hpda;
        pdu[11] = u8::from(self.hdgst) | u8::from(self.ddgst) << 1;
        pdu
    }

    /// A PDU of a header (from byte 8 on) and data.
    pub(crate) fn pdu(self, pdu_type: u8, flags: u8, rest: &[u8], data: &[u8]) -> Vec<u8> {
        let hlen = 8 + rest.len();
        let lead = hlen + if self.hdgst { 4 } else { 0 };
        let has_ddgst = self.ddgst && !data.is_empty();
        let plen = lead + data.len() + if has_ddgst { 4 } else { 0 };
        let pdo = if data.is_empty() { 0 } else { lead };
        let flags = flags | u8::from(self.hdgst) | u8::from(has_ddgst) << 1;
        let mut pdu = vec![pdu_type, flags, hlen as u8, pdo as u8];
        pdu.extend((plen as u32).to_le_bytes());
        pdu.extend(rest);
        if self.hdgst {
            pdu.extend(crc32c(&pdu));
        }
        pdu.extend(data);
        if has_ddgst {
            pdu.extend(crc32c(data));
        }
        pdu
    }

    pub(crate) fn capsule(self, entry: [u8; 64], data: &[u8]) -> Vec<u8> {
        self.pdu(0x04, 0, &entry, data)
    }

    pub(crate) fn h2c_data(self, ids: (u16, u16), offset: u32, data: &[u8], last: bool) -> Vec<u8> {
        let mut rest = Vec::new();
        rest.extend(ids.0.to_le_bytes());
        rest.extend(ids.1.to_le_bytes());
        rest.extend(offset.to_le_bytes());
        rest.extend((data.len() as u32).to_le_bytes());
        rest.extend([0; 4]);
        self.pdu(0x06, if last { 0x04 } else { 0 }, &rest, data)
    }

    /// Connect with 1024 bytes of data in the capsule.
    pub(crate) fn connect(self, cid: u16, sqsize_z: u16, no_flow_control: bool) -> Vec<u8> {
        let mut entry = in_capsule(0x7f, cid, 1024);
        entry[4] = 0x01;
        entry[42..44].copy_from_slice(&1u16.to_le_bytes());
        entry[44..46].copy_from_slice(&sqsize_z.to_le_bytes());
        entry[46] = u8::from(no_flow_control) << 2;
        let mut data = [0; 1024];
        data[16..18].copy_from_slice(&[0xff; 2]);
        data[256..264].copy_from_slice(b"nqn.test");
        data[512..520].copy_from_slice(b"nqn.host");
        self.capsule(entry, &data)
    }
}

/// An entry with its SGL: address, length, identifier.
pub(crate) fn entry(opcode: u8, cid: u16, sgl: (u64, u32, u8)) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry[1] = 0x40;
    entry[2..4].copy_from_slice(&cid.to_le_bytes());
    entry[24..32].copy_from_slice(&sgl.0.to_le_bytes());
    entry[32..36].copy_from_slice(&sgl.1.to_le_bytes());
    entry[39] = sgl.2;
    entry
}

/// An entry with `len` bytes of data in its capsule.
pub(crate) fn in_capsule(opcode: u8, cid: u16, len: u32) -> [u8; 64] {
    entry(opcode, cid, (0, len, 0x01))
}

/// An entry with `len` bytes of data that the transport moves.
pub(crate) fn by_transport(opcode: u8, cid: u16, len: u32) -> [u8; 64] {
    entry(opcode, cid, (0, len, 0x5a))
}

/// A connection, and an owner that does no more than it must.
pub(crate) struct Owner {
    pub(crate) connection: Connection,
    pub(crate) buffers: Buffers,
    /// Commands other than Connect.
    pub(crate) events: Vec<Event>,
    /// What went to the host.
    pub(crate) sent: Vec<u8>,
    /// Depth that Connect gets.
    pub(crate) depth: u32,
    pub(crate) is_admin: bool,
}

impl Owner {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            connection: Connection::new(settings).unwrap(),
            buffers: Buffers::default(),
            events: Vec::new(),
            sent: Vec::new(),
            depth: 8,
            is_admin: false,
        }
    }

    /// One that is connected; what was sent until then is forgotten.
    pub(crate) fn connected(settings: Settings, dialect: Dialect) -> Self {
        let mut owner = Self::new(settings);
        owner.feed(&dialect.ic_req());
        owner.feed(&dialect.connect(0, 7, false));
        assert!(owner.connection.is_live());
        owner.sent.clear();
        owner
    }

    /// Bytes arrive, and what there is to say goes out.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut taken = 0;
            for slice in &mut self.connection.receive_slices() {
                let len = slice.len().min(bytes.len() - taken);
                slice[..len].copy_from_slice(&bytes[taken..taken + len]);
                taken += len;
            }
            assert!(taken > 0, "a connection whose events are taken has room");
            self.connection.received(taken);
            bytes = &bytes[taken..];
            while let Some(event) = self.connection.next_event(&mut self.buffers) {
                self.take(event);
            }
            self.flush();
        }
    }

    fn take(&mut self, event: Event) {
        let entry = match &event {
            Event::Connect { entry, .. } => entry,
            Event::Announced { entry, .. } => return self.connection.accept(entry.cdw0.cid()),
            Event::Command { .. } => return self.events.push(event),
        };
        self.connection.connected(&Connected {
            queue: QueueHandle(0),
            depth: self.depth,
            is_admin: self.is_admin,
            completion: completion(entry.cdw0.cid()),
        });
    }

    /// All that waits goes out, in small pieces.
    pub(crate) fn flush(&mut self) {
        while self.connection.has_output() {
            let mut slices = [IoSlice::new(&[]); 3];
            let count = self.connection.send_slices(&mut slices);
            let bytes: Vec<u8> = slices[..count]
                .iter()
                .flat_map(|slice| slice.to_vec())
                .collect();
            let len = bytes.len().min(97);
            assert!(len > 0);
            self.sent.extend(&bytes[..len]);
            self.connection.sent(len, &mut self.buffers, |_, _| ());
        }
    }

    pub(crate) fn complete(&mut self, cid: u16, data: Option<Vec<u8>>) {
        let unused = self
            .connection
            .complete(completion(cid), data.map(Into::into), Nanos(1));
        assert!(unused.is_none());
        self.flush();
    }

    /// What went out since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}

pub(crate) fn completion(cid: u16) -> CompletionEntry {
    CompletionEntry::new(cid, zonelab_nvme::Status::SUCCESS)
}
