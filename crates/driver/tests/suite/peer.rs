//! A controller that answers by bytes written by hand, behind a real socket.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::wire::*;

/// Block size in bytes; 4 zones of 16 blocks, of which 12 can be written.
pub(crate) const LBA: usize = 512;
pub(crate) const BLOCKS: usize = 64;

/// Reading this block makes the controller close the connection.
pub(crate) const FATAL_LBA: u64 = 63;

/// Reading this block is never answered.
pub(crate) const SILENT_LBA: u64 = 62;

/// What all connections of the controller share.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) store: Vec<u8>,
    pub(crate) cc: u32,
    pub(crate) keep_alives: usize,
    pub(crate) kato_ms: u32,
    pub(crate) in_capsule_writes: usize,
    pub(crate) r2t_writes: usize,
}

pub(crate) struct Peer {
    pub(crate) port: u16,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            store: vec![0; LBA * BLOCKS],
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self, query: &str) -> String {
        let port = self.port;
        format!("tcp://127.0.0.1:{port}/nqn.2024-01.org.example:hand{query}")
    }
}

/// One PDU with all that belongs to it; `None` when the host is gone.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut pdu = vec![0; 8];
    stream.read_exact(&mut pdu).ok()?;
    let plen = u32_at(&pdu, 4) as usize;
    assert!((8..1 << 20).contains(&plen), "PLEN {plen}");
    pdu.resize(plen, 0);
    stream.read_exact(&mut pdu[8..]).ok()?;
    Some(pdu)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some(request) = receive(&mut stream) else {
        return;
    };
    assert_eq!(request[0], 0, "the first PDU is a connection request");
    let dgst = Dgst {
        header: request[11] & 1 != 0,
        data: request[11] & 2 != 0,
    };
    stream.write_all(&ic_resp(0, dgst, 4096)).unwrap();
    // Commands that came while the data of another was awaited.
    let mut early = VecDeque::new();
    while let Some(pdu) = early.pop_front().or_else(|| receive(&mut stream)) {
        assert_eq!(pdu[0], 4, "a command");
        match answer(&mut stream, &mut early, &pdu, dgst, state) {
            Some(reply) if stream.write_all(&reply).is_ok() => {}
            _ => return,
        }
    }
}

/// The bytes that answer a command capsule; `None`: close the connection.
fn answer(
    stream: &mut TcpStream,
    early: &mut VecDeque<Vec<u8>>,
    pdu: &[u8],
    dgst: Dgst,
    state: &Mutex<State>,
) -> Option<Vec<u8>> {
    let cid = u16::from_le_bytes([pdu[10], pdu[11]]);
    let ok = |result: u64| capsule_resp(cid, 0, result, dgst);
    let fail = |status: u16| capsule_resp(cid, status, 0, dgst);
    let data = |bytes: &[u8]| c2h_data(cid, 0, bytes, 0b1100, dgst);
    let (dword10, dword12) = (u32_at(pdu, 48), u32_at(pdu, 56));
    let slba = u64::from(dword10);
    let nlb = (dword12 as usize & 0xffff) + 1;
    let range = slba as usize * LBA..(slba as usize + nlb) * LBA;
    Some(match pdu[8] {
        0x7f => return Some(fabrics(pdu, cid, dgst, &mut state.lock().unwrap())),
        0x06 => data(&identify(pdu)),
        0x09 => ok(0),
        0x18 => {
            state.lock().unwrap().keep_alives += 1;
            ok(0)
        }
        0x02 if pdu[48] == 0x7e => fail(0x4109),
        0x02 if slba == FATAL_LBA => return None,
        0x02 if slba == SILENT_LBA => Vec::new(),
        0x02 if range.end > LBA * BLOCKS => fail(0x4080),
        0x02 => data(&state.lock().unwrap().store[range]),
        0x01 | 0x7d => {
            let mut state = state.lock().unwrap();
            let bytes = match pdu[3] {
                0 => {
                    state.r2t_writes += 1;
                    pull(stream, early, cid, range.len(), dgst)?
                }
                pdo => {
                    state.in_capsule_writes += 1;
                    pdu[usize::from(pdo)..usize::from(pdo) + range.len()].to_vec()
                }
            };
            state.store[range].copy_from_slice(&bytes);
            ok(slba)
        }
        0x7a => {
            let mut report = vec![0; (dword12 as usize + 1) * 4];
            put(&mut report, 0, &4_u64.to_le_bytes());
            put(&mut report, 64, &[2, 0x10]);
            put(&mut report, 72, &12_u64.to_le_bytes());
            data(&report)
        }
        0x00 => ok(0),
        _ => fail(0x4001),
    })
}

/// Asks for the data of a write, 5000 bytes at a time.
fn pull(
    stream: &mut TcpStream,
    early: &mut VecDeque<Vec<u8>>,
    cid: u16,
    len: usize,
    dgst: Dgst,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let part = (len - bytes.len()).min(5000);
        let request = r2t(cid, 3, bytes.len() as u32, part as u32, dgst);
        stream.write_all(&request).ok()?;
        loop {
            let pdu = receive(stream)?;
            if pdu[0] == 4 {
                early.push_back(pdu);
                continue;
            }
            assert_eq!(pdu[0], 6);
            assert_eq!(u32_at(&pdu, 12) as usize, bytes.len());
            let (at, datal) = (usize::from(pdu[3]), u32_at(&pdu, 16) as usize);
            bytes.extend(&pdu[at..at + datal]);
            if pdu[1] & 4 != 0 {
                break;
            }
        }
    }
    Some(bytes)
}

fn fabrics(pdu: &[u8], cid: u16, dgst: Dgst, state: &mut State) -> Vec<u8> {
    let result = match (pdu[12], pdu[52]) {
        (0x01, _) => {
            let at = usize::from(pdu[3]);
            let subnqn = &pdu[at + 256..at + 512];
            if !subnqn.starts_with(b"nqn.2024-01.org.example:hand") {
                // The name of the subsystem lies at 256 in the data.
                return capsule_resp(cid, 0x4182, 1 << 16 | 256, dgst);
            }
            if pdu[50] == 0 {
                state.kato_ms = u32_at(pdu, 56);
            }
            7
        }
        (0x00, 0x14) => {
            state.cc = u32_at(pdu, 56);
            0
        }
        (0x04, 0x14) => u64::from(state.cc),
        // CAP: MQES 31, TO 1, command sets NVM and those that are listed.
        (0x04, 0x00) => 31 | 1 << 24 | 1 << 37 | 1 << 43,
        // CSTS: ready if enabled, shutdown complete if asked for.
        (0x04, 0x1c) => u64::from(state.cc & 1 | (state.cc >> 14 & 1) << 3),
        _ => return capsule_resp(cid, 0x4002, 0, dgst),
    };
    capsule_resp(cid, 0, result, dgst)
}

fn identify(pdu: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let nsid = u32_at(pdu, 12);
    match (pdu[48], pdu[55]) {
        (0x00, _) => {
            put(&mut bytes, 0, &(BLOCKS as u64).to_le_bytes());
            put(&mut bytes, 8, &(BLOCKS as u64).to_le_bytes());
            put(&mut bytes, 130, &[9]);
        }
        (0x01, _) => {
            bytes[4..72].fill(b' ');
            put(&mut bytes, 24, b"HAND WRITTEN");
            put(&mut bytes, 77, &[5, 7]);
            put(&mut bytes, 111, &[1]);
            put(&mut bytes, 512, &[0x66, 0x44, 0, 0, 1]);
            // Capsules of 64 bytes and 2048 bytes of data.
            put(&mut bytes, 1792, &132_u32.to_le_bytes());
            put(&mut bytes, 1796, &[1]);
        }
        (0x02, _) if nsid == 0 => put(&mut bytes, 0, &[1]),
        (0x03, _) => put(&mut bytes, 0, &[4, 1, 0, 0, 2]),
        (0x05, 2) => {
            put(&mut bytes, 4, &[2, 0, 0, 0, 1, 0, 0, 0]);
            put(&mut bytes, 2816, &16_u64.to_le_bytes());
        }
        (0x06, 2) => bytes[0] = 4,
        _ => {}
    }
    bytes
}
