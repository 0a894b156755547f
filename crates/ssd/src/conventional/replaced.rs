//! Where blocks of a log were before they were written to where they are.
//!
//! A write that is on no flash yet is gone when power is lost, and its block is where it
//! was before. So that place is remembered, for each place of a zone, until the zone is on
//! the flash: of as many zones as are being written, and a few that are full and not
//! programmed to their ends yet.

use super::log::NONE;

/// By place of the log, the place that held its block before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Replaced {
    /// By zone. Empty if nothing is ever lost.
    zones: Vec<Option<OfZone>>,
    /// Zones that have some, in no order.
    kept: Vec<u32>,
    /// Memory of zones that are on the flash, for others.
    spare: Vec<Vec<u32>>,
    capacity: u32,
}

/// The places that those of a zone replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OfZone {
    /// The first place, counted from the start of the zone; those below are on the flash.
    first: u32,
    before: Vec<u32>,
}

impl Replaced {
    /// Nothing, of so many zones of `capacity` blocks; of none if nothing is ever lost.
    pub(super) fn new(zones: Option<usize>, capacity: u32) -> Self {
        Self {
            zones: vec![None; zones.unwrap_or(0)],
            kept: Vec::new(),
            spare: Vec::new(),
            capacity,
        }
    }

    /// A block is written to the next place of a zone, and was at `before`.
    #[inline]
    pub(super) fn note(&mut self, zone: u32, offset: u32, before: u32) {
        let Some(of) = self.zones.get_mut(zone as usize) else {
            return;
        };
        let of = of.get_or_insert_with(|| {
            self.kept.push(zone);
            let before = self.spare.pop();
            OfZone {
                first: offset,
                before: before.unwrap_or_else(|| Vec::with_capacity(self.capacity as usize)),
            }
        });
        debug_assert_eq!(
            of.first as usize + of.before.len(),
            offset as usize,
            "places are written in order"
        );
        of.before.push(before);
    }

    /// The place that the block of a place was at before, or [`NONE`].
    pub(super) fn of(&self, place: u32) -> u32 {
        let (zone, offset) = (place / self.capacity, place % self.capacity);
        let of = self.zones.get(zone as usize).and_then(Option::as_ref);
        let before = of.and_then(|of| of.before.get(offset.checked_sub(of.first)? as usize));
        debug_assert!(before.is_some(), "place {place} is lost, and was durable");
        before.copied().unwrap_or(NONE)
    }

    /// Places that were replaced by those of a zone from `durable` of it on.
    pub(super) fn behind(&self, durable: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
        self.kept.iter().flat_map(move |&zone| {
            let of = self.zones[zone as usize].as_ref();
            let of = of.expect("a zone that is listed has some");
            let from = durable(zone).saturating_sub(of.first) as usize;
            of.before.get(from..).unwrap_or_default().iter().copied()
        })
    }

    /// Keeps those of zones for which this holds.
    pub(super) fn retain(&mut self, keeps: impl Fn(u32) -> bool) {
        let mut at = 0;
        while let Some(&zone) = self.kept.get(at) {
            if keeps(zone) {
                at += 1;
            } else {
                self.forget(zone);
            }
        }
    }

    /// Forgets those of a zone.
    pub(super) fn forget(&mut self, zone: u32) {
        let Some(mut of) = self.zones.get_mut(zone as usize).and_then(Option::take) else {
            return;
        };
        of.before.clear();
        self.spare.push(of.before);
        self.kept.retain(|of| *of != zone);
    }

    /// A zone lost what was written from `left` on.
    pub(super) fn truncate(&mut self, zone: u32, left: u32) {
        if let Some(Some(of)) = self.zones.get_mut(zone as usize) {
            of.before.truncate(left.saturating_sub(of.first) as usize);
        }
    }

    /// Everything is on the flash.
    pub(super) fn clear(&mut self) {
        while let Some(&zone) = self.kept.last() {
            self.forget(zone);
        }
    }
}
