//! Which tables there are, by level.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::entry::is_before;
use super::options::Options;
use super::table::Table;

/// A score of 1: the level is as large as it should be.
pub(crate) const SCORE_ONE: u64 = 1_000_000;

/// Numbers of tables that nobody needs any more.
pub(crate) type Graveyard = Rc<RefCell<Vec<u64>>>;

/// A table of the tree.
#[derive(Debug)]
pub(crate) struct FileMeta {
    pub(crate) table: Table,
    pub(crate) size: u64,
    pub(crate) tail_len: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// Smallest and largest.
    pub(crate) sequences: (u64, u64),
    /// A compaction works on it, or failed to read it.
    pub(crate) is_compacting: Cell<bool>,
    /// No version has it any more; whoever still reads it is the last.
    pub(crate) is_obsolete: Cell<bool>,
    pub(crate) graveyard: Graveyard,
}

impl FileMeta {
    pub(crate) fn number(&self) -> u64 {
        self.table.number
    }

    #[inline]
    fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        *self.smallest <= *largest && *smallest <= *self.largest
    }
}

impl Drop for FileMeta {
    fn drop(&mut self) {
        if self.is_obsolete.get() {
            self.graveyard.borrow_mut().push(self.number());
        }
    }
}

/// Tables of a level.
pub(crate) type Files = Vec<Rc<FileMeta>>;

/// The tables at one time. Level 0: newest first, and they may overlap. Others:
/// by key, without overlap.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) levels: Vec<Files>,
}

/// What makes the next version of one.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Level and number.
    pub(crate) deleted: Vec<(usize, u64)>,
    pub(crate) added: Vec<(usize, Rc<FileMeta>)>,
    /// Logs below it are no longer needed.
    pub(crate) log_number: Option<u64>,
}

pub(crate) fn total_size(files: &[Rc<FileMeta>]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

impl Version {
    pub(crate) fn empty(levels: usize) -> Self {
        Self {
            levels: vec![Files::new(); levels],
        }
    }

    /// This version with changes.
    pub(crate) fn with(&self, changes: &Changes) -> Self {
        let mut next = self.clone();
        for &(level, number) in &changes.deleted {
            next.levels[level].retain(|file| file.number() != number);
        }
        for (level, file) in &changes.added {
            next.levels[*level].push(Rc::clone(file));
        }
        for (level, files) in next.levels.iter_mut().enumerate() {
            if level == 0 {
                let age =
                    |file: &Rc<FileMeta>| core::cmp::Reverse((file.sequences.1, file.number()));
                files.sort_by_key(age);
            } else {
                files.sort_by(|a, b| a.smallest.cmp(&b.smallest));
            }
        }
        next
    }

    /// The only table of a level from 1 on that can hold `key`.
    #[inline]
    pub(crate) fn file_of(&self, level: usize, key: &[u8]) -> Option<&Rc<FileMeta>> {
        let files = &self.levels[level];
        let at = files.partition_point(|file| is_before(&file.largest, key));
        files.get(at).filter(|file| *file.smallest <= *key)
    }

    /// Tables of a level that overlap these keys, both included.
    pub(crate) fn overlapping(&self, level: usize, smallest: &[u8], largest: &[u8]) -> Files {
        let files = &self.levels[level];
        let overlaps = |file: &&Rc<FileMeta>| file.overlaps(smallest, largest);
        if level == 0 {
            return files.iter().filter(overlaps).map(Rc::clone).collect();
        }
        let from = files.partition_point(|file| is_before(&file.largest, smallest));
        let overlapping = files[from..].iter().take_while(overlaps);
        overlapping.map(Rc::clone).collect()
    }

    /// How much each level that is not the last wants to be compacted, most
    /// first: [`SCORE_ONE`] or more does.
    pub(crate) fn scores(&self, options: &Options) -> Vec<(u64, usize)> {
        let mut scores: Vec<(u64, usize)> = (0..self.levels.len() - 1)
            .map(|level| (self.score(level, options), level))
            .collect();
        scores.sort_by_key(|&(score, level)| (core::cmp::Reverse(score), level));
        scores
    }

    fn score(&self, level: usize, options: &Options) -> u64 {
        let idle = self.levels[level]
            .iter()
            .filter(|file| !file.is_compacting.get());
        let (count, bytes) = idle.fold((0_u64, 0_u64), |(count, bytes), file| {
            (count + 1, bytes + file.size)
        });
        let ratio = |part: u64, whole: u64| {
            let score = u128::from(part) * u128::from(SCORE_ONE) / u128::from(whole.max(1));
            u64::try_from(score).unwrap_or(u64::MAX)
        };
        if level > 0 {
            return ratio(bytes, options.max_bytes_for_level(level));
        }
        let by_count = ratio(count, options.level0_file_num_compaction_trigger as u64);
        if bytes > options.max_bytes_for_level_base {
            return by_count.max(ratio(bytes, options.max_bytes_for_level_base));
        }
        by_count
    }

    /// Bytes that compactions have to move until every level has its size:
    /// `RocksDB`'s estimate, which assumes that what a level has too much takes its
    /// share of the next one along.
    pub(crate) fn pending_compaction_bytes(&self, options: &Options) -> u64 {
        let sizes: Vec<u64> = self.levels.iter().map(|files| total_size(files)).collect();
        let is_level0_due = self.levels[0].len() >= options.level0_file_num_compaction_trigger
            || sizes[0] >= options.max_bytes_for_level_base;
        let mut excess = if is_level0_due { sizes[0] } else { 0 };
        let mut pending = excess;
        for level in 1..self.levels.len() - 1 {
            if level == 1 && is_level0_due {
                pending += sizes[level];
            }
            let size = sizes[level] + excess;
            excess = size.saturating_sub(options.max_bytes_for_level(level));
            if excess > 0 {
                let next = u128::from(sizes[level + 1]);
                let along = u128::from(excess) * next / u128::from(size);
                pending += excess + u64::try_from(along).unwrap_or(u64::MAX / 2);
            }
        }
        pending
    }
}
