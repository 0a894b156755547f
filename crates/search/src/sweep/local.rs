//! Running a sweep in threads of this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::SweepError;
use super::memo::Memo;
use super::pack::{Line, Run, Runner, Work};
use super::store::Store;

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tasks that are done, also those of an earlier start.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// All tasks; at most, if points are chosen while the sweep runs.
    pub tasks: u64,
    /// Points on the front when the last points were chosen; `None` if points are not
    /// chosen by it.
    pub on_front: Option<usize>,
}

/// What a run is told, and whom it tells.
pub struct Observer<'a> {
    /// Called when a task is done.
    pub on_progress: &'a dyn Fn(Progress),
    /// Asked before each task: stop here?
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every task is done.
    Done,
    /// It was interrupted; what was run is kept.
    Interrupted,
}

/// Runs the tasks that are left in so many threads; 0: one for each core. A sweep that
/// chooses its points while it runs grows until it has enough of them.
///
/// Threads take one task after another, and help with the tasks of others when none is
/// left, so that none waits for a long last task. What they give is written to the log at
/// once, by this thread.
///
/// # Errors
/// The log cannot be written, or the inputs are wrong.
pub fn run(store: &mut Store, threads: usize, observer: &Observer<'_>) -> Result<End, SweepError> {
    let threads = match threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let memo = store.memo();
    loop {
        run_left(store, threads, &memo, observer)?;
        if !store.pending().is_empty() {
            return Ok(End::Interrupted);
        }
        if !store.grow()? {
            return Ok(End::Done);
        }
    }
}

/// Runs the tasks that are left now.
fn run_left(
    store: &mut Store,
    threads: usize,
    memo: &Memo,
    observer: &Observer<'_>,
) -> Result<(), SweepError> {
    let pending = store.pending();
    let pack = store.shared_pack();
    let runner = Runner::new(&pack, memo)?;
    let crew = Crew {
        runner: &runner,
        pending: &pending,
        under_way: Mutex::new(UnderWay::default()),
        planned: Condvar::new(),
        interrupted: observer.interrupted,
    };
    let (sender, receiver) = mpsc::channel::<Line>();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (crew, sender) = (&crew, sender.clone());
            scope.spawn(move || crew.work(&sender));
        }
        drop(sender);
        while let Ok(line) = receiver.recv() {
            if let Err(error) = store.append(std::slice::from_ref(&line)) {
                // Nothing more is to be run.
                crew.stop();
                return Err(error);
            }
            (observer.on_progress)(store.progress());
        }
        Ok(())
    })
}

/// The threads that run a sweep, and what they share.
struct Crew<'a> {
    runner: &'a Runner<'a>,
    pending: &'a [u64],
    under_way: Mutex<UnderWay>,
    /// Told when a task is ready to be helped with, or never will be.
    planned: Condvar,
    interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// What is under way.
#[derive(Default)]
struct UnderWay {
    /// The place of the next task.
    next: usize,
    /// Tasks that were taken, and of which nobody knows yet what they consist of.
    planning: usize,
    /// Tasks of which not every part is taken yet.
    tasks: Vec<Arc<Shared>>,
}

/// A task that is being planned, until it is dropped: also by a panic, so that nobody waits
/// for what will not come.
struct Planning<'a>(&'a Crew<'a>);

impl Drop for Planning<'_> {
    fn drop(&mut self) {
        self.0.lock().planning -= 1;
        self.0.planned.notify_all();
    }
}

/// A task whose parts any thread may take.
struct Shared {
    work: Work,
    /// The next part to take.
    next: AtomicUsize,
    /// What the parts gave that are done.
    runs: Mutex<Vec<Option<Run>>>,
}

impl Crew<'_> {
    /// What each thread does.
    fn work(&self, sender: &Sender<Line>) {
        while let Some(index) = self.take() {
            let planning = Planning(self);
            let planned = self.runner.plan(index);
            let task = planned.map(|work| Arc::new(Shared::new(work)));
            self.lock().tasks.extend(task.iter().cloned());
            drop(planning);
            match task {
                Ok(task) => self.run_parts(&task, sender),
                // Who receives it lives as long as this thread.
                Err(line) => drop(sender.send(line)),
            }
        }
        while let Some(task) = self.helped() {
            self.run_parts(&task, sender);
        }
    }

    /// The number of the next task, unless there is none or the sweep is interrupted.
    fn take(&self) -> Option<u64> {
        if (self.interrupted)() {
            return None;
        }
        let mut under_way = self.lock();
        let index = self.pending.get(under_way.next).copied()?;
        under_way.next += 1;
        under_way.planning += 1;
        Some(index)
    }

    /// A task of another thread, when there is one to help with; `None`: there will be none.
    fn helped(&self) -> Option<Arc<Shared>> {
        let mut under_way = self.lock();
        while under_way.tasks.is_empty() && under_way.planning > 0 {
            let waited = self.planned.wait(under_way);
            under_way = waited.unwrap_or_else(PoisonError::into_inner);
        }
        under_way.tasks.first().cloned()
    }

    /// Nothing more is to be begun.
    fn stop(&self) {
        self.lock().next = self.pending.len();
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        // Counts and whole entries, whatever panicked elsewhere.
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes parts of a task until none is left. Whoever ends the last one gives the line.
    fn run_parts(&self, task: &Arc<Shared>, sender: &Sender<Line>) {
        loop {
            let part = task.next.fetch_add(1, Ordering::Relaxed);
            if part >= task.work.points.len() {
                self.lock().tasks.retain(|other| !Arc::ptr_eq(other, task));
                return;
            }
            let run = self.runner.run_part(&task.work, part);
            if let Some(runs) = task.ended(part, run) {
                let _ = sender.send(task.work.line(runs));
            }
        }
    }
}

impl Shared {
    fn new(work: Work) -> Self {
        let runs = work.points.iter().map(|_| None).collect();
        Self {
            work,
            next: AtomicUsize::new(0),
            runs: Mutex::new(runs),
        }
    }

    /// Keeps what a part gave; if it was the last one, gives all of them, in their order.
    fn ended(&self, part: usize, run: Run) -> Option<Vec<Run>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs[part] = Some(run);
        if runs.iter().all(Option::is_some) {
            return runs.iter_mut().map(Option::take).collect();
        }
        None
    }
}

/// Parts of what is left for workers elsewhere: large at first, so that what a part costs
/// besides its tasks does not count, and smaller and smaller towards the end, so that no
/// worker waits long for another's last (guided self-scheduling, Polychronopoulos and Kuck
/// 1987).
#[must_use]
pub fn batches(pending: &[u64], workers: usize) -> Vec<Vec<u64>> {
    /// Parts for each worker that what is left is thought of as, whenever one is cut off.
    const PARTS: usize = 4;
    /// Most tasks of a part: what is lost if its worker is.
    const LARGEST: usize = 64;
    let parts = workers.max(1).saturating_mul(PARTS);
    let mut left = pending;
    let mut batches = Vec::new();
    while !left.is_empty() {
        let size = left.len().div_ceil(parts).clamp(1, LARGEST);
        let (batch, rest) = left.split_at(size);
        batches.push(batch.to_vec());
        left = rest;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_all_of_it_in_order_and_enough_for_every_worker() {
        for (count, workers) in [(0, 2), (1, 2), (15, 2), (2000, 2), (2000, 16), (100_000, 4)] {
            let pending: Vec<u64> = (0..count).collect();
            let parts = batches(&pending, workers);
            assert_eq!(parts.concat(), pending);
            assert!(parts.iter().all(|part| (1..=64).contains(&part.len())));
            assert!(
                parts.len() as u64 >= count.min(4 * workers as u64),
                "{count} {workers}"
            );
            // The last ones are single tasks, and none is larger than one before it.
            assert!(parts.is_sorted_by(|one, next| one.len() >= next.len()));
            assert!(parts.last().is_none_or(|last| last.len() == 1));
        }
    }
}
