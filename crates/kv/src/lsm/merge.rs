//! Several sorted sequences as one.

use super::entry::{Entry, prefix_of};
use super::error::DbError;
use super::memtable::MemtableCursor;
use super::table::RunCursor;

/// A sorted sequence.
pub(crate) enum Source {
    Memtable(MemtableCursor),
    Run(RunCursor),
}

impl Source {
    #[inline]
    fn peek(&self) -> Option<Entry<'_>> {
        match self {
            Self::Memtable(cursor) => cursor.peek(),
            Self::Run(cursor) => cursor.peek(),
        }
    }

    #[inline]
    fn advance(&mut self) {
        match self {
            Self::Memtable(cursor) => cursor.advance(),
            Self::Run(cursor) => cursor.advance(),
        }
    }

    #[inline]
    fn wants_load(&self) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(cursor) => cursor.wants_load(),
        }
    }
}

/// A source in the heap, with what decides most comparisons.
#[derive(Clone, Copy, Debug)]
struct Head {
    prefix: u64,
    source: u32,
}

/// All entries of its sources in order: by key, the newest version first.
///
/// The first entry is [`Self::peek`]. If that is `None` after
/// [`Self::wants_load`] was answered by [`Self::load`], there are no more.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// A binary heap, smallest first, of the sources that have entries.
    heap: Vec<Head>,
    /// Sources whose next blocks are not in memory.
    dry: Vec<u32>,
}

impl Merge {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let mut merge = Self {
            heap: Vec::with_capacity(sources.len()),
            dry: Vec::new(),
            sources,
        };
        for source in 0..merge.sources.len() as u32 {
            merge.enter(source);
        }
        merge
    }

    /// Puts a source into the heap, or notes that it is dry.
    fn enter(&mut self, source: u32) {
        let from = &self.sources[source as usize];
        match from.peek() {
            Some(entry) => {
                let prefix = prefix_of(entry.key);
                self.heap.push(Head { prefix, source });
                self.sift_up();
            }
            None if from.wants_load() => self.dry.push(source),
            None => {}
        }
    }

    /// Whether blocks must be loaded before the next entry is known.
    #[inline]
    pub(crate) fn wants_load(&self) -> bool {
        !self.dry.is_empty()
    }

    /// # Errors
    /// A table cannot be read, or is damaged.
    pub(crate) async fn load(&mut self) -> Result<(), DbError> {
        while let Some(source) = self.dry.pop() {
            if let Source::Run(cursor) = &mut self.sources[source as usize] {
                cursor.load().await?;
            }
            self.enter(source);
        }
        Ok(())
    }

    /// The first entry, if nothing must be loaded.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry<'_>> {
        self.sources[self.heap.first()?.source as usize].peek()
    }

    /// Goes on to the next entry.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let Some(&Head { source, .. }) = self.heap.first() else {
            return;
        };
        let from = &mut self.sources[source as usize];
        from.advance();
        if let Some(entry) = from.peek() {
            self.heap[0].prefix = prefix_of(entry.key);
        } else {
            if from.wants_load() {
                self.dry.push(source);
            }
            self.heap.swap_remove(0);
        }
        self.sift_down();
    }

    #[inline]
    fn is_before(&self, a: Head, b: Head) -> bool {
        if a.prefix != b.prefix {
            return a.prefix < b.prefix;
        }
        let entry = |head: Head| self.sources[head.source as usize].peek();
        let (Some(a), Some(b)) = (entry(a), entry(b)) else {
            return false;
        };
        (a.key, core::cmp::Reverse(a.tag)) < (b.key, core::cmp::Reverse(b.tag))
    }

    fn sift_up(&mut self) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_before(self.heap[at], self.heap[parent]) {
                return;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    #[inline]
    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let mut first = 2 * at + 1;
            if first >= self.heap.len() {
                return;
            }
            if first + 1 < self.heap.len() && self.is_before(self.heap[first + 1], self.heap[first])
            {
                first += 1;
            }
            if !self.is_before(self.heap[first], self.heap[at]) {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }
}
