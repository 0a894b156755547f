//! Data buffers that are handed over.

/// A data buffer that belongs to whoever holds it.
///
/// A buffer goes into `submit` and comes back in the completion, so that one in
/// flight can be neither dropped nor written to. The memory behind it is
/// private: heap memory today, DMA memory for the PCIe driver later, without a
/// change in any signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buf {
    bytes: Box<[u8]>,
}

impl Buf {
    /// `len` zero bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self {
            bytes: vec![0; len].into_boxed_slice(),
        }
    }
}

impl From<Vec<u8>> for Buf {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into_boxed_slice(),
        }
    }
}

impl core::ops::Deref for Buf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl core::ops::DerefMut for Buf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
