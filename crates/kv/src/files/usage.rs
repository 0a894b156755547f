//! What files, invalid data and finished zones take, now and over time.

use zonelab_device::Nanos;

use super::Lifetime;

/// What a file layer uses of its device. Bytes are of data zones unless stated
/// otherwise. `valid + padding + invalid + unusable + free` is their capacity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Bytes of files that are on the device.
    pub valid_bytes: u64,
    /// Bytes behind the ends of files, up to whole blocks.
    pub padding_bytes: u64,
    /// Bytes that were written and belong to no file (any more), in zones that
    /// were not reset yet.
    pub invalid_bytes: u64,
    /// Bytes that cannot be written until a reset: behind the write pointers of
    /// finished zones, and of read-only and offline ones.
    pub unusable_bytes: u64,
    /// Bytes that can be written.
    pub free_bytes: u64,
    /// Zones by state.
    pub zones: ZoneCounts,
    /// Valid bytes, padding included, by [`Lifetime`] of the file.
    pub valid_by_lifetime: [u64; Lifetime::ALL.len()],
    /// Files.
    pub files: usize,
    /// Bytes that were written to data zones, padding included.
    pub written_bytes: u64,
    /// Bytes that were written to the metadata log.
    pub meta_bytes: u64,
    /// Zones that were finished, of data and of metadata.
    pub finishes: u64,
    /// Zones that were reset, of data and of metadata.
    pub resets: u64,
    /// Times that a file was placed by each rule.
    pub placements: Placements,
    /// Space over time.
    pub over_time: SpaceOverTime,
}

impl Usage {
    /// Bytes written in zones that were not reset since.
    #[must_use]
    pub fn occupied_bytes(&self) -> u64 {
        self.valid_bytes + self.padding_bytes + self.invalid_bytes
    }
}

/// Data zones by their state, as the file layer knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// Empty.
    pub empty: u32,
    /// Open: a file is being written to it.
    pub open: u32,
    /// Closed: partly written.
    pub closed: u32,
    /// Full, written or finished.
    pub full: u32,
    /// Of the full ones, finished before they were written to the end.
    pub finished: u32,
    /// Read-only.
    pub read_only: u32,
    /// Offline.
    pub offline: u32,
}

/// How often each rule of placement decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placements {
    /// A zone whose data lives longer.
    pub matched: u64,
    /// A new zone.
    pub new_zone: u64,
    /// Another zone with room, since none was better.
    pub relaxed: u64,
    /// The zone of a writer that rests, since nothing else was left.
    pub taken_over: u64,
    /// Waits for another writer.
    pub waits: u64,
}

/// Space integrated over time, exactly: every change counts from when it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpaceOverTime {
    /// From format or mount to now.
    pub elapsed_ns: Nanos,
    /// Invalid bytes, times nanoseconds.
    pub invalid_byte_ns: u128,
    /// Valid bytes, padding included, times nanoseconds.
    pub valid_byte_ns: u128,
    /// Bytes behind the write pointers of finished zones, times nanoseconds.
    pub unusable_byte_ns: u128,
}

impl SpaceOverTime {
    /// Mean of the bytes that were invalid: the space amplification of the
    /// `SilentZNS` paper (section 5), before it is put in a unit.
    #[must_use]
    pub fn mean_invalid_bytes(&self) -> f64 {
        self.mean(self.invalid_byte_ns)
    }

    /// Mean of the bytes that were valid.
    #[must_use]
    pub fn mean_valid_bytes(&self) -> f64 {
        self.mean(self.valid_byte_ns)
    }

    /// Mean of the bytes lost behind the write pointers of finished zones.
    #[must_use]
    pub fn mean_unusable_bytes(&self) -> f64 {
        self.mean(self.unusable_byte_ns)
    }

    /// Space amplification as it is usually meant: bytes that zones hold by
    /// bytes that are valid, both as means over time. 1 if nothing was written.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        if self.valid_byte_ns == 0 {
            return 1.0;
        }
        1.0 + self.invalid_byte_ns as f64 / self.valid_byte_ns as f64
    }

    fn mean(&self, byte_ns: u128) -> f64 {
        if self.elapsed_ns == Nanos::ZERO {
            return 0.0;
        }
        byte_ns as f64 / self.elapsed_ns.0 as f64
    }

    /// So much was there for `span`.
    pub(super) fn add(&mut self, span: Nanos, valid: u64, invalid: u64, unusable: u64) {
        let times = |bytes: u64| u128::from(bytes) * u128::from(span.0);
        self.elapsed_ns += span;
        self.valid_byte_ns += times(valid);
        self.invalid_byte_ns += times(invalid);
        self.unusable_byte_ns += times(unusable);
    }
}

/// One data zone, for a picture of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneUse {
    /// Counted from the start of the namespace.
    pub zone: u32,
    /// Its state.
    pub state: ZoneUseState,
    /// Bytes below the write pointer.
    pub written_bytes: u64,
    /// Of them, bytes of files, in whole blocks.
    pub valid_bytes: u64,
    /// Of the first file in it; means nothing in an empty zone.
    pub lifetime: Lifetime,
}

/// State of a data zone, as the file layer knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneUseState {
    /// Empty.
    #[default]
    Empty,
    /// A file is being written to it, or was until now.
    Open,
    /// Partly written.
    Closed,
    /// Full.
    Full,
    /// Full before it was written to the end.
    Finished,
    /// Read-only.
    ReadOnly,
    /// Offline.
    Offline,
}

impl ZoneUseState {
    /// Whether it counts as active on the device.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Open | Self::Closed)
    }

    /// Whether its space comes back by a reset only, if ever.
    pub(super) fn loses_its_rest(self) -> bool {
        matches!(self, Self::Finished | Self::ReadOnly | Self::Offline)
    }
}
