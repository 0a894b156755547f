//! Where the blocks of a conventional namespace are: a log over zones of its own.

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::ZoneId;

/// "None" of an address and of a zone.
const NONE: u32 = u32::MAX;

/// Who writes: each fills a zone of its own, so that data which was collected,
/// and therefore changes seldom, does not mix with what the host writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The host.
    Host,
    /// Garbage collection.
    Collection,
}

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
    /// The zone that each stream writes to.
    open: [u32; 2],
    /// Empty zones, in the order in which they became so.
    free: VecDeque<u32>,
}

impl Log {
    /// An empty log for `blocks` blocks.
    pub(crate) fn new(zones: Range<u32>, capacity: u32, blocks: u32) -> Self {
        let count = zones.len();
        Self {
            capacity,
            places: vec![NONE; blocks as usize],
            blocks: vec![NONE; count * capacity as usize],
            written: vec![0; count],
            valid: vec![0; count],
            open: [NONE; 2],
            // Fits: they are zones of the drive.
            free: (0..count as u32).collect(),
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
        let open = self.open[stream as usize];
        if open != NONE && self.written[open as usize] < self.capacity {
            return self.capacity - self.written[open as usize];
        }
        let kept = usize::from(stream == Stream::Host);
        self.open[stream as usize] = NONE;
        if self.free.len() <= kept {
            return 0;
        }
        let Some(zone) = self.free.pop_front() else {
            return 0;
        };
        self.open[stream as usize] = zone;
        self.capacity
    }

    /// The place that a stream with room writes to next.
    pub(crate) fn next_place(&self, stream: Stream) -> u32 {
        let zone = self.open[stream as usize];
        zone * self.capacity + self.written[zone as usize]
    }

    /// Writes a block to the zone of a stream, in which there is room. Returns
    /// its place.
    pub(crate) fn append(&mut self, stream: Stream, block: u32) -> u32 {
        self.forget(block);
        let zone = self.open[stream as usize];
        let offset = &mut self.written[zone as usize];
        let place = zone * self.capacity + *offset;
        *offset += 1;
        self.valid[zone as usize] += 1;
        self.blocks[place as usize] = block;
        self.places[block as usize] = place;
        place
    }

    /// A block holds nothing any more.
    pub(crate) fn forget(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.places[block as usize], NONE);
        if place != NONE {
            self.valid[(place / self.capacity) as usize] -= 1;
        }
    }

    /// The full zone with the fewest blocks that hold something (greedy), if
    /// collecting it gives room.
    pub(crate) fn victim(&self) -> Option<u32> {
        let count = self.written.len() as u32;
        (0..count)
            .filter(|&zone| self.written[zone as usize] == self.capacity)
            .min_by_key(|&zone| self.valid[zone as usize])
            .filter(|&zone| self.valid[zone as usize] < self.capacity)
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
        self.free.push_back(zone);
    }

    /// Zones that are neither empty in the log nor written: reset, and nobody
    /// was told, since power was lost.
    pub(crate) fn free_unlisted(&mut self, is_empty: impl Fn(ZoneId) -> bool) {
        for zone in 0..self.written.len() as u32 {
            if self.written[zone as usize] > 0 && is_empty(ZoneId(self.zones.start + zone)) {
                self.freed(zone);
            }
        }
    }

    /// Places of all blocks, and the open zones.
    pub(crate) fn save(&self) -> (Vec<u32>, [u32; 2], Vec<u32>) {
        let free = self.free.iter().copied().collect();
        (self.places.clone(), self.open, free)
    }

    /// A log from data, of which nothing is believed, over zones that have so
    /// many blocks written.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore(
        &mut self,
        (places, open, free): (Vec<u32>, [u32; 2], Vec<u32>),
        written: impl Fn(ZoneId) -> u64,
    ) -> Result<(), String> {
        if places.len() != self.places.len() {
            return Err(format!("{} blocks of a namespace", places.len()));
        }
        for (zone, of) in (self.zones.start..).zip(&mut self.written) {
            *of = u32::try_from(written(ZoneId(zone))).unwrap_or(u32::MAX);
        }
        for (block, &place) in (0..).zip(&places).filter(|(_, place)| **place != NONE) {
            let zone = (place / self.capacity) as usize;
            let is_written = self
                .written
                .get(zone)
                .is_some_and(|&w| place % self.capacity < w);
            match self.blocks.get_mut(place as usize) {
                Some(of) if is_written && *of == NONE => *of = block,
                _ => return Err(format!("block {block} at place {place}")),
            }
            self.valid[zone] += 1;
        }
        self.places = places;
        let mut seen = vec![false; self.written.len()];
        for &zone in open.iter().filter(|zone| **zone != NONE).chain(&free) {
            match seen.get_mut(zone as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(format!("zone {zone} of a log")),
            }
        }
        let is_in_order = |(zone, &written): (usize, &u32)| {
            let is_free = free.iter().any(|of| *of as usize == zone);
            let is_open = open.iter().any(|of| *of as usize == zone);
            match written {
                0 => is_free || is_open,
                full if full == self.capacity => !is_free,
                _ => is_open && !is_free,
            }
        };
        if !self.written.iter().enumerate().all(is_in_order) {
            return Err("zones of a log that are neither full, open nor empty".to_owned());
        }
        self.open = open;
        self.free = free.into();
        Ok(())
    }

    /// A log from what each of its places holds, of which nothing is believed,
    /// over zones that have so many blocks written.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn recover(
        &mut self,
        blocks: &[Option<u32>],
        written: impl Fn(ZoneId) -> u64,
    ) -> Result<(), String> {
        if blocks.len() != self.blocks.len() {
            return Err(format!("{} places of a log", blocks.len()));
        }
        let mut places = vec![NONE; self.places.len()];
        for (place, block) in (0..).zip(blocks) {
            let Some(block) = *block else { continue };
            match places.get_mut(block as usize) {
                Some(of) if *of == NONE => *of = place,
                _ => return Err(format!("block {block} at place {place}")),
            }
        }
        let mut free = Vec::new();
        let mut open = Vec::new();
        for (index, zone) in (0..).zip(self.zones.clone()) {
            match written(ZoneId(zone)) {
                0 => free.push(index),
                full if full == u64::from(self.capacity) => {}
                _ => open.push(index),
            }
        }
        // Which of the two writes to which does not matter any more.
        let mut streams = [NONE; 2];
        for index in open {
            match streams.iter_mut().find(|stream| **stream == NONE) {
                Some(stream) => *stream = index,
                None => return Err(format!("zone {index} of a log is a third that is open")),
            }
        }
        self.restore((places, streams, free), written)
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
                _ => assert!(is_open && !is_free, "a zone in part is open"),
            }
        }
    }
}
