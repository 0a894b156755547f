//! Operations are counted in batches, column by column: what they have in common is looked at
//! once for all of them.

use zonelab_device::Nanos;

use super::{BUCKETS, DEPTHS, DirectionRecording, DirectionStats, Done, Recorder, Spread};
use crate::stats::{Finds, OpKind, Outcomes, Samples};
use crate::workload::directed::Direction;

/// Operations that are counted at a time.
pub(super) const BATCH: usize = Samples::MOST;

/// Ends of all buckets, the last of which holds what is longer than [`BUCKETS`].
const ENDS: [u64; BUCKETS.len() + 1] = ends();

const fn ends() -> [u64; BUCKETS.len() + 1] {
    let mut ends = [u64::MAX; BUCKETS.len() + 1];
    let mut i = 0;
    while i < BUCKETS.len() {
        ends[i] = BUCKETS[i];
        i += 1;
    }
    ends
}

/// By the number of its significant bits, the first bucket that a latency can be in.
const FIRST_BUCKETS: [u8; 65] = first_buckets();

const fn first_buckets() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits < 65 {
        let smallest = 1_u64 << (bits - 1);
        let mut bucket = 0;
        while bucket < BUCKETS.len() && BUCKETS[bucket] < smallest {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
}

/// The place of a latency among [`BUCKETS`].
#[inline]
fn bucket_of(latency: u64) -> usize {
    let bits = u64::BITS - latency.leading_zeros();
    let mut bucket = usize::from(FIRST_BUCKETS[bits as usize]);
    while ENDS[bucket] < latency {
        bucket += 1;
    }
    bucket
}

impl Spread {
    pub(super) fn record_all(&mut self, samples: &Samples) {
        match self {
            Self::Moments(moments) => moments.merge(samples.moments()),
            Self::Percentiles(all, moments) => {
                all.record_all(samples);
                moments.merge(samples.moments());
            }
        }
    }
}

impl Recorder {
    /// Counts the operations that have not been counted yet.
    pub(in crate::workload) fn settle(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut batch = core::mem::take(&mut self.batch);
        if self.recording.kinds {
            let key_of = |done: &Done| done.kind;
            each_part(&batch, key_of, &OpKind::ALL, |kind, of| {
                self.count_kind(kind, of);
            });
        }
        if let Some(recording) = self.recording.directions {
            let key_of = |done: &Done| done.direction;
            each_part(&batch, key_of, &Direction::ALL, |direction, of| {
                self.count_direction(direction, &recording, of);
            });
            if recording.log {
                for done in &batch {
                    self.log(recording.log_window.0, done);
                }
            }
        }
        batch.clear();
        self.batch = batch;
    }

    fn count_kind(&mut self, kind: OpKind, batch: &[Done]) {
        let lba_bytes = self.lba_bytes;
        let bytes_of = |lbas: u64| lbas.saturating_mul(lba_bytes);
        let latencies = Samples::of(batch.iter().map(Done::total));
        self.stats.record_all(
            kind,
            &Outcomes {
                latencies: &latencies,
                latest: latest(batch),
                bytes: bytes_of(sum(batch.iter().map(|done| done.done_lbas))),
                link_bytes: bytes_of(sum(batch.iter().map(|done| done.link_lbas))),
                finds: batch.iter().map(|done| done.found).collect(),
            },
            batch
                .iter()
                .map(|done| (done.completed, bytes_of(done.done_lbas))),
        );
        for done in batch.iter().filter(|done| done.is_first) {
            self.first_writes.record(Nanos(done.total()));
        }
        if let Some(service) = &mut self.service {
            service.record_all(&Samples::of(batch.iter().map(Done::completion)));
        }
    }

    fn count_direction(
        &mut self,
        direction: Direction,
        recording: &DirectionRecording,
        batch: &[Done],
    ) {
        let (from, lba_bytes) = (self.from, self.lba_bytes);
        let stats = self.directions[direction as usize]
            .get_or_insert_with(|| Box::new(DirectionStats::new(from, recording)));
        let bytes_of = |lbas: u64| lbas.saturating_mul(lba_bytes);
        let is_split = batch.iter().any(|done| done.submitted != done.decided);
        let submissions = match is_split {
            true => Samples::of(batch.iter().map(Done::submission)),
            false => Samples::zeros(batch.len()),
        };
        let completions = Samples::of(batch.iter().map(Done::completion));
        let bytes = bytes_of(sum(batch.iter().map(|done| done.lbas)));
        stats.operations += batch.len() as u64;
        stats.finds += batch.iter().map(|done| done.found).collect::<Finds>();
        stats.bytes = stats.bytes.saturating_add(bytes);
        stats.submission.record_all(&submissions);
        stats.completion.record_all(&completions);
        match is_split {
            true => stats
                .total
                .record_all(&Samples::of(batch.iter().map(Done::total))),
            false => stats.total.record_all(&completions),
        }
        if let Some(confidence) = stats.confidence.first_mut() {
            for done in batch {
                confidence.record(done.completed, Nanos(done.total()));
            }
        }
        let (latest, all) = (latest(batch), (batch.len() as u64, bytes));
        for intervals in [&mut stats.bandwidth[0], &mut stats.iops[0]] {
            let ends = batch
                .iter()
                .map(|done| (done.completed, bytes_of(done.lbas)));
            intervals.record_all(ends, latest, all);
        }
        for done in batch {
            self.counts[done.kind as usize] += 1;
            self.depths[(done.depth.max(1).ilog2() as usize).min(DEPTHS - 1)] += 1;
        }
        for &completion in completions.all() {
            self.buckets[bucket_of(completion)] += 1;
        }
    }
}

/// Hands the operations of a batch over, those with the same of some keys together.
#[inline]
fn each_part<K: Copy + PartialEq>(
    batch: &[Done],
    key_of: impl Fn(&Done) -> K,
    keys: &[K],
    mut count: impl FnMut(K, &[Done]),
) {
    let Some(first) = batch.first().map(&key_of) else {
        return;
    };
    if batch.iter().all(|done| key_of(done) == first) {
        return count(first, batch);
    }
    for &key in keys {
        let mine = batch.iter().filter(|done| key_of(done) == key);
        let part: Vec<Done> = mine.copied().collect();
        if !part.is_empty() {
            count(key, &part);
        }
    }
}

/// When the last operation of a batch completed.
fn latest(batch: &[Done]) -> Nanos {
    Nanos(
        batch
            .iter()
            .fold(0, |latest, done| latest.max(done.completed.0)),
    )
}

fn sum(lbas: impl Iterator<Item = u64>) -> u64 {
    lbas.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn buckets_end_where_they_are_said_to(
            latency in prop_oneof![0_u64..3_000, 0_u64..3_000_000_000, any::<u64>()],
            near in prop::sample::select(&BUCKETS[..]),
        ) {
            for latency in [latency, near, near + 1] {
                let expected = BUCKETS.partition_point(|&end| end < latency);
                prop_assert_eq!(bucket_of(latency), expected, "{}", latency);
            }
        }
    }
}
