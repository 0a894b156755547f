//! Copy: blocks from several places of a namespace to one, within the drive.
//!
//! A copy is checked as a whole when it arrives, and its blocks have their
//! place and their data from then on, like those of a write (decision 5). What
//! follows is its flash work: all sources are read, and when the last of them
//! is in the drive, the destination is written as by one write. No data is on
//! the host link.
//!
//! Writes that a zone accepts behind a copy must not get to the flash before
//! it: they wait in order until its sources are read. So does a finish that
//! fills the zone. A reset makes all of them void: they end without effect.

use zonelab_device::{Buf, Lba, NamespaceId, Nanos, Op, ZoneId};
use zonelab_nvme::Status;

use crate::contents::{NotWritten, Unreadable};
use crate::drive::{Acceptance, Core, Drive, Stage};
use crate::ranges::{self, LbaRange};
use crate::zones::Extent;

/// Copies whose sources are being read, and what waits for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// What zones accepted and has not gone to the flash: copies, and writes
    /// behind them, in order of arrival.
    waiting: Vec<Waiting>,
    /// Scratch: the data of a copy.
    bytes: Vec<u8>,
}

/// Something that goes to a zone and waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    zone: ZoneId,
    /// Of the zone when it was accepted.
    generation: u32,
    whose: Whose,
    /// It waits for nothing but its turn.
    is_ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// A copy, write or append: this request.
    Request(u32),
    /// A finish that fills the zone: this task.
    Fill(u32),
}

impl Copies {
    /// Nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Power is lost: nothing waits any more.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// A fill ends before its turn.
    pub(crate) fn cancel_fill(&mut self, task: u32) {
        self.waiting
            .retain(|waiting| waiting.whose != Whose::Fill(task));
    }

    /// Whether this request waits.
    #[cold]
    pub(crate) fn holds_request(&self, index: u32) -> bool {
        let whose = Whose::Request(index);
        self.waiting.iter().any(|waiting| waiting.whose == whose)
    }

    /// A write that its zone has just accepted waits if a copy is
    /// ahead of it. Returns whether it does; so does a copy.
    #[cold]
    pub(crate) fn join_behind(&mut self, zone: ZoneId, generation: u32, request: u32) -> bool {
        if !self.holds(zone, generation) {
            return false;
        }
        if !self.holds_request(request) {
            self.waiting.push(Waiting {
                zone,
                generation,
                whose: Whose::Request(request),
                is_ready: false,
            });
        }
        true
    }

    /// Whether something that a zone accepted in this generation waits.
    fn holds(&self, zone: ZoneId, generation: u32) -> bool {
        let is_of = |waiting: &Waiting| waiting.zone == zone && waiting.generation == generation;
        self.waiting.iter().any(is_of)
    }

    /// Lets a fill wait behind the copies of its zone. Returns whether it does.
    #[cold]
    pub(crate) fn hold_fill(&mut self, task: u32, (zone, generation): (ZoneId, u32)) -> bool {
        let holds = self.holds(zone, generation);
        let waiting = Waiting {
            zone,
            generation,
            whose: Whose::Fill(task),
            is_ready: true,
        };
        if holds && !self.waiting.contains(&waiting) {
            self.waiting.push(waiting);
        }
        holds
    }

    /// A request waits for nothing but its turn any more. Returns its zone, and the generation
    /// of that, if it waited.
    fn is_ready(&mut self, request: u32) -> Option<(ZoneId, u32)> {
        let whose = Whose::Request(request);
        let waiting = self.waiting.iter_mut().find(|of| of.whose == whose)?;
        debug_assert!(!waiting.is_ready, "request {request} becomes ready once");
        waiting.is_ready = true;
        Some((waiting.zone, waiting.generation))
    }

    /// Takes the next of what a zone accepted in this generation, if it is ready.
    fn take_next(&mut self, zone: ZoneId, generation: u32) -> Option<Whose> {
        let is_of = |waiting: &Waiting| waiting.zone == zone && waiting.generation == generation;
        let at = self.waiting.iter().position(is_of)?;
        let next = self.waiting[at];
        if next.is_ready {
            self.waiting.remove(at);
        }
        next.is_ready.then_some(next.whose)
    }
}

impl Acceptance<'_> {
    /// Checks a copy, and gives its blocks their place and data. Returns when
    /// its flash work starts.
    #[cold]
    pub(crate) fn accept_copy(
        &mut self,
        nsid: NamespaceId,
        (sdlba, ranges): (Lba, u16),
        request: u32,
        processed: Nanos,
    ) -> Result<Nanos, Status> {
        let limits = self.core.config.copy.ok_or(Status::INVALID_OPCODE)?;
        if ranges > limits.max_ranges {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        let data = self.core.requests.at(request).data.take();
        let result = self.place_copy(nsid, sdlba, ranges, data.as_ref());
        self.core.requests.at(request).data = data;
        let (extent, nlb) = result?;
        let op = Op::Copy { sdlba, ranges };
        let processed = self.core.charge_write(&op, nlb, &extent, processed);
        let fetched = ranges::copy_bytes(ranges);
        self.copies.waiting.push(Waiting {
            zone: extent.zone,
            generation: self.core.zones.generation(extent.zone),
            whose: Whose::Request(request),
            is_ready: false,
        });
        Ok(self.place_write(&extent, nlb, request, (processed, fetched)))
    }

    /// Where the blocks of a copy that is allowed go, and how many they are. Its
    /// data has been copied.
    fn place_copy(
        &mut self,
        nsid: NamespaceId,
        sdlba: Lba,
        ranges: u16,
        data: Option<&Buf>,
    ) -> Result<(Extent, u32), Status> {
        let limits = self.core.config.copy.ok_or(Status::INVALID_OPCODE)?;
        let sources = data.and_then(|data| ranges::of_copy(data, ranges));
        let sources = sources
            .filter(|_| ranges > 0)
            .ok_or(Status::INVALID_FIELD)?;
        let mut nlb = 0_u32;
        for source in sources.clone() {
            nlb = nlb.saturating_add(source.nlb);
            if source.nlb > u32::from(limits.max_range_lbas) || nlb > limits.max_lbas {
                return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            }
        }
        let namespace = self.core.zones.namespace(nsid);
        let namespace = namespace.ok_or(Status::INVALID_NAMESPACE_OR_FORMAT)?;
        for LbaRange { slba, nlb } in sources.clone() {
            let slba = Lba(namespace.lba_on_drive(slba, nlb));
            self.core.zones.read(slba, nlb)?;
        }
        if !namespace.has_on_drive(sdlba, nlb) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let first_lba = namespace.first_lba().0;
        // What cannot be copied fails before the zone takes anything.
        let (zone, offset_lbas) = self.core.zones.place_of_write(sdlba, nlb)?;
        self.copy_data(first_lba, sources, zone, offset_lbas)?;
        let extent = self.core.zones.write(sdlba, nlb)?;
        Ok((extent, nlb))
    }

    /// Copies the data of all sources, as it is before anything is written.
    fn copy_data(
        &mut self,
        first_lba: u64,
        sources: impl Iterator<Item = LbaRange>,
        zone: ZoneId,
        offset_lbas: u64,
    ) -> Result<(), Status> {
        let lba_bytes = u64::from(self.core.config.lba_bytes);
        let mut bytes = core::mem::take(&mut self.copies.bytes);
        bytes.clear();
        let mut copied = Ok(());
        if let Some(data) = &self.core.data {
            for LbaRange { slba, nlb } in sources {
                let start = bytes.len();
                // Fits: there are fewer than 2^32 blocks, and the host's buffers are larger.
                bytes.resize(start + (u64::from(nlb) * lba_bytes) as usize, 0);
                let read = self
                    .core
                    .copy_out(data, Lba(first_lba + slba), &mut bytes[start..]);
                copied = copied.and(read.map_err(|Unreadable| Status::UNRECOVERED_READ_ERROR));
            }
        }
        if let (Ok(()), Some(data)) = (copied, &mut self.core.data) {
            let written = data.write(zone, offset_lbas * lba_bytes, &bytes);
            copied = written.map_err(NotWritten::status);
        }
        self.copies.bytes = bytes;
        copied
    }
}

impl Core {
    /// The sources of a copy that was accepted, as blocks of the drive.
    fn sources_of(&mut self, index: u32) -> Vec<(Lba, u32)> {
        let request = self.requests.at(index);
        let (nsid, op) = (request.nsid, request.op);
        let data = request.data.take();
        let first_lba = self.first_lba(nsid);
        let mut sources = Vec::new();
        if let (Op::Copy { ranges, .. }, Some(data)) = (op, &data) {
            let ranges = ranges::of_copy(data, ranges).into_iter().flatten();
            sources.extend(ranges.map(|LbaRange { slba, nlb }| (Lba(first_lba + slba), nlb)));
        }
        self.requests.at(index).data = data;
        sources
    }
}

impl Drive {
    /// The front end lets a copy through: its sources are read.
    pub(crate) fn start_copy(&mut self, index: u32) {
        self.core.requests.at(index).stage = Stage::Sources;
        let sources = self.core.sources_of(index);
        let mut groups = 0;
        for &(slba, nlb) in &sources {
            groups += self.back_end().read_blocks(index, slba, nlb).0;
        }
        self.core.requests.at(index).pending = groups;
        if groups == 0 {
            self.core.requests.at(index).stage = Stage::Flash;
            return self.write_behind_copies(index);
        }
        for (slba, nlb) in sources {
            self.core.host_read_begins(slba, nlb);
        }
    }

    /// The flash has read the sources of a copy.
    #[cold]
    pub(crate) fn copy_was_read(&mut self, index: u32) {
        for (slba, nlb) in self.core.sources_of(index) {
            self.host_read_ends(slba, nlb);
        }
        self.core.requests.at(index).stage = Stage::Flash;
        self.write_behind_copies(index);
    }

    /// A request that waits has nothing to wait for but its turn: it is written, and
    /// what is ready behind it, unless it is behind others.
    #[cold]
    pub(crate) fn write_behind_copies(&mut self, index: u32) {
        let Some((zone, generation)) = self.copies.is_ready(index) else {
            return;
        };
        // If the zone was reset, what waited ends.
        let is_void = self.core.zones.generation(zone) != generation;
        while let Some(whose) = self.copies.take_next(zone, generation) {
            match whose {
                Whose::Request(request) if is_void => self.core.buffered_request_done(request),
                Whose::Request(request) => self.back_end().issue_write(request),
                Whose::Fill(task) => {
                    let now = self.core.now;
                    self.background.push_wake(&mut self.core, now, task);
                }
            }
        }
    }
}
