//! The operations of a group: pages and erasures of a physical zone, by the units that
//! do them.

use std::ops::Range;

use zonelab_device::Nanos;

use super::{BlockEvent, BlockRange, Flash};
use crate::config::{PlaneMode, ReadParts};
use crate::media::{FlashKind, FlashOp};

impl Flash {
    /// The unit of a block of a physical zone.
    #[must_use]
    pub fn unit_of_block(&self, physical: u32, block: u32) -> u32 {
        let at = self.layout.block_position(block);
        self.mapping.unit(physical, at, &self.layout)
    }

    /// Puts together the erasures of those of some blocks of a physical zone that are
    /// stale and lie in some places.
    pub(super) fn push_erasures(
        &mut self,
        physical: u32,
        blocks: impl Iterator<Item = u32>,
        places: Option<&Range<u32>>,
    ) {
        self.ops.clear();
        // The row under way, and where its operations begin.
        let mut of_row = (None, 0);
        for block in blocks {
            let at = self.layout.block_position(block);
            if places.is_some_and(|places| !self.mapping.is_in(places, at, &self.layout)) {
                continue;
            }
            let on = (&self.layout, &mut self.blocks);
            if let Some(index) = self.mapping.erase(physical, at, on) {
                self.note(BlockEvent::Erase { block: index });
                if of_row.0 != Some(at.0) {
                    of_row = (Some(at.0), self.ops.len());
                }
                self.push_erase(physical, block, of_row.1);
            }
        }
    }

    /// Adds the erasure of a block to the group, in which the operations of its row begin at
    /// `row_begin`.
    fn push_erase(&mut self, physical: u32, block: u32, row_begin: usize) {
        let unit = self.unit_of_block(physical, block);
        // The planes of a die erase their blocks of a row together.
        if self.timing.planes == PlaneMode::MultiPlane
            && self.ops[row_begin..].iter().rev().any(|op| op.unit == unit)
        {
            return;
        }
        let array_ns = duration_ns(self.timing.erase_ns);
        self.ops.push(FlashOp {
            unit,
            kind: FlashKind::Erase,
            array_ns,
            transfer_ns: 0,
        });
    }

    /// Adds the page operations of `range` to the group.
    #[inline]
    pub(super) fn push_pages(&mut self, kind: FlashKind, physical: u32, range: BlockRange) {
        let Self {
            layout,
            mapping,
            placements,
            timing,
            variation,
            ops,
            ..
        } = self;
        let placements = placements.as_deref();
        let parts = match kind {
            FlashKind::Read => timing.details.read_parts,
            FlashKind::Program | FlashKind::Erase => None,
        };
        let vary_ppm = match kind {
            FlashKind::Program => timing.details.program_variation_ppm,
            FlashKind::Read | FlashKind::Erase => 0,
        };
        let array_ns = duration_ns(match kind {
            FlashKind::Read => timing.read_ns,
            FlashKind::Program => timing.program_ns,
            FlashKind::Erase => timing.erase_ns,
        });
        let end = range.first + range.count;
        let last = layout.page_of(end - 1);
        let mut page = layout.page_of(range.first);
        let mut slot = layout.slot_of_page(page) as usize;
        let (mut stripe, mut stripe_end) = mapping.line(physical, page, layout);
        while page <= last {
            let unit = match placements {
                None => stripe[slot],
                Some(placements) => stripe[placements.slot(physical, page) as usize],
            };
            let start = page * layout.page_lbas();
            let array_ns = match parts {
                Some(parts) => {
                    let first = range.first.max(start) - start;
                    let end = end.min(start + layout.page_lbas()) - start;
                    parts_ns(&parts, layout.page_lbas(), first, end)
                }
                None => array_ns,
            };
            let transfer_ns = if timing.partial_transfer {
                let lbas = end.min(start + layout.page_lbas()) - range.first.max(start);
                duration_ns(timing.transfer_ns) * lbas / layout.page_lbas()
            } else {
                duration_ns(timing.transfer_ns)
            };
            match ops.last_mut() {
                Some(op)
                    if timing.planes == PlaneMode::MultiPlane && slot > 0 && op.unit == unit =>
                {
                    op.transfer_ns += transfer_ns;
                    // The planes of a die read together.
                    op.array_ns = op.array_ns.max(array_ns);
                }
                _ => ops.push(FlashOp {
                    unit,
                    kind,
                    array_ns: match vary_ppm {
                        0 => array_ns,
                        ppm => duration_ns(variation.vary(Nanos(u64::from(array_ns)), ppm)),
                    },
                    transfer_ns,
                }),
            }
            page += 1;
            slot += 1;
            if slot == stripe.len() {
                slot = 0;
                if page >= stripe_end && page <= last {
                    (stripe, stripe_end) = mapping.line(physical, page, layout);
                }
            }
        }
    }
}

/// Time to read the logical blocks `first..end` of a page of `page_lbas`, part by part.
fn parts_ns(parts: &ReadParts, page_lbas: u32, first: u32, end: u32) -> u32 {
    let times = parts.times();
    // Checked: they divide the page.
    let part_lbas = page_lbas / times.len() as u32;
    let touched = (first / part_lbas) as usize..=((end - 1) / part_lbas) as usize;
    let sum = times[touched].iter().map(|time| time.0).sum();
    duration_ns(Nanos(sum))
}

/// A time of one flash operation. Profiles keep them below four seconds.
pub(super) fn duration_ns(time: Nanos) -> u32 {
    u32::try_from(time.0).expect("checked: a flash operation takes less than 4 s")
}
