//! When the flash of zones that were reset is erased.

use zonelab_device::Nanos;

use super::PolicyError;
use crate::background::Background;
use crate::background::ResetState;
use crate::drive::Core;

/// When how much of the flash of reset zones is erased, and whether the host waits
/// for it.
///
/// A drive that erases by such a policy has its zones in groups that share no dies
/// (one group, if every zone is on all dies). Each group is in one of three states, and
/// goes from one to another when the policy says so at an event ([`Self::state_after`]):
///
/// | state | what the group does |
/// | --- | --- |
/// | [`ResetState::Serving`] | serves the host, erases nothing |
/// | [`ResetState::Partial`] | serves the host; whenever something is over, the policy says whether to erase a step now ([`Self::step`]) |
/// | [`ResetState::Full`] | holds commands of the host back and erases whole zones, one after another, as long as the policy wants more ([`Self::erases_more`]) |
///
/// Two things are not the policy's: a zone that needs flash when none is free gets an
/// invalid physical zone, whose erasure comes first with the group in
/// [`ResetState::Full`]; and of each group one erasure is under way at a time.
///
/// The built-in preemptive zone reset (Jung et al., Electronics 12, 798 (2023)) is an
/// implementation of the same interface.
pub trait ResetPolicy: core::fmt::Debug + Send {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// The events that [`Self::state_after`] is called at. Asked once. Those that come
    /// with every command cost a call per command.
    fn events(&self) -> ResetEvents {
        ResetEvents::COUNTS
    }

    /// The state of a group after something happened. While it is
    /// [`ResetState::Full`] the answer is not heeded: that ends by
    /// [`Self::erases_more`]. After [`ResetEvent::Served`] it must be another.
    ///
    /// # Errors
    /// What keeps it from answering ([`PolicyError::Failed`]).
    fn state_after(
        &mut self,
        event: ResetEvent,
        group: &ResetView<'_>,
    ) -> Result<ResetState, PolicyError>;

    /// What a group in [`ResetState::Partial`] erases now. Asked when an erasure or a
    /// command of the group is over, flash was given back, or a look was due that was
    /// asked for.
    ///
    /// # Errors
    /// As [`Self::state_after`].
    fn step(&mut self, group: &ResetView<'_>) -> Result<ResetStep, PolicyError>;

    /// Whether a group in [`ResetState::Full`] erases another zone (or line of storage
    /// elements) before the host goes on. If there is nothing to erase it goes on in any
    /// case.
    ///
    /// # Errors
    /// As [`Self::state_after`].
    fn erases_more(&mut self, group: &ResetView<'_>) -> Result<bool, PolicyError>;

    /// Which invalid zone is erased next, by its position among the candidates, which
    /// are in the order of their resets. Asked where physical zones are erased, not
    /// where zones consist of storage elements: those are erased by the profile's
    /// `reset.victim`. One that has been begun is erased to its end first.
    ///
    /// # Errors
    /// As [`Self::state_after`].
    fn victim(
        &mut self,
        group: &ResetView<'_>,
        candidates: &[ZoneToErase],
    ) -> Result<usize, PolicyError> {
        let _ = (group, candidates);
        Ok(0)
    }

    /// Whether its answers depend on more than it is told with each question. A drive
    /// with such a policy cannot be saved: a snapshot would not hold what it remembers.
    fn has_memory(&self) -> bool {
        true
    }
}

/// What happened to a group of zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetEvent {
    /// A zone is about to be given flash, which still counts as free.
    BeforeAllocation,
    /// A zone was given flash.
    Allocated,
    /// A zone has lost its flash, by a reset or a finish.
    Released,
    /// An erasure is over.
    Erased,
    /// A time in [`ResetState::Full`] is over.
    Served,
    /// A command that reads or writes its zones was accepted, and counts as pending.
    CommandBegins,
    /// It has completed, and counts no more.
    CommandEnds,
    /// The policy was installed, or the drive has power again.
    Resumed,
}

impl ResetEvent {
    /// Its name, `before-allocation`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeAllocation => "before-allocation",
            Self::Allocated => "allocated",
            Self::Released => "released",
            Self::Erased => "erased",
            Self::Served => "served",
            Self::CommandBegins => "command-begins",
            Self::CommandEnds => "command-ends",
            Self::Resumed => "resumed",
        }
    }

    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::BeforeAllocation,
        Self::Allocated,
        Self::Released,
        Self::Erased,
        Self::Served,
        Self::CommandBegins,
        Self::CommandEnds,
        Self::Resumed,
    ];

    /// Numbers of zones that are free or invalid may have changed.
    pub(crate) const fn changes_counts(self) -> bool {
        ResetEvents::COUNTS.has(self)
    }
}

/// A set of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetEvents(u8);

impl ResetEvents {
    /// None.
    pub const NONE: Self = Self(0);
    /// Those that change how many zones are free or invalid.
    pub const COUNTS: Self = Self::NONE
        .with(ResetEvent::Allocated)
        .with(ResetEvent::Released)
        .with(ResetEvent::Erased)
        .with(ResetEvent::Served)
        .with(ResetEvent::Resumed);
    /// All.
    pub const ALL: Self = Self(u8::MAX);

    /// These and one more.
    #[must_use]
    pub const fn with(self, event: ResetEvent) -> Self {
        Self(self.0 | 1 << event as u8)
    }

    /// Whether an event is one of them.
    #[inline]
    #[must_use]
    pub const fn has(self, event: ResetEvent) -> bool {
        self.0 & 1 << event as u8 != 0
    }
}

/// What a group in [`ResetState::Partial`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetStep {
    /// Nothing, until it is asked again.
    Wait,
    /// Nothing; it is asked again at that time, which has not come yet.
    LookAt(Nanos),
    /// Erases a row of the next zone: a block on every plane of its stripe.
    Row,
    /// Erases all that is left of the next zone, or line of storage elements, while the
    /// host is served.
    Zone,
}

/// An invalid physical zone that can be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneToErase {
    /// Its number.
    pub physical: u32,
    /// Blocks that are to be erased.
    pub stale_blocks: u32,
    /// Erasures so far, of all its blocks together.
    pub wear: u64,
}

/// What a [`ResetPolicy`] sees of a group of zones. Nothing is counted before it is
/// asked for.
#[derive(Clone, Copy, Debug)]
pub struct ResetView<'a> {
    background: &'a Background,
    core: &'a Core,
    group: u32,
}

impl<'a> ResetView<'a> {
    pub(crate) const fn new(background: &'a Background, core: &'a Core, group: u32) -> Self {
        Self {
            background,
            core,
            group,
        }
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> u32 {
        self.group
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.core.now
    }

    /// The state it is in.
    #[must_use]
    pub fn state(&self) -> ResetState {
        let state = self.background.reset_state(self.group);
        state.unwrap_or(ResetState::Serving)
    }

    /// Physical zones that are erased and of no zone (`Z_free`); of storage elements, the
    /// zones for which there are erased ones.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.core.pool(self.group).0
    }

    /// Physical zones that are to be erased (`Z_invalid`), counted likewise.
    #[must_use]
    pub fn invalid(&self) -> u32 {
        self.core.pool(self.group).1
    }

    /// Physical zones that zones stand on (`Z_alloc`).
    #[must_use]
    pub fn allocated(&self) -> u32 {
        let counts = self.background.zone_counts(self.core, self.group);
        counts.map_or(0, |counts| counts.allocated)
    }

    /// Commands that read or write zones of the group, accepted and not complete.
    #[must_use]
    pub fn pending(&self) -> u32 {
        self.background.pending_of_group(self.group)
    }

    /// Reads and writes of the host that the flash of the group works on. With a write
    /// buffer there can be some although no command is pending.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.core.host_in_flight[self.group as usize]
    }

    /// Finishes of the drive that fill a zone.
    #[must_use]
    pub fn fills(&self) -> u32 {
        self.background.fills_running()
    }

    /// Nothing of the host is under way: nothing pending, in flight or being filled.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.in_flight() == 0 && self.fills() == 0 && self.pending() == 0
    }

    /// Whether erasing something would free a zone.
    #[must_use]
    pub fn has_victim(&self) -> bool {
        self.core.has_victim(self.group)
    }

    /// Zones, or lines of storage elements, whose erasure has been begun since the group
    /// is [`ResetState::Full`], without those that are reserved for zones.
    #[must_use]
    pub fn erased_whole(&self) -> u32 {
        self.background.begun_whole(self.group)
    }

    /// Parts of a zone that are erased whole one after another: lines of storage
    /// elements; 1 where there are none.
    #[must_use]
    pub fn parts_of_zone(&self) -> u32 {
        self.core.parts_of_zone()
    }

    /// Rows to be erased before one more zone is free, at most, if the zone that the
    /// profile's `reset.victim` names is next.
    #[must_use]
    pub fn rows_of_next(&self) -> u32 {
        self.background.rows_of_next(self.core, self.group)
    }

    /// How long the erasure of a row takes.
    #[must_use]
    pub fn row_ns(&self) -> Nanos {
        self.core.row_time()
    }

    /// Dies (planes, if they work independently) of the group.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.core.flash.layout().units_of_group(self.group).len() as u32
    }

    /// Dies (or planes) of the group that have nothing to do.
    #[must_use]
    pub fn idle_units(&self) -> u32 {
        let (flash, now) = (&self.core.flash, self.core.now);
        let units = flash.layout().units_of_group(self.group);
        let is_idle = |unit: &&u32| flash.media().is_idle(now, **unit);
        units.iter().filter(is_idle).count() as u32
    }
}
