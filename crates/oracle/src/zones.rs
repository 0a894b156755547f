//! The zone state machine a second time.
//!
//! It follows the prose of the ZNS command set and the order of errors that
//! `docs/models/zone-states.md` states, and it is naive on purpose: nothing is kept that
//! can be counted, and every rule is an `if` where it applies. It shares no code with the
//! drive: wherever both say the same, two people would have to have made the same mistake.

mod area;
mod send;

use zonelab_device::NamespaceId;
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::config::{NamespaceConfig, ZonesConfig};

/// One zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// Write pointer, from the start of the zone; the capacity if nothing can be written.
    pub pointer: u64,
    /// Blocks that the host wrote.
    pub host: u64,
    /// Its descriptor extension, if one was set.
    pub extension: Option<Vec<u8>>,
    /// With a random write area: behind the last block written to it, 0 if none was.
    pub area: Option<u64>,
    /// When it was opened implicitly.
    opened: u64,
}

impl Zone {
    const EMPTY: Self = Self {
        state: ZoneState::EMPTY,
        pointer: 0,
        host: 0,
        extension: None,
        area: None,
        opened: 0,
    };

    /// It is opened, implicitly or explicitly.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == ZoneState::IMPLICITLY_OPENED || self.state == ZoneState::EXPLICITLY_OPENED
    }

    /// It takes an active resource.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_open() || self.state == ZoneState::CLOSED
    }

    /// It can no longer be written, for good.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.state == ZoneState::READ_ONLY || self.state == ZoneState::OFFLINE
    }
}

/// What a command did besides ending. Zones count over the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Blocks went to a zone, at its write pointer.
    Wrote {
        /// The zone.
        zone: u32,
        /// The first block, from the start of the zone.
        offset: u64,
        /// How many.
        nlb: u32,
    },
    /// Blocks went to a random write area.
    Stored {
        /// The zone.
        zone: u32,
        /// The first block, from the start of the zone.
        offset: u64,
        /// How many.
        nlb: u32,
    },
    /// Blocks left a random write area for the flash.
    Committed {
        /// The zone.
        zone: u32,
        /// The first block, from the start of the zone.
        offset: u64,
        /// How many.
        nlb: u32,
    },
    /// A zone became full at the host's request.
    Finished {
        /// The zone.
        zone: u32,
        /// Its write pointer before.
        from: u64,
    },
    /// A zone that was not empty became empty.
    Reset {
        /// The zone.
        zone: u32,
    },
    /// A zone was closed to make room for another.
    ImplicitlyClosed {
        /// The zone that was closed.
        zone: u32,
    },
}

/// A namespace: some zones in a row, and how many of them may be active and open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) first: usize,
    pub(crate) count: usize,
    max_active: Option<u32>,
    max_open: Option<u32>,
}

/// The zones of a drive. Addresses count from the start of the namespace that
/// [`Zones::select`] chose last, the first to begin with.
#[derive(Clone, Debug)]
pub struct Zones {
    pub(crate) config: ZonesConfig,
    spaces: Vec<Space>,
    pub(crate) space: Space,
    pub(crate) zones: Vec<Zone>,
    /// Implicit opens so far.
    opens: u64,
    effects: Vec<Effect>,
    /// Zones of each group of dies for which there is flash, if not for all.
    pub flash_left: Option<Vec<u32>>,
}

impl Zones {
    /// All zones empty, in the namespaces that are stated, or in one with everything.
    ///
    /// # Panics
    /// A namespace is larger than the address space.
    #[must_use]
    pub fn new(config: &ZonesConfig, namespaces: &[NamespaceConfig]) -> Self {
        let mut spaces: Vec<Space> = Vec::new();
        for namespace in namespaces {
            spaces.push(Space {
                first: spaces.last().map_or(0, |space| space.first + space.count),
                count: namespace.zones as usize,
                max_active: namespace.max_active,
                max_open: namespace.max_open,
            });
        }
        if spaces.is_empty() {
            spaces.push(Space {
                first: 0,
                count: config.count as usize,
                max_active: config.max_active,
                max_open: config.max_open,
            });
        }
        Self {
            config: *config,
            space: spaces[0],
            spaces,
            zones: vec![Zone::EMPTY; config.count as usize],
            opens: 0,
            effects: Vec::new(),
            flash_left: None,
        }
    }

    /// Addresses of what follows are in this namespace; false: there is none such, and
    /// they stay where they were.
    pub fn select(&mut self, nsid: NamespaceId) -> bool {
        let index = usize::try_from(nsid.0)
            .ok()
            .and_then(|of| of.checked_sub(1));
        let space = index.and_then(|index| self.spaces.get(index)).copied();
        self.space = space.unwrap_or(self.space);
        space.is_some()
    }

    /// First block of a namespace on the drive; that of the first if there is
    /// no such namespace.
    #[must_use]
    pub fn first_lba(&self, nsid: NamespaceId) -> u64 {
        let index = usize::try_from(nsid.0)
            .ok()
            .and_then(|of| of.checked_sub(1));
        let space = index.and_then(|index| self.spaces.get(index));
        space.map_or(0, |space| space.first as u64 * self.config.size_lbas)
    }

    /// All zones of the drive.
    #[must_use]
    pub fn all(&self) -> &[Zone] {
        &self.zones
    }

    /// What the zones were configured with.
    #[must_use]
    pub const fn config(&self) -> &ZonesConfig {
        &self.config
    }

    /// What happened since this was asked last.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// First block of a zone of the drive.
    #[must_use]
    pub fn start(&self, zone: usize) -> u64 {
        zone as u64 * self.config.size_lbas
    }

    /// The block behind the capacity of a zone of the drive.
    #[must_use]
    pub fn end(&self, zone: usize) -> u64 {
        self.start(zone) + self.config.capacity_lbas
    }

    /// The zones of the drive in a state.
    #[must_use]
    pub fn in_state(&self, state: ZoneState) -> Vec<usize> {
        let is = |zone: &usize| self.zones[*zone].state == state;
        (0..self.zones.len()).filter(is).collect()
    }

    /// Number of open zones and of active zones of each namespace.
    #[must_use]
    pub fn resources(&self) -> Vec<(u32, u32)> {
        let counts = |space: &Space| {
            (
                self.count(space, Zone::is_open),
                self.count(space, Zone::is_active),
            )
        };
        self.spaces.iter().map(counts).collect()
    }

    /// Open zones of the namespace.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.count(&self.space, Zone::is_open)
    }

    /// Active zones of the namespace.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.count(&self.space, Zone::is_active)
    }

    fn count(&self, space: &Space, is: fn(&Zone) -> bool) -> u32 {
        let zones = &self.zones[space.first..][..space.count];
        u32::try_from(zones.iter().filter(|zone| is(zone)).count()).expect("few zones")
    }

    /// Zone of the drive, and offset in it, of the first of `nlb` blocks of the
    /// namespace, all of which exist.
    pub(crate) fn locate(&self, slba: u64, nlb: u32) -> Result<(usize, u64), Status> {
        let (size, count) = (self.config.size_lbas, self.space.count as u64);
        match slba.checked_add(u64::from(nlb)) {
            Some(end) if end <= size * count => Ok((
                self.space.first + usize::try_from(slba / size).expect("few zones"),
                slba % size,
            )),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// [`Zones::locate`] of at least one block.
    fn blocks(&self, slba: u64, nlb: u32) -> Result<(usize, u64), Status> {
        if nlb == 0 {
            return Err(Status::INVALID_FIELD);
        }
        self.locate(slba, nlb)
    }

    /// The zone that starts at `slba`.
    pub(crate) fn zone_at(&self, slba: u64) -> Result<usize, Status> {
        match self.locate(slba, 1)? {
            (zone, 0) => Ok(zone),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Whether blocks can be read.
    ///
    /// # Errors
    /// The status that a drive says.
    pub fn read(&self, slba: u64, nlb: u32) -> Result<(), Status> {
        let (first, offset) = self.blocks(slba, nlb)?;
        let last = (offset + u64::from(nlb) - 1) / self.config.size_lbas;
        for zone in first..=first + usize::try_from(last).expect("few zones") {
            if zone != first && !self.config.read_across {
                return Err(Status::ZONE_BOUNDARY_ERROR);
            }
            if self.zones[zone].state == ZoneState::OFFLINE {
                return Err(Status::ZONE_IS_OFFLINE);
            }
        }
        Ok(())
    }

    /// Writes blocks at an address.
    ///
    /// # Errors
    /// The status that a drive says; nothing was written.
    pub fn write(&mut self, slba: u64, nlb: u32) -> Result<(), Status> {
        let (zone, offset) = self.blocks(slba, nlb)?;
        if offset + u64::from(nlb) > self.config.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        self.check_writable(zone)?;
        if self.zones[zone].area.is_some() {
            return self.write_area(zone, offset, nlb);
        }
        if self.zones[zone].pointer != offset {
            return Err(Status::ZONE_INVALID_WRITE);
        }
        self.write_at_pointer(zone, nlb)
    }

    /// Appends blocks to the zone that starts at `zslba`. Returns the address of the first.
    ///
    /// # Errors
    /// The status that a drive says; nothing was written.
    pub fn append(&mut self, zslba: u64, nlb: u32) -> Result<u64, Status> {
        let (zone, offset) = self.blocks(zslba, nlb)?;
        if offset != 0 {
            return Err(Status::INVALID_FIELD);
        }
        self.check_writable(zone)?;
        if self.zones[zone].area.is_some() {
            return Err(Status::INVALID_ZONE_OPERATION_REQUEST);
        }
        let pointer = self.zones[zone].pointer;
        if pointer + u64::from(nlb) > self.config.capacity_lbas {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        self.write_at_pointer(zone, nlb)?;
        Ok(zslba + pointer)
    }

    fn check_writable(&self, zone: usize) -> Result<(), Status> {
        match self.zones[zone].state {
            ZoneState::FULL => Err(Status::ZONE_IS_FULL),
            ZoneState::READ_ONLY => Err(Status::ZONE_IS_READ_ONLY),
            ZoneState::OFFLINE => Err(Status::ZONE_IS_OFFLINE),
            _ => Ok(()),
        }
    }

    fn write_at_pointer(&mut self, zone: usize, nlb: u32) -> Result<(), Status> {
        self.open_for_write(zone)?;
        let offset = self.zones[zone].pointer;
        self.advance(zone, u64::from(nlb));
        let zone = number(zone);
        self.effects.push(Effect::Wrote { zone, offset, nlb });
        Ok(())
    }

    fn open_for_write(&mut self, zone: usize) -> Result<(), Status> {
        self.take_open(zone)?;
        if !self.zones[zone].is_open() {
            self.opens += 1;
            self.zones[zone].opened = self.opens;
            self.zones[zone].state = ZoneState::IMPLICITLY_OPENED;
        }
        Ok(())
    }

    fn advance(&mut self, zone: usize, lbas: u64) {
        let zone = &mut self.zones[zone];
        zone.pointer += lbas;
        zone.host += lbas;
        if zone.pointer == self.config.capacity_lbas {
            zone.state = ZoneState::FULL;
            zone.area = None;
        }
    }

    /// Whether there is flash for all of some zones that have none.
    pub(crate) fn have_flash(&self, zones: impl IntoIterator<Item = usize>) -> bool {
        let Some(mut left) = self.flash_left.clone() else {
            return true;
        };
        let groups = left.len();
        zones.into_iter().all(|zone| {
            let left = &mut left[zone % groups];
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
        if !self.have_flash([zone]) {
            return Err(Status::CAPACITY_EXCEEDED);
        }
        Ok(())
    }

    /// Makes sure that `zone` can be open: it is, or there is room, or room is
    /// made by closing the zone that was opened implicitly first.
    fn take_open(&mut self, zone: usize) -> Result<(), Status> {
        if self.zones[zone].is_open() {
            return Ok(());
        }
        let limits = self.space;
        if !self.zones[zone].is_active() {
            self.take_active(zone)?;
        }
        if limits.max_open.is_some_and(|most| self.open() >= most) {
            let victim = (limits.first..limits.first + limits.count)
                .filter(|of| self.zones[*of].state == ZoneState::IMPLICITLY_OPENED)
                .min_by_key(|of| self.zones[*of].opened)
                .ok_or(Status::TOO_MANY_OPEN_ZONES)?;
            self.zones[victim].state = ZoneState::CLOSED;
            let zone = number(victim);
            self.effects.push(Effect::ImplicitlyClosed { zone });
        }
        Ok(())
    }
}

/// A zone, as commands count them.
fn number(zone: usize) -> u32 {
    u32::try_from(zone).expect("few zones")
}
