//! How jobs share the table of zones.

use std::cell::{Ref, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ZoneTable;

/// The table, as jobs share it: those of one thread without a lock.
#[derive(Clone, Debug)]
pub struct SharedZones(Place);

#[derive(Clone, Debug)]
enum Place {
    Here(Rc<RefCell<ZoneTable>>),
    Anywhere(Arc<Mutex<ZoneTable>>),
}

impl SharedZones {
    /// A table for jobs of this thread.
    #[must_use]
    pub fn new(table: ZoneTable) -> Self {
        Self(Place::Here(Rc::new(RefCell::new(table))))
    }

    /// A table that jobs of other threads have too.
    #[must_use]
    pub fn between_threads(table: Arc<Mutex<ZoneTable>>) -> Self {
        Self(Place::Anywhere(table))
    }

    /// The table, to look at. What depends on what was seen must be done before
    /// the table is let go: another thread may have it next.
    #[inline]
    pub fn borrow(&self) -> impl Deref<Target = ZoneTable> + '_ {
        match &self.0 {
            Place::Here(table) => Seen::Here(table.borrow()),
            Place::Anywhere(table) => Seen::Anywhere(locked(table)),
        }
    }

    /// The table, to change.
    #[inline]
    pub fn borrow_mut(&self) -> impl DerefMut<Target = ZoneTable> + '_ {
        match &self.0 {
            Place::Here(table) => Held::Here(table.borrow_mut()),
            Place::Anywhere(table) => Held::Anywhere(locked(table)),
        }
    }
}

/// A thread that panics in the middle of a change ends the run with it.
fn locked(table: &Mutex<ZoneTable>) -> MutexGuard<'_, ZoneTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Seen<'a> {
    Here(Ref<'a, ZoneTable>),
    Anywhere(MutexGuard<'a, ZoneTable>),
}

enum Held<'a> {
    Here(RefMut<'a, ZoneTable>),
    Anywhere(MutexGuard<'a, ZoneTable>),
}

impl Deref for Seen<'_> {
    type Target = ZoneTable;

    #[inline]
    fn deref(&self) -> &ZoneTable {
        match self {
            Self::Here(table) => table,
            Self::Anywhere(table) => table,
        }
    }
}

impl Deref for Held<'_> {
    type Target = ZoneTable;

    #[inline]
    fn deref(&self) -> &ZoneTable {
        match self {
            Self::Here(table) => table,
            Self::Anywhere(table) => table,
        }
    }
}

impl DerefMut for Held<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ZoneTable {
        match self {
            Self::Here(table) => table,
            Self::Anywhere(table) => table,
        }
    }
}
