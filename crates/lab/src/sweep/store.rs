//! The directory of a sweep: what is done is kept there, and never run again.
//!
//! Lines are appended to a log as tasks end, in whatever order. A process that is killed
//! leaves a log whose last line may be cut off, which is dropped; whoever opens the
//! directory then sees which tasks are left. When none is, the log is put in the order of
//! the tasks and the data set is made of it, so that the files are the same however often,
//! and wherever, the sweep was interrupted and run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::pack::{Line, Pack, Status};
use super::{SweepError, dataset, front, page, summary};
use crate::evaluations::{self, Log};
use crate::output::{self, Existing, OutputError, ResultDir};

/// Name of the file that holds the sweep itself.
pub const PACK: &str = "sweep-pack.json";
/// Name of the data set.
pub const PARQUET: &str = "sweep.parquet";
/// Name of the same as comma-separated values.
pub const CSV: &str = "sweep.csv";
/// Name of the file that says what the data set is about, and the Pareto front.
pub const SUMMARY: &str = "sweep.json";

/// Name of the page to look through the points.
pub const PAGE: &str = "sweep.html";

/// The first line of the log.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    /// Digest of the pack.
    sweep: String,
    tasks: u64,
}

/// A sweep in a directory.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    pack: Pack,
    log: Log,
    /// Of each task, whether it is done.
    done: Vec<bool>,
    /// How many are done, and how many of those failed.
    counts: (u64, u64),
    dir: ResultDir,
}

/// A sweep that is done.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// What each task gave, in their order.
    pub lines: Vec<Line>,
}

impl Store {
    /// Begins a sweep in a directory, or goes on with it if it was begun there.
    ///
    /// # Errors
    /// The directory holds something else and `existing` says to keep that, or it cannot be
    /// written.
    pub fn create(path: &Path, pack: Pack, existing: Existing) -> Result<Self, SweepError> {
        let manifest = pack.manifest();
        let existing = match ResultDir::check(path, &manifest, Existing::Keep) {
            Ok(()) => Existing::Keep,
            Err(error) if existing == Existing::Keep => return Err(error.into()),
            Err(_) => {
                let log = path.join(evaluations::FILE);
                match std::fs::remove_file(&log) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(SweepError::io(&log, error));
                    }
                    _ => Existing::Replace,
                }
            }
        };
        let mut dir = ResultDir::create(path, manifest, existing)?;
        dir.write(PACK, &pack.to_bytes())?;
        let mut store = Self {
            path: path.to_owned(),
            log: Log::new(&path.join(evaluations::FILE)),
            done: Vec::new(),
            counts: (0, 0),
            pack,
            dir,
        };
        for line in store.read()? {
            store.count(&line);
        }
        Ok(store)
    }

    /// Goes on with the sweep that was begun in a directory.
    ///
    /// # Errors
    /// There is none, or it is one of another version of zonelab.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let file = path.join(PACK);
        let bytes = std::fs::read(&file).map_err(|error| SweepError::io(&file, error))?;
        Self::create(path, Pack::from_bytes(&bytes)?, Existing::Keep)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sweep.
    #[must_use]
    pub const fn pack(&self) -> &Pack {
        &self.pack
    }

    /// The number of tasks that are done, and of those the number that failed.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// The tasks that are left, in their order.
    #[must_use]
    pub fn pending(&self) -> Vec<u64> {
        let numbered = (0..).zip(&self.done);
        numbered
            .filter(|(_, done)| !**done)
            .map(|(index, _)| index)
            .collect()
    }

    /// Keeps what tasks gave. What was kept before stays: who runs a task twice gets the
    /// same.
    ///
    /// # Errors
    /// The log cannot be written, or a line is of no task of this sweep.
    pub fn append(&mut self, lines: &[Line]) -> Result<(), SweepError> {
        for line in lines {
            match self.is_done(line.index) {
                None => {
                    return Err(SweepError::NoSuchTask {
                        index: line.index,
                        tasks: self.pack.len(),
                    });
                }
                Some(true) => {}
                Some(false) => {
                    let appended = self.log.append(line);
                    appended.map_err(|error| SweepError::io(self.log.path(), error))?;
                    self.count(line);
                }
            }
        }
        Ok(())
    }

    /// Writes another file that is part of the results.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), SweepError> {
        Ok(self.dir.write(name, bytes)?)
    }

    /// Writes the data set and what belongs to it, when every task is done.
    ///
    /// # Errors
    /// Tasks are left, or a file cannot be written.
    pub fn finish(mut self) -> Result<Finished, SweepError> {
        let missing = self.pending().len() as u64;
        if missing > 0 {
            return Err(SweepError::Unfinished { missing });
        }
        let mut lines = self.read()?;
        lines.sort_by_key(|line| line.index);
        let mut log = serde_json::to_string(&self.head()).map_err(SweepError::Pack)?;
        for line in &lines {
            log.push('\n');
            log.push_str(&serde_json::to_string(line).map_err(SweepError::Pack)?);
        }
        log.push('\n');
        output::replace(self.log.path(), log.as_bytes())?;
        let table = dataset::table(&self.pack, &lines);
        let parquet = table.to_parquet(&self.pack).map_err(|error| {
            SweepError::io(&self.path.join(PARQUET), std::io::Error::other(error))
        })?;
        let standings = front::standings(&self.pack, &lines)?;
        let summary = summary::json(&self.pack, &lines, &table, &standings)?;
        let page = page::html(&self.pack, &lines, &standings.0, &standings.1);
        let csv = table.to_csv();
        let files: [(&str, &[u8]); 4] = [
            (PARQUET, &parquet),
            (CSV, csv.as_bytes()),
            (SUMMARY, summary.as_bytes()),
            (PAGE, page.as_bytes()),
        ];
        let mut paths = Vec::new();
        for (name, bytes) in files {
            self.dir.write(name, bytes)?;
            paths.push(self.path.join(name));
        }
        self.dir.finish()?;
        Ok(Finished {
            files: paths,
            lines,
        })
    }

    /// Every line of the log, once for each task. What does not fit ends it.
    fn read(&mut self) -> Result<Vec<Line>, SweepError> {
        let head = self.head();
        let tasks = head.tasks;
        let ours = |theirs: &Head| *theirs == head;
        let fits = |_: &Head, line: &Line| line.index < tasks;
        let read = self.log.read(ours, fits);
        let read = read.map_err(|error| SweepError::io(self.log.path(), error))?;
        let Some((_, mut lines)) = read else {
            let begun = self.log.begin(&head);
            begun.map_err(|error| SweepError::io(self.log.path(), error))?;
            self.done = vec![false; usize::try_from(tasks).unwrap_or(usize::MAX)];
            return Ok(Vec::new());
        };
        let mut seen = vec![false; usize::try_from(tasks).unwrap_or(usize::MAX)];
        lines.retain(|line| {
            let place = usize::try_from(line.index).unwrap_or(usize::MAX);
            !std::mem::replace(&mut seen[place], true)
        });
        self.done.resize(seen.len(), false);
        Ok(lines)
    }

    fn head(&self) -> Head {
        Head {
            schema: 1,
            sweep: self.pack.digest(),
            tasks: self.pack.len(),
        }
    }

    fn is_done(&self, index: u64) -> Option<bool> {
        let place = usize::try_from(index).ok()?;
        self.done.get(place).copied()
    }

    fn count(&mut self, line: &Line) {
        let place = usize::try_from(line.index).ok();
        let Some(done) = place.and_then(|place| self.done.get_mut(place)) else {
            return;
        };
        *done = true;
        self.counts.0 += 1;
        self.counts.1 += u64::from(line.status == Status::Failed);
    }
}

impl From<OutputError> for SweepError {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}
