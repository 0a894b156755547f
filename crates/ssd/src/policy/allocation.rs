//! Which flash a zone gets.

use zonelab_device::{Nanos, ZoneId};

use super::PolicyError;
use crate::mapping::allocator::ElementId;

/// Which erase blocks a zone gets when it needs some.
///
/// With `mapping.design = "lazy"` it is one of the free physical zones
/// ([`Self::physical_zone`]), with `chunk` and `stripe` so many storage elements
/// ([`Self::elements`]). Zones that are full or written before a run begins
/// (preconditioning, drives from a store) and conventional namespaces get theirs by
/// the built-in rule.
pub trait AllocationPolicy: core::fmt::Debug + Send {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// The physical zone that a zone gets, by its position among the candidates: those
    /// that are free, in the order in which they became so; if none is, those that are to
    /// be erased, in the order of their resets.
    ///
    /// # Errors
    /// What keeps it from answering ([`PolicyError::Failed`]).
    fn physical_zone(&mut self, request: &ZoneRequest<'_>) -> Result<usize, PolicyError> {
        let _ = request;
        Ok(0)
    }

    /// Adds the storage elements that a zone gets to `chosen`. Of those of a LUN the zone
    /// is written to the first one first. Adding none leaves the choice to the built-in
    /// rule, that of least wear.
    ///
    /// # Errors
    /// As [`Self::physical_zone`].
    fn elements(
        &mut self,
        request: &ElementsRequest<'_>,
        chosen: &mut Vec<ElementId>,
    ) -> Result<(), PolicyError> {
        let _ = (request, chosen);
        Ok(())
    }

    /// Whether its answers depend on more than it is told with each question. A drive
    /// with such a policy cannot be saved: a snapshot would not hold what it remembers.
    fn has_memory(&self) -> bool {
        true
    }
}

/// A zone needs a physical zone.
#[derive(Clone, Copy, Debug)]
pub struct ZoneRequest<'a> {
    /// The zone.
    pub zone: ZoneId,
    /// The group of zones that it shares dies with.
    pub group: u32,
    /// The time.
    pub now: Nanos,
    /// What there is; never empty.
    pub candidates: &'a [PhysicalZoneInfo],
}

/// A physical zone that no zone stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalZoneInfo {
    /// Its number.
    pub physical: u32,
    /// Erasures so far, of all its blocks together.
    pub wear: u64,
    /// Blocks that have to be erased before they are written.
    pub stale_blocks: u32,
}

/// A zone needs storage elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementsRequest<'a> {
    /// The zone.
    pub zone: ZoneId,
    /// The group of zones that it shares dies with.
    pub group: u32,
    /// The time.
    pub now: Nanos,
    /// LUNs that give elements; 1 where elements are stripes.
    pub luns: u32,
    /// Elements that it needs of each LUN.
    pub per_lun: u32,
    /// Only the number in all matters, `luns * per_lun`, and not the LUNs
    /// (`mapping.allocation.depth_weight`).
    pub is_relaxed: bool,
    /// What there is, by number: LUN by LUN.
    pub candidates: &'a [ElementCandidate],
}

/// A storage element that no zone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementCandidate {
    /// Its number in the group.
    pub element: ElementId,
    /// Its LUN.
    pub lun: u32,
    /// Erasures so far.
    pub wear: u32,
    /// It has to be erased before it is written.
    pub is_stale: bool,
}
