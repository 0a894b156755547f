//! A trace in memory: what was done to a device, and when.

use std::fmt;

use zonelab_device::Nanos;

/// What an operation of a trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Appends to the zone in which the place lies.
    Append,
    /// Discards: a reset of the zones that lie within it as a whole.
    Trim,
    /// Resets all zones.
    ResetAll,
    /// Finishes the zone in which the place lies.
    Finish,
    /// Flushes.
    Sync,
}

impl Action {
    const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::Append,
        Self::Trim,
        Self::ResetAll,
        Self::Finish,
        Self::Sync,
    ];
}

/// An operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When, from the start of the trace on.
    pub at: Nanos,
    /// What.
    pub action: Action,
    /// Where it begins, in bytes from the start of the device.
    pub offset: u64,
    /// How long it is in bytes, at most [`Trace::MAX_BYTES`].
    pub bytes: u64,
}

/// An operation in 24 bytes. `packed` holds the bytes (44 bits), the lines since
/// the operation before (16 bits; all ones: see [`Trace::jumps`]) and the action.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Record {
    at_ns: u64,
    offset: u64,
    packed: u64,
}

const LINE_SHIFT: u32 = 44;
const ACTION_SHIFT: u32 = 60;
const LINE_MASK: u64 = 0xFFFF;

/// Operations in order, each in 24 bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The file that it is from.
    pub file: String,
    records: Vec<Record>,
    /// Operations whose line is far behind that of the one before: how far.
    jumps: Vec<(usize, u64)>,
    last_line: u64,
    last_at: Nanos,
    /// Operations that are said to come before the one in front of them.
    out_of_order: u64,
}

/// Why an operation has no place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFull {
    /// It is longer than [`Trace::MAX_BYTES`].
    Bytes,
    /// There are [`Trace::MAX_OPERATIONS`].
    Operations,
}

impl Trace {
    /// Length of one operation at most: 16 TiB less one byte.
    pub const MAX_BYTES: u64 = (1 << LINE_SHIFT) - 1;
    /// Operations at most: with 24 bytes each, 6 GiB.
    pub const MAX_OPERATIONS: usize = 1 << 28;

    /// An empty trace of that file.
    #[must_use]
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            ..Self::default()
        }
    }

    /// Adds an operation that stands in `line`. Times do not go back: an
    /// operation that is said to come before the last one comes together with it.
    ///
    /// # Errors
    /// It is too long, or there are too many.
    pub fn push(&mut self, operation: Operation, line: u64) -> Result<(), TraceFull> {
        if operation.bytes > Self::MAX_BYTES {
            return Err(TraceFull::Bytes);
        }
        if self.records.len() == Self::MAX_OPERATIONS {
            return Err(TraceFull::Operations);
        }
        let count = self.records.len();
        if count == self.records.capacity() {
            // Not twice as much, which could be gigabytes for nothing.
            self.records.reserve_exact(count / 8 + 1_024);
        }
        let lines = line.saturating_sub(self.last_line);
        if lines >= LINE_MASK {
            self.jumps.push((self.records.len(), lines));
        }
        self.last_line = self.last_line.max(line);
        self.out_of_order += u64::from(operation.at < self.last_at);
        self.last_at = self.last_at.max(operation.at);
        self.records.push(Record {
            at_ns: self.last_at.0,
            offset: operation.offset,
            packed: operation.bytes
                | lines.min(LINE_MASK) << LINE_SHIFT
                | (operation.action as u64) << ACTION_SHIFT,
        });
        Ok(())
    }

    /// Operations that were said to come before the one in front of them, and come with it.
    #[must_use]
    pub const fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Forgets the operations.
    pub fn clear(&mut self) {
        let file = std::mem::take(&mut self.file);
        *self = Self::new(file);
    }

    /// Operations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing is done.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The operation of that number, from 0.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Operation> {
        self.records.get(index).map(Record::operation)
    }

    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = Operation> + '_ {
        self.records.iter().map(Record::operation)
    }

    /// The line in which the operation of that number stands; found by counting.
    #[must_use]
    pub fn line_of(&self, index: usize) -> u64 {
        let lines = |(at, record): (usize, &Record)| {
            let lines = record.packed >> LINE_SHIFT & LINE_MASK;
            let jump = || self.jumps.binary_search_by_key(&at, |jump| jump.0);
            match lines == LINE_MASK {
                true => jump().map_or(lines, |found| self.jumps[found].1),
                false => lines,
            }
        };
        let upto = self.records.iter().enumerate().take(index + 1);
        upto.map(lines).sum()
    }

    /// Lets all operations come so much earlier that the first comes at once.
    pub fn begin_at_first(&mut self) {
        let first = self.records.first().map_or(0, |record| record.at_ns);
        for record in &mut self.records {
            record.at_ns -= first;
        }
        self.last_at = self.last_at.saturating_sub(Nanos(first));
    }

    /// A number that differs for traces that differ (FNV-1a of the operations).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let words = |record: &Record| [record.at_ns, record.offset, record.packed];
        let words = self.records.iter().flat_map(words);
        words.fold(0xCBF2_9CE4_8422_2325, |hash, word| {
            let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
            word.to_le_bytes().into_iter().fold(hash, step)
        })
    }
}

impl Record {
    #[inline]
    fn operation(&self) -> Operation {
        Operation {
            at: Nanos(self.at_ns),
            // In range: it was put in from an action.
            action: Action::ALL[(self.packed >> ACTION_SHIFT) as usize % Action::ALL.len()],
            offset: self.offset,
            bytes: self.packed & Trace::MAX_BYTES,
        }
    }
}

/// Not every operation: there can be millions.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("file", &self.file)
            .field("operations", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back_with_their_lines() {
        let mut trace = Trace::new("t");
        let lines = [1, 2, 9, 70_000, 70_000, 135_535, 400_000];
        let operations: Vec<Operation> = Action::ALL
            .into_iter()
            .zip(1..)
            .map(|(action, n)| Operation {
                at: Nanos(n * 1_000),
                action,
                offset: u64::MAX - n,
                bytes: Trace::MAX_BYTES - n,
            })
            .collect();
        for (operation, line) in operations.iter().zip(lines) {
            trace.push(*operation, line).unwrap();
        }
        assert_eq!(trace.iter().collect::<Vec<_>>(), operations);
        let found: Vec<u64> = (0..lines.len()).map(|index| trace.line_of(index)).collect();
        assert_eq!(found, lines);
        assert_eq!(size_of::<Record>(), 24);
        trace.begin_at_first();
        assert_eq!(trace.get(1).unwrap().at, Nanos(1_000));
        let too_long = Operation {
            bytes: Trace::MAX_BYTES + 1,
            ..operations[0]
        };
        assert_eq!(trace.push(too_long, 8), Err(TraceFull::Bytes));
    }

    #[test]
    fn times_do_not_go_back() {
        let mut trace = Trace::new("t");
        for at in [5, 3, 9] {
            let operation = Operation {
                at: Nanos(at),
                action: Action::Sync,
                offset: 0,
                bytes: 0,
            };
            trace.push(operation, 1).unwrap();
        }
        let times: Vec<u64> = trace.iter().map(|operation| operation.at.0).collect();
        assert_eq!(times, [5, 5, 9]);
    }
}
