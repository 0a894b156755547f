//! What outlives a log: the same again from a snapshot, or from what each place holds.

use zonelab_device::ZoneId;

use super::super::streams::Stream;
use super::{Log, NONE};
use crate::config::Isolation;

impl Log {
    /// Places of all units, the open zones if there are two streams, and the empty ones.
    pub(crate) fn save(&self) -> (Vec<u32>, [u32; 2], Vec<u32>) {
        let free = self.free.iter().copied().collect();
        let open = match *self.open {
            [host, collection] => [host, collection],
            // They are saved apart.
            _ => [NONE; 2],
        };
        (self.places.clone(), open, free)
    }

    /// The open zones of all streams, and who wrote each zone.
    pub(crate) fn save_streams(&self) -> (Vec<u32>, Vec<u8>) {
        let writers = self.writers.iter().map(|of| of.number()).collect();
        (self.open.clone(), writers)
    }

    /// What [`Log::save_streams`] gave, of which nothing is believed, behind
    /// [`Log::restore`].
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore_streams(&mut self, open: &[u32], writers: &[u8]) -> Result<(), String> {
        if open.len() != self.open.len() || writers.len() != self.writers.len() {
            return Err(format!("{} streams of {} zones", open.len(), writers.len()));
        }
        for (number, of) in writers.iter().zip(&mut self.writers) {
            let writer = self.streams.numbered(*number);
            *of = writer.ok_or_else(|| format!("stream {number} of a log"))?;
        }
        let free: Vec<u32> = self.free.iter().copied().collect();
        self.check_zones(open, &free)?;
        let is_of_another = |(index, zone): (usize, &u32)| {
            let writer = self.writers.get(*zone as usize);
            writer.is_some_and(|of| of.index() != index)
        };
        if open.iter().enumerate().any(is_of_another) {
            return Err("zones of a log that another stream wrote".to_owned());
        }
        self.open.copy_from_slice(open);
        Ok(())
    }

    /// Whether each zone is open, empty or neither as what was written to it says.
    fn check_zones(&self, open: &[u32], free: &[u32]) -> Result<(), String> {
        let mut seen = vec![false; self.written.len()];
        for &zone in open.iter().filter(|zone| **zone != NONE).chain(free) {
            match seen.get_mut(zone as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(format!("zone {zone} of a log")),
            }
        }
        let is_in_order = |(zone, &written): (usize, &u32)| {
            let is_free = free.iter().any(|of| *of as usize == zone);
            let is_open = open.iter().any(|of| *of as usize == zone);
            match written {
                _ if self.failed[zone] => !is_free && !is_open,
                0 => is_free || is_open,
                full if full == self.capacity => !is_free,
                _ => !is_free,
            }
        };
        if !self.written.iter().enumerate().all(is_in_order) {
            return Err("zones of a log that are neither full, open nor empty".to_owned());
        }
        Ok(())
    }

    /// A log from data, of which nothing is believed, over zones that have so
    /// many blocks written. With two streams, `open` has the zones that they write.
    ///
    /// # Errors
    /// What is impossible about it.
    pub(crate) fn restore(
        &mut self,
        (places, open, free): (Vec<u32>, [u32; 2], Vec<u32>),
        written: impl Fn(ZoneId) -> u64,
    ) -> Result<(), String> {
        if places.len() != self.places.len() {
            return Err(format!("{} units of a namespace", places.len()));
        }
        let unit_lbas = u64::from(self.unit_lbas);
        for (zone, of) in (self.zones.start..).zip(&mut self.written) {
            *of = u32::try_from(written(ZoneId(zone)).div_ceil(unit_lbas)).unwrap_or(u32::MAX);
        }
        for (unit, &place) in (0..).zip(&places).filter(|(_, place)| **place != NONE) {
            let zone = (place / self.capacity) as usize;
            let of_drive = ZoneId(self.zones.start.saturating_add(zone as u32));
            let is_written = zone < self.written.len()
                && u64::from(place % self.capacity) < written(of_drive) / unit_lbas;
            match self.units.get_mut(place as usize) {
                Some(of) if is_written && *of == NONE => *of = unit,
                _ => return Err(format!("unit {unit} at place {place}")),
            }
            self.valid[zone] += 1;
        }
        self.places = places;
        self.replaced.clear();
        if self.open.len() == open.len() {
            self.check_zones(&open, &free)?;
            self.open.copy_from_slice(&open);
            for (number, zone) in (0..).zip(open) {
                let writer = self.writers.get_mut(zone as usize);
                if let (Some(writer), Some(of)) = (writer, self.streams.numbered(number)) {
                    *writer = of;
                }
            }
        }
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
        let unit_lbas = self.unit_lbas as usize;
        if blocks.len() != self.units.len() * unit_lbas {
            return Err(format!("{} places of a log", blocks.len()));
        }
        let mut places = vec![NONE; self.places.len()];
        for (place, blocks) in (0..).zip(blocks.chunks(unit_lbas)) {
            let Some(first) = blocks[0] else { continue };
            // What is there in part only was never acknowledged.
            let is_whole = (first..).zip(blocks).all(|(block, at)| *at == Some(block));
            if !first.is_multiple_of(self.unit_lbas) || !is_whole {
                continue;
            }
            match places.get_mut((first / self.unit_lbas) as usize) {
                Some(of) if *of == NONE => *of = place,
                _ => return Err(format!("block {first} at place {place}")),
            }
        }
        let mut free = Vec::new();
        let mut open = Vec::new();
        for (index, zone) in (0..).zip(self.zones.clone()) {
            let (lbas, unit_lbas) = (written(ZoneId(zone)), u64::from(self.unit_lbas));
            match lbas / unit_lbas {
                _ if self.has_failed(index) => {}
                0 if lbas == 0 => free.push(index),
                full if full == u64::from(self.capacity) => {}
                // It ends with a part of a unit.
                _ if lbas % unit_lbas != 0 => {}
                _ => open.push(index),
            }
        }
        if self.streams.can_leave() {
            return self.recover_handles((places, open, free), written);
        }
        // Who wrote to which does not matter any more. Of more than two, which losses of
        // power can leave, the collection gets the one with the most room.
        if open.len() > 2 {
            let start = self.zones.start;
            open.sort_by_key(|zone| std::cmp::Reverse(written(ZoneId(start + zone))));
        }
        let mut last = open.into_iter().rev();
        let streams = match (last.next(), last.next()) {
            (Some(only), None) => [only, NONE],
            (collection, host) => [host.unwrap_or(NONE), collection.unwrap_or(NONE)],
        };
        self.restore((places, streams, free), written)
    }

    /// The same with reclaim unit handles. Who wrote which zone is not known any more:
    /// collection goes on in the zone, of those that are written in part, with the most
    /// room, as it needs no more than it had; the others are left.
    fn recover_handles(
        &mut self,
        (places, open, free): (Vec<u32>, Vec<u32>, Vec<u32>),
        written: impl Fn(ZoneId) -> u64,
    ) -> Result<(), String> {
        let one_writer = self.streams.handles() == 1;
        if self.streams.isolation() == Isolation::Persistently && !one_writer {
            return Err(
                "a store does not say which of several persistently isolated reclaim unit \
                 handles wrote what (namespaces.isolation): \"initially\" isolated ones can be \
                 stored"
                    .to_owned(),
            );
        }
        let collection = self.streams.collection_of(Stream::DEFAULT);
        let written_of = |zone: u32| written(ZoneId(self.zones.start + zone));
        let most_room = open.iter().copied().min_by_key(|zone| written_of(*zone));
        let mut streams = vec![NONE; self.open.len()];
        streams[collection.index()] = most_room.unwrap_or(NONE);
        // With two streams, these are all.
        let two = match *streams {
            [host, collection] => [host, collection],
            _ => [NONE; 2],
        };
        self.restore((places, two, free), written)?;
        let writers = vec![collection.number(); self.writers.len()];
        self.restore_streams(&streams, &writers)
    }
}
