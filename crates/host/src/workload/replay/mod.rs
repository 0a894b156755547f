//! Traces as work: what is replayed, how, and what became of it.

mod trace;

use std::sync::Arc;

use zonelab_device::Nanos;

use crate::stats::Latency;

pub use trace::{Action, Operation, Trace, TraceFull};

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Speed in percent of that of the trace, at least 1; `None`: as fast as it goes.
    pub speed_percent: Option<u32>,
    /// Leave these out: reads; writes, appends and finishes; trims and resets; flushes.
    pub skips: Skips,
    /// Places are divided by it, at least 1.
    pub scale: u64,
    /// Then rounded down to multiples of it, a power of two, and lengths up to
    /// whole logical blocks; 0: both are taken as they are.
    pub align_bytes: u64,
    /// Blocks into which places are folded, from which on, and how many they are; `None`: places
    /// are as they are. An operation that would end behind them is moved to their end.
    pub wrap: Option<(u64, u64)>,
    /// A write that does not lie at its zone's write pointer goes there.
    /// Otherwise it is issued as it is, and the device refuses it.
    pub moves_writes: bool,
    /// Bytes of a logical block.
    pub lba_bytes: u64,
    /// Blocks of one command at most, at least 1.
    pub max_lbas: u32,
    /// Blocks of one append at most, at least 1.
    pub max_append_lbas: u32,
    /// How many times, at least 1.
    pub passes: u64,
}

/// What is left out of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skips {
    /// Reads.
    pub reads: bool,
    /// Writes, appends and finishes.
    pub writes: bool,
    /// Trims and resets.
    pub trims: bool,
    /// Flushes.
    pub syncs: bool,
}

/// What became of the operations of a trace that were not issued as they are.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Writes that went to the write pointer of their zone.
    pub moved_writes: u64,
    /// Reads of which a part was not issued: nothing is written there.
    pub skipped_reads: u64,
    /// Trims of which a part was not issued: no whole zones.
    pub skipped_trims: u64,
    /// Operations that were issued as several commands, each of which counts.
    pub split: u64,
    /// How long after its time each operation was issued, if times are kept.
    pub lateness: Latency,
}

impl Replayed {
    /// Adds what another job did.
    pub fn merge(&mut self, other: &Self) {
        self.moved_writes += other.moved_writes;
        self.skipped_reads += other.skipped_reads;
        self.skipped_trims += other.skipped_trims;
        self.split += other.split;
        self.lateness.merge(&other.lateness);
    }
}

impl Skips {
    /// Whether operations of a kind are left out.
    #[inline]
    #[must_use]
    pub const fn includes(&self, action: Action) -> bool {
        match action {
            Action::Read => self.reads,
            Action::Write | Action::Append | Action::Finish => self.writes,
            Action::Trim | Action::ResetAll => self.trims,
            Action::Sync => self.syncs,
        }
    }
}

impl Replay {
    /// Where an operation begins and how long it is, in logical blocks; `None`:
    /// it is not made of whole blocks.
    #[inline]
    #[must_use]
    pub fn place(&self, operation: &Operation) -> Option<(u64, u64)> {
        let offset = operation.offset / self.scale.max(1);
        let offset = match self.align_bytes {
            0 => offset,
            align => offset - offset % align,
        };
        let lba = self.lba_bytes;
        if self.align_bytes == 0
            && !(offset.is_multiple_of(lba) && operation.bytes.is_multiple_of(lba))
        {
            return None;
        }
        let (at, lbas) = (offset / lba, operation.bytes.div_ceil(lba));
        match self.wrap {
            Some((first, all)) if all > 0 => {
                let lbas = lbas.min(all);
                Some((first + (at % all).min(all - lbas), lbas))
            }
            _ => Some((at, lbas)),
        }
    }

    /// When an operation is due, from the start on.
    #[inline]
    #[must_use]
    pub fn due(&self, at: Nanos) -> Nanos {
        match self.speed_percent {
            None => Nanos::ZERO,
            Some(percent) => {
                let scaled = u128::from(at.0) * 100 / u128::from(percent.max(1));
                Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}
