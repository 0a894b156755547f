//! What can be read off a run, by name.

use std::collections::BTreeMap;

use zonelab_device::Nanos;
use zonelab_host::block::MergeCount;
use zonelab_host::stats::{Finds, GroupStats, Latency, OpKind, Slot};
use zonelab_ssd::Drive;
use zonelab_ssd::account::Totals;

use crate::device::FtlWork;
use crate::kv::Wear;
use crate::run::DriveMeasured;

/// Every metric with its unit, in the order of output.
pub const NAMES: &[(&str, &str)] = &[
    ("ops", "1"),
    ("kiops", "KIOPS"),
    ("kiops_by_count", "KIOPS"),
    ("mib_s", "MiB/s"),
    // Of its samples of a second: their variation, the least, the greatest.
    ("mib_s_cv", "1"),
    ("mib_s_min", "MiB/s"),
    ("mib_s_max", "MiB/s"),
    ("ops_s", "1/s"),
    ("lat_mean_us", "us"),
    ("lat_min_us", "us"),
    ("lat_p1_us", "us"),
    ("lat_p50_us", "us"),
    ("lat_p90_us", "us"),
    ("lat_p95_us", "us"),
    ("lat_p99_us", "us"),
    ("lat_p99_9_us", "us"),
    ("lat_p99_99_us", "us"),
    ("lat_max_us", "us"),
    // Of jobs whose operations are due at times of their own: from when they were issued.
    ("service_mean_us", "us"),
    ("service_p95_us", "us"),
    ("service_p99_us", "us"),
    ("service_max_us", "us"),
    // Of all others, if an operation took more than ten times the mean: the share of their time in
    // such operations, and the latency by time.
    ("blocked_share", "1"),
    ("lat_by_time_p95_us", "us"),
    ("first_write_mean_us", "us"),
    ("first_write_max_us", "us"),
    ("merged_share", "1"),
    ("link_mib_per_op", "MiB"),
    // Of operations that can have nothing to do, if the device tells: how many had, and how
    // many reads a buffer of the drive answered.
    ("nothing_share", "1"),
    ("buffered_share", "1"),
    // Of key-value workloads, and what they do to the drive.
    ("work_s", "s"),
    ("completed_share", "1"),
    ("write_amp", "1"),
    ("read_amp", "1"),
    ("file_get_share", "1"),
    ("flush_mib", "MiB"),
    ("compaction_mib", "MiB"),
    ("stall_s", "s"),
    ("space_amp", "1"),
    ("invalid_mean_mib", "MiB"),
    ("valid_mean_mib", "MiB"),
    ("unusable_mean_mib", "MiB"),
    ("dlwa", "1"),
    // Of the whole run: die time still owed when it ended, over all that dies had to do.
    ("owed_share", "1"),
    // Of a phase: flash programmed by what its jobs wrote.
    ("flash_write_amp", "1"),
    // Of a phase, what the flash translation layer of the host did.
    ("ftl_write_amp", "1"),
    ("ftl_total_write_amp", "1"),
    ("ftl_host_blocks", "1"),
    ("ftl_moved_blocks", "1"),
    ("ftl_collected_zones", "1"),
    ("ftl_stalls", "1"),
    ("ftl_map_hit_rate", "1"),
    ("host_write_mib", "MiB"),
    ("fill_mib", "MiB"),
    ("zone_finishes", "1"),
    ("zone_resets", "1"),
    ("blocks_erased", "1"),
    ("erases_p50", "1"),
    ("erases_mean", "1"),
    ("erases_stddev", "1"),
    ("erases_max", "1"),
    // From resets to the ends of the erasures that they brought about.
    ("free_after_mean_us", "us"),
    ("free_after_max_us", "us"),
    // Of drives that erase by thresholds.
    ("rows_erased", "1"),
    ("zones_free", "1"),
    ("zones_invalid", "1"),
    ("zones_allocated", "1"),
    ("reset_state", "1"),
];

/// An operation that takes so many times the mean is a stall.
const STALL: f64 = 10.0;

/// The percentile that a metric is, if it is one.
#[must_use]
pub fn percentile_of(metric: &str) -> Option<f64> {
    Some(match metric {
        "lat_p1_us" => 1.0,
        "lat_p50_us" => 50.0,
        "lat_p90_us" => 90.0,
        "lat_p95_us" => 95.0,
        "lat_p99_us" => 99.0,
        "lat_p99_9_us" => 99.9,
        "lat_p99_99_us" => 99.99,
        _ => return None,
    })
}

/// The unit of a metric.
#[must_use]
pub fn unit_of(metric: &str) -> &'static str {
    NAMES
        .iter()
        .find(|(name, _)| *name == metric)
        .map_or("", |(_, unit)| unit)
}

/// Metrics of one job group, and the neighbours of its percentiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// By name; a metric without a value (a latency of nothing) is absent.
    pub values: BTreeMap<&'static str, f64>,
    /// Of each percentile, the percentiles one point lower and higher.
    pub neighbours: BTreeMap<&'static str, (f64, f64)>,
}

impl Metrics {
    /// What `group` measured, and the first writes to zones.
    #[must_use]
    pub fn of(group: &GroupStats, first_writes: &Latency) -> Self {
        let mut metrics = Self::default();
        let us = |ns: f64| ns / 1e3;
        let latency = &group.latency;
        let values = [
            ("ops", Some(latency.count() as f64)),
            ("kiops", group.mean_iops.map(|iops| iops / 1e3)),
            ("kiops_by_count", group.iops().map(|iops| iops / 1e3)),
            (
                "mib_s",
                group
                    .bytes_per_second()
                    .map(|bytes| bytes / f64::from(1 << 20)),
            ),
            ("ops_s", group.iops()),
            ("lat_mean_us", latency.mean_ns().map(us)),
            ("lat_min_us", latency.min().map(|ns| ns.as_us_f64())),
            ("lat_max_us", latency.max().map(|ns| ns.as_us_f64())),
            ("first_write_mean_us", first_writes.mean_ns().map(us)),
            (
                "first_write_max_us",
                first_writes.max().map(|ns| ns.as_us_f64()),
            ),
            (
                "link_mib_per_op",
                group
                    .link_bytes_per_operation()
                    .map(|bytes| bytes / f64::from(1 << 20)),
            ),
        ];
        for (name, value) in values {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                metrics.values.insert(name, value);
            }
        }
        for &(name, _) in NAMES {
            let Some(percent) = percentile_of(name) else {
                continue;
            };
            if let Some(value) = latency.percentile(percent) {
                metrics.values.insert(name, value.as_us_f64());
            }
            if let Some((low, high)) = latency.neighbours(percent) {
                metrics
                    .neighbours
                    .insert(name, (low.as_us_f64(), high.as_us_f64()));
            }
        }
        metrics
    }

    /// Adds what operations that were due at times of their own took from when they were issued.
    pub fn add_service(&mut self, service: &Latency) {
        let us = |time: Option<Nanos>| time.map(|time| time.as_us_f64());
        for (name, value) in [
            ("service_mean_us", service.mean_ns().map(|ns| ns / 1e3)),
            ("service_p95_us", us(service.percentile(95.0))),
            ("service_p99_us", us(service.percentile(99.0))),
            ("service_max_us", us(service.max())),
        ] {
            if let Some(value) = value {
                self.values.insert(name, value);
            }
        }
    }

    /// Adds how much of the time of operations that wait for one another passed in stalls, if
    /// there were any: operations longer than ten times the mean.
    pub fn add_stalls(&mut self, latency: &Latency) {
        let (Some(mean_ns), Some(max)) = (latency.mean_ns(), latency.max()) else {
            return;
        };
        let limit = Nanos((mean_ns * STALL) as u64);
        if max <= limit {
            return;
        }
        let share = latency.share_of_time_beyond(limit);
        let by_time = latency.percentile_by_time(95.0);
        for (name, value) in [
            ("blocked_share", share),
            ("lat_by_time_p95_us", by_time.map(|time| time.as_us_f64())),
        ] {
            if let Some(value) = value {
                self.values.insert(name, value);
            }
        }
    }

    /// Adds how throughput varied from second to second: the standard deviation
    /// of the seconds over their mean, the least and the greatest. `slots` are
    /// those of all threads together. Nothing without two whole seconds, or if
    /// the slots of a long run are no parts of a second.
    pub fn add_seconds(&mut self, slots: &[Slot]) {
        let (Some(mib_s), Some(ops_s)) = (self.get("mib_s"), self.get("ops_s")) else {
            return;
        };
        let seconds = seconds(slots);
        if seconds.len() < 2 || ops_s <= 0.0 {
            return;
        }
        let count = seconds.len() as f64;
        let mean = seconds.iter().sum::<f64>() / count;
        let square = |ops: &f64| (ops - mean) * (ops - mean);
        // Of a sample, as the authors of the published ones take it.
        let variance = seconds.iter().map(square).sum::<f64>() / (count - 1.0);
        let mib = mib_s / ops_s;
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = seconds.iter().copied().fold(0.0, f64::max);
        if mean > 0.0 {
            self.values.insert("mib_s_cv", variance.sqrt() / mean);
        }
        self.values.insert("mib_s_min", least * mib);
        self.values.insert("mib_s_max", greatest * mib);
    }

    /// Adds what operations of a kind found to do; of those that always have something, and on
    /// devices that do not tell, nothing.
    pub fn add_finds(&mut self, kind: OpKind, finds: &Finds) {
        if kind.may_find_nothing()
            && let Some(share) = finds.nothing_share()
        {
            self.values.insert("nothing_share", share);
        }
        if kind == OpKind::Read
            && let Some(share) = finds.buffered_share()
        {
            self.values.insert("buffered_share", share);
        }
    }

    /// Adds the share of requests that a scheduler merged into the commands of
    /// others; no block layer, no metric.
    pub fn add_merges(&mut self, merges: MergeCount) {
        if merges.requests > 0 {
            let share = merges.merged as f64 / merges.requests as f64;
            self.values.insert("merged_share", share);
        }
    }

    /// Adds the blocks that a drive has erased since `before`, how worn its blocks
    /// are, and how long flash took from a reset until it was erased; of one that has
    /// not erased anything nothing. What is known already, of the time that clients
    /// of a key-value store ran, stays.
    pub fn add_erasures(&mut self, drive: &Drive, before: u64) {
        let erased = drive.totals().erased_blocks - before;
        if erased == 0 {
            return;
        }
        let wear = Wear::of(&drive.flash().erase_counts());
        let freed = drive.freed();
        let free_after_mean = freed.mean().map(|mean| mean.as_us_f64());
        let free_after_max = (freed.zones > 0).then(|| freed.longest.as_us_f64());
        for (name, value) in [
            ("blocks_erased", Some(erased as f64)),
            ("erases_p50", Some(f64::from(wear.median))),
            ("erases_mean", Some(wear.mean)),
            ("erases_stddev", Some(wear.deviation)),
            ("erases_max", Some(f64::from(wear.max))),
            ("free_after_mean_us", free_after_mean),
            ("free_after_max_us", free_after_max),
        ] {
            if let Some(value) = value {
                self.values.entry(name).or_insert(value);
            }
        }
    }

    /// Adds how a drive that erases by thresholds stands at the end of a job, and
    /// the rows that it has erased; of other drives nothing.
    pub fn add_pool(&mut self, drive: &Drive) {
        let groups = 0..drive.flash().layout().groups();
        let state = groups.clone().filter_map(|group| drive.reset_state(group));
        let Some(state) = state.max() else { return };
        let (mut free, mut invalid, mut allocated) = (0, 0, 0);
        for counts in groups.filter_map(|group| drive.zone_counts(group)) {
            free += counts.free;
            invalid += counts.invalid;
            allocated += counts.allocated;
        }
        let erased = self.get("blocks_erased").unwrap_or_default();
        // A block on each plane of a zone.
        let width = f64::from(drive.flash().layout().width());
        for (name, value) in [
            ("blocks_erased", erased),
            ("rows_erased", erased / width),
            ("zones_free", f64::from(free)),
            ("zones_invalid", f64::from(invalid)),
            ("zones_allocated", f64::from(allocated)),
            ("reset_state", f64::from(state as u8)),
        ] {
            self.values.insert(name, value);
        }
    }

    /// Adds the bytes that a phase programmed into flash by those that its jobs wrote: to
    /// the drive, or to the flash translation layer in front of it. Nothing of drives that
    /// jobs wrote nothing to, and of those without something that writes on its own: there
    /// it is [`Self::add_drive`]' value.
    pub(crate) fn add_flash(&mut self, totals: &Totals, ftl: Option<&FtlWork>) {
        let programmed = totals.programmed_bytes();
        let written = match ftl {
            Some(ftl) => ftl.done.host_blocks * u64::from(ftl.block_bytes),
            None if totals.collect_program_bytes + totals.fold_program_bytes > 0 => {
                totals.host_write_bytes
            }
            None => 0,
        };
        if written > 0 {
            let amplification = programmed as f64 / written as f64;
            self.values.insert("flash_write_amp", amplification);
        }
    }

    /// Adds what the flash translation layer did in a phase, whatever job it was for.
    pub(crate) fn add_ftl(&mut self, done: &zonelab_ftl::Metrics) {
        for (name, value) in [
            ("ftl_write_amp", done.write_amplification()),
            ("ftl_total_write_amp", done.total_write_amplification()),
            ("ftl_host_blocks", Some(done.host_blocks as f64)),
            ("ftl_moved_blocks", Some(done.moved_blocks as f64)),
            ("ftl_collected_zones", Some(done.collected_zones as f64)),
            ("ftl_stalls", Some(done.stalls as f64)),
            ("ftl_map_hit_rate", done.map_hit_rate()),
        ] {
            if let Some(value) = value {
                self.values.insert(name, value);
            }
        }
    }

    /// Adds what the drive did in the whole run, and put off, whatever job it was for.
    pub fn add_drive(&mut self, drive: &DriveMeasured) {
        if let Some(dlwa) = drive.totals.dlwa() {
            self.values.insert("dlwa", dlwa);
        }
        if let Some(share) = drive.owed_share() {
            self.values.insert("owed_share", share);
        }
    }

    /// A metric by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

/// Operations in each whole second of `slots`, of which some make a second.
fn seconds(slots: &[Slot]) -> Vec<f64> {
    const SECOND: Nanos = Nanos::from_ms(1_000);
    let length = |slot: &Slot| slot.to.saturating_sub(slot.from);
    let Some(slot) = slots.first().map(length).filter(|&slot| slot > Nanos::ZERO) else {
        return Vec::new();
    };
    if !SECOND.0.is_multiple_of(slot.0) {
        return Vec::new();
    }
    let per_second = (SECOND.0 / slot.0) as usize;
    slots
        .chunks_exact(per_second)
        .filter(|part| part.iter().all(|of| length(of) == slot))
        .map(|part| part.iter().map(|of| of.operations as f64).sum())
        .collect()
}

/// A point of a throughput and latency curve: `(throughput, latency)`.
pub type CurvePoint = (f64, f64);

/// Interference of one operation on another, M^Inter (ConfZNS++, section 2.3,
/// equation 1): the mean over concurrency levels of the weighted distance
/// between the isolated point and the interfered one, each in throughput and
/// P95 latency relative to the isolated.
///
/// Points are `(isolated, interfered)`; `alpha` weighs throughput, `1 - alpha`
/// latency. `None` without points.
#[must_use]
pub fn interference(points: &[(CurvePoint, CurvePoint)], alpha: f64) -> Option<f64> {
    let distance = |&((t_iso, l_iso), (t_int, l_int)): &(CurvePoint, CurvePoint)| {
        let dt = (t_int - t_iso) / t_iso;
        let dl = (l_int - l_iso) / l_iso;
        (alpha * dt * dt + (1.0 - alpha) * dl * dl).sqrt()
    };
    (!points.is_empty()).then(|| points.iter().map(distance).sum::<f64>() / points.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(from_ms: u64, to_ms: u64, operations: u64) -> Slot {
        Slot {
            from: Nanos::from_ms(from_ms),
            to: Nanos::from_ms(to_ms),
            operations,
        }
    }

    #[test]
    fn throughput_by_seconds_leaves_out_what_is_no_whole_second() {
        let mut metrics = Metrics::default();
        metrics.values.insert("mib_s", 40.0);
        metrics.values.insert("ops_s", 20.0);
        let slots = [
            slot(0, 500, 4),
            slot(500, 1000, 6),
            slot(1000, 1500, 20),
            slot(1500, 2000, 10),
            slot(2000, 2500, 90),
            slot(2500, 2700, 90),
        ];
        metrics.add_seconds(&slots[..3]);
        assert_eq!(metrics.get("mib_s_cv"), None, "one second does not vary");
        metrics.add_seconds(&slots);
        // 10 and 30 operations of 2 MiB: the mean is 20, the deviation 200^(1/2).
        let cv = metrics.get("mib_s_cv").unwrap();
        assert!((cv - 200_f64.sqrt() / 20.0).abs() < 1e-12, "{cv}");
        assert_eq!(metrics.get("mib_s_min"), Some(20.0));
        assert_eq!(metrics.get("mib_s_max"), Some(60.0));
    }

    #[test]
    fn slots_that_are_no_parts_of_a_second_tell_nothing_of_it() {
        let mut metrics = Metrics::default();
        metrics.values.insert("mib_s", 40.0);
        metrics.values.insert("ops_s", 20.0);
        metrics.add_seconds(&[slot(0, 2000, 40), slot(2000, 4000, 50), slot(4000, 4000, 0)]);
        metrics.add_seconds(&[slot(0, 0, 0)]);
        assert_eq!(metrics.get("mib_s_max"), None);
    }

    /// ConfZNS++, section 2.3: the worked example.
    #[test]
    fn worked_example() {
        let points = [((294.50, 749.57), (169.09, 2179.02))];
        for (alpha, published) in [(0.5, 1.38), (0.0, 1.91), (1.0, 0.43)] {
            let m = interference(&points, alpha).unwrap();
            assert!(
                (m - published).abs() < 0.005,
                "alpha {alpha}: {m} is not {published}"
            );
        }
        assert_eq!(interference(&[], 0.5), None);
    }
}
