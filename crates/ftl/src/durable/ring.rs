//! The ring of journal zones: which are in use, and how much room is left.

use std::collections::VecDeque;

use crate::error::FtlError;
use crate::format::anchor::Position;
use crate::media::Zone;
use crate::shape::Shape;

/// Fewest blocks of a journal zone.
pub(super) const LEAST_BLOCKS: u32 = 8;
/// Fewest journal zones that can be written.
const LEAST_ZONES: usize = 2;
/// Most blocks of a piece of an append.
const PIECE_MOST: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Empty.
    Free,
    /// Holds what is needed, or is the next to hold it.
    Live,
    /// Holds nothing that is needed: reset before it is written.
    Stale,
}

#[derive(Clone, Copy, Debug)]
struct RingZone {
    capacity: u32,
    usage: Use,
    /// It can never be written again.
    is_dead: bool,
}

/// The zones, and where the journal goes on.
#[derive(Debug)]
pub(super) struct Ring {
    first: u32,
    zones: Vec<RingZone>,
    /// Zones in use, the oldest first; never empty.
    live: VecDeque<usize>,
    /// The next block of the last of them.
    offset: u32,
    /// Blocks of an append that are accounted for at once.
    pub(super) piece_blocks: u32,
}

impl Ring {
    /// The ring with the zones `live` in use, of which the last is written next at
    /// `offset`. Without any, the first that can be written begins.
    ///
    /// # Errors
    /// Fewer than two zones can be written, or they are too small.
    pub(super) fn new(
        shape: &Shape,
        reported: &[Zone],
        live: &[u32],
        offset: u32,
    ) -> Result<Self, FtlError> {
        let first = shape.journal().start;
        let of = &reported[first as usize..shape.journal().end as usize];
        let zones = of.iter().map(|zone| RingZone {
            capacity: zone.capacity,
            usage: match zone.written {
                0 => Use::Free,
                _ => Use::Stale,
            },
            is_dead: zone.is_dead(),
        });
        let mut ring = Self {
            first,
            zones: zones.collect(),
            live: live.iter().map(|zone| (zone - first) as usize).collect(),
            offset,
            piece_blocks: (shape.zone_capacity_lbas / LEAST_BLOCKS).clamp(1, PIECE_MOST),
        };
        ring.check()?;
        if ring.live.is_empty() {
            let begin = ring.zones.iter().position(|zone| !zone.is_dead);
            ring.live.extend(begin);
        }
        for at in ring.live.clone() {
            ring.zones[at].usage = Use::Live;
        }
        Ok(ring)
    }

    /// Whether what can be written is enough to go on.
    pub(super) fn check(&self) -> Result<(), FtlError> {
        let alive = self.zones.iter().filter(|zone| !zone.is_dead);
        if alive.clone().count() < LEAST_ZONES {
            let dead = self.zones.iter().position(|zone| zone.is_dead);
            return Err(FtlError::DeadZone {
                zone: self.first + dead.unwrap_or(0) as u32,
                what: "the journal has fewer than two zones left",
            });
        }
        let blocks = alive.map(|zone| zone.capacity).min().unwrap_or(0);
        if blocks < LEAST_BLOCKS.max(8 * self.piece_blocks) {
            return Err(FtlError::JournalTooSmall {
                blocks,
                least: LEAST_BLOCKS.max(8 * self.piece_blocks),
            });
        }
        Ok(())
    }

    fn current(&self) -> usize {
        *self.live.back().expect("a zone is in use at any time")
    }

    /// The next block.
    pub(super) fn position(&self) -> Position {
        Position {
            zone: self.first + self.current() as u32,
            offset: self.offset,
        }
    }

    /// Blocks that can be written to the present zone.
    pub(super) fn room_here(&self) -> u32 {
        let zone = &self.zones[self.current()];
        match zone.is_dead {
            true => 0,
            false => zone.capacity.saturating_sub(self.offset),
        }
    }

    /// Blocks that can be written until the ring is full.
    pub(super) fn room(&self) -> u64 {
        let others = self.zones.iter();
        let others = others.filter(|zone| !zone.is_dead && zone.usage != Use::Live);
        let others: u64 = others.map(|zone| u64::from(zone.capacity)).sum();
        others + u64::from(self.room_here())
    }

    /// Blocks of all zones that can be written.
    pub(super) fn total(&self) -> u64 {
        let alive = self.zones.iter().filter(|zone| !zone.is_dead);
        alive.map(|zone| u64::from(zone.capacity)).sum()
    }

    /// Blocks that are kept for what is pending at the end of a checkpoint: two
    /// appends, twice, since a checkpoint may free nothing. With more than two zones
    /// also as much as the failure of a zone wastes.
    pub(super) fn reserve(&self) -> u64 {
        let alive = self.zones.iter().filter(|zone| !zone.is_dead);
        let largest = alive.clone().map(|zone| zone.capacity).max().unwrap_or(0);
        let spare = if alive.count() > LEAST_ZONES {
            largest
        } else {
            0
        };
        4 * u64::from(self.piece_blocks) + u64::from(spare)
    }

    /// The zone that comes after the present one, and whether it has to be reset;
    /// `None`: it is in use still.
    pub(super) fn next(&self) -> Option<(u32, bool)> {
        let count = self.zones.len();
        let others = (1..count).map(|step| (self.current() + step) % count);
        let mut others = others.filter(|at| {
            let zone = &self.zones[*at];
            zone.usage == Use::Live || !zone.is_dead
        });
        let at = others.next()?;
        match self.zones[at].usage {
            Use::Live => None,
            usage => Some((self.first + at as u32, usage == Use::Stale)),
        }
    }

    /// Goes on in a zone that is empty.
    pub(super) fn advance(&mut self, zone: u32) {
        let at = (zone - self.first) as usize;
        self.zones[at].usage = Use::Live;
        self.live.push_back(at);
        self.offset = 0;
    }

    /// Blocks were written.
    pub(super) fn wrote(&mut self, blocks: u32) {
        self.offset += blocks;
    }

    /// Nothing more is written to the present zone.
    pub(super) fn close(&mut self) {
        let capacity = self.zones[self.current()].capacity;
        self.offset = capacity.max(self.offset);
    }

    /// A zone can never be written again.
    pub(super) fn bury(&mut self, zone: u32) {
        self.zones[(zone - self.first) as usize].is_dead = true;
    }

    /// The zones from `zone` to the present one.
    pub(super) fn live_from(&self, zone: u32) -> Vec<u32> {
        let live = self.live.iter().map(|at| self.first + *at as u32);
        live.skip_while(|live| *live != zone).collect()
    }

    /// A zone can never be written again.
    pub(super) fn is_dead(&self, zone: u32) -> bool {
        self.zones[(zone - self.first) as usize].is_dead
    }

    /// A zone has to be reset before it is written.
    pub(super) fn is_stale(&self, zone: u32) -> bool {
        self.zones[(zone - self.first) as usize].usage == Use::Stale
    }

    /// The zones that can never be written again.
    pub(super) fn dead(&self) -> Vec<u32> {
        let zones = self.zones.iter().zip(self.first..);
        let dead = zones.filter(|(zone, _)| zone.is_dead);
        dead.map(|(_, number)| number).collect()
    }

    /// What lies wholly before `zone` is not needed any more. Returns what can be
    /// reset of it.
    pub(super) fn free_before(&mut self, zone: u32) -> Vec<u32> {
        let end = (zone - self.first) as usize;
        let mut freed = Vec::new();
        while self.live.len() > 1 && self.live[0] != end {
            let Some(at) = self.live.pop_front() else {
                break;
            };
            self.zones[at].usage = Use::Stale;
            if !self.zones[at].is_dead {
                freed.push(self.first + at as u32);
            }
        }
        freed
    }

    /// A zone was reset.
    pub(super) fn emptied(&mut self, zone: u32) {
        let zone = &mut self.zones[(zone - self.first) as usize];
        if zone.usage == Use::Stale {
            zone.usage = Use::Free;
        }
    }
}
