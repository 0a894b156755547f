//! A server on the loopback, and a host that talks to it through a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use zonelab_device::{Buf, Nanos};
use zonelab_nvme::fabrics::{Connect, ConnectData};
use zonelab_nvme::queue::{CompletionEntry, SubmissionEntry};
use zonelab_target::controller::{Connected, Done, QueueHandle};
use zonelab_target::server::{Backend, Limits, Server, ServerReport, ServerSettings};

use crate::wire::{Dialect, by_transport, completion, in_capsule};

/// Blocks of 512 bytes in memory.
struct Memory {
    bytes: Vec<u8>,
    pending: Vec<Done>,
    queues: u32,
    shared: Arc<Shared>,
}

/// What the test and the drive tell each other.
#[derive(Default)]
struct Shared {
    /// Commands that came.
    taken: AtomicU64,
    /// How often the server, which ends, has asked whether the drive works on something.
    asked: AtomicU64,
    /// No command ends; otherwise each takes 200 us.
    holds: AtomicBool,
}

impl Backend for Memory {
    fn connect(
        &mut self,
        _now: Nanos,
        (entry, command): (&SubmissionEntry, &Connect),
        data: &ConnectData,
    ) -> Result<Connected, CompletionEntry> {
        assert_eq!(data.cntlid.get(), 0xffff);
        self.queues += 1;
        Ok(Connected {
            queue: QueueHandle(self.queues),
            depth: command.sqsize,
            is_admin: false,
            completion: completion(entry.cdw0.cid()),
        })
    }

    fn disconnect(&mut self, _now: Nanos, queue: QueueHandle) {
        self.pending.retain(|done| done.queue != queue);
    }

    fn submit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data: Option<Buf>,
        data_len: u32,
    ) {
        let at = entry.slba() as usize * 512;
        self.bytes
            .resize(self.bytes.len().max(at + data_len as usize), 0);
        let range = at..at + data_len as usize;
        let read = data
            .is_none()
            .then(|| self.bytes[range.clone()].to_vec().into());
        if let Some(data) = &data {
            self.bytes[range].copy_from_slice(data);
        }
        self.pending.push(Done {
            queue,
            entry: completion(entry.cdw0.cid()),
            data: read,
            spent: data,
            due: now + Nanos::from_us(200),
        });
        self.shared.taken.fetch_add(1, Ordering::Relaxed);
    }

    fn recycle(&mut self, _data: Buf) {}

    fn in_drive(&self) -> u64 {
        self.shared.asked.fetch_add(1, Ordering::Relaxed);
        self.pending.len() as u64
    }

    fn next_event(&self) -> Option<Nanos> {
        self.pending.iter().map(|done| done.due).min()
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Done>, _closed: &mut Vec<QueueHandle>) {
        if self.shared.holds.load(Ordering::Relaxed) {
            return;
        }
        done.extend(self.pending.extract_if(.., |done| done.due <= to));
    }
}

struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    thread: JoinHandle<ServerReport>,
}

impl Running {
    fn start(settings: ServerSettings) -> Self {
        Self::start_with(settings, false)
    }

    /// With a drive that may hold all commands until it is told to let them go.
    fn start_with(settings: ServerSettings, holds: bool) -> Self {
        let mut server = Server::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        let address = server.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let shared = Arc::new(Shared::default());
        shared.holds.store(holds, Ordering::Relaxed);
        let mut memory = Memory {
            bytes: Vec::new(),
            pending: Vec::new(),
            queues: 0,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::spawn(move || {
            server.run(&mut memory, &flag).unwrap();
            server.report()
        });
        Self {
            address,
            stop,
            shared,
            thread,
        }
    }

    fn host(&self, dialect: Dialect) -> Host {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Host { stream, dialect }
    }

    /// Waits until the drive has got so many commands.
    fn until_taken(&self, commands: u64) {
        while self.shared.taken.load(Ordering::Relaxed) < commands {
            std::thread::yield_now();
        }
    }

    /// Ends the server, and waits until it has begun to end.
    fn begin_the_end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.shared.asked.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
    }

    fn finish(self) -> ServerReport {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

struct Host {
    stream: TcpStream,
    dialect: Dialect,
}

impl Host {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next PDU.
    fn receive(&mut self) -> Vec<u8> {
        let mut pdu = vec![0; 8];
        self.stream.read_exact(&mut pdu).unwrap();
        let plen = u32::from_le_bytes(pdu[4..8].try_into().unwrap());
        pdu.resize(plen as usize, 0);
        self.stream.read_exact(&mut pdu[8..]).unwrap();
        pdu
    }

    fn open(&mut self) {
        self.send(&self.dialect.ic_req());
        assert_eq!(self.receive()[0], 0x01);
        self.send(&self.dialect.connect(0, 31, false));
        assert_eq!(self.receive()[0], 0x05);
    }

    /// Writes 64 KiB by R2T and 4 KiB in a capsule, and reads both.
    fn exercise(&mut self) {
        let large: Vec<u8> = (0..65536u32).map(|at| (at % 251) as u8).collect();
        self.send(&self.dialect.capsule(by_transport(0x01, 1, 65536), &[]));
        let r2t = self.receive();
        assert_eq!(r2t[0], 0x09);
        let ids = (1, u16::from_le_bytes([r2t[10], r2t[11]]));
        for (offset, part) in (0..).step_by(16384).zip(large.chunks(16384)) {
            self.send(&self.dialect.h2c_data(ids, offset, part, offset == 49152));
        }
        assert_eq!(self.receive()[0], 0x05);
        let mut small = in_capsule(0x01, 2, 4096);
        small[40..44].copy_from_slice(&128u32.to_le_bytes());
        self.send(&self.dialect.capsule(small, &[9; 4096]));
        assert_eq!(self.receive()[0], 0x05);
        self.send(
            &self
                .dialect
                .capsule(by_transport(0x02, 3, 65536 + 4096), &[]),
        );
        let data = self.receive();
        assert_eq!(data[0], 0x07);
        let at = usize::from(data[3]);
        assert_eq!(data[at..at + 65536], large);
        assert_eq!(data[at + 65536..at + 65536 + 4096], [9; 4096]);
        assert_eq!(self.receive()[0], 0x05);
    }
}

#[test]
fn a_host_writes_and_reads_through_sockets() {
    let running = Running::start(ServerSettings::default());
    for (hdgst, ddgst) in [(false, false), (true, true)] {
        let mut host = running.host(Dialect {
            hdgst,
            ddgst,
            hpda: 0,
        });
        host.open();
        host.exercise();
    }
    let report = running.finish();
    assert_eq!(
        (report.connections.accepted, report.connections.broken),
        (2, 0)
    );
    assert_eq!(report.lateness.len(), 1);
    assert_eq!(report.lateness[0].commands, 6);
}

#[test]
fn one_bad_peer_harms_no_other() {
    let running = Running::start(ServerSettings::default());
    let mut good = running.host(Dialect::default());
    good.open();
    let mut bad = running.host(Dialect::default());
    bad.send(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bad.receive()[..2], [0x03, 0], "a termination request");
    let mut rest = Vec::new();
    bad.stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    good.exercise();
    assert_eq!(running.finish().connections.broken, 1);
}

#[test]
fn one_peer_too_many_is_closed() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = Running::start(ServerSettings {
        limits,
        ..ServerSettings::default()
    });
    let mut first = running.host(Dialect::default());
    first.open();
    let mut second = running.host(Dialect::default());
    assert_eq!(second.stream.read(&mut [0; 8]).unwrap(), 0);
    first.exercise();
    let report = running.finish();
    assert_eq!(
        (report.connections.accepted, report.connections.turned_away),
        (1, 1)
    );
}

#[test]
fn a_silent_peer_is_closed() {
    let limits = Limits {
        handshake: Nanos::from_ms(50),
        ..Limits::default()
    };
    let running = Running::start(ServerSettings {
        limits,
        ..ServerSettings::default()
    });
    let mut silent = running.host(Dialect::default());
    assert_eq!(silent.stream.read(&mut [0; 8]).unwrap(), 0);
    let report = running.finish();
    assert_eq!(
        (report.connections.accepted, report.connections.broken),
        (1, 1)
    );
}

/// A write of 4 KiB that brings its data.
fn small_write(host: &Host, cid: u16) -> Vec<u8> {
    host.dialect
        .capsule(in_capsule(0x01, cid, 4096), &[9; 4096])
}

/// What the drive works on is answered; what comes later is neither answered nor a reason to
/// reset the connection, which would take answers away that its host has not read yet.
#[test]
fn what_the_drive_works_on_is_answered_before_the_server_ends() {
    let running = Running::start_with(ServerSettings::default(), true);
    let mut host = running.host(Dialect::default());
    host.open();
    for cid in 1..=2 {
        host.send(&small_write(&host, cid));
    }
    running.until_taken(2);
    running.begin_the_end();
    host.send(&small_write(&host, 3));
    running.shared.holds.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(host.receive()[0], 0x05);
    }
    let mut rest = Vec::new();
    host.stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(running.shared.taken.load(Ordering::Relaxed), 2);
    drop(host);
    assert_eq!(running.finish().lateness[0].commands, 2);
}

#[test]
fn a_server_ends_although_a_command_does_not() {
    let limits = Limits {
        drain: Nanos::from_ms(50),
        ..Limits::default()
    };
    let settings = ServerSettings {
        limits,
        ..ServerSettings::default()
    };
    let running = Running::start_with(settings, true);
    let mut host = running.host(Dialect::default());
    host.open();
    host.send(&small_write(&host, 1));
    running.until_taken(1);
    running.begin_the_end();
    assert_eq!(host.stream.read(&mut [0; 8]).unwrap(), 0);
    drop(host);
    assert_eq!(running.finish().lateness[0].commands, 0);
}
