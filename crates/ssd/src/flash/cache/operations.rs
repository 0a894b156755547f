//! What the rest of the drive asks of its SLC cache, and the operations that follow.

use zonelab_device::Nanos;

use super::super::operations::duration_ns;
use super::super::{BlockEvent, BlockRange, Flash, Target};
use super::{Cache, Foldable};
use crate::account::Cause;
use crate::config::PlaneMode;
use crate::event::EventQueue;
use crate::flash::BlockState;
use crate::media::{FlashKind, FlashOp};

impl Cache {
    /// An operation on a place, without its transfer.
    fn operation(&self, kind: FlashKind, place: u64) -> FlashOp {
        let column = (place % self.columns.len() as u64) as usize;
        let array_ns = match kind {
            FlashKind::Read => self.config.read_ns,
            FlashKind::Program => self.config.program_ns,
            FlashKind::Erase => self.config.erase_ns,
        };
        FlashOp {
            unit: self.columns[column].0,
            kind,
            array_ns: duration_ns(array_ns),
            transfer_ns: 0,
        }
    }

    /// The pages of a place that its first blocks go to: block of the drive, first logical
    /// block in that, and their number.
    fn pages_of(&self, place: u64, lbas: u32) -> impl Iterator<Item = (usize, u32, u32)> + use<'_> {
        let columns = self.columns.len() as u64;
        let (_, first_plane) = self.columns[(place % columns) as usize];
        // Fits: a block has fewer pages.
        let page = (place % self.row_places / columns) as u32;
        let in_plane = self.block_in_plane(place);
        (0..self.planes)
            .map(move |plane| (plane, lbas.saturating_sub(plane * self.page_lbas)))
            .take_while(|(_, lbas)| *lbas > 0)
            .map(move |(plane, lbas)| {
                let block = self.block_index(first_plane + plane, in_plane);
                (block, page * self.page_lbas, lbas.min(self.page_lbas))
            })
    }
}

impl Flash {
    /// Whether there is an SLC cache.
    #[inline]
    pub(crate) const fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Whether a program of the write buffer has room in the SLC cache, if there is one.
    #[inline]
    pub(crate) fn cache_has_room(&self) -> bool {
        self.cache.as_ref().is_none_or(|cache| cache.has_room())
    }

    /// Whether the SLC cache, if there is one, has room for all that the write buffer holds if
    /// power is lost.
    #[inline]
    pub(crate) fn cache_can_save(&self) -> bool {
        self.cache.as_ref().is_none_or(|cache| cache.can_save())
    }

    /// What a physical zone has in the SLC cache is of no use any more.
    pub(crate) fn clear_cached(&mut self, physical: u32) {
        if let Some(cache) = &mut self.cache {
            cache.clear(physical);
        }
    }

    /// By zone: the end of what is on blocks of its own, and not in the SLC cache alone.
    pub(crate) fn folded_ends(&self) -> Vec<u32> {
        let mut ends = Vec::new();
        let Some(cache) = &self.cache else {
            return ends;
        };
        for (zone, physical) in self.mapping.mapped() {
            let at = zone.0 as usize;
            ends.resize(ends.len().max(at + 1), u32::MAX);
            ends[at] = cache.folded_last(physical);
        }
        ends
    }

    /// Places of the SLC cache.
    pub(crate) fn cache_places(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.places())
    }

    /// The most places that may be in use while the write buffer has room.
    pub(crate) fn cache_places_usable(&self) -> u64 {
        let cache = self.cache.as_ref();
        cache.map_or(0, |cache| {
            cache.places() - cache.reserve_places - cache.program_places
        })
    }

    /// Bytes of the places of the SLC cache that hold something.
    #[must_use]
    pub fn cached_bytes(&self) -> u64 {
        let Some(cache) = &self.cache else { return 0 };
        let lba_bytes = u64::from(cache.config.page_bytes / cache.page_lbas);
        let used: u64 = cache.used.iter().map(|used| u64::from(*used)).sum();
        used * u64::from(cache.place_lbas) * lba_bytes
    }

    /// Bytes that finishes left to be programmed when the SLC cache is folded.
    pub(crate) fn unfilled_bytes(&self) -> u64 {
        let zones = self.cache.iter().flat_map(|cache| &cache.zones);
        let lbas = zones.filter_map(|zone| zone.rest.map(|(first, end)| u64::from(end - first)));
        lbas.sum::<u64>() * u64::from(self.page_bytes / self.layout.page_lbas())
    }

    /// Time of dies for the programs of so many bytes that have to go to the SLC cache, if there
    /// is one.
    pub(crate) fn cache_program_ns(&self, bytes: u64) -> u64 {
        let Some(cache) = &self.cache else { return 0 };
        let pages = bytes.div_ceil(u64::from(cache.config.page_bytes));
        pages.saturating_mul(cache.config.program_ns.0)
    }

    /// Where in the SLC cache a logical block of a physical zone is: the block of the drive,
    /// and how many logical blocks lie in front of it there. `None`: it is on the blocks of the
    /// zone, if anywhere.
    #[must_use]
    pub fn cached_block(&self, physical: u32, lba: u32) -> Option<(usize, u32)> {
        let cache = self.cache.as_ref()?;
        let place = cache.find(physical, lba, lba + 1).1?;
        let first = cache.owners[cache.slot_of(place)].1;
        let mut left = lba - first;
        for (block, start, lbas) in cache.pages_of(place, cache.place_lbas) {
            if left < lbas {
                return Some((block, start + left));
            }
            left -= lbas;
        }
        None
    }

    /// Whether a block of the drive belongs to the SLC cache.
    #[must_use]
    pub fn is_of_cache(&self, block: usize) -> bool {
        self.cache.as_ref().is_some_and(|of| of.has_block(block))
    }

    /// Channel time of so many whole logical blocks of a place.
    fn transfer_lbas(&self, cache: &Cache, lbas: u32) -> u32 {
        match self.timing.partial_transfer {
            true => lbas,
            false => lbas.next_multiple_of(cache.page_lbas),
        }
    }

    /// Adds an operation on a place to the group.
    fn push_place(&mut self, kind: FlashKind, place: u64, lbas: u32) {
        let Some(cache) = &self.cache else { return };
        let lbas = self.transfer_lbas(cache, lbas);
        let mut op = cache.operation(kind, place);
        let page_lbas = u64::from(self.layout.page_lbas());
        let transfer_ns = self.timing.transfer_ns.0 * u64::from(lbas) / page_lbas;
        op.transfer_ns = duration_ns(Nanos(transfer_ns));
        self.ops.push(op);
    }

    /// Takes places of the SLC cache for blocks of a zone, and puts their programs together.
    fn put_in_cache(&mut self, target: Target) {
        self.ops.clear();
        let Some(cache) = &mut self.cache else { return };
        cache.take_places(target.physical, target.range);
        let taken = std::mem::take(&mut cache.taken);
        for &(place, lbas) in &taken {
            let Some(cache) = &self.cache else { return };
            let page_bytes = u64::from(cache.config.page_bytes);
            for (block, first, lbas) in cache.pages_of(place, lbas) {
                self.blocks.program(block);
                self.programmed_bytes += page_bytes;
                if let Some(watched) = &mut self.watched {
                    let page_lbas = self.layout.page_lbas();
                    watched.push(BlockEvent::Program {
                        block,
                        page: first / page_lbas,
                        first: first % page_lbas,
                        end: first % page_lbas + lbas,
                    });
                }
            }
            self.push_place(FlashKind::Program, place, lbas);
        }
        if let Some(cache) = &mut self.cache {
            cache.taken = taken;
        }
    }

    /// Programs `target` in the SLC cache; the group ends with `token`.
    pub(crate) fn program_cached(
        &mut self,
        now: Nanos,
        target: Target,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.put_in_cache(target);
        self.submit(now, token, Cause::HostWrite, events);
    }

    /// The first `lbas` blocks of a physical zone have been programmed in the SLC cache.
    pub(crate) fn cache_is_programmed(&mut self, physical: u32, lbas: u32) {
        if let Some(cache) = &mut self.cache {
            let zone = &mut cache.zones[physical as usize];
            zone.programmed = lbas.min(zone.end);
        }
    }

    /// [`Flash::program_cached`] without time passing, while the drive is off or going off.
    pub(crate) fn settle_cached(&mut self, target: Target) {
        self.put_in_cache(target);
        self.cache_is_programmed(target.physical, target.range.first + target.range.count);
        self.ops.clear();
        self.at_once();
    }

    /// Reads a range of which some is in the SLC cache; the group ends with `token`.
    #[cold]
    pub(crate) fn push_reads(&mut self, physical: u32, range: BlockRange) {
        // First what is on the blocks of the zone: neighbours there are one operation.
        for is_cached in [false, true] {
            let (mut first, end) = (range.first, range.first + range.count);
            while first < end {
                let Some(cache) = &self.cache else { return };
                let (until, place) = cache.find(physical, first, end);
                let count = until - first;
                match place {
                    Some(place) if is_cached => self.push_place(FlashKind::Read, place, count),
                    None if !is_cached => {
                        self.push_pages(FlashKind::Read, physical, BlockRange { first, count });
                    }
                    _ => {}
                }
                first = until;
            }
        }
    }

    /// Reads what is to be folded; the group ends with `token`.
    pub(crate) fn read_to_fold(
        &mut self,
        now: Nanos,
        of: &Foldable,
        token: u32,
        events: &mut EventQueue,
    ) {
        self.ops.clear();
        self.push_reads(of.physical, of.range);
        self.submit(now, token, Cause::Fold, events);
    }

    /// What can be folded of the zone that has a place of the log, if it still has. `in_part`:
    /// also what is no whole unit.
    pub(crate) fn take_to_fold(&mut self, place: u64, in_part: bool) -> Option<Foldable> {
        if !self.is_to_be_folded(place) {
            return None;
        }
        let capacity = self.capacity_lbas;
        let cache = self.cache.as_mut()?;
        let physical = cache.owners[cache.slot_of(place)].0;
        cache.take_of_zone(physical, in_part, capacity)
    }

    /// Whether a place of the log holds something that is not being folded.
    pub(crate) fn is_to_be_folded(&self, place: u64) -> bool {
        let Some(cache) = &self.cache else {
            return false;
        };
        let (physical, first) = cache.owners[cache.slot_of(place)];
        cache.zones.get(physical as usize).is_some_and(|zone| {
            first >= zone.begun && cache.find(physical, first, first + 1).1 == Some(place)
        })
    }

    /// Whether a place of the log holds something whose program is not over, or comes behind
    /// such in its zone.
    pub(crate) fn is_being_programmed(&self, place: u64) -> bool {
        let Some(cache) = &self.cache else {
            return false;
        };
        let (physical, first) = cache.owners[cache.slot_of(place)];
        let zone = cache.zones.get(physical as usize);
        zone.is_some_and(|zone| first >= zone.programmed) && self.is_to_be_folded(place)
    }

    /// What can be folded of a zone that was finished, the data of the host first.
    pub(crate) fn take_of_finished(&mut self, physical: u32) -> Option<Foldable> {
        let capacity = self.capacity_lbas;
        let cache = self.cache.as_mut()?;
        let data = cache.take_of_zone(physical, true, capacity);
        data.or_else(|| cache.take_of_rest(physical))
    }

    /// A zone was finished, and all that the host wrote has left the buffer: the pages behind
    /// its first `written` blocks are to be programmed when it is folded.
    pub(crate) fn fill_at_fold(&mut self, physical: u32, written: u32) {
        let page_lbas = self.layout.page_lbas();
        let first = written.next_multiple_of(page_lbas);
        let end = self.layout.zone_pages() * page_lbas;
        if let Some(cache) = &mut self.cache {
            cache.zones[physical as usize].rest = (first < end).then_some((first, end));
        }
    }

    /// Whether something is left to be done at the fold of a zone that was finished.
    pub(crate) fn has_rest(&self, physical: u32) -> bool {
        let zone = self.cache.as_ref().map(|of| &of.zones[physical as usize]);
        zone.is_some_and(|zone| zone.rest.is_some())
    }

    /// A range of a zone was folded.
    pub(crate) fn was_folded(&mut self, physical: u32, range: BlockRange) {
        if let Some(cache) = &mut self.cache {
            cache.is_folded(physical, range);
        }
    }

    /// The places of the log: the first of the oldest row, the first behind that row, and the
    /// next to be used.
    pub(crate) fn cache_log(&self) -> (u64, u64, u64) {
        let cache = self.cache.as_ref();
        cache.map_or((0, 0, 0), |of| (of.tail, of.tail + of.row_places, of.head))
    }

    /// Whether the oldest row of the log was filled and still holds something.
    pub(crate) fn is_oldest_row_held(&self) -> bool {
        let cache = self.cache.as_ref();
        cache
            .is_some_and(|of| of.head >= of.tail + of.row_places && of.used[of.row_of(of.tail)] > 0)
    }

    /// Whether the oldest row of the log was filled, holds nothing, and is not being erased.
    pub(crate) fn can_erase_row(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.can_erase())
    }

    /// Erases the oldest row of the log; the group ends with `token`.
    pub(crate) fn erase_row(&mut self, now: Nanos, token: u32, events: &mut EventQueue) {
        self.ops.clear();
        let Some(cache) = &mut self.cache else { return };
        cache.is_erasing = true;
        let together = self.timing.planes == PlaneMode::MultiPlane;
        let op = cache.operation(FlashKind::Erase, cache.tail);
        for (unit, block) in cache.blocks_of_row(cache.tail) {
            if self.blocks.state(block) == BlockState::Erased {
                continue;
            }
            self.blocks.make_stale(block);
            self.blocks.erase(block);
            if let Some(watched) = &mut self.watched {
                watched.push(BlockEvent::Erase { block });
            }
            if !(together && self.ops.last().is_some_and(|op| op.unit == unit)) {
                self.ops.push(FlashOp { unit, ..op });
            }
        }
        self.submit(now, token, Cause::Fold, events);
    }

    /// The oldest row of the log is erased: there is room.
    pub(crate) fn row_is_erased(&mut self) {
        if let Some(cache) = &mut self.cache {
            debug_assert!(cache.is_erasing, "a row is erased once");
            cache.is_erasing = false;
            cache.tail += cache.row_places;
        }
    }

    /// Power was lost, after which physical zones have so many blocks. `interrupted`: blocks
    /// whose erasure was not over. Returns those that are not of the cache.
    pub(crate) fn cache_after_power_loss(
        &mut self,
        host_lbas: &[u32],
        interrupted: Vec<usize>,
    ) -> Vec<usize> {
        let Some(cache) = &mut self.cache else {
            return interrupted;
        };
        for (physical, lbas) in (0..).zip(host_lbas) {
            cache.truncate(physical, *lbas);
        }
        cache.nothing_is_under_way();
        let (own, others): (Vec<usize>, Vec<usize>) =
            interrupted.into_iter().partition(|of| cache.has_block(*of));
        for block in own {
            self.blocks.make_stale(block);
        }
        others
    }

    /// The cache is empty, and erased, without time passing: all of it was folded.
    pub(crate) fn empty_cache(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        for row in 0..cache.rows {
            for (_, block) in cache.blocks_of_row(row * cache.row_places) {
                if self.blocks.state(block) != BlockState::Erased {
                    self.blocks.make_stale(block);
                    self.blocks.erase(block);
                }
            }
        }
        self.at_once();
    }
}
