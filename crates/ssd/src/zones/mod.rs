//! The zone state machine of the ZNS command set: logic only, no timing, no flash.
//!
//! [`Zones`] knows the state and the write pointer of every zone. It decides
//! whether a command is allowed, with the status code that the specification
//! asks for, and applies it at once. What the command costs, and when its
//! effect on flash takes place, is for others; for them it reports the
//! [`Extent`] that a write got, and each [`Change`] of state.
//!
//! * [`table`]: every transition, as a table that is also the implementation.
//! * `conditions`: what the rows of the table are about.
//! * `namespace`: ranges of zones with addresses and limits of their own.
//! * `zrwa`: random write areas and what is committed of them.
//! * `access`: reads, writes and appends.
//! * `send`: Zone Management Send, descriptor extensions, and forced transitions.
//! * `report`: zone reports in wire layout.
//! * `saved`: states and write pointers as data.
//! * `kept`: zones that are kept outside of the drive.
//! * `power`: what a loss of power leaves of the zones.
//! * `implicit`: the implicitly opened zones in the order in which they were opened.
//!
//! When more than one error applies to a command, the first of these wins:
//!
//! 1. Invalid Field in Command for zero blocks, LBA Out of Range, then Invalid
//!    Field in Command for an append or a management command whose address is
//!    not the start of a zone;
//! 2. Zone Boundary Error for a write whose addresses leave the capacity of a zone;
//! 3. the state of the zone: Zone Is Full, Zone Is Read Only, Zone Is Offline,
//!    Invalid Zone State Transition;
//! 4. Invalid Zone Operation Request for an append to a zone that has a random
//!    write area;
//! 5. Zone Invalid Write, or, for an append that does not fit behind the write
//!    pointer, Zone Boundary Error;
//! 6. Too Many Active Zones, Too Many Open Zones, then ZRWA Resources Unavailable.
//!
//! The specification leaves this order open; steps 2 to 6 are those of the ZNS
//! emulation that QEMU 5.2 introduced, except that an append is never held
//! against the boundary before its zone is known to be writable (its address is
//! that of the write pointer, so an append to a full zone would never get Zone
//! Is Full). A read across zones looks at each zone's state in turn, as QEMU does.
//!
//! Not implemented: zones of different size or capacity, attributes other than
//! Zone Descriptor Extension Valid, Zone Random Write Area Valid and Zone Finished
//! by Controller.

mod access;
mod conditions;
mod implicit;
mod kept;
mod namespace;
mod power;
mod report;
mod saved;
mod send;
pub mod table;
mod zrwa;

use std::collections::BTreeMap;

use zonelab_device::{Lba, ZoneId};
use zonelab_nvme::zns::ZoneState;

use crate::config::{NamespaceConfig, ZonesConfig};
pub use namespace::Namespace;
pub(crate) use saved::SavedZones;
use table::{Condition, Event, Outcome, Placement, State};
use zrwa::Areas;

/// States and write pointers of all zones of a drive.
///
/// Zones and blocks count over the drive, whose namespaces lie side by side:
/// [`Namespace::on_drive`] says where the blocks of one are. A drive with a
/// single namespace counts as that does.
///
/// 24 bytes per zone, 8 more on a drive with random write areas, plus the
/// descriptor extensions that exist. Nothing on the
/// path of reads, writes and appends allocates, searches or hashes.
#[derive(Clone, Debug)]
pub struct Zones {
    zones: Vec<Zone>,
    /// Distance between zone starts.
    size_lbas: u64,
    /// Base-2 logarithm of `size_lbas`, if it is a power of two.
    size_shift: Option<u32>,
    capacity_lbas: u64,
    /// `size_lbas` times the number of zones.
    drive_lbas: u64,
    /// Side by side, from the first zone to the last.
    namespaces: Box<[Namespace]>,
    read_across: bool,
    extension_bytes: usize,
    /// By zone, of zones with [`Zone::has_extension`].
    extensions: BTreeMap<usize, Box<[u8]>>,
    areas: Areas,
    /// Changes that nobody has looked at yet; `None`: nobody wants to.
    journal: Option<Vec<Change>>,
    /// Zones that changed; `None`: nobody keeps them.
    unkept: Option<Box<kept::Unkept>>,
    /// See [`Zones::set_short_of_flash`].
    is_short_of_flash: bool,
}

/// One zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    /// Blocks that the host wrote, or that count as such (precondition).
    host_lbas: u64,
    /// Neighbours in [`ImplicitList`]; without meaning for other zones.
    links: implicit::Links,
    /// Resets so far, modulo 2^32: tells writes before a reset from those after it.
    generation: u32,
    state: State,
    finished: Finished,
    has_extension: bool,
    /// Index of its namespace.
    namespace: u8,
}

/// Whether a zone was finished before it was written to its capacity: its write
/// pointer is at the end then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finished {
    No,
    ByHost,
    /// Zone Finished by Controller (ZFC).
    ByController,
}

impl Zone {
    const EMPTY: Self = Self {
        host_lbas: 0,
        links: implicit::Links::NONE,
        generation: 0,
        state: State::Empty,
        finished: Finished::No,
        has_extension: false,
        namespace: 0,
    };

    /// Position of the write pointer.
    const fn written_lbas(&self, capacity_lbas: u64) -> u64 {
        if self.is_finished() {
            capacity_lbas
        } else {
            self.host_lbas
        }
    }

    #[inline]
    const fn is_finished(&self) -> bool {
        !matches!(self.finished, Finished::No)
    }
}

// 100,000 zones in a few MiB.
const _: () = assert!(size_of::<Zone>() <= 24);

/// Where the blocks of a write or append went, and what that did to zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The zone.
    pub zone: ZoneId,
    /// First block, as an address (the result of a zone append).
    pub slba: Lba,
    /// First block, counted from the start of the zone.
    pub offset_lbas: u64,
    /// Number of blocks.
    pub nlb: u32,
    /// The zone was empty before.
    pub was_empty: bool,
    /// The zone was not open before: the write opened it implicitly.
    pub opened: bool,
    /// The blocks reach the capacity: the zone is full now.
    pub filled: bool,
    /// This zone was implicitly closed to make room.
    pub closed: Option<ZoneId>,
    /// The zone has a random write area: the blocks that go to the flash for
    /// good. Without one, those are the blocks of the extent.
    pub zrwa: Option<Committed>,
}

/// Blocks of a random write area that a write or a flush committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The first, counted from the start of the zone: the write pointer before.
    pub offset_lbas: u64,
    /// Their number; 0: the write pointer has not moved.
    pub nlb: u32,
}

/// A change of state of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The zone, counted over the drive.
    pub zone: ZoneId,
    /// Its state before.
    pub from: ZoneState,
    /// Its state now.
    pub to: ZoneState,
    /// Its write pointer before, as an offset from its start.
    pub written_lbas: u64,
    /// Blocks that the host had written. A finish counts those of the random
    /// write area too, which it commits.
    pub host_lbas: u64,
}

impl Zones {
    /// All zones empty, in a single namespace with the limits of `config`.
    ///
    /// # Panics
    /// `config` is inconsistent: the capacity is zero or exceeds the size, or an
    /// address does not fit in 64 bits. [`crate::profile::check`] refuses these.
    #[must_use]
    pub fn new(config: &ZonesConfig) -> Self {
        Self::with_namespaces(config, &[NamespaceConfig::whole(config)])
    }

    /// All zones empty, divided among namespaces in their order. The limits are
    /// those of the namespaces.
    ///
    /// # Panics
    /// As [`Zones::new`], and if the zones of the namespaces are not those of
    /// `config`, or there are more than [`NamespaceConfig::MAX`].
    #[must_use]
    pub fn with_namespaces(config: &ZonesConfig, namespaces: &[NamespaceConfig]) -> Self {
        let size_lbas = config.size_lbas;
        assert!(
            (1..=size_lbas).contains(&config.capacity_lbas),
            "zone capacity is not within zone size"
        );
        let drive_lbas = size_lbas
            .checked_mul(config.count.into())
            .expect("a checked configuration has 64-bit addresses");
        let mut zones = Vec::with_capacity(config.count as usize);
        for (index, namespace) in namespaces.iter().enumerate() {
            let zone = Zone {
                namespace: u8::try_from(index).expect("there are at most 255 namespaces"),
                ..Zone::EMPTY
            };
            zones.resize(zones.len() + namespace.zones as usize, zone);
        }
        assert_eq!(
            zones.len(),
            config.count as usize,
            "namespaces have the zones of the drive"
        );
        Self {
            zones,
            size_lbas,
            size_shift: size_lbas
                .is_power_of_two()
                .then(|| size_lbas.trailing_zeros()),
            capacity_lbas: config.capacity_lbas,
            drive_lbas,
            namespaces: Namespace::side_by_side(config, namespaces, drive_lbas),
            read_across: config.read_across,
            extension_bytes: config.descriptor_extension_bytes as usize,
            extensions: BTreeMap::new(),
            areas: Areas::new(config),
            journal: None,
            unkept: None,
            is_short_of_flash: false,
        }
    }

    /// The zone that contains `lba`, also beyond its capacity; `None` behind the last zone.
    #[inline]
    #[must_use]
    pub fn zone_of(&self, lba: Lba) -> Option<ZoneId> {
        (lba.0 < self.drive_lbas).then(|| self.id(self.index_of(lba.0)))
    }

    /// Number of zones.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.zones.len()).expect("the number of zones came as u32")
    }

    /// Logical blocks from the start of a zone to that of the next (ZSZE).
    #[inline]
    pub(crate) const fn size_lbas(&self) -> u64 {
        self.size_lbas
    }

    /// First block of a zone.
    ///
    /// # Panics
    /// There is no such zone.
    #[must_use]
    pub fn start(&self, zone: ZoneId) -> Lba {
        assert!(zone.0 < self.count(), "no zone {}", zone.0);
        self.start_of(zone.0 as usize)
    }

    /// State of a zone.
    ///
    /// # Panics
    /// There is no such zone.
    #[inline]
    #[must_use]
    pub fn state(&self, zone: ZoneId) -> ZoneState {
        self.zones[zone.0 as usize].state.code()
    }

    /// Write pointer of a zone as an offset from its start: the capacity if it
    /// is full. In a read-only or offline zone, where it was.
    ///
    /// # Panics
    /// There is no such zone.
    #[inline]
    #[must_use]
    pub fn written_lbas(&self, zone: ZoneId) -> u64 {
        self.zones[zone.0 as usize].written_lbas(self.capacity_lbas)
    }

    /// Blocks of a zone that the host wrote. Unlike [`Zones::written_lbas`], a
    /// finish does not change it.
    ///
    /// # Panics
    /// There is no such zone.
    #[inline]
    #[must_use]
    pub fn host_lbas(&self, zone: ZoneId) -> u64 {
        self.zones[zone.0 as usize].host_lbas
    }

    /// Resets of a zone so far, modulo 2^32.
    #[inline]
    pub(crate) fn generation(&self, zone: ZoneId) -> u32 {
        self.zones[zone.0 as usize].generation
    }

    /// There is no flash for the zone of the command that comes next: as if no
    /// zone could become active.
    pub(crate) fn set_short_of_flash(&mut self, is_short: bool) {
        self.is_short_of_flash = is_short;
    }

    /// Fewer zones of the namespace of a zone are active than may be.
    pub(crate) fn can_be_active(&self, zone: ZoneId) -> bool {
        let of = self.namespace_of(zone.0 as usize);
        of.active < of.max_active
    }

    /// The namespace of a zone.
    #[inline]
    fn namespace_of(&self, index: usize) -> &Namespace {
        &self.namespaces[usize::from(self.zones[index].namespace)]
    }

    /// The circumstances of a zone, as the table wants them.
    #[inline]
    fn condition(&self, index: usize, placement: Placement) -> Condition {
        let of = self.namespace_of(index);
        Condition {
            placement,
            active_free: of.active < of.max_active && !self.is_short_of_flash,
            open_free: of.open < of.max_open || of.implicit.len() > 0,
            zrwa_free: of.zrwa < of.max_zrwa,
        }
    }

    /// Closes the oldest implicitly opened zone of its namespace if the zone
    /// that is about to change needs an open resource and none is left.
    #[inline]
    fn make_room(&mut self, index: usize, outcome: Outcome) -> Option<usize> {
        if !outcome.takes_open {
            return None;
        }
        let of = self.namespace_of(index);
        if of.open < of.max_open {
            return None;
        }
        let oldest = of
            .implicit
            .oldest()
            .expect("the condition was that a resource is free or can be freed");
        let condition = self.condition(oldest, Placement::Within);
        let close = table::outcome(State::ImplicitlyOpened, Event::ImplicitClose, condition);
        debug_assert!(close.status.is_success(), "implicit close failed");
        self.enter(oldest, close);
        Some(oldest)
    }

    /// Moves a zone to the state that the table says, and keeps the counts.
    #[inline]
    fn enter(&mut self, index: usize, outcome: Outcome) {
        debug_assert!(
            outcome.status.is_success(),
            "a failed command changes nothing"
        );
        if let Some(unkept) = &mut self.unkept {
            unkept.note(index);
        }
        let from = self.zones[index].state;
        if from == outcome.next {
            return;
        }
        let of = &mut self.namespaces[usize::from(self.zones[index].namespace)];
        if from == State::ImplicitlyOpened {
            of.implicit.remove(&mut self.zones, index);
        }
        if outcome.next == State::ImplicitlyOpened {
            of.implicit.push(&mut self.zones, index);
        }
        let add = |count: u32, delta: i8| {
            count
                .checked_add_signed(delta.into())
                .expect("a count is the number of zones in its states")
        };
        of.open = add(of.open, outcome.open_delta);
        of.active = add(of.active, outcome.active_delta);
        assert!(of.open <= of.max_open, "too many open zones");
        assert!(of.active <= of.max_active, "too many active zones");
        if self.journal.is_some() {
            self.note(index, from, outcome.next);
        }
        self.zones[index].state = outcome.next;
        if outcome.takes_zrwa {
            self.allocate_zrwa(index);
        } else if self.areas.are_supported() && !outcome.next.is_active() {
            self.leave_zrwa(index, outcome.next);
        }
    }

    /// Keeps a journal of every change of state from now on, or keeps none.
    /// Whoever asks for it empties it with [`Zones::drain_journal`].
    pub fn keep_journal(&mut self, keep: bool) {
        self.journal = keep.then(Vec::new);
    }

    /// Whether zones have changed since the journal was last emptied.
    #[inline]
    #[must_use]
    pub fn has_journal(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|changes| !changes.is_empty())
    }

    /// Empties the journal: the changes in the order in which they were made.
    pub fn drain_journal(&mut self) -> impl Iterator<Item = Change> {
        self.journal
            .iter_mut()
            .flat_map(|changes| changes.drain(..))
    }

    /// Writes a change that is about to be made into the journal.
    #[cold]
    fn note(&mut self, index: usize, from: State, to: State) {
        let change = Change {
            zone: self.id(index),
            from: from.code(),
            to: to.code(),
            written_lbas: self.zones[index].written_lbas(self.capacity_lbas),
            host_lbas: self.zones[index].host_lbas,
        };
        if let Some(journal) = &mut self.journal {
            journal.push(change);
        }
    }

    /// The zone of an address within the drive.
    #[inline]
    const fn index_of(&self, lba: u64) -> usize {
        let index = match self.size_shift {
            Some(shift) => lba >> shift,
            None => lba / self.size_lbas,
        };
        index as usize
    }

    /// First block of an existing zone.
    #[inline]
    const fn start_of(&self, index: usize) -> Lba {
        Lba(index as u64 * self.size_lbas)
    }

    /// The zone at an index: their number came as u32, so the cast loses nothing.
    #[inline]
    const fn id(&self, index: usize) -> ZoneId {
        debug_assert!(index < self.zones.len());
        ZoneId(index as u32)
    }
}
