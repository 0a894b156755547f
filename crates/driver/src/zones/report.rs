//! Zone reports, page by page.

use zonelab_device::{Buf, Lba, Op, QueuePair, ZoneId};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ReportFilter, ReportHeader, ZoneAttributes, ZoneDescriptor, ZoneState};

use super::error::ZoneError;
use super::namespace::{Facts, ZonedNamespace};

/// Bytes of a page of a report at most.
const PAGE_BYTES: usize = 4 << 10;
const HEADER_BYTES: usize = size_of::<ReportHeader>();
const DESCRIPTOR_BYTES: usize = size_of::<ZoneDescriptor>();

/// A zone as the drive reports it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Which zone.
    pub zone: ZoneId,
    /// Its state.
    pub state: ZoneState,
    /// Its first block.
    pub start: Lba,
    /// Blocks that it can hold.
    pub capacity_lbas: u64,
    /// The block that is written next. `None` where it has no meaning: the zone is full, read
    /// only or offline.
    pub write_pointer: Option<Lba>,
    /// Its attributes, among them whether the drive recommends a reset or a finish.
    pub attributes: ZoneAttributes,
}

impl ZoneInfo {
    /// Reads a descriptor, which is to be of a zone from `first` on.
    fn new(zone: &ZoneDescriptor, facts: &Facts, first: u64) -> Result<Self, ZoneError> {
        let bad = |field, value, valid| ZoneError::BadReport {
            field,
            value,
            valid,
        };
        let (start, capacity) = (zone.zslba.get(), zone.zcap.get());
        let index = start / facts.zone_size_lbas;
        let in_order = start.is_multiple_of(facts.zone_size_lbas) && start >= first;
        let index = u32::try_from(index).ok();
        let Some(index) = index.filter(|index| in_order && *index < facts.zones) else {
            return Err(bad("ZSLBA", start, "the start of each zone, in order"));
        };
        if capacity == 0 || capacity > facts.zone_size_lbas {
            return Err(bad("ZCAP", capacity, "1 to the size of a zone"));
        }
        let state = zone.zs.zs();
        let wp = zone.wp.get();
        let written = wp.checked_sub(start);
        let write_pointer = match state {
            ZoneState::FULL | ZoneState::READ_ONLY | ZoneState::OFFLINE => None,
            ZoneState::EMPTY if written == Some(0) => Some(Lba(wp)),
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED
                if written.is_some_and(|written| written <= capacity) =>
            {
                Some(Lba(wp))
            }
            ZoneState::EMPTY
            | ZoneState::IMPLICITLY_OPENED
            | ZoneState::EXPLICITLY_OPENED
            | ZoneState::CLOSED => {
                let valid = "within the zone, and at its start if the zone is empty";
                return Err(bad("write pointer", wp, valid));
            }
            ZoneState(other) => return Err(bad("state", other.into(), "1h to 4h, Dh to Fh")),
        };
        Ok(Self {
            zone: ZoneId(index),
            state,
            start: Lba(start),
            capacity_lbas: capacity,
            write_pointer,
            attributes: zone.za,
        })
    }
}

/// The zones of a namespace in order, from [`ZonedNamespace::report`].
///
/// Each page is a command of its own: zones may change in between. After an error it ends.
pub struct Report<'ns, Q: QueuePair> {
    namespace: &'ns ZonedNamespace<Q>,
    filter: ReportFilter,
    /// First block of the next zone that may come; `None`: none comes.
    next: Option<u64>,
    /// The last page, and which descriptors of it have not been read.
    page: Buf,
    unread: core::ops::Range<usize>,
}

impl<'ns, Q: QueuePair> Report<'ns, Q> {
    /// A report in pages of `zones` zones or the longest that there are.
    pub(super) fn new(
        namespace: &'ns ZonedNamespace<Q>,
        first: ZoneId,
        filter: ReportFilter,
        zones: u32,
    ) -> Self {
        let facts = namespace.facts();
        let most = PAGE_BYTES.min(facts.max_transfer_bytes as usize);
        let most = most.saturating_sub(HEADER_BYTES) / DESCRIPTOR_BYTES;
        let descriptors = most.min(zones as usize).max(1);
        Self {
            namespace,
            filter,
            next: Self::start(facts, first.0),
            page: Buf::zeroed(HEADER_BYTES + descriptors * DESCRIPTOR_BYTES),
            unread: 0..0,
        }
    }

    /// Where a zone starts, if there is one.
    fn start(facts: &Facts, zone: u32) -> Option<u64> {
        let is_there = zone < facts.zones;
        let start = u64::from(zone).checked_mul(facts.zone_size_lbas);
        start.filter(|_| is_there)
    }

    /// Asks for the next page. Returns whether there is anything in it.
    fn turn(&mut self, slba: u64) -> Result<bool, ZoneError> {
        let op = Op::ZoneReceive {
            slba: Lba(slba),
            filter: self.filter,
            partial: true,
            extended: false,
        };
        let page = core::mem::replace(&mut self.page, Buf::zeroed(0));
        let mut engine = self.namespace.engine();
        let completion = engine.run(None, "the zone report", op, Some(page))?;
        self.page = completion.data.unwrap_or_else(|| Buf::zeroed(0));
        let header = ReportHeader::read_from_prefix(&self.page);
        let counted = header.map_or(0, |(header, _)| header.nr_zones.get());
        let fit = self.page.len().saturating_sub(HEADER_BYTES) / DESCRIPTOR_BYTES;
        self.unread = 0..usize::try_from(counted).unwrap_or(usize::MAX).min(fit);
        Ok(!self.unread.is_empty())
    }

    fn step(&mut self) -> Result<Option<ZoneInfo>, ZoneError> {
        let Some(first) = self.next else {
            return Ok(None);
        };
        if self.unread.is_empty() && !self.turn(first)? {
            return Ok(None);
        }
        let index = self.unread.next().unwrap_or(0);
        let descriptor = self.page.get(HEADER_BYTES + index * DESCRIPTOR_BYTES..);
        let read = descriptor.and_then(|bytes| ZoneDescriptor::read_from_prefix(bytes).ok());
        let Some((descriptor, _)) = read else {
            return Ok(None);
        };
        let facts = self.namespace.facts();
        let info = ZoneInfo::new(&descriptor, facts, first)?;
        let next = info.zone.0.checked_add(1);
        self.next = next.and_then(|zone| Self::start(facts, zone));
        Ok(Some(info))
    }
}

impl<Q: QueuePair> Iterator for Report<'_, Q> {
    type Item = Result<ZoneInfo, ZoneError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step().transpose();
        if !matches!(step, Some(Ok(_))) {
            self.next = None;
        }
        step
    }
}

impl<Q: QueuePair> core::iter::FusedIterator for Report<'_, Q> {}
