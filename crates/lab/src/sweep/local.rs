//! Running a sweep in threads of this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::SweepError;
use super::pack::{Line, Runner};
use super::store::Store;

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tasks that are done, also those of an earlier start.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// All tasks.
    pub tasks: u64,
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

/// Runs the tasks that are left in so many threads; 0: one for each core.
///
/// Threads take one task after another, so that none waits for the others before the last
/// task; what they give is written to the log at once, by this thread.
///
/// # Errors
/// The log cannot be written, or the inputs are wrong.
pub fn run(store: &mut Store, threads: usize, observer: &Observer<'_>) -> Result<End, SweepError> {
    let pending = store.pending();
    let pack = store.pack().clone();
    let tasks = pack.len();
    let runner = Runner::new(&pack)?;
    let threads = match threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel::<Line>();
    let take = || {
        if (observer.interrupted)() {
            return None;
        }
        pending.get(next.fetch_add(1, Ordering::Relaxed)).copied()
    };
    thread::scope(|scope| {
        for _ in 0..threads.min(pending.len()) {
            let sender = sender.clone();
            let (take, runner) = (&take, &runner);
            scope.spawn(move || {
                while let Some(index) = take() {
                    // Who receives it lives as long as this thread.
                    let _ = sender.send(runner.run(index));
                }
            });
        }
        drop(sender);
        while let Ok(line) = receiver.recv() {
            if let Err(error) = store.append(std::slice::from_ref(&line)) {
                // Nothing more is to be run.
                next.store(pending.len(), Ordering::Relaxed);
                return Err(error);
            }
            let (done, failed) = store.counts();
            (observer.on_progress)(Progress {
                done,
                failed,
                tasks,
            });
        }
        Ok::<(), SweepError>(())
    })?;
    Ok(if store.pending().is_empty() {
        End::Done
    } else {
        End::Interrupted
    })
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
