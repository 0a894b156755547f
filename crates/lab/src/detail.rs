//! What a point measured beyond its metrics: distributions, and what happened
//! over time, small enough to keep for every point.

use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_host::stats::{JobStats, Latency, OpKind, OpStats, Slot};
use zonelab_ssd::Drive;
use zonelab_ssd::account::BusyByCause;

use crate::wear::WearMap;

/// Steps of the quantiles in a factor of ten of what lies beyond them.
const STEPS: u32 = 10;
/// Factors of ten: 99.99 % is four.
const DECADES: u32 = 4;

/// How latencies are distributed and how throughput went, of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDetail {
    /// From when to when it was measured, after the ramp and until its last operation had
    /// completed; `None` of one kind of operations of a key-value
    /// workload.
    pub measured: Option<(Nanos, Nanos)>,
    /// For how long an operation had been due, and was not issued any more, when the job ended.
    pub behind: Nanos,
    /// It ended before its figures were as well known as its `confidence` asks for.
    pub is_uncertain: bool,
    /// Operations measured.
    pub operations: u64,
    /// Latencies at [`quantiles`], as far as there are operations beyond: with
    /// 1000, P99.9 is the last.
    pub latencies: Vec<Nanos>,
    /// Operations over time, all threads together.
    pub throughput: Vec<Slot>,
}

/// Where time and wear went in the drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointDetail {
    /// Busy time by cause, of each channel.
    pub channels: Vec<BusyByCause>,
    /// Busy time by cause, of each unit.
    pub units: Vec<BusyByCause>,
    /// Number of blocks by how often they were erased.
    pub erasures: BTreeMap<u32, u64>,
    /// Where they were erased, if any was.
    pub wear_map: Option<WearMap>,
}

/// The quantiles in per cent at which a distribution is kept, from 0 to 99.99:
/// evenly spaced by the logarithm of what lies beyond them, so that the tail
/// has as many as the rest. P50, P90, P99, P99.9 and P99.99 are among them.
#[must_use]
pub fn quantiles() -> Vec<f64> {
    let quantile = |step: u32| {
        let beyond = libm::pow(10.0, -f64::from(step) / f64::from(STEPS));
        // To a millionth of a per cent, as [`Latency::percentile`] takes it.
        let percent = libm::round((1.0 - beyond) * 1e8) / 1e6;
        // The step next to the median becomes the median.
        if step == 3 { 50.0 } else { percent }
    };
    (0..=STEPS * DECADES).map(quantile).collect()
}

impl JobDetail {
    /// The operations of `kind` of the threads of a job.
    pub fn of<'a>(threads: impl Iterator<Item = &'a JobStats>, kind: OpKind) -> Self {
        Self::together(threads.filter_map(|thread| thread.get(kind)))
    }

    /// Operations that were measured apart.
    pub fn together<'a>(parts: impl Iterator<Item = &'a OpStats>) -> Self {
        let mut latency = Latency::new();
        let mut slots = Vec::new();
        for stats in parts {
            latency.merge(&stats.latency);
            slots.push(stats.intervals.slots().collect());
        }
        let operations = latency.count();
        let mut kept = quantiles();
        kept.retain(|&percent| (1.0 - percent / 100.0) * operations as f64 >= 1.0 - 1e-6);
        Self {
            measured: None,
            behind: Nanos::ZERO,
            is_uncertain: false,
            operations,
            latencies: latency.percentiles(&kept),
            throughput: together(slots),
        }
    }
}

impl PointDetail {
    /// What `drive` did until now.
    #[must_use]
    pub fn of(drive: &Drive) -> Self {
        let ledger = drive.flash().media().ledger();
        let mut erasures = BTreeMap::new();
        for count in drive.flash().blocks().wears() {
            *erasures.entry(count).or_default() += 1;
        }
        Self {
            channels: ledger.channels.clone(),
            units: ledger.units.clone(),
            erasures,
            wear_map: WearMap::of(drive),
        }
    }
}

/// The slots of several threads as those of one, on the grid of the thread with
/// the longest slots. Threads start within a slot of each other or much later;
/// what completed in a slot counts where its middle lies.
fn together(threads: Vec<Vec<Slot>>) -> Vec<Slot> {
    let all = || threads.iter().flatten();
    let length = |slot: &Slot| slot.to.saturating_sub(slot.from);
    let (Some(start), Some(end), Some(step)) = (
        all().map(|slot| slot.from).min(),
        all().map(|slot| slot.to).max(),
        all().map(length).max().filter(|&step| step > Nanos::ZERO),
    ) else {
        return Vec::new();
    };
    // Few: each thread has a bounded number of slots of at most this length,
    // and a thread that starts much later makes the rest of the grid empty.
    let last = ((end - start).0.div_ceil(step.0)).clamp(1, SLOTS_MAX);
    let step = Nanos((end - start).0.div_ceil(last)).max(step);
    let mut slots: Vec<Slot> = (0..last)
        .map(|slot| Slot {
            from: start.saturating_add(Nanos(slot.saturating_mul(step.0))),
            to: start
                .saturating_add(Nanos((slot + 1).saturating_mul(step.0)))
                .min(end),
            operations: 0,
        })
        .filter(|slot| slot.from < slot.to)
        .collect();
    for slot in all() {
        let middle = slot.from.saturating_add(Nanos(length(slot).0 / 2)) - start;
        // Below the number of slots: the middle lies before the end.
        let at = ((middle.0 / step.0) as usize).min(slots.len() - 1);
        slots[at].operations += slot.operations;
    }
    slots
}

/// Greatest number of slots of all threads together.
const SLOTS_MAX: u64 = 480;

#[cfg(test)]
mod tests {
    use zonelab_device::Found;
    use zonelab_host::stats::{Intervals, Outcome};
    use zonelab_nvme::Status;

    use super::*;

    fn thread(start_ms: u64, count: u64, every_us: u64) -> JobStats {
        let mut stats = JobStats::new(Intervals::DEFAULT_LENGTH);
        let start = Nanos::from_ms(start_ms);
        stats.start_measuring(start);
        for i in 0..count {
            let outcome = Outcome {
                at: start + Nanos::from_us(i * every_us),
                latency: Nanos(i + 1),
                bytes: 4096,
                link_bytes: 4096,
                found: Found::Work(1),
                status: Status::SUCCESS,
            };
            stats.record(OpKind::Write, &outcome);
        }
        stats.finish(start + Nanos::from_us(count * every_us));
        stats
    }

    #[test]
    fn quantiles_contain_what_people_ask_for() {
        let all = quantiles();
        assert_eq!(all.len(), 41);
        for percent in [0.0, 50.0, 90.0, 99.0, 99.9, 99.99] {
            assert!(
                all.iter().any(|q| (q - percent).abs() < 1e-9),
                "{percent}: {all:?}"
            );
        }
        assert!(all.is_sorted());
    }

    #[test]
    fn a_distribution_ends_where_the_operations_end() {
        let kept = |count| JobDetail::of([thread(0, count, 1)].iter(), OpKind::Write);
        let quantiles = quantiles();
        for (count, last) in [
            (1, 0.0),
            (2, 50.0),
            (10, 90.0),
            (1_000, 99.9),
            (20_000, 99.99),
        ] {
            let detail = kept(count);
            assert_eq!(detail.operations, count);
            let end = quantiles[detail.latencies.len() - 1];
            assert!((end - last).abs() < 1e-9, "{count}: {end}");
        }
        let thousand = kept(1_000);
        let at = quantiles
            .iter()
            .position(|q| (q - 90.0).abs() < 1e-9)
            .unwrap();
        assert_eq!(thousand.latencies[at], Nanos(900));
        assert_eq!(kept(0), JobDetail::default());
    }

    #[test]
    fn threads_add_up_where_they_overlap() {
        // 1000 operations a second for two seconds; 2000 from the second on.
        let threads = [thread(0, 2_000, 1_000), thread(1_000, 2_000, 500)];
        let detail = JobDetail::of(threads.iter(), OpKind::Write);
        let rates: Vec<_> = detail.throughput.iter().map(|s| s.operations).collect();
        assert_eq!(rates, [500, 500, 1_500, 1_500]);
        let half = Nanos::from_ms(500);
        let lengths = detail.throughput.iter().map(|s| s.to - s.from);
        assert!(lengths.eq([half; 4]));
    }

    #[test]
    fn threads_far_apart_stay_few_slots() {
        let threads = [thread(0, 10, 1_000), thread(1_000_000_000, 10, 1_000)];
        let detail = JobDetail::of(threads.iter(), OpKind::Write);
        assert!(detail.throughput.len() as u64 <= SLOTS_MAX);
        let total: u64 = detail.throughput.iter().map(|s| s.operations).sum();
        assert_eq!(total, 20);
    }
}
