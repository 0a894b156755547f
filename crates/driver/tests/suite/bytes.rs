//! Connections to feed bytes to.

use std::io::IoSlice;

use zonelab_device::{Buf, Nanos};
use zonelab_driver::tcp::{Connection, Settings, Transfer};
use zonelab_nvme::command::{Read, Write};

use crate::wire::{Dgst, ic_resp};

/// What the connection wants to send, all of it.
pub(crate) fn drain(connection: &mut Connection) -> Vec<u8> {
    let mut all = Vec::new();
    while connection.has_output() {
        let mut slices = [IoSlice::new(&[]); 7];
        let filled = connection.output(&mut slices);
        let before = all.len();
        slices[..filled]
            .iter()
            .for_each(|slice| all.extend_from_slice(slice));
        let bytes = all.len() - before;
        assert!(bytes > 0, "output that is there must fill a slice");
        connection.sent(bytes);
    }
    all
}

/// An open connection of `slots` slots with the digests and in-capsule data of
/// `in_capsule_bytes`; CPDA is `cpda`, MAXH2CDATA 4096.
pub(crate) fn open(slots: u16, in_capsule_bytes: u32, cpda: u8, dgst: Dgst) -> Connection {
    let settings = Settings {
        hdgst: dgst.header,
        ddgst: dgst.data,
        slots,
        in_capsule_bytes,
        ..Settings::admin(Nanos::from_secs(1))
    };
    let mut connection = Connection::new(settings);
    drain(&mut connection);
    connection.feed(&ic_resp(cpda, dgst, 4096)).unwrap();
    assert!(connection.is_open());
    connection
}

/// Submits a read of `bytes` bytes in blocks of 512, due in a second.
pub(crate) fn read(connection: &mut Connection, token: u64, bytes: usize) {
    let entry = Read::new(1, 0, (bytes / 512) as u32).to_entry().unwrap();
    let transfer = Transfer::ToHost(Buf::zeroed(bytes));
    let due = Nanos::from_secs(1);
    connection.submit(entry, transfer, token, due).unwrap();
}

/// Submits a write of `data`.
pub(crate) fn write(connection: &mut Connection, token: u64, data: Vec<u8>) {
    let entry = Write::new(1, 0, (data.len() / 512) as u32)
        .to_entry()
        .unwrap();
    let transfer = Transfer::ToController(Buf::from(data));
    let due = Nanos::from_secs(1);
    connection.submit(entry, transfer, token, due).unwrap();
}

/// `len` bytes that differ from their neighbours.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 256) as u8).collect()
}
