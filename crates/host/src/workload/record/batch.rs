//! Operations are counted in batches, column by column: what they have in common is looked at
//! once for all of them.

use zonelab_device::Nanos;

use super::{BUCKETS, DEPTHS, DirectionRecording, DirectionStats, Done, Recorder, Spread};
use crate::stats::{Finds, OpKind, Outcomes, Samples};
use crate::workload::directed::Direction;

/// Operations that are counted at a time.
pub(super) const BATCH: usize = Samples::MOST;

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
    while bucket < BUCKETS.len() && BUCKETS[bucket] < latency {
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
            for kind in OpKind::ALL {
                if batch.iter().any(|done| done.kind == kind) {
                    self.count_kind(kind, &batch);
                }
            }
        }
        if let Some(recording) = self.recording.directions {
            for direction in Direction::ALL {
                if batch.iter().any(|done| done.direction == direction) {
                    self.count_direction(direction, &recording, &batch);
                }
            }
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
        let mine = || batch.iter().filter(|done| done.kind == kind);
        let bytes_of = |done: &Done| done.done_lbas * lba_bytes;
        let latencies = Samples::of(mine().map(Done::total));
        self.stats.record_all(
            kind,
            &Outcomes {
                latencies: &latencies,
                bytes: sum(mine().map(bytes_of)),
                link_bytes: sum(mine().map(|done| done.link_lbas * lba_bytes)),
                finds: mine().map(|done| done.found).collect(),
            },
            mine().map(|done| (done.completed, bytes_of(done))),
        );
        for done in mine().filter(|done| done.is_first) {
            self.first_writes.record(Nanos(done.total()));
        }
        if let Some(service) = &mut self.service {
            service.record_all(&Samples::of(mine().map(Done::completion)));
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
        let mine = || batch.iter().filter(|done| done.direction == direction);
        let bytes_of = |done: &Done| done.lbas * lba_bytes;
        let submissions = Samples::of(mine().map(Done::submission));
        let completions = Samples::of(mine().map(Done::completion));
        stats.operations += completions.moments().count();
        stats.finds += mine().map(|done| done.found).collect::<Finds>();
        let bytes = sum(mine().map(bytes_of));
        stats.bytes = stats.bytes.saturating_add(bytes);
        stats.submission.record_all(&submissions);
        stats.completion.record_all(&completions);
        if submissions.moments().max() == Some(0) {
            stats.total.record_all(&completions);
        } else {
            stats.total.record_all(&Samples::of(mine().map(Done::total)));
        }
        if let Some(confidence) = stats.confidence.first_mut() {
            mine().for_each(|done| confidence.record(done.completed, Nanos(done.total())));
        }
        for intervals in [&mut stats.bandwidth[0], &mut stats.iops[0]] {
            let ends = mine().map(|done| (done.completed, bytes_of(done)));
            intervals.record_all(ends, bytes);
        }
        for done in mine() {
            self.counts[done.kind as usize] += 1;
            self.depths[(done.depth.max(1).ilog2() as usize).min(DEPTHS - 1)] += 1;
        }
        for &completion in completions.all() {
            self.buckets[bucket_of(completion)] += 1;
        }
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
