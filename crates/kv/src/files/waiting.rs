//! Bytes of a file on their way to the device.

use crate::Content;

/// What was appended and is not on its way yet.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// On a device that keeps data.
    bytes: Vec<u8>,
    /// So many of them are on their way.
    taken: usize,
    /// Number of bytes that wait.
    pub(super) len: u64,
}

impl Waiting {
    pub(super) fn put(&mut self, content: Content) {
        self.len += content.len();
        let Content::Bytes(bytes) = content else {
            return;
        };
        if self.taken == self.bytes.len() {
            (self.bytes, self.taken) = (bytes, 0);
            return;
        }
        // Each byte is moved at most once more: half of them at least are gone.
        if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(&bytes);
    }

    pub(super) fn put_back(&mut self, mut bytes: Vec<u8>, len: u64) {
        bytes.extend_from_slice(&self.bytes[self.taken..]);
        (self.bytes, self.taken) = (bytes, 0);
        self.len += len;
    }

    /// Takes the first `len` bytes, filled up to `filled`.
    pub(super) fn take(&mut self, len: u64, filled: u64, keeps_data: bool) -> Option<Vec<u8>> {
        self.len -= len;
        keeps_data.then(|| {
            let end = self.taken + len as usize;
            let mut taken = match self.taken == 0 && end == self.bytes.len() {
                true => core::mem::take(&mut self.bytes),
                false => self.bytes[self.taken..end].to_vec(),
            };
            self.taken = end.min(self.bytes.len());
            taken.resize(filled as usize, 0);
            taken
        })
    }
}
