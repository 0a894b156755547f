//! A zone that is being written.

use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::shape::Shape;
use crate::zones::Generation;

/// A zone that is being written, and which logical blocks went where in it: what its
/// footer will say.
#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) zone: DataZone,
    /// What it is written with.
    pub(crate) generation: Generation,
    /// Blocks that were written, or that writes under way will have written.
    pub(crate) next: u32,
    /// Commands under way.
    pub(crate) in_flight: u32,
    /// A write failed: nothing more is written here.
    pub(crate) has_failed: bool,
    /// Blocks of its footer that are there already.
    pub(crate) footer_written: u32,
    /// The logical block of each data block, [`PhysicalBlock::NOWHERE`] of those that
    /// hold none.
    pub(crate) holds: Vec<u32>,
}

impl Frontier {
    /// An empty zone.
    pub(crate) fn new(zone: DataZone, generation: Generation, shape: &Shape) -> Self {
        Self {
            zone,
            generation,
            next: 0,
            in_flight: 0,
            has_failed: false,
            footer_written: 0,
            holds: vec![PhysicalBlock::NOWHERE; shape.data_blocks() as usize],
        }
    }

    /// Data blocks that are left.
    #[inline]
    pub(crate) fn left(&self) -> u32 {
        match self.has_failed {
            true => 0,
            false => self.holds.len() as u32 - self.next,
        }
    }

    /// So many blocks are on their way. Returns where the first of them goes, if they
    /// are written in order.
    #[inline]
    pub(crate) fn begin(&mut self, blocks: u32) -> u32 {
        debug_assert!(
            blocks <= self.left(),
            "a zone is not written beyond its data blocks"
        );
        let at = self.next;
        self.next += blocks;
        self.in_flight += 1;
        at
    }

    /// A command that was begun last was not taken.
    pub(crate) fn cancel(&mut self, blocks: u32) {
        self.next -= blocks;
        self.in_flight -= 1;
    }

    /// A command has written nothing, and is about to end.
    pub(crate) fn give_back(&mut self, blocks: u32) {
        self.next -= blocks;
    }

    /// Blocks have been written at `offset`.
    #[inline]
    pub(crate) fn note(&mut self, offset: u32, first: LogicalBlock, count: u32) {
        let held = &mut self.holds[offset as usize..(offset + count) as usize];
        for (word, block) in held.iter_mut().zip(first.0..) {
            *word = block;
        }
    }

    /// Nothing more will be written, and nothing is under way.
    pub(crate) fn is_over(&self) -> bool {
        self.left() == 0 && self.in_flight == 0
    }
}

/// The zones that somebody writes: one that takes blocks, and those before it whose
/// last commands are under way.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    current: Option<Frontier>,
    draining: Vec<Frontier>,
}

impl Writer {
    /// The zone that takes blocks, if there is one with room.
    #[inline]
    pub(crate) fn current(&mut self) -> Option<&mut Frontier> {
        self.current.as_mut()
    }

    /// Puts a zone there that takes blocks from now on.
    pub(crate) fn take(&mut self, frontier: Frontier) {
        debug_assert!(
            self.current.is_none(),
            "one zone is written after the other"
        );
        self.current = Some(frontier);
    }

    /// Whether a command is under way to the zone that takes blocks, or to one before.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        let current = self.current.as_ref().is_some_and(|zone| zone.in_flight > 0);
        current || !self.draining.is_empty()
    }

    /// The zone that a command was for.
    ///
    /// # Panics
    /// If no command is under way to it.
    #[inline]
    pub(crate) fn zone(&mut self, zone: DataZone) -> &mut Frontier {
        let zones = self.current.iter_mut().chain(&mut self.draining);
        let mut zones = zones.filter(|frontier| frontier.zone == zone);
        zones
            .next()
            .expect("a zone is kept until its commands have ended")
    }

    /// A command for that zone has written nothing, and is about to end.
    pub(crate) fn give_back(&mut self, zone: DataZone, blocks: u32) {
        let takes_blocks = self.current.as_ref().is_some_and(|of| of.zone == zone);
        let frontier = self.zone(zone);
        frontier.give_back(blocks);
        // It was the last command of a zone that is being put away, and is so without it.
        frontier.has_failed |= !takes_blocks;
    }

    /// Puts away the zone that takes blocks if it has no room left, and returns a zone
    /// to which nothing is under way any more, if there is one.
    #[inline]
    pub(crate) fn put_away(&mut self) -> Option<Frontier> {
        if let Some(full) = self.current.take_if(|zone| zone.left() == 0) {
            self.draining.push(full);
        }
        let over = self.draining.iter().position(Frontier::is_over)?;
        Some(self.draining.swap_remove(over))
    }

    /// All zones: nobody writes them here any more.
    pub(crate) fn into_zones(self) -> impl Iterator<Item = Frontier> {
        self.current.into_iter().chain(self.draining)
    }
}
