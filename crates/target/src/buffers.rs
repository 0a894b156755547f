//! Data buffers, used again.

use zonelab_device::Buf;

/// Different lengths that are kept; hosts use few.
const LENGTHS: usize = 8;
/// Bytes that are kept, of all lengths together, if nothing else is said.
const KEPT_BYTES: usize = 64 << 20;

/// Buffers by length. Hosts transfer in
/// a few sizes, so a short list is enough and nothing is hashed.
#[derive(Debug)]
pub struct Buffers {
    lengths: Vec<(usize, Vec<Buf>)>,
    kept_bytes: usize,
    /// Most bytes that are kept.
    most_bytes: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            lengths: Vec::new(),
            kept_bytes: 0,
            most_bytes: KEPT_BYTES,
        }
    }
}

impl Buffers {
    /// Keeps no more than so many bytes from now on.
    pub fn limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        if self.kept_bytes > most_bytes {
            self.lengths.clear();
            self.kept_bytes = 0;
        }
    }

    /// A buffer of `len` bytes, whatever they are.
    #[must_use]
    pub fn take(&mut self, len: usize) -> Buf {
        let kept = self.lengths.iter_mut().find(|(of, _)| *of == len);
        let Some(buf) = kept.and_then(|(_, buffers)| buffers.pop()) else {
            return Buf::zeroed(len);
        };
        self.kept_bytes -= len;
        buf
    }

    /// A buffer of `len` zero bytes.
    #[must_use]
    pub fn take_zeroed(&mut self, len: usize) -> Buf {
        let mut buf = self.take(len);
        buf.fill(0);
        buf
    }

    /// Keeps a buffer for later.
    pub fn give(&mut self, buf: Buf) {
        let len = buf.len();
        if self.kept_bytes + len > self.most_bytes {
            return;
        }
        self.kept_bytes += len;
        if let Some((_, buffers)) = self.lengths.iter_mut().find(|(of, _)| *of == len) {
            buffers.push(buf);
            return;
        }
        if self.lengths.len() == LENGTHS {
            // The oldest length makes room: a host has changed its habits.
            let (of, buffers) = self.lengths.remove(0);
            self.kept_bytes -= of * buffers.len();
        }
        self.lengths.push((len, vec![buf]));
    }
}
