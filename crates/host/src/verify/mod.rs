//! Blocks whose contents can be checked: fio's `verify`.
//!
//! A [`Verify`] says what writes carry. Each write is cut into chunks (one, unless
//! there is an interval), and each chunk begins with a header that says
//! where it belongs, which write it is of, and what the checksum of the rest is.
//! [`Verify::fill`] makes the bytes of a write, and [`Verify::check`] compares
//! what a read brought with them. Bytes are a function of the place and of the
//! number of the write, so nothing but that number must be kept.
//!
//! Headers and checksums are those of fio 3.33, so either of the two can check what the
//! other has written. `sha256` and `sha512` are the exception: those of fio are not digests.

mod header;
mod method;
mod pattern;

use std::fmt;

pub use header::HEADER_BYTES;
pub use method::Method;
pub(crate) use pattern::VALID_PATTERNS;
pub use pattern::{Pattern, WrongPattern};

/// What writes carry, and what of it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// How.
    pub method: Method,
    /// What the data are; `None`: pseudo-random bytes.
    pub pattern: Option<Pattern>,
    /// Bytes of a chunk, each with a header of its own; `None`: a write is one.
    pub interval_bytes: Option<u32>,
    /// A job that has written reads its blocks back.
    pub reads_back: bool,
    /// After so many writes, instead of at the end only.
    pub backlog: Option<u32>,
    /// A job ends with the first block that is wrong.
    pub is_fatal: bool,
    /// Passes over the work of the job, each of which is read back; at least 1.
    pub passes: u64,
    /// Which of several threads that write.
    pub thread: u16,
    /// Bytes that a job which only reads finds if nothing of them is lost; `None`: that is
    /// not known.
    pub expected_bytes: Option<u64>,
    /// Bytes that the zones of a job which only reads can hold; `None`: it works on others, or
    /// reads at random.
    pub whole_bytes: Option<u64>,
}

impl Verify {
    /// By `method`, of random bytes, at the end.
    #[must_use]
    pub const fn new(method: Method) -> Self {
        Self {
            method,
            pattern: None,
            interval_bytes: None,
            reads_back: true,
            backlog: None,
            is_fatal: false,
            passes: 1,
            thread: 0,
            expected_bytes: None,
            whole_bytes: None,
        }
    }

    /// Bytes of the chunks of a write of `len` bytes; the last may be shorter.
    fn chunk_bytes(&self, len: usize) -> usize {
        self.interval_bytes
            .map_or(len, |bytes| bytes as usize)
            .max(1)
    }

    /// Fills `bytes`, those of a write of `what`.
    pub fn fill(&self, bytes: &mut [u8], what: &Written) {
        let size = self.chunk_bytes(bytes.len());
        for (index, chunk) in bytes.chunks_mut(size).enumerate() {
            self.fill_chunk(chunk, &what.chunk(index, size), self.thread);
        }
    }

    fn fill_chunk(&self, chunk: &mut [u8], what: &Written, thread: u16) {
        match &self.pattern {
            Some(pattern) => pattern.fill(chunk, what.offset),
            None => fill_random(chunk, what.seed),
        }
        header::put(self.method, chunk, what, thread);
    }

    /// Compares what was read with what was written.
    ///
    /// # Errors
    /// The first chunk that is wrong.
    pub fn check(&self, bytes: &[u8], what: &Written) -> Result<(), Mismatch> {
        if self.method == Method::Null {
            return Ok(());
        }
        let size = self.chunk_bytes(bytes.len());
        let mut expected = Vec::new();
        for (index, chunk) in bytes.chunks(size).enumerate() {
            expected.resize(chunk.len(), 0);
            let of_chunk = what.chunk(index, size);
            self.fill_chunk(&mut expected, &of_chunk, self.thread);
            if expected != chunk {
                let what = self.difference(chunk, &expected, &of_chunk);
                return Err(Mismatch::new(index * size, chunk.len(), what));
            }
        }
        Ok(())
    }

    /// Looks at what was read without knowing which write it is of: what an
    /// earlier job or another program has left at `offset`, in a zone that starts
    /// at `zone_start`, both in bytes.
    ///
    /// # Errors
    /// The first chunk that is wrong.
    pub fn check_found(&self, bytes: &[u8], offset: u64, zone_start: u64) -> Result<(), Mismatch> {
        let size = self.chunk_bytes(bytes.len());
        for (index, chunk) in bytes.chunks(size).enumerate() {
            let at = offset + (index * size) as u64;
            let of_pattern = || match &self.pattern {
                Some(pattern) if self.method.is_pattern() => {
                    let mut expected = vec![0; chunk.len()];
                    pattern.fill(&mut expected, at);
                    let data_at = self.method.overhead_bytes().min(chunk.len());
                    match first_difference(&chunk[data_at..], &expected[data_at..]) {
                        None => Ok(()),
                        Some(what) => Err(what),
                    }
                }
                _ => Ok(()),
            };
            let of_header = match self.method.has_header() {
                true => header::check(self.method, chunk, at, zone_start),
                false => Ok(()),
            };
            let result = of_header.and_then(|()| of_pattern());
            result.map_err(|what| Mismatch::new(index * size, chunk.len(), what))?;
        }
        Ok(())
    }

    /// What is wrong with a chunk.
    fn difference(&self, chunk: &[u8], expected: &[u8], what: &Written) -> String {
        let of_header = match self.method.has_header() {
            true => header::difference(self.method, chunk, what),
            false => None,
        };
        of_header
            .or_else(|| first_difference(chunk, expected))
            .unwrap_or_default()
    }
}

/// Which write a block is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The byte of the namespace at which it begins; of an append, the byte at which
    /// its zone does: nobody knew more when its data were made.
    pub offset: u64,
    /// It was an append.
    pub is_append: bool,
    /// Number of the write among those of its job.
    pub number: u64,
    /// What its random bytes come from; no two writes of a run have the same.
    pub seed: u64,
}

impl Written {
    /// That of one of its chunks of `size` bytes.
    const fn chunk(&self, index: usize, size: usize) -> Self {
        let skipped = (index * size) as u64;
        Self {
            offset: if self.is_append {
                self.offset
            } else {
                self.offset + skipped
            },
            seed: self.seed.wrapping_add(index as u64),
            ..*self
        }
    }
}

/// A chunk that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Bytes between the start of what was read and the chunk.
    pub skipped: usize,
    /// Bytes of the chunk.
    pub len: usize,
    /// What was expected and what was found.
    pub what: String,
}

impl Mismatch {
    const fn new(skipped: usize, len: usize, what: String) -> Self {
        Self { skipped, len, what }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Bytes shown of a difference.
const SHOWN: usize = 8;

fn first_difference(chunk: &[u8], expected: &[u8]) -> Option<String> {
    let at = chunk.iter().zip(expected).position(|(a, b)| a != b)?;
    let show = |bytes: &[u8]| {
        let shown = bytes[at..].iter().take(SHOWN);
        shown.map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    Some(format!(
        "byte {at}: expected {}, found {}",
        show(expected),
        show(chunk)
    ))
}

/// Bytes by SplitMix64, eight at a time.
pub(crate) fn fill_random(bytes: &mut [u8], seed: u64) {
    let mut state = seed;
    for word in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = mix(state).to_le_bytes();
        word.copy_from_slice(&mixed[..word.len()]);
    }
}

/// The finaliser of SplitMix64: different numbers become different ones.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
