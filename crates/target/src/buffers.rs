//! Data buffers, used again.

use zonelab_device::Buf;

/// Different lengths that are kept; hosts use few.
const LENGTHS: usize = 8;
/// Bytes that are kept of each length.
const KEPT_BYTES: usize = 64 << 20;

/// Buffers by length. Hosts transfer in
/// a few sizes, so a short list is enough and nothing is hashed.
#[derive(Debug, Default)]
pub struct Buffers {
    lengths: Vec<(usize, Vec<Buf>)>,
}

impl Buffers {
    /// A buffer of `len` bytes, whatever they are.
    #[must_use]
    pub fn take(&mut self, len: usize) -> Buf {
        let kept = self.lengths.iter_mut().find(|(of, _)| *of == len);
        kept.and_then(|(_, buffers)| buffers.pop())
            .unwrap_or_else(|| Buf::zeroed(len))
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
        if let Some((_, buffers)) = self.lengths.iter_mut().find(|(of, _)| *of == len) {
            if (buffers.len() + 1) * len <= KEPT_BYTES {
                buffers.push(buf);
            }
            return;
        }
        if self.lengths.len() == LENGTHS {
            // The oldest length makes room: a host has changed its habits.
            self.lengths.remove(0);
        }
        self.lengths.push((len, vec![buf]));
    }
}
