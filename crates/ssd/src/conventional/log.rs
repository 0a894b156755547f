//! Where the blocks of a conventional namespace are: a log over zones of its own.

mod failed;
mod saved;
mod victims;

use std::collections::VecDeque;
use std::ops::Range;

use zonelab_device::ZoneId;

use super::replaced::Replaced;
use super::streams::{Stream, Streams};
use crate::config::LogConfig;

pub(crate) use victims::Ages;

/// "None" of an address and of a zone.
pub(super) const NONE: u32 = u32::MAX;

/// A flat table of mapping units, and the zones that they are in.
///
/// A *unit* is as many blocks as the table maps together. A *place* is a position in the log
/// for one of them: zone by zone, `capacity` units each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// Its zones, counted over the drive.
    zones: Range<u32>,
    /// Blocks of a unit.
    unit_lbas: u32,
    /// Units of a zone.
    capacity: u32,
    /// Place of each unit of the namespace; `NONE`: it holds nothing.
    places: Vec<u32>,
    /// Unit of the namespace that was written to each place.
    units: Vec<u32>,
    /// Units written to each zone.
    written: Vec<u32>,
    /// Units of each zone that the table points to.
    valid: Vec<u32>,
    /// Stream that writes or wrote each zone.
    writers: Vec<Stream>,
    /// The zone that each stream writes to.
    open: Vec<u32>,
    streams: Streams,
    /// Empty zones, in the order in which they became so.
    free: VecDeque<u32>,
    /// Where units were before, as long as a loss of power can bring that back.
    replaced: Replaced,
    /// How old what zones hold is, if collection asks for that.
    ages: Option<Ages>,
    /// By zone, whether its flash has failed.
    failed: Vec<bool>,
    failed_zones: u32,
    /// Empty zones that the host leaves for collection.
    kept_zones: usize,
    is_read_only: bool,
}

impl Log {
    /// An empty log for `blocks` blocks over zones of `capacity_lbas` blocks, both whole units.
    /// `can_lose`: a loss of power takes what is on no flash yet.
    pub(crate) fn new(
        zones: Range<u32>,
        (capacity_lbas, blocks): (u32, u32),
        (config, streams): (&LogConfig, Streams),
        can_lose: bool,
    ) -> Self {
        let count = zones.len();
        let unit_lbas = config.mapping_unit_lbas.max(1);
        let capacity = capacity_lbas / unit_lbas;
        debug_assert_eq!(
            capacity_lbas % unit_lbas,
            0,
            "a profile with others is refused"
        );
        Self {
            unit_lbas,
            capacity,
            places: vec![NONE; (blocks / unit_lbas) as usize],
            units: vec![NONE; count * capacity as usize],
            written: vec![0; count],
            valid: vec![0; count],
            writers: vec![Stream::DEFAULT; count],
            open: vec![NONE; streams.count()],
            streams,
            // Fits: they are zones of the drive.
            free: (0..count as u32).collect(),
            replaced: Replaced::new(can_lose.then_some(count), capacity),
            ages: Ages::new(config.collection, count),
            failed: vec![false; count],
            failed_zones: 0,
            kept_zones: 1,
            is_read_only: false,
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

    /// Blocks of a unit.
    #[inline]
    pub(crate) const fn unit_lbas(&self) -> u32 {
        self.unit_lbas
    }

    /// The place of a unit, if there is such a unit and it holds something.
    #[inline]
    pub(crate) fn place_of(&self, unit: u32) -> Option<u32> {
        let place = *self.places.get(unit as usize)?;
        (place != NONE).then_some(place)
    }

    /// The unit at a place, if that is where its data is.
    #[inline]
    pub(crate) fn unit_at(&self, place: u32) -> Option<u32> {
        let unit = self.units[place as usize];
        (unit != NONE && self.places[unit as usize] == place).then_some(unit)
    }

    /// Zone of the drive, and its block, that a place begins with.
    #[inline]
    pub(crate) fn position(&self, place: u32) -> (ZoneId, u32) {
        let zone = ZoneId(self.zones.start + place / self.capacity);
        (zone, place % self.capacity * self.unit_lbas)
    }

    /// Zone of the drive, and block in it, that has the data of a block of the namespace;
    /// `None`: it holds nothing, or there is no such block.
    #[inline]
    pub(crate) fn block_position(&self, block: u32) -> Option<(ZoneId, u32)> {
        let place = self.place_of(block / self.unit_lbas)?;
        let (zone, first) = self.position(place);
        Some((zone, first + block % self.unit_lbas))
    }

    /// Units that so many blocks of a zone begin: the last may be there in part.
    fn begun(&self, lbas: u64) -> u32 {
        // Fits: a zone has fewer. Of what nothing is believed about, it is too many.
        u32::try_from(lbas.div_ceil(self.unit_lbas.into())).unwrap_or(u32::MAX)
    }

    /// Units that a stream can write to its zone: 0 if it has none, and there
    /// is none for it. The host leaves one empty zone for collection.
    pub(crate) fn room(&mut self, stream: Stream) -> u32 {
        let open = self.open[stream.index()];
        if open != NONE && self.written[open as usize] < self.capacity {
            return self.capacity - self.written[open as usize];
        }
        let kept = match self.streams.is_of_host(stream) {
            true => self.kept_zones,
            false => 0,
        };
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
        let units = match written {
            Some(written) if *written < self.capacity => self.capacity - written,
            _ => self.capacity,
        };
        units * self.unit_lbas
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

    /// The place that a stream with room writes to next.
    pub(crate) fn next_place(&self, stream: Stream) -> u32 {
        let zone = self.open[stream.index()];
        zone * self.capacity + self.written[zone as usize]
    }

    /// The host writes a unit to the zone of a stream, in which there is room.
    #[inline]
    pub(crate) fn append(&mut self, stream: Stream, unit: u32) {
        if let Some(ages) = &mut self.ages {
            ages.host_writes(self.open[stream.index()]);
        }
        self.put(stream, unit);
    }

    /// Collection moves a unit of a zone to the zone of a stream, in which there is room.
    pub(crate) fn append_moved(&mut self, stream: Stream, unit: u32, from: u32) {
        if let Some(ages) = &mut self.ages {
            ages.moves(from, self.open[stream.index()]);
        }
        self.put(stream, unit);
    }

    /// A unit is written to the zone of a stream.
    fn put(&mut self, stream: Stream, unit: u32) {
        let before = self.forget(unit);
        let zone = self.open[stream.index()];
        let offset = &mut self.written[zone as usize];
        self.replaced.note(zone, *offset, before);
        let place = zone * self.capacity + *offset;
        *offset += 1;
        self.valid[zone as usize] += 1;
        self.units[place as usize] = unit;
        self.places[unit as usize] = place;
    }

    /// A unit holds nothing any more. Returns the place that held it, or [`NONE`].
    pub(crate) fn forget(&mut self, unit: u32) -> u32 {
        let place = std::mem::replace(&mut self.places[unit as usize], NONE);
        if place != NONE {
            self.valid[(place / self.capacity) as usize] -= 1;
        }
        place
    }

    /// The places of a zone.
    pub(crate) fn places_of(&self, zone: u32) -> Range<u32> {
        zone * self.capacity..(zone + 1) * self.capacity
    }

    /// A zone without a unit that holds something has been reset.
    pub(crate) fn freed(&mut self, zone: u32) {
        debug_assert_eq!(self.valid[zone as usize], 0, "data of the host is lost");
        self.close(zone);
        self.written[zone as usize] = 0;
        if let Some(ages) = &mut self.ages {
            ages.empties(zone);
        }
        if !self.has_failed(zone) {
            self.free.push_back(zone);
        }
    }

    /// Forgets what was where before in zones that nobody writes to and that are on the
    /// flash as far as they are written.
    pub(super) fn note_durable(&mut self, durable_lbas: impl Fn(ZoneId) -> u32) {
        let (zones, open, written) = (self.zones.start, &self.open, &self.written);
        let unit_lbas = self.unit_lbas;
        self.replaced.retain(|zone| {
            let durable = durable_lbas(ZoneId(zones + zone)) / unit_lbas;
            let is_durable = durable >= written[zone as usize];
            open.contains(&zone) || !is_durable
        });
    }

    /// Whether a loss of power now could bring back a place of a zone, which must not be
    /// reset then. `durable_lbas` is what of a zone would be left.
    pub(super) fn may_come_back(&self, zone: u32, durable_lbas: impl Fn(ZoneId) -> u32) -> bool {
        let (places, first) = (self.places_of(zone), self.zones.start);
        let durable = |of| durable_lbas(ZoneId(first + of)) / self.unit_lbas;
        self.replaced
            .behind(durable)
            .any(|place| places.contains(&place))
    }

    /// Power is lost. What zones have beyond the blocks that are `left` of them is gone: their
    /// units are where they were before. A zone that ends with a part of a unit is written no
    /// more.
    pub(crate) fn power_cut(&mut self, left_lbas: impl Fn(ZoneId) -> u64) {
        let count = self.written.len() as u32;
        let left_lbas: Vec<u64> = (0..count)
            .map(|zone| left_lbas(ZoneId(self.zones.start + zone)))
            .collect();
        // Fit: zones have no more than they had.
        let whole = |lbas: u64| (lbas / u64::from(self.unit_lbas)) as u32;
        let left: Vec<u32> = left_lbas.iter().map(|lbas| whole(*lbas)).collect();
        let is_left = |place: u32| place % self.capacity < left[(place / self.capacity) as usize];
        let mut moved = Vec::new();
        for zone in 0..count {
            let begin = zone * self.capacity;
            for place in begin + left[zone as usize]..begin + self.written[zone as usize] {
                let Some(unit) = self.unit_at(place) else {
                    continue;
                };
                let mut before = place;
                while before != NONE && !is_left(before) {
                    before = self.replaced.of(before);
                }
                debug_assert!(
                    before == NONE || self.units[before as usize] == unit,
                    "the zone that held unit {unit} before was reset too early"
                );
                moved.push((unit, before));
            }
        }
        for (unit, before) in moved {
            self.forget(unit);
            if before != NONE {
                self.places[unit as usize] = before;
                self.valid[(before / self.capacity) as usize] += 1;
            }
        }
        for (zone, lbas) in (0..).zip(left_lbas) {
            let (left, begun) = (left[zone as usize], self.begun(lbas));
            if self.written[zone as usize] <= left {
                continue;
            }
            self.written[zone as usize] = begun;
            if begun == 0 {
                self.freed(zone);
            } else if begun > left {
                self.close(zone);
            } else {
                self.replaced.truncate(zone, left);
            }
        }
    }

    /// Nothing is written to a zone any more, and what it has is on the flash.
    fn close(&mut self, zone: u32) {
        self.replaced.forget(zone);
        for open in self.open.iter_mut().filter(|open| **open == zone) {
            *open = NONE;
        }
    }

    /// Checks everything that must always hold.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this module.
    pub(crate) fn assert_invariants(&self, written: impl Fn(ZoneId) -> u64) {
        let mut valid = vec![0; self.valid.len()];
        for (unit, &place) in (0..).zip(&self.places).filter(|(_, place)| **place != NONE) {
            assert_eq!(self.units[place as usize], unit, "two units at a place");
            let zone = (place / self.capacity) as usize;
            assert!(place % self.capacity < self.written[zone], "not written");
            valid[zone] += 1;
        }
        assert_eq!(valid, self.valid, "units that hold something");
        for zone in 0..self.written.len() as u32 {
            let is_free = self.free.contains(&zone);
            let is_open = self.open.contains(&zone);
            let on_drive = written(ZoneId(self.zones.start + zone));
            let of_log = self.written[zone as usize];
            // The victim of a collection is reset before the log knows.
            assert!(
                on_drive == 0 || self.begun(on_drive) == of_log,
                "units of a zone"
            );
            match self.written[zone as usize] {
                _ if self.has_failed(zone) => assert!(!is_free && !is_open, "a zone has failed"),
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
