//! The directory of a sweep: what is done is kept there, and never run again.
//!
//! Lines are appended to a log as tasks end, in whatever order. A process that is killed
//! leaves a log whose last line may be cut off, which is dropped; whoever opens the
//! directory then sees which tasks are left. When none is, the log is put in the order of
//! the tasks and the data set is made of it, so that the files are the same however often,
//! and wherever, the sweep was interrupted and run.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zonelab_lab::output::{self, Existing, OutputError, Place, Put, ResultDir};
use zonelab_lab::session::read_whole;
use zonelab_lab::settings::Settings;

use super::dataset::Table;
use super::growth::{Growth, Limits, Mark};
use super::local::Progress;
use super::memo::Memo;
use super::pack::{Line, Pack, Run, Status};
use super::{SweepError, dataset, front, page, summary};
use crate::evaluations::{self, Log, sealed};

/// Name of the file that holds the sweep itself.
pub const PACK: &str = "sweep-pack.json";
/// Name of the data set.
pub const PARQUET: &str = "sweep.parquet";
/// Name of the same as comma-separated values.
pub const CSV: &str = "sweep.csv";
/// Name of the same with a JSON object a line.
pub const JSON_LINES: &str = "sweep.jsonl";
/// Name of the file that says what the data set is about, and the Pareto front.
pub const SUMMARY: &str = "sweep.json";

/// Name of the page to look through the points.
pub const PAGE: &str = "sweep.html";

/// A form of the data set beside CSV and JSON Lines, which are written always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns with their types and units (feature `parquet`).
    Parquet,
}

impl FromStr for Format {
    type Err = String;

    /// Refuses what this program was built without, and says how it is built with it.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "parquet" if cfg!(feature = "parquet") => Ok(Self::Parquet),
            "parquet" => Err(
                "this program was built without Parquet; `cargo build --release --features \
                 parquet` builds one that has it (CSV and JSON Lines are written always)"
                    .to_owned(),
            ),
            _ => Err("the data set is written as CSV and as JSON Lines, and as parquet".to_owned()),
        }
    }
}

/// The first line of the log.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    schema: u32,
    /// Digest of the pack.
    sweep: String,
    /// Tasks that there are from the beginning.
    tasks: u64,
}

/// Another line of the log.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Entry {
    /// What a task gave.
    Line(Line),
    /// Points that were chosen, and are run from here on.
    Round { points: Vec<Vec<String>> },
    /// The points that were to be chosen so are chosen.
    End { end: Limits },
}

/// A sweep in a directory.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    pack: Arc<Pack>,
    log: Log,
    /// The series that a task has to have run.
    series: Vec<String>,
    /// Of each task, whether it is done.
    done: Vec<bool>,
    /// How many are done, and how many of those failed.
    counts: (u64, u64),
    growth: Option<Growth>,
    memo: Arc<Memo>,
    dir: ResultDir,
    /// The form that the data set is written in beside CSV and JSON Lines.
    format: Option<Format>,
}

/// A sweep that is done.
#[derive(Debug)]
pub struct Finished {
    /// Where results are.
    pub put: Put,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// The sweep, with every point.
    pub pack: Arc<Pack>,
    /// What each task gave, in their order.
    pub lines: Vec<Line>,
}

/// Files by name, and what is in them.
pub type Files = Vec<(String, Vec<u8>)>;

impl Store {
    /// Begins a sweep in a directory, or goes on with it if it was begun there.
    ///
    /// # Errors
    /// The directory holds something else and `existing` says to keep that, or it cannot be
    /// written.
    pub fn create(
        place: impl Into<Place>,
        pack: Pack,
        existing: Existing,
    ) -> Result<Self, SweepError> {
        let place = place.into();
        let path = place.path().to_owned();
        let pack = pack.begun();
        let experiment = pack.inputs.parse(&Settings::default())?;
        let all = || experiment.series.iter().map(|series| series.name.clone());
        let growth = pack.adaptive.as_ref();
        let growth = growth.map(|adaptive| Growth::new(&pack, adaptive));
        let growth = growth.transpose()?;
        let manifest = pack.manifest();
        let existing = match ResultDir::check(&path, &manifest, Existing::Keep) {
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
        let mut dir = ResultDir::hold(place, manifest, existing)?;
        dir.keep(PACK, &pack.to_bytes())?;
        let mut store = Self {
            log: Log::new(&path.join(evaluations::FILE)),
            path,
            series: match pack.series.is_empty() {
                true => all().collect(),
                false => pack.series.clone(),
            },
            done: vec![false; usize::try_from(pack.len()).unwrap_or(usize::MAX)],
            counts: (0, 0),
            growth,
            memo: Arc::default(),
            pack: Arc::new(pack),
            dir,
            format: None,
        };
        for line in store.read()? {
            if let Some(task) = store.pack.task(line.index) {
                store.memo.learn(&task, &line);
            }
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
        let bytes = read_whole(&file).map_err(|error| SweepError::io(&file, error))?;
        Self::create(path, Pack::from_bytes(&bytes)?, Existing::Keep)
    }

    /// Has the data set written in this form, too.
    #[must_use]
    pub const fn with_format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sweep, with the points that were chosen so far.
    #[must_use]
    pub fn pack(&self) -> &Pack {
        &self.pack
    }

    /// The same, to be kept while the store changes.
    pub(super) fn shared_pack(&self) -> Arc<Pack> {
        Arc::clone(&self.pack)
    }

    /// What was run, also in earlier starts.
    pub(super) fn memo(&self) -> Arc<Memo> {
        Arc::clone(&self.memo)
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            done: self.counts.0,
            failed: self.counts.1,
            tasks: self.pack.most(),
            on_front: self.growth.as_ref().and_then(|of| of.chooser.on_front()),
        }
    }

    /// Whether the same sweep in an empty directory would come to the same files: not if
    /// points were chosen here before for other objectives, or in another way.
    #[must_use]
    pub fn is_of_one_search(&self) -> bool {
        self.growth.as_ref().is_none_or(|growth| growth.is_of_one)
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

    /// Chooses the next points of a sweep that chooses them while it runs. `false`: there
    /// are enough of them, or it is none.
    ///
    /// # Errors
    /// Tasks are left, or the log cannot be written.
    pub fn grow(&mut self) -> Result<bool, SweepError> {
        let missing = self.pending().len() as u64;
        if missing > 0 {
            return Err(SweepError::Unfinished { missing });
        }
        let Some(growth) = &mut self.growth else {
            return Ok(false);
        };
        let (points, at_end) = growth.next(&self.pack);
        let entry = if points.is_empty() {
            if at_end {
                return Ok(false);
            }
            growth.marks.push(Mark::End(growth.limits));
            Entry::End { end: growth.limits }
        } else {
            growth.add(Arc::make_mut(&mut self.pack), &points);
            Entry::Round { points }
        };
        let appended = self.log.append(&entry);
        appended.map_err(|error| SweepError::io(self.log.path(), error))?;
        let tasks = usize::try_from(self.pack.len()).unwrap_or(usize::MAX);
        self.done.resize(tasks, false);
        Ok(matches!(entry, Entry::Round { .. }))
    }

    /// Writes the data set, a summary and a page, when every task is done.
    ///
    /// # Errors
    /// Tasks are left, or a file cannot be written.
    pub fn finish(self) -> Result<Finished, SweepError> {
        self.finish_with(|pack, lines, table| {
            let standings = front::standings(pack, lines)?;
            let summary = summary::json(pack, lines, table, &standings)?;
            let page = page::html(pack, lines, &standings.0, &standings.1);
            Ok(vec![
                (SUMMARY.to_owned(), summary.into_bytes()),
                (PAGE.to_owned(), page.into_bytes()),
            ])
        })
    }

    /// Writes the data set and other files in place of those of [`Self::finish`], when every
    /// task is done.
    ///
    /// # Errors
    /// Tasks are left, or a file cannot be written.
    pub fn finish_with(
        mut self,
        others: impl FnOnce(&Pack, &[Line], &Table) -> Result<Files, SweepError>,
    ) -> Result<Finished, SweepError> {
        let missing = self.pending().len() as u64;
        if missing > 0
            || self
                .growth
                .as_ref()
                .is_some_and(|growth| !growth.is_at_end())
        {
            let to_come = self.pack.most() - self.pack.len();
            let missing = missing + to_come;
            return Err(SweepError::Unfinished { missing });
        }
        let mut lines = self.read()?;
        lines.sort_by_key(|line| line.index);
        let log = self.in_order(&lines)?;
        output::replace(self.log.path(), log.as_bytes())?;
        let table = dataset::table(&self.pack, &lines);
        let mut files = vec![
            (CSV.to_owned(), table.to_csv().into_bytes()),
            (JSON_LINES.to_owned(), table.to_json_lines().into_bytes()),
        ];
        #[cfg(feature = "parquet")]
        if self.format == Some(Format::Parquet) {
            let parquet = table.to_parquet(&self.pack).map_err(|error| {
                SweepError::io(&self.path.join(PARQUET), std::io::Error::other(error))
            })?;
            files.push((PARQUET.to_owned(), parquet));
        }
        files.extend(others(&self.pack, &lines, &table)?);
        if self.growth.is_some() {
            self.dir.write(PACK, &self.pack.to_bytes())?;
        }
        let mut paths = Vec::new();
        for (name, bytes) in files {
            self.dir.write(&name, &bytes)?;
            paths.push(self.path.join(name));
        }
        Ok(Finished {
            put: self.dir.finish()?,
            files: paths,
            pack: self.pack,
            lines,
        })
    }

    /// The log in the order of the tasks: what is chosen while it runs, where it was chosen.
    fn in_order(&self, lines: &[Line]) -> Result<String, SweepError> {
        let mut log = String::new();
        let mut put = |text: Result<String, serde_json::Error>| {
            log.push_str(&text.map_err(SweepError::Pack)?);
            Ok::<(), SweepError>(())
        };
        put(sealed(&self.head()))?;
        let repeats = usize::try_from(self.pack.inputs.repeats.max(1)).unwrap_or(usize::MAX);
        let fixed = usize::try_from(self.head().tasks).unwrap_or(usize::MAX);
        let (first, mut rest) = lines.split_at(fixed.min(lines.len()));
        for line in first {
            put(sealed(line))?;
        }
        let mut point = fixed / repeats;
        for mark in self.growth.iter().flat_map(|growth| &growth.marks) {
            match mark {
                Mark::End(end) => put(sealed(&Entry::End { end: *end }))?,
                Mark::Round(count) => {
                    let points = self.pack.points[point..point + count].to_vec();
                    put(sealed(&Entry::Round { points }))?;
                    point += count;
                    let (of_round, after) = rest.split_at((count * repeats).min(rest.len()));
                    for line in of_round {
                        put(sealed(line))?;
                    }
                    rest = after;
                }
            }
        }
        Ok(log)
    }

    /// Every line of the log, once for each task, with all that it has of one. What does not
    /// fit ends it.
    fn read(&mut self) -> Result<Vec<Line>, SweepError> {
        let head = self.head();
        let ours = |theirs: &Head| *theirs == head;
        let entries = match &self.growth {
            // Most logs are long, and have lines alone.
            None => {
                let fits = |_: &Head, line: &Line| line.index < head.tasks;
                let read = self.log.read(ours, fits);
                read.map(|read| read.map(|(_, lines)| lines.into_iter().map(Entry::Line).collect()))
            }
            Some(growth) => {
                let tasks = Cell::new(head.tasks);
                let repeats = u64::from(self.pack.inputs.repeats);
                let fits = |_: &Head, entry: &Entry| match entry {
                    Entry::Line(line) => line.index < tasks.get(),
                    Entry::End { .. } => true,
                    Entry::Round { points } => {
                        tasks.set(tasks.get() + points.len() as u64 * repeats);
                        points.iter().all(|point| growth.chooser.is_point(point))
                    }
                };
                let read = self.log.read(ours, fits);
                read.map(|read| read.map(|(_, entries): (Head, Vec<Entry>)| entries))
            }
        };
        let entries: Option<Vec<Entry>> =
            entries.map_err(|error| SweepError::io(self.log.path(), error))?;
        let Some(entries) = entries else {
            let begun = self.log.begin(&head);
            begun.map_err(|error| SweepError::io(self.log.path(), error))?;
            return Ok(Vec::new());
        };
        Ok(self.taken(entries))
    }

    /// The lines of entries; what else they say goes where it belongs.
    fn taken(&mut self, entries: Vec<Entry>) -> Vec<Line> {
        if let Some(growth) = &mut self.growth {
            // From the beginning, however often the log is read.
            growth.marks.clear();
            let begun = Pack::clone(&self.pack).begun();
            self.pack = Arc::new(begun);
        }
        let mut lines: Vec<Line> = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::new();
        for entry in entries {
            match (entry, &mut self.growth) {
                (Entry::Line(line), _) => {
                    let task = usize::try_from(line.index).unwrap_or(usize::MAX);
                    if places.len() <= task {
                        places.resize(task + 1, None);
                    }
                    match places[task] {
                        Some(place) => lines[place].merge(line),
                        None => {
                            places[task] = Some(lines.len());
                            lines.push(line);
                        }
                    }
                }
                (Entry::Round { points }, Some(growth)) => {
                    growth.add(Arc::make_mut(&mut self.pack), &points);
                }
                (Entry::End { end }, Some(growth)) => growth.marks.push(Mark::End(end)),
                (_, None) => {}
            }
        }
        let tasks = usize::try_from(self.pack.len()).unwrap_or(usize::MAX);
        self.done.resize(tasks, false);
        lines
    }

    fn head(&self) -> Head {
        let adaptive = self.pack.adaptive.as_ref();
        let repeats = u64::from(self.pack.inputs.repeats);
        Head {
            schema: 1,
            sweep: self.pack.digest(),
            tasks: adaptive.map_or_else(
                || self.pack.len(),
                |adaptive| adaptive.fixed() as u64 * repeats,
            ),
        }
    }

    fn is_done(&self, index: u64) -> Option<bool> {
        let place = usize::try_from(index).ok()?;
        self.done.get(place).copied()
    }

    /// Counts a line of a task that is not done yet, if it has all that is needed.
    fn count(&mut self, line: &Line) {
        let place = usize::try_from(line.index).unwrap_or(usize::MAX);
        let has = |series: &String| line.runs.iter().any(|run| run.series == *series);
        if let Some(growth) = &mut self.growth {
            let is_needed = |run: &Run| self.series.contains(&run.series);
            growth.is_of_one &= line.runs.iter().all(is_needed);
            // What lacks a series that the objectives need is run again, with it.
            if line.message.is_none() && !self.series.iter().all(has) {
                return;
            }
            growth.evaluate(place, line, &self.pack);
        }
        let Some(done) = self.done.get_mut(place) else {
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
