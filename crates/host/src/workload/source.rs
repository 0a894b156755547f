//! Where a job's operations come from: address patterns, without time.

use std::ops::Range;

use zonelab_device::{Completion, Lba, Nanos, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::directed::shared::{SharedNext, SharedWrites};
use super::manage::{Manage, Soft};
use super::zone_table::SharedZones;
use super::{Fill, JobSpec, ReadWork, Work, WriteWork};
use crate::rng::Rng;
use crate::softfinish::{Progress, asleep};
use crate::stats::OpKind;

/// An operation to issue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) op: Op,
    pub(crate) kind: OpKind,
    /// What counts towards rates and limits: for a finish what it fills (for
    /// its parts too), for a reset the zone size.
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
    /// The first of several commands that are measured and limited as one.
    FirstPart,
    /// Another one of them.
    Part,
}

impl Role {
    /// Whether an operation of the job begins with it.
    #[inline]
    pub(crate) const fn begins(self) -> bool {
        matches!(self, Self::Measured | Self::FirstOfZone | Self::FirstPart)
    }
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
    Shared {
        writes: Box<SharedWrites>,
        block_lbas: u32,
    },
    Read(Reads),
    Mixed {
        reads: Reads,
        writes: Writes,
        read_percent: u32,
    },
    Manage(Manage),
}

impl Source {
    /// The operations of `spec` on a namespace of `zoned`, with logical blocks
    /// of `lba_bytes`.
    pub(crate) fn new(spec: &JobSpec, zoned: ZonedInfo, lba_bytes: u32, rng: &mut Rng) -> Self {
        let slack = spec.sleep_slack;
        let manage = |zones: Vec<u32>, fill: &Fill, kind| {
            let settle = asleep(fill.settle, slack);
            Manage::new(zones, Fill { settle, ..*fill }, kind, zoned)
        };
        match &spec.work {
            Work::Write(write) => Self::Write(Writes::new(write, zoned, lba_bytes)),
            Work::Read(read) => Self::Read(Reads::new(read, zoned)),
            Work::Mixed {
                read,
                write,
                read_percent,
            } => Self::Mixed {
                reads: Reads::new(read, zoned),
                writes: Writes::new(write, zoned, lba_bytes),
                read_percent: *read_percent,
            },
            Work::Finish { zones, fill, soft } => {
                let soft =
                    soft.map(|how| Soft::new(how.oversleeping(slack), spec.namespace, lba_bytes));
                let manage = manage(zones.clone().collect(), fill, OpKind::Finish);
                Self::Manage(manage.softly(soft))
            }
            Work::Reset {
                zones,
                shuffled,
                fill,
            } => {
                let mut order: Vec<u32> = zones.clone().collect();
                if *shuffled {
                    rng.shuffle(&mut order);
                }
                Self::Manage(manage(order, fill, OpKind::Reset))
            }
            Work::Open { zones, fill } => {
                Self::Manage(manage(zones.clone().collect(), fill, OpKind::Open))
            }
            Work::Close { zones, fill } => {
                Self::Manage(manage(zones.clone().collect(), fill, OpKind::Close))
            }
        }
    }

    /// Writes of thread `id` of those that share zones and what they know of
    /// them; any other work stays as it is.
    pub(crate) fn share(&mut self, work: &Work, zoned: ZonedInfo, table: SharedZones, id: u32) {
        if let Work::Write(work) = work {
            *self = Self::Shared {
                writes: Box::new(SharedWrites::new(work, zoned, table, id)),
                block_lbas: work.block_lbas,
            };
        }
    }

    /// The job has come to its end.
    pub(crate) fn ended(&mut self) {
        if let Self::Shared { writes, .. } = self {
            writes.ended();
        }
    }

    #[inline]
    pub(crate) fn offer(&mut self, now: Nanos, rng: &mut Rng) -> Offer {
        match self {
            Self::Write(writes) => writes.offer(now, rng),
            Self::Shared { writes, block_lbas } => shared(writes.next(*block_lbas, rng)),
            Self::Read(reads) => Offer::Issue(reads.next(rng)),
            Self::Mixed {
                reads,
                writes,
                read_percent,
            } => {
                if rng.below(100) < u64::from(*read_percent) {
                    return Offer::Issue(reads.next(rng));
                }
                writes.offer(now, rng)
            }
            Self::Manage(manage) => manage.offer(now),
        }
    }

    /// Whether the job's rate bounds when the next offer may be taken. It does
    /// not in the middle of preparing a zone, nor when nothing is left.
    #[inline]
    pub(crate) fn next_is_limited(&self) -> bool {
        match self {
            Self::Manage(manage) => manage.is_between_zones(),
            Self::Write(writes) | Self::Mixed { writes, .. } => !writes.is_under_way(),
            _ => true,
        }
    }

    /// Whether an operation of several commands has begun and not ended.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        match self {
            Self::Manage(manage) => manage.is_under_way(),
            Self::Write(writes) | Self::Mixed { writes, .. } => writes.is_under_way(),
            _ => false,
        }
    }

    /// A part of an operation has completed: what the operation came to, if it
    /// has ended with it.
    pub(crate) fn part_completed(
        &mut self,
        stream: u32,
        completion: &Completion,
    ) -> Option<Progress> {
        match self {
            Self::Manage(manage) => manage.part_completed(completion),
            Self::Write(writes) | Self::Mixed { writes, .. } => {
                writes.part_completed(stream, completion)
            }
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn completed(&mut self, kind: OpKind, stream: u32, lbas: u64) {
        match self {
            Self::Shared { writes, .. } if kind == OpKind::Reset => writes.reset(stream),
            Self::Shared { writes, .. } if kind == OpKind::Finish => writes.finished(stream),
            Self::Shared { writes, .. } => writes.written(stream, lbas),
            Self::Write(writes) | Self::Mixed { writes, .. } if kind != OpKind::Read => {
                writes.completed(kind, stream);
            }
            Self::Manage(manage) => manage.completed(),
            _ => {}
        }
    }
}

/// What a thread that shares its zones does; its streams are the zones.
#[inline]
fn shared(next: SharedNext) -> Offer {
    let (op, lbas, zone, kind, role) = match next {
        SharedNext::Write(op, lbas, zone) => {
            let kind = match op {
                Op::Append { .. } => OpKind::Append,
                _ => OpKind::Write,
            };
            (op, lbas, zone, kind, Role::Measured)
        }
        SharedNext::Manage(op, zone) => {
            let kind = OpKind::of(&op).unwrap_or(OpKind::Reset);
            (op, 0, zone, kind, Role::Preparation)
        }
        SharedNext::Wait => return Offer::Wait,
        SharedNext::Exhausted => return Offer::Exhausted,
    };
    Offer::Issue(Next {
        op,
        kind,
        lbas,
        stream: zone,
        role,
    })
}

/// One zone that is being written.
#[derive(Clone, Debug)]
struct Stream {
    zone: u32,
    /// Blocks issued so far.
    offset: u64,
    in_flight: u32,
    state: StreamState,
    /// A write of several commands that has not ended.
    whole: Option<Whole>,
}

/// A write that is sent in several commands.
#[derive(Clone, Copy, Debug)]
struct Whole {
    begun: Nanos,
    lbas: u64,
    /// Blocks that have not been sent.
    left: u64,
    commands: u64,
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
    lba_bytes: u32,
    zoned: ZonedInfo,
    streams: Vec<Stream>,
    next_zone: u32,
    pass: u64,
}

impl Writes {
    fn new(work: &WriteWork, zoned: ZonedInfo, lba_bytes: u32) -> Self {
        let mut writes = Self {
            work: work.clone(),
            lba_bytes,
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
                whole: None,
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
        let is_every = self.work.repeat && self.streams.len() == self.work.zones.len();
        let stream = &mut self.streams[index];
        if is_every && self.pass > 0 {
            stream.offset = 0;
            stream.state = StreamState::NeedsReset;
            return;
        }
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
    fn offer(&mut self, now: Nanos, rng: &mut Rng) -> Offer {
        if self.work.command_lbas.is_some()
            && let Some(index) = self
                .streams
                .iter()
                .position(|stream| stream.whole.is_some())
        {
            // One after another, and nothing else before it has ended.
            return match self.streams[index].in_flight {
                0 => Offer::Issue(self.part(index, now, Role::Part)),
                _ => Offer::Wait,
            };
        }
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
                    return Offer::Issue(self.write(index, now));
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

    fn is_under_way(&self) -> bool {
        self.work.command_lbas.is_some() && self.streams.iter().any(|stream| stream.whole.is_some())
    }

    /// The next command of a write that is sent in several.
    fn part(&mut self, index: usize, now: Nanos, role: Role) -> Next {
        let stream = &mut self.streams[index];
        let most = self.work.command_lbas.unwrap_or(u32::MAX);
        let left =
            (self.zoned.zone_capacity_lbas - stream.offset).min(u64::from(self.work.block_lbas));
        let whole = stream.whole.get_or_insert(Whole {
            begun: now,
            lbas: left,
            left,
            commands: 0,
        });
        // Fits: at most `command_lbas`.
        let nlb = whole.left.min(u64::from(most)) as u32;
        let zslba = Lba(u64::from(stream.zone) * self.zoned.zone_size_lbas);
        let slba = Lba(zslba.0 + stream.offset);
        whole.left -= u64::from(nlb);
        whole.commands += 1;
        stream.offset += u64::from(nlb);
        stream.in_flight += 1;
        let (op, kind) = if self.work.append {
            (Op::Append { zslba, nlb }, OpKind::Append)
        } else {
            (Op::Write { slba, nlb }, OpKind::Write)
        };
        Next {
            op,
            kind,
            lbas: whole.lbas,
            stream: index as u32,
            role,
        }
    }

    /// A command of a write has completed: what the write came to, if it has
    /// ended with it.
    fn part_completed(&mut self, stream: u32, completion: &Completion) -> Option<Progress> {
        let stream = &mut self.streams[stream as usize];
        stream.in_flight -= 1;
        let is_over = |whole: &mut Whole| whole.left == 0 || !completion.status.is_success();
        let whole = stream.whole.take_if(is_over)?;
        let lba_bytes = u64::from(self.lba_bytes);
        Some(Progress {
            writes: whole.commands,
            link_bytes: (whole.lbas - whole.left) * lba_bytes,
            time: completion.at.saturating_sub(whole.begun),
        })
    }

    #[inline]
    fn write(&mut self, index: usize, now: Nanos) -> Next {
        let stream = &mut self.streams[index];
        let left = self.zoned.zone_capacity_lbas - stream.offset;
        let lbas = left.min(u64::from(self.work.block_lbas));
        if self
            .work
            .command_lbas
            .is_some_and(|most| lbas > u64::from(most))
        {
            return self.part(index, now, Role::FirstPart);
        }
        let stream = &mut self.streams[index];
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
pub(super) fn send(slba: Lba, kind: OpKind) -> Op {
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

/// The part of `zones` that thread `index` of `threads` works on: equal, disjoint slices.
#[must_use]
pub fn slice_of(zones: &Range<u32>, index: u32, threads: u32) -> Range<u32> {
    let share = (zones.end - zones.start) / threads.max(1);
    let start = zones.start + share * index;
    start..start + share
}
