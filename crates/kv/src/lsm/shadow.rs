//! What files hold on a device that keeps no data.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::memtable::SharedMemtable;
use super::table::TableContents;

/// What the files of a store hold, in the memory of this process, for a device
/// that forgets it. Clones are the same. Values are sizes, so a million entries
/// with keys of 16 bytes take 32 MB.
#[derive(Clone, Default)]
pub struct Shadow {
    held: Rc<RefCell<Held>>,
}

#[derive(Default)]
struct Held {
    tables: BTreeMap<u64, Rc<TableContents>>,
    logs: BTreeMap<u64, SharedMemtable>,
    /// Manifests and the like, by name.
    texts: BTreeMap<String, Vec<u8>>,
}

impl core::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let held = self.held.borrow();
        f.debug_struct("Shadow")
            .field("tables", &held.tables.len())
            .field("logs", &held.logs.len())
            .finish_non_exhaustive()
    }
}

impl Shadow {
    pub(crate) fn keep_table(&self, number: u64, contents: &Rc<TableContents>) {
        let mut held = self.held.borrow_mut();
        held.tables.insert(number, Rc::clone(contents));
    }

    pub(crate) fn table(&self, number: u64) -> Option<Rc<TableContents>> {
        self.held.borrow().tables.get(&number).map(Rc::clone)
    }

    pub(crate) fn keep_log(&self, number: u64, entries: &SharedMemtable) {
        let mut held = self.held.borrow_mut();
        held.logs.insert(number, Rc::clone(entries));
    }

    pub(crate) fn log(&self, number: u64) -> Option<SharedMemtable> {
        self.held.borrow().logs.get(&number).map(Rc::clone)
    }

    /// Appends to the text of a file.
    pub(crate) fn extend_text(&self, name: &str, bytes: &[u8]) {
        let mut held = self.held.borrow_mut();
        match held.texts.get_mut(name) {
            Some(text) => text.extend_from_slice(bytes),
            None => drop(held.texts.insert(name.to_owned(), bytes.to_vec())),
        }
    }

    /// The first `len` bytes of the text of a file, if they were written.
    pub(crate) fn text(&self, name: &str, len: u64) -> Option<Vec<u8>> {
        let held = self.held.borrow();
        let len = usize::try_from(len).ok()?;
        held.texts.get(name)?.get(..len).map(<[u8]>::to_vec)
    }

    pub(crate) fn rename_text(&self, from: &str, to: &str) {
        let mut held = self.held.borrow_mut();
        if let Some(text) = held.texts.remove(from) {
            held.texts.insert(to.to_owned(), text);
        }
    }

    pub(crate) fn forget_table(&self, number: u64) {
        self.held.borrow_mut().tables.remove(&number);
    }

    pub(crate) fn forget_log(&self, number: u64) {
        self.held.borrow_mut().logs.remove(&number);
    }

    pub(crate) fn forget_text(&self, name: &str) {
        self.held.borrow_mut().texts.remove(name);
    }
}
