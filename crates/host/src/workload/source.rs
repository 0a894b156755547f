//! Where a job's operations come from: address patterns, without time.

use std::ops::Range;

use zonelab_device::{Lba, Nanos, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Fill, ReadWork, Work, WriteWork};
use crate::rng::Rng;
use crate::stats::OpKind;

/// An operation to issue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) op: Op,
    pub(crate) kind: OpKind,
    /// What counts towards rates and limits: for a finish what it fills, for
    /// a reset the zone size.
    pub(crate) lbas: u64,
    /// Which of the source's streams it belongs to.
    pub(crate) stream: u32,
    pub(crate) role: Role,
}

/// What an operation is to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// What the job is there for: measured and limited.
    Measured,
    /// The same, and the first write to its zone.
    FirstOfZone,
    /// Preparation: neither measured nor limited.
    Preparation,
}

/// What a source has to offer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// An operation. It counts as issued.
    Issue(Next),
    /// Nothing before something in flight completes.
    Wait,
    /// Nothing before so much time has passed.
    Pause(Nanos),
    /// Nothing ever again.
    Exhausted,
}

/// A source of operations.
pub(crate) enum Source {
    Write(Writes),
    Read(Reads),
    Mixed {
        reads: Reads,
        writes: Writes,
        read_percent: u32,
    },
    Manage(Manage),
}

impl Source {
    pub(crate) fn new(work: &Work, zoned: ZonedInfo, rng: &mut Rng) -> Self {
        match work {
            Work::Write(write) => Self::Write(Writes::new(write, zoned)),
            Work::Read(read) => Self::Read(Reads::new(read, zoned)),
            Work::Mixed {
                read,
                write,
                read_percent,
            } => Self::Mixed {
                reads: Reads::new(read, zoned),
                writes: Writes::new(write, zoned),
                read_percent: *read_percent,
            },
            Work::Finish { zones, fill } => Self::Manage(Manage::new(
                zones.clone().collect(),
                *fill,
                OpKind::Finish,
                zoned,
            )),
            Work::Reset {
                zones,
                shuffled,
                fill,
            } => {
                let mut order: Vec<u32> = zones.clone().collect();
                if *shuffled {
                    rng.shuffle(&mut order);
                }
                Self::Manage(Manage::new(order, *fill, OpKind::Reset, zoned))
            }
            Work::Open { zones, fill } => Self::Manage(Manage::new(
                zones.clone().collect(),
                *fill,
                OpKind::Open,
                zoned,
            )),
            Work::Close { zones, fill } => Self::Manage(Manage::new(
                zones.clone().collect(),
                *fill,
                OpKind::Close,
                zoned,
            )),
        }
    }

    #[inline]
    pub(crate) fn offer(&mut self, rng: &mut Rng) -> Offer {
        match self {
            Self::Write(writes) => writes.offer(rng),
            Self::Read(reads) => Offer::Issue(reads.next(rng)),
            Self::Mixed {
                reads,
                writes,
                read_percent,
            } => {
                if rng.below(100) < u64::from(*read_percent) {
                    return Offer::Issue(reads.next(rng));
                }
                writes.offer(rng)
            }
            Self::Manage(manage) => manage.offer(),
        }
    }

    /// Whether the job's rate bounds when the next offer may be taken. It does
    /// not in the middle of preparing a zone, nor when nothing is left.
    #[inline]
    pub(crate) fn next_is_limited(&self) -> bool {
        match self {
            Self::Manage(manage) => manage.is_between_zones(),
            _ => true,
        }
    }

    #[inline]
    pub(crate) fn completed(&mut self, kind: OpKind, stream: u32) {
        match self {
            Self::Write(writes) | Self::Mixed { writes, .. } if kind != OpKind::Read => {
                writes.completed(kind, stream);
            }
            Self::Manage(manage) => manage.in_flight = false,
            _ => {}
        }
    }
}

/// One zone that is being written.
#[derive(Clone, Debug)]
struct Stream {
    zone: u32,
    /// Blocks issued so far.
    offset: u64,
    in_flight: u32,
    state: StreamState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    /// The zone must be reset before it can be written.
    NeedsReset,
    /// The zone is to be opened explicitly before it is written.
    NeedsOpen,
    /// One of the two is under way.
    Preparing,
    Writing,
    /// No zone is left for it.
    Retired,
}

/// Writes through a range of zones.
pub(crate) struct Writes {
    work: WriteWork,
    zoned: ZonedInfo,
    streams: Vec<Stream>,
    next_zone: u32,
    pass: u64,
}

impl Writes {
    fn new(work: &WriteWork, zoned: ZonedInfo) -> Self {
        let mut writes = Self {
            work: work.clone(),
            zoned,
            streams: Vec::new(),
            next_zone: work.zones.start,
            pass: 0,
        };
        let open = work.open_zones.clamp(1, work.zones.len().max(1) as u32);
        for _ in 0..open {
            let stream = Stream {
                zone: 0,
                offset: 0,
                in_flight: 0,
                state: StreamState::Retired,
            };
            writes.streams.push(stream);
        }
        for index in 0..open as usize {
            writes.take_zone(index);
        }
        writes
    }

    /// Gives a stream its next zone.
    fn take_zone(&mut self, index: usize) {
        if self.next_zone == self.work.zones.end && self.work.repeat {
            self.next_zone = self.work.zones.start;
            self.pass += 1;
        }
        let stream = &mut self.streams[index];
        if self.next_zone >= self.work.zones.end {
            stream.state = StreamState::Retired;
            return;
        }
        stream.zone = self.next_zone;
        stream.offset = 0;
        self.next_zone += 1;
        stream.state = if self.pass > 0 || self.work.reset_first {
            StreamState::NeedsReset
        } else {
            self.work.after_reset()
        };
    }

    #[inline]
    fn offer(&mut self, rng: &mut Rng) -> Offer {
        let count = self.streams.len();
        let first = if count == 1 {
            0
        } else {
            rng.below(count as u64) as usize
        };
        let mut retired = 0;
        for step in 0..count {
            let index = if first + step < count {
                first + step
            } else {
                first + step - count
            };
            if self.streams[index].offset == self.zoned.zone_capacity_lbas
                && self.streams[index].in_flight == 0
            {
                self.take_zone(index);
            }
            let stream = &mut self.streams[index];
            match stream.state {
                StreamState::Writing if stream.offset < self.zoned.zone_capacity_lbas => {
                    return Offer::Issue(self.write(index));
                }
                StreamState::NeedsReset => {
                    return Offer::Issue(self.prepare(index, OpKind::Reset));
                }
                StreamState::NeedsOpen => {
                    return Offer::Issue(self.prepare(index, OpKind::Open));
                }
                StreamState::Retired => retired += 1,
                StreamState::Writing | StreamState::Preparing => {}
            }
        }
        if retired == count {
            Offer::Exhausted
        } else {
            Offer::Wait
        }
    }

    #[inline]
    fn write(&mut self, index: usize) -> Next {
        let stream = &mut self.streams[index];
        let left = self.zoned.zone_capacity_lbas - stream.offset;
        let lbas = left.min(u64::from(self.work.block_lbas));
        let zslba = Lba(u64::from(stream.zone) * self.zoned.zone_size_lbas);
        let role = if stream.offset == 0 {
            Role::FirstOfZone
        } else {
            Role::Measured
        };
        let slba = Lba(zslba.0 + stream.offset);
        stream.offset += lbas;
        stream.in_flight += 1;
        // Fits: at most `block_lbas`.
        let nlb = lbas as u32;
        let (op, kind) = if self.work.append {
            (Op::Append { zslba, nlb }, OpKind::Append)
        } else {
            (Op::Write { slba, nlb }, OpKind::Write)
        };
        Next {
            op,
            kind,
            lbas,
            stream: index as u32,
            role,
        }
    }

    /// Resets or opens the zone of a stream.
    fn prepare(&mut self, index: usize, kind: OpKind) -> Next {
        let stream = &mut self.streams[index];
        stream.state = StreamState::Preparing;
        stream.in_flight += 1;
        let slba = Lba(u64::from(stream.zone) * self.zoned.zone_size_lbas);
        Next {
            op: send(slba, kind),
            kind,
            lbas: 0,
            stream: index as u32,
            role: Role::Preparation,
        }
    }

    #[inline]
    fn completed(&mut self, kind: OpKind, stream: u32) {
        let stream = &mut self.streams[stream as usize];
        stream.in_flight -= 1;
        match kind {
            OpKind::Reset => stream.state = self.work.after_reset(),
            OpKind::Open => stream.state = StreamState::Writing,
            _ => {}
        }
    }
}

impl WriteWork {
    /// What becomes of a zone that is empty.
    fn after_reset(&self) -> StreamState {
        if self.open_first {
            StreamState::NeedsOpen
        } else {
            StreamState::Writing
        }
    }
}

/// The command of a kind that changes the state of the zone at `slba`.
fn send(slba: Lba, kind: OpKind) -> Op {
    let action = match kind {
        OpKind::Finish => ZoneSendAction::FINISH,
        OpKind::Open => ZoneSendAction::OPEN,
        OpKind::Close => ZoneSendAction::CLOSE,
        OpKind::Reset | OpKind::Read | OpKind::Write | OpKind::Append => ZoneSendAction::RESET,
    };
    Op::ZoneSend {
        slba,
        action,
        select_all: false,
    }
}

/// Reads over a range of zones.
pub(crate) struct Reads {
    work: ReadWork,
    zone_size_lbas: u64,
    /// Whole blocks of a zone.
    blocks_per_zone: u64,
    blocks: u64,
    at: u64,
}

impl Reads {
    fn new(work: &ReadWork, zoned: ZonedInfo) -> Self {
        let blocks_per_zone = (zoned.zone_capacity_lbas / u64::from(work.block_lbas)).max(1);
        Self {
            zone_size_lbas: zoned.zone_size_lbas,
            blocks_per_zone,
            blocks: blocks_per_zone * work.zones.len() as u64,
            at: 0,
            work: work.clone(),
        }
    }

    #[inline]
    fn next(&mut self, rng: &mut Rng) -> Next {
        let block = if self.work.random {
            rng.below(self.blocks)
        } else {
            let block = self.at;
            self.at = if block + 1 == self.blocks {
                0
            } else {
                block + 1
            };
            block
        };
        let zone = u64::from(self.work.zones.start) + block / self.blocks_per_zone;
        let offset = block % self.blocks_per_zone * u64::from(self.work.block_lbas);
        let slba = Lba(zone * self.zone_size_lbas + offset);
        let nlb = self.work.block_lbas;
        Next {
            op: Op::Read { slba, nlb },
            kind: OpKind::Read,
            lbas: u64::from(nlb),
            stream: 0,
            role: Role::Measured,
        }
    }
}

/// Finishes, resets, opens or closes, one zone at a time, each after
/// preparing it.
pub(crate) struct Manage {
    zones: Vec<u32>,
    fill: Fill,
    kind: OpKind,
    zoned: ZonedInfo,
    /// Position in `zones`.
    at: usize,
    /// What comes next for that zone.
    stage: Stage,
    /// Blocks of the current zone written so far.
    written: u64,
    in_flight: bool,
}

/// What is done to a zone, in this order; what is not asked for is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Fill,
    Finish,
    Settle,
    Measure,
    /// Give back what an opened or closed zone holds.
    Clear,
}

impl Manage {
    fn new(zones: Vec<u32>, fill: Fill, kind: OpKind, zoned: ZonedInfo) -> Self {
        let lbas = fill.lbas.min(zoned.zone_capacity_lbas);
        Self {
            zones,
            fill: Fill { lbas, ..fill },
            kind,
            zoned,
            at: 0,
            stage: Stage::Open,
            written: 0,
            in_flight: false,
        }
    }

    /// Whether the next operation is the first for a zone.
    fn is_between_zones(&self) -> bool {
        self.stage == Stage::Open && self.at < self.zones.len()
    }

    fn offer(&mut self) -> Offer {
        if self.in_flight {
            return Offer::Wait;
        }
        let Some(&zone) = self.zones.get(self.at) else {
            return Offer::Exhausted;
        };
        let zslba = Lba(u64::from(zone) * self.zoned.zone_size_lbas);
        loop {
            match self.stage {
                Stage::Open => {
                    self.stage = Stage::Fill;
                    self.written = 0;
                    if self.fill.open_first {
                        return self.issue(send(zslba, OpKind::Open), OpKind::Open);
                    }
                }
                Stage::Fill if self.written < self.fill.lbas => return self.write(zslba),
                Stage::Fill => self.stage = Stage::Finish,
                Stage::Finish => {
                    self.stage = Stage::Settle;
                    if self.fill.finish_first {
                        return self.issue(send(zslba, OpKind::Finish), OpKind::Finish);
                    }
                }
                Stage::Settle => {
                    self.stage = Stage::Measure;
                    if self.fill.settle > Nanos::ZERO {
                        return Offer::Pause(self.fill.settle);
                    }
                }
                Stage::Measure => return self.measure(zslba),
                Stage::Clear => {
                    self.next_zone();
                    return self.issue(send(zslba, OpKind::Reset), OpKind::Reset);
                }
            }
        }
    }

    fn next_zone(&mut self) {
        self.at += 1;
        self.stage = Stage::Open;
    }

    /// An operation that prepares the zone or clears it.
    fn issue(&mut self, op: Op, kind: OpKind) -> Offer {
        self.in_flight = true;
        Offer::Issue(Next {
            op,
            kind,
            lbas: 0,
            stream: 0,
            role: Role::Preparation,
        })
    }

    fn write(&mut self, zslba: Lba) -> Offer {
        let lbas = u64::from(self.fill.block_lbas.max(1)).min(self.fill.lbas - self.written);
        let op = Op::Write {
            slba: Lba(zslba.0 + self.written),
            // Fits: at most `block_lbas`.
            nlb: lbas as u32,
        };
        self.written += lbas;
        self.issue(op, OpKind::Write)
    }

    fn measure(&mut self, zslba: Lba) -> Offer {
        let lbas = match self.kind {
            OpKind::Finish => self.zoned.zone_capacity_lbas - self.fill.lbas,
            OpKind::Reset => self.zoned.zone_size_lbas,
            _ => 0,
        };
        if matches!(self.kind, OpKind::Open | OpKind::Close) {
            self.stage = Stage::Clear;
        } else {
            self.next_zone();
        }
        self.in_flight = true;
        Offer::Issue(Next {
            op: send(zslba, self.kind),
            kind: self.kind,
            lbas,
            stream: 0,
            role: Role::Measured,
        })
    }
}

/// The part of `zones` that thread `index` of `threads` works on: equal, disjoint slices.
#[must_use]
pub fn slice_of(zones: &Range<u32>, index: u32, threads: u32) -> Range<u32> {
    let share = (zones.end - zones.start) / threads.max(1);
    let start = zones.start + share * index;
    start..start + share
}
