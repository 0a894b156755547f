//! The manifest: how the tables came to be those that there are.
//!
//! A file of records, each a length (4 bytes), a CRC-32C and a list of fields: a
//! byte that says which, and its value. `CURRENT` names the manifest that holds;
//! it is replaced by renaming, so there is always one.

use super::entry::Tag;
use super::version::FileMeta;

/// The file that names the manifest.
pub(crate) const CURRENT: &str = "CURRENT";
/// What becomes [`CURRENT`].
pub(crate) const CURRENT_TEMPORARY: &str = "CURRENT.dbtmp";

/// Name of a manifest.
pub(crate) fn manifest_name(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

/// Files have numbers up to this, so that there is always a next one.
pub(crate) const FILE_NUMBER_MAX: u64 = 1 << 62;

/// The largest sequence number that a manifest can have: half of those there are.
const SEQUENCE_MAX: u64 = Tag::SEQUENCE_MAX / 2;

const LOG_NUMBER: u8 = 1;
const NEXT_FILE: u8 = 2;
const LAST_SEQUENCE: u8 = 3;
const DELETED: u8 = 4;
const ADDED: u8 = 5;

/// Where a table is and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRecord {
    pub(crate) level: u8,
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) tail_len: u64,
    pub(crate) sequences: (u64, u64),
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
}

impl FileRecord {
    pub(crate) fn of(level: usize, file: &FileMeta) -> Self {
        Self {
            level: level as u8,
            number: file.number(),
            size: file.size,
            tail_len: file.tail_len,
            sequences: file.sequences,
            smallest: file.smallest.clone(),
            largest: file.largest.clone(),
        }
    }
}

/// A record of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Logs below it are no longer needed.
    pub(crate) log_number: Option<u64>,
    /// No file has this number or a larger one.
    pub(crate) next_file: Option<u64>,
    /// The largest in tables.
    pub(crate) last_sequence: Option<u64>,
    pub(crate) deleted: Vec<(u8, u64)>,
    pub(crate) added: Vec<FileRecord>,
}

impl Edit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 8];
        let numbers = [
            (LOG_NUMBER, self.log_number),
            (NEXT_FILE, self.next_file),
            (LAST_SEQUENCE, self.last_sequence),
        ];
        for (field, number) in numbers {
            if let Some(number) = number {
                out.push(field);
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        for &(level, number) in &self.deleted {
            out.extend_from_slice(&[DELETED, level]);
            out.extend_from_slice(&number.to_le_bytes());
        }
        for file in &self.added {
            out.extend_from_slice(&[ADDED, file.level]);
            let (first, last) = file.sequences;
            for number in [file.number, file.size, file.tail_len, first, last] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            for key in [&file.smallest, &file.largest] {
                out.extend_from_slice(&(key.len() as u16).to_le_bytes());
                out.extend_from_slice(key);
            }
        }
        let len = (out.len() - 8) as u32;
        let crc = crc32c::crc32c(&out[8..]);
        out[..4].copy_from_slice(&len.to_le_bytes());
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The first record, and its length with its header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, usize), &'static str> {
        const CUT_OFF: &str = "a record is cut off";
        let (len, rest) = bytes.split_first_chunk::<4>().ok_or(CUT_OFF)?;
        let (crc, rest) = rest.split_first_chunk::<4>().ok_or(CUT_OFF)?;
        let len = u32::from_le_bytes(*len) as usize;
        let body = rest.get(..len).ok_or(CUT_OFF)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err("the checksum of a record is wrong");
        }
        let mut edit = Self::default();
        let mut fields = Fields(body);
        while let Some(field) = fields.byte() {
            edit.take(field, &mut fields)
                .ok_or("a record has an unknown or short field")?;
        }
        Ok((edit, len + 8))
    }

    fn take(&mut self, field: u8, fields: &mut Fields<'_>) -> Option<()> {
        match field {
            LOG_NUMBER => self.log_number = Some(fields.number()?),
            NEXT_FILE => self.next_file = Some(fields.number()?),
            LAST_SEQUENCE => self.last_sequence = Some(fields.number()?),
            DELETED => self.deleted.push((fields.byte()?, fields.number()?)),
            ADDED => self.added.push(FileRecord {
                level: fields.byte()?,
                number: fields.number()?,
                size: fields.number()?,
                tail_len: fields.number()?,
                sequences: (fields.number()?, fields.number()?),
                smallest: fields.key()?,
                largest: fields.key()?,
            }),
            _ => return None,
        }
        Some(())
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        let (len, rest) = self.0.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
        self.0 = rest;
        Some(key.to_vec())
    }
}

/// What a manifest comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) log_number: u64,
    pub(crate) next_file: u64,
    pub(crate) last_sequence: u64,
    pub(crate) files: Vec<FileRecord>,
}

impl Replay {
    /// # Errors
    /// Where a manifest is damaged, and how.
    pub(crate) fn of(bytes: &[u8], levels: usize) -> Result<Self, (u64, &'static str)> {
        let mut replay = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let damaged = |what| (at as u64, what);
            let (edit, len) = Edit::decode(&bytes[at..]).map_err(damaged)?;
            replay.apply(edit, levels).map_err(damaged)?;
            at += len;
        }
        replay.check().map_err(|what| (at as u64, what))?;
        Ok(replay)
    }

    /// Whether these can be the tables of a tree.
    fn check(&self) -> Result<(), &'static str> {
        let mut numbers: Vec<u64> = self.files.iter().map(|file| file.number).collect();
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a table is there twice");
        }
        if self.files.iter().any(|file| file.smallest > file.largest) {
            return Err("a table ends before it begins");
        }
        let mut runs: Vec<&FileRecord> = self.files.iter().filter(|it| it.level > 0).collect();
        runs.sort_by(|a, b| (a.level, &a.smallest).cmp(&(b.level, &b.smallest)));
        let overlap = |pair: &[&FileRecord]| {
            pair[0].level == pair[1].level && pair[0].largest >= pair[1].smallest
        };
        match runs.windows(2).any(overlap) {
            true => Err("two tables of a level overlap"),
            false => Ok(()),
        }
    }

    fn apply(&mut self, edit: Edit, levels: usize) -> Result<(), &'static str> {
        let files = [edit.next_file, edit.log_number];
        if files
            .iter()
            .flatten()
            .any(|number| *number > FILE_NUMBER_MAX)
            || edit.added.iter().any(|file| file.number > FILE_NUMBER_MAX)
        {
            return Err("no file has so high a number");
        }
        if edit.last_sequence.is_some_and(|last| last > SEQUENCE_MAX) {
            return Err("no write has so high a sequence number");
        }
        self.log_number = edit.log_number.unwrap_or(self.log_number);
        self.next_file = edit.next_file.unwrap_or(self.next_file);
        self.last_sequence = edit.last_sequence.unwrap_or(self.last_sequence);
        for (level, number) in edit.deleted {
            let before = self.files.len();
            self.files
                .retain(|file| (file.level, file.number) != (level, number));
            if self.files.len() == before {
                return Err("a table goes that is not there");
            }
        }
        if edit
            .added
            .iter()
            .any(|file| usize::from(file.level) >= levels)
        {
            return Err("a table is in a level that num_levels does not allow");
        }
        self.files.extend(edit.added);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64) -> FileRecord {
        FileRecord {
            level: 1,
            number,
            size: 4_096,
            tail_len: 100,
            sequences: (3, 9),
            smallest: format!("key{number}").into_bytes(),
            largest: format!("key{number}z").into_bytes(),
        }
    }

    #[test]
    fn edits_read_back_and_add_up() {
        let first = Edit {
            log_number: Some(4),
            next_file: Some(8),
            last_sequence: Some(9),
            deleted: vec![],
            added: vec![file(5), file(6)],
        };
        let second = Edit {
            deleted: vec![(1, 5)],
            added: vec![file(7)],
            ..Edit::default()
        };
        assert_eq!(
            Edit::decode(&first.encode()),
            Ok((first.clone(), first.encode().len()))
        );
        let bytes = [first.encode(), second.encode()].concat();
        let replay = Replay::of(&bytes, 7).unwrap();
        let numbers: Vec<u64> = replay.files.iter().map(|file| file.number).collect();
        assert_eq!(
            (replay.log_number, replay.next_file, numbers),
            (4, 8, vec![6, 7])
        );
        assert!(Replay::of(&bytes, 1).is_err(), "a level too many");
        assert!(
            Replay::of(&second.encode(), 7).is_err(),
            "what goes was never there"
        );
        let refused = |change: &dyn Fn(&mut Edit)| {
            let mut edit = first.clone();
            change(&mut edit);
            Replay::of(&edit.encode(), 7).is_err()
        };
        assert!(!refused(&|_| {}));
        assert!(refused(&|edit| edit.added.push(file(5))), "it is there");
        assert!(refused(&|edit| edit.added[0].largest = b"key6".to_vec()));
        assert!(refused(&|edit| edit.added[0].largest = b"key".to_vec()));
        assert!(refused(&|edit| edit.added[0].number = u64::MAX));
        assert!(refused(&|edit| edit.next_file = Some(u64::MAX)));
        assert!(refused(&|edit| edit.last_sequence = Some(u64::MAX)));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Replay::of(&damaged, 7).is_err(), "byte {at}");
        }
    }
}
