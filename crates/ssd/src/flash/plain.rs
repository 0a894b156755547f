//! Pages of a host on flash on which nothing but their places makes a difference.

use zonelab_device::Nanos;

use super::operations::duration_ns;
use super::{Flash, PhysicalZone, Target};
use crate::account::Cause;
use crate::config::DriveConfig;
use crate::event::EventQueue;
use crate::layout::Layout;
use crate::media::{FlashKind, FlashOp};

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
    #[inline]
    pub(crate) fn read_plainly(
        &mut self,
        now: Nanos,
        target: Target,
        token: u32,
        events: &mut EventQueue,
    ) {
        let op = self.page_times.map(|times| FlashOp {
            unit: 0,
            kind: FlashKind::Read,
            array_ns: times.read_ns,
            transfer_ns: times.transfer_ns,
        });
        self.submit_pages((FlashKind::Read, op), now, target, token, events);
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
        let Target { physical, range } = target;
        let first_page = self.layout.page_of(range.first);
        let last_page = self.layout.page_of(range.first + range.count - 1);
        let zone = &mut self.zones[physical as usize];
        if !zone.is_known(last_page) {
            return false;
        }
        zone.programmed_pages = zone.programmed_pages.max(last_page + 1);
        let pages = last_page - first_page + 1;
        self.programmed_bytes += u64::from(pages) * u64::from(self.page_bytes);
        let op = self.page_times.map(|times| FlashOp {
            unit: 0,
            kind: FlashKind::Program,
            array_ns: times.program_ns,
            transfer_ns: times.transfer_ns,
        });
        self.submit_pages((FlashKind::Program, op), now, target, token, events);
        true
    }

    /// Hands the pages of a target to the flash as one group, each as the operation that is
    /// given, if they are all alike.
    #[inline(always)]
    fn submit_pages(
        &mut self,
        (kind, each): (FlashKind, Option<FlashOp>),
        now: Nanos,
        target: Target,
        token: u32,
        events: &mut EventQueue,
    ) {
        let Target { physical, range } = target;
        let cause = match kind {
            FlashKind::Read => Cause::HostRead,
            _ => Cause::HostWrite,
        };
        let Self {
            layout,
            mapping,
            media,
            ..
        } = self;
        let (Some(each), Some(mut group)) = (each, media.closed_form(now, token, cause)) else {
            self.ops.clear();
            self.push_pages(kind, physical, range);
            return self.submit(now, token, cause, events);
        };
        let last = layout.page_of(range.first + range.count - 1);
        let mut page = layout.page_of(range.first);
        let mut slot = layout.slot_of_page(page) as usize;
        let (mut stripe, mut stripe_end) = mapping.line(physical, page, layout);
        loop {
            let unit = stripe[slot];
            group.add(&FlashOp { unit, ..each });
            if page == last {
                break;
            }
            page += 1;
            slot += 1;
            if slot == stripe.len() {
                slot = 0;
                if page >= stripe_end {
                    (stripe, stripe_end) = mapping.line(physical, page, layout);
                }
            }
        }
        group.end(events);
    }
}
