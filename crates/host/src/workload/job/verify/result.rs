//! What verification came to.

use std::fmt;

use zonelab_device::Nanos;

/// What verification came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Operations whose blocks were compared.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that should have been there too, and were not or could not be read.
    pub missing_bytes: u64,
    /// Bytes that nobody tried to read, since the first error ended the job.
    pub untried_bytes: u64,
    /// Bytes of the zones of jobs that read in order, which nobody said should be there, and that
    /// hold nothing.
    pub unwritten_bytes: u64,
    /// Jobs that only read and found nothing to compare.
    pub found_nothing: u32,
    /// Operations whose blocks were not what was written.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<WrongBlock>,
    /// Time that was spent with reading back.
    pub checking: Nanos,
}

impl Verified {
    /// Adds what another job came to.
    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.missing_bytes += other.missing_bytes;
        self.untried_bytes += other.untried_bytes;
        self.unwritten_bytes += other.unwritten_bytes;
        self.found_nothing += other.found_nothing;
        self.wrong += other.wrong;
        if self.first_wrong.is_none() {
            self.first_wrong.clone_from(&other.first_wrong);
        }
        self.checking = self.checking.max(other.checking);
    }
}

/// A block that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    /// Its first byte in the namespace.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// Its zone; `None`: the namespace has none.
    pub zone: Option<u32>,
    /// What was expected and what was found.
    pub what: String,
}

impl fmt::Display for WrongBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            offset,
            len,
            zone,
            what,
        } = self;
        write!(f, "{len} bytes at offset {offset}")?;
        if let Some(zone) = zone {
            write!(f, " (zone {zone})")?;
        }
        write!(f, ": {what}")
    }
}
