//! Metrics of a workload.

use std::collections::BTreeMap;

use zonelab_config::units::fmt_size;
use zonelab_device::Nanos;
use zonelab_host::stats::{Latency, OpKind};
use zonelab_kv::files::SpaceOverTime;
use zonelab_kv::lsm::{DbStats, StallCause, StallStats};
use zonelab_kv::work::Kind;

use super::{KvRun, job_of_kind};
use crate::detail::JobDetail;
use crate::idle::grouped;
use crate::metrics::Metrics;
use crate::run::JobMeasured;

/// How often blocks were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// The median; of an even number, the lower of the two in the middle.
    pub median: u32,
    /// The most erased block.
    pub max: u32,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of all blocks.
    pub deviation: f64,
}

impl Wear {
    /// Of blocks that were erased so often.
    #[must_use]
    pub fn of(counts: &[u32]) -> Self {
        let mut blocks = BTreeMap::new();
        for &count in counts {
            *blocks.entry(count).or_default() += 1;
        }
        Self::of_histogram(&blocks)
    }

    /// Of numbers of blocks by how often they were erased.
    #[must_use]
    pub fn of_histogram(blocks: &BTreeMap<u32, u64>) -> Self {
        let all: u64 = blocks.values().sum();
        let mut below = 0;
        let median = blocks.iter().find(|&(_, blocks)| {
            below += blocks;
            below > all.saturating_sub(1) / 2
        });
        let (Some((&max, _)), Some((&median, _))) = (blocks.last_key_value(), median) else {
            return Self::default();
        };
        let n = all as f64;
        let total = |value: fn(u128) -> u128| -> u128 {
            let values = blocks.iter();
            values
                .map(|(&count, &blocks)| value(u128::from(count)) * u128::from(blocks))
                .sum()
        };
        let (sum, squares) = (total(|count| count), total(|count| count * count));
        let mean = sum as f64 / n;
        Self {
            median,
            max,
            mean,
            deviation: (squares as f64 / n - mean * mean).max(0.0).sqrt(),
        }
    }
}

/// What makes a tree flush and compact.
pub(crate) const MORE: &str = "more operations, or a smaller store.write_buffer_size";

/// What trees did while clients ran, all repetitions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeWork {
    /// Bytes of keys and values that clients put.
    pub user_bytes: u64,
    /// Bytes of the log.
    pub wal_bytes: u64,
    /// Bytes of tables that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes of tables that compactions wrote.
    pub compacted_bytes: u64,
    /// Point queries.
    pub gets: u64,
    /// Those that a memtable answered.
    pub gets_from_memtables: u64,
    /// Those for which a block was read from a file: from the drive.
    pub gets_from_files: u64,
    /// Range queries.
    pub scans: u64,
    /// Those for which no file was looked into.
    pub scans_from_memtables: u64,
    /// Data blocks that they looked into.
    pub blocks: u64,
    /// Waits of writes, by cause.
    pub stalls: [StallStats; StallCause::ALL.len()],
}

impl TreeWork {
    /// Of these trees, from the first of each pair to the second.
    #[must_use]
    pub fn of(stores: &[(DbStats, DbStats)]) -> Self {
        let mut work = Self::default();
        for (before, after) in stores {
            let blocks = |stats: &DbStats| stats.tables_probed - stats.tables_excluded;
            work.user_bytes += after.user_bytes - before.user_bytes;
            work.wal_bytes += after.wal_bytes - before.wal_bytes;
            work.flushed_bytes += after.flushed_bytes() - before.flushed_bytes();
            work.compacted_bytes += after.compacted_bytes() - before.compacted_bytes();
            work.gets += after.gets - before.gets;
            work.gets_from_memtables += after.gets_from_memtables - before.gets_from_memtables;
            work.gets_from_files += after.gets_from_files - before.gets_from_files;
            work.scans += after.scans - before.scans;
            work.scans_from_memtables += after.scans_from_memtables - before.scans_from_memtables;
            work.blocks += blocks(after) - blocks(before);
            for (all, (b, a)) in work
                .stalls
                .iter_mut()
                .zip(before.stalls.iter().zip(after.stalls))
            {
                all.count += a.count - b.count;
                all.time += a.time - b.time;
            }
        }
        work
    }

    /// Bytes written to files for each byte of a key or value that was put.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.wal_bytes + self.flushed_bytes + self.compacted_bytes;
        (self.user_bytes > 0).then(|| written as f64 / self.user_bytes as f64)
    }

    /// Data blocks looked into for a point query.
    #[must_use]
    pub fn read_amplification(&self) -> Option<f64> {
        (self.gets > 0).then(|| self.blocks as f64 / self.gets as f64)
    }

    /// The share of point queries for which a block was read from the drive.
    #[must_use]
    pub fn file_get_share(&self) -> Option<f64> {
        (self.gets > 0).then(|| self.gets_from_files as f64 / self.gets as f64)
    }

    /// Bytes of flushes or compactions in MiB, if anything was put.
    fn written(&self, bytes: u64) -> Option<f64> {
        (self.user_bytes > 0).then_some(bytes as f64 / MIB)
    }

    /// Point queries that filters, or blocks in memory, answered.
    #[must_use]
    pub const fn gets_from_cache(&self) -> u64 {
        self.gets - self.gets_from_memtables - self.gets_from_files
    }

    /// What is to be said beside its numbers: work that a tree has, and that was not done.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.unread().into_iter().chain(self.unflushed()).collect()
    }

    /// What is to be said if puts led to no flush, or flushes to no compaction.
    fn unflushed(&self) -> Option<String> {
        let put = fmt_size(self.user_bytes);
        match (self.user_bytes, self.flushed_bytes, self.compacted_bytes) {
            (0, _, _) => None,
            (_, 0, 0) => Some(format!(
                "nothing was flushed or compacted: {put} were put, which memtables hold, so that \
                 write amplification is that of the log ({MORE})"
            )),
            (_, 0, _) => Some(format!(
                "nothing was flushed: {put} were put, which memtables hold ({MORE})"
            )),
            (_, _, 0) => Some(format!(
                "nothing was compacted: {put} were put, so that write amplification is that of \
                 the log and of flushes ({MORE}; keys in order never need it)"
            )),
            _ => None,
        }
    }

    /// What is to be said if no query came to the drive.
    fn unread(&self) -> Option<String> {
        let queries = self.gets + self.scans;
        let in_memory = self.gets - self.gets_from_files + self.scans_from_memtables;
        if queries == 0 || in_memory < queries {
            return None;
        }
        let memtables = self.gets_from_memtables + self.scans_from_memtables;
        Some(format!(
            "none of {} queries read from the drive: {} were answered by memtables, which hold \
             what was put last, and {} by blocks in memory (more records, or a smaller \
             store.write_buffer_size and store.block_cache, make it read)",
            grouped(queries),
            grouped(memtables),
            grouped(self.gets_from_cache())
        ))
    }

    /// How long writes waited for the tree.
    #[must_use]
    pub fn stalled(&self) -> Nanos {
        Nanos(self.stalls.iter().map(|stall| stall.time.0).sum())
    }
}

/// Space from when clients began to their end, as means over time.
#[must_use]
pub fn space(run: &KvRun) -> SpaceOverTime {
    let (before, after) = &run.outcome.usage;
    let (before, after) = (&before.over_time, &after.over_time);
    SpaceOverTime {
        elapsed_ns: after.elapsed_ns - before.elapsed_ns,
        invalid_byte_ns: after.invalid_byte_ns - before.invalid_byte_ns,
        valid_byte_ns: after.valid_byte_ns - before.valid_byte_ns,
        unusable_byte_ns: after.unusable_byte_ns - before.unusable_byte_ns,
    }
}

const MIB: f64 = (1 << 20) as f64;

/// The results of a workload as those of jobs: all operations together, and
/// each kind of them. Of one that ended early only how far it got: what the whole
/// would have measured is not known. Without the `wear` of the drive nothing is known
/// of what the drive did.
#[must_use]
pub fn jobs(name: &str, run: &KvRun, wear: Option<Wear>) -> Vec<JobMeasured> {
    let measured = &run.outcome.measured;
    let is_whole = run.outcome.failure.is_none();
    let mut whole = kind_of(name.to_owned(), run, &Kind::ALL, OpKind::Write);
    whole.metrics.values.extend(values(run));
    whole.detail.measured = (measured.operations() > 0).then(|| measured.span());
    if let Some(wear) = wear {
        whole.metrics.values.extend(of_drive(run, wear));
    }
    let kinds = measured.all().map(|(kind, _)| {
        let like = match kind {
            Kind::Get | Kind::Scan => OpKind::Read,
            Kind::Insert | Kind::Update | Kind::Delete | Kind::ReadModifyWrite => OpKind::Write,
        };
        kind_of(job_of_kind(name, kind), run, &[kind], like)
    });
    let mut jobs: Vec<JobMeasured> = core::iter::once(whole).chain(kinds).collect();
    if !is_whole {
        for metrics in jobs.iter_mut().map(|job| &mut job.metrics) {
            metrics.values.retain(|name, _| *name == "completed_share");
            metrics.neighbours.clear();
        }
    }
    jobs
}

fn kind_of(name: String, run: &KvRun, kinds: &[Kind], like: OpKind) -> JobMeasured {
    let measured = &run.outcome.measured;
    let group = measured.group(kinds);
    let metrics = group.map(|group| Metrics::of(&group, &Latency::new()));
    let parts = kinds.iter().filter_map(|kind| measured.get(*kind));
    JobMeasured {
        name,
        kind: like,
        metrics: metrics.unwrap_or_default(),
        spread: None,
        detail: JobDetail::together(parts),
    }
}

/// Metrics beyond those of operations.
fn values(run: &KvRun) -> impl Iterator<Item = (&'static str, f64)> {
    let outcome = &run.outcome;
    let tree = TreeWork::of(&outcome.stores);
    let space = space(run);
    let done = outcome.done as f64;
    let values = [
        ("work_s", Some(outcome.measured.elapsed().as_secs_f64())),
        (
            "completed_share",
            Some((done / outcome.planned.max(1) as f64).min(1.0)),
        ),
        ("write_amp", tree.write_amplification()),
        ("read_amp", tree.read_amplification()),
        ("file_get_share", tree.file_get_share()),
        ("flush_mib", tree.written(tree.flushed_bytes)),
        ("compaction_mib", tree.written(tree.compacted_bytes)),
        ("stall_s", Some(tree.stalled().as_secs_f64())),
        ("space_amp", Some(space.amplification())),
        ("invalid_mean_mib", Some(space.mean_invalid_bytes() / MIB)),
        ("valid_mean_mib", Some(space.mean_valid_bytes() / MIB)),
        ("unusable_mean_mib", Some(space.mean_unusable_bytes() / MIB)),
    ];
    values
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}

/// What the drive did meanwhile.
fn of_drive(run: &KvRun, wear: Wear) -> impl Iterator<Item = (&'static str, f64)> {
    let totals = &run.totals;
    let values = [
        ("dlwa", totals.dlwa()),
        ("host_write_mib", Some(totals.host_write_bytes as f64 / MIB)),
        ("fill_mib", Some(totals.fill_program_bytes as f64 / MIB)),
        ("zone_finishes", Some(totals.finishes as f64)),
        ("zone_resets", Some(totals.resets as f64)),
        ("blocks_erased", Some(totals.erased_blocks as f64)),
        ("erases_p50", Some(f64::from(wear.median))),
        ("erases_mean", Some(wear.mean)),
        ("erases_stddev", Some(wear.deviation)),
        ("erases_max", Some(f64::from(wear.max))),
    ];
    values
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_that_of_all_blocks() {
        let wear = Wear::of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((wear.median, wear.max), (4, 9));
        assert!((wear.mean - 5.0).abs() < 1e-9 && (wear.deviation - 2.0).abs() < 1e-9);
        assert_eq!(Wear::of(&[]), Wear::default());
    }
}
