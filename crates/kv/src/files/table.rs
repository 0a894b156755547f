//! Files and where their bytes are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::records::NUMBER_MAX;
use super::{FileId, FilesError, Lifetime};

/// Longest name of a file in bytes.
pub(super) const MAX_NAME_BYTES: usize = 255;

/// Bytes of a file that lie in one zone, one block after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) zone: u32,
    /// First block, counted from the start of the zone.
    pub(super) block: u64,
    /// Bytes; those up to the end of the last block are padding.
    pub(super) bytes: u64,
}

/// All extents of a file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents {
    /// With the offset of their first byte in the file.
    list: Vec<(u64, Extent)>,
    bytes: u64,
}

impl Extents {
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> {
        self.list.iter().map(|(_, extent)| *extent)
    }

    /// Adds bytes at the end.
    pub(super) fn push(&mut self, extent: Extent, lba_bytes: u64) {
        let at = self.bytes;
        self.bytes += extent.bytes;
        if let Some((_, last)) = self.list.last_mut()
            && last.zone == extent.zone
            && last.bytes.is_multiple_of(lba_bytes)
            && last.block + last.bytes / lba_bytes == extent.block
        {
            last.bytes += extent.bytes;
            return;
        }
        self.list.push((at, extent));
    }

    /// Where the bytes from `from` to `to` are. `first` need not begin a block:
    /// then the extent begins with the block that holds it, and the number is
    /// how many bytes come before.
    pub(super) fn between(&self, from: u64, to: u64, lba_bytes: u64) -> Vec<(u64, Extent)> {
        let first = self
            .list
            .partition_point(|(at, extent)| at + extent.bytes <= from);
        self.list[first..]
            .iter()
            .take_while(|(at, _)| *at < to)
            .map(|(at, extent)| {
                let skipped = from.saturating_sub(*at);
                let within = skipped % lba_bytes;
                let end = (to - at).min(extent.bytes);
                let part = Extent {
                    zone: extent.zone,
                    block: extent.block + skipped / lba_bytes,
                    bytes: end - (skipped - within),
                };
                (within, part)
            })
            .collect()
    }

    /// Forgets what lies beyond `len`. Returns zones and numbers of blocks that
    /// are used no more.
    pub(super) fn truncate(&mut self, len: u64, lba_bytes: u64) -> Vec<(u32, u64)> {
        let mut freed = Vec::new();
        while let Some((at, last)) = self.list.last_mut()
            && *at + last.bytes > len
        {
            let keeps = len.saturating_sub(*at);
            let blocks = last.bytes.div_ceil(lba_bytes) - keeps.div_ceil(lba_bytes);
            freed.push((last.zone, blocks));
            if keeps > 0 {
                last.bytes = keeps;
                break;
            }
            self.list.pop();
        }
        self.bytes = self.bytes.min(len);
        freed
    }
}

/// A file, for whoever has it open and for the table.
#[derive(Debug)]
pub(super) struct File {
    pub(super) id: FileId,
    pub(super) lifetime: Lifetime,
    pub(super) state: RefCell<FileState>,
}

/// What changes about a file.
#[derive(Debug, Default)]
pub(super) struct FileState {
    pub(super) name: String,
    pub(super) extents: Extents,
    /// The log has the file, and so many bytes of it.
    pub(super) logged_bytes: Option<u64>,
    /// The last record about it.
    pub(super) ticket: u64,
    pub(super) has_writer: bool,
    pub(super) is_deleted: bool,
}

impl File {
    pub(super) fn name(&self) -> String {
        self.state.borrow().name.clone()
    }
}

/// Something that happened to a file, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Create {
        id: FileId,
        lifetime: Lifetime,
        name: String,
    },
    Extend {
        id: FileId,
        extents: Vec<Extent>,
    },
    Delete {
        id: FileId,
    },
    /// Whoever had the name is deleted.
    Rename {
        id: FileId,
        name: String,
    },
}

/// All files.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) by_name: BTreeMap<String, Rc<File>>,
    by_id: BTreeMap<FileId, Rc<File>>,
    pub(super) next_id: u64,
}

impl Table {
    pub(super) fn get(&self, name: &str) -> Result<&Rc<File>, FilesError> {
        self.by_name.get(name).ok_or_else(|| FilesError::NotFound {
            name: name.to_owned(),
        })
    }

    pub(super) fn insert(&mut self, id: FileId, name: &str, lifetime: Lifetime) -> Rc<File> {
        let state = FileState {
            name: name.to_owned(),
            ..FileState::default()
        };
        let file = Rc::new(File {
            id,
            lifetime,
            state: RefCell::new(state),
        });
        self.next_id = self.next_id.max(id.0 + 1);
        self.by_name.insert(name.to_owned(), Rc::clone(&file));
        self.by_id.insert(id, Rc::clone(&file));
        file
    }

    pub(super) fn remove(&mut self, file: &File) {
        let mut state = file.state.borrow_mut();
        state.is_deleted = true;
        self.by_name.remove(&state.name);
        self.by_id.remove(&file.id);
    }

    /// Gives a file another name. Returns who had it, and is deleted.
    pub(super) fn rename(&mut self, file: &Rc<File>, to: &str) -> Option<Rc<File>> {
        let replaced = self.by_name.get(to).cloned();
        if let Some(replaced) = &replaced {
            self.remove(replaced);
        }
        let from = core::mem::replace(&mut file.state.borrow_mut().name, to.to_owned());
        self.by_name.remove(&from);
        self.by_name.insert(to.to_owned(), Rc::clone(file));
        replaced
    }

    /// Repeats what a record says. `None`: it cannot have happened.
    pub(super) fn replay(&mut self, record: Record, lba_bytes: u64) -> Option<()> {
        match record {
            Record::Create { id, lifetime, name } => {
                let is_taken = self.by_name.contains_key(&name) || self.by_id.contains_key(&id);
                if is_taken || id.0 > NUMBER_MAX {
                    return None;
                }
                let file = self.insert(id, &name, lifetime);
                file.state.borrow_mut().logged_bytes = Some(0);
            }
            Record::Extend { id, extents } => {
                let mut state = self.by_id.get(&id)?.state.borrow_mut();
                for extent in extents {
                    state.extents.push(extent, lba_bytes);
                }
                state.logged_bytes = Some(state.extents.len());
            }
            Record::Delete { id } => {
                let file = Rc::clone(self.by_id.get(&id)?);
                self.remove(&file);
            }
            Record::Rename { id, name } => {
                let file = Rc::clone(self.by_id.get(&id)?);
                if file.state.borrow().name == name {
                    return None;
                }
                self.rename(&file, &name);
            }
        }
        Some(())
    }

    /// The records that make this table from nothing, as far as it is logged.
    pub(super) fn snapshot(&self, lba_bytes: u64) -> Vec<Record> {
        let mut records = Vec::new();
        for (id, file) in &self.by_id {
            let state = file.state.borrow();
            let Some(logged_bytes) = state.logged_bytes else {
                continue;
            };
            records.push(Record::Create {
                id: *id,
                lifetime: file.lifetime,
                name: state.name.clone(),
            });
            let extents = state.extents.between(0, logged_bytes, lba_bytes);
            if !extents.is_empty() {
                let extents = extents.into_iter().map(|(_, extent)| extent).collect();
                records.push(Record::Extend { id: *id, extents });
            }
        }
        records
    }
}
