//! Running a workload: a store, clients, and somebody who watches.

use core::ops::ControlFlow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture, join_all};
use zonelab_device::Nanos;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;

use super::client::{Client, Done, Values};
use super::keys::{DISTINCT_BYTES, KeySpace, Permutation};
use super::measure::Measured;
use super::{Kind, Operations, Spec};
use crate::files::{Files, FilesConfig, FilesError, Usage};
use crate::lsm::{Db, DbError, DbStats, Options};

/// What a workload runs on, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Where files go.
    pub files: FilesConfig,
    /// The tree. Keys of a device without data are numbers in memory: the run
    /// sets `keeps_data`, `key_padding` and `shadow` itself.
    pub options: Options,
    /// The workload is run this often, at least once, each time on a store that is
    /// new. The zones are those of the time before.
    pub repeats: u32,
    /// The store is looked at this often, at least every nanosecond.
    pub sample: Nanos,
    /// A flush or compaction that fails ends the run, as it ends what `RocksDB` can do on
    /// `ZenFS`: without compactions writes stop sooner or later. Otherwise the
    /// store goes on as long as it can.
    pub stops_at_errors: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Setup {
    /// The tree of a new store for `spec`.
    #[must_use]
    pub fn options_for(&self, spec: &Spec, keeps_data: bool) -> Options {
        let padding = (spec.key_bytes as usize).saturating_sub(DISTINCT_BYTES);
        Options {
            keeps_data,
            key_padding: if keeps_data { 0 } else { padding },
            ..self.options.clone()
        }
    }
}

/// A look at a run.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// When.
    pub at: Nanos,
    /// What is going on.
    pub stage: Stage,
    /// Operations done, of those that are counted; while loading, records.
    pub done: u64,
    /// How many there will be.
    pub planned: u64,
    /// Space.
    pub usage: &'a Usage,
}

/// Looks after which the time between them doubles, each time: a run of years
/// of virtual time does not spend its time on looks.
const LOOKS_BEFORE_DOUBLING: u64 = 1 << 18;

/// What goes on in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Records are put into the store.
    Loading,
    /// The clients begin now.
    Begins,
    /// The clients run.
    Running,
    /// The clients have ended, or one has failed.
    Ended,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the clients measured, all repetitions together.
    pub measured: Measured,
    /// Operations that were to be done, by clients that have a number of them.
    pub planned: u64,
    /// How many of these were done.
    pub done: u64,
    /// Time that putting in the records took, all repetitions together.
    pub load: Nanos,
    /// The tree when the clients of each repetition began, and at its end.
    pub stores: Vec<(DbStats, DbStats)>,
    /// Space when the clients of the first repetition began, and at the end.
    pub usage: (Usage, Usage),
    /// Why the run ended early, if it did.
    pub failure: Option<Failed>,
}

/// A run that ended early.
#[derive(Clone, Debug)]
pub struct Failed {
    /// When.
    pub at: Nanos,
    /// Why.
    pub error: DbError,
}

/// What clients share.
pub(super) struct Shared {
    /// Clients without an end begin no other operation.
    pub(super) is_over: Cell<bool>,
    /// Nobody begins another operation: something failed, or whoever watches said so.
    pub(super) is_stopped: Cell<bool>,
    /// Records that were put before, in this repetition.
    pub(super) loaded: Cell<u64>,
    /// Counted operations that are done, in all repetitions.
    pub(super) done: Cell<u64>,
    pub(super) measured: RefCell<Measured>,
    /// What failed in the background, and when.
    failed: RefCell<Option<Failed>>,
}

impl Shared {
    /// Notes an operation.
    #[inline]
    pub(super) fn record(&self, kind: Kind, from: Nanos, at: Nanos, done: &Done) {
        let mut measured = self.measured.borrow_mut();
        measured.record(kind, at, at.saturating_sub(from), done.bytes);
        measured.missing += u64::from(done.is_missing);
        measured.wrong += u64::from(done.is_wrong);
    }

    /// Ends the run if something failed in the background of the store.
    fn note_failure(&self, db: &Db, at: Nanos) {
        if let Some(error) = db.background_error() {
            self.is_stopped.set(true);
            self.failed.borrow_mut().get_or_insert(Failed { at, error });
        }
    }
}

/// Looks at a run now and then, and may end it.
pub type Watch = Box<dyn FnMut(Moment<'_>) -> ControlFlow<()>>;

/// Runs `spec` on a device that is all its own, under the eyes of `watch`. The future is boxed
/// so that the store is compiled here, once, and not by everybody who runs it.
///
/// # Errors
/// The file layer cannot be made. What fails later ends the run early, and is
/// in the outcome.
pub fn run(
    io: Io,
    spec: Spec,
    setup: Setup,
    watch: Watch,
) -> LocalBoxFuture<'static, Result<Outcome, FilesError>> {
    all(io, spec, setup, watch).boxed_local()
}

async fn all(io: Io, spec: Spec, setup: Setup, watch: Watch) -> Result<Outcome, FilesError> {
    let files = Files::format(&io, setup.files.clone()).await?;
    let shared = Rc::new(Shared {
        is_over: Cell::new(false),
        is_stopped: Cell::new(false),
        loaded: Cell::new(0),
        done: Cell::new(0),
        measured: RefCell::new(Measured::new(io.now())),
        failed: RefCell::default(),
    });
    let planned = spec.operations() * u64::from(setup.repeats.max(1));
    let before = files.usage();
    let mut run = Run {
        io,
        spec,
        setup,
        files,
        shared,
        watch: Rc::new(RefCell::new(watch)),
        planned,
        load: Nanos::ZERO,
        stores: Vec::new(),
        before: None,
    };
    let result = run.repetitions().await;
    let failure = result.err().map(|error| Failed {
        at: run.io.now(),
        error,
    });
    // What went wrong first is why.
    let failure = run.shared.failed.take().or(failure);
    run.look(Stage::Ended);
    let mut measured = run.shared.measured.replace(Measured::new(Nanos::ZERO));
    measured.finish(run.io.now());
    Ok(Outcome {
        measured,
        planned,
        done: run.shared.done.get(),
        load: run.load,
        stores: run.stores,
        usage: (run.before.unwrap_or(before), run.files.usage()),
        failure,
    })
}

struct Run {
    io: Io,
    spec: Spec,
    setup: Setup,
    files: Files,
    shared: Rc<Shared>,
    watch: Rc<RefCell<Watch>>,
    planned: u64,
    load: Nanos,
    stores: Vec<(DbStats, DbStats)>,
    before: Option<Usage>,
}

impl Run {
    async fn repetitions(&mut self) -> Result<(), DbError> {
        for repetition in 0..self.setup.repeats.max(1) {
            if repetition > 0 {
                for (name, _) in self.files.list() {
                    self.files.delete(&name).await?;
                }
            }
            let keeps_data = self.setup.files.keeps_data;
            let options = self.setup.options_for(&self.spec, keeps_data);
            let db = Db::open(&self.io, &self.files, options).await?;
            self.repetition(&db, repetition).await?;
            db.close().await?;
            if self.shared.is_stopped.get() {
                break;
            }
        }
        Ok(())
    }

    async fn repetition(&mut self, db: &Db, repetition: u32) -> Result<(), DbError> {
        let mut rng = Rng::new(self.setup.seed, u64::from(repetition));
        let filled = self.fill(db, &mut rng).await;
        self.stores.push((db.stats(), db.stats()));
        filled?;
        self.look(Stage::Begins);
        self.before.get_or_insert_with(|| self.files.usage());
        let from = self.io.now();
        self.shared.measured.borrow_mut().resume(from);
        let (sampler, stop) = futures_util::future::abortable(self.sampler(db));
        self.io.spawn(sampler).forget();
        let result = self.clients(db, &mut rng).await;
        stop.abort();
        if self.setup.stops_at_errors {
            self.shared.note_failure(db, self.io.now());
        }
        self.shared.measured.borrow_mut().pause(self.io.now());
        if let Some((_, end)) = self.stores.last_mut() {
            *end = db.stats();
        }
        result
    }

    /// Puts the records into the store, in random order.
    async fn fill(&mut self, db: &Db, rng: &mut Rng) -> Result<(), DbError> {
        if !self.spec.loads || self.spec.records == 0 {
            return Ok(());
        }
        let from = self.io.now();
        let order = Permutation::new(self.spec.records, rng.next_u64());
        let mut client = self.client(db, rng.next_u64());
        let mut look_at = from + self.setup.sample;
        for i in 0..self.spec.records {
            if self.shared.is_stopped.get() {
                break;
            }
            client.put(order.at(i), self.spec.values.next(rng)).await?;
            if self.io.now() >= look_at {
                look_at = self.io.now() + self.setup.sample;
                self.shared.loaded.set(i);
                self.look(Stage::Loading);
            }
        }
        db.idle().await?;
        self.load += self.io.now() - from;
        Ok(())
    }

    fn client(&self, db: &Db, seed: u64) -> Client {
        let keeps_data = self.setup.files.keeps_data;
        let values = Values::new(self.spec.values.largest(), keeps_data, seed);
        Client::new(&self.io, db, &self.spec, values)
    }

    /// Runs all clients until those that have a number of operations have ended.
    async fn clients(&self, db: &Db, rng: &mut Rng) -> Result<(), DbError> {
        let records = self.spec.records;
        let space = KeySpace::new(records, self.spec.deletes());
        let space = Rc::new(RefCell::new(space));
        self.shared.is_over.set(false);
        let (mut counted, mut endless) = (Vec::new(), Vec::new());
        for group in &self.spec.clients {
            let own = Rng::new(rng.next_u64(), 0);
            let operations = Operations::new(group, self.spec.values, records, own);
            let operations = Rc::new(RefCell::new(operations));
            let is_counted = group.operations.is_some();
            for _ in 0..group.count {
                let client = self.client(db, rng.next_u64());
                let task = self.io.spawn(client.run(
                    Rc::clone(&operations),
                    Rc::clone(&space),
                    Rc::clone(&self.shared),
                    is_counted,
                ));
                if is_counted {
                    counted.push(task);
                } else {
                    endless.push(task);
                }
            }
        }
        let mut results = join_all(counted).await;
        self.shared.is_over.set(true);
        results.extend(join_all(endless).await);
        results.into_iter().collect()
    }

    /// Looks at the store now and then.
    fn sampler(&self, db: &Db) -> impl Future<Output = ()> + 'static {
        let (db, stops_at_errors) = (db.clone(), self.setup.stops_at_errors);
        let (io, files, shared) = (self.io.clone(), self.files.clone(), Rc::clone(&self.shared));
        let (watch, planned) = (Rc::clone(&self.watch), self.planned);
        let mut every = self.setup.sample.max(Nanos(1));
        async move {
            for looks in 1_u64.. {
                io.sleep_until(io.now().saturating_add(every)).await;
                if looks.is_multiple_of(LOOKS_BEFORE_DOUBLING) {
                    every = every.saturating_add(every);
                }
                if stops_at_errors {
                    shared.note_failure(&db, io.now());
                }
                look(&io, &files, &shared, &watch, Stage::Running, planned);
            }
        }
    }

    fn look(&self, stage: Stage) {
        let planned = match stage {
            Stage::Loading => self.spec.records,
            _ => self.planned,
        };
        let Self {
            io, files, shared, ..
        } = self;
        look(io, files, shared, &self.watch, stage, planned);
    }
}

fn look(
    io: &Io,
    files: &Files,
    shared: &Shared,
    watch: &RefCell<Watch>,
    stage: Stage,
    planned: u64,
) {
    let moment = Moment {
        at: io.now(),
        stage,
        done: match stage {
            Stage::Loading => shared.loaded.get(),
            _ => shared.done.get(),
        },
        planned,
        usage: &files.usage(),
    };
    if (watch.borrow_mut())(moment).is_break() {
        shared.is_stopped.set(true);
    }
}
