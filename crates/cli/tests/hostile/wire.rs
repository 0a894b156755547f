//! NVMe/TCP by hand: every byte of every PDU is put together here, from the
//! specifications and from nothing else of this repository. So a mistake in the
//! layouts that the server uses cannot hide itself.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sha2::Sha256;

pub(crate) const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
pub(crate) const HOST: &str =
    "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
/// A key of the bytes 00h to 1Fh, used as it is.
pub(crate) const KEY: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

/// PDU types.
pub(crate) const C2H_TERM_REQ: u8 = 0x03;
pub(crate) const RESPONSE: u8 = 0x05;
pub(crate) const DATA: u8 = 0x07;
pub(crate) const R2T: u8 = 0x09;

/// Status codes with their type, as in bits 11:1 of the status field.
pub(crate) const INVALID_FIELD: u16 = 0x002;
pub(crate) const INVALID_NAMESPACE: u16 = 0x00b;
pub(crate) const OPERATION_DENIED: u16 = 0x015;
pub(crate) const CAPACITY_EXCEEDED: u16 = 0x081;
pub(crate) const INVALID_PARAMETERS: u16 = 0x182;
pub(crate) const AUTHENTICATION_REQUIRED: u16 = 0x191;

/// ICReq without digests.
pub(crate) fn ic_req() -> Vec<u8> {
    let mut pdu = vec![0x00, 0, 128, 0, 128, 0, 0, 0];
    pdu.resize(128, 0);
    pdu
}

/// H2CTermReq of 24 bytes.
pub(crate) fn term_req() -> Vec<u8> {
    let mut pdu = vec![0x02, 0, 24, 0, 24, 0, 0, 0, 1];
    pdu.resize(24, 0);
    pdu
}

/// A capsule with an entry and data.
pub(crate) fn capsule(entry: [u8; 64], data: &[u8]) -> Vec<u8> {
    let pdo = if data.is_empty() { 0 } else { 72 };
    let mut pdu = vec![0x04, 0, 72, pdo];
    pdu.extend((72 + data.len() as u32).to_le_bytes());
    pdu.extend(entry);
    pdu.extend(data);
    pdu
}

/// H2CData with all that an R2T asked for.
pub(crate) fn h2c_data(cid: u16, tag: u16, data: &[u8]) -> Vec<u8> {
    let mut pdu = vec![0x06, 0x04, 24, 24];
    pdu.extend((24 + data.len() as u32).to_le_bytes());
    pdu.extend(cid.to_le_bytes());
    pdu.extend(tag.to_le_bytes());
    pdu.extend(0u32.to_le_bytes());
    pdu.extend((data.len() as u32).to_le_bytes());
    pdu.extend([0; 4]);
    pdu.extend(data);
    pdu
}

/// An entry whose SGL is a transport data block of `len` bytes.
pub(crate) fn entry(opcode: u8, cid: u16, nsid: u32, len: u32) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[..2].copy_from_slice(&[opcode, 0x40]);
    entry[2..4].copy_from_slice(&cid.to_le_bytes());
    entry[4..8].copy_from_slice(&nsid.to_le_bytes());
    entry[32..36].copy_from_slice(&len.to_le_bytes());
    entry[39] = 0x5a;
    entry
}

/// The same with its data in the capsule.
pub(crate) fn in_capsule(opcode: u8, cid: u16, nsid: u32, len: u32) -> [u8; 64] {
    let mut entry = entry(opcode, cid, nsid, len);
    entry[39] = 0x01;
    entry
}

/// An entry about `blocks` blocks from `slba`.
pub(crate) fn about_blocks(mut entry: [u8; 64], slba: u64, blocks: u32) -> [u8; 64] {
    entry[40..48].copy_from_slice(&slba.to_le_bytes());
    entry[48..50].copy_from_slice(&((blocks - 1) as u16).to_le_bytes());
    entry
}

/// Whom a Connect command names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connect<'a> {
    pub(crate) subnqn: &'a str,
    pub(crate) hostnqn: &'a str,
    pub(crate) qid: u16,
    pub(crate) cntlid: u16,
    pub(crate) entries: u16,
    pub(crate) kato_ms: u32,
}

impl<'a> Connect<'a> {
    /// The admin queue of a new controller, without keep alive.
    pub(crate) fn admin(subnqn: &'a str, hostnqn: &'a str) -> Self {
        Self {
            subnqn,
            hostnqn,
            qid: 0,
            cntlid: 0xffff,
            entries: 32,
            kato_ms: 0,
        }
    }

    pub(crate) fn pdu(&self) -> Vec<u8> {
        let mut entry = in_capsule(0x7f, 0, 1, 1024);
        entry[42..44].copy_from_slice(&self.qid.to_le_bytes());
        entry[44..46].copy_from_slice(&(self.entries - 1).to_le_bytes());
        entry[48..52].copy_from_slice(&self.kato_ms.to_le_bytes());
        let mut data = [0; 1024];
        data[..16].fill(7);
        data[16..18].copy_from_slice(&self.cntlid.to_le_bytes());
        data[256..256 + self.subnqn.len()].copy_from_slice(self.subnqn.as_bytes());
        data[512..512 + self.hostnqn.len()].copy_from_slice(self.hostnqn.as_bytes());
        capsule(entry, &data)
    }
}

/// A response capsule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) dw0: u32,
    /// Status code and type.
    pub(crate) status: u16,
}

impl Response {
    fn of(pdu: &[u8]) -> Self {
        let word = |at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]);
        Self {
            dw0: u32::from(word(8)) | u32::from(word(10)) << 16,
            status: word(22) >> 1 & 0x7ff,
        }
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    cid: u16,
}

impl Wire {
    /// A connection from the loopback address that ends with these.
    pub(crate) fn from(source: [u8; 2], to: SocketAddr) -> io::Result<Self> {
        // A server that is started meanwhile does not get it too.
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        let own = Ipv4Addr::new(127, 0, source[0], source[1]);
        rustix::net::bind(&socket, &SocketAddrV4::new(own, 0))?;
        let IpAddr::V4(ip) = to.ip() else {
            return Err(io::Error::other("no IPv4 address"));
        };
        rustix::net::connect(&socket, &SocketAddrV4::new(ip, to.port()))?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, cid: 0 })
    }

    /// From 127.0.0.1.
    pub(crate) fn to(to: SocketAddr) -> io::Result<Self> {
        Self::from([0, 1], to)
    }

    /// The same, with ICReq and ICResp exchanged.
    pub(crate) fn open(source: [u8; 2], to: SocketAddr) -> io::Result<Self> {
        let mut wire = Self::from(source, to)?;
        wire.send(&ic_req())?;
        wire.pdu()?;
        Ok(wire)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn pdu(&mut self) -> io::Result<Vec<u8>> {
        let mut pdu = vec![0; 8];
        self.stream.read_exact(&mut pdu)?;
        let plen = u32::from_le_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]) as usize;
        if !(8..1 << 24).contains(&plen) {
            return Err(io::Error::other("PLEN"));
        }
        pdu.resize(plen, 0);
        self.stream.read_exact(&mut pdu[8..])?;
        Ok(pdu)
    }

    /// The next response, and the data that came before it.
    pub(crate) fn response(&mut self) -> io::Result<(Response, Vec<u8>)> {
        let mut data = Vec::new();
        loop {
            let pdu = self.pdu()?;
            match pdu[0] {
                RESPONSE => return Ok((Response::of(&pdu), data)),
                DATA => data.extend_from_slice(&pdu[usize::from(pdu[3])..]),
                other => return Err(io::Error::other(format!("a PDU of type {other:#x}"))),
            }
        }
    }

    pub(crate) fn next_cid(&mut self) -> u16 {
        self.cid = self.cid % 30000 + 1;
        self.cid
    }

    pub(crate) fn call(&mut self, pdu: &[u8]) -> io::Result<(Response, Vec<u8>)> {
        self.send(pdu)?;
        self.response()
    }

    /// Ends it so that the other end gets a reset.
    pub(crate) fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Sends no more.
    pub(crate) fn half_close(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// True once the other end has closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => (),
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }

    /// Property Set of CC.
    pub(crate) fn set_cc(&mut self, value: u32) -> io::Result<Response> {
        let mut set = entry(0x7f, self.next_cid(), 0, 0);
        set[4] = 0x00;
        set[44..48].copy_from_slice(&0x14u32.to_le_bytes());
        set[48..52].copy_from_slice(&value.to_le_bytes());
        Ok(self.call(&capsule(set, &[]))?.0)
    }

    /// Identify with `cns` and `csi`.
    pub(crate) fn identify(&mut self, cns: u8, csi: u8) -> io::Result<(Response, Vec<u8>)> {
        let mut identify = entry(0x06, self.next_cid(), 0, 4096);
        identify[40] = cns;
        identify[47] = csi;
        self.call(&capsule(identify, &[]))
    }

    fn authentication_send(&mut self, message: &[u8]) -> io::Result<Response> {
        let len = message.len() as u32;
        let pdu = capsule(authentication(0x05, self.next_cid(), len, true), message);
        Ok(self.call(&pdu)?.0)
    }

    pub(crate) fn authentication_receive(&mut self) -> io::Result<Vec<u8>> {
        let pdu = capsule(authentication(0x06, self.next_cid(), 4096, false), &[]);
        Ok(self.call(&pdu)?.1)
    }

    /// AUTH_Negotiate with SHA-256 and one group (0: none).
    pub(crate) fn negotiate(&mut self, group: u8) -> io::Result<Response> {
        let mut message = vec![0, 0, 0, 0, 1, 0, 0, 1];
        message.extend([1, 0, 1, 1]);
        message.resize(8 + 64, 0);
        message[12] = 1;
        message[12 + 30] = group;
        self.authentication_send(&message)
    }

    /// Authenticates [`HOST`] with [`KEY`], without a Diffie-Hellman exchange.
    pub(crate) fn authenticate(&mut self, subnqn: &str) -> io::Result<()> {
        self.negotiate(0)?;
        let challenge = self.authentication_receive()?;
        let (seqnum, c1) = (&challenge[12..16], &challenge[16..48]);
        let key: Vec<u8> = (0..32).collect();
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).map_err(io::Error::other)?;
        for part in [c1, seqnum, &1u16.to_le_bytes(), &[0], b"HostHost"] {
            mac.update(part);
        }
        for part in [HOST.as_bytes(), &[0], subnqn.as_bytes()] {
            mac.update(part);
        }
        let mut reply = vec![1, 2, 0, 0, 1, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        reply.extend(mac.finalize().into_bytes());
        reply.extend([0; 32]);
        self.authentication_send(&reply)?;
        let success = self.authentication_receive()?;
        match success.get(..2) {
            Some([1, 3]) => Ok(()),
            other => Err(io::Error::other(format!("not authenticated: {other:?}"))),
        }
    }
}

fn authentication(kind: u8, cid: u16, len: u32, is_send: bool) -> [u8; 64] {
    let mut entry = match is_send {
        true => in_capsule(0x7f, cid, 0, len),
        false => entry(0x7f, cid, 0, len),
    };
    entry[4] = kind;
    entry[40..44].copy_from_slice(&[0, 1, 1, 0xe9]);
    entry[44..48].copy_from_slice(&len.to_le_bytes());
    entry
}

/// CC: enabled, all command sets, entries of 64 and 16 bytes.
pub(crate) const ENABLED: u32 = 4 << 20 | 6 << 16 | 6 << 4 | 1;
/// CC.SHN: a normal shutdown.
pub(crate) const SHUTDOWN: u32 = 1 << 14;

/// An association with one I/O queue.
pub(crate) struct Host {
    pub(crate) admin: Wire,
    pub(crate) io: Wire,
}

impl Host {
    /// Connects from 127.0.X.Y, with the key if the server asks for one.
    pub(crate) fn connect(
        source: [u8; 2],
        to: SocketAddr,
        subnqn: &str,
        entries: u16,
    ) -> io::Result<Self> {
        Self::connect_as(HOST, source, to, subnqn, entries)
    }

    /// The same under another name, whose key is that of [`HOST`].
    pub(crate) fn connect_as(
        hostnqn: &str,
        source: [u8; 2],
        to: SocketAddr,
        subnqn: &str,
        entries: u16,
    ) -> io::Result<Self> {
        let refused = |what: &str, response: Response| {
            io::Error::other(format!("{what}: status {:#x}", response.status))
        };
        let connect = Connect::admin(subnqn, hostnqn);
        let mut admin = Wire::open(source, to)?;
        let (response, _) = admin.call(&connect.pdu())?;
        if response.status != 0 {
            return Err(refused("the admin queue", response));
        }
        let authenticates = response.dw0 >> 16 != 0;
        if authenticates {
            admin.authenticate(subnqn)?;
        }
        admin.set_cc(ENABLED)?;
        let mut io = Wire::open(source, to)?;
        let connect = Connect {
            qid: 1,
            cntlid: response.dw0 as u16,
            entries,
            ..connect
        };
        let (response, _) = io.call(&connect.pdu())?;
        if response.status != 0 {
            return Err(refused("the I/O queue", response));
        }
        if authenticates {
            io.authenticate(subnqn)?;
        }
        Ok(Self { admin, io })
    }

    /// Sends a read of the first block of a namespace, and waits for nothing.
    pub(crate) fn send_read(&mut self, nsid: u32) {
        let read = about_blocks(entry(0x02, self.io.next_cid(), nsid, 4096), 0, 1);
        self.io.send(&capsule(read, &[])).unwrap();
    }

    /// Status and data of a read of the first block of a namespace.
    pub(crate) fn read_of(&mut self, nsid: u32) -> (u16, Vec<u8>) {
        self.send_read(nsid);
        let (response, data) = self.io.response().unwrap();
        (response.status, data)
    }

    /// Status of a write of a block that comes with its command.
    pub(crate) fn write(&mut self, nsid: u32, slba: u64, data: &[u8]) -> u16 {
        let len = data.len() as u32;
        let write = about_blocks(in_capsule(0x01, self.io.next_cid(), nsid, len), slba, 1);
        self.io.call(&capsule(write, data)).unwrap().0.status
    }

    /// Status of a Zone Management Send about the first zone, or all of them.
    pub(crate) fn zone_send(&mut self, nsid: u32, action: u8, all: bool) -> u16 {
        let mut send = entry(0x79, self.io.next_cid(), nsid, 0);
        send[52] = action;
        send[53] = u8::from(all);
        self.io.call(&capsule(send, &[])).unwrap().0.status
    }

    /// Reads a block of 4 KiB.
    pub(crate) fn read(&mut self) -> io::Result<()> {
        let read = about_blocks(entry(0x02, self.io.next_cid(), 1, 4096), 0, 1);
        let (response, data) = self.io.call(&capsule(read, &[]))?;
        if response.status != 0 || data.len() != 4096 {
            return Err(io::Error::other(format!(
                "{response:?}, {} bytes",
                data.len()
            )));
        }
        Ok(())
    }
}
