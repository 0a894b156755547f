//! Bytes that are there, or only their number.
//!
//! A device that keeps data gets real keys and values. One that models timing
//! alone would forget them, and a run of millions of operations would spend its
//! time and memory on copies that nobody reads: there everything has its size,
//! and moves as such.

/// Part of a file, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes.
    Bytes(Vec<u8>),
    /// So many bytes, of which nothing is known.
    Sized(u64),
}

impl Content {
    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Sized(len) => *len,
        }
    }

    /// No bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
