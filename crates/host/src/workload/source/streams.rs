//! Planned streams: writes through zones that belong to the job, and reads.

use std::ops::Range;

use zonelab_device::{Lba, Op, ZonedInfo};

use super::{Offer, Role, Sent, Step, send, write_op};
use crate::rng::Rng;
use crate::stats::OpKind;
use crate::workload::directed::Direction;
use crate::workload::{ReadWork, WriteWork};

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
    lbas: u64,
    /// Blocks that have not been sent.
    left: u64,
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
    /// Two for each zone that is written at a time: the one that writes, and the one whose last
    /// appends are under way.
    streams: Vec<Stream>,
    /// Those that write.
    active: Vec<usize>,
    next_zone: u32,
    pass: u64,
}

impl Writes {
    pub(super) fn new(work: &WriteWork, zoned: ZonedInfo) -> Self {
        let mut writes = Self {
            work: work.clone(),
            zoned,
            streams: Vec::new(),
            active: Vec::new(),
            next_zone: work.zones.start,
            pass: 0,
        };
        let open = work.open_zones.clamp(1, work.zones.len().max(1) as u32) as usize;
        for _ in 0..2 * open {
            let stream = Stream {
                zone: 0,
                offset: 0,
                in_flight: 0,
                state: StreamState::Retired,
                whole: None,
            };
            writes.streams.push(stream);
        }
        writes.active = (0..open).collect();
        for index in 0..open {
            writes.take_zone(index);
        }
        writes
    }

    /// The stream in a place, which has gone on to its next zone if all of the one before is
    /// issued.
    ///
    /// Writes go on when they have completed. Appends go on at once: the drive takes the last
    /// of a zone before the first of the next, so that no more zones are open in it, and a host
    /// that waited would leave a deep queue empty once in each zone.
    #[inline]
    fn goes_on(&mut self, place: usize) -> usize {
        let index = self.active[place];
        let stream = &self.streams[index];
        if stream.offset < self.zoned.zone_capacity_lbas {
            return index;
        }
        if stream.in_flight == 0 {
            self.take_zone(index);
            return index;
        }
        let open = self.active.len();
        let other = if index < open {
            index + open
        } else {
            index - open
        };
        let has_next = self.work.repeat || self.next_zone < self.work.zones.end;
        let is_far = self.work.zones.len() >= 4 * open;
        if self.work.append
            && self.work.command_lbas.is_none()
            && has_next
            && is_far
            && self.streams[other].in_flight == 0
        {
            self.take_zone(other);
            self.active[place] = other;
            return other;
        }
        index
    }

    /// Gives a stream its next zone.
    fn take_zone(&mut self, index: usize) {
        if self.next_zone == self.work.zones.end && self.work.repeat {
            self.next_zone = self.work.zones.start;
            self.pass += 1;
        }
        let is_every = self.work.repeat && self.active.len() == self.work.zones.len();
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
    pub(super) fn offer(&mut self, rng: &mut Rng) -> Offer {
        if self.work.command_lbas.is_some()
            && let Some(index) = self
                .streams
                .iter()
                .position(|stream| stream.whole.is_some())
        {
            // One after another, and nothing else before it has ended.
            return match self.streams[index].in_flight {
                0 => Offer::Issue(self.part(index, Role::Part)),
                _ => Offer::Wait,
            };
        }
        let count = self.active.len();
        let first = if count == 1 {
            0
        } else {
            rng.below(count as u64) as usize
        };
        let mut retired = 0;
        for step in 0..count {
            let place = if first + step < count {
                first + step
            } else {
                first + step - count
            };
            let index = self.goes_on(place);
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
    pub(super) fn is_under_way(&self) -> bool {
        self.work.command_lbas.is_some() && self.streams.iter().any(|stream| stream.whole.is_some())
    }

    /// The next command of a write that is sent in several.
    fn part(&mut self, index: usize, role: Role) -> Step {
        let stream = &mut self.streams[index];
        let most = self.work.command_lbas.unwrap_or(u32::MAX);
        let left =
            (self.zoned.zone_capacity_lbas - stream.offset).min(u64::from(self.work.block_lbas));
        let whole = stream.whole.get_or_insert(Whole { lbas: left, left });
        // Fits: at most `command_lbas`.
        let nlb = whole.left.min(u64::from(most)) as u32;
        let zslba = Lba(u64::from(stream.zone) * self.zoned.zone_size_lbas);
        let slba = Lba(zslba.0 + stream.offset);
        whole.left -= u64::from(nlb);
        stream.offset += u64::from(nlb);
        stream.in_flight += 1;
        let (op, kind) = write_op(self.work.append, zslba, slba, nlb);
        Step {
            op,
            kind,
            direction: Direction::Write,
            lbas: whole.lbas,
            stream: index as u32,
            role,
        }
    }

    #[inline]
    fn write(&mut self, index: usize) -> Step {
        let stream = &mut self.streams[index];
        let left = self.zoned.zone_capacity_lbas - stream.offset;
        let lbas = left.min(u64::from(self.work.block_lbas));
        if self
            .work
            .command_lbas
            .is_some_and(|most| lbas > u64::from(most))
        {
            return self.part(index, Role::FirstPart);
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
        let (op, kind) = write_op(self.work.append, zslba, slba, nlb);
        Step {
            op,
            kind,
            direction: Direction::Write,
            lbas,
            stream: index as u32,
            role,
        }
    }

    /// Resets or opens the zone of a stream.
    fn prepare(&mut self, index: usize, kind: OpKind) -> Step {
        let stream = &mut self.streams[index];
        stream.state = StreamState::Preparing;
        stream.in_flight += 1;
        let slba = Lba(u64::from(stream.zone) * self.zoned.zone_size_lbas);
        Step {
            op: send(slba, kind),
            kind,
            direction: Direction::Write,
            lbas: 0,
            stream: index as u32,
            role: Role::Preparation,
        }
    }

    /// A command has completed with success. Whether its operation has ended
    /// with it.
    #[inline]
    pub(super) fn completed(&mut self, sent: &Sent) -> bool {
        let stream = &mut self.streams[sent.stream as usize];
        stream.in_flight -= 1;
        match (sent.kind, sent.role) {
            (_, Role::FirstPart | Role::Part) => {
                return stream.whole.take_if(|whole| whole.left == 0).is_some();
            }
            (OpKind::Reset, _) => stream.state = self.work.after_reset(),
            (OpKind::Open, _) => stream.state = StreamState::Writing,
            _ => {}
        }
        true
    }

    /// A command has failed, and its operation with it.
    pub(super) fn failed(&mut self, sent: &Sent) {
        let stream = &mut self.streams[sent.stream as usize];
        stream.in_flight = stream.in_flight.saturating_sub(1);
        stream.whole = None;
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
    pub(super) fn new(work: &ReadWork, zoned: ZonedInfo) -> Self {
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
    pub(super) fn next(&mut self, rng: &mut Rng) -> Step {
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
        Step {
            op: Op::Read { slba, nlb },
            kind: OpKind::Read,
            direction: Direction::Read,
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
