//! In which order points run: the longest first, whichever thread is free, so that none
//! has nothing to do while another has just begun with a long one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use zonelab_device::Nanos;

use super::Point;
use crate::experiment::{JobTemplate, WorkTemplate};

/// What an operation of a key-value store takes, in commands of a drive.
const KV_OPERATION: f64 = 5.0;
/// A guess at how long a command takes on a drive: how many there are in a time.
const COMMAND: Nanos = Nanos::from_us(80);
/// The most commands a second that a drive is taken to do.
const MOST_PER_S: f64 = 300_000.0;

impl Point {
    /// A rough measure of the work that it takes to run it: commands of a drive.
    pub(super) fn work(&self) -> f64 {
        let phases = self.series.phases.iter();
        phases.map(|phase| self.work_of(phase)).sum()
    }

    /// The same of jobs that run side by side.
    fn work_of(&self, phase: &[String]) -> f64 {
        let templates = self.templates(phase);
        let ends = templates.iter().filter_map(|job| job.stop.runtime);
        // A job without a time of its own goes on as long as others.
        let longest = ends.max().unwrap_or(Nanos::ZERO);
        templates.iter().map(|job| commands(job, longest)).sum()
    }
}

/// Commands of all threads of a job, which ends no later than it says, or after `longest`.
fn commands(job: &JobTemplate, longest: Nanos) -> f64 {
    if let WorkTemplate::Kv(kv) = &job.work {
        let loaded = if kv.spec.loads { kv.spec.records } else { 0 };
        let repeats = f64::from(kv.setup.repeats.max(1));
        return (kv.spec.operations() + loaded) as f64 * repeats * KV_OPERATION;
    }
    let seconds = |span: Nanos| span.0 as f64 / 1e9;
    let threads = f64::from(job.threads);
    let span = seconds(job.ramp) + seconds(job.stop.runtime.unwrap_or(longest));
    let per_s = threads * f64::from(job.queue_depth) / seconds(COMMAND);
    let in_time = match span > 0.0 {
        true => span * per_s.min(MOST_PER_S),
        false => f64::INFINITY,
    };
    let in_all = |count: Option<u64>| count.map_or(f64::INFINITY, |count| count as f64 * threads);
    let by_bytes = job.stop.bytes.map(|bytes| bytes / job.block_bytes.max(1));
    let most = in_time
        .min(in_all(job.stop.operations))
        .min(in_all(by_bytes));
    // Nothing but its zones ends it.
    let zones = f64::from(job.zones.end.saturating_sub(job.zones.start));
    if most.is_finite() { most } else { zones }
}

/// Does `work` with each index below `count` on the threads of the present pool: those
/// first for which `weight` is largest, each thread the next one as soon as it is free.
/// The results are in order of the indices.
pub(super) fn longest_first<T: Send>(
    count: usize,
    weight: impl Fn(usize) -> f64,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut order: Vec<(usize, f64)> = (0..count).map(|index| (index, weight(index))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(count) {
            scope.spawn(|_| {
                while let Some(&(index, _)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(index);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_come_first_and_results_in_order() {
        let weights = [1.0, 7.0, 3.0, 7.0, 0.0];
        for threads in [1, 2, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let begun = Mutex::new(Vec::new());
            let work = |index: usize| {
                begun.lock().unwrap().push(index);
                index * 10
            };
            let results = pool.install(|| longest_first(5, |index| weights[index], work));
            assert_eq!(results, [0, 10, 20, 30, 40]);
            let begun = begun.into_inner().unwrap();
            match threads {
                1 => assert_eq!(begun, [1, 3, 2, 0, 4]),
                _ => assert_eq!(begun.len(), 5),
            }
        }
    }
}
