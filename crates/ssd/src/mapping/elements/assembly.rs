//! Which elements a zone has: from its first write, until a finish takes those away
//! that it did not write, and a reset the rest.

use zonelab_device::ZoneId;

use super::{Blocks, Elements, NONE, Physical, Shape, Tail};
use crate::layout::Layout;
use crate::mapping::allocator::{Availability, ElementId};
use crate::policy::ElementCandidate;

impl Elements {
    /// A physical zone of a group on which nothing stands and nothing is erased,
    /// `wanted` if it is one.
    pub(super) fn unused(&mut self, wanted: u32) -> u32 {
        let is_unused = |of: &Physical| of.zone == NONE && !of.is_erasing && !of.is_gathered;
        if is_unused(&self.physical[wanted as usize]) {
            return wanted;
        }
        let groups = self.shape.groups;
        let first = self.fresh_physical_zones() + wanted % groups;
        let found = (first..self.physical_zones())
            .step_by(groups as usize)
            .find(|&physical| is_unused(&self.physical[physical as usize]));
        found.unwrap_or_else(|| {
            let end = self.physical_zones();
            self.grow(end + groups);
            end + wanted % groups
        })
    }

    /// Gives `zone`, which has none, the elements of least wear. Returns the
    /// physical zone that they make.
    pub(crate) fn assemble(&mut self, zone: ZoneId, layout: &Layout) -> u32 {
        let group = zone.0 % self.shape.groups;
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        let per_lun = self.shape.per_lun;
        let allocator = &mut self.allocators[group as usize];
        let allocated = match self.shape.depth_weight {
            _ if !self.choice.is_empty() => {
                std::mem::swap(&mut chosen, &mut self.choice);
                allocator.allocate_these(&chosen);
                Ok(())
            }
            None => allocator.allocate(per_lun, &mut chosen),
            Some(weight) => allocator.allocate_relaxed(per_lun, weight, &mut chosen),
        };
        allocated.expect("a group has elements for at least as many zones as it has");
        let physical = self.bind(zone, &mut chosen, layout);
        self.chosen = chosen;
        physical
    }

    /// What a zone of a group could be assembled of, and how much of it: the LUNs, the
    /// elements of each, and whether only their number in all matters.
    pub(crate) fn candidates(&self, group: u32) -> (Vec<ElementCandidate>, (u32, u32, bool)) {
        let of = &self.allocators[group as usize];
        let per_lun = of.elements_per_lun();
        let candidate = |element: ElementId| ElementCandidate {
            element,
            lun: element.0 / per_lun,
            wear: of.wear(element),
            is_stale: of.is_stale(element),
        };
        let all = (0..of.luns() * per_lun).map(ElementId);
        let available = all.filter(|element| of.availability(*element).is_available());
        let shape = &self.shape;
        let needed = (of.luns(), shape.per_lun, shape.depth_weight.is_some());
        (available.map(candidate).collect(), needed)
    }

    /// The next zone gets these elements, which it can have, in this order on each LUN.
    pub(crate) fn choose(&mut self, group: u32, mut elements: Vec<ElementId>) {
        let per_lun = self.allocators[group as usize].elements_per_lun();
        elements.sort_by_key(|element| element.0 / per_lun);
        self.choice = elements;
    }

    /// Gives `zone`, which has none and whose first `pages` pages were written, what
    /// a finish would leave it ([`Self::trim`]). Returns the same as
    /// [`Self::assemble`]; `None`: there are not as many elements.
    pub(crate) fn assemble_finished(
        &mut self,
        zone: ZoneId,
        (pages, by_line): (u32, bool),
        layout: &Layout,
    ) -> Option<u32> {
        let group = (zone.0 % self.shape.groups) as usize;
        let counts = self.of_luns(zone, self.kept_places(pages, by_line), layout);
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        let allocated = self.allocators[group].allocate_counts(&counts, &mut chosen);
        let physical = allocated.map(|()| self.bind(zone, &mut chosen, layout));
        self.chosen = chosen;
        physical.ok()
    }

    /// How many of the first `places` elements of a zone are on each LUN; where LUNs
    /// can give different numbers, of the available ones as evenly as possible.
    fn of_luns(&self, zone: ZoneId, places: u32, layout: &Layout) -> Vec<u32> {
        let luns = self.shape.line_elements;
        let rotation = layout.rotation(zone.0);
        let (lines, rest) = (places / luns, places % luns);
        let mut counts = vec![lines; luns as usize];
        for slot in 0..rest {
            counts[((slot + rotation) % luns) as usize] += 1;
        }
        if self.shape.depth_weight.is_some() {
            let allocator = &self.allocators[(zone.0 % self.shape.groups) as usize];
            let mut missing = 0;
            for (lun, count) in (0..).zip(&mut counts) {
                let has = allocator.available(lun).min(*count);
                missing += *count - has;
                *count = has;
            }
            for (lun, count) in (0..).zip(&mut counts) {
                let more = missing.min(allocator.available(lun) - *count);
                missing -= more;
                *count += more;
            }
            // Short of elements: let the allocator say so.
            counts[0] += missing;
        }
        counts
    }

    /// Puts `zone` on an unused physical zone of elements that were chosen for it,
    /// LUN by LUN.
    fn bind(&mut self, zone: ZoneId, chosen: &mut [ElementId], layout: &Layout) -> u32 {
        let physical = self.unused(zone.0);
        let group = zone.0 % self.shape.groups;
        let line_elements = self.shape.line_elements;
        assert_eq!(
            physical % self.shape.groups,
            group,
            "elements are of a group"
        );
        assert!(
            chosen.len() <= self.shape.places as usize,
            "a zone has places for its elements"
        );
        self.physical[physical as usize] = Physical {
            zone: zone.0,
            rotation: layout.rotation(zone.0),
            ..Physical::UNUSED
        };
        let rotation = layout.rotation(zone.0);
        self.in_turn(chosen, group, |lun| {
            (lun + line_elements - rotation % line_elements) % line_elements
        });
        let places = self.shape.places as usize;
        self.table[self.shape.index(physical, 0)..][..places].fill(NONE);
        self.taken[self.shape.index(physical, 0)..][..places].fill(false);
        for (place, element) in (0..).zip(chosen.iter()) {
            self.put(physical, place, element.0);
            let element = self.at(physical, place).expect("it was put there");
            let before = std::mem::replace(&mut self.owner[element], physical);
            assert_eq!(before, NONE, "element {element} is of one zone");
        }
        physical
    }

    /// How many more zones of a group the elements that no zone has are enough for.
    pub(crate) fn zones_left(&self, group: u32) -> u32 {
        let (of, per_lun) = (&self.allocators[group as usize], self.shape.per_lun);
        match self.shape.depth_weight {
            None => of.zones_left(per_lun),
            Some(_) => of.zones_left_relaxed(per_lun),
        }
    }

    /// Puts elements, which are listed LUN by LUN, in an order in which LUNs take
    /// turns: those that have the same share of all elements behind them, by their
    /// `position`. If LUNs have as many, that is line by line.
    fn in_turn(&mut self, chosen: &mut [ElementId], group: u32, position: impl Fn(u32) -> u32) {
        let per_lun = self.allocators[group as usize].elements_per_lun();
        self.turns.clear();
        for of_lun in chosen.chunk_by(|a, b| a.0 / per_lun == b.0 / per_lun) {
            let (lun, count) = (of_lun[0].0 / per_lun, of_lun.len() as u64);
            for (nth, &element) in (0..).zip(of_lun) {
                // Equal shares are equal in integers, and others are as far apart as
                // the two counts, below 2^16, can make them.
                let share = ((2 * nth + 1) << 40) / count;
                self.turns.push((share, position(lun), element));
            }
        }
        self.turns.sort_unstable();
        for (element, turn) in chosen.iter_mut().zip(&self.turns) {
            *element = turn.2;
        }
    }

    /// Puts an element of its group in a place.
    pub(super) fn put(&mut self, physical: u32, place: u32, element: u32) {
        let shape = self.shape;
        self.table[shape.index(physical, place)] = element;
        let group = physical % shape.groups;
        let planes = &self.planes[(group * shape.width) as usize..][..shape.width as usize];
        let rotation = self.physical[physical as usize].rotation;
        let per_lun = self.allocators[group as usize].elements_per_lun();
        let line = place / shape.line_elements;
        let at = self.units.at(physical, line);
        let (of_plane, units) = (&self.units.of_plane, &mut self.units.units);
        let unit_of = |lun: u32| of_plane[planes[lun as usize] as usize];
        if shape.is_stripe {
            for slot in 0..shape.width {
                units[at + slot as usize] = unit_of((slot + rotation) % shape.width);
            }
        } else {
            let slot = place % shape.width;
            units[at + slot as usize] = unit_of(element / per_lun);
        }
    }

    /// The first `pages` pages of a physical zone are going to be programmed.
    #[inline]
    pub(crate) fn write(&mut self, physical: u32, pages: u32) {
        let touched = self.places_touched(pages);
        let written = self.physical[physical as usize].written;
        if touched > written {
            self.write_places(physical, written, touched);
        }
    }

    pub(super) fn write_places(&mut self, physical: u32, from: u32, to: u32) {
        if self.physical[physical as usize].zone == NONE {
            return;
        }
        debug_assert!(
            from <= to && to <= self.shape.places,
            "places {from}..{to} of a zone are written"
        );
        self.physical[physical as usize].written = to;
        let group = physical % self.shape.groups;
        for place in from..to {
            let element = self.table[self.shape.index(physical, place)];
            if element != NONE {
                self.allocators[group as usize].write(ElementId(element));
            }
        }
    }

    /// Takes those elements of a zone away from it that its first `pages` pages do
    /// not touch: they can be given to others. If it is `by_line`, those beside
    /// the last that is touched stay. Returns what is left.
    pub(crate) fn trim(
        &mut self,
        physical: u32,
        (pages, by_line): (u32, bool),
        blocks: &mut Blocks,
    ) -> Tail {
        let Shape {
            line_elements,
            width,
            ..
        } = self.shape;
        let kept = self.kept_places(pages, by_line);
        for place in kept..self.shape.places {
            self.release_place(physical, place, blocks);
            let is_waiting = |of: usize| self.stale_left[of] > 0 && self.erasing[of] == 0;
            let is_waiting = self.at(physical, place).is_some_and(is_waiting);
            self.has_given_back_stale |= is_waiting;
            if *self.taken_at(physical, place)
                && let Some(element) = self.at(physical, place)
            {
                self.trimmed.push((physical, element));
            }
            let at = self.shape.index(physical, place);
            self.table[at] = NONE;
        }
        // More, if a loss of power took what the host had written there.
        let written = &mut self.physical[physical as usize].written;
        *written = kept.min(*written);
        let lines = kept.div_ceil(line_elements);
        Tail {
            end_page: self.units.pages_per_line.value().saturating_mul(lines),
            slots: match kept % line_elements {
                0 => width,
                rest => rest,
            },
        }
    }

    /// Whether zones gave back elements that have to be erased, and that no erasure has
    /// any more, since this was asked last.
    pub(crate) fn has_given_back_stale(&mut self) -> bool {
        std::mem::take(&mut self.has_given_back_stale)
    }

    /// The place behind the last element that a finish leaves to a zone of which
    /// the host wrote the first `pages` pages.
    fn kept_places(&self, pages: u32, by_line: bool) -> u32 {
        let touched = self.places_touched(pages);
        match by_line {
            true => touched.next_multiple_of(self.shape.line_elements),
            false => touched,
        }
    }

    /// Its zone leaves a physical zone, whose elements can be given to others.
    pub(crate) fn release(&mut self, physical: u32, blocks: &mut Blocks) {
        for place in 0..self.shape.places {
            self.release_place(physical, place, blocks);
        }
        self.physical[physical as usize].zone = NONE;
    }

    fn release_place(&mut self, physical: u32, place: u32, blocks: &mut Blocks) {
        if let Some(element) = self.at(physical, place) {
            debug_assert_eq!(
                self.owner[element], physical,
                "a zone gives back what it has"
            );
            let (group, id) = self.name(element);
            let is_written = self.allocators[group].availability(id) == Availability::Valid;
            if is_written && self.stale_left[element] == 0 {
                self.mark_stale(element, blocks);
            }
            self.allocators[group].release(id);
            self.owner[element] = NONE;
        }
    }
}
