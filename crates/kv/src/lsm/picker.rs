//! Which tables are compacted next.
//!
//! As `RocksDB`'s levelled compaction does: the level with the highest score, its table
//! that overlaps the next level least for its size
//! (`compaction_pri = kMinOverlappingRatio`), with all that it overlaps.

use std::rc::Rc;

use super::options::Options;
use super::version::{FileMeta, Files, SCORE_ONE, Version, total_size};

/// Tables that become tables of `output_level`.
#[derive(Debug)]
pub(crate) struct Compaction {
    pub(crate) level: usize,
    pub(crate) output_level: usize,
    /// Of `level`.
    pub(crate) inputs: Files,
    /// Of `output_level`.
    pub(crate) output_inputs: Files,
    /// Of the level below the output that overlap it.
    pub(crate) grandparents: Files,
    /// The version that it was picked from.
    pub(crate) version: Rc<Version>,
}

impl Compaction {
    /// The next one that is worth it; its tables are marked.
    pub(crate) fn pick(version: &Rc<Version>, options: &Options) -> Option<Self> {
        let due = version.scores(options).into_iter();
        let mut due = due.take_while(|&(score, _)| score >= SCORE_ONE);
        let picked = due.find_map(|(_, level)| Self::pick_from(version, level, options))?;
        picked.mark(true);
        Some(picked)
    }

    fn pick_from(version: &Rc<Version>, level: usize, options: &Options) -> Option<Self> {
        if level == 0 {
            // Newest tables must not sink below older ones that are on their way.
            if version.levels[0]
                .iter()
                .any(|file| file.is_compacting.get())
            {
                return None;
            }
            let oldest = version.levels[0].last()?;
            return Self::from_seed(version, 0, oldest, options);
        }
        let seeds = by_overlap(version, level);
        seeds
            .iter()
            .find_map(|seed| Self::from_seed(version, level, seed, options))
    }

    /// A compaction of this table and of what goes with it; `None`: some of it
    /// is compacted already.
    fn from_seed(
        version: &Rc<Version>,
        level: usize,
        seed: &Rc<FileMeta>,
        options: &Options,
    ) -> Option<Self> {
        let inputs = closed(version, level, vec![Rc::clone(seed)]);
        let (smallest, largest) = range_of(&[&inputs])?;
        let output_inputs = version.overlapping(level + 1, smallest, largest);
        if is_busy(&inputs) || is_busy(&output_inputs) {
            return None;
        }
        let inputs = expanded(version, level, &inputs, &output_inputs, options).unwrap_or(inputs);
        let (smallest, largest) = range_of(&[&inputs, &output_inputs])?;
        let grandparents = match version.levels.len() > level + 2 {
            true => version.overlapping(level + 2, smallest, largest),
            false => Files::new(),
        };
        Some(Self {
            level,
            output_level: level + 1,
            inputs,
            output_inputs,
            grandparents,
            version: Rc::clone(version),
        })
    }

    /// Whether its table can change its level as it is.
    pub(crate) fn is_trivial_move(&self, options: &Options) -> bool {
        self.inputs.len() == 1
            && self.output_inputs.is_empty()
            && total_size(&self.grandparents) <= options.compaction_bytes()
    }

    /// Notes whether its tables are being compacted.
    pub(crate) fn mark(&self, is_compacting: bool) {
        for file in self.inputs.iter().chain(&self.output_inputs) {
            file.is_compacting.set(is_compacting);
        }
    }
}

fn is_busy(files: &[Rc<FileMeta>]) -> bool {
    files.iter().any(|file| file.is_compacting.get())
}

fn range_of<'a>(groups: &[&'a Files]) -> Option<(&'a [u8], &'a [u8])> {
    let files = || groups.iter().flat_map(|files| files.iter());
    let smallest = files().map(|file| file.smallest.as_slice()).min()?;
    let largest = files().map(|file| file.largest.as_slice()).max()?;
    Some((smallest, largest))
}

/// These tables of a level, and in level 0 all that overlap one of them, or one
/// that does: a version of a key must not sink below an older one.
fn closed(version: &Version, level: usize, mut files: Files) -> Files {
    if level > 0 {
        return files;
    }
    loop {
        let Some((smallest, largest)) = range_of(&[&files]) else {
            return files;
        };
        let more = version.overlapping(0, smallest, largest);
        if more.len() == files.len() {
            return files;
        }
        files = more;
    }
}

/// Tables of a level, the one with the least overlap for its size first.
fn by_overlap(version: &Version, level: usize) -> Files {
    let below = &version.levels[level + 1];
    let mut next = 0;
    let ratio = |file: &Rc<FileMeta>| {
        while below
            .get(next)
            .is_some_and(|other| other.largest < file.smallest)
        {
            next += 1;
        }
        let reached = below[next..].iter();
        let overlapping: u64 = reached
            .take_while(|other| other.smallest <= file.largest)
            .map(|other| other.size)
            .sum();
        overlapping.saturating_mul(1024) / file.size.max(1)
    };
    let ratios: Vec<u64> = version.levels[level].iter().map(ratio).collect();
    let mut order: Vec<usize> = (0..ratios.len()).collect();
    order.sort_by_key(|&index| (ratios[index], index));
    let files = &version.levels[level];
    order
        .iter()
        .map(|&index| Rc::clone(&files[index]))
        .collect()
}

/// More tables of the level that fit without more of the next one.
fn expanded(
    version: &Version,
    level: usize,
    inputs: &Files,
    output_inputs: &Files,
    options: &Options,
) -> Option<Files> {
    if output_inputs.is_empty() {
        return None;
    }
    let (smallest, largest) = range_of(&[inputs, output_inputs])?;
    let more = closed(
        version,
        level,
        version.overlapping(level, smallest, largest),
    );
    let bytes = total_size(&more) + total_size(output_inputs);
    if more.len() <= inputs.len() || is_busy(&more) || bytes >= options.compaction_bytes() {
        return None;
    }
    let (smallest, largest) = range_of(&[&more])?;
    let reached = version.overlapping(level + 1, smallest, largest);
    (reached.len() == output_inputs.len()).then_some(more)
}
