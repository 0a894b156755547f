//! Pages of a host on flash on which nothing but their places makes a difference.

use zonelab_device::Nanos;

use super::operations::duration_ns;
use super::{BlockRange, Flash, PhysicalZone, Target};
use crate::account::Cause;
use crate::config::DriveConfig;
use crate::event::EventQueue;
use crate::layout::Layout;
use crate::mapping::Mapping;
use crate::media::{FlashKind, FlashOp, Group};

/// Times of operations on flash where those of all pages are the same, and each page is one
/// operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageTimes {
    read_ns: u32,
    program_ns: u32,
    transfer_ns: u32,
}

impl PageTimes {
    /// `None`: they are not the same.
    pub(super) fn of(config: &DriveConfig, layout: &Layout) -> Option<Self> {
        let (media, details) = (&config.media, &config.media.details);
        let are_same = details.read_parts.is_none()
            && details.program_variation_ppm == 0
            && !media.partial_transfer
            && layout.planes_together() == 1;
        are_same.then(|| Self {
            read_ns: duration_ns(media.read_ns),
            program_ns: duration_ns(media.program_ns),
            transfer_ns: duration_ns(media.transfer_ns),
        })
    }
}

impl PageTimes {
    /// The operation on a page.
    #[inline(always)]
    const fn of_kind(&self, kind: FlashKind, unit: u32) -> FlashOp {
        let array_ns = match kind {
            FlashKind::Read => self.read_ns,
            _ => self.program_ns,
        };
        FlashOp {
            unit,
            kind,
            array_ns,
            transfer_ns: self.transfer_ns,
        }
    }
}

impl PhysicalZone {
    /// Whether a page can be programmed without a look at its block: nothing of the zone is to be
    /// erased or being erased, and the block has been programmed before.
    #[inline]
    const fn is_known(&self, page: u32) -> bool {
        page < self.known_pages && self.stale_first >= self.stale_end && self.erasures == 0
    }
}

impl Flash {
    /// Whether nobody looks at single operations, and nothing but the mapping decides where a
    /// page is.
    pub(crate) fn is_plain(&self) -> bool {
        self.cache.is_none()
            && self.placements.is_none()
            && self.watched.is_none()
            && !self.media.is_watched()
    }

    /// As [`Flash::read`] for a host, on plain flash.
    #[inline(always)]
    pub(crate) fn read_plainly(
        &mut self,
        now: Nanos,
        target: Target,
        token: u32,
        events: &mut EventQueue,
    ) {
        let pages = self.pages_of(target.range);
        self.submit_plainly(FlashKind::Read, now, (target, pages), token, events);
    }

    /// As [`Flash::program`] for a host, on plain flash; false: single blocks have to be looked
    /// at, and nothing has changed.
    #[inline]
    pub(crate) fn program_plainly(
        &mut self,
        now: Nanos,
        target: Target,
        token: u32,
        events: &mut EventQueue,
    ) -> bool {
        let (first, last) = self.pages_of(target.range);
        let zone = &mut self.zones[target.physical as usize];
        if !zone.is_known(last) {
            return false;
        }
        zone.programmed_pages = zone.programmed_pages.max(last + 1);
        self.programmed_bytes += u64::from(last - first + 1) * u64::from(self.page_bytes);
        let pages = (first, last);
        self.submit_plainly(FlashKind::Program, now, (target, pages), token, events);
        true
    }

    /// The first and the last page of blocks of a zone.
    #[inline(always)]
    fn pages_of(&self, range: BlockRange) -> (u32, u32) {
        let first = self.layout.page_of(range.first);
        let last = match range.count {
            1 => first,
            count => self.layout.page_of(range.first + count - 1),
        };
        (first, last)
    }

    /// Hands the pages of a target to the flash as one group.
    #[inline(always)]
    fn submit_plainly(
        &mut self,
        kind: FlashKind,
        now: Nanos,
        (target, (first, last)): (Target, (u32, u32)),
        token: u32,
        events: &mut EventQueue,
    ) {
        let cause = match kind {
            FlashKind::Read => Cause::HostRead,
            _ => Cause::HostWrite,
        };
        let Self {
            layout,
            mapping,
            media,
            page_times,
            ..
        } = self;
        let (Some(times), Some(mut group)) = (page_times, media.closed_form(now, token, cause))
        else {
            self.ops.clear();
            self.push_pages(kind, target.physical, target.range);
            return self.submit(now, token, cause, events);
        };
        let slot = layout.slot_of_page(first) as usize;
        let (stripe, _) = mapping.line(target.physical, first, layout);
        group.add(&times.of_kind(kind, stripe[slot]));
        if first < last {
            let on = (&*mapping, &*layout);
            add_pages(
                &mut group,
                *times,
                kind,
                on,
                (target.physical, first + 1, last),
            );
        }
        group.end(events);
    }
}

/// Adds the pages `first..=last` of a physical zone to a group.
#[inline(never)]
fn add_pages(
    group: &mut Group<'_>,
    times: PageTimes,
    kind: FlashKind,
    (mapping, layout): (&Mapping, &Layout),
    (physical, first, last): (u32, u32, u32),
) {
    let mut slot = layout.slot_of_page(first) as usize;
    let (mut stripe, mut stripe_end) = mapping.line(physical, first, layout);
    for page in first..=last {
        if slot == stripe.len() {
            slot = 0;
        }
        if page >= stripe_end {
            (stripe, stripe_end) = mapping.line(physical, page, layout);
        }
        group.add(&times.of_kind(kind, stripe[slot]));
        slot += 1;
    }
}
