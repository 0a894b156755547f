//! What a host knows of one of its zones, and what it may find in it.

use zonelab_nvme::zns::ZoneState;

use super::events::Between;
use super::pattern::{ANYWHERE, Block, Found};

/// A write whose host got no answer.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    serial: u32,
    blocks: u32,
    /// Its first block; appends have none.
    at: Option<u32>,
    /// It may still be carried out.
    is_alive: bool,
}

/// A command that changes the zone as a whole and got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    Reset,
    Finish,
}

/// A block of an acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    serial: u32,
    index: u32,
}

/// A zone as its only user knows it.
#[derive(Debug)]
pub(crate) struct Zone {
    pub(crate) number: u32,
    pub(crate) generation: u32,
    /// Written by appends, and not by writes.
    pub(crate) has_appends: bool,
    host: u32,
    /// What was acknowledged, by offset; as long as the capacity.
    cells: Vec<Option<Cell>>,
    /// The write pointer when the zone was looked at, or behind what was acknowledged since.
    pub(crate) end: u32,
    /// Behind the last acknowledged block.
    acked: u32,
    /// All acknowledged blocks before it were flushed.
    flushed: u32,
    pub(crate) is_full: bool,
    /// It is full because it was finished, and stays so.
    is_finished: bool,
    /// Acknowledged blocks from here on may be gone although the zone is full.
    soft: u32,
    doubt: Option<Doubt>,
    unanswered: Vec<Unanswered>,
}

impl Zone {
    /// An empty zone.
    pub(crate) fn new(host: u32, number: u32, capacity: u32, has_appends: bool) -> Self {
        Self {
            number,
            generation: 0,
            has_appends,
            host,
            cells: vec![None; capacity as usize],
            end: 0,
            acked: 0,
            flushed: 0,
            is_full: false,
            is_finished: false,
            soft: capacity,
            doubt: None,
            unanswered: Vec::new(),
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.cells.len() as u32
    }

    /// Behind the last acknowledged block.
    pub(crate) const fn acked(&self) -> u32 {
        self.acked
    }

    /// Nothing can be done with it, since a command may still change it as a whole.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Writes without an answer may still be carried out, and come before others.
    pub(crate) fn has_rivals(&self) -> bool {
        self.unanswered.iter().any(|of| of.is_alive)
    }

    /// Whether the block was acknowledged.
    pub(crate) fn is_known(&self, offset: u32) -> bool {
        self.cells[offset as usize].is_some()
    }

    /// What block `index` of a command is that writes at `at`.
    pub(crate) fn block(&self, serial: u32, at: Option<u32>, index: u32) -> Block {
        Block {
            host: self.host,
            serial,
            zone: self.number,
            generation: self.generation,
            offset: at.map_or(ANYWHERE, |at| at + index),
            index,
        }
    }

    /// A write or an append was acknowledged.
    pub(crate) fn written(&mut self, serial: u32, at: u32, blocks: u32) {
        for index in 0..blocks {
            let cell = &mut self.cells[(at + index) as usize];
            assert_eq!(
                *cell, None,
                "zone {}: block {at} is given twice",
                self.number
            );
            *cell = Some(Cell { serial, index });
        }
        self.acked = self.acked.max(at + blocks);
        self.end = self.end.max(self.acked);
        self.is_full |= self.end == self.capacity();
    }

    /// A write or an append got no answer.
    pub(crate) fn write_lost(&mut self, serial: u32, at: Option<u32>, blocks: u32) {
        self.unanswered.push(Unanswered {
            serial,
            blocks,
            at,
            is_alive: true,
        });
    }

    /// A flush was acknowledged, before which this was what was acknowledged.
    pub(crate) fn flushed(&mut self, generation: u32, acked: u32) {
        if generation == self.generation {
            self.flushed = self.flushed.max(acked);
        }
    }

    /// A reset was acknowledged. What comes now is appended or not.
    pub(crate) fn was_reset(&mut self, has_appends: bool) {
        self.generation += 1;
        self.has_appends = has_appends;
        self.cells.fill(None);
        (self.end, self.acked, self.flushed) = (0, 0, 0);
        (self.is_full, self.is_finished) = (false, false);
        self.soft = self.capacity();
        self.unanswered.retain(|of| of.is_alive);
    }

    /// A finish was acknowledged. The drive finishes what is on the flash, so that nothing of the
    /// zone can be lost any more.
    pub(crate) fn was_finished(&mut self) {
        self.flushed = self.acked;
        self.finished();
    }

    fn finished(&mut self) {
        (self.is_full, self.is_finished) = (true, true);
        self.end = self.capacity();
    }

    /// A reset or a finish got no answer.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        assert_eq!(self.doubt, None, "nothing is done with a zone in doubt");
        self.doubt = Some(doubt);
    }

    /// Takes note of what a zone report says after a connection was lost: `written` blocks, or
    /// what is in the way of that. Returns how many acknowledged blocks are gone that may be.
    pub(crate) fn found(
        &mut self,
        state: ZoneState,
        written: u32,
        between: Between,
    ) -> Result<u32, String> {
        let written = match state {
            ZoneState::EMPTY => 0,
            ZoneState::FULL => self.capacity(),
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED => {
                written
            }
            other => return Err(format!("{self}: its state is {other:?}")),
        };
        let lost = match (state, self.doubt) {
            (ZoneState::EMPTY, Some(Doubt::Reset)) => {
                self.was_reset(self.has_appends);
                self.doubt = None;
                0
            }
            (ZoneState::FULL, Some(Doubt::Finish)) => {
                self.soften(between);
                self.finished();
                self.doubt = None;
                0
            }
            (ZoneState::FULL, _) if self.is_full => {
                self.soften(between);
                0
            }
            _ => self.move_to(written, between)?,
        };
        if between.is_certain {
            self.doubt = None;
            self.unanswered
                .iter_mut()
                .for_each(|of| of.is_alive = false);
        }
        Ok(lost)
    }

    /// After a loss of power, a full zone may have lost the end of what was written.
    fn soften(&mut self, between: Between) {
        if between.may_be_cut {
            self.soft = self.soft.min(self.flushed);
        }
    }

    /// The write pointer is behind so many blocks.
    fn move_to(&mut self, written: u32, between: Between) -> Result<u32, String> {
        let least = match between.may_be_cut {
            _ if self.is_finished => {
                return Err(format!("{self}: it was finished, and is not full"));
            }
            true => self.flushed,
            false => self.acked,
        };
        let alive = self.unanswered.iter().filter(|of| of.is_alive);
        let more: u32 = alive.map(|of| of.blocks).sum();
        // What was seen behind the write pointer once has no more to say.
        let most = self.capacity().min(self.acked.max(self.end) + more);
        if !(least..=most).contains(&written) {
            return Err(format!(
                "{self}: the write pointer is {written}, valid is {least} to {most} ({between:?})"
            ));
        }
        let lost = self.cells[written as usize..].iter().flatten().count() as u32;
        self.cells[written as usize..].fill(None);
        self.acked = self.acked.min(written);
        self.end = written;
        self.is_full = written == self.capacity();
        Ok(lost)
    }

    /// Checks a block that was read. Returns whether an acknowledged block is gone that may be.
    pub(crate) fn check(&mut self, offset: u32, found: Found) -> Result<bool, String> {
        let is_mine = |of: &Unanswered, block: &Block| {
            let is_there = of.at.is_none_or(|at| at + block.index == offset);
            of.serial == block.serial && block.index < of.blocks && is_there
        };
        let cell = self.cells[offset as usize];
        let is_right = match (cell, found) {
            (Some(cell), Found::Written(block)) => {
                let at = (!self.has_appends).then(|| offset.wrapping_sub(cell.index));
                block == self.block(cell.serial, at, cell.index)
            }
            (Some(_), Found::Nothing) if offset >= self.soft => {
                // From here on nothing is left.
                self.cells[offset as usize..].fill(None);
                return Ok(true);
            }
            (None, Found::Nothing) => true,
            (None, Found::Written(block)) => {
                let is_own = block.host == self.host && block.zone == self.number;
                is_own && self.unanswered.iter().any(|of| is_mine(of, &block))
            }
            (Some(_), Found::Nothing) | (_, Found::Torn(_)) => false,
        };
        match is_right {
            true => Ok(false),
            false => Err(format!(
                "{self}: block {offset} should be {cell:?}, and is {found:?}"
            )),
        }
    }
}

impl core::fmt::Display for Zone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self {
            number,
            generation,
            acked,
            flushed,
            ..
        } = self;
        write!(
            f,
            "zone {number} (generation {generation}, acknowledged {acked}, flushed {flushed}, \
             full {}, doubt {:?}, without an answer {:?})",
            self.is_full, self.doubt, self.unanswered
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Between = Between {
        may_be_cut: false,
        may_be_event: false,
        is_certain: false,
    };
    const CUT: Between = Between {
        may_be_cut: true,
        may_be_event: true,
        is_certain: true,
    };

    fn zone() -> Zone {
        let mut zone = Zone::new(1, 7, 512, false);
        zone.written(1, 0, 10);
        zone.flushed(0, 10);
        zone.written(2, 10, 10);
        zone
    }

    #[test]
    fn what_was_flushed_is_never_lost_and_the_rest_only_with_power() {
        let closed = ZoneState::CLOSED;
        assert!(zone().found(closed, 19, CALM).is_err());
        assert!(zone().found(closed, 9, CUT).is_err());
        assert!(zone().found(closed, 21, CUT).is_err());
        assert_eq!(zone().found(closed, 20, CALM), Ok(0));
        let mut cut = zone();
        assert_eq!(cut.found(closed, 12, CUT), Ok(8));
        assert_eq!((cut.end, cut.acked()), (12, 12));
        assert!(cut.check(11, Found::Nothing).is_err(), "only from the end");
        assert!(zone().found(ZoneState::EMPTY, 0, CUT).is_err());
        assert!(zone().found(ZoneState::OFFLINE, 0, CUT).is_err());
    }

    #[test]
    fn what_got_no_answer_may_be_there_or_not() {
        let mut zone = zone();
        zone.write_lost(3, Some(20), 4);
        assert_eq!(zone.found(ZoneState::CLOSED, 24, CALM), Ok(0));
        let third = zone.block(3, Some(20), 2);
        assert_eq!(zone.check(22, Found::Written(third)), Ok(false));
        assert!(zone.check(23, Found::Written(third)).is_err());
        let foreign = zone.block(9, Some(20), 3);
        assert!(zone.check(23, Found::Written(foreign)).is_err());
        let second = zone.block(2, Some(10), 0);
        assert_eq!(zone.check(10, Found::Written(second)), Ok(false));
        assert!(zone.check(11, Found::Written(second)).is_err());
    }

    #[test]
    fn a_reset_without_an_answer_has_happened_or_may_still_happen() {
        let mut doubtful = zone();
        doubtful.doubt(Doubt::Reset);
        assert_eq!(doubtful.found(ZoneState::CLOSED, 20, CALM), Ok(0));
        assert!(doubtful.is_in_doubt());
        assert_eq!(doubtful.found(ZoneState::EMPTY, 0, CALM), Ok(0));
        assert!(!doubtful.is_in_doubt());
        let old = zone().block(1, Some(0), 0);
        assert!(doubtful.check(0, Found::Written(old)).is_err());
    }

    #[test]
    fn a_full_zone_may_lose_its_end_with_power_if_nobody_waited_for_its_finish() {
        let mut finished = zone();
        finished.doubt(Doubt::Finish);
        assert_eq!(finished.found(ZoneState::FULL, 0, CUT), Ok(0));
        assert!(finished.check(9, Found::Nothing).is_err());
        assert_eq!(finished.check(15, Found::Nothing), Ok(true));
        let cell = finished.block(2, Some(10), 9);
        assert!(finished.check(19, Found::Written(cell)).is_err());
    }
}
