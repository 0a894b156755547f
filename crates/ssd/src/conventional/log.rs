//! Where the blocks of a conventional namespace are: a log over zones of its own.

mod saved;

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::ZoneId;

use super::replaced::Replaced;
use super::streams::{Stream, Streams};

/// "None" of an address and of a zone.
pub(super) const NONE: u32 = u32::MAX;

/// A flat table of blocks, and the zones that they are in.
///
/// A *place* is a position in the log: zone by zone, `capacity` blocks each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// Its zones, counted over the drive.
    zones: Range<u32>,
    /// Blocks of a zone.
    capacity: u32,
    /// Place of each block of the namespace; `NONE`: it holds nothing.
    places: Vec<u32>,
    /// Block of the namespace that was written to each place.
    blocks: Vec<u32>,
    /// By zone: blocks written, ...
    written: Vec<u32>,
    /// ... and those of them that the table points to.
    valid: Vec<u32>,
    /// ... and the stream that writes or wrote it.
    writers: Vec<Stream>,
    /// The zone that each stream writes to.
    open: Vec<u32>,
    streams: Streams,
    /// Empty zones, in the order in which they became so.
    free: VecDeque<u32>,
    /// Where blocks were before, as long as a loss of power can bring that back.
    replaced: Replaced,
}

impl Log {
    /// An empty log for `blocks` blocks. `can_lose`: a loss of power takes what is on no
    /// flash yet.
    pub(crate) fn new(
        zones: Range<u32>,
        (capacity, blocks): (u32, u32),
        streams: Streams,
        can_lose: bool,
    ) -> Self {
        let count = zones.len();
        Self {
            capacity,
            places: vec![NONE; blocks as usize],
            blocks: vec![NONE; count * capacity as usize],
            written: vec![0; count],
            valid: vec![0; count],
            writers: vec![Stream::DEFAULT; count],
            open: vec![NONE; streams.count()],
            streams,
            // Fits: they are zones of the drive.
            free: (0..count as u32).collect(),
            replaced: Replaced::new(can_lose.then_some(count), capacity),
            zones,
        }
    }

    /// The zones, counted over the drive.
    pub(crate) fn zones(&self) -> Range<u32> {
        self.zones.clone()
    }

    /// Empty zones.
    pub(crate) fn free_zones(&self) -> usize {
        self.free.len()
    }

    /// Who writes to it.
    #[inline]
    pub(crate) const fn streams(&self) -> Streams {
        self.streams
    }

    /// The place of a block, if there is such a block and it holds something.
    pub(crate) fn place_if_any(&self, block: u32) -> Option<u32> {
        let place = self.places.get(block as usize)?;
        (*place != NONE).then_some(*place)
    }

    /// The place of a block, if it holds something.
    #[inline]
    pub(crate) fn place_of(&self, block: u32) -> Option<u32> {
        let place = self.places[block as usize];
        (place != NONE).then_some(place)
    }

    /// The block at a place, if that is where its data is.
    #[inline]
    pub(crate) fn block_at(&self, place: u32) -> Option<u32> {
        let block = self.blocks[place as usize];
        (block != NONE && self.places[block as usize] == place).then_some(block)
    }

    /// Zone of the drive, and offset in it, of a place.
    #[inline]
    pub(crate) fn position(&self, place: u32) -> (ZoneId, u32) {
        let zone = ZoneId(self.zones.start + place / self.capacity);
        (zone, place % self.capacity)
    }

    /// Blocks that a stream can write to its zone: 0 if it has none, and there
    /// is none for it. The host leaves one empty zone for collection.
    pub(crate) fn room(&mut self, stream: Stream) -> u32 {
        let open = self.open[stream.index()];
        if open != NONE && self.written[open as usize] < self.capacity {
            return self.capacity - self.written[open as usize];
        }
        let kept = usize::from(self.streams.is_of_host(stream));
        self.open[stream.index()] = NONE;
        if self.free.len() <= kept {
            return 0;
        }
        let Some(zone) = self.free.pop_front() else {
            return 0;
        };
        self.open[stream.index()] = zone;
        self.writers[zone as usize] = stream;
        self.capacity
    }

    /// Blocks that fit into the zone that a stream writes to next: at least one.
    pub(crate) fn left(&self, stream: Stream) -> u32 {
        let written = self.written.get(self.open[stream.index()] as usize);
        match written {
            Some(written) if *written < self.capacity => self.capacity - written,
            _ => self.capacity,
        }
    }

    /// A stream of the host writes to another, empty zone from now on. Returns whether
    /// the one that it leaves is written in part.
    pub(crate) fn leave(&mut self, stream: Stream) -> bool {
        debug_assert!(self.streams.can_leave(), "zones are written in full");
        let open = self.open[stream.index()];
        match self.written.get(open as usize) {
            // It is empty already.
            None | Some(0) => false,
            Some(written) => {
                self.open[stream.index()] = NONE;
                *written < self.capacity
            }
        }
    }

    /// The stream that wrote a zone.
    pub(crate) fn writer(&self, zone: u32) -> Stream {
        self.writers[zone as usize]
    }

    /// Nobody writes to a zone, and it is not empty: it is full, or was left, or lost its
    /// end with the power.
    fn is_closed(&self, zone: u32) -> bool {
        match self.written[zone as usize] {
            0 => false,
            full if full == self.capacity => true,
            _ => !self.open.contains(&zone),
        }
    }

    /// The place that a stream with room writes to next.
    pub(crate) fn next_place(&self, stream: Stream) -> u32 {
        let zone = self.open[stream.index()];
        zone * self.capacity + self.written[zone as usize]
    }

    /// Writes a block to the zone of a stream, in which there is room. Returns
    /// its place.
    pub(crate) fn append(&mut self, stream: Stream, block: u32) -> u32 {
        let before = self.forget(block);
        let zone = self.open[stream.index()];
        let offset = &mut self.written[zone as usize];
        self.replaced.note(zone, *offset, before);
        let place = zone * self.capacity + *offset;
        *offset += 1;
        self.valid[zone as usize] += 1;
        self.blocks[place as usize] = block;
        self.places[block as usize] = place;
        place
    }

    /// A block holds nothing any more. Returns the place that held it, or [`NONE`].
    pub(crate) fn forget(&mut self, block: u32) -> u32 {
        let place = std::mem::replace(&mut self.places[block as usize], NONE);
        if place != NONE {
            self.valid[(place / self.capacity) as usize] -= 1;
        }
        place
    }

    /// The zone, full or left, with the fewest blocks that hold something (greedy), if
    /// collecting it gives room.
    pub(crate) fn victim(&self) -> Option<u32> {
        let count = self.written.len() as u32;
        (0..count)
            .filter(|&zone| self.is_closed(zone) && self.has_room_for(zone))
            .min_by_key(|&zone| self.valid[zone as usize])
            .filter(|&zone| self.valid[zone as usize] < self.capacity)
    }

    /// What a zone holds can be moved. There is always such a zone: the one whose collection
    /// a loss of power interrupted, if none is empty.
    fn has_room_for(&self, zone: u32) -> bool {
        let stream = self.streams.collection_of(self.writers[zone as usize]);
        let written = self.written.get(self.open[stream.index()] as usize);
        let open = written.map_or(0, |written| self.capacity - written);
        !self.free.is_empty() || self.valid[zone as usize] <= open
    }

    /// The places of a zone.
    pub(crate) fn places_of(&self, zone: u32) -> Range<u32> {
        zone * self.capacity..(zone + 1) * self.capacity
    }

    /// A zone without a block that holds something has been reset.
    pub(crate) fn freed(&mut self, zone: u32) {
        debug_assert_eq!(self.valid[zone as usize], 0, "data of the host is lost");
        for open in &mut self.open {
            if *open == zone {
                *open = NONE;
            }
        }
        self.written[zone as usize] = 0;
        self.replaced.forget(zone);
        self.free.push_back(zone);
    }

    /// Forgets what was where before in zones that nobody writes to and that are on the
    /// flash as far as they are written.
    pub(super) fn note_durable(&mut self, durable_lbas: impl Fn(ZoneId) -> u32) {
        let (zones, open, written) = (self.zones.start, &self.open, &self.written);
        self.replaced.retain(|zone| {
            let is_durable = durable_lbas(ZoneId(zones + zone)) >= written[zone as usize];
            open.contains(&zone) || !is_durable
        });
    }

    /// Whether a loss of power now could bring back a place of a zone, which must not be
    /// reset then. `durable_lbas` is what of a zone would be left.
    pub(super) fn may_come_back(&self, zone: u32, durable_lbas: impl Fn(ZoneId) -> u32) -> bool {
        let (places, first) = (self.places_of(zone), self.zones.start);
        let durable = |of| durable_lbas(ZoneId(first + of));
        self.replaced
            .behind(durable)
            .any(|place| places.contains(&place))
    }

    /// Power is lost. What zones have beyond what is `left` of them is gone: their blocks
    /// are where they were before.
    pub(crate) fn power_cut(&mut self, left: impl Fn(ZoneId) -> u64) {
        // Fit: zones have no more than they had.
        let count = self.written.len() as u32;
        let left: Vec<u32> = (0..count)
            .map(|zone| left(ZoneId(self.zones.start + zone)) as u32)
            .collect();
        let is_left = |place: u32| place % self.capacity < left[(place / self.capacity) as usize];
        let mut moved = Vec::new();
        for zone in 0..count {
            let begin = zone * self.capacity;
            for place in begin + left[zone as usize]..begin + self.written[zone as usize] {
                let Some(block) = self.block_at(place) else {
                    continue;
                };
                let mut before = place;
                while before != NONE && !is_left(before) {
                    before = self.replaced.of(before);
                }
                debug_assert!(
                    before == NONE || self.blocks[before as usize] == block,
                    "the zone that held block {block} before was reset too early"
                );
                moved.push((block, before));
            }
        }
        for (block, before) in moved {
            self.forget(block);
            if before != NONE {
                self.places[block as usize] = before;
                self.valid[(before / self.capacity) as usize] += 1;
            }
        }
        for (zone, left) in (0..).zip(left) {
            if self.written[zone as usize] > left {
                self.written[zone as usize] = left;
                self.replaced.truncate(zone, left);
                if left == 0 {
                    self.freed(zone);
                }
            }
        }
    }

    /// Checks everything that must always hold.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this module.
    pub(crate) fn assert_invariants(&self, written: impl Fn(ZoneId) -> u64) {
        let mut valid = vec![0; self.valid.len()];
        for (block, &place) in (0..).zip(&self.places).filter(|(_, place)| **place != NONE) {
            assert_eq!(self.blocks[place as usize], block, "two blocks at a place");
            let zone = (place / self.capacity) as usize;
            assert!(place % self.capacity < self.written[zone], "not written");
            valid[zone] += 1;
        }
        assert_eq!(valid, self.valid, "blocks that hold something");
        for zone in 0..self.written.len() as u32 {
            let is_free = self.free.contains(&zone);
            let is_open = self.open.contains(&zone);
            let on_drive = written(ZoneId(self.zones.start + zone));
            let of_log = self.written[zone as usize];
            // The victim of a collection is reset before the log knows.
            assert!(
                on_drive == 0 || on_drive == u64::from(of_log),
                "blocks of a zone"
            );
            match self.written[zone as usize] {
                0 => assert!(is_free != is_open, "an empty zone is free or open"),
                full if full == self.capacity => assert!(!is_free, "a full zone is free"),
                _ => assert!(!is_free, "a zone in part is free"),
            }
        }
        for (index, &zone) in self.open.iter().enumerate().filter(|(_, of)| **of != NONE) {
            let writer = self.writers[zone as usize];
            assert_eq!(writer.index(), index, "a zone has one that writes it");
        }
    }
}
