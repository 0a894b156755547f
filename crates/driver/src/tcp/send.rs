//! PDUs on their way to the controller.

use std::io::IoSlice;

use zonelab_nvme::tcp::{CapsuleCmd, CommonHeader, DIGEST_LEN, H2cData};
use zonelab_nvme::zerocopy::IntoBytes;

use super::Connection;
use super::slot::{Requested, Slot};

/// Room for the longest header with its digest and the padding behind it.
const HEAD_BYTES: usize = 128;

/// A PDU that waits for the socket: its header here, its data in the buffer of
/// its command.
#[derive(Debug)]
pub(super) struct Outgoing {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    /// Range of the command's buffer.
    data: core::ops::Range<usize>,
    digest: [u8; DIGEST_LEN as usize],
    digest_len: usize,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            head: [0; HEAD_BYTES],
            head_len: 0,
            data: 0..0,
            digest: [0; 4],
            digest_len: 0,
        }
    }

    /// Becomes the PDU with this header and this range of `buf` as its data.
    fn set(&mut self, ch: CommonHeader, header: &[u8], buf: &[u8], data: core::ops::Range<usize>) {
        self.head = [0; HEAD_BYTES];
        let hlen = header.len().min(HEAD_BYTES - DIGEST_LEN as usize);
        self.head[..hlen].copy_from_slice(&header[..hlen]);
        self.head_len = hlen;
        if ch.flags.hdgstf() {
            let digest = crc32c::crc32c(header).to_le_bytes();
            self.head[hlen..hlen + digest.len()].copy_from_slice(&digest);
            self.head_len += digest.len();
        }
        // Padding is zero; PDO is at most 128, since the alignment is.
        self.head_len = self.head_len.max(usize::from(ch.pdo)).min(HEAD_BYTES);
        self.digest_len = 0;
        if ch.flags.ddgstf() {
            let covered = buf.get(data.clone()).unwrap_or_default();
            self.digest = crc32c::crc32c(covered).to_le_bytes();
            self.digest_len = self.digest.len();
        }
        self.data = data;
    }

    pub(super) fn set_capsule(&mut self, capsule: &CapsuleCmd, buf: &[u8], data_len: usize) {
        self.set(capsule.ch, capsule.as_bytes(), buf, 0..data_len);
    }

    fn set_data(&mut self, header: &H2cData, buf: &[u8]) {
        let at = header.datao.get() as usize;
        let data = at..at + header.datal.get() as usize;
        self.set(header.ch, header.as_bytes(), buf, data);
    }

    fn len(&self) -> usize {
        self.head_len + self.data.len() + self.digest_len
    }

    fn parts<'a>(&'a self, buf: &'a [u8]) -> [&'a [u8]; 3] {
        [
            &self.head[..self.head_len],
            buf.get(self.data.clone()).unwrap_or_default(),
            &self.digest[..self.digest_len],
        ]
    }
}

impl Connection {
    /// Fills `slices` with what is to be sent next, in order, and returns how
    /// many are filled. None: nothing is to be sent.
    pub fn output<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut skip = self.front_sent;
        let mut put = |part: &'a [u8], skip: &mut usize| -> bool {
            let rest = part.get(*skip..).unwrap_or_default();
            *skip = skip.saturating_sub(part.len());
            if rest.is_empty() {
                return true;
            }
            let Some(slice) = slices.get_mut(filled) else {
                return false;
            };
            *slice = IoSlice::new(rest);
            filled += 1;
            true
        };
        if !put(&self.prologue, &mut skip) {
            return filled;
        }
        for &cid in &self.ring {
            let Some(slot) = self.slots.get(usize::from(cid)) else {
                continue;
            };
            let buf = slot.transfer.buf().map_or(&[][..], |buf| buf);
            for part in slot.out.parts(buf) {
                if !put(part, &mut skip) {
                    return filled;
                }
            }
        }
        filled
    }

    /// True if there is something to be sent.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.prologue.is_empty() || !self.ring.is_empty()
    }

    /// The socket took the first `bytes` of the output.
    pub fn sent(&mut self, bytes: usize) {
        self.front_sent += bytes;
        if !self.prologue.is_empty() {
            if self.front_sent < self.prologue.len() {
                return;
            }
            self.front_sent -= self.prologue.len();
            self.prologue.clear();
        }
        while let Some(&cid) = self.ring.front() {
            let Some(slot) = self.slots.get_mut(usize::from(cid)) else {
                break;
            };
            let len = slot.out.len();
            if self.front_sent < len {
                break;
            }
            self.front_sent -= len;
            self.ring.pop_front();
            slot.queued = false;
            if next_data(slot, cid, self.framing_out, self.max_h2c_data) {
                self.ring.push_back(cid);
            }
        }
    }

    /// Begins to answer an R2T.
    pub(super) fn answer(&mut self, cid: u16, requested: Requested) {
        let Some(slot) = self.slots.get_mut(usize::from(cid)) else {
            return;
        };
        slot.moved = requested.end;
        slot.requested = Some(requested);
        if next_data(slot, cid, self.framing_out, self.max_h2c_data) {
            self.ring.push_back(cid);
        }
    }
}

/// Prepares the next PDU that answers the R2T of `slot`; false if it is answered.
fn next_data(
    slot: &mut Slot,
    cid: u16,
    framing: zonelab_nvme::tcp::Framing,
    max_h2c_data: u32,
) -> bool {
    let Some(requested) = slot.requested else {
        return false;
    };
    let len = (requested.end - requested.at).min(max_h2c_data);
    let is_last = requested.at + len == requested.end;
    let header = H2cData::new(framing, (cid, requested.ttag), (requested.at, len), is_last);
    let (Some(header), Some(buf)) = (header, slot.transfer.buf()) else {
        slot.requested = None;
        return false;
    };
    slot.out.set_data(&header, buf);
    slot.queued = true;
    slot.requested = (!is_last).then_some(Requested {
        at: requested.at + len,
        ..requested
    });
    true
}
