//! Where a job's operations come from.
//!
//! A [`Source`] knows addresses and the order of commands; of time it knows what
//! it is told. It offers a [`Step`] at a time, and hears how each ended.

mod blocks;
mod directed;
mod free_blocks;
mod manage;
mod replay;
mod rewrites;
mod streams;
mod targets;
mod turns;
mod wishes;

use std::ops::Range;
use std::sync::Arc;

use zonelab_device::{Found, Lba, Nanos, Op, ZonedInfo};
use zonelab_nvme::zns::ZoneSendAction;

use super::directed::{DirectedWork, Direction, Sizes, WriteStyle};
use super::pace::Rates;
use super::replay::Replayed;
use super::zone_table::{JobId, ReportedZone, SharedZones, ZoneTable};
use super::{JobSpec, Work, WriteWork};
use crate::rng::Rng;
use crate::stats::OpKind;
use blocks::Blocks;
use directed::Directed;
use manage::Manage;
use replay::Replaying;
use rewrites::Rewrites;
use streams::{Reads, Writes};
use turns::{SharedTurns, Turns};

pub use streams::slice_of;

/// A command to issue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// What it is measured as: of a part of an operation, what the whole is.
    pub(crate) kind: OpKind,
    pub(crate) direction: Direction,
    /// Blocks that count towards rates and limits: for a finish what it fills
    /// (for its parts too), for a reset the zone size.
    pub(crate) lbas: u64,
    /// Which of the source's streams, or which zone, it belongs to.
    pub(crate) stream: u32,
    pub(crate) role: Role,
}

/// What is kept of a command that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// See [`Step`].
    pub(crate) lbas: u64,
    /// Blocks that it moves, of a part of an operation.
    pub(crate) nlb: u32,
    pub(crate) stream: u32,
    pub(crate) kind: OpKind,
    pub(crate) direction: Direction,
    pub(crate) role: Role,
}

impl Step {
    #[inline]
    pub(crate) const fn sent(&self) -> Sent {
        Sent {
            lbas: self.lbas,
            nlb: match self.role {
                Role::FirstPart | Role::Part => self.op.nlb(),
                _ => 0,
            },
            stream: self.stream,
            kind: self.kind,
            direction: self.direction,
            role: self.role,
        }
    }
}

/// What a command is to its job.
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
    /// A flush between writes: measured by itself.
    Sync,
    /// A command about blocks that are verified, of which the source knows nothing.
    Check,
    /// A report of the zone, after a command to it failed.
    Look,
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
    /// A command. It counts as issued: the source hears how it ended.
    Issue(Step),
    /// A command to this zone failed: the device is to be asked what it holds, and the source
    /// to be told ([`Source::looked`]).
    Look(u32),
    /// Nothing before something completes, here or elsewhere.
    Wait,
    /// Nothing before this time.
    PauseUntil(Nanos),
    /// Nothing ever again.
    Exhausted,
}

/// What became of zones by the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByTheWay {
    /// Reset because they were full and to be written again.
    pub(crate) cleared: u64,
    /// Finished because what was left of them was too small for a write.
    pub(crate) ended: u64,
    /// Left out by reads in order, in their first pass, since nothing is written there.
    pub(crate) empty: u64,
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
    /// Over zones that jobs share.
    Directed(Box<Directed>),
    /// Zone after zone.
    Manage(Box<Manage>),
    /// A trace.
    Replay(Box<Replaying>),
    /// Blocks without write pointers.
    Blocks(Box<Blocks>),
    /// Zones that are reset and written.
    Rewrite(Box<Rewrites>),
}

impl Source {
    /// The operations of work on blocks, if `spec` is that.
    pub(crate) fn of_blocks(spec: &JobSpec, shared: &Option<(SharedZones, JobId)>) -> Option<Self> {
        let Work::Directed(work) = &spec.work else {
            return None;
        };
        let range = work.blocks?;
        if let Some(replay) = &work.replay {
            let zoned = as_one_zone(range.namespace_lbas);
            let (table, id) = shared.clone().unwrap_or_else(|| (empty(zoned), 0));
            let replay = Replaying::new(replay.clone(), work, zoned, table, id);
            return Some(Self::Replay(Box::new(replay)));
        }
        let table = shared.as_ref().map(|(table, _)| table.clone());
        let blocks = Blocks::new(work.as_ref().clone(), range, table);
        Some(Self::Blocks(Box::new(blocks)))
    }

    /// The operations of `spec` on a namespace of `zoned`, with logical blocks
    /// of `lba_bytes`. `shared`: what is known of the zones, together with
    /// others of which the job is one; writes alone make use of it.
    pub(crate) fn new(
        spec: &JobSpec,
        zoned: ZonedInfo,
        lba_bytes: u32,
        rng: &mut Rng,
        shared: Option<(SharedZones, JobId)>,
    ) -> Self {
        match (&spec.work, shared) {
            (Work::Write(write), None) => Self::Write(Writes::new(write, zoned)),
            (Work::Write(write), Some((table, id))) => {
                Self::directed(together(write), zoned, table, id)
            }
            (Work::Read(read), _) => Self::Read(Reads::new(read, zoned)),
            (
                Work::Mixed {
                    read,
                    write,
                    read_percent,
                },
                _,
            ) => Self::Mixed {
                reads: Reads::new(read, zoned),
                writes: Writes::new(write, zoned),
                read_percent: *read_percent,
            },
            (Work::Directed(work), shared) => {
                let (table, id) = shared.unwrap_or_else(|| (empty(zoned), 0));
                if let Some(replay) = &work.replay {
                    let replay = Replaying::new(replay.clone(), work, zoned, table, id);
                    return Self::Replay(Box::new(replay));
                }
                if work.trims_first() {
                    let work = work.as_ref().clone();
                    return Self::Rewrite(Box::new(Rewrites::new(work, zoned, table, id)));
                }
                match work.managing() {
                    None => Self::directed(work.as_ref().clone(), zoned, table, id),
                    Some((kind, direction)) => {
                        let soft = match work.style {
                            WriteStyle::SoftFinish(how) if kind == OpKind::Finish => Some(how),
                            _ => None,
                        };
                        let turns = SharedTurns::new(work, zoned, table, id);
                        let turns = Turns::Shared(Box::new(turns));
                        let manage = Manage::new(spec, turns, (kind, direction), zoned, lba_bytes);
                        Self::Manage(Box::new(manage.softly(soft, spec.sleep_slack)))
                    }
                }
            }
            (
                Work::Finish { .. } | Work::Reset { .. } | Work::Open { .. } | Work::Close { .. },
                _,
            ) => Self::listed(spec, zoned, lba_bytes, rng),
        }
    }

    /// It is known what zones hold, if it is.
    pub(crate) fn knows(&mut self, held_lbas: Option<Arc<[u64]>>) {
        if let Self::Manage(manage) = self {
            manage.knows(held_lbas);
        }
    }

    fn directed(work: DirectedWork, zoned: ZonedInfo, table: SharedZones, id: JobId) -> Self {
        Self::Directed(Box::new(Directed::new(work, zoned, table, id)))
    }

    /// What is done to each zone of a range.
    fn listed(spec: &JobSpec, zoned: ZonedInfo, lba_bytes: u32, rng: &mut Rng) -> Self {
        let mut is_shuffled = false;
        let mut how = None;
        let (zones, fill, kind) = match &spec.work {
            Work::Finish { zones, fill, soft } => {
                how = *soft;
                (zones, fill, OpKind::Finish)
            }
            Work::Reset {
                zones,
                shuffled,
                fill,
            } => {
                is_shuffled = *shuffled;
                (zones, fill, OpKind::Reset)
            }
            Work::Open { zones, fill } => (zones, fill, OpKind::Open),
            Work::Close { zones, fill } => (zones, fill, OpKind::Close),
            Work::Write(_) | Work::Read(_) | Work::Mixed { .. } | Work::Directed(_) => {
                unreachable!("these have sources of their own")
            }
        };
        let mut order: Vec<u32> = zones.clone().collect();
        if is_shuffled {
            rng.shuffle(&mut order);
        }
        let turns = Turns::listed(order, fill, zoned, spec.sleep_slack);
        let direction = Direction::of(kind);
        let manage = Manage::new(spec, turns, (kind, direction), zoned, lba_bytes);
        Self::Manage(Box::new(manage.softly(how, spec.sleep_slack)))
    }

    /// Whether operations come one by one, whatever the depth of the queue.
    pub(crate) const fn is_one_by_one(&self) -> bool {
        matches!(self, Self::Manage(_))
    }

    /// From when on limits let the next command go: in the past if at once, as
    /// in the middle of an operation or of what prepares it, and when nothing is
    /// left. It is chosen by this if that matters.
    #[inline]
    pub(crate) fn ready_at(&mut self, rates: &Rates, now: Nanos, rng: &mut Rng) -> Nanos {
        match self {
            Self::Manage(manage) => manage.ready_at(rates, now),
            Self::Directed(directed) => directed.ready_at(rates, now, rng),
            Self::Blocks(blocks) => blocks.ready_at(rates, now, rng),
            Self::Rewrite(rewrites) => rewrites.ready_at(rates),
            // Its times are those of the trace.
            Self::Replay(_) => Nanos::ZERO,
            _ if !self.is_between() => Nanos::ZERO,
            _ => rates.ready_at(Direction::Write),
        }
    }

    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Nanos, rng: &mut Rng) -> Offer {
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
            Self::Directed(directed) => directed.offer(rng),
            Self::Manage(manage) => manage.offer(now, rng),
            Self::Replay(replay) => replay.offer(now),
            Self::Blocks(blocks) => blocks.offer(rng),
            Self::Rewrite(rewrites) => rewrites.offer(rng),
        }
    }

    /// Whether an operation would begin with the next command, if one is left:
    /// neither an operation of several commands nor what prepares one is under way.
    #[inline]
    pub(crate) fn is_between(&self) -> bool {
        match self {
            Self::Manage(manage) => manage.is_between_zones(),
            Self::Write(writes) | Self::Mixed { writes, .. } => !writes.is_under_way(),
            Self::Read(_)
            | Self::Directed(_)
            | Self::Replay(_)
            | Self::Blocks(_)
            | Self::Rewrite(_) => true,
        }
    }

    /// Whether an operation of several commands has begun and not ended.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        match self {
            Self::Manage(manage) => manage.is_under_way(),
            Self::Write(writes) | Self::Mixed { writes, .. } => writes.is_under_way(),
            Self::Read(_)
            | Self::Directed(_)
            | Self::Replay(_)
            | Self::Blocks(_)
            | Self::Rewrite(_) => false,
        }
    }

    /// A command has completed with success at `at`. Whether its operation has
    /// ended with it.
    #[inline]
    pub(crate) fn completed(&mut self, sent: &Sent, at: Nanos) -> bool {
        match self {
            Self::Write(writes) | Self::Mixed { writes, .. } if sent.kind != OpKind::Read => {
                writes.completed(sent)
            }
            Self::Directed(directed) => {
                directed.completed(sent);
                true
            }
            Self::Manage(manage) => manage.completed(sent, at),
            Self::Replay(replay) => {
                replay.completed(sent);
                true
            }
            Self::Blocks(blocks) => {
                blocks.completed(sent);
                true
            }
            Self::Rewrite(rewrites) => {
                rewrites.completed(sent);
                true
            }
            _ => true,
        }
    }

    /// A command has failed, or was not taken: its operation is given up. Of a write that was sent
    /// in parts, the first `moved` blocks are written.
    #[cold]
    pub(crate) fn failed(&mut self, sent: &Sent, moved: u64) {
        if sent.role == Role::Look {
            self.looked(sent.stream, None);
            return;
        }
        match self {
            Self::Write(writes) | Self::Mixed { writes, .. } if sent.kind != OpKind::Read => {
                writes.failed(sent);
            }
            Self::Directed(directed) => directed.failed(sent, moved),
            Self::Manage(manage) => manage.abandon(),
            Self::Replay(replay) => replay.failed(sent),
            Self::Blocks(blocks) => blocks.failed(sent),
            Self::Rewrite(rewrites) => rewrites.failed(sent, moved),
            _ => {}
        }
    }

    /// The report of a zone that was looked at; `None`: the device does not say.
    #[cold]
    pub(crate) fn looked(&self, zone: u32, report: Option<&[u8]>) {
        if let Some(table) = self.table() {
            let mut table = table.borrow_mut();
            let zoned = table.zoned();
            let reported = report.and_then(|report| ReportedZone::first_of(report, zoned));
            table.end_look(zone, reported);
        }
    }

    /// Zones of `zones` that are known to be read only or offline.
    pub(crate) fn dead_zones(&self, zones: Range<u32>) -> u64 {
        self.table().map_or(0, |table| {
            let table = table.borrow();
            zones.filter(|zone| table.is_dead(*zone)).count() as u64
        })
    }

    /// What is known of the zones, if jobs share it.
    const fn table(&self) -> Option<&SharedZones> {
        match self {
            Self::Directed(directed) => Some(directed.table()),
            Self::Replay(replay) => Some(replay.table()),
            Self::Rewrite(rewrites) => Some(rewrites.table()),
            Self::Manage(manage) => manage.table(),
            Self::Write(_) | Self::Read(_) | Self::Mixed { .. } | Self::Blocks(_) => None,
        }
    }

    /// The job has come to its end: what is under way is given up, and others
    /// that share zones with it hear of it.
    pub(crate) fn ended(&mut self) {
        match self {
            Self::Directed(directed) => directed.ended(),
            Self::Manage(manage) => manage.ended(),
            Self::Replay(replay) => replay.ended(),
            Self::Blocks(blocks) => blocks.ended(),
            Self::Rewrite(rewrites) => rewrites.ended(),
            Self::Write(_) | Self::Read(_) | Self::Mixed { .. } => {}
        }
    }

    /// Blocks that an operation on `asked` blocks, which has just completed, found to do
    /// something with, as far as the job knows.
    pub(crate) fn finds_lbas(&self, asked: u64) -> u64 {
        match self {
            Self::Manage(manage) => manage.finds_lbas(asked),
            _ => asked,
        }
    }

    /// What an operation that is about to complete found to do, by what the job knows of the
    /// zones that it shares: of a device that does not tell.
    pub(crate) fn found(&self, sent: &Sent, at: Lba) -> Found {
        match self {
            Self::Directed(directed) => directed.found(sent, at),
            Self::Rewrite(rewrites) => rewrites.found(sent),
            Self::Manage(manage) => manage.found(),
            _ => Found::Unknown,
        }
    }

    /// What was done to zones by the way.
    pub(crate) fn by_the_way(&self) -> ByTheWay {
        match self {
            Self::Directed(directed) => directed.by_the_way(),
            Self::Replay(replay) => replay.by_the_way(),
            _ => ByTheWay::default(),
        }
    }

    /// Whether there can be trims of blocks.
    pub(crate) const fn trims_blocks(&self) -> bool {
        matches!(self, Self::Blocks(_))
    }

    /// First block, and number of blocks, of the trim of blocks that was offered last.
    pub(crate) fn trim(&self) -> Option<(u64, u32)> {
        match self {
            Self::Blocks(blocks) => Some(blocks.trim()),
            Self::Replay(replay) => replay.trim_of_blocks(),
            _ => None,
        }
    }

    /// What became of the operations of a trace.
    pub(crate) fn replayed(&self) -> Option<&Replayed> {
        match self {
            Self::Replay(replay) => Some(replay.replayed()),
            _ => None,
        }
    }
}

/// Sequential writes by several threads to the same zones, as fio does them
/// (`zonemode=zbd`, no offset of each thread): all begin at the first zone; one
/// write at a time is in a zone, and who wants to write there waits. Whoever
/// fills a zone goes on to the next; others that come back to it reset it.
fn together(work: &WriteWork) -> DirectedWork {
    let sizes = Sizes::fixed(work.block_lbas);
    let style = if work.append {
        WriteStyle::Append
    } else {
        WriteStyle::Write
    };
    DirectedWork {
        style,
        repeats: work.repeat,
        ..DirectedWork::through(work.zones.clone(), Direction::Write, sizes)
    }
}

/// A write of `nlb` blocks at `slba`, or an append to the zone that it is in.
#[inline]
fn write_op(append: bool, zslba: Lba, slba: Lba, nlb: u32) -> (Op, OpKind) {
    match append {
        true => (Op::Append { zslba, nlb }, OpKind::Append),
        false => (Op::Write { slba, nlb }, OpKind::Write),
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

/// Blocks without write pointers as if all of them were one zone.
const fn as_one_zone(lbas: u64) -> ZonedInfo {
    ZonedInfo {
        zones: 1,
        zone_size_lbas: lbas,
        zone_capacity_lbas: lbas,
        max_active: None,
        max_open: None,
        read_across_zones: true,
        descriptor_extension_bytes: 0,
        zrwa: None,
    }
}

/// The table of a job that shares its zones with nobody, and found them empty.
fn empty(zoned: ZonedInfo) -> SharedZones {
    SharedZones::new(ZoneTable::new(zoned, None))
}
