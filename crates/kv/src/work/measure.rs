//! What clients measure.

use zonelab_device::{Found, Nanos};
use zonelab_host::stats::{GroupStats, Intervals, OpStats, Outcome};
use zonelab_nvme::Status;

use super::Kind;

/// Operations by kind, and how long they took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By [`Kind`]; a distribution is large, and most workloads do few kinds.
    kinds: [Option<Box<OpStats>>; Kind::ALL.len()],
    from: Nanos,
    /// Time that clients ran, without the present stretch.
    elapsed: Nanos,
    /// Since when clients run, if they do.
    running: Option<Nanos>,
    /// When they last ended.
    until: Nanos,
    /// Queries that found nothing.
    pub missing: u64,
    /// Values that were not those of their keys: 0, or something is broken.
    pub wrong: u64,
}

impl Measured {
    /// Nothing yet; throughput over time counts from `from` on.
    #[must_use]
    pub const fn new(from: Nanos) -> Self {
        Self {
            kinds: [const { None }; Kind::ALL.len()],
            from,
            elapsed: Nanos::ZERO,
            running: None,
            until: from,
            missing: 0,
            wrong: 0,
        }
    }

    /// Clients run from now on.
    pub(super) fn resume(&mut self, at: Nanos) {
        if self.kinds.iter().all(Option::is_none) {
            self.from = at;
        }
        self.running = Some(at);
    }

    /// No client runs any more.
    pub(super) fn pause(&mut self, at: Nanos) {
        if let Some(since) = self.running.take() {
            self.elapsed += at.saturating_sub(since);
            self.until = at;
        }
    }

    /// Nothing is measured any more.
    pub(super) fn finish(&mut self, at: Nanos) {
        self.pause(at);
        for kind in self.kinds.iter_mut().flatten() {
            kind.intervals.finish(at);
        }
    }

    #[inline]
    pub(super) fn record(&mut self, kind: Kind, at: Nanos, latency: Nanos, bytes: u64) {
        let from = self.from;
        self.kinds[kind as usize]
            .get_or_insert_with(|| Box::new(OpStats::new(from, Intervals::DEFAULT_LENGTH)))
            .record(&Outcome {
                at,
                latency,
                bytes,
                link_bytes: bytes,
                found: Found::Unknown,
                status: Status::SUCCESS,
            });
    }

    /// Operations of `kind`; `None` if there were none.
    #[must_use]
    pub fn get(&self, kind: Kind) -> Option<&OpStats> {
        self.kinds[kind as usize].as_deref()
    }

    /// All operations, kind by kind.
    pub fn all(&self) -> impl Iterator<Item = (Kind, &OpStats)> {
        Kind::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, self.get(kind)?)))
    }

    /// Operations of these kinds together; `None` if there were none.
    #[must_use]
    pub fn group(&self, kinds: &[Kind]) -> Option<GroupStats> {
        let parts = kinds.iter().filter_map(|kind| self.get(*kind));
        GroupStats::together(parts.map(|part| (part, self.elapsed)))
    }

    /// Operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.all().map(|(_, stats)| stats.latency.count()).sum()
    }

    /// When clients began first, and when they last ended.
    #[must_use]
    pub const fn span(&self) -> (Nanos, Nanos) {
        (self.from, self.until)
    }

    /// Time that clients ran, all repetitions together.
    #[must_use]
    pub const fn elapsed(&self) -> Nanos {
        self.elapsed
    }
}
