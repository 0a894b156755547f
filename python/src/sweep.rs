//! Sweeps: what a coordinator and its workers need, whatever runs the workers.
//!
//! The engine is `zonelab_search::sweep`; who hands out the tasks is Python's business
//! (`zonelab.executors`). A worker gets a sweep as bytes and the numbers of tasks, and gives
//! lines as bytes: it needs no file, and nothing that it does depends on where it runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyString};
use zonelab_lab::output::Existing;
use zonelab_lab::session;
use zonelab_lab::settings::Settings;
use zonelab_lab::table::Style;
use zonelab_search::sweep::{
    self, Line, Observer, Pack, Source, Store, Sweep as Prepared, SweepError,
};

use crate::convert;
use crate::errors::{self, OrRaise};
use crate::frame::{Columns, Frame};
use crate::interrupt::{Watch, Workers};

/// Name in messages of what was given as a dictionary or as text.
const GIVEN: &str = "sweep.toml";

impl<T> OrRaise<T> for Result<T, SweepError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| match error {
            SweepError::Invalid(errors) => errors::of_input(&errors),
            SweepError::Output(_) | SweepError::Io { .. } => errors::environment(error),
            other => errors::invalid(other),
        })
    }
}

/// A sweep that is ready to run: everything that its tasks depend on.
///
/// `source` is the path of a sweep file, TOML text, or a dictionary of what the file would
/// say. A file that it names is relative to it.
#[pyclass(frozen, module = "zonelab", name = "Sweep")]
pub(crate) struct SweepPack {
    pack: Pack,
}

#[pymethods]
impl SweepPack {
    #[new]
    #[pyo3(signature = (
        source, *, set = None, seed = 1, points = None, repeats = None, quick = false
    ))]
    fn new(
        source: &Bound<'_, PyAny>,
        set: Option<&Bound<'_, PyAny>>,
        seed: u64,
        points: Option<u32>,
        repeats: Option<u32>,
        quick: bool,
    ) -> PyResult<Self> {
        let settings = convert::settings(set)?;
        Settings::parse(&settings).map_err(errors::usage)?;
        let (file, text) = find(source)?;
        let source = Source {
            settings,
            quick,
            seed,
            points,
            repeats,
            ..Source::new(&file, &text)
        };
        let base = Path::new(&file).parent().map(Path::to_owned);
        let read = |path: &str| {
            let path = base
                .as_ref()
                .map_or_else(|| path.into(), |base| base.join(path));
            session::read_bounded(&path)
        };
        let sweep = Prepared::prepare(&source, &read).or_raise()?;
        Ok(Self {
            pack: sweep.into_pack(),
        })
    }

    /// Its name: that of its file.
    #[getter]
    fn name(&self) -> &str {
        &self.pack.name
    }

    /// Its title; may be empty.
    #[getter]
    fn title(&self) -> &str {
        &self.pack.title
    }

    /// Names of the keys that differ from point to point.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.pack.keys.iter().map(|key| key.name.as_str()).collect()
    }

    /// Its points: a row for each, with the value of each key as it is written. If points are
    /// chosen while it runs, the first of them.
    fn points(&self) -> PyResult<Frame> {
        let points = &self.pack.with_first().points;
        let columns = Columns::default().count("point", (0..).take(points.len()));
        let with_key = |columns: Columns, (place, key): (usize, &sweep::Key)| {
            columns.text_or_none(&key.name, points.iter().map(|point| point.get(place)))
        };
        let keys = self.pack.keys.iter().enumerate();
        keys.fold(columns, with_key).frame()
    }

    /// The number of its tasks: of runs of the experiment.
    /// If points are chosen while it runs, at most.
    fn __len__(&self) -> usize {
        usize::try_from(self.pack.most()).unwrap_or(usize::MAX)
    }

    /// All of it as bytes, for workers elsewhere.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.pack.to_bytes())
    }

    /// A name of all that its results depend on.
    #[getter]
    fn digest(&self) -> String {
        self.pack.digest()
    }

    /// Begins the sweep in a directory, or goes on with it if it was begun there.
    /// Without one, it has a directory of its own below `results/NAME`, to the newest of
    /// which `results/NAME/latest` leads. With `format="parquet"` the data set is written so,
    /// too, beside CSV and JSON Lines.
    #[pyo3(signature = (path = None, *, force = false, format = None))]
    fn open(
        &self,
        path: Option<PathBuf>,
        force: bool,
        format: Option<&str>,
    ) -> PyResult<SweepStore> {
        let format = format.map(str::parse).transpose().map_err(errors::usage)?;
        let existing = match force {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        let place = self.pack.place(path.as_deref());
        let store = Store::create(place, self.pack.clone(), existing).or_raise()?;
        let store = store.with_format(format);
        Ok(SweepStore {
            store: Mutex::new(Some(store)),
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<zonelab.Sweep {}: {} runs>",
            self.pack.name,
            self.pack.len()
        )
    }
}

/// The name and the text of a sweep file.
fn find(source: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    if let Ok(data) = source.cast::<PyMapping>() {
        return Ok((GIVEN.to_owned(), convert::to_toml(data)?));
    }
    if let Ok(text) = source.cast::<PyString>() {
        let text = text.to_str()?;
        // A path has no lines and sets no keys.
        if text.contains(['\n', '=']) {
            return Ok((GIVEN.to_owned(), text.to_owned()));
        }
    }
    let path: PathBuf = source
        .extract()
        .map_err(|_| errors::usage("a sweep is a path, TOML text, or a dictionary"))?;
    let file = path.to_string_lossy().into_owned();
    let text = session::read_bounded(&path)
        .map_err(|error| errors::invalid(format!("{file}: {error}")))?;
    Ok((file, text))
}

/// The directory of a sweep: what is done of it, and never run again.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct SweepStore {
    store: Mutex<Option<Store>>,
}

impl SweepStore {
    fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        // What a panic elsewhere left is what was done.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, what: impl FnOnce(&mut Store) -> PyResult<T>) -> PyResult<T> {
        match self.lock().as_mut() {
            Some(store) => what(store),
            None => Err(errors::usage("the sweep is finished, or runs")),
        }
    }
}

#[pymethods]
impl SweepStore {
    /// Numbers of the tasks that are left, in parts for so many workers.
    fn batches(&self, workers: usize) -> PyResult<Vec<Vec<u64>>> {
        self.with(|store| Ok(sweep::batches(&store.pending(), workers)))
    }

    /// Chooses the next points, when every task is done: `False` if there are enough, or if
    /// all of them were there from the beginning.
    fn grow(&self) -> PyResult<bool> {
        self.with(|store| store.grow().or_raise())
    }

    /// The sweep with the points that were chosen so far as bytes, for workers elsewhere.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(|store| Ok(PyBytes::new(py, &store.pack().to_bytes())))
    }

    /// The number of tasks that are done, of those that failed, and of all: at most, if points
    /// are chosen while it runs.
    #[getter]
    fn counts(&self) -> PyResult<(u64, u64, u64)> {
        self.with(|store| {
            let (done, failed) = store.counts();
            Ok((done, failed, store.pack().most()))
        })
    }

    /// Keeps what a worker gave. What was kept before stays.
    fn append(&self, lines: &[u8]) -> PyResult<()> {
        let lines: Vec<Line> = serde_json::from_slice(lines)
            .map_err(|error| errors::invalid(format!("these are no lines of a sweep: {error}")))?;
        self.with(|store| store.append(&lines).or_raise())
    }

    /// Runs what is left in threads of this process. `progress` is called with what is done,
    /// and the whole.
    #[pyo3(signature = (*, threads = 0, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(mut store) = self.lock().take() else {
            return Err(errors::usage("the sweep is finished, or runs"));
        };
        let workers = Workers {
            threads: 1,
            total: usize::try_from(store.pack().most()).unwrap_or(usize::MAX),
            progress,
        };
        let work = |watch: &Watch| {
            let is_left = || watch.is_left();
            let observer = Observer {
                on_progress: &|so_far| {
                    let done = usize::try_from(so_far.done).unwrap_or(usize::MAX);
                    watch.done.store(done, Ordering::Relaxed);
                },
                interrupted: &is_left,
            };
            sweep::run(&mut store, threads, &observer)
        };
        let ended = workers.run(py, work);
        *self.lock() = Some(store);
        ended?.or_raise()?;
        Ok(())
    }

    /// Lets go of the directory; what was done is kept there.
    fn close(&self) {
        drop(self.lock().take());
    }

    /// Writes the data set, when every task is done.
    fn finish(&self) -> PyResult<SweepResults> {
        let Some(store) = self.lock().take() else {
            return Err(errors::usage("the sweep is finished, or runs"));
        };
        let path = store.path().to_owned();
        let finished = store.finish().or_raise()?;
        Ok(SweepResults {
            pack: finished.pack,
            path,
            files: finished.files,
            lines: finished.lines,
        })
    }
}

/// Runs tasks of a sweep, which is given as bytes, and gives what they measured as bytes.
///
/// What it gives depends on nothing but what it is given: it may run anywhere, and twice.
#[pyfunction]
pub(crate) fn run_batch<'py>(
    py: Python<'py>,
    pack: &[u8],
    tasks: Vec<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lines = py.detach(|| sweep::run_batch(pack, &tasks)).or_raise()?;
    let bytes = serde_json::to_vec(&lines).map_err(errors::invalid)?;
    Ok(PyBytes::new(py, &bytes))
}

/// What a sweep measured.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct SweepResults {
    pack: Arc<Pack>,
    path: PathBuf,
    files: Vec<PathBuf>,
    lines: Vec<Line>,
}

#[pymethods]
impl SweepResults {
    /// The directory.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// The files in it.
    #[getter]
    fn files(&self) -> Vec<&Path> {
        self.files.iter().map(PathBuf::as_path).collect()
    }

    /// The data set: a row for each job of each run, with every key and metric.
    #[getter]
    fn frame(&self) -> PyResult<Frame> {
        let batch = self.pack.table(&self.lines).to_batch();
        Ok(Frame::of(batch.map_err(errors::invalid)?))
    }

    /// What every point comes to: its keys, its objectives, and whether it is on the Pareto
    /// front: no other point is better in all of them.
    #[getter]
    fn standings(&self) -> PyResult<Frame> {
        let (aims, standings) = self.pack.standings(&self.lines).or_raise()?;
        let points = standings.iter().map(|of| of.point as u64);
        let mut columns = Columns::default().count("point", points);
        for (place, key) in self.pack.keys.iter().enumerate() {
            let values = standings.iter().map(|of| of.values.get(place));
            columns = columns.text_or_none(&key.name, values);
        }
        for (place, aim) in aims.iter().enumerate() {
            let values = standings.iter().map(|of| *of.objectives.get(place)?);
            columns = columns.number_or_none(&aim.name, values);
        }
        columns
            .count("failed", standings.iter().map(|of| of.failed.into()))
            .flag_or_none("on_front", standings.iter().map(|of| Some(of.on_front)))
            .frame()
    }

    fn __len__(&self) -> usize {
        self.lines.len()
    }

    fn __repr__(&self) -> String {
        let runs = self.lines.len();
        format!("<zonelab.SweepResults of {}: {runs} runs>", self.pack.name)
    }

    fn __str__(&self) -> String {
        let plain = Style {
            width: None,
            colour: None,
        };
        let text = self.pack.text(&self.lines, false, &plain);
        text.unwrap_or_else(|error| error.to_string())
    }
}
