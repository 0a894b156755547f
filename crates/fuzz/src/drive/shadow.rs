//! What a host can know about a drive: states, write pointers and data of
//! zones, and how each command must end.
//!
//! Written from the specification and the order of errors that
//! `docs/models/zone-states.md` states, in the simplest way, and without the
//! drive's code: wherever both say the same, two people would have to have made
//! the same mistake.

use zonelab_device::{Command, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{DataStore, DriveConfig};

/// State of a zone. Read only and offline need faults, which do not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    Implicit,
    Explicit,
    Closed,
    Full,
}

impl State {
    /// As a zone descriptor and a report filter have it.
    pub(super) fn codes(self) -> (u8, u8) {
        match self {
            Self::Empty => (0x1, 0x1),
            Self::Implicit => (0x2, 0x2),
            Self::Explicit => (0x3, 0x3),
            Self::Closed => (0x4, 0x4),
            Self::Full => (0xe, 0x5),
        }
    }

    fn is_open(self) -> bool {
        matches!(self, Self::Implicit | Self::Explicit)
    }

    fn is_active(self) -> bool {
        self.is_open() || self == Self::Closed
    }
}

/// What one logical block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The command that wrote it; 0: it reads as zeros.
    pub(super) tag: u32,
    /// The block of the drive that it wrote; a copy takes the data elsewhere.
    pub(super) lba: u64,
    /// How often it changed.
    pub(super) changes: u32,
}

/// One zone.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) state: State,
    /// Write pointer, from the start of the zone.
    pub(super) pointer: u64,
    /// Blocks that the host wrote.
    pub(super) host: u64,
    /// When it was opened implicitly.
    opened: u64,
    extension: Option<Vec<u8>>,
    /// With a random write area: behind the last block written to it, 0 if none was.
    pub(super) area: Option<u64>,
    /// By block of the zone up to its size; empty unless the drive keeps data.
    content: Vec<Content>,
}

/// What a command did besides ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Blocks went to a zone.
    Wrote { zone: u32, offset: u64, nlb: u32 },
    /// Blocks went to a random write area.
    Stored { nlb: u32 },
    /// Blocks left a random write area for the flash.
    Committed { zone: u32, offset: u64, nlb: u32 },
    /// A zone became full at the host's request; its write pointer was `from`.
    Finished { zone: u32, from: u64 },
    /// A zone became empty.
    Reset { zone: u32 },
    /// A zone was closed to make room for another.
    ImplicitlyClosed,
}

/// How a command must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) result: u64,
    /// Content of the buffer of a successful report.
    pub(super) report: Option<Vec<u8>>,
    pub(super) effects: Vec<Effect>,
}

/// A namespace: some zones in a row, and how many of them may be active and open.
#[derive(Clone, Copy, Debug)]
struct Space {
    first: usize,
    count: usize,
    max_active: Option<u32>,
    max_open: Option<u32>,
}

/// The zones of a drive as a host knows them.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    config: DriveConfig,
    spaces: Vec<Space>,
    /// The namespace of the command that is being applied.
    space: Space,
    pub(super) zones: Vec<Zone>,
    /// Implicit opens so far.
    opens: u64,
    effects: Vec<Effect>,
    /// Zones of each group for which there is flash, if not for all.
    pub(super) flash_left: Option<Vec<u32>>,
}

impl Shadow {
    /// All zones empty.
    pub(super) fn new(config: &DriveConfig) -> Self {
        let kept = if config.data == DataStore::Memory {
            config.zones.size_lbas
        } else {
            0
        };
        let zone = Zone {
            state: State::Empty,
            pointer: 0,
            host: 0,
            opened: 0,
            extension: None,
            area: None,
            content: vec![Content::default(); usize::try_from(kept).expect("zones are small")],
        };
        let spaces = spaces(config);
        Self {
            config: config.clone(),
            space: spaces[0],
            spaces,
            zones: vec![zone; config.zones.count as usize],
            opens: 0,
            effects: Vec::new(),
            flash_left: None,
        }
    }

    /// Number of open zones and of active zones of each namespace.
    pub(super) fn resources(&self) -> Vec<(u32, u32)> {
        let counts = |space: &Space| {
            (
                self.count(space, State::is_open),
                self.count(space, State::is_active),
            )
        };
        self.spaces.iter().map(counts).collect()
    }

    /// First block of a namespace on the drive; that of the first if there is
    /// no such namespace.
    pub(super) fn first_lba(&self, nsid: NamespaceId) -> u64 {
        let first = self.space_of(nsid).map_or(0, |space| space.first);
        first as u64 * self.config.zones.size_lbas
    }

    fn space_of(&self, nsid: NamespaceId) -> Option<Space> {
        let index = usize::try_from(nsid.0).ok()?.checked_sub(1)?;
        self.spaces.get(index).copied()
    }

    fn open(&self) -> u32 {
        self.count(&self.space, State::is_open)
    }

    fn active(&self) -> u32 {
        self.count(&self.space, State::is_active)
    }

    fn count(&self, space: &Space, is: fn(State) -> bool) -> u32 {
        let zones = &self.zones[space.first..][..space.count];
        u32::try_from(zones.iter().filter(|zone| is(zone.state)).count()).expect("few zones")
    }

    /// Applies a command that has just been submitted under the name `tag`.
    pub(super) fn apply(&mut self, command: &Command, data: Option<&[u8]>, tag: u32) -> Answer {
        self.effects.clear();
        let mut report = None;
        let space = self.space_of(command.nsid);
        self.space = space.unwrap_or(self.space);
        let result = if space.is_none() {
            Err(Status::INVALID_NAMESPACE_OR_FORMAT)
        } else {
            match command.op {
                Op::Flush => Ok(0),
                Op::Read { slba, nlb } => self.read(slba.0, nlb, data),
                Op::Write { slba, nlb } => self.write(slba.0, nlb, data, tag),
                Op::Append { zslba, nlb } => self.append(zslba.0, nlb, data, tag),
                Op::WriteZeroes { slba, nlb } => self.write_zeroes(slba.0, nlb, data),
                // Whether it finds a difference is a matter of its data.
                Op::Compare { slba, nlb } => self.read(slba.0, nlb, data),
                Op::Verify { slba, nlb } => self.verify(slba.0, nlb, data),
                Op::Deallocate { ranges } => self.deallocate(ranges, data),
                Op::Copy { sdlba, ranges } => self.copy(sdlba.0, ranges, data),
                Op::ZoneSend {
                    slba,
                    action,
                    select_all,
                } => self.send(slba.0, action, select_all, data),
                Op::ZrwaSend { slba, action } => self.send_with_area(slba.0, action, data),
                Op::ZoneReceive {
                    slba,
                    filter,
                    partial,
                    extended,
                } => {
                    match self.report(slba.0, filter.0, partial, extended, data.map(<[u8]>::len)) {
                        Ok(bytes) => {
                            report = Some(bytes);
                            Ok(0)
                        }
                        Err(status) => Err(status),
                    }
                }
            }
        };
        let effects = std::mem::take(&mut self.effects);
        match result {
            Ok(result) => Answer {
                status: Status::SUCCESS,
                result,
                report,
                effects,
            },
            Err(status) => Answer {
                status,
                result: 0,
                report: None,
                effects,
            },
        }
    }

    /// Declares empty zones full; whether that was possible.
    pub(super) fn precondition(&mut self, zones: std::ops::Range<u32>) -> bool {
        let possible = self.config.data == DataStore::None
            && zones.start <= zones.end
            && zones.end <= self.config.zones.count
            && zones
                .clone()
                .all(|zone| self.zones[zone as usize].state == State::Empty)
            && self.have_flash(zones.clone());
        if possible {
            for zone in zones {
                let capacity = self.config.zones.capacity_lbas;
                let zone = &mut self.zones[zone as usize];
                (zone.state, zone.pointer, zone.host) = (State::Full, capacity, capacity);
            }
        }
        possible
    }

    /// Whether there is flash for all of some zones that have none.
    fn have_flash(&self, zones: impl Iterator<Item = u32>) -> bool {
        let Some(mut left) = self.flash_left.clone() else {
            return true;
        };
        let groups = left.len();
        zones.into_iter().all(|zone| {
            let left = &mut left[zone as usize % groups];
            let had_some = *left > 0;
            *left = left.saturating_sub(1);
            had_some
        })
    }

    /// An empty zone can become active: there is room, and flash (decision 20).
    fn take_active(&self, zone: usize) -> Result<(), Status> {
        let most = self.space.max_active;
        if most.is_some_and(|most| self.active() >= most) {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        let zone = u32::try_from(zone).expect("few zones");
        if !self.have_flash(std::iter::once(zone)) {
            return Err(Status::CAPACITY_EXCEEDED);
        }
        Ok(())
    }

    /// What blocks of the drive hold.
    pub(super) fn content(&self, slba: u64, nlb: u32) -> Vec<Content> {
        let size = self.config.zones.size_lbas;
        (slba..slba + u64::from(nlb))
            .map(|lba| {
                let zone = &self.zones[usize::try_from(lba / size).expect("few zones")];
                let offset = usize::try_from(lba % size).expect("zones are small");
                // Empty if the drive keeps no data.
                zone.content.get(offset).copied().unwrap_or_default()
            })
            .collect()
    }

    /// The rules of every transfer: some blocks, at most the limit, and a
    /// buffer of their length if there is one.
    fn transfer(&self, nlb: u32, limit: Option<u32>, data: Option<&[u8]>) -> Result<(), Status> {
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let right = data.is_none_or(|data| data.len() as u64 == bytes);
        let allowed = limit.is_none_or(|limit| bytes <= u64::from(limit));
        if nlb > 0 && right && allowed {
            Ok(())
        } else {
            Err(Status::INVALID_FIELD)
        }
    }

    /// Zone of the drive, and offset in it, of the first of `nlb` blocks of the
    /// namespace, all of which exist.
    fn locate(&self, slba: u64, nlb: u32) -> Result<(usize, u64), Status> {
        let (size, count) = (self.config.zones.size_lbas, self.space.count as u64);
        match slba.checked_add(u64::from(nlb)) {
            Some(end) if end <= size * count => Ok((
                self.space.first + usize::try_from(slba / size).expect("few zones"),
                slba % size,
            )),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// The zone that starts at `slba`.
    fn zone_at(&self, slba: u64) -> Result<usize, Status> {
        match self.locate(slba, 1)? {
            (zone, 0) => Ok(zone),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn read(&self, slba: u64, nlb: u32, data: Option<&[u8]>) -> Result<u64, Status> {
        self.transfer(nlb, self.config.front_end.max_transfer_bytes, data)?;
        self.readable(slba, nlb)
    }

    /// No data goes to the host, so that its size has no limit.
    fn verify(&self, slba: u64, nlb: u32, data: Option<&[u8]>) -> Result<u64, Status> {
        self.transfer(nlb, None, data)?;
        self.readable(slba, nlb)
    }

    fn readable(&self, slba: u64, nlb: u32) -> Result<u64, Status> {
        let (_, offset) = self.locate(slba, nlb)?;
        let zones = &self.config.zones;
        if offset + u64::from(nlb) > zones.size_lbas && !zones.read_across {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        Ok(0)
    }

    fn write(&mut self, slba: u64, nlb: u32, data: Option<&[u8]>, tag: u32) -> Result<u64, Status> {
        self.transfer(nlb, self.config.front_end.max_transfer_bytes, data)?;
        let (zone, offset) = self.writable(slba, nlb)?;
        let written = data.map(|_| self.stamps(zone, offset, nlb, tag));
        self.put(zone, offset, nlb, written)?;
        Ok(0)
    }

    fn write_zeroes(&mut self, slba: u64, nlb: u32, data: Option<&[u8]>) -> Result<u64, Status> {
        self.transfer(nlb, None, data)?;
        let (zone, offset) = self.writable(slba, nlb)?;
        let zeros = vec![Content::default(); nlb as usize];
        self.put(zone, offset, nlb, Some(zeros))?;
        Ok(0)
    }

    /// In zones, ranges are checked, and that is all.
    fn deallocate(&self, ranges: u16, data: Option<&[u8]>) -> Result<u64, Status> {
        let data = entries(data, ranges, 16)?;
        for entry in data.chunks_exact(16) {
            self.locate(number(&entry[8..]), number(&entry[4..8]) as u32)?;
        }
        Ok(0)
    }

    fn copy(&mut self, sdlba: u64, ranges: u16, data: Option<&[u8]>) -> Result<u64, Status> {
        let limits = self.config.copy.ok_or(Status::INVALID_OPCODE)?;
        if ranges > limits.max_ranges {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        let sources = sources(data, ranges)?;
        let mut nlb = 0;
        for (_, blocks) in &sources {
            nlb += blocks;
            if *blocks > u32::from(limits.max_range_lbas) || nlb > limits.max_lbas {
                return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
            }
        }
        let first = self.space.first as u64 * self.config.zones.size_lbas;
        let mut copied = Vec::new();
        for (slba, blocks) in sources {
            self.readable(slba, blocks)?;
            copied.extend(self.content(first + slba, blocks));
        }
        let (zone, offset) = self.writable(sdlba, nlb)?;
        self.put(zone, offset, nlb, Some(copied))?;
        Ok(0)
    }

    /// The zone that `nlb` blocks may be written to at `slba`, and where in it.
    /// How far its area reaches is checked by [`Shadow::put`].
    fn writable(&self, slba: u64, nlb: u32) -> Result<(usize, u64), Status> {
        let (zone, offset) = self.locate(slba, nlb)?;
        if offset + u64::from(nlb) > self.config.zones.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if self.zones[zone].state == State::Full {
            return Err(Status::ZONE_IS_FULL);
        }
        if self.zones[zone].area.is_none() && self.zones[zone].pointer != offset {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        Ok((zone, offset))
    }

    /// What a write `tag` with data puts at an offset in a zone.
    fn stamps(&self, zone: usize, offset: u64, nlb: u32, tag: u32) -> Vec<Content> {
        let first = zone as u64 * self.config.zones.size_lbas + offset;
        (first..first + u64::from(nlb))
            .map(|lba| Content {
                tag,
                lba,
                changes: 0,
            })
            .collect()
    }

    fn append(
        &mut self,
        zslba: u64,
        nlb: u32,
        data: Option<&[u8]>,
        tag: u32,
    ) -> Result<u64, Status> {
        let front = &self.config.front_end;
        self.transfer(
            nlb,
            front.max_append_bytes.or(front.max_transfer_bytes),
            data,
        )?;
        let (zone, offset) = self.locate(zslba, nlb)?;
        if offset != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].state == State::Full {
            return Err(Status::ZONE_IS_FULL);
        }
        if self.zones[zone].area.is_some() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        let pointer = self.zones[zone].pointer;
        if pointer + u64::from(nlb) > self.config.zones.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        let written = data.map(|_| self.stamps(zone, pointer, nlb, tag));
        self.put(zone, pointer, nlb, written)?;
        Ok(zslba + pointer)
    }

    /// Puts blocks that fit in a zone that is not full, at its write pointer or
    /// in its area. Without `written`, what they hold stays as it is.
    fn put(
        &mut self,
        zone: usize,
        offset: u64,
        nlb: u32,
        written: Option<Vec<Content>>,
    ) -> Result<(), Status> {
        if self.zones[zone].area.is_some() {
            return self.write_area(zone, offset, nlb, written);
        }
        self.open_for_write(zone)?;
        self.advance(zone, u64::from(nlb));
        self.fill(zone, offset, written);
        let zone = u32::try_from(zone).expect("few zones");
        self.effects.push(Effect::Wrote { zone, offset, nlb });
        Ok(())
    }

    fn open_for_write(&mut self, zone: usize) -> Result<(), Status> {
        self.take_open(zone)?;
        if !self.zones[zone].state.is_open() {
            self.opens += 1;
            self.zones[zone].opened = self.opens;
            self.zones[zone].state = State::Implicit;
        }
        Ok(())
    }

    fn advance(&mut self, zone: usize, lbas: u64) {
        let zone = &mut self.zones[zone];
        zone.pointer += lbas;
        zone.host += lbas;
        if zone.pointer == self.config.zones.capacity_lbas {
            zone.state = State::Full;
            zone.area = None;
        }
    }

    fn fill(&mut self, zone: usize, offset: u64, written: Option<Vec<Content>>) {
        let content = &mut self.zones[zone].content;
        if content.is_empty() {
            return;
        }
        let first = usize::try_from(offset).expect("zones are small");
        for (block, written) in content[first..].iter_mut().zip(written.unwrap_or_default()) {
            *block = Content {
                changes: block.changes + 1,
                ..written
            };
        }
    }

    /// Blocks of an area, and of the granularity of its commits.
    fn area_shape(&self) -> (u64, u64) {
        let zrwa = self.config.zones.zrwa.expect("a zone has an area");
        (zrwa.size_lbas.into(), zrwa.flush_granularity_lbas.into())
    }

    fn write_area(
        &mut self,
        zone: usize,
        offset: u64,
        nlb: u32,
        written: Option<Vec<Content>>,
    ) -> Result<(), Status> {
        let (size, granularity) = self.area_shape();
        let (pointer, end) = (self.zones[zone].pointer, offset + u64::from(nlb));
        if offset < pointer || end > pointer + 2 * size {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.open_for_write(zone)?;
        self.fill(zone, offset, written);
        self.zones[zone].area = self.zones[zone].area.max(Some(end));
        self.effects.push(Effect::Stored { nlb });
        let mut moved = 0;
        while end > pointer + moved + size {
            moved += granularity;
        }
        self.commit(zone, moved);
        Ok(())
    }

    /// Moves the write pointer of a zone with an area.
    fn commit(&mut self, zone: usize, lbas: u64) {
        let offset = self.zones[zone].pointer;
        self.advance(zone, lbas);
        if lbas > 0 {
            self.committed(zone, offset, lbas);
        }
    }

    fn committed(&mut self, zone: usize, offset: u64, lbas: u64) {
        let zone = u32::try_from(zone).expect("few zones");
        let nlb = u32::try_from(lbas).expect("zones are small");
        self.effects.push(Effect::Committed { zone, offset, nlb });
    }

    /// Flush Explicit ZRWA up to the block `last`.
    fn flush_area(&mut self, last: u64) -> Result<u64, Status> {
        let (zone, offset) = self.locate(last, 1)?;
        let zrwa = self.config.zones.zrwa;
        if !zrwa.is_some_and(|zrwa| zrwa.explicit_flush) {
            return Err(Status::INVALID_FIELD);
        }
        let (size, granularity) = self.area_shape();
        let Zone { pointer, area, .. } = self.zones[zone];
        let in_area = area.is_some()
            && (pointer..pointer + size).contains(&offset)
            && offset < self.config.zones.capacity_lbas;
        if !in_area || !(offset + 1 - pointer).is_multiple_of(granularity) {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        self.open_for_write(zone)?;
        self.commit(zone, offset + 1 - pointer);
        Ok(0)
    }

    /// Zone management that gives a zone an area too.
    fn send_with_area(
        &mut self,
        slba: u64,
        action: ZoneSendAction,
        data: Option<&[u8]>,
    ) -> Result<u64, Status> {
        let is_open = action == ZoneSendAction::OPEN;
        if !is_open && action != ZoneSendAction::SET_DESCRIPTOR_EXTENSION {
            return Err(Status::INVALID_FIELD);
        }
        if !is_open && data.is_none() {
            return Err(Status::INVALID_FIELD);
        }
        let zone = self.zone_at(slba)?;
        let Some(zrwa) = self.config.zones.zrwa else {
            return Err(Status::INVALID_FIELD);
        };
        if is_open && self.zones[zone].state.is_active() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        let zones = &self.zones[self.space.first..][..self.space.count];
        let areas = zones.iter().filter(|zone| zone.area.is_some()).count();
        let before = self.clone();
        if is_open {
            self.open_zone(zone)?;
        } else {
            self.set_extension(slba, false, data)?;
        }
        if zrwa.max_areas.is_some_and(|most| areas >= most as usize) {
            *self = before;
            self.effects.clear();
            return Err(Status::ZRWA_RESOURCES_UNAVAILABLE);
        }
        self.zones[zone].area = Some(0);
        Ok(0)
    }

    /// Makes sure that `zone` can be open: it is, or there is room, or room is
    /// made by closing the zone that was opened implicitly first.
    fn take_open(&mut self, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        if state.is_open() {
            return Ok(());
        }
        let limits = self.space;
        if state == State::Empty {
            self.take_active(zone)?;
        }
        if limits.max_open.is_some_and(|most| self.open() >= most) {
            let victim = self.zones[limits.first..][..limits.count]
                .iter_mut()
                .filter(|zone| zone.state == State::Implicit)
                .min_by_key(|zone| zone.opened)
                .ok_or(Status::TOO_MANY_OPEN_ZONES)?;
            victim.state = State::Closed;
            self.effects.push(Effect::ImplicitlyClosed);
        }
        Ok(())
    }

    fn send(
        &mut self,
        slba: u64,
        action: ZoneSendAction,
        select_all: bool,
        data: Option<&[u8]>,
    ) -> Result<u64, Status> {
        if action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION {
            return self.set_extension(slba, select_all, data);
        }
        if action == ZoneSendAction::ZRWA_FLUSH && !select_all {
            return self.flush_area(slba);
        }
        let one = if select_all {
            None
        } else {
            Some(self.zone_at(slba)?)
        };
        let act = match action {
            ZoneSendAction::CLOSE => Self::close,
            ZoneSendAction::FINISH => Self::finish,
            ZoneSendAction::OPEN => Self::open_zone,
            ZoneSendAction::RESET => Self::reset,
            ZoneSendAction::OFFLINE => |_: &mut Self, _| Err(Status::INVALID_ZONE_STATE_TRANSITION),
            _ => return Err(Status::INVALID_FIELD),
        };
        if let Some(zone) = one {
            act(self, zone)?;
            return Ok(0);
        }
        let selected = |state: State| match action {
            ZoneSendAction::CLOSE => state.is_open(),
            ZoneSendAction::FINISH => state.is_active(),
            ZoneSendAction::OPEN => state == State::Closed,
            ZoneSendAction::RESET => state.is_active() || state == State::Full,
            _ => false,
        };
        let mine = self.space.first..self.space.first + self.space.count;
        let zones: Vec<usize> = mine
            .filter(|&zone| selected(self.zones[zone].state))
            .collect();
        // Opening all closed zones succeeds as a whole or not at all.
        let before = self.clone();
        for zone in zones {
            if let Err(status) = act(self, zone) {
                *self = before;
                self.effects.clear();
                return Err(status);
            }
        }
        Ok(0)
    }

    fn open_zone(&mut self, zone: usize) -> Result<(), Status> {
        if self.zones[zone].state == State::Full {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.take_open(zone)?;
        self.zones[zone].state = State::Explicit;
        Ok(())
    }

    fn close(&mut self, zone: usize) -> Result<(), Status> {
        let zone = &mut self.zones[zone];
        if !zone.state.is_active() {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        zone.state = State::Closed;
        Ok(())
    }

    fn finish(&mut self, zone: usize) -> Result<(), Status> {
        let pointer = self.zones[zone].pointer;
        let end = self.zones[zone].area.take().unwrap_or(0).max(pointer);
        if end > pointer {
            // What was written to the area is the host's.
            self.zones[zone].pointer = end;
            self.zones[zone].host = end;
            self.committed(zone, pointer, end - pointer);
        }
        let at = &mut self.zones[zone];
        if at.state != State::Full {
            let zone = u32::try_from(zone).expect("few zones");
            self.effects.push(Effect::Finished {
                zone,
                from: at.pointer,
            });
            at.state = State::Full;
            at.pointer = self.config.zones.capacity_lbas;
        }
        Ok(())
    }

    fn reset(&mut self, zone: usize) -> Result<(), Status> {
        let at = &mut self.zones[zone];
        if at.state != State::Empty {
            let zone = u32::try_from(zone).expect("few zones");
            self.effects.push(Effect::Reset { zone });
            (at.state, at.pointer, at.host, at.extension) = (State::Empty, 0, 0, None);
            at.area = None;
            for block in at.content.iter_mut().filter(|block| block.tag != 0) {
                *block = Content {
                    tag: 0,
                    lba: 0,
                    changes: block.changes + 1,
                };
            }
        }
        Ok(())
    }

    fn set_extension(
        &mut self,
        slba: u64,
        select_all: bool,
        data: Option<&[u8]>,
    ) -> Result<u64, Status> {
        // ZNS command set 1.1, section 3.4.3: the action has no Select All.
        let data = data.filter(|_| !select_all).ok_or(Status::INVALID_FIELD)?;
        let zone = self.zone_at(slba)?;
        let bytes = self.config.zones.descriptor_extension_bytes as usize;
        if bytes == 0 || data.len() < bytes {
            return Err(Status::INVALID_FIELD);
        }
        if self.zones[zone].state != State::Empty {
            return Err(Status::INVALID_ZONE_STATE_TRANSITION);
        }
        self.take_active(zone)?;
        self.zones[zone].state = State::Closed;
        self.zones[zone].extension = Some(data[..bytes].to_vec());
        Ok(0)
    }

    /// A zone report by the byte offsets of ZNS command set 1.1, section 3.4.2.
    fn report(
        &self,
        slba: u64,
        filter: u8,
        partial: bool,
        extended: bool,
        length: Option<usize>,
    ) -> Result<Vec<u8>, Status> {
        let length = length.ok_or(Status::INVALID_FIELD)?;
        let (first, _) = self.locate(slba, 1)?;
        let extension_bytes = self.config.zones.descriptor_extension_bytes as usize;
        if filter > 7 || (extended && extension_bytes == 0) || length < 64 {
            return Err(Status::INVALID_FIELD);
        }
        let entry_bytes = if extended { 64 + extension_bytes } else { 64 };
        let room = (length - 64) / entry_bytes;
        let end = self.space.first + self.space.count;
        let matching: Vec<usize> = (first..end)
            .filter(|&zone| filter == 0 || self.zones[zone].state.codes().1 == filter)
            .collect();
        let count = if partial {
            matching.len().min(room)
        } else {
            matching.len()
        };
        let mut out = vec![0; length];
        out[0..8].copy_from_slice(&(count as u64).to_le_bytes());
        for (&index, entry) in matching.iter().zip(out[64..].chunks_exact_mut(entry_bytes)) {
            let zone = &self.zones[index];
            let start = (index - self.space.first) as u64 * self.config.zones.size_lbas;
            let pointer = if zone.state == State::Full {
                start + self.config.zones.capacity_lbas
            } else {
                start + zone.pointer
            };
            entry[0] = 2;
            entry[1] = zone.state.codes().0 << 4;
            entry[2] = if zone.extension.is_some() { 0x80 } else { 0 }
                | if zone.area.is_some() { 0x08 } else { 0 };
            entry[8..16].copy_from_slice(&self.config.zones.capacity_lbas.to_le_bytes());
            entry[16..24].copy_from_slice(&start.to_le_bytes());
            entry[24..32].copy_from_slice(&pointer.to_le_bytes());
            if let Some(bytes) = zone.extension.as_deref().filter(|_| extended) {
                entry[64..].copy_from_slice(bytes);
            }
        }
        Ok(out)
    }
}

/// The first `count` entries of `bytes` bytes each; there has to be one.
fn entries(data: Option<&[u8]>, count: u16, bytes: usize) -> Result<&[u8], Status> {
    let data = data.filter(|_| count > 0).ok_or(Status::INVALID_FIELD)?;
    data.get(..usize::from(count) * bytes)
        .ok_or(Status::INVALID_FIELD)
}

/// Source ranges of a copy: first block and number of blocks.
pub(super) fn sources(data: Option<&[u8]>, ranges: u16) -> Result<Vec<(u64, u32)>, Status> {
    let data = entries(data, ranges, 32)?;
    let source = |entry: &[u8]| (number(&entry[8..16]), number(&entry[16..18]) as u32 + 1);
    Ok(data.chunks_exact(32).map(source).collect())
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, add)
}

/// The namespaces of a drive: those that it states, or one with everything.
fn spaces(config: &DriveConfig) -> Vec<Space> {
    let zones = &config.zones;
    if config.namespaces.is_empty() {
        return vec![Space {
            first: 0,
            count: zones.count as usize,
            max_active: zones.max_active,
            max_open: zones.max_open,
        }];
    }
    let mut spaces: Vec<Space> = Vec::new();
    for namespace in &config.namespaces {
        spaces.push(Space {
            first: spaces.last().map_or(0, |space| space.first + space.count),
            count: namespace.zones as usize,
            max_active: namespace.max_active,
            max_open: namespace.max_open,
        });
    }
    spaces
}
