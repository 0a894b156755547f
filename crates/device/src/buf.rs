//! Data buffers that are handed over.

use core::any::Any;
use core::fmt::Debug;

/// Memory of a [`Buf`] that a driver brought: memory that its device can reach.
///
/// A driver recognises its own with [`Buf::memory`], and then the device reads
/// and writes the buffer itself, without a copy.
pub trait BufMemory: Any + Debug + Send + Sync {
    /// What it holds.
    fn bytes(&self) -> &[u8];

    /// What it holds, to be changed.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A data buffer that belongs to whoever holds it.
///
/// A buffer goes into `submit` and comes back in the completion, so that one in
/// flight can be neither dropped nor written to. The memory behind it is
/// private: heap memory, or memory of a driver ([`BufMemory`]).
#[derive(Debug)]
pub struct Buf {
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    Heap(Box<[u8]>),
    Driver(Box<dyn BufMemory>),
}

impl Buf {
    /// `len` zero bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self::from(vec![0; len])
    }

    /// A buffer in memory of a driver.
    #[must_use]
    pub fn from_memory(memory: Box<dyn BufMemory>) -> Self {
        Self {
            storage: Storage::Driver(memory),
        }
    }

    /// The memory behind it, if it is of type `M`.
    #[must_use]
    pub fn memory<M: BufMemory>(&self) -> Option<&M> {
        match &self.storage {
            Storage::Heap(_) => None,
            Storage::Driver(memory) => (&**memory as &dyn Any).downcast_ref(),
        }
    }
}

impl From<Vec<u8>> for Buf {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            storage: Storage::Heap(bytes.into_boxed_slice()),
        }
    }
}

impl Clone for Buf {
    /// The same bytes in heap memory.
    fn clone(&self) -> Self {
        Self::from(self.to_vec())
    }
}

/// Buffers are equal if their bytes are, wherever those lie.
impl PartialEq for Buf {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buf {}

impl core::ops::Deref for Buf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Heap(bytes) => bytes,
            Storage::Driver(memory) => memory.bytes(),
        }
    }
}

impl core::ops::DerefMut for Buf {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.storage {
            Storage::Heap(bytes) => bytes,
            Storage::Driver(memory) => memory.bytes_mut(),
        }
    }
}
