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
    /// By block of the zone up to its size; empty unless the drive keeps data.
    content: Vec<Content>,
}

/// What a command did besides ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Blocks went to a zone.
    Wrote { zone: u32, offset: u64, nlb: u32 },
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
                Op::ZoneSend {
                    slba,
                    action,
                    select_all,
                } => self.send(slba.0, action, select_all, data),
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
                .all(|zone| self.zones[zone as usize].state == State::Empty);
        if possible {
            for zone in zones {
                let capacity = self.config.zones.capacity_lbas;
                let zone = &mut self.zones[zone as usize];
                (zone.state, zone.pointer, zone.host) = (State::Full, capacity, capacity);
            }
        }
        possible
    }

    /// What blocks of the drive hold.
    pub(super) fn content(&self, slba: u64, nlb: u32) -> Vec<Content> {
        let size = self.config.zones.size_lbas;
        (slba..slba + u64::from(nlb))
            .map(|lba| {
                let zone = &self.zones[usize::try_from(lba / size).expect("few zones")];
                zone.content[usize::try_from(lba % size).expect("zones are small")]
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
        let (_, offset) = self.locate(slba, nlb)?;
        let zones = &self.config.zones;
        if offset + u64::from(nlb) > zones.size_lbas && !zones.read_across {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        Ok(0)
    }

    fn write(&mut self, slba: u64, nlb: u32, data: Option<&[u8]>, tag: u32) -> Result<u64, Status> {
        self.transfer(nlb, self.config.front_end.max_transfer_bytes, data)?;
        let (zone, offset) = self.locate(slba, nlb)?;
        if offset + u64::from(nlb) > self.config.zones.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        if self.zones[zone].state == State::Full {
            return Err(Status::ZONE_IS_FULL);
        }
        if self.zones[zone].pointer != offset {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.put(zone, nlb, data.is_some(), tag)?;
        Ok(0)
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
        let pointer = self.zones[zone].pointer;
        if pointer + u64::from(nlb) > self.config.zones.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        self.put(zone, nlb, data.is_some(), tag)?;
        Ok(zslba + pointer)
    }

    /// Puts blocks that fit at the write pointer of a zone that is not full.
    fn put(&mut self, zone: usize, nlb: u32, with_data: bool, tag: u32) -> Result<(), Status> {
        self.take_open(zone)?;
        if !self.zones[zone].state.is_open() {
            self.opens += 1;
            self.zones[zone].opened = self.opens;
            self.zones[zone].state = State::Implicit;
        }
        let offset = self.zones[zone].pointer;
        let Zone {
            state,
            pointer,
            host,
            content,
            ..
        } = &mut self.zones[zone];
        *pointer += u64::from(nlb);
        *host += u64::from(nlb);
        if *pointer == self.config.zones.capacity_lbas {
            *state = State::Full;
        }
        if with_data && !content.is_empty() {
            let first = usize::try_from(offset).expect("zones are small");
            for block in &mut content[first..first + nlb as usize] {
                *block = Content {
                    tag,
                    changes: block.changes + 1,
                };
            }
        }
        let zone = u32::try_from(zone).expect("few zones");
        self.effects.push(Effect::Wrote { zone, offset, nlb });
        Ok(())
    }

    /// Makes sure that `zone` can be open: it is, or there is room, or room is
    /// made by closing the zone that was opened implicitly first.
    fn take_open(&mut self, zone: usize) -> Result<(), Status> {
        let state = self.zones[zone].state;
        if state.is_open() {
            return Ok(());
        }
        let limits = self.space;
        if state == State::Empty && limits.max_active.is_some_and(|most| self.active() >= most) {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
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
            for block in at.content.iter_mut().filter(|block| block.tag != 0) {
                *block = Content {
                    tag: 0,
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
        if self
            .space
            .max_active
            .is_some_and(|most| self.active() >= most)
        {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
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
                u64::MAX
            } else {
                start + zone.pointer
            };
            entry[0] = 2;
            entry[1] = zone.state.codes().0 << 4;
            entry[2] = if zone.extension.is_some() { 0x80 } else { 0 };
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
