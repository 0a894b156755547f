//! Work in directions: read, write and trim, each with its own sizes and rates.
//!
//! This is the load that fio's job files describe, without their syntax. It
//! differs from planned streams ([`super::WriteWork`], [`super::ReadWork`]) in
//! that
//!
//! * jobs share write pointers and limits of open zones
//!   ([`super::zone_table`]), so that several may write to the same zones;
//! * reads are of what has been written;
//! * a job can read, write and trim in one, with block sizes drawn from a range
//!   and positions from a distribution.

use std::num::NonZeroU64;
use std::ops::Range;

use zonelab_device::Nanos;

use super::blocks::BlockRange;
use super::distribution::Distribution;
use super::placement::Placements;
use super::replay::Replay;
use crate::rate::Limit;
use crate::rng::Rng;
use crate::softfinish::SoftFinish;
use crate::stats::OpKind;

/// What an operation is to whoever reads results: trims are zone resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes, appends, and finishes in the place of writes.
    Write,
    /// Resets of zones.
    Trim,
}

impl Direction {
    /// All of them, in the order of fio's numbers 0, 1, 2.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// That of an operation of a planned stream.
    #[inline]
    pub(super) const fn of(kind: OpKind) -> Self {
        match kind {
            OpKind::Read => Self::Read,
            OpKind::Reset => Self::Trim,
            OpKind::Write | OpKind::Append | OpKind::Finish | OpKind::Open | OpKind::Close => {
                Self::Write
            }
        }
    }

    /// Name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// What a job does in directions.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectedWork {
    /// The zones it works on; not empty, unless it works on `blocks`.
    pub zones: Range<u32>,
    /// By [`Direction`]: how, if it works in that direction at all. Reads and
    /// writes may be combined, and writes and trims: what is written has been
    /// trimmed before.
    pub flows: [Option<Flow>; 3],
    /// Of a job that reads and writes, reads in a hundred operations.
    pub read_percent: u32,
    /// Where operations go.
    pub pattern: Pattern,
    /// What its writes are.
    pub style: WriteStyle,
    /// Reads go beyond write pointers too.
    pub reads_beyond_write_pointer: bool,
    /// Zones written in part that this job may have opened at a time.
    pub open_limit: Option<u32>,
    /// Zones are reset to be written again although they are not full.
    pub early_reset: Option<EarlyReset>,
    /// At the end of its zones, the job starts over. Writes in order that had to leave
    /// out the rest of a zone do so in any case, as in fio: the end of such a pass is
    /// its size, which its [`Stop`](super::Stop) must bound.
    pub repeats: bool,
    /// Its operations are those of a trace. Of the rest, only `zones`,
    /// `reads_beyond_write_pointer` and `open_limit` matter then; `flows` says
    /// which directions there are.
    pub replay: Option<Replay>,
    /// It works on these blocks instead of zones. Of the rest, only `flows`,
    /// `read_percent`, `pattern` and `hole_lbas` matter then.
    pub blocks: Option<BlockRange>,
    /// Operations in order leave out so many blocks before each but the first.
    pub hole_lbas: u64,
    /// Where the drive is asked to put what is written.
    pub placements: Placements,
}

impl DirectedWork {
    /// Works in one direction, in order, without a limit: through `zones` once.
    #[must_use]
    pub fn through(zones: Range<u32>, direction: Direction, sizes: Sizes) -> Self {
        let mut flows = [None, None, None];
        flows[direction as usize] = Some(Flow::unlimited(sizes));
        Self {
            zones,
            flows,
            read_percent: 50,
            pattern: Pattern::Sequential,
            style: WriteStyle::Write,
            reads_beyond_write_pointer: false,
            open_limit: None,
            early_reset: None,
            repeats: false,
            replay: None,
            blocks: None,
            hole_lbas: 0,
            placements: Placements::default(),
        }
    }

    /// What the job does in a direction.
    #[inline]
    pub(super) fn flow(&self, direction: Direction) -> Option<&Flow> {
        self.flows[direction as usize].as_ref()
    }

    /// What limits operations that count as `direction`: resets in the place of writes count as
    /// trims.
    pub(super) fn limits(&self, direction: Direction) -> Option<&Flow> {
        let resets = direction == Direction::Trim && self.style == WriteStyle::Reset;
        let writes = || self.flow(Direction::Write).filter(|_| resets);
        self.flow(direction).or_else(writes)
    }

    /// Whether what is written has been trimmed before.
    #[must_use]
    pub const fn trims_first(&self) -> bool {
        let [_, writes, trims] = &self.flows;
        writes.is_some() && trims.is_some()
    }

    /// The kind of operation that is done to zones one by one, and the direction
    /// that it counts as; `None` if the job transfers data.
    pub(super) fn managing(&self) -> Option<(OpKind, Direction)> {
        if self.blocks.is_some() || self.trims_first() {
            return None;
        }
        if self.flow(Direction::Trim).is_some() {
            return Some((OpKind::Reset, Direction::Trim));
        }
        match self.style {
            WriteStyle::Write | WriteStyle::Append => None,
            WriteStyle::Finish | WriteStyle::SoftFinish(_) => {
                Some((OpKind::Finish, Direction::Write))
            }
            WriteStyle::Reset => Some((OpKind::Reset, Direction::Trim)),
        }
    }
}

/// One direction of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sizes of operations. Trims ignore them: they are whole zones.
    pub sizes: Sizes,
    /// Limit in bytes per second.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Limit in operations per second.
    pub ops_per_second: Option<NonZeroU64>,
    /// Operations arrive as a Poisson process at that limit, instead of evenly.
    pub poisson: bool,
}

impl Flow {
    /// Operations of these sizes, as fast as they go.
    #[must_use]
    pub const fn unlimited(sizes: Sizes) -> Self {
        Self {
            sizes,
            bytes_per_second: None,
            ops_per_second: None,
            poisson: false,
        }
    }

    /// The mean time between operations at the limit, on logical blocks of `lba_bytes`; `None`
    /// without a limit.
    #[must_use]
    pub fn period(&self, lba_bytes: u64) -> Option<Nanos> {
        let (min, max) = (u64::from(self.sizes.min), u64::from(self.sizes.max));
        let mean_bytes = min.midpoint(max).saturating_mul(lba_bytes);
        let by_bytes = self.bytes_per_second.map(Limit::bytes_per_second);
        let by_ops = self.ops_per_second.map(Limit::ops_per_second);
        let limits = [by_bytes, by_ops].into_iter().flatten();
        limits.map(|limit| limit.period(mean_bytes)).max()
    }
}

/// Sizes of operations in logical blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest, at least 1. All are multiples of it; only the last write
    /// of a zone may be shorter.
    pub min: u32,
    /// The largest.
    pub max: u32,
    /// Sizes and their shares in percent, instead of all multiples alike.
    pub split: Vec<(u32, u32)>,
}

impl Sizes {
    /// One size.
    #[must_use]
    pub const fn fixed(lbas: u32) -> Self {
        Self {
            min: lbas,
            max: lbas,
            split: Vec::new(),
        }
    }

    /// The size of the next operation.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        if self.min == self.max {
            return self.min;
        }
        if self.split.is_empty() {
            let steps = u64::from((self.max - self.min) / self.min);
            return self.min + self.min * rng.below(steps + 1) as u32;
        }
        let mut left = rng.below(100) as u32;
        for &(lbas, percent) in &self.split {
            if left < percent {
                return lbas;
            }
            left -= percent;
        }
        self.max
    }
}

/// Where operations go.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// One zone after another, from its start or its write pointer on.
    Sequential,
    /// Anywhere.
    Random {
        /// How likely each place is.
        distribution: Distribution,
        /// By [`Direction`]: operations in a hundred that are random; the
        /// others continue where the last one ended.
        percent: [u32; 3],
        /// Operations of a direction from one random position on, at least 1.
        in_a_row: u32,
        /// These go to the same place, instead of one behind the other. (A write to
        /// a zone goes to its write pointer: to the same zone.)
        is_identical: bool,
    },
}

/// When zones are reset before they are full: fio's `zone_reset_threshold` and
/// `zone_reset_frequency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyReset {
    /// Blocks that the zones of the job have to hold for a zone to be reset early.
    pub threshold_lbas: u64,
    /// One write in so many resets the zone that it goes to; at least 1.
    pub every_writes: u64,
}

/// What the writes of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStyle {
    /// Writes.
    Write,
    /// Zone appends.
    Append,
    /// For each zone in turn: one write, then Finish Zone. The finish is what
    /// counts, with the bytes that it fills.
    Finish,
    /// The same, by writing the rest of the zone from the host.
    SoftFinish(SoftFinish),
    /// For each zone in turn: one write, then Reset Zone, which counts as the
    /// zone size.
    Reset,
}
